//! A store in this process that speaks as much of S3 as is needed, fails when told to, and keeps a
//! log.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What goes wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The answer is this status.
    Status(u16),
    /// The connection is closed before the answer.
    Reset,
    /// The connection is closed in the middle of the body.
    Cut,
    /// The body ends in the middle, and the header says that this is its length.
    Short,
    /// A byte in the middle of the body is another one.
    Damaged,
    /// The answer comes after this time.
    Late(Duration),
    /// The answer comes when so many requests with this fault are there; after a minute it is an
    /// error.
    Together(usize),
}

/// A request, as a fault is chosen by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Bucket and key, or bucket alone.
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Whether it reads (a part of) an object.
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
    /// As it should be.
    #[default]
    Checked,
    /// Answers carry none.
    Missing,
    /// Answers carry them, and whoever asks for one gets whatever is there.
    Unchecked,
    /// They are weak: whoever asks for one gets nothing.
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
    /// What is particular about the tags of answers.
    tags: Tags,
    /// The second of a minute in which everything was written last.
    second: u32,
    /// Entries in a page of a listing.
    page: usize,
    /// The event stream that answers requests to select.
    selected: Vec<u8>,
    /// Whether an object that is selected from is another one afterwards.
    changes: bool,
    /// Requests that wait, or have waited, for others.
    together: usize,
}

/// The store; it listens until the process ends.
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

    /// What a client needs to reach it as `s3://bucket/…`, or as `gs://bucket/…`: what is used of
    /// both is much the same.
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

    /// Puts an object there: `bucket/key`.
    pub(crate) fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.state.lock().unwrap().objects.insert(path.to_string(), bytes.into());
    }

    /// Puts all files below a folder there.
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

    /// Paths of all objects.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.state.lock().unwrap().objects.keys().cloned().collect()
    }

    /// Uploads that are neither complete nor given up, and how many were begun.
    pub(crate) fn uploads(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap();
        (state.uploads.len(), state.uploads_begun)
    }

    /// From now on, answers fail as this says.
    pub(crate) fn fail(&self, fault: impl FnMut(&Request) -> Fault + Send + 'static) {
        self.state.lock().unwrap().fault = Some(Box::new(fault));
    }

    /// The first `times` reads of objects fail.
    pub(crate) fn fail_reads(&self, fault: Fault, mut times: usize) {
        self.fail(move |request| {
            if !request.is_read() || times == 0 {
                return Fault::None;
            }
            times -= 1;
            fault
        });
    }

    /// From now on, whatever is selected is this: messages of an event stream, by type.
    pub(crate) fn select(&self, messages: &[(&str, &str)]) {
        let stream = messages.iter().flat_map(|(kind, payload)| message(kind, payload.as_bytes()));
        self.state.lock().unwrap().selected = stream.collect();
    }

    /// From now on, an object that is selected from is another one afterwards.
    pub(crate) fn change_selected(&self) {
        self.state.lock().unwrap().changes = true;
    }

    pub(crate) fn set_tags(&self, tags: Tags) {
        self.state.lock().unwrap().tags = tags;
    }

    /// Says of everything that it was written in this second of a minute.
    pub(crate) fn set_second(&self, second: u32) {
        self.state.lock().unwrap().second = second;
    }

    /// The requests since this was last asked.
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

/// Waits until so many requests are there; whether they came.
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

fn answer(request: &Request, state: &mut State) -> Answer {
    let key = request.path.clone();
    let upload = request.query.get("uploadId").cloned();
    match (request.method.as_str(), upload) {
        ("GET", _) if request.query.contains_key("list-type") => list(request, state),
        ("GET" | "HEAD", _) => read(request, state),
        ("POST", None) if request.is_select() => {
            if state.changes {
                state.objects.get_mut(&key).unwrap().push(b'\n');
            }
            Answer::new(200, state.selected.clone())
        }
        ("POST", None) if request.query.contains_key("uploads") => {
            state.uploads_begun += 1;
            let id = format!("upload-{}", state.uploads_begun);
            state.uploads.insert(id.clone(), BTreeMap::new());
            let (bucket, key) = key.split_once('/').unwrap();
            Answer::new(
                200,
                format!(
                    "<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{key}</Key><UploadId>{id}</UploadId>\
                     </InitiateMultipartUploadResult>"
                ),
            )
        }
        ("PUT", Some(id)) => {
            let part: u32 = request.query["partNumber"].parse().unwrap();
            let Some(parts) = state.uploads.get_mut(&id) else {
                return Answer::error(404, "NoSuchUpload");
            };
            parts.insert(part, request.body.clone());
            let mut answer = Answer::new(200, "");
            answer.headers.push(("ETag", format!("\"part-{part}\"")));
            answer
        }
        ("POST", Some(id)) => {
            let Some(parts) = state.uploads.remove(&id) else {
                return Answer::error(404, "NoSuchUpload");
            };
            let whole: Vec<u8> = parts.into_values().flatten().collect();
            let tag = tag(&whole);
            state.objects.insert(key, whole);
            Answer::new(
                200,
                format!(
                    "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
                ),
            )
        }
        ("DELETE", Some(id)) => match state.uploads.remove(&id) {
            Some(_) => Answer::new(204, ""),
            None => Answer::error(404, "NoSuchUpload"),
        },
        ("PUT", None) => {
            let mut answer = Answer::new(200, "");
            answer.headers.push(("ETag", tag(&request.body)));
            state.objects.insert(key, request.body.clone());
            answer
        }
        _ => Answer::error(400, "BadRequest"),
    }
}

/// A message of an event stream; an error's payload is its code.
fn message(kind: &str, payload: &[u8]) -> Vec<u8> {
    let code = String::from_utf8_lossy(payload).into_owned();
    let (headers, payload) = match kind {
        "error" => ([(":message-type", "error"), (":error-code", &*code)], &b""[..]),
        kind => ([(":message-type", "event"), (":event-type", kind)], payload),
    };
    let mut of_headers = Vec::new();
    for (name, value) in headers {
        of_headers.extend(
            [&[name.len() as u8], name.as_bytes(), &[7, 0, value.len() as u8], value.as_bytes()]
                .concat(),
        );
    }
    let total = (16 + of_headers.len() + payload.len()) as u32;
    let mut out = [total.to_be_bytes(), (of_headers.len() as u32).to_be_bytes()].concat();
    out.extend(crc32(&out).to_be_bytes());
    out.extend(of_headers);
    out.extend(payload);
    out.extend(crc32(&out).to_be_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let bit = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| bit(sum)))
}

fn tag(bytes: &[u8]) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:x}\"", hasher.finish())
}

fn read(request: &Request, state: &State) -> Answer {
    let Some(object) = state.objects.get(&request.path) else {
        return Answer::error(404, "NoSuchKey");
    };
    let tag = match state.tags {
        Tags::Weak => format!("W/{}", tag(object)),
        _ => tag(object),
    };
    let matches = |wanted: &String| *wanted == tag && state.tags != Tags::Weak;
    if state.tags != Tags::Unchecked
        && request.headers.get("if-match").is_some_and(|wanted| !matches(wanted))
    {
        return Answer::error(412, "PreconditionFailed");
    }
    let mut answer = match request.range().and_then(|range| range.strip_prefix("bytes=")) {
        None => Answer::new(200, object.clone()),
        Some(range) => {
            let (start, end) = range.split_once('-').unwrap();
            let len = object.len();
            let (start, end) = match (start.parse::<usize>(), end.parse::<usize>()) {
                (Ok(start), Ok(end)) => (start, (end + 1).min(len)),
                (Ok(start), Err(_)) => (start, len),
                (Err(_), Ok(last)) => (len.saturating_sub(last), len),
                _ => return Answer::error(400, "InvalidRange"),
            };
            if start >= end {
                return Answer::error(416, "InvalidRange");
            }
            let mut answer = Answer::new(206, &object[start..end]);
            answer.headers.push(("Content-Range", format!("bytes {start}-{}/{len}", end - 1)));
            answer
        }
    };
    if state.tags != Tags::Missing {
        answer.headers.push(("ETag", tag));
    }
    answer
        .headers
        .push(("Last-Modified", format!("Sun, 22 Nov 2020 00:00:{:02} GMT", state.second)));
    answer
}

fn list(request: &Request, state: &State) -> Answer {
    let bucket = request.path.trim_end_matches('/');
    let query = |name: &str| request.query.get(name).cloned().unwrap_or_default();
    let (prefix, delimiter, after) =
        (query("prefix"), query("delimiter"), query("continuation-token"));
    let mut entries: BTreeMap<String, Option<usize>> = BTreeMap::new();
    for (path, bytes) in &state.objects {
        let Some(key) = path.strip_prefix(&format!("{bucket}/")) else { continue };
        let Some(below) = key.strip_prefix(&prefix) else { continue };
        match below.find(&delimiter).filter(|_| !delimiter.is_empty()) {
            Some(end) => entries.insert(format!("{prefix}{}", &below[..=end]), None),
            None => entries.insert(key.to_string(), Some(bytes.len())),
        };
    }
    let mut text = String::new();
    let rest: Vec<_> = entries.into_iter().filter(|(key, _)| *key > after).collect();
    for (key, len) in rest.iter().take(state.page) {
        let tag = state.objects.get(&format!("{bucket}/{key}")).map(|object| tag(object));
        text += &match len {
            None => format!("<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>"),
            Some(len) => format!(
                "<Contents><Key>{key}</Key><LastModified>2020-11-22T00:00:00.000Z</LastModified><Size>{len}</Size>\
                 <ETag>{}</ETag></Contents>",
                tag.unwrap_or_default()
            ),
        };
    }
    let more = rest.len() > state.page;
    if more {
        text +=
            &format!("<NextContinuationToken>{}</NextContinuationToken>", rest[state.page - 1].0);
    }
    Answer::new(
        200,
        format!("<ListBucketResult><IsTruncated>{more}</IsTruncated>{text}</ListBucketResult>"),
    )
}
