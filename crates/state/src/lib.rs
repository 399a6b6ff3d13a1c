//! State of sub-operators: join tables, group tables, aggregate states, filters of keys.
//!
//! Join tables are stored as [`tessera_rows::Rows`], groups as records of [`aggregate::Area`].
//! State that exceeds the memory budget is spilled ([`tessera_rows::spill`]).
//!
//! # Unsafe code
//!
//! `aggregate` reads typed states from words, `join`, `group_table` and `aggregate` call compiled
//! code, and `sideways` uses AVX-512.

pub mod aggregate;
pub mod group_table;
pub mod join;
pub mod loser_tree;
pub mod sideways;
