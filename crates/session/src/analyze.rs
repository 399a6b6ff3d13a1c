//! `ANALYZE`: what is learnt of a table by reading it whole.
//!
//! Two plans read it, and run as those of queries do, with their workers, budget and end. One
//! counts its rows and the distinct values of each column (HyperLogLog), the other keeps rows of
//! which each had the same chance. Values that are common are among these rows as often as they
//! should be: estimates find them there, and so does the report.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringViewArray};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, UInt64Type};
use arrow::util::display::array_value_to_string;
use tessera_optimizer::sample::Drawn;
use tessera_optimizer::table::Table;
use tessera_plan::{Builder, Expr, Params, Plan, Scalar, Value};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Result, Tuple};
use tessera_vector::hash::hash_columns;
use tessera_vector::{Column, own_strings};

/// Rows that are kept of a table: a share of 1 in 1,000 is then known to some 20 %.
const SAMPLE_ROWS: f64 = 20_000.0;

/// How many common values of a column are told, which share of the rows one has at least, and how
/// many of its characters are shown.
const COMMON_MOST: usize = 5;
const COMMON_SHARE: f64 = 0.01;
const COMMON_CHARACTERS: usize = 32;

/// What was counted in a table.
#[derive(Debug, PartialEq)]
pub(crate) struct Counts {
    pub(crate) rows: u64,
    /// Distinct values of each column, NULL not among them.
    pub(crate) distinct: Vec<u64>,
}

/// What is told of the tables that were read: a row for each column.
#[derive(Debug, Default)]
pub(crate) struct Report {
    tables: Vec<String>,
    columns: Vec<Arc<str>>,
    rows: Vec<i64>,
    distinct: Vec<i64>,
    most_common: Vec<Option<String>>,
    kept: Vec<bool>,
}

impl Report {
    /// Adds a table; `kept` says whether later runs have what was learnt.
    pub(crate) fn add(
        &mut self,
        name: &str,
        table: &Table,
        counts: &Counts,
        drawn: &Drawn,
        kept: bool,
    ) {
        let learnt = counts.distinct.iter().zip(&drawn.columns);
        for (field, (distinct, sampled)) in table.tuple.fields().iter().zip(learnt) {
            self.tables.push(name.to_string());
            self.columns.push(field.name.clone());
            self.rows.push(counts.rows as i64);
            self.distinct.push(*distinct as i64);
            self.most_common.push(most_common(sampled));
            self.kept.push(kept);
        }
    }

    /// Its columns.
    pub(crate) fn columns(self) -> [(&'static str, ArrayRef); 6] {
        [
            ("table", Arc::new(StringViewArray::from_iter_values(self.tables))),
            ("column", Arc::new(StringViewArray::from_iter_values(self.columns))),
            ("rows", Arc::new(Int64Array::from(self.rows))),
            ("distinct", Arc::new(Int64Array::from(self.distinct))),
            ("most_common", Arc::new(StringViewArray::from_iter(self.most_common))),
            ("kept", Arc::new(BooleanArray::from(self.kept))),
        ]
    }
}

/// The most common values of a sampled column, each with its share of the rows; nothing where none
/// is common.
fn most_common(sampled: &ArrayRef) -> Option<String> {
    let (rows, mut words) = (sampled.len(), Vec::new());
    hash_columns(&[Column::new(sampled.clone())], rows, &mut words).ok()?;
    // How often a value is there, and where first.
    let mut found: HashMap<u64, (usize, usize)> = HashMap::new();
    for (row, word) in words.into_iter().enumerate().filter(|(row, _)| sampled.is_valid(*row)) {
        found.entry(word).or_insert((0, row)).0 += 1;
    }
    let share = |count: usize| count as f64 / rows as f64;
    let is_common = |count: usize| count > 1 && share(count) >= COMMON_SHARE;
    let mut common: Vec<(usize, usize)> =
        found.into_values().filter(|(count, _)| is_common(*count)).collect();
    common.sort_unstable_by_key(|(count, first)| (Reverse(*count), *first));
    let shown = |(count, first): (usize, usize)| {
        let text = array_value_to_string(sampled, first).ok()?;
        let short = match text.char_indices().nth(COMMON_CHARACTERS) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        };
        Some(format!("{short} ({:.1} %)", share(count) * 100.0))
    };
    let list: Vec<String> = common.into_iter().take(COMMON_MOST).filter_map(shown).collect();
    (!list.is_empty()).then(|| list.join(", "))
}

/// The plan that counts rows, and distinct values of each column.
pub(crate) fn counts_plan(table: &Table) -> Plan {
    let call = |function: &str, args: Vec<Value>| {
        let function = ("function".into(), Value::name(function));
        Value::Record(vec![function, ("args".into(), Value::List(args))])
    };
    let distinct = |(number, name): (usize, &Arc<str>)| {
        let field = Value::Expr(Expr::Field(name.clone()));
        (number.to_string().into(), call("approx_distinct", vec![field]))
    };
    let names = table.tuple.fields().iter().map(|field| &field.name);
    let mut calls = vec![("rows".into(), call("count", Vec::new()))];
    calls.extend(names.enumerate().map(distinct));
    let mut builder = Builder::new(Tuple::empty());
    let scan = builder.add(&table.operator, &[], scan_params(table));
    let root = builder.add("reduce", &[scan], Params::new().with("aggregates", calls));
    builder.finish(root)
}

/// What the plan that counts has found.
///
/// # Errors
/// It has yielded something else.
pub(crate) fn counts(collected: &Collected) -> Result<Counts> {
    let row = collected.single()?;
    let number = |position: usize| -> Result<u64> {
        let array = cast(&row.column(position)?.plain()?, &DataType::UInt64)?;
        Ok(array.as_primitive::<UInt64Type>().value(0))
    };
    let rows = number(0)?;
    // The count is off by some 1 %, and there is no more than one value a row.
    let distinct = (1..row.width()).map(|position| Ok(number(position)?.min(rows)));
    Ok(Counts { rows, distinct: distinct.collect::<Result<_>>()? })
}

/// The plan that draws a sample of a table of so many rows.
pub(crate) fn sample_plan(table: &Table, rows: u64) -> Plan {
    let mut builder = Builder::new(Tuple::empty());
    let mut root = builder.add(&table.operator, &[], scan_params(table));
    if !is_kept_whole(rows) {
        let share = Expr::Constant(Scalar::Float(SAMPLE_ROWS / rows as f64), Atom::Float64);
        let drawn = Expr::call("lt", vec![Expr::call("random", Vec::new()), share]);
        root = builder.add("filter", &[root], Params::new().with("predicate", drawn));
    }
    builder.finish(root)
}

/// The sample that was drawn of a table.
///
/// # Errors
/// The table has changed between the two plans.
pub(crate) fn drawn(table: &Table, counts: &Counts, collected: &Collected) -> Result<Drawn> {
    let batches = collected.kept().iter().filter(|kept| !kept.is_empty());
    let batches =
        batches.map(|kept| kept.chunk()?.to_batch(&table.tuple)).collect::<Result<Vec<_>>>()?;
    let batch = concat_batches(&Arc::new(table.tuple.arrow_schema()?), &batches)?;
    if is_kept_whole(counts.rows) && batch.num_rows() as u64 != counts.rows {
        let (first, second) = (counts.rows, batch.num_rows());
        return Err(Error::data(format!(
            "it had {first} rows and then {second}: its files were changed meanwhile; run ANALYZE again when they are not"
        )));
    }
    Ok(Drawn {
        columns: batch.columns().iter().map(own_strings).collect(),
        rows: batch.num_rows(),
        table_rows: counts.rows as f64,
        even: true,
        distinct: counts.distinct.iter().map(|distinct| Some(*distinct as f64)).collect(),
    })
}

fn is_kept_whole(rows: u64) -> bool {
    rows as f64 <= SAMPLE_ROWS
}

/// Parameters of a scan of all columns.
fn scan_params(table: &Table) -> Params {
    table.params.clone().with("columns", table.tuple.clone())
}
