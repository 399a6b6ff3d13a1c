//! As much of an HTTP server as two small services need: a thread per connection.
//!
//! A request's head is read first; nothing of its body is, before the head has shown that it may
//! ask ([`Access`]).

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ring::digest::{Context, SHA256};

use crate::access::{Access, hex, signed_digest};
use crate::faults::{Chooser, Fault};

/// The longest line of a request's head, and the most lines.
const LINE_BYTES_MAX: u64 = 16 << 10;
const LINES_MAX: usize = 100;
/// A connection on which nothing comes for so long is closed; clients keep theirs for a shorter
/// time.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// What is still read of a request that was refused, so that its sender sees the answer.
const REFUSED_BYTES_MAX: u64 = 8 << 20;
const REFUSED_MAX: Duration = Duration::from_secs(1);
/// Bytes that are copied at once.
const PIECE_BYTES: usize = 64 << 10;

/// A request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path as it came, which is signed.
    pub(crate) raw_path: String,
    /// Without the slash at its start, decoded.
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    /// By names in small letters; several values of a name are one, with commas.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Body,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.query.contains_key(name)
    }
}

/// A request's body.
#[derive(Debug)]
pub(crate) enum Body {
    Memory(Vec<u8>),
    File(Spooled),
}

impl Default for Body {
    fn default() -> Body {
        Body::Memory(Vec::new())
    }
}

impl Body {
    /// The bytes in memory; none of what is in a file.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Body::Memory(bytes) => bytes,
            Body::File(_) => &[],
        }
    }
}

/// A file that holds a body; it is deleted with this, unless it was moved.
#[derive(Debug)]
pub(crate) struct Spooled {
    pub(crate) path: PathBuf,
}

impl Drop for Spooled {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// Where a body goes, and how many bytes it may have.
pub(crate) enum Sink {
    Memory(u64),
    File(Spooled, File, u64),
}

/// An answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// In the place of `body`: so many bytes of a file.
    pub(crate) file: Option<(File, u64)>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, body: body.into(), ..Answer::default() }
    }

    /// An error as S3 says it.
    pub(crate) fn error(status: u16, code: &str) -> Answer {
        Answer::new(status, format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>"))
    }

    /// An error of the service's own, such as a disk that is full.
    pub(crate) fn failed(io: &io::Error) -> Answer {
        Answer::new(
            500,
            format!("<Error><Code>InternalError</Code><Message>{io}</Message></Error>"),
        )
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }
}

/// What answers.
pub(crate) trait Service: Send + Sync + 'static {
    fn answer(&self, request: &Request) -> Answer;

    /// Where the body of a request goes whose head is this, or the answer that refuses it.
    fn sink(&self, request: &Request) -> Result<Sink, Answer>;

    /// Whether faults may happen to it.
    fn may_fail(&self, _request: &Request) -> bool {
        true
    }
}

/// Listens on a port of this machine, for no other one; gives the address.
pub(crate) fn listen(
    name: &str,
    access: Access,
    faults: Chooser,
    service: Arc<impl Service>,
) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    let (access, faults) = (Arc::new(access), Arc::new(faults));
    std::thread::Builder::new().name(name.to_string()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let (access, faults, service) = (access.clone(), faults.clone(), service.clone());
            let talk = move || drop(converse(stream, &access, &faults, &*service));
            drop(std::thread::Builder::new().stack_size(256 << 10).spawn(talk));
        }
    })?;
    Ok(address)
}

fn converse(
    stream: TcpStream,
    access: &Access,
    faults: &Chooser,
    service: &impl Service,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE_MAX))?;
    let mut input = BufReader::with_capacity(PIECE_BYTES, stream.try_clone()?);
    let mut output = stream;
    loop {
        let request = match read_request(&mut input, &mut output, access, service) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(Refusal::Answer(answer)) => return refuse(answer, input, output),
            Err(Refusal::Lost(error)) => return Err(error),
        };
        let fault = if service.may_fail(&request) { faults.choose() } else { None };
        let answer = match fault {
            Some(Fault::Reset) => return output.shutdown(Shutdown::Both),
            Some(Fault::Status(status)) => Answer::new(
                status,
                "<Error><Code>SlowDown</Code><Message>told to fail</Message></Error>",
            ),
            Some(Fault::Late(time)) => {
                std::thread::sleep(time);
                service.answer(&request)
            }
            Some(Fault::Cut) | None => service.answer(&request),
        };
        send(answer, &request.method, fault == Some(Fault::Cut), &mut output)?;
        if fault == Some(Fault::Cut) {
            return output.shutdown(Shutdown::Both);
        }
    }
}

/// Reads requests and answers them as a connection does, until there are no more or one is refused;
/// `seen` gets each answer and the request's method.
#[cfg(any(test, fuzzing))]
pub(crate) fn talk(
    input: &mut impl BufRead,
    output: &mut impl Write,
    access: &Access,
    service: &impl Service,
    seen: impl Fn(Answer, &str),
) -> io::Result<()> {
    loop {
        match read_request(input, output, access, service) {
            Ok(Some(request)) => seen(service.answer(&request), &request.method),
            Ok(None) => return Ok(()),
            Err(Refusal::Answer(answer)) => {
                seen(answer, "refused");
                return Ok(());
            }
            Err(Refusal::Lost(error)) => return Err(error),
        }
    }
}

/// Sends an answer, or half of its body.
fn send(answer: Answer, method: &str, cut: bool, output: &mut TcpStream) -> io::Result<()> {
    let len = answer.file.as_ref().map_or(answer.body.len() as u64, |(_, len)| *len);
    let sent = if cut { len / 2 } else { len };
    let mut head = format!("HTTP/1.1 {} -\r\nServer: Tessera\r\n", answer.status);
    if method != "HEAD" {
        head += &format!("Content-Length: {len}\r\n");
    }
    for (name, value) in &answer.headers {
        head += &format!("{name}: {value}\r\n");
    }
    output.write_all(format!("{head}\r\n").as_bytes())?;
    if method == "HEAD" {
        return Ok(());
    }
    match answer.file {
        None => output.write_all(&answer.body[..sent as usize]),
        Some((file, _)) => match io::copy(&mut file.take(sent), output)? == sent {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        },
    }
}

/// Answers a request whose body may not be read, and ends the connection.
fn refuse(
    answer: Answer,
    mut input: BufReader<TcpStream>,
    mut output: TcpStream,
) -> io::Result<()> {
    send(answer.with("Connection", "close"), "", false, &mut output)?;
    output.shutdown(Shutdown::Write)?;
    output.set_read_timeout(Some(REFUSED_MAX))?;
    io::copy(&mut input.by_ref().take(REFUSED_BYTES_MAX), &mut io::sink()).map(drop)
}

/// Why there is no request.
#[derive(Debug)]
enum Refusal {
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

fn read_request(
    input: &mut impl BufRead,
    output: &mut impl Write,
    access: &Access,
    service: &impl Service,
) -> Result<Option<Request>, Refusal> {
    let Some(mut request) = read_head(input)? else { return Ok(None) };
    match receive(&mut request, (input, output), access, service) {
        // There is no body behind the answer to HEAD.
        Err(Refusal::Answer(answer)) if request.method == "HEAD" => {
            Err(Refusal::Answer(Answer { body: Vec::new(), ..answer }))
        }
        Err(refusal) => Err(refusal),
        Ok(()) => Ok(Some(request)),
    }
}

/// Reads the body of a request that may be made.
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

/// Reads a body of a known length, or one in chunks, and no more than it may have.
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
        // The connection is well: it is the disk that is full. A client that is still sending would
        // miss the answer.
        if failed.is_none() {
            failed = out.write_all(piece).err();
        }
        let read = piece.len();
        input.consume(read);
        len -= read as u64;
    }
    failed.map_or(Ok(()), |error| Err(Refusal::Answer(Answer::failed(&error))))
}

/// Percent-encoded text, decoded once; none where it is malformed or not UTF-8.
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
mod tests {
    use super::*;

    struct Any;

    impl Service for Any {
        fn answer(&self, _request: &Request) -> Answer {
            Answer::default()
        }

        fn sink(&self, _request: &Request) -> Result<Sink, Answer> {
            Ok(Sink::Memory(5))
        }
    }

    fn read(text: &str) -> Result<Option<Request>, Refusal> {
        let access = Access::Token("secret".to_string());
        let text = text.replacen("\r\n", "\r\nAuthorization: Bearer secret\r\n", 1);
        read_request(&mut text.as_bytes(), &mut Vec::new(), &access, &Any)
    }

    fn status(text: &str) -> u16 {
        match read(text) {
            Err(Refusal::Answer(answer)) => answer.status,
            Err(Refusal::Lost(_)) => 0,
            Ok(_) => 200,
        }
    }

    #[test]
    fn requests_are_read() {
        let text = "PUT /b/a%20b%2Bc?x=1&list-type HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
        let request = read(text).unwrap().unwrap();
        assert_eq!(
            (&*request.method, &*request.path, request.body.bytes()),
            ("PUT", "b/a b+c", &b"abcde"[..])
        );
        assert!(request.has("list-type") && request.query["x"] == "1");
        assert_eq!(
            status("PUT /b/k HTTP/1.1\r\nContent-Length: 4\r\n\r\nabc"),
            0,
            "a body that is cut"
        );
        let access = Access::Token(String::new());
        assert!(read_request(&mut &b""[..], &mut Vec::new(), &access, &Any).unwrap().is_none());
    }

    #[test]
    fn malformed_requests_are_refused() {
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(LINE_BYTES_MAX as usize));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(LINES_MAX));
        for (text, expected) in [
            ("PUT /b/k HTTP/1.1\r\nContent-Length: 6\r\n\r\nabcdef", 413),
            ("PUT /b/k HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n", 413),
            ("PUT /b/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nffffff\r\n", 413),
            ("PUT /b/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 413),
            ("PUT /b/k HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
            ("PUT /b/k HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            ("GET b/k HTTP/1.1\r\n\r\n", 400),
            ("GET /b/%zz HTTP/1.1\r\n\r\n", 400),
            ("GET /b/%ff HTTP/1.1\r\n\r\n", 400),
            ("GET /b?prefix=%f HTTP/1.1\r\n\r\n", 400),
            ("GET /b HTTP/1.1\r\nno header\r\n\r\n", 400),
            (&long, 400),
            (&many, 400),
        ] {
            assert_eq!(status(text), expected, "{text:.80}");
        }
    }

    #[test]
    fn nothing_is_read_for_others() {
        let access = Access::Token("secret".to_string());
        for shown in [
            "",
            "Authorization: Bearer other\r\n",
            "Authorization: secret\r\n",
            "Authorization: Bearer \r\n",
        ] {
            let text = format!("PUT /b/k HTTP/1.1\r\n{shown}Content-Length: 3\r\n\r\nabc");
            let mut input = text.as_bytes();
            let refused = read_request(&mut input, &mut Vec::new(), &access, &Any);
            assert!(
                matches!(refused, Err(Refusal::Answer(answer)) if answer.status == 403),
                "{shown}"
            );
            assert_eq!(input, b"abc");
        }
    }
}
