//! What a worker is asked to do, what it answers, and what it knows while it works.

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
use crate::meeting::Meeting;
use crate::report::Usage;
use crate::result::Written;

/// What a worker is asked to do. It is sent as JSON, for people to read in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// Which worker it is, of how many.
    pub(crate) index: usize,
    pub(crate) workers: usize,
    /// The address that all objects of the query begin with.
    pub(crate) prefix: String,
    /// An executor and its plan, as text.
    pub(crate) plan: Arc<str>,
    pub(crate) chunk_rows: usize,
    /// The most memory that a worker's state may take; less, where the worker has less.
    pub(crate) memory_bytes: usize,
    /// Whether a worker that does it again comes to the same tuples.
    pub(crate) repeatable: bool,
}

/// Workers that each worker invokes: a tree three deep then holds 73 of them, and no worker waits
/// long for its own invocations.
const CHILDREN: usize = 8;

impl Order {
    /// Which workers this one invokes.
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
            Error::data(
                "an invocation that is no worker's order; the program starts workers itself",
            )
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

/// How a worker's part ended, and what it and the workers below it have used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) usage: Usage,
    pub(crate) error: Option<Error>,
    /// What the sub-operators of each have counted.
    pub(crate) figures: Vec<String>,
    /// Where the result is; the first worker's.
    pub(crate) result: Option<Written>,
}

impl Answer {
    /// Adds how another worker's part ended. What failed by itself counts before what was only
    /// stopped because of it.
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
        if let Some(Written { attempt, parts }) = &self.result {
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
            Error::io(format!("the function answers what is no worker's answer: {text}"))
        };
        let answer: Json = serde_json::from_slice(bytes).map_err(|_| bad())?;
        let usage = Usage::from_json(answer.get("usage").ok_or_else(bad)?);
        let error = answer.get("error").map(|error| {
            let code = error["code"].as_str().and_then(Code::named).unwrap_or(Code::Internal);
            let state =
                error["state"].as_str().and_then(SqlState::named).unwrap_or(code.sql_state());
            Error::new(code, error["message"].as_str().unwrap_or("no message")).with_state(state)
        });
        let figures = answer.get("figures").and_then(Json::as_array).into_iter().flatten();
        let figures = figures.filter_map(|figures| figures.as_str().map(str::to_string)).collect();
        let result = answer.get("result").and_then(|result| {
            Some(Written { attempt: result["attempt"].as_u64()?, parts: result["parts"].as_u64()? })
        });
        Ok(Answer { usage, error, figures, result })
    }
}

/// Ends a worker's work from outside, with a reason.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    stopped: AtomicBool,
    reason: Mutex<Option<Error>>,
}

impl Stop {
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

/// Whoever ended the query knows why.
pub(crate) fn cancelled() -> Error {
    Error::new(Code::Cancelled, "the query was cancelled")
}

/// What a worker knows while it works.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) order: Order,
    /// The number of this attempt: two attempts at an order cut what they write differently.
    pub(crate) attempt: u64,
    pub(crate) space: Space,
    pub(crate) io: Handle,
    pub(crate) stop: Stop,
    /// What the plan's sub-operators have counted, when it has run.
    pub(crate) figures: Mutex<Option<String>>,
    /// The result, when it has been written.
    pub(crate) result: Mutex<Option<Written>>,
    /// Exchanges that have begun: an object's name is that of its exchange.
    begun: Mutex<HashSet<usize>>,
    /// By the names of joins.
    meetings: Mutex<HashMap<Arc<str>, Arc<Meeting>>>,
    /// Each write that is under way has a clone.
    writes: Arc<()>,
}

impl Task {
    pub(crate) fn new(order: Order, space: Space, io: Handle) -> Task {
        Task {
            order,
            attempt: RandomState::new().build_hasher().finish(),
            space,
            io,
            stop: Stop::default(),
            figures: Mutex::default(),
            result: Mutex::default(),
            begun: Mutex::default(),
            meetings: Mutex::default(),
            writes: Arc::default(),
        }
    }

    /// Writes an object, unless there is one of this name; whether it was written. A write that has
    /// begun goes on where its caller is dropped: [`Task::written`] waits for it.
    ///
    /// # Errors
    /// The query has been stopped, or the store refuses.
    pub(crate) async fn put_new(&self, name: String, payload: PutPayload) -> Result<bool> {
        self.stop.check()?;
        let (space, under_way) = (self.space.clone(), self.writes.clone());
        let write = self.io.spawn(async move {
            let put = space.put_new(&name, payload).await;
            drop(under_way);
            put
        });
        write.await.unwrap_or_else(|_| Err(Error::internal("a write ended without an answer")))
    }

    /// Ends the query because of an error, which is noted where it is its cause.
    pub(crate) async fn fail(&self, error: Error) {
        if error.code() == Code::Cancelled {
            drop(self.space.close().await);
            return;
        }
        let reason = Answer { error: Some(error), ..Answer::default() };
        self.space.fail(reason.to_bytes()).await;
    }

    /// Waits until no write is under way, so that what is cleared afterwards stays so.
    pub(crate) async fn written(&self) {
        let mut waited = 0;
        while Arc::strong_count(&self.writes) > 1 {
            tokio::time::sleep(pause(waited)).await;
            waited += 1;
        }
    }

    /// Begins the exchange of a node; gives the place where it meets another in a join of this
    /// name.
    ///
    /// # Errors
    /// It has begun before: it stands in a nested plan.
    pub(crate) fn begin(
        &self,
        exchange: usize,
        meets: Option<&Arc<str>>,
    ) -> Result<Option<Arc<Meeting>>> {
        if lock(&self.begun).insert(exchange) {
            return Ok(
                meets.map(|name| lock(&self.meetings).entry(name.clone()).or_default().clone())
            );
        }
        Err(Error::unsupported(
            "an exchange inside a nested plan; put it beside the sub-operator that runs the nested plan",
        ))
    }
}

/// Gives up what is under way when nothing waits for it any more.
#[derive(Debug)]
pub(crate) struct Ending(pub(crate) AbortHandle);

impl Drop for Ending {
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
        let came = Answer::from_bytes(&answer.to_bytes()).unwrap();
        let error = came.error.unwrap();
        assert_eq!((error.code(), error.message()), (Code::Overflow, "too big"));
        assert_eq!((came.usage, &came.figures, came.result), (answer.usage, &answer.figures, None));
        answer.result = Some(Written { attempt: u64::MAX, parts: 3 });
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
