//! The result of a statement, on its way from the first worker to the driver.
//!
//! The first worker writes *parts* of bounded size, each an object as of an exchange with one row
//! group, and says in its answer how many there are. Their names have the number of its attempt:
//! the driver reads the parts of the attempt whose answer it has got, when all are there, so that
//! parts of two attempts never mix. It reads a part ahead of the one that it passes on.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tessera_context::{Context, Reservation, Token, lock};
use tessera_rows::{Outgoing, RowLayout, Rows};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::Chunk;
use tokio::sync::mpsc::Sender;

use crate::cloud::Space;
use crate::object::{self, Came, Index};
use crate::pieces::{self, Held};
use crate::task::Task;

/// Parts have names below this one.
pub(crate) const FOLDER: &str = "result";
/// The most bytes of a part, but for one chunk.
const PART_BYTES_MAX: usize = 8 << 20;

/// The size of parts in bytes, from the memory budget of the process that writes or reads them.
fn part_bytes(context: &Arc<dyn Context>) -> usize {
    pieces::part_bytes(context.memory_bytes()).min(PART_BYTES_MAX)
}

/// A result that has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    /// The attempt at the first worker that has written it.
    pub(crate) attempt: u64,
    pub(crate) parts: u64,
}

impl Written {
    /// What the names of its parts begin with.
    pub(crate) fn folder(&self) -> String {
        format!("{FOLDER}/{:016x}", self.attempt)
    }

    pub(crate) fn name(&self, part: u64) -> String {
        format!("{}/{part}", self.folder())
    }

    /// Reads the parts in order and hands them on; each when the one before has been taken.
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
            // It fails when nothing reads any more.
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

/// A part that has come.
#[derive(Debug)]
pub(crate) struct Part {
    bytes: Bytes,
    memory: Reservation,
}

impl Part {
    /// Its tuples.
    ///
    /// # Errors
    /// It is damaged, or the memory budget is exhausted.
    pub(crate) fn rows(self, layout: &Arc<RowLayout>) -> Result<Rows> {
        let Part { bytes, memory } = self;
        let read = || {
            let index = Index::read(&bytes, 1)?;
            index.check(bytes.len() as u64)?;
            let came = |(range, content): (std::ops::Range<u64>, _)| Came {
                content,
                bytes: bytes.slice(range.start as usize..range.end as usize),
            };
            let came: Vec<Came> = index.runs(|_| true).into_iter().map(came).collect();
            object::decode(&came, layout, &memory.context())
        };
        read().map_err(|error| error.context("the result"))
    }
}

/// Writes the first worker's result.
pub(crate) struct Writer {
    outgoing: Outgoing,
    leaving: Leaving,
}

/// What has been packed: a part is held, and the one before may be on its way.
struct Leaving {
    task: Arc<Task>,
    context: Arc<dyn Context>,
    layout: Arc<RowLayout>,
    part_bytes: usize,
    held: Held,
    written: Written,
    under_way: Option<UnderWay>,
}

/// A part that is being written, and what came of it.
type UnderWay = (Token, Arc<Mutex<Option<Result<bool>>>>);

impl Writer {
    /// Nothing yet.
    ///
    /// # Errors
    /// Such tuples cannot be sent, or the memory budget is exhausted.
    pub(crate) fn new(
        task: Arc<Task>,
        tuple: &Tuple,
        context: &Arc<dyn Context>,
    ) -> Result<Writer> {
        let layout = RowLayout::bare(tuple)?;
        Ok(Writer {
            outgoing: Outgoing::new(&layout, &Vec::new().into(), (0, 0), context)?,
            leaving: Leaving {
                context: context.clone(),
                part_bytes: part_bytes(context),
                held: Held::new(1, context),
                written: Written { attempt: task.attempt, parts: 0 },
                under_way: None,
                task,
                layout,
            },
        })
    }

    /// Takes the next tuples of the result.
    ///
    /// # Errors
    /// They cannot be sent, a part could not be written, or the memory budget is exhausted.
    pub(crate) fn add(&mut self, chunk: &Chunk) -> Result<()> {
        let leaving = &mut self.leaving;
        if leaving.layout.tuple().fields().is_empty() {
            let message = "on platform serverless: a result without columns is not supported; select a column";
            return Err(Error::unsupported(message));
        }
        let words = self.outgoing.heap_words().clone();
        self.outgoing.append(chunk, &mut |_, packet| {
            leaving.held.keep(0, packet, &leaving.layout, &words)?;
            if leaving.is_full() && leaving.under_way()?.is_none() {
                leaving.leave()
            } else {
                Ok(())
            }
        })
    }

    /// What is to be waited for before more is added.
    ///
    /// # Errors
    /// A part could not be written.
    pub(crate) fn blocked(&mut self) -> Result<Option<Token>> {
        if self.leaving.is_full() { self.leaving.under_way() } else { Ok(None) }
    }

    /// Writes what is left, and then says where the result is. It is called again when the token
    /// that it gives is ready.
    ///
    /// # Errors
    /// A part could not be written.
    pub(crate) fn finish(&mut self) -> Result<Option<Token>> {
        let leaving = &mut self.leaving;
        let words = self.outgoing.heap_words().clone();
        self.outgoing
            .flush(&mut |_, packet| leaving.held.keep(0, packet, &leaving.layout, &words))?;
        loop {
            if let Some(token) = leaving.under_way()? {
                return Ok(Some(token));
            }
            if leaving.held.memory.bytes() == 0 {
                *lock(&leaving.task.result) = Some(leaving.written);
                return Ok(None);
            }
            leaving.leave()?;
        }
    }
}

impl Leaving {
    fn is_full(&self) -> bool {
        self.held.memory.bytes() >= self.part_bytes
    }

    /// What is ready when the part that is on its way has been written.
    fn under_way(&mut self) -> Result<Option<Token>> {
        let Some((token, done)) = &self.under_way else { return Ok(None) };
        if !token.is_ready() {
            return Ok(Some(token.clone()));
        }
        let put = lock(done).take().unwrap_or(Ok(true));
        self.under_way = None;
        put.map(|_| None)
    }

    /// Writes what is held as a part.
    fn leave(&mut self) -> Result<()> {
        let Held { groups, memory } =
            std::mem::replace(&mut self.held, Held::new(1, &self.context));
        let groups: Vec<Vec<Came>> =
            groups.into_iter().map(|group| vec![Came::from(group)]).collect();
        let payload = object::payload(&groups, &Index::of(&groups))?;
        let name = self.written.name(self.written.parts);
        self.written.parts += 1;
        let under_way = UnderWay::default();
        let ((token, done), task) = (under_way.clone(), self.task.clone());
        self.task.io.spawn(async move {
            let put = task.put_new(name, payload).await;
            drop((groups, memory));
            *lock(&done) = Some(put);
            token.set_ready();
        });
        self.under_way = Some(under_way);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
