//! Decodes the event stream of a select response: messages in frames with two checksums each.
//!
//! ```text
//! | total length: 4 | length of headers: 4 | CRC of these 8 bytes: 4 | headers | payload | CRC of all before: 4 |
//! ```
//!
//! Numbers are big endian. A header is a name (length: 1), a kind (1) and a value; the relevant
//! ones are strings (kind 7, length: 2). `:message-type` is `event` or `error`; `:event-type` is
//! `Records`, `Stats`, `Progress`, `Cont` or `End`. Only a stream that ends with `End` is complete.

use bytes::{Buf, Bytes, BytesMut};

/// The lengths and their checksum, before the headers.
const PRELUDE_BYTES: usize = 12;
/// The checksum after the payload.
const CRC_BYTES: usize = 4;
/// The longest message; stores send about 128 KiB.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// Bytes of records, which may end within a record.
    Records(Bytes),
    /// The bytes that the store scanned and returned.
    Stats { scanned: u64, returned: u64 },
    /// The response is complete.
    End,
    /// The request failed.
    Error { code: String, message: String },
    /// The store is still working.
    Alive,
}

/// An incremental decoder of the stream.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: BytesMut,
}

impl Decoder {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next message once it is complete.
    ///
    /// # Errors
    /// The bytes are malformed; describes how.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, String> {
        let Some(prelude) = self.buffer.get(..PRELUDE_BYTES) else { return Ok(None) };
        let number = |at: usize| {
            prelude[at..at + 4].iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte))
        };
        if crc32fast::hash(&prelude[..8]) != number(8) {
            return Err("the checksum of a message's lengths is wrong".to_string());
        }
        let (total, headers) = (number(0) as usize, number(4) as usize);
        let fits = total.checked_sub(PRELUDE_BYTES + CRC_BYTES).is_some_and(|rest| headers <= rest);
        if total > MESSAGE_BYTES_MAX || !fits {
            return Err(format!("invalid message length {total} with {headers} bytes of headers"));
        }
        let Some(message) = self.buffer.get(..total) else { return Ok(None) };
        let sum =
            message[total - CRC_BYTES..].iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte));
        if crc32fast::hash(&message[..total - CRC_BYTES]) != sum {
            return Err("the checksum of a message is wrong".to_string());
        }
        let mut message = self.buffer.split_to(total).freeze();
        message.truncate(total - CRC_BYTES);
        message.advance(PRELUDE_BYTES);
        let payload = message.split_off(headers);
        event(&message, payload).map(Some)
    }
}

fn event(headers: &[u8], payload: Bytes) -> Result<Event, String> {
    let headers = Headers::parse(headers).ok_or("the headers of a message end early")?;
    if headers.get(":message-type") == "error" {
        let text = |name| headers.get(name).to_string();
        return Ok(Event::Error { code: text(":error-code"), message: text(":error-message") });
    }
    Ok(match headers.get(":event-type") {
        "Records" => Event::Records(payload),
        "Stats" => {
            let text = String::from_utf8_lossy(&payload).into_owned();
            let number =
                |tag| element_text(&text, tag).and_then(|number| number.parse().ok()).unwrap_or(0);
            Event::Stats { scanned: number("BytesScanned"), returned: number("BytesReturned") }
        }
        "End" => Event::End,
        _ => Event::Alive,
    })
}

/// Returns the text of an element in a short XML document.
pub(crate) fn element_text<'a>(xml: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{tag}>"))?;
    Some(rest.split_once(&format!("</{tag}>"))?.0.trim())
}

/// The headers with string values.
struct Headers<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Headers<'a> {
    fn parse(mut bytes: &'a [u8]) -> Option<Headers<'a>> {
        let mut found = Vec::new();
        while let [len, rest @ ..] = bytes {
            let (name, rest) = rest.split_at_checked(usize::from(*len))?;
            let (kind, rest) = rest.split_first()?;
            let (value, rest) = match kind {
                0 | 1 => (&rest[..0], rest),
                2 => rest.split_at_checked(1)?,
                3 => rest.split_at_checked(2)?,
                4 => rest.split_at_checked(4)?,
                5 | 8 => rest.split_at_checked(8)?,
                6 | 7 => {
                    let (len, rest) = rest.split_first_chunk::<2>()?;
                    rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?
                }
                9 => rest.split_at_checked(16)?,
                _ => return None,
            };
            if *kind == 7 {
                found.push((std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?));
            }
            bytes = rest;
        }
        Some(Headers(found))
    }

    fn get(&self, name: &str) -> &'a str {
        self.0.iter().find(|(found, _)| *found == name).map_or("", |(_, value)| value)
    }
}

/// Extends the checksum `sum` by more bytes.
pub(crate) fn crc32_more(sum: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(sum);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
        let mut of_headers = Vec::new();
        for (name, value) in headers {
            of_headers.push(name.len() as u8);
            of_headers.extend_from_slice(name.as_bytes());
            of_headers.push(7);
            of_headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
            of_headers.extend_from_slice(value.as_bytes());
        }
        let total = PRELUDE_BYTES + of_headers.len() + payload.len() + CRC_BYTES;
        let mut out =
            [(total as u32).to_be_bytes(), (of_headers.len() as u32).to_be_bytes()].concat();
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out.extend_from_slice(&of_headers);
        out.extend_from_slice(payload);
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out
    }

    fn event_of(kind: &str, payload: &str) -> Vec<u8> {
        message(&[(":message-type", "event"), (":event-type", kind)], payload.as_bytes())
    }

    fn decoded(bytes: &[u8], step: usize) -> Result<Vec<Event>, String> {
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        for piece in bytes.chunks(step) {
            decoder.push(piece);
            while let Some(event) = decoder.next()? {
                events.push(event);
            }
        }
        Ok(events)
    }

    #[test]
    fn a_checksum_that_is_known() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        // The continuation message from Amazon's documentation.
        assert_eq!(
            crc32fast::hash(&[0, 0, 0, 57, 0, 0, 0, 41]),
            u32::from_be_bytes([139, 161, 157, 242])
        );
        assert_eq!(event_of("Cont", "")[..4], [0, 0, 0, 57]);
    }

    #[test]
    fn messages_in_pieces() {
        let stats =
            "<Stats><BytesScanned>512</BytesScanned><BytesReturned>7</BytesReturned></Stats>";
        let error =
            [(":message-type", "error"), (":error-code", "Busy"), (":error-message", "later")];
        let stream = [
            event_of("Records", "1,2\n3"),
            event_of("Cont", ""),
            event_of("Progress", stats),
            event_of("Stats", stats),
            event_of("End", ""),
            message(&error, b""),
        ]
        .concat();
        for step in [1, 3, 64, 10_000] {
            let expected = [
                Event::Records(Bytes::from_static(b"1,2\n3")),
                Event::Alive,
                Event::Alive,
                Event::Stats { scanned: 512, returned: 7 },
                Event::End,
                Event::Error { code: "Busy".to_string(), message: "later".to_string() },
            ];
            assert_eq!(decoded(&stream, step).unwrap(), expected, "{step}");
        }
        assert_eq!(
            decoded(&stream[..stream.len() - 1], 10_000).unwrap().len(),
            5,
            "the last one is not whole"
        );
    }

    #[test]
    fn lengths_that_cannot_be_are_errors() {
        for (total, headers) in
            [(0u32, 0u32), (8, 0), (15, 0), (16, 1), (u32::MAX, 0), (20, u32::MAX)]
        {
            let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
            bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
            bytes.extend_from_slice(&[0; 32]);
            let error = decoded(&bytes, 1_000).unwrap_err();
            assert!(error.contains("invalid message length"), "{total} {headers}: {error}");
        }
    }

    #[test]
    fn every_damaged_byte_is_found() {
        let whole = event_of("Records", "1,2\n");
        for position in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[position] ^= 0x10;
            assert!(decoded(&damaged, 10_000).is_err(), "{position}");
        }
    }
}
