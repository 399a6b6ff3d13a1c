//! Statements of SQL: turns parsed ones into the actions that a session takes.
//!
//! [`plan`] turns a [`ParsedStatement`](tessera_parser::ParsedStatement), with the tables of a
//! [`TableCatalog`](tessera_optimizer::table::TableCatalog), into a [`Statement`]. A query in it is
//! a [`PlannedQuery`](tessera_binder::PlannedQuery): a plan and the display names of its columns.
//!
//! The parser (`tessera_parser`) reads the text, and the binder (`tessera_binder`) resolves the
//! names and types of queries.
//!
//! Non-goals: running plans, finding files, storing tables; these belong to the session.

#![forbid(unsafe_code)]

mod definition;
mod external_table;
mod macro_definition;
mod prepare;
mod statement;
mod type_definition;
mod user_function;

pub use statement::{
    CopyTo, CreateExternalTable, CreateTableAs, Explain, Statement, plan, plan_in,
};
pub use type_definition::CreateType;
pub use user_function::CreateFunction;
