//! Parsed statements.

use sqlparser::ast::{Expr, Ident, ObjectName, Query, Statement as Parsed};

use crate::external_table::ExternalTable;
use crate::macro_definition::{CreateMacro, DropMacro};
use crate::named_columns::NamedColumns;
use crate::prepare::{Execute, Prepare};
use crate::type_definition::{CreateType, DropTypes};

/// A parsed statement.
#[derive(Debug, Clone)]
pub struct ParsedStatement {
    /// Its parsed form.
    pub kind: StatementKind,
    /// The text of the statement.
    pub text: String,
}

/// The parsed form of a statement.
#[derive(Debug, Clone)]
pub enum StatementKind {
    /// A statement of the parser's own.
    Sql(Box<Parsed>),
    /// `COPY … TO 'path'`.
    Copy {
        /// The query that provides the rows.
        query: Box<Query>,
        /// The path of the output.
        path: String,
        /// The file format in lower case, if one is named.
        format: Option<String>,
        /// Options by name, in lower case.
        options: Vec<(String, String)>,
    },
    /// `EXPLAIN statement`.
    Explain {
        /// The options.
        options: ExplainOptions,
        /// The explained statement.
        inner: Box<StatementKind>,
    },
    /// `SHOW TABLES`.
    Tables,
    /// `DESCRIBE table`.
    Describe(ObjectName),
    /// `DESCRIBE query`.
    DescribeQuery(Box<Query>),
    /// `CREATE EXTERNAL TABLE`.
    CreateExternalTable(Box<ExternalTable>),
    /// `CREATE TABLE name (columns) AS query`.
    CreateNamedColumns(Box<NamedColumns>),
    /// The name of a setting, in lower case.
    Reset(String),
    /// `PREPARE`.
    Prepare(Prepare),
    /// `EXECUTE`.
    Execute(Execute),
    /// The name; `None` for all prepared statements.
    Deallocate(Option<Ident>),
    /// `SET VARIABLE name = value`; the name is in lower case.
    SetVariable {
        /// The name.
        name: String,
        /// The value.
        value: Box<Expr>,
    },
    /// The name of a variable, in lower case.
    ResetVariable(String),
    /// `CREATE MACRO`.
    CreateMacro(Box<CreateMacro>),
    /// `DROP MACRO`.
    DropMacro(DropMacro),
    /// `CREATE TYPE`.
    CreateType(Box<CreateType>),
    /// `DROP TYPE`.
    DropTypes(DropTypes),
}

/// The output format of EXPLAIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExplainFormat {
    /// Readable text.
    #[default]
    Text,
    /// JSON.
    Json,
    /// An HTML page.
    Html,
}

/// The options of EXPLAIN.
#[derive(Debug, Clone, Default)]
pub struct ExplainOptions {
    /// Whether to run the query and add measurements.
    pub analyze: bool,
    /// Whether to print the types and traits of every edge.
    pub verbose: bool,
    /// The platform that applies its passes.
    pub platform: Option<String>,
    /// The output format.
    pub format: ExplainFormat,
}
