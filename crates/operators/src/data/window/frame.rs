//! The frame of each row: a range of rows of its partition.

use arrow::array::{Array, AsArray, Int64Array};
use arrow::datatypes::Int64Type;
use tessera_context::Run;
use tessera_functions::{BoundExpr, Library};
use tessera_types::{Error, Result, SqlState, Tuple};

use super::batch::Batch;
use super::call::{Bound, FrameSpec, Unit};
use super::limits::{BoundLimit, Keys};

/// A frame bound to its input.
#[derive(Debug)]
pub(super) struct BoundFrame {
    pub(super) spec: FrameSpec,
    start: Option<BoundExpr>,
    end: Option<BoundExpr>,
    /// The position of the order key.
    key: Option<usize>,
}

/// The first row of each frame, and the row after its last one. A frame is empty if the latter is
/// not greater.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frames {
    pub(super) starts: Vec<u32>,
    pub(super) ends: Vec<u32>,
}

/// One side of a frame, evaluated for a batch.
enum Side {
    Unbounded,
    Current,
    /// Rows or groups after the current one; negative for those before.
    Offset(Vec<i64>),
    Limit(BoundLimit),
}

impl BoundFrame {
    pub(super) fn new(
        spec: &FrameSpec,
        tuple: &Tuple,
        parameters: &Tuple,
        library: &std::sync::Arc<Library>,
    ) -> Result<BoundFrame> {
        let bind = |bound: &Bound| match bound {
            Bound::Unbounded | Bound::Current => Ok(None),
            Bound::Preceding(expr) | Bound::Following(expr) | Bound::Limit(expr) => {
                BoundExpr::new(expr, tuple, parameters, library).map(Some)
            }
        };
        let key = spec.key.as_ref().map(|key| {
            tuple.index_of(&key.field).ok_or_else(|| Error::internal("the key of a frame"))
        });
        Ok(BoundFrame {
            spec: spec.clone(),
            start: bind(&spec.start)?,
            end: bind(&spec.end)?,
            key: key.transpose()?,
        })
    }

    /// Whether the frame of every row is its whole partition.
    pub(super) fn is_whole_partition(&self) -> bool {
        self.spec.start == Bound::Unbounded && self.spec.end == Bound::Unbounded
    }

    /// Computes the frames of a batch.
    ///
    /// # Errors
    /// An offset is NULL or negative, or cannot be evaluated.
    pub(super) fn frames(&self, batch: &Batch, run: &Run) -> Result<Frames> {
        let start = self.side(&self.spec.start, self.start.as_ref(), "starting", batch, run)?;
        let end = self.side(&self.spec.end, self.end.as_ref(), "ending", batch, run)?;
        Ok(match self.spec.unit {
            Unit::Rows => rows(batch, &start, &end),
            Unit::Groups => groups(batch, &start, &end),
            Unit::Range => ranges(batch, &start, &end),
        })
    }

    fn side(
        &self,
        bound: &Bound,
        expr: Option<&BoundExpr>,
        which: &str,
        batch: &Batch,
        run: &Run,
    ) -> Result<Side> {
        let evaluated = || {
            let expr = expr.ok_or_else(|| Error::internal("a frame without its expression"))?;
            expr.evaluate(&batch.chunk, run)?.plain()
        };
        Ok(match bound {
            Bound::Unbounded => Side::Unbounded,
            Bound::Current => Side::Current,
            Bound::Preceding(_) => {
                let offsets = offsets(evaluated()?.as_primitive::<Int64Type>(), which)?;
                Side::Offset(offsets.into_iter().map(|offset| -offset).collect())
            }
            Bound::Following(_) => {
                Side::Offset(offsets(evaluated()?.as_primitive::<Int64Type>(), which)?)
            }
            Bound::Limit(_) => {
                let (Some(position), Some(key)) = (self.key, &self.spec.key) else {
                    return Err(Error::internal("a frame with a limit and no key"));
                };
                let keys = Keys::new(&batch.chunk.column(position)?.plain()?, key)?;
                Side::Limit(BoundLimit::new(keys, &evaluated()?, key)?)
            }
        })
    }
}

fn offsets(values: &Int64Array, which: &str) -> Result<Vec<i64>> {
    let wrong = |what: &str, state| {
        let message = format!("frame {which} offset must not be {what}");
        Err(Error::data(message).with_state(state))
    };
    if values.null_count() > 0 {
        return wrong("null", SqlState::NULL_VALUE_NOT_ALLOWED);
    }
    if values.values().iter().any(|offset| *offset < 0) {
        return wrong("negative", SqlState::INVALID_FRAME_OFFSET);
    }
    Ok(values.values().to_vec())
}

/// Adds an offset to a position of a partition, between `low` and `high`.
fn shifted(position: u32, offset: i64, low: u32, high: u32) -> u32 {
    i64::from(position).saturating_add(offset).clamp(i64::from(low), i64::from(high)) as u32
}

fn rows(batch: &Batch, start: &Side, end: &Side) -> Frames {
    let mut frames = Frames::with_capacity(batch.rows());
    for partition in batch.partition_spans() {
        for row in partition.start..partition.end {
            let (low, high) = (partition.start, partition.end);
            frames.starts.push(match start {
                Side::Offset(offsets) => shifted(row, offsets[row as usize], low, high),
                Side::Unbounded => low,
                Side::Current | Side::Limit(_) => row,
            });
            frames.ends.push(match end {
                Side::Offset(offsets) => shifted(row + 1, offsets[row as usize], low, high),
                Side::Unbounded => high,
                Side::Current | Side::Limit(_) => row + 1,
            });
        }
    }
    frames
}

fn groups(batch: &Batch, start: &Side, end: &Side) -> Frames {
    let mut frames = Frames::with_capacity(batch.rows());
    for (partition, borders) in batch.partitions_with_peers() {
        let count = borders.len() as u32 - 1;
        for group in 0..count {
            for row in borders[group as usize]..borders[group as usize + 1] {
                frames.starts.push(match start {
                    Side::Offset(offsets) => {
                        borders[shifted(group, offsets[row as usize], 0, count) as usize]
                    }
                    Side::Unbounded => partition.start,
                    Side::Current | Side::Limit(_) => borders[group as usize],
                });
                frames.ends.push(match end {
                    Side::Offset(offsets) => {
                        borders[shifted(group + 1, offsets[row as usize], 0, count) as usize]
                    }
                    Side::Unbounded => partition.end,
                    Side::Current | Side::Limit(_) => borders[group as usize + 1],
                });
            }
        }
    }
    frames
}

fn ranges(batch: &Batch, start: &Side, end: &Side) -> Frames {
    let mut frames = Frames::with_capacity(batch.rows());
    for (partition, borders) in batch.partitions_with_peers() {
        let mut first = (start.limit(), partition.start);
        let mut last = (end.limit(), partition.start);
        for peers in super::batch::spans(borders) {
            for row in peers.start..peers.end {
                frames.starts.push(match (start, &mut first) {
                    (_, (Some(limit), from)) => limit.start(row, peers, partition, from),
                    (Side::Unbounded, _) => partition.start,
                    _ => peers.start,
                });
                frames.ends.push(match (end, &mut last) {
                    (_, (Some(limit), from)) => limit.end(row, peers, partition, from),
                    (Side::Unbounded, _) => partition.end,
                    _ => peers.end,
                });
            }
        }
    }
    frames
}

impl Side {
    fn limit(&self) -> Option<&BoundLimit> {
        match self {
            Side::Limit(limit) => Some(limit),
            _ => None,
        }
    }
}

impl Frames {
    fn with_capacity(rows: usize) -> Frames {
        Frames { starts: Vec::with_capacity(rows), ends: Vec::with_capacity(rows) }
    }
}
