//! Reads the rows of a sample from a few places in a table.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use tessera_operator::{Reader, SourceRun, Step};
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;
use tessera_vector::hash::{MULTIPLIER, SEED, fold};

/// The time limit of one wait for bytes of a file.
const WAIT: Duration = Duration::from_millis(5);

/// The ranges of a table that a sample is read from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SampledRanges {
    /// The sampled morsels: number, and maximum number of rows to read.
    pub(super) morsels: Vec<(usize, usize)>,
    /// The number of morsels of the table.
    pub(super) all: usize,
    /// The probability of a row to be in the sample, times 2^32.
    pub(super) share: u64,
}

/// The part of a source that has been read.
pub(super) struct ScanProgress {
    /// The morsels read: number, and number of rows read.
    pub(super) morsels: Vec<(usize, usize)>,
    /// Whether reading stopped at the time limit.
    pub(super) timed_out: bool,
}

/// A morsel that is read in part.
struct Place {
    morsel: usize,
    rows_max: usize,
    reader: Box<dyn Reader>,
    /// The number of rows read.
    rows: usize,
    /// The sampled rows.
    batches: Vec<RecordBatch>,
    is_done: bool,
}

impl Place {
    fn open(source: &dyn SourceRun, morsel: usize, rows_max: usize) -> Result<Place> {
        let (reader, batches) = (source.open(morsel)?, Vec::new());
        Ok(Place { morsel, rows_max, reader, rows: 0, batches, is_done: rows_max == 0 })
    }

    /// Returns the next chunk; `None` at the end.
    fn next(&mut self) -> Result<Option<Chunk>> {
        while !self.is_done {
            match self.reader.step()? {
                Step::HasOutput(chunk) => return Ok(Some(chunk)),
                Step::Again => {}
                Step::Blocked(token) => token.wait(WAIT),
                Step::NeedInput | Step::Done => self.is_done = true,
            }
        }
        Ok(None)
    }

    /// Adds the sampled rows of a chunk.
    fn take(&mut self, chunk: Chunk, ranges: &SampledRanges, tuple: &Tuple) -> Result<()> {
        let chunk = chunk.compact()?;
        let batch = chunk.slice(0, chunk.rows().min(self.rows_max - self.rows)).to_batch(tuple)?;
        let rows = self.rows..self.rows + batch.num_rows();
        let selected = rows.map(|row| Some(ranges.samples(self.morsel, row)));
        self.batches.push(filter_record_batch(&batch, &selected.collect::<BooleanArray>())?);
        self.rows += batch.num_rows();
        self.is_done = self.rows >= self.rows_max;
        Ok(())
    }
}

/// Reads the sampled rows of a source until `is_over`, but at least the first chunk. Morsels that
/// are read in part are read in turn, a chunk each, so that a sample that is cut short has rows of
/// most of them; whole morsels one after the other, to know how many rows one has.
pub(super) fn read_sample(
    source: &dyn SourceRun,
    ranges: &SampledRanges,
    tuple: &Tuple,
    is_over: &dyn Fn() -> bool,
) -> Result<(RecordBatch, ScanProgress)> {
    let mut places: Vec<Place> = Vec::with_capacity(ranges.morsels.len());
    // The limit is checked only before further rows: a source that was read to its end is complete.
    let is_cut =
        |places: &[Place]| places.iter().any(|place| !place.batches.is_empty()) && is_over();
    let mut timed_out = false;
    'turns: while places.len() < ranges.morsels.len() || places.iter().any(|place| !place.is_done) {
        for (number, (morsel, rows_max)) in ranges.morsels.iter().enumerate() {
            if number == places.len() {
                timed_out = is_cut(&places);
                if timed_out {
                    break 'turns;
                }
                places.push(Place::open(source, *morsel, *rows_max)?);
            }
            while let Some(chunk) = places[number].next()? {
                timed_out = is_cut(&places);
                if timed_out {
                    break 'turns;
                }
                places[number].take(chunk, ranges, tuple)?;
                if *rows_max != usize::MAX {
                    break;
                }
            }
        }
    }
    let morsels = places.iter().map(|place| (place.morsel, place.rows)).collect();
    let batches: Vec<RecordBatch> = places.into_iter().flat_map(|place| place.batches).collect();
    let rows = concat_batches(&Arc::new(tuple.arrow_schema()?), &batches)?;
    Ok((rows, ScanProgress { morsels, timed_out }))
}

impl SampledRanges {
    /// Whether every row that is read is in the sample.
    pub(super) fn takes_all(&self) -> bool {
        self.share >> 32 > 0
    }

    /// Encodes the ranges as numbers, for the sample file.
    pub(super) fn encode(&self) -> Vec<u64> {
        let morsels = self.morsels.iter().flat_map(|(morsel, rows)| [*morsel as u64, *rows as u64]);
        [self.all as u64, self.share].into_iter().chain(morsels).collect()
    }

    /// Decodes the numbers of [`SampledRanges::encode`].
    pub(super) fn decode(numbers: &[u64]) -> Option<SampledRanges> {
        let ([all, share], morsels) = numbers.split_first_chunk()?;
        let morsels =
            morsels.chunks_exact(2).map(|pair| (pair[0] as usize, pair[1] as usize)).collect();
        Some(SampledRanges { morsels, all: *all as usize, share: *share })
    }

    /// Whether the sample has a row of a morsel. A hash of its position decides, so that all draws
    /// have the same rows.
    fn samples(&self, morsel: usize, row: usize) -> bool {
        let word = fold(SEED ^ (morsel as u64) << 40 ^ row as u64, MULTIPLIER);
        word >> 32 < self.share
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::Int64Type;

    use super::*;

    #[test]
    fn about_the_wanted_share_of_rows_is_kept() {
        for share in [0.01, 0.2, 1.0] {
            let scaled = (share * (1u64 << 32) as f64) as u64;
            let ranges = SampledRanges { morsels: vec![(0, 7), (2, 9)], all: 3, share: scaled };
            let found = (0..100_000).filter(|row| ranges.samples(2, *row)).count() as f64 / 1e5;
            assert!((found - share).abs() < 0.01, "{found} of {share}");
            assert_eq!(SampledRanges::decode(&ranges.encode()), Some(ranges));
        }
    }

    /// Morsels of six rows, in chunks of two. A row's value is its position in the table.
    #[derive(Debug)]
    struct Numbers;

    struct Six {
        rows: std::ops::Range<i64>,
    }

    impl SourceRun for Numbers {
        fn morsels(&self) -> usize {
            3
        }

        fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
            let first = morsel as i64 * 6;
            Ok(Box::new(Six { rows: first..first + 6 }))
        }
    }

    impl Reader for Six {
        fn step(&mut self) -> Result<Step> {
            let rows: Vec<i64> = self.rows.by_ref().take(2).collect();
            Ok(match rows.is_empty() {
                true => Step::Done,
                false => {
                    Step::HasOutput(Chunk::from_arrays(vec![Arc::new(Int64Array::from(rows))]))
                }
            })
        }
    }

    /// The rows of a sample that is cut short when this many chunks were read, and where they are.
    fn drawn(rows_max: usize, chunks: usize) -> (Vec<i64>, Vec<(usize, usize)>, bool) {
        let morsels = [2, 0, 1].map(|morsel| (morsel, rows_max)).to_vec();
        let ranges = SampledRanges { morsels, all: 3, share: 1 << 32 };
        let asked = Cell::new(0);
        let is_over = || asked.replace(asked.get() + 1) + 1 > chunks;
        let tuple: Tuple = "<x: int64>".parse().unwrap();
        let (rows, progress) = read_sample(&Numbers, &ranges, &tuple, &is_over).unwrap();
        let values = rows.column(0).as_primitive::<Int64Type>().values().to_vec();
        (values, progress.morsels, progress.timed_out)
    }

    #[test]
    fn places_are_read_in_turn() {
        let (rows, places, cut) = drawn(5, usize::MAX);
        assert_eq!(rows, [12, 13, 14, 15, 16, 0, 1, 2, 3, 4, 6, 7, 8, 9, 10]);
        assert_eq!((places, cut), (vec![(2, 5), (0, 5), (1, 5)], false));
        // Opening a place and taking a chunk each ask once.
        let (rows, places, cut) = drawn(5, 5);
        assert_eq!(rows, [12, 13, 14, 15, 0, 1, 6, 7]);
        assert_eq!((places, cut), (vec![(2, 4), (0, 2), (1, 2)], true));
        let (rows, places, cut) = drawn(usize::MAX, 3);
        assert_eq!(rows, [12, 13, 14, 15, 16, 17]);
        assert_eq!((places, cut), (vec![(2, 6), (0, 0)], true));
        assert_eq!(drawn(5, 0).0, [12, 13]);
    }
}
