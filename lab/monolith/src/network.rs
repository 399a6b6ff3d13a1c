//! The network partitioning: one pass over each relation sends every tuple to the rank that joins
//! its partition. Each partition gathers tuples in a cache line. Full lines are written with
//! streaming stores into this rank's inbox, or into a buffer that is put or sent when full, while
//! the partition's next buffer is filled.

use mpi::datatype::Equivalence;
use mpi::point_to_point::Status;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Source};

use crate::histogram::Plan;
use crate::raw::{Inbox, Item, Line, Outbox, Received};
use crate::tuple::{Form, Tuple};

/// How tuples are sent to other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Put into the receiver's window.
    OneSided,
    /// Sent, probed for and received, one message at a time.
    TwoSided,
}

/// The volume sent to other ranks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
}

/// The destination of a partition's lines.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// The partition's rank; `None` if it is this rank.
    target: Option<i32>,
    /// The position in this rank's inbox where it begins to write.
    begin: usize,
    /// The first of the lane's buffers, the index of the one being filled, and its position at the
    /// target.
    buffer: usize,
    turn: usize,
    at: usize,
}

/// The network partitioning of both relations in progress.
#[allow(missing_debug_implementations, reason = "MPI's communicator has none")]
pub(crate) struct Exchange<'a, T> {
    world: &'a SimpleCommunicator,
    plan: &'a Plan,
    mode: Mode,
    inbox: Inbox<T>,
    outbox: Outbox<T>,
    /// By partition: the line being filled, and the position of the next tuple. In this rank's
    /// inbox the position counts from the begin of a cache line, otherwise from the begin of the
    /// relation.
    lines: Vec<Line>,
    next: Vec<usize>,
    lanes: Vec<Lane>,
    buffers: usize,
    lines_per_buffer: usize,
    relation: usize,
    /// For messages: the position of the next message of each relation's partition, and the number
    /// of tuples still missing.
    cursors: [Vec<usize>; 2],
    missing: usize,
    traffic: Traffic,
}

impl<'a, T: Item> Exchange<'a, T> {
    pub(crate) fn new(
        world: &'a SimpleCommunicator,
        plan: &'a Plan,
        mode: Mode,
        inbox: Inbox<T>,
        buffers: usize,
        lines_per_buffer: usize,
    ) -> Self {
        let rank = world.rank() as usize;
        let mut remote = 0;
        let lane = |&owner: &usize| {
            let buffer = remote;
            let target = (owner != rank).then_some(owner as i32);
            remote += if target.is_some() { buffers } else { 0 };
            Lane { target, buffer, ..Lane::default() }
        };
        let lanes: Vec<Lane> = plan.owners.iter().map(lane).collect();
        let own = |relation: usize| -> usize {
            let own = plan.regions[relation]
                .iter()
                .zip(&plan.owners)
                .filter(|(_, owner)| **owner == rank);
            own.map(|(region, _)| region.mine_len).sum()
        };
        Self {
            world,
            mode,
            inbox,
            outbox: Outbox::new(remote, lines_per_buffer),
            lines: vec![Line::default(); lanes.len()],
            next: vec![0; lanes.len()],
            lanes,
            buffers,
            lines_per_buffer,
            relation: 0,
            // Received tuples follow the rank's own tuples.
            cursors: [0, 1].map(|of| {
                plan.regions[of].iter().map(|region| region.begin + region.mine_len).collect()
            }),
            missing: plan.inbox_len - own(0) - own(1),
            traffic: Traffic::default(),
            plan,
        }
    }

    /// Partitions and sends the build relation (0) or the probe relation (1).
    pub(crate) fn partition<F: Form<Item = T>>(
        &mut self,
        form: F,
        relation: usize,
        tuples: &[Tuple],
    ) {
        self.begin(relation);
        let mut lines = std::mem::take(&mut self.lines);
        let mut next = std::mem::take(&mut self.next);
        let lines_now = &mut lines[..];
        let next_now = &mut next[..lines_now.len()];
        let mask = lines_now.len() - 1;
        for tuple in tuples {
            let partition = tuple.key as usize & mask;
            let place = next_now[partition];
            next_now[partition] = place + 1;
            let line = &mut lines_now[partition];
            form.encode(*tuple).store(line, place % T::PER_LINE);
            if place % T::PER_LINE == T::PER_LINE - 1 {
                self.line_full(partition, place + 1 - T::PER_LINE, line);
            }
        }
        (self.lines, self.next) = (lines, next);
        self.end();
    }

    fn begin(&mut self, relation: usize) {
        self.relation = relation;
        let lead = self.inbox.lead();
        for ((lane, next), region) in
            self.lanes.iter_mut().zip(&mut self.next).zip(&self.plan.regions[relation])
        {
            lane.at = region.mine;
            lane.begin =
                lead + if self.mode == Mode::TwoSided { region.begin } else { region.mine };
            *next = if lane.target.is_some() { 0 } else { lane.begin };
        }
    }

    /// Flushes a full line.
    #[inline]
    fn line_full(&mut self, partition: usize, place: usize, line: &Line) {
        let lane = &self.lanes[partition];
        if lane.target.is_none() {
            self.inbox.write(place, lane.begin.saturating_sub(place)..T::PER_LINE, line);
        } else {
            let of_buffer = place / T::PER_LINE % self.lines_per_buffer;
            self.outbox.write(lane.buffer + lane.turn, of_buffer, line);
            if of_buffer == self.lines_per_buffer - 1 {
                self.ship(partition, self.lines_per_buffer * T::PER_LINE);
            }
        }
    }

    /// Flushes the remaining lines and buffers.
    fn end(&mut self) {
        for partition in 0..self.lanes.len() {
            let (lane, next, line) =
                (self.lanes[partition], self.next[partition], self.lines[partition]);
            let slots = next % T::PER_LINE;
            let place = next - slots;
            if lane.target.is_none() {
                let first = lane.begin.saturating_sub(place).min(slots);
                self.inbox.write(place, first..slots, &line);
                continue;
            }
            if slots > 0 {
                self.outbox.write(
                    lane.buffer + lane.turn,
                    place / T::PER_LINE % self.lines_per_buffer,
                    &line,
                );
            }
            let len = next % (self.lines_per_buffer * T::PER_LINE);
            if len > 0 {
                self.ship(partition, len);
            }
        }
    }

    /// Puts or sends a partition's buffer, and switches to its next one.
    #[inline(never)]
    fn ship(&mut self, partition: usize, len: usize) {
        let lane = &mut self.lanes[partition];
        let Some(target) = lane.target else { return };
        let buffer = lane.buffer + lane.turn;
        lane.turn = (lane.turn + 1) % self.buffers;
        let next = lane.buffer + lane.turn;
        let at = lane.at;
        lane.at += len;
        self.traffic.bytes += (len * size_of::<T>()) as u64;
        self.traffic.messages += 1;
        match self.mode {
            Mode::OneSided => {
                self.outbox.put(buffer, len, &self.inbox, target, at);
                self.outbox.wait(next);
            }
            Mode::TwoSided => {
                let tag = (self.relation * self.lanes.len() + partition) as i32;
                self.outbox.send(buffer, len, self.world, target, tag);
                // While a rank waits for its message to be received it receives messages of others;
                // otherwise two ranks could deadlock.
                while !self.outbox.is_done(next) {
                    self.receive();
                }
            }
        }
    }

    /// Receives a message if one has arrived.
    fn receive(&mut self) {
        let Some((message, status)) = self.world.any_process().immediate_matched_probe() else {
            return;
        };
        let (relation, partition, len) = self.addressed(&status);
        let place = self.cursors[relation][partition];
        self.cursors[relation][partition] += len;
        message.matched_receive_into(self.inbox.receiving(place..place + len));
        self.missing -= len;
    }

    fn addressed(&self, status: &Status) -> (usize, usize, usize) {
        let tag = status.tag() as usize;
        let words = status.count(u64::equivalent_datatype()) as usize;
        (tag / self.lanes.len(), tag % self.lanes.len(), words * 8 / size_of::<T>())
    }

    /// Waits until all tuples sent by this rank have arrived.
    pub(crate) fn flush(&mut self) {
        while self.mode == Mode::TwoSided && self.missing > 0 {
            self.receive();
        }
        self.inbox.flush();
    }

    /// Waits until the tuples of all ranks have arrived.
    pub(crate) fn close(self) -> (Received<T>, Traffic) {
        (self.inbox.close(self.world, self.outbox), self.traffic)
    }
}
