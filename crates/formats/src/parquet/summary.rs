//! Summaries of Parquet files for the table catalog: schema, sizes, and column statistics.

use std::ops::Range;

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;

use tessera_context::RangeReader;
use tessera_plan::Scalar;
use tessera_types::{Result, Tuple};

use super::fetch::{GAP_BYTES_MAX, coalesce};
use super::metadata::Metadata;
use crate::file::{read_now, statement_tuple};

/// A summary of a Parquet file's metadata.
#[derive(Debug, Clone)]
pub struct FileSummary {
    /// The columns, with the types of the file.
    pub tuple: Tuple,
    /// The number of rows.
    pub rows: u64,
    /// The number of rows of each row group.
    pub row_groups: Vec<u64>,
    /// The statistics of each column.
    pub columns: Vec<ColumnSummary>,
}

/// The statistics of a column.
#[derive(Debug, Clone, Default)]
pub struct ColumnSummary {
    /// A lower bound of all values.
    pub min: Option<Scalar>,
    /// An upper bound of all values.
    pub max: Option<Scalar>,
    /// The number of NULLs.
    pub null_count: Option<u64>,
    /// An estimate of the number of distinct values.
    pub distinct: Option<u64>,
    /// The compressed size in bytes.
    pub bytes: u64,
}

/// The number of row groups of a remote file whose dictionaries are read; those of the others are
/// assumed to be similar.
const REMOTE_DICTIONARIES_MAX: usize = 2;

/// Reads the summary of a file for the table catalog: schema, sizes, and column statistics.
///
/// # Errors
/// The file cannot be read or is not a Parquet file.
pub fn discover(reader: &dyn RangeReader) -> Result<FileSummary> {
    let metadata = Metadata::read(reader, None)?;
    if reader.is_remote() {
        let groups = metadata.parquet.row_groups().iter().take(REMOTE_DICTIONARIES_MAX);
        let chunks = groups.flat_map(|group| group.columns());
        let headers = chunks.filter_map(|chunk| dictionary_header(chunk, reader.len())).collect();
        reader.prefetch(&coalesce(headers, GAP_BYTES_MAX))?;
    }
    let row_groups: Vec<u64> =
        metadata.parquet.row_groups().iter().map(|group| group.num_rows() as u64).collect();
    let rows = row_groups.iter().sum();
    let mut columns = (0..metadata.tuple.len())
        .map(|root| discover_column(&metadata, root, rows, reader))
        .collect::<Result<Vec<_>>>()?;
    let tuple = statement_tuple(&metadata.tuple);
    for (column, (seen, found)) in
        columns.iter_mut().zip(tuple.fields().iter().zip(metadata.tuple.fields()))
    {
        if seen != found {
            // Times of day in statistics count in the file's unit.
            (column.min, column.max) = (None, None);
        }
    }
    Ok(FileSummary { tuple, rows, row_groups, columns })
}

fn discover_column(
    metadata: &Metadata,
    root: usize,
    rows: u64,
    reader: &dyn RangeReader,
) -> Result<ColumnSummary> {
    let groups = metadata.parquet.row_groups();
    let leaves = metadata.first_leaf[root]..metadata.first_leaf[root + 1];
    let bytes = groups
        .iter()
        .flat_map(|group| &group.columns()[leaves.clone()])
        .map(|c| c.compressed_size() as u64)
        .sum();
    let Some(leaf) = metadata.flat_leaf(root) else {
        return Ok(ColumnSummary { bytes, ..Default::default() });
    };
    let mut column = ColumnSummary { bytes, null_count: Some(0), ..Default::default() };
    let mut distinct = Some(0u64);
    let mut last = None;
    let mut overlap = false;
    for (position, group) in groups.iter().enumerate() {
        let chunk = group.column(leaf);
        let Some(bounds) = metadata.bounds(position, root) else { continue };
        let nulls = match chunk.statistics() {
            _ if !bounds.some_null => Some(0),
            statistics => statistics.and_then(Statistics::null_count_opt),
        };
        column.null_count = column.null_count.zip(nulls).map(|(a, b)| a + b);
        let known = reader.is_remote() && position >= REMOTE_DICTIONARIES_MAX;
        let here = if known { last } else { dictionary_len(chunk, reader)? };
        last = here;
        if position == 0 {
            (column.min, column.max) = (bounds.min, bounds.max);
            distinct = here;
            continue;
        }
        // Row groups with overlapping ranges probably hold the same values; disjoint ranges, as in
        // a sorted column, hold different ones.
        overlap |= matches!((&column.max, &bounds.min), (Some(max), Some(min)) if !less(max, min));
        distinct = distinct.zip(here).map(|(a, b)| if overlap { a.max(b) } else { a + b });
        column.min = column.min.zip(bounds.min).map(|(a, b)| if less(&b, &a) { b } else { a });
        column.max = column.max.zip(bounds.max).map(|(a, b)| if less(&a, &b) { b } else { a });
    }
    column.distinct = distinct.filter(|_| !groups.is_empty()).map(|distinct| distinct.min(rows));
    Ok(column)
}

fn less(left: &Scalar, right: &Scalar) -> bool {
    match (left, right) {
        (Scalar::Integer(a), Scalar::Integer(b)) => a < b,
        (Scalar::Float(a), Scalar::Float(b)) => a < b,
        (Scalar::String(a), Scalar::String(b)) => a < b,
        (Scalar::Bytes(a), Scalar::Bytes(b)) => a < b,
        (Scalar::Boolean(a), Scalar::Boolean(b)) => !a & b,
        _ => false,
    }
}

/// Returns the number of values in a chunk's dictionary, if all of its pages use it.
fn dictionary_len(chunk: &ColumnChunkMetaData, reader: &dyn RangeReader) -> Result<Option<u64>> {
    let Some(header) = dictionary_header(chunk, reader.len()) else { return Ok(None) };
    Ok(dictionary_page_values(&read_now(reader, header, None)?))
}

/// Returns the range of a chunk's dictionary page header, if all pages use the dictionary.
fn dictionary_header(chunk: &ColumnChunkMetaData, len: u64) -> Option<Range<u64>> {
    let start =
        chunk.dictionary_page_offset().filter(|_| super::flat::is_all_dictionary(chunk))? as u64;
    Some(start..(start + 64).min(len))
}

/// Reads `dictionary_page_header.num_values` (fields 7 and 1) from a page header in Thrift's
/// compact protocol.
fn dictionary_page_values(bytes: &[u8]) -> Option<u64> {
    let mut position = 0;
    let mut varint = || -> Option<(u64, usize)> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = *bytes.get(position)?;
            position += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some((value, position));
            }
            shift += 7;
        }
    };
    let mut field = 0u64;
    loop {
        let (header, _) = varint()?;
        field += header >> 4;
        match (header & 0xf, field) {
            (12, 7) => {
                // The struct's first field is the count, a zigzag varint.
                let (inner, _) = varint()?;
                let (value, _) = varint()?;
                return (inner == 0x15).then_some(value >> 1);
            }
            (4..=6, _) => {
                varint()?;
            }
            (1 | 2, _) => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionary_page_headers() {
        // type = 2, uncompressed = 100, compressed = 60, dictionary header {num_values = 25,
        // encoding = PLAIN}.
        let header =
            [0x15, 0x04, 0x15, 0xc8, 0x01, 0x15, 0x78, 0x4c, 0x15, 0x32, 0x15, 0x00, 0x00, 0x00];
        assert_eq!(dictionary_page_values(&header), Some(25));
        assert_eq!(dictionary_page_values(&header[..6]), None);
        assert_eq!(dictionary_page_values(&[0x00]), None);
    }
}
