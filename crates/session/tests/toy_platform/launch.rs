//! Starts the workers of the toy platform in threads.

use std::sync::Arc;
use std::thread::JoinHandle;

use tessera_engine::{Extension, Launch, LaunchOption, LaunchOutcome, Launcher, check_number};
use tessera_local::Local;
use tessera_session::{Config, Session, Standard};
use tessera_types::{Error, Result};

use super::world::Worker;
use super::{NAME, Toy};

#[derive(Debug, Clone, Copy)]
pub(crate) struct ToyLauncher;

const OPTIONS: [LaunchOption; 1] = [LaunchOption {
    name: "toy-workers",
    value_name: "N",
    default: Some("2"),
    help: "How many threads run a statement",
    check: |value| check_number(value, 1..=64),
}];

impl Launcher for ToyLauncher {
    fn name(&self) -> &'static str {
        NAME
    }

    fn help(&self) -> &'static str {
        "Threads that share no memory"
    }

    fn options(&self) -> &'static [LaunchOption] {
        &OPTIONS
    }

    fn extension(&self) -> Arc<dyn Extension> {
        Arc::new(Toy::default())
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<LaunchOutcome> {
        let mut workers = Worker::all(launch.values.parsed("toy-workers")?).into_iter();
        let first = workers.next().ok_or_else(|| Error::semantic("a plan needs a worker"))?;
        let mut services = Threads { first: first.clone(), threads: Vec::new() };
        for worker in workers {
            let config = config(Toy { worker: Some(worker) });
            let mut session = Session::new(Config { stores: launch.stores.clone(), ..config })?;
            services.threads.push(std::thread::spawn(move || session.serve()));
        }
        Ok(LaunchOutcome::Here {
            extension: Arc::new(Toy { worker: Some(first) }),
            database: launch.database.clone(),
            stores: launch.stores.clone(),
            report: None,
            services: Box::new(services),
        })
    }
}

/// The configuration of a session on the platform.
pub(super) fn config(toy: Toy) -> Config {
    Config {
        threads: 2,
        platform: NAME.to_string(),
        extensions: vec![Arc::new(Standard), Arc::new(Local), Arc::new(toy)],
        ..Config::default()
    }
}

/// The threads of the other workers. Dropping it ends them.
struct Threads {
    first: Arc<Worker>,
    threads: Vec<JoinHandle<Result<bool>>>,
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.first.send(&None);
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok_and(|served| served.is_ok_and(|served| served)));
        }
    }
}
