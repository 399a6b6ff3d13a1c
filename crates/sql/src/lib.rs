//! SQL: text to a plan of sub-operators.
//!
//! [`parse`] cuts a script into [`ParsedStatement`]s; [`plan`] turns one of them, with the tables of a [`Catalog`], into a
//! [`Statement`]: what the session is to do. Queries come out as [`Planned`]: a verified-typed plan and the names their
//! columns are shown under.
//!
//! DataFusion's planner resolves names and types and rewrites the logical plan; this room fixes what SQL means
//! (checked arithmetic, result types, no error from rejected rows; see `docs/dialect.md`), orders joins by cost, and lowers
//! the result to sub-operators. Nothing is executed here.
//!
//! Non-goals: running plans, finding files, remembering tables; those belong to the session.

mod adjacent;
mod catalog;
mod check;
mod clock;
mod common_types;
mod context;
mod convert;
mod decorrelate;
mod dialect;
mod distinct;
mod error;
mod estimate;
mod external_table;
mod file_functions;
mod from_first;
mod functions;
mod groupings;
mod lateral_unnest;
mod like_lists;
mod literal_types;
mod literals;
mod logical;
mod lower;
mod named_casts;
mod nullif;
mod number_functions;
mod numbers;
mod one_type;
mod operators;
mod order;
mod own_functions;
mod parse;
#[allow(dead_code, unused_imports)]
mod postgres;
mod precision;
mod push;
mod raise;
mod recursion;
mod reduce;
mod relation;
mod replaced;
mod sample;
mod signature;
mod standard;
mod statement;
mod table_functions;
mod text_literals;
mod types;

mod user_function;

pub use catalog::{Catalog, ColumnStatistics, FileOption, OptionValue, Statistics, Table};
pub use file_functions::type_called;
pub use parse::{ParsedStatement, SQL_DEPTH_MAX, parse};
pub use sample::{Draw, Drawn, Sample};
pub use statement::{
    CopyTo, CreateExternalTable, CreateTableAs, Explain, ExplainFormat, Planned, Settings, Statement, plan,
};
pub use user_function::CreateFunction;
