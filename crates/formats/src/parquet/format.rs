//! The format Parquet, as the rooms above see it: columns and statistics from the footers of files.

use tessera_operator::Registry;
use tessera_operator::format::{
    FirstRead, Format, FormatEntry, FormatOption, TEXT, TableDescription, TableFiles,
};
use tessera_plan::{ColumnStatistics, FileFacts, Scalar, Statistics};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use super::write::{COMPRESSION_LEVEL, ROW_GROUP_SIZE};
use super::{
    ColumnSummary, FileSummary, ParquetMaterialize, ParquetScan, ROW_NUMBER, discover, facts,
};
use crate::csv::flag;
use crate::file::{UNION, merge_tuples};
use crate::table::{UNION_BY_NAME, take_union};

/// The maximum number of footers to read. Statistics of further files are extrapolated.
const FOOTERS_MAX: usize = 256;

/// Apache Parquet.
#[derive(Debug, Clone, Copy)]
pub struct Parquet;

static ENTRY: FormatEntry = FormatEntry {
    name: "parquet",
    label: "Parquet",
    summary: "Apache Parquet.",
    extensions: &["parquet"],
    aliases: &["pq"],
    functions: &["read_parquet"],
    scan: "parquet_scan",
    materialize: Some("parquet_materialize"),
    magic: &[b"PAR1"],
    first_read: FirstRead { head: false, tail: true },
    declares_types: false,
    counts_rows: true,
    read_options: &[
        UNION_BY_NAME,
        FormatOption {
            name: ROW_NUMBER,
            aliases: &[],
            help: "whether a column of this name has the number of each row in its file, from 0",
            default: None,
            kind: TEXT,
        },
    ],
    write_options: &[
        written("compression", &["codec"], "the compression of pages"),
        written(COMPRESSION_LEVEL, &[], "how hard zstd (1 to 22) or gzip (0 to 9) tries"),
        written(ROW_GROUP_SIZE, &[], "the most rows of a row group"),
    ],
};

const fn written(
    name: &'static str,
    aliases: &'static [&'static str],
    help: &'static str,
) -> FormatOption {
    FormatOption { name, aliases, help, default: None, kind: TEXT }
}

impl Format for Parquet {
    fn entry(&self) -> &'static FormatEntry {
        &ENTRY
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(ParquetScan);
        registry.register(ParquetMaterialize);
    }

    fn describe(&self, files: &TableFiles<'_>) -> Result<TableDescription> {
        describe(files)
    }

    fn fact_functions(&self) -> &'static [&'static str] {
        &facts::FUNCTIONS
    }

    fn facts(&self, function: &str, files: &TableFiles<'_>) -> Result<FileFacts> {
        facts::facts(function, files)
    }
}

/// Columns and statistics of Parquet files that form one table.
fn describe(table: &TableFiles<'_>) -> Result<TableDescription> {
    let paths = table.paths;
    let mut params = table.params.clone();
    let is_union = take_union(&mut params)?;
    let sampled = if is_union { paths } else { &paths[..paths.len().min(FOOTERS_MAX)] };
    let mut files: Vec<FileSummary> = Vec::with_capacity(sampled.len());
    for paths in sampled.chunks(FOOTERS_MAX) {
        for reader in (table.open)(paths)? {
            files.push(discover(&*reader)?);
        }
    }
    let tuples = sampled.iter().cloned().zip(files.iter().map(|file| file.tuple.clone()));
    let mut tuple = merge_tuples(&tuples.collect::<Vec<_>>(), is_union)?;
    if is_union {
        params.set(UNION, true);
    }
    let share = sampled.len() as f64 / paths.len() as f64;
    let complete = sampled.len() == paths.len();
    let rows_seen: u64 = files.iter().map(|file| file.rows).sum();
    let rows = rows_seen as f64 / share;
    let known = tuple.fields().iter().map(|field| {
        let column = files
            .iter()
            .filter(|file| file.rows > 0)
            .map(|file| column_of(file, field))
            .reduce(merge)
            .unwrap_or_default();
        let fraction =
            |nulls: u64| if rows_seen == 0 { 0.0 } else { nulls as f64 / rows_seen as f64 };
        // Writers drop the dictionary of a string column whose values rarely repeat.
        let text = matches!(field.atom(), Some(Atom::String | Atom::Bytes | Atom::Uuid));
        let distinct = column.distinct.map(|distinct| distinct as f64).or(text.then_some(rows));
        ColumnStatistics {
            min: column.min.filter(|_| complete),
            max: column.max.filter(|_| complete),
            null_fraction: column.null_count.map(fraction),
            distinct,
        }
    });
    let mut statistics = Statistics { rows: Some(rows), columns: known.collect() };
    if flag(&params, ROW_NUMBER)? == Some(true) {
        tuple = with_row_number(&tuple)?;
        statistics.columns.push(ColumnStatistics::default());
        params.set(ROW_NUMBER, true);
    } else {
        params.remove(ROW_NUMBER);
    }
    Ok(TableDescription { columns: tuple, statistics, params })
}

/// Adds the column of the numbers of rows.
///
/// # Errors
/// The files have a column of this name.
fn with_row_number(tuple: &Tuple) -> Result<Tuple> {
    if tuple.fields().iter().any(|field| field.name.eq_ignore_ascii_case(ROW_NUMBER)) {
        return Err(Error::semantic(format!(
            "option {ROW_NUMBER} adds a column of this name, but the files have one; remove the option"
        )));
    }
    let mut fields = tuple.fields().to_vec();
    fields.push(Field::new(ROW_NUMBER, Atom::Int64));
    Ok(Tuple::new(fields))
}

/// The statistics of a column in one file. Drops bounds whose type differs from that of the table.
fn column_of(file: &FileSummary, field: &Field) -> ColumnSummary {
    let Some(position) = file.tuple.index_of(&field.name) else {
        return ColumnSummary { null_count: Some(file.rows), ..Default::default() };
    };
    let column = file.columns.get(position).cloned().unwrap_or_default();
    match file.tuple.fields()[position].item == field.item {
        true => column,
        false => ColumnSummary { min: None, max: None, ..column },
    }
}

/// Merges the statistics of a column in two sets of files.
fn merge(a: ColumnSummary, b: ColumnSummary) -> ColumnSummary {
    let apart = |low: &ColumnSummary, high: &ColumnSummary| match (&low.max, &high.min) {
        (Some(max), Some(min)) => less(max, min),
        _ => false,
    };
    // Distinct counts add up if the ranges are disjoint, as in a sorted table. Otherwise the files
    // are assumed to have the same values.
    let disjoint = apart(&a, &b) || apart(&b, &a);
    ColumnSummary {
        distinct: a.distinct.zip(b.distinct).map(|(a, b)| if disjoint { a + b } else { a.max(b) }),
        null_count: a.null_count.zip(b.null_count).map(|(a, b)| a + b),
        min: a.min.zip(b.min).map(|(a, b)| if less(&b, &a) { b } else { a }),
        max: a.max.zip(b.max).map(|(a, b)| if less(&a, &b) { b } else { a }),
        bytes: a.bytes + b.bytes,
    }
}

/// Whether `a < b`. `false` for values of different types.
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
        let column = |min: i128, max: i128, distinct| ColumnSummary {
            min: Some(Scalar::Integer(min)),
            max: Some(Scalar::Integer(max)),
            null_count: Some(1),
            distinct: Some(distinct),
            bytes: 10,
        };
        let apart = merge(column(1, 5, 5), column(6, 9, 4));
        assert_eq!((apart.distinct, apart.null_count), (Some(9), Some(2)));
        assert_eq!((apart.min, apart.max), (Some(Scalar::Integer(1)), Some(Scalar::Integer(9))));
        assert_eq!(merge(column(1, 5, 5), column(5, 9, 4)).distinct, Some(5));
        assert_eq!(merge(column(1, 5, 5), ColumnSummary::default()).min, None);
    }
}
