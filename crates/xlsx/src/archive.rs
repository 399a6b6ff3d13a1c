//! The parts of a ZIP archive, which is what a workbook is. The archive is in memory; a part is
//! inflated while it is read, and checked against its length and checksum.

use std::io::{self, Cursor, Read};

use bytes::Bytes;
use flate2::bufread::DeflateDecoder;

use tessera_types::{Error, Result};

/// The end of the directory: its signature, and its bytes without a comment.
const END: (&[u8], usize) = (b"PK\x05\x06", 22);
/// The place of the end of a large archive's directory.
const END64_PLACE: (&[u8], usize) = (b"PK\x06\x07", 20);
/// The end of a large archive's directory.
const END64: (&[u8], usize) = (b"PK\x06\x06", 56);
/// An entry of the directory, without its name.
const ENTRY: (&[u8], usize) = (b"PK\x01\x02", 46);
/// The header of a part, without its name.
const PART: (&[u8], usize) = (b"PK\x03\x04", 30);
/// The longest comment.
const COMMENT_BYTES_MAX: usize = 65_535;
/// Deflate makes at most this of a byte.
const RATIO_MAX: u64 = 1_032;

/// An archive.
#[derive(Debug)]
pub(super) struct Archive {
    bytes: Bytes,
    parts: Vec<Part>,
}

/// A part of an archive.
#[derive(Debug, Clone)]
struct Part {
    name: String,
    flags: u16,
    method: u16,
    checksum: u32,
    packed: u64,
    len: u64,
    offset: u64,
}

/// The error of an archive that ends early or names places beyond its end.
fn damaged(what: &str) -> Error {
    Error::data(format!(
        "the file is not an Excel workbook, or it is damaged: {what}; save it again as .xlsx"
    ))
}

/// A fixed part of an archive.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    /// Reads `(signature, bytes)` at a place.
    fn at<'a>(
        bytes: &'a [u8],
        place: usize,
        (signature, len): (&[u8], usize),
    ) -> Result<Fields<'a>> {
        let fields = place.checked_add(len).and_then(|end| bytes.get(place..end));
        match fields {
            Some(fields) if fields.starts_with(signature) => Ok(Fields(fields)),
            _ => Err(damaged("its directory of parts is not complete")),
        }
    }

    fn number(&self, at: usize, len: usize) -> u64 {
        let bytes = self.0.get(at..at + len).unwrap_or_default();
        bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

impl Archive {
    /// Reads the directory of an archive.
    ///
    /// # Errors
    /// It is none, or damaged.
    pub(super) fn new(bytes: Bytes) -> Result<Archive> {
        if bytes.starts_with(b"\xd0\xcf\x11\xe0") {
            return Err(Error::unsupported(
                "the workbook is encrypted, or of an Excel before 2007; save it as .xlsx without a password",
            ));
        }
        let search = bytes.len().saturating_sub(END.1 + COMMENT_BYTES_MAX);
        let is_end = |place: &usize| bytes[*place..].starts_with(END.0);
        let end = (search..bytes.len().saturating_sub(END.1 - 1)).rev().find(is_end);
        let end = end.ok_or_else(|| damaged("it has no directory of parts"))?;
        let fields = Fields::at(&bytes, end, END)?;
        let (mut count, mut start) = (fields.number(10, 2), fields.number(16, 4));
        if count == 0xffff || start == 0xffff_ffff {
            let place = end.checked_sub(END64_PLACE.1).unwrap_or(bytes.len());
            let at = Fields::at(&bytes, place, END64_PLACE)?.number(8, 8);
            let fields = Fields::at(&bytes, at.try_into().unwrap_or(usize::MAX), END64)?;
            (count, start) = (fields.number(32, 8), fields.number(48, 8));
        }
        let mut place = usize::try_from(start).unwrap_or(usize::MAX);
        let mut parts = Vec::new();
        for _ in 0..count {
            let fields = Fields::at(&bytes, place, ENTRY)?;
            let [name, extra, comment] = [28, 30, 32].map(|at| fields.number(at, 2) as usize);
            let behind = place + ENTRY.1;
            let texts = bytes.get(behind..behind + name + extra).unwrap_or_default();
            let (name_bytes, extra_bytes) = texts.split_at(name.min(texts.len()));
            let mut part = Part {
                name: String::from_utf8_lossy(name_bytes).replace('\\', "/"),
                flags: fields.number(8, 2) as u16,
                method: fields.number(10, 2) as u16,
                checksum: fields.number(16, 4) as u32,
                packed: fields.number(20, 4),
                len: fields.number(24, 4),
                offset: fields.number(42, 4),
            };
            part.widen(extra_bytes);
            parts.push(part);
            place = behind + name + extra + comment;
        }
        Ok(Archive { bytes, parts })
    }

    /// Opens a part, by its name in any case; `None` if there is none.
    ///
    /// # Errors
    /// It is damaged, encrypted, or compressed in an unusual way.
    pub(super) fn open(&self, name: &str) -> Result<Option<PartReader>> {
        let Some(part) = self.parts.iter().find(|part| part.name.eq_ignore_ascii_case(name)) else {
            return Ok(None);
        };
        let damaged = || damaged(&format!("part '{name}' is not complete"));
        if part.flags & 1 != 0 {
            return Err(Error::unsupported(
                "the workbook is encrypted; save it without a password",
            ));
        }
        let place = usize::try_from(part.offset).map_err(|_| damaged())?;
        let fields = Fields::at(&self.bytes, place, PART)?;
        let start = place + PART.1 + (fields.number(26, 2) + fields.number(28, 2)) as usize;
        let packed = usize::try_from(part.packed).map_err(|_| damaged())?;
        let end = start.checked_add(packed).filter(|end| *end <= self.bytes.len());
        let packed = Cursor::new(self.bytes.slice(start..end.ok_or_else(damaged)?));
        let source = match part.method {
            0 => Source::Stored(packed),
            // What cannot be true need not be tried.
            8 if part.len > part.packed.saturating_mul(RATIO_MAX) => return Err(damaged()),
            8 => Source::Deflated(DeflateDecoder::new(packed)),
            method => {
                return Err(Error::unsupported(format!(
                    "part '{name}' of the workbook is compressed with method {method}; save it again with Excel or LibreOffice"
                )));
            }
        };
        let hasher = crc32fast::Hasher::new();
        Ok(Some(PartReader { source, left: part.len, checksum: part.checksum, hasher }))
    }
}

impl Part {
    /// Takes the numbers that do not fit 32 bits from the extra fields.
    fn widen(&mut self, mut extra: &[u8]) {
        while extra.len() >= 4 {
            let fields = Fields(extra);
            let (id, len) = (fields.number(0, 2), fields.number(2, 2) as usize);
            let end = extra.len().min(4 + len);
            if id == 1 {
                let (body, mut at) = (Fields(&extra[4..end]), 0);
                for number in [&mut self.len, &mut self.packed, &mut self.offset] {
                    if *number == 0xffff_ffff {
                        *number = body.number(at, 8);
                        at += 8;
                    }
                }
            }
            extra = &extra[end..];
        }
    }
}

/// Reads a part.
#[derive(Debug)]
pub(super) struct PartReader {
    source: Source,
    /// The bytes that must come.
    left: u64,
    checksum: u32,
    hasher: crc32fast::Hasher,
}

#[derive(Debug)]
enum Source {
    Stored(Cursor<Bytes>),
    Deflated(DeflateDecoder<Cursor<Bytes>>),
}

impl Read for PartReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.source {
            Source::Stored(bytes) => bytes.read(buffer)?,
            Source::Deflated(decoder) => decoder.read(buffer)?,
        };
        self.hasher.update(&buffer[..count]);
        let left = self.left.checked_sub(count as u64);
        self.left = left.ok_or_else(|| io::Error::other("it is longer than it says"))?;
        if count > 0 || buffer.is_empty() {
            return Ok(count);
        }
        let is_whole = self.left == 0 && self.hasher.clone().finalize() == self.checksum;
        match is_whole {
            true => Ok(0),
            false => Err(io::Error::other("its bytes are not those of its checksum")),
        }
    }
}
