//! The receiver of an exchange in pieces.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use tessera_context::{Reservation, Token, lock};
use tessera_operator::{Reader, SourceRun, Step};
use tessera_types::{Error, Result};
use tessera_vector::{Chunk, Column, Handle};

use super::head::Head;
use super::{PiecesSetup, Shared, part_name};
use crate::object::{GroupSummary, PacketChecker};
use crate::store_exchange::{StoreExchange, object_missing};
use crate::task::AbortOnDrop;

/// The share of a thread's budget that is read at once, and its bounds: every thread reads several
/// row groups at the same time.
const PIECE_SHARE: usize = 256;
const PIECE_BYTES_MIN: usize = 32 << 10;
const PIECE_BYTES_MAX: usize = 4 << 20;
/// The number of bytes of the first read of a head.
const HEAD_BYTES: u64 = 16 << 10;

/// Neighboring row groups of a part that are for this worker.
#[derive(Debug, Clone)]
pub(super) struct GroupRange {
    name: Arc<str>,
    range: Range<u64>,
    content: GroupSummary,
}

/// Finds the row groups that all senders have for this worker; waits for their heads.
pub(super) async fn find(store_exchange: &StoreExchange) -> Result<Vec<GroupRange>> {
    let mine = store_exchange.group_map.receiver_groups(store_exchange.task.order.index);
    if mine.is_empty() {
        return Ok(Vec::new());
    }
    let senders = if store_exchange.only_first { 1 } else { store_exchange.task.order.workers };
    // This worker's own head is read as well: another attempt's head may have been first.
    let found = store_exchange
        .poll_senders((0..senders).collect(), |sender| open(store_exchange, sender, &mine))
        .await?;
    Ok(found.into_values().flatten().collect())
}

/// Returns the row groups that a sender has for this worker; `None` if its head does not exist yet.
async fn open(
    store_exchange: &StoreExchange,
    sender: usize,
    mine: &Range<usize>,
) -> Result<Option<Vec<GroupRange>>> {
    let (name, groups) = (store_exchange.name(sender), store_exchange.group_map.groups());
    let Some((first, size)) = store_exchange.range(&name, 0..HEAD_BYTES).await? else {
        return Ok(None);
    };
    let head = match Head::read(&first, size, groups)? {
        Some(head) => head,
        None => {
            let mut memory = store_exchange.reservation();
            memory.grow(usize::try_from(size).unwrap_or(usize::MAX))?;
            let (whole, size) =
                store_exchange.range(&name, 0..size).await?.ok_or_else(|| object_missing(&name))?;
            let short = || Error::data("damaged exchange object: truncated head");
            Head::read(&whole, size, groups)?.ok_or_else(short)?
        }
    };
    let mut ranges = Vec::new();
    for (number, part) in head.parts.iter().enumerate() {
        let name: Arc<str> = part_name(store_exchange, sender, head.attempt, number as u64).into();
        let of_part = part.runs_from(0, |group| mine.contains(&group));
        lock(&store_exchange.memory).grow(name.len() + of_part.len() * size_of::<GroupRange>())?;
        let group_range = |(range, content)| GroupRange { name: name.clone(), range, content };
        ranges.extend(of_part.into_iter().map(group_range));
    }
    Ok(Some(ranges))
}

/// The row groups to read, once they are known.
#[derive(Debug, Default)]
pub(super) struct ReceiverRanges {
    token: Token,
    ranges: OnceLock<Result<Box<[GroupRange]>>>,
}

impl ReceiverRanges {
    pub(super) fn set(&self, ranges: Result<Vec<GroupRange>>) {
        drop(self.ranges.set(ranges.map(Vec::into_boxed_slice)));
        self.token.set_ready();
    }
}

/// The output of an exchange in pieces: a morsel for each range of row groups.
pub(super) struct Pieces {
    shared: Arc<Shared>,
    found: Arc<ReceiverRanges>,
    _abort_guard: AbortOnDrop,
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").field("found", &self.found).finish_non_exhaustive()
    }
}

impl Pieces {
    pub(super) fn new(
        shared: Arc<Shared>,
        found: Arc<ReceiverRanges>,
        abort_guard: AbortOnDrop,
    ) -> Pieces {
        Pieces { shared, found, _abort_guard: abort_guard }
    }

    fn ranges(&self) -> Result<&[GroupRange]> {
        match self.found.ranges.get() {
            Some(Ok(ranges)) => Ok(ranges),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::internal("exchange read before its input arrived")),
        }
    }
}

impl SourceRun for Pieces {
    fn ready(&self) -> Option<Token> {
        Some(self.found.token.clone())
    }

    fn morsels(&self) -> usize {
        // One morsel reports the error.
        self.ranges().map_or(1, <[GroupRange]>::len)
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let group_range = self.ranges()?.get(morsel).cloned();
        let group_range =
            group_range.ok_or_else(|| Error::internal("unknown morsel of an exchange"))?;
        let PiecesSetup { layout, run, .. } = &self.shared.setup;
        let share = run.context.memory_bytes() / run.context.workers().max(1) / PIECE_SHARE;
        Ok(Box::new(PieceReader {
            shared: self.shared.clone(),
            at: group_range.range.start,
            piece_bytes: share.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX) as u64,
            rest: Vec::new(),
            checker: PacketChecker::new(layout),
            incoming: None,
            memory: Reservation::new(run.context.clone()),
            is_done: false,
            group_range,
        }))
    }
}

/// Reads a range of row groups piece by piece.
struct PieceReader {
    shared: Arc<Shared>,
    group_range: GroupRange,
    /// The first byte that was not requested.
    at: u64,
    piece_bytes: u64,
    /// The beginning of a packet that has not been read to its end.
    rest: Vec<u8>,
    checker: PacketChecker,
    incoming: Option<IncomingPiece>,
    /// For a piece and the rest of the one before.
    memory: Reservation,
    is_done: bool,
}

/// A piece being read.
struct IncomingPiece {
    token: Token,
    len: u64,
    bytes: Arc<Mutex<Option<Result<Option<(Bytes, u64)>>>>>,
    _abort_guard: AbortOnDrop,
}

impl PieceReader {
    fn request_next(&mut self) -> Result<()> {
        let end = self.group_range.range.end.min(self.at.saturating_add(self.piece_bytes));
        let range = self.at..end;
        let len = end - self.at;
        // A piece is in memory twice: as it is read, and appended to the rest of the one before.
        self.memory.resize(self.rest.capacity() + 2 * len as usize)?;
        self.at = end;
        let incoming = IncomingPiece::start(&self.shared, &self.group_range.name, range);
        self.incoming = Some(incoming);
        Ok(())
    }

    /// Returns the tuples of a piece that was read.
    fn take(&mut self, bytes: &Bytes) -> Result<Option<Chunk>> {
        let PiecesSetup { layout, run, .. } = &self.shared.setup;
        run.counters.add("exchanged_bytes", bytes.len() as u64);
        self.rest.reserve_exact(bytes.len());
        self.rest.extend_from_slice(bytes);
        let rows = self.checker.rows(&mut self.rest, layout, &run.context)?;
        if self.at == self.group_range.range.end {
            self.checker.end(&self.rest, &self.group_range.content)?;
            self.is_done = true;
        }
        let is_some = !rows.is_empty();
        Ok(is_some.then(|| Chunk::new(vec![Column::Handles(vec![Handle::new(rows)].into())], 1)))
    }
}

impl IncomingPiece {
    fn start(shared: &Arc<Shared>, name: &Arc<str>, range: Range<u64>) -> IncomingPiece {
        let (token, len) = (Token::new(), range.end - range.start);
        let bytes: Arc<Mutex<Option<Result<Option<(Bytes, u64)>>>>> = Arc::default();
        let (done, result, shared, name) =
            (token.clone(), bytes.clone(), shared.clone(), name.clone());
        let io = shared.setup.store_exchange.task.io.clone();
        let read = async move {
            let read = shared.setup.store_exchange.range(&name, range).await;
            *lock(&result) = Some(read);
            done.set_ready();
        };
        IncomingPiece {
            token,
            len,
            bytes,
            _abort_guard: AbortOnDrop(io.spawn(read).abort_handle()),
        }
    }
}

impl Reader for PieceReader {
    fn step(&mut self) -> Result<Step> {
        while !self.is_done {
            let Some(incoming) = self.incoming.take() else {
                self.request_next()?;
                continue;
            };
            if !incoming.token.is_ready() {
                let token = incoming.token.clone();
                self.incoming = Some(incoming);
                return Ok(Step::Blocked(token));
            }
            let read = lock(&incoming.bytes).take().unwrap_or(Ok(None))?;
            let (bytes, _) = read.ok_or_else(|| object_missing(&self.group_range.name))?;
            if bytes.len() as u64 != incoming.len {
                return Err(Error::data("damaged exchange object: truncated part"));
            }
            if let Some(chunk) = self.take(&bytes)? {
                return Ok(Step::HasOutput(chunk));
            }
        }
        Ok(Step::Done)
    }
}
