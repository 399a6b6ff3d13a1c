//! The worker's side of AWS Lambda: the Runtime API, four requests to a server on the same machine.
//!
//! The crate `lambda_runtime` does the same, and turns on features of `serde` with which Arrow and
//! DataFusion would be built a second time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::client::{HttpClient, HttpRequest};
use tessera_types::{Error, Result};

use crate::invoke::{Token, client, request, send};

/// The service stops a worker that has nothing to do for as long as it likes.
const NEXT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Where orders come from.
#[derive(Debug, Clone)]
pub(crate) struct Runtime {
    client: Arc<HttpClient>,
    base: String,
    token: Option<Token>,
}

impl Runtime {
    /// The service at `host:port`, which may ask for a token.
    ///
    /// # Errors
    /// There can be no client.
    pub(crate) fn new(host: &str, token: Option<Token>) -> Result<Runtime> {
        let base = format!("http://{host}/2018-06-01/runtime");
        Ok(Runtime { client: Arc::new(client(Some(NEXT_MAX))?), base, token })
    }

    fn show_token(&self, request: &mut HttpRequest) {
        if let Some(token) = &self.token {
            token.show(request);
        }
    }

    /// Waits for the next order; gives its number and its bytes.
    pub(crate) async fn next(&self) -> Result<(String, Bytes)> {
        let mut next = request("GET", &format!("{}/invocation/next", self.base), Vec::new())?;
        self.show_token(&mut next);
        match send(&self.client, next, "lambda-runtime-aws-request-id").await {
            Ok((200, Some(id), body)) => Ok((id, body)),
            Ok((status, ..)) => Err(Error::io(format!("the function service answers {status}"))),
            Err(error) => Err(Error::io(format!("the function service is gone: {error}"))),
        }
    }

    /// Answers an order.
    pub(crate) async fn answer(&self, id: &str, answer: Vec<u8>) -> Result<()> {
        let mut answer =
            request("POST", &format!("{}/invocation/{id}/response", self.base), answer)?;
        self.show_token(&mut answer);
        match send(&self.client, answer, "none").await {
            Ok((200..=299, ..)) => Ok(()),
            Ok((status, ..)) => Err(Error::io(format!("the function service answers {status}"))),
            Err(error) => Err(Error::io(format!("the function service is gone: {error}"))),
        }
    }
}
