//! Platform `local`: the cores of one machine.
//!
//! What it brings is as little as any platform: [`LocalExecutor`], which runs its nested plan with
//! all workers of the engine; [`LocalExchange`], which has nothing to move because workers share
//! memory; and the pass that wraps a plan in the executor and merges where its result would exist
//! many times.

mod exchange;
mod executor;
mod launch;
mod pass;

use std::sync::Arc;

use tessera_engine::{Extension, Platform, Setup};
use tessera_operator::Registry;
use tessera_operator::platform::{Exchange, Executor, OnPlatform};
use tessera_plan::{Catalogue, Plan, Rules};
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
        registry.register(OnPlatform::new(Executor, LocalExecutor));
        registry.register(OnPlatform::new(Exchange, LocalExchange));
    }

    fn concurrent_statements(&self) -> bool {
        true
    }

    fn accepts_local_paths(&self) -> bool {
        true
    }

    fn pass(&self, plan: &Plan, catalogue: &Catalogue, rules: Rules) -> Result<Plan> {
        pass::wrap(plan, catalogue, rules)
    }
}
