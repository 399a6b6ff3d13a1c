//! Statements: what a session is to do.

use std::sync::Arc;

use tessera_ops::Registry;
use tessera_plan::Plan;
use tessera_types::{Error, Field, Result, Tuple};

use crate::catalog::Catalog;
use crate::parse::ParsedStatement;

/// A query's plan, and the names its columns are shown under.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The platform-independent plan.
    pub plan: Plan,
    /// The result's tuple; field names are unique.
    pub tuple: Tuple,
    /// The name each column is shown under, as SQL gives it: may repeat.
    pub names: Vec<String>,
}

/// How an explanation is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExplainFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// A page.
    Html,
}

/// `EXPLAIN [ANALYZE] [VERBOSE] [(option [value], …)] query`.
#[derive(Debug, Clone)]
pub struct Explain {
    /// Run it and add what was measured.
    pub analyze: bool,
    /// Types and traits of every edge too.
    pub verbose: bool,
    /// The platform whose passes are applied first.
    pub platform: Option<String>,
    /// How it is printed.
    pub format: ExplainFormat,
    /// What is explained.
    pub query: Planned,
}

/// `CREATE EXTERNAL TABLE name [(columns)] STORED AS format [PARTITIONED BY (names)] [OPTIONS (…)] LOCATION 'path'`.
#[derive(Debug, Clone)]
pub struct CreateExternalTable {
    /// The name in parts.
    pub name: Vec<String>,
    /// The columns, where declared.
    pub columns: Option<Vec<Field>>,
    /// The format, in lower case: `parquet`, `csv`, `json`, `arrow`, ….
    pub format: String,
    /// Paths or patterns.
    pub locations: Vec<String>,
    /// Columns whose values stand in the paths.
    pub partitions: Vec<String>,
    /// Options, names in lower case.
    pub options: Vec<(String, String)>,
    /// Do nothing when there is such a table already.
    pub if_not_exists: bool,
    /// Replace a table of that name.
    pub or_replace: bool,
}

/// `CREATE TABLE name AS query`.
#[derive(Debug, Clone)]
pub struct CreateTableAs {
    /// The name in parts.
    pub name: Vec<String>,
    /// Its rows.
    pub query: Planned,
    /// Do nothing when there is such a table already.
    pub if_not_exists: bool,
    /// Replace a table of that name.
    pub or_replace: bool,
}

/// `COPY (query) TO 'path' …`.
#[derive(Debug, Clone)]
pub struct CopyTo {
    /// What is written.
    pub query: Planned,
    /// Where to.
    pub path: String,
    /// The format in lower case; otherwise the path's extension tells.
    pub format: Option<String>,
    /// Options, names in lower case.
    pub options: Vec<(String, String)>,
}

/// What a session is to do.
#[derive(Debug, Clone)]
pub enum Statement {
    /// Run it and give the rows.
    Query(Planned),
    /// Show the plan.
    Explain(Box<Explain>),
    /// Remember a table made of files.
    CreateExternalTable(CreateExternalTable),
    /// Write a table.
    CreateTableAs(Box<CreateTableAs>),
    /// Remember a query under a name.
    CreateView {
        /// The name in parts.
        name: Vec<String>,
        /// The query's text.
        query: String,
        /// Replace a view of that name.
        or_replace: bool,
    },
    /// Forget a table or view.
    Drop {
        /// The names, each in parts.
        names: Vec<Vec<String>>,
        /// Whether a view is meant.
        view: bool,
        /// No error when there is none.
        if_exists: bool,
    },
    /// Write a query's rows to a file.
    CopyTo(Box<CopyTo>),
    /// `SET name = value`.
    Set {
        /// The setting, in lower case.
        name: String,
        /// Its value.
        value: String,
    },
    /// `RESET name`.
    Reset {
        /// The setting, in lower case.
        name: String,
    },
    /// `SHOW name` (`all` for every setting).
    Show {
        /// The setting, in lower case.
        name: String,
    },
    /// `SHOW TABLES`.
    ShowTables,
    /// `DESCRIBE table`: its columns.
    Describe {
        /// The name in parts.
        name: Vec<String>,
        /// Its columns.
        tuple: Tuple,
    },
}

/// What a session may set about planning.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Order joins by estimated cost; otherwise as written.
    pub join_order: bool,
    /// The time zone of `now()` and of conversions that need one.
    pub time_zone: Arc<str>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { join_order: true, time_zone: Arc::from("+00:00") }
    }
}

/// Turns a parsed statement into what the session is to do.
///
/// # Errors
/// Names that do not resolve, types that do not fit, constructs that are not offered; with their place where the
/// parser kept one.
pub fn plan(
    statement: &ParsedStatement,
    _catalog: &dyn Catalog,
    _registry: &Registry,
    _settings: &Settings,
) -> Result<Statement> {
    Err(Error::unsupported(format!("planning {}", statement.text)))
}
