//! The collective steps of a plan, one after the other, without waiting.

use std::sync::Arc;

use super::raw::{Pending, RawWindow};
use super::{TAG_BYTES, WELL, WINDOWS_MAX, Worker};
use crate::link::{Outcome, Recipients, Reply, StepId, Work};

/// What is under way.
pub(super) enum Doing {
    /// Nothing: the next step has not been asked for here.
    Nothing,
    /// All ranks say whether they are well; a step or, without one, the end of the plan comes next.
    Greeting(Pending<(u64, u64)>, Option<StepId>),
    /// A rank has failed, and its word on why is on the way.
    Hearing(Option<StepId>),
    /// The step's own work.
    Step(Stepping, Arc<Reply>),
}

pub(super) enum Stepping {
    Sums {
        before: Pending<(Vec<i64>, Vec<i64>)>,
        total: Pending<(Vec<i64>, Vec<i64>)>,
        done: [Option<Vec<i64>>; 2],
    },
    Arriving {
        barrier: Pending<()>,
        window: usize,
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
                        self.free_windows(all);
                        match (step, all & WELL != 0) {
                            (Some(step), true) => (self.start(step), true),
                            (None, true) => {
                                self.end();
                                return true;
                            }
                            (step, false) => (Doing::Hearing(step), true),
                        }
                    }
                },
                Doing::Hearing(step) if self.link.check().is_ok() => (Doing::Hearing(step), false),
                Doing::Hearing(Some(_)) => {
                    self.leave();
                    (Doing::Nothing, true)
                }
                Doing::Hearing(None) => {
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
        let mut word = if plan.failed { 0 } else { WELL };
        for (position, window) in plan.windows.iter().enumerate().take(WINDOWS_MAX) {
            if window.as_ref().is_some_and(RawWindow::is_unused) {
                word |= 1 << position;
            }
        }
        (Doing::Greeting(self.world.all_and(word), step), true)
    }

    /// Frees the windows that nobody uses any more on any rank.
    fn free_windows(&mut self, unused: u64) {
        let Some(plan) = &mut self.plan else { return };
        for (position, window) in plan.windows.iter_mut().enumerate().take(WINDOWS_MAX) {
            if unused & (1 << position) != 0
                && let Some(window) = window.take()
            {
                window.free();
            }
        }
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
            Work::Open(bytes) => {
                let window = world.window(bytes);
                reply.set(Ok(Outcome::Window(window.regions.clone())));
                match plan.windows.iter_mut().find(|window| window.is_none()) {
                    Some(free) => *free = Some(window),
                    None => plan.windows.push(Some(window)),
                }
                return Doing::Nothing;
            }
            Work::Close(regions) => {
                let is_it = |window: &Option<RawWindow>| {
                    window.as_ref().is_some_and(|window| Arc::ptr_eq(&window.regions, &regions))
                };
                let position = plan.windows.iter().position(is_it).unwrap_or(usize::MAX);
                if let Some(Some(window)) = plan.windows.get_mut(position) {
                    window.flush();
                }
                Stepping::Arriving { barrier: world.barrier(), window: position }
            }
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
            Stepping::Arriving { mut barrier, window } => match barrier.test() {
                None => (None, Some(Stepping::Arriving { barrier, window })),
                Some(()) => {
                    let windows = self.plan.as_ref().map(|plan| &plan.windows[..]).unwrap_or_default();
                    if let Some(Some(window)) = windows.get(window) {
                        window.sync();
                    }
                    (Some(Outcome::Arrived), None)
                }
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
                reply.set(Ok(outcome));
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
            rank => {
                world.receive(*size as usize, rank, TAG_BYTES).into_iter().map(Coming::UnderWay).collect()
            }
        });
        let coming = coming.collect();
        let others = (0..world.ranks()).filter(|rank| *rank != own && (to == Recipients::All || *rank == 0));
        let going = others.flat_map(|rank| world.send(bytes, rank, TAG_BYTES)).collect();
        Stepping::Bytes { coming, going }
    }

    /// The plan has failed somewhere: none of its steps will be taken any more. What workers wait for will not come; the plan
    /// is over when they have stopped, on all ranks.
    fn leave(&mut self) {
        if let Some(plan) = &mut self.plan {
            plan.failed = true;
            plan.steps.clear();
            let failed = || self.link.check().map(|()| Outcome::Arrived);
            plan.submitted.drain().for_each(|(_, (_, reply))| reply.set(failed()));
        }
    }

    /// All ranks have come to the end of the plan.
    fn end(&mut self) {
        let Some(plan) = self.plan.take() else { return };
        // Windows that somebody still uses cannot be freed: that takes all ranks.
        self.kept.extend(plan.windows.into_iter().flatten());
        if let Some(reply) = plan.end {
            reply.set(self.link.check().map(|()| Outcome::Arrived));
        }
    }
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
