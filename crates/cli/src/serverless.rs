//! Statements on serverless workers, and this program as one of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tessera_serverless::{Cloud, Driver, Prices, Serverless, Spent, Worker};
use tessera_serverless_local::{Faults, Local, Options, Selector};
use tessera_session::{Config, Session};
use tessera_types::{Error, Result};

use crate::arguments::{Command, ServerlessLine};
use crate::runner::Report;
use crate::{EXIT_ERROR, failed, run};

/// The function's name, instead of `--function`.
const FUNCTION: &str = "TESSERA_FUNCTION";
/// Where exchanged tuples lie, instead of `--scratch`.
const SCRATCH: &str = "TESSERA_SCRATCH";
/// What goes wrong in the store on loopback.
const STORE_FAULTS: &str = "TESSERA_LOCAL_STORE_FAULTS";
/// Memory of a worker with one virtual processor.
const PROCESSOR_MIB: usize = 1769;

/// Runs the command on workers; gives the exit code.
pub(crate) fn on_workers(mut command: Command, line: &ServerlessLine) -> u8 {
    match launched(&mut command, line) {
        // The services on loopback end after the session.
        Ok((driver, _local)) => {
            let asked = driver.clone();
            command.set_report(Report::new(move || asked.report()));
            run(command, Arc::new(Serverless::driver(driver)))
        }
        Err(error) => failed(&error),
    }
}

fn launched(command: &mut Command, line: &ServerlessLine) -> Result<(Arc<Driver>, Option<Local>)> {
    let prices = match &line.prices {
        None => Prices::standard()?,
        Some(path) => {
            let cannot = |error| Error::io(format!("cannot read '{}': {error}", path.display()));
            Prices::parse(&std::fs::read_to_string(path).map_err(cannot)?)?
        }
    };
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let function = line.function.clone().or_else(|| set(FUNCTION));
    let scratch = line.scratch.clone().or_else(|| set(SCRATCH));
    let database = command.config().database;
    let is_folder = database.as_ref().is_some_and(|path| !path.to_string_lossy().contains("://"));
    let cache = cache()?;
    let mut settings = command.config().stores;
    let mut local = None;
    if function.is_none() {
        let options = options(line, database.is_none() || is_folder, &cache)?;
        let started = Local::start(options);
        let started =
            started.map_err(|error| Error::io(format!("cannot start services on loopback: {error}")))?;
        settings.extend(started.settings().iter().cloned());
        local = Some(started);
    }
    let has_store = settings.iter().any(|(name, _)| name == "AWS_ENDPOINT_URL");
    let scratch = match scratch {
        _ if has_store => "s3://scratch".to_string(),
        Some(scratch) => scratch,
        None => {
            return Err(Error::semantic(format!(
                "workers exchange tuples through a store: name a prefix that is theirs with --scratch s3://bucket/prefix (or \
                 {SCRATCH})"
            )));
        }
    };
    let cloud = || cloud(settings.clone());
    if let Some(folder) = database.filter(|_| is_folder) {
        let data = if has_store {
            "s3://data".to_string()
        } else {
            format!("{}/data", scratch.trim_end_matches('/'))
        };
        let uploaded = tessera_serverless::upload(&cloud()?, &folder, &data, &cache.join("uploads"))?;
        command.set_database(uploaded.into());
    }
    command.set_stores(settings.clone());
    let meter = local.as_ref().map(|local| Box::new(local.meter()) as tessera_serverless::Meter);
    let place = (usize::from(line.workers), scratch.as_str());
    let driver = Driver::new(cloud()?, function.as_deref(), place, prices, meter)?;
    Ok((Arc::new(driver), local))
}

/// What an environment variable says that goes wrong.
fn faults(name: &str) -> Result<Faults> {
    match std::env::var(name) {
        Ok(text) => Faults::parse(&text).map_err(|error| Error::semantic(format!("{name}: {error}"))),
        Err(_) => Ok(Faults::default()),
    }
}

/// How the services on loopback behave; the variables are for trying what happens when they fail.
fn options(line: &ServerlessLine, store: bool, cache: &Path) -> Result<Options> {
    let number = |name: &str, otherwise: u64| match std::env::var(name) {
        Ok(text) => text.parse().map_err(|_| Error::semantic(format!("{name}: '{text}' is no number"))),
        Err(_) => Ok(otherwise),
    };
    let standard = Options::default();
    let memory_mib = line.worker_memory >> 20;
    let threads = memory_mib.div_ceil(PROCESSOR_MIB).min(Config::default().threads);
    let cold_start = number("TESSERA_LOCAL_COLD_START_MS", standard.cold_start.as_millis() as u64)?;
    Ok(Options {
        arguments: ["worker", "--threads", &threads.to_string()].map(str::to_string).into(),
        memory_mib: memory_mib as u64,
        cold_start: Duration::from_millis(cold_start),
        concurrency: number("TESSERA_LOCAL_CONCURRENCY", standard.concurrency as u64)? as usize,
        timeout: Duration::from_secs(number("TESSERA_LOCAL_TIMEOUT_S", standard.timeout.as_secs())?),
        store,
        data: cache.join("data"),
        selector: Some(Selector::new(crate::select::select)),
        store_faults: faults(STORE_FAULTS)?,
        invoke_faults: faults("TESSERA_LOCAL_INVOKE_FAULTS")?,
        ..standard
    })
}

/// Runs the store alone, until the standard input ends: says how it is reached, as variables for other programs' environment; gives
/// the exit code.
pub(crate) fn store(data: PathBuf) -> u8 {
    let started = faults(STORE_FAULTS).and_then(|store_faults| {
        let selector = Some(Selector::new(crate::select::select));
        let options = Options { data, selector, store_faults, functions: false, ..Options::default() };
        Local::start(options).map_err(|error| Error::io(format!("cannot start a store on loopback: {error}")))
    });
    match started {
        Ok(local) => {
            for (name, value) in local.settings() {
                println!("{name}={value}");
            }
            println!();
            drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
            0
        }
        Err(error) => failed(&error),
    }
}

/// Where the user's programs keep what they can make again: below the user's own directory, which no other user can make first.
fn cache() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let caches = caches.filter(|folder| folder.is_absolute()).ok_or_else(|| {
        Error::semantic(
            "workers have no directory for what they upload: neither XDG_CACHE_HOME nor HOME is an absolute \
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
    let spent = || {
        let totals = tessera_objects::totals();
        Spent {
            requests: totals.by_kind,
            received_bytes: totals.bytes,
            sent_bytes: totals.sent_bytes,
            scanned_bytes: totals.scanned_bytes,
            selected_bytes: totals.selected_bytes,
        }
    };
    Ok(Cloud { connect: Box::new(connect), aws: Box::new(aws), io, spent, settings })
}

/// Runs as a worker of a function service, until that is gone; gives the exit code.
pub(crate) fn worker(threads: Option<u16>) -> u8 {
    let mut config = Config::default();
    config.threads = threads.map_or(config.threads, usize::from);
    let served = tessera_session::with_big_stack(|| {
        let worker = Worker::new(cloud(Vec::new())?)?;
        let mut session = Session::on(Arc::new(Serverless::worker(Arc::new(worker))), config)?;
        session.serve()
    });
    match served {
        Ok(_) => 0,
        Err(error) => {
            eprintln!("worker: {error}");
            EXIT_ERROR
        }
    }
}
