//! A function service and an object store on loopback, for trying and testing platform `serverless`
//! without a cloud.
//!
//! [`Local::start`] listens on two ports of this machine: one speaks as much of S3 as the engine
//! uses (`store`), the other the Invoke and Runtime APIs of AWS Lambda (`functions`): it starts
//! worker processes with a cold start's delay, ends those that take more memory than they may,
//! refuses more than so many at once, and counts what would be billed. The store answers
//! SelectObjectContent (`select`) with what the program evaluates for it. Both fail when told to
//! (`faults`). Everything ends with the process that started it, however that ends.
//!
//! Both listen on loopback only and refuse requests without their secrets. Each start makes new
//! secrets: a key of 256 random bits, which signs requests to the store, and a token of 256 random
//! bits for the function service and the workers. Child processes get both in their environment.
//! Files are in a directory that only the user can enter.
//!
//! This crate depends on nothing of the engine: what it is asked for is what the protocols say.
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
mod place;
mod process;
mod select;
mod store;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use access::{Access, random};
pub use faults::Faults;
pub use select::{Form, Selection, Selector};

/// The environment variable that holds the token of the function service.
pub const TOKEN: &str = "TESSERA_FUNCTIONS_TOKEN";

/// What starts a worker, and how the services behave.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program that is a worker, and its arguments.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Memory of a worker, in MiB; one that takes more is ended.
    pub memory_mib: u64,
    /// How long the first invocation of a worker takes longer.
    pub cold_start: Duration,
    /// More than so many invocations at once are refused.
    pub concurrency: usize,
    /// An invocation that takes longer is ended.
    pub timeout: Duration,
    /// Whether there is a store here; without one, workers use the environment's.
    pub store: bool,
    /// Whether there is a function service here.
    pub functions: bool,
    /// Where the bucket `data` is kept; the others go when the process ends.
    pub data: PathBuf,
    /// What evaluates SQL over objects; without it, the store does not select.
    pub selector: Option<Selector>,
    /// What goes wrong in the store.
    pub store_faults: Faults,
    /// What goes wrong when functions are invoked.
    pub invoke_faults: Faults,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            program: std::env::current_exe().unwrap_or_default(),
            arguments: vec!["worker".to_string()],
            // One virtual processor.
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

/// The services; they end when this is dropped.
pub struct Local {
    functions: Option<Arc<functions::Functions>>,
    settings: Vec<(String, String)>,
    _scratch: place::Scratch,
}

/// The settings hold secrets.
impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").finish_non_exhaustive()
    }
}

impl Local {
    /// Starts the services.
    ///
    /// # Errors
    /// The system gives no port, thread, temporary directory or random bytes.
    pub fn start(options: Options) -> io::Result<Local> {
        let scratch = place::Scratch::new()?;
        let mut settings = Vec::new();
        if options.store {
            let (key, secret) = (format!("LOCAL{}", random::<8>()?), random::<32>()?);
            let store = store::Store::new(&scratch, &options.data, options.selector.clone())?;
            let faults = faults::Chooser::new(options.store_faults.clone());
            let access = Access::Signature { key: key.clone(), secret: secret.clone() };
            let address = http::listen("store", access, faults, Arc::new(store))?;
            settings = [
                ("AWS_ENDPOINT_URL", address.as_str()),
                ("AWS_ALLOW_HTTP", "true"),
                ("AWS_ACCESS_KEY_ID", &key),
                ("AWS_SECRET_ACCESS_KEY", &secret),
                // Those of the user's own, if there are any, belong to another key.
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
            let faults = faults::Chooser::new(options.invoke_faults.clone());
            let service = functions::Functions::new(options, settings.clone())?;
            let address = http::listen("functions", Access::Token(token), faults, service.clone())?;
            service.listens_at(&address);
            settings.push(("AWS_ENDPOINT_URL_LAMBDA".to_string(), address));
            functions = Some(service);
        }
        Ok(Local { functions, settings, _scratch: scratch })
    }

    /// What clients need to know, by the names of environment variables.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// What would be billed so far: invocations, and memory by time in MiB-milliseconds.
    pub fn billed(&self) -> (u64, u64) {
        self.functions.as_ref().map_or((0, 0), |functions| functions.billed())
    }

    /// Workers that wait for something to do.
    pub fn idle_workers(&self) -> usize {
        self.functions.as_ref().map_or(0, |functions| functions.idle_workers())
    }

    /// As [`Local::billed`], for somebody who outlives this.
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
