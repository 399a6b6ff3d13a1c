//! The communication worker: the only thread of a rank that calls MPI.
//!
//! All ranks take a plan's collective steps in the order of its nodes, whatever the order in which
//! their workers request them. Before each step, all ranks exchange a word that says whether they
//! have failed, so that all leave a failed plan at the same step. A rank that fails also notifies
//! the others at once, which stops their work. The worker never waits for a single operation: it
//! polls everything in flight in turn.

mod packets;
mod raw;
mod steps;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tessera_engine::DriverPlan;
use tessera_plan::text;
use tessera_types::{Code, Error, Result, SqlState};

use crate::link::{Link, Outcome, Reply, Request, StepId, Work};
use packets::{Inboxes, Outbox};
use raw::{Pending, RawWindow, World};
use steps::PlanPhase;

/// A plan to run; the message is its text.
const TAG_PLAN: i32 = 1;
/// The plan has failed on the sender; the message has the code and text of the error.
const TAG_FAILED: i32 = 2;
/// Bytes of a broadcast.
const TAG_BYTES: i32 = 3;
/// No more plans follow.
const TAG_QUIT: i32 = 4;
/// A packet of tuples, two-sided.
const TAG_PACKET: i32 = 5;
/// The counters of a rank's sub-operators.
const TAG_FIGURES: i32 = 6;

/// Bits of the word that ranks exchange before a step: the plan has not failed here, and no packets
/// were sent. The other bits mark windows that can be freed.
const HEALTHY: u64 = 1 << 63;
const NO_PACKETS: u64 = 1 << 62;
/// The maximum number of windows that the word can mark.
const WINDOWS_MAX: usize = 62;

/// Number of polls without a pause, and the pause after that: an eighth of the time since the last
/// event, within bounds. Polling more often would take the core from the rank's workers if they
/// have no other.
const POLLS_BEFORE_PAUSE: u32 = 16;
const PAUSE_SHARE: u32 = 8;
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_micros(500);
/// The pause while no plan runs.
const PAUSE_IDLE: Duration = Duration::from_millis(1);

/// Why a process cannot run as a rank.
#[derive(Debug)]
pub enum RunError {
    /// MPI was already initialized in this process.
    AlreadyInitialized,
    /// The thread of the work cannot be started.
    Thread(std::io::Error),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::AlreadyInitialized => {
                f.write_str("MPI was already initialized in this process")
            }
            RunError::Thread(error) => write!(f, "cannot start the session's thread: {error}"),
        }
    }
}

impl std::error::Error for RunError {}

/// Returns the MPI library's name and version.
pub fn library() -> String {
    let description = mpi::environment::library_version().unwrap_or_default();
    let line = description.lines().next().unwrap_or("unknown MPI");
    line.split(", package").next().unwrap_or(line).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs this process as a rank: `work` on its own thread, with the link, and the communication
/// worker on this one. Returns the result of `work` when all ranks have ended. Call it once, on the
/// main thread.
///
/// # Errors
/// MPI was initialized before, or the thread of `work` cannot be started.
pub fn run<T: Send>(work: impl FnOnce(Arc<Link>) -> T + Send) -> std::result::Result<T, RunError> {
    let world = World::new().ok_or(RunError::AlreadyInitialized)?;
    let link = Link::new(world.rank(), world.ranks(), crate::cores::are_shared());
    let mut worker = Worker {
        world,
        link: link.clone(),
        plan: None,
        number: 0,
        early_failure: None,
        sending: Vec::new(),
        outbox: Outbox::default(),
        retained_windows: Vec::new(),
        quit: false,
    };
    std::thread::scope(|scope| {
        let working =
            std::thread::Builder::new().name("session".into()).spawn_scoped(scope, move || {
                // The guard also quits when `work` panics.
                let _quit = Quit(link.clone());
                work(link)
            });
        let working = working.map_err(RunError::Thread)?;
        worker.run();
        match working.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Ends the other ranks when dropped, at the end of the first rank's work.
struct Quit(Arc<Link>);

impl Drop for Quit {
    fn drop(&mut self) {
        self.0.request(Request::Quit);
    }
}

struct Worker {
    link: Arc<Link>,
    plan: Option<RunningPlan>,
    /// The number of the last plan.
    number: u64,
    /// The failure of a plan that has not arrived here yet, with its number: a rank can fail at
    /// once, and MPI orders only messages of one tag.
    early_failure: Option<(u64, Error)>,
    sending: Vec<Pending<Arc<Vec<u8>>>>,
    outbox: Outbox,
    /// Windows that were still in use at the end of their plan.
    retained_windows: Vec<RawWindow>,
    quit: bool,
    /// Dropped last: this finalizes MPI, which the requests in the other fields still use.
    world: World,
}

/// The running plan.
struct RunningPlan {
    steps: VecDeque<StepId>,
    submitted: HashMap<StepId, (Work, Arc<Reply>)>,
    end: Option<Arc<Reply>>,
    /// The counters of other ranks, on the first rank.
    figures: Vec<String>,
    /// Whether this rank has failed, or has left the plan because another failed.
    failed: bool,
    windows: Vec<Option<RawWindow>>,
    packets: Inboxes,
    /// A bit for each window that no rank used any more when all had reached the last step.
    unused: u64,
    phase: PlanPhase,
}

impl RunningPlan {
    /// Whether the plan waits only for requests of this rank, which wake the worker at once.
    fn waits_for_requests_only(&self) -> bool {
        matches!(self.phase, PlanPhase::Idle) && self.packets.has_sent_none()
    }

    /// Frees the windows that no rank uses any more. This takes long (100 ms for 512 MiB of shared
    /// memory), so it is done only when memory is needed or no worker waits.
    fn free_windows(&mut self) {
        let unused = std::mem::take(&mut self.unused);
        for (position, window) in self.windows.iter_mut().enumerate().take(WINDOWS_MAX) {
            if unused & (1 << position) != 0
                && let Some(window) = window.take()
            {
                window.free();
            }
        }
    }
}

impl Worker {
    fn run(&mut self) {
        let (mut idle, mut busy_at) = (0, Instant::now());
        loop {
            let pause = match &self.plan {
                _ if idle < POLLS_BEFORE_PAUSE => Duration::ZERO,
                Some(plan) if plan.waits_for_requests_only() => PAUSE_MAX,
                Some(_) => (busy_at.elapsed() / PAUSE_SHARE).clamp(PAUSE_MIN, PAUSE_MAX),
                None => PAUSE_IDLE,
            };
            let requests = self.link.requests(pause);
            let mut busy = !requests.is_empty();
            for request in requests {
                self.handle(request);
            }
            busy |= self.messages();
            busy |= self.advance();
            self.sending.retain_mut(|sending| sending.test().is_none());
            self.outbox.test();
            if self.link.is_full() {
                self.flush_local();
            }
            if self.quit && self.plan.is_none() && self.sending.is_empty() && self.outbox.is_empty()
            {
                return;
            }
            idle = if busy { 0 } else { idle + 1 };
            if busy {
                busy_at = Instant::now();
            }
            if !busy && idle < POLLS_BEFORE_PAUSE {
                std::thread::yield_now();
            }
        }
    }

    fn send_to_others(&mut self, tag: i32, bytes: Vec<u8>) {
        let bytes = Arc::new(bytes);
        for rank in (0..self.world.ranks()).filter(|rank| *rank != self.world.rank()) {
            self.sending.extend(self.world.send(&bytes, rank, tag));
        }
    }

    fn handle(&mut self, request: Request) {
        match request {
            Request::Begin(text, sent, steps) => {
                self.send_to_others(TAG_PLAN, encode(&text, &sent));
                self.begin(steps);
            }
            Request::Step(step, work, reply) => match &mut self.plan {
                Some(plan) if plan.steps.contains(&step) => drop(plan.submitted.insert(step, (work, reply))),
                Some(plan) if plan.failed => reply.set(self.link.check().map(|()| Outcome::Complete)),
                Some(_) => reply.set(Err(Error::unsupported(
                    "unsupported exchange inside a nested plan; move it next to the sub-operator that runs the nested plan",
                ))),
                None => reply.set(self.link.check().and(Err(Error::internal("collective step without a plan")))),
            },
            Request::Puts(memory, puts) => {
                let windows = self.plan.iter_mut().flat_map(|plan| plan.windows.iter_mut().flatten());
                if let Some(window) = windows.into_iter().find(|window| Arc::ptr_eq(&window.memory, &memory)) {
                    drop(memory);
                    puts.into_iter().for_each(|put| window.put(put));
                }
            }
            Request::Packet(rank, packet, in_flight) => self.send_packet(rank, packet, in_flight),
            Request::Flow(step, flow) => self.connect(step, flow),
            Request::Budget(context) => self.count_packets(&context),
            Request::Failed(error) => self.fail(&error),
            Request::Figures(figures) => {
                let bytes = Arc::new([&self.number.to_le_bytes(), figures.as_bytes()].concat());
                self.sending.extend(self.world.send(&bytes, 0, TAG_FIGURES));
            }
            Request::End(reply) => match &mut self.plan {
                Some(plan) => plan.end = Some(reply),
                None => reply.set(self.link.check().map(|()| Outcome::Complete)),
            },
            Request::Quit => {
                if self.world.rank() == 0 {
                    self.send_to_others(TAG_QUIT, vec![0]);
                    self.quit = true;
                }
            }
        }
    }

    fn begin(&mut self, steps: Vec<StepId>) {
        self.number += 1;
        self.plan = Some(RunningPlan {
            steps: steps.into(),
            submitted: HashMap::new(),
            end: None,
            figures: Vec::new(),
            failed: false,
            windows: Vec::new(),
            packets: Inboxes::new(self.world.ranks()),
            unused: 0,
            phase: PlanPhase::Idle,
        });
        if let Some((number, error)) = self.early_failure.take()
            && number == self.number
        {
            self.link.set_failure(Some(error));
        }
        self.deliver_early();
    }

    /// Frees the buffers of puts that have been read, since workers wait for them.
    fn flush_local(&mut self) {
        let windows = self.plan.iter_mut().flat_map(|plan| plan.windows.iter_mut().flatten());
        windows.for_each(RawWindow::flush_local);
    }

    /// Fails the plan on this rank: notifies the other ranks and stops this rank's workers.
    fn fail(&mut self, error: &Error) {
        let Some(plan) = &mut self.plan else { return };
        if std::mem::replace(&mut plan.failed, true) {
            return;
        }
        let known = self.link.check().err();
        // A rank that fails because of another repeats that rank's error.
        let failure = match known {
            Some(known) => known,
            None if self.world.rank() == 0 => error.clone(),
            None => with_rank(error, self.world.rank()),
        };
        self.link.set_failure(Some(failure.clone()));
        let mut bytes = self.number.to_le_bytes().to_vec();
        bytes.extend(encode_error(&failure));
        self.send_to_others(TAG_FAILED, bytes);
    }

    /// Handles the messages of other ranks; returns whether there were any.
    fn messages(&mut self) -> bool {
        let mut any = self.receive_packets();
        while let Some((_, bytes)) = self.world.poll(TAG_FAILED) {
            any = true;
            let Some((number, failure)) = bytes.split_first_chunk::<8>() else { continue };
            let number = u64::from_le_bytes(*number);
            if number > self.number {
                self.early_failure = Some((number, decode_error(failure)));
            } else if number == self.number && self.plan.is_some() && self.link.check().is_ok() {
                self.link.set_failure(Some(decode_error(failure)));
            }
        }
        while let Some((_, bytes)) = self.world.poll(TAG_FIGURES) {
            any = true;
            if let (Some((number, figures)), Some(plan)) =
                (bytes.split_first_chunk(), &mut self.plan)
                && u64::from_le_bytes(*number) == self.number
            {
                plan.figures.push(String::from_utf8_lossy(figures).into_owned());
            }
        }
        if self.plan.is_none() && self.world.rank() > 0 {
            if let Some((_, bytes)) = self.world.poll(TAG_PLAN) {
                any = true;
                self.receive_plan(&bytes);
            } else if self.world.poll(TAG_QUIT).is_some() {
                any = true;
                self.quit = true;
                self.link.add_plan(None);
            }
        }
        any
    }

    fn receive_plan(&mut self, bytes: &[u8]) {
        self.link.set_failure(None);
        match decode(bytes) {
            Ok(sent) => {
                let nested = sent.plan.nodes.first().and_then(|node| node.nested.first());
                self.begin(nested.map(crate::executor::steps).unwrap_or_default());
                self.link.add_plan(Some(sent));
            }
            Err(error) => {
                self.begin(Vec::new());
                self.fail(&error);
                if let Some(plan) = &mut self.plan {
                    plan.end = Some(Arc::default());
                }
            }
        }
    }
}

/// Prefixes an error with the rank that raised it.
fn with_rank(error: &Error, rank: usize) -> Error {
    Error::new(error.code(), format!("rank {rank}: {}", error.message()))
        .with_state(error.sql_state())
}

fn encode(text: &str, sent: &DriverPlan) -> Vec<u8> {
    let mut bytes = (sent.chunk_rows as u64).to_le_bytes().to_vec();
    bytes.extend((sent.memory_bytes as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Result<DriverPlan> {
    let broken = || Error::internal("malformed plan from the first rank");
    let (chunk_rows, rest) = bytes.split_first_chunk::<8>().ok_or_else(broken)?;
    let (memory_bytes, rest) = rest.split_first_chunk::<8>().ok_or_else(broken)?;
    let plan = text::parse(std::str::from_utf8(rest).map_err(|_| broken())?)?;
    let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes) as usize;
    Ok(DriverPlan { plan, chunk_rows: number(chunk_rows), memory_bytes: number(memory_bytes) })
}

/// Encodes an error for other ranks, which run the same program.
fn encode_error(error: &Error) -> Vec<u8> {
    let mut bytes = vec![error.code() as u8];
    bytes.extend(error.sql_state().as_str().as_bytes());
    bytes.extend(error.message().as_bytes());
    bytes
}

fn decode_error(bytes: &[u8]) -> Error {
    let (code, message) = bytes.split_first().unwrap_or((&u8::MAX, &[]));
    let code = Code::ALL.into_iter().find(|known| *known as u8 == *code).unwrap_or(Code::Internal);
    let (state, message) = message.split_at_checked(5).unwrap_or((&[], message));
    let state =
        std::str::from_utf8(state).ok().and_then(SqlState::from_name).unwrap_or(code.sql_state());
    Error::new(code, String::from_utf8_lossy(message).into_owned()).with_state(state)
}
