//! The engine: one worker thread per core.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use tessera_context::Context;
use tessera_rows::Collected;
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

use crate::compiled_plan::CompiledPlan;
use crate::execution::Execution;
use crate::nested::nested_plan;
use crate::query::Query;
use crate::query_run::QueryRun;
use crate::record::RunRecord;
use crate::workers::Shared;

/// Stack size of a worker in bytes. Expressions are evaluated recursively, up to `EXPR_DEPTH_MAX`
/// levels. Only touched pages use memory.
const WORKER_STACK_BYTES: usize = 256 << 20;

/// Worker threads. Dropping it ends them.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Starts `workers` threads.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn new(workers: usize) -> Result<Engine> {
        let shared = Shared::new(workers.max(1));
        let mut engine = Engine { shared: shared.clone(), threads: Vec::new() };
        for worker in 0..workers.max(1) {
            let shared = shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("worker-{worker}"))
                .stack_size(WORKER_STACK_BYTES)
                .spawn(move || shared.work(worker))
                .map_err(|error| Error::io(format!("cannot start worker {worker}: {error}")))?;
            engine.threads.push(thread);
        }
        Ok(engine)
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.shared.worker_count()
    }

    /// Runs a plan and waits for its result. The calling thread only starts and ends an executor;
    /// the workers do everything else, so that a waiting caller never blocks other queries. Any
    /// number of threads may call; their queries share the workers evenly.
    ///
    /// # Errors
    /// The first error of any sub-operator. All other sub-operators are stopped.
    pub fn run(&self, plan: &Arc<CompiledPlan>, query: Arc<Query>) -> Result<Arc<Collected>> {
        self.run_recorded(&RunRecord::new(plan), query)
    }

    /// Runs the plan of a record like [`Engine::run`]. The record shows the progress during the run
    /// and the figures afterwards.
    ///
    /// # Errors
    /// As [`Engine::run`].
    pub fn run_recorded(
        &self,
        record: &Arc<RunRecord>,
        query: Arc<Query>,
    ) -> Result<Arc<Collected>> {
        let context = self.context(record.plan(), query);
        let execution =
            Execution::new(record, Chunk::unit(), context, self.workers(), nested_plan)?;
        if record.plan().is_executor() {
            self.shared.as_caller(|| execution.run_alone())?;
        } else {
            self.shared.run_waiting(&execution);
        }
        execution.take_result()
    }

    /// Starts the plan of a record and returns its result as a stream. The reading thread runs the
    /// jobs of an executor.
    ///
    /// # Errors
    /// The plan is malformed.
    pub fn start(&self, record: &Arc<RunRecord>, query: Arc<Query>) -> Result<QueryRun> {
        let plan = record.plan();
        let start = (Chunk::unit(), self.context(plan, query));
        QueryRun::start(&self.shared, record, start, nested_plan, plan.is_executor())
    }

    fn context(&self, plan: &CompiledPlan, query: Arc<Query>) -> Arc<dyn Context> {
        query.workers.store(self.workers(), Ordering::Relaxed);
        query.expect_states(plan.spilling_states());
        query
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.end();
        for thread in self.threads.drain(..) {
            // A panic outside a job has already been reported.
            drop(thread.join());
        }
    }
}
