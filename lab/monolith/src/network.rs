//! The network partitioning: one pass over each relation sends every tuple to the rank that joins
//! its partition. Tuples are gathered in a cache line per partition; whole lines go around the
//! cache into this rank's own inbox, or into a buffer that is put, or sent, when it is full, while
//! the next buffer of that partition fills.

use mpi::datatype::Equivalence;
use mpi::point_to_point::Status;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Source};

use crate::histogram::Plan;
use crate::raw::{Inbox, Item, Line, Outbox, Received};
use crate::tuple::{Form, Tuple};

/// How tuples are brought to other ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Put into their window.
    OneSided,
    /// Sent, probed for and received, one message at a time.
    TwoSided,
}

/// How much was sent to other ranks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
}

/// Where a partition's lines go.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// The partition's rank, where it is another.
    target: Option<i32>,
    /// In the own inbox, the place where this rank begins to write.
    begin: usize,
    /// The first of the lane's buffers, which of them is being filled, and where it belongs at the
    /// target.
    buffer: usize,
    turn: usize,
    at: usize,
}

/// The partitioning of both relations on their way.
#[allow(missing_debug_implementations, reason = "MPI's communicator has none")]
pub(crate) struct Exchange<'a, T> {
    world: &'a SimpleCommunicator,
    plan: &'a Plan,
    way: Way,
    inbox: Inbox<T>,
    outbox: Outbox<T>,
    /// By partition: the line being filled, and where the next tuple goes. In the own inbox that
    /// counts from the begin of a cache line, elsewhere from the begin of the relation.
    lines: Vec<Line>,
    next: Vec<usize>,
    lanes: Vec<Lane>,
    buffers: usize,
    lines_per_buffer: usize,
    relation: usize,
    /// Where the next message of each relation's partition goes, when messages are received, and
    /// how many tuples have not come.
    cursors: [Vec<usize>; 2],
    missing: usize,
    traffic: Traffic,
}

impl<'a, T: Item> Exchange<'a, T> {
    pub(crate) fn new(
        world: &'a SimpleCommunicator,
        plan: &'a Plan,
        way: Way,
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
            way,
            inbox,
            outbox: Outbox::new(remote, lines_per_buffer),
            lines: vec![Line::default(); lanes.len()],
            next: vec![0; lanes.len()],
            lanes,
            buffers,
            lines_per_buffer,
            relation: 0,
            // Messages lie behind what the rank itself has.
            cursors: [0, 1].map(|of| {
                plan.regions[of].iter().map(|region| region.begin + region.mine_len).collect()
            }),
            missing: plan.inbox_len - own(0) - own(1),
            traffic: Traffic::default(),
            plan,
        }
    }

    /// Sends the build relation (0) or the probe relation (1).
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
            lane.begin = lead + if self.way == Way::TwoSided { region.begin } else { region.mine };
            *next = if lane.target.is_some() { 0 } else { lane.begin };
        }
    }

    /// Empties a line whose last slot was filled.
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

    /// Empties what is left in lines and buffers.
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

    /// Puts or sends a partition's buffer, and turns to its next one.
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
        match self.way {
            Way::OneSided => {
                self.outbox.put(buffer, len, &self.inbox, target, at);
                self.outbox.wait(next);
            }
            Way::TwoSided => {
                let tag = (self.relation * self.lanes.len() + partition) as i32;
                self.outbox.send(buffer, len, self.world, target, tag);
                // A rank that waits for its message to be taken takes those of others, or two could
                // wait for each other.
                while !self.outbox.is_done(next) {
                    self.receive();
                }
            }
        }
    }

    /// Receives a message where one has come.
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

    /// Waits until all tuples of this rank have arrived where they belong.
    pub(crate) fn flush(&mut self) {
        while self.way == Way::TwoSided && self.missing > 0 {
            self.receive();
        }
        self.inbox.flush();
    }

    /// Waits until all tuples of all ranks have.
    pub(crate) fn close(self) -> (Received<T>, Traffic) {
        (self.inbox.close(self.world, self.outbox), self.traffic)
    }
}
