//! Tuples of a chunk that are stored as rows: a scan of rows yields them without building columns,
//! and packing tuples into rows copies them.

use std::sync::Arc;

use arrow::array::ArrayRef;

use tessera_codegen::{InputPlace, RawInput};
use tessera_types::Result;
use tessera_vector::hash::{SEED, combine, fold_column, word_of_wide};
use tessera_vector::physical::{Physical, canonical32, canonical64};
use tessera_vector::{Chunk, Column, HashFields, LazyTuples};

use super::gather::RowSelection;
use super::layout::{Kind, RowLayout};
use super::memory::Fixed;
use super::sealed::Part;

/// Consecutive rows of a part whose values are all in the rows themselves.
#[derive(Debug, Clone)]
pub struct RowRange {
    /// The layout of the rows.
    pub layout: Arc<RowLayout>,
    /// The part that contains them.
    pub part: Arc<Part>,
    /// The number of the first row.
    pub first: usize,
    /// The number of rows.
    pub rows: usize,
    /// The fields of the rows that the tuples have; `None` for all.
    fields: Option<Arc<[usize]>>,
}

impl RowRange {
    /// Returns the rows as a chunk; `None` if some value is not entirely in its row.
    pub fn chunk(
        layout: &Arc<RowLayout>,
        part: &Arc<Part>,
        first: usize,
        rows: usize,
    ) -> Option<Chunk> {
        let is_whole = layout.is_whole() && first + rows <= part.rows;
        let range =
            || RowRange { layout: layout.clone(), part: part.clone(), first, rows, fields: None };
        is_whole.then(|| Chunk::lazy(range(), rows))
    }

    /// Returns the field of the rows for a field of the tuples.
    fn field(&self, field: usize) -> usize {
        self.fields.as_ref().map_or(field, |fields| fields[field])
    }

    /// Returns whether the tuples have all fields of the rows.
    pub fn is_whole(&self) -> bool {
        self.fields.is_none()
    }

    fn column(&self, field: usize) -> Result<Column> {
        self.part.gather(&self.layout, self.field(field), RowSelection::Run(self.first, self.rows))
    }

    /// Returns how compiled code reads a field, and its address; `None` if the rows are not
    /// consecutive in memory or the field's type is not compiled.
    pub fn listed(&self, field: usize, list: Option<&[u32]>) -> Option<(InputPlace, RawInput)> {
        let rows = self.part.pages.address(self.first, self.rows)?;
        let list = list.map_or((0, std::ptr::null()), |list| (32, list.as_ptr().cast()));
        self.part.input(&self.layout, self.field(field), rows, list)
    }

    /// Combines the hash state of each row with the value of a field, including those under NULL.
    fn each_value<T: Fixed>(&self, offset: usize, states: &mut [u64], word: impl Fn(T) -> u64) {
        let mut states = states.iter_mut();
        for run in self.part.pages.value_runs::<T>(offset, self.first..self.first + self.rows) {
            for (value, state) in run.zip(states.by_ref()) {
                *state = combine(*state, word(value));
            }
        }
    }
}

impl Part {
    /// Returns how compiled code reads a field of rows that begin at `rows` in memory, and its
    /// address. `list` selects rows (the bits of its numbers, and its address); without it they are
    /// consecutive. `None` if the field's type is not compiled.
    pub fn input(
        &self,
        layout: &RowLayout,
        field: usize,
        rows: *const u8,
        (list_bits, list): (u8, *const u8),
    ) -> Option<(InputPlace, RawInput)> {
        let place = &layout.fields[field];
        if !matches!(place.kind, Kind::Value(physical, _) if physical.is_coded()) {
            return None;
        }
        let validity = layout.validity_offset().unwrap_or(0) + field / 8;
        let in_row = InputPlace::Row {
            stride: layout.stride_bytes() as u32,
            list_bits,
            validity_bit: field as u8 % 8,
        };
        let (values, validity) = (rows.wrapping_add(place.offset), rows.wrapping_add(validity));
        Some((in_row, RawInput { list, ..RawInput::column(values, validity, (0, 0)) }))
    }
}

impl HashFields for RowRange {
    fn hash(&self, fields: &[usize], out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        out.resize(self.rows, SEED);
        for &field in fields {
            let of_rows = self.field(field);
            let offset = self.layout.fields[of_rows].offset;
            match (&self.layout.fields[of_rows].kind, self.part.has_nulls[of_rows]) {
                (Kind::Value(Physical::Bits16, _), false) => {
                    self.each_value(offset, out, |v: u16| v.into())
                }
                (Kind::Value(Physical::Bits32, _), false) => {
                    self.each_value(offset, out, |v: u32| v.into())
                }
                (Kind::Value(Physical::Bits64, _), false) => {
                    self.each_value(offset, out, |v: u64| v)
                }
                (Kind::Value(Physical::Bits128, _), false) => {
                    self.each_value(offset, out, word_of_wide)
                }
                (Kind::Value(Physical::Float32, _), false) => {
                    self.each_value(offset, out, |v: u32| canonical32(v).into());
                }
                (Kind::Value(Physical::Float64, _), false) => {
                    self.each_value(offset, out, canonical64)
                }
                _ => fold_column(&self.column(field)?, out)?,
            }
        }
        Ok(())
    }
}

impl LazyTuples for RowRange {
    fn hasher(&self) -> Option<&dyn HashFields> {
        Some(self)
    }

    fn input(&self, field: usize, _arrays: &mut Vec<ArrayRef>) -> Option<(InputPlace, RawInput)> {
        self.listed(field, None)
    }

    fn width(&self) -> usize {
        self.fields.as_ref().map_or(self.layout.fields.len(), |fields| fields.len())
    }

    fn project(&self, fields: &[usize]) -> Box<dyn LazyTuples> {
        let fields = fields.iter().map(|field| self.field(*field)).collect();
        Box::new(RowRange { fields: Some(fields), ..self.clone() })
    }

    fn columns(&self) -> Vec<Column> {
        let column =
            |field| self.column(field).expect("a range of rows whose values stand in them");
        (0..self.width()).map(column).collect()
    }

    fn value_bytes(&self) -> usize {
        let bytes = |kind: &Kind| match kind {
            Kind::Value(Physical::Boolean, _) => self.rows.div_ceil(8),
            Kind::Value(physical, _) => physical.width_bytes() * self.rows,
            _ => 0,
        };
        (0..self.width()).map(|field| bytes(&self.layout.fields[self.field(field)].kind)).sum()
    }
}
