//! The relations that describe a session: `information_schema`, `pg_catalog` as far as clients read
//! it, and DuckDB's functions. They are rows of constants, made when a statement is bound.
//!
//! [`relation`] and [`function`] look up a name. What they show, they ask of [`Contents`],
//! which the binder implements.
//!
//! ```
//! // `'t'::regclass` is the same number in each session.
//! assert_eq!(tessera_system_catalog::oid("t"), tessera_system_catalog::oid("t"));
//! assert!(tessera_system_catalog::FUNCTIONS.contains(&"duckdb_tables"));
//! ```

#![forbid(unsafe_code)]

mod functions;
mod objects;
mod types;

pub use functions::FUNCTIONS;
pub use objects::oid;
pub use types::format_type;

use std::sync::Arc;

use tessera_plan::Scalar;
use tessera_types::{Atom, Result};

/// The name of the database.
const DATABASE: &str = "tessera";
/// The schema of tables and views.
const SCHEMA: &str = "main";
const CATALOG_SCHEMA: &str = "pg_catalog";
const INFORMATION_SCHEMA: &str = "information_schema";
/// The name of the owner of everything.
const OWNER: &str = "tessera";
const OWNER_OID: i64 = 10;

/// The columns of a relation: names and types.
type Columns = Vec<(&'static str, Atom)>;

/// A table or view of the session.
#[derive(Debug)]
pub struct Object {
    /// The name.
    pub name: String,
    /// Whether it belongs to the session only.
    pub is_temporary: bool,
    /// The query of a view.
    pub view: Option<Arc<str>>,
    /// Name, type and whether it may be NULL of each column.
    pub columns: Vec<(Arc<str>, Atom, bool)>,
    /// The number of rows, if it is known.
    pub row_count: Option<f64>,
}

/// A function, and how it is called.
#[derive(Debug)]
pub struct CallableFunction {
    /// The name.
    pub name: String,
    /// `scalar`, `aggregate`, `window`, `table`, `macro` or `table_macro`.
    pub kind: &'static str,
    /// The parameters of a macro.
    pub parameters: Option<String>,
    /// The number of parameters of a macro.
    pub parameter_count: Option<i64>,
    /// The body of a macro.
    pub definition: Option<String>,
}

/// A setting of a session, as statements see it.
#[derive(Debug, Clone)]
pub struct SettingValue {
    /// The name.
    pub name: String,
    /// The value as text.
    pub value: String,
    /// What the setting means.
    pub meaning: String,
}

/// A variable of the session.
#[derive(Debug)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The value as text; `None` for NULL.
    pub value: Option<String>,
    /// The type of the value.
    pub atom: Atom,
}

/// The parameters of a prepared statement: names, and types as far as they are known.
pub type PreparedParameters = Vec<(String, Option<Atom>)>;

/// What there is to describe. Each part is asked for only where a relation shows it.
pub trait Contents {
    /// Returns whether a table has this name. It is read in place of a relation without its schema.
    ///
    /// # Errors
    /// The table cannot be read.
    fn has_table(&self, name: &str) -> Result<bool>;

    /// Returns the tables and views, sorted by name. A table that cannot be read has no columns.
    fn objects(&mut self) -> Vec<Object>;

    /// Returns all functions, sorted by name: those of Tessera, then macros.
    fn functions(&self) -> Vec<CallableFunction>;

    /// Returns the settings.
    fn settings(&self) -> Vec<SettingValue>;

    /// Returns the variables, sorted by name.
    fn variables(&self) -> Vec<Variable>;

    /// Returns the prepared statements, sorted by name.
    fn prepared_statements(&self) -> Vec<(String, PreparedParameters)>;
}

/// A relation as rows of constants.
#[derive(Debug)]
pub struct Described {
    /// The names and types of its columns.
    pub columns: Vec<(&'static str, Atom)>,
    /// The rows.
    pub rows: Vec<Vec<Scalar>>,
}

/// A value of a relation.
trait IntoScalar {
    fn scalar(self) -> Scalar;
}

impl IntoScalar for &str {
    fn scalar(self) -> Scalar {
        Scalar::String(self.into())
    }
}

impl IntoScalar for i64 {
    fn scalar(self) -> Scalar {
        Scalar::Integer(self.into())
    }
}

impl IntoScalar for bool {
    fn scalar(self) -> Scalar {
        Scalar::Boolean(self)
    }
}

impl<T: IntoScalar> IntoScalar for Option<T> {
    fn scalar(self) -> Scalar {
        self.map_or(Scalar::Null, T::scalar)
    }
}

/// Makes a row of values of different types.
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$($crate::IntoScalar::scalar($value)),*] };
}
use row;

/// Columns of text, whole numbers and booleans, in this order of their types' letters: `t`, `i`,
/// `b`.
fn columns(names: &[(&'static str, char)]) -> Columns {
    let atom = |letter: char| match letter {
        'i' => Atom::Int64,
        'b' => Atom::Boolean,
        _ => Atom::String,
    };
    names.iter().map(|(name, letter)| (*name, atom(*letter))).collect()
}

/// Describes the session as the relation of this qualified name; `None` for other names.
///
/// # Errors
/// A table of this name cannot be read.
pub fn relation(name: &[&str], contents: &mut dyn Contents) -> Result<Option<Described>> {
    let (schema, relation) = match name {
        [relation] => (None, *relation),
        [schema, relation] => (Some(*schema), *relation),
        [database, schema, relation] if *database == DATABASE => (Some(*schema), *relation),
        _ => return Ok(None),
    };
    Ok(match schema {
        Some(INFORMATION_SCHEMA) => contents.information_schema(relation),
        Some(CATALOG_SCHEMA) => contents.pg_catalog(relation),
        None if relation.starts_with("pg_") && !contents.has_table(relation)? => {
            contents.pg_catalog(relation)
        }
        None if relation.starts_with("duckdb_") && !contents.has_table(relation)? => {
            contents.described_function(relation)
        }
        _ => None,
    })
}

/// Returns the rows of one of [`FUNCTIONS`]; `None` for other names.
pub fn function(name: &str, contents: &mut dyn Contents) -> Option<Described> {
    contents.described_function(name)
}
