//! State of sub-operators: join tables, group tables, states of aggregates, filters of keys.
//!
//! All of it lies in [`tessera_rows::Rows`]; the part that outgrows the memory budget leaves memory
//! ([`tessera_rows::spill`]).

pub mod aggregate;
pub mod group_table;
pub mod join;
pub mod loser_tree;
pub mod sideways;
