//! A worker: takes orders, invokes its children, runs its share, and answers for all of them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tessera_context::lock;
use tessera_engine::DriverPlan;
use tessera_plan::text;
use tessera_types::{Code, Error, Result};

use crate::cloud::{Cloud, Space};
use crate::invoke::{Function, ServiceToken};
use crate::report::Usage;
use crate::runtime::Runtime;
use crate::task::{Answer, Order, Task, cancelled};

/// How often a worker checks whether its query is still wanted.
const WATCH: Duration = Duration::from_millis(500);
/// Memory of a worker that is not available to queries: the program and its buffers.
const OTHER_BYTES: usize = 128 << 20;
/// The default memory of a function.
const MEMORY_MIB: u64 = 1769;

/// The process of a worker.
#[derive(Debug)]
pub struct Worker {
    cloud: Arc<Cloud>,
    runtime: Runtime,
    function: Arc<Function>,
    memory_mib: u64,
    task: Mutex<Option<Arc<Task>>>,
}

impl Worker {
    /// Returns a worker of the function service that the environment names.
    ///
    /// # Errors
    /// The environment names no function service.
    pub fn new(cloud: Cloud) -> Result<Worker> {
        let host = cloud.setting("AWS_LAMBDA_RUNTIME_API").ok_or_else(|| {
            Error::semantic(
                "AWS_LAMBDA_RUNTIME_API is not set; workers are started by a function service, which sets it",
            )
        })?;
        let name = cloud
            .setting("AWS_LAMBDA_FUNCTION_NAME")
            .unwrap_or_else(|| crate::driver::FUNCTION.to_string());
        let memory =
            cloud.setting("AWS_LAMBDA_FUNCTION_MEMORY_SIZE").and_then(|text| text.parse().ok());
        Ok(Worker {
            runtime: Runtime::new(&host, ServiceToken::of(&cloud)?)?,
            function: Arc::new(Function::new(&name, &cloud)?),
            memory_mib: memory.unwrap_or(MEMORY_MIB),
            cloud: Arc::new(cloud),
            task: Mutex::default(),
        })
    }

    /// Returns the current task.
    pub(crate) fn task(&self) -> Result<Arc<Task>> {
        lock(&self.task).clone().ok_or_else(|| Error::internal("worker without a task"))
    }

    /// Returns the memory budget of a query's state.
    fn budget(&self, requested: usize) -> usize {
        let whole = (self.memory_mib as usize) << 20;
        requested.min(whole.saturating_sub(OTHER_BYTES) / 10 * 8).max(1 << 20)
    }

    /// Runs orders until the connection to the service ends.
    pub(crate) fn serve(&self, run: &mut dyn FnMut(&DriverPlan) -> Result<()>) -> Result<()> {
        loop {
            let runtime = self.runtime.clone();
            let (id, bytes) = self.cloud.wait(async move { runtime.next().await })?;
            let answer = match Order::from_bytes(&bytes) {
                Ok(order) => self.run_order(order, run),
                Err(error) => Answer { error: Some(error), ..Answer::default() },
            };
            let (runtime, answer) = (self.runtime.clone(), answer.to_bytes());
            self.cloud.wait(async move { runtime.answer(&id, answer).await })?;
        }
    }

    fn run_order(&self, order: Order, run: &mut dyn FnMut(&DriverPlan) -> Result<()>) -> Answer {
        let (started, before) = (Instant::now(), (self.cloud.store_usage)());
        let (index, workers) = (order.index, order.workers);
        let mut answer = match self.execute(order, run) {
            Ok(answer) => answer,
            Err(error) => Answer { error: Some(error), ..Answer::default() },
        };
        answer.error = answer.error.map(|error| self.with_worker(error, (index, workers)));
        let mut usage = Usage::default();
        usage.add_store_usage(before, (self.cloud.store_usage)());
        usage.add_work(self.memory_mib, started.elapsed().as_micros().div_ceil(1000) as u64);
        answer.usage.add(&usage);
        answer
    }

    /// Adds the name of the worker to its error, once.
    fn with_worker(&self, error: Error, (index, workers): (usize, usize)) -> Error {
        if error.code() == Code::Cancelled || error.message().starts_with("worker ") {
            return error;
        }
        let is_limit = error.code() == Code::Limit;
        let error = error.context(format!("worker {index} of {workers}"));
        match is_limit {
            true => Error::new(
                Code::Limit,
                format!("{error}; each worker has {} MiB (--worker-memory)", self.memory_mib),
            ),
            false => error,
        }
    }

    /// Runs an order. An error means that nothing had started.
    fn execute(
        &self,
        order: Order,
        run: &mut dyn FnMut(&DriverPlan) -> Result<()>,
    ) -> Result<Answer> {
        let space = Space::new((self.cloud.connect)(&order.prefix)?);
        let task = Arc::new(Task::new(order, space, self.cloud.io.clone()));
        let children: Vec<_> = task
            .order
            .children()
            .map(|child| {
                let order = Order { index: child, ..task.order.clone() };
                let (function, task) = (self.function.clone(), task.clone());
                self.cloud.io.spawn(async move {
                    let answer = function.invoke(&order, &task.stop).await;
                    if let Some(error) = &answer.error {
                        // Without this child's share there is no result, so the query stops.
                        task.stop.stop(error.clone());
                        task.fail(error.clone()).await;
                    }
                    answer
                })
            })
            .collect();
        let watched = task.clone();
        let watch = self.cloud.io.spawn(async move {
            loop {
                tokio::time::sleep(WATCH).await;
                if !watched.space.is_open().await {
                    watched.stop.stop(cancelled());
                }
            }
        });
        *lock(&self.task) = Some(task.clone());
        let sent = text::parse(&task.order.plan).map(|plan| DriverPlan {
            plan,
            chunk_rows: task.order.chunk_rows,
            memory_bytes: self.budget(task.order.memory_bytes),
        });
        let result = sent.and_then(|sent| run(&sent));
        *lock(&self.task) = None;
        watch.abort();
        let of = (task.order.index, task.order.workers);
        let error = result.err().map(|error| self.with_worker(error, of));
        if let Some(error) = &error {
            task.stop.stop(error.clone());
        }
        self.cloud.wait(async move {
            let figures = lock(&task.figures).take().into_iter().collect();
            let mut answer = Answer { error, figures, ..Answer::default() };
            answer.usage.add_received(&task.space);
            if let Some(error) = answer.error.clone() {
                task.fail(error).await;
            }
            for child in children {
                match child.await {
                    Ok(of_child) => answer.add(of_child),
                    Err(_) => return Err(Error::internal("invocation ended without an answer")),
                }
            }
            task.wait_for_writes().await;
            answer.result = lock(&task.result).take();
            // This worker may have written objects after the query's were deleted.
            if !task.space.is_open().await {
                drop(task.space.clear_late(task.attempt).await);
                if answer.result.take().is_some() {
                    answer.add(Answer { error: Some(cancelled()), ..Answer::default() });
                }
            }
            Ok(answer)
        })
    }
}
