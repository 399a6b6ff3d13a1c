//! `ANALYZE`: statistics of a table from a full scan.
//!
//! Two plans read the table. They run like queries, with the same workers, memory budget and
//! cancellation. The first counts the rows and the distinct values of each column (HyperLogLog),
//! the second draws a uniform sample. Estimates and the report take common values from the sample.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringViewArray};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, UInt64Type};
use arrow::util::display::array_value_to_string;
use tessera_optimizer::sample::SampledRows;
use tessera_optimizer::table::Table;
use tessera_plan::{Builder, Expr, Params, Plan, Scalar, Value};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Result, Tuple};
use tessera_vector::hash::hash_columns;
use tessera_vector::{Column, compact_strings};

/// The number of rows in a sample. It gives a selectivity of 1 in 1,000 to within about 20 %.
const SAMPLE_ROWS: f64 = 20_000.0;

/// The maximum number of common values to report for a column.
const COMMON_MOST: usize = 5;
/// The minimum share of the rows that a common value has.
const COMMON_SHARE: f64 = 0.01;
/// The number of characters to show of a common value.
const COMMON_CHARACTERS: usize = 32;

/// The row count of a table and the distinct counts of its columns.
#[derive(Debug, PartialEq)]
pub(crate) struct Counts {
    pub(crate) rows: u64,
    /// The number of distinct values of each column, without NULL.
    pub(crate) distinct: Vec<u64>,
}

/// The result of `ANALYZE`: one row per column of each table.
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
    /// Adds a table. `kept` says whether its sample is in the statistics cache.
    pub(crate) fn add(
        &mut self,
        name: &str,
        table: &Table,
        counts: &Counts,
        drawn: &SampledRows,
        kept: bool,
    ) {
        let statistics = counts.distinct.iter().zip(&drawn.columns);
        for (field, (distinct, sampled)) in table.tuple.fields().iter().zip(statistics) {
            self.tables.push(name.to_string());
            self.columns.push(field.name.clone());
            self.rows.push(counts.rows as i64);
            self.distinct.push(*distinct as i64);
            self.most_common.push(most_common(sampled));
            self.kept.push(kept);
        }
    }

    /// The columns of the result, with their names.
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

/// The most common values of a sampled column, each with its share of the rows. `None` if no value
/// is common.
fn most_common(sampled: &ArrayRef) -> Option<String> {
    let (rows, mut words) = (sampled.len(), Vec::new());
    hash_columns(&[Column::new(sampled.clone())], rows, &mut words).ok()?;
    // The number of occurrences of a value, and the first row with it.
    let mut occurrences: HashMap<u64, (usize, usize)> = HashMap::new();
    for (row, word) in words.into_iter().enumerate().filter(|(row, _)| sampled.is_valid(*row)) {
        occurrences.entry(word).or_insert((0, row)).0 += 1;
    }
    let share = |count: usize| count as f64 / rows as f64;
    let is_common = |count: usize| count > 1 && share(count) >= COMMON_SHARE;
    let mut common: Vec<(usize, usize)> =
        occurrences.into_values().filter(|(count, _)| is_common(*count)).collect();
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

/// The plan that counts the rows and the distinct values of each column.
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

/// Reads the result of [`counts_plan`].
///
/// # Errors
/// The result does not have the shape of that plan.
pub(crate) fn counts(collected: &Collected) -> Result<Counts> {
    let row = collected.single()?;
    let number = |position: usize| -> Result<u64> {
        let array = cast(&row.column(position)?.plain()?, &DataType::UInt64)?;
        Ok(array.as_primitive::<UInt64Type>().value(0))
    };
    let rows = number(0)?;
    // The count has an error of about 1 %. A column has at most one distinct value per row.
    let distinct = (1..row.width()).map(|position| Ok(number(position)?.min(rows)));
    Ok(Counts { rows, distinct: distinct.collect::<Result<_>>()? })
}

/// The plan that draws a sample of a table with `rows` rows.
pub(crate) fn sample_plan(table: &Table, rows: u64) -> Plan {
    let mut builder = Builder::new(Tuple::empty());
    let mut root = builder.add(&table.operator, &[], scan_params(table));
    if !is_sampled_fully(rows) {
        let share = Expr::Constant(Scalar::Float(SAMPLE_ROWS / rows as f64), Atom::Float64);
        let drawn = Expr::call("lt", vec![Expr::call("random", Vec::new()), share]);
        root = builder.add("filter", &[root], Params::new().with("predicate", drawn));
    }
    builder.finish(root)
}

/// Reads the result of [`sample_plan`].
///
/// # Errors
/// The table has changed between the two plans.
pub(crate) fn sampled_rows(
    table: &Table,
    counts: &Counts,
    collected: &Collected,
) -> Result<SampledRows> {
    let batches = collected.spillable_chunks().iter().filter(|rows| !rows.is_empty());
    let batches =
        batches.map(|rows| rows.chunk()?.to_batch(&table.tuple)).collect::<Result<Vec<_>>>()?;
    let batch = concat_batches(&Arc::new(table.tuple.arrow_schema()?), &batches)?;
    if is_sampled_fully(counts.rows) && batch.num_rows() as u64 != counts.rows {
        let (first, second) = (counts.rows, batch.num_rows());
        return Err(Error::data(format!(
            "the table had {first} rows and then {second}, because its files have changed; run ANALYZE again"
        )));
    }
    Ok(SampledRows {
        columns: batch.columns().iter().map(compact_strings).collect(),
        rows: batch.num_rows(),
        table_rows: counts.rows as f64,
        uniform: true,
        distinct: counts.distinct.iter().map(|distinct| Some(*distinct as f64)).collect(),
    })
}

/// Whether the sample of a table of this size has all its rows.
fn is_sampled_fully(rows: u64) -> bool {
    rows as f64 <= SAMPLE_ROWS
}

/// The parameters of a scan of all columns.
fn scan_params(table: &Table) -> Params {
    table.params.clone().with("columns", table.tuple.clone())
}
