//! How long is waited for a server: until there is a connection, until an answer begins, and
//! between two pieces of it.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::ClientOptions;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody,
};
use tessera_context::lock;
use tessera_types::{Error, Result, parse_timeout};
use tokio::time::{Instant, Sleep};

/// What a session waits for a server at most; forever where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection: setting `connect_timeout`.
    pub connect: Option<Duration>,
    /// Until an answer begins, sending included: setting `first_byte_timeout`.
    pub first_byte: Option<Duration>,
    /// Between two pieces of an answer: setting `stall_timeout`.
    pub stall: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Some(Duration::from_secs(5)),
            first_byte: Some(Duration::from_secs(30)),
            stall: Some(Duration::from_secs(30)),
        }
    }
}

/// The time-outs of a session, as its statements change them.
pub(crate) type Shared = Arc<Mutex<Timeouts>>;

impl Timeouts {
    /// What settings or environment variables say: `TESSERA_CONNECT_TIMEOUT`,
    /// `TESSERA_FIRST_BYTE_TIMEOUT`, `TESSERA_STALL_TIMEOUT`, in seconds, or `none`.
    ///
    /// # Errors
    /// One of them is no time.
    pub fn of(settings: &[(String, String)]) -> Result<Timeouts> {
        let mut timeouts = Timeouts::default();
        for (name, timeout) in [
            ("TESSERA_CONNECT_TIMEOUT", &mut timeouts.connect),
            ("TESSERA_FIRST_BYTE_TIMEOUT", &mut timeouts.first_byte),
            ("TESSERA_STALL_TIMEOUT", &mut timeouts.stall),
        ] {
            let set = settings
                .iter()
                .rev()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone());
            if let Some(text) =
                set.or_else(|| std::env::var(name).ok()).filter(|text| !text.is_empty())
            {
                *timeout = parse_timeout(&text).ok_or_else(|| {
                    Error::semantic(format!(
                        "{name} must be a number of seconds or none, not '{text}'"
                    ))
                })?;
            }
        }
        Ok(timeouts)
    }
}

/// The options of a client that waits for a connection no longer than this; its answers are watched
/// by [`execute`].
pub(crate) fn options(options: &ClientOptions, timeouts: Timeouts) -> ClientOptions {
    let key = ClientConfigKey::ConnectTimeout;
    // Servers that give credentials, on machines that may have none, are asked with a shorter one.
    let usual = options.get_config_value(&key) == ClientOptions::default().get_config_value(&key);
    let options = options.clone().with_timeout_disabled();
    match timeouts.connect {
        _ if !usual => options,
        Some(time) => options.with_connect_timeout(time),
        None => options.with_connect_timeout_disabled(),
    }
}

/// Sends a request. Where the server does not take it, does not answer or stops while it answers,
/// that is an error that names the setting.
pub(crate) async fn execute(
    client: &HttpClient,
    request: HttpRequest,
    timeouts: &Shared,
) -> std::result::Result<HttpResponse, HttpError> {
    let Timeouts { connect, first_byte, stall } = *lock(timeouts);
    let sent = client.execute(request);
    let answer = match first_byte {
        Some(time) => tokio::time::timeout(time, sent)
            .await
            .map_err(|_| late(HttpErrorKind::Timeout, Late::FirstByte, time))?,
        None => sent.await,
    };
    let answer = answer.map_err(|error| match (error.kind(), connect) {
        // Nothing else of the client's own ends in time.
        (HttpErrorKind::Timeout, Some(time)) => late(HttpErrorKind::Connect, Late::Connect, time),
        _ => error,
    })?;
    let Some(time) = stall else { return Ok(answer) };
    Ok(answer.map(|body| HttpResponseBody::new(Watched { body, time, timer: None })))
}

/// For what was waited.
#[derive(Debug, Clone, Copy)]
enum Late {
    Connect,
    FirstByte,
    Stall,
}

/// A wait that took too long.
#[derive(Debug)]
struct TooLate(Late, Duration);

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooLate(late, time) = self;
        let (what, setting) = match late {
            Late::Connect => ("there was no connection to the server", "connect_timeout"),
            Late::FirstByte => ("the server did not answer", "first_byte_timeout"),
            Late::Stall => {
                ("the server stopped within its answer, for longer than", "stall_timeout")
            }
        };
        let within = if matches!(late, Late::Stall) { "" } else { " within" };
        write!(f, "{what}{within} {} s (setting {setting})", time.as_secs_f64())
    }
}

impl std::error::Error for TooLate {}

fn late(kind: HttpErrorKind, late: Late, time: Duration) -> HttpError {
    HttpError::new(kind, TooLate(late, time))
}

/// A body whose pieces must come in time.
struct Watched {
    body: HttpResponseBody,
    time: Duration,
    /// Runs while a piece is waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Body for Watched {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, HttpError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.timer = None;
            return Poll::Ready(frame);
        }
        let until = || Box::pin(tokio::time::sleep_until(Instant::now() + this.time));
        let timer = this.timer.get_or_insert_with(until);
        match timer.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                Poll::Ready(Some(Err(late(HttpErrorKind::Interrupted, Late::Stall, this.time))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_settings() {
        let set = [("TESSERA_STALL_TIMEOUT".to_string(), "0.25".to_string())];
        assert_eq!(Timeouts::of(&set).unwrap().stall, Some(Duration::from_millis(250)));
        let wrong = [("TESSERA_CONNECT_TIMEOUT".to_string(), "soon".to_string())];
        assert!(Timeouts::of(&wrong).unwrap_err().message().contains("TESSERA_CONNECT_TIMEOUT"));
    }
}
