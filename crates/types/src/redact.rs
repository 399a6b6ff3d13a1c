//! Removal of secrets from URLs in messages.

use std::borrow::Cow;

/// The replacement of a secret.
const HIDDEN: &str = "***";
/// A query parameter is secret if its name contains one of these …
const PARTS: [&str; 9] = [
    "signature",
    "token",
    "secret",
    "passw",
    "credential",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
];
/// … or equals one of these.
const NAMES: [&str; 7] = ["sig", "key", "pwd", "sas", "code", "auth", "authorization"];
/// Schemes with a container before the `@` of a URL, not a user.
const CONTAINERS: [&str; 2] = ["abfs", "abfss"];

/// Replaces the secrets in URLs of a text: user and password (`https://user:password@host`), and
/// parameters such as `X-Amz-Signature`, `sig`, `token`. Applied to every [`Error`](crate::Error)
/// and every EXPLAIN.
///
/// ```
/// use tessera_types::redact;
/// let text = redact("cannot read 'https://me:pw@host/x?a=1&sig=2': it timed out");
/// assert_eq!(text, "cannot read 'https://***@host/x?a=1&sig=***': it timed out");
/// assert_eq!(redact("s3://bucket/x*.parquet"), "s3://bucket/x*.parquet");
/// ```
pub fn redact(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let scheme = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        rest = write_authority(scheme, behind, &mut out);
        rest = write_parameters(rest, &mut out);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether a character ends a URL inside of a text.
fn is_end(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\'' | '"' | '`' | ')' | ']' | '}' | '>' | '<' | ',' | ';' | '\\')
}

/// Writes the redacted authority (user, password, host) and returns the rest of the text.
fn write_authority<'a>(scheme: &str, text: &'a str, out: &mut String) -> &'a str {
    // A password may contain any character but these, even one that ends a URL elsewhere.
    let end = text.find(['/', '?', '#', '\n']).unwrap_or(text.len());
    let mut host = 0;
    if let Some(at) = text[..end].rfind('@') {
        let is_container = CONTAINERS.iter().any(|known| scheme.eq_ignore_ascii_case(known))
            && !text[..at].contains(':');
        if !is_container {
            out.push_str(HIDDEN);
            host = at;
        }
    } else {
        let end = text[..end].find(is_end).unwrap_or(end);
        // The text after the colon is not a port, so it may be a password with a slash.
        let odd = text[..end].split_once(':').filter(|(name, port)| {
            !name.starts_with('[') && !port.bytes().all(|byte| byte.is_ascii_digit())
        });
        if let Some((name, port)) = odd {
            let behind = &text[name.len() + 1 + port.len()..];
            // Hide everything up to the host, if the URL has one later.
            let address = behind.find(is_end).unwrap_or(behind.len());
            if let Some(at) = behind[..address].rfind('@') {
                out.push_str(HIDDEN);
                return &behind[at..];
            }
            out.push_str(name);
            out.push(':');
            out.push_str(HIDDEN);
            return behind;
        }
    }
    out.push_str(&text[host..end]);
    &text[end..]
}

/// Writes the redacted path and parameters and returns the rest of the text.
fn write_parameters<'a>(text: &'a str, out: &mut String) -> &'a str {
    let end = text.find(is_end).unwrap_or(text.len());
    let end = text[..end].find("://").unwrap_or(end);
    let Some((path, query)) = text[..end].split_once('?') else {
        out.push_str(&text[..end]);
        return &text[end..];
    };
    out.push_str(path);
    let mut mark = '?';
    for pair in query.split('&') {
        out.push(mark);
        mark = '&';
        match pair.split_once('=').filter(|(name, value)| is_secret(name) && !value.is_empty()) {
            Some((name, _)) => {
                out.push_str(name);
                out.push('=');
                out.push_str(HIDDEN);
            }
            None => out.push_str(pair),
        }
    }
    &text[end..]
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part)) || NAMES.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden() {
        for (text, expected) in [
            ("https://u:p@h/x", "https://***@h/x"),
            ("https://u:p%40w@h:80/x", "https://***@h:80/x"),
            ("https://token@h/x", "https://***@h/x"),
            ("'https://u:p w'd@h/x'", "'https://***@h/x'"),
            ("https://u:p@q@h/x", "https://***@h/x"),
            ("https://u:p/w@h/x", "https://***@h/x"),
            ("https://u:p?w", "https://u:***?w"),
            ("HTTPS://u:p@h", "HTTPS://***@h"),
            ("x s3://k:s@b/x, https://u:p@h/y", "x s3://***@b/x, https://***@h/y"),
            ("a(https://h/x?X-Amz-Signature=12&y=2) b", "a(https://h/x?X-Amz-Signature=***&y=2) b"),
            ("https://h/x?a=1&SIG=a%2Fb==&sv=2", "https://h/x?a=1&SIG=***&sv=2"),
            ("https://h/x?access_token=1\nnext", "https://h/x?access_token=***\nnext"),
            (
                "https://h/x?X-Goog-Credential=a&AWSAccessKeyId=b",
                "https://h/x?X-Goog-Credential=***&AWSAccessKeyId=***",
            ),
            (
                "{\"paths\": \"[\\\"https://h/x?sig=1\\\"]\"}",
                "{\"paths\": \"[\\\"https://h/x?sig=***\\\"]\"}",
            ),
        ] {
            assert_eq!(redact(text), expected);
            assert_eq!(redact(&redact(text)), expected, "hidden once is hidden");
        }
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "no address",
            "://",
            "https://",
            "https://h:8080/a@b",
            "https://[::1]:80/x",
            "cannot reach 'https://host': it timed out",
            "error for url https://host: timed out",
            "abfss://box@account.dfs.core.windows.net/t/x.parquet",
            "s3://bucket/k=1/x?.csv",
            "https://h/x?signed=&design=1&keyword=2&sig=",
            "s3://b/ä?é=1",
        ] {
            assert_eq!(redact(text), text);
        }
    }
}
