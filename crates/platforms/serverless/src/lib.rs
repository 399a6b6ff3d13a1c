//! Platform `serverless`: short-lived workers that communicate only through an object store.
//!
//! The driver, in the user's process, invokes the first worker of a cloud function. Every worker
//! first invokes its own *children*, so that a tree of workers is up in a few round trips
//! (Modularis §2.4.4, after Lambada). Each worker runs the same plan on its share of the files.
//! Tuples are exchanged as objects: [`ObjectExchange`] writes one object per sender with one row
//! group per receiver, and reads one row group of every sender's object. The first worker writes
//! the result in parts (`result`). For joins on skewed keys, the objects' indexes identify heavy
//! partitions, which all workers share. After running out of memory, a query is planned again with
//! exchanges *in pieces* (`pieces`), which may be larger than the budget.
//!
//! A lost worker is invoked again, by its parent or the driver. It does the same work on the same
//! share. If two attempts write the same object, the first one stands; the names of parts contain
//! the number of their attempt. All objects of a query have one prefix. The object `open` is
//! created first and deleted first: once it is gone, a worker that still runs stops and deletes
//! what it may have written since.
//!
//! Platforms do not depend on storage crates: the program passes in a [`Cloud`].
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
//! let plan = Serverless::default().pass(&plan, registry.catalog(), Rules::ALL).unwrap();
//! // Two exchanges: partial sums by key, then the result.
//! assert_eq!(tessera_plan::text::print(&plan).matches("object_exchange").count(), 2);
//! ```

#![forbid(unsafe_code)]

mod cloud;
mod driver;
mod exchange;
mod executor;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod group_map;
mod invoke;
mod object;
mod pass;
mod pieces;
mod rendezvous;
mod report;
mod result;
mod runtime;
mod store_exchange;
mod task;
#[cfg(test)]
mod testing;
mod upload;
mod worker;

use std::sync::Arc;

use tessera_engine::{DriverPlan, Extension, Platform, Setup};
use tessera_operator::Registry;
use tessera_plan::{OperatorCatalog, Plan, Rules};
use tessera_types::Result;

pub use cloud::{Cloud, StoreUsage};
pub use driver::{Driver, Meter};
pub use exchange::ObjectExchange;
pub use report::{Prices, Usage};
pub use upload::upload;
pub use worker::Worker;

/// The name of the platform.
pub const NAME: &str = "serverless";

/// The number of workers that `EXPLAIN` assumes without a driver.
const WORKERS_EXPLAINED: usize = 4;

/// The platform. Without a role it can make plans but not run them.
#[derive(Debug, Clone, Default)]
pub struct Serverless {
    role: Role,
}

/// The role of this process in the platform.
#[derive(Debug, Clone, Default)]
pub(crate) enum Role {
    /// No role: plans can be made and explained.
    #[default]
    None,
    Driver(Arc<Driver>),
    Worker(Arc<Worker>),
}

impl Serverless {
    /// Returns the platform of the user's process.
    pub fn driver(driver: Arc<Driver>) -> Serverless {
        Serverless { role: Role::Driver(driver) }
    }

    /// Returns the platform of a worker.
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
                registry.register_executor(driver::DriverRuntime(driver.clone()));
            }
            Role::Worker(worker) => {
                registry.register_executor(executor::WorkerRuntime(worker.clone()));
            }
        }
    }

    fn serve(&self, run: &mut dyn FnMut(&DriverPlan) -> Result<()>) -> Result<bool> {
        match &self.role {
            Role::Worker(worker) => worker.serve(run).map(|()| true),
            _ => Ok(false),
        }
    }

    fn pass(&self, plan: &Plan, catalog: &OperatorCatalog, rules: Rules) -> Result<Plan> {
        let workers = self.workers();
        pass::for_workers(plan, catalog, (workers, false), rules)
    }

    fn frugal_pass(
        &self,
        plan: &Plan,
        catalog: &OperatorCatalog,
        rules: Rules,
    ) -> Result<Option<Plan>> {
        let workers = self.workers();
        let frugal = pass::for_workers(plan, catalog, (workers, true), rules)?;
        Ok((self.pass(plan, catalog, rules)? != frugal).then_some(frugal))
    }
}
