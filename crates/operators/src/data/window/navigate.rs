//! Functions that pick the value of another row: `lag`, `lead`, `first_value`, `last_value` and
//! `nth_value`.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, new_null_array};
use arrow::compute::{cast, interleave};
use arrow::datatypes::{DataType, Int64Type};
use tessera_types::{Error, Result, SqlState};

use super::batch::{Batch, Span};
use super::frame::Frames;

/// The rows that count as values: all, or those that are not NULL.
struct Values<'a> {
    array: &'a ArrayRef,
    /// The rows that are not NULL, and for each row how many of them come before it. `None` if all
    /// rows count.
    filled: Option<(Vec<u32>, Vec<u32>)>,
}

impl<'a> Values<'a> {
    fn new(array: &'a ArrayRef, ignore_nulls: bool) -> Values<'a> {
        let nulls = array.logical_nulls().filter(|nulls| ignore_nulls && nulls.null_count() > 0);
        let filled = nulls.map(|nulls| {
            let mut before = Vec::with_capacity(array.len() + 1);
            let mut rows = Vec::new();
            for row in 0..array.len() {
                before.push(rows.len() as u32);
                if nulls.is_valid(row) {
                    rows.push(row as u32);
                }
            }
            before.push(rows.len() as u32);
            (rows, before)
        });
        Values { array, filled }
    }

    /// The number of values in a span.
    fn count(&self, span: Span) -> u32 {
        match &self.filled {
            _ if span.start >= span.end => 0,
            None => span.end - span.start,
            Some((_, before)) => before[span.end as usize] - before[span.start as usize],
        }
    }

    /// The row of value `number` of a span, which has more values than that.
    fn row(&self, span: Span, number: u32) -> u32 {
        match &self.filled {
            None => span.start + number,
            Some((rows, before)) => rows[(before[span.start as usize] + number) as usize],
        }
    }

    /// The row of the value that is `offset` values after a row of the partition (before it if
    /// negative). Zero is the row itself.
    fn neighbor(&self, row: u32, offset: i64, partition: Span) -> Option<u32> {
        let inside = |at: i64, low: u32, high: u32| {
            (i64::from(low) <= at && at < i64::from(high)).then_some(at as u32)
        };
        match &self.filled {
            _ if offset == 0 => Some(row),
            None => {
                let at = i64::from(row).saturating_add(offset);
                inside(at, partition.start, partition.end)
            }
            Some((rows, before)) => {
                let is_filled = before[row as usize] < before[row as usize + 1];
                let first = i64::from(before[row as usize]);
                // From a NULL, the next value is the first one behind it.
                let at = match offset > 0 && !is_filled {
                    true => first.saturating_add(offset - 1),
                    false => first.saturating_add(offset),
                };
                let (low, high) =
                    (before[partition.start as usize], before[partition.end as usize]);
                inside(at, low, high).map(|at| rows[at as usize])
            }
        }
    }

    /// Takes these rows; `None` is NULL, or the default of the row where there is one.
    fn take(&self, rows: &[Option<u32>], default: Option<&ArrayRef>) -> Result<ArrayRef> {
        let null = new_null_array(self.array.data_type(), 1);
        let default = default.map(|array| cast(array, self.array.data_type())).transpose()?;
        let arrays: [&dyn Array; 2] = [&**self.array, &**default.as_ref().unwrap_or(&null)];
        let place = |(row, from): (usize, &Option<u32>)| match from {
            Some(from) => (0, *from as usize),
            None if default.is_some() => (1, row),
            None => (1, 0),
        };
        let places: Vec<(usize, usize)> = rows.iter().enumerate().map(place).collect();
        Ok(interleave(&arrays, &places)?)
    }
}

fn integers(array: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

/// `lag` (`direction` is -1) and `lead` (1): the value of a row before or after.
pub(super) fn neighbor(
    batch: &Batch,
    args: &[ArrayRef],
    direction: i64,
    ignore_nulls: bool,
) -> Result<ArrayRef> {
    let array = args.first().ok_or_else(|| Error::internal("lag or lead without a value"))?;
    let values = Values::new(array, ignore_nulls);
    let offsets = args.get(1).map(integers).transpose()?;
    let mut rows = Vec::with_capacity(batch.rows());
    let mut is_unknown = Vec::new();
    for partition in batch.partition_spans() {
        for row in partition.start..partition.end {
            let offset = match &offsets {
                None => Some(1),
                Some(offsets) => {
                    offsets.is_valid(row as usize).then(|| offsets.value(row as usize))
                }
            };
            rows.push(match offset {
                Some(offset) => values.neighbor(row, offset.saturating_mul(direction), partition),
                None => {
                    is_unknown.push(row);
                    None
                }
            });
        }
    }
    let taken = values.take(&rows, args.get(2))?;
    if is_unknown.is_empty() {
        return Ok(taken);
    }
    // An offset of NULL gives NULL, not the default.
    let mut mask = vec![false; rows.len()];
    is_unknown.iter().for_each(|row| mask[*row as usize] = true);
    Ok(arrow::compute::nullif(&taken, &mask.into())?)
}

/// `first_value`, `last_value` and `nth_value` over frames in pieces.
pub(super) fn in_frame(
    function: &str,
    pieces: &[Frames],
    args: &[ArrayRef],
    ignore_nulls: bool,
) -> Result<Option<ArrayRef>> {
    let array = match (function, args.first()) {
        ("first_value" | "last_value" | "nth_value", Some(array)) => array,
        _ => return Ok(None),
    };
    let values = Values::new(array, ignore_nulls);
    let positions = args.get(1).map(integers).transpose()?;
    let span = |piece: &Frames, row: usize| Span { start: piece.starts[row], end: piece.ends[row] };
    let mut rows = Vec::with_capacity(array.len());
    for row in 0..array.len() {
        let spans = || pieces.iter().map(|piece| span(piece, row));
        rows.push(match (function, &positions) {
            ("last_value", _) => {
                let last = spans().rev().find(|span| values.count(*span) > 0);
                last.map(|span| values.row(span, values.count(span) - 1))
            }
            ("nth_value", Some(positions)) if positions.is_null(row) => None,
            ("nth_value", Some(positions)) => nth(spans(), &values, positions.value(row))?,
            _ => nth(spans(), &values, 1)?,
        });
    }
    values.take(&rows, None).map(Some)
}

fn nth(
    spans: impl Iterator<Item = Span>,
    values: &Values<'_>,
    position: i64,
) -> Result<Option<u32>> {
    if position < 1 {
        let message = format!("argument of nth_value must be greater than zero, it is {position}");
        return Err(Error::data(message).with_state(SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE));
    }
    let mut left = position - 1;
    for span in spans {
        let count = i64::from(values.count(span));
        if left < count {
            return Ok(Some(values.row(span, left as u32)));
        }
        left -= count;
    }
    Ok(None)
}
