//! Timeouts of requests: for the connection, for the start of a response, and between two pieces of
//! it.

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

/// The timeouts of a session; `None` waits forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection is made: setting `connect_timeout`.
    pub connect: Option<Duration>,
    /// Until a response begins, including sending: setting `first_byte_timeout`.
    pub first_byte: Option<Duration>,
    /// Between two pieces of a response: setting `stall_timeout`.
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

/// The timeouts of a session, which its statements may change.
pub(crate) type SharedTimeouts = Arc<Mutex<Timeouts>>;

impl Timeouts {
    /// Reads settings or environment variables: `TESSERA_CONNECT_TIMEOUT`,
    /// `TESSERA_FIRST_BYTE_TIMEOUT`, `TESSERA_STALL_TIMEOUT`, in seconds, or `none`.
    ///
    /// # Errors
    /// A value is not a duration.
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

/// Returns options of a client with this connect timeout. [`execute`] times its responses.
pub(crate) fn options(options: &ClientOptions, timeouts: Timeouts) -> ClientOptions {
    let key = ClientConfigKey::ConnectTimeout;
    // Clients of credential servers, which may not exist on this machine, have a shorter timeout.
    let usual = options.get_config_value(&key) == ClientOptions::default().get_config_value(&key);
    let options = options.clone().with_timeout_disabled();
    match timeouts.connect {
        _ if !usual => options,
        Some(time) => options.with_connect_timeout(time),
        None => options.with_connect_timeout_disabled(),
    }
}

/// Sends a request. A timeout is an error that names its setting.
pub(crate) async fn execute(
    client: &HttpClient,
    request: HttpRequest,
    timeouts: &SharedTimeouts,
) -> std::result::Result<HttpResponse, HttpError> {
    let Timeouts { connect, first_byte, stall } = *lock(timeouts);
    let sent = client.execute(request);
    let answer = match first_byte {
        Some(time) => tokio::time::timeout(time, sent)
            .await
            .map_err(|_| phase_timeout(HttpErrorKind::Timeout, Phase::FirstByte, time))?,
        None => sent.await,
    };
    let answer = answer.map_err(|error| match (error.kind(), connect) {
        // The client has no other timeout of its own.
        (HttpErrorKind::Timeout, Some(time)) => {
            phase_timeout(HttpErrorKind::Connect, Phase::Connect, time)
        }
        _ => error,
    })?;
    let Some(time) = stall else { return Ok(answer) };
    Ok(answer.map(|body| HttpResponseBody::new(TimedBody { body, time, timer: None })))
}

/// The phase of a request that timed out.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Connect,
    FirstByte,
    Stall,
}

/// The error of a phase that timed out.
#[derive(Debug)]
struct PhaseTimeout(Phase, Duration);

impl fmt::Display for PhaseTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PhaseTimeout(phase_timeout, time) = self;
        let (what, setting) = match phase_timeout {
            Phase::Connect => ("the connection to the server was not made", "connect_timeout"),
            Phase::FirstByte => ("the server did not answer", "first_byte_timeout"),
            Phase::Stall => {
                ("the server stalled within its response for longer than", "stall_timeout")
            }
        };
        let within = if matches!(phase_timeout, Phase::Stall) { "" } else { " within" };
        write!(f, "{what}{within} {} s (setting {setting})", time.as_secs_f64())
    }
}

impl std::error::Error for PhaseTimeout {}

fn phase_timeout(kind: HttpErrorKind, phase_timeout: Phase, time: Duration) -> HttpError {
    HttpError::new(kind, PhaseTimeout(phase_timeout, time))
}

/// A response body with a timeout between pieces.
struct TimedBody {
    body: HttpResponseBody,
    time: Duration,
    /// Runs while the body waits for a piece.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Body for TimedBody {
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
            Poll::Ready(()) => Poll::Ready(Some(Err(phase_timeout(
                HttpErrorKind::Interrupted,
                Phase::Stall,
                this.time,
            )))),
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
