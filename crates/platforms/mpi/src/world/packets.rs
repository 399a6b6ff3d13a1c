//! Packets of tuples between ranks, two-sided: sent without waiting, and received as they come, so
//! that no rank ever waits for another to receive.
//!
//! A packet's first words are the number of its plan and the step that it is for. Ranks begin a
//! plan at different moments: what comes early is kept. A failed plan ends only when all of its
//! packets were received (`steps`), so none comes late.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tessera_context::{Context, Reservation};
use tessera_types::Result;

use super::raw::Sending;
use super::{TAG_PACKET, Worker};
use crate::flow::Flow;
use crate::link::{Arrived, StepId, UnderWay};
use crate::send::BOUNDED;

/// The most packets that are received before other things get their turn.
const RECEIVED_AT_ONCE: usize = 16;

/// What is being sent, to each rank in order, and what has come before its plan.
#[derive(Default)]
pub(super) struct Outbox {
    sending: HashMap<usize, VecDeque<Sending>>,
    early: Vec<(usize, Vec<u64>)>,
}

impl Outbox {
    /// Lets go of what has been sent.
    pub(super) fn test(&mut self) {
        for queue in self.sending.values_mut() {
            while queue.front_mut().is_some_and(|sending| sending.test().is_some()) {
                queue.pop_front();
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sending.values().all(VecDeque::is_empty)
    }
}

/// The packets of the running plan.
pub(super) struct Inboxes {
    /// Sent to each other rank, and received from all.
    sent: Vec<i64>,
    received: i64,
    /// By step: what came, from this rank too.
    inboxes: HashMap<StepId, Vec<Arrived>>,
    /// By step: who takes what comes at once.
    flows: HashMap<StepId, Arc<Flow>>,
    budget: Option<Arc<dyn Context>>,
}

impl Inboxes {
    pub(super) fn new(ranks: usize) -> Inboxes {
        Inboxes {
            sent: vec![0; ranks],
            received: 0,
            inboxes: HashMap::new(),
            flows: HashMap::new(),
            budget: None,
        }
    }

    pub(super) fn sent(&self) -> &[i64] {
        &self.sent
    }

    pub(super) fn has_sent_none(&self) -> bool {
        self.sent.iter().all(|sent| *sent == 0)
    }
}

impl Arrived {
    /// Counts it; what is bounded goes uncounted where the budget is exhausted.
    fn count(&mut self, budget: &Arc<dyn Context>) -> Result<()> {
        let mut memory = Reservation::new(budget.clone());
        match memory.grow(self.words.len() * 8) {
            Err(error) if !self.is_bounded() => Err(error),
            _ => {
                self.memory = Some(memory);
                Ok(())
            }
        }
    }

    /// The step that it is for.
    fn step(&self) -> Option<StepId> {
        self.words.get(1).map(|step| (*step & !BOUNDED) as StepId)
    }

    fn is_bounded(&self) -> bool {
        self.words.get(1).is_some_and(|step| step & BOUNDED != 0)
    }
}

impl Worker {
    pub(super) fn send_packet(&mut self, rank: usize, mut packet: Vec<u64>, under_way: UnderWay) {
        let own = self.world.rank();
        let Some(plan) = self.plan.as_mut().filter(|plan| !plan.failed) else { return };
        if rank == own {
            drop(under_way);
            return self.deliver(own, packet);
        }
        if let Some(number) = packet.first_mut() {
            *number = self.number;
        }
        plan.packets.sent[rank] += 1;
        let sending = self.world.send_packet(packet, rank, TAG_PACKET, under_way);
        self.outbox.sending.entry(rank).or_default().push_back(sending);
    }

    /// Receives packets that have come; whether there were some.
    pub(super) fn receive_packets(&mut self) -> bool {
        for received in 0..RECEIVED_AT_ONCE {
            let Some((from, packet)) = self.world.poll_packet(TAG_PACKET) else {
                return received > 0;
            };
            self.came(from, packet);
        }
        true
    }

    fn came(&mut self, from: usize, packet: Vec<u64>) {
        match &mut self.plan {
            Some(plan) if packet.first() == Some(&self.number) => {
                plan.packets.received += 1;
                self.deliver(from, packet);
            }
            // Its plan is on the way here.
            _ => self.outbox.early.push((from, packet)),
        }
    }

    /// A plan begins: what came for it goes where it belongs.
    pub(super) fn deliver_early(&mut self) {
        for (from, packet) in std::mem::take(&mut self.outbox.early) {
            self.came(from, packet);
        }
    }

    /// A sub-operator takes packets of a step as they come.
    pub(super) fn connect(&mut self, step: StepId, flow: Arc<Flow>) {
        let Some(plan) = &mut self.plan else { return };
        let came = plan.packets.inboxes.remove(&step).unwrap_or_default();
        let taken = came.into_iter().try_for_each(|packet| flow.came(packet));
        plan.packets.flows.insert(step, flow);
        if let Err(error) = taken {
            self.fail(&error);
        }
    }

    fn deliver(&mut self, from: usize, words: Vec<u64>) {
        let Some(plan) = &mut self.plan else { return };
        let mut arrived = Arrived { from, words, memory: None };
        let counted = plan.packets.budget.as_ref().map_or(Ok(()), |budget| arrived.count(budget));
        if let Err(error) = counted {
            return self.fail(&error);
        }
        let Some(step) = arrived.step() else { return };
        if plan.failed {
            return;
        }
        let taken = match plan.packets.flows.get(&step) {
            Some(flow) => flow.came(arrived),
            None => {
                plan.packets.inboxes.entry(step).or_default().push(arrived);
                Ok(())
            }
        };
        if let Err(error) = taken {
            self.fail(&error);
        }
    }

    /// From now on packets count against a budget, and those that are there.
    pub(super) fn count_packets(&mut self, budget: &Arc<dyn Context>) {
        let Some(plan) = &mut self.plan else { return };
        plan.packets.budget = Some(budget.clone());
        let mut came = plan.packets.inboxes.values_mut().flatten();
        if let Err(error) = came.try_for_each(|arrived| arrived.count(budget)) {
            self.fail(&error);
        }
    }

    /// How many packets have come from other ranks.
    pub(super) fn packets_came(&self) -> i64 {
        self.plan.as_ref().map_or(0, |plan| plan.packets.received)
    }

    /// All packets of a step, once they have come.
    pub(super) fn take_packets(&mut self, of: StepId, expected: i64) -> Option<Vec<Arrived>> {
        let inboxes = &mut self.plan.as_mut()?.packets.inboxes;
        let came = inboxes.get(&of).map_or(0, Vec::len);
        (came as i64 >= expected).then(|| inboxes.remove(&of).unwrap_or_default())
    }
}
