//! The worker side of AWS Lambda: a client of the Runtime API of a server on the same machine.
//!
//! The crate `lambda_runtime` does the same but enables `serde` features that would build Arrow and
//! DataFusion a second time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::client::{HttpClient, HttpRequest};
use tessera_types::{Error, Result};

use crate::invoke::{ServiceToken, client, request, send};

/// The timeout of the wait for an order; the service itself stops idle workers.
const NEXT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The service that sends orders.
#[derive(Debug, Clone)]
pub(crate) struct Runtime {
    client: Arc<HttpClient>,
    base: String,
    token: Option<ServiceToken>,
}

impl Runtime {
    /// Returns the client of the service at `host:port`, which may require a token.
    ///
    /// # Errors
    /// The HTTP client cannot be created.
    pub(crate) fn new(host: &str, token: Option<ServiceToken>) -> Result<Runtime> {
        let base = format!("http://{host}/2018-06-01/runtime");
        Ok(Runtime { client: Arc::new(client(Some(NEXT_MAX))?), base, token })
    }

    fn authorize(&self, request: &mut HttpRequest) {
        if let Some(token) = &self.token {
            token.authorize(request);
        }
    }

    /// Waits for the next order; returns its number and its bytes.
    pub(crate) async fn next(&self) -> Result<(String, Bytes)> {
        let mut next = request("GET", &format!("{}/invocation/next", self.base), Vec::new())?;
        self.authorize(&mut next);
        match send(&self.client, next, "lambda-runtime-aws-request-id").await {
            Ok((200, Some(id), body)) => Ok((id, body)),
            Ok((status, ..)) => Err(Error::io(format!("the function service answers {status}"))),
            Err(error) => Err(Error::io(format!("lost the function service: {error}"))),
        }
    }

    /// Sends the answer to an order.
    pub(crate) async fn answer(&self, id: &str, answer: Vec<u8>) -> Result<()> {
        let mut answer =
            request("POST", &format!("{}/invocation/{id}/response", self.base), answer)?;
        self.authorize(&mut answer);
        match send(&self.client, answer, "none").await {
            Ok((200..=299, ..)) => Ok(()),
            Ok((status, ..)) => Err(Error::io(format!("the function service answers {status}"))),
            Err(error) => Err(Error::io(format!("lost the function service: {error}"))),
        }
    }
}
