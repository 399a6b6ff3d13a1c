//! Clients of stores, set up from the environment.

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
use crate::timeouts::{self, Shared};

/// How often a request that failed for a passing reason is sent again, unless [`RETRIES`] says
/// otherwise.
const RETRIES_DEFAULT: usize = 8;
/// The environment variable that says how often.
pub(crate) const RETRIES: &str = "TESSERA_STORE_RETRIES";
/// No request is sent again after this time.
const RETRY_TIMEOUT: Duration = Duration::from_secs(90);
/// The first pause before a request is sent again; each later one is about twice as long.
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
/// The longest pause.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// How often a request is sent again.
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

/// The pause before a request is sent again for the `attempt`-th time, from 0.
pub(crate) fn pause(attempt: usize) -> Duration {
    BACKOFF_FIRST.saturating_mul(1 << attempt.min(10)).min(BACKOFF_MAX)
}

/// Whether to ask again after the `attempt`-th answer, from 0, was cut, which the client does not
/// do by itself; waits before that.
pub(crate) async fn again(error: &object_store::Error, attempt: usize, retries: usize) -> bool {
    let again = matches!(error, object_store::Error::Generic { .. }) && attempt < retries;
    if again {
        tokio::time::sleep(pause(attempt)).await;
    }
    again
}

// The three clouds' builders have the same methods, but no trait.
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

/// What the environment says of S3, with `settings` of the same names before it.
pub(crate) fn s3(settings: &[(String, String)]) -> AmazonS3Builder {
    from_environment!(AmazonS3Builder, settings)
}

/// What the environment says of Google Cloud Storage, with `settings` of the same names before it.
fn google(settings: &[(String, String)]) -> GoogleCloudStorageBuilder {
    let builder = from_environment!(GoogleCloudStorageBuilder, settings);
    let unsigned = builder.get_config_value(&GoogleConfigKey::SkipSignature);
    match unsigned.is_some_and(|unsigned| unsigned.eq_ignore_ascii_case("true")) {
        // The client looks for credentials in any case: the files that hold them, and for writing a
        // server that gives them.
        true => builder.with_credentials(Arc::new(StaticCredentialProvider::new(GcpCredential {
            bearer: String::new(),
        }))),
        false => builder,
    }
}

/// The region that the environment says.
pub(crate) fn region(builder: &AmazonS3Builder) -> String {
    let region = builder.get_config_value(&AmazonS3ConfigKey::Region);
    region.unwrap_or_else(|| "us-east-1".to_string())
}

/// A client of the store that a location is in: what the environment says, with `settings` of the
/// same names before it.
///
/// # Errors
/// What the environment says does not fit together.
pub(crate) fn build(
    location: &Location,
    settings: &[(String, String)],
    timeouts: Shared,
) -> Result<(Arc<dyn ObjectStore>, Server)> {
    let counting = Counting::new(timeouts);
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

/// What a user can do about a store that refuses.
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

/// What a client of HTTP needs before it is made, even for addresses without TLS.
pub(crate) fn provide_tls() {
    // An error says that the process has a provider already.
    drop(rustls::crypto::ring::default_provider().install_default());
}

/// What a store's first answer says it is.
pub(crate) type Server = Arc<OnceLock<Box<str>>>;

/// Connects as usual, watches how long answers take, counts every request that leaves, those sent
/// again included, and keeps what the store says it is.
#[derive(Debug)]
pub(crate) struct Counting {
    server: Server,
    timeouts: Shared,
}

impl Counting {
    pub(crate) fn new(timeouts: Shared) -> Counting {
        Counting { server: Server::default(), timeouts }
    }
}

impl HttpConnector for Counting {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        provide_tls();
        let options = timeouts::options(options, *lock(&self.timeouts));
        let client = object_store::client::ReqwestConnector::default().connect(&options)?;
        let (server, timeouts) = (self.server.clone(), self.timeouts.clone());
        Ok(HttpClient::new(Counted { client, server, timeouts }))
    }
}

#[derive(Debug)]
struct Counted {
    client: HttpClient,
    server: Server,
    timeouts: Shared,
}

type Answer = std::result::Result<HttpResponse, HttpError>;

impl HttpService for Counted {
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
                build(&Location::parse(address).unwrap(), &settings, Shared::default()).unwrap();
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
