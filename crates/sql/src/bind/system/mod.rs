//! The relations that describe a session: `information_schema`, `pg_catalog` as far as clients read
//! it, and DuckDB's functions. They are rows of constants, made when a statement is bound.

mod functions;
mod objects;
mod types;

/// The functions of FROM that describe the session.
pub(super) use functions::NAMES as FUNCTIONS;
pub(super) use types::format_type;

use tessera_optimizer::logical::relation::Relation;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Field, Result, SqlState, Tuple, did_you_mean};

use super::scope::OutputColumn;
use super::typed::TypedExpr;
use super::{Binder, BoundQuery};

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

/// A relation as rows of constants.
struct Described {
    columns: Columns,
    rows: Vec<Vec<Scalar>>,
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
    ($($value:expr),* $(,)?) => { vec![$($crate::bind::system::IntoScalar::scalar($value)),*] };
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

impl Binder<'_> {
    /// Binds a relation that describes the session; `None` for other names.
    pub(super) fn system_relation(&mut self, name: &[&str]) -> Result<Option<BoundQuery>> {
        let (schema, relation) = match name {
            [relation] => (None, *relation),
            [schema, relation] => (Some(*schema), *relation),
            [database, schema, relation] if *database == DATABASE => (Some(*schema), *relation),
            _ => return Ok(None),
        };
        let described = match schema {
            Some(INFORMATION_SCHEMA) => self.information_schema(relation),
            Some(CATALOG_SCHEMA) => self.pg_catalog(relation),
            None if relation.starts_with("pg_") && self.catalog.table(name)?.is_none() => {
                self.pg_catalog(relation)
            }
            None if relation.starts_with("duckdb_") && self.catalog.table(name)?.is_none() => {
                self.described_function(relation)
            }
            _ => None,
        };
        Ok(described.map(|Described { columns, rows }| self.constant_rows(columns, rows)))
    }

    /// Binds a function of FROM that describes the session; `None` for other names.
    pub(super) fn system_function(&mut self, name: &str) -> Result<Option<BoundQuery>> {
        let described = self.described_function(name);
        Ok(described.map(|Described { columns, rows }| self.constant_rows(columns, rows)))
    }

    /// Returns rows of constants as a relation.
    pub(super) fn constant_rows(
        &mut self,
        columns: Vec<(&'static str, Atom)>,
        rows: Vec<Vec<Scalar>>,
    ) -> BoundQuery {
        let column = |(name, atom): (&'static str, Atom)| OutputColumn {
            name: name.into(),
            field: self.fields.fresh(name, atom.clone()),
            atom,
            literal: None,
        };
        let columns: Vec<OutputColumn> = columns.into_iter().map(column).collect();
        let value =
            |(value, column): (Scalar, &OutputColumn)| Expr::Constant(value, column.atom.clone());
        let rows = rows
            .into_iter()
            .map(|row| row.into_iter().zip(&columns).map(value).collect())
            .collect();
        let field =
            |output: &OutputColumn| Field::nullable(output.field.clone(), output.atom.clone());
        let tuple = Tuple::new(columns.iter().map(field).collect::<Vec<_>>());
        BoundQuery { relation: Relation::Values { tuple, rows }, columns }
    }

    /// Binds `'name'::regclass`: the identifier of a table or view.
    pub(super) fn relation_oid(&self, name: &str) -> Result<TypedExpr> {
        let plain = name.rsplit('.').next().unwrap_or(name).trim().trim_matches('"');
        let known = self.catalog.table_kinds();
        let found = known
            .iter()
            .find(|(table, _)| table == plain)
            .or_else(|| known.iter().find(|(table, _)| table.eq_ignore_ascii_case(plain)));
        match found {
            Some((table, _)) => Ok(TypedExpr::int64(objects::oid(table))),
            None => {
                let hint = did_you_mean(plain, known.iter().map(|(name, _)| name.as_str()));
                Err(Error::semantic(format!("unknown table '{name}'{hint}"))
                    .with_state(SqlState::UNDEFINED_TABLE))
            }
        }
    }
}
