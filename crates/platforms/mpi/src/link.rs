//! The link between the workers of a rank and its communication worker: requests one way, answers the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tessera_exec::Sent;
use tessera_ops::Token;
use tessera_types::{Code, Error, Result};

use crate::region::Regions;

/// A collective step: the node of the executor's plan that takes it.
pub(crate) type StepId = usize;

/// What all ranks do together in a step.
#[derive(Debug)]
pub enum Work {
    /// Adds up numbers over all ranks, and over the ranks before each.
    Sum(Vec<i64>),
    /// Makes a window of this many bytes for others to put into.
    Open(usize),
    /// Waits until everything that was put has arrived.
    Close(Arc<Regions>),
    /// Sends bytes to some ranks; gets what others send.
    Send {
        /// To whom.
        to: Recipients,
        /// What.
        bytes: Arc<Vec<u8>>,
    },
}

/// Which ranks get something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipients {
    /// The first rank.
    First,
    /// All.
    All,
}

/// What a step gives.
#[derive(Debug)]
pub enum Outcome {
    /// Of the ranks before this one, and of all.
    Sums(Vec<i64>, Vec<i64>),
    /// The window.
    Window(Arc<Regions>),
    /// Everything has arrived.
    Arrived,
    /// What each rank has sent.
    Bytes(Vec<Vec<u8>>),
}

/// A request to the communication worker.
#[derive(Debug)]
pub enum Request {
    /// Starts a plan on all ranks (of the first rank only).
    Begin(String, Sent, Vec<StepId>),
    /// Takes part in a step.
    Step(StepId, Work, Arc<Reply>),
    /// Puts into the window of a rank, from a byte on; the buffer goes to the window's pool afterwards.
    Put(Arc<Regions>, usize, usize, Buffer),
    /// The plan has failed here.
    Failed(Error),
    /// The plan has run to its end here, well or not.
    End(Arc<Reply>),
    /// No plan will come any more (of the first rank only).
    Quit,
}

/// Bytes to be put.
#[derive(Debug)]
pub enum Buffer {
    /// Rows.
    Words(Vec<u64>),
    /// Strings.
    Bytes(Vec<u8>),
}

/// An answer that is waited for.
#[derive(Debug, Default)]
pub struct Reply {
    token: Token,
    outcome: Mutex<Option<Result<Outcome>>>,
}

impl Reply {
    /// What to wait for.
    pub fn token(&self) -> Token {
        self.token.clone()
    }

    /// Gives the answer.
    pub fn set(&self, outcome: Result<Outcome>) {
        *lock(&self.outcome) = Some(outcome);
        self.token.set_ready();
    }

    /// Takes the answer.
    ///
    /// # Errors
    /// The step failed, on whichever rank.
    pub fn take(&self) -> Result<Outcome> {
        lock(&self.outcome).take().unwrap_or_else(|| Err(Error::internal("an answer was taken twice")))
    }
}

/// Connects the workers of a rank with its communication worker.
#[derive(Debug)]
pub struct Link {
    rank: usize,
    ranks: usize,
    requests: Mutex<VecDeque<Request>>,
    came: Condvar,
    plans: Mutex<VecDeque<Option<Sent>>>,
    planned: Condvar,
    /// Whether the running plan has failed somewhere, and how.
    failed: AtomicBool,
    /// Whether the executor of the running plan has said that it is at its end here.
    ended: AtomicBool,
    failure: Mutex<Option<Error>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// The link of rank `rank` of `ranks`.
    pub fn new(rank: usize, ranks: usize) -> Arc<Link> {
        Arc::new(Link {
            rank,
            ranks,
            requests: Mutex::default(),
            came: Condvar::new(),
            plans: Mutex::default(),
            planned: Condvar::new(),
            failed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            failure: Mutex::default(),
        })
    }

    /// Which rank this is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Hands a request to the communication worker.
    pub fn request(&self, request: Request) {
        lock(&self.requests).push_back(request);
        self.came.notify_one();
    }

    /// Says that the plan has run to its end here; the answer comes when it has everywhere.
    pub fn end(&self) -> Arc<Reply> {
        self.ended.store(true, Ordering::Relaxed);
        let reply = Arc::new(Reply::default());
        self.request(Request::End(reply.clone()));
        reply
    }

    /// Takes part in a step; the answer comes later.
    pub fn step(&self, step: StepId, work: Work) -> Arc<Reply> {
        let reply = Arc::new(Reply::default());
        self.request(Request::Step(step, work, reply.clone()));
        reply
    }

    /// The requests so far; waits at most this long for one.
    pub fn requests(&self, at_most: std::time::Duration) -> VecDeque<Request> {
        let mut requests = lock(&self.requests);
        if requests.is_empty() && !at_most.is_zero() {
            let waited = self.came.wait_timeout(requests, at_most).unwrap_or_else(PoisonError::into_inner);
            requests = waited.0;
        }
        std::mem::take(&mut requests)
    }

    /// Fails when the running plan has failed on any rank.
    ///
    /// # Errors
    /// Which rank has, and why.
    pub fn check(&self) -> Result<()> {
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(lock(&self.failure)
            .clone()
            .unwrap_or_else(|| Error::new(Code::Cancelled, "the plan failed on another rank")))
    }

    /// A plan begins, or has failed.
    pub fn set_failure(&self, failure: Option<Error>) {
        let failed = failure.is_some();
        *lock(&self.failure) = failure;
        self.failed.store(failed, Ordering::Relaxed);
    }

    /// A plan has come from the first rank; none: no more will.
    pub fn plan_came(&self, plan: Option<Sent>) {
        lock(&self.plans).push_back(plan);
        self.planned.notify_one();
    }

    /// Runs the plans that the first rank sends, until it sends no more.
    pub(crate) fn serve(&self, run: &mut dyn FnMut(&Sent) -> Result<()>) -> Result<()> {
        loop {
            let mut plans = lock(&self.plans);
            let plan = loop {
                match plans.pop_front() {
                    Some(plan) => break plan,
                    None => plans = self.planned.wait(plans).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(plans);
            let Some(sent) = plan else { return Ok(()) };
            self.ended.store(false, Ordering::Relaxed);
            if let Err(error) = run(&sent)
                && !self.ended.load(Ordering::Relaxed)
            {
                self.request(Request::Failed(error));
                self.end();
            }
        }
    }
}
