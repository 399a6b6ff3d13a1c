//! ResolvedColumn columns, to be packed into rows or compared with them: encodings are resolved
//! once per chunk.

use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, IntervalMonthDayNano};

use tessera_types::{Error, Result};
use tessera_vector::physical::{Physical, interval_values, raw_values};
use tessera_vector::{Chunk, Column, Handle};

use super::nested::encode;
use super::packing::Bounds;
use super::range::RowRange;

/// Columns of `rows` values each, ready to be read value by value.
#[derive(Debug)]
pub struct ResolvedColumns {
    pub(crate) rows: usize,
    columns: OnceLock<Vec<ResolvedColumn>>,
    /// A chunk of tuples stored as rows, whose columns are resolved on first use.
    lazy: Option<Chunk>,
}

/// One column: position `p` is NULL by `nulls`, or has value `index[p]` (or `p`) of `values`.
#[derive(Debug)]
pub struct ResolvedColumn {
    pub values: Values,
    pub index: Option<ScalarBuffer<u32>>,
    pub nulls: Option<NullBuffer>,
}

/// Values by physical class.
#[derive(Debug)]
pub enum Values {
    /// All values are NULL.
    Null,
    /// Booleans.
    Boolean(BooleanBuffer),
    /// Values of one byte.
    Bits8(ScalarBuffer<u8>),
    /// Values of two bytes.
    Bits16(ScalarBuffer<u16>),
    /// Values of four bytes.
    Bits32(ScalarBuffer<u32>),
    /// Values of eight bytes.
    Bits64(ScalarBuffer<u64>),
    /// Wide decimals.
    Bits128(ScalarBuffer<i128>),
    /// Intervals.
    Interval(ScalarBuffer<IntervalMonthDayNano>),
    /// Strings and bytes: views, and the array that owns them.
    View(ScalarBuffer<u128>, ArrayRef),
    /// Lists, structs and maps.
    Nested(ArrayRef),
    /// Collections.
    Handles(Arc<[Handle]>),
}

impl ResolvedColumns {
    /// Resolves columns of `rows` values each.
    ///
    /// # Errors
    /// A column is not in one of the forms a chunk may hold.
    pub fn new(columns: &[Column], rows: usize) -> Result<ResolvedColumns> {
        if columns.iter().any(|column| column.len() != rows) {
            return Err(Error::internal("columns of different lengths were packed together"));
        }
        let columns = columns.iter().map(ResolvedColumn::new).collect::<Result<Vec<_>>>()?;
        Ok(ResolvedColumns { rows, columns: columns.into(), lazy: None })
    }

    /// The columns.
    pub fn columns(&self) -> &[ResolvedColumn] {
        self.columns.get_or_init(|| {
            let resolved =
                |column| ResolvedColumn::new(column).expect("a range of rows has plain columns");
            self.lazy.iter().flat_map(|chunk| chunk.stored().iter().map(resolved)).collect()
        })
    }

    /// Returns the range of rows that stores the tuples, if they are stored as rows.
    pub fn range(&self) -> Option<&RowRange> {
        self.lazy.as_ref().and_then(Chunk::lazy_as)
    }

    /// Resolves the stored columns of a chunk; the caller applies its selection.
    pub fn of_chunk(chunk: &Chunk) -> Result<ResolvedColumns> {
        match chunk.lazy_as::<RowRange>() {
            None => ResolvedColumns::new(chunk.stored(), chunk.rows_stored()),
            Some(_) => {
                let (rows, lazy) = (chunk.rows_stored(), Some(chunk.clone()));
                Ok(ResolvedColumns { rows, columns: OnceLock::new(), lazy })
            }
        }
    }

    /// Like [`ResolvedColumns::of_chunk`], with lists, structs and maps encoded as bytes for
    /// sending.
    pub fn of_sent(chunk: &Chunk) -> Result<ResolvedColumns> {
        let mut incoming = ResolvedColumns::of_chunk(chunk)?;
        // Tuples stored as rows have no lists, structs or maps.
        for column in incoming.columns.get_mut().into_iter().flatten() {
            if let Values::Nested(array) = &column.values {
                let encoded = encode(array)?;
                column.values = Values::View(encoded.views().clone(), Arc::new(encoded));
            }
        }
        Ok(incoming)
    }

    /// The number of values of each column.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns whether a position is NULL in any of the columns.
    pub fn any_null(&self, position: usize) -> bool {
        self.columns().iter().any(|column| column.is_null(position))
    }

    /// Returns the bounds of a column's values at the selected positions.
    pub fn bounds(&self, column: usize, selection: Option<&[u32]>) -> Bounds {
        self.columns()
            .get(column)
            .map_or(Bounds::NONE, |column| Bounds::of(column, self.rows, selection))
    }

    /// Returns the heap bytes of a position's strings: of those longer than 12 bytes.
    pub fn heap_bytes(&self, position: usize) -> u64 {
        let bytes = |column: &ResolvedColumn| match &column.values {
            Values::View(views, _) if !column.is_null(position) => {
                let length = views.get(column.at(position)).map_or(0, |view| *view as u32);
                if length > 12 { u64::from(length) } else { 0 }
            }
            _ => 0,
        };
        self.columns().iter().map(bytes).sum()
    }

    /// Returns whether any column has a NULL.
    pub fn has_nulls(&self) -> bool {
        self.columns().iter().any(|column| column.nulls.is_some())
    }
}

impl ResolvedColumn {
    fn new(column: &Column) -> Result<ResolvedColumn> {
        match column {
            Column::Plain(array) => ResolvedColumn::plain(array, None),
            Column::Dictionary(array) => {
                let dictionary = array.as_any_dictionary();
                let keys = dictionary.keys();
                let wide = matches!(keys.data_type(), DataType::Int32 | DataType::UInt32);
                if !wide || Physical::of(dictionary.values().data_type())? == Physical::Nested {
                    return ResolvedColumn::plain(&column.plain()?, None);
                }
                // The key of a NULL may be invalid; reading beyond the values gives a default.
                let keys: ArrayRef = arrow::array::make_array(keys.to_data());
                let mut resolved =
                    ResolvedColumn::plain(dictionary.values(), Some(raw_values::<u32>(&keys)))?;
                resolved.nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
                Ok(resolved)
            }
            Column::Constant(value, len) => {
                let zeros = UInt32Array::from_value(0, *len).values().clone();
                let mut resolved = ResolvedColumn::plain(value, Some(zeros))?;
                resolved.nulls = resolved.nulls.map(|_| NullBuffer::new_null(*len));
                Ok(resolved)
            }
            Column::Handles(handles) => Ok(ResolvedColumn {
                values: Values::Handles(handles.clone()),
                index: None,
                nulls: None,
            }),
        }
    }

    fn plain(array: &ArrayRef, index: Option<ScalarBuffer<u32>>) -> Result<ResolvedColumn> {
        let values = match Physical::of(array.data_type())? {
            Physical::Null => Values::Null,
            Physical::Boolean => Values::Boolean(array.as_boolean().values().clone()),
            Physical::Bits8 => Values::Bits8(raw_values(array)),
            Physical::Bits16 => Values::Bits16(raw_values(array)),
            Physical::Bits32 | Physical::Float32 => Values::Bits32(raw_values(array)),
            Physical::Bits64 | Physical::Float64 => Values::Bits64(raw_values(array)),
            Physical::Bits128 => Values::Bits128(raw_values(array)),
            Physical::Interval => Values::Interval(interval_values(array)?.clone()),
            Physical::View => {
                let views = match array.as_string_view_opt() {
                    Some(strings) => strings.views(),
                    None => array.as_binary_view().views(),
                };
                Values::View(views.clone(), array.clone())
            }
            Physical::Nested => Values::Nested(array.clone()),
        };
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        Ok(ResolvedColumn { values, index, nulls })
    }

    /// Whether the value at a position is NULL.
    #[inline(always)]
    pub fn is_null(&self, position: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(position))
    }

    /// Returns the index of the value at a position.
    #[inline(always)]
    pub fn at(&self, position: usize) -> usize {
        match &self.index {
            None => position,
            Some(index) => index.get(position).map_or(usize::MAX, |value| *value as usize),
        }
    }
}

/// The heap buffers of a string or bytes view array.
pub(crate) fn view_buffers(array: &ArrayRef) -> &[Buffer] {
    match array.as_string_view_opt() {
        Some(strings) => strings.data_buffers(),
        None => array.as_binary_view().data_buffers(),
    }
}

/// Returns the bytes of a view longer than 12, from the buffers it points into.
#[inline(always)]
pub(crate) fn long_bytes<B: std::ops::Deref<Target = [u8]>>(
    view: u128,
    buffers: &[B],
) -> Option<&[u8]> {
    let len = view as u32 as usize;
    let (buffer, offset) = ((view >> 64) as u32 as usize, (view >> 96) as u32 as usize);
    buffers.get(buffer)?.get(offset..offset + len)
}
