//! Reads and authorizes requests.

use std::io::{self, BufRead, Read, Write};

use ring::digest::{Context, SHA256};

use super::{Answer, Body, Request, Service, Sink};
use crate::access::{Access, hex, signed_digest};

/// The maximum length of a line of a request's head, and the maximum number of lines.
const LINE_BYTES_MAX: u64 = 16 << 10;
const LINES_MAX: usize = 100;

/// The reason why a request was not read.
#[derive(Debug)]
pub(super) enum Refusal {
    Answer(Answer),
    Lost(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Lost(error)
    }
}

fn bad() -> Refusal {
    Refusal::Answer(Answer::error(400, "InvalidRequest"))
}

fn too_long() -> Refusal {
    Refusal::Answer(Answer::error(413, "EntityTooLarge"))
}

fn read_line(input: &mut impl BufRead) -> Result<String, Refusal> {
    let mut line = Vec::new();
    input.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    match String::from_utf8(line) {
        Ok(line) if line.ends_with('\n') || line.is_empty() => Ok(line),
        _ => Err(bad()),
    }
}

pub(super) fn read_request(
    input: &mut impl BufRead,
    output: &mut impl Write,
    access: &Access,
    service: &impl Service,
) -> Result<Option<Request>, Refusal> {
    let Some(mut request) = read_head(input)? else { return Ok(None) };
    match receive(&mut request, (input, output), access, service) {
        // The answer to HEAD has no body.
        Err(Refusal::Answer(answer)) if request.method == "HEAD" => {
            Err(Refusal::Answer(Answer { body: Vec::new(), ..answer }))
        }
        Err(refusal) => Err(refusal),
        Ok(()) => Ok(Some(request)),
    }
}

/// Reads the body of a request if it is authorized.
fn receive(
    request: &mut Request,
    (input, output): (&mut impl BufRead, &mut impl Write),
    access: &Access,
    service: &impl Service,
) -> Result<(), Refusal> {
    if !access.allows(request) {
        return Err(Refusal::Answer(Answer::error(403, "AccessDenied")));
    }
    let sink = service.sink(request).map_err(Refusal::Answer)?;
    let chunked = request.header("transfer-encoding").is_some_and(|how| how.contains("chunked"));
    let len =
        request.header("content-length").map_or(Ok(0), str::parse::<u64>).map_err(|_| bad())?;
    let max = match &sink {
        Sink::Memory(max) | Sink::File(_, _, max) => *max,
    };
    if !chunked && len > max {
        return Err(too_long());
    }
    if request.header("expect").is_some() {
        output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let mut digest = signed_digest(request).map(|_| Context::new(&SHA256));
    let len = if chunked { None } else { Some(len) };
    request.body = match sink {
        Sink::Memory(_) => {
            let mut bytes = Vec::new();
            read_body(input, (len, max), &mut digest, &mut bytes)?;
            Body::Memory(bytes)
        }
        Sink::File(spooled, mut file, _) => {
            read_body(input, (len, max), &mut digest, &mut file)?;
            Body::File(spooled)
        }
    };
    let found = digest.map(|digest| hex(digest.finish().as_ref()));
    if signed_digest(request) != found.as_deref() {
        return Err(Refusal::Answer(Answer::error(400, "XAmzContentSHA256Mismatch")));
    }
    Ok(())
}

fn read_head(input: &mut impl BufRead) -> Result<Option<Request>, Refusal> {
    let line = read_line(input)?;
    if line.is_empty() {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        method: method.to_string(),
        raw_path: path.to_string(),
        path: path.strip_prefix('/').and_then(|path| decode(path, false)).ok_or_else(bad)?,
        ..Request::default()
    };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let pair = decode(name, true).zip(decode(value, true)).ok_or_else(bad)?;
        request.query.insert(pair.0, pair.1);
    }
    for _ in 0..LINES_MAX {
        let line = read_line(input)?;
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(Some(request));
        }
        let (name, value) = line.split_once(':').ok_or_else(bad)?;
        let value = value.trim();
        let values = request.headers.entry(name.to_ascii_lowercase()).or_default();
        *values = if values.is_empty() { value.to_string() } else { format!("{values},{value}") };
    }
    Err(bad())
}

/// Reads a body of known length or in chunks, up to its maximum size.
fn read_body(
    input: &mut impl BufRead,
    (len, max): (Option<u64>, u64),
    digest: &mut Option<Context>,
    out: &mut impl Write,
) -> Result<(), Refusal> {
    if let Some(len) = len {
        return read_bytes(input, len, digest, out);
    }
    let mut left = max;
    loop {
        let line = read_line(input)?;
        let digits = line.trim().split(';').next().unwrap_or_default();
        let len = u64::from_str_radix(digits, 16).map_err(|_| bad())?;
        left = left.checked_sub(len).ok_or_else(too_long)?;
        read_bytes(input, len, digest, out)?;
        read_line(input)?;
        if len == 0 {
            return Ok(());
        }
    }
}

fn read_bytes(
    input: &mut impl BufRead,
    mut len: u64,
    digest: &mut Option<Context>,
    out: &mut impl Write,
) -> Result<(), Refusal> {
    let mut failed = None;
    while len > 0 {
        let piece = input.fill_buf()?;
        if piece.is_empty() {
            return Err(Refusal::Lost(io::ErrorKind::UnexpectedEof.into()));
        }
        let piece = &piece[..piece.len().min(usize::try_from(len).unwrap_or(usize::MAX))];
        if let Some(digest) = digest {
            digest.update(piece);
        }
        // Reads on if the disk is full: a client that is still sending would miss the answer.
        if failed.is_none() {
            failed = out.write_all(piece).err();
        }
        let read = piece.len();
        input.consume(read);
        len -= read as u64;
    }
    failed.map_or(Ok(()), |error| Err(Refusal::Answer(Answer::failed(&error))))
}

/// Decodes percent-encoded text once; `None` if it is malformed or not UTF-8.
fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let digits = bytes
                    .get(at + 1..at + 3)
                    .filter(|pair| pair.iter().all(u8::is_ascii_hexdigit))?;
                out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                at += 2;
            }
            b'+' if plus_is_space => out.push(b' '),
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests;
