//! SQL: text to a plan of sub-operators.
//!
//! [`parse`] cuts a script into [`ParsedStatement`]s; [`plan`] turns one of them, with the tables of a [`Catalog`], into a
//! [`Statement`]: what the session is to do. Queries come out as [`Planned`]: a verified-typed plan and the names their
//! columns are shown under.
//!
//! The binder (`bind`) resolves names and types as PostgreSQL does (see `docs/dialect.md`) and gives relations; further
//! steps move predicates, take subqueries apart, and order joins by cost; the result is lowered to sub-operators. Nothing
//! is executed here.
//!
//! Non-goals: running plans, finding files, remembering tables; those belong to the session.

mod adjacent;
mod bind;
mod catalog;
mod clock;
mod decorrelate;
mod definition;
mod dialect;
mod distinct;
mod error;
mod estimate;
mod external_table;
mod file_functions;
mod from_first;
mod lateral_limit;
mod lateral_unnest;
mod long_lists;
mod lower;
mod numbers;
mod order;
mod parse;
mod planning;
mod postgres;
mod push;
mod raise;
mod reduce;
mod relation;
mod row_star;
mod sample;
mod signature;
mod statement;
mod strict;
mod user_function;

pub use catalog::{Catalog, ColumnStatistics, FileOption, OptionValue, Statistics, Table};
pub use file_functions::type_called;
pub use parse::{ParsedStatement, SQL_DEPTH_MAX, STANDARD_OUTPUT, parse};
pub use sample::{Draw, Drawn, Sample};
pub use statement::{
    CopyTo, CreateExternalTable, CreateTableAs, Explain, ExplainFormat, Planned, Settings, Statement, plan,
};
pub use user_function::CreateFunction;
