//! The result of a statement, sent from the first worker to the driver.
//!
//! The first worker writes *parts* of bounded size, each an exchange object with one row group, and
//! its answer has their number. Their names contain the number of the attempt. The driver reads
//! only the parts of the attempt that answered, after all of them were written, so parts of two
//! attempts never mix. It reads one part ahead of the one it outputs.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tessera_context::{Context, Reservation, Token, lock};
use tessera_rows::{RowLayout, Rows, WirePartitioner};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::Chunk;
use tokio::sync::mpsc::Sender;

use crate::cloud::Space;
use crate::object::{self, GroupData, Index};
use crate::pieces::{self, PendingGroups};
use crate::task::Task;

/// The folder of parts.
pub(crate) const FOLDER: &str = "result";
/// The maximum size of a part, exceeded by at most one chunk.
const PART_BYTES_MAX: usize = 8 << 20;

/// Returns the size of parts, from the memory budget of the process that writes or reads them.
fn part_bytes(context: &Arc<dyn Context>) -> usize {
    pieces::part_bytes(context.memory_bytes()).min(PART_BYTES_MAX)
}

/// The parts of a written result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultParts {
    /// The attempt of the first worker that has written it.
    pub(crate) attempt: u64,
    pub(crate) parts: u64,
}

impl ResultParts {
    /// Returns the common prefix of the parts' names.
    pub(crate) fn folder(&self) -> String {
        format!("{FOLDER}/{:016x}", self.attempt)
    }

    pub(crate) fn name(&self, part: u64) -> String {
        format!("{}/{part}", self.folder())
    }

    /// Reads the parts in order and sends them on, each after the one before was taken.
    ///
    /// # Errors
    /// A part cannot be read, or the memory budget is exhausted.
    pub(crate) async fn read(
        &self,
        space: &Space,
        context: &Arc<dyn Context>,
        to: Sender<Part>,
    ) -> Result<()> {
        for part in 0..self.parts {
            // This fails when the receiver is gone.
            let Ok(room) = to.reserve().await else { break };
            let mut memory = Reservation::new(context.clone());
            memory.grow(part_bytes(context))?;
            let bytes = space.get(&self.name(part)).await?;
            memory.resize(bytes.len())?;
            room.send(Part { bytes, memory });
        }
        Ok(())
    }
}

/// A part that was read.
#[derive(Debug)]
pub(crate) struct Part {
    bytes: Bytes,
    memory: Reservation,
}

impl Part {
    /// Decodes the tuples of the part.
    ///
    /// # Errors
    /// The part is damaged, or the memory budget is exhausted.
    pub(crate) fn rows(self, layout: &Arc<RowLayout>) -> Result<Rows> {
        let Part { bytes, memory } = self;
        let read = || {
            let index = Index::read(&bytes, 1)?;
            index.check(bytes.len() as u64)?;
            let group = |(range, content): (std::ops::Range<u64>, _)| GroupData {
                content,
                bytes: bytes.slice(range.start as usize..range.end as usize),
            };
            let groups: Vec<GroupData> = index.runs(|_| true).into_iter().map(group).collect();
            object::decode(&groups, layout, &memory.context())
        };
        read().map_err(|error| error.context("the result"))
    }
}

/// Writes the first worker's result.
pub(crate) struct Writer {
    outgoing: WirePartitioner,
    part_writer: PartWriter,
}

/// The packed tuples: one part is being filled, and the one before may be in flight.
struct PartWriter {
    task: Arc<Task>,
    context: Arc<dyn Context>,
    layout: Arc<RowLayout>,
    part_bytes: usize,
    pending: PendingGroups,
    written: ResultParts,
    in_flight: Option<PendingPart>,
}

/// A part being written, and the result of its write.
type PendingPart = (Token, Arc<Mutex<Option<Result<bool>>>>);

impl Writer {
    /// Creates a writer of an empty result.
    ///
    /// # Errors
    /// Tuples of this type cannot be sent, or the memory budget is exhausted.
    pub(crate) fn new(
        task: Arc<Task>,
        tuple: &Tuple,
        context: &Arc<dyn Context>,
    ) -> Result<Writer> {
        let layout = RowLayout::bare(tuple)?;
        Ok(Writer {
            outgoing: WirePartitioner::new(&layout, &Vec::new().into(), (0, 0), context)?,
            part_writer: PartWriter {
                context: context.clone(),
                part_bytes: part_bytes(context),
                pending: PendingGroups::new(1, context),
                written: ResultParts { attempt: task.attempt, parts: 0 },
                in_flight: None,
                task,
                layout,
            },
        })
    }

    /// Adds tuples to the result.
    ///
    /// # Errors
    /// They cannot be sent, a part could not be written, or the memory budget is exhausted.
    pub(crate) fn add(&mut self, chunk: &Chunk) -> Result<()> {
        let part_writer = &mut self.part_writer;
        if part_writer.layout.tuple().fields().is_empty() {
            let message = "on platform serverless: a result without columns is not supported; select a column";
            return Err(Error::unsupported(message));
        }
        let words = self.outgoing.heap_words().clone();
        self.outgoing.append(chunk, &mut |_, packet| {
            part_writer.pending.add(0, packet, &part_writer.layout, &words)?;
            if part_writer.is_full() && part_writer.in_flight()?.is_none() {
                part_writer.write_part()
            } else {
                Ok(())
            }
        })
    }

    /// Returns the token to wait for before more tuples are added.
    ///
    /// # Errors
    /// A part could not be written.
    pub(crate) fn blocked(&mut self) -> Result<Option<Token>> {
        if self.part_writer.is_full() { self.part_writer.in_flight() } else { Ok(None) }
    }

    /// Writes the remaining tuples and then sets the task's result. Call it again when the returned
    /// token is ready.
    ///
    /// # Errors
    /// A part could not be written.
    pub(crate) fn finish(&mut self) -> Result<Option<Token>> {
        let part_writer = &mut self.part_writer;
        let words = self.outgoing.heap_words().clone();
        self.outgoing.flush(&mut |_, packet| {
            part_writer.pending.add(0, packet, &part_writer.layout, &words)
        })?;
        loop {
            if let Some(token) = part_writer.in_flight()? {
                return Ok(Some(token));
            }
            if part_writer.pending.memory.bytes() == 0 {
                *lock(&part_writer.task.result) = Some(part_writer.written);
                return Ok(None);
            }
            part_writer.write_part()?;
        }
    }
}

impl PartWriter {
    fn is_full(&self) -> bool {
        self.pending.memory.bytes() >= self.part_bytes
    }

    /// Returns a token that is ready when the part in flight has been written.
    fn in_flight(&mut self) -> Result<Option<Token>> {
        let Some((token, done)) = &self.in_flight else { return Ok(None) };
        if !token.is_ready() {
            return Ok(Some(token.clone()));
        }
        let put = lock(done).take().unwrap_or(Ok(true));
        self.in_flight = None;
        put.map(|_| None)
    }

    /// Writes the pending group as a part.
    fn write_part(&mut self) -> Result<()> {
        let PendingGroups { groups, memory } =
            std::mem::replace(&mut self.pending, PendingGroups::new(1, &self.context));
        let groups: Vec<Vec<GroupData>> =
            groups.into_iter().map(|group| vec![GroupData::from(group)]).collect();
        let payload = object::payload(&groups, &Index::of_groups(&groups))?;
        let name = self.written.name(self.written.parts);
        self.written.parts += 1;
        let in_flight = PendingPart::default();
        let ((token, done), task) = (in_flight.clone(), self.task.clone());
        self.task.io.spawn(async move {
            let put = task.put_new(name, payload).await;
            drop((groups, memory));
            *lock(&done) = Some(put);
            token.set_ready();
        });
        self.in_flight = Some(in_flight);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
