//! Invokes workers through the Invoke API of AWS Lambda, with retries.
//!
//! Two requests do not justify an SDK (`aws-sdk-lambda` alone has 174,000 lines): this module uses
//! the HTTP client, signatures and credential chain of the object store client.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use object_store::ClientOptions;
use object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use object_store::client::{HttpClient, HttpConnector, HttpRequest, ReqwestConnector};
use serde_json::Value as Json;
use tessera_types::{Code, Error, Result};

use crate::cloud::Cloud;
use crate::report::Usage;
use crate::task::{Answer, Order, StopSignal};

/// The maximum number of restarts of a lost worker.
const LOST_MAX: usize = 3;
/// Refused or unanswered invocations are not retried after this time.
const REFUSED_MAX: Duration = Duration::from_secs(30);
/// The default timeout of an answer; the service ends a function after 15 minutes.
const ANSWER_MAX: Duration = Duration::from_secs(16 * 60);
/// The setting for the timeout of an answer.
pub(crate) const WORKER_TIMEOUT: &str = "TESSERA_WORKER_TIMEOUT";
/// The maximum size of an invocation's payload.
const ORDER_BYTES_MAX: usize = 6 << 20;
/// The first pause before a retry, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(400);

/// Returns the pause before retry `attempt`, counted from 0.
pub(crate) fn pause(attempt: usize) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << attempt.min(10)).min(PAUSE_MAX)
}

/// The setting with the token that a service on loopback requires; Amazon's service uses signatures
/// instead.
const TOKEN: &str = "TESSERA_FUNCTIONS_TOKEN";

/// A token that authorizes this program at a service on loopback. It appears in no message.
#[derive(Clone)]
pub(crate) struct ServiceToken(String);

impl std::fmt::Debug for ServiceToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServiceToken")
    }
}

impl ServiceToken {
    /// Returns the token of the settings, if there is one.
    ///
    /// # Errors
    /// The token cannot be sent in a header.
    pub(crate) fn of(cloud: &Cloud) -> Result<Option<ServiceToken>> {
        match cloud.setting(TOKEN) {
            Some(token) if !token.chars().all(|c| c.is_ascii_graphic()) => Err(Error::semantic(
                format!("invalid characters in {TOKEN}; use printable ASCII without spaces"),
            )),
            token => Ok(token.map(|token| ServiceToken(format!("Bearer {token}")))),
        }
    }

    pub(crate) fn authorize(&self, request: &mut HttpRequest) {
        // A token of graphic characters is a valid header value.
        if let Ok(value) = self.0.parse() {
            request.headers_mut().insert("authorization", value);
        }
        if let Some(value) = request.headers_mut().get_mut("authorization") {
            value.set_sensitive(true);
        }
    }
}

/// The cloud function that runs workers.
pub(crate) struct Function {
    client: HttpClient,
    /// The timeout of an answer.
    timeout: Option<Duration>,
    url: String,
    name: String,
    region: String,
    credentials: AwsCredentialProvider,
    /// Replaces credentials if set.
    token: Option<ServiceToken>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Returns an HTTP client with this timeout, if any.
pub(crate) fn client(timeout: Option<Duration>) -> Result<HttpClient> {
    // Installs a TLS provider; the error that the process already has one is ignored.
    drop(rustls::crypto::ring::default_provider().install_default());
    let options = ClientOptions::new().with_allow_http(true);
    let options = match timeout {
        Some(timeout) => options.with_timeout(timeout),
        None => options.with_timeout_disabled(),
    };
    ReqwestConnector::default()
        .connect(&options)
        .map_err(|error| Error::io(format!("cannot create an HTTP client: {error}")))
}

/// Sends a request; returns the status, the value of `header`, and the body.
pub(crate) async fn send(
    client: &HttpClient,
    request: HttpRequest,
    header: &str,
) -> std::result::Result<(u16, Option<String>, Bytes), String> {
    let answer = client.execute(request).await.map_err(|error| error.to_string())?;
    let status = answer.status().as_u16();
    let header =
        answer.headers().get(header).and_then(|value| value.to_str().ok()).map(str::to_string);
    let mut stream = answer.into_body().bytes_stream();
    let mut body = BytesMut::new();
    while let Some(piece) = stream.next().await {
        body.extend_from_slice(&piece.map_err(|error| error.to_string())?);
    }
    Ok((status, header, body.freeze()))
}

pub(crate) fn request(method: &str, url: &str, body: Vec<u8>) -> Result<HttpRequest> {
    let mut request = HttpRequest::new(body.into());
    let bad = || Error::internal(format!("invalid address '{url}'"));
    *request.method_mut() = method.parse().map_err(|_| bad())?;
    *request.uri_mut() = url.parse().map_err(|_| bad())?;
    Ok(request)
}

/// The result of one attempt.
enum Attempt {
    Answered(Answer),
    /// The worker ended without an answer.
    Lost(String),
    /// The service did not start the worker, or its answer did not arrive; a retry may help.
    Refused(String),
    /// A retry is useless.
    Failed(Error),
}

/// Returns the timeout of an answer: the setting, or a default above the limit of every service.
fn worker_timeout(cloud: &Cloud) -> Result<Option<Duration>> {
    let Some(text) = cloud.setting(WORKER_TIMEOUT) else { return Ok(Some(ANSWER_MAX)) };
    if text.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    let seconds = text.trim_end_matches('s').parse::<f64>().ok().filter(|seconds| *seconds > 0.0);
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let wrong = || {
        Error::semantic(format!(
            "{WORKER_TIMEOUT} must be a number of seconds above 0, or none, not '{text}'"
        ))
    };
    timeout.map(Some).ok_or_else(wrong)
}

fn timeout_error(order: &Order, timeout: Duration) -> Error {
    Error::io(format!(
        "worker {} of {} did not answer within {} s (--worker-timeout); give it longer, or run with more --workers",
        order.index,
        order.workers,
        timeout.as_secs_f64()
    ))
}

impl Function {
    /// Returns the function of this name, at the service of the settings.
    ///
    /// # Errors
    /// The settings are inconsistent.
    pub(crate) fn new(name: &str, cloud: &Cloud) -> Result<Function> {
        let (credentials, region) = (cloud.aws)()?;
        let _runtime = cloud.io.enter();
        let endpoint = cloud.setting("AWS_ENDPOINT_URL_LAMBDA");
        // The token belongs to the service at this address and is sent to no other.
        let token = if endpoint.is_some() { ServiceToken::of(cloud)? } else { None };
        let endpoint = endpoint.unwrap_or_else(|| format!("https://lambda.{region}.amazonaws.com"));
        Ok(Function {
            client: client(None)?,
            timeout: worker_timeout(cloud)?,
            url: format!(
                "{}/2015-03-31/functions/{name}/invocations",
                endpoint.trim_end_matches('/')
            ),
            name: name.to_string(),
            region,
            credentials,
            token,
        })
    }

    /// Invokes a worker until it answers; retries if it is lost or refused.
    pub(crate) async fn invoke(&self, order: &Order, stop: &StopSignal) -> Answer {
        let started = Instant::now();
        let (mut lost, mut invocations, mut pauses) = (0, 0, 0);
        let mut usage = Usage::default();
        let (mut answer, error) = loop {
            if let Err(error) = stop.check() {
                break (Answer::default(), Some(error));
            }
            let why = match self.attempt(order).await {
                Attempt::Answered(answer) => {
                    invocations += 1;
                    break (answer, None);
                }
                Attempt::Failed(error) => break (Answer::default(), Some(error)),
                Attempt::Lost(why) => {
                    (lost, invocations) = (lost + 1, invocations + 1);
                    if lost <= LOST_MAX && order.repeatable {
                        continue;
                    }
                    let again = if order.repeatable {
                        ""
                    } else {
                        " and cannot be repeated, since the statement calls a function such as random()"
                    };
                    format!("it was lost {lost} times{again}, last: {why}")
                }
                Attempt::Refused(why) if started.elapsed() < REFUSED_MAX => {
                    drop(why);
                    // Spread the retries of workers that were refused together.
                    let spread = Duration::from_millis(7 * (order.index as u64 % 16));
                    tokio::time::sleep(pause(pauses) + spread).await;
                    pauses += 1;
                    continue;
                }
                Attempt::Refused(why) => format!("it could not be started: {why}"),
            };
            let message = format!("worker {} of {} failed: {why}", order.index, order.workers);
            break (Answer::default(), Some(Error::io(message)));
        };
        usage.add_invocations(invocations, lost as u64);
        answer.add(Answer { usage, error, ..Answer::default() });
        answer
    }

    /// Adds the token or a signature to a request.
    async fn sign(&self, request: &mut HttpRequest) -> Result<()> {
        if let Some(token) = &self.token {
            token.authorize(request);
            return Ok(());
        }
        let credential = self.credentials.get_credential().await;
        let credential = credential
            .map_err(|error| Error::io(format!("cannot find AWS credentials: {error}")))?;
        AwsAuthorizer::new(&credential, "lambda", &self.region)
            .try_authorize(request, None)
            .map_err(|error| Error::io(format!("cannot sign a request: {error}")))
    }

    async fn attempt(&self, order: &Order) -> Attempt {
        let body = order.to_bytes();
        if body.len() > ORDER_BYTES_MAX {
            return Attempt::Failed(Error::unsupported(format!(
                "the plan has {} MiB as text, above the limit of 6 MiB; write shorter lists",
                body.len() >> 20
            )));
        }
        let mut request = match request("POST", &self.url, body) {
            Ok(request) => request,
            Err(error) => return Attempt::Failed(error),
        };
        if let Err(error) = self.sign(&mut request).await {
            return Attempt::Failed(error);
        }
        let sent = send(&self.client, request, "x-amz-function-error");
        let sent = match self.timeout {
            None => sent.await,
            Some(timeout) => match tokio::time::timeout(timeout, sent).await {
                Ok(sent) => sent,
                Err(_) => return Attempt::Failed(timeout_error(order, timeout)),
            },
        };
        let (status, function_error, body) = match sent {
            Ok(answer) => answer,
            // The worker may be running.
            Err(error) if !order.repeatable => return Attempt::Lost(error),
            Err(error) => return Attempt::Refused(error),
        };
        let text = |name: &str| {
            let json: Json = serde_json::from_slice(&body).unwrap_or_default();
            json[name].as_str().unwrap_or_default().to_string()
        };
        match status {
            200 if function_error.is_some() => {
                let (kind, message) = (text("errorType"), text("errorMessage"));
                if kind == "Runtime.OutOfMemory" {
                    return Attempt::Failed(Error::new(
                        Code::Limit,
                        format!(
                            "worker {} of {} ran out of memory: {message}; give workers more \
                             memory (--worker-memory, or MemorySize of the function), or run with more --workers",
                            order.index, order.workers
                        ),
                    ));
                }
                Attempt::Lost(message)
            }
            200 => match Answer::from_bytes(&body) {
                Ok(answer) => Attempt::Answered(answer),
                Err(error) => Attempt::Failed(error),
            },
            429 => Attempt::Refused(format!(
                "the service has reached its concurrency limit ({}); run with fewer --workers, or raise the function's concurrency",
                text("message")
            )),
            500..=599 => Attempt::Refused(format!("the service answers {status}")),
            _ => {
                // Some answers have `message`, some `Message`.
                let message = [text("message"), text("Message")].concat();
                Attempt::Failed(Error::io(format!(
                    "cannot invoke the function '{}': the service answers {status}: {message}; see deploy/template.yaml for how to \
                     set it up, and --function for its name",
                    self.name
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        assert_eq!((pause(0), pause(1), pause(99)), (PAUSE_FIRST, PAUSE_FIRST * 2, PAUSE_MAX));
    }
}
