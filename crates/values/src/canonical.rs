//! Canonical floats with one zero and one NaN, so that a bitwise comparison agrees with SQL.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, ListArray, StructArray};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, IntervalMonthDayNanoType, IntervalUnit,
};
use tessera_types::Result;

/// Whether a type is a float or contains floats.
fn has_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 => true,
        DataType::List(item) => has_floats(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_floats(field.data_type())),
        _ => false,
    }
}

/// Replaces -0.0 by 0.0 and all NaNs by one, also inside lists and structs.
pub fn canonical_floats(array: &ArrayRef) -> Result<ArrayRef> {
    if !has_floats(array.data_type()) {
        return Ok(array.clone());
    }
    Ok(match array.data_type() {
        DataType::Float64 => {
            let one = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(one))
        }
        DataType::Float32 => {
            let one = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(one))
        }
        DataType::List(item) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            Arc::new(ListArray::try_new(item.clone(), offsets, canonical_floats(&values)?, nulls)?)
        }
        DataType::Struct(fields) => {
            let structs = array.as_struct();
            let columns =
                structs.columns().iter().map(canonical_floats).collect::<Result<Vec<_>>>()?;
            let nulls = structs.nulls().cloned();
            Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                nulls,
                structs.len(),
            )?)
        }
        _ => array.clone(),
    })
}

/// Converts values such that their bytes define equality: canonical floats, and intervals as
/// nanoseconds.
pub fn canonical_values(array: ArrayRef) -> Result<ArrayRef> {
    if array.data_type() != &DataType::Interval(IntervalUnit::MonthDayNano) {
        return canonical_floats(&array);
    }
    const DAY: i128 = 86_400_000_000_000;
    let length: Decimal128Array =
        array.as_primitive::<IntervalMonthDayNanoType>().unary(|interval| {
            (i128::from(interval.months) * 30 + i128::from(interval.days)) * DAY
                + i128::from(interval.nanoseconds)
        });
    Ok(Arc::new(length.with_precision_and_scale(38, 0)?))
}

#[cfg(test)]
mod tests {
    use arrow::array::Float64Array;
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn signs_of_zero_and_nan_are_gone() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, -f64::NAN, 1.5]));
        let item = Arc::new(Field::new("item", DataType::Float64, true));
        let lists: ArrayRef = Arc::new(
            ListArray::try_new(item, OffsetBuffer::from_lengths([3]), values.clone(), None)
                .unwrap(),
        );
        let inner = canonical_floats(&lists).unwrap().as_list::<i32>().values().clone();
        for array in [canonical_floats(&values).unwrap(), inner] {
            let bits: Vec<u64> =
                array.as_primitive::<Float64Type>().values().iter().map(|v| v.to_bits()).collect();
            assert_eq!(bits, [0, f64::NAN.to_bits(), 1.5f64.to_bits()]);
        }
    }
}
