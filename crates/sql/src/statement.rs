//! Statements: the actions that a session takes.

use sqlparser::ast::{
    ContextModifier, Expr as SqlExpr, ObjectName, Set, Statement as SqlStatement, Value,
};
use tessera_binder::{
    Definitions, Environment, Parameters, PlanContext, PlannedQuery, Prepared, Settings,
};
use tessera_operator::Registry;
use tessera_optimizer::table::TableCatalog;
use tessera_parser::{CreateMacro, DropTypes, ExplainFormat, ParsedStatement, StatementKind};
use tessera_types::{Atom, Error, Field, Result};

use crate::type_definition::CreateType;
use crate::user_function::{self, CreateFunction};
use crate::{definition, external_table, macro_definition, prepare, type_definition};

/// `EXPLAIN [ANALYZE] [VERBOSE] [(option [value], …)] query`.
#[derive(Debug, Clone)]
pub struct Explain {
    /// Whether to run the query and add measurements.
    pub analyze: bool,
    /// Whether to print the types and traits of every edge.
    pub verbose: bool,
    /// The platform that applies its passes; `None` for the platform-independent plan.
    pub platform: Option<String>,
    /// The output format.
    pub format: ExplainFormat,
    /// The explained query.
    pub query: PlannedQuery,
}

/// `CREATE EXTERNAL TABLE name [(columns)] STORED AS format [PARTITIONED BY (names)] [OPTIONS (…)]
/// LOCATION 'path'`.
#[derive(Debug, Clone)]
pub struct CreateExternalTable {
    /// The parts of the qualified name.
    pub name: Vec<String>,
    /// The declared columns, if any.
    pub columns: Option<Vec<Field>>,
    /// The format, in lower case: `parquet`, `csv`, `json`, `arrow`, ….
    pub format: String,
    /// Paths or glob patterns.
    pub locations: Vec<String>,
    /// Partition columns; the paths contain their values.
    pub partitions: Vec<String>,
    /// Options by name, in lower case.
    pub options: Vec<(String, String)>,
    /// Whether to do nothing if the table exists.
    pub if_not_exists: bool,
    /// Whether to replace an existing table.
    pub or_replace: bool,
}

/// `CREATE TABLE name AS query`.
#[derive(Debug, Clone)]
pub struct CreateTableAs {
    /// The parts of the qualified name.
    pub name: Vec<String>,
    /// The query that provides the rows.
    pub query: PlannedQuery,
    /// Whether the table belongs to the session only.
    pub temporary: bool,
    /// Whether to do nothing if the table exists.
    pub if_not_exists: bool,
    /// Whether to replace an existing table.
    pub or_replace: bool,
}

/// `COPY (query) TO 'path' …`.
#[derive(Debug, Clone)]
pub struct CopyTo {
    /// The query that produces the rows.
    pub query: PlannedQuery,
    /// The path of the output.
    pub path: String,
    /// The file format in lower case; `None` if the path's extension determines it.
    pub format: Option<String>,
    /// Options by name, in lower case.
    pub options: Vec<(String, String)>,
}

/// An action that a session takes.
#[derive(Debug, Clone)]
pub enum Statement {
    /// Runs a query and returns its rows.
    Query(PlannedQuery),
    /// Shows a plan.
    Explain(Box<Explain>),
    /// Registers a table over files.
    CreateExternalTable(CreateExternalTable),
    /// Creates a table from a query's rows.
    CreateTableAs(Box<CreateTableAs>),
    /// Registers a view.
    CreateView {
        /// The parts of the qualified name.
        name: Vec<String>,
        /// The text of the query.
        query: String,
        /// The query as it is now.
        planned: Box<PlannedQuery>,
        /// Whether to replace an existing view.
        or_replace: bool,
    },
    /// Drops tables or views.
    Drop {
        /// The qualified names.
        names: Vec<Vec<String>>,
        /// Whether the names denote views.
        view: bool,
        /// Whether to ignore unknown names.
        if_exists: bool,
    },
    /// Creates a user-defined function.
    CreateFunction(Box<CreateFunction>),
    /// Drops user-defined functions.
    DropFunctions {
        /// The names, each with its argument types if given.
        functions: Vec<(String, Option<Vec<Atom>>)>,
        /// Whether to ignore unknown names.
        if_exists: bool,
    },
    /// Defines macros, or a function in SQL.
    CreateMacro(Box<CreateMacro>),
    /// Drops the macros of a name.
    DropMacro {
        /// The name.
        name: String,
        /// Whether to ignore an unknown name.
        if_exists: bool,
    },
    /// Defines a type of the user.
    CreateType(Box<CreateType>),
    /// Drops types of the user.
    DropTypes(DropTypes),
    /// Prepares a statement.
    Prepare {
        /// The name.
        name: String,
        /// The statement.
        prepared: Box<Prepared>,
    },
    /// Removes a prepared statement.
    Deallocate {
        /// The name; `None` for all.
        name: Option<String>,
    },
    /// Gives a variable the value of a query of one column and at most one row.
    SetVariable {
        /// The name, in lower case.
        name: String,
        /// The query.
        query: Box<PlannedQuery>,
    },
    /// Removes a variable.
    ResetVariable {
        /// The name, in lower case.
        name: String,
    },
    /// Writes a query's rows to a file.
    CopyTo(Box<CopyTo>),
    /// `SET name = value`.
    Set {
        /// The name of the setting, in lower case.
        name: String,
        /// The value.
        value: String,
    },
    /// `RESET name`.
    Reset {
        /// The name of the setting, in lower case.
        name: String,
    },
    /// `SHOW name` (`all` for every setting).
    Show {
        /// The name of the setting, in lower case.
        name: String,
    },
    /// `ANALYZE [table]`: reads a table, or all tables, in full for statistics.
    Analyze {
        /// The parts of the qualified name; `None` for all tables.
        name: Option<Vec<String>>,
    },
    /// `SHOW TABLES`.
    ShowTables,
    /// `DESCRIBE table` or `DESCRIBE query`: shows the columns.
    Describe {
        /// The query whose columns are shown.
        query: Box<PlannedQuery>,
    },
}

/// Plans a parsed statement of a session that has defined nothing.
///
/// # Errors
/// As [`plan_in`].
pub fn plan(
    statement: &ParsedStatement,
    catalog: &dyn TableCatalog,
    registry: &Registry,
    settings: &Settings,
) -> Result<Statement> {
    let environment = Environment {
        definitions: &Definitions::default(),
        parameters: &Parameters::default(),
        settings: &Vec::new,
    };
    plan_in(statement, catalog, registry, settings, environment)
}

/// Plans a parsed statement.
///
/// # Errors
/// A name is unknown, types do not match, a parameter has no value, or a construct is not
/// supported. The error has its position where the parser recorded one.
pub fn plan_in(
    statement: &ParsedStatement,
    catalog: &dyn TableCatalog,
    registry: &Registry,
    settings: &Settings,
    environment: Environment<'_>,
) -> Result<Statement> {
    if *environment.parameters != Parameters::default() {
        environment.parameters.check(&statement.parameters(), "the statement")?;
    }
    let context = PlanContext::new(catalog, registry.library(), settings, environment);
    plan_kind(&statement.kind, &context)
}

pub(crate) fn plan_kind(kind: &StatementKind, context: &PlanContext<'_>) -> Result<Statement> {
    match kind {
        StatementKind::Copy { query, path, format, options } => {
            Ok(Statement::CopyTo(Box::new(CopyTo {
                query: context.query(query)?,
                path: path.clone(),
                format: format.clone(),
                options: options.clone(),
            })))
        }
        StatementKind::Explain { options, inner } => {
            let query = match plan_kind(inner, context)? {
                Statement::Query(query) => query,
                Statement::CreateTableAs(create) => create.query,
                Statement::CopyTo(copy) => copy.query,
                Statement::CreateView { planned, .. } => *planned,
                Statement::Describe { query } | Statement::SetVariable { query, .. } => *query,
                _ => {
                    return Err(Error::unsupported(
                        "EXPLAIN of a statement without a query is not supported",
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
        StatementKind::Tables => Ok(Statement::ShowTables),
        StatementKind::Describe(name) => {
            let query = Box::new(context.stored_query(&*tessera_parser::table_query(name)?)?);
            Ok(Statement::Describe { query })
        }
        StatementKind::DescribeQuery(query) => {
            Ok(Statement::Describe { query: Box::new(context.stored_query(query)?) })
        }
        StatementKind::CreateExternalTable(create) => {
            external_table::plan(create).map(Statement::CreateExternalTable)
        }
        StatementKind::CreateNamedColumns(create) => definition::named_columns(create, context),
        StatementKind::Reset(name) => Ok(Statement::Reset { name: name.clone() }),
        StatementKind::Prepare(prepare) => prepare::plan_prepare(prepare, context),
        StatementKind::Execute(execute) => prepare::plan_execute(execute, context),
        StatementKind::Deallocate(name) => {
            Ok(Statement::Deallocate { name: name.as_ref().map(tessera_parser::normalized) })
        }
        StatementKind::SetVariable { name, value } => {
            prepare::plan_set_variable(name, value, context)
        }
        StatementKind::ResetVariable(name) => Ok(Statement::ResetVariable { name: name.clone() }),
        StatementKind::CreateMacro(create) => macro_definition::create(create, context),
        StatementKind::DropMacro(dropped) => Ok(macro_definition::drop(dropped)),
        StatementKind::CreateType(create) => type_definition::create(create, context),
        StatementKind::DropTypes(dropped) => Ok(Statement::DropTypes(dropped.clone())),
        StatementKind::Sql(statement) => plan_sql(statement, context),
    }
}

fn plan_sql(statement: &SqlStatement, context: &PlanContext<'_>) -> Result<Statement> {
    match statement {
        SqlStatement::Query(query) => context.query(query).map(Statement::Query),
        SqlStatement::CreateTable(create) => definition::create_table(create, context),
        SqlStatement::CreateView(view) => definition::create_view(view, context),
        SqlStatement::Drop { .. } => definition::drop(statement),
        SqlStatement::CreateFunction(create) => user_function::create(create, context),
        SqlStatement::DropFunction(dropped) => user_function::drop_functions(dropped),
        SqlStatement::Set(set) => plan_set(set),
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
            if let Some(error) = tessera_parser::unsupported_change(other) {
                return Err(error);
            }
            let text = other.to_string();
            let verb: Vec<&str> = text.split_whitespace().take(2).collect();
            Err(Error::unsupported(format!("the statement {} is not supported", verb.join(" "))))
        }
    }
}

fn plan_set(set: &Set) -> Result<Statement> {
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
                    "SET {variable} with several values is not supported"
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

/// Returns whether a word stands for the default of a setting.
fn is_default(name: &str, word: &str) -> bool {
    word.eq_ignore_ascii_case("default") || name == "timezone" && word.eq_ignore_ascii_case("local")
}

/// Returns the parts of a qualified name, in lower case unless quoted.
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
