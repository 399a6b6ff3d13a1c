//! Clients of stores, configured from the environment.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService,
};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, RetryConfig, StaticCredentialProvider,
};
use tessera_context::lock;
use tessera_types::{Error, Result};

use crate::io::TOTALS;
use crate::location::{Kind, Location};
use crate::timeouts::{self, SharedTimeouts};

/// The number of retries after transient errors, unless [`RETRIES`] is set.
const RETRIES_DEFAULT: usize = 8;
/// The environment variable for the number of retries.
pub(crate) const RETRIES: &str = "TESSERA_STORE_RETRIES";
/// The time after which requests are not retried.
const RETRY_TIMEOUT: Duration = Duration::from_secs(90);
/// The first pause before a retry; later ones are about twice as long each.
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
/// The longest pause.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Returns the number of retries.
pub(crate) fn retries(settings: &[(String, String)]) -> Result<usize> {
    let set =
        settings.iter().rev().find(|(name, _)| name == RETRIES).map(|(_, value)| value.clone());
    match set.or_else(|| std::env::var(RETRIES).ok()) {
        None => Ok(RETRIES_DEFAULT),
        Some(text) => text.trim().parse().map_err(|_| {
            Error::semantic(format!("{RETRIES} must be a number of retries, not '{text}'"))
        }),
    }
}

/// Returns the pause before retry number `attempt`, from 0.
pub(crate) fn pause(attempt: usize) -> Duration {
    BACKOFF_FIRST.saturating_mul(1 << attempt.min(10)).min(BACKOFF_MAX)
}

/// Whether to retry after response number `attempt`, from 0, was cut, which the client does not do
/// itself. Waits before it returns `true`.
pub(crate) async fn should_retry(
    error: &object_store::Error,
    attempt: usize,
    retries: usize,
) -> bool {
    let should_retry = matches!(error, object_store::Error::Generic { .. }) && attempt < retries;
    if should_retry {
        tokio::time::sleep(pause(attempt)).await;
    }
    should_retry
}

// The builders of the three clouds have the same methods but no common trait.
macro_rules! from_environment {
    ($builder:ty, $settings:expr) => {{
        let mut builder = <$builder>::from_env();
        for (name, value) in $settings {
            if let Ok(key) = name.to_ascii_lowercase().parse() {
                builder = builder.with_config(key, value);
            }
        }
        builder
    }};
}

/// Configures S3 from the environment; `settings` of the same names take precedence.
pub(crate) fn s3(settings: &[(String, String)]) -> AmazonS3Builder {
    from_environment!(AmazonS3Builder, settings)
}

/// Configures Google Cloud Storage from the environment; `settings` take precedence.
fn google(settings: &[(String, String)]) -> GoogleCloudStorageBuilder {
    let builder = from_environment!(GoogleCloudStorageBuilder, settings);
    let unsigned = builder.get_config_value(&GoogleConfigKey::SkipSignature);
    match unsigned.is_some_and(|unsigned| unsigned.eq_ignore_ascii_case("true")) {
        // The client always looks for credentials: files that contain them and, for writes, a
        // metadata server.
        true => builder.with_credentials(Arc::new(StaticCredentialProvider::new(GcpCredential {
            bearer: String::new(),
        }))),
        false => builder,
    }
}

/// Returns the configured region.
pub(crate) fn region(builder: &AmazonS3Builder) -> String {
    let region = builder.get_config_value(&AmazonS3ConfigKey::Region);
    region.unwrap_or_else(|| "us-east-1".to_string())
}

/// Returns a client of the store of a location, configured from the environment; `settings` of the
/// same names take precedence.
///
/// # Errors
/// The environment is inconsistent.
pub(crate) fn build(
    location: &Location,
    settings: &[(String, String)],
    timeouts: SharedTimeouts,
) -> Result<(Arc<dyn ObjectStore>, Server)> {
    let counting = CountingConnector::new(timeouts);
    let server = counting.server.clone();
    let retry = RetryConfig {
        backoff: BackoffConfig { init_backoff: BACKOFF_FIRST, max_backoff: BACKOFF_MAX, base: 2.0 },
        max_retries: retries(settings)?,
        retry_timeout: RETRY_TIMEOUT,
    };
    let url = location.root.trim_end_matches('/');
    macro_rules! finished {
        ($builder:expr) => {{
            let builder = $builder.with_retry(retry).with_http_connector(counting);
            builder.with_url(url).build().map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
        }};
    }
    let built = match location.kind {
        Kind::S3 => finished!(s3(settings)),
        Kind::Google => finished!(google(settings)),
        Kind::Azure => finished!(from_environment!(MicrosoftAzureBuilder, settings)),
        Kind::Web => {
            let options = ClientOptions::new().with_allow_http(true);
            let builder =
                HttpBuilder::new().with_client_options(options).with_http_connector(counting);
            builder
                .with_retry(retry)
                .with_url(url)
                .build()
                .map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
        }
    };
    built.map(|store| (store, server)).map_err(|error| {
        let reason = match &error {
            object_store::Error::Generic { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        Error::io(format!("cannot reach '{url}': {reason}; {}", hint(location.kind)))
    })
}

/// Advice for users if a store refuses.
pub(crate) fn hint(kind: Kind) -> &'static str {
    match kind {
        Kind::S3 => {
            "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SKIP_SIGNATURE=true for a public bucket), AWS_REGION, and \
             for other stores than Amazon's AWS_ENDPOINT_URL (AWS_ALLOW_HTTP=true for http://)"
        }
        Kind::Google => {
            "check GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT (GOOGLE_SKIP_SIGNATURE=true for a public bucket), and \
             for other stores than Google's GOOGLE_BASE_URL"
        }
        Kind::Azure => {
            "check AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY (or AZURE_STORAGE_SAS_KEY; \
             AZURE_SKIP_SIGNATURE=true for a public container), and for other stores than Microsoft's AZURE_STORAGE_ENDPOINT \
             (AZURE_ALLOW_HTTP=true for http://)"
        }
        Kind::Web => "check the address, and that the server answers without a login",
    }
}

/// Installs the TLS provider that an HTTP client requires, even for addresses without TLS.
pub(crate) fn provide_tls() {
    // An error means that the process has a provider already.
    drop(rustls::crypto::ring::default_provider().install_default());
}

/// The store's name for itself, from its first response.
pub(crate) type Server = Arc<OnceLock<Box<str>>>;

/// A connector whose clients time responses, count every request including retries, and record the
/// store's name.
#[derive(Debug)]
pub(crate) struct CountingConnector {
    server: Server,
    timeouts: SharedTimeouts,
}

impl CountingConnector {
    pub(crate) fn new(timeouts: SharedTimeouts) -> CountingConnector {
        CountingConnector { server: Server::default(), timeouts }
    }
}

impl HttpConnector for CountingConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        provide_tls();
        let options = timeouts::options(options, *lock(&self.timeouts));
        let client = object_store::client::ReqwestConnector::default().connect(&options)?;
        let (server, timeouts) = (self.server.clone(), self.timeouts.clone());
        Ok(HttpClient::new(CountingService { client, server, timeouts }))
    }
}

#[derive(Debug)]
struct CountingService {
    client: HttpClient,
    server: Server,
    timeouts: SharedTimeouts,
}

type Answer = std::result::Result<HttpResponse, HttpError>;

impl HttpService for CountingService {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let sent = request.body().content_length();
        TOTALS.add_request(request.method().as_str(), request.uri().query(), sent);
        Box::pin(async move {
            let answer = timeouts::execute(&self.client, request, &self.timeouts).await?;
            let said = answer.headers().get("server").and_then(|said| said.to_str().ok());
            if let Some(said) = said.filter(|_| self.server.get().is_none()) {
                drop(self.server.set(said.into()));
            }
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_store_is_set_up_from_settings() {
        let settings = [
            ("AWS_SKIP_SIGNATURE", "true"),
            ("GOOGLE_SKIP_SIGNATURE", "true"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
            ("AZURE_SKIP_SIGNATURE", "true"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()));
        let _runtime = crate::io::handle().unwrap().enter();
        for (address, shown) in [
            ("s3://bucket/x", "AmazonS3(bucket)"),
            ("s3a://bucket/x", "AmazonS3(bucket)"),
            ("gs://bucket/x", "GoogleCloudStorage(bucket)"),
            ("az://box/x", "account: account, container: box"),
            ("abfss://box@account.dfs.core.windows.net/x", "account: account, container: box"),
            ("https://example.org/x", "HttpStore"),
        ] {
            let (store, _) =
                build(&Location::parse(address).unwrap(), &settings, SharedTimeouts::default())
                    .unwrap();
            assert!(store.to_string().contains(shown), "{address}: {store}");
        }
        let wrong = [(RETRIES.to_string(), "many".to_string())];
        assert!(retries(&wrong).unwrap_err().message().contains(RETRIES));
    }

    #[test]
    fn pauses_grow_to_a_bound() {
        assert_eq!(pause(0), BACKOFF_FIRST);
        assert_eq!(pause(2), BACKOFF_FIRST * 4);
        assert_eq!(pause(1_000), BACKOFF_MAX);
    }
}
