//! An exchange larger than the budget: senders write what they hold as *part objects* whenever it
//! is much, and receivers read their row groups piece by piece ([`read`]), straight into what is
//! behind the exchange, which leaves memory by itself.
//!
//! A sender's last object is its *head*, with the name that its one object has otherwise: it says
//! which parts there are and what is in their row groups. Parts have the number of the attempt in
//! their names, since two attempts at a worker cut what they send differently; of two heads the
//! first stands, and nothing reads the other's parts. A head is written when all its parts are
//! there, so that what a lost worker has left half-written is never read.
//!
//! No worker waits for another to read: objects stay until the query has ended.

mod head;
mod read;

use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use object_store::PutPayload;
use tessera_context::{Context, Reservation, Run, Token, lock};
use tessera_operator::stream_util::SourcePositions;
use tessera_operator::{Finish, SinkRun, SinkWorker};
use tessera_rows::{Outgoing, Packet, RowLayout};
use tessera_types::{Error, Result};
use tessera_vector::Chunk;
use tokio::task::JoinHandle;

use crate::crossing::Crossing;
use crate::object::{Came, Content, Group, Index};
use crate::task::Ending;
use read::{Found, Pieces, Stretch};

#[cfg(any(test, fuzzing))]
pub(crate) use head::Head;

/// The share of the budget that is held of an exchange before it leaves, and the least. As much may
/// be on its way.
const PART_SHARE: usize = 32;
const PART_BYTES_MIN: usize = 64 << 10;

/// How much is held before it leaves, of this budget.
pub(crate) fn part_bytes(memory_bytes: usize) -> usize {
    (memory_bytes / PART_SHARE).max(PART_BYTES_MIN)
}

/// What is sent and how, for a run in pieces.
pub(crate) struct Plan {
    pub(crate) layout: Arc<RowLayout>,
    pub(crate) keys: Arc<[usize]>,
    pub(crate) bits: (u32, u32),
    pub(crate) has_position: bool,
    pub(crate) crossing: Crossing,
    pub(crate) run: Run,
}

/// The sink of an exchange in pieces.
pub(crate) struct PiecesRun(Arc<Shared>);

struct Shared {
    plan: Plan,
    part_bytes: usize,
    /// Packets being filled: as many as threads have been at it at once, which are fewer than
    /// lanes.
    filling: Mutex<Vec<Outgoing>>,
    sending: Mutex<Sending>,
    /// Why a part could not be written.
    failed: OnceLock<Error>,
}

impl std::fmt::Debug for PiecesRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PiecesRun").field("part_bytes", &self.0.part_bytes).finish_non_exhaustive()
    }
}

impl PiecesRun {
    pub(crate) fn new(plan: Plan) -> PiecesRun {
        PiecesRun(Arc::new(Shared {
            part_bytes: part_bytes(plan.run.context.memory_bytes()),
            sending: Mutex::new(Sending {
                held: plan.held(),
                uploads: Vec::new(),
                under_way: None,
            }),
            filling: Mutex::default(),
            failed: OnceLock::new(),
            plan,
        }))
    }
}

struct Worker {
    shared: Arc<Shared>,
    positions: SourcePositions,
    sends: bool,
}

/// What all threads send: lanes are many, and each would hold a part.
struct Sending {
    held: Held,
    /// The parts, by number.
    uploads: Vec<JoinHandle<Result<Index>>>,
    /// The part that is being written.
    under_way: Option<Token>,
}

/// Row groups that have not left.
pub(crate) struct Held {
    pub(crate) groups: Vec<Group>,
    pub(crate) memory: Reservation,
}

impl Shared {
    /// Writes what is held as a part.
    fn leave(self: &Arc<Self>, sending: &mut Sending) -> Result<()> {
        let crossing = &self.plan.crossing;
        let held = std::mem::replace(&mut sending.held, self.plan.held());
        // What is said of the part stays until the head is written.
        lock(&crossing.memory).grow(held.groups.len() * Content::WORDS * 8)?;
        let number = sending.uploads.len() as u64;
        let (token, written) = (Token::new(), Arc::clone(self));
        let done = token.clone();
        let Held { groups, memory } = held;
        let write = async move {
            let groups: Vec<Vec<Came>> =
                groups.into_iter().map(|group| vec![Came::from(group)]).collect();
            let index = Index::of(&groups);
            let bytes = groups.iter().flatten().map(|part| part.bytes.clone());
            let payload: PutPayload = bytes.filter(|bytes| !bytes.is_empty()).collect();
            let crossing = &written.plan.crossing;
            let task = &crossing.task;
            let name = part_name(crossing, task.order.index, task.attempt, number);
            let put = task.put_new(name, payload).await;
            drop((groups, memory));
            if let Err(error) = &put {
                drop(written.failed.set(error.clone()));
            }
            done.set_ready();
            put.map(|_| index)
        };
        sending.uploads.push(crossing.task.io.spawn(write));
        sending.under_way = Some(token);
        Ok(())
    }

    /// Keeps a packet; what is held leaves when it is much and the part before has been written.
    fn keep(
        self: &Arc<Self>,
        partition: usize,
        packet: Packet<'_>,
        heap_words: &[usize],
    ) -> Result<()> {
        let mut sending = lock(&self.sending);
        let Plan { layout, crossing, .. } = &self.plan;
        sending.held.keep(crossing.parts.group(partition), packet, layout, heap_words)?;
        let is_full = sending.held.memory.bytes() >= self.part_bytes;
        if is_full && sending.under_way.as_ref().is_none_or(Token::is_ready) {
            self.leave(&mut sending)?;
        }
        Ok(())
    }

    /// Waits for the parts, writes the head, and finds out what others have for this worker.
    async fn cross(&self) -> Result<Vec<Stretch>> {
        let crossing = &self.plan.crossing;
        let uploads = std::mem::take(&mut lock(&self.sending).uploads);
        let mut parts = Vec::with_capacity(uploads.len());
        for upload in uploads {
            let written = upload
                .await
                .map_err(|_| Error::internal("a part of an exchange was not written"))?;
            parts.push(written?);
        }
        let index = crossing.task.order.index;
        if index == 0 || !crossing.only_first {
            let head = head::bytes(crossing.task.attempt, crossing.parts.groups(), parts.iter());
            drop(parts);
            crossing.task.put_new(crossing.name(index), Bytes::from(head).into()).await?;
        }
        read::find(crossing).await
    }
}

fn part_name(crossing: &Crossing, sender: usize, attempt: u64, number: u64) -> String {
    format!("{}-{attempt:016x}-{number}", crossing.name(sender))
}

impl SinkRun for PiecesRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let crossing = &self.0.plan.crossing;
        let order = &crossing.task.order;
        Ok(Box::new(Worker {
            positions: SourcePositions::new(order.index, order.workers),
            sends: order.index == 0 || !crossing.only_first,
            shared: self.0.clone(),
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        drop(workers);
        for mut outgoing in std::mem::take(&mut *lock(&self.0.filling)) {
            let words = outgoing.heap_words().clone();
            outgoing.flush(&mut |partition, packet| self.0.keep(partition, packet, &words))?;
        }
        let mut sending = lock(&self.0.sending);
        if sending.held.memory.bytes() > 0 {
            self.0.leave(&mut sending)?;
        }
        drop(sending);
        let found: Arc<Found> = Arc::default();
        let (shared, told) = (self.0.clone(), found.clone());
        let work = async move { told.set(shared.cross().await) };
        let ending = Ending(self.0.plan.crossing.task.io.spawn(work).abort_handle());
        Ok(Finish {
            tasks: Vec::new(),
            output: Arc::new(Pieces::new(self.0.clone(), found, ending)),
        })
    }
}

impl Plan {
    fn held(&self) -> Held {
        Held::new(self.crossing.parts.groups(), &self.run.context)
    }
}

impl Held {
    pub(crate) fn new(groups: usize, context: &Arc<dyn Context>) -> Held {
        Held {
            groups: (0..groups).map(|_| Group::default()).collect(),
            memory: Reservation::new(context.clone()),
        }
    }

    pub(crate) fn keep(
        &mut self,
        group: usize,
        packet: Packet<'_>,
        layout: &RowLayout,
        heap_words: &[usize],
    ) -> Result<()> {
        let group = &mut self.groups[group];
        let before = group.capacity();
        group.add(0, packet, layout, heap_words);
        self.memory.grow(group.capacity() - before)
    }
}

impl SinkWorker for Worker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.positions.begin(position);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        if !self.sends {
            return Ok(());
        }
        if let Some(error) = self.shared.failed.get() {
            return Err(error.clone());
        }
        let (shared, Plan { layout, keys, bits, run, .. }) = (&self.shared, &self.shared.plan);
        let chunk = if shared.plan.has_position { self.positions.before(chunk)? } else { chunk };
        let filling = lock(&shared.filling).pop();
        let mut outgoing = match filling {
            Some(outgoing) => outgoing,
            None => Outgoing::new(layout, keys, *bits, &run.context)?,
        };
        let words = outgoing.heap_words().clone();
        outgoing.append(&chunk, &mut |partition, packet| shared.keep(partition, packet, &words))?;
        lock(&shared.filling).push(outgoing);
        Ok(())
    }

    /// One part at a time is on its way, and one is held.
    fn blocked(&self) -> Option<Token> {
        let sending = lock(&self.shared.sending);
        let is_full = sending.held.memory.bytes() >= self.shared.part_bytes;
        sending.under_way.clone().filter(|_| is_full)
    }
}

#[cfg(test)]
mod tests;
