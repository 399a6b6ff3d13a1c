//! SQL: text to a plan of sub-operators.
//!
//! [`parse`] cuts a script into [`ParsedStatement`]s; [`plan`] turns one of them, with the tables
//! of a [`Catalog`](tessera_optimizer::table::Catalog), into a [`Statement`]: what the session is
//! to do. Queries come out as [`Planned`]: a plan and the names that their columns are shown under.
//!
//! The binder (`bind`) resolves names and types as PostgreSQL does (see `docs/dialect.md`) and
//! gives relations, of which [`tessera_optimizer::plan`] makes the plan. Nothing is executed here.
//!
//! Non-goals: running plans, finding files, remembering tables; those belong to the session.

mod adjacent;
mod bind;
mod clock;
mod definition;
mod dialect;
mod error;
mod external_table;
mod file_functions;
mod from_first;
mod long_lists;
mod numbers;
mod parse;
mod postgres;
mod row_star;
mod signature;
mod statement;
mod user_function;

pub use file_functions::type_called;
pub use parse::{ParsedStatement, SQL_DEPTH_MAX, STANDARD_OUTPUT, parse};
pub use statement::{
    CopyTo, CreateExternalTable, CreateTableAs, Explain, ExplainFormat, Planned, Settings,
    Statement, plan,
};
pub use user_function::CreateFunction;
