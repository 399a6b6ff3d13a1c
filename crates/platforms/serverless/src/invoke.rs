//! Starts workers: the Invoke API of AWS Lambda, with retries.
//!
//! Two requests need no SDK: this uses the HTTP client, the signatures and the credential chain
//! that come with the object stores. (`aws-sdk-lambda` alone is 174,000 lines.)

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
use crate::task::{Answer, Order, Stop};

/// How often a worker that was lost is started again.
const LOST_MAX: usize = 3;
/// No invocation that was refused, or whose answer did not come, is repeated after this time.
const REFUSED_MAX: Duration = Duration::from_secs(30);
/// The service ends a function after 15 minutes.
const ANSWER_MAX: Duration = Duration::from_secs(16 * 60);
/// The setting that says how long an answer may take.
pub(crate) const WORKER_TIMEOUT: &str = "TESSERA_WORKER_TIMEOUT";
/// The largest order that the service takes.
const ORDER_BYTES_MAX: usize = 6 << 20;
/// The first pause before something is tried again, and the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(400);

/// The pause before something is tried again for the `attempt`-th time, from 0.
pub(crate) fn pause(attempt: usize) -> Duration {
    PAUSE_FIRST.saturating_mul(1 << attempt.min(10)).min(PAUSE_MAX)
}

/// The setting that holds the token which a service on loopback asks for; Amazon's has signatures
/// instead.
const TOKEN: &str = "TESSERA_FUNCTIONS_TOKEN";

/// What shows a service on loopback that this program may ask it. It is in no message.
#[derive(Clone)]
pub(crate) struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// The token of the settings, where there is one.
    ///
    /// # Errors
    /// It cannot be sent.
    pub(crate) fn of(cloud: &Cloud) -> Result<Option<Token>> {
        match cloud.setting(TOKEN) {
            Some(token) if !token.chars().all(|c| c.is_ascii_graphic()) => {
                Err(Error::semantic(format!("{TOKEN} has characters that no token has")))
            }
            token => Ok(token.map(|token| Token(format!("Bearer {token}")))),
        }
    }

    pub(crate) fn show(&self, request: &mut HttpRequest) {
        // Of graphic characters a header can be made.
        if let Ok(value) = self.0.parse() {
            request.headers_mut().insert("authorization", value);
        }
        if let Some(value) = request.headers_mut().get_mut("authorization") {
            value.set_sensitive(true);
        }
    }
}

/// The function that is a worker.
pub(crate) struct Function {
    client: HttpClient,
    /// How long an answer may take.
    timeout: Option<Duration>,
    url: String,
    name: String,
    region: String,
    credentials: AwsCredentialProvider,
    /// Instead of credentials.
    token: Option<Token>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A client with this limit on how long an answer takes, if any.
pub(crate) fn client(timeout: Option<Duration>) -> Result<HttpClient> {
    // For TLS; an error says that the process has a provider already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let options = ClientOptions::new().with_allow_http(true);
    let options = match timeout {
        Some(timeout) => options.with_timeout(timeout),
        None => options.with_timeout_disabled(),
    };
    ReqwestConnector::default()
        .connect(&options)
        .map_err(|error| Error::io(format!("cannot make a client for HTTP: {error}")))
}

/// What came of a request: status, the header of that name, body.
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
    let bad = || Error::internal(format!("'{url}' is no address"));
    *request.method_mut() = method.parse().map_err(|_| bad())?;
    *request.uri_mut() = url.parse().map_err(|_| bad())?;
    Ok(request)
}

/// How one attempt ended.
enum Attempt {
    Answered(Answer),
    /// The worker ended without an answer.
    Lost(String),
    /// The service did not start it, or we did not hear of its answer; it may be tried again.
    Refused(String),
    /// There is no use in trying again.
    Failed(Error),
}

/// How long an answer may take: the setting, or what no service exceeds.
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

fn late(order: &Order, timeout: Duration) -> Error {
    Error::io(format!(
        "worker {} of {} did not answer within {} s (--worker-timeout); give it longer, or run with more --workers",
        order.index,
        order.workers,
        timeout.as_secs_f64()
    ))
}

impl Function {
    /// The function of a name, where the settings say.
    ///
    /// # Errors
    /// The settings do not fit together.
    pub(crate) fn new(name: &str, cloud: &Cloud) -> Result<Function> {
        let (credentials, region) = (cloud.aws)()?;
        let _runtime = cloud.io.enter();
        let endpoint = cloud.setting("AWS_ENDPOINT_URL_LAMBDA");
        // It is the service's of this address, and told to no other.
        let token = if endpoint.is_some() { Token::of(cloud)? } else { None };
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

    /// Runs a worker until it answers; starts it again when it is lost or was not started.
    pub(crate) async fn invoke(&self, order: &Order, stop: &Stop) -> Answer {
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
                        " and the statement has random() or the like, so that it cannot be done again"
                    };
                    format!("it was lost {lost} times{again}, last: {why}")
                }
                Attempt::Refused(why) if started.elapsed() < REFUSED_MAX => {
                    drop(why);
                    // Those who were refused together do not come back together.
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

    /// Shows that this program may ask.
    async fn sign(&self, request: &mut HttpRequest) -> Result<()> {
        if let Some(token) = &self.token {
            token.show(request);
            return Ok(());
        }
        let credential = self.credentials.get_credential().await;
        let credential = credential
            .map_err(|error| Error::io(format!("cannot find credentials of AWS: {error}")))?;
        AwsAuthorizer::new(&credential, "lambda", &self.region)
            .try_authorize(request, None)
            .map_err(|error| Error::io(format!("cannot sign a request: {error}")))
    }

    async fn attempt(&self, order: &Order) -> Attempt {
        let body = order.to_bytes();
        if body.len() > ORDER_BYTES_MAX {
            return Attempt::Failed(Error::unsupported(format!(
                "the plan has {} MiB as text, and a function can be sent 6; write shorter lists",
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
                Err(_) => return Attempt::Failed(late(order, timeout)),
            },
        };
        let (status, function_error, body) = match sent {
            Ok(answer) => answer,
            // It may be at work.
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
                            "worker {} of {} was ended because it took more memory than it may: {message}; give workers more \
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
                "the service runs no more at once ({}); run with fewer --workers, or raise the function's concurrency",
                text("message")
            )),
            500..=599 => Attempt::Refused(format!("the service answers {status}")),
            _ => {
                // Some answers say `message`, some `Message`.
                let said = [text("message"), text("Message")].concat();
                Attempt::Failed(Error::io(format!(
                    "cannot invoke the function '{}': the service answers {status}: {said}; see deploy/template.yaml for how to \
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
