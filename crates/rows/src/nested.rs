//! Lists, structs and maps: equality (NULLs inside are equal), and encoding as bytes for another
//! process.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, new_null_array};
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};

use tessera_context::guard::guarded;
use tessera_types::{Error, Result};
use tessera_vector::physical::{
    Physical, canonical32, canonical64, interval_length, interval_values, raw_values,
};

/// Returns whether value `i` of `a` equals value `j` of `b`; both of one type.
pub(crate) fn values_equal(a: &ArrayRef, i: usize, b: &ArrayRef, j: usize) -> bool {
    if i >= a.len() || j >= b.len() {
        return false;
    }
    match (a.is_null(i), b.is_null(j)) {
        (false, false) => {}
        (left, right) => return left == right,
    }
    let Ok(physical) = Physical::of(a.data_type()) else { return false };
    match physical {
        Physical::Null => true,
        Physical::Boolean => a.as_boolean().value(i) == b.as_boolean().value(j),
        Physical::Bits8 => raw_values::<u8>(a)[i] == raw_values::<u8>(b)[j],
        Physical::Bits16 => raw_values::<u16>(a)[i] == raw_values::<u16>(b)[j],
        Physical::Bits32 => raw_values::<u32>(a)[i] == raw_values::<u32>(b)[j],
        Physical::Bits64 => raw_values::<u64>(a)[i] == raw_values::<u64>(b)[j],
        Physical::Bits128 => raw_values::<i128>(a)[i] == raw_values::<i128>(b)[j],
        Physical::Float32 => {
            canonical32(raw_values::<u32>(a)[i]) == canonical32(raw_values::<u32>(b)[j])
        }
        Physical::Float64 => {
            canonical64(raw_values::<u64>(a)[i]) == canonical64(raw_values::<u64>(b)[j])
        }
        Physical::Interval => match (interval_values(a), interval_values(b)) {
            (Ok(a), Ok(b)) => interval_length(a[i]) == interval_length(b[j]),
            _ => false,
        },
        Physical::View => match (a.as_string_view_opt(), b.as_string_view_opt()) {
            (Some(a), Some(b)) => a.value(i) == b.value(j),
            (None, None) => a.as_binary_view().value(i) == b.as_binary_view().value(j),
            _ => false,
        },
        Physical::Nested => nested_equal(a, i, b, j),
    }
}

fn nested_equal(a: &ArrayRef, i: usize, b: &ArrayRef, j: usize) -> bool {
    let items_equal = |a: ArrayRef, b: ArrayRef| {
        a.len() == b.len() && (0..a.len()).all(|item| values_equal(&a, item, &b, item))
    };
    if let (Some(a), Some(b)) = (a.as_list_opt::<i32>(), b.as_list_opt::<i32>()) {
        return items_equal(a.value(i), b.value(j));
    }
    if let (Some(a), Some(b)) = (a.as_map_opt(), b.as_map_opt()) {
        return items_equal(Arc::new(a.value(i)), Arc::new(b.value(j)));
    }
    match (a.as_struct_opt(), b.as_struct_opt()) {
        (Some(a), Some(b)) => {
            a.columns().len() == b.columns().len()
                && a.columns().iter().zip(b.columns()).all(|(a, b)| values_equal(a, i, b, j))
        }
        _ => false,
    }
}

/// Encodes each value as bytes.
pub(super) fn encode(array: &ArrayRef) -> Result<BinaryViewArray> {
    let rows = converter(array.data_type())?.convert_columns(std::slice::from_ref(array))?;
    Ok(rows.iter().map(|row| Some(row.data().to_vec())).collect())
}

/// Decodes values of this type; missing bytes give NULL.
pub fn decode<'a>(
    converter: &RowConverter,
    data_type: &DataType,
    values: impl Iterator<Item = Option<&'a [u8]>>,
) -> Result<ArrayRef> {
    let null = converter.convert_columns(&[new_null_array(data_type, 1)])?;
    let parser = converter.parser();
    let rows = values.map(|bytes| bytes.map_or_else(|| null.row(0), |bytes| parser.parse(bytes)));
    // Arrow may panic on bytes that it did not write.
    let decoded = guarded(|| converter.convert_rows(rows));
    let decoded = decoded.ok_or_else(|| {
        Error::data(
            "rows received from another process are damaged: a list, struct or map cannot be decoded",
        )
    })??;
    decoded.into_iter().next().ok_or_else(|| Error::internal("values decoded to nothing"))
}

/// Returns a converter between values of a type and bytes that compare as the values do. NULLs
/// within a value are the largest, as in comparisons and in ORDER BY.
pub fn converter(data_type: &DataType) -> Result<RowConverter> {
    let last = SortOptions { descending: false, nulls_first: false };
    Ok(RowConverter::new(vec![SortField::new_with_options(data_type.clone(), last)])?)
}
