//! The state machine of a plan's collective steps, advanced without waiting.

use std::sync::Arc;

use tessera_types::{Code, Error};

use super::raw::{Pending, RawWindow};
use super::{HEALTHY, NO_PACKETS, TAG_BYTES, WINDOWS_MAX, Worker};
use crate::link::{Outcome, Recipients, Reply, StepId, Work};
use crate::window_memory::WindowMemory;

/// The phase of the running plan.
pub(super) enum PlanPhase {
    /// No operation is pending: this rank's workers have not requested the next step.
    Idle,
    /// All ranks exchange whether they have failed; next is a step or, without one, the end of the
    /// plan.
    Agreeing(Pending<(u64, u64)>, Option<StepId>),
    /// A rank has failed and its error has not arrived yet; with whether no rank has sent packets.
    AwaitingError(Option<StepId>, bool),
    /// The step itself is running.
    Step(StepPhase, Arc<Reply>),
    /// At the end of a plan that has sent packets: ranks sum how many each receives.
    Counting(Pending<(Vec<i64>, Vec<i64>)>),
    /// Waits until this many packets have been received; a failed plan may have left some in
    /// flight.
    Draining(i64),
}

pub(super) enum StepPhase {
    Sums {
        before: Pending<(Vec<i64>, Vec<i64>)>,
        total: Pending<(Vec<i64>, Vec<i64>)>,
        done: [Option<Vec<i64>>; 2],
    },
    /// Checks that all ranks have memory for their windows: a put into missing memory ends with a
    /// signal.
    Opening {
        have_memory: Pending<(u64, u64)>,
        memory: Vec<Arc<WindowMemory>>,
        bytes: usize,
    },
    /// Ranks sum how many packets each receives.
    Counting {
        of: StepId,
        sent: Pending<(Vec<i64>, Vec<i64>)>,
    },
    /// Waits for this many packets.
    Receiving {
        of: StepId,
        expected: i64,
    },
    Sizes {
        sizes: Pending<(u64, Vec<u64>)>,
        to: Recipients,
        bytes: Arc<Vec<u8>>,
    },
    Bytes {
        incoming: Vec<Vec<IncomingPiece>>,
        outgoing: Vec<Pending<Arc<Vec<u8>>>>,
    },
}

/// A piece of a rank's bytes, pending or received.
pub(super) enum IncomingPiece {
    Pending(Pending<Vec<u8>>),
    Received(Vec<u8>),
}

impl Worker {
    /// Advances the plan as far as possible now; returns whether it did.
    pub(super) fn advance(&mut self) -> bool {
        let mut any = false;
        loop {
            let Some(plan) = &mut self.plan else { return any };
            let phase = std::mem::replace(&mut plan.phase, PlanPhase::Idle);
            let (next, advanced) = match phase {
                PlanPhase::Idle => self.agree(),
                PlanPhase::Agreeing(mut agreement, step) => match agreement.test() {
                    None => (PlanPhase::Agreeing(agreement, step), false),
                    Some((_, all)) => {
                        plan.unused = all;
                        let no_packets = all & NO_PACKETS != 0;
                        match (step, all & HEALTHY != 0) {
                            (Some(step), true) => (self.start(step), true),
                            (None, true) => (self.drain(no_packets), true),
                            (step, false) => (PlanPhase::AwaitingError(step, no_packets), true),
                        }
                    }
                },
                PlanPhase::AwaitingError(step, no_packets) if self.link.check().is_ok() => {
                    (PlanPhase::AwaitingError(step, no_packets), false)
                }
                PlanPhase::AwaitingError(Some(_), _) => {
                    self.leave_plan();
                    (PlanPhase::Idle, true)
                }
                PlanPhase::AwaitingError(None, no_packets) => {
                    // If a rank failed after the last step, it sends no counters to the first rank.
                    self.leave_plan();
                    (self.drain(no_packets), true)
                }
                PlanPhase::Counting(mut sent) => match sent.test() {
                    None => (PlanPhase::Counting(sent), false),
                    Some((_, sent)) => (PlanPhase::Draining(sent[self.world.rank()]), true),
                },
                PlanPhase::Draining(expected)
                    if self.packets_received() < expected || self.lacks_figures() =>
                {
                    (PlanPhase::Draining(expected), false)
                }
                PlanPhase::Draining(_) => {
                    self.end();
                    return true;
                }
                PlanPhase::Step(stepping, reply) => self.step(stepping, reply),
            };
            if let Some(plan) = &mut self.plan {
                plan.phase = next;
            }
            any |= advanced;
            if !advanced {
                return any;
            }
        }
    }

    /// Starts the exchange before the next step or the end, once this rank has reached it or has
    /// failed.
    fn agree(&mut self) -> (PlanPhase, bool) {
        let Some(plan) = &mut self.plan else { return (PlanPhase::Idle, false) };
        let step = plan.steps.front().copied();
        let is_here = match step {
            Some(step) => plan.submitted.contains_key(&step),
            None => plan.end.is_some(),
        };
        let has_failed = plan.failed && plan.end.is_some();
        if !is_here && !has_failed {
            return (PlanPhase::Idle, false);
        }
        // Flush here: all puts have then arrived when all ranks reach the step that closes the
        // window.
        let window = step.and_then(|step| match plan.submitted.get(&step) {
            Some((Work::Close(memory), _)) => Some(memory),
            _ => None,
        });
        let is_it =
            |raw: &&mut RawWindow| window.is_some_and(|memory| Arc::ptr_eq(&raw.memory, memory));
        if let Some(window) = plan.windows.iter_mut().flatten().find(is_it) {
            window.flush();
        }
        let mut word = if plan.failed { 0 } else { HEALTHY };
        if plan.packets.has_sent_none() {
            word |= NO_PACKETS;
        }
        for (position, window) in plan.windows.iter().enumerate().take(WINDOWS_MAX) {
            if window.as_ref().is_some_and(RawWindow::is_unused) {
                word |= 1 << position;
            }
        }
        (PlanPhase::Agreeing(self.world.all_and(word), step), true)
    }

    fn start(&mut self, step: StepId) -> PlanPhase {
        let world = &self.world;
        let Some(plan) = &mut self.plan else { return PlanPhase::Idle };
        plan.steps.pop_front();
        let Some((work, reply)) = plan.submitted.remove(&step) else { return PlanPhase::Idle };
        let stepping = match work {
            Work::Sum(own) => {
                let before = world.sum_before(own.clone());
                StepPhase::Sums { before, total: world.all_sum(own), done: [None, None] }
            }
            Work::Open(sizes) => {
                plan.free_windows();
                let bytes = sizes.iter().sum();
                let windows: Vec<RawWindow> =
                    sizes.into_iter().map(|bytes| world.window(bytes)).collect();
                let has_memory = windows.iter().all(|window| window.has_memory);
                let opening = StepPhase::Opening {
                    have_memory: world.all_and(u64::from(has_memory)),
                    memory: windows.iter().map(|window| window.memory.clone()).collect(),
                    bytes,
                };
                for window in windows {
                    match plan.windows.iter_mut().find(|window| window.is_none()) {
                        Some(free) => *free = Some(window),
                        None => plan.windows.push(Some(window)),
                    }
                }
                opening
            }
            Work::Close(memory) => {
                // All ranks flushed before they reached this step.
                if let Some(window) = plan
                    .windows
                    .iter()
                    .flatten()
                    .find(|window| Arc::ptr_eq(&window.memory, &memory))
                {
                    window.sync();
                }
                reply.set(Ok(Outcome::Complete));
                return PlanPhase::Idle;
            }
            Work::Receive { of, sent } => StepPhase::Counting { of, sent: world.all_sum(sent) },
            Work::Send { to, bytes } => {
                StepPhase::Sizes { sizes: world.gather(bytes.len() as u64), to, bytes }
            }
        };
        PlanPhase::Step(stepping, reply)
    }

    fn step(&mut self, stepping: StepPhase, reply: Arc<Reply>) -> (PlanPhase, bool) {
        let (outcome, stepping) = match stepping {
            StepPhase::Sums { mut before, mut total, mut done } => {
                if done[0].is_none() {
                    done[0] = before.test().map(|(_, sums)| sums);
                }
                if done[1].is_none() {
                    done[1] = total.test().map(|(_, sums)| sums);
                }
                match done {
                    [Some(before), Some(total)] => (Some(Outcome::Sums(before, total)), None),
                    done => (None, Some(StepPhase::Sums { before, total, done })),
                }
            }
            StepPhase::Opening { mut have_memory, memory, bytes } => match have_memory.test() {
                None => (None, Some(StepPhase::Opening { have_memory, memory, bytes })),
                Some((_, 1)) => (Some(Outcome::Windows(memory)), None),
                Some((own, _)) => {
                    let error = out_of_shared_memory(own == 0, bytes);
                    self.fail(&error);
                    reply.set(Err(error));
                    return (PlanPhase::Idle, true);
                }
            },
            StepPhase::Counting { of, mut sent } => match sent.test() {
                None => (None, Some(StepPhase::Counting { of, sent })),
                Some((_, sent)) => {
                    let expected = sent[self.world.rank()];
                    return (PlanPhase::Step(StepPhase::Receiving { of, expected }, reply), true);
                }
            },
            // The packets exceeded the budget, so fewer than expected were kept.
            StepPhase::Receiving { .. } if self.link.check().is_err() => {
                (Some(Outcome::Packets(Vec::new())), None)
            }
            StepPhase::Receiving { of, expected } => match self.take_packets(of, expected) {
                None => (None, Some(StepPhase::Receiving { of, expected })),
                Some(packets) => (Some(Outcome::Packets(packets)), None),
            },
            StepPhase::Sizes { mut sizes, to, bytes } => match sizes.test() {
                None => (None, Some(StepPhase::Sizes { sizes, to, bytes })),
                Some((_, sizes)) => {
                    return (PlanPhase::Step(self.exchange_bytes(&sizes, to, &bytes), reply), true);
                }
            },
            StepPhase::Bytes { mut incoming, mut outgoing } => {
                outgoing.retain_mut(|piece| piece.test().is_none());
                let mut all_there = outgoing.is_empty();
                for piece in incoming.iter_mut().flatten() {
                    if let IncomingPiece::Pending(pending) = piece
                        && let Some(bytes) = pending.test()
                    {
                        *piece = IncomingPiece::Received(bytes);
                    }
                    all_there &= matches!(piece, IncomingPiece::Received(_));
                }
                match all_there {
                    false => (None, Some(StepPhase::Bytes { incoming, outgoing })),
                    true => (
                        Some(Outcome::Bytes(incoming.into_iter().map(join_pieces).collect())),
                        None,
                    ),
                }
            }
        };
        match (outcome, stepping) {
            (Some(outcome), _) => {
                reply.set(self.link.check().map(|()| outcome));
                (PlanPhase::Idle, true)
            }
            (None, Some(stepping)) => (PlanPhase::Step(stepping, reply), false),
            (None, None) => (PlanPhase::Idle, true),
        }
    }

    /// Starts to send the bytes to their receivers and to receive those of all ranks.
    fn exchange_bytes(&mut self, sizes: &[u64], to: Recipients, bytes: &Arc<Vec<u8>>) -> StepPhase {
        let (world, own) = (&self.world, self.world.rank());
        let receives = to == Recipients::All || own == 0;
        let incoming = sizes.iter().enumerate().map(|(rank, size)| match rank {
            _ if !receives => Vec::new(),
            rank if rank == own => vec![IncomingPiece::Received(bytes.to_vec())],
            rank => world
                .receive(*size as usize, rank, TAG_BYTES)
                .into_iter()
                .map(IncomingPiece::Pending)
                .collect(),
        });
        let incoming = incoming.collect();
        let others =
            (0..world.ranks()).filter(|rank| *rank != own && (to == Recipients::All || *rank == 0));
        let outgoing = others.flat_map(|rank| world.send(bytes, rank, TAG_BYTES)).collect();
        StepPhase::Bytes { incoming, outgoing }
    }

    /// Leaves a plan that has failed on some rank: skips its remaining steps and releases the
    /// workers that wait for them. The plan ends when the workers of all ranks have stopped.
    fn leave_plan(&mut self) {
        if let Some(plan) = &mut self.plan {
            plan.failed = true;
            plan.steps.clear();
            let failed = || self.link.check().map(|()| Outcome::Complete);
            plan.submitted.drain().for_each(|(_, (_, reply))| reply.set(failed()));
        }
    }

    /// Starts the end of a plan: packets still in flight must arrive, or a later plan would receive
    /// them.
    fn drain(&mut self, no_packets: bool) -> PlanPhase {
        match &self.plan {
            Some(plan) if !no_packets => {
                PlanPhase::Counting(self.world.all_sum(plan.packets.sent().to_vec()))
            }
            _ => PlanPhase::Draining(0),
        }
    }

    /// Whether counters of other ranks are still missing on the first rank; a failed plan has none.
    fn lacks_figures(&self) -> bool {
        let others = if self.world.rank() == 0 { self.world.ranks() - 1 } else { 0 };
        self.plan.as_ref().is_some_and(|plan| !plan.failed && plan.figures.len() < others)
    }

    /// Ends the plan, which has ended on all ranks.
    fn end(&mut self) {
        let Some(mut plan) = self.plan.take() else { return };
        if let Some(reply) = plan.end.take() {
            let figures = std::mem::take(&mut plan.figures);
            reply.set(self.link.check().map(|()| Outcome::Ended(figures)));
        }
        // Freeing takes time; at this point no worker waits.
        plan.free_windows();
        // Windows still in use cannot be freed now: freeing takes all ranks.
        self.retained_windows.extend(plan.windows.into_iter().flatten());
    }
}

/// Returns the error for a rank, this one or another, without memory for its windows.
fn out_of_shared_memory(here: bool, bytes: usize) -> Error {
    let whose = if here {
        format!("windows of {bytes} bytes")
    } else {
        "another rank's windows".to_string()
    };
    Error::new(
        Code::Limit,
        format!(
            "no shared memory left for {whose}; make /dev/shm larger, use more machines, or set \
             --mpi-exchange rounds"
        ),
    )
}

fn join_pieces(mut pieces: Vec<IncomingPiece>) -> Vec<u8> {
    if pieces.len() == 1
        && let Some(IncomingPiece::Received(bytes)) = pieces.pop()
    {
        return bytes;
    }
    let mut all = Vec::new();
    for piece in pieces {
        if let IncomingPiece::Received(bytes) = piece {
            all.extend(bytes);
        }
    }
    all
}
