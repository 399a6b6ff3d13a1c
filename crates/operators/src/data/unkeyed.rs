//! What joins without equal keys share: the chunks of their side, and the tuples that they yield
//! once all pairs are known.

use std::sync::Arc;

use arrow::array::BooleanArray;

use tessera_operator::{Reader, SourceRun, Step};
use tessera_rows::{Collected, SpillableChunk};
use tessera_state::join::{JoinKind, MatchBitmap, null_columns, select_positions};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, Column};

/// Returns the chunks of a side, each with the number of its first tuple, and the number of all
/// tuples.
pub(super) fn numbered_chunks(side: &Collected) -> Result<(Vec<(u64, SpillableChunk)>, usize)> {
    let mut chunks = Vec::new();
    let mut rows = 0;
    for kept in side.spillable_chunks().iter().filter(|kept| !kept.is_empty()) {
        chunks.push((rows, kept.compact()?));
        rows += kept.rows() as u64;
    }
    Ok((chunks, rows as usize))
}

/// Returns what a chunk of the stream yields beside its pairs. `found` marks the tuples with a
/// match, `possible` those of which a match is unknown; it is empty if there are none.
pub(super) fn decided(
    kind: JoinKind,
    input: &Chunk,
    (found, possible): (&[bool], &[bool]),
    build: &Tuple,
) -> Result<Option<Chunk>> {
    let is_possible = |row: usize| possible.get(row).copied().unwrap_or(false);
    if kind == JoinKind::Mark {
        let mut columns = input.stored().to_vec();
        let mark = |row: usize| (found[row] || !is_possible(row)).then_some(found[row]);
        let marks = (0..found.len()).map(mark).collect::<BooleanArray>();
        columns.push(Column::Plain(Arc::new(marks)));
        return Ok(Some(input.with_stored(columns)));
    }
    if !kind.keeps_stream() && !matches!(kind, JoinKind::Semi | JoinKind::Anti) {
        return Ok(None);
    }
    let wanted = kind == JoinKind::Semi;
    let is_kept = |row: &usize| found[*row] == wanted && (wanted || !is_possible(*row));
    let positions: Vec<u32> = (0..input.rows()).filter(is_kept).map(|row| row as u32).collect();
    if positions.is_empty() {
        return Ok(None);
    }
    let chunk = select_positions(input, &positions);
    if !kind.keeps_stream() {
        return Ok(Some(chunk));
    }
    let mut columns = chunk.stored().to_vec();
    columns.extend(null_columns(build, chunk.rows_stored())?);
    Ok(Some(chunk.with_stored(columns)))
}

/// The matched or unmatched tuples of the side; one morsel per chunk of the side.
#[derive(Debug)]
pub(super) struct SideRest {
    pub(super) kind: JoinKind,
    /// The fields of the stream.
    pub(super) stream: Tuple,
    pub(super) chunks: Arc<[(u64, SpillableChunk)]>,
    pub(super) matched: Arc<MatchBitmap>,
}

struct SideRestReader {
    chunk: Option<Chunk>,
}

impl SourceRun for SideRest {
    fn morsels(&self) -> usize {
        self.chunks.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let Some((first, kept)) = self.chunks.get(morsel) else {
            return Err(Error::internal("a morsel that does not exist"));
        };
        let side = kept.chunk()?;
        let wanted = self.kind == JoinKind::BuildSemi;
        let positions: Vec<u32> = (0..side.rows() as u32)
            .filter(|position| self.matched.get(first + u64::from(*position)) == wanted)
            .collect();
        let mut columns = Vec::new();
        if self.kind.yields_pairs() {
            columns = null_columns(&self.stream, side.rows_stored())?;
        }
        columns.extend(side.stored().iter().cloned());
        let chunk = select_positions(&side.with_stored(columns), &positions);
        Ok(Box::new(SideRestReader { chunk: Some(chunk).filter(|chunk| !chunk.is_empty()) }))
    }
}

impl Reader for SideRestReader {
    fn step(&mut self) -> Result<Step> {
        Ok(self.chunk.take().map_or(Step::Done, Step::HasOutput))
    }
}
