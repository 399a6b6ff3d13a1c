//! Two-sided packets of tuples between ranks. They are sent without waiting and received as they
//! arrive, so no rank ever waits for another to receive.
//!
//! A packet's first words are the number of its plan and its step. Ranks start a plan at different
//! times, so packets may arrive before their plan and are buffered. A failed plan ends only when
//! all of its packets were received (`steps`), so none arrives after its plan.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tessera_context::{Context, Reservation};
use tessera_types::Result;

use super::raw::Sending;
use super::{TAG_PACKET, Worker};
use crate::flow::Flow;
use crate::link::{InFlightBytes, ReceivedPacket, StepId};
use crate::send::BOUNDED;

/// The maximum number of packets received before other events are handled.
const RECEIVED_AT_ONCE: usize = 16;

/// Packets being sent, in order for each rank, and packets that arrived before their plan.
#[derive(Default)]
pub(super) struct Outbox {
    sending: HashMap<usize, VecDeque<Sending>>,
    early: Vec<(usize, Vec<u64>)>,
}

impl Outbox {
    /// Drops the packets that have been sent.
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
    /// Numbers of packets sent to each other rank, and received from all.
    sent: Vec<i64>,
    received: i64,
    /// Received packets by step, including this rank's own.
    inboxes: HashMap<StepId, Vec<ReceivedPacket>>,
    /// The flows that take packets at once, by step.
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

impl ReceivedPacket {
    /// Counts the packet against the budget. Bounded packets go uncounted if the budget is
    /// exhausted.
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

    /// Returns the step that the packet belongs to.
    fn step(&self) -> Option<StepId> {
        self.words.get(1).map(|step| (*step & !BOUNDED) as StepId)
    }

    fn is_bounded(&self) -> bool {
        self.words.get(1).is_some_and(|step| step & BOUNDED != 0)
    }
}

impl Worker {
    pub(super) fn send_packet(
        &mut self,
        rank: usize,
        mut packet: Vec<u64>,
        in_flight: InFlightBytes,
    ) {
        let own = self.world.rank();
        let Some(plan) = self.plan.as_mut().filter(|plan| !plan.failed) else { return };
        if rank == own {
            drop(in_flight);
            return self.deliver(own, packet);
        }
        if let Some(number) = packet.first_mut() {
            *number = self.number;
        }
        plan.packets.sent[rank] += 1;
        let sending = self.world.send_packet(packet, rank, TAG_PACKET, in_flight);
        self.outbox.sending.entry(rank).or_default().push_back(sending);
    }

    /// Receives packets that have arrived; returns whether there were any.
    pub(super) fn receive_packets(&mut self) -> bool {
        for received in 0..RECEIVED_AT_ONCE {
            let Some((from, packet)) = self.world.poll_packet(TAG_PACKET) else {
                return received > 0;
            };
            self.receive_packet(from, packet);
        }
        true
    }

    fn receive_packet(&mut self, from: usize, packet: Vec<u64>) {
        match &mut self.plan {
            Some(plan) if packet.first() == Some(&self.number) => {
                plan.packets.received += 1;
                self.deliver(from, packet);
            }
            // The plan of this packet has not arrived yet.
            _ => self.outbox.early.push((from, packet)),
        }
    }

    /// Delivers the packets that arrived before the plan, which starts now.
    pub(super) fn deliver_early(&mut self) {
        for (from, packet) in std::mem::take(&mut self.outbox.early) {
            self.receive_packet(from, packet);
        }
    }

    /// Connects a flow that takes the packets of a step as they arrive.
    pub(super) fn connect(&mut self, step: StepId, flow: Arc<Flow>) {
        let Some(plan) = &mut self.plan else { return };
        let early = plan.packets.inboxes.remove(&step).unwrap_or_default();
        let taken = early.into_iter().try_for_each(|packet| flow.receive(packet));
        plan.packets.flows.insert(step, flow);
        if let Err(error) = taken {
            self.fail(&error);
        }
    }

    fn deliver(&mut self, from: usize, words: Vec<u64>) {
        let Some(plan) = &mut self.plan else { return };
        let mut received = ReceivedPacket { from, words, memory: None };
        let counted = plan.packets.budget.as_ref().map_or(Ok(()), |budget| received.count(budget));
        if let Err(error) = counted {
            return self.fail(&error);
        }
        let Some(step) = received.step() else { return };
        if plan.failed {
            return;
        }
        let taken = match plan.packets.flows.get(&step) {
            Some(flow) => flow.receive(received),
            None => {
                plan.packets.inboxes.entry(step).or_default().push(received);
                Ok(())
            }
        };
        if let Err(error) = taken {
            self.fail(&error);
        }
    }

    /// Sets the budget that packets count against, and counts those already received.
    pub(super) fn count_packets(&mut self, budget: &Arc<dyn Context>) {
        let Some(plan) = &mut self.plan else { return };
        plan.packets.budget = Some(budget.clone());
        let mut packets = plan.packets.inboxes.values_mut().flatten();
        if let Err(error) = packets.try_for_each(|packet| packet.count(budget)) {
            self.fail(&error);
        }
    }

    /// The number of packets received from other ranks.
    pub(super) fn packets_received(&self) -> i64 {
        self.plan.as_ref().map_or(0, |plan| plan.packets.received)
    }

    /// Takes all packets of a step, once as many as expected have arrived.
    pub(super) fn take_packets(
        &mut self,
        of: StepId,
        expected: i64,
    ) -> Option<Vec<ReceivedPacket>> {
        let inboxes = &mut self.plan.as_mut()?.packets.inboxes;
        let count = inboxes.get(&of).map_or(0, Vec::len);
        (count as i64 >= expected).then(|| inboxes.remove(&of).unwrap_or_default())
    }
}
