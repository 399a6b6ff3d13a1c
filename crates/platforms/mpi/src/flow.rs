//! One exchange in rounds, as a rank sees it: what it has sent that lies at other ranks, and what
//! has come and waits to be passed on.
//!
//! A rank sends another at most [`ROUND_BYTES`], or [a part of the budget](ROUND_SHARE), shared by
//! the senders, that the other has not passed on yet; then its sinks wait. Ranks pass on what comes
//! as soon as what they do with it can begin, and tell senders when they have. What lies at a rank
//! is thereby bounded, and what reads it (builds, groups, sorts) leaves memory by itself.
//!
//! # Why no ranks wait in a circle
//! * All that crosses in such a plan crosses in rounds: there are no collective steps in it at
//!   which a rank would wait for the others.
//! * An exchange has one reader, a chain of the plan. Say that exchange A waits: its reader has not
//!   begun, since it still needs a side, and that side is made of what comes from exchange B, which
//!   waits as well. Then B is above A's reader in the plan. Followed on, the waiting exchanges
//!   would come back to A only if A's tuples reached a side that A's own reader needs; but they
//!   reach nothing other than through that reader. The plan has no circles, so that one of the
//!   exchanges has a reader that can begin, on every rank.
//! * A reader that has begun waits for what comes, or for the exchange that its own chain ends in,
//!   which is further down in the plan: the last of them ends in a state or in the result, which
//!   take all that is given to them or leave memory.
//! * The communication worker never waits: packets are received whatever else is under way, and
//!   answers (how much was passed on) need no room. Where the budget is spoken for, packets that a
//!   sender's room has been given for are taken uncounted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tessera_context::{Context, Token, lock};
use tessera_rows::RowLayout;
use tessera_types::Result;

use crate::link::{Arrived, Link, Request, StepId};
use crate::send::{BOUNDED, HEADER_WORDS};

/// Bytes of an exchange that lie at a rank, of all senders.
const ROUND_BYTES: usize = 8 << 20;
/// The part of the budget that these may take, where that is less: a plan has several exchanges.
const ROUND_SHARE: usize = 32;
/// The least of one sender: some packets.
const SENDER_BYTES_MIN: usize = 32 << 10;

/// In the place of a packet's partition: the sender has sent all it had.
const ENDED: u64 = u64::MAX;
/// In the place of a packet's partition: so many bytes were passed on, the number in the place of
/// its rows.
const PASSED_ON: u64 = u64::MAX - 1;

/// The bytes of an exchange that lie at a rank with this budget.
fn round_bytes(memory_bytes: usize) -> usize {
    (memory_bytes / ROUND_SHARE).min(ROUND_BYTES)
}

/// An exchange in rounds at one rank.
#[derive(Debug)]
pub struct Flow {
    link: Arc<Link>,
    context: Arc<dyn Context>,
    step: StepId,
    /// Bytes that one sender may have at one receiver.
    window_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Bytes at each rank that were sent there and not passed on yet.
    sent: Vec<usize>,
    /// Bytes of each rank that were passed on here without its knowing.
    untold: Vec<usize>,
    inbox: VecDeque<Arrived>,
    /// Ranks that will send more.
    sending: usize,
    /// Who waits for room, and for what comes.
    waiting: Vec<Token>,
    reading: Vec<Token>,
    /// Nobody will read what comes.
    is_given_up: bool,
}

/// What there is to read.
#[derive(Debug)]
pub(crate) enum Next {
    Packet(Arrived),
    /// Nothing yet.
    Wait(Token),
    /// Nothing more will come.
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
                untold: vec![0; ranks],
                inbox: VecDeque::new(),
                sending: ranks,
                waiting: Vec::new(),
                reading: Vec::new(),
                is_given_up: false,
            }),
        })
    }

    /// How many rows of so many bytes are packed before there must be room again.
    pub(crate) fn piece_rows(&self, stride_bytes: usize) -> usize {
        (self.window_bytes / 2 / stride_bytes.max(1)).max(1)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Notes that a packet of this length goes to a rank.
    pub(crate) fn sends(&self, to: usize, bytes: usize) {
        self.lock().sent[to] += bytes;
    }

    /// What to wait for before more is sent; nothing while there is room at every rank.
    pub(crate) fn room(&self) -> Option<Token> {
        let mut state = self.lock();
        let is_full = state.sent.iter().any(|sent| *sent >= self.window_bytes);
        is_full.then(|| {
            let token = Token::new();
            state.waiting.push(token.clone());
            token
        })
    }

    /// Tells all ranks that this one has sent all it had.
    pub(crate) fn end(&self) -> Result<()> {
        (0..self.link.ranks()).try_for_each(|rank| self.tell(rank, ENDED, 0))
    }

    fn tell(&self, rank: usize, what: u64, bytes: usize) -> Result<()> {
        let words = vec![0, self.step as u64 | BOUNDED, what, bytes as u64, 0];
        // It counts for nothing: it must go even where memory is scarce.
        let under_way = self.link.count(0, &self.context)?;
        self.link.request(Request::Packet(rank, words, under_way));
        Ok(())
    }

    /// Takes what has come for this exchange.
    ///
    /// # Errors
    /// The query has no memory for an answer.
    pub fn came(&self, packet: Arrived) -> Result<()> {
        let header = packet.words.first_chunk::<HEADER_WORDS>();
        let (what, bytes) = header.map_or((0, 0), |[_, _, what, rows, _]| (*what, *rows as usize));
        let mut state = self.lock();
        match what {
            ENDED => {
                state.sending -= 1;
                if state.sending == 0 {
                    state.reading.drain(..).for_each(|token| token.set_ready());
                }
                Ok(())
            }
            PASSED_ON => {
                let sent = &mut state.sent[packet.from];
                *sent = sent.saturating_sub(bytes);
                if state.sent.iter().all(|sent| *sent < self.window_bytes) {
                    state.waiting.drain(..).for_each(|token| token.set_ready());
                }
                Ok(())
            }
            _ if state.is_given_up => self.passed_on(state, &packet),
            _ => {
                state.inbox.push_back(packet);
                if let Some(token) = state.reading.pop() {
                    token.set_ready();
                }
                Ok(())
            }
        }
    }

    /// The next packet, which is taken to be passed on.
    pub(crate) fn next(&self) -> Result<Next> {
        let mut state = self.lock();
        if let Some(packet) = state.inbox.pop_front() {
            self.passed_on(state, &packet)?;
            return Ok(Next::Packet(packet));
        }
        if state.sending == 0 {
            return Ok(Next::End);
        }
        let token = Token::new();
        state.reading.push(token.clone());
        Ok(Next::Wait(token))
    }

    /// Tells the sender, unless it is too little to be worth a message.
    fn passed_on(&self, mut state: MutexGuard<'_, State>, packet: &Arrived) -> Result<()> {
        let untold = &mut state.untold[packet.from];
        *untold += packet.words.len() * 8;
        if *untold < self.window_bytes / 4 {
            return Ok(());
        }
        let bytes = std::mem::take(untold);
        drop(state);
        self.tell(packet.from, PASSED_ON, bytes)
    }

    /// Nobody will read what comes: it is dropped, so that senders come to their end.
    fn give_up(&self) -> Result<()> {
        let mut state = self.lock();
        state.is_given_up = true;
        for packet in std::mem::take(&mut state.inbox) {
            self.passed_on(state, &packet)?;
            state = self.lock();
        }
        Ok(())
    }
}

/// The receiving end of an exchange: when the last of it is gone, nobody will read.
#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) flow: Arc<Flow>,
    pub(crate) layout: Arc<RowLayout>,
}

impl Drop for Receiving {
    fn drop(&mut self) {
        // Without memory for a message the query fails, and nobody waits.
        if let Err(error) = self.flow.give_up() {
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

    fn packet(from: usize, what: u64, number: usize, words: usize) -> Arrived {
        let mut all = vec![0, 3, what, number as u64, 0];
        all.resize(HEADER_WORDS + words, 7);
        Arrived { from, words: all, memory: None }
    }

    /// The bytes that ranks were told of, by rank.
    fn told(link: &Link) -> Vec<(usize, u64, u64)> {
        let requests = link.requests(Duration::ZERO).into_iter();
        let told = requests.filter_map(|request| match request {
            Request::Packet(rank, words, _) => Some((rank, words[2], words[3])),
            _ => None,
        });
        told.collect()
    }

    #[test]
    fn senders_wait_for_what_was_passed_on() {
        let (flow, _link) = flow();
        let window = flow.window_bytes;
        flow.sends(1, window - 8);
        assert!(flow.room().is_none());
        flow.sends(1, 16);
        let token = flow.room().unwrap();
        flow.came(packet(1, PASSED_ON, 8, 0)).unwrap();
        assert!(!token.is_ready());
        flow.came(packet(1, PASSED_ON, 8, 0)).unwrap();
        assert!(token.is_ready() && flow.room().is_none());
        // Each receiver has room of its own.
        flow.sends(0, window);
        assert!(flow.room().is_some());
    }

    #[test]
    fn readers_get_all_and_senders_hear_of_it() {
        let (flow, link) = flow();
        let words = flow.window_bytes / 8 / 4;
        let Next::Wait(token) = flow.next().unwrap() else { panic!("something came from nowhere") };
        flow.came(packet(1, 5, words, words)).unwrap();
        assert!(token.is_ready());
        assert!(matches!(flow.next().unwrap(), Next::Packet(packet) if packet.words[2] == 5));
        assert_eq!(told(&link), [(1, PASSED_ON, (words + HEADER_WORDS) as u64 * 8)]);
        // A little is not worth a message.
        flow.came(packet(1, 5, 1, 1)).unwrap();
        assert!(matches!(flow.next().unwrap(), Next::Packet(_)) && told(&link).is_empty());
        flow.end().unwrap();
        assert_eq!(told(&link), [(0, ENDED, 0), (1, ENDED, 0)]);
        flow.came(packet(0, ENDED, 0, 0)).unwrap();
        let Next::Wait(token) = flow.next().unwrap() else { panic!("one rank still sends") };
        flow.came(packet(1, ENDED, 0, 0)).unwrap();
        assert!(token.is_ready() && matches!(flow.next().unwrap(), Next::End));
    }

    #[test]
    fn what_nobody_reads_is_dropped_and_told() {
        let (flow, link) = flow();
        let words = flow.window_bytes / 8 / 4;
        let receiving = Receiving {
            flow: flow.clone(),
            layout: RowLayout::bare(&"<k: int64>".parse().unwrap()).unwrap(),
        };
        flow.came(packet(1, 0, words, words)).unwrap();
        drop(receiving);
        flow.came(packet(1, 0, words, words)).unwrap();
        let bytes = (words + HEADER_WORDS) as u64 * 8;
        assert_eq!(told(&link), [(1, PASSED_ON, bytes), (1, PASSED_ON, bytes)]);
        assert!(flow.lock().inbox.is_empty());
    }
}
