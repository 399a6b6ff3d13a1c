//! A minimal HTTP server for two small services, with a thread per connection.
//!
//! A request's body is read only after its head was authorized ([`Access`]).

mod read;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
#[cfg(any(test, fuzzing))]
use std::io::BufRead;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::access::Access;
use crate::faults::{Fault, FaultInjector};
use read::{Refusal, read_request};

/// Connections are closed after this idle time; clients keep theirs for a shorter time.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// The bytes and time that are still spent on reading a refused request, so that its sender sees
/// the answer.
const REFUSED_BYTES_MAX: u64 = 8 << 20;
const REFUSED_MAX: Duration = Duration::from_secs(1);
/// The size of the read buffer.
const PIECE_BYTES: usize = 64 << 10;

/// A request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path as received, which is signed.
    pub(crate) raw_path: String,
    /// The decoded path without the slash at its start.
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    /// Headers by lower-case name; several values of a name are joined with commas.
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
    File(SpooledFile),
}

impl Default for Body {
    fn default() -> Body {
        Body::Memory(Vec::new())
    }
}

impl Body {
    /// Returns the bytes of a body in memory; empty for a body in a file.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Body::Memory(bytes) => bytes,
            Body::File(_) => &[],
        }
    }
}

/// A file with a body; it is deleted on drop unless it was renamed.
#[derive(Debug)]
pub(crate) struct SpooledFile {
    pub(crate) path: PathBuf,
}

impl Drop for SpooledFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// The destination of a body, and its maximum size.
pub(crate) enum Sink {
    Memory(u64),
    File(SpooledFile, File, u64),
}

/// An answer to a request.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// Replaces `body`: a file, and the number of its bytes to send.
    pub(crate) file: Option<(File, u64)>,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, body: body.into(), ..Answer::default() }
    }

    /// Returns an error in S3's format.
    pub(crate) fn error(status: u16, code: &str) -> Answer {
        Answer::new(status, format!("<Error><Code>{code}</Code><Message>{code}</Message></Error>"))
    }

    /// Returns an internal error of the service, such as a full disk.
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

/// A service that answers requests.
pub(crate) trait Service: Send + Sync + 'static {
    fn answer(&self, request: &Request) -> Answer;

    /// Returns the destination of a request's body from its head, or an answer that refuses it.
    fn sink(&self, request: &Request) -> Result<Sink, Answer>;

    /// Whether faults may be injected into a request.
    fn may_fail(&self, _request: &Request) -> bool {
        true
    }
}

/// Listens on a loopback port; returns the address.
pub(crate) fn listen(
    name: &str,
    access: Access,
    faults: FaultInjector,
    service: Arc<impl Service>,
) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    let (access, faults) = (Arc::new(access), Arc::new(faults));
    std::thread::Builder::new().name(name.to_string()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let (access, faults, service) = (access.clone(), faults.clone(), service.clone());
            let serve = move || drop(serve_connection(stream, &access, &faults, &*service));
            drop(std::thread::Builder::new().stack_size(256 << 10).spawn(serve));
        }
    })?;
    Ok(address)
}

fn serve_connection(
    stream: TcpStream,
    access: &Access,
    faults: &FaultInjector,
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
                "<Error><Code>SlowDown</Code><Message>injected fault</Message></Error>",
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

/// Reads and answers requests like a connection, until the input ends or a request is refused;
/// `observe` gets each answer and the request's method.
#[cfg(any(test, fuzzing))]
pub(crate) fn answer_all(
    input: &mut impl BufRead,
    output: &mut impl Write,
    access: &Access,
    service: &impl Service,
    observe: impl Fn(Answer, &str),
) -> io::Result<()> {
    loop {
        match read_request(input, output, access, service) {
            Ok(Some(request)) => observe(service.answer(&request), &request.method),
            Ok(None) => return Ok(()),
            Err(Refusal::Answer(answer)) => {
                observe(answer, "refused");
                return Ok(());
            }
            Err(Refusal::Lost(error)) => return Err(error),
        }
    }
}

/// Sends an answer; with `cut`, only half of its body.
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

/// Answers an unauthorized or too large request, and closes the connection.
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
