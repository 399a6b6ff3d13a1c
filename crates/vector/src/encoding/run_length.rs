//! Run-length encoding: each value once, with the row at which its run ends.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, DictionaryArray,
    UInt32Array, make_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::take;
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use tessera_types::Result;

use super::{Aggregate, Condition, Encoding, Offer, Values, Verdict};
use crate::column::{Column, compact_strings};
use crate::segment::Positions;

/// Rows that are written at once.
const BLOCK_ROWS: usize = 8;

/// Run-length encoded values of a type that is not nested. A binary search finds the run of the
/// first row; decoding then advances run by run.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int64Array};
/// # use tessera_vector::encoding::{Encoding, RunLength};
/// # use tessera_vector::{Positions, Segment};
/// let values: ArrayRef = Arc::new(Int64Array::from([[5; 16], [9; 16]].concat()));
/// let segment = Segment::with(&values, &[RunLength::encode])?;
/// assert_eq!(segment.encoding(), "run_length");
/// assert_eq!(&segment.decode(&Positions::Range(1, 3))?.plain()?, &values.slice(1, 3));
/// # Ok::<(), tessera_types::Error>(())
/// ```
#[derive(Debug)]
pub struct RunLength {
    /// One value per run.
    values: ArrayRef,
    /// The end of each run (exclusive), ascending.
    ends: Box<[u32]>,
}

impl Encoding for RunLength {
    fn name(&self) -> &'static str {
        "run_length"
    }

    fn encode(values: &Values) -> Result<Option<Offer<'_>>> {
        let Some(ends) = values.run_ends().filter(|ends| !ends.is_empty() && !values.is_constant())
        else {
            return Ok(None);
        };
        let last = UInt32Array::from_iter_values(ends.iter().map(|end| end - 1));
        let of_runs = take(values.array(), &last, None)?;
        let null_bytes = if values.nulls().is_some() { ends.len().div_ceil(8) } else { 0 };
        let bytes =
            Column::Plain(of_runs.clone()).value_bytes() + null_bytes + size_of_val::<[u32]>(ends);
        Offer::new(bytes, move || {
            Ok(RunLength { values: compact_strings(&of_runs), ends: ends.into() })
        })
    }

    fn len(&self) -> usize {
        self.ends.last().map_or(0, |end| *end as usize)
    }

    fn bytes(&self) -> usize {
        self.values.get_array_memory_size() + size_of_val::<[u32]>(&self.ends)
    }

    fn decode(&self, rows: Range<usize>) -> Result<Column> {
        let runs = self.runs(&rows);
        if runs.len() == 1 {
            return Ok(Column::Constant(self.values.slice(runs.start, 1), rows.len()));
        }
        let nulls = self.nulls_of(&runs, &rows);
        macro_rules! fixed {
            ($native:ty) => {{
                let data = self.values.to_data();
                let values = &data.buffer::<$native>(0)[runs.clone()];
                let buffer =
                    Buffer::from_vec(self.repeated(&runs, &rows, |run| values[run - runs.start]));
                let data = ArrayData::builder(data.data_type().clone()).len(rows.len());
                Ok(Column::Plain(make_array(data.nulls(nulls).add_buffer(buffer).build()?)))
            }};
        }
        match (self.values.data_type(), self.values.data_type().primitive_width()) {
            (DataType::Boolean, _) => {
                let values = self.values.as_boolean().values();
                let bits = self.repeated_bits(&runs, &rows, |run| values.value(run));
                Ok(Column::Plain(Arc::new(BooleanArray::new(bits, nulls))))
            }
            // The layout of an interval may differ from that of a 16-byte integer.
            (DataType::Interval(_), _) => fixed!(IntervalMonthDayNano),
            (_, Some(1)) => fixed!(u8),
            (_, Some(2)) => fixed!(u16),
            (_, Some(4)) => fixed!(u32),
            (_, Some(8)) => fixed!(u64),
            (_, Some(16)) => fixed!(i128),
            // All chunks share one dictionary array of run values, so results computed for its
            // values can be reused.
            _ => {
                let keys = self.repeated(&runs, &rows, |run| run as u32);
                let keys = UInt32Array::new(keys.into(), nulls);
                Ok(Column::Dictionary(Arc::new(DictionaryArray::try_new(
                    keys,
                    self.values.clone(),
                )?)))
            }
        }
    }

    fn take(&self, positions: &[u32]) -> Result<Column> {
        let runs = self.runs_at(positions);
        Ok(match runs.first() {
            Some(first) if runs.iter().all(|run| run == first) => {
                Column::Constant(self.values.slice(*first as usize, 1), runs.len())
            }
            _ => Column::Plain(take(&self.values, &UInt32Array::from(runs), None)?),
        })
    }

    fn compare(&self, condition: &Condition, positions: &Positions) -> Result<BooleanArray> {
        match positions {
            Positions::Range(start, len) => {
                let rows = *start..start + len;
                let runs = self.runs(&rows);
                let truth = condition.of_plain(&self.values.slice(runs.start, runs.len()))?;
                let nulls = truth.nulls().map(|nulls| {
                    let bits =
                        self.repeated_bits(&runs, &rows, |run| nulls.is_valid(run - runs.start));
                    NullBuffer::new(bits)
                });
                let bits = self.repeated_bits(&runs, &rows, |run| truth.value(run - runs.start));
                Ok(BooleanArray::new(bits, nulls))
            }
            Positions::Listed(list) => {
                // Compare runs instead of rows, and only the runs that contain listed rows.
                let runs = self.runs_at(list);
                let mut distinct = runs.clone();
                distinct.sort_unstable();
                distinct.dedup();
                let values = take(&self.values, &UInt32Array::from(distinct.clone()), None)?;
                let truth = condition.of_plain(&values)?;
                let place = |run: &u32| distinct.binary_search(run).ok().map(|place| place as u32);
                let places: UInt32Array = runs.iter().map(place).collect();
                Ok(take(&truth, &places, None)?.as_boolean().clone())
            }
        }
    }

    fn verdict(&self, condition: &Condition) -> Result<Verdict> {
        Ok(match condition.of_plain(&self.values)?.true_count() {
            0 => Verdict::None,
            all if all == self.ends.len() => Verdict::All,
            _ => Verdict::Filter,
        })
    }

    fn aggregate(&self, aggregate: Aggregate) -> Result<Option<ArrayRef>> {
        let mut start = 0;
        let lens = self.ends.iter().map(|end| end - std::mem::replace(&mut start, *end));
        aggregate.of_runs(&self.values, lens)
    }
}

impl RunLength {
    /// The runs that overlap a range of rows.
    fn runs(&self, rows: &Range<usize>) -> Range<usize> {
        let first = self.ends.partition_point(|end| *end as usize <= rows.start);
        if rows.is_empty() {
            return first.min(self.values.len())..first.min(self.values.len());
        }
        let last = first + self.ends[first..].partition_point(|end| (*end as usize) < rows.end);
        first..last + 1
    }

    /// Finds the run of each position, by galloping from the previous one or by binary search.
    fn runs_at(&self, positions: &[u32]) -> Vec<u32> {
        let (mut run, mut start) = (0, 0);
        let find = |position: &u32| {
            if *position < start {
                run = self.ends.partition_point(|end| end <= position);
            } else {
                // Galloping: each step is twice as long as the previous one.
                let mut step = 1;
                while self.ends.get(run + step).is_some_and(|end| end <= position) {
                    run += step;
                    step *= 2;
                }
                let behind = self.ends.len().min(run + step + 1);
                run += self.ends[run..behind].partition_point(|end| end <= position);
            }
            start = if run == 0 { 0 } else { self.ends[run - 1] };
            run as u32
        };
        positions.iter().map(find).collect()
    }

    /// Repeats a property of each run for each of its rows within a range.
    fn repeated<T: Copy>(
        &self,
        runs: &Range<usize>,
        rows: &Range<usize>,
        of_run: impl Fn(usize) -> T,
    ) -> Vec<T> {
        if runs.is_empty() {
            return Vec::new();
        }
        // Runs are short. Writing a whole block for each is faster than counting its rows; the next
        // run overwrites what is too much.
        let mut values = vec![of_run(runs.start); rows.len() + BLOCK_ROWS];
        let mut start = 0;
        for run in runs.clone() {
            let value = of_run(run);
            let end = (self.ends[run] as usize).min(rows.end) - rows.start;
            if let Some(block) = values[start..].first_chunk_mut::<BLOCK_ROWS>() {
                *block = [value; BLOCK_ROWS];
            }
            if end > start + BLOCK_ROWS {
                values[start + BLOCK_ROWS..end].fill(value);
            }
            start = end;
        }
        values.truncate(rows.len());
        values
    }

    fn repeated_bits(
        &self,
        runs: &Range<usize>,
        rows: &Range<usize>,
        of_run: impl Fn(usize) -> bool,
    ) -> BooleanBuffer {
        let mut bits = BooleanBufferBuilder::new(rows.len());
        for run in runs.clone() {
            let end = (self.ends[run] as usize).min(rows.end) - rows.start;
            bits.append_n(end - bits.len(), of_run(run));
        }
        bits.finish()
    }

    fn nulls_of(&self, runs: &Range<usize>, rows: &Range<usize>) -> Option<NullBuffer> {
        let nulls = self.values.nulls().filter(|nulls| nulls.null_count() > 0)?;
        Some(NullBuffer::new(self.repeated_bits(runs, rows, |run| nulls.is_valid(run))))
    }
}
