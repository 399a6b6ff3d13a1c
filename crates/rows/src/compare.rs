//! Compares keys of rows with keys of columns, column by column over a list of candidates.

use arrow::buffer::Buffer;

use tessera_types::{Error, Result};
use tessera_vector::physical::{
    Physical, canonical32, canonical64, interval_from_bits, interval_length,
};

use super::layout::{Kind, RowLayout};
use super::memory::{Fixed, Pages};
use super::nested::values_equal;
use super::resolved_columns::{ResolvedColumn, ResolvedColumns, Values, long_bytes, view_buffers};
use super::sealed::Side;

/// Pairs of a row and a position in an [`ResolvedColumns`], in order.
#[derive(Debug, Default, Clone)]
pub struct Candidates {
    /// The row of each pair.
    pub rows: Vec<u64>,
    /// The position of each pair.
    pub positions: Vec<u32>,
}

/// How NULLs in keys compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullKeys {
    /// NULL equals nothing: joins.
    Unequal,
    /// NULL equals NULL: grouping, and joins on `IS NOT DISTINCT FROM`.
    Equal,
    /// NULL may equal anything: finds pairs that SQL's `IN` cannot rule out.
    Unknown,
}

impl Candidates {
    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Removes all pairs.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.positions.clear();
    }

    /// Adds a pair.
    #[inline(always)]
    pub fn push(&mut self, row: u64, position: u32) {
        self.rows.push(row);
        self.positions.push(position);
    }

    /// Retains the pairs for which `keep` is true.
    #[inline(always)]
    pub fn retain(&mut self, keep: impl FnMut(u64, usize) -> bool) {
        self.retain_from(0, keep);
    }

    /// Like [`Candidates::retain`], but all pairs before `first` stay.
    #[inline(always)]
    pub fn retain_from(&mut self, first: usize, mut keep: impl FnMut(u64, usize) -> bool) {
        let len = self.positions.len();
        let (rows, positions) = (&mut self.rows[..len], &mut self.positions[..len]);
        let mut kept = first;
        for i in first..len {
            let (row, position) = (rows[i], positions[i]);
            rows[kept] = row;
            positions[kept] = position;
            kept += usize::from(keep(row, position as usize));
        }
        self.rows.truncate(kept);
        self.positions.truncate(kept);
    }
}

/// Strings of rows that are under construction or sealed.
#[derive(Debug, Clone, Copy)]
pub enum Heap<'a> {
    Unsealed(&'a [Vec<u8>]),
    Sealed(&'a [Buffer]),
}

/// The rows to compare with.
#[derive(Debug, Clone, Copy)]
pub struct RowsRef<'a> {
    pub layout: &'a RowLayout,
    pub pages: &'a Pages,
    pub heap: Heap<'a>,
    pub sides: &'a [Side],
    pub has_nulls: &'a [bool],
}

impl Heap<'_> {
    fn bytes(&self, view: u128) -> Option<&[u8]> {
        match self {
            Heap::Unsealed(pages) => long_bytes(view, pages),
            Heap::Sealed(buffers) => long_bytes(view, buffers),
        }
    }
}

impl RowsRef<'_> {
    /// Retains the candidates with equal keys.
    pub fn retain_equal(
        &self,
        fields: &[usize],
        keys: &ResolvedColumns,
        nulls: NullKeys,
        candidates: &mut Candidates,
    ) -> Result<()> {
        if fields.len() != keys.columns().len() {
            return Err(Error::internal("keys of different widths were compared"));
        }
        for (field, column) in fields.iter().zip(keys.columns()) {
            if candidates.is_empty() {
                return Ok(());
            }
            self.retain_field(*field, column, nulls, candidates)?;
        }
        Ok(())
    }

    fn retain_field(
        &self,
        field: usize,
        column: &ResolvedColumn,
        nulls: NullKeys,
        candidates: &mut Candidates,
    ) -> Result<()> {
        let place = &self.layout.fields[field];
        let Kind::Value(physical, _) = &place.kind else {
            return Err(Error::internal("collections were compared"));
        };
        let offset = place.offset;
        match (physical, &column.values) {
            (_, Values::Null) | (Physical::Null, _) => {
                self.retain(field, column, nulls, candidates, |_, _| false);
            }
            (Physical::Boolean, Values::Boolean(bits)) => {
                let stored = self.pages.field::<u8>(offset);
                self.retain(field, column, nulls, candidates, |row, at| {
                    at < bits.len() && bits.value(at) == (stored.get(row) != 0)
                });
            }
            (Physical::Bits8, Values::Bits8(values)) => {
                self.retain_fixed(field, column, nulls, candidates, values, |a, b| a == b);
            }
            (Physical::Bits16, Values::Bits16(values)) => {
                self.retain_fixed(field, column, nulls, candidates, values, |a, b| a == b);
            }
            (Physical::Bits32, Values::Bits32(values)) => {
                self.retain_fixed(field, column, nulls, candidates, values, |a, b| a == b);
            }
            (Physical::Float32, Values::Bits32(values)) => {
                let equal = |a, b| canonical32(a) == canonical32(b);
                self.retain_fixed(field, column, nulls, candidates, values, equal);
            }
            (Physical::Bits64, Values::Bits64(values)) => {
                self.retain_fixed(field, column, nulls, candidates, values, |a, b| a == b);
            }
            (Physical::Float64, Values::Bits64(values)) => {
                let equal = |a, b| canonical64(a) == canonical64(b);
                self.retain_fixed(field, column, nulls, candidates, values, equal);
            }
            (Physical::Bits128, Values::Bits128(values)) => {
                self.retain_fixed(field, column, nulls, candidates, values, |a, b| a == b);
            }
            (Physical::Interval, Values::Interval(values)) => {
                let stored = self.pages.field::<u128>(offset);
                self.retain(field, column, nulls, candidates, |row, at| {
                    let value = interval_length(interval_from_bits(stored.get(row)));
                    values.get(at).is_some_and(|other| interval_length(*other) == value)
                });
            }
            (Physical::View, Values::View(views, array)) => {
                let (stored, buffers) = (self.pages.field::<u128>(offset), view_buffers(array));
                self.retain(field, column, nulls, candidates, |row, at| {
                    let (a, b) = (stored.get(row), views.get(at).copied().unwrap_or_default());
                    // Compares the length and the first four bytes, then the rest of a short
                    // string.
                    if a as u64 != b as u64 {
                        return false;
                    }
                    if a as u32 <= 12 {
                        return a == b;
                    }
                    self.heap.bytes(a).is_some_and(|bytes| Some(bytes) == long_bytes(b, buffers))
                });
            }
            (Physical::Nested, Values::Nested(array)) => {
                let stored = self.pages.field::<u64>(offset);
                self.retain(field, column, nulls, candidates, |row, at| {
                    let reference = stored.get(row);
                    match self.sides.get(reference as u32 as usize) {
                        Some(Side::Array(side)) => {
                            values_equal(side, (reference >> 32) as usize, array, at)
                        }
                        _ => false,
                    }
                });
            }
            _ => {
                return Err(Error::internal(format!(
                    "a key does not fit field {field} of its rows"
                )));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn retain_fixed<T: Fixed>(
        &self,
        field: usize,
        column: &ResolvedColumn,
        nulls: NullKeys,
        candidates: &mut Candidates,
        values: &[T],
        equal: impl Fn(T, T) -> bool,
    ) {
        let stored = self.pages.field::<T>(self.layout.fields[field].offset);
        self.retain(field, column, nulls, candidates, |row, at| {
            equal(stored.get(row), values.get(at).copied().unwrap_or_default())
        });
    }

    /// Retains pairs; `equal(row, index of the value)` decides if neither is NULL.
    #[inline(always)]
    fn retain(
        &self,
        field: usize,
        column: &ResolvedColumn,
        nulls: NullKeys,
        candidates: &mut Candidates,
        equal: impl Fn(u64, usize) -> bool,
    ) {
        if !self.has_nulls[field] && column.nulls.is_none() {
            match &column.index {
                None => candidates.retain(equal),
                Some(_) => candidates.retain(|row, position| equal(row, column.at(position))),
            }
            return;
        }
        let validity =
            self.layout.validity_offset().map(|start| self.pages.field::<u8>(start + field / 8));
        let mask = 1u8 << (field % 8);
        let is_there = |row: u64| validity.is_none_or(|bits| bits.get(row) & mask != 0);
        candidates.retain(|row, position| match (is_there(row), !column.is_null(position)) {
            (true, true) => equal(row, column.at(position)),
            (false, false) => nulls != NullKeys::Unequal,
            _ => nulls == NullKeys::Unknown,
        });
    }
}
