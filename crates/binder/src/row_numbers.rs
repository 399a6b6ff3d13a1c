//! Scans of tables in FROM, and the columns of row numbers that are not part of `*`: `rowid`, as in
//! DuckDB, and `file_row_number` of files.

use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast::{Expr as Ast, Ident, Query, TableAlias, Visit, Visitor};
use tessera_optimizer::logical::relation::Relation;
use tessera_optimizer::table::{RowNumbers, Table};
use tessera_plan::Value;
use tessera_types::{Atom, Field, Result, Tuple};

use super::factor::aliased;
use super::from::Tables;
use super::scope::{Column, OutputColumn, Scope, ambiguous, as_parameter, matches, read};
use super::typed::TypedExpr;
use super::{Binder, BoundQuery};

/// The number of a row in its table.
const ROWID: &str = "rowid";
/// The number of a row in its file.
const OF_FILE: &str = "file_row_number";
/// Where rows have these numbers, for the error where they have none.
pub(super) const HINT: &str = "; rows have a rowid in tables in memory and of one Parquet file, and a \
    file_row_number in Parquet files; number others with row_number() OVER ()";

/// Returns whether this is the name of a row number.
pub(super) fn is_name(name: &Ident) -> bool {
    [ROWID, OF_FILE].iter().any(|known| name.value.eq_ignore_ascii_case(known))
}

impl Binder<'_> {
    /// Scans a table of FROM under an alias or its own name.
    pub(super) fn scanned(
        &mut self,
        table: Arc<Table>,
        name: &str,
        alias: Option<&TableAlias>,
        qualifier: Vec<Arc<str>>,
    ) -> Result<Tables> {
        let (table, numbers) = match self.reads_row_numbers {
            true => with_row_numbers(table),
            false => (table, None),
        };
        let mut bound = self.scan(table, name)?;
        let number = match &numbers {
            Some(Numbers { position, is_added, .. }) if *is_added => {
                Some(bound.columns.remove(*position))
            }
            Some(Numbers { position, .. }) => bound.columns.get(*position).cloned(),
            None => None,
        };
        let mut tables = aliased(bound, alias, qualifier)?;
        if let (Some(number), Some(first), Some(numbers)) =
            (number, tables.columns.first().cloned(), numbers)
        {
            tables.columns.extend(numbers.names.into_iter().map(|name| Column {
                name: name.into(),
                field: number.field.clone(),
                atom: number.atom.clone(),
                hidden: true,
                pseudo: true,
                ..first.clone()
            }));
        }
        Ok(tables)
    }

    /// Scans a table.
    fn scan(&mut self, table: Arc<Table>, name: &str) -> Result<BoundQuery> {
        let (mut columns, mut outputs) = (Vec::new(), Vec::new());
        for (index, field) in table.tuple.fields().iter().enumerate() {
            // SQL cannot read fields that hold collections.
            let Some(atom) = field.atom() else { continue };
            let fresh = self.fields.fresh_column(name, &field.name, atom.clone());
            columns.push((fresh.clone(), index));
            outputs.push(OutputColumn {
                name: field.name.clone(),
                field: fresh,
                atom: atom.clone(),
                literal: None,
            });
        }
        let relation = Relation::Scan { table, columns, predicates: Vec::new() };
        self.scan_in_session_zone(BoundQuery { relation, columns: outputs })
    }
}

impl Scope<'_> {
    /// Finds a column that is not part of `*` and has no qualifier here.
    pub(super) fn pseudo_column(&self, name: &Ident) -> Result<Option<TypedExpr>> {
        for (depth, scope) in self.enclosing().enumerate() {
            let called = |column: &&Column| {
                column.pseudo
                    && [true, false].iter().any(|exact| matches(name, &column.name, *exact))
            };
            let found: Vec<&Column> = scope.columns.iter().filter(called).collect();
            match found[..] {
                [] => {}
                [only] => {
                    let value = read(only);
                    return Ok(Some(if depth > 0 { as_parameter(value) } else { value }));
                }
                [..] => return Err(ambiguous(std::slice::from_ref(name), &found)),
            }
        }
        Ok(None)
    }
}

/// The column of row numbers of a scan.
struct Numbers {
    /// Its position among the columns that SQL can read.
    position: usize,
    /// Whether it was added to the scan, and is not one of its columns.
    is_added: bool,
    /// The names by which it can be read.
    names: Vec<&'static str>,
}

/// Returns the table with a column of row numbers, if its scan has one and a name for it is free.
fn with_row_numbers(table: Arc<Table>) -> (Arc<Table>, Option<Numbers>) {
    let Some(RowNumbers { column, are_unique }) = table.row_numbers.clone() else {
        return (table, None);
    };
    let fields = table.tuple.fields();
    let is_taken = |name: &str| fields.iter().any(|field| field.name.eq_ignore_ascii_case(name));
    let wanted = [(ROWID, are_unique), (OF_FILE, &*column == OF_FILE)];
    let names: Vec<&str> =
        wanted.iter().filter(|(name, is)| *is && !is_taken(name)).map(|(name, _)| *name).collect();
    let is_numbered = table.params.get(&column) == Some(&Value::Boolean(true));
    let readable = fields.iter().filter(|field| field.atom().is_some());
    let position = match is_numbered {
        true => readable.clone().position(|field| field.name == column),
        false => (!is_taken(&column)).then(|| readable.count()),
    };
    let Some(position) = position.filter(|_| !names.is_empty()) else { return (table, None) };
    let numbers = Numbers { position, is_added: !is_numbered, names };
    if is_numbered {
        return (table, Some(numbers));
    }
    let number = Field::new(column.clone(), Atom::Int64);
    let tuple = Tuple::new(fields.iter().cloned().chain([number]).collect::<Vec<_>>());
    let mut params = table.params.clone();
    params.set(column, true);
    // A sample has no numbers of rows.
    let table = Table { tuple, params, sample: None, ..(*table).clone() };
    (Arc::new(table), Some(numbers))
}

/// Returns whether a query reads a column with the name of a row number.
pub(super) fn are_read(query: &Query) -> bool {
    struct Reads;
    impl Visitor for Reads {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Ast) -> ControlFlow<()> {
            let last = match expr {
                Ast::Identifier(name) => Some(name),
                Ast::CompoundIdentifier(parts) => parts.last(),
                _ => None,
            };
            match last.is_some_and(is_name) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    query.visit(&mut Reads).is_break()
}
