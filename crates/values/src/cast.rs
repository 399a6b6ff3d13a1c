//! Conversions between types, with PostgreSQL's semantics.
//!
//! Floats are rounded to integers half to even, decimals half away from zero. A value that does not
//! fit raises an error, or becomes NULL in a safe cast. `parse` reads strings and `format` writes
//! them. Arrow's casts are used if they have the same semantics.

use std::sync::Arc;

use arrow::array::*;
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::*;
use tessera_types::{Atom, Code, Error, Result, SqlState, TimeUnit};

use crate::exact::{
    EXACT_DIGITS, decimal_to_double, decimal_to_single, double_to_decimal, exact_power,
    single_to_decimal,
};
use crate::format::format_array;
use crate::kernel::{Argument, Kernel, argument, single};
use crate::parse::list::parse_lists;
use crate::parse::nested::{parse_maps, parse_structs};
use crate::parse::parse_array;
use crate::scalar::per_second;
use crate::temporal::moments::{local_time, midnights, zoned_time};
use crate::temporal::timetz;
use crate::types::decimal_of;
use crate::{bits, enums, struct_cast, uuid};
use crate::{with_integer, with_whole_number};
use tessera_codegen::{Op, ValueCode};

pub use crate::format::decimal_text;

/// A conversion between types that [`check_cast`] accepts.
#[derive(Debug)]
pub struct Cast {
    /// The source type.
    pub from: Atom,
    /// The target type.
    pub to: Atom,
    /// Whether a value that does not convert becomes NULL instead of raising an error.
    pub safe: bool,
}

impl Kernel for Cast {
    fn call(&self, args: &[Argument], _rows: usize) -> Result<ArrayRef> {
        cast(&argument(args, 0)?.array, &self.from, &self.to, self.safe)
    }

    /// Compiles only conversions that cannot fail.
    fn code(&self, args: Vec<ValueCode>, _atom: &Atom) -> Option<Op> {
        let (from, to) = (&self.from, &self.to);
        if cast_raises(from, to) {
            return None;
        }
        let scale = |atom: &Atom| match atom {
            Atom::Decimal(_, scale) => Some(*scale),
            atom => atom.is_integer().then_some(0),
        };
        match to {
            // A conversion that needs more than one rounded division is a call, not compiled code.
            Atom::Float64 if !matches!(from, Atom::Decimal(digits, _) if *digits > EXACT_DIGITS) => {
                Some(Op::ToFloat(exact_power(scale(from)?)?, single(args)?))
            }
            Atom::Decimal(..) => {
                let more = u32::try_from(scale(to)? - scale(from)?).ok()?;
                Some(Op::Widen(10i128.pow(more), single(args)?))
            }
            to if to.is_integer() && from.is_integer() => Some(Op::Widen(1, single(args)?)),
            _ => None,
        }
    }
}

/// Checks that values of type `from` can be converted to type `to`.
///
/// # Errors
/// There is no such conversion; the message names both types.
pub fn check_cast(from: &Atom, to: &Atom) -> Result<()> {
    let possible = match (from, to) {
        _ if from == to => true,
        (Atom::Null, _) | (_, Atom::String) => true,
        (Atom::String, Atom::List(slot)) => return check_cast(&Atom::String, &slot.atom),
        (Atom::String, Atom::Struct(slots)) => {
            return slots.iter().try_for_each(|(_, slot)| check_cast(&Atom::String, &slot.atom));
        }
        (Atom::String, Atom::Map(key, value)) => {
            return check_cast(from, &key.atom).and_then(|()| check_cast(from, &value.atom));
        }
        (Atom::String, _) => *to != Atom::Null,
        (Atom::TimeTz, _) | (_, Atom::TimeTz) => timetz::converts(from, to),
        (Atom::Uuid, _) | (_, Atom::Uuid) => *from == Atom::Bytes || *to == Atom::Bytes,
        (Atom::Enum(_), _) | (_, Atom::Enum(_)) => {
            matches!((from, to), (Atom::Enum(_), Atom::Enum(_)))
        }
        (Atom::Bits, _) | (_, Atom::Bits) => {
            matches!((from, to), (Atom::Bits, Atom::Int32 | Atom::Int64))
        }
        (Atom::List(a), Atom::List(b)) => return check_cast(&a.atom, &b.atom),
        (Atom::Struct(a), Atom::Struct(b)) if struct_cast::applies(a, b) => {
            return struct_cast::check(a, b);
        }
        (Atom::Map(a, b), Atom::Map(c, d)) => {
            return check_cast(&a.atom, &c.atom).and_then(|()| check_cast(&b.atom, &d.atom));
        }
        // Arrow would create a list of one value.
        _ if from.is_nested() || to.is_nested() => false,
        (Atom::Boolean, _) if to.is_numeric() => true,
        (_, Atom::Boolean) => from.is_numeric(),
        (Atom::Time(_), Atom::Interval) | (Atom::Interval, Atom::Time(_)) => true,
        (a, b) if a.is_numeric() && b.is_numeric() => true,
        (a, b) => {
            a.is_integer() == b.is_integer()
                && a.is_numeric() == b.is_numeric()
                && *b != Atom::Null
                && can_cast_types(&a.arrow(), &b.arrow())
        }
    };
    match possible {
        true => Ok(()),
        false => Err(Error::semantic(format!("cannot convert {from} to {to}"))
            .with_state(SqlState::CANNOT_COERCE)),
    }
}

/// The maximum number of digits of an integer type.
pub fn whole_digits(atom: &Atom) -> Option<u8> {
    crate::types::integer_digits(atom)
}

/// Whether some value of `from` does not convert.
pub fn cast_raises(from: &Atom, to: &Atom) -> bool {
    match (from, to) {
        _ if from == to => false,
        (Atom::Null, _) | (Atom::Boolean, _) | (_, Atom::Boolean) if *from != Atom::String => false,
        (Atom::Bytes, Atom::String) | (Atom::Uuid, Atom::Bytes) => false,
        (_, Atom::String | Atom::Float64) if *from != Atom::String => false,
        (a, Atom::Float32) if a.is_integer() => false,
        (a, b) if a.is_integer() && b.is_integer() => {
            crate::types::common_type(a, b).as_ref() != Some(b)
        }
        (a, Atom::Decimal(q, t)) if decimal_of(a).is_some() => {
            let (p, s) = decimal_of(a).unwrap_or((38, 0));
            // Rounding away fractional digits may carry into a new integer digit.
            let carry = i8::from(*t < s);
            (*q as i8 - t) < (p as i8 - s) + carry
        }
        (Atom::Date, Atom::Timestamp(unit, None)) => *unit == TimeUnit::Nanosecond,
        // The offset of the zone can move the value out of range.
        (Atom::Timestamp(_, None), Atom::Timestamp(_, Some(zone))) if &**zone != "UTC" => true,
        (Atom::Timestamp(..), Atom::Date | Atom::Time(_) | Atom::TimeTz)
        | (Atom::Interval | Atom::TimeTz, Atom::Time(_))
        | (Atom::Time(_), Atom::TimeTz) => false,
        (Atom::Timestamp(a, _), Atom::Timestamp(b, _)) | (Atom::Time(a), Atom::Time(b)) => {
            per_second(*b) > per_second(*a)
        }
        (Atom::List(a), Atom::List(b)) => cast_raises(&a.atom, &b.atom),
        _ => true,
    }
}

/// Converts a plain array to the plain form of another type.
///
/// # Errors
/// A value does not convert. With `safe` it becomes NULL instead.
pub fn cast(array: &ArrayRef, from: &Atom, to: &Atom, safe: bool) -> Result<ArrayRef> {
    match (from, to) {
        _ if from == to => Ok(array.clone()),
        (Atom::Null, _) => Ok(new_null_array(&to.arrow(), array.len())),
        (Atom::Enum(labels), Atom::String) => enums::labels_of(array, labels),
        // Both have the digits as their plain form.
        (Atom::Bits, Atom::String) => Ok(array.clone()),
        (Atom::String, Atom::Bits) => bits::from_texts(array, safe),
        (Atom::Bits, _) => bits::to_integers(array, to, safe),
        (Atom::Uuid, Atom::String) => Ok(array.clone()),
        (_, Atom::String) => format_array(array, from),
        (Atom::String, Atom::List(slot)) => parse_lists(array, slot, safe),
        (Atom::String, Atom::Struct(_)) => parse_structs(array, to, safe),
        (Atom::String, Atom::Map(..)) => parse_maps(array, to, safe),
        (Atom::String, Atom::Enum(labels)) => enums::from_texts(array, labels, safe),
        (Atom::Enum(from), Atom::Enum(to)) => enums::from_enum(array, from, to, safe),
        (Atom::String, Atom::Uuid) => uuid::from_texts(array, safe),
        (Atom::Bytes, Atom::Uuid) => uuid::from_bytes(array, safe),
        (Atom::Uuid, Atom::Bytes) => uuid::to_bytes(array),
        (Atom::String, _) => parse_array(array, to, safe),
        (Atom::TimeTz, _) => timetz::to_times(array, to),
        (Atom::Time(_), Atom::TimeTz) => timetz::from_times(array, from),
        (Atom::Timestamp(_, Some(zone)), Atom::TimeTz) => {
            checked(array, from, to, timetz::from_moments(array, from, zone)?, safe)
        }
        (Atom::List(a), Atom::List(b)) => {
            let list = array.as_list::<i32>();
            let DataType::List(field) = to.arrow() else { return Err(no_kernel(from, to)) };
            let (first, last) = (list.offsets()[0] as usize, list.offsets()[list.len()] as usize);
            let items = cast(&list.values().slice(first, last - first), &a.atom, &b.atom, safe)?;
            let offsets =
                list.offsets().iter().map(|offset| offset - first as i32).collect::<Vec<_>>();
            let offsets = arrow::buffer::OffsetBuffer::new(offsets.into());
            Ok(Arc::new(ListArray::try_new(field, offsets, items, list.nulls().cloned())?))
        }
        (Atom::Struct(a), Atom::Struct(b)) if struct_cast::applies(a, b) => {
            struct_cast::cast_structs(array, a, b, to, safe)
        }
        (Atom::Map(..), Atom::Map(..)) => struct_cast::cast_maps(array, from, to, safe),
        (
            Atom::Timestamp(unit, Some(zone)),
            Atom::Timestamp(_, None) | Atom::Date | Atom::Time(_),
        ) => {
            let naive = Atom::Timestamp(*unit, None);
            cast(&local_time(array, *unit, zone, &naive)?, &naive, to, safe)
        }
        (Atom::Float32 | Atom::Float64, _) if to.is_integer() => {
            floats_to_integers(array, from, to, safe)
        }
        (Atom::Decimal(_, scale), _) if to.is_integer() => {
            decimals_to_integers(array, *scale, from, to, safe)
        }
        (Atom::Float64, Atom::Float32) => {
            let input = array.as_primitive::<Float64Type>();
            let fits = |value: f64| {
                let narrow = value as f32;
                let lost =
                    (narrow.is_infinite() && value.is_finite()) || (narrow == 0.0 && value != 0.0);
                (!lost).then_some(narrow)
            };
            let output: Float32Array = input.unary_opt(fits);
            checked(array, from, to, Arc::new(output), safe)
        }
        (Atom::Decimal(_, scale), Atom::Float64) => {
            let nearest = |value| decimal_to_double(value, *scale);
            Ok(Arc::new(from_decimals::<Float64Type>(array, nearest)?))
        }
        (Atom::Decimal(_, scale), Atom::Float32) => {
            let nearest = |value| decimal_to_single(value, *scale);
            let output: Float32Array = from_decimals::<Float32Type>(array, nearest)?;
            Ok(Arc::new(output))
        }
        (Atom::Float32 | Atom::Float64, Atom::Decimal(precision, scale)) => {
            let wide = |value: &dyn Fn(usize) -> Option<i128>| -> Decimal128Array {
                (0..array.len())
                    .map(|row| array.is_valid(row).then(|| value(row)).flatten())
                    .collect()
            };
            let output = match array.as_primitive_opt::<Float64Type>() {
                Some(input) => wide(&|row| double_to_decimal(input.value(row), *precision, *scale)),
                None => {
                    let input = array.as_primitive::<Float32Type>();
                    wide(&|row| single_to_decimal(input.value(row), *precision, *scale))
                }
            };
            let output: ArrayRef = match to.arrow() {
                DataType::Decimal64(..) => {
                    let narrow = output.iter().map(|value| value.map(|value| value as i64));
                    Arc::new(narrow.collect::<Decimal64Array>().with_data_type(to.arrow()))
                }
                _ => Arc::new(output.with_data_type(to.arrow())),
            };
            checked(array, from, to, output, safe)
        }
        (Atom::Float32 | Atom::Float64, Atom::Boolean) => {
            let input = arrow::compute::cast(array, &DataType::Float64)?;
            let input = input.as_primitive::<Float64Type>();
            Ok(Arc::new(BooleanArray::from_unary(input, |value| value != 0.0)))
        }
        (Atom::Decimal(..), Atom::Boolean) => {
            let truth: BooleanArray = match array.as_primitive_opt::<Decimal64Type>() {
                Some(input) => BooleanArray::from_unary(input, |value| value != 0),
                None => BooleanArray::from_unary(array.as_primitive::<Decimal128Type>(), |value| {
                    value != 0
                }),
            };
            Ok(Arc::new(truth))
        }
        (Atom::Boolean, Atom::Decimal(..)) => {
            let whole = cast(array, from, &Atom::Int64, safe)?;
            cast(&whole, &Atom::Int64, to, safe)
        }
        (Atom::Date, Atom::Timestamp(unit, zone)) => {
            let midnight = midnights(array, *unit, &Atom::Timestamp(*unit, None))?;
            let midnight = checked(array, from, to, midnight, safe)?;
            match zone.as_deref() {
                None => Ok(midnight),
                Some("UTC") => Ok(arrow::array::make_array(
                    midnight.to_data().into_builder().data_type(to.arrow()).build()?,
                )),
                Some(zone) => {
                    checked(array, from, to, zoned_time(&midnight, *unit, zone, to)?, safe)
                }
            }
        }
        (Atom::Timestamp(TimeUnit::Microsecond, None), Atom::Date) => {
            let day = |moment: i64| match moment {
                i64::MAX => i32::MAX,
                i64::MIN => i32::MIN,
                _ => moment.div_euclid(86_400_000_000) as i32,
            };
            let input = array
                .as_primitive_opt::<TimestampMicrosecondType>()
                .ok_or_else(|| crate::kernel::unexpected(array))?;
            Ok(Arc::new(input.unary::<_, Date32Type>(day)))
        }
        (Atom::Timestamp(TimeUnit::Microsecond, None), Atom::Time(TimeUnit::Microsecond)) => {
            let time = |moment: i64| match moment {
                i64::MAX | i64::MIN => None,
                _ => Some(moment.rem_euclid(86_400_000_000)),
            };
            let input = array
                .as_primitive_opt::<TimestampMicrosecondType>()
                .ok_or_else(|| crate::kernel::unexpected(array))?;
            checked(
                array,
                from,
                to,
                Arc::new(input.unary_opt::<_, Time64MicrosecondType>(time)),
                safe,
            )
        }
        // A timestamp in UTC has the same representation as one without a time zone.
        (Atom::Timestamp(naive, None), Atom::Timestamp(unit, Some(zone)))
            if naive == unit && &**zone == "UTC" =>
        {
            Ok(arrow::array::make_array(
                array.to_data().into_builder().data_type(to.arrow()).build()?,
            ))
        }
        (Atom::Timestamp(_, None), Atom::Timestamp(unit, Some(zone))) if &**zone != "UTC" => {
            let local = cast(array, from, &Atom::Timestamp(*unit, None), safe)?;
            checked(array, from, to, zoned_time(&local, *unit, zone, to)?, safe)
        }
        (Atom::Interval, Atom::Time(unit)) => {
            let per_day = 86_400_000_000_000;
            let time = |value: IntervalMonthDayNano| value.nanoseconds.rem_euclid(per_day);
            let input = array
                .as_primitive_opt::<IntervalMonthDayNanoType>()
                .ok_or_else(|| crate::kernel::unexpected(array))?;
            let nanos: ArrayRef = Arc::new(input.unary::<_, Time64NanosecondType>(time));
            cast(&nanos, &Atom::Time(TimeUnit::Nanosecond), &Atom::Time(*unit), safe)
        }
        (Atom::Time(_), Atom::Interval) => {
            let nanos = cast(array, from, &Atom::Time(TimeUnit::Nanosecond), safe)?;
            let interval = |nanos| IntervalMonthDayNano::new(0, 0, nanos);
            let input = nanos.as_primitive::<Time64NanosecondType>();
            Ok(Arc::new(input.unary::<_, IntervalMonthDayNanoType>(interval)))
        }
        _ => {
            let options = CastOptions { safe: true, ..Default::default() };
            let output = cast_with_options(array, &to.arrow(), &options).map_err(|error| {
                Error::from(error).context(format!("converting {from} to {to}"))
            })?;
            checked(array, from, to, output, safe)
        }
    }
}

/// Converts decimals to floats with `nearest`.
fn from_decimals<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    nearest: impl Fn(i128) -> T::Native,
) -> Result<PrimitiveArray<T>> {
    if let Some(input) = array.as_primitive_opt::<Decimal64Type>() {
        return Ok(input.unary(|value| nearest(value.into())));
    }
    let input = array.as_primitive_opt::<Decimal128Type>();
    Ok(input.ok_or_else(|| crate::kernel::unexpected(array))?.unary(nearest))
}

fn no_kernel(from: &Atom, to: &Atom) -> Error {
    Error::internal(format!("no conversion from {from} to {to}"))
}

/// Checks a conversion that returns NULL for values that do not convert: fails if `safe` is false
/// and there are new NULLs.
fn checked(
    input: &ArrayRef,
    from: &Atom,
    to: &Atom,
    output: ArrayRef,
    safe: bool,
) -> Result<ArrayRef> {
    if safe || output.logical_null_count() == input.logical_null_count() {
        return Ok(output);
    }
    let lost =
        (0..input.len()).find(|&row| output.is_null(row) && input.is_valid(row)).unwrap_or(0);
    Err(out_of_range(input, lost, from, to))
}

fn out_of_range(input: &ArrayRef, row: usize, from: &Atom, to: &Atom) -> Error {
    let text = format_array(&input.slice(row, 1), from);
    let text = text
        .as_ref()
        .ok()
        .and_then(|text| text.as_string_view_opt())
        .map_or("a value", |text| text.value(0));
    let error = Error::new(Code::Overflow, format!("{text} is out of range for type {to}"));
    if to.is_temporal() { error.with_state(SqlState::DATETIME_FIELD_OVERFLOW) } else { error }
}

fn floats_to_integers(array: &ArrayRef, from: &Atom, to: &Atom, safe: bool) -> Result<ArrayRef> {
    let wide = match from {
        Atom::Float32 => array.as_primitive::<Float32Type>().unary::<_, Float64Type>(f64::from),
        _ => array.as_primitive::<Float64Type>().clone(),
    };
    macro_rules! run {
        ($type:ty) => {{
            // These bounds are exact as floats; the upper bound is exclusive.
            type N = <$type as ArrowPrimitiveType>::Native;
            let (least, beyond) = (N::MIN as f64, (N::MAX as u128 + 1) as f64);
            let output: PrimitiveArray<$type> = wide.unary_opt(|value| {
                let rounded = value.round_ties_even();
                (rounded >= least && rounded < beyond).then(|| rounded as N)
            });
            Arc::new(output) as ArrayRef
        }};
    }
    let output = with_integer!(to, run, return Err(no_kernel(from, to)));
    checked(array, from, to, output, safe)
}

fn decimals_to_integers(
    array: &ArrayRef,
    scale: i8,
    from: &Atom,
    to: &Atom,
    safe: bool,
) -> Result<ArrayRef> {
    let factor = 10i128.pow(scale.max(0) as u32);
    let half = factor / 2;
    let rounded = |value: i128| match (scale > 0, value < 0) {
        (false, _) => value,
        (true, false) => (value + half) / factor,
        (true, true) => (value - half) / factor,
    };
    macro_rules! run {
        ($type:ty) => {{
            type N = <$type as ArrowPrimitiveType>::Native;
            let output: PrimitiveArray<$type> = match array.data_type() {
                DataType::Decimal64(..) => array
                    .as_primitive::<Decimal64Type>()
                    .unary_opt(|value| N::try_from(rounded(value.into())).ok()),
                _ => array
                    .as_primitive::<Decimal128Type>()
                    .unary_opt(|value| N::try_from(rounded(value)).ok()),
            };
            Arc::new(output) as ArrayRef
        }};
    }
    let output = with_whole_number!(to, run, return Err(no_kernel(from, to)));
    checked(array, from, to, output, safe)
}
