//! Aggregates over frames.
//!
//! Over whole partitions, each partition is a group. Otherwise each row has a state of its own, and
//! the states of a frame are merged. Functions whose states cannot be merged so are computed for
//! each frame from its rows; equal frames of neighbors once.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use tessera_context::Run;
use tessera_context::interrupt::check_here;
use tessera_functions::Library;
use tessera_state::aggregate::{Area, Call, Groups, Program, Ranges};
use tessera_types::{Field, Result, Tuple};

use super::batch::Batch;
use super::call::{Exclude, WindowCall};
use super::exclude::pieces;
use super::frame::{BoundFrame, Frames};

/// Result rows for which states are held at once; few in tests, so that batches have many blocks.
const BLOCK_ROWS: usize = if cfg!(test) { 48 } else { 65_536 };
/// Blocks together read at most this many times the rows of a batch; otherwise there is one block.
const BLOCK_READS_MAX: usize = 4;
/// Rows of frames that are aggregated at once where states cannot be merged.
const EXPANDED_ROWS: usize = 262_144;

/// Aggregates over the same frames.
#[derive(Debug)]
pub(super) struct FrameAggregates {
    pub(super) program: Program,
    pub(super) frame: BoundFrame,
    /// The results' positions among all calls.
    pub(super) outputs: Vec<usize>,
}

/// Returns an aggregate of the program for a window call.
pub(super) fn aggregate_call(call: &WindowCall) -> Call {
    Call {
        name: call.name.clone(),
        function: call.function.clone(),
        args: call.args.clone(),
        distinct: call.distinct,
        filter: call.filter.clone(),
        order_by: call.order_by.clone(),
        limit: None,
    }
}

/// Binds the aggregates among the calls, grouped by their frames. `fields` are the results.
pub(super) fn bind(
    calls: &[WindowCall],
    fields: &[Field],
    tuple: &Tuple,
    parameters: &Tuple,
    library: &Arc<Library>,
) -> Result<Vec<FrameAggregates>> {
    let mut bound: Vec<FrameAggregates> = Vec::new();
    let is_aggregate = |position: &usize| calls[*position].is_aggregate();
    for position in (0..calls.len()).filter(is_aggregate) {
        if bound.iter().any(|known| known.outputs.contains(&position)) {
            continue;
        }
        let frame = calls[position].frame();
        let same = |other: &usize| is_aggregate(other) && calls[*other].frame() == frame;
        let outputs: Vec<usize> = (position..calls.len()).filter(same).collect();
        let list: Vec<Call> =
            outputs.iter().map(|output| aggregate_call(&calls[*output])).collect();
        let results: Vec<Field> = outputs.iter().map(|output| fields[*output].clone()).collect();
        bound.push(FrameAggregates {
            program: Program::bind(&list, &results, tuple, parameters, library, 0)?,
            frame: BoundFrame::new(&frame, tuple, parameters, library)?,
            outputs,
        });
    }
    Ok(bound)
}

impl FrameAggregates {
    /// Returns the results for all rows of a batch, in the order of `outputs`.
    ///
    /// # Errors
    /// An argument or an aggregate raises an error.
    pub(super) fn evaluate(&self, batch: &Batch, run: &Run) -> Result<Vec<ArrayRef>> {
        let exclude = self.frame.spec.exclude;
        if self.frame.is_whole_partition() && exclude == Exclude::Nothing {
            return self.whole_partitions(batch, run);
        }
        let pieces = pieces(self.frame.frames(batch, run)?, exclude, batch);
        let rows = batch.rows();
        let blocks = (0..rows).step_by(BLOCK_ROWS);
        let mut blocks: Vec<Range<usize>> =
            blocks.map(|start| start..rows.min(start + BLOCK_ROWS)).collect();
        let reads: usize = blocks.iter().map(|block| span(&pieces, block).len()).sum();
        if reads > BLOCK_READS_MAX * rows {
            blocks = vec![0..rows];
        }
        let mut results: Vec<Vec<ArrayRef>> = Vec::new();
        for block in blocks {
            match self.merged(&pieces, block, batch, run)? {
                Some(merged) => results.push(merged),
                None => return self.recomputed(&pieces, batch, run),
            }
        }
        concatenated(&results)
    }

    fn whole_partitions(&self, batch: &Batch, run: &Run) -> Result<Vec<ArrayRef>> {
        let mut groups = Vec::with_capacity(batch.rows());
        for (number, span) in batch.partition_spans().enumerate() {
            groups.resize(span.end as usize, number as u32);
        }
        let results = self.grouped(&batch.chunk, &groups, batch.partitions.len() - 1, run)?;
        let rows = UInt32Array::from(groups);
        results.iter().map(|array| Ok(arrow::compute::take(array, &rows, None)?)).collect()
    }

    /// Aggregates the rows of each group.
    fn grouped(
        &self,
        chunk: &tessera_vector::Chunk,
        list: &[u32],
        count: usize,
        run: &Run,
    ) -> Result<Vec<ArrayRef>> {
        let mut states = self.program.make()?;
        let mut area = area(self.program.stride(), count);
        let groups = Groups::each(list, (0, 0));
        self.program.update(None, &mut states, &mut area, chunk, &groups, run)?;
        self.program.finish(&mut states, &mut area)
    }

    /// Merges the states of the rows of each frame of a block; `None` if a function cannot do that.
    fn merged(
        &self,
        pieces: &[Frames],
        block: Range<usize>,
        batch: &Batch,
        run: &Run,
    ) -> Result<Option<Vec<ArrayRef>>> {
        let Range { start: first, end: last } = span(pieces, &block);
        let count = (last - first) as usize;
        let mut states = self.program.make()?;
        let mut from = area(self.program.stride(), count);
        if count > 0 {
            let groups: Vec<u32> = (0..count as u32).collect();
            let chunk = batch.chunk.slice(first as usize, count);
            let groups = Groups::each(&groups, (0, u64::from(first)));
            self.program.update(None, &mut states, &mut from, &chunk, &groups, run)?;
        }
        let mut into = area(self.program.stride(), block.len());
        for piece in pieces {
            let shifted = piece.shifted(&block, first);
            let ranges = Ranges { starts: &shifted.starts, ends: &shifted.ends };
            for state in &mut states {
                if !state.merge_ranges(&from, &ranges, &mut into)? {
                    return Ok(None);
                }
            }
        }
        self.program.finish(&mut states, &mut into).map(Some)
    }

    /// Aggregates the rows of each frame anew; equal frames of neighbors once.
    fn recomputed(&self, pieces: &[Frames], batch: &Batch, run: &Run) -> Result<Vec<ArrayRef>> {
        let mut blocks = Vec::new();
        let mut frame_of_row: Vec<u32> = Vec::with_capacity(batch.rows());
        let (mut rows, mut groups): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let (mut frames, mut done) = (0u32, 0u32);
        for row in 0..batch.rows() {
            let is_same = |piece: &Frames| row > 0 && piece.is_like_before(row);
            if !pieces.iter().all(is_same) {
                if rows.len() >= EXPANDED_ROWS {
                    blocks.push(self.expanded(
                        batch,
                        &mut rows,
                        &mut groups,
                        frames - done,
                        run,
                    )?);
                    done = frames;
                }
                for piece in pieces {
                    let before = rows.len();
                    rows.extend(piece.starts[row]..piece.ends[row]);
                    groups.resize(groups.len() + rows.len() - before, frames - done);
                }
                frames += 1;
            }
            frame_of_row.push(frames - 1);
        }
        blocks.push(self.expanded(batch, &mut rows, &mut groups, frames - done, run)?);
        let results = concatenated(&blocks)?;
        let frame_of_row = UInt32Array::from(frame_of_row);
        results.iter().map(|array| Ok(arrow::compute::take(array, &frame_of_row, None)?)).collect()
    }

    fn expanded(
        &self,
        batch: &Batch,
        rows: &mut Vec<u32>,
        groups: &mut Vec<u32>,
        count: u32,
        run: &Run,
    ) -> Result<Vec<ArrayRef>> {
        check_here()?;
        let (rows, groups) = (std::mem::take(rows), std::mem::take(groups));
        let rows = UInt32Array::from(rows);
        let columns = batch.chunk.stored().iter().map(|column| column.take(&rows));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let chunk = tessera_vector::Chunk::new(columns, groups.len());
        self.grouped(&chunk, &groups, count as usize, run)
    }
}

/// The rows from the first one of these frames to the last one.
fn span(pieces: &[Frames], rows: &Range<usize>) -> Range<u32> {
    let filled = || pieces.iter().flat_map(|piece| piece.filled(rows));
    let first = filled().map(|(start, _)| start).min().unwrap_or(0);
    first..filled().map(|(_, end)| end).max().unwrap_or(0)
}

impl Frames {
    /// Iterates over the frames of these rows that are not empty.
    fn filled(&self, rows: &Range<usize>) -> impl Iterator<Item = (u32, u32)> {
        let (starts, ends) = (&self.starts[rows.clone()], &self.ends[rows.clone()]);
        starts.iter().copied().zip(ends.iter().copied()).filter(|(start, end)| start < end)
    }

    /// Returns the frames of these rows, counted from `first`; empty frames stay empty.
    fn shifted(&self, rows: &Range<usize>, first: u32) -> Frames {
        let shifted = |borders: &[u32]| {
            borders[rows.clone()].iter().map(|border| border.saturating_sub(first)).collect()
        };
        Frames { starts: shifted(&self.starts), ends: shifted(&self.ends) }
    }

    fn is_like_before(&self, row: usize) -> bool {
        self.starts[row] == self.starts[row - 1] && self.ends[row] == self.ends[row - 1]
    }
}

fn area(stride: usize, groups: usize) -> Area {
    let mut area = Area::new(stride);
    area.reserve(groups);
    area.set_groups(groups);
    area
}

fn concatenated(blocks: &[Vec<ArrayRef>]) -> Result<Vec<ArrayRef>> {
    if let [only] = blocks {
        return Ok(only.clone());
    }
    let outputs = blocks.first().map_or(0, Vec::len);
    (0..outputs)
        .map(|output| {
            let parts: Vec<&dyn arrow::array::Array> =
                blocks.iter().map(|block| &*block[output]).collect();
            Ok(arrow::compute::concat(&parts)?)
        })
        .collect()
}
