//! Sends select requests, signed like the store's other requests.

use std::sync::Arc;
use std::time::Duration;

use object_store::ClientOptions;
use object_store::aws::{AmazonS3, AmazonS3ConfigKey, AwsAuthorizer};
use object_store::client::{HttpClient, HttpConnector, HttpRequest, HttpResponse};
use object_store::path::Path;
use object_store::signer::Signer;
use tessera_types::{Error, Result};

use crate::error::reason;
use crate::location::Location;
use crate::store::{self, CountingConnector, hint};
use crate::timeouts::SharedTimeouts;

/// The lifetime of a signed URL, which is used only to obtain an object's URL.
const ADDRESS_LIFE: Duration = Duration::from_secs(60);

/// A client of one bucket.
#[derive(Debug)]
pub(crate) struct SelectClient {
    http: HttpClient,
    /// Provides URLs and credentials.
    store: AmazonS3,
    region: String,
    signed: bool,
}

/// The failure of a request.
pub(crate) enum SendError {
    /// Another attempt may succeed.
    Transient(String),
    /// Retrying is pointless.
    Permanent(Error),
}

impl SelectClient {
    /// Creates a client of the bucket of a location, for use on the I/O thread.
    ///
    /// # Errors
    /// The environment is inconsistent.
    pub(crate) fn new(
        location: &Location,
        settings: &[(String, String)],
        timeouts: SharedTimeouts,
    ) -> Result<SelectClient> {
        let url = location.root.trim_end_matches('/');
        let failed = |error| {
            Error::io(format!("cannot reach '{url}': {}; {}", reason(&error), hint(location.kind)))
        };
        let mut builder = store::s3(settings).with_url(url);
        let region = store::region(&builder);
        let skips = builder.get_config_value(&AmazonS3ConfigKey::SkipSignature);
        let signed = skips.as_deref() != Some("true");
        if !signed {
            // Not used to sign, but the client needs credentials to provide URLs.
            builder = builder.with_access_key_id("none").with_secret_access_key("none");
        }
        let options = ClientOptions::new().with_allow_http(true);
        let http = CountingConnector::new(timeouts).connect(&options).map_err(failed)?;
        Ok(SelectClient { http, store: builder.build().map_err(failed)?, region, signed })
    }

    /// Sends a select request. Returns the response once its head reports success.
    pub(crate) async fn send(
        &self,
        address: &str,
        path: &Path,
        body: &str,
    ) -> std::result::Result<HttpResponse, SendError> {
        let failed = |error: object_store::Error| {
            SendError::Permanent(crate::error::store_error("select from", address, error))
        };
        let mut url = self
            .store
            .signed_url("POST".parse().unwrap_or_default(), path, ADDRESS_LIFE)
            .await
            .map_err(failed)?;
        url.set_query(Some("select&select-type=2"));
        let bad = |_| SendError::Permanent(Error::internal(format!("'{address}' has no URL")));
        let mut request = HttpRequest::new(body.to_string().into());
        *request.method_mut() = "POST".parse().unwrap_or_default();
        *request.uri_mut() = url.as_str().parse().map_err(bad)?;
        if self.signed {
            let credential = self.store.credentials().get_credential().await.map_err(failed)?;
            let authorizer = AwsAuthorizer::new(&credential, "s3", &self.region);
            authorizer.try_authorize(&mut request, None).map_err(failed)?;
        }
        let answer = match self.http.execute(request).await {
            Ok(answer) => answer,
            Err(error) => return Err(SendError::Transient(innermost(&error))),
        };
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let text = answer.into_body().bytes().await.unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let said = said(&text, status.as_u16());
        match status.as_u16() {
            408 | 429 | 500.. => Err(SendError::Transient(said)),
            _ => Err(SendError::Permanent(select_failed(address, &said))),
        }
    }
}

/// Returns the status and message of a failed response.
fn said(xml: &str, status: u16) -> String {
    let element = |tag| super::event::element_text(xml, tag).unwrap_or_default();
    let said = [element("Code"), element("Message")].join(", ");
    format!("the server answers {status}: {}", said.trim_matches([',', ' ']))
}

/// The error if a store cannot select from an object.
pub(crate) fn select_failed(address: &str, why: &str) -> Error {
    Error::io(format!(
        "cannot select from '{address}': {why}; SET smart_storage = off reads the object itself"
    ))
}

/// Returns the innermost cause; outer layers only repeat it.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// Clients by bucket.
pub(crate) type Clients = std::collections::HashMap<String, Arc<SelectClient>>;
