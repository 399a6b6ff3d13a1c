//! Platform `mpi`: processes that share no memory, started and connected by MPI.
//!
//! Every *rank* runs the same plan on its part of the files, with all its worker threads. Tuples
//! cross in four steps, each a sub-operator (Modularis §1.4; Barthels et al.): `local_histogram`
//! counts, [`Histogram`] adds up the counts of all ranks and tells each where its tuples begin,
//! [`Window`] makes room for exactly what will come, [`Exchange`] partitions and puts into the
//! rooms of the others, one-sided, while it partitions on. Exchanges that meet in joins share
//! histogram and windows. [`Broadcast`] sends small inputs whole. For comparison, tuples cross
//! two-sided too ([`Way`]): [`Send`] and [`Receive`] need neither.
//!
//! One thread of each rank, the *communication worker*, makes all MPI calls (module `world`); the
//! others hand it requests through a [`Link`] and never wait. Without the feature `runtime`, which
//! needs an MPI library, plans can be made and explained.

mod answer;
mod broadcast;
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
mod region;
mod roles;
mod said;
mod send;
mod together;
mod way;
mod window;
#[cfg(feature = "runtime")]
pub mod world;

use std::sync::{Arc, Mutex};

use tessera_context::lock;
use tessera_engine::{Extension, Platform, Sent, Setting, Setup};
use tessera_operator::Registry;
use tessera_operator::platform::{Executor, OnPlatform};
use tessera_plan::{Catalogue, Plan, Rules};
use tessera_types::Result;

pub use broadcast::{Broadcast, First};
pub use exchange::Exchange;
pub use histogram::Histogram;
pub use launch::MpiLauncher;
pub use link::Link;
use pass::Crossing;
pub use receive::Receive;
pub use send::Send;
pub use way::Way;
pub use window::Window;

/// The name of the platform.
pub const NAME: &str = "mpi";

/// The setting that says how tuples cross: a [`Way`].
pub const EXCHANGE: &str = "mpi_exchange";

/// How many ranks a plan is made for where none run.
const RANKS_EXPLAINED: usize = 4;

/// Ranks of an MPI world; without a link, only their plans.
#[derive(Debug, Clone, Default)]
pub struct Mpi {
    link: Option<Arc<Link>>,
    way: Arc<Mutex<Way>>,
}

impl Mpi {
    /// The platform of a rank whose communication worker answers this link.
    pub fn new(link: Arc<Link>) -> Mpi {
        Mpi { link: Some(link), ..Mpi::default() }
    }

    /// Sets how tuples cross.
    pub fn set_exchange(&self, way: Way) {
        *lock(&self.way) = way;
    }

    /// How tuples cross.
    fn way(&self) -> Way {
        let shares_cores = || self.link.as_ref().is_some_and(|link| link.shares_cores());
        match *lock(&self.way) {
            Way::Auto if shares_cores() => Way::Rounds,
            Way::Auto => Way::OneSided,
            way => way,
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
        // Each session says for itself how tuples cross.
        let platform = Mpi { link: self.link.clone(), way: Arc::default() };
        let of_setting = platform.clone();
        setup.setting(Setting {
            entry: launch::EXCHANGE_SETTING,
            apply: Arc::new(move |value| {
                of_setting.set_exchange(value.parse()?);
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
            registry.register(OnPlatform::new(Executor, executor::MpiExecutor::new(link.clone())));
        }
    }

    fn serve(&self, run: &mut dyn FnMut(&Sent) -> Result<()>) -> Result<bool> {
        match &self.link {
            Some(link) if link.rank() > 0 => link.serve(run).map(|()| true),
            _ => Ok(false),
        }
    }

    fn pass(&self, plan: &Plan, catalogue: &Catalogue, rules: Rules) -> Result<Plan> {
        pass::for_ranks(plan, catalogue, (self.ranks(), Crossing::By(self.way())), rules)
    }

    fn frugal_pass(
        &self,
        plan: &Plan,
        catalogue: &Catalogue,
        rules: Rules,
    ) -> Result<Option<Plan>> {
        // What does not fit otherwise goes in rounds, whatever the setting.
        let frugal =
            pass::for_ranks(plan, catalogue, (self.ranks(), Crossing::AllInRounds), rules)?;
        Ok((self.pass(plan, catalogue, rules)? != frugal).then_some(frugal))
    }
}
