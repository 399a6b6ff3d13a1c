//! `date_trunc` and `date_bin`.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::*;

use tessera_text::calendar::DAY_MICROSECONDS;
use tessera_types::{Atom, Code, Error, Result, SqlState, TimeUnit};

use super::part::{field_of, unknown, unsupported};
use crate::temporal::fields::{Field, first_day, microseconds_of};
use tessera_values::kernel::{Argument, Kernel, argument, unexpected};
use tessera_values::temporal::zones::{Zone, zone_of};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

type Interval = IntervalMonthDayNanoType;
type Micros = TimestampMicrosecondType;

/// The timestamp type that dates and timestamps are cast to; a date becomes its midnight in UTC.
fn moment(atom: &Atom) -> Option<Atom> {
    Some(match atom {
        Atom::Date => Atom::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Atom::Timestamp(_, zone) => Atom::Timestamp(TimeUnit::Microsecond, zone.clone()),
        Atom::Null => Atom::Timestamp(TimeUnit::Microsecond, None),
        _ => return None,
    })
}

/// Resolves `date_trunc(unit, value [, zone])`.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let wrong = || wrong_arguments(name, args, "it takes a unit and a timestamp or an interval");
    let text = |arg: &Arg<'_>| matches!(arg.atom, Atom::String | Atom::Null);
    let (unit, value, zone) = match args {
        [unit, value] => (unit, value, None),
        [unit, value, zone] => (unit, value, Some(zone)),
        _ => return Err(wrong()),
    };
    if !text(unit) || zone.is_some_and(|zone| !text(zone)) {
        return Err(wrong());
    }
    if matches!(value.atom, Atom::Interval | Atom::Duration(_) | Atom::Time(_)) && zone.is_none() {
        let casts = vec![Atom::String, Atom::Interval];
        let kernel = Trunc { of: value.atom.clone(), atom: Atom::Interval, zone: None };
        return Ok(ResolvedCall::strict(Atom::Interval, args, casts, kernel)
            .raising(true)
            .costing(6));
    }
    let atom = moment(value.atom).ok_or_else(wrong)?;
    let Atom::Timestamp(_, own) = &atom else { return Err(wrong()) };
    if zone.is_some() && own.is_none() {
        return Err(wrong());
    }
    let own = own.as_deref().filter(|zone| *zone != "UTC").map(Tz::from_str).transpose()?;
    let own = own.map(Zone::Named);
    let mut casts = vec![Atom::String, atom.clone()];
    casts.extend(zone.map(|_| Atom::String));
    let kernel = Trunc { of: value.atom.clone(), atom: atom.clone(), zone: own };
    Ok(ResolvedCall::strict(atom, args, casts, kernel).raising(true).costing(6))
}

#[derive(Debug)]
struct Trunc {
    /// The declared type of the argument.
    of: Atom,
    atom: Atom,
    zone: Option<Zone>,
}

impl Kernel for Trunc {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let (names, value) = (argument(args, 0)?, argument(args, 1)?);
        let zones = args.get(2);
        if [Some(names), Some(value), zones].into_iter().flatten().any(Argument::is_null_constant) {
            return Ok(arrow::array::new_null_array(&self.atom.arrow(), rows));
        }
        let texts = names.array.as_string_view_opt().ok_or_else(|| unexpected(&names.array))?;
        let values = value.full(rows)?;
        if names.constant || rows == 1 {
            if texts.is_null(0) {
                return Ok(arrow::array::new_null_array(&self.atom.arrow(), rows));
            }
            return match zones {
                Some(zones) => self.by_row(names, zones, &values, rows),
                None => self.truncated(texts.value(0), &values, self.zone),
            };
        }
        match zones {
            Some(zones) => self.by_row(names, zones, &values, rows),
            None => {
                let none = Argument {
                    array: arrow::array::new_null_array(&DataType::Null, 1),
                    constant: true,
                };
                self.by_row(names, &none, &values, rows)
            }
        }
    }
}

impl Trunc {
    fn by_row(
        &self,
        names: &Argument,
        zones: &Argument,
        values: &ArrayRef,
        rows: usize,
    ) -> Result<ArrayRef> {
        let texts = names.array.as_string_view_opt().ok_or_else(|| unexpected(&names.array))?;
        let mut out = Vec::with_capacity(rows);
        for row in 0..rows {
            let zone_names = zones.array.as_string_view_opt();
            let zone = match zone_names {
                Some(zone_names) if zone_names.is_null(zones.at(row)) => None,
                Some(zone_names) => Some(Some(zone_of(zone_names.value(zones.at(row)))?)),
                None => Some(self.zone),
            };
            let value = values.slice(row, 1);
            out.push(match zone {
                Some(zone) if texts.is_valid(names.at(row)) => {
                    self.truncated(texts.value(names.at(row)), &value, zone)?
                }
                _ => arrow::array::new_null_array(&self.atom.arrow(), 1),
            });
        }
        let parts: Vec<&dyn Array> = out.iter().map(|array| &**array).collect();
        if parts.is_empty() {
            return Ok(arrow::array::new_empty_array(&self.atom.arrow()));
        }
        Ok(arrow::compute::concat(&parts)?)
    }

    fn truncated(&self, name: &str, values: &ArrayRef, zone: Option<Zone>) -> Result<ArrayRef> {
        let unit = field_of(name, &self.of)?;
        if self.atom == Atom::Interval {
            let input = values.as_primitive_opt::<Interval>().ok_or_else(|| unexpected(values))?;
            if interval(IntervalMonthDayNano::ZERO, unit).is_none() {
                let known = matches!(unit, Field::Zone | Field::ZoneHour | Field::ZoneMinute);
                return Err(if known {
                    unsupported(name, &self.of)
                } else {
                    unknown(name, &self.of)
                });
            }
            let output: PrimitiveArray<Interval> =
                input.unary(|value| interval(value, unit).unwrap_or(value));
            return Ok(Arc::new(output));
        }
        let input = values.as_primitive_opt::<Micros>().ok_or_else(|| unexpected(values))?;
        let step = microseconds_of(unit);
        if step.is_none() && first_day(0, unit).is_none() {
            let known = matches!(unit, Field::Zone | Field::ZoneHour | Field::ZoneMinute);
            return Err(if known { unsupported(name, &self.of) } else { unknown(name, &self.of) });
        }
        let output: PrimitiveArray<Micros> = match (step, &zone) {
            (Some(step), None) => input.unary(|moment| match moment {
                // Infinite timestamps stay infinite.
                i64::MAX | i64::MIN => moment,
                _ => moment.saturating_sub(moment.rem_euclid(step)),
            }),
            _ => {
                let local = |moment: i64| match step {
                    _ if matches!(moment, i64::MAX | i64::MIN) => moment,
                    Some(step) => moment.saturating_sub(moment.rem_euclid(step)),
                    None => {
                        let day = first_day(moment.div_euclid(DAY_MICROSECONDS), unit).unwrap_or(0);
                        day.saturating_mul(DAY_MICROSECONDS)
                    }
                };
                let redo = step.is_none_or(|step| step >= DAY_MICROSECONDS);
                input.unary(|moment| match &zone {
                    None => local(moment),
                    Some(zone) => in_zone(zone, moment, redo, local),
                })
            }
        };
        Ok(Arc::new(output.with_data_type(self.atom.arrow())))
    }
}

/// Truncates a timestamp in the local time of a zone. Units of a day or more may begin with another
/// offset, so the offset is looked up again.
fn in_zone(zone: &Zone, moment: i64, redo: bool, local: impl Fn(i64) -> i64) -> i64 {
    let own = zone.offset_at(moment.div_euclid(1_000_000)) * 1_000_000;
    let truncated = local(moment.saturating_add(own));
    let own = if redo { zone.offset_in(truncated.div_euclid(1_000_000)) * 1_000_000 } else { own };
    truncated.saturating_sub(own)
}

/// Truncates an interval to a unit; `None` if intervals do not have the unit.
fn interval(value: IntervalMonthDayNano, unit: Field) -> Option<IntervalMonthDayNano> {
    let (months, days, nanoseconds) = (value.months, value.days, value.nanoseconds);
    let whole = |unit: i32| IntervalMonthDayNano::new(months / unit * unit, 0, 0);
    Some(match unit {
        Field::Millennium => whole(12_000),
        Field::Century => whole(1_200),
        Field::Decade => whole(120),
        Field::Year => whole(12),
        Field::Quarter => whole(3),
        Field::Month => whole(1),
        Field::Week => IntervalMonthDayNano::new(months, days / 7 * 7, 0),
        Field::Day => IntervalMonthDayNano::new(months, days, 0),
        _ => {
            let step = microseconds_of(unit)? * 1_000;
            IntervalMonthDayNano::new(months, days, nanoseconds / step * step)
        }
    })
}

/// Resolves `date_bin(stride, value [, origin])`.
pub(super) fn resolve_bin(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let wrong = || wrong_arguments(name, args, "it takes an interval, a timestamp and an origin");
    let (stride, value, origin) = match args {
        [stride, value] => (stride, value, None),
        [stride, value, origin] => (stride, value, Some(origin)),
        _ => return Err(wrong()),
    };
    if !matches!(stride.atom, Atom::Interval | Atom::Duration(_) | Atom::Null | Atom::String) {
        return Err(wrong());
    }
    let mut atom = moment(value.atom).ok_or_else(wrong)?;
    if let Some(origin) = origin {
        let other = match origin.atom {
            Atom::String => atom.clone(),
            Atom::Date if matches!(value.atom, Atom::Timestamp(..)) => atom.clone(),
            other => moment(other).ok_or_else(wrong)?,
        };
        // The origin determines whether the midnight of a date is in a time zone.
        if *value.atom == Atom::Date && matches!(origin.atom, Atom::Timestamp(_, None)) {
            atom = Atom::Timestamp(TimeUnit::Microsecond, None);
        }
        // If only one of value and origin has a time zone, both are converted to it.
        if matches!(other, Atom::Timestamp(_, Some(_))) && *origin.atom != Atom::Null {
            atom = if matches!(atom, Atom::Timestamp(_, Some(_))) { atom } else { other };
        }
    }
    let mut casts = vec![Atom::Interval, atom.clone()];
    casts.extend(origin.map(|_| atom.clone()));
    Ok(ResolvedCall::strict(atom.clone(), args, casts, Bin { atom }).raising(true).costing(10))
}

#[derive(Debug)]
struct Bin {
    atom: Atom,
}

impl Kernel for Bin {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let (stride, value) = (argument(args, 0)?, argument(args, 1)?);
        let strides = stride.primitive::<Interval>()?;
        let values = value.primitive::<Micros>()?;
        let origin = args.get(2);
        let origins = origin.map(Argument::primitive::<Micros>).transpose()?;
        let mut out = Vec::with_capacity(rows);
        for row in 0..rows {
            let from = match (origin, origins) {
                (Some(origin), Some(origins)) => {
                    origins.is_valid(origin.at(row)).then(|| origins.value(origin.at(row)))
                }
                _ => Some(0),
            };
            let null = strides.is_null(stride.at(row)) || values.is_null(value.at(row));
            let Some(from) = from.filter(|_| !null) else {
                out.push(None);
                continue;
            };
            out.push(Some(bin(strides.value(stride.at(row)), values.value(value.at(row)), from)?));
        }
        let array: PrimitiveArray<Micros> = out.into_iter().collect();
        Ok(Arc::new(array.with_data_type(self.atom.arrow())))
    }
}

/// The start of the stride that contains a timestamp, counted from an origin.
fn bin(stride: IntervalMonthDayNano, moment: i64, origin: i64) -> Result<i64> {
    if stride.months != 0 {
        return Err(Error::unsupported(
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let overflow = || {
        Error::new(Code::Overflow, "the result of date_bin is out of range for type timestamp")
            .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
    };
    let days = i64::from(stride.days).checked_mul(DAY_MICROSECONDS).ok_or_else(overflow)?;
    let step = days.checked_add(stride.nanoseconds / 1_000).ok_or_else(overflow)?;
    if step <= 0 {
        return Err(Error::new(Code::Data, "the stride of date_bin must be greater than zero")
            .with_state(SqlState::DATETIME_FIELD_OVERFLOW));
    }
    if matches!(moment, i64::MAX | i64::MIN) {
        return Ok(moment);
    }
    let apart = moment.checked_sub(origin).ok_or_else(overflow)?;
    Ok(origin + (apart - apart.rem_euclid(step)))
}
