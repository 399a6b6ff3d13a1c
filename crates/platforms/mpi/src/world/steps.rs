//! The collective steps of a plan, one after the other, without waiting.

use std::sync::Arc;

use tessera_types::{Code, Error};

use super::raw::{Pending, RawWindow};
use super::{QUIET, TAG_BYTES, WELL, WINDOWS_MAX, Worker};
use crate::link::{Outcome, Recipients, Reply, StepId, Work};
use crate::region::Regions;

/// What is under way.
pub(super) enum Doing {
    /// Nothing: the next step has not been asked for here.
    Nothing,
    /// All ranks say whether they are well; a step or, without one, the end of the plan comes next.
    Greeting(Pending<(u64, u64)>, Option<StepId>),
    /// A rank has failed, and its word on why is on the way; whether no rank has sent packets.
    Hearing(Option<StepId>, bool),
    /// The step's own work.
    Step(Stepping, Arc<Reply>),
    /// At the end of a plan that has sent packets: how many each rank is sent.
    Counting(Pending<(Vec<i64>, Vec<i64>)>),
    /// As many packets have to be received, of which a failed plan may have left some on the way.
    Draining(i64),
}

pub(super) enum Stepping {
    Sums {
        before: Pending<(Vec<i64>, Vec<i64>)>,
        total: Pending<(Vec<i64>, Vec<i64>)>,
        done: [Option<Vec<i64>>; 2],
    },
    /// Whether the windows of all ranks have their memory: who puts where there is none ends with a
    /// signal.
    Opening {
        have_memory: Pending<(u64, u64)>,
        regions: Vec<Arc<Regions>>,
        bytes: usize,
    },
    /// How many packets each rank is sent.
    Counting {
        of: StepId,
        sent: Pending<(Vec<i64>, Vec<i64>)>,
    },
    /// As many are awaited.
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
        coming: Vec<Vec<Coming>>,
        going: Vec<Pending<Arc<Vec<u8>>>>,
    },
}

/// A piece of what a rank sends, under way or there.
pub(super) enum Coming {
    UnderWay(Pending<Vec<u8>>),
    There(Vec<u8>),
}

impl Worker {
    /// Goes on with the plan as far as that is possible now; whether it was.
    pub(super) fn advance(&mut self) -> bool {
        let mut any = false;
        loop {
            let Some(plan) = &mut self.plan else { return any };
            let doing = std::mem::replace(&mut plan.doing, Doing::Nothing);
            let (next, went_on) = match doing {
                Doing::Nothing => self.greet(),
                Doing::Greeting(mut greeting, step) => match greeting.test() {
                    None => (Doing::Greeting(greeting, step), false),
                    Some((_, all)) => {
                        plan.unused = all;
                        let is_quiet = all & QUIET != 0;
                        match (step, all & WELL != 0) {
                            (Some(step), true) => (self.start(step), true),
                            (None, true) => (self.drain(is_quiet), true),
                            (step, false) => (Doing::Hearing(step, is_quiet), true),
                        }
                    }
                },
                Doing::Hearing(step, is_quiet) if self.link.check().is_ok() => {
                    (Doing::Hearing(step, is_quiet), false)
                }
                Doing::Hearing(Some(_), _) => {
                    self.leave();
                    (Doing::Nothing, true)
                }
                Doing::Hearing(None, is_quiet) => {
                    // A rank that has failed after the last step has no figures for the first one.
                    self.leave();
                    (self.drain(is_quiet), true)
                }
                Doing::Counting(mut sent) => match sent.test() {
                    None => (Doing::Counting(sent), false),
                    Some((_, sent)) => (Doing::Draining(sent[self.world.rank()]), true),
                },
                Doing::Draining(expected)
                    if self.packets_came() < expected || self.figures_miss() =>
                {
                    (Doing::Draining(expected), false)
                }
                Doing::Draining(_) => {
                    self.end();
                    return true;
                }
                Doing::Step(stepping, reply) => self.step(stepping, reply),
            };
            if let Some(plan) = &mut self.plan {
                plan.doing = next;
            }
            any |= went_on;
            if !went_on {
                return any;
            }
        }
    }

    /// Begins the next step, or the end, when this rank has come to it or has failed.
    fn greet(&mut self) -> (Doing, bool) {
        let Some(plan) = &mut self.plan else { return (Doing::Nothing, false) };
        let step = plan.steps.front().copied();
        let is_here = match step {
            Some(step) => plan.submitted.contains_key(&step),
            None => plan.end.is_some(),
        };
        let has_failed = plan.failed && plan.end.is_some();
        if !is_here && !has_failed {
            return (Doing::Nothing, false);
        }
        // What this rank has put has arrived when all ranks have come to the step that closes the
        // window.
        let window = step.and_then(|step| match plan.submitted.get(&step) {
            Some((Work::Close(regions), _)) => Some(regions),
            _ => None,
        });
        let is_it =
            |raw: &&mut RawWindow| window.is_some_and(|regions| Arc::ptr_eq(&raw.regions, regions));
        if let Some(window) = plan.windows.iter_mut().flatten().find(is_it) {
            window.flush();
        }
        let mut word = if plan.failed { 0 } else { WELL };
        if plan.packets.has_sent_none() {
            word |= QUIET;
        }
        for (position, window) in plan.windows.iter().enumerate().take(WINDOWS_MAX) {
            if window.as_ref().is_some_and(RawWindow::is_unused) {
                word |= 1 << position;
            }
        }
        (Doing::Greeting(self.world.all_and(word), step), true)
    }

    fn start(&mut self, step: StepId) -> Doing {
        let world = &self.world;
        let Some(plan) = &mut self.plan else { return Doing::Nothing };
        plan.steps.pop_front();
        let Some((work, reply)) = plan.submitted.remove(&step) else { return Doing::Nothing };
        let stepping = match work {
            Work::Sum(own) => {
                let before = world.sum_before(own.clone());
                Stepping::Sums { before, total: world.all_sum(own), done: [None, None] }
            }
            Work::Open(sizes) => {
                plan.free_windows();
                let bytes = sizes.iter().sum();
                let windows: Vec<RawWindow> =
                    sizes.into_iter().map(|bytes| world.window(bytes)).collect();
                let has_memory = windows.iter().all(|window| window.has_memory);
                let opening = Stepping::Opening {
                    have_memory: world.all_and(u64::from(has_memory)),
                    regions: windows.iter().map(|window| window.regions.clone()).collect(),
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
            Work::Close(regions) => {
                // All ranks have flushed before they came to this step.
                if let Some(window) = plan
                    .windows
                    .iter()
                    .flatten()
                    .find(|window| Arc::ptr_eq(&window.regions, &regions))
                {
                    window.sync();
                }
                reply.set(Ok(Outcome::Arrived));
                return Doing::Nothing;
            }
            Work::Receive { of, sent } => Stepping::Counting { of, sent: world.all_sum(sent) },
            Work::Send { to, bytes } => {
                Stepping::Sizes { sizes: world.gather(bytes.len() as u64), to, bytes }
            }
        };
        Doing::Step(stepping, reply)
    }

    fn step(&mut self, stepping: Stepping, reply: Arc<Reply>) -> (Doing, bool) {
        let (outcome, stepping) = match stepping {
            Stepping::Sums { mut before, mut total, mut done } => {
                if done[0].is_none() {
                    done[0] = before.test().map(|(_, sums)| sums);
                }
                if done[1].is_none() {
                    done[1] = total.test().map(|(_, sums)| sums);
                }
                match done {
                    [Some(before), Some(total)] => (Some(Outcome::Sums(before, total)), None),
                    done => (None, Some(Stepping::Sums { before, total, done })),
                }
            }
            Stepping::Opening { mut have_memory, regions, bytes } => match have_memory.test() {
                None => (None, Some(Stepping::Opening { have_memory, regions, bytes })),
                Some((_, 1)) => (Some(Outcome::Windows(regions)), None),
                Some((own, _)) => {
                    let error = no_room(own == 0, bytes);
                    self.fail(&error);
                    reply.set(Err(error));
                    return (Doing::Nothing, true);
                }
            },
            Stepping::Counting { of, mut sent } => match sent.test() {
                None => (None, Some(Stepping::Counting { of, sent })),
                Some((_, sent)) => {
                    let expected = sent[self.world.rank()];
                    return (Doing::Step(Stepping::Receiving { of, expected }, reply), true);
                }
            },
            // What came was too much for the budget: less of it is there than is expected.
            Stepping::Receiving { .. } if self.link.check().is_err() => {
                (Some(Outcome::Packets(Vec::new())), None)
            }
            Stepping::Receiving { of, expected } => match self.take_packets(of, expected) {
                None => (None, Some(Stepping::Receiving { of, expected })),
                Some(packets) => (Some(Outcome::Packets(packets)), None),
            },
            Stepping::Sizes { mut sizes, to, bytes } => match sizes.test() {
                None => (None, Some(Stepping::Sizes { sizes, to, bytes })),
                Some((_, sizes)) => {
                    return (Doing::Step(self.exchange_bytes(&sizes, to, &bytes), reply), true);
                }
            },
            Stepping::Bytes { mut coming, mut going } => {
                going.retain_mut(|piece| piece.test().is_none());
                let mut all_there = going.is_empty();
                for piece in coming.iter_mut().flatten() {
                    if let Coming::UnderWay(pending) = piece
                        && let Some(bytes) = pending.test()
                    {
                        *piece = Coming::There(bytes);
                    }
                    all_there &= matches!(piece, Coming::There(_));
                }
                match all_there {
                    false => (None, Some(Stepping::Bytes { coming, going })),
                    true => (Some(Outcome::Bytes(coming.into_iter().map(whole).collect())), None),
                }
            }
        };
        match (outcome, stepping) {
            (Some(outcome), _) => {
                reply.set(self.link.check().map(|()| outcome));
                (Doing::Nothing, true)
            }
            (None, Some(stepping)) => (Doing::Step(stepping, reply), false),
            (None, None) => (Doing::Nothing, true),
        }
    }

    /// Sends to whom it is for, and receives from all.
    fn exchange_bytes(&mut self, sizes: &[u64], to: Recipients, bytes: &Arc<Vec<u8>>) -> Stepping {
        let (world, own) = (&self.world, self.world.rank());
        let receives = to == Recipients::All || own == 0;
        let coming = sizes.iter().enumerate().map(|(rank, size)| match rank {
            _ if !receives => Vec::new(),
            rank if rank == own => vec![Coming::There(bytes.to_vec())],
            rank => world
                .receive(*size as usize, rank, TAG_BYTES)
                .into_iter()
                .map(Coming::UnderWay)
                .collect(),
        });
        let coming = coming.collect();
        let others =
            (0..world.ranks()).filter(|rank| *rank != own && (to == Recipients::All || *rank == 0));
        let going = others.flat_map(|rank| world.send(bytes, rank, TAG_BYTES)).collect();
        Stepping::Bytes { coming, going }
    }

    /// The plan has failed somewhere: none of its steps will be taken any more. What workers wait
    /// for will not come; the plan is over when they have stopped, on all ranks.
    fn leave(&mut self) {
        if let Some(plan) = &mut self.plan {
            plan.failed = true;
            plan.steps.clear();
            let failed = || self.link.check().map(|()| Outcome::Arrived);
            plan.submitted.drain().for_each(|(_, (_, reply))| reply.set(failed()));
        }
    }

    /// All ranks have come to the end of the plan: what is still on the way has to arrive, or a
    /// later plan would get it.
    fn drain(&mut self, is_quiet: bool) -> Doing {
        match &self.plan {
            Some(plan) if !is_quiet => {
                Doing::Counting(self.world.all_sum(plan.packets.sent().to_vec()))
            }
            _ => Doing::Draining(0),
        }
    }

    /// Whether the first rank has not heard yet what the others have counted; of a failed plan
    /// nobody asks.
    fn figures_miss(&self) -> bool {
        let others = if self.world.rank() == 0 { self.world.ranks() - 1 } else { 0 };
        self.plan.as_ref().is_some_and(|plan| !plan.failed && plan.figures.len() < others)
    }

    /// The plan is over on all ranks.
    fn end(&mut self) {
        let Some(mut plan) = self.plan.take() else { return };
        if let Some(reply) = plan.end.take() {
            let figures = std::mem::take(&mut plan.figures);
            reply.set(self.link.check().map(|()| Outcome::Ended(figures)));
        }
        // That takes time, and nobody waits for it now.
        plan.free_windows();
        // Windows that somebody still uses cannot be freed: that takes all ranks.
        self.kept.extend(plan.windows.into_iter().flatten());
    }
}

/// A rank, this or another, has no memory for its windows.
fn no_room(here: bool, bytes: usize) -> Error {
    let whose = if here {
        format!("windows of {bytes} bytes")
    } else {
        "another rank's windows".to_string()
    };
    Error::new(
        Code::Limit,
        format!(
            "there is no room for {whose} in the memory that ranks share; make /dev/shm larger, use more machines, or \
             --mpi-exchange rounds"
        ),
    )
}

fn whole(mut pieces: Vec<Coming>) -> Vec<u8> {
    if pieces.len() == 1
        && let Some(Coming::There(bytes)) = pieces.pop()
    {
        return bytes;
    }
    let mut all = Vec::new();
    for piece in pieces {
        if let Coming::There(bytes) = piece {
            all.extend(bytes);
        }
    }
    all
}
