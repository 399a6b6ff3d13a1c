//! A function service and an object store on loopback, for trying and testing platform `serverless` without a cloud.
//!
//! [`Local::start`] listens on two ports of this machine: one speaks as much of S3 as the engine uses (`store`), the other the
//! Invoke and Runtime APIs of AWS Lambda (`functions`): it starts worker processes with a cold start's delay, ends those that
//! take more memory than they may, refuses more than so many at once, and counts what would be billed. The store answers
//! SelectObjectContent (`select`) with what the program evaluates for it. Both fail when told to
//! (`faults`). Everything ends with the process that started it, however that ends.
//!
//! This crate depends on nothing of the engine: what it is asked for is what the protocols say.
//!
//! ```
//! let local = tessera_serverless_local::Local::start(Default::default()).unwrap();
//! assert!(local.settings().iter().any(|(name, _)| name == "AWS_ENDPOINT_URL"));
//! assert_eq!(local.billed(), (0, 0));
//! ```

mod faults;
mod functions;
mod http;
mod process;
mod select;
mod store;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use faults::Faults;
pub use select::{Form, Selection, Selector};

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
    /// Whether there is a store here, too; without one, workers use the environment's.
    pub store: bool,
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
            data: std::env::temp_dir(),
            selector: None,
            store_faults: Faults::default(),
            invoke_faults: Faults::default(),
        }
    }
}

/// Both services; they end when this is dropped.
#[derive(Debug)]
pub struct Local {
    functions: Arc<functions::Functions>,
    settings: Vec<(String, String)>,
    _scratch: store::Scratch,
}

impl Local {
    /// Starts both services.
    ///
    /// # Errors
    /// The system gives no port, thread or temporary directory.
    pub fn start(options: Options) -> io::Result<Local> {
        let scratch = store::Scratch::new()?;
        let (mut key, mut settings) = (String::new(), Vec::new());
        if options.store {
            key = format!("LOCAL{:016x}", faults::seed());
            let store = store::Store::new(&scratch, options.data.clone(), options.selector.clone());
            let faults = faults::Chooser::new(options.store_faults.clone());
            let address = http::listen("store", &key, faults, Arc::new(store))?;
            settings = [
                ("AWS_ENDPOINT_URL", address.as_str()),
                ("AWS_ALLOW_HTTP", "true"),
                ("AWS_ACCESS_KEY_ID", &key),
                ("AWS_SECRET_ACCESS_KEY", "none"),
                ("AWS_REGION", "local"),
                ("AWS_UNSIGNED_PAYLOAD", "true"),
            ]
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .into();
        }
        let faults = faults::Chooser::new(options.invoke_faults.clone());
        let functions = functions::Functions::new(options, settings.clone())?;
        let address = http::listen("functions", &key, faults, functions.clone())?;
        functions.listens_at(&address);
        settings.push(("AWS_ENDPOINT_URL_LAMBDA".to_string(), address));
        Ok(Local { functions, settings, _scratch: scratch })
    }

    /// What clients need to know, by the names of environment variables.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// What would be billed so far: invocations, and memory by time in MiB-milliseconds.
    pub fn billed(&self) -> (u64, u64) {
        self.functions.billed()
    }

    /// Workers that wait for something to do.
    pub fn idle_workers(&self) -> usize {
        self.functions.idle_workers()
    }

    /// As [`Local::billed`], for somebody who outlives this.
    pub fn meter(&self) -> impl Fn() -> (u64, u64) + Send + Sync + 'static {
        let functions = self.functions.clone();
        move || functions.billed()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.functions.end();
    }
}
