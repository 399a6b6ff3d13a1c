//! Orders of workers, their answers, and the state of a worker's task.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use object_store::PutPayload;
use serde_json::{Map, Value as Json, json};
use tessera_context::lock;
use tessera_types::{Code, Error, Result, SqlState};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::cloud::Space;
use crate::invoke::pause;
use crate::rendezvous::Rendezvous;
use crate::report::Usage;
use crate::result::ResultParts;

/// The order for a worker. It is sent as JSON, readable in logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// The index of the worker, and the number of workers.
    pub(crate) index: usize,
    pub(crate) workers: usize,
    /// The address of all objects of the query.
    pub(crate) prefix: String,
    /// The text of a plan with an executor and its nested plan.
    pub(crate) plan: Arc<str>,
    pub(crate) chunk_rows: usize,
    /// The memory budget of a worker's state; less if the worker has less memory.
    pub(crate) memory_bytes: usize,
    /// Whether a repeated run produces the same tuples.
    pub(crate) repeatable: bool,
}

/// The number of workers that each worker invokes: a tree of depth three then has 73 of them, and
/// no worker waits long for its own invocations.
const CHILDREN: usize = 8;

impl Order {
    /// Returns the workers that this one invokes.
    pub(crate) fn children(&self) -> impl Iterator<Item = usize> + use<> {
        let first = self.index.saturating_mul(CHILDREN).saturating_add(1);
        first.min(self.workers)..first.saturating_add(CHILDREN).min(self.workers)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let Order { index, workers, prefix, plan, chunk_rows, memory_bytes, repeatable } = self;
        json!({
            "index": index, "workers": workers, "prefix": prefix, "plan": &**plan, "chunk_rows": chunk_rows,
            "memory_bytes": memory_bytes, "repeatable": repeatable,
        })
        .to_string()
        .into_bytes()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Order> {
        let bad = || {
            Error::data("invalid order for a worker; only the program itself may invoke workers")
        };
        let order: Json = serde_json::from_slice(bytes).map_err(|_| bad())?;
        let number =
            |name: &str| order[name].as_u64().map(|number| number as usize).ok_or_else(bad);
        let text = |name: &str| order[name].as_str().ok_or_else(bad);
        let order = Order {
            index: number("index")?,
            workers: number("workers")?,
            prefix: text("prefix")?.to_string(),
            plan: text("plan")?.into(),
            chunk_rows: number("chunk_rows")?,
            memory_bytes: number("memory_bytes")?,
            repeatable: order["repeatable"] == true,
        };
        if order.index < order.workers { Ok(order) } else { Err(bad()) }
    }
}

/// The answer of a worker: its outcome and usage, with those of the workers below it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) usage: Usage,
    pub(crate) error: Option<Error>,
    /// The counters of each worker's sub-operators.
    pub(crate) figures: Vec<String>,
    /// The location of the result, from the first worker.
    pub(crate) result: Option<ResultParts>,
}

impl Answer {
    /// Adds the answer of another worker. An original error takes precedence over cancellations
    /// that it caused.
    pub(crate) fn add(&mut self, other: Answer) {
        self.usage.add(&other.usage);
        self.figures.extend(other.figures);
        let only_stopped = |error: &Option<Error>| {
            error.as_ref().is_none_or(|error| error.code() == Code::Cancelled)
        };
        if other.error.is_some()
            && only_stopped(&self.error)
            && (self.error.is_none() || !only_stopped(&other.error))
        {
            self.error = other.error;
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut object = Map::new();
        object.insert("usage".to_string(), self.usage.to_json());
        object.insert("figures".to_string(), self.figures.clone().into());
        if let Some(ResultParts { attempt, parts }) = &self.result {
            object.insert("result".to_string(), json!({ "attempt": attempt, "parts": parts }));
        }
        if let Some(error) = &self.error {
            let error = json!({
                "code": error.code().as_str(),
                "state": error.sql_state().as_str(),
                "message": error.message(),
            });
            object.insert("error".to_string(), error);
        }
        Json::Object(object).to_string().into_bytes()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Answer> {
        let bad = || {
            let text: String = String::from_utf8_lossy(bytes).chars().take(200).collect();
            Error::io(format!(
                "invalid answer of the function, which must run this version of the program: {text}"
            ))
        };
        let answer: Json = serde_json::from_slice(bytes).map_err(|_| bad())?;
        let usage = Usage::from_json(answer.get("usage").ok_or_else(bad)?);
        let error = answer.get("error").map(|error| {
            let code = error["code"].as_str().and_then(Code::from_name).unwrap_or(Code::Internal);
            let state =
                error["state"].as_str().and_then(SqlState::from_name).unwrap_or(code.sql_state());
            Error::new(code, error["message"].as_str().unwrap_or("no message")).with_state(state)
        });
        let figures = answer.get("figures").and_then(Json::as_array).into_iter().flatten();
        let figures = figures.filter_map(|figures| figures.as_str().map(str::to_string)).collect();
        let result = answer.get("result").and_then(|result| {
            Some(ResultParts {
                attempt: result["attempt"].as_u64()?,
                parts: result["parts"].as_u64()?,
            })
        });
        Ok(Answer { usage, error, figures, result })
    }
}

/// A signal that stops a worker's work, with a reason.
#[derive(Debug, Default)]
pub(crate) struct StopSignal {
    stopped: AtomicBool,
    reason: Mutex<Option<Error>>,
}

impl StopSignal {
    pub(crate) fn stop(&self, reason: Error) {
        lock(&self.reason).get_or_insert(reason);
        self.stopped.store(true, Ordering::Release);
    }

    pub(crate) fn check(&self) -> Result<()> {
        if !self.stopped.load(Ordering::Acquire) {
            return Ok(());
        }
        let reason = lock(&self.reason).clone();
        Err(reason.unwrap_or_else(cancelled))
    }
}

/// Returns the error of a stopped query; the cause is reported elsewhere.
pub(crate) fn cancelled() -> Error {
    Error::new(Code::Cancelled, "the query was cancelled")
}

/// The state of a worker's task.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) order: Order,
    /// The number of this attempt: two attempts at an order split their output differently.
    pub(crate) attempt: u64,
    pub(crate) space: Space,
    pub(crate) io: Handle,
    pub(crate) stop: StopSignal,
    /// The counters of the plan's sub-operators, once it has ended.
    pub(crate) figures: Mutex<Option<String>>,
    /// The result, once it is written.
    pub(crate) result: Mutex<Option<ResultParts>>,
    /// The exchanges that have started; each names its objects.
    begun: Mutex<HashSet<usize>>,
    /// The rendezvous of each join, by name.
    rendezvous_by_join: Mutex<HashMap<Arc<str>, Arc<Rendezvous>>>,
    /// Each write in flight holds a clone.
    writes: Arc<()>,
}

impl Task {
    pub(crate) fn new(order: Order, space: Space, io: Handle) -> Task {
        Task {
            order,
            attempt: RandomState::new().build_hasher().finish(),
            space,
            io,
            stop: StopSignal::default(),
            figures: Mutex::default(),
            result: Mutex::default(),
            begun: Mutex::default(),
            rendezvous_by_join: Mutex::default(),
            writes: Arc::default(),
        }
    }

    /// Writes an object unless it exists; returns whether it was written. A write continues if its
    /// caller is dropped: [`Task::wait_for_writes`] waits for it.
    ///
    /// # Errors
    /// The query was stopped, or the store failed.
    pub(crate) async fn put_new(&self, name: String, payload: PutPayload) -> Result<bool> {
        self.stop.check()?;
        let (space, in_flight) = (self.space.clone(), self.writes.clone());
        let write = self.io.spawn(async move {
            let put = space.put_new(&name, payload).await;
            drop(in_flight);
            put
        });
        write.await.unwrap_or_else(|_| Err(Error::internal("write ended without an answer")))
    }

    /// Ends the query because of an error, and stores the error if it is the cause.
    pub(crate) async fn fail(&self, error: Error) {
        if error.code() == Code::Cancelled {
            drop(self.space.close().await);
            return;
        }
        let reason = Answer { error: Some(error), ..Answer::default() };
        self.space.fail(reason.to_bytes()).await;
    }

    /// Waits until no write is in flight, so that nothing reappears after objects are deleted.
    pub(crate) async fn wait_for_writes(&self) {
        let mut waited = 0;
        while Arc::strong_count(&self.writes) > 1 {
            tokio::time::sleep(pause(waited)).await;
            waited += 1;
        }
    }

    /// Starts the exchange of a node; returns the rendezvous of the join `meets`, if there is one.
    ///
    /// # Errors
    /// The exchange has started before, so it is in a nested plan.
    pub(crate) fn begin_exchange(
        &self,
        exchange: usize,
        meets: Option<&Arc<str>>,
    ) -> Result<Option<Arc<Rendezvous>>> {
        if lock(&self.begun).insert(exchange) {
            return Ok(meets.map(|name| {
                lock(&self.rendezvous_by_join).entry(name.clone()).or_default().clone()
            }));
        }
        Err(Error::unsupported(
            "unsupported exchange inside a nested plan; move it next to the sub-operator that runs the nested plan",
        ))
    }
}

/// Aborts an asynchronous task when dropped.
#[derive(Debug)]
pub(crate) struct AbortOnDrop(pub(crate) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(index: usize, workers: usize) -> Order {
        let (prefix, plan) = ("s3://bucket/q".to_string(), "%0 = \"x\"".into());
        Order {
            index,
            workers,
            prefix,
            plan,
            chunk_rows: 7,
            memory_bytes: 1 << 30,
            repeatable: true,
        }
    }

    #[test]
    fn the_tree_holds_every_worker_once() {
        for workers in [1, 2, 8, 9, 10, 73, 74, 300] {
            let mut found: Vec<usize> = (0..workers)
                .flat_map(|index| order(index, workers).children())
                .chain([0])
                .collect();
            found.sort_unstable();
            assert_eq!(found, (0..workers).collect::<Vec<_>>());
        }
    }

    #[test]
    fn orders_and_answers_travel() {
        let order = order(2, 3);
        assert_eq!(Order::from_bytes(&order.to_bytes()).unwrap(), order);
        assert!(Order::from_bytes(b"{}").is_err() && Order::from_bytes(b"x").is_err());
        let figures = vec!["1 2 3\n4 5 6 requests 7\n".to_string()];
        let mut answer = Answer {
            error: Some(Error::new(Code::Overflow, "too big")),
            figures,
            ..Answer::default()
        };
        answer.usage.add_requests([1, 2, 3, 4, 5]);
        let parsed = Answer::from_bytes(&answer.to_bytes()).unwrap();
        let error = parsed.error.unwrap();
        assert_eq!((error.code(), error.message()), (Code::Overflow, "too big"));
        assert_eq!(
            (parsed.usage, &parsed.figures, parsed.result),
            (answer.usage, &answer.figures, None)
        );
        answer.result = Some(ResultParts { attempt: u64::MAX, parts: 3 });
        assert_eq!(Answer::from_bytes(&answer.to_bytes()).unwrap().result, answer.result);
        assert!(Answer::from_bytes(b"\"no\"").is_err());
    }

    #[test]
    fn the_cause_counts_before_its_consequences() {
        let failed = |code| Answer { error: Some(Error::new(code, "x")), ..Answer::default() };
        for (own, other, left) in [
            (Code::Cancelled, Code::Data, Code::Data),
            (Code::Data, Code::Cancelled, Code::Data),
            (Code::Cancelled, Code::Cancelled, Code::Cancelled),
            (Code::Data, Code::Limit, Code::Data),
        ] {
            let mut answer = failed(own);
            answer.add(failed(other));
            assert_eq!(answer.error.unwrap().code(), left);
        }
        let mut answer = Answer::default();
        answer.add(failed(Code::Cancelled));
        assert!(answer.error.is_some());
    }
}
