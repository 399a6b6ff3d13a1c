//! A platform in another crate, complete: its workers are threads with an engine each, and tuples
//! cross between them as packed rows in queues. `docs/design/add-a-platform.md` leads through it.

mod exchange;
mod executor;
mod launch;
mod pass;
mod tests;
mod world;

use std::sync::Arc;

use tessera_engine::{DriverPlan, Extension, Platform, Setup};
use tessera_operator::Registry;
use tessera_plan::{OperatorCatalog, Plan, Rules};
use tessera_types::Result;

use exchange::ToyExchange;
use executor::ToyExecutor;
use world::Worker;

/// The name of the platform.
const NAME: &str = "toy";

/// The number of workers that `EXPLAIN` assumes without a launch.
const WORKERS_EXPLAINED: usize = 2;

/// The platform. Without a worker it can make plans but not run them.
#[derive(Debug, Clone, Default)]
struct Toy {
    worker: Option<Arc<Worker>>,
}

impl Extension for Toy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn install(&self, setup: &mut Setup) -> Result<()> {
        setup.platform(Arc::new(self.clone()))
    }
}

impl Platform for Toy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(ToyExchange(self.worker.clone()));
        if let Some(worker) = &self.worker {
            registry.register_executor(ToyExecutor(worker.clone()));
        }
    }

    fn serve(&self, run: &mut dyn FnMut(&DriverPlan) -> Result<()>) -> Result<bool> {
        Ok(self.worker.as_ref().is_some_and(|worker| worker.serve(run)))
    }

    fn pass(&self, plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan> {
        let workers = self.worker.as_ref().map_or(WORKERS_EXPLAINED, |worker| worker.workers);
        pass::for_workers(plan, catalog, workers, rules)
    }
}
