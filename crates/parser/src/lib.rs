//! Parses SQL: text becomes statements of the parser's syntax tree.
//!
//! [`parse`] splits a script into [`ParsedStatement`]s. The grammar is that of the `sqlparser`
//! crate with patches (`vendor/README.md`); `dialect` turns on what it lets a dialect choose.
//! Statements that it does not know have a module each and a variant of [`StatementKind`].
//!
//! ```
//! use tessera_parser::parse;
//!
//! let statements = parse("select ?; copy t to 't.csv'").unwrap();
//! assert_eq!(statements[0].parameters(), ["1"]);
//! assert_eq!(statements[1].text, "copy t to 't.csv'");
//! ```
//!
//! A long list of literals is one token, its text ([`list_text`]): no syntax tree is made of it.
//!
//! What a name or an expression means is the binder's to say, but for the names of types
//! ([`atom_of_type`]), which need no catalog.

#![forbid(unsafe_code)]

mod change;
mod dialect;
mod effort;
mod error;
mod external_table;
#[cfg(test)]
mod grammar_tests;
mod long_lists;
mod macro_definition;
mod named_columns;
mod names;
mod numbers;
mod parameters;
mod parse;
mod prepare;
mod sql_type;
mod statement;
mod type_definition;

pub use change::unsupported_change;
pub use external_table::ExternalTable;
pub use long_lists::{Literal, Literals, list_text};
pub use macro_definition::{CreateMacro, DropMacro, Macro, MacroBody, MacroParameter};
pub use named_columns::NamedColumns;
pub use names::{normalized, parse_names};
pub use parameters::parameter_name;
pub use parse::{
    SQL_DEPTH_MAX, STANDARD_OUTPUT, expression, parse, query, query_of_view, select, table_query,
};
pub use prepare::{Execute, Prepare};
pub use sql_type::{NamedTypes, atom_of_type, element_type, no_types, parse_type};
pub use statement::{ExplainFormat, ExplainOptions, ParsedStatement, StatementKind};
pub use type_definition::{CreateType, DropTypes, TypeBody};
