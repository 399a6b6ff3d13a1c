//! Flow control of an exchange in rounds, on one rank: bytes sent to each rank and not yet consumed
//! there, and received packets that wait for a reader.
//!
//! A rank may have at most [`ROUND_BYTES`], or [a share of the budget](ROUND_SHARE), divided by the
//! number of senders, unconsumed at another rank; then its sinks wait. Ranks consume packets as
//! soon as the reader can run and then acknowledge them to the sender. So the bytes buffered at a
//! rank are bounded, and the operators that read them (builds, groups, sorts) spill on their own.
//!
//! # Freedom from deadlock
//! * Every exchange of such a plan runs in rounds: the plan has no collective steps, at which a
//!   rank would wait for the others.
//! * An exchange has one reader, a pipeline of the plan. Suppose exchange A waits because its
//!   reader has not started: the reader needs a side that is built from exchange B, which waits as
//!   well. Then B is above A's reader in the plan. Following such waits leads back to A only if A's
//!   tuples reach a side that A's own reader needs; but A's tuples reach nothing except through
//!   that reader. Plans have no cycles, so one of the waiting exchanges has a reader that can
//!   start, on every rank.
//! * A reader that has started waits for packets, or for the exchange at the end of its own
//!   pipeline, which is further down in the plan. The last pipeline ends in a state or in the
//!   result, which accept all their input or spill.
//! * The communication worker never waits: it receives packets whatever else is in flight, and
//!   acknowledgments need no room. If the budget is exhausted, packets within a sender's window are
//!   accepted without being counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tessera_context::{Context, Token, lock};
use tessera_rows::RowLayout;
use tessera_types::Result;

use crate::link::{Link, ReceivedPacket, Request, StepId};
use crate::send::{BOUNDED, HEADER_WORDS};

/// The maximum of bytes of an exchange that are buffered at a rank, over all senders.
const ROUND_BYTES: usize = 8 << 20;
/// The share of the budget that they may take, if that is less: a plan has several exchanges.
const ROUND_SHARE: usize = 32;
/// The minimum per sender, which is several packets.
const SENDER_BYTES_MIN: usize = 32 << 10;

/// Value of a packet's partition word: the sender has no more packets.
const ENDED: u64 = u64::MAX;
/// Value of a packet's partition word: an acknowledgment. The word for its rows holds the number of
/// bytes consumed.
const CONSUMED: u64 = u64::MAX - 1;

/// Returns the maximum of buffered bytes of an exchange for a memory budget.
fn round_bytes(memory_bytes: usize) -> usize {
    (memory_bytes / ROUND_SHARE).min(ROUND_BYTES)
}

/// An exchange in rounds on one rank.
#[derive(Debug)]
pub struct Flow {
    link: Arc<Link>,
    context: Arc<dyn Context>,
    step: StepId,
    /// The maximum of unconsumed bytes of one sender at one receiver.
    window_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Bytes sent to each rank and not yet acknowledged by it.
    sent: Vec<usize>,
    /// Bytes of each rank that were consumed here and not yet acknowledged.
    unacknowledged: Vec<usize>,
    inbox: VecDeque<ReceivedPacket>,
    /// The number of ranks that have not ended their sending.
    active_senders: usize,
    /// Tokens of sinks that wait for room, and of readers that wait for packets.
    blocked_senders: Vec<Token>,
    blocked_readers: Vec<Token>,
    /// The readers are gone: further packets are dropped.
    is_abandoned: bool,
}

/// The result of [`Flow::next`].
#[derive(Debug)]
pub(crate) enum FlowEvent {
    Packet(ReceivedPacket),
    /// No packet has arrived yet.
    Wait(Token),
    /// All senders have ended.
    End,
}

impl Flow {
    pub(crate) fn new(link: &Arc<Link>, context: &Arc<dyn Context>, step: StepId) -> Arc<Flow> {
        let ranks = link.ranks();
        Arc::new(Flow {
            link: link.clone(),
            context: context.clone(),
            step,
            window_bytes: (round_bytes(context.memory_bytes()) / ranks).max(SENDER_BYTES_MIN),
            state: Mutex::new(State {
                sent: vec![0; ranks],
                unacknowledged: vec![0; ranks],
                inbox: VecDeque::new(),
                active_senders: ranks,
                blocked_senders: Vec::new(),
                blocked_readers: Vec::new(),
                is_abandoned: false,
            }),
        })
    }

    /// Returns the number of rows of `stride_bytes` to pack between checks for room.
    pub(crate) fn piece_rows(&self, stride_bytes: usize) -> usize {
        (self.window_bytes / 2 / stride_bytes.max(1)).max(1)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Counts a packet of this length as sent to a rank.
    pub(crate) fn add_sent(&self, to: usize, bytes: usize) {
        self.lock().sent[to] += bytes;
    }

    /// Returns the token to wait for before sending more, or `None` while every rank has room.
    pub(crate) fn room(&self) -> Option<Token> {
        let mut state = self.lock();
        let is_full = state.sent.iter().any(|sent| *sent >= self.window_bytes);
        is_full.then(|| {
            let token = Token::new();
            state.blocked_senders.push(token.clone());
            token
        })
    }

    /// Notifies all ranks that this one has no more packets.
    pub(crate) fn end(&self) -> Result<()> {
        (0..self.link.ranks()).try_for_each(|rank| self.notify(rank, ENDED, 0))
    }

    fn notify(&self, rank: usize, kind: u64, bytes: usize) -> Result<()> {
        let words = vec![0, self.step as u64 | BOUNDED, kind, bytes as u64, 0];
        // The message counts as 0 bytes: it must go out even if memory is exhausted.
        let in_flight = self.link.count(0, &self.context)?;
        self.link.request(Request::Packet(rank, words, in_flight));
        Ok(())
    }

    /// Receives a packet of this exchange.
    ///
    /// # Errors
    /// The query has no memory for an acknowledgment.
    pub fn receive(&self, packet: ReceivedPacket) -> Result<()> {
        let header = packet.words.first_chunk::<HEADER_WORDS>();
        let (kind, bytes) = header.map_or((0, 0), |[_, _, kind, rows, _]| (*kind, *rows as usize));
        let mut state = self.lock();
        match kind {
            ENDED => {
                state.active_senders -= 1;
                if state.active_senders == 0 {
                    state.blocked_readers.drain(..).for_each(|token| token.set_ready());
                }
                Ok(())
            }
            CONSUMED => {
                let sent = &mut state.sent[packet.from];
                *sent = sent.saturating_sub(bytes);
                if state.sent.iter().all(|sent| *sent < self.window_bytes) {
                    state.blocked_senders.drain(..).for_each(|token| token.set_ready());
                }
                Ok(())
            }
            _ if state.is_abandoned => self.acknowledge(state, &packet),
            _ => {
                state.inbox.push_back(packet);
                if let Some(token) = state.blocked_readers.pop() {
                    token.set_ready();
                }
                Ok(())
            }
        }
    }

    /// Takes the next packet and counts it as consumed.
    pub(crate) fn next(&self) -> Result<FlowEvent> {
        let mut state = self.lock();
        if let Some(packet) = state.inbox.pop_front() {
            self.acknowledge(state, &packet)?;
            return Ok(FlowEvent::Packet(packet));
        }
        if state.active_senders == 0 {
            return Ok(FlowEvent::End);
        }
        let token = Token::new();
        state.blocked_readers.push(token.clone());
        Ok(FlowEvent::Wait(token))
    }

    /// Counts a packet as consumed, and acknowledges to its sender once enough bytes have
    /// accumulated.
    fn acknowledge(&self, mut state: MutexGuard<'_, State>, packet: &ReceivedPacket) -> Result<()> {
        let unacknowledged = &mut state.unacknowledged[packet.from];
        *unacknowledged += packet.words.len() * 8;
        if *unacknowledged < self.window_bytes / 4 {
            return Ok(());
        }
        let bytes = std::mem::take(unacknowledged);
        drop(state);
        self.notify(packet.from, CONSUMED, bytes)
    }

    /// Drops the received packets and all further ones, so that senders can finish.
    fn abandon(&self) -> Result<()> {
        let mut state = self.lock();
        state.is_abandoned = true;
        for packet in std::mem::take(&mut state.inbox) {
            self.acknowledge(state, &packet)?;
            state = self.lock();
        }
        Ok(())
    }
}

/// The receiving end of an exchange. Dropping the last reference abandons the exchange.
#[derive(Debug)]
pub(crate) struct ReceiveEnd {
    pub(crate) flow: Arc<Flow>,
    pub(crate) layout: Arc<RowLayout>,
}

impl Drop for ReceiveEnd {
    fn drop(&mut self) {
        // If there is no memory for an acknowledgment, the query fails, which releases the senders.
        if let Err(error) = self.flow.abandon() {
            self.flow.link.request(Request::Failed(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tessera_engine::{Governor, Query, Settings};

    use super::*;

    fn flow() -> (Arc<Flow>, Arc<Link>) {
        let context: Arc<dyn Context> = Query::new(Settings::default(), &Governor::unlimited());
        let link = Link::new(0, 2, false);
        (Flow::new(&link, &context, 3), link)
    }

    fn packet(from: usize, what: u64, number: usize, words: usize) -> ReceivedPacket {
        let mut all = vec![0, 3, what, number as u64, 0];
        all.resize(HEADER_WORDS + words, 7);
        ReceivedPacket { from, words: all, memory: None }
    }

    /// The notifications requested, with their ranks and bytes.
    fn notifications(link: &Link) -> Vec<(usize, u64, u64)> {
        let requests = link.requests(Duration::ZERO).into_iter();
        let notifications = requests.filter_map(|request| match request {
            Request::Packet(rank, words, _) => Some((rank, words[2], words[3])),
            _ => None,
        });
        notifications.collect()
    }

    #[test]
    fn senders_wait_for_what_was_passed_on() {
        let (flow, _link) = flow();
        let window = flow.window_bytes;
        flow.add_sent(1, window - 8);
        assert!(flow.room().is_none());
        flow.add_sent(1, 16);
        let token = flow.room().unwrap();
        flow.receive(packet(1, CONSUMED, 8, 0)).unwrap();
        assert!(!token.is_ready());
        flow.receive(packet(1, CONSUMED, 8, 0)).unwrap();
        assert!(token.is_ready() && flow.room().is_none());
        // Each receiver has room of its own.
        flow.add_sent(0, window);
        assert!(flow.room().is_some());
    }

    #[test]
    fn readers_get_all_and_senders_hear_of_it() {
        let (flow, link) = flow();
        let words = flow.window_bytes / 8 / 4;
        let FlowEvent::Wait(token) = flow.next().unwrap() else {
            panic!("a packet without a sender")
        };
        flow.receive(packet(1, 5, words, words)).unwrap();
        assert!(token.is_ready());
        assert!(matches!(flow.next().unwrap(), FlowEvent::Packet(packet) if packet.words[2] == 5));
        assert_eq!(notifications(&link), [(1, CONSUMED, (words + HEADER_WORDS) as u64 * 8)]);
        // Few bytes are not acknowledged.
        flow.receive(packet(1, 5, 1, 1)).unwrap();
        assert!(
            matches!(flow.next().unwrap(), FlowEvent::Packet(_)) && notifications(&link).is_empty()
        );
        flow.end().unwrap();
        assert_eq!(notifications(&link), [(0, ENDED, 0), (1, ENDED, 0)]);
        flow.receive(packet(0, ENDED, 0, 0)).unwrap();
        let FlowEvent::Wait(token) = flow.next().unwrap() else { panic!("one rank still sends") };
        flow.receive(packet(1, ENDED, 0, 0)).unwrap();
        assert!(token.is_ready() && matches!(flow.next().unwrap(), FlowEvent::End));
    }

    #[test]
    fn what_nobody_reads_is_dropped_and_told() {
        let (flow, link) = flow();
        let words = flow.window_bytes / 8 / 4;
        let end = ReceiveEnd {
            flow: flow.clone(),
            layout: RowLayout::bare(&"<k: int64>".parse().unwrap()).unwrap(),
        };
        flow.receive(packet(1, 0, words, words)).unwrap();
        drop(end);
        flow.receive(packet(1, 0, words, words)).unwrap();
        let bytes = (words + HEADER_WORDS) as u64 * 8;
        assert_eq!(notifications(&link), [(1, CONSUMED, bytes), (1, CONSUMED, bytes)]);
        assert!(flow.lock().inbox.is_empty());
    }
}
