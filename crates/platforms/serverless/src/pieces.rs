//! An exchange in pieces, which may be larger than the budget: senders write the tuples they hold
//! as *part objects* whenever those reach a limit, and receivers read their row groups piece by
//! piece ([`read`]) into operators that can spill.
//!
//! A sender's last object is its *head*, with the name of its only object in other exchanges. It
//! lists the sender's parts and their row groups. The names of parts contain the number of the
//! attempt, since two attempts at a worker split their tuples differently; the first head stands,
//! and the other attempt's parts are never read. A head is written after all its parts, so partial
//! output of a lost worker is never read either.
//!
//! No worker waits for another to read: objects stay until the query ends.

mod head;
mod read;

use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use object_store::PutPayload;
use tessera_context::{Context, Reservation, Run, Token, lock};
use tessera_operator::stream_util::SourcePositions;
use tessera_operator::{Finish, SinkRun, SinkWorker};
use tessera_rows::{RowLayout, WireBatch, WirePartitioner};
use tessera_types::{Error, Result};
use tessera_vector::Chunk;
use tokio::task::JoinHandle;

use crate::object::{Group, GroupData, GroupSummary, Index};
use crate::store_exchange::StoreExchange;
use crate::task::AbortOnDrop;
use read::{GroupRange, Pieces, ReceiverRanges};

#[cfg(any(test, fuzzing))]
pub(crate) use head::Head;

/// The share of the budget that is held of an exchange before it is written, and its minimum.
/// Another part of the same size may be in flight.
const PART_SHARE: usize = 32;
const PART_BYTES_MIN: usize = 64 << 10;

/// Returns the size of a part for this budget.
pub(crate) fn part_bytes(memory_bytes: usize) -> usize {
    (memory_bytes / PART_SHARE).max(PART_BYTES_MIN)
}

/// The setup of an exchange in pieces.
pub(crate) struct PiecesSetup {
    pub(crate) layout: Arc<RowLayout>,
    pub(crate) keys: Arc<[usize]>,
    pub(crate) bits: (u32, u32),
    pub(crate) has_position: bool,
    pub(crate) store_exchange: StoreExchange,
    pub(crate) run: Run,
}

/// The sink of an exchange in pieces.
pub(crate) struct PiecesRun(Arc<Shared>);

struct Shared {
    setup: PiecesSetup,
    part_bytes: usize,
    /// Partitioners with packets being filled. There are as many as threads use at once, which are
    /// fewer than lanes.
    filling: Mutex<Vec<WirePartitioner>>,
    sending: Mutex<SendState>,
    /// The error of a part that could not be written.
    failed: OnceLock<Error>,
}

impl std::fmt::Debug for PiecesRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PiecesRun").field("part_bytes", &self.0.part_bytes).finish_non_exhaustive()
    }
}

impl PiecesRun {
    pub(crate) fn new(setup: PiecesSetup) -> PiecesRun {
        PiecesRun(Arc::new(Shared {
            part_bytes: part_bytes(setup.run.context.memory_bytes()),
            sending: Mutex::new(SendState {
                pending: setup.new_groups(),
                uploads: Vec::new(),
                in_flight: None,
            }),
            filling: Mutex::default(),
            failed: OnceLock::new(),
            setup,
        }))
    }
}

struct Worker {
    shared: Arc<Shared>,
    positions: SourcePositions,
    sends: bool,
}

/// The groups that all threads of this worker fill together: with one part per lane there would be
/// too many.
struct SendState {
    pending: PendingGroups,
    /// The uploads of parts, by part number.
    uploads: Vec<JoinHandle<Result<Index>>>,
    /// The token of the part being written.
    in_flight: Option<Token>,
}

/// Row groups that are not yet written.
pub(crate) struct PendingGroups {
    pub(crate) groups: Vec<Group>,
    pub(crate) memory: Reservation,
}

impl Shared {
    /// Writes the pending groups as a part.
    fn write_part(self: &Arc<Self>, sending: &mut SendState) -> Result<()> {
        let store_exchange = &self.setup.store_exchange;
        let pending = std::mem::replace(&mut sending.pending, self.setup.new_groups());
        // The part's index stays in memory until the head is written.
        lock(&store_exchange.memory).grow(pending.groups.len() * GroupSummary::WORDS * 8)?;
        let number = sending.uploads.len() as u64;
        let (token, written) = (Token::new(), Arc::clone(self));
        let done = token.clone();
        let PendingGroups { groups, memory } = pending;
        let write = async move {
            let groups: Vec<Vec<GroupData>> =
                groups.into_iter().map(|group| vec![GroupData::from(group)]).collect();
            let index = Index::of_groups(&groups);
            let bytes = groups.iter().flatten().map(|part| part.bytes.clone());
            let payload: PutPayload = bytes.filter(|bytes| !bytes.is_empty()).collect();
            let store_exchange = &written.setup.store_exchange;
            let task = &store_exchange.task;
            let name = part_name(store_exchange, task.order.index, task.attempt, number);
            let put = task.put_new(name, payload).await;
            drop((groups, memory));
            if let Err(error) = &put {
                drop(written.failed.set(error.clone()));
            }
            done.set_ready();
            put.map(|_| index)
        };
        sending.uploads.push(store_exchange.task.io.spawn(write));
        sending.in_flight = Some(token);
        Ok(())
    }

    /// Adds a packet; writes a part if enough is pending and the previous part has been written.
    fn add(
        self: &Arc<Self>,
        partition: usize,
        packet: WireBatch<'_>,
        heap_words: &[usize],
    ) -> Result<()> {
        let mut sending = lock(&self.sending);
        let PiecesSetup { layout, store_exchange, .. } = &self.setup;
        sending.pending.add(
            store_exchange.group_map.group(partition),
            packet,
            layout,
            heap_words,
        )?;
        let is_full = sending.pending.memory.bytes() >= self.part_bytes;
        if is_full && sending.in_flight.as_ref().is_none_or(Token::is_ready) {
            self.write_part(&mut sending)?;
        }
        Ok(())
    }

    /// Waits for the parts, writes the head, and finds the row groups that others have for this
    /// worker.
    async fn exchange(&self) -> Result<Vec<GroupRange>> {
        let store_exchange = &self.setup.store_exchange;
        let uploads = std::mem::take(&mut lock(&self.sending).uploads);
        let mut parts = Vec::with_capacity(uploads.len());
        for upload in uploads {
            let written = upload.await.map_err(|_| Error::internal("exchange part not written"))?;
            parts.push(written?);
        }
        let index = store_exchange.task.order.index;
        if index == 0 || !store_exchange.only_first {
            let head = head::bytes(
                store_exchange.task.attempt,
                store_exchange.group_map.groups(),
                parts.iter(),
            );
            drop(parts);
            store_exchange
                .task
                .put_new(store_exchange.name(index), Bytes::from(head).into())
                .await?;
        }
        read::find(store_exchange).await
    }
}

fn part_name(store_exchange: &StoreExchange, sender: usize, attempt: u64, number: u64) -> String {
    format!("{}-{attempt:016x}-{number}", store_exchange.name(sender))
}

impl SinkRun for PiecesRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let store_exchange = &self.0.setup.store_exchange;
        let order = &store_exchange.task.order;
        Ok(Box::new(Worker {
            positions: SourcePositions::new(order.index, order.workers),
            sends: order.index == 0 || !store_exchange.only_first,
            shared: self.0.clone(),
        }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        drop(workers);
        for mut outgoing in std::mem::take(&mut *lock(&self.0.filling)) {
            let words = outgoing.heap_words().clone();
            outgoing.flush(&mut |partition, packet| self.0.add(partition, packet, &words))?;
        }
        let mut sending = lock(&self.0.sending);
        if sending.pending.memory.bytes() > 0 {
            self.0.write_part(&mut sending)?;
        }
        drop(sending);
        let found: Arc<ReceiverRanges> = Arc::default();
        let (shared, sender) = (self.0.clone(), found.clone());
        let work = async move { sender.set(shared.exchange().await) };
        let abort_guard =
            AbortOnDrop(self.0.setup.store_exchange.task.io.spawn(work).abort_handle());
        Ok(Finish {
            tasks: Vec::new(),
            output: Arc::new(Pieces::new(self.0.clone(), found, abort_guard)),
        })
    }
}

impl PiecesSetup {
    fn new_groups(&self) -> PendingGroups {
        PendingGroups::new(self.store_exchange.group_map.groups(), &self.run.context)
    }
}

impl PendingGroups {
    pub(crate) fn new(groups: usize, context: &Arc<dyn Context>) -> PendingGroups {
        PendingGroups {
            groups: (0..groups).map(|_| Group::default()).collect(),
            memory: Reservation::new(context.clone()),
        }
    }

    pub(crate) fn add(
        &mut self,
        group: usize,
        packet: WireBatch<'_>,
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
        let (shared, PiecesSetup { layout, keys, bits, run, .. }) =
            (&self.shared, &self.shared.setup);
        let chunk = if shared.setup.has_position { self.positions.before(chunk)? } else { chunk };
        let filling = lock(&shared.filling).pop();
        let mut outgoing = match filling {
            Some(outgoing) => outgoing,
            None => WirePartitioner::new(layout, keys, *bits, &run.context)?,
        };
        let words = outgoing.heap_words().clone();
        outgoing.append(&chunk, &mut |partition, packet| shared.add(partition, packet, &words))?;
        lock(&shared.filling).push(outgoing);
        Ok(())
    }

    /// Blocks while one part is being written and the next is full.
    fn blocked(&self) -> Option<Token> {
        let sending = lock(&self.shared.sending);
        let is_full = sending.pending.memory.bytes() >= self.shared.part_bytes;
        sending.in_flight.clone().filter(|_| is_full)
    }
}

#[cfg(test)]
mod tests;
