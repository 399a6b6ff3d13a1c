//! `extract` and `date_part`: fields of dates, times, timestamps and intervals.
//!
//! Integral fields are decimals without fractional digits, so that dividing them gives fractions.
//! Fields with fractions are decimals in `extract` and doubles in `date_part`. Functions named
//! after a field return integers.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::*;
use tessera_plan::{Expr, Scalar};
use tessera_text::calendar::{DAY_MICROSECONDS, JULIAN_EPOCH, offset_at};
use tessera_types::{Atom, Error, Result, SqlState, TimeUnit, did_you_mean};
use tessera_values::cast::cast;
use tessera_values::kernel::{Argument, Kernel, argument, unexpected};
use tessera_values::temporal::timetz::TimeTz;
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

use crate::temporal::clock_fields::{epoch, of_interval, of_time, of_time_with_zone};
use crate::temporal::fields::{Calendar, Field};

/// The kind of value that a field is read from.
#[derive(Debug, Clone)]
enum Source {
    Date,
    Time(TimeUnit),
    TimeTz,
    Timestamp(TimeUnit, Option<Tz>),
    Interval,
}

/// The result type of fields with fractions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Decimals.
    Exact,
    /// Doubles.
    Double,
    /// Integers; fractions are cut off.
    Whole,
}

/// Resolves `extract` or `date_part`.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let style = if name == "extract" { Style::Exact } else { Style::Double };
    let [field, value] = args else {
        return Err(wrong_arguments(name, args, "it takes a field and a value"));
    };
    if !matches!(field.atom, Atom::String | Atom::Null) {
        return Err(wrong_arguments(name, args, "the field must be a string"));
    }
    let (_, read) = source_of(value.atom).ok_or_else(|| no_source(name, args))?;
    if let Expr::Constant(Scalar::String(text), _) = field.expr
        && let Ok(field) = field_of(text, value.atom)
        && let Ok((read, atom, kernel)) = extract_field(text, field, value.atom, style)
    {
        return Ok(may_be_null(
            ResolvedCall::strict(atom, args, vec![Atom::String, read], kernel).costing(4),
        ));
    }
    // The field is a column, or a constant that is NULL or unknown; an unknown field raises an
    // error only for rows with a value.
    let kernel = ExtractFieldByRow { of: value.atom.clone(), read: read.clone() };
    let casts = vec![Atom::String, read];
    Ok(may_be_null(
        ResolvedCall::strict(Atom::Float64, args, casts, kernel).raising(true).costing(20),
    ))
}

/// Resolves a function that is named after a field.
pub(super) fn resolve_named(
    name: &str,
    field: Field,
    args: &[Arg<'_>],
    style: Style,
) -> Result<ResolvedCall> {
    let [value] = args else { return Err(no_source(name, args)) };
    source_of(value.atom).ok_or_else(|| no_source(name, args))?;
    let (read, atom, kernel) = extract_field(name, field, value.atom, style)?;
    Ok(may_be_null(ResolvedCall::strict(atom, args, vec![read], kernel).costing(4)))
}

/// Makes a result nullable: infinite timestamps have no fields.
fn may_be_null(resolved: ResolvedCall) -> ResolvedCall {
    ResolvedCall { nullable: true, ..resolved }
}

fn no_source(name: &str, args: &[Arg<'_>]) -> Error {
    wrong_arguments(name, args, "it takes a date, time, timestamp or interval")
}

/// The type that a value of type `of` is cast to, the type of the field, and the kernel that reads
/// it.
fn extract_field(
    text: &str,
    field: Field,
    of: &Atom,
    style: Style,
) -> Result<(Atom, Atom, ExtractField)> {
    let (source, read) = source_of(of).ok_or_else(|| unsupported(text, of))?;
    // A date is treated as its midnight if the field is part of the time.
    let (source, read) = match (&source, Calendar::of(0).whole(field)) {
        (Source::Date, None) if !matches!(field, Field::Epoch | Field::Julian) => {
            let midnight = Atom::Timestamp(TimeUnit::Microsecond, None);
            (Source::Timestamp(TimeUnit::Microsecond, None), midnight)
        }
        _ => (source, read),
    };
    let scale = scale(field, &source).ok_or_else(|| unsupported(text, of))?;
    let atom = match (scale, field) {
        (Scale::Fraction, _) => Atom::Float64,
        (Scale::Digits(_), _) if style == Style::Double => Atom::Float64,
        (Scale::Digits(_), _) if style == Style::Whole => Atom::Int64,
        // An interval has up to 178 million years.
        (Scale::Digits(digits), Field::Epoch) if matches!(source, Source::Interval) => {
            Atom::Decimal(22, digits)
        }
        (Scale::Digits(digits), Field::Epoch) => Atom::Decimal(20, digits),
        (Scale::Digits(digits), _) => Atom::Decimal(18, digits),
        (Scale::Whole, _) if style == Style::Whole => Atom::Int64,
        (Scale::Whole, _) => Atom::Decimal(18, 0),
    };
    let part = ExtractField { field, scale, source, atom: atom.clone() };
    Ok((read, atom, part))
}

fn source_of(atom: &Atom) -> Option<(Source, Atom)> {
    Some(match atom {
        Atom::Date => (Source::Date, Atom::Date),
        Atom::Time(unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond)) => {
            (Source::Time(*unit), atom.clone())
        }
        Atom::Time(_) => (Source::Time(TimeUnit::Microsecond), Atom::Time(TimeUnit::Microsecond)),
        Atom::TimeTz => (Source::TimeTz, Atom::TimeTz),
        Atom::Timestamp(unit, zone) => {
            let zone = zone.as_deref().map(Tz::from_str).transpose().ok()?;
            (Source::Timestamp(*unit, zone), atom.clone())
        }
        Atom::Interval | Atom::Duration(_) => (Source::Interval, Atom::Interval),
        Atom::Null => {
            let midnight = Atom::Timestamp(TimeUnit::Microsecond, None);
            (Source::Timestamp(TimeUnit::Microsecond, None), midnight)
        }
        _ => return None,
    })
}

/// Parses the name of a field.
///
/// # Errors
/// The name is unknown.
pub(super) fn field_of(name: &str, of: &Atom) -> Result<Field> {
    Field::named(name).ok_or_else(|| unknown(name, of))
}

/// The usual names of fields, for suggestions.
const UNITS: [&str; 22] = [
    "century",
    "day",
    "decade",
    "dow",
    "doy",
    "epoch",
    "hour",
    "isodow",
    "isoyear",
    "julian",
    "microseconds",
    "millennium",
    "milliseconds",
    "minute",
    "month",
    "quarter",
    "second",
    "timezone",
    "timezone_hour",
    "timezone_minute",
    "week",
    "year",
];

/// The error for an unknown field name.
pub(super) fn unknown(name: &str, of: &Atom) -> Error {
    let hint = did_you_mean(name, UNITS);
    Error::data(format!("unknown unit '{name}' for type {of}{hint}"))
        .with_state(SqlState::INVALID_PARAMETER_VALUE)
}

/// The error for a field that type `of` does not have.
pub(super) fn unsupported(name: &str, of: &Atom) -> Error {
    Error::unsupported(format!("unit '{name}' is not supported for type {of}"))
}

/// The number of fractional digits of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Whole,
    Digits(i8),
    /// Unlimited fractional digits.
    Fraction,
}

/// The scale of a field of a source; `None` if the source does not have the field.
fn scale(field: Field, source: &Source) -> Option<Scale> {
    let time = match field {
        Field::Microseconds | Field::Minute | Field::Hour => Some(Scale::Whole),
        Field::Milliseconds => Some(Scale::Digits(3)),
        Field::Second => Some(Scale::Digits(6)),
        _ => None,
    };
    match (source, field) {
        (Source::Date, Field::Epoch | Field::Julian) => Some(Scale::Whole),
        (Source::Timestamp(..), Field::Julian) => Some(Scale::Fraction),
        (_, Field::Epoch) => Some(Scale::Digits(6)),
        // A timestamp without a time zone is treated as UTC.
        (
            Source::Timestamp(..) | Source::TimeTz,
            Field::Zone | Field::ZoneHour | Field::ZoneMinute,
        ) => Some(Scale::Whole),
        (Source::Date, _) => Calendar::of(0).whole(field).map(|_| Scale::Whole),
        (Source::Timestamp(..), _) => {
            time.or_else(|| Calendar::of(0).whole(field).map(|_| Scale::Whole))
        }
        (Source::Time(_) | Source::TimeTz, _) => time,
        (
            Source::Interval,
            Field::Day
            | Field::Month
            | Field::Quarter
            | Field::Year
            | Field::Decade
            | Field::Century
            | Field::Millennium,
        ) => Some(Scale::Whole),
        (Source::Interval, _) => time,
    }
}

#[derive(Debug)]
struct ExtractField {
    field: Field,
    scale: Scale,
    source: Source,
    atom: Atom,
}

impl Kernel for ExtractField {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let value = args.last().ok_or_else(|| Error::internal("extract received no argument"))?;
        let values = Argument { array: value.full(rows)?, constant: false };
        self.read(&values.array)
    }
}

/// Reads a field that is named per row.
#[derive(Debug)]
struct ExtractFieldByRow {
    /// The declared type of the value.
    of: Atom,
    /// The type that the value is cast to.
    read: Atom,
}

impl Kernel for ExtractFieldByRow {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let (names, values) = (argument(args, 0)?, argument(args, 1)?);
        let texts = names.array.as_string_view_opt().ok_or_else(|| unexpected(&names.array))?;
        let mut out = Vec::with_capacity(rows);
        for row in 0..rows {
            let (name, at) = (names.at(row), values.at(row));
            if texts.is_null(name) || values.array.is_null(at) {
                out.push(None);
                continue;
            }
            let name = texts.value(name);
            let (read, _, part) =
                extract_field(name, field_of(name, &self.of)?, &self.of, Style::Double)?;
            let one = cast(&values.array.slice(at, 1), &self.read, &read, false)?;
            let one = ExtractField { atom: Atom::Float64, ..part }.read(&one)?;
            let one = one.as_primitive_opt::<Float64Type>().ok_or_else(|| unexpected(&one))?;
            out.push(one.is_valid(0).then(|| one.value(0)));
        }
        Ok(Arc::new(Float64Array::from(out)))
    }
}

impl ExtractField {
    fn read(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let (field, scale) = (self.field, self.scale);
        let nulls = finite(values);
        if scale == Scale::Fraction {
            let julian =
                |moment: i64| JULIAN_EPOCH as f64 + moment as f64 / DAY_MICROSECONDS as f64;
            let moments = self.microseconds(values)?;
            let days = moments.into_iter().map(julian).collect::<Vec<_>>();
            return Ok(Arc::new(Float64Array::try_new(days.into(), nulls)?));
        }
        if matches!((&self.source, field), (Source::Interval, Field::Epoch)) {
            return self.epochs(values, nulls);
        }
        let numbers = self.numbers(values, field)?;
        self.to_result_type(numbers, nulls, scale)
    }

    /// The seconds of intervals.
    fn epochs(&self, values: &ArrayRef, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let intervals = values
            .as_primitive_opt::<IntervalMonthDayNanoType>()
            .ok_or_else(|| unexpected(values))?;
        let micros = intervals.values().iter().map(|value| epoch(*value));
        Ok(match &self.atom {
            Atom::Int64 => {
                // Seconds have at most 16 digits.
                let seconds =
                    micros.map(|micros| micros.div_euclid(1_000_000) as i64).collect::<Vec<_>>();
                Arc::new(Int64Array::try_new(seconds.into(), nulls)?)
            }
            Atom::Float64 => {
                let seconds = micros.map(|micros| micros as f64 / 1e6).collect::<Vec<_>>();
                Arc::new(Float64Array::try_new(seconds.into(), nulls)?)
            }
            decimal => {
                let array = Decimal128Array::try_new(micros.collect::<Vec<_>>().into(), nulls)?;
                Arc::new(array.with_data_type(decimal.arrow()))
            }
        })
    }

    /// Converts unscaled numbers to the result type.
    fn to_result_type(
        &self,
        numbers: Vec<i64>,
        nulls: Option<NullBuffer>,
        scale: Scale,
    ) -> Result<ArrayRef> {
        let digits = match scale {
            Scale::Digits(digits) => digits,
            _ => 0,
        };
        Ok(match &self.atom {
            Atom::Int64 => {
                let unit = 10i64.pow(digits.unsigned_abs().into());
                let numbers =
                    numbers.into_iter().map(|number| number.div_euclid(unit)).collect::<Vec<_>>();
                Arc::new(Int64Array::try_new(numbers.into(), nulls)?)
            }
            Atom::Float64 => {
                let factor = 10f64.powi(digits.into());
                let numbers =
                    numbers.into_iter().map(|number| number as f64 / factor).collect::<Vec<_>>();
                Arc::new(Float64Array::try_new(numbers.into(), nulls)?)
            }
            decimal => match decimal.arrow() {
                DataType::Decimal64(..) => {
                    let array = PrimitiveArray64::try_new(numbers.into(), nulls)?;
                    Arc::new(array.with_data_type(decimal.arrow()))
                }
                other => {
                    let numbers = numbers.into_iter().map(i128::from).collect::<Vec<_>>();
                    Arc::new(Decimal128Array::try_new(numbers.into(), nulls)?.with_data_type(other))
                }
            },
        })
    }

    /// The microseconds of the day or since 1970.
    fn microseconds(&self, values: &ArrayRef) -> Result<Vec<i64>> {
        let bad = || unexpected(values);
        macro_rules! read {
            ($type:ty, $convert:expr) => {
                values
                    .as_primitive_opt::<$type>()
                    .ok_or_else(bad)?
                    .values()
                    .iter()
                    .map($convert)
                    .collect()
            };
        }
        let local: Vec<i64> = match &self.source {
            Source::Time(TimeUnit::Nanosecond) => {
                read!(Time64NanosecondType, |time| time.div_euclid(1_000))
            }
            Source::Time(_) => read!(Time64MicrosecondType, |time| *time),
            Source::Timestamp(unit, _) => match unit {
                TimeUnit::Second => read!(TimestampSecondType, |m| m.saturating_mul(1_000_000)),
                TimeUnit::Millisecond => {
                    read!(TimestampMillisecondType, |m| m.saturating_mul(1_000))
                }
                TimeUnit::Microsecond => read!(TimestampMicrosecondType, |m| *m),
                TimeUnit::Nanosecond => read!(TimestampNanosecondType, |m| m.div_euclid(1_000)),
            },
            Source::Date | Source::TimeTz | Source::Interval => return Err(bad()),
        };
        Ok(local)
    }

    fn numbers(&self, values: &ArrayRef, field: Field) -> Result<Vec<i64>> {
        let bad = || unexpected(values);
        match &self.source {
            Source::Date => {
                let days = values.as_primitive_opt::<Date32Type>().ok_or_else(bad)?;
                let number = |day: &i32| {
                    let day = i64::from(*day);
                    match field {
                        Field::Epoch => day * 86_400,
                        Field::Julian => day + JULIAN_EPOCH,
                        _ => Calendar::of(day).whole(field).unwrap_or_default(),
                    }
                };
                Ok(days.values().iter().map(number).collect())
            }
            Source::Interval => {
                let intervals =
                    values.as_primitive_opt::<IntervalMonthDayNanoType>().ok_or_else(bad)?;
                Ok(intervals.values().iter().map(|value| of_interval(*value, field)).collect())
            }
            Source::TimeTz => {
                let packed = values.as_primitive_opt::<Int64Type>().ok_or_else(bad)?.values();
                let unpacked = packed.iter().map(|packed| TimeTz::unpacked(*packed));
                Ok(unpacked.map(|time| of_time_with_zone(time, field)).collect())
            }
            Source::Time(_) => {
                let times = self.microseconds(values)?;
                Ok(times.into_iter().map(|time| of_time(time, field)).collect())
            }
            Source::Timestamp(_, zone) => {
                let moments = self.microseconds(values)?;
                let number = |moment: i64| {
                    let offset = zone
                        .as_ref()
                        .map_or(0, |zone| offset_at(zone, moment.div_euclid(1_000_000)));
                    match field {
                        Field::Epoch => return moment,
                        Field::Zone => return offset,
                        Field::ZoneHour => return offset / 3_600,
                        Field::ZoneMinute => return offset / 60 % 60,
                        _ => {}
                    }
                    let local = moment.saturating_add(offset * 1_000_000);
                    match Calendar::of(local.div_euclid(DAY_MICROSECONDS)).whole(field) {
                        Some(number) => number,
                        None => of_time(local.rem_euclid(DAY_MICROSECONDS), field),
                    }
                };
                Ok(moments.into_iter().map(number).collect())
            }
        }
    }
}

/// The validity of values; infinite ones are invalid because they have no fields.
fn finite(values: &ArrayRef) -> Option<NullBuffer> {
    let nulls = values.logical_nulls();
    let infinite = match values.data_type() {
        DataType::Date32 => {
            let days = values.as_primitive_opt::<Date32Type>()?.values();
            days.iter().any(|day| matches!(*day, i32::MIN | i32::MAX)).then(|| {
                days.iter().map(|day| !matches!(*day, i32::MIN | i32::MAX)).collect::<NullBuffer>()
            })
        }
        DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, _) => {
            let moments = values.as_primitive_opt::<TimestampMicrosecondType>()?.values();
            moments.iter().any(|moment| matches!(*moment, i64::MIN | i64::MAX)).then(|| {
                moments
                    .iter()
                    .map(|moment| !matches!(*moment, i64::MIN | i64::MAX))
                    .collect::<NullBuffer>()
            })
        }
        _ => None,
    };
    NullBuffer::union(nulls.as_ref(), infinite.as_ref())
}

type PrimitiveArray64 = arrow::array::PrimitiveArray<Decimal64Type>;
