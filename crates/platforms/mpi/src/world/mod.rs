//! The communication worker: the one thread of a rank that talks to MPI.
//!
//! Ranks run a plan's collective steps in the order of its nodes, whatever order their workers come
//! to them in. Each step begins with a word in which all ranks tell whether they have failed, so
//! that all leave a failed plan at the same step; a rank that fails says so at once, to end the
//! work of the others. Nothing here waits for one thing only: whatever is under way is asked in
//! turn.

mod packets;
mod raw;
mod steps;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tessera_engine::Sent;
use tessera_plan::text;
use tessera_types::{Code, Error, Result, SqlState};

use crate::link::{Link, Outcome, Reply, Request, StepId, Work};
use packets::{Inboxes, Outbox};
use raw::{Pending, RawWindow, World};
use steps::Doing;

/// A plan to run; its text follows.
const TAG_PLAN: i32 = 1;
/// The plan has failed on the sender; code and message follow.
const TAG_FAILED: i32 = 2;
/// Bytes of a step.
const TAG_BYTES: i32 = 3;
/// No plan will come any more.
const TAG_QUIT: i32 = 4;
/// A packet of tuples, two-sided.
const TAG_PACKET: i32 = 5;
/// What a rank's sub-operators have counted; follows.
const TAG_FIGURES: i32 = 6;

/// The bits of a step's first word that say that the plan has not failed, and that no packets were
/// sent; the others are for windows that can be freed.
const WELL: u64 = 1 << 63;
const QUIET: u64 = 1 << 62;
/// The most windows that are kept track of.
const WINDOWS_MAX: usize = 62;

/// How often something is asked again at once, and how long it is waited between two times after
/// that: an eighth of the time since there was anything last, within bounds. Who asks more often
/// takes the core from the rank's worker where there is no other.
const ASKED_AT_ONCE: u32 = 16;
const PAUSE_SHARE: u32 = 8;
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_micros(500);
/// The same while no plan runs.
const PAUSE_IDLE: Duration = Duration::from_millis(1);

/// MPI has been initialised before, in this process.
#[derive(Debug)]
pub struct AlreadyInitialised;

/// The MPI library's name and version.
pub fn library() -> String {
    let description = mpi::environment::library_version().unwrap_or_default();
    let line = description.lines().next().unwrap_or("unknown MPI");
    line.split(", package").next().unwrap_or(line).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs this process as a rank: `work` on a thread of its own, with the link, and the communication
/// worker on this one. Gives what `work` gives, when all ranks are done. To be called on the main
/// thread, once.
///
/// # Errors
/// MPI was initialised before.
pub fn run<T: Send>(
    work: impl FnOnce(Arc<Link>) -> T + Send,
) -> std::result::Result<T, AlreadyInitialised> {
    let world = World::new().ok_or(AlreadyInitialised)?;
    let link = Link::new(world.rank(), world.ranks(), crate::cores::are_shared());
    let mut worker = Worker {
        world,
        link: link.clone(),
        plan: None,
        number: 0,
        early_failure: None,
        sending: Vec::new(),
        outbox: Outbox::default(),
        kept: Vec::new(),
        quit: false,
    };
    std::thread::scope(|scope| {
        let working =
            std::thread::Builder::new().name("session".into()).spawn_scoped(scope, move || {
                // Also when it panics.
                let _quit = Quit(link.clone());
                work(link)
            });
        let Ok(working) = working else { return Err(AlreadyInitialised) };
        worker.run();
        match working.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Ends the other ranks when the first one's work is done.
struct Quit(Arc<Link>);

impl Drop for Quit {
    fn drop(&mut self) {
        self.0.request(Request::Quit);
    }
}

struct Worker {
    link: Arc<Link>,
    plan: Option<Running>,
    /// Of the last plan.
    number: u64,
    /// That a later plan has failed, which this rank has not heard of yet: a rank can fail at once,
    /// and MPI orders only messages of one tag.
    early_failure: Option<(u64, Error)>,
    sending: Vec<Pending<Arc<Vec<u8>>>>,
    outbox: Outbox,
    /// Windows that could not be freed at the end of their plan.
    kept: Vec<RawWindow>,
    quit: bool,
    /// Goes last: with it MPI ends, which what is under way still asks.
    world: World,
}

/// The plan that runs.
struct Running {
    steps: VecDeque<StepId>,
    submitted: HashMap<StepId, (Work, Arc<Reply>)>,
    end: Option<Arc<Reply>>,
    /// Of other ranks, on the first one.
    figures: Vec<String>,
    /// This rank has failed, or left the plan because another has.
    failed: bool,
    windows: Vec<Option<RawWindow>>,
    packets: Inboxes,
    /// Windows that nobody used any more, on any rank, when all had come to the last step: a bit
    /// for each.
    unused: u64,
    doing: Doing,
}

impl Running {
    /// Whether only a request of this rank can make it go on, which is heard at once.
    fn only_requests(&self) -> bool {
        matches!(self.doing, Doing::Nothing) && self.packets.has_sent_none()
    }

    /// Frees the windows that nobody uses any more on any rank. That takes long (100 ms for 512 MiB
    /// of shared memory): it is done where their memory is wanted, and when nobody waits.
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
                _ if idle < ASKED_AT_ONCE => Duration::ZERO,
                Some(plan) if plan.only_requests() => PAUSE_MAX,
                Some(_) => (busy_at.elapsed() / PAUSE_SHARE).clamp(PAUSE_MIN, PAUSE_MAX),
                None => PAUSE_IDLE,
            };
            let requests = self.link.requests(pause);
            let mut busy = !requests.is_empty();
            for request in requests {
                self.take(request);
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
            if !busy && idle < ASKED_AT_ONCE {
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

    fn take(&mut self, request: Request) {
        match request {
            Request::Begin(text, sent, steps) => {
                self.send_to_others(TAG_PLAN, encode(&text, &sent));
                self.begin(steps);
            }
            Request::Step(step, work, reply) => match &mut self.plan {
                Some(plan) if plan.steps.contains(&step) => drop(plan.submitted.insert(step, (work, reply))),
                Some(plan) if plan.failed => reply.set(self.link.check().map(|()| Outcome::Arrived)),
                Some(_) => reply.set(Err(Error::unsupported(
                    "an exchange inside a nested plan; put it beside the sub-operator that runs the nested plan",
                ))),
                None => reply.set(self.link.check().and(Err(Error::internal("a step of no plan")))),
            },
            Request::Puts(regions, puts) => {
                let windows = self.plan.iter_mut().flat_map(|plan| plan.windows.iter_mut().flatten());
                if let Some(window) = windows.into_iter().find(|window| Arc::ptr_eq(&window.regions, &regions)) {
                    drop(regions);
                    puts.into_iter().for_each(|put| window.put(put));
                }
            }
            Request::Packet(rank, packet, under_way) => self.send_packet(rank, packet, under_way),
            Request::Flow(step, flow) => self.connect(step, flow),
            Request::Budget(context) => self.count_packets(&context),
            Request::Failed(error) => self.fail(&error),
            Request::Figures(figures) => {
                let bytes = Arc::new([&self.number.to_le_bytes(), figures.as_bytes()].concat());
                self.sending.extend(self.world.send(&bytes, 0, TAG_FIGURES));
            }
            Request::End(reply) => match &mut self.plan {
                Some(plan) => plan.end = Some(reply),
                None => reply.set(self.link.check().map(|()| Outcome::Arrived)),
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
        self.plan = Some(Running {
            steps: steps.into(),
            submitted: HashMap::new(),
            end: None,
            figures: Vec::new(),
            failed: false,
            windows: Vec::new(),
            packets: Inboxes::new(self.world.ranks()),
            unused: 0,
            doing: Doing::Nothing,
        });
        if let Some((number, error)) = self.early_failure.take()
            && number == self.number
        {
            self.link.set_failure(Some(error));
        }
        self.deliver_early();
    }

    /// Workers wait for buffers of puts: they are given back.
    fn flush_local(&mut self) {
        let windows = self.plan.iter_mut().flat_map(|plan| plan.windows.iter_mut().flatten());
        windows.for_each(RawWindow::flush_local);
    }

    /// This rank cannot go on: the others are told, and its own workers stop.
    fn fail(&mut self, error: &Error) {
        let Some(plan) = &mut self.plan else { return };
        if std::mem::replace(&mut plan.failed, true) {
            return;
        }
        let known = self.link.check().err();
        // Whoever fails because another has failed repeats what that one said.
        let told = match known {
            Some(known) => known,
            None if self.world.rank() == 0 => error.clone(),
            None => named(error, self.world.rank()),
        };
        self.link.set_failure(Some(told.clone()));
        let mut bytes = self.number.to_le_bytes().to_vec();
        bytes.extend(encode_error(&told));
        self.send_to_others(TAG_FAILED, bytes);
    }

    /// Takes what other ranks have sent; whether there was something.
    fn messages(&mut self) -> bool {
        let mut any = self.receive_packets();
        while let Some((_, bytes)) = self.world.poll(TAG_FAILED) {
            any = true;
            let Some((number, told)) = bytes.split_first_chunk::<8>() else { continue };
            let number = u64::from_le_bytes(*number);
            if number > self.number {
                self.early_failure = Some((number, decode_error(told)));
            } else if number == self.number && self.plan.is_some() && self.link.check().is_ok() {
                self.link.set_failure(Some(decode_error(told)));
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
                self.plan_came(&bytes);
            } else if self.world.poll(TAG_QUIT).is_some() {
                any = true;
                self.quit = true;
                self.link.plan_came(None);
            }
        }
        any
    }

    fn plan_came(&mut self, bytes: &[u8]) {
        self.link.set_failure(None);
        match decode(bytes) {
            Ok(sent) => {
                let nested = sent.plan.nodes.first().and_then(|node| node.nested.first());
                self.begin(nested.map(crate::executor::steps).unwrap_or_default());
                self.link.plan_came(Some(sent));
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

/// An error with the rank that raised it.
fn named(error: &Error, rank: usize) -> Error {
    Error::new(error.code(), format!("rank {rank}: {}", error.message()))
        .with_state(error.sql_state())
}

fn encode(text: &str, sent: &Sent) -> Vec<u8> {
    let mut bytes = (sent.chunk_rows as u64).to_le_bytes().to_vec();
    bytes.extend((sent.memory_bytes as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Result<Sent> {
    let broken = || Error::internal("a plan came broken from the first rank");
    let (chunk_rows, rest) = bytes.split_first_chunk::<8>().ok_or_else(broken)?;
    let (memory_bytes, rest) = rest.split_first_chunk::<8>().ok_or_else(broken)?;
    let plan = text::parse(std::str::from_utf8(rest).map_err(|_| broken())?)?;
    let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes) as usize;
    Ok(Sent { plan, chunk_rows: number(chunk_rows), memory_bytes: number(memory_bytes) })
}

/// An error as it crosses between ranks, which run one program.
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
        std::str::from_utf8(state).ok().and_then(SqlState::named).unwrap_or(code.sql_state());
    Error::new(code, String::from_utf8_lossy(message).into_owned()).with_state(state)
}
