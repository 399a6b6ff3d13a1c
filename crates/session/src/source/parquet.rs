//! Parquet: columns and statistics from the files' footers.

use std::collections::HashMap;
use std::fs::File;

use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::{LogicalType, Type as Physical};
use parquet::column::page::Page;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::statistics::Statistics as ChunkStatistics;
use tessera_plan::Scalar;
use tessera_sql::{ColumnStatistics, Statistics};
use tessera_types::{Atom, Error, Field, Result, Tuple};

/// Of a table of more files than this, the rest's statistics are taken to be like these files'.
const FOOTERS_MAX: usize = 256;

/// Dictionary pages larger than this are not read for their number of values.
const DICTIONARY_BYTES_MAX: i64 = 4 << 20;

/// Columns and statistics of Parquet files that form one table.
///
/// # Errors
/// A file is no Parquet file or truncated, has types that are not supported, or other columns than the first one.
pub(super) fn describe(paths: &[String]) -> Result<(Tuple, Statistics)> {
    let mut table: Option<(Tuple, Vec<Known>)> = None;
    let mut rows = 0.0;
    let looked_at = &paths[..paths.len().min(FOOTERS_MAX)];
    for path in looked_at {
        let metadata = footer(path)?;
        let tuple = columns(&metadata).map_err(|error| error.context(format!("'{path}'")))?;
        rows += metadata.file_metadata().num_rows() as f64;
        let (merged, known) = match table {
            None => (tuple.clone(), tuple.fields().iter().map(|_| Known::default()).collect()),
            Some((first, known)) => (merge(&first, &tuple, &paths[0], path)?, known),
        };
        let mut known = known;
        let leaves = leaves(&metadata);
        for (field, known) in merged.fields().iter().zip(&mut known) {
            match (leaves.get(&*field.name), field.atom()) {
                (Some(&leaf), Some(atom)) => known.add_file(&metadata, leaf, atom),
                _ => known.incomplete = true,
            }
        }
        if path == &paths[0] {
            dictionaries(path, &merged, &leaves, &metadata, &mut known);
        }
        table = Some((merged, known));
    }
    let Some((tuple, known)) = table else { return Err(Error::internal("a table without files")) };
    let share = looked_at.len() as f64 / paths.len() as f64;
    let complete = looked_at.len() == paths.len();
    let columns = known.into_iter().map(|known| known.finish(rows, complete)).collect();
    Ok((tuple, Statistics { rows: Some(rows / share), columns }))
}

fn footer(path: &str) -> Result<ParquetMetaData> {
    // The opener's messages say what is wrong with a path.
    tessera_files::open(path)?;
    let file = File::open(path).map_err(|error| Error::io(format!("cannot open '{path}': {error}")))?;
    ParquetMetaDataReader::new().parse_and_finish(&file).map_err(|error| {
        Error::data(format!("'{path}' is not a Parquet file, or is damaged or truncated: {}", reason(&error)))
    })
}

/// The library's message without its own prefixes.
fn reason(error: &parquet::errors::ParquetError) -> String {
    let text = error.to_string();
    for prefix in ["Parquet error: ", "EOF: ", "External: "] {
        if let Some(rest) = text.strip_prefix(prefix) {
            return rest.to_string();
        }
    }
    text
}

fn columns(metadata: &ParquetMetaData) -> Result<Tuple> {
    let file = metadata.file_metadata();
    let schema = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())
        .map_err(|error| Error::data(reason(&error)))?;
    let tuple = Tuple::from_arrow_schema(&schema)?;
    tuple.check()?;
    Ok(tuple)
}

/// The first file's columns; one that may be NULL in any file may be NULL.
fn merge(first: &Tuple, other: &Tuple, first_path: &str, other_path: &str) -> Result<Tuple> {
    let mut fields = Vec::with_capacity(first.len());
    for field in first.fields() {
        let found = other.field(&field.name).ok_or_else(|| {
            Error::data(format!(
                "the files of one table differ: column {} of '{first_path}' is not in '{other_path}'",
                field.name
            ))
        })?;
        if found.item != field.item {
            return Err(Error::data(format!(
                "the files of one table differ: column {} is {} in '{first_path}' and {} in '{other_path}'",
                field.name, field.item, found.item
            )));
        }
        fields.push(field.with_nullable(field.nullable || found.nullable));
    }
    if let Some(extra) = other.fields().iter().find(|field| first.field(&field.name).is_none()) {
        return Err(Error::data(format!(
            "the files of one table differ: column {} of '{other_path}' is not in '{first_path}'",
            extra.name
        )));
    }
    Ok(Tuple::new(fields))
}

/// The column chunk of each column that is a single leaf.
fn leaves(metadata: &ParquetMetaData) -> HashMap<String, usize> {
    let schema = metadata.file_metadata().schema_descr();
    let single = |(leaf, column): (usize, &parquet::schema::types::ColumnDescPtr)| {
        let parts = column.path().parts();
        (parts.len() == 1 && column.max_rep_level() == 0).then(|| (parts[0].clone(), leaf))
    };
    schema.columns().iter().enumerate().filter_map(single).collect()
}

/// What is known of a column so far.
#[derive(Debug, Default)]
struct Known {
    min: Option<Scalar>,
    max: Option<Scalar>,
    nulls: u64,
    nulls_known: bool,
    /// A row group said nothing.
    incomplete: bool,
    started: bool,
    distinct: Option<f64>,
}

impl Known {
    fn add_file(&mut self, metadata: &ParquetMetaData, leaf: usize, atom: &Atom) {
        for group in metadata.row_groups().iter().filter(|group| group.num_rows() > 0) {
            self.add_group(group, leaf, atom);
        }
    }

    fn add_group(&mut self, group: &RowGroupMetaData, leaf: usize, atom: &Atom) {
        let column = group.column(leaf);
        let logical = column.column_descr().logical_type_ref();
        let unsigned = matches!(logical, Some(LogicalType::Integer(kind)) if !kind.is_signed);
        let Some(statistics) = column.statistics() else {
            self.incomplete = true;
            return;
        };
        let nulls = statistics.null_count_opt();
        self.nulls_known = nulls.is_some() && (self.nulls_known || !self.started);
        self.nulls += nulls.unwrap_or(0);
        self.started = true;
        if nulls == Some(group.num_rows() as u64) {
            return;
        }
        match bounds(statistics, atom, unsigned) {
            Some((min, max)) => {
                if self.min.as_ref().is_none_or(|old| less(&min, old)) {
                    self.min = Some(min);
                }
                if self.max.as_ref().is_none_or(|old| less(old, &max)) {
                    self.max = Some(max);
                }
            }
            None => self.incomplete = true,
        }
    }

    fn finish(self, rows: f64, complete: bool) -> ColumnStatistics {
        let bounded = complete && !self.incomplete;
        ColumnStatistics {
            min: self.min.filter(|_| bounded),
            max: self.max.filter(|_| bounded),
            null_fraction: (self.nulls_known && rows > 0.0).then(|| self.nulls as f64 / rows),
            distinct: self.distinct,
        }
    }
}

fn bounds(statistics: &ChunkStatistics, atom: &Atom, unsigned: bool) -> Option<(Scalar, Scalar)> {
    let integers = |min: i128, max: i128| Some((Scalar::Integer(min), Scalar::Integer(max)));
    let whole = !matches!(atom, Atom::String | Atom::Bytes) && !atom.is_float();
    match statistics {
        ChunkStatistics::Boolean(s) => Some((Scalar::Boolean(*s.min_opt()?), Scalar::Boolean(*s.max_opt()?))),
        ChunkStatistics::Int32(s) if whole && unsigned => {
            integers((*s.min_opt()? as u32).into(), (*s.max_opt()? as u32).into())
        }
        ChunkStatistics::Int32(s) if whole => integers((*s.min_opt()?).into(), (*s.max_opt()?).into()),
        ChunkStatistics::Int64(s) if whole && unsigned => {
            integers((*s.min_opt()? as u64).into(), (*s.max_opt()? as u64).into())
        }
        ChunkStatistics::Int64(s) if whole => integers((*s.min_opt()?).into(), (*s.max_opt()?).into()),
        ChunkStatistics::Float(s) => {
            Some((Scalar::Float((*s.min_opt()?).into()), Scalar::Float((*s.max_opt()?).into())))
        }
        ChunkStatistics::Double(s) => Some((Scalar::Float(*s.min_opt()?), Scalar::Float(*s.max_opt()?))),
        ChunkStatistics::ByteArray(_) | ChunkStatistics::FixedLenByteArray(_) => {
            let (min, max) = (statistics.min_bytes_opt()?, statistics.max_bytes_opt()?);
            match atom {
                Atom::String => {
                    let text = |bytes| Some(Scalar::String(std::str::from_utf8(bytes).ok()?.into()));
                    Some((text(min)?, text(max)?))
                }
                Atom::Decimal(..) => integers(big_endian(min)?, big_endian(max)?),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A signed number in two's complement, most significant byte first.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    if bytes.is_empty() || bytes.len() > 16 {
        return None;
    }
    let sign = if bytes[0] & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [sign; 16];
    wide[16 - bytes.len()..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

fn less(a: &Scalar, b: &Scalar) -> bool {
    match (a, b) {
        (Scalar::Boolean(a), Scalar::Boolean(b)) => a < b,
        (Scalar::Integer(a), Scalar::Integer(b)) => a < b,
        (Scalar::Float(a), Scalar::Float(b)) => a < b,
        (Scalar::String(a), Scalar::String(b)) => a < b,
        _ => false,
    }
}

/// Distinct strings of the first file's first row group, from the size of its dictionary: where there is no
/// dictionary, or the writer gave it up half-way, nearly all values differ.
fn dictionaries(
    path: &str,
    tuple: &Tuple,
    leaves: &HashMap<String, usize>,
    metadata: &ParquetMetaData,
    known: &mut [Known],
) {
    let strings = |field: &Field| matches!(field.atom(), Some(Atom::String | Atom::Bytes));
    if metadata.num_row_groups() == 0 || !tuple.fields().iter().any(strings) {
        return;
    }
    // What goes wrong here goes wrong again, with a message, when the column is read.
    let Ok(file) = File::open(path) else { return };
    let Ok(reader) = SerializedFileReader::new(file) else { return };
    let total_rows = metadata.file_metadata().num_rows() as f64;
    for (field, known) in tuple.fields().iter().zip(known) {
        let Some(&leaf) = leaves.get(&*field.name) else { continue };
        if !strings(field) {
            continue;
        }
        let column = metadata.row_group(0).column(leaf);
        let group_rows = metadata.row_group(0).num_rows() as f64;
        let start = column.dictionary_page_offset();
        let small = start
            .is_some_and(|start| (0..=DICTIONARY_BYTES_MAX).contains(&(column.data_page_offset() - start)));
        if !small || column.column_type() == Physical::BOOLEAN {
            known.distinct = Some(total_rows);
            continue;
        }
        let group = reader.get_row_group(0);
        let page = group
            .and_then(|group| group.get_column_page_reader(leaf))
            .and_then(|mut pages| pages.get_next_page());
        if let Ok(Some(Page::DictionaryPage { num_values, .. })) = page {
            let values = f64::from(num_values);
            // A dictionary about as long as the row group will not have repeats in the next one either.
            let unique = values > group_rows * 0.5;
            known.distinct = Some(if unique { total_rows * values / group_rows } else { values });
        }
    }
}
