//! Authorization of requests: random secrets, tokens, and AWS signatures (version 4).

use std::fmt::{self, Write};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use ring::hmac::{self, HMAC_SHA256, Key};
use ring::rand::{SecureRandom, SystemRandom};

use crate::date::civil_days;
use crate::http::Request;

/// The maximum difference between the time of a signature and now.
const CLOCK_SECONDS_MAX: u64 = 15 * 60;
/// Replaces the body's digest if only the head is signed.
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// Returns `N` random bytes as hexadecimal digits.
///
/// # Errors
/// The system provides no random bytes.
pub(crate) fn random<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("no random bytes available"))?;
    Ok(hex(&bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    digits.map(|pair| u8::from_str_radix(pair.filter(|pair| pair.len() == 2)?, 16).ok()).collect()
}

/// The authorization that a service requires.
pub(crate) enum Access {
    /// `Authorization: Bearer` with this token.
    Token(String),
    /// A signature with this key and secret.
    Signature { key: String, secret: String },
}

/// Omits the secrets.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Access")
    }
}

impl Access {
    /// Whether the head of a request is authorized. The body's digest is compared after the body
    /// was read.
    pub(crate) fn allows(&self, request: &Request) -> bool {
        let shown = request.header("authorization").unwrap_or_default();
        match self {
            Access::Token(token) => shown
                .strip_prefix("Bearer ")
                .is_some_and(|shown| constant_time_eq(shown.trim(), token)),
            Access::Signature { key, secret } => {
                is_signed(request, shown, (key, secret)).unwrap_or(false)
            }
        }
    }
}

/// Compares two texts in constant time.
fn constant_time_eq(one: &str, other: &str) -> bool {
    let key = Key::new(HMAC_SHA256, &[0; 32]);
    hmac::verify(&key, one.as_bytes(), hmac::sign(&key, other.as_bytes()).as_ref()).is_ok()
}

/// Returns the signed digest of the body; `None` if only the head is signed.
pub(crate) fn signed_digest(request: &Request) -> Option<&str> {
    request.header("x-amz-content-sha256").filter(|digest| *digest != UNSIGNED)
}

fn is_signed(request: &Request, shown: &str, (key, secret): (&str, &str)) -> Option<bool> {
    let fields = shown.strip_prefix("AWS4-HMAC-SHA256 ")?;
    let field = |name: &str| fields.split(',').find_map(|field| field.trim().strip_prefix(name));
    let (credential, signed) = (field("Credential=")?, field("SignedHeaders=")?);
    let signature = unhex(field("Signature=")?)?;
    let (shown_key, scope) = credential.split_once('/')?;
    let parts: Vec<&str> = scope.split('/').collect();
    let [day, region, service, "aws4_request"] = parts[..] else { return None };
    let (time, payload) = (request.header("x-amz-date")?, request.header("x-amz-content-sha256")?);
    let names: Vec<&str> = signed.split(';').collect();
    let must = |name: &str| name == "host" || name.starts_with("x-amz-");
    let all = request.headers.keys().all(|name| !must(name) || names.contains(&name.as_str()));
    let known_payload = payload == UNSIGNED || payload.len() == 64;
    if !constant_time_eq(shown_key, key)
        || !all
        || !known_payload
        || !time.starts_with(day)
        || !is_now(time)
    {
        return None;
    }
    let mut text = format!("{}\n{}\n{}\n", request.method, request.raw_path, query(request));
    for name in &names {
        let words: Vec<&str> = request.header(name)?.split_whitespace().collect();
        let _ = writeln!(text, "{name}:{}", words.join(" "));
    }
    let _ = write!(text, "\n{signed}\n{payload}");
    let text = format!(
        "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
        hex(digest(&SHA256, text.as_bytes()).as_ref())
    );
    let mut signing = Key::new(HMAC_SHA256, format!("AWS4{secret}").as_bytes());
    for part in [day, region, service, "aws4_request"] {
        signing = Key::new(HMAC_SHA256, hmac::sign(&signing, part.as_bytes()).as_ref());
    }
    Some(hmac::verify(&signing, text.as_bytes(), &signature).is_ok())
}

/// Returns the query parameters as they are signed: in order, each with a value.
fn query(request: &Request) -> String {
    let pairs =
        request.query.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn encode(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte))
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
        out
    })
}

/// Whether a time such as `20241121T235959Z` is close to now.
fn is_now(time: &str) -> bool {
    let Some(seconds) = seconds(time) else { return false };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    now.abs_diff(seconds) <= CLOCK_SECONDS_MAX
}

fn seconds(time: &str) -> Option<u64> {
    let digits = time.strip_suffix('Z').filter(|digits| digits.is_ascii() && digits.len() == 15)?;
    let (day, clock) = digits.split_once('T').filter(|(day, _)| day.len() == 8)?;
    let number = |text: &str| text.parse::<u64>().ok();
    let days = civil_days(number(&day[..4])?, number(&day[4..6])?, number(&day[6..])?)?;
    Some(
        days * 86_400
            + number(&clock[..2])? * 3_600
            + number(&clock[2..4])? * 60
            + number(&clock[4..])?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_are_long() {
        let (one, other) = (random::<32>().unwrap(), random::<32>().unwrap());
        assert!(one.len() == 64 && one != other);
        assert!(
            constant_time_eq(&one, &one)
                && !constant_time_eq(&one, &other)
                && !constant_time_eq(&one, &one[..63])
        );
        assert_eq!(unhex("00ff").unwrap(), [0, 255]);
        assert!(unhex("0").is_none() && unhex("0g").is_none());
    }

    #[test]
    fn times_of_signatures() {
        assert_eq!(seconds("20241121T235959Z"), Some(1_732_233_599));
        for wrong in
            ["", "20241121T235959", "20241321T235959Z", "2024112T1235959Z", "x0241121T235959Z"]
        {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
        assert!(!is_now("20241121T235959Z"));
    }
}
