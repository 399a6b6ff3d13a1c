//! Tuples of a chunk that lie in rows: a scan of rows gives them without making columns, and who
//! packs tuples into rows copies them.

use std::sync::Arc;

use arrow::array::ArrayRef;

use tessera_codegen::{InputPlace, RawInput};
use tessera_types::Result;
use tessera_vector::hash::{SEED, combine, fold_column, word_of_wide};
use tessera_vector::physical::{Physical, canonical32, canonical64};
use tessera_vector::{Chunk, Column, Elsewhere, HashFields};

use super::gather::Which;
use super::layout::{Kind, RowLayout};
use super::memory::Fixed;
use super::sealed::Part;

/// Consecutive rows of a part whose values all stand in them.
#[derive(Debug, Clone)]
pub struct RowRange {
    /// The layout of the rows.
    pub layout: Arc<RowLayout>,
    /// The part that they stand in.
    pub part: Arc<Part>,
    /// The number of the first one.
    pub first: usize,
    /// How many there are.
    pub rows: usize,
    /// Which fields of the rows the tuples have; absent for all.
    fields: Option<Arc<[usize]>>,
}

impl RowRange {
    /// The rows as a chunk; none where a value does not stand whole in its row.
    pub fn chunk(
        layout: &Arc<RowLayout>,
        part: &Arc<Part>,
        first: usize,
        rows: usize,
    ) -> Option<Chunk> {
        let is_whole = layout.is_whole() && first + rows <= part.rows;
        let range =
            || RowRange { layout: layout.clone(), part: part.clone(), first, rows, fields: None };
        is_whole.then(|| Chunk::lying(range(), rows))
    }

    /// The field of the rows that a field of the tuples is.
    fn field(&self, field: usize) -> usize {
        self.fields.as_ref().map_or(field, |fields| fields[field])
    }

    /// Whether the tuples have all fields of the rows.
    pub fn is_whole(&self) -> bool {
        self.fields.is_none()
    }

    fn column(&self, field: usize) -> Result<Column> {
        self.part.gather(&self.layout, self.field(field), Which::Run(self.first, self.rows))
    }

    /// How compiled code finds a field, and where; none where the rows are not one behind the
    /// other, or it has no code.
    pub fn listed(&self, field: usize, list: Option<&[u32]>) -> Option<(InputPlace, RawInput)> {
        let rows = self.part.pages.address(self.first, self.rows)?;
        let list = list.map_or((0, std::ptr::null()), |list| (32, list.as_ptr().cast()));
        self.part.input(&self.layout, self.field(field), rows, list)
    }

    /// The values of a field, NULL or not.
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
    /// How compiled code finds a field of rows that begin at `rows` in memory, and where: of the
    /// rows that the list has (its numbers' bits, and where it is), or one after the other. None
    /// where the field has no code.
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
        let in_row = InputPlace::InRow {
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

impl Elsewhere for RowRange {
    fn hasher(&self) -> Option<&dyn HashFields> {
        Some(self)
    }

    fn input(&self, field: usize, _arrays: &mut Vec<ArrayRef>) -> Option<(InputPlace, RawInput)> {
        self.listed(field, None)
    }

    fn width(&self) -> usize {
        self.fields.as_ref().map_or(self.layout.fields.len(), |fields| fields.len())
    }

    fn project(&self, fields: &[usize]) -> Box<dyn Elsewhere> {
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
