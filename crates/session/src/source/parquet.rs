//! Parquet: columns and statistics from the files' footers.

use tessera_formats::file::merge_tuples;
use tessera_formats::parquet::{Discovered, DiscoveredColumn, discover};
use tessera_optimizer::table::{ColumnStatistics, Statistics};
use tessera_plan::Scalar;
use tessera_types::{Atom, Field, Result, Tuple};

use crate::storage::Storage;

/// Of a table of more files than this, the rest's statistics are taken to be like these files'.
const FOOTERS_MAX: usize = 256;

/// Columns and statistics of Parquet files that form one table.
///
/// # Errors
/// A file is no Parquet file or truncated, has types that are not supported, or a column of a type
/// that goes with none of another file's.
pub(super) fn describe(storage: &Storage, paths: &[String]) -> Result<(Tuple, Statistics)> {
    let looked_at = &paths[..paths.len().min(FOOTERS_MAX)];
    let readers = storage.open_all(looked_at)?;
    let files =
        readers.iter().map(|reader| discover(&**reader)).collect::<Result<Vec<Discovered>>>()?;
    let tuples = looked_at.iter().cloned().zip(files.iter().map(|file| file.tuple.clone()));
    let tuple = merge_tuples(&tuples.collect::<Vec<_>>())?;
    let share = looked_at.len() as f64 / paths.len() as f64;
    let complete = looked_at.len() == paths.len();
    let rows_seen: u64 = files.iter().map(|file| file.rows).sum();
    let rows = rows_seen as f64 / share;
    let columns = tuple.fields().iter().map(|field| {
        let column = files
            .iter()
            .filter(|file| file.rows > 0)
            .map(|file| column_of(file, field))
            .reduce(both)
            .unwrap_or_default();
        let fraction =
            |nulls: u64| if rows_seen == 0 { 0.0 } else { nulls as f64 / rows_seen as f64 };
        // A writer keeps no dictionary of strings that hardly repeat.
        let text = matches!(field.atom(), Some(Atom::String | Atom::Bytes));
        let distinct = column.distinct.map(|distinct| distinct as f64).or(text.then_some(rows));
        ColumnStatistics {
            min: column.min.filter(|_| complete),
            max: column.max.filter(|_| complete),
            null_fraction: column.null_count.map(fraction),
            distinct,
        }
    });
    Ok((tuple.clone(), Statistics { rows: Some(rows), columns: columns.collect() }))
}

/// What a file says of a column of the table. Bounds of another type than the table's are of no
/// use.
fn column_of(file: &Discovered, field: &Field) -> DiscoveredColumn {
    let Some(position) = file.tuple.index_of(&field.name) else {
        return DiscoveredColumn { null_count: Some(file.rows), ..Default::default() };
    };
    let column = file.columns.get(position).cloned().unwrap_or_default();
    match file.tuple.fields()[position].item == field.item {
        true => column,
        false => DiscoveredColumn { min: None, max: None, ..column },
    }
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
