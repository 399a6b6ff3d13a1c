//! Launches platform `serverless`: workers of a cloud function, or services on loopback in its
//! place. The same program also runs as each worker.

#![forbid(unsafe_code)]

mod select;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tessera_engine::{
    Extension, Launch, LaunchOption, LaunchOutcome, LaunchRole, LaunchValues, Launcher, Report,
    check_number, check_timeout,
};
use tessera_serverless::{Cloud, Driver, NAME, Prices, Serverless, StoreUsage, Worker};
use tessera_serverless_local::{Faults, Local, Options, Selector};
use tessera_session::{Config, MEMORY_BYTES_MIN, Session, Standard, parse_size};
use tessera_types::{Error, Result};

/// The environment variable for `--function`.
const FUNCTION: &str = "TESSERA_FUNCTION";
/// The environment variable for `--scratch`.
const SCRATCH: &str = "TESSERA_SCRATCH";
/// The environment variable for faults of the store on loopback.
const STORE_FAULTS: &str = "TESSERA_LOCAL_STORE_FAULTS";
/// The memory of a worker with one virtual processor.
const PROCESSOR_MIB: usize = 1769;
/// The bounds of a function's memory on AWS Lambda.
const WORKER_BYTES_MIN: usize = 128 << 20;
const WORKER_BYTES_MAX: usize = 10_240 << 20;
/// The maximum number of workers of a statement.
const WORKERS_MAX: u16 = 1000;

/// The launcher of the platform.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServerlessLauncher;

const OPTIONS: [LaunchOption; 6] = [
    LaunchOption {
        name: "workers",
        value_name: "N",
        default: Some("4"),
        help: "Number of workers that run a statement",
        check: |value| check_number(value, 1..=WORKERS_MAX),
    },
    LaunchOption {
        name: "worker-memory",
        value_name: "SIZE",
        default: Some("1769MiB"),
        help: "Memory of a worker on loopback; a cloud function has its own setting",
        check: |value| worker_memory(value).map(|_| ()),
    },
    LaunchOption {
        name: "function",
        value_name: "NAME",
        default: None,
        help: "The cloud function (or TESSERA_FUNCTION); without one, workers and a store run on loopback",
        check: anything,
    },
    LaunchOption {
        name: "scratch",
        value_name: "ADDRESS",
        default: None,
        help: "Prefix of a store that workers exchange tuples through (or TESSERA_SCRATCH)",
        check: anything,
    },
    LaunchOption {
        name: "prices",
        value_name: "FILE",
        default: None,
        help: "Prices of requests and memory, as in deploy/prices.toml",
        check: anything,
    },
    LaunchOption {
        name: "worker-timeout",
        value_name: "SECONDS",
        default: None,
        help: "Seconds to wait for a worker's answer, or none (or TESSERA_WORKER_TIMEOUT) [default: 960]",
        check: check_timeout,
    },
];

const THREADS: LaunchOption = LaunchOption {
    name: "threads",
    value_name: "N",
    default: None,
    help: "Worker threads (default: one per core)",
    check: |value| check_number(value, 1..=1024),
};

const DATA: LaunchOption = LaunchOption {
    name: "data",
    value_name: "DIRECTORY",
    default: None,
    help: "The directory",
    check: anything,
};

const ROLES: [LaunchRole; 2] = [
    LaunchRole {
        name: "worker",
        help: "Run as a worker of a function service, which starts this",
        variable: Some("AWS_LAMBDA_RUNTIME_API"),
        options: &[THREADS],
        operand: None,
        play: worker,
    },
    LaunchRole {
        name: "store",
        help: "Run an object store on loopback that supports SELECT, with a directory as bucket `data`, to try smart storage",
        variable: None,
        options: &[],
        operand: Some(DATA),
        play: store,
    },
];

fn anything(_value: &str) -> std::result::Result<(), String> {
    Ok(())
}

fn worker_memory(text: &str) -> std::result::Result<usize, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    match bytes {
        WORKER_BYTES_MIN..=WORKER_BYTES_MAX => Ok(bytes),
        bytes if bytes < MEMORY_BYTES_MIN => {
            Err(format!("must be at least {} KiB", MEMORY_BYTES_MIN >> 10))
        }
        _ => Err("must be from 128 MiB to 10240 MiB".to_string()),
    }
}

impl Launcher for ServerlessLauncher {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "Workers of a cloud function"
    }

    fn options(&self) -> &'static [LaunchOption] {
        &OPTIONS
    }

    fn roles(&self) -> &'static [LaunchRole] {
        &ROLES
    }

    fn extension(&self) -> Arc<dyn Extension> {
        Arc::new(Serverless::default())
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<LaunchOutcome> {
        let values = launch.values;
        let prices = match values.get("prices") {
            None => Prices::standard()?,
            Some(path) => {
                let cannot = |error| Error::io(format!("cannot read '{path}': {error}"));
                Prices::parse(&std::fs::read_to_string(path).map_err(cannot)?)?
            }
        };
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let option = |name: &str| values.get(name).map(str::to_string);
        let function = option("function").or_else(|| set(FUNCTION));
        let scratch = option("scratch").or_else(|| set(SCRATCH));
        let mut database = launch.database.clone();
        let is_folder =
            database.as_ref().is_some_and(|path| !path.to_string_lossy().contains("://"));
        let cache = cache()?;
        let mut settings = launch.stores.clone();
        settings.extend(
            option("worker-timeout").map(|value| ("TESSERA_WORKER_TIMEOUT".to_string(), value)),
        );
        let mut local = None;
        if function.is_none() {
            let options = options(values, database.is_none() || is_folder, &cache)?;
            let started = Local::start(options);
            let started = started.map_err(|error| {
                Error::io(format!("cannot start services on loopback: {error}"))
            })?;
            settings.extend(started.settings().iter().cloned());
            local = Some(started);
        }
        let has_store = settings.iter().any(|(name, _)| name == "AWS_ENDPOINT_URL");
        let scratch = match scratch {
            _ if has_store => "s3://scratch".to_string(),
            Some(scratch) => scratch,
            None => {
                return Err(Error::semantic(format!(
                    "no store for exchanged tuples; name a prefix of its own with --scratch s3://bucket/prefix (or \
                     {SCRATCH})"
                )));
            }
        };
        let cloud = || cloud(settings.clone());
        if let Some(folder) = database.as_ref().filter(|_| is_folder) {
            let data = if has_store {
                "s3://data".to_string()
            } else {
                format!("{}/data", scratch.trim_end_matches('/'))
            };
            let uploaded =
                tessera_serverless::upload(&cloud()?, folder, &data, &cache.join("uploads"))?;
            database = Some(uploaded.into());
        }
        let meter =
            local.as_ref().map(|local| Box::new(local.meter()) as tessera_serverless::Meter);
        let place = (values.parsed("workers")?, scratch.as_str());
        let driver = Arc::new(Driver::new(cloud()?, function.as_deref(), place, prices, meter)?);
        let reporter = driver.clone();
        let report: Report = Arc::new(move || reporter.report());
        Ok(LaunchOutcome::Here {
            extension: Arc::new(Serverless::driver(driver)),
            database,
            stores: settings,
            report: Some(report),
            services: Box::new(local),
        })
    }
}

/// Parses the faults of an environment variable.
fn faults(name: &str) -> Result<Faults> {
    match std::env::var(name) {
        Ok(text) => {
            Faults::parse(&text).map_err(|error| Error::semantic(format!("{name}: {error}")))
        }
        Err(_) => Ok(Faults::default()),
    }
}

/// Returns the options of the services on loopback; the environment variables are for tests of
/// failures.
fn options(values: &LaunchValues, store: bool, cache: &Path) -> Result<Options> {
    let number = |name: &str, otherwise: u64| match std::env::var(name) {
        Ok(text) => {
            text.parse().map_err(|_| Error::semantic(format!("invalid number '{text}' in {name}")))
        }
        Err(_) => Ok(otherwise),
    };
    let standard = Options::default();
    let memory = worker_memory(values.get("worker-memory").unwrap_or_default());
    let memory_mib =
        memory.map_err(|error| Error::semantic(format!("--worker-memory {error}")))? >> 20;
    let threads = memory_mib.div_ceil(PROCESSOR_MIB).min(Config::default().threads);
    let cold_start = number("TESSERA_LOCAL_COLD_START_MS", standard.cold_start.as_millis() as u64)?;
    Ok(Options {
        arguments: ["worker", "--threads", &threads.to_string()].map(str::to_string).into(),
        memory_mib: memory_mib as u64,
        cold_start: Duration::from_millis(cold_start),
        concurrency: number("TESSERA_LOCAL_CONCURRENCY", standard.concurrency as u64)? as usize,
        timeout: Duration::from_secs(number(
            "TESSERA_LOCAL_TIMEOUT_S",
            standard.timeout.as_secs(),
        )?),
        store,
        data: cache.join("data"),
        selector: Some(Selector::new(select::select)),
        store_faults: faults(STORE_FAULTS)?,
        invoke_faults: faults("TESSERA_LOCAL_INVOKE_FAULTS")?,
        ..standard
    })
}

/// Runs only the store until standard input ends. Prints its settings as environment variables for
/// other programs. Returns the exit code.
fn store(values: &LaunchValues) -> Result<u8> {
    let data = PathBuf::from(values.get("data").unwrap_or_default());
    let store_faults = faults(STORE_FAULTS)?;
    let selector = Some(Selector::new(select::select));
    let options = Options { data, selector, store_faults, functions: false, ..Options::default() };
    let local = Local::start(options)
        .map_err(|error| Error::io(format!("cannot start a store on loopback: {error}")))?;
    for (name, value) in local.settings() {
        println!("{name}={value}");
    }
    println!();
    drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
    Ok(0)
}

/// Returns the folder for caches: below the user's own directory, which other users cannot create
/// first.
fn cache() -> Result<PathBuf> {
    let set =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let caches = caches.filter(|folder| folder.is_absolute()).ok_or_else(|| {
        Error::semantic(
            "cannot find a cache directory: neither XDG_CACHE_HOME nor HOME is an absolute \
             path; set one of them",
        )
    })?;
    Ok(caches.join("tessera/serverless"))
}

fn cloud(settings: Vec<(String, String)>) -> Result<Cloud> {
    let io = tessera_objects::io()?;
    let of_connect = settings.clone();
    let connect = move |address: &str| tessera_objects::client(address, &of_connect);
    let of_aws = settings.clone();
    let aws = move || tessera_objects::aws(&of_aws);
    let store_usage = || {
        let totals = tessera_objects::totals();
        StoreUsage {
            requests: totals.by_kind,
            received_bytes: totals.bytes,
            sent_bytes: totals.sent_bytes,
            scanned_bytes: totals.scanned_bytes,
            selected_bytes: totals.selected_bytes,
        }
    };
    Ok(Cloud { connect: Box::new(connect), aws: Box::new(aws), io, store_usage, settings })
}

/// Runs as a worker of a function service until it ends. Returns the exit code.
fn worker(values: &LaunchValues) -> Result<u8> {
    let served = tessera_session::with_big_stack(|| {
        let worker = Worker::new(cloud(Vec::new())?)?;
        let mut config = Config {
            extensions: vec![
                Arc::new(Standard),
                Arc::new(tessera_local::Local),
                Arc::new(Serverless::worker(Arc::new(worker))),
            ],
            platform: NAME.to_string(),
            ..Config::default()
        };
        if values.get("threads").is_some() {
            config.threads = values.parsed("threads")?;
        }
        Session::new(config)?.serve()
    });
    match served {
        Ok(_) => Ok(0),
        Err(error) => {
            eprintln!("worker: {error}");
            Ok(1)
        }
    }
}
