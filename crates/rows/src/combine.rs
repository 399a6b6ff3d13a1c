//! Write-combining buffers: gather the rows of each partition, so that they leave the caches as
//! whole lines (Modularis §2.3.2; Balkesen et al., ICDE 2013).

use tessera_types::Result;

use super::layout::{Kind, RowLayout};
use super::resolved_columns::{ResolvedColumns, Values};

/// Receives the partition and the rows of a full buffer.
pub(crate) type FlushFn<'a> = &'a mut dyn FnMut(usize, &[u64]) -> Result<()>;

/// A buffer of `rows` rows for each partition.
#[derive(Debug)]
pub(crate) struct Combiner {
    buffers: Vec<u64>,
    filled: Vec<u32>,
    rows: usize,
    /// Words per row.
    stride: usize,
}

impl Combiner {
    /// The bytes that [`Combiner::new`] allocates.
    pub(crate) fn bytes(partitions: usize, rows: usize, stride_bytes: usize) -> usize {
        partitions * (rows * stride_bytes + 4)
    }

    /// Creates empty buffers.
    pub(crate) fn new(partitions: usize, rows: usize, stride_bytes: usize) -> Combiner {
        let stride = stride_bytes / 8;
        let rows = rows.max(1);
        Combiner {
            buffers: vec![0; partitions * rows * stride],
            filled: vec![0; partitions],
            rows,
            stride,
        }
    }

    /// Moves the consecutive rows in `words` to the buffers of their partitions; passes full
    /// buffers to `full`.
    ///
    /// # Errors
    /// Those of `full`.
    pub(crate) fn put(
        &mut self,
        words: &[u64],
        partitions: impl Iterator<Item = usize>,
        full: FlushFn<'_>,
    ) -> Result<()> {
        match self.stride {
            1 => self.put_rows(words.as_chunks::<1>().0.iter(), partitions, full),
            2 => self.put_rows(words.as_chunks::<2>().0.iter(), partitions, full),
            3 => self.put_rows(words.as_chunks::<3>().0.iter(), partitions, full),
            4 => self.put_rows(words.as_chunks::<4>().0.iter(), partitions, full),
            5 => self.put_rows(words.as_chunks::<5>().0.iter(), partitions, full),
            6 => self.put_rows(words.as_chunks::<6>().0.iter(), partitions, full),
            stride => self.put_rows(words.chunks_exact(stride), partitions, full),
        }
    }

    /// Moves rows that consist of plain column values, without building them first. Returns `false`
    /// if the columns are not plain values.
    ///
    /// # Errors
    /// Those of `full`.
    pub(crate) fn put_values(
        &mut self,
        layout: &RowLayout,
        incoming: &ResolvedColumns,
        partitions: impl Iterator<Item = usize>,
        full: FlushFn<'_>,
    ) -> Result<bool> {
        if incoming.range().is_some() {
            return Ok(false);
        }
        let columns = incoming.columns();
        let mut words: Vec<&[u64]> = vec![&[]; self.stride];
        for (field, column) in layout.fields.iter().zip(columns) {
            match &column.values {
                Values::Bits64(values)
                    if column.index.is_none() && matches!(field.kind, Kind::Value(..)) =>
                {
                    words[field.offset / 8] = values;
                }
                _ => return Ok(false),
            }
        }
        if layout.validity_offset().is_some() || columns.len() != self.stride {
            return Ok(false);
        }
        match words[..] {
            [a] => self.put_rows(a.iter().map(|a| [*a]), partitions, full)?,
            [a, b] => self.put_rows(a.iter().zip(b).map(|(a, b)| [*a, *b]), partitions, full)?,
            [a, b, c] => {
                let rows = a.iter().zip(b).zip(c).map(|((a, b), c)| [*a, *b, *c]);
                self.put_rows(rows, partitions, full)?;
            }
            [a, b, c, d] => {
                let rows =
                    a.iter().zip(b).zip(c.iter().zip(d)).map(|((a, b), (c, d))| [*a, *b, *c, *d]);
                self.put_rows(rows, partitions, full)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Generic over the stride, so that the copy of a short row compiles to a few moves.
    #[inline(always)]
    fn put_rows<R: AsRef<[u64]>>(
        &mut self,
        rows: impl Iterator<Item = R>,
        partitions: impl Iterator<Item = usize>,
        full: FlushFn<'_>,
    ) -> Result<()> {
        for (row, partition) in rows.zip(partitions) {
            let row = row.as_ref();
            let place = (partition * self.rows + self.filled[partition] as usize) * row.len();
            self.buffers[place..place + row.len()].copy_from_slice(row);
            self.filled[partition] += 1;
            if self.filled[partition] as usize == self.rows {
                self.empty(partition, full)?;
            }
        }
        Ok(())
    }

    /// Passes a partition's buffer to `full`, unless it is empty.
    ///
    /// # Errors
    /// Those of `full`.
    pub(crate) fn empty(&mut self, partition: usize, full: FlushFn<'_>) -> Result<()> {
        let rows = std::mem::take(&mut self.filled[partition]) as usize;
        let start = partition * self.rows * self.stride;
        if rows == 0 {
            Ok(())
        } else {
            full(partition, &self.buffers[start..start + rows * self.stride])
        }
    }

    /// Passes all non-empty buffers to `full`.
    ///
    /// # Errors
    /// Those of `full`.
    pub(crate) fn empty_all(&mut self, full: FlushFn<'_>) -> Result<()> {
        (0..self.filled.len()).try_for_each(|partition| self.empty(partition, full))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_comes_out_in_its_partition() {
        for stride in 1..=8 {
            let rows: Vec<u64> =
                (0..100u64).flat_map(|row| (0..stride).map(move |word| row << 8 | word)).collect();
            let mut found: Vec<Vec<u64>> = vec![Vec::new(); 3];
            let mut full = |partition: usize, words: &[u64]| {
                assert!(words.len() <= 7 * stride as usize);
                found[partition].extend(words);
                Ok(())
            };
            let mut combiner = Combiner::new(3, 7, stride as usize * 8);
            combiner.put(&rows, (0..100).map(|row| row % 10 % 3), &mut full).unwrap();
            combiner.empty_all(&mut full).unwrap();
            combiner.empty_all(&mut full).unwrap();
            for (partition, found) in found.iter().enumerate() {
                let expected: Vec<u64> = rows
                    .iter()
                    .copied()
                    .filter(|word| (word >> 8) % 10 % 3 == partition as u64)
                    .collect();
                assert_eq!(*found, expected, "partition {partition}, rows of {stride} words");
            }
        }
    }
}
