//! Platform `mpi`: processes without shared memory, started and connected by MPI.
//!
//! Every *rank* runs the same plan on its share of the files, with all its worker threads. A
//! one-sided exchange takes four steps, each a sub-operator (Modularis §2.4.1.2; Barthels et al.):
//! `local_histogram` counts the tuples of each partition. [`Histogram`] sums the counts of all
//! ranks and computes where each rank's tuples begin. [`Window`] allocates exactly the memory that
//! will be written. [`Exchange`] partitions tuples and writes them into the windows of other ranks
//! while partitioning continues. Exchanges that feed one join share histograms and windows.
//! [`Broadcast`] sends small inputs whole. In two-sided modes ([`ExchangeMode`]), [`Send`] and
//! [`Receive`] replace the four steps and need neither histograms nor windows.
//!
//! One thread of each rank, the *communication worker*, makes all MPI calls (module `world`). The
//! other threads send it requests through a [`Link`] and never wait. Without the feature `runtime`,
//! which needs an MPI library, plans can be built and explained but not run.
//! | Modules with `unsafe` code: `cores`, `control`, `launcher`, `window_memory` and `world::raw`.

mod broadcast;
mod collective;
pub mod control;
#[cfg(feature = "runtime")]
mod cores;
mod exchange;
mod executor;
mod flow;
mod histogram;
mod launch;
pub mod launcher;
mod link;
mod pass;
mod receive;
mod roles;
mod window_memory;

mod exchange_mode;
mod merge_steps;
mod send;
mod window;
#[cfg(feature = "runtime")]
pub mod world;

use std::sync::{Arc, Mutex};

use tessera_context::lock;
use tessera_engine::{DriverPlan, Extension, Platform, Setting, Setup};
use tessera_operator::Registry;
use tessera_plan::{OperatorCatalog, Plan, Rules};
use tessera_types::Result;

pub use broadcast::{Broadcast, First};
pub use exchange::Exchange;
pub use exchange_mode::ExchangeMode;
pub use histogram::Histogram;
pub use launch::MpiLauncher;
pub use link::Link;
use pass::Crossing;
pub use receive::Receive;
pub use send::Send;
pub use window::Window;

/// The name of the platform.
pub const NAME: &str = "mpi";

/// The setting for the [`ExchangeMode`] of a session.
pub const EXCHANGE: &str = "mpi_exchange";

/// The number of ranks that `EXPLAIN` assumes outside an MPI world.
const RANKS_EXPLAINED: usize = 4;

/// The ranks of an MPI world. Without a link, this can make plans but not run them.
#[derive(Debug, Clone, Default)]
pub struct Mpi {
    link: Option<Arc<Link>>,
    mode: Arc<Mutex<ExchangeMode>>,
}

impl Mpi {
    /// Returns the platform of a rank; its communication worker serves `link`.
    pub fn new(link: Arc<Link>) -> Mpi {
        Mpi { link: Some(link), ..Mpi::default() }
    }

    /// Sets the exchange mode.
    pub fn set_exchange(&self, mode: ExchangeMode) {
        *lock(&self.mode) = mode;
    }

    /// Returns the exchange mode, with `Auto` resolved.
    fn mode(&self) -> ExchangeMode {
        let shares_cores = || self.link.as_ref().is_some_and(|link| link.shares_cores());
        match *lock(&self.mode) {
            ExchangeMode::Auto if shares_cores() => ExchangeMode::Rounds,
            ExchangeMode::Auto => ExchangeMode::OneSided,
            mode => mode,
        }
    }

    fn ranks(&self) -> usize {
        self.link.as_ref().map_or(RANKS_EXPLAINED, |link| link.ranks())
    }
}

impl Extension for Mpi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn install(&self, setup: &mut Setup) -> Result<()> {
        // Each session has its own exchange mode.
        let platform = Mpi { link: self.link.clone(), mode: Arc::default() };
        let setting_platform = platform.clone();
        setup.setting(Setting {
            entry: launch::EXCHANGE_SETTING,
            apply: Arc::new(move |value| {
                setting_platform.set_exchange(value.parse()?);
                Ok(())
            }),
        })?;
        setup.platform(Arc::new(platform))
    }
}

impl Platform for Mpi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(Histogram::new(self.link.clone()));
        registry.register(Window::new(self.link.clone()));
        registry.register(Exchange::new(self.link.clone()));
        registry.register(Send::new(self.link.clone()));
        registry.register(Receive::new(self.link.clone()));
        registry.register(Broadcast::new(self.link.clone()));
        registry.register(First::new(self.link.clone()));
        if let Some(link) = &self.link {
            registry.register_executor(executor::MpiExecutor::new(link.clone()));
        }
    }

    fn serve(&self, run: &mut dyn FnMut(&DriverPlan) -> Result<()>) -> Result<bool> {
        match &self.link {
            Some(link) if link.rank() > 0 => link.serve(run).map(|()| true),
            _ => Ok(false),
        }
    }

    fn pass(&self, plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan> {
        pass::for_ranks(plan, catalog, (self.ranks(), Crossing::Mode(self.mode())), rules)
    }

    fn frugal_pass(
        &self,
        plan: &Plan,
        catalog: &OperatorCatalog,
        rules: Rules,
    ) -> Result<Option<Plan>> {
        // The plan for scarce memory uses rounds, whatever the setting.
        let frugal = pass::for_ranks(plan, catalog, (self.ranks(), Crossing::AllInRounds), rules)?;
        Ok((self.pass(plan, catalog, rules)? != frugal).then_some(frugal))
    }
}
