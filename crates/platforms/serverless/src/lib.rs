//! Platform `serverless`: short-lived workers that can reach nothing but an object store.
//!
//! The driver, which is the user's process, invokes the first worker of a cloud function; every
//! worker invokes its own *children* before anything else, so that a tree of them is up in a few
//! round trips (Modularis §1.4, after Lambada). Each runs the same plan on its share of the files.
//! Tuples cross as objects: [`ObjectExchange`] writes one object per sender, with one row group per
//! receiver, and reads one row group of every sender's. The first worker writes its result in parts
//! (`result`). Of a join whose tuples mostly have one key, the objects' indexes tell, and all
//! workers share these. A query that has run out of memory is planned anew, with exchanges *in
//! pieces* (`pieces`), which may be larger than the budget.
//!
//! A worker that is lost is invoked again, by its parent or the driver. It does the same work on
//! the same share, and of two attempts at an object the first one stands; parts have the number of
//! their attempt in their names. All objects of a query lie under one prefix, of which `open` is
//! written first and deleted first: when it is gone, a worker that still runs stops, and deletes
//! what it may have written since.
//!
//! Platforms know no storage: the program hands in a [`Cloud`].
//!
//! ```
//! use tessera_engine::Platform;
//! use tessera_plan::Rules;
//! use tessera_serverless::Serverless;
//!
//! let mut registry = tessera_testing::standard_registry();
//! Serverless::default().register(&mut registry);
//! let text = "plan {
//!     %0 = parquet_scan() {paths = ['s3://b/t.parquet'], columns = <k: int64, v: int64>}
//!     %1 = reduce_by_key(%0) {keys = [k], aggregates = {s = {function = :sum, args = [v]}}}
//!     return %1
//! }";
//! let plan = tessera_plan::text::parse(text).unwrap();
//! let plan = Serverless::default().pass(&plan, registry.catalogue(), Rules::ALL).unwrap();
//! // Sums of parts cross, by their keys, and then the result.
//! assert_eq!(tessera_plan::text::print(&plan).matches("object_exchange").count(), 2);
//! ```

mod cloud;
mod crossing;
mod driver;
mod exchange;
mod executor;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod invoke;
mod meeting;
mod object;
mod parts;
mod pass;
mod pieces;
mod report;
mod result;
mod runtime;
mod task;
#[cfg(test)]
mod testing;
mod upload;
mod worker;

use std::sync::Arc;

use tessera_engine::{Extension, Platform, Sent, Setup};
use tessera_operator::Registry;
use tessera_operator::platform::{Executor, OnPlatform};
use tessera_plan::{Catalogue, Plan, Rules};
use tessera_types::Result;

pub use cloud::{Cloud, Spent};
pub use driver::{Driver, Meter};
pub use exchange::ObjectExchange;
pub use report::{Prices, Usage};
pub use upload::upload;
pub use worker::Worker;

/// The name of the platform.
pub const NAME: &str = "serverless";

/// How many workers a plan is made for where none run.
const WORKERS_EXPLAINED: usize = 4;

/// Workers of a cloud function; without a role, only their plans.
#[derive(Debug, Clone, Default)]
pub struct Serverless {
    role: Role,
}

/// What this process is to the platform.
#[derive(Debug, Clone, Default)]
pub(crate) enum Role {
    /// Nothing: plans can be made and explained.
    #[default]
    None,
    Driver(Arc<Driver>),
    Worker(Arc<Worker>),
}

impl Serverless {
    /// The platform of the user's process.
    pub fn driver(driver: Arc<Driver>) -> Serverless {
        Serverless { role: Role::Driver(driver) }
    }

    /// The platform of a worker.
    pub fn worker(worker: Arc<Worker>) -> Serverless {
        Serverless { role: Role::Worker(worker) }
    }
}

impl Serverless {
    fn workers(&self) -> usize {
        match &self.role {
            Role::Driver(driver) => driver.workers(),
            _ => WORKERS_EXPLAINED,
        }
    }
}

impl Extension for Serverless {
    fn name(&self) -> &'static str {
        NAME
    }

    fn install(&self, setup: &mut Setup) -> Result<()> {
        setup.platform(Arc::new(self.clone()))
    }
}

impl Platform for Serverless {
    fn name(&self) -> &'static str {
        NAME
    }

    fn register(&self, registry: &mut Registry) {
        registry.register(ObjectExchange::new(self.role.clone()));
        match &self.role {
            Role::None => {}
            Role::Driver(driver) => {
                registry.register(OnPlatform::new(Executor, driver::OnDriver(driver.clone())));
            }
            Role::Worker(worker) => {
                registry.register(OnPlatform::new(Executor, executor::OnWorkers(worker.clone())));
            }
        }
    }

    fn serve(&self, run: &mut dyn FnMut(&Sent) -> Result<()>) -> Result<bool> {
        match &self.role {
            Role::Worker(worker) => worker.serve(run).map(|()| true),
            _ => Ok(false),
        }
    }

    fn pass(&self, plan: &Plan, catalogue: &Catalogue, rules: Rules) -> Result<Plan> {
        let workers = self.workers();
        pass::for_workers(plan, catalogue, (workers, false), rules)
    }

    fn frugal_pass(
        &self,
        plan: &Plan,
        catalogue: &Catalogue,
        rules: Rules,
    ) -> Result<Option<Plan>> {
        let workers = self.workers();
        let frugal = pass::for_workers(plan, catalogue, (workers, true), rules)?;
        Ok((self.pass(plan, catalogue, rules)? != frugal).then_some(frugal))
    }
}
