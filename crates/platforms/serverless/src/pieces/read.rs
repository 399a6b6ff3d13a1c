//! The receiver of an exchange in pieces.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use tessera_context::{Reservation, Token, lock};
use tessera_operator::{Reader, SourceRun, Step};
use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Column, Handle};

use super::head::Head;
use super::{Plan, Shared, part_name};
use crate::crossing::{Crossing, gone};
use crate::object::{Checking, Content};
use crate::task::Ending;

/// The share of a thread's budget that is read at once, and its bounds: every thread reads several
/// row groups at a time.
const PIECE_SHARE: usize = 256;
const PIECE_BYTES_MIN: usize = 32 << 10;
const PIECE_BYTES_MAX: usize = 4 << 20;
/// Bytes that a head is first read with.
const HEAD_BYTES: u64 = 16 << 10;

/// A run of row groups of a part that are for this worker.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    name: Arc<str>,
    range: Range<u64>,
    content: Content,
}

/// What all senders have for this worker, when their heads are there.
pub(super) async fn find(crossing: &Crossing) -> Result<Vec<Stretch>> {
    let mine = crossing.parts.of_receiver(crossing.task.order.index);
    if mine.is_empty() {
        return Ok(Vec::new());
    }
    let senders = if crossing.only_first { 1 } else { crossing.task.order.workers };
    // This worker's own head is read as well: that of another attempt may have been first.
    let found = crossing
        .as_they_appear((0..senders).collect(), |sender| open(crossing, sender, &mine))
        .await?;
    Ok(found.into_values().flatten().collect())
}

/// What a sender has for this worker; none where its head is not there yet.
async fn open(
    crossing: &Crossing,
    sender: usize,
    mine: &Range<usize>,
) -> Result<Option<Vec<Stretch>>> {
    let (name, groups) = (crossing.name(sender), crossing.parts.groups());
    let Some((first, size)) = crossing.range(&name, 0..HEAD_BYTES).await? else { return Ok(None) };
    let head = match Head::read(&first, size, groups)? {
        Some(head) => head,
        None => {
            let mut memory = crossing.reservation();
            memory.grow(usize::try_from(size).unwrap_or(usize::MAX))?;
            let (whole, size) = crossing.range(&name, 0..size).await?.ok_or_else(|| gone(&name))?;
            let short = || Error::data("an object of an exchange is damaged: its head ends early");
            Head::read(&whole, size, groups)?.ok_or_else(short)?
        }
    };
    let mut stretches = Vec::new();
    for (number, part) in head.parts.iter().enumerate() {
        let name: Arc<str> = part_name(crossing, sender, head.attempt, number as u64).into();
        let of_part = part.runs_from(0, |group| mine.contains(&group));
        lock(&crossing.memory).grow(name.len() + of_part.len() * size_of::<Stretch>())?;
        let stretch = |(range, content)| Stretch { name: name.clone(), range, content };
        stretches.extend(of_part.into_iter().map(stretch));
    }
    Ok(Some(stretches))
}

/// What there is to read, once that is known.
#[derive(Debug, Default)]
pub(super) struct Found {
    token: Token,
    stretches: OnceLock<Result<Box<[Stretch]>>>,
}

impl Found {
    pub(super) fn set(&self, stretches: Result<Vec<Stretch>>) {
        drop(self.stretches.set(stretches.map(Vec::into_boxed_slice)));
        self.token.set_ready();
    }
}

/// What has come for this worker: a morsel for each run of row groups.
pub(super) struct Pieces {
    shared: Arc<Shared>,
    found: Arc<Found>,
    _ending: Ending,
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").field("found", &self.found).finish_non_exhaustive()
    }
}

impl Pieces {
    pub(super) fn new(shared: Arc<Shared>, found: Arc<Found>, ending: Ending) -> Pieces {
        Pieces { shared, found, _ending: ending }
    }

    fn stretches(&self) -> Result<&[Stretch]> {
        match self.found.stretches.get() {
            Some(Ok(stretches)) => Ok(stretches),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::internal("an exchange was read before it had come")),
        }
    }
}

impl SourceRun for Pieces {
    fn ready(&self) -> Option<Token> {
        Some(self.found.token.clone())
    }

    fn morsels(&self) -> usize {
        // One morsel to say what went wrong.
        self.stretches().map_or(1, <[Stretch]>::len)
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let stretch = self.stretches()?.get(morsel).cloned();
        let stretch = stretch.ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let Plan { layout, run, .. } = &self.shared.plan;
        let share = run.context.memory_bytes() / run.context.workers().max(1) / PIECE_SHARE;
        Ok(Box::new(PieceReader {
            shared: self.shared.clone(),
            at: stretch.range.start,
            piece_bytes: share.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX) as u64,
            rest: Vec::new(),
            checking: Checking::new(layout),
            coming: None,
            memory: Reservation::new(run.context.clone()),
            is_done: false,
            stretch,
        }))
    }
}

/// Reads a run of row groups piece by piece.
struct PieceReader {
    shared: Arc<Shared>,
    stretch: Stretch,
    /// The first byte that was not asked for.
    at: u64,
    piece_bytes: u64,
    /// The beginning of a packet whose end has not come.
    rest: Vec<u8>,
    checking: Checking,
    coming: Option<Coming>,
    /// For a piece, and what is left of the one before.
    memory: Reservation,
    is_done: bool,
}

/// A piece on its way.
struct Coming {
    token: Token,
    len: u64,
    bytes: Arc<Mutex<Option<Result<Option<(Bytes, u64)>>>>>,
    _ending: Ending,
}

impl PieceReader {
    fn ask(&mut self) -> Result<()> {
        let end = self.stretch.range.end.min(self.at.saturating_add(self.piece_bytes));
        let range = self.at..end;
        let len = end - self.at;
        // Once as it comes, once behind what is left of the piece before.
        self.memory.resize(self.rest.capacity() + 2 * len as usize)?;
        self.at = end;
        let coming = Coming::start(&self.shared, &self.stretch.name, range);
        self.coming = Some(coming);
        Ok(())
    }

    /// The tuples of a piece that has come.
    fn take(&mut self, bytes: &Bytes) -> Result<Option<Chunk>> {
        let Plan { layout, run, .. } = &self.shared.plan;
        run.counters.add("exchanged_bytes", bytes.len() as u64);
        self.rest.reserve_exact(bytes.len());
        self.rest.extend_from_slice(bytes);
        let rows = self.checking.rows(&mut self.rest, layout, &run.context)?;
        if self.at == self.stretch.range.end {
            self.checking.end(&self.rest, &self.stretch.content)?;
            self.is_done = true;
        }
        let is_some = !rows.is_empty();
        Ok(is_some.then(|| Chunk::new(vec![Column::Handles(vec![Handle::new(rows)].into())], 1)))
    }
}

impl Coming {
    fn start(shared: &Arc<Shared>, name: &Arc<str>, range: Range<u64>) -> Coming {
        let (token, len) = (Token::new(), range.end - range.start);
        let bytes: Arc<Mutex<Option<Result<Option<(Bytes, u64)>>>>> = Arc::default();
        let (done, came, shared, name) =
            (token.clone(), bytes.clone(), shared.clone(), name.clone());
        let io = shared.plan.crossing.task.io.clone();
        let read = async move {
            let read = shared.plan.crossing.range(&name, range).await;
            *lock(&came) = Some(read);
            done.set_ready();
        };
        Coming { token, len, bytes, _ending: Ending(io.spawn(read).abort_handle()) }
    }
}

impl Reader for PieceReader {
    fn step(&mut self) -> Result<Step> {
        while !self.is_done {
            let Some(coming) = self.coming.take() else {
                self.ask()?;
                continue;
            };
            if !coming.token.is_ready() {
                let token = coming.token.clone();
                self.coming = Some(coming);
                return Ok(Step::Blocked(token));
            }
            let read = lock(&coming.bytes).take().unwrap_or(Ok(None))?;
            let (bytes, _) = read.ok_or_else(|| gone(&self.stretch.name))?;
            if bytes.len() as u64 != coming.len {
                return Err(Error::data("an object of an exchange is damaged: it ends early"));
            }
            if let Some(chunk) = self.take(&bytes)? {
                return Ok(Step::HasOutput(chunk));
            }
        }
        Ok(Step::Done)
    }
}
