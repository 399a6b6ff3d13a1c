//! Record batches as Arrow streams in memory: spilled tuples and samples of tables. They are
//! checked like files.

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::ipc::{Block, MessageHeader};

use super::message::{Decoder, Layout, Prefix, body_len, message, schema};

/// Returns the first record batch of a stream.
///
/// # Errors
/// The bytes are damaged; the text describes how, and the caller adds their source.
pub fn first_batch(bytes: Vec<u8>) -> Result<RecordBatch, String> {
    let mut rest = Buffer::from(bytes);
    let mut decoder: Option<Decoder> = None;
    loop {
        let Prefix { prefix, description } =
            Prefix::of(&rest)?.ok_or("it ends before its tuples")?;
        if description == 0 {
            return Err("it ends before its tuples".to_string());
        }
        let head = prefix.checked_add(description).ok_or("a message is too long")?;
        let found = message(&rest)?;
        let body = body_len(&found)?;
        let whole = head.checked_add(body).filter(|whole| *whole <= rest.len());
        let whole = whole.ok_or("it ends inside a message")?;
        let description = i32::try_from(head).map_err(|_| "a message is too long")?;
        let (block, bytes) =
            (Block::new(0, description, body as i64), rest.slice_with_length(0, whole));
        match (found.header_type(), &mut decoder) {
            (MessageHeader::Schema, None) => {
                let said = found.header_as_schema().ok_or("a schema was expected")?;
                let layout = Layout { schema: schema(said)?, version: found.version() };
                let all: Vec<usize> = (0..layout.schema.fields().len()).collect();
                decoder = Some(Decoder::new(&layout, &all));
            }
            (MessageHeader::DictionaryBatch, Some(decoder)) => {
                decoder.check(&block, &bytes)?;
                decoder.dictionary(&block, &bytes)?;
            }
            (MessageHeader::RecordBatch, Some(decoder)) => {
                decoder.check(&block, &bytes)?;
                return decoder
                    .batch(&block, &bytes)?
                    .ok_or_else(|| "it has no tuples".to_string());
            }
            _ => return Err("a message that does not belong there".to_string()),
        }
        rest = rest.slice(whole);
    }
}
