//! Decoded values, and their conversion to arrays.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryViewArray, StringViewArray, make_array};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::DataType;
use parquet::basic::Type;

use tessera_types::Atom;
use tessera_values::plain::to_plain;

use super::dictionary::{Dictionary, DictionaryValues};
use super::text;

/// The memory layout of values while they are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Four,
    Eight,
    View,
}

impl Width {
    /// The layout of values of `atom` with Parquet type `physical` and Arrow type `arrow`; `None`
    /// if this decoder does not support them.
    pub(super) fn of(physical: Type, arrow: &DataType, atom: &Atom) -> Option<Width> {
        let arrow = match arrow {
            DataType::Dictionary(_, values) => values.as_ref(),
            other => other,
        };
        match (physical, atom) {
            (Type::INT32, Atom::Decimal(precision, _)) if *precision <= 9 => Some(Width::Four),
            (Type::INT64, Atom::Decimal(precision, _)) if *precision <= 18 => Some(Width::Eight),
            (Type::BYTE_ARRAY, Atom::String | Atom::Bytes) => Some(Width::View),
            (Type::INT32, _) if *arrow == atom.arrow() => match atom {
                _ if atom.is_integer() => Some(Width::Four),
                Atom::Date | Atom::Time(_) => Some(Width::Four),
                _ => None,
            },
            (Type::INT64, Atom::Int64 | Atom::UInt64 | Atom::Timestamp(..) | Atom::Time(_))
                if *arrow == atom.arrow() =>
            {
                Some(Width::Eight)
            }
            (Type::FLOAT, Atom::Float32) => Some(Width::Four),
            (Type::DOUBLE, Atom::Float64) => Some(Width::Eight),
            _ => None,
        }
    }
}

/// Values of one width.
#[derive(Debug)]
pub(super) enum Values {
    Four(Vec<u32>),
    Eight(Vec<u64>),
    Views(Vec<u128>, Vec<Buffer>),
}

impl Values {
    pub(super) fn with_capacity(width: Width, rows: usize) -> Values {
        match width {
            Width::Four => Values::Four(Vec::with_capacity(rows)),
            Width::Eight => Values::Eight(Vec::with_capacity(rows)),
            Width::View => Values::Views(Vec::with_capacity(rows), Vec::new()),
        }
    }

    /// Appends the dictionary values of `codes`, which were checked; with `nulls`, the dictionary
    /// may be empty.
    pub(super) fn gather(
        &mut self,
        codes: &[u32],
        dictionary: &Dictionary,
        nulls: bool,
    ) -> Result<(), String> {
        fn add<T: Copy + Default>(out: &mut Vec<T>, codes: &[u32], values: &[T]) {
            match values {
                [] => out.resize(out.len() + codes.len(), T::default()),
                _ => out.extend(codes.iter().map(|code| values[*code as usize])),
            }
        }
        if dictionary.array.is_empty() && !nulls && !codes.is_empty() {
            return Err("the page has codes into an empty dictionary".to_string());
        }
        match (self, &dictionary.values) {
            (Values::Four(out), DictionaryValues::Four(values)) => add(out, codes, values),
            (Values::Eight(out), DictionaryValues::Eight(values)) => add(out, codes, values),
            (Values::Views(out, buffers), DictionaryValues::Views(values, own)) => {
                let start = out.len();
                add(out, codes, values);
                let block = own.first().map_or(0, |buffer| block_of(buffers, buffer));
                if block > 0 {
                    // Bits 64 to 95 of the view of a string longer than 12 bytes are its buffer
                    // number.
                    for view in &mut out[start..] {
                        if *view as u32 > 12 {
                            *view += u128::from(block) << 64;
                        }
                    }
                }
            }
            _ => return Err("the dictionary has an unexpected type".to_string()),
        }
        Ok(())
    }

    pub(super) fn into_array(
        self,
        atom: &Atom,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, String> {
        match self {
            Values::Views(views, buffers) => Ok(string_array(views.into(), buffers, nulls, atom)),
            Values::Four(values) => four_array(values.into(), atom, nulls),
            Values::Eight(values) => fixed_array(Buffer::from(values), atom.arrow(), nulls),
        }
    }
}

/// Returns the number of a buffer in a list, appending it unless it is the last.
pub(super) fn block_of(buffers: &mut Vec<Buffer>, buffer: &Buffer) -> u32 {
    if buffers.last().is_none_or(|last| last.as_ptr() != buffer.as_ptr()) {
        buffers.push(buffer.clone());
    }
    buffers.len() as u32 - 1
}

/// Converts values stored in four bytes to the width of their type in memory.
pub(super) fn four_array(
    values: ScalarBuffer<u32>,
    atom: &Atom,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, String> {
    match atom {
        Atom::Decimal(..) => {
            let wide: Vec<i64> = values.iter().map(|value| (*value as i32).into()).collect();
            fixed_array(Buffer::from(wide), atom.arrow(), nulls)
        }
        Atom::Int8 | Atom::Int16 => {
            let wide = fixed_array(values.into_inner(), DataType::Int32, nulls)?;
            to_plain(wide, atom).map_err(text)
        }
        Atom::UInt8 | Atom::UInt16 => {
            let wide = fixed_array(values.into_inner(), DataType::UInt32, nulls)?;
            to_plain(wide, atom).map_err(text)
        }
        _ => fixed_array(values.into_inner(), atom.arrow(), nulls),
    }
}

pub(super) fn fixed_array(
    values: Buffer,
    arrow: DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, String> {
    let width = arrow.primitive_width().ok_or("the type has no fixed width")?;
    let data = arrow::array::ArrayData::builder(arrow)
        .len(values.len() / width)
        .add_buffer(values)
        .nulls(nulls);
    data.build().map(make_array).map_err(text)
}

/// Builds an array from views and the buffers they refer to.
pub(super) fn string_array(
    views: ScalarBuffer<u128>,
    buffers: Vec<Buffer>,
    nulls: Option<NullBuffer>,
    atom: &Atom,
) -> ArrayRef {
    // SAFETY: each view was made by `make_view` from bytes of one of `buffers`, which outlive it,
    // at the offset it names, or is zero (the empty string); `gather` renumbers the buffer where it
    // has another position. Bytes of strings were checked to be UTF-8: the whole page as ASCII, or
    // each value by itself.
    unsafe {
        match atom {
            Atom::Bytes => Arc::new(BinaryViewArray::new_unchecked(views, buffers, nulls)),
            _ => Arc::new(StringViewArray::new_unchecked(views, buffers, nulls)),
        }
    }
}
