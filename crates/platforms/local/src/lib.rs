//! Platform `local`: the cores of one machine.
//!
//! It has the minimum of a platform: [`LocalExecutor`], which runs its nested plan with all workers
//! of the engine; [`LocalExchange`], which moves no tuples because workers share memory; and a pass
//! that wraps a plan in the executor and inserts merges where a result of all workers must be one
//! stream.

#![forbid(unsafe_code)]

mod exchange;
mod executor;
mod launch;
mod pass;

use std::sync::Arc;

use tessera_engine::{Extension, Platform, Setup};
use tessera_operator::Registry;
use tessera_operator::platform::{Exchange, PlatformOperator};
use tessera_plan::{OperatorCatalog, Plan, Rules};
use tessera_types::Result;

pub use exchange::LocalExchange;
pub use executor::LocalExecutor;
pub use launch::LocalLauncher;

/// The name of the platform.
pub const NAME: &str = "local";

/// The cores of one machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Local;

impl Extension for Local {
    fn name(&self) -> &'static str {
        NAME
    }

    fn install(&self, setup: &mut Setup) -> Result<()> {
        setup.platform(Arc::new(Local))
    }
}

impl Platform for Local {
    fn name(&self) -> &'static str {
        NAME
    }

    fn register(&self, registry: &mut Registry) {
        registry.share_memory(NAME);
        registry.register_executor(LocalExecutor);
        registry.register(PlatformOperator::new(Exchange, LocalExchange));
    }

    fn concurrent_statements(&self) -> bool {
        true
    }

    fn accepts_local_paths(&self) -> bool {
        true
    }

    fn pass(&self, plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan> {
        pass::wrap(plan, catalog, rules)
    }
}
