//! The link between the workers of a rank and its communication worker: requests in one direction,
//! replies in the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tessera_context::{Context, Reservation, Token, lock};
use tessera_engine::DriverPlan;
use tessera_types::{Code, Error, Result};

use crate::flow::Flow;
use crate::window_memory::WindowMemory;

/// The maximum of bytes in flight before workers wait: enough to keep a network busy, or a share of
/// the budget if that is less.
const IN_FLIGHT_BYTES: usize = 16 << 20;
const IN_FLIGHT_SHARE: usize = 16;

/// A collective step: the node of the executor's plan that takes it.
pub(crate) type StepId = usize;

/// The work of a collective step.
#[derive(Debug)]
pub enum Work {
    /// Sums numbers over all ranks, and over the ranks before each.
    Sum(Vec<i64>),
    /// Allocates windows of this many bytes each, for others to put into.
    Open(Vec<usize>),
    /// Waits until all puts have arrived, and closes the window.
    Close(Arc<WindowMemory>),
    /// Sends bytes to some ranks and receives theirs.
    Send {
        /// The receivers.
        to: Recipients,
        /// What.
        bytes: Arc<Vec<u8>>,
    },
    /// Waits for all packets that the `mpi_send` of a step has sent to this rank.
    Receive {
        /// The step of the `mpi_send`.
        of: StepId,
        /// The number of packets this rank has sent to each rank.
        sent: Vec<i64>,
    },
}

/// The receivers of a broadcast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipients {
    /// The first rank.
    First,
    /// All.
    All,
}

/// The result of a step.
#[derive(Debug)]
pub enum Outcome {
    /// The sums over the ranks before this one, and over all ranks.
    Sums(Vec<i64>, Vec<i64>),
    /// The allocated windows.
    Windows(Vec<Arc<WindowMemory>>),
    /// The window is closed, or the step has no result.
    Complete,
    /// The plan has ended on all ranks. On the first rank, with the counters of the others'
    /// sub-operators.
    Ended(Vec<String>),
    /// The bytes of each rank.
    Bytes(Vec<Vec<u8>>),
    /// The received packets, in no order.
    Packets(Vec<ReceivedPacket>),
}

/// A packet received two-sided: its sender, its words, and the memory they are counted as.
#[derive(Debug)]
pub struct ReceivedPacket {
    pub(crate) from: usize,
    pub(crate) words: Vec<u64>,
    /// The packet's reservation; `None` until the plan's budget is known on this rank.
    pub(crate) memory: Option<Reservation>,
}

/// A request to the communication worker.
#[derive(Debug)]
pub enum Request {
    /// Starts a plan on all ranks (from the first rank only).
    Begin(String, DriverPlan, Vec<StepId>),
    /// Sets the query that received packets are counted against.
    Budget(Arc<dyn Context>),
    /// Takes part in a collective step.
    Step(StepId, Work, Arc<Reply>),
    /// Puts bytes into the windows of other ranks.
    Puts(Arc<WindowMemory>, Vec<Put>),
    /// Sends a packet to a rank, two-sided. The first of its words will be the plan's number, the
    /// second names the step.
    Packet(usize, Vec<u64>, InFlightBytes),
    /// Delivers the packets of a step to a flow, including those already received.
    Flow(StepId, Arc<Flow>),
    /// Reports that the plan has failed on this rank.
    Failed(Error),
    /// Reports the counters of the plan's sub-operators (not from the first rank).
    Figures(String),
    /// Reports that the plan has ended on this rank, with or without success.
    End(Arc<Reply>),
    /// Ends the world: no more plans follow (from the first rank only).
    Quit,
}

/// Bytes to put into the window of a rank at an offset.
#[derive(Debug)]
pub struct Put {
    /// The owner of the window.
    pub rank: usize,
    /// The byte offset in the window.
    pub byte: usize,
    /// What.
    pub buffer: Buffer,
}

/// Bytes to put, counted as in flight until the put has read them.
#[derive(Debug)]
pub struct Buffer {
    /// What.
    pub bytes: Bytes,
    /// Their count as bytes in flight.
    pub in_flight: InFlightBytes,
}

/// The contents of a put.
#[derive(Debug)]
pub enum Bytes {
    /// Rows.
    Words(Vec<u64>),
    /// Strings.
    Bytes(Vec<u8>),
}

/// Bytes in flight. They count against the memory budget; workers wait while there are too many.
#[derive(Debug)]
pub struct InFlightBytes {
    link: Arc<Link>,
    memory: Reservation,
}

impl Drop for InFlightBytes {
    fn drop(&mut self) {
        let before = self.link.in_flight.fetch_sub(self.memory.bytes(), Ordering::Relaxed);
        if before - self.memory.bytes() <= self.link.in_flight_max() / 2 {
            lock(&self.link.waiting).drain(..).for_each(|token| token.set_ready());
        }
    }
}

/// The reply to a request, set once by the communication worker.
#[derive(Debug)]
pub struct Reply {
    token: Token,
    outcome: Mutex<Option<Result<Outcome>>>,
    requested_at: Instant,
    waited: OnceLock<Duration>,
}

impl Default for Reply {
    fn default() -> Self {
        Reply {
            token: Token::new(),
            outcome: Mutex::default(),
            requested_at: Instant::now(),
            waited: OnceLock::new(),
        }
    }
}

impl Reply {
    /// Returns the token that is ready once the reply is set.
    pub fn token(&self) -> Token {
        self.token.clone()
    }

    /// Sets the reply.
    pub fn set(&self, outcome: Result<Outcome>) {
        self.waited.get_or_init(|| self.requested_at.elapsed());
        *lock(&self.outcome) = Some(outcome);
        self.token.set_ready();
    }

    /// Returns the time from the request to the reply.
    pub fn waited(&self) -> Duration {
        self.waited.get().copied().unwrap_or_default()
    }

    /// Takes the reply.
    ///
    /// # Errors
    /// The step failed on some rank.
    pub fn take(&self) -> Result<Outcome> {
        lock(&self.outcome).take().unwrap_or_else(|| Err(Error::internal("reply taken twice")))
    }
}

/// The connection between the workers of a rank and its communication worker.
#[derive(Debug)]
pub struct Link {
    rank: usize,
    ranks: usize,
    shares_cores: bool,
    requests: Mutex<VecDeque<Request>>,
    request_ready: Condvar,
    plans: Mutex<VecDeque<Option<DriverPlan>>>,
    plan_ready: Condvar,
    /// Whether the running plan has failed on some rank.
    failed: AtomicBool,
    /// Whether the executor of the running plan has reported its end on this rank.
    ended: AtomicBool,
    failure: Mutex<Option<Error>>,
    /// Bytes in flight, and the tokens of workers that wait for them to decrease.
    in_flight: AtomicUsize,
    /// The bytes in flight at which workers wait, from the budget of the running plan.
    in_flight_max: AtomicUsize,
    waiting: Mutex<Vec<Token>>,
}

impl Link {
    /// Returns the link of rank `rank` of `ranks`. `shares_cores` says whether this machine has
    /// fewer cores than ranks.
    pub fn new(rank: usize, ranks: usize, shares_cores: bool) -> Arc<Link> {
        Arc::new(Link {
            rank,
            ranks,
            shares_cores,
            requests: Mutex::default(),
            request_ready: Condvar::new(),
            plans: Mutex::default(),
            plan_ready: Condvar::new(),
            failed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            failure: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            in_flight_max: AtomicUsize::new(IN_FLIGHT_BYTES),
            waiting: Mutex::default(),
        })
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Whether this machine has more ranks than cores.
    pub fn shares_cores(&self) -> bool {
        self.shares_cores
    }

    /// Sends a request to the communication worker.
    pub fn request(&self, request: Request) {
        lock(&self.requests).push_back(request);
        self.request_ready.notify_one();
    }

    /// Reports that the plan has ended on this rank. The reply is set when it has ended on all
    /// ranks.
    pub fn end(&self) -> Arc<Reply> {
        self.ended.store(true, Ordering::Relaxed);
        let reply = Arc::new(Reply::default());
        self.request(Request::End(reply.clone()));
        reply
    }

    /// Takes part in a collective step; the reply is set when it is done.
    pub fn step(&self, step: StepId, work: Work) -> Arc<Reply> {
        let reply = Arc::new(Reply::default());
        self.request(Request::Step(step, work, reply.clone()));
        reply
    }

    /// Sets the memory budget of the plan that starts.
    pub fn set_memory(&self, memory_bytes: usize) {
        let most = (memory_bytes / IN_FLIGHT_SHARE).min(IN_FLIGHT_BYTES);
        self.in_flight_max.store(most, Ordering::Relaxed);
    }

    fn in_flight_max(&self) -> usize {
        self.in_flight_max.load(Ordering::Relaxed)
    }

    /// Like [`Link::count`], for bytes that the receivers bound. If the budget is exhausted they go
    /// uncounted, since sending them is what frees memory.
    pub(crate) fn count_bounded(
        self: &Arc<Self>,
        bytes: usize,
        context: &Arc<dyn Context>,
    ) -> InFlightBytes {
        let mut memory = Reservation::new(context.clone());
        drop(memory.grow(bytes));
        self.in_flight.fetch_add(memory.bytes(), Ordering::Relaxed);
        InFlightBytes { link: self.clone(), memory }
    }

    /// Counts bytes as in flight until the result is dropped.
    ///
    /// # Errors
    /// The memory budget is exhausted.
    pub fn count(
        self: &Arc<Self>,
        bytes: usize,
        context: &Arc<dyn Context>,
    ) -> Result<InFlightBytes> {
        let mut memory = Reservation::new(context.clone());
        memory.grow(bytes)?;
        self.in_flight.fetch_add(bytes, Ordering::Relaxed);
        Ok(InFlightBytes { link: self.clone(), memory })
    }

    /// Returns the token to wait for before sending more, or `None` while there is room.
    pub fn room(&self) -> Option<Token> {
        let is_full = || self.in_flight.load(Ordering::Relaxed) >= self.in_flight_max();
        if !is_full() {
            return None;
        }
        let token = Token::new();
        lock(&self.waiting).push(token.clone());
        // The last bytes may have arrived after the first check, before the token was registered.
        if !is_full() {
            token.set_ready();
        }
        Some(token)
    }

    /// Whether enough bytes are in flight that workers should submit puts at once.
    pub fn is_filling(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) >= self.in_flight_max() / 4
    }

    /// Whether workers are waiting for room.
    pub fn is_full(&self) -> bool {
        !lock(&self.waiting).is_empty()
    }

    /// Takes all requests; waits up to `at_most` for the first one.
    pub fn requests(&self, at_most: Duration) -> VecDeque<Request> {
        let mut requests = lock(&self.requests);
        if requests.is_empty() && !at_most.is_zero() {
            let waited = self
                .request_ready
                .wait_timeout(requests, at_most)
                .unwrap_or_else(PoisonError::into_inner);
            requests = waited.0;
        }
        std::mem::take(&mut requests)
    }

    /// Returns an error if the running plan has failed on any rank.
    ///
    /// # Errors
    /// The failure, with the rank that raised it.
    pub fn check(&self) -> Result<()> {
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(lock(&self.failure)
            .clone()
            .unwrap_or_else(|| Error::new(Code::Cancelled, "the plan failed on another rank")))
    }

    /// Sets the failure of the running plan; `None` when a plan starts.
    pub fn set_failure(&self, failure: Option<Error>) {
        let failed = failure.is_some();
        *lock(&self.failure) = failure;
        self.failed.store(failed, Ordering::Relaxed);
    }

    /// Queues a plan that the first rank sent; `None` means that no more follow.
    pub fn add_plan(&self, plan: Option<DriverPlan>) {
        lock(&self.plans).push_back(plan);
        self.plan_ready.notify_one();
    }

    /// Runs the plans that the first rank sends, until it sends no more.
    pub(crate) fn serve(&self, run: &mut dyn FnMut(&DriverPlan) -> Result<()>) -> Result<()> {
        loop {
            let mut plans = lock(&self.plans);
            let plan = loop {
                match plans.pop_front() {
                    Some(plan) => break plan,
                    None => {
                        plans = self.plan_ready.wait(plans).unwrap_or_else(PoisonError::into_inner)
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
    fn what_is_in_flight_is_bounded_and_counted() {
        let governor = Governor::new(2 * IN_FLIGHT_BYTES);
        let context: Arc<dyn Context> = Query::new(Settings::default(), &governor);
        let link = Link::new(0, 2, false);
        let mut packets: Vec<InFlightBytes> =
            (0..4).map(|_| link.count(IN_FLIGHT_BYTES / 4, &context).unwrap()).collect();
        assert_eq!(governor.used_bytes(), IN_FLIGHT_BYTES);
        let token = link.room().unwrap();
        assert!(!token.is_ready() && link.is_full());
        packets.pop();
        assert!(!token.is_ready());
        packets.pop();
        assert!(token.is_ready() && !link.is_full() && link.room().is_none());
        // Bytes beyond the budget are not counted.
        assert!(link.count(4 * IN_FLIGHT_BYTES, &context).is_err());
        drop(packets);
        assert_eq!(governor.used_bytes(), 0);
    }
}
