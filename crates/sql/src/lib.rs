//! Turns SQL text into plans of sub-operators.
//!
//! [`parse`] splits a script into [`ParsedStatement`]s. [`plan`] turns one of them, with the tables
//! of a [`TableCatalog`](tessera_optimizer::table::TableCatalog), into a [`Statement`]: the action
//! that the session takes. A query becomes a [`PlannedQuery`]: a plan and the display names of its
//! columns.
//!
//! The binder (`bind`) resolves names and types as PostgreSQL does (see `docs/dialect.md`) and
//! produces relations, which [`tessera_optimizer::plan`] turns into the plan.
//!
//! Non-goals: running plans, finding files, storing tables; these belong to the session.

#![forbid(unsafe_code)]

mod adjacent;
mod bind;
mod clock;
mod definition;
mod dialect;
mod effort;
mod error;
mod external_table;
mod file_functions;
mod frame_exclude;
mod from_first;
mod long_lists;
mod numbers;
mod parse;
mod postgres;
mod row_star;
mod sample_clause;
mod signature;
mod statement;
mod user_function;

pub use file_functions::parse_type;
pub use parse::{ParsedStatement, SQL_DEPTH_MAX, STANDARD_OUTPUT, parse};
pub use statement::{
    CopyTo, CreateExternalTable, CreateTableAs, Explain, ExplainFormat, PlannedQuery, Settings,
    Statement, plan,
};
pub use user_function::CreateFunction;
