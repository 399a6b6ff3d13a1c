//! Gathers columns from rows: one typed loop per field.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, BinaryViewArray, BooleanArray, StringViewArray,
    make_array, new_null_array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{ArrowNativeType, DataType};

use tessera_types::{Error, Result};
use tessera_vector::Column;
use tessera_vector::physical::{Physical, interval_from_bits};

use super::NO_ROW;
use super::layout::{Kind, RowLayout};
use super::memory::{Fixed, Pages};
use super::nested::{converter, decode};
use super::packing::Packed;
use super::sealed::{Part, Side};

/// The rows of a part to gather.
#[derive(Debug, Clone, Copy)]
pub enum RowSelection<'a> {
    /// The listed rows; [`NO_ROW`] stands for a missing row.
    Listed(&'a [u64]),
    /// Consecutive rows: the first, and how many.
    Run(usize, usize),
}

impl RowSelection<'_> {
    fn len(self) -> usize {
        match self {
            RowSelection::Listed(rows) => rows.len(),
            RowSelection::Run(_, len) => len,
        }
    }

    fn get(self, at: usize) -> u64 {
        match self {
            RowSelection::Listed(rows) => rows[at],
            RowSelection::Run(first, _) => (first + at) as u64,
        }
    }

    /// Returns whether some row is [`NO_ROW`].
    fn has_gaps(self) -> bool {
        matches!(self, RowSelection::Listed(rows) if rows.contains(&NO_ROW))
    }

    /// Returns the values at an offset of these rows.
    pub fn values<T: Fixed>(self, pages: &Pages, offset: usize) -> Result<Vec<T>> {
        match self {
            RowSelection::Listed(rows) => pages.gather(offset, rows),
            RowSelection::Run(first, len) => Ok(pages.gather_range(offset, first..first + len)),
        }
    }
}

impl Part {
    /// Gathers a field of these rows, in this order; [`NO_ROW`] gives NULL.
    pub fn gather(
        &self,
        layout: &RowLayout,
        field: usize,
        rows: RowSelection<'_>,
    ) -> Result<Column> {
        let place =
            layout.fields.get(field).ok_or_else(|| Error::internal("a field beyond the last"))?;
        let offset = place.offset;
        let (physical, data_type) = match &place.kind {
            Kind::Value(physical, data_type) => (physical, data_type),
            Kind::Packed(packed) => {
                let nulls = self.gather_nulls(layout, field, rows)?;
                return Ok(Column::Plain(
                    packed.array(&rows.values::<u64>(&self.pages, offset)?, nulls)?,
                ));
            }
            Kind::Encoded(data_type) => {
                let nulls = self.gather_nulls(layout, field, rows)?;
                let bytes = self.gather_views(offset, rows, &DataType::BinaryView, nulls)?;
                let values =
                    decode(&converter(data_type)?, data_type, bytes.as_binary_view().iter())?;
                return Ok(Column::Plain(values));
            }
            Kind::Handle => return self.gather_handles(offset, rows),
        };
        let nulls = self.gather_nulls(layout, field, rows)?;
        let array: ArrayRef = match physical {
            Physical::Null => new_null_array(data_type, rows.len()),
            Physical::Boolean => {
                let bytes = rows.values::<u8>(&self.pages, offset)?;
                let bits = BooleanBuffer::collect_bool(rows.len(), |i| bytes[i] != 0);
                Arc::new(BooleanArray::new(bits, nulls))
            }
            Physical::Bits8 => self.gather_fixed::<u8>(offset, rows, data_type, nulls)?,
            Physical::Bits16 => self.gather_fixed::<u16>(offset, rows, data_type, nulls)?,
            Physical::Bits32 | Physical::Float32 => {
                self.gather_fixed::<u32>(offset, rows, data_type, nulls)?
            }
            Physical::Bits64 | Physical::Float64 => {
                self.gather_fixed::<u64>(offset, rows, data_type, nulls)?
            }
            Physical::Bits128 => self.gather_fixed::<i128>(offset, rows, data_type, nulls)?,
            Physical::Interval => {
                let bits = rows.values::<u128>(&self.pages, offset)?;
                let values: Vec<_> = bits.into_iter().map(interval_from_bits).collect();
                Arc::new(arrow::array::IntervalMonthDayNanoArray::new(values.into(), nulls))
            }
            Physical::View => self.gather_views(offset, rows, data_type, nulls)?,
            Physical::Nested => self.gather_nested(offset, rows, data_type)?,
        };
        Ok(Column::Plain(array))
    }

    /// Returns which of these rows are NULL in a field; `None` if no row is.
    fn gather_nulls(
        &self,
        layout: &RowLayout,
        field: usize,
        rows: RowSelection<'_>,
    ) -> Result<Option<NullBuffer>> {
        if let (true, Some(validity)) = (self.has_nulls[field], layout.validity_offset()) {
            let (byte, mask) = (validity + field / 8, 1u8 << (field % 8));
            let bytes = rows.values::<u8>(&self.pages, byte)?;
            let bits = BooleanBuffer::collect_bool(rows.len(), |i| bytes[i] & mask != 0);
            return Ok(Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0));
        }
        if !rows.has_gaps() {
            return Ok(None);
        }
        Ok(Some(NullBuffer::new(BooleanBuffer::collect_bool(rows.len(), |i| {
            rows.get(i) != NO_ROW
        }))))
    }

    fn gather_fixed<T: Fixed + ArrowNativeType>(
        &self,
        offset: usize,
        rows: RowSelection<'_>,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let values = Buffer::from_vec(rows.values::<T>(&self.pages, offset)?);
        let data =
            ArrayData::builder(data_type.clone()).len(rows.len()).add_buffer(values).nulls(nulls);
        Ok(make_array(data.build()?))
    }

    fn gather_views(
        &self,
        offset: usize,
        rows: RowSelection<'_>,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        let views = ScalarBuffer::from(rows.values::<u128>(&self.pages, offset)?);
        // SAFETY: a row's view was copied from a valid array of the same type, or points to bytes
        // that `push_bytes` copied from one into this part's heap; a row never written holds the
        // empty view.
        Ok(unsafe {
            match data_type {
                DataType::Utf8View => {
                    Arc::new(StringViewArray::new_unchecked(views, self.heap.clone(), nulls))
                }
                _ => Arc::new(BinaryViewArray::new_unchecked(views, self.heap.clone(), nulls)),
            }
        })
    }

    fn gather_handles(&self, offset: usize, rows: RowSelection<'_>) -> Result<Column> {
        if rows.has_gaps() {
            return Err(Error::internal("a missing collection was read"));
        }
        let references = rows.values::<u64>(&self.pages, offset)?;
        let handle = |reference: u64| match self.sides.get(reference as u32 as usize) {
            Some(Side::Handles(handles)) => handles.get((reference >> 32) as usize).cloned(),
            _ => None,
        };
        let handles = references.into_iter().map(handle).collect::<Option<_>>();
        handles.map(Column::Handles).ok_or_else(|| Error::internal("a row refers to no collection"))
    }

    fn gather_nested(
        &self,
        offset: usize,
        rows: RowSelection<'_>,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let references = rows.values::<u64>(&self.pages, offset)?;
        // Only the sides that are referred to; the first stands for missing rows.
        let null = new_null_array(data_type, 1);
        let mut touched: Vec<&dyn Array> = vec![&null];
        let mut places = std::collections::HashMap::new();
        let mut indices = Vec::with_capacity(rows.len());
        for (at, reference) in references.into_iter().enumerate() {
            if rows.get(at) == NO_ROW {
                indices.push((0, 0));
                continue;
            }
            let place = *places.entry(reference as u32).or_insert(touched.len());
            if place == touched.len() {
                match self.sides.get(reference as u32 as usize) {
                    Some(Side::Array(array)) => touched.push(array),
                    _ => return Err(Error::internal("a row refers to no value")),
                }
            }
            indices.push((place, (reference >> 32) as usize));
        }
        Ok(arrow::compute::interleave(&touched, &indices)?)
    }
}

/// Creates a column of NULLs for a field.
pub(crate) fn nulls_of(layout: &RowLayout, field: usize, rows: usize) -> Result<Column> {
    match &layout.fields[field].kind {
        Kind::Value(_, data_type)
        | Kind::Packed(Packed { data_type, .. })
        | Kind::Encoded(data_type) => Ok(Column::Plain(new_null_array(data_type, rows))),
        Kind::Handle if rows == 0 => Ok(Column::Handles(Arc::new([]))),
        Kind::Handle => Err(Error::internal("a missing collection was read")),
    }
}
