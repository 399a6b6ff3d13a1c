//! A function service and an object store on loopback, to run and test platform `serverless`
//! without a cloud.
//!
//! [`Local::start`] listens on two loopback ports. One serves the part of S3 that the engine uses
//! (`store`), including SelectObjectContent (`select`); the program evaluates its SQL. The other
//! serves the Invoke and Runtime APIs of AWS Lambda (`functions`): it starts worker processes with
//! the delay of a cold start, kills those that exceed their memory, limits concurrent invocations,
//! and counts what would be billed. Both can inject faults (`faults`). Everything ends with the
//! process that started it, however that ends.
//!
//! Both refuse requests without their secrets, which are new for each start: a key of 256 random
//! bits that signs requests to the store, and a token of 256 random bits for the function service
//! and its workers. Child processes get both in their environment. Files are in a directory that
//! only the user can access.
//!
//! This crate does not depend on the engine: it implements protocols only.
//! | Modules with `unsafe` code: `process` and `paths`.
//!
//! ```
//! let local = tessera_serverless_local::Local::start(Default::default()).unwrap();
//! assert!(local.settings().iter().any(|(name, _)| name == "AWS_ENDPOINT_URL"));
//! assert_eq!(local.billed(), (0, 0));
//! ```

mod access;
mod date;
mod faults;
mod functions;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod http;
mod paths;
mod process;
mod select;
mod store;
mod xml;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use access::{Access, random};
pub use faults::Faults;
pub use select::{Format, Selection, Selector};

/// The environment variable with the token of the function service.
pub const TOKEN: &str = "TESSERA_FUNCTIONS_TOKEN";

/// The options of the services.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program of workers.
    pub program: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<String>,
    /// The memory limit of a worker in MiB; a worker that exceeds it is killed.
    pub memory_mib: u64,
    /// The delay of a worker's first invocation.
    pub cold_start: Duration,
    /// The maximum number of concurrent invocations.
    pub concurrency: usize,
    /// The timeout of an invocation.
    pub timeout: Duration,
    /// Whether to start a store; without one, workers use the environment's.
    pub store: bool,
    /// Whether to start a function service.
    pub functions: bool,
    /// The directory of the bucket `data`; other buckets are temporary.
    pub data: PathBuf,
    /// The evaluator of SQL over objects; without it, the store does not support SELECT.
    pub selector: Option<Selector>,
    /// The faults of the store.
    pub store_faults: Faults,
    /// The faults of invocations.
    pub invoke_faults: Faults,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            program: std::env::current_exe().unwrap_or_default(),
            arguments: vec!["worker".to_string()],
            // The memory with one virtual processor.
            memory_mib: 1769,
            cold_start: Duration::from_millis(100),
            concurrency: 1000,
            timeout: Duration::from_secs(900),
            store: true,
            functions: true,
            data: std::env::temp_dir(),
            selector: None,
            store_faults: Faults::default(),
            invoke_faults: Faults::default(),
        }
    }
}

/// The running services; dropping this ends them.
pub struct Local {
    functions: Option<Arc<functions::Functions>>,
    settings: Vec<(String, String)>,
    _scratch: paths::Scratch,
}

/// Omits the settings, which contain secrets.
impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").finish_non_exhaustive()
    }
}

impl Local {
    /// Starts the services.
    ///
    /// # Errors
    /// The system provides no port, thread, temporary directory or random bytes.
    pub fn start(options: Options) -> io::Result<Local> {
        let scratch = paths::Scratch::new()?;
        let mut settings = Vec::new();
        if options.store {
            let (key, secret) = (format!("LOCAL{}", random::<8>()?), random::<32>()?);
            let store = store::Store::new(&scratch, &options.data, options.selector.clone())?;
            let faults = faults::FaultInjector::new(options.store_faults.clone());
            let access = Access::Signature { key: key.clone(), secret: secret.clone() };
            let address = http::listen("store", access, faults, Arc::new(store))?;
            settings = [
                ("AWS_ENDPOINT_URL", address.as_str()),
                ("AWS_ALLOW_HTTP", "true"),
                ("AWS_ACCESS_KEY_ID", &key),
                ("AWS_SECRET_ACCESS_KEY", &secret),
                // The user's own settings, if any, belong to another key.
                ("AWS_SESSION_TOKEN", ""),
                ("AWS_SKIP_SIGNATURE", "false"),
                ("AWS_REGION", "local"),
                ("AWS_UNSIGNED_PAYLOAD", "true"),
            ]
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .into();
        }
        let mut functions = None;
        if options.functions {
            let token = random::<32>()?;
            settings.push((TOKEN.to_string(), token.clone()));
            let faults = faults::FaultInjector::new(options.invoke_faults.clone());
            let service = functions::Functions::new(options, settings.clone())?;
            let address = http::listen("functions", Access::Token(token), faults, service.clone())?;
            service.set_address(&address);
            settings.push(("AWS_ENDPOINT_URL_LAMBDA".to_string(), address));
            functions = Some(service);
        }
        Ok(Local { functions, settings, _scratch: scratch })
    }

    /// Returns the settings for clients, named like environment variables.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// Returns what would be billed so far: invocations, and memory by time in MiB × ms.
    pub fn billed(&self) -> (u64, u64) {
        self.functions.as_ref().map_or((0, 0), |functions| functions.billed())
    }

    /// Returns the number of workers that wait for an invocation.
    pub fn idle_workers(&self) -> usize {
        self.functions.as_ref().map_or(0, |functions| functions.idle_workers())
    }

    /// Returns [`Local::billed`] as a function that outlives this value.
    pub fn meter(&self) -> impl Fn() -> (u64, u64) + Send + Sync + 'static {
        let functions = self.functions.clone();
        move || functions.as_ref().map_or((0, 0), |functions| functions.billed())
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if let Some(functions) = &self.functions {
            functions.end();
        }
    }
}
