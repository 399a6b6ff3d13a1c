//! Parquet: columns and statistics from the files' footers.

use std::collections::HashSet;

use tessera_ops::scan::parquet::{Discovered, DiscoveredColumn, discover};
use tessera_plan::Scalar;
use tessera_sql::{ColumnStatistics, Statistics};
use tessera_types::{Error, Result, Tuple};

/// Of a table of more files than this, the rest's statistics are taken to be like these files'.
const FOOTERS_MAX: usize = 256;

/// Columns and statistics of Parquet files that form one table.
///
/// # Errors
/// A file is no Parquet file or truncated, has types that are not supported, or other columns than the first one.
pub(super) fn describe(paths: &[String]) -> Result<(Tuple, Statistics)> {
    let looked_at = &paths[..paths.len().min(FOOTERS_MAX)];
    let Some((first, others)) = looked_at.split_first() else {
        return Err(Error::internal("a table without files"));
    };
    let mut table = discover(&*tessera_files::open(first)?)?;
    for path in others {
        let file = discover(&*tessera_files::open(path)?)?;
        table.tuple = merge(&table.tuple, &file.tuple, first, path)?;
        add(&mut table, file);
    }
    let share = looked_at.len() as f64 / paths.len() as f64;
    let complete = looked_at.len() == paths.len();
    let rows = table.rows as f64 / share;
    let columns = table.tuple.fields().iter().zip(table.columns).map(|(field, column)| {
        let fraction = |nulls: u64| if table.rows == 0 { 0.0 } else { nulls as f64 / table.rows as f64 };
        // A writer keeps no dictionary of strings that hardly repeat.
        let text = matches!(field.atom(), Some(tessera_types::Atom::String | tessera_types::Atom::Bytes));
        let distinct = column.distinct.map(|distinct| distinct as f64).or(text.then_some(rows));
        ColumnStatistics {
            min: column.min.filter(|_| complete),
            max: column.max.filter(|_| complete),
            null_fraction: column.null_count.map(fraction),
            distinct,
        }
    });
    Ok((table.tuple.clone(), Statistics { rows: Some(rows), columns: columns.collect() }))
}

/// The first file's columns; one that may be NULL in any file may be NULL.
fn merge(first: &Tuple, other: &Tuple, first_path: &str, other_path: &str) -> Result<Tuple> {
    let differ = |what: String| Err(Error::data(format!("the files of one table differ: {what}")));
    let names = |tuple: &Tuple| tuple.fields().iter().map(|field| field.name.clone()).collect::<HashSet<_>>();
    let (ours, theirs) = (names(first), names(other));
    if let Some(name) = ours.difference(&theirs).next() {
        return differ(format!("column {name} of '{first_path}' is not in '{other_path}'"));
    }
    if let Some(name) = theirs.difference(&ours).next() {
        return differ(format!("column {name} of '{other_path}' is not in '{first_path}'"));
    }
    let mut fields = Vec::with_capacity(first.len());
    for field in first.fields() {
        let Some(found) = other.field(&field.name) else { continue };
        if found.item != field.item {
            let (ours, theirs) = (&field.item, &found.item);
            return differ(format!(
                "column {} is {ours} in '{first_path}' and {theirs} in '{other_path}'",
                field.name
            ));
        }
        fields.push(field.with_nullable(field.nullable || found.nullable));
    }
    Ok(Tuple::new(fields))
}

/// Adds what is known of another file, whose columns are the same but for their order.
fn add(table: &mut Discovered, file: Discovered) {
    for (field, column) in table.tuple.fields().iter().zip(&mut table.columns) {
        let position = file.tuple.index_of(&field.name);
        let other = position.and_then(|position| file.columns.get(position).cloned()).unwrap_or_default();
        *column = if table.rows == 0 {
            other
        } else if file.rows == 0 {
            continue;
        } else {
            both(std::mem::take(column), other)
        };
    }
    table.rows += file.rows;
}

fn both(a: DiscoveredColumn, b: DiscoveredColumn) -> DiscoveredColumn {
    let apart = |low: &DiscoveredColumn, high: &DiscoveredColumn| match (&low.max, &high.min) {
        (Some(max), Some(min)) => less(max, min),
        _ => false,
    };
    // Files with the same range hold the same values; those of a sorted table hold others.
    let disjoint = apart(&a, &b) || apart(&b, &a);
    DiscoveredColumn {
        distinct: a.distinct.zip(b.distinct).map(|(a, b)| if disjoint { a + b } else { a.max(b) }),
        null_count: a.null_count.zip(b.null_count).map(|(a, b)| a + b),
        min: a.min.zip(b.min).map(|(a, b)| if less(&b, &a) { b } else { a }),
        max: a.max.zip(b.max).map(|(a, b)| if less(&a, &b) { b } else { a }),
        bytes: a.bytes + b.bytes,
    }
}

fn less(a: &Scalar, b: &Scalar) -> bool {
    match (a, b) {
        (Scalar::Boolean(a), Scalar::Boolean(b)) => a < b,
        (Scalar::Integer(a), Scalar::Integer(b)) => a < b,
        (Scalar::Float(a), Scalar::Float(b)) => a < b,
        (Scalar::String(a), Scalar::String(b)) => a < b,
        (Scalar::Bytes(a), Scalar::Bytes(b)) => a < b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_distinct_values_of_two_files() {
        let column = |min: i128, max: i128, distinct| DiscoveredColumn {
            min: Some(Scalar::Integer(min)),
            max: Some(Scalar::Integer(max)),
            null_count: Some(1),
            distinct: Some(distinct),
            bytes: 10,
        };
        let apart = both(column(1, 5, 5), column(6, 9, 4));
        assert_eq!((apart.distinct, apart.null_count), (Some(9), Some(2)));
        assert_eq!((apart.min, apart.max), (Some(Scalar::Integer(1)), Some(Scalar::Integer(9))));
        assert_eq!(both(column(1, 5, 5), column(5, 9, 4)).distinct, Some(5));
        assert_eq!(both(column(1, 5, 5), DiscoveredColumn::default()).min, None);
    }
}
