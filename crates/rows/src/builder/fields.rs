//! Writes the fields of new rows.

use tessera_types::{Error, Result};
use tessera_vector::physical::interval_to_bits;

use super::RowsBuilder;
use crate::layout::{HASH_OFFSET, Kind};
use crate::memory::{Fixed, Pages};
use crate::packing::Packed;
use crate::range::RowRange;
use crate::resolved_columns::{ResolvedColumn, ResolvedColumns, Values};
use crate::sealed::Side;

impl RowsBuilder {
    /// Writes all fields of rows that have memory.
    pub(super) fn append_all(
        &mut self,
        incoming: &ResolvedColumns,
        (start, len): (usize, usize),
        hashes: Option<&[u64]>,
        selection: Option<&[u32]>,
    ) -> Result<()> {
        self.pages.allocate(start + len);
        if let Some(hashes) = hashes.filter(|_| self.layout.is_hashed()) {
            let hash = |p: usize| hashes.get(p).copied().unwrap_or_default();
            put(&mut self.pages, start, len, HASH_OFFSET, selection, hash);
        }
        let alike =
            |range: &RowRange| self.layout.alike(&range.layout).filter(|_| range.is_whole());
        if let Some((range, (own, theirs))) =
            incoming.range().and_then(|range| Some((range, alike(range)?)))
        {
            let from = (&range.part.pages, theirs);
            match selection {
                None => self.pages.copy_rows(start, own, from, range.first..range.first + len),
                Some(selection) => {
                    let rows = selection.iter().map(|position| range.first + *position as usize);
                    self.pages.copy_rows(start, own, from, rows);
                }
            }
            self.has_nulls
                .iter_mut()
                .zip(&range.part.has_nulls)
                .for_each(|(any, more)| *any |= more);
            return Ok(());
        }
        if incoming.columns().len() != self.layout.fields.len() {
            return Err(Error::internal("a tuple of another width was packed into rows"));
        }
        if self.layout.has_packed() {
            self.pages.clear(start, len);
        }
        if let Some(validity) = self.layout.validity_offset() {
            for byte in 0..self.layout.fields.len().div_ceil(8) {
                put(&mut self.pages, start, len, validity + byte, selection, |_| u8::MAX);
            }
        }
        for (field, column) in incoming.columns().iter().enumerate() {
            self.append_field(field, column, start, len, selection)?;
        }
        Ok(())
    }

    pub(super) fn append_field(
        &mut self,
        field: usize,
        column: &ResolvedColumn,
        start: usize,
        len: usize,
        selection: Option<&[u32]>,
    ) -> Result<()> {
        let place = &self.layout.fields[field];
        let offset = place.offset;
        let fits = match (&column.values, &place.kind) {
            (Values::Handles(_), kind) => *kind == Kind::Handle,
            (_, Kind::Handle) => false,
            (values, Kind::Encoded(_)) => matches!(values, Values::View(..) | Values::Null),
            (_, Kind::Value(physical, _) | Kind::Packed(Packed { physical, .. })) => {
                column.values.width_bytes() == physical.width_bytes()
                    || matches!(column.values, Values::Null)
            }
        };
        if !fits {
            return Err(Error::internal(format!(
                "a column does not fit field {field} of its rows"
            )));
        }
        if let Kind::Packed(packed) = &place.kind {
            let position = |row: usize| selection.map_or(row, |selection| selection[row] as usize);
            packed.add(&mut self.pages, (start, len, offset), column, position)?;
            return self.mark_nulls(field, column, start, len, selection);
        }
        macro_rules! values {
            ($values:expr) => {{
                let value = |p: usize| $values.get(column.at(p)).copied().unwrap_or_default();
                put(&mut self.pages, start, len, offset, selection, value);
            }};
        }
        match &column.values {
            Values::Null => {}
            Values::Boolean(bits) => {
                let value = |p: usize| {
                    let at = column.at(p);
                    u8::from(at < bits.len() && bits.value(at))
                };
                put(&mut self.pages, start, len, offset, selection, value);
            }
            Values::Bits8(values) => values!(values),
            Values::Bits16(values) => values!(values),
            Values::Bits32(values) => values!(values),
            Values::Bits64(values) => values!(values),
            Values::Bits128(values) => values!(values),
            Values::Interval(values) => {
                let value = |p: usize| values.get(column.at(p)).map_or(0, |v| interval_to_bits(*v));
                put(&mut self.pages, start, len, offset, selection, value);
            }
            Values::View(views, array) => {
                self.append_views(field, column, views, array, start, len, selection)?;
            }
            Values::Nested(array) => {
                // A constant or a dictionary has fewer values than rows.
                let positions = match (selection, &column.index) {
                    (None, None) => None,
                    (Some(selection), None) => Some(selection.to_vec()),
                    (None, Some(index)) => Some(index.to_vec()),
                    (Some(selection), Some(index)) => {
                        Some(selection.iter().map(|position| index[*position as usize]).collect())
                    }
                };
                self.sides.push(Side::Array(match positions {
                    None => array.clone(),
                    Some(positions) => arrow::compute::take(
                        array,
                        &arrow::array::UInt32Array::from(positions),
                        None,
                    )?,
                }));
                self.append_references(offset, start, len)?;
            }
            Values::Handles(handles) => {
                self.sides.push(Side::Handles(match selection {
                    None => handles.clone(),
                    Some(selection) => {
                        selection.iter().map(|p| handles[*p as usize].clone()).collect()
                    }
                }));
                self.append_references(offset, start, len)?;
            }
        }
        self.mark_nulls(field, column, start, len, selection)
    }

    fn mark_nulls(
        &mut self,
        field: usize,
        column: &ResolvedColumn,
        start: usize,
        len: usize,
        selection: Option<&[u32]>,
    ) -> Result<()> {
        if let Some(nulls) = &column.nulls {
            let validity = self.layout.validity_offset();
            let validity =
                validity.ok_or_else(|| Error::internal("a field that is never NULL may be"))?;
            let (byte, mask) = (validity + field / 8, 1u8 << (field % 8));
            for row in 0..len {
                let position = selection.map_or(row, |selection| selection[row] as usize);
                if nulls.is_null(position) {
                    self.pages.clear_bit(start + row, byte, mask);
                    self.has_nulls[field] = true;
                }
            }
        }
        Ok(())
    }

    /// Writes references to the last side, one per row.
    fn append_references(&mut self, offset: usize, start: usize, len: usize) -> Result<()> {
        let side = self.sides.last().map_or(0, Side::memory_bytes);
        self.reservation.grow(side)?;
        let index = self.sides.len() as u64 - 1;
        self.pages.write_run(start, len, offset, (0..len as u64).map(|row| index | row << 32));
        Ok(())
    }
}

impl Values {
    fn width_bytes(&self) -> usize {
        match self {
            Values::Null => 0,
            Values::Boolean(_) | Values::Bits8(_) => 1,
            Values::Bits16(_) => 2,
            Values::Bits32(_) => 4,
            Values::Bits64(_) | Values::Nested(_) | Values::Handles(_) => 8,
            Values::Bits128(_) | Values::Interval(_) | Values::View(..) => 16,
        }
    }
}

#[inline(always)]
pub(super) fn put<T: Fixed>(
    pages: &mut Pages,
    start: usize,
    len: usize,
    offset: usize,
    selection: Option<&[u32]>,
    value: impl Fn(usize) -> T,
) {
    match selection {
        None => pages.write_run(start, len, offset, (0..len).map(value)),
        Some(selection) => {
            pages.write_run(
                start,
                len,
                offset,
                selection.iter().map(|position| value(*position as usize)),
            );
        }
    }
}
