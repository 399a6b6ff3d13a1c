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

mod bind;
mod change;
mod clock;
mod definition;
mod definitions;
mod dialect;
mod effort;
mod error;
mod external_table;
mod file_functions;
#[cfg(test)]
mod grammar_tests;
mod long_lists;
mod macro_definition;
mod numbers;
mod parameters;
mod parse;
mod postgres;
mod prepare;
mod signature;
mod statement;
mod user_function;

pub use definitions::{Definitions, Environment, SettingValue};
pub use file_functions::{parse_names, parse_type};
pub use macro_definition::{CreateMacro, Macro};
pub use parameters::{Constant, Parameters};
pub use parse::{ParsedStatement, SQL_DEPTH_MAX, STANDARD_OUTPUT, parse};
pub use prepare::Prepared;
pub use statement::{
    CopyTo, CreateExternalTable, CreateTableAs, Explain, ExplainFormat, PlannedQuery, Settings,
    Statement, plan, plan_in,
};
pub use user_function::CreateFunction;
