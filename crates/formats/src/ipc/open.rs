//! Reads the heads of Arrow IPC files: schema, dictionaries, and the locations of batches.

use std::ops::Range;
use std::sync::Arc;

use arrow::buffer::Buffer;
use arrow::ipc::reader::read_footer_length;
use arrow::ipc::{Block, MessageHeader, root_as_footer};

use tessera_context::{Context, RangeReader, Reservation, Run};
use tessera_rows::ipc::message;
use tessera_rows::ipc::message::{Decoder, Layout, Prefix};
use tessera_types::{Error, Result, Tuple};

use crate::file::{read_now, readable_tuple, statement_tuple};

/// The bytes after a file's footer: its length and the magic word.
const TRAILER_BYTES: u64 = 10;

/// The head of an opened file.
pub(super) struct FileHead {
    pub(super) layout: Layout,
    /// The locations of its messages; `None` for a stream.
    pub(super) blocks: Option<Blocks>,
}

pub(super) struct Blocks {
    pub(super) dictionaries: Vec<Block>,
    pub(super) batches: Arc<[Block]>,
}

impl Blocks {
    /// Creates a decoder of these columns and reads their dictionaries.
    pub(super) fn decoder(
        &self,
        layout: &Layout,
        wanted: &[usize],
        reader: &dyn RangeReader,
        run: &Run,
    ) -> Result<(Decoder, Arc<[Block]>)> {
        let mut decoder = Decoder::new(layout, wanted);
        if !decoder.has_dictionaries() {
            return Ok((decoder, self.batches.clone()));
        }
        let path = reader.path();
        let ranges = self.dictionaries.iter().map(|block| range_of(path, block, reader.len()));
        let ranges = ranges.collect::<Result<Vec<_>>>()?;
        reader.prefetch(&ranges)?;
        let mut reservation = Reservation::new(run.context.clone());
        for (block, range) in self.dictionaries.iter().zip(ranges) {
            reservation.resize((range.end - range.start) as usize)?;
            let failed = |error: String| {
                damaged(path, format!("dictionary at byte {}: {error}", range.start))
            };
            let bytes = Buffer::from(read_now(reader, range.clone(), Some(&run.context))?);
            reservation.grow(decoder.check(block, &bytes).map_err(failed)?)?;
            decoder.dictionary(block, &bytes).map_err(failed)?;
        }
        Ok((decoder, self.batches.clone()))
    }
}

/// Returns the columns of an Arrow IPC file or stream. A column of an unsupported type is NULL in
/// every row, and an error in queries that read it.
///
/// # Errors
/// The file cannot be read or is not Arrow IPC.
pub fn discover(reader: Arc<dyn RangeReader>) -> Result<Tuple> {
    Ok(statement_tuple(&readable_tuple(&open(&*reader, None)?.layout.schema)))
}

pub(super) fn damaged(path: &str, error: impl std::fmt::Display) -> Error {
    Error::data(format!(
        "cannot read '{path}' as Arrow IPC: {error}; the file is damaged or was not written completely"
    ))
}

/// Reads a file's schema and, for the file format, the locations of its messages.
pub(super) fn open(
    reader: &dyn RangeReader,
    context: Option<&Arc<dyn Context>>,
) -> Result<FileHead> {
    let magic = read_now(reader, 0..reader.len().min(6), context)?;
    match &magic[..] {
        b"ARROW1" => open_file(reader, context),
        magic if magic.starts_with(b"FEA1") => Err(Error::unsupported(format!(
            "'{}' is a Feather file of version 1, which is not supported; write it as Arrow IPC (Feather version 2)",
            reader.path()
        ))),
        _ => Ok(FileHead { layout: stream_layout(reader, context)?, blocks: None }),
    }
}

fn open_file(reader: &dyn RangeReader, context: Option<&Arc<dyn Context>>) -> Result<FileHead> {
    let (path, len) = (reader.path(), reader.len());
    let Some(footer_end) = len.checked_sub(TRAILER_BYTES) else {
        return Err(damaged(path, format!("it has only {len} bytes")));
    };
    let trailer = read_now(reader, footer_end..len, context)?;
    let mut trailer_bytes = [0; TRAILER_BYTES as usize];
    trailer_bytes.copy_from_slice(&trailer);
    let footer_len = read_footer_length(trailer_bytes).map_err(|error| damaged(path, error))?;
    let Some(footer_start) = footer_end.checked_sub(footer_len as u64) else {
        return Err(damaged(path, format!("its footer claims a length of {footer_len} bytes")));
    };
    let footer = read_now(reader, footer_start..footer_end, context)?;
    let footer = root_as_footer(&footer).map_err(|error| damaged(path, error))?;
    let schema = footer.schema().ok_or_else(|| damaged(path, "its footer has no schema"))?;
    check_order(path, &schema)?;
    let schema = message::schema(schema).map_err(|error| damaged(path, error))?;
    let batches =
        footer.recordBatches().ok_or_else(|| damaged(path, "its footer lists no batches"))?;
    let blocks = Blocks {
        dictionaries: footer.dictionaries().iter().flatten().copied().collect(),
        batches: batches.iter().copied().collect(),
    };
    Ok(FileHead { layout: Layout { schema, version: footer.version() }, blocks: Some(blocks) })
}

fn check_order(path: &str, schema: &arrow::ipc::Schema<'_>) -> Result<()> {
    if schema.endianness().equals_to_target_endianness() {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "'{path}' was written with another byte order, which is not supported; write it on a little-endian machine"
    )))
}

/// Returns the byte range of a block: its metadata and its body.
pub(super) fn range_of(path: &str, block: &Block, len: u64) -> Result<Range<u64>> {
    let part = |len: i64| u64::try_from(len).ok();
    let range =
        part(block.offset()).zip(part(block.metaDataLength().into())).zip(part(block.bodyLength()));
    let range = range
        .and_then(|((start, head), body)| Some(start..start.checked_add(head)?.checked_add(body)?));
    // The metadata begins with its own length.
    let range = range.filter(|range| block.metaDataLength() >= 8 && range.end <= len);
    range.ok_or_else(|| damaged(path, "a block lies outside the file"))
}

/// Reads the schema at the start of a stream.
fn stream_layout(reader: &dyn RangeReader, context: Option<&Arc<dyn Context>>) -> Result<Layout> {
    let (path, len) = (reader.path(), reader.len());
    let failed = |error: String| damaged(path, error);
    let start = read_now(reader, 0..len.min(8), context)?;
    let early = || damaged(path, "it ends before its schema");
    let Prefix { prefix, description } = Prefix::of(&start).map_err(failed)?.ok_or_else(early)?;
    let end = (prefix + description) as u64;
    if description == 0 || end > len {
        return Err(early());
    }
    let bytes = read_now(reader, 0..end, context)?;
    let message = message::message(&bytes).map_err(failed)?;
    let schema = match message.header_type() {
        MessageHeader::Schema => message.header_as_schema(),
        _ => None,
    };
    let schema = schema.ok_or_else(|| damaged(path, "it does not begin with a schema"))?;
    check_order(path, &schema)?;
    Ok(Layout { schema: message::schema(schema).map_err(failed)?, version: message.version() })
}
