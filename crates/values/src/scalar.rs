//! Conversions between constants of plans and Arrow arrays of length 1.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, ListArray, MapArray, PrimitiveArray,
    StringViewArray, StringViewBuilder, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute;
use arrow::datatypes::*;
use tessera_plan::Scalar;
use tessera_types::{Atom, Code, Error, Result, TimeUnit};

/// Calls `$run!(ArrowType)` for an integer type.
#[macro_export]
macro_rules! with_integer {
    ($atom:expr, $run:ident, $otherwise:expr) => {
        match $atom {
            tessera_types::Atom::Int8 => $run!(arrow::datatypes::Int8Type),
            tessera_types::Atom::Int16 => $run!(arrow::datatypes::Int16Type),
            tessera_types::Atom::Int32 => $run!(arrow::datatypes::Int32Type),
            tessera_types::Atom::Int64 => $run!(arrow::datatypes::Int64Type),
            tessera_types::Atom::UInt8 => $run!(arrow::datatypes::UInt8Type),
            tessera_types::Atom::UInt16 => $run!(arrow::datatypes::UInt16Type),
            tessera_types::Atom::UInt32 => $run!(arrow::datatypes::UInt32Type),
            tessera_types::Atom::UInt64 => $run!(arrow::datatypes::UInt64Type),
            _ => $otherwise,
        }
    };
}

/// Calls `$run!(ArrowType)` for a type with values stored as integers.
#[macro_export]
macro_rules! with_whole_number {
    ($atom:expr, $run:ident, $otherwise:expr) => {
        $crate::with_integer!($atom, $run, {
            use arrow::datatypes::*;
            use tessera_types::{Atom, TimeUnit};
            match $atom {
                Atom::Decimal(p, _) if *p <= tessera_types::DECIMAL64_PRECISION_MAX => {
                    $run!(Decimal64Type)
                }
                Atom::Decimal(..) => $run!(Decimal128Type),
                Atom::Date => $run!(Date32Type),
                Atom::Enum(_) => $run!(UInt16Type),
                Atom::TimeTz => $run!(Int64Type),
                Atom::Time(TimeUnit::Second) => $run!(Time32SecondType),
                Atom::Time(TimeUnit::Millisecond) => $run!(Time32MillisecondType),
                Atom::Time(TimeUnit::Microsecond) => $run!(Time64MicrosecondType),
                Atom::Time(TimeUnit::Nanosecond) => $run!(Time64NanosecondType),
                Atom::Timestamp(TimeUnit::Second, _) => $run!(TimestampSecondType),
                Atom::Timestamp(TimeUnit::Millisecond, _) => $run!(TimestampMillisecondType),
                Atom::Timestamp(TimeUnit::Microsecond, _) => $run!(TimestampMicrosecondType),
                Atom::Timestamp(TimeUnit::Nanosecond, _) => $run!(TimestampNanosecondType),
                Atom::Duration(TimeUnit::Second) => $run!(DurationSecondType),
                Atom::Duration(TimeUnit::Millisecond) => $run!(DurationMillisecondType),
                Atom::Duration(TimeUnit::Microsecond) => $run!(DurationMicrosecondType),
                Atom::Duration(TimeUnit::Nanosecond) => $run!(DurationNanosecondType),
                _ => $otherwise,
            }
        })
    };
}

/// Converts a constant to an array of length 1 in the plain form of a type.
///
/// # Errors
/// The constant has another type or is out of range.
pub fn scalar_to_array(scalar: &Scalar, atom: &Atom) -> Result<ArrayRef> {
    let mismatch = || Error::semantic(format!("{scalar:?} is not a value of type {atom}"));
    let array: ArrayRef = match (scalar, atom) {
        (Scalar::Null, _) => arrow::array::new_null_array(&atom.arrow(), 1),
        (Scalar::Boolean(value), Atom::Boolean) => Arc::new(BooleanArray::from(vec![*value])),
        (Scalar::Integer(value), Atom::Float32) => {
            Arc::new(PrimitiveArray::<Float32Type>::from_value(*value as f32, 1))
        }
        (Scalar::Integer(value), Atom::Float64) => {
            Arc::new(PrimitiveArray::<Float64Type>::from_value(*value as f64, 1))
        }
        (Scalar::Integer(place), Atom::Enum(labels))
            if usize::try_from(*place).map_or(true, |place| place >= labels.labels().len()) =>
        {
            return Err(mismatch());
        }
        (Scalar::Integer(value), _) => {
            if let Atom::Decimal(precision, _) = atom
                && value.unsigned_abs() >= 10u128.pow((*precision).into())
            {
                return Err(Error::new(
                    Code::Overflow,
                    format!("{value} has more digits than type {atom} holds"),
                ));
            }
            macro_rules! one {
                ($type:ty) => {{
                    let native =
                        <$type as ArrowPrimitiveType>::Native::try_from(*value).map_err(|_| {
                            Error::new(
                                Code::Overflow,
                                format!("{value} is out of range for type {atom}"),
                            )
                        })?;
                    Arc::new(
                        PrimitiveArray::<$type>::from_value(native, 1).with_data_type(atom.arrow()),
                    ) as ArrayRef
                }};
            }
            with_whole_number!(atom, one, return Err(mismatch()))
        }
        (Scalar::Float(value), Atom::Float32) => {
            Arc::new(PrimitiveArray::<Float32Type>::from_value(*value as f32, 1))
        }
        (Scalar::Float(value), Atom::Float64) => {
            Arc::new(PrimitiveArray::<Float64Type>::from_value(*value, 1))
        }
        (Scalar::String(text), Atom::String | Atom::Bits | Atom::Uuid) => {
            Arc::new(StringViewArray::from_iter_values([&**text]))
        }
        (Scalar::Bytes(bytes), Atom::Bytes) => {
            Arc::new(BinaryViewArray::from_iter_values([&**bytes]))
        }
        (Scalar::Interval { months, days, nanoseconds }, Atom::Interval) => {
            let value = IntervalMonthDayNano::new(*months, *days, *nanoseconds);
            Arc::new(PrimitiveArray::<IntervalMonthDayNanoType>::from_value(value, 1))
        }
        (Scalar::Nested(values), Atom::List(slot)) => {
            let DataType::List(field) = atom.arrow() else { return Err(mismatch()) };
            let items = concat(values.iter(), &slot.atom)?;
            Arc::new(ListArray::try_new(
                field,
                OffsetBuffer::from_lengths([items.len()]),
                items,
                None,
            )?)
        }
        (Scalar::Nested(values), Atom::Struct(slots)) if values.len() == slots.len() => {
            let DataType::Struct(fields) = atom.arrow() else { return Err(mismatch()) };
            let columns = values
                .iter()
                .zip(slots.iter())
                .map(|(value, (_, slot))| scalar_to_array(value, &slot.atom))
                .collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new_with_length(fields, columns, None, 1)?)
        }
        (Scalar::Nested(values), Atom::Map(key, value)) if values.len() % 2 == 0 => {
            let DataType::Map(entries, sorted) = atom.arrow() else { return Err(mismatch()) };
            let DataType::Struct(fields) = entries.data_type() else { return Err(mismatch()) };
            let keys = concat(values.iter().step_by(2), &key.atom)?;
            let items = concat(values.iter().skip(1).step_by(2), &value.atom)?;
            let offsets = OffsetBuffer::from_lengths([keys.len()]);
            let pairs = StructArray::try_new(fields.clone(), vec![keys, items], None)?;
            Arc::new(MapArray::try_new(entries, offsets, pairs, None, sorted)?)
        }
        _ => return Err(mismatch()),
    };
    Ok(array)
}

fn concat<'a>(values: impl Iterator<Item = &'a Scalar> + Clone, atom: &Atom) -> Result<ArrayRef> {
    if let Some(array) = of_one_kind(values.clone(), atom) {
        return Ok(array);
    }
    let arrays = values.map(|value| scalar_to_array(value, atom)).collect::<Result<Vec<_>>>()?;
    if arrays.is_empty() {
        return Ok(arrow::array::new_empty_array(&atom.arrow()));
    }
    Ok(compute::concat(&arrays.iter().map(|array| array.as_ref()).collect::<Vec<_>>())?)
}

/// Converts integers or strings to an array; `None` if a value has another type or is out of range.
fn of_one_kind<'a>(mut values: impl Iterator<Item = &'a Scalar>, atom: &Atom) -> Option<ArrayRef> {
    macro_rules! numbers {
        ($type:ty) => {{
            let number = |value: &Scalar| match value {
                Scalar::Null => Some(None),
                Scalar::Integer(number) if value.fits(atom) => {
                    Some(Some(<$type as ArrowPrimitiveType>::Native::try_from(*number).ok()?))
                }
                _ => None,
            };
            let numbers = values.map(number).collect::<Option<Vec<_>>>()?;
            let array = numbers.into_iter().collect::<PrimitiveArray<$type>>();
            Some(Arc::new(array.with_data_type(atom.arrow())) as ArrayRef)
        }};
    }
    match atom {
        Atom::String | Atom::Bits | Atom::Uuid => {
            let mut texts = StringViewBuilder::new();
            values.try_for_each(|value| {
                match value {
                    Scalar::Null => texts.append_null(),
                    Scalar::String(text) => texts.append_value(&**text),
                    _ => return None,
                }
                Some(())
            })?;
            Some(Arc::new(texts.finish()))
        }
        whole_number => with_whole_number!(whole_number, numbers, None),
    }
}

/// Returns the value at `index` of an array in plain form.
///
/// # Errors
/// The index is out of bounds, or the array is not in plain form.
pub fn array_value(array: &dyn Array, index: usize) -> Result<Scalar> {
    if index >= array.len() {
        return Err(Error::internal(format!(
            "value {index} is out of bounds for an array of length {}",
            array.len()
        )));
    }
    let atom = Atom::from_arrow(array.data_type())?;
    if atom.arrow() != *array.data_type() {
        let plain = crate::plain::to_plain(array.slice(index, 1), &atom)?;
        return array_value(plain.as_ref(), 0);
    }
    if array.logical_nulls().is_some_and(|nulls: NullBuffer| nulls.is_null(index)) {
        return Ok(Scalar::Null);
    }
    macro_rules! whole {
        ($type:ty) => {
            Scalar::Integer(array.as_primitive::<$type>().value(index) as i128)
        };
    }
    Ok(match &atom {
        Atom::Null => Scalar::Null,
        Atom::Boolean => Scalar::Boolean(array.as_boolean().value(index)),
        Atom::Float32 => Scalar::Float(array.as_primitive::<Float32Type>().value(index).into()),
        Atom::Float64 => Scalar::Float(array.as_primitive::<Float64Type>().value(index)),
        Atom::String => Scalar::String(array.as_string_view().value(index).into()),
        Atom::Bytes => Scalar::Bytes(array.as_binary_view().value(index).into()),
        Atom::Interval => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(index);
            Scalar::Interval {
                months: value.months,
                days: value.days,
                nanoseconds: value.nanoseconds,
            }
        }
        Atom::List(_) => {
            let items = array.as_list::<i32>().value(index);
            Scalar::Nested((0..items.len()).map(|i| array_value(&items, i)).collect::<Result<_>>()?)
        }
        Atom::Struct(_) => {
            let columns = array.as_struct().columns();
            Scalar::Nested(
                columns.iter().map(|column| array_value(column, index)).collect::<Result<_>>()?,
            )
        }
        Atom::Map(..) => {
            let pairs = array.as_map().value(index);
            let mut values = Vec::with_capacity(pairs.len() * 2);
            for i in 0..pairs.len() {
                for column in pairs.columns() {
                    values.push(array_value(column, i)?);
                }
            }
            Scalar::Nested(values.into())
        }
        whole_number => with_whole_number!(
            whole_number,
            whole,
            return Err(Error::internal(format!("cannot read a value of type {atom}")))
        ),
    })
}

/// The number of units per second.
pub fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// Compares two values. Returns `None` for two zeros, which are equal regardless of sign, and for
/// values of different types.
pub fn compare(left: &Scalar, right: &Scalar) -> Option<Ordering> {
    match (left, right) {
        (Scalar::Boolean(a), Scalar::Boolean(b)) => Some(a.cmp(b)),
        (Scalar::Integer(a), Scalar::Integer(b)) => Some(a.cmp(b)),
        // Zeros are equal in SQL, so neither excludes the other.
        (Scalar::Float(a), Scalar::Float(b)) if *a == 0.0 && *b == 0.0 => None,
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(b),
        (Scalar::String(a), Scalar::String(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Scalar::Bytes(a), Scalar::Bytes(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_to_arrays_and_back() {
        for (atom, scalar) in [
            ("int8", Scalar::Integer(-128)),
            ("uint64", Scalar::Integer(u64::MAX.into())),
            ("decimal(18,2)", Scalar::Integer(999_999_999_999_999_999)),
            ("decimal(38,2)", Scalar::Integer(10i128.pow(38) - 1)),
            ("float32", Scalar::Float(1.5)),
            ("string", Scalar::String("a string that is longer than twelve bytes".into())),
            ("bytes", Scalar::Bytes([1, 2].as_slice().into())),
            ("date", Scalar::Integer(-1)),
            ("time(ms)", Scalar::Integer(5)),
            ("timestamp(ns, UTC)", Scalar::Integer(5)),
            ("duration(s)", Scalar::Integer(5)),
            ("interval", Scalar::Interval { months: 1, days: -2, nanoseconds: 3 }),
            ("list<int8?>", Scalar::Nested([Scalar::Null, Scalar::Integer(1)].into())),
            ("list<int8?>", Scalar::Nested([].into())),
            (
                "struct<a: int8?, b: string>",
                Scalar::Nested([Scalar::Null, Scalar::String("x".into())].into()),
            ),
            (
                "map<string, int8?>",
                Scalar::Nested([Scalar::String("k".into()), Scalar::Null].into()),
            ),
            ("null", Scalar::Null),
            ("list<int8?>", Scalar::Null),
        ] {
            let atom: Atom = atom.parse().unwrap();
            let array = scalar_to_array(&scalar, &atom).unwrap();
            assert_eq!(array.data_type(), &atom.arrow());
            assert_eq!(array_value(&array, 0).unwrap(), scalar, "{atom}");
        }
    }

    #[test]
    fn values_of_another_type_are_errors() {
        for (atom, scalar) in [
            ("int8", Scalar::Integer(128)),
            ("decimal(3,2)", Scalar::Integer(1000)),
            ("string", Scalar::Integer(1)),
            ("struct<a: int8>", Scalar::Nested([].into())),
        ] {
            assert!(scalar_to_array(&scalar, &atom.parse().unwrap()).is_err(), "{atom}");
        }
    }
}
