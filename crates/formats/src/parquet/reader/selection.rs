//! Selects the rows of a batch: applies the predicate, a threshold and key filters to their
//! columns.

use std::sync::Arc;

use arrow::array::{Array, UInt32Array};

use tessera_context::Token;
use tessera_state::sideways::{ReceivedFilter, within};
use tessera_types::Result;
use tessera_vector::{Chunk, Column};

use super::super::flat::{Decoded, Mask, MaskOf};
use super::{Batch, BatchColumn, MorselReader};
use crate::file::RunConjunct;

/// The largest dictionary for which a mask is made.
const MASK_VALUES_MAX: usize = 65_536;
/// The fewest rows of a row group for each value of a dictionary that a key filter is asked about.
const ROWS_PER_VALUE: usize = 2;

impl MorselReader {
    /// Opens the columns that decide which rows qualify.
    pub(super) fn open_filter_columns(&mut self) -> Result<Option<Token>> {
        let scan = self.scan.clone();
        if let Some(token) = self.open(&scan.filter_columns)? {
            return Ok(Some(token));
        }
        if let Some(threshold) = &scan.threshold
            && threshold.value.get().is_some()
            && let Some(token) = self.open(&[threshold.column])?
        {
            return Ok(Some(token));
        }
        for position in 0..self.filters.len() {
            let keys = self.filters[position].keys.clone();
            if self.filters[position].filter.is_on()
                && let Some(token) = self.open(&keys)?
            {
                return Ok(Some(token));
            }
        }
        Ok(None)
    }

    /// Decodes the predicate's columns of the next batch and applies it. Returns `None` at the end.
    pub(super) fn filter_batch(&mut self) -> Result<Option<Batch>> {
        let ranges = self.morsel.ranges.clone();
        let (mut range, mut start) = self.next;
        while let Some(current) = ranges.get(range)
            && start >= current.end
        {
            range += 1;
            start = ranges.get(range).map_or(0, |range| range.start);
        }
        let Some(current) = ranges.get(range) else { return Ok(None) };
        let rows = self.batch_rows.min(current.end - start);
        self.next = (range, start + rows);
        let scan = self.scan.clone();
        let mut loaded: Vec<Option<BatchColumn>> =
            scan.parameters.columns.fields().iter().map(|_| None).collect();
        let mut selection: Option<Vec<u32>> = None;
        let mut rest: Vec<&RunConjunct> = Vec::new();
        // Masks first: they cost one lookup per row and never raise errors.
        for (position, conjunct) in scan.conjuncts.iter().enumerate() {
            if selection.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
            if let [column] = conjunct.columns[..] {
                self.load(column, (start, rows), &mut loaded)?;
                if let Some(BatchColumn::Flat(decoded)) = &loaded[column]
                    && let Some(mask) = self.mask(position, conjunct, decoded)
                {
                    let passed = decoded.select(&mask, selection.as_deref());
                    if selection.is_some() || passed.len() < rows {
                        selection = Some(passed);
                    }
                    continue;
                }
            }
            rest.push(conjunct);
        }
        self.drop_beyond_threshold((start, rows), &mut loaded, &mut selection)?;
        for conjunct in rest {
            if selection.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
            let mut read = Vec::with_capacity(conjunct.columns.len());
            for &column in &conjunct.columns {
                read.push(self.read(column, (start, rows), &mut loaded)?);
            }
            let mut chunk = Chunk::new(read, rows);
            if let Some(selection) = selection.take() {
                chunk = chunk.select(Arc::new(UInt32Array::from(selection)));
            }
            let chunk = conjunct.predicate.select(chunk)?;
            selection = chunk.selection().map(|selection| selection.values().to_vec());
            if chunk.is_empty() {
                selection = Some(Vec::new());
            }
        }
        self.drop_unmatched((start, rows), &mut loaded, &mut selection)?;
        Ok(Some(Batch { start, rows, selection, loaded }))
    }

    /// Drops the rows that sort beyond the threshold, if one was published.
    fn drop_beyond_threshold(
        &mut self,
        batch: (usize, usize),
        loaded: &mut [Option<BatchColumn>],
        selection: &mut Option<Vec<u32>>,
    ) -> Result<()> {
        let scan = self.scan.clone();
        let Some(threshold) = &scan.threshold else { return Ok(()) };
        let column = threshold.column;
        let (Some(value), false) =
            (threshold.value.get(), selection.as_ref().is_some_and(Vec::is_empty))
        else {
            return Ok(());
        };
        if !self.waiting(&[column]).is_empty() {
            return Ok(());
        }
        let mask = within(&threshold.key, self.read(column, batch, loaded)?.plain()?, &value)?;
        match selection {
            Some(selection) => selection.retain(|row| mask.value(*row as usize)),
            None if mask.true_count() < mask.len() => {
                *selection = Some(mask.values().set_indices_u32().collect());
            }
            None => {}
        }
        Ok(())
    }

    /// Decodes a column of the batch's rows (first row, count), unless that is done.
    fn load(
        &mut self,
        column: usize,
        (start, rows): (usize, usize),
        loaded: &mut [Option<BatchColumn>],
    ) -> Result<()> {
        if loaded[column].is_none() {
            loaded[column] = Some(self.decode(column, start, rows)?);
        }
        Ok(())
    }

    /// Returns a column of the batch's rows in its final form.
    fn read(
        &mut self,
        column: usize,
        (start, rows): (usize, usize),
        loaded: &mut [Option<BatchColumn>],
    ) -> Result<Column> {
        let value = match loaded[column].take() {
            Some(value) => value,
            None => self.decode(column, start, rows)?,
        };
        let value = self.finish(column, value)?;
        loaded[column] = Some(BatchColumn::Column(value.clone()));
        Ok(value)
    }

    /// Drops the rows whose keys are not in the published filters.
    fn drop_unmatched(
        &mut self,
        batch: (usize, usize),
        loaded: &mut [Option<BatchColumn>],
        selection: &mut Option<Vec<u32>>,
    ) -> Result<()> {
        let filters = std::mem::take(&mut self.filters);
        let mut dropped = 0;
        for received in filters.iter().filter(|received| received.filter.is_on()) {
            let left = selection.as_ref().map_or(batch.1, Vec::len);
            if left == 0 || !self.waiting(&received.keys).is_empty() {
                continue;
            }
            let passed = match self.matched_codes(received, batch, loaded, selection.as_deref())? {
                Some(passed) => passed,
                None => self.matched_keys(received, batch, loaded, selection.as_deref())?,
            };
            dropped += left - passed.len();
            if selection.is_some() || passed.len() < batch.1 {
                *selection = Some(passed);
            }
        }
        self.filters = filters;
        self.dropped += dropped as u64;
        Ok(())
    }

    /// Returns the selected rows whose key passes a filter. The filter is asked once for each value
    /// of the key's dictionary; `None` if there is no dictionary that this pays off for.
    fn matched_codes(
        &mut self,
        received: &ReceivedFilter,
        batch: (usize, usize),
        loaded: &mut [Option<BatchColumn>],
        selection: Option<&[u32]>,
    ) -> Result<Option<Vec<u32>>> {
        let [column] = received.keys[..] else { return Ok(None) };
        self.load(column, batch, loaded)?;
        let Some(BatchColumn::Flat(decoded)) = &loaded[column] else { return Ok(None) };
        let group_rows = self.file().metadata.parquet.row_group(self.morsel.group).num_rows();
        let values_max = MASK_VALUES_MAX.min(group_rows as usize / ROWS_PER_VALUE);
        let Some(dictionary) = decoded.dictionary().filter(|of| of.array.len() <= values_max)
        else {
            return Ok(None);
        };
        let hashes = &mut self.hashes;
        let mask = self.morsel.shared.mask(MaskOf::Filter(received.name.clone()), || {
            let values = dictionary.with_null()?;
            let rows = values.len();
            let passed = received.filter.matched(&[Column::new(values)], rows, hashes).ok()?;
            let mut answers = vec![false; rows];
            passed.iter().for_each(|at| answers[*at as usize] = true);
            Some(Mask::new(answers))
        });
        Ok(mask.map(|mask| {
            let passed = decoded.select(&mask, selection);
            let tested = selection.map_or(batch.1, <[u32]>::len);
            received.filter.count(tested as u64, passed.len() as u64);
            passed
        }))
    }

    /// Returns the selected rows whose keys pass a filter.
    fn matched_keys(
        &mut self,
        received: &ReceivedFilter,
        batch: (usize, usize),
        loaded: &mut [Option<BatchColumn>],
        selection: Option<&[u32]>,
    ) -> Result<Vec<u32>> {
        // If few rows are left, only those are hashed.
        let few = selection.filter(|selection| selection.len() * 2 < batch.1);
        let mut keys = Vec::with_capacity(received.keys.len());
        for &column in received.keys.iter() {
            keys.push(match few {
                Some(few) => self.read_few(column, batch, loaded, few)?,
                None => self.read(column, batch, loaded)?,
            });
        }
        let tested = few.map_or(batch.1, <[u32]>::len);
        let passed = received.filter.select(&keys, tested, &mut self.hashes)?;
        Ok(match (selection, few) {
            (_, Some(few)) => passed.iter().map(|position| few[*position as usize]).collect(),
            (Some(selection), None) => in_both(selection, &passed),
            (None, None) => passed,
        })
    }

    /// Returns these rows of a column of the batch in their final form.
    fn read_few(
        &mut self,
        column: usize,
        batch: (usize, usize),
        loaded: &mut [Option<BatchColumn>],
        few: &[u32],
    ) -> Result<Column> {
        self.load(column, batch, loaded)?;
        match &loaded[column] {
            Some(BatchColumn::Flat(decoded)) => {
                let kept = BatchColumn::Flat(decoded.keep(few));
                self.finish(column, kept)
            }
            _ => self.read(column, batch, loaded)?.take(&UInt32Array::from(few.to_vec())),
        }
    }

    /// Returns the mask of a conjunct over a dictionary; `None` if the dictionary is too large, or
    /// if evaluation on it raises an error.
    fn mask(
        &self,
        position: usize,
        conjunct: &RunConjunct,
        decoded: &Decoded,
    ) -> Option<Arc<Mask>> {
        let dictionary = decoded.dictionary()?;
        if dictionary.array.len() > MASK_VALUES_MAX {
            return None;
        }
        let run = &self.scan.run;
        self.morsel.shared.mask(MaskOf::Conjunct(position), || {
            let with_null = dictionary.with_null()?;
            let rows = with_null.len();
            let mut answers = vec![false; rows];
            let limit = run.context.chunk_rows().max(1);
            for start in (0..rows).step_by(limit) {
                let len = limit.min(rows - start);
                let chunk = Chunk::new(vec![Column::new(with_null.slice(start, len))], len);
                let passed = conjunct.predicate.bound().select(chunk, run).ok()?;
                match passed.selection() {
                    Some(selection) => {
                        selection.values().iter().for_each(|&i| answers[start + i as usize] = true)
                    }
                    None if passed.is_empty() => {}
                    None => answers[start..start + len].fill(true),
                }
            }
            Some(Mask::new(answers))
        })
    }
}

/// Returns the intersection of two ascending lists.
fn in_both(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut out = Vec::with_capacity(left.len().min(right.len()));
    let mut right = right.iter().peekable();
    for value in left {
        while right.next_if(|other| *other < value).is_some() {}
        if right.peek() == Some(&value) {
            out.push(*value);
        }
    }
    out
}
