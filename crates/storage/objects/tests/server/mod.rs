//! An in-process store that implements the required part of S3, injects faults, and logs requests.

#![allow(dead_code, reason = "each test uses a part of it")]

mod responses;

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use responses::{answer, message};

/// A fault in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No fault.
    None,
    /// The response has this status.
    Status(u16),
    /// The connection closes before the response.
    Reset,
    /// The connection closes in the middle of the body.
    Cut,
    /// The body ends in the middle, with a matching length header.
    Short,
    /// A byte in the middle of the body is changed.
    Damaged,
    /// The response is delayed.
    Late(Duration),
    /// The response waits until this many requests with this fault have arrived; after a minute it
    /// is an error.
    Together(usize),
}

/// A parsed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The bucket and the key, or the bucket alone.
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Whether it reads an object or a part of one.
    pub(crate) fn is_read(&self) -> bool {
        self.method == "GET" && !self.query.contains_key("list-type")
    }

    /// Whether it selects from an object.
    pub(crate) fn is_select(&self) -> bool {
        self.method == "POST" && self.query.contains_key("select")
    }

    pub(crate) fn range(&self) -> Option<&str> {
        self.headers.get("range").map(String::as_str)
    }
}

/// How a store tags contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tags {
    /// Correctly.
    #[default]
    Checked,
    /// Responses have no tags.
    Missing,
    /// Responses have tags, but conditional requests ignore them.
    Unchecked,
    /// Tags are weak, so conditional requests never match.
    Weak,
}

type Chooser = Box<dyn FnMut(&Request) -> Fault + Send>;

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    uploads: BTreeMap<String, BTreeMap<u32, Vec<u8>>>,
    uploads_begun: usize,
    log: Vec<Request>,
    fault: Option<Chooser>,
    /// The behavior of tags.
    tags: Tags,
    /// The second within a minute of every object's last write.
    second: u32,
    /// The number of entries per page of a listing.
    page: usize,
    /// The event stream of responses to select requests.
    selected: Vec<u8>,
    /// Whether an object changes after a select request.
    changes: bool,
    /// The number of requests that wait, or have waited, for others.
    together: usize,
}

/// The server; it listens until the process ends.
#[derive(Clone)]
pub(crate) struct Server {
    address: String,
    state: Arc<Mutex<State>>,
}

impl Server {
    pub(crate) fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State { page: 3, ..State::default() }));
        let server = Server { address, state: state.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), state.clone());
                std::thread::spawn(move || drop(converse(stream, &state)));
            }
        });
        server
    }

    /// `http://127.0.0.1:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The settings of a client that reaches it as `s3://bucket/…` or as `gs://bucket/…`; the used
    /// parts of both protocols are much the same.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let settings = [
            ("AWS_ENDPOINT_URL", self.address.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_SKIP_SIGNATURE", "true"),
            ("AWS_REGION", "us-east-1"),
            ("GOOGLE_BASE_URL", self.address.as_str()),
            ("GOOGLE_SKIP_SIGNATURE", "true"),
            ("TESSERA_STORE_RETRIES", "3"),
        ];
        settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    /// Stores an object at `bucket/key`.
    pub(crate) fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.state.lock().unwrap().objects.insert(path.to_string(), bytes.into());
    }

    /// Stores all files below a folder.
    pub(crate) fn put_folder(&self, path: &str, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap().path();
            let below = format!("{path}/{}", entry.file_name().unwrap().to_str().unwrap());
            match entry.is_dir() {
                true => self.put_folder(&below, &entry),
                false => self.put(&below, std::fs::read(&entry).unwrap()),
            }
        }
    }

    pub(crate) fn object(&self, path: &str) -> Option<Vec<u8>> {
        self.state.lock().unwrap().objects.get(path).cloned()
    }

    /// The paths of all objects.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.state.lock().unwrap().objects.keys().cloned().collect()
    }

    /// Returns the number of open uploads, and of all uploads begun.
    pub(crate) fn uploads(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap();
        (state.uploads.len(), state.uploads_begun)
    }

    /// Sets the faults of later responses.
    pub(crate) fn fail(&self, fault: impl FnMut(&Request) -> Fault + Send + 'static) {
        self.state.lock().unwrap().fault = Some(Box::new(fault));
    }

    /// Lets the first `times` reads of objects fail.
    pub(crate) fn fail_reads(&self, fault: Fault, mut times: usize) {
        self.fail(move |request| {
            if !request.is_read() || times == 0 {
                return Fault::None;
            }
            times -= 1;
            fault
        });
    }

    /// Sets the response to select requests: messages of an event stream, by type.
    pub(crate) fn select(&self, messages: &[(&str, &str)]) {
        let stream = messages.iter().flat_map(|(kind, payload)| message(kind, payload.as_bytes()));
        self.state.lock().unwrap().selected = stream.collect();
    }

    /// Lets objects change after each select request.
    pub(crate) fn change_selected(&self) {
        self.state.lock().unwrap().changes = true;
    }

    pub(crate) fn set_tags(&self, tags: Tags) {
        self.state.lock().unwrap().tags = tags;
    }

    /// Sets the second within a minute of every object's last write.
    pub(crate) fn set_second(&self, second: u32) {
        self.state.lock().unwrap().second = second;
    }

    /// Returns the requests since the last call.
    pub(crate) fn log(&self) -> Vec<Request> {
        std::mem::take(&mut self.state.lock().unwrap().log)
    }
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn new(status: u16, body: impl Into<Vec<u8>>) -> Answer {
        Answer { status, headers: Vec::new(), body: body.into() }
    }

    fn error(status: u16, code: &str) -> Answer {
        Answer::new(status, format!("<Error><Code>{code}</Code><Message>told to</Message></Error>"))
    }
}

fn converse(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream.try_clone()?);
    let mut output = stream;
    while let Some(request) = read_request(&mut input)? {
        let fault = {
            let mut state = state.lock().unwrap();
            state.log.push(request.clone());
            state.fault.as_mut().map_or(Fault::None, |fault| fault(&request))
        };
        let answer = match fault {
            Fault::Reset => return output.shutdown(Shutdown::Both),
            Fault::Status(status) => Answer::error(status, "SlowDown"),
            Fault::Late(time) => {
                std::thread::sleep(time);
                answer(&request, &mut state.lock().unwrap())
            }
            Fault::Together(wanted) => match meet(state, wanted) {
                true => answer(&request, &mut state.lock().unwrap()),
                false => Answer::error(400, "Alone"),
            },
            Fault::None | Fault::Cut | Fault::Short | Fault::Damaged => {
                answer(&request, &mut state.lock().unwrap())
            }
        };
        let mut answer = answer;
        if fault == Fault::Damaged {
            let middle = answer.body.len() / 2;
            answer.body[middle] ^= 1;
        }
        let sent = match fault {
            Fault::Cut | Fault::Short => answer.body.len() / 2,
            _ => answer.body.len(),
        };
        let head = request.method == "HEAD";
        let said = if fault == Fault::Short { sent } else { answer.body.len() };
        let mut text = format!("HTTP/1.1 {} X\r\nContent-Length: {said}\r\n", answer.status);
        for (name, value) in &answer.headers {
            text += &format!("{name}: {value}\r\n");
        }
        output.write_all(format!("{text}\r\n").as_bytes())?;
        if !head {
            output.write_all(&answer.body[..sent])?;
        }
        output.flush()?;
        if fault == Fault::Cut {
            return output.shutdown(Shutdown::Both);
        }
    }
    Ok(())
}

/// Waits until `wanted` requests have arrived. Returns whether they did.
fn meet(state: &Mutex<State>, wanted: usize) -> bool {
    state.lock().unwrap().together += 1;
    for _ in 0..60_000 {
        if state.lock().unwrap().together >= wanted {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

fn read_request(input: &mut impl BufRead) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    });
    let mut request = Request {
        method: method.to_string(),
        path: decode(path.trim_start_matches('/')),
        query: query.collect(),
        headers: HashMap::new(),
        body: Vec::new(),
    };
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        request.headers.insert(name.to_ascii_lowercase(), value.trim().to_string());
    }
    let len = request.headers.get("content-length").map_or(0, |len| len.parse().unwrap());
    request.body = vec![0; len];
    input.read_exact(&mut request.body)?;
    Ok(Some(request))
}

fn decode(text: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let hex = [bytes.next().unwrap(), bytes.next().unwrap()];
                out.push(u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap());
            }
            b'+' => out.push(b' '),
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).unwrap()
}
