//! An HTTP client that writes requests by hand.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use tessera_serverless_local::Local;

/// Sends a request; returns status, head and body.
pub(crate) fn ask(
    host: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> (u16, String, String) {
    let mut stream = TcpStream::connect(host).unwrap();
    let len = body.len();
    let text = format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: {len}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let len =
                head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap_or("0");
            if body.len() >= len.parse().unwrap() {
                let status = head[9..12].parse().unwrap();
                return (status, head.to_string(), body.to_string());
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return (0, String::new(), String::new()),
            Ok(read) => answer.extend_from_slice(&piece[..read]),
        }
    }
}

/// Returns the value of a setting.
pub(crate) fn setting(local: &Local, name: &str) -> String {
    let found = local.settings().iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.clone()).unwrap()
}

/// Returns the host and port of a service.
pub(crate) fn host(local: &Local, name: &str) -> String {
    setting(local, name).trim_start_matches("http://").to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Returns the time in the format of signatures.
pub(crate) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let clock = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}{:02}{:02}T{:02}{:02}{:02}Z", month + 1, day + 1, clock.0, clock.1, clock.2)
}

/// Returns the headers of a request to the store, signed with this key and secret; `query` has its
/// names in order, each with a value.
pub(crate) fn signed(
    (key, secret): (&str, &str),
    (host, time): (&str, &str),
    (method, path, query): (&str, &str, &str),
    body: Option<&str>,
) -> String {
    let payload = body.map_or("UNSIGNED-PAYLOAD".to_string(), |body| {
        hex(digest(&SHA256, body.as_bytes()).as_ref())
    });
    let names = "host;x-amz-content-sha256;x-amz-date";
    let headers = format!("host:{host}\nx-amz-content-sha256:{payload}\nx-amz-date:{time}\n");
    let text = format!("{method}\n{path}\n{query}\n{headers}\n{names}\n{payload}");
    let day = &time[..8];
    let text = format!(
        "AWS4-HMAC-SHA256\n{time}\n{day}/local/s3/aws4_request\n{}",
        hex(digest(&SHA256, text.as_bytes()).as_ref())
    );
    let mut signing = format!("AWS4{secret}").into_bytes();
    for part in [day, "local", "s3", "aws4_request", &text] {
        signing = sign(&Key::new(HMAC_SHA256, &signing), part.as_bytes()).as_ref().to_vec();
    }
    format!(
        "Host: {host}\r\nX-Amz-Content-Sha256: {payload}\r\nX-Amz-Date: {time}\r\nAuthorization: AWS4-HMAC-SHA256 \
         Credential={key}/{day}/local/s3/aws4_request, SignedHeaders={names}, Signature={}\r\n",
        hex(&signing)
    )
}
