//! The link between the workers of a rank and its communication worker: requests one way, answers
//! the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tessera_context::{Context, Reservation, Token, lock};
use tessera_engine::Sent;
use tessera_types::{Code, Error, Result};

use crate::flow::Flow;
use crate::region::Regions;

/// Bytes of packets of a rank that are under way before its workers wait: enough to keep a network
/// busy meanwhile, or this part of the budget where that is less.
const UNDER_WAY_BYTES: usize = 16 << 20;
const UNDER_WAY_SHARE: usize = 16;

/// A collective step: the node of the executor's plan that takes it.
pub(crate) type StepId = usize;

/// What all ranks do together in a step.
#[derive(Debug)]
pub enum Work {
    /// Adds up numbers over all ranks, and over the ranks before each.
    Sum(Vec<i64>),
    /// Makes windows of this many bytes each for others to put into.
    Open(Vec<usize>),
    /// Waits until everything that was put has arrived.
    Close(Arc<Regions>),
    /// Sends bytes to some ranks; gets what others send.
    Send {
        /// To whom.
        to: Recipients,
        /// What.
        bytes: Arc<Vec<u8>>,
    },
    /// Waits for all packets that were sent to this rank, two-sided, by the sub-operator at a step.
    Receive {
        /// Whose packets.
        of: StepId,
        /// How many this rank has sent to each.
        sent: Vec<i64>,
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
    /// The windows.
    Windows(Vec<Arc<Regions>>),
    /// Everything has arrived.
    Arrived,
    /// The plan is over; what the others' sub-operators have counted (on the first rank).
    Ended(Vec<String>),
    /// What each rank has sent.
    Bytes(Vec<Vec<u8>>),
    /// The packets that came, in no order.
    Packets(Vec<Arrived>),
}

/// A packet that came two-sided: whose, its words, and the memory that they count for.
#[derive(Debug)]
pub struct Arrived {
    pub(crate) from: usize,
    pub(crate) words: Vec<u64>,
    /// Held until the packet is gone; none until the plan's budget is known here.
    pub(crate) memory: Option<Reservation>,
}

/// A request to the communication worker.
#[derive(Debug)]
pub enum Request {
    /// Starts a plan on all ranks (of the first rank only).
    Begin(String, Sent, Vec<StepId>),
    /// The query against whose budget packets that come are counted.
    Budget(Arc<dyn Context>),
    /// Takes part in a step.
    Step(StepId, Work, Arc<Reply>),
    /// Puts into the windows of ranks.
    Puts(Arc<Regions>, Vec<Put>),
    /// Sends a packet to a rank, two-sided: its words, of which the first will be the plan's number
    /// and the second names the step.
    Packet(usize, Vec<u64>, UnderWay),
    /// Packets of a step go there from now on, and those that have come.
    Flow(StepId, Arc<Flow>),
    /// The plan has failed here.
    Failed(Error),
    /// What the plan's sub-operators have counted here (not of the first rank).
    Figures(String),
    /// The plan has run to its end here, well or not.
    End(Arc<Reply>),
    /// No plan will come any more (of the first rank only).
    Quit,
}

/// Bytes to be put into the window of a rank, from a byte on.
#[derive(Debug)]
pub struct Put {
    /// Whose window.
    pub rank: usize,
    /// Where in it.
    pub byte: usize,
    /// What.
    pub buffer: Buffer,
}

/// Bytes to be put, counted until they have been.
#[derive(Debug)]
pub struct Buffer {
    /// What.
    pub bytes: Bytes,
    /// The count of it.
    pub under_way: UnderWay,
}

/// What is put.
#[derive(Debug)]
pub enum Bytes {
    /// Rows.
    Words(Vec<u64>),
    /// Strings.
    Bytes(Vec<u8>),
}

/// Bytes under way: they count against the memory budget, and when they are many, workers wait.
#[derive(Debug)]
pub struct UnderWay {
    link: Arc<Link>,
    memory: Reservation,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let before = self.link.under_way.fetch_sub(self.memory.bytes(), Ordering::Relaxed);
        if before - self.memory.bytes() <= self.link.under_way_max() / 2 {
            lock(&self.link.waiting).drain(..).for_each(|token| token.set_ready());
        }
    }
}

/// An answer that is waited for.
#[derive(Debug)]
pub struct Reply {
    token: Token,
    outcome: Mutex<Option<Result<Outcome>>>,
    asked: Instant,
    waited: OnceLock<Duration>,
}

impl Default for Reply {
    fn default() -> Self {
        Reply {
            token: Token::new(),
            outcome: Mutex::default(),
            asked: Instant::now(),
            waited: OnceLock::new(),
        }
    }
}

impl Reply {
    /// What to wait for.
    pub fn token(&self) -> Token {
        self.token.clone()
    }

    /// Gives the answer.
    pub fn set(&self, outcome: Result<Outcome>) {
        self.waited.get_or_init(|| self.asked.elapsed());
        *lock(&self.outcome) = Some(outcome);
        self.token.set_ready();
    }

    /// How long the answer took.
    pub fn waited(&self) -> Duration {
        self.waited.get().copied().unwrap_or_default()
    }

    /// Takes the answer.
    ///
    /// # Errors
    /// The step failed, on whichever rank.
    pub fn take(&self) -> Result<Outcome> {
        lock(&self.outcome)
            .take()
            .unwrap_or_else(|| Err(Error::internal("an answer was taken twice")))
    }
}

/// Connects the workers of a rank with its communication worker.
#[derive(Debug)]
pub struct Link {
    rank: usize,
    ranks: usize,
    shares_cores: bool,
    requests: Mutex<VecDeque<Request>>,
    came: Condvar,
    plans: Mutex<VecDeque<Option<Sent>>>,
    planned: Condvar,
    /// Whether the running plan has failed somewhere, and how.
    failed: AtomicBool,
    /// Whether the executor of the running plan has said that it is at its end here.
    ended: AtomicBool,
    failure: Mutex<Option<Error>>,
    /// Bytes of packets under way, and who waits for them to become fewer.
    under_way: AtomicUsize,
    /// How many make workers wait, by the budget of the running plan.
    under_way_max: AtomicUsize,
    waiting: Mutex<Vec<Token>>,
}

impl Link {
    /// The link of rank `rank` of `ranks`; whether this machine has fewer cores than it has ranks.
    pub fn new(rank: usize, ranks: usize, shares_cores: bool) -> Arc<Link> {
        Arc::new(Link {
            rank,
            ranks,
            shares_cores,
            requests: Mutex::default(),
            came: Condvar::new(),
            plans: Mutex::default(),
            planned: Condvar::new(),
            failed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            failure: Mutex::default(),
            under_way: AtomicUsize::new(0),
            under_way_max: AtomicUsize::new(UNDER_WAY_BYTES),
            waiting: Mutex::default(),
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

    /// Whether there are more ranks on this machine than it has cores.
    pub fn shares_cores(&self) -> bool {
        self.shares_cores
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

    /// A plan begins that may hold so much memory.
    pub fn set_memory(&self, memory_bytes: usize) {
        let most = (memory_bytes / UNDER_WAY_SHARE).min(UNDER_WAY_BYTES);
        self.under_way_max.store(most, Ordering::Relaxed);
    }

    fn under_way_max(&self) -> usize {
        self.under_way_max.load(Ordering::Relaxed)
    }

    /// As [`Link::count`], of bytes whose number the receivers bound: where the budget is exhausted
    /// they go uncounted, since sending them is what makes room.
    pub(crate) fn count_bounded(
        self: &Arc<Self>,
        bytes: usize,
        context: &Arc<dyn Context>,
    ) -> UnderWay {
        let mut memory = Reservation::new(context.clone());
        drop(memory.grow(bytes));
        self.under_way.fetch_add(memory.bytes(), Ordering::Relaxed);
        UnderWay { link: self.clone(), memory }
    }

    /// Counts bytes that will be under way.
    ///
    /// # Errors
    /// The memory budget is exhausted.
    pub fn count(self: &Arc<Self>, bytes: usize, context: &Arc<dyn Context>) -> Result<UnderWay> {
        let mut memory = Reservation::new(context.clone());
        memory.grow(bytes)?;
        self.under_way.fetch_add(bytes, Ordering::Relaxed);
        Ok(UnderWay { link: self.clone(), memory })
    }

    /// What to wait for before there is more under way; nothing while there is room.
    pub fn room(&self) -> Option<Token> {
        let is_full = || self.under_way.load(Ordering::Relaxed) >= self.under_way_max();
        if !is_full() {
            return None;
        }
        let token = Token::new();
        lock(&self.waiting).push(token.clone());
        // The last ones may have arrived in between, with nobody to tell.
        if !is_full() {
            token.set_ready();
        }
        Some(token)
    }

    /// Whether so much is under way that nothing should be held back.
    pub fn is_filling(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) >= self.under_way_max() / 4
    }

    /// Whether workers wait for room.
    pub fn is_full(&self) -> bool {
        !lock(&self.waiting).is_empty()
    }

    /// The requests so far; waits at most this long for one.
    pub fn requests(&self, at_most: Duration) -> VecDeque<Request> {
        let mut requests = lock(&self.requests);
        if requests.is_empty() && !at_most.is_zero() {
            let waited =
                self.came.wait_timeout(requests, at_most).unwrap_or_else(PoisonError::into_inner);
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
                    None => {
                        plans = self.planned.wait(plans).unwrap_or_else(PoisonError::into_inner)
                    }
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

#[cfg(test)]
mod tests {
    use tessera_engine::{Governor, Query, Settings};

    use super::*;

    #[test]
    fn what_is_under_way_is_bounded_and_counted() {
        let governor = Governor::new(2 * UNDER_WAY_BYTES);
        let context: Arc<dyn Context> = Query::new(Settings::default(), &governor);
        let link = Link::new(0, 2, false);
        let mut packets: Vec<UnderWay> =
            (0..4).map(|_| link.count(UNDER_WAY_BYTES / 4, &context).unwrap()).collect();
        assert_eq!(governor.used_bytes(), UNDER_WAY_BYTES);
        let token = link.room().unwrap();
        assert!(!token.is_ready() && link.is_full());
        packets.pop();
        assert!(!token.is_ready());
        packets.pop();
        assert!(token.is_ready() && !link.is_full() && link.room().is_none());
        // Beyond the budget nothing is counted.
        assert!(link.count(4 * UNDER_WAY_BYTES, &context).is_err());
        drop(packets);
        assert_eq!(governor.used_bytes(), 0);
    }
}
