//! What `parquet_metadata` and its sisters say about files: the contents of their footers.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::Type;

use tessera_context::RangeReader;
use tessera_operator::format::TableFiles;
use tessera_plan::{FileFacts, Scalar};
use tessera_types::{Atom, Error, Result};
use tessera_values::scalar::scalar_to_array;

use super::metadata::Metadata;
use crate::display::ColumnText;
use crate::file::read_now;

/// The functions.
pub(super) const FUNCTIONS: [&str; 4] =
    ["parquet_metadata", "parquet_schema", "parquet_file_metadata", "parquet_kv_metadata"];
/// The bytes of a footer's length and of the magic number after it.
const TRAILER_BYTES: u64 = 8;

/// Returns the rows of a function.
///
/// # Errors
/// A file cannot be read or is damaged.
pub(super) fn facts(function: &str, files: &TableFiles<'_>) -> Result<FileFacts> {
    let (columns, add): (_, fn(&dyn RangeReader, &Metadata, &mut Rows) -> Result<()>) =
        match function {
            "parquet_metadata" => (typed(&CHUNKS), chunks),
            "parquet_schema" => (typed(&ELEMENTS), elements),
            "parquet_file_metadata" => (typed(&FILES), file),
            "parquet_kv_metadata" => (
                vec![("file_name", Atom::String), ("key", Atom::Bytes), ("value", Atom::Bytes)],
                pairs,
            ),
            _ => return Err(Error::internal(format!("Parquet has no function {function}"))),
        };
    let mut rows = Vec::new();
    for path in files.paths {
        for reader in (files.open)(std::slice::from_ref(path))? {
            add(&*reader, &Metadata::read(&*reader, None)?, &mut rows)?;
        }
    }
    Ok(FileFacts { columns, rows })
}

type Rows = Vec<Vec<Scalar>>;

/// Names of columns and the letters of their types: text, whole number, boolean.
type Columns = [(&'static str, char)];

const CHUNKS: [(&str, char); 28] = [
    ("file_name", 't'),
    ("row_group_id", 'i'),
    ("row_group_num_rows", 'i'),
    ("row_group_num_columns", 'i'),
    ("row_group_bytes", 'i'),
    ("column_id", 'i'),
    ("file_offset", 'i'),
    ("num_values", 'i'),
    ("path_in_schema", 't'),
    ("type", 't'),
    ("stats_min", 't'),
    ("stats_max", 't'),
    ("stats_null_count", 'i'),
    ("stats_distinct_count", 'i'),
    ("stats_min_value", 't'),
    ("stats_max_value", 't'),
    ("compression", 't'),
    ("encodings", 't'),
    ("index_page_offset", 'i'),
    ("dictionary_page_offset", 'i'),
    ("data_page_offset", 'i'),
    ("total_compressed_size", 'i'),
    ("total_uncompressed_size", 'i'),
    ("bloom_filter_offset", 'i'),
    ("bloom_filter_length", 'i'),
    ("min_is_exact", 'b'),
    ("max_is_exact", 'b'),
    ("row_group_compressed_bytes", 'i'),
];

const ELEMENTS: [(&str, char); 12] = [
    ("file_name", 't'),
    ("name", 't'),
    ("type", 't'),
    ("type_length", 't'),
    ("repetition_type", 't'),
    ("num_children", 'i'),
    ("converted_type", 't'),
    ("scale", 'i'),
    ("precision", 'i'),
    ("field_id", 'i'),
    ("logical_type", 't'),
    ("column_id", 'i'),
];

const FILES: [(&str, char); 9] = [
    ("file_name", 't'),
    ("created_by", 't'),
    ("num_rows", 'i'),
    ("num_row_groups", 'i'),
    ("format_version", 'i'),
    ("encryption_algorithm", 't'),
    ("footer_signing_key_metadata", 't'),
    ("file_size_bytes", 'i'),
    ("footer_size", 'i'),
];

fn typed(columns: &Columns) -> Vec<(&'static str, Atom)> {
    let atom = |letter| match letter {
        'i' => Atom::Int64,
        'b' => Atom::Boolean,
        _ => Atom::String,
    };
    columns.iter().map(|(name, letter)| (*name, atom(*letter))).collect()
}

fn text(text: impl AsRef<str>) -> Scalar {
    Scalar::String(text.as_ref().into())
}

fn number(value: impl Into<i128>) -> Scalar {
    Scalar::Integer(value.into())
}

fn optional<T>(value: Option<T>, scalar: impl FnOnce(T) -> Scalar) -> Scalar {
    value.map_or(Scalar::Null, scalar)
}

/// A row for each column of each row group.
fn chunks(reader: &dyn RangeReader, metadata: &Metadata, rows: &mut Rows) -> Result<()> {
    for (position, group) in metadata.parquet.row_groups().iter().enumerate() {
        for (leaf, column) in group.columns().iter().enumerate() {
            let statistics = column.statistics();
            let (min, max) = bounds(metadata, position, leaf, column)?;
            let exact = |bound: &Scalar, exact: fn(&Statistics) -> bool| match bound {
                Scalar::Null => Scalar::Null,
                _ => optional(statistics, |statistics| Scalar::Boolean(exact(statistics))),
            };
            let encodings: Vec<String> = column.encodings().map(|e| e.to_string()).collect();
            let compression = column.compression().to_string();
            let codec = compression.split('(').next().unwrap_or_default();
            let count = |count: Option<u64>| optional(count, number);
            rows.push(vec![
                text(reader.path()),
                number(position as i64),
                number(group.num_rows()),
                number(group.num_columns() as i64),
                number(group.total_byte_size()),
                number(leaf as i64),
                number(column.file_offset()),
                number(column.num_values()),
                text(column.column_path().parts().join(", ")),
                text(column.column_type().to_string()),
                min.clone(),
                max.clone(),
                count(statistics.and_then(Statistics::null_count_opt)),
                count(statistics.and_then(Statistics::distinct_count_opt)),
                min.clone(),
                max.clone(),
                text(codec),
                text(encodings.join(", ")),
                optional(column.index_page_offset(), number),
                optional(column.dictionary_page_offset(), number),
                number(column.data_page_offset()),
                number(column.compressed_size()),
                number(column.uncompressed_size()),
                optional(column.bloom_filter_offset(), number),
                optional(column.bloom_filter_length(), number),
                exact(&min, Statistics::min_is_exact),
                exact(&max, Statistics::max_is_exact),
                number(group.compressed_size()),
            ]);
        }
    }
    Ok(())
}

/// The bounds of a column as text, in the column's type if it is not nested.
fn bounds(
    metadata: &Metadata,
    group: usize,
    leaf: usize,
    column: &ColumnChunkMetaData,
) -> Result<(Scalar, Scalar)> {
    let root = metadata.first_leaf.partition_point(|first| *first <= leaf).saturating_sub(1);
    if let Some(bounds) = metadata.bounds(group, root) {
        let written = |bound: Option<Scalar>| -> Result<Scalar> {
            match bound {
                None => Ok(Scalar::Null),
                Some(Scalar::String(bound)) => Ok(Scalar::String(bound)),
                Some(bound) => {
                    let array = scalar_to_array(&bound, &bounds.atom)?;
                    let mut out = String::new();
                    ColumnText::new(&array)?.append(0, &mut out)?;
                    Ok(text(out))
                }
            }
        };
        return Ok((written(bounds.min)?, written(bounds.max)?));
    }
    let plain = |bytes: Option<&[u8]>| optional(bytes, |bytes| plain_text(column, bytes));
    let statistics = column.statistics();
    Ok((
        plain(statistics.and_then(Statistics::min_bytes_opt)),
        plain(statistics.and_then(Statistics::max_bytes_opt)),
    ))
}

/// A value as its physical type.
fn plain_text(column: &ColumnChunkMetaData, bytes: &[u8]) -> Scalar {
    let written = match column.column_type() {
        Physical::BOOLEAN => bytes.first().map(|byte| (*byte != 0).to_string()),
        Physical::INT32 => bytes.try_into().ok().map(|b| i32::from_le_bytes(b).to_string()),
        Physical::INT64 => bytes.try_into().ok().map(|b| i64::from_le_bytes(b).to_string()),
        Physical::FLOAT => bytes.try_into().ok().map(|b| f32::from_le_bytes(b).to_string()),
        Physical::DOUBLE => bytes.try_into().ok().map(|b| f64::from_le_bytes(b).to_string()),
        _ => std::str::from_utf8(bytes).ok().map(str::to_string),
    };
    optional(written, text)
}

/// A row for each element of the schema, the root first.
fn elements(reader: &dyn RangeReader, metadata: &Metadata, rows: &mut Rows) -> Result<()> {
    let schema = metadata.parquet.file_metadata().schema();
    let mut open = vec![schema];
    let mut position = 0i64;
    while let Some(element) = open.pop() {
        let info = element.get_basic_info();
        let (physical, length, scale, precision) = match element {
            Type::PrimitiveType { physical_type, type_length, scale, precision, .. } => {
                let is_decimal = info.converted_type() == ConvertedType::DECIMAL
                    || matches!(info.logical_type_ref(), Some(LogicalType::Decimal(_)));
                let digits = |digits: i32| is_decimal.then_some(digits);
                (Some(*physical_type), *type_length, digits(*scale), digits(*precision))
            }
            Type::GroupType { .. } => (None, 0, None, None),
        };
        let children = if element.is_group() { element.get_fields() } else { &[] };
        let converted = Some(info.converted_type()).filter(|kind| *kind != ConvertedType::NONE);
        rows.push(vec![
            text(reader.path()),
            text(element.name()),
            optional(physical, |physical| text(physical.to_string())),
            optional(Some(length).filter(|length| *length > 0), |length| text(length.to_string())),
            optional(info.has_repetition().then(|| info.repetition()), |kind| {
                text(kind.to_string())
            }),
            optional(element.is_group().then_some(children.len() as i64), number),
            optional(converted, |kind| text(kind.to_string())),
            optional(scale, number),
            optional(precision, number),
            optional(info.has_id().then(|| info.id()), number),
            optional(info.logical_type_ref(), |logical| text(logical_text(logical))),
            number(position),
        ]);
        position += 1;
        open.extend(children.iter().rev().map(|child| &**child));
    }
    Ok(())
}

/// A logical type in the words of DuckDB, which are those of Thrift.
fn logical_text(logical: &LogicalType) -> String {
    let unit = |unit: &TimeUnit| {
        let [mut millis, mut micros, mut nanos] = ["<null>"; 3];
        match unit {
            TimeUnit::MILLIS => millis = "MilliSeconds()",
            TimeUnit::MICROS => micros = "MicroSeconds()",
            TimeUnit::NANOS => nanos = "NanoSeconds()",
        }
        format!("TimeUnit(MILLIS={millis}, MICROS={micros}, NANOS={nanos})")
    };
    match logical {
        LogicalType::Decimal(of) => {
            format!("DecimalType(scale={}, precision={})", of.scale, of.precision)
        }
        LogicalType::Time(of) => {
            let utc = u8::from(of.is_adjusted_to_u_t_c);
            format!("TimeType(isAdjustedToUTC={utc}, unit={})", unit(&of.unit))
        }
        LogicalType::Timestamp(of) => {
            let utc = u8::from(of.is_adjusted_to_u_t_c);
            format!("TimestampType(isAdjustedToUTC={utc}, unit={})", unit(&of.unit))
        }
        LogicalType::Integer(of) => {
            format!("IntType(bitWidth={}, isSigned={})", of.bit_width, u8::from(of.is_signed))
        }
        other => {
            let name = format!("{other:?}");
            let name = name.split([' ', '{', '(']).next().unwrap_or_default();
            format!("{name}Type()")
        }
    }
}

/// A row for the file.
fn file(reader: &dyn RangeReader, metadata: &Metadata, rows: &mut Rows) -> Result<()> {
    let facts = metadata.parquet.file_metadata();
    let start = reader.len().saturating_sub(TRAILER_BYTES);
    let trailer = read_now(reader, start..reader.len(), None)?;
    let length = trailer.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    rows.push(vec![
        text(reader.path()),
        optional(facts.created_by(), text),
        number(facts.num_rows()),
        number(metadata.parquet.num_row_groups() as i64),
        number(facts.version()),
        Scalar::Null,
        Scalar::Null,
        number(reader.len()),
        optional(length, number),
    ]);
    Ok(())
}

/// A row for each pair of a key and a value that the writer has added.
fn pairs(reader: &dyn RangeReader, metadata: &Metadata, rows: &mut Rows) -> Result<()> {
    let bytes = |text: &String| Scalar::Bytes(text.as_bytes().into());
    for pair in metadata.parquet.file_metadata().key_value_metadata().into_iter().flatten() {
        let value = optional(pair.value.as_ref(), bytes);
        rows.push(vec![text(reader.path()), bytes(&pair.key), value]);
    }
    Ok(())
}
