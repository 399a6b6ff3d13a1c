//! Between atoms and constants of plans and the Arrow types and scalars DataFusion plans with.
//!
//! Planning uses one Arrow type per atom, which need not be its plain form: every decimal is 128-bit and every string
//! `Utf8`, because DataFusion's coercion knows those best. Differences between Arrow types of one atom vanish at the
//! boundary.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion_common::ScalarValue;
use tessera_plan::Scalar;
use tessera_types::{Atom, DECIMAL_PRECISION_MAX, Error, Result, Slot, Tuple};

use crate::error::from_datafusion;

/// The Arrow type an atom is planned with.
pub(crate) fn planning_type(atom: &Atom) -> DataType {
    match atom {
        Atom::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale),
        Atom::String => DataType::Utf8,
        Atom::Bytes => DataType::Binary,
        Atom::List(slot) => DataType::List(Arc::new(planning_field("item", slot))),
        Atom::Struct(slots) => {
            DataType::Struct(slots.iter().map(|(name, slot)| planning_field(name, slot)).collect())
        }
        Atom::Map(key, value) => {
            let key = Field::new("key", planning_type(&key.atom), false);
            let entries = Fields::from(vec![key, planning_field("value", value)]);
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
        }
        other => other.arrow(),
    }
}

fn planning_field(name: &str, slot: &Slot) -> Field {
    Field::new(name, planning_type(&slot.atom), slot.nullable)
}

/// The Arrow schema a table is planned with. Fields that hold collections have none and are left out.
pub(crate) fn planning_schema(tuple: &Tuple) -> Schema {
    let field = |field: &tessera_types::Field| {
        field.atom().map(|atom| Field::new(&*field.name, planning_type(atom), field.nullable))
    };
    Schema::new(tuple.fields().iter().filter_map(field).collect::<Vec<_>>())
}

/// A constant of the planner as a constant of plans.
pub(crate) fn from_scalar_value(value: &ScalarValue) -> Result<(Scalar, Atom)> {
    // The planner's literal `1e10` has a negative scale.
    if let ScalarValue::Decimal128(Some(number), _, scale @ ..0) = value {
        let whole = 10_i128.checked_pow(scale.unsigned_abs().into()).and_then(|by| number.checked_mul(by));
        return Ok(match whole.and_then(|whole| Some((whole, digits(whole)?))) {
            Some((whole, digits)) => (Scalar::Integer(whole), Atom::Decimal(digits, 0)),
            None => {
                let text = format!("{number}e{}", scale.unsigned_abs());
                let float = text.parse().map_err(|_| Error::internal(format!("the number {text}")))?;
                (Scalar::Float(float), Atom::Float64)
            }
        });
    }
    Ok((scalar(value)?, Atom::from_arrow(&value.data_type())?))
}

/// The digits of a whole number that a decimal can hold.
fn digits(number: i128) -> Option<u8> {
    let digits = number.unsigned_abs().checked_ilog10().map_or(1, |log| log as u8 + 1);
    (digits <= DECIMAL_PRECISION_MAX).then_some(digits)
}

fn scalar(value: &ScalarValue) -> Result<Scalar> {
    use ScalarValue as V;
    if value.is_null() {
        return Ok(Scalar::Null);
    }
    let integer = |number: Option<i128>| number.map_or(Scalar::Null, Scalar::Integer);
    let array_items = |array: ArrayRef| -> Result<Vec<Scalar>> {
        (0..array.len())
            .map(|index| scalar(&V::try_from_array(&array, index).map_err(from_datafusion)?))
            .collect()
    };
    Ok(match value {
        V::Boolean(flag) => flag.map_or(Scalar::Null, Scalar::Boolean),
        V::Float16(number) => number.map_or(Scalar::Null, |number| Scalar::Float(number.to_f64())),
        V::Float32(number) => number.map_or(Scalar::Null, |number| Scalar::Float(number.into())),
        V::Float64(number) => number.map_or(Scalar::Null, Scalar::Float),
        V::Int8(number) => integer(number.map(Into::into)),
        V::Int16(number) => integer(number.map(Into::into)),
        V::Int32(number) | V::Date32(number) | V::Time32Second(number) | V::Time32Millisecond(number) => {
            integer(number.map(Into::into))
        }
        V::Decimal32(number, ..) => integer(number.map(Into::into)),
        V::Int64(number)
        | V::Time64Microsecond(number)
        | V::Time64Nanosecond(number)
        | V::TimestampSecond(number, _)
        | V::TimestampMillisecond(number, _)
        | V::TimestampMicrosecond(number, _)
        | V::TimestampNanosecond(number, _)
        | V::DurationSecond(number)
        | V::DurationMillisecond(number)
        | V::DurationMicrosecond(number)
        | V::DurationNanosecond(number)
        | V::Decimal64(number, ..) => integer(number.map(Into::into)),
        V::Date64(number) => integer(number.map(|ms| i128::from(ms.div_euclid(86_400_000)))),
        V::Decimal128(number, ..) => integer(*number),
        V::Decimal256(number, ..) => integer(number.and_then(|number| number.to_i128())),
        V::UInt8(number) => integer(number.map(Into::into)),
        V::UInt16(number) => integer(number.map(Into::into)),
        V::UInt32(number) => integer(number.map(Into::into)),
        V::UInt64(number) => integer(number.map(Into::into)),
        V::Utf8(text) | V::LargeUtf8(text) | V::Utf8View(text) => {
            text.as_deref().map_or(Scalar::Null, |text| Scalar::String(text.into()))
        }
        V::Binary(bytes) | V::LargeBinary(bytes) | V::BinaryView(bytes) | V::FixedSizeBinary(_, bytes) => {
            bytes.as_deref().map_or(Scalar::Null, |bytes| Scalar::Bytes(bytes.into()))
        }
        V::IntervalYearMonth(Some(months)) => Scalar::Interval { months: *months, days: 0, nanoseconds: 0 },
        V::IntervalDayTime(Some(value)) => Scalar::Interval {
            months: 0,
            days: value.days,
            nanoseconds: i64::from(value.milliseconds) * 1_000_000,
        },
        V::IntervalMonthDayNano(Some(value)) => {
            Scalar::Interval { months: value.months, days: value.days, nanoseconds: value.nanoseconds }
        }
        V::List(list) => Scalar::Nested(array_items(list.value(0))?.into()),
        V::LargeList(list) => Scalar::Nested(array_items(list.value(0))?.into()),
        V::FixedSizeList(list) => Scalar::Nested(array_items(list.value(0))?.into()),
        V::Struct(slots) => {
            let items = slots
                .columns()
                .iter()
                .map(|column| scalar(&V::try_from_array(column, 0).map_err(from_datafusion)?));
            Scalar::Nested(items.collect::<Result<Vec<_>>>()?.into())
        }
        V::Map(map) => {
            let entries = map.value(0);
            let keys = array_items(entries.column(0).clone())?;
            let values = array_items(entries.column(1).clone())?;
            Scalar::Nested(keys.into_iter().zip(values).flat_map(|(key, value)| [key, value]).collect())
        }
        V::Dictionary(_, value) => scalar(value)?,
        other => {
            return Err(Error::unsupported(format!(
                "a constant of type {} is not supported",
                other.data_type()
            )));
        }
    })
}
