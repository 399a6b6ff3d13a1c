//! A store's errors as Tessera's: what was being done, to which object, why it failed, what to do.

use std::error::Error as _;

use object_store::Error as StoreError;
use tessera_types::Error;

use crate::location::kind_of;
use crate::store::hint;

/// The longest text of a server that an error shows.
const SERVER_TEXT_CHARS_MAX: usize = 240;

/// An error of a store, about an object or a prefix.
pub(crate) fn store_error(doing: &str, address: &str, error: StoreError) -> Error {
    let hint = kind_of(address).map_or("", hint);
    let message = match &error {
        StoreError::NotFound { .. } => {
            format!("cannot {doing} '{address}': there is no such object or bucket")
        }
        StoreError::PermissionDenied { .. } => {
            format!("cannot {doing} '{address}': permission denied; {hint}")
        }
        StoreError::Unauthenticated { .. } => {
            format!("cannot {doing} '{address}': the store does not accept the credentials; {hint}")
        }
        StoreError::Precondition { .. } => {
            format!("'{address}' changed while it was read; run the query again")
        }
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => {
            format!("cannot {doing} '{address}': the store does not offer that ({})", reason(&error))
        }
        _ => format!("cannot {doing} '{address}': {}; {hint}", reason(&error)),
    };
    Error::io(message).caused_by(error)
}

/// The innermost reason, in one line: layers above it only repeat it with an address.
pub(crate) fn reason(error: &StoreError) -> String {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(inner) = source {
        texts.push(inner.to_string());
        source = inner.source();
    }
    let status = texts.iter().find_map(|text| status_text(text));
    let innermost = texts.iter().rev().find(|text| !text.trim().is_empty()).map_or("", |text| text.trim());
    let text = match status {
        Some(status) => status,
        None if texts.iter().any(|text| text.contains("operation timed out")) => "it timed out".to_string(),
        None => innermost.to_string(),
    };
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SERVER_TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// What a server that answered with a status other than success said: `503 Service Unavailable: SlowDown`.
fn status_text(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("status code: ")?;
    let (status, body) = rest.split_once(": ").unwrap_or((rest, ""));
    let inside = |tag: &str| {
        let (_, rest) = body.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once(&format!("</{tag}>"))?.0.to_string())
    };
    let said = match (inside("Code"), inside("Message")) {
        (Some(code), Some(message)) => format!("{code}, {message}"),
        (Some(code), None) => code,
        _ => body.to_string(),
    };
    let said = said.trim();
    Some(match said.is_empty() {
        true => format!("the server answers {status}"),
        false => format!("the server answers {status}: {said}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say_is_short() {
        let text = "Server returned non-2xx status code: 503 Service Unavailable: \
                    <Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>";
        assert_eq!(
            status_text(text).unwrap(),
            "the server answers 503 Service Unavailable: SlowDown, Reduce your rate"
        );
        assert_eq!(status_text("status code: 500 X: ").unwrap(), "the server answers 500 X");
        assert_eq!(status_text("no route"), None);
    }

    #[test]
    fn errors_name_object_and_remedy() {
        let error = StoreError::PermissionDenied { path: "x".into(), source: "no".into() };
        let message = store_error("read", "s3://b/x", error).message().to_string();
        assert!(
            message.starts_with("cannot read 's3://b/x': permission denied; check AWS_ACCESS_KEY_ID"),
            "{message}"
        );
    }
}
