//! As much of an HTTP server as two small services need: a thread per connection.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use crate::faults::{Chooser, Fault};

/// The longest line of a request's head, and the most lines.
const LINE_BYTES_MAX: u64 = 64 << 10;
const LINES_MAX: usize = 128;
/// The longest body.
const BODY_BYTES_MAX: usize = 5 << 30;

/// A request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the slash at its start, decoded.
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.query.contains_key(name)
    }
}

/// An answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }
}

/// What answers.
pub(crate) trait Service: Send + Sync + 'static {
    fn answer(&self, request: &Request) -> Answer;

    /// Whether it may go wrong, and whether it must be signed.
    fn is_public(&self, _request: &Request) -> bool {
        true
    }
}

/// Listens on a port of this machine for requests signed with this key, or for all where there is none; gives the address.
pub(crate) fn listen(
    name: &str,
    key: &str,
    faults: Chooser,
    service: Arc<impl Service>,
) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    let (key, faults) = (Arc::<str>::from(key), Arc::new(faults));
    std::thread::Builder::new().name(name.to_string()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let (key, faults, service) = (key.clone(), faults.clone(), service.clone());
            let talk = move || drop(converse(stream, &key, &faults, &*service));
            drop(std::thread::Builder::new().stack_size(256 << 10).spawn(talk));
        }
    })?;
    Ok(address)
}

fn converse(stream: TcpStream, key: &str, faults: &Chooser, service: &impl Service) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::with_capacity(64 << 10, stream.try_clone()?);
    let mut output = stream;
    while let Some(request) = read_request(&mut input, &mut output)? {
        let public = service.is_public(&request);
        let signed = key.is_empty() || request.header("authorization").is_some_and(|text| text.contains(key));
        let fault = if public { faults.choose() } else { None };
        let answer = match fault {
            _ if public && !signed => Answer::new(
                403,
                "<Error><Code>AccessDenied</Code><Message>another's service</Message></Error>",
            ),
            Some(Fault::Reset) => return output.shutdown(Shutdown::Both),
            Some(Fault::Status(status)) => {
                Answer::new(status, "<Error><Code>SlowDown</Code><Message>told to fail</Message></Error>")
            }
            Some(Fault::Late(time)) => {
                std::thread::sleep(time);
                service.answer(&request)
            }
            Some(Fault::Cut) | None => service.answer(&request),
        };
        let len = answer.body.len();
        let sent = if fault == Some(Fault::Cut) { len / 2 } else { len };
        let mut head = format!("HTTP/1.1 {} -\r\nServer: Tessera\r\n", answer.status);
        if request.method != "HEAD" {
            head += &format!("Content-Length: {len}\r\n");
        }
        for (name, value) in &answer.headers {
            head += &format!("{name}: {value}\r\n");
        }
        output.write_all(format!("{head}\r\n").as_bytes())?;
        if request.method != "HEAD" {
            output.write_all(&answer.body[..sent])?;
        }
        if fault == Some(Fault::Cut) {
            return output.shutdown(Shutdown::Both);
        }
    }
    Ok(())
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn read_line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    input.take(LINE_BYTES_MAX).read_line(&mut line)?;
    Ok(line)
}

fn read_request(input: &mut impl BufRead, output: &mut impl Write) -> io::Result<Option<Request>> {
    let line = read_line(input)?;
    if line.is_empty() {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let mut request = Request {
        method: method.to_string(),
        path: decode(path.trim_start_matches('/'), false),
        query: pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                (decode(name, true), decode(value, true))
            })
            .collect(),
        ..Request::default()
    };
    for _ in 0..LINES_MAX {
        let line = read_line(input)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
    }
    if request.header("expect").is_some() {
        output.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if request.header("transfer-encoding").is_some_and(|how| how.contains("chunked")) {
        request.body = read_chunks(input)?;
    } else {
        let len: usize =
            request.header("content-length").map_or(Ok(0), str::parse).map_err(|_| bad("length"))?;
        read_bytes(input, len, &mut request.body)?;
    }
    Ok(Some(request))
}

fn read_bytes(input: &mut impl BufRead, len: usize, body: &mut Vec<u8>) -> io::Result<()> {
    if len > BODY_BYTES_MAX - body.len() {
        return Err(bad("a body that is too long"));
    }
    // What is said is not yet there.
    let read = input.take(len as u64).read_to_end(body)?;
    if read == len { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn read_chunks(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(input)?;
        let digits = line.trim().split(';').next().unwrap_or_default();
        let len = usize::from_str_radix(digits, 16).map_err(|_| bad("chunk"))?;
        read_bytes(input, len, &mut body)?;
        read_line(input)?;
        if len == 0 {
            return Ok(body);
        }
    }
}

fn decode(text: &str, plus_is_space: bool) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match (bytes[at], hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 2;
            }
            (b'+', _) if plus_is_space => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let text = "PUT /b/a%20b%2Bc?x=1&list-type HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET /";
        let mut input = text.as_bytes();
        let request = read_request(&mut input, &mut Vec::new()).unwrap().unwrap();
        assert_eq!((&*request.method, &*request.path, &*request.body), ("PUT", "b/a b+c", &b"abcde"[..]));
        assert!(request.has("list-type") && request.query["x"] == "1");
        assert_eq!(input, b"GET /");
        let mut short = &b"PUT /b/k HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"[..];
        assert!(read_request(&mut short, &mut Vec::new()).is_err());
        assert!(read_request(&mut &b""[..], &mut Vec::new()).unwrap().is_none());
    }
}
