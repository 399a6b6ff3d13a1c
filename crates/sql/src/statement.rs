//! Statements: what a session is to do.

use std::collections::HashSet;
use std::sync::Arc;

use sqlparser::ast::{
    ContextModifier, Expr as SqlExpr, ObjectName, Query, Set, Statement as SqlStatement, Value,
};
use tessera_functions::Library;
use tessera_operator::Registry;
use tessera_optimizer::logical::relation::Name;
use tessera_optimizer::table::Catalog;
use tessera_plan::{Plan, Rules};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use crate::bind::{Binder, Bound};
use crate::clock::Moment;
use crate::definition;
use crate::external_table;
use crate::parse::{Kind, ParsedStatement};
use crate::user_function::{self, CreateFunction};

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

/// `CREATE EXTERNAL TABLE name [(columns)] STORED AS format [PARTITIONED BY (names)] [OPTIONS (…)]
/// LOCATION 'path'`.
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
    /// For this session only.
    pub temporary: bool,
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
    /// Make a function of a user's.
    CreateFunction(Box<CreateFunction>),
    /// Forget functions of users.
    DropFunctions {
        /// Their names, with the types of their arguments where they are said.
        functions: Vec<(String, Option<Vec<Atom>>)>,
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
    /// `ANALYZE [table]`: read it whole, or all tables.
    Analyze {
        /// The name in parts; none for all tables.
        name: Option<Vec<String>>,
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
    /// The rewrites that are on.
    pub rules: Rules,
    /// The time zone of `now()` and of conversions that need one.
    pub time_zone: Arc<str>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { join_order: true, rules: Rules::ALL, time_zone: Arc::from("+00:00") }
    }
}

/// Turns a parsed statement into what the session is to do.
///
/// # Errors
/// Names that do not resolve, types that do not fit, constructs that are not offered; with their
/// place where the parser kept one.
pub fn plan(
    statement: &ParsedStatement,
    catalog: &dyn Catalog,
    registry: &Registry,
    settings: &Settings,
) -> Result<Statement> {
    of_kind(
        &statement.kind,
        &Planning { catalog, library: registry.library(), settings, moment: Moment::now() },
    )
}

pub(crate) struct Planning<'a> {
    catalog: &'a dyn Catalog,
    library: &'a Arc<Library>,
    settings: &'a Settings,
    moment: Moment,
}

fn of_kind(kind: &Kind, planning: &Planning<'_>) -> Result<Statement> {
    match kind {
        Kind::Copy { query, path, format, options } => Ok(Statement::CopyTo(Box::new(CopyTo {
            query: planning.query(query)?,
            path: path.clone(),
            format: format.clone(),
            options: options.clone(),
        }))),
        Kind::Explain { options, inner } => {
            let query = match of_kind(inner, planning)? {
                Statement::Query(query) => query,
                Statement::CreateTableAs(create) => create.query,
                Statement::CopyTo(copy) => copy.query,
                _ => {
                    return Err(Error::unsupported(
                        "EXPLAIN of a statement that is no query is not supported",
                    ));
                }
            };
            Ok(Statement::Explain(Box::new(Explain {
                analyze: options.analyze,
                verbose: options.verbose,
                platform: options.platform.clone(),
                format: options.format,
                query,
            })))
        }
        Kind::Tables => Ok(Statement::ShowTables),
        Kind::Describe(name) => {
            let query = planning.query(&*crate::parse::table_query(name)?)?;
            Ok(Statement::Describe { name: parts(name)?, tuple: query.tuple })
        }
        Kind::CreateExternalTable(create) => {
            external_table::planned(create).map(Statement::CreateExternalTable)
        }
        Kind::CreateNamedColumns(create) => definition::named_columns(create, planning),
        Kind::Reset(name) => Ok(Statement::Reset { name: name.clone() }),
        Kind::Sql(statement) => of_sql(statement, planning),
    }
}

impl Planning<'_> {
    pub(crate) fn query(&self, query: &Query) -> Result<Planned> {
        let mut binder = Binder::new(self.catalog, self.library, self.moment, self.settings.rules);
        let Bound { relation, columns } = binder.statement(query)?;
        let mut used = HashSet::new();
        let output: Vec<(Name, Name)> = columns
            .iter()
            .map(|column| {
                let mut unique: Name = column.name.clone();
                let mut number = 2;
                while !used.insert(unique.clone()) {
                    unique = Arc::from(format!("{}_{number}", column.name));
                    number += 1;
                }
                (unique, column.field.clone())
            })
            .collect();
        let (plan, tuple) =
            tessera_optimizer::plan(relation, &output, binder.fields, self.settings.join_order)?;
        let names = columns.iter().map(|column| column.name.to_string()).collect();
        Ok(Planned { plan, tuple, names })
    }
}

fn of_sql(statement: &SqlStatement, planning: &Planning<'_>) -> Result<Statement> {
    match statement {
        SqlStatement::Query(query) => planning.query(query).map(Statement::Query),
        SqlStatement::CreateTable(create) => definition::create_table(create, planning),
        SqlStatement::CreateView(view) => definition::create_view(view, planning),
        SqlStatement::Drop { .. } => definition::drop(statement),
        SqlStatement::CreateFunction(create) => user_function::create(create),
        SqlStatement::DropFunction(dropped) => user_function::drop_functions(dropped),
        SqlStatement::Set(set) => of_set(set),
        SqlStatement::ShowVariable { variable } => {
            let name = variable
                .iter()
                .map(|part| part.value.to_ascii_lowercase())
                .collect::<Vec<_>>()
                .join(".");
            Ok(Statement::Show { name })
        }
        SqlStatement::Analyze(analyze) => definition::analyze(analyze),
        other => {
            let text = other.to_string();
            let verb: Vec<&str> = text.split_whitespace().take(2).collect();
            Err(Error::unsupported(format!("the statement {} is not supported", verb.join(" "))))
        }
    }
}

fn of_set(set: &Set) -> Result<Statement> {
    let (name, value) = match set {
        Set::SingleAssignment {
            scope: None | Some(ContextModifier::Session),
            hivevar: false,
            variable,
            values,
        } => match values.as_slice() {
            [value] => (variable.to_string().to_ascii_lowercase(), value),
            _ => {
                return Err(Error::unsupported(format!(
                    "SET {variable} to several values is not supported"
                )));
            }
        },
        Set::SetTimeZone { local: false, value } => ("timezone".to_string(), value),
        other => return Err(Error::unsupported(format!("{other} is not supported"))),
    };
    let value = match value {
        SqlExpr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text.clone(),
            other => other.to_string(),
        },
        SqlExpr::Identifier(word)
            if word.quote_style.is_none() && is_default(&name, &word.value) =>
        {
            return Ok(Statement::Reset { name });
        }
        SqlExpr::Identifier(word) => word.value.clone(),
        other => other.to_string(),
    };
    Ok(Statement::Set { name, value })
}

/// Whether a word stands for what a setting is at first.
fn is_default(name: &str, word: &str) -> bool {
    word.eq_ignore_ascii_case("default") || name == "timezone" && word.eq_ignore_ascii_case("local")
}

pub(crate) fn parts(name: &ObjectName) -> Result<Vec<String>> {
    name.0
        .iter()
        .map(|part| match part.as_ident() {
            Some(ident) if ident.quote_style.is_some() => Ok(ident.value.clone()),
            Some(ident) => Ok(ident.value.to_lowercase()),
            None => Err(Error::unsupported(format!("the name {name} is not supported"))),
        })
        .collect()
}
