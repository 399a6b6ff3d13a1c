//! Messages of Arrow IPC: what they say of lengths and places is checked before Arrow's decoder relies
//! on it, so that damaged bytes are an error and never ask for much memory.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::FileDecoder;
use arrow::ipc::{
    Block, CompressionType, Message, MessageHeader, MetadataVersion, RecordBatch as Batch, root_as_message,
};

use crate::guard::guarded;

/// What begins a message since version 0.15 of the format.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// How many times longer than its compressed form a buffer can be: LZ4 counts up to 255 in a byte, and
/// a block of Zstandard holds 128 KiB in four bytes.
const LZ4_RATIO_MAX: usize = 256;
const ZSTD_RATIO_MAX: usize = 32_768;

/// A schema as a file gives it.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) schema: Arc<Schema>,
    pub(super) version: MetadataVersion,
}

/// Reads messages of one file or stream. Errors are texts: the caller names the file.
#[derive(Debug)]
pub(super) struct Decoder {
    decoder: FileDecoder,
    /// The dictionaries of the columns that are wanted.
    dictionaries: Vec<i64>,
}

/// What stands at the start of a message: the bytes of its prefix, and those of its description.
pub(super) struct Prefix {
    pub(super) prefix: usize,
    /// 0 at the end of a stream.
    pub(super) description: usize,
}

impl Prefix {
    /// Of a message's first bytes; `None` while there are too few.
    pub(super) fn of(bytes: &[u8]) -> Result<Option<Prefix>, String> {
        let Some(first) = bytes.first_chunk::<4>() else { return Ok(None) };
        let (prefix, length) = match *first == CONTINUATION {
            false => (4, *first),
            true => match bytes.get(4..).and_then(|rest| rest.first_chunk::<4>()) {
                Some(length) => (8, *length),
                None => return Ok(None),
            },
        };
        let length = i32::from_le_bytes(length);
        let description = usize::try_from(length).map_err(|_| format!("a message of {length} bytes"))?;
        Ok(Some(Prefix { prefix, description }))
    }
}

/// The message that `bytes` begin with, prefix and all.
pub(super) fn message(bytes: &[u8]) -> Result<Message<'_>, String> {
    let Some(Prefix { prefix, description }) = Prefix::of(bytes)? else {
        return Err("a message of a few bytes".to_string());
    };
    let description =
        bytes.get(prefix..prefix + description).ok_or_else(|| "a message ends early".to_string())?;
    root_as_message(description).map_err(|error| error.to_string())
}

/// How many bytes follow a message's description.
pub(super) fn body_len(message: &Message<'_>) -> Result<usize, String> {
    let length = message.bodyLength();
    usize::try_from(length).map_err(|_| format!("a message with a body of {length} bytes"))
}

/// The schema out of its description.
pub(super) fn schema(schema: arrow::ipc::Schema<'_>) -> Result<Arc<Schema>, String> {
    let converted = guarded(|| fb_to_schema(schema));
    converted.map(Arc::new).ok_or_else(|| "its schema has types that are not known".to_string())
}

impl Decoder {
    /// Decodes the columns at these positions, ascending.
    pub(super) fn new(layout: &Layout, columns: &[usize]) -> Decoder {
        let mut dictionaries = Vec::new();
        for field in columns.iter().filter_map(|column| layout.schema.fields().get(*column)) {
            dictionaries_of(field, &mut dictionaries);
        }
        let decoder = FileDecoder::new(layout.schema.clone(), layout.version);
        Decoder { decoder: decoder.with_projection(columns.to_vec()), dictionaries }
    }

    /// Whether a column that is wanted has a dictionary.
    pub(super) fn has_dictionaries(&self) -> bool {
        !self.dictionaries.is_empty()
    }

    /// Takes a dictionary, where a column that is wanted has it. `bytes` are the message and its body.
    pub(super) fn dictionary(&mut self, block: &Block, bytes: &Buffer) -> Result<(), String> {
        let message = message(bytes)?;
        let batch = message.header_as_dictionary_batch().ok_or("a dictionary was expected")?;
        if !self.dictionaries.contains(&batch.id()) {
            return Ok(());
        }
        let decoded = guarded(|| self.decoder.read_dictionary(block, bytes));
        decoded.ok_or("a dictionary cannot be decoded")?.map_err(|error| error.to_string())
    }

    /// Decodes a record batch; nothing for a message of another kind. `bytes` are the message and its
    /// body.
    pub(super) fn batch(&self, block: &Block, bytes: &Buffer) -> Result<Option<RecordBatch>, String> {
        let decoded = guarded(|| self.decoder.read_record_batch(block, bytes));
        decoded.ok_or("a record batch cannot be decoded")?.map_err(|error| error.to_string())
    }
}

/// The bytes that decoding a message takes beyond its own: those of decompressed buffers.
///
/// # Errors
/// What the message says of its buffers cannot be.
pub(super) fn decoded_bytes(message: &Message<'_>, body: &[u8]) -> Result<usize, String> {
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => {
            let batch = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
            Some(batch.ok_or("a dictionary without values")?)
        }
        _ => None,
    };
    batch.map_or(Ok(0), |batch| batch_bytes(&batch, body))
}

fn batch_bytes(batch: &Batch<'_>, body: &[u8]) -> Result<usize, String> {
    if batch.length() < 0 {
        return Err(format!("a batch of {} rows", batch.length()));
    }
    for node in batch.nodes().iter().flatten() {
        if !(0..=node.length()).contains(&node.null_count()) {
            return Err(format!("{} NULLs among {} values", node.null_count(), node.length()));
        }
    }
    if batch.variadicBufferCounts().iter().flatten().any(|count| count < 0) {
        return Err("a negative number of buffers".to_string());
    }
    let ratio = match batch.compression().map(|compression| compression.codec()) {
        None => None,
        Some(CompressionType::LZ4_FRAME) => Some(LZ4_RATIO_MAX),
        Some(CompressionType::ZSTD) => Some(ZSTD_RATIO_MAX),
        Some(other) => return Err(format!("it is compressed by {other:?}")),
    };
    let mut decoded = 0usize;
    for buffer in batch.buffers().iter().flatten() {
        let place = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = place.and_then(|(start, len)| body.get(start..start.checked_add(len)?));
        let bytes = bytes.ok_or("a buffer lies outside its message")?;
        if let Some(ratio) = ratio
            && !bytes.is_empty()
        {
            let len = decompressed_len(bytes, ratio).ok_or("a buffer's length cannot be")?;
            decoded = decoded.checked_add(len).ok_or("a buffer's length cannot be")?;
        }
    }
    Ok(decoded)
}

/// The length of a compressed buffer, which stands before it.
fn decompressed_len(bytes: &[u8], ratio: usize) -> Option<usize> {
    let (len, compressed) = bytes.split_first_chunk::<8>()?;
    match i64::from_le_bytes(*len) {
        // Not compressed after all.
        -1 => Some(0),
        len => usize::try_from(len).ok().filter(|len| *len <= compressed.len().saturating_mul(ratio)),
    }
}

/// The dictionaries that decoding a field needs, those of dictionaries' values too.
fn dictionaries_of(field: &Field, dictionaries: &mut Vec<i64>) {
    // Arrow calls the method deprecated and has no other way to tell.
    #[allow(deprecated)]
    dictionaries.extend(field.dict_id());
    of_type(field.data_type(), dictionaries);
}

fn of_type(data_type: &DataType, dictionaries: &mut Vec<i64>) {
    match data_type {
        DataType::Dictionary(_, values) => of_type(values, dictionaries),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => dictionaries_of(field, dictionaries),
        DataType::RunEndEncoded(_, values) => dictionaries_of(values, dictionaries),
        DataType::Struct(fields) => fields.iter().for_each(|field| dictionaries_of(field, dictionaries)),
        _ => {}
    }
}
