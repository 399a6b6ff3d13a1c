//! Checks the shape of a record batch: the declared lengths of its arrays and buffers, against its
//! schema and its bytes. Arrow's decoder trusts the lengths of arrays; a batch that passes here has
//! the bytes for all of its values.

use arrow::datatypes::{DataType, Field, UnionMode};
use arrow::ipc::{CompressionType, MetadataVersion, RecordBatch as Batch};

use super::message::Layout;

/// The largest ratio between a buffer and its compressed form: LZ4 counts up to 255 in a byte, and
/// a block of Zstandard holds 128 KiB in four bytes.
const LZ4_RATIO_MAX: usize = 256;
const ZSTD_RATIO_MAX: usize = 32_768;
/// The most values of a column without bytes per value: NULLs, runs, structs without fields.
const BYTELESS_ROWS_MAX: usize = i32::MAX as usize;

/// Checks a batch of the columns of a schema; returns the bytes of decompressed buffers that
/// decoding the columns at the positions `wanted` allocates beyond the batch's own.
///
/// # Errors
/// A column is damaged; the text names it and describes how.
pub(super) fn check_batch(
    layout: &Layout,
    wanted: &[usize],
    batch: &Batch<'_>,
    body: &[u8],
) -> Result<usize, String> {
    let mut walk = Walk::new(layout, batch, body)?;
    let rows = walk.length(batch.length())?;
    let mut decoded = 0usize;
    for (position, field) in layout.schema.fields().iter().enumerate() {
        walk.decoded = 0;
        walk.array(field.data_type(), Length::Exact(rows)).map_err(|error| {
            format!("column {}: {error}", tessera_types::quote_name(field.name()))
        })?;
        if wanted.binary_search(&position).is_ok() {
            decoded = decoded.saturating_add(walk.decoded);
        }
    }
    if walk.variadic.next().is_some() {
        return Err("the batch has more numbers of buffers than its schema has views".to_string());
    }
    if layout.schema.fields().is_empty() {
        byteless(rows)?;
    }
    Ok(decoded)
}

/// Like [`check_batch`], for the values of a dictionary.
///
/// # Errors
/// The dictionary is damaged.
pub(super) fn check_dictionary(
    layout: &Layout,
    values: &DataType,
    batch: &Batch<'_>,
    body: &[u8],
) -> Result<usize, String> {
    let mut walk = Walk::new(layout, batch, body)?;
    let rows = walk.length(batch.length())?;
    walk.array(values, Length::Exact(rows)).map_err(|error| format!("a dictionary: {error}"))?;
    Ok(walk.decoded)
}

/// The compression of buffers.
#[derive(Debug, Clone, Copy)]
enum Codec {
    Lz4,
    Zstandard,
}

/// The required number of values of an array.
#[derive(Debug, Clone, Copy)]
enum Length {
    Exact(usize),
    AtLeast(usize),
    Any,
}

/// Walks the arrays and buffers of a batch in schema order.
struct Walk<'a> {
    nodes: Box<dyn Iterator<Item = (i64, i64)> + 'a>,
    buffers: Box<dyn Iterator<Item = (i64, i64)> + 'a>,
    variadic: Box<dyn Iterator<Item = i64> + 'a>,
    /// The compression of buffers, if any.
    codec: Option<Codec>,
    version: MetadataVersion,
    body: &'a [u8],
    decoded: usize,
}

impl<'a> Walk<'a> {
    fn new(layout: &Layout, batch: &Batch<'a>, body: &'a [u8]) -> Result<Walk<'a>, String> {
        let codec = match batch.compression().map(|compression| compression.codec()) {
            None => None,
            Some(CompressionType::LZ4_FRAME) => Some(Codec::Lz4),
            Some(CompressionType::ZSTD) => Some(Codec::Zstandard),
            Some(other) => return Err(format!("it is compressed by {other:?}")),
        };
        let nodes =
            batch.nodes().into_iter().flatten().map(|node| (node.length(), node.null_count()));
        let buffers =
            batch.buffers().into_iter().flatten().map(|buffer| (buffer.offset(), buffer.length()));
        Ok(Walk {
            nodes: Box::new(nodes),
            buffers: Box::new(buffers),
            variadic: Box::new(batch.variadicBufferCounts().into_iter().flatten()),
            codec,
            version: layout.version,
            body,
            decoded: 0,
        })
    }

    fn length(&self, length: i64) -> Result<usize, String> {
        usize::try_from(length).map_err(|_| format!("{length} values"))
    }

    /// Checks the next array and its children.
    fn array(&mut self, data_type: &DataType, wanted: Length) -> Result<(), String> {
        let (length, nulls) = self.nodes.next().ok_or("the batch lacks arrays of its schema")?;
        let len = self.length(length)?;
        if !(0..=length).contains(&nulls) {
            return Err(format!("{nulls} NULLs among {length} values"));
        }
        let fits = match wanted {
            Length::Exact(rows) => len == rows,
            Length::AtLeast(rows) => len >= rows,
            Length::Any => true,
        };
        if !fits {
            let (Length::Exact(rows) | Length::AtLeast(rows)) = wanted else { return Ok(()) };
            return Err(format!("{len} values instead of {rows}"));
        }
        let has_validity = match data_type {
            DataType::Null | DataType::RunEndEncoded(..) => false,
            DataType::Union(..) => self.version < MetadataVersion::V5,
            _ => true,
        };
        if has_validity {
            let bytes = if nulls > 0 { len.div_ceil(8) } else { 0 };
            self.buffer(Some(bytes), "validity bits")?;
        }
        self.values(data_type, len)
    }

    /// Checks the buffers of an array's values, and its children.
    fn values(&mut self, data_type: &DataType, len: usize) -> Result<(), String> {
        match data_type {
            DataType::Null => byteless(len),
            DataType::Boolean => self.buffer(Some(len.div_ceil(8)), "values").map(drop),
            DataType::Utf8 | DataType::Binary => self.texts(len, 4),
            DataType::LargeUtf8 | DataType::LargeBinary => self.texts(len, 8),
            DataType::Utf8View | DataType::BinaryView => {
                let count = self.variadic.next().ok_or("the batch lacks a number of buffers")?;
                self.buffer(len.checked_mul(16), "views")?;
                for _ in 0..self.length(count)? {
                    self.buffer(Some(0), "texts")?;
                }
                Ok(())
            }
            DataType::List(item) | DataType::Map(item, _) => self.list(item, len, 4),
            DataType::LargeList(item) => self.list(item, len, 8),
            DataType::ListView(item) => self.list_view(item, len, 4),
            DataType::LargeListView(item) => self.list_view(item, len, 8),
            DataType::FixedSizeList(item, size) => {
                let size = self.length(i64::from(*size))?;
                if size == 0 {
                    byteless(len)?;
                }
                let items =
                    len.checked_mul(size).ok_or_else(|| format!("{len} lists of {size} values"))?;
                self.array(item.data_type(), Length::AtLeast(items))
            }
            DataType::Struct(fields) => {
                if fields.is_empty() {
                    byteless(len)?;
                }
                fields
                    .iter()
                    .try_for_each(|field| self.array(field.data_type(), Length::Exact(len)))
            }
            DataType::Dictionary(key, _) => self.fixed(key.primitive_width(), len),
            DataType::RunEndEncoded(ends, values) => {
                byteless(len)?;
                self.array(ends.data_type(), Length::Any)?;
                self.array(values.data_type(), Length::Any)
            }
            DataType::Union(fields, mode) => {
                self.buffer(Some(len), "types")?;
                let of_child = match mode {
                    UnionMode::Sparse => Length::Exact(len),
                    UnionMode::Dense => Length::Any,
                };
                if *mode == UnionMode::Dense {
                    self.buffer(len.checked_mul(4), "offsets")?;
                }
                fields.iter().try_for_each(|(_, field)| self.array(field.data_type(), of_child))
            }
            DataType::FixedSizeBinary(width) => {
                let width = self.length(i64::from(*width))?;
                if width == 0 {
                    byteless(len)?;
                }
                self.fixed(Some(width), len)
            }
            other => self.fixed(other.primitive_width(), len),
        }
    }

    fn fixed(&mut self, width: Option<usize>, len: usize) -> Result<(), String> {
        let width = width.ok_or("values of a type that is not known")?;
        self.buffer(len.checked_mul(width), "values").map(drop)
    }

    fn texts(&mut self, len: usize, width: usize) -> Result<(), String> {
        self.offsets(len, width)?;
        self.buffer(Some(0), "texts").map(drop)
    }

    fn list(&mut self, item: &Field, len: usize, width: usize) -> Result<(), String> {
        self.offsets(len, width)?;
        self.array(item.data_type(), Length::Any)
    }

    fn list_view(&mut self, item: &Field, len: usize, width: usize) -> Result<(), String> {
        self.buffer(len.checked_mul(width), "offsets")?;
        self.buffer(len.checked_mul(width), "sizes")?;
        self.array(item.data_type(), Length::Any)
    }

    /// Checks offsets, of which there is one more than values; writers may omit those of no values.
    fn offsets(&mut self, len: usize, width: usize) -> Result<(), String> {
        let bytes = match len {
            0 => Some(0),
            _ => len.checked_add(1).and_then(|offsets| offsets.checked_mul(width)),
        };
        self.buffer(bytes, "offsets").map(drop)
    }

    /// Checks the next buffer: it must be inside the message and hold this many bytes.
    fn buffer(&mut self, bytes: Option<usize>, what: &str) -> Result<(), String> {
        let (offset, length) =
            self.buffers.next().ok_or("the batch lacks buffers of its schema")?;
        let place = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
        let found = place.and_then(|(start, len)| self.body.get(start..start.checked_add(len)?));
        let outside =
            || format!("{length} bytes of {what} from byte {offset} of the batch lie outside it");
        let found = found.ok_or_else(outside)?;
        let mut len = found.len();
        if let (Some(codec), false) = (self.codec, found.is_empty()) {
            let said = decompressed_len(found, codec);
            let (of_decoded, taken) =
                said.ok_or_else(|| format!("{what} of {len} bytes cannot be as long as they say"))?;
            len = of_decoded;
            self.decoded = self.decoded.saturating_add(taken);
        }
        match bytes {
            Some(bytes) if len >= bytes => Ok(()),
            Some(bytes) => Err(format!("{len} bytes of {what} instead of {bytes}")),
            None => Err(format!("more {what} than there can be")),
        }
    }
}

fn byteless(len: usize) -> Result<(), String> {
    match len <= BYTELESS_ROWS_MAX {
        true => Ok(()),
        false => Err(format!("{len} values that take no bytes; there can be {BYTELESS_ROWS_MAX}")),
    }
}

/// Returns the decompressed length of a buffer, stored before it, and the memory that decompressing
/// takes.
fn decompressed_len(bytes: &[u8], codec: Codec) -> Option<(usize, usize)> {
    let (len, compressed) = bytes.split_first_chunk::<8>()?;
    let len = match i64::from_le_bytes(*len) {
        // This buffer is not compressed.
        -1 => return Some((compressed.len(), 0)),
        len => usize::try_from(len).ok()?,
    };
    match codec {
        // The decoder stops at this length.
        Codec::Zstandard => {
            (len <= compressed.len().saturating_mul(ZSTD_RATIO_MAX)).then_some((len, len))
        }
        // The decoder continues to the end of the buffer, regardless of the stored length.
        Codec::Lz4 => (len <= compressed.len().saturating_mul(LZ4_RATIO_MAX))
            .then(|| (len, len.max(lz4_bytes(compressed, len)))),
    }
}

/// Returns the most bytes that LZ4 frames can hold, by the lengths of their blocks. Returns
/// `expected` if the number of blocks matches it: bytes beyond it in the last block are not
/// counted.
fn lz4_bytes(frame: &[u8], expected: usize) -> usize {
    let most = frame.len().saturating_mul(LZ4_RATIO_MAX);
    let walk = || -> Option<usize> {
        // Magic number, flags, and the largest length of a block.
        let (flags, largest) = (*frame.get(4)?, *frame.get(5)?);
        let block_bytes = 1usize << (8 + 2 * u32::from(largest >> 4 & 7)).clamp(16, 22);
        let optional = |bit: u8, bytes: usize| if flags & bit != 0 { bytes } else { 0 };
        let mut rest = frame.get(7 + optional(8, 8) + optional(1, 4)..)?;
        let mut blocks = 0usize;
        loop {
            let (word, behind) = rest.split_first_chunk::<4>()?;
            let word = u32::from_le_bytes(*word);
            if word == 0 {
                break;
            }
            blocks += 1;
            rest = behind.get((word & 0x7fff_ffff) as usize + optional(16, 4)..)?;
        }
        // Only the checksum of the content may follow: another frame would hold more.
        let ends = rest.get(4..).unwrap_or_default().len() <= optional(4, 4);
        let full = blocks.saturating_mul(block_bytes);
        ends.then_some(if full <= expected.saturating_add(block_bytes) {
            expected
        } else {
            full.min(most)
        })
    };
    walk().unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_frame_that_holds_more_than_it_says_is_counted_whole() {
        let bytes = vec![7; 9_000_000];
        let frame = compressed(&bytes);
        assert_eq!(lz4_bytes(&frame, bytes.len()), bytes.len());
        assert!(lz4_bytes(&frame, 8) >= bytes.len());
        let two = [compressed(b"x"), frame].concat();
        assert!(lz4_bytes(&two, 1) >= bytes.len());
        let said = [&8u64.to_le_bytes()[..], &two].concat();
        assert!(decompressed_len(&said, Codec::Lz4).unwrap().1 >= bytes.len());
    }
}
