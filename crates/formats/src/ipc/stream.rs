//! Reads the stream format of Arrow IPC: messages in sequence.

use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::ipc::{Block, MessageHeader};

use tessera_context::{RangeReader, Read, ReadBuffer, Reservation, Token};
use tessera_rows::ipc::message::{Decoder, Layout, Prefix, body_len, message};
use tessera_types::{Error, Result};

use super::damaged;

/// The bytes per read.
const STREAM_BYTES: u64 = 1 << 20;
/// The number of concurrent reads.
const STREAM_READS: u64 = 8;

/// The state of reading a stream.
pub(super) struct Stream {
    decoder: Decoder,
    len: u64,
    /// The position up to which bytes were received.
    position: u64,
    /// Received bytes, including those of messages that are not decoded yet.
    bytes: Vec<u8>,
    /// The number of decoded bytes in `bytes`.
    used: usize,
    ended: bool,
}

/// The next item of a stream.
pub(super) enum Next {
    Batch(RecordBatch),
    Blocked(Token),
    End,
}

impl Stream {
    /// Creates a reader of a stream of `len` bytes that decodes the columns at these positions.
    pub(super) fn new(layout: &Layout, columns: &[usize], len: u64) -> Stream {
        let decoder = Decoder::new(layout, columns);
        Stream { decoder, len, position: 0, bytes: Vec::new(), used: 0, ended: false }
    }

    /// Decodes up to the next record batch.
    pub(super) fn next(
        &mut self,
        source: &dyn RangeReader,
        reservation: &mut Reservation,
    ) -> Result<Next> {
        let path = source.path();
        loop {
            if self.ended {
                return Ok(Next::End);
            }
            let at = self.position - (self.bytes.len() - self.used) as u64;
            let failed = |error: String| damaged(path, format!("message at byte {at}: {error}"));
            let Some(len) = self.message_len().map_err(failed)? else {
                if self.position == self.len {
                    self.ended = true;
                    return match self.bytes.len() == self.used {
                        true => Ok(Next::End),
                        false => Err(damaged(path, "it ends inside a message")),
                    };
                }
                if let Some(token) = self.fetch(source, reservation)? {
                    return Ok(Next::Blocked(token));
                }
                continue;
            };
            if len == 0 {
                self.ended = true;
                return Ok(Next::End);
            }
            // Copied, because Arrow requires aligned bytes.
            let bytes = Buffer::from_slice_ref(&self.bytes[self.used..self.used + len]);
            self.used += len;
            if let Some(batch) = self.decode(&bytes, reservation, &failed)? {
                return Ok(Next::Batch(batch));
            }
        }
    }

    /// Returns the length of the next message with its body once it is complete; 0 at the end.
    fn message_len(&self) -> Result<Option<usize>, String> {
        let bytes = &self.bytes[self.used..];
        let Some(Prefix { prefix, description }) = Prefix::of(bytes)? else { return Ok(None) };
        if description == 0 {
            return Ok(Some(0));
        }
        let head = prefix + description;
        let left = (self.len - self.position) as usize + bytes.len();
        if head > left {
            return Err("it ends inside a message".to_string());
        }
        if head > bytes.len() {
            return Ok(None);
        }
        let body = body_len(&message(bytes)?)?;
        let whole = head.checked_add(body).filter(|whole| *whole <= left);
        let whole = whole.ok_or_else(|| "it ends inside a message".to_string())?;
        Ok((whole <= bytes.len()).then_some(whole))
    }

    /// Fetches more bytes. Returns a token while they have not arrived.
    fn fetch(
        &mut self,
        source: &dyn RangeReader,
        reservation: &mut Reservation,
    ) -> Result<Option<Token>> {
        source.prefetch(&self.ahead())?;
        let Range { start, end } = self.ahead()[0].clone();
        self.bytes.drain(..self.used);
        self.used = 0;
        reservation.resize(self.bytes.len() + (end - start) as usize)?;
        match source.read_into(start..end, ReadBuffer::default())? {
            Read::Ready(bytes) => {
                self.bytes.extend_from_slice(&bytes);
                self.position = end;
                Ok(None)
            }
            Read::Blocked(token) => Ok(Some(token)),
        }
    }

    /// The next range and those that are prefetched with it.
    fn ahead(&self) -> Vec<Range<u64>> {
        let start = |read: u64| (self.position + read * STREAM_BYTES).min(self.len);
        let ranges = (0..STREAM_READS).map(|read| start(read)..start(read + 1));
        ranges.filter(|range| range.start < range.end).collect()
    }

    fn decode(
        &mut self,
        bytes: &Buffer,
        reservation: &mut Reservation,
        failed: &dyn Fn(String) -> Error,
    ) -> Result<Option<RecordBatch>> {
        let message = message(bytes).map_err(failed)?;
        let body = body_len(&message).map_err(failed)?;
        let head = bytes.len() - body;
        let description = i32::try_from(head).map_err(|_| failed("it is too long".to_string()))?;
        let block = Block::new(0, description, body as i64);
        let more = self.decoder.check(&block, bytes).map_err(failed)?;
        // Dictionaries are held as long as the stream.
        reservation.resize(self.bytes.len() + bytes.len())?;
        reservation.grow(more)?;
        match message.header_type() {
            MessageHeader::DictionaryBatch => {
                self.decoder.dictionary(&block, bytes).map_err(failed).map(|()| None)
            }
            MessageHeader::RecordBatch => self.decoder.batch(&block, bytes).map_err(failed),
            _ => Ok(None),
        }
    }
}
