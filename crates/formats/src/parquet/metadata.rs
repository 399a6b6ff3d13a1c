//! The metadata of a Parquet file: schema, row groups, statistics, page index.

use std::collections::HashMap;
use std::sync::Arc;

use parquet::DecodeResult;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataPushDecoder,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::statistics::Statistics;

use tessera_context::guard::guarded;
use tessera_context::{Context, RangeReader};
use tessera_plan::Scalar;
use tessera_types::{Atom, Error, Result, Tuple, UUID_BYTES};

use super::footer::{check_size, encrypted_leaves};
use super::schema::ReadSchema;
use crate::file::read_now;
use crate::prune::Bounds;

/// The parsed metadata of a Parquet file.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) parquet: Arc<ParquetMetaData>,
    pub(super) arrow: ArrowReaderMetadata,
    /// The root columns as atoms; an unreadable column has the type NULL.
    pub(super) tuple: Tuple,
    /// The reasons why root columns are unreadable.
    pub(super) unreadable: HashMap<usize, String>,
    /// The first leaf of each root column, and the total number of leaves at the end.
    pub(super) first_leaf: Vec<usize>,
}

/// Adds the file to an error of the Parquet library.
pub(super) fn damaged(path: &str, error: impl std::fmt::Display) -> Error {
    Error::data(format!(
        "cannot read '{path}' as Parquet: {error}; the file is damaged or was not written completely"
    ))
}

/// The last bytes of a file with an encrypted footer.
const ENCRYPTED_MAGIC: &[u8] = b"PARE";

/// The error of an unreadable footer, which may be encrypted instead of damaged.
fn unreadable_footer(
    reader: &dyn RangeReader,
    context: Option<&Arc<dyn Context>>,
    error: &ParquetError,
) -> Error {
    let path = reader.path();
    let magic = reader.len().saturating_sub(ENCRYPTED_MAGIC.len() as u64)..reader.len();
    match read_now(reader, magic, context) {
        Ok(magic) if *magic == *ENCRYPTED_MAGIC => Error::unsupported(format!(
            "'{path}' is encrypted, which is not supported; decrypt it first"
        )),
        Ok(_) => damaged(path, error),
        Err(error) => error,
    }
}

impl Metadata {
    /// The number of rows in the row groups before one.
    pub(super) fn rows_before(&self, group: usize) -> i64 {
        self.parquet.row_groups().iter().take(group).map(|group| group.num_rows()).sum()
    }

    /// Reads the footer and the page index.
    pub(super) fn read(
        reader: &dyn RangeReader,
        context: Option<&Arc<dyn Context>>,
    ) -> Result<Metadata> {
        let path = reader.path();
        if reader.len() < 12 {
            return Err(damaged(path, format!("it has only {} bytes", reader.len())));
        }
        let decoded = match decode(reader, context, PageIndexPolicy::Optional)? {
            Ok(decoded) => decoded,
            // A page index is only an optimization, so a malformed one is ignored. That of
            // encrypted columns is encrypted.
            Err(_) => decode(reader, context, PageIndexPolicy::Skip)?
                .map_err(|error| unreadable_footer(reader, context, &error))?,
        };
        let (parquet, encrypted) = decoded;
        let parquet =
            Arc::new(with_real_dictionaries(parquet).map_err(|error| damaged(path, error))?);
        let readable = guarded(|| ReadSchema::of(&parquet)).ok_or("its schema cannot be");
        let readable =
            readable.map_err(str::to_string).flatten().map_err(|error| damaged(path, error))?;
        let ReadSchema { arrow, tuple, mut unreadable } = readable;
        let schema = parquet.file_metadata().schema_descr();
        for leaf in encrypted.into_iter().filter(|leaf| *leaf < schema.num_columns()) {
            let root = schema.get_column_root_idx(leaf);
            unreadable.insert(
                root,
                "it is encrypted, which is not supported; decrypt it first".to_string(),
            );
        }
        let mut first_leaf: Vec<usize> = Vec::with_capacity(tuple.len() + 1);
        for leaf in 0..schema.num_columns() {
            if schema.get_column_root_idx(leaf) == first_leaf.len() {
                first_leaf.push(leaf);
            }
        }
        if first_leaf.len() != tuple.len() {
            return Err(Error::unsupported(format!(
                "'{path}' has a group without columns, which is not supported"
            )));
        }
        first_leaf.push(schema.num_columns());
        let metadata = Metadata { parquet, arrow, tuple, unreadable, first_leaf };
        metadata.check(path, reader.len())?;
        Ok(metadata)
    }

    /// Rejects impossible row groups and chunks, so that later arithmetic on them cannot overflow.
    fn check(&self, path: &str, len: u64) -> Result<()> {
        let leaves = self.parquet.file_metadata().schema_descr().num_columns();
        for (position, group) in self.parquet.row_groups().iter().enumerate() {
            if group.num_rows() < 0 || group.num_columns() != leaves {
                return Err(damaged(path, format!("row group {position} is malformed")));
            }
            for column in group.columns() {
                // Each row has at least one entry in each column, which may be a NULL.
                if column.num_values() < group.num_rows() {
                    let (rows, values) = (group.num_rows(), column.num_values());
                    let name = column.column_path();
                    return Err(damaged(
                        path,
                        format!(
                            "row group {position} has {rows} rows, but its column {name} only {values} values"
                        ),
                    ));
                }
                let start =
                    column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
                let size = column.compressed_size();
                let end = start.checked_add(size).filter(|_| start >= 0 && size >= 0);
                if end.is_none_or(|end| end as u64 > len) {
                    let name = column.column_path();
                    return Err(damaged(
                        path,
                        format!("column {name} of row group {position} lies outside the file"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the leaf of a root column that is not nested.
    pub(super) fn flat_leaf(&self, root: usize) -> Option<usize> {
        let leaf = self.first_leaf[root];
        let schema = self.parquet.file_metadata().schema_descr();
        let column = schema.column(leaf);
        let flat = self.first_leaf[root + 1] == leaf + 1
            && column.max_rep_level() == 0
            && column.max_def_level() <= 1
            && schema.get_column_root(leaf).is_primitive();
        flat.then_some(leaf)
    }

    /// Returns the statistics of a root column in a row group.
    pub(super) fn bounds(&self, group: usize, root: usize) -> Option<Bounds> {
        let leaf = self.flat_leaf(root)?;
        let group = self.parquet.row_group(group);
        let column = group.column(leaf);
        let atom = self.tuple.fields()[root].atom()?.clone();
        let required = column.column_descr().max_def_level() == 0;
        let statistics = column.statistics();
        let nulls =
            if required { Some(0) } else { statistics.and_then(Statistics::null_count_opt) };
        let (min, max) =
            statistics.map_or((None, None), |s| min_max(s, column.column_type(), &atom));
        Some(Bounds {
            min,
            max,
            atom,
            some_null: nulls != Some(0),
            some_value: nulls != Some(group.num_rows() as u64),
        })
    }

    /// Returns the page locations of a leaf, if the file has valid ones.
    pub(super) fn locations(&self, group: usize, leaf: usize) -> Option<&[PageLocation]> {
        let locations = self.parquet.offset_index()?.get(group)?.get(leaf)?.page_locations();
        let metadata = self.parquet.row_group(group);
        let (start, len) = metadata.column(leaf).byte_range();
        let inside = |page: &PageLocation| {
            page.offset >= start as i64
                && page.compressed_page_size >= 0
                && page.offset + i64::from(page.compressed_page_size) <= (start + len) as i64
                && (0..=metadata.num_rows()).contains(&page.first_row_index)
        };
        let ascending = locations.windows(2).all(|pair| {
            pair[0].first_row_index <= pair[1].first_row_index && pair[0].offset < pair[1].offset
        });
        let whole = locations.first().is_some_and(|page| page.first_row_index == 0);
        (whole && ascending && locations.iter().all(inside)).then_some(locations)
    }

    /// Returns the page index entry of page `page` of a root column.
    pub(super) fn page_bounds(&self, group: usize, root: usize, page: usize) -> Option<Bounds> {
        let leaf = self.flat_leaf(root)?;
        let required =
            self.parquet.file_metadata().schema_descr().column(leaf).max_def_level() == 0;
        let index = self.parquet.column_index()?.get(group)?.get(leaf)?;
        // A column without an index still has an entry.
        if matches!(index, ColumnIndexMetaData::NONE) || page as u64 >= index.num_pages() {
            return None;
        }
        let atom = self.tuple.fields()[root].atom()?.clone();
        let all_null = index.is_null_page(page);
        let (min, max) = if all_null { (None, None) } else { page_min_max(index, page, &atom) };
        let some_null = !required && index.null_count(page) != Some(0);
        Some(Bounds { atom, min, max, some_null, some_value: !all_null })
    }
}

/// Decodes a file's footer, with its page index unless that is skipped, and returns it with the
/// encrypted leaves. The outer error is a read error, the inner one a decoding error.
fn decode(
    reader: &dyn RangeReader,
    context: Option<&Arc<dyn Context>>,
    index: PageIndexPolicy,
) -> Result<parquet::errors::Result<(ParquetMetaData, Vec<usize>)>> {
    let malformed = |text: &str| ParquetError::General(text.to_string());
    let mut decoder = match ParquetMetaDataPushDecoder::try_new(reader.len()) {
        Ok(decoder) => decoder.with_page_index_policy(index),
        Err(error) => return Ok(Err(error)),
    };
    let mut encrypted = Vec::new();
    loop {
        let decoded = guarded(|| decoder.try_decode());
        match decoded.unwrap_or_else(|| Err(malformed("its footer cannot be decoded"))) {
            Ok(DecodeResult::Data(metadata)) => return Ok(Ok((metadata, encrypted))),
            Ok(DecodeResult::Finished) => return Ok(Err(malformed("its footer ends early"))),
            Ok(DecodeResult::NeedsData(ranges)) => {
                for range in ranges {
                    let bytes = read_now(reader, range.clone(), context)?;
                    // The footer's length and magic follow it.
                    if range.end + 8 == reader.len() {
                        if let Err(error) = check_size(&bytes) {
                            return Ok(Err(ParquetError::General(error)));
                        }
                        encrypted = encrypted_leaves(&bytes);
                    }
                    if let Err(error) = decoder.push_range(range, bytes) {
                        return Ok(Err(error));
                    }
                }
            }
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// Removes impossible dictionary offsets: some writers store offset 0, or an offset after the
/// values, for a chunk without a dictionary.
fn with_real_dictionaries(parquet: ParquetMetaData) -> parquet::errors::Result<ParquetMetaData> {
    let is_wrong = |chunk: &ColumnChunkMetaData| {
        chunk
            .dictionary_page_offset()
            .is_some_and(|start| start <= 0 || start >= chunk.data_page_offset())
    };
    if !parquet.row_groups().iter().flat_map(|group| group.columns()).any(is_wrong) {
        return Ok(parquet);
    }
    let mut builder = parquet.into_builder();
    let mut groups = builder.take_row_groups();
    for chunk in
        groups.iter_mut().flat_map(|group| group.columns_mut()).filter(|chunk| is_wrong(chunk))
    {
        *chunk = chunk.clone().into_builder().set_dictionary_page_offset(None).build()?;
    }
    Ok(builder.set_row_groups(groups).build())
}

fn min_max(
    statistics: &Statistics,
    physical: Type,
    atom: &Atom,
) -> (Option<Scalar>, Option<Scalar>) {
    // Old writers compared bytes as signed; their statistics are right for signed numbers only.
    let signed = matches!(physical, Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE)
        && !atom.is_unsigned_integer();
    if statistics.is_min_max_deprecated() && !signed {
        return (None, None);
    }
    let read = |bytes: Option<&[u8]>| bytes.and_then(|bytes| scalar(bytes, physical, atom));
    (read(statistics.min_bytes_opt()), read(statistics.max_bytes_opt()))
}

fn page_min_max(
    index: &ColumnIndexMetaData,
    page: usize,
    atom: &Atom,
) -> (Option<Scalar>, Option<Scalar>) {
    match index {
        ColumnIndexMetaData::INT32(index) => {
            let read = |value: Option<&i32>| {
                value.and_then(|v| scalar(&v.to_le_bytes(), Type::INT32, atom))
            };
            (read(index.min_value(page)), read(index.max_value(page)))
        }
        ColumnIndexMetaData::INT64(index) => {
            let read = |value: Option<&i64>| {
                value.and_then(|v| scalar(&v.to_le_bytes(), Type::INT64, atom))
            };
            (read(index.min_value(page)), read(index.max_value(page)))
        }
        ColumnIndexMetaData::DOUBLE(index) => {
            let read = |value: Option<&f64>| {
                value.and_then(|v| scalar(&v.to_le_bytes(), Type::DOUBLE, atom))
            };
            (read(index.min_value(page)), read(index.max_value(page)))
        }
        ColumnIndexMetaData::FLOAT(index) => {
            let read = |value: Option<&f32>| {
                value.and_then(|v| scalar(&v.to_le_bytes(), Type::FLOAT, atom))
            };
            (read(index.min_value(page)), read(index.max_value(page)))
        }
        ColumnIndexMetaData::BYTE_ARRAY(index) => {
            let read = |value: Option<&[u8]>| value.and_then(|v| scalar(v, Type::BYTE_ARRAY, atom));
            (read(index.min_value(page)), read(index.max_value(page)))
        }
        ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(index) => {
            let read = |value: Option<&[u8]>| {
                value.and_then(|v| scalar(v, Type::FIXED_LEN_BYTE_ARRAY, atom))
            };
            (read(index.min_value(page)), read(index.max_value(page)))
        }
        _ => (None, None),
    }
}

/// Decodes a value of the statistics.
fn scalar(bytes: &[u8], physical: Type, atom: &Atom) -> Option<Scalar> {
    match (physical, atom) {
        (Type::BOOLEAN, Atom::Boolean) => Some(Scalar::Boolean(*bytes.first()? != 0)),
        (Type::INT32, _) => {
            let value = i32::from_le_bytes(bytes.try_into().ok()?);
            if atom.is_unsigned_integer() {
                Some(Scalar::Integer((value as u32).into()))
            } else {
                let whole = atom.is_integer()
                    || matches!(atom, Atom::Decimal(..) | Atom::Date | Atom::Time(_));
                whole.then(|| Scalar::Integer(value.into()))
            }
        }
        (Type::INT64, Atom::UInt64) => {
            Some(Scalar::Integer(u64::from_le_bytes(bytes.try_into().ok()?).into()))
        }
        (Type::INT64, Atom::Int64 | Atom::Decimal(..) | Atom::Timestamp(..) | Atom::Time(_)) => {
            Some(Scalar::Integer(i64::from_le_bytes(bytes.try_into().ok()?).into()))
        }
        (Type::FLOAT, Atom::Float32) => {
            let value = f32::from_le_bytes(bytes.try_into().ok()?);
            (!value.is_nan()).then(|| Scalar::Float(value.into()))
        }
        (Type::DOUBLE, Atom::Float64) => {
            let value = f64::from_le_bytes(bytes.try_into().ok()?);
            (!value.is_nan()).then_some(Scalar::Float(value))
        }
        (Type::BYTE_ARRAY, Atom::String) => {
            Some(Scalar::String(std::str::from_utf8(bytes).ok()?.into()))
        }
        (Type::BYTE_ARRAY, Atom::Bytes) => Some(Scalar::Bytes(bytes.into())),
        // The canonical text has the order of the bytes. A bound that was cut has fewer of them.
        (Type::FIXED_LEN_BYTE_ARRAY, Atom::Uuid) if bytes.len() == UUID_BYTES as usize => {
            let mut text = String::new();
            tessera_values::uuid::write(bytes, &mut text);
            Some(Scalar::String(text.into()))
        }
        (Type::FIXED_LEN_BYTE_ARRAY, Atom::Decimal(..)) => {
            let negative = bytes.first()? & 0x80 != 0;
            let mut wide = [if negative { 0xff } else { 0 }; 16];
            wide.get_mut(16usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
            Some(Scalar::Integer(i128::from_be_bytes(wide)))
        }
        _ => None,
    }
}
