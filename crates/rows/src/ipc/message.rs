//! Messages of Arrow IPC. Their lengths and offsets are checked before Arrow's decoder relies on
//! them, so that damaged bytes are an error and never allocate much memory.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::FileDecoder;
use arrow::ipc::{Block, Message, MessageHeader, MetadataVersion, root_as_message};

use tessera_context::guard::guarded;
use tessera_types::quote_name;

use super::shape::{check_batch, check_dictionary};

/// The first bytes of a message since version 0.15 of the format.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// The schema of a file.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Names and types of the columns.
    pub schema: Arc<Schema>,
    /// The format version of the messages.
    pub version: MetadataVersion,
}

/// Reads messages of one file or stream. Errors are texts, to which the caller adds the file name.
#[derive(Debug)]
pub struct Decoder {
    decoder: FileDecoder,
    layout: Layout,
    /// The requested columns, ascending.
    columns: Vec<usize>,
    /// Their dictionaries.
    dictionaries: Vec<i64>,
}

/// The prefix of a message: its own length, and the length of the description after it.
#[derive(Debug)]
pub struct Prefix {
    /// The bytes before the description.
    pub prefix: usize,
    /// 0 at the end of a stream.
    pub description: usize,
}

impl Prefix {
    /// Parses the prefix of a message; `None` if there are too few bytes.
    pub fn of(bytes: &[u8]) -> Result<Option<Prefix>, String> {
        let Some(first) = bytes.first_chunk::<4>() else { return Ok(None) };
        let (prefix, length) = match *first == CONTINUATION {
            false => (4, *first),
            true => match bytes.get(4..).and_then(|rest| rest.first_chunk::<4>()) {
                Some(length) => (8, *length),
                None => return Ok(None),
            },
        };
        let length = i32::from_le_bytes(length);
        let description =
            usize::try_from(length).map_err(|_| format!("a message of {length} bytes"))?;
        Ok(Some(Prefix { prefix, description }))
    }
}

/// Parses the message at the start of `bytes`, which include the prefix.
pub fn message(bytes: &[u8]) -> Result<Message<'_>, String> {
    let Some(Prefix { prefix, description }) = Prefix::of(bytes)? else {
        return Err("a message of a few bytes".to_string());
    };
    let description = bytes
        .get(prefix..prefix + description)
        .ok_or_else(|| "a message ends early".to_string())?;
    root_as_message(description).map_err(|error| error.to_string())
}

/// The number of bytes that follow a message's description.
pub fn body_len(message: &Message<'_>) -> Result<usize, String> {
    let length = message.bodyLength();
    usize::try_from(length).map_err(|_| format!("a message with a body of {length} bytes"))
}

/// Converts a schema from its flatbuffer form.
pub fn schema(schema: arrow::ipc::Schema<'_>) -> Result<Arc<Schema>, String> {
    let converted = guarded(|| fb_to_schema(schema));
    converted.map(Arc::new).ok_or_else(|| "its schema has types that are not known".to_string())
}

impl Decoder {
    /// Creates a decoder for the columns at these positions, ascending.
    pub fn new(layout: &Layout, columns: &[usize]) -> Decoder {
        let mut dictionaries = Vec::new();
        for field in columns.iter().filter_map(|column| layout.schema.fields().get(*column)) {
            dictionaries_of(field, &mut dictionaries);
        }
        let decoder = FileDecoder::new(layout.schema.clone(), layout.version);
        let decoder = decoder.with_projection(columns.to_vec());
        Decoder { decoder, layout: layout.clone(), columns: columns.to_vec(), dictionaries }
    }

    /// Checks the lengths of a message's arrays and buffers; returns the bytes that decoding
    /// allocates beyond the message itself.
    ///
    /// # Errors
    /// The lengths are inconsistent.
    pub fn check(&self, block: &Block, bytes: &[u8]) -> Result<usize, String> {
        let message = message(bytes)?;
        let body = usize::try_from(block.metaDataLength()).ok().and_then(|head| bytes.get(head..));
        let body = body.ok_or("a message ends early")?;
        match message.header_type() {
            MessageHeader::RecordBatch => {
                let batch =
                    message.header_as_record_batch().ok_or("a record batch was expected")?;
                check_batch(&self.layout, &self.columns, &batch, body)
            }
            MessageHeader::DictionaryBatch => {
                let dictionary =
                    message.header_as_dictionary_batch().ok_or("a dictionary was expected")?;
                let batch = dictionary.data().ok_or("a dictionary without values")?;
                #[allow(deprecated)]
                let fields = self.layout.schema.fields_with_dict_id(dictionary.id());
                match fields.first().map(|field| field.data_type()) {
                    Some(DataType::Dictionary(_, values)) => {
                        check_dictionary(&self.layout, values, &batch, body)
                    }
                    _ => Err(format!("dictionary {} is of no column", dictionary.id())),
                }
            }
            _ => Ok(0),
        }
    }

    /// Returns whether a requested column has a dictionary.
    pub fn has_dictionaries(&self) -> bool {
        !self.dictionaries.is_empty()
    }

    /// Reads a dictionary if a requested column uses it. `bytes` are the message and its body.
    pub fn dictionary(&mut self, block: &Block, bytes: &Buffer) -> Result<(), String> {
        let message = message(bytes)?;
        let batch = message.header_as_dictionary_batch().ok_or("a dictionary was expected")?;
        if !self.dictionaries.contains(&batch.id()) {
            return Ok(());
        }
        let decoded = guarded(|| self.decoder.read_dictionary(block, bytes));
        decoded.ok_or("a dictionary cannot be decoded")?.map_err(|error| error.to_string())
    }

    /// Decodes a record batch; returns `None` for another kind of message. `bytes` are the message
    /// and its body.
    pub fn batch(&self, block: &Block, bytes: &Buffer) -> Result<Option<RecordBatch>, String> {
        let decoded = guarded(|| self.decoder.read_record_batch(block, bytes));
        let decoded = match decoded {
            Some(Ok(batch)) => return Ok(batch),
            Some(Err(error)) => error.to_string(),
            None => "a record batch cannot be decoded".to_string(),
        };
        Err(match self.first_damaged(block, bytes) {
            Some(name) => format!("column {}: {decoded}", quote_name(name)),
            None => decoded,
        })
    }

    /// Returns the name of the first column that fails to decode by itself, for an error. Ignores
    /// columns with dictionaries.
    fn first_damaged(&self, block: &Block, bytes: &Buffer) -> Option<&str> {
        let fields = self.layout.schema.fields();
        let wanted = self.columns.iter().filter_map(|column| Some((*column, fields.get(*column)?)));
        let alone = |column| Decoder::new(&self.layout, &[column]);
        let fails = |decoder: &Decoder| {
            let decoded = guarded(|| decoder.decoder.read_record_batch(block, bytes));
            !decoder.has_dictionaries() && !matches!(decoded, Some(Ok(_)))
        };
        wanted
            .filter(|(column, _)| fails(&alone(*column)))
            .map(|(_, field)| field.name().as_str())
            .next()
    }
}

/// Collects the dictionaries that a field needs, including dictionaries of their values.
fn dictionaries_of(field: &Field, dictionaries: &mut Vec<i64>) {
    // Arrow deprecates the method but has no replacement.
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
        DataType::Struct(fields) => {
            fields.iter().for_each(|field| dictionaries_of(field, dictionaries))
        }
        _ => {}
    }
}
