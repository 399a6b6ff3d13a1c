//! Converts errors of object stores: the action, the object, the cause, and what to do.

use std::error::Error as _;

use object_store::Error as StoreError;
use tessera_context::file_changed;
use tessera_types::Error;

use crate::location::{Kind, kind_of};
use crate::store::hint;

/// The longest server message in an error.
const SERVER_TEXT_CHARS_MAX: usize = 240;

/// The start of a reason if a server reports a missing object or bucket.
const MISSING: &str = "the server answers 404";

/// Converts a store's error about an object or a prefix.
pub(crate) fn store_error(doing: &str, address: &str, error: StoreError) -> Error {
    let kind = kind_of(address);
    let hint = kind.map_or("", hint);
    let why = reason(&error);
    let message = match &error {
        StoreError::Precondition { .. } => return file_changed(address).caused_by(error),
        StoreError::NotFound { .. } => {
            let what = if kind == Some(Kind::Web) { "file" } else { "object or bucket" };
            format!("cannot {doing} '{address}': the {what} does not exist; check its spelling")
        }
        // The clients distinguish a missing bucket from other errors only for requests of objects.
        StoreError::Generic { .. } if why.starts_with(MISSING) => {
            format!(
                "cannot {doing} '{address}': the bucket does not exist ({why}); check its name and the account"
            )
        }
        StoreError::PermissionDenied { .. } => {
            format!("cannot {doing} '{address}': permission denied; {hint}")
        }
        StoreError::Unauthenticated { .. } => {
            format!("cannot {doing} '{address}': the store rejects the credentials; {hint}")
        }
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => {
            format!(
                "cannot {doing} '{address}': the store does not support this ({why}); copy it to a file or to another store, \
                 and read that"
            )
        }
        _ => format!("cannot {doing} '{address}': {why}; {hint}"),
    };
    Error::io(message).caused_by(error)
}

/// Returns the innermost cause in one line; outer layers only repeat it with an address.
pub(crate) fn reason(error: &StoreError) -> String {
    let mut texts = vec![error.to_string()];
    let mut source = error.source();
    while let Some(inner) = source {
        texts.push(inner.to_string());
        source = inner.source();
    }
    let status = texts.iter().find_map(|text| status_text(text));
    let innermost =
        texts.iter().rev().find(|text| !text.trim().is_empty()).map_or("", |text| text.trim());
    let text = match status {
        Some(status) => status,
        None if texts.iter().any(|text| text.contains("operation timed out")) => {
            "it timed out".to_string()
        }
        None => innermost.to_string(),
    };
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SERVER_TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns the status and message of a failed response: `503 Service Unavailable: SlowDown`.
fn status_text(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("status code: ")?;
    let (status, body) = rest.split_once(": ").unwrap_or((rest, ""));
    let inside = |tag: &str| {
        let (_, rest) = body.split_once(&format!("<{tag}>"))?;
        let (text, _) = rest.split_once(&format!("</{tag}>"))?;
        // Azure adds lines with the request.
        Some(text.lines().next().unwrap_or_default().trim_end_matches('.').to_string())
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
        let azure = "status code: 404 Not Found: <Error><Code>ContainerNotFound</Code><Message>There is none.\nRequestId:1\n\
                     Time:2</Message></Error>";
        assert_eq!(
            status_text(azure).unwrap(),
            "the server answers 404 Not Found: ContainerNotFound, There is none"
        );
        assert_eq!(status_text("status code: 500 X: ").unwrap(), "the server answers 500 X");
        assert_eq!(status_text("no route"), None);
    }

    #[test]
    fn errors_name_object_and_remedy() {
        let error = StoreError::PermissionDenied { path: "x".into(), source: "no".into() };
        let message = store_error("read", "s3://b/x", error).message().to_string();
        assert!(
            message
                .starts_with("cannot read 's3://b/x': permission denied; check AWS_ACCESS_KEY_ID"),
            "{message}"
        );
        let listed =
            "Server returned non-2xx status code: 404 Not Found: <Code>ContainerNotFound</Code>";
        let error = StoreError::Generic { store: "Azure", source: listed.into() };
        let message = store_error("list", "az://b/x", error).message().to_string();
        assert!(
            message.contains(
                "the bucket does not exist (the server answers 404 Not Found: ContainerNotFound); check"
            ),
            "{message}"
        );
    }
}
