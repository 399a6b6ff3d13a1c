//! Reads the parts of a workbook as XML, with bounds: a workbook is a small file that may stand for
//! a large one.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

use tessera_context::interrupt;
use tessera_types::{Error, Result};

use crate::archive::PartReader;

/// The most bytes of a tag or a text. A cell of Excel has at most 32,767 characters.
const TOKEN_BYTES_MAX: u64 = 16 << 20;
/// The bytes read at once.
const STEP_BYTES: usize = 64 << 10;
/// The tags between two looks at the interrupt.
const CHECKED_TAGS: u32 = 1_024;

/// The tags and texts of a part.
pub(super) struct Xml {
    name: String,
    reader: Reader<BufReader<Bounded>>,
    buffer: Vec<u8>,
    /// The bytes since the last token.
    passed: Arc<AtomicU64>,
    tags: u32,
}

/// A tag or a text.
pub(super) enum Token {
    Start(BytesStart<'static>),
    End,
    /// A part of a text.
    Text(String),
    Done,
}

/// Ends where a token is too long.
struct Bounded {
    part: PartReader,
    passed: Arc<AtomicU64>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.part.read(buffer)?;
        let passed = self.passed.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
        match passed > TOKEN_BYTES_MAX {
            true => Err(io::Error::other(format!(
                "a tag or text of more than {TOKEN_BYTES_MAX} bytes (TOKEN_BYTES_MAX)"
            ))),
            false => Ok(count),
        }
    }
}

impl Xml {
    pub(super) fn new(name: &str, part: PartReader) -> Xml {
        let passed = Arc::<AtomicU64>::default();
        let bounded = Bounded { part, passed: passed.clone() };
        let mut reader = Reader::from_reader(BufReader::with_capacity(STEP_BYTES, bounded));
        reader.config_mut().expand_empty_elements = true;
        Xml { name: name.to_string(), reader, buffer: Vec::new(), passed, tags: 0 }
    }

    /// Returns the next tag or text.
    ///
    /// # Errors
    /// The part is damaged, or the statement is cancelled.
    pub(super) fn next(&mut self) -> Result<Token> {
        self.tags += 1;
        if self.tags.is_multiple_of(CHECKED_TAGS) {
            interrupt::check_here()?;
        }
        let name = &self.name;
        let damaged = |what: &dyn std::fmt::Display| {
            Error::data(format!("the workbook is damaged: part '{name}': {what}"))
        };
        loop {
            self.buffer.clear();
            self.passed.store(0, Ordering::Relaxed);
            let event = self.reader.read_event_into(&mut self.buffer);
            match event.map_err(|error| damaged(&error))? {
                Event::Start(tag) => return Ok(Token::Start(tag.into_owned())),
                Event::End(_) => return Ok(Token::End),
                Event::Text(text) => {
                    let text = text.decode().map_err(|error| damaged(&error))?;
                    return Ok(Token::Text(text.into_owned()));
                }
                Event::CData(text) => {
                    let text = text.decode().map_err(|error| damaged(&error))?;
                    return Ok(Token::Text(text.into_owned()));
                }
                Event::GeneralRef(reference) => {
                    let known = reference.resolve_char_ref().map_err(|error| damaged(&error))?;
                    let text = match known {
                        Some(character) => character.to_string(),
                        None => {
                            let entity = reference.decode().map_err(|error| damaged(&error))?;
                            let known = resolve_predefined_entity(&entity);
                            known
                                .ok_or_else(|| damaged(&format!("unknown &{entity};")))?
                                .to_string()
                        }
                    };
                    return Ok(Token::Text(text));
                }
                Event::Eof => return Ok(Token::Done),
                _ => {}
            }
        }
    }

    /// Skips the rest of the element whose start was read last.
    ///
    /// # Errors
    /// As [`Xml::next`].
    pub(super) fn skip(&mut self) -> Result<()> {
        let mut depth = 1_u64;
        while depth > 0 {
            match self.next()? {
                Token::Start(_) => depth += 1,
                Token::End => depth -= 1,
                Token::Text(_) => {}
                Token::Done => return Ok(()),
            }
        }
        Ok(())
    }

    /// Appends the text of the element whose start was read last, without that of elements in it.
    ///
    /// # Errors
    /// As [`Xml::next`].
    pub(super) fn text(&mut self, out: &mut String) -> Result<()> {
        loop {
            match self.next()? {
                Token::Text(text) if out.len() as u64 <= TOKEN_BYTES_MAX => out.push_str(&text),
                Token::Text(_) => {
                    return Err(Error::data(format!(
                        "the workbook is damaged: part '{}': a text of more than {TOKEN_BYTES_MAX} bytes (TOKEN_BYTES_MAX)",
                        self.name
                    )));
                }
                Token::Start(_) => self.skip()?,
                Token::End | Token::Done => return Ok(()),
            }
        }
    }
}

/// Returns an attribute of a tag, by its name without a prefix.
pub(super) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    let named = attributes
        .with_checks(false)
        .filter_map(std::result::Result::ok)
        .find(|attribute| attribute.key.local_name().as_ref() == name.as_bytes());
    named?.normalized_value(XmlVersion::Implicit1_0).ok().map(|value| value.into_owned())
}

/// Whether a tag has this name, without its prefix.
pub(super) fn is(tag: &BytesStart<'_>, name: &str) -> bool {
    tag.local_name().as_ref() == name.as_bytes()
}
