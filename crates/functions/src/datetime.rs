//! Arithmetic on dates, times, timestamps and intervals.
//!
//! | expression | result |
//! |---|---|
//! | date ± integer | date |
//! | date - date | int64, days |
//! | date ± interval, date + time | timestamp(us) |
//! | timestamp ± interval | timestamp |
//! | timestamp - timestamp, time - time | interval of days and time |
//! | time ± interval | time, wrapping at midnight |
//! | timetz ± interval | timetz, wrapping at midnight |
//! | date + timetz | timestamp(us, zone) |
//! | interval ± interval, interval * number, interval / number | interval |
//!
//! Months are added first and stop at the end of the month, then days, then the time. With a time
//! zone, months and days are added in local time.

use std::str::FromStr;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, ArrowPrimitiveType};
use arrow::datatypes::*;

use tessera_codegen::Operation;
use tessera_text::calendar::{JULIAN_EPOCH, add_months, offset_at};
use tessera_types::{Atom, Code, Error, Result, SqlState, TimeUnit};

use tessera_values::kernel::{Argument, Kernel, binary};
use tessera_values::parse::timestamp::{DATE_END, offset_in};
use tessera_values::scalar::per_second;
use tessera_values::temporal::timetz_arithmetic;
use tessera_values::types::{Arg, ResolvedCall, finer};

const DAY_SECONDS: i64 = 86_400;
const DAY_NANOS: i64 = DAY_SECONDS * 1_000_000_000;

/// Resolves an operation with a date, time, timestamp or interval argument.
pub(crate) fn resolve(
    operation: Operation,
    left: &Atom,
    right: &Atom,
    args: &[Arg<'_>],
) -> Option<ResolvedCall> {
    use Atom::{Date, Duration, Interval, Null, Time, TimeTz, Timestamp};
    let microseconds = Timestamp(TimeUnit::Microsecond, None);
    let subtract = operation == Operation::Sub;
    let swapped = |args| resolve(operation, right, left, args).map(SwappedArguments::wrap);
    let build = |atom: Atom, casts: [Atom; 2], rule: TemporalRule| {
        let kernel = TemporalArithmetic { rule, operation, atom: atom.clone() };
        let raises =
            !matches!(kernel.rule, TemporalRule::TimeInterval(_) | TemporalRule::TimeDifference(_));
        Some(ResolvedCall::strict(atom, args, casts.into(), kernel).raising(raises))
    };
    match (operation, left, right) {
        (Operation::Add | Operation::Sub, Date, other) if other.is_integer() || *other == Null => {
            build(Date, [Date, Atom::Int64], TemporalRule::DateInteger)
        }
        (Operation::Sub, Date, Date) => build(Atom::Int64, [Date, Date], TemporalRule::Days),
        (Operation::Add | Operation::Sub, Date, Interval | Duration(_)) => build(
            microseconds.clone(),
            [microseconds, Interval],
            TemporalRule::Timestamp(TimeUnit::Microsecond, None),
        ),
        (Operation::Add | Operation::Sub, Date, Time(_)) => build(
            microseconds.clone(),
            [microseconds, Interval],
            TemporalRule::Timestamp(TimeUnit::Microsecond, None),
        ),
        (
            Operation::Add | Operation::Sub,
            Timestamp(unit, zone),
            Interval | Duration(_) | Time(_) | Null,
        ) => {
            let unit = finer(*unit, TimeUnit::Microsecond);
            let atom = Timestamp(unit, zone.clone());
            let zone = zone.as_deref().map(Tz::from_str).transpose().ok()?;
            build(atom.clone(), [atom, Interval], TemporalRule::Timestamp(unit, zone))
        }
        (Operation::Sub, Timestamp(..) | Date, Timestamp(..) | Date) => {
            let common = tessera_values::types::common_type(left, right)?;
            let Timestamp(unit, zone) = &common else { return None };
            // Most timestamps in microseconds do not fit 64 bits in nanoseconds.
            let in_micros = |atom: &Atom| match atom {
                Timestamp(TimeUnit::Nanosecond, _) => None,
                _ => Some(Timestamp(TimeUnit::Microsecond, zone.clone())),
            };
            match (*unit, in_micros(left), in_micros(right)) {
                (TimeUnit::Nanosecond, Some(micros), None) => {
                    build(Interval, [micros, common.clone()], TemporalRule::MicrosLessNanos)
                }
                (TimeUnit::Nanosecond, None, Some(micros)) => {
                    build(Interval, [common.clone(), micros], TemporalRule::NanosLessMicros)
                }
                (unit, ..) => build(
                    Interval,
                    [common.clone(), common],
                    TemporalRule::TimestampDifference(unit),
                ),
            }
        }
        (Operation::Add | Operation::Sub, Time(unit), Interval | Duration(_) | Null) => {
            let unit = finer(*unit, TimeUnit::Microsecond);
            build(Time(unit), [Time(unit), Interval], TemporalRule::TimeInterval(unit))
        }
        (Operation::Sub, Time(a), Time(b)) => {
            let unit = finer(finer(*a, *b), TimeUnit::Microsecond);
            build(Interval, [Time(unit), Time(unit)], TemporalRule::TimeDifference(unit))
        }
        (_, TimeTz, _) | (_, _, TimeTz) => timetz_arithmetic::arithmetic(operation, args),
        (Operation::Add | Operation::Sub, Interval | Duration(_), Interval | Duration(_)) => {
            build(Interval, [Interval, Interval], TemporalRule::Intervals)
        }
        (Operation::Mul | Operation::Div, Interval | Duration(_), other) if other.is_numeric() => {
            match other.is_integer() && operation == Operation::Mul {
                true => build(Interval, [Interval, Atom::Int64], TemporalRule::Times),
                false => build(Interval, [Interval, Atom::Float64], TemporalRule::Scale),
            }
        }
        (Operation::Add, other, Date | Timestamp(..) | Time(_))
            if !subtract && !is_timestamp(other) =>
        {
            swapped(args)
        }
        (Operation::Add, Time(_), Date | Timestamp(..)) => swapped(args),
        (Operation::Mul, other, Interval | Duration(_)) if other.is_numeric() => swapped(args),
        _ => None,
    }
}

fn is_timestamp(atom: &Atom) -> bool {
    matches!(atom, Atom::Date | Atom::Timestamp(..) | Atom::Time(_))
}

/// A kernel that receives its arguments in reverse order.
#[derive(Debug)]
struct SwappedArguments(std::sync::Arc<dyn Kernel>);

impl SwappedArguments {
    fn wrap(mut resolved: ResolvedCall) -> ResolvedCall {
        resolved.casts.reverse();
        resolved.kernel = std::sync::Arc::new(SwappedArguments(resolved.kernel));
        resolved
    }
}

impl Kernel for SwappedArguments {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let swapped: Vec<Argument> = args.iter().rev().cloned().collect();
        self.0.call(&swapped, rows)
    }
}

#[derive(Debug)]
enum TemporalRule {
    DateInteger,
    Days,
    Timestamp(TimeUnit, Option<Tz>),
    TimestampDifference(TimeUnit),
    MicrosLessNanos,
    NanosLessMicros,
    TimeInterval(TimeUnit),
    TimeDifference(TimeUnit),
    Intervals,
    Times,
    Scale,
}

#[derive(Debug)]
struct TemporalArithmetic {
    rule: TemporalRule,
    operation: Operation,
    atom: Atom,
}

type IntervalType = IntervalMonthDayNanoType;

impl Kernel for TemporalArithmetic {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let sign = if self.operation == Operation::Sub { -1 } else { 1 };
        let data_type = self.atom.arrow();
        match &self.rule {
            TemporalRule::DateInteger => {
                let op = |date: i32, days: i64| {
                    if matches!(date, i32::MAX | i32::MIN) {
                        return (date, false);
                    }
                    let moved = i64::from(date).checked_add(days.wrapping_mul(sign));
                    let moved = moved.filter(|moved| (-JULIAN_EPOCH..DATE_END).contains(moved));
                    match moved.and_then(|moved| i32::try_from(moved).ok()) {
                        Some(moved) => (moved, days == i64::MIN),
                        None => (0, true),
                    }
                };
                binary::<Date32Type, Int64Type, Date32Type>(args, rows, data_type, op, |_, _| {
                    self.overflow()
                })
            }
            TemporalRule::Days => {
                let infinite = |day: i32| matches!(day, i32::MAX | i32::MIN);
                let op = |a: i32, b: i32| (i64::from(a) - i64::from(b), infinite(a) || infinite(b));
                binary::<Date32Type, Date32Type, Int64Type>(args, rows, data_type, op, |_, _| {
                    self.overflow()
                })
            }
            TemporalRule::Timestamp(unit, zone) => match unit {
                TimeUnit::Nanosecond => {
                    self.move_timestamp::<TimestampNanosecondType>(args, rows, *unit, zone, sign)
                }
                _ => self.move_timestamp::<TimestampMicrosecondType>(
                    args,
                    rows,
                    TimeUnit::Microsecond,
                    zone,
                    sign,
                ),
            },
            TemporalRule::TimestampDifference(unit) => match unit {
                TimeUnit::Second => self.difference::<TimestampSecondType>(args, rows, *unit),
                TimeUnit::Millisecond => {
                    self.difference::<TimestampMillisecondType>(args, rows, *unit)
                }
                TimeUnit::Microsecond => {
                    self.difference::<TimestampMicrosecondType>(args, rows, *unit)
                }
                TimeUnit::Nanosecond => {
                    self.difference::<TimestampNanosecondType>(args, rows, *unit)
                }
            },
            TemporalRule::MicrosLessNanos => {
                let op = |a: i64, b: i64| nanos_apart(i128::from(a) * 1000, b.into());
                self.apart::<TimestampMicrosecondType, TimestampNanosecondType>(args, rows, op)
            }
            TemporalRule::NanosLessMicros => {
                let op = |a: i64, b: i64| nanos_apart(a.into(), i128::from(b) * 1000);
                self.apart::<TimestampNanosecondType, TimestampMicrosecondType>(args, rows, op)
            }
            TemporalRule::TimeDifference(unit) => match unit {
                TimeUnit::Nanosecond => self.difference::<Time64NanosecondType>(args, rows, *unit),
                _ => self.difference::<Time64MicrosecondType>(args, rows, TimeUnit::Microsecond),
            },
            TemporalRule::TimeInterval(unit) => match unit {
                TimeUnit::Nanosecond => {
                    self.move_time::<Time64NanosecondType>(args, rows, *unit, sign)
                }
                _ => {
                    self.move_time::<Time64MicrosecondType>(args, rows, TimeUnit::Microsecond, sign)
                }
            },
            TemporalRule::Intervals => {
                let op = |a: IntervalMonthDayNano, b: IntervalMonthDayNano| {
                    let sum = match sign {
                        1 => a.add_checked(b),
                        _ => a.sub_checked(b),
                    };
                    let wrong = sum.is_err();
                    (sum.unwrap_or(a), wrong)
                };
                binary::<IntervalType, IntervalType, IntervalType>(
                    args,
                    rows,
                    data_type,
                    op,
                    |_, _| self.overflow(),
                )
            }
            TemporalRule::Times => {
                let op = |a: IntervalMonthDayNano, n: i64| match multiply(a, n) {
                    Some(value) => (value, false),
                    None => (a, true),
                };
                binary::<IntervalType, Int64Type, IntervalType>(
                    args,
                    rows,
                    data_type,
                    op,
                    |_, _| self.overflow(),
                )
            }
            TemporalRule::Scale => {
                let divide = self.operation == Operation::Div;
                let op = |a: IntervalMonthDayNano, n: f64| match scale(a, |part| {
                    if divide { part / n } else { part * n }
                }) {
                    Some(value) => (value, false),
                    None => (a, true),
                };
                let error = |_, n| match divide && n == 0.0 {
                    true => super::arithmetic::division_by_zero("an interval", '/'),
                    false => self.overflow(),
                };
                binary::<IntervalType, Float64Type, IntervalType>(args, rows, data_type, op, error)
            }
        }
    }
}

impl TemporalArithmetic {
    fn overflow(&self) -> Error {
        let symbol = self.operation.symbol();
        Error::new(
            Code::Overflow,
            format!("the result of {symbol} is out of range for type {}", self.atom),
        )
        .with_state(SqlState::DATETIME_FIELD_OVERFLOW)
    }

    fn move_timestamp<T: ArrowPrimitiveType<Native = i64>>(
        &self,
        args: &[Argument],
        rows: usize,
        unit: TimeUnit,
        zone: &Option<Tz>,
        sign: i64,
    ) -> Result<ArrayRef> {
        let op = |moment: i64, by: IntervalMonthDayNano| match shift(
            moment,
            by,
            sign,
            unit,
            zone.as_ref(),
        ) {
            Some(moved) => (moved, false),
            None => (0, true),
        };
        binary::<T, IntervalType, T>(args, rows, self.atom.arrow(), op, |_, _| self.overflow())
    }

    fn difference<T: ArrowPrimitiveType<Native = i64>>(
        &self,
        args: &[Argument],
        rows: usize,
        unit: TimeUnit,
    ) -> Result<ArrayRef> {
        let day = DAY_SECONDS * per_second(unit);
        let nanos = 1_000_000_000 / per_second(unit);
        let of_times = matches!(self.rule, TemporalRule::TimeDifference(_));
        let op = |a: i64, b: i64| {
            let (difference, overflow) = a.overflowing_sub(b);
            if overflow && unit == TimeUnit::Nanosecond {
                return nanos_apart(a.into(), b.into());
            }
            let wrong =
                overflow | [a, b].iter().any(|moment| matches!(*moment, i64::MAX | i64::MIN));
            // The difference of times has no days.
            if of_times {
                return (IntervalMonthDayNano::new(0, 0, difference.wrapping_mul(nanos)), wrong);
            }
            match i32::try_from(difference / day) {
                Ok(days) => (IntervalMonthDayNano::new(0, days, difference % day * nanos), wrong),
                Err(_) => (IntervalMonthDayNano::ZERO, true),
            }
        };
        binary::<T, T, IntervalType>(args, rows, self.atom.arrow(), op, |_, _| self.overflow())
    }

    /// The difference of timestamps of two units.
    fn apart<A, B>(
        &self,
        args: &[Argument],
        rows: usize,
        difference: impl Fn(i64, i64) -> (IntervalMonthDayNano, bool),
    ) -> Result<ArrayRef>
    where
        A: ArrowPrimitiveType<Native = i64>,
        B: ArrowPrimitiveType<Native = i64>,
    {
        let op = |a: i64, b: i64| {
            let (found, wrong) = difference(a, b);
            (found, wrong || [a, b].iter().any(|moment| matches!(*moment, i64::MAX | i64::MIN)))
        };
        binary::<A, B, IntervalType>(args, rows, self.atom.arrow(), op, |_, _| self.overflow())
    }

    fn move_time<T: ArrowPrimitiveType<Native = i64>>(
        &self,
        args: &[Argument],
        rows: usize,
        unit: TimeUnit,
        sign: i64,
    ) -> Result<ArrayRef> {
        let nanos = 1_000_000_000 / per_second(unit);
        let op = |time: i64, by: IntervalMonthDayNano| {
            let moved = time * nanos + sign * (by.nanoseconds % DAY_NANOS);
            (moved.rem_euclid(DAY_NANOS) / nanos, false)
        };
        binary::<T, IntervalType, T>(args, rows, self.atom.arrow(), op, |_, _| self.overflow())
    }
}

/// Days and nanoseconds between two timestamps in nanoseconds, and whether the days overflow.
fn nanos_apart(a: i128, b: i128) -> (IntervalMonthDayNano, bool) {
    let day = i128::from(DAY_NANOS);
    let (days, rest) = ((a - b) / day, (a - b) % day);
    match i32::try_from(days) {
        Ok(days) => (IntervalMonthDayNano::new(0, days, rest as i64), false),
        Err(_) => (IntervalMonthDayNano::ZERO, true),
    }
}

/// A timestamp moved by an interval.
pub(crate) fn shift(
    moment: i64,
    by: IntervalMonthDayNano,
    sign: i64,
    unit: TimeUnit,
    zone: Option<&Tz>,
) -> Option<i64> {
    let per_second = per_second(unit);
    let per_day = per_second * DAY_SECONDS;
    if matches!(moment, i64::MAX | i64::MIN) {
        return Some(moment);
    }
    let mut moved = moment;
    if by.months != 0 || by.days != 0 {
        let offset = zone.map_or(0, |zone| offset_at(zone, moment.div_euclid(per_second)));
        let local = moment.checked_add(offset * per_second)?;
        let (day, time) = (local.div_euclid(per_day), local.rem_euclid(per_day));
        let day = add_months(day, sign * i64::from(by.months)) + sign * i64::from(by.days);
        let local = day.checked_mul(per_day)?.checked_add(time)?;
        let offset = zone.map_or(0, |zone| offset_in(local.div_euclid(per_second), zone));
        moved = local.checked_sub(offset * per_second)?;
    }
    let moved = moved.checked_add(sign * (by.nanoseconds / (1_000_000_000 / per_second)))?;
    // Dates before the first day of the Julian calendar are rejected.
    (moved.div_euclid(per_day) >= -JULIAN_EPOCH).then_some(moved)
}

fn multiply(value: IntervalMonthDayNano, by: i64) -> Option<IntervalMonthDayNano> {
    let small =
        |part: i32| i64::from(part).checked_mul(by).and_then(|part| i32::try_from(part).ok());
    Some(IntervalMonthDayNano::new(
        small(value.months)?,
        small(value.days)?,
        value.nanoseconds.checked_mul(by)?,
    ))
}

/// An interval divided by a count.
pub fn divide_interval(value: IntervalMonthDayNano, count: u64) -> Option<IntervalMonthDayNano> {
    scale(value, |part| part / count as f64)
}

/// `low` plus a part of its difference to `high`.
pub fn interval_between(
    low: IntervalMonthDayNano,
    high: IntervalMonthDayNano,
    part: f64,
) -> Option<IntervalMonthDayNano> {
    let apart = IntervalMonthDayNano::new(
        high.months.checked_sub(low.months)?,
        high.days.checked_sub(low.days)?,
        high.nanoseconds.checked_sub(low.nanoseconds)?,
    );
    let step = scale(apart, |value| value * part)?;
    Some(IntervalMonthDayNano::new(
        low.months.checked_add(step.months)?,
        low.days.checked_add(step.days)?,
        low.nanoseconds.checked_add(step.nanoseconds)?,
    ))
}

/// Multiplies or divides an interval with `by`. As in PostgreSQL, fractions of months become days,
/// and fractions of days become time.
fn scale(value: IntervalMonthDayNano, by: impl Fn(f64) -> f64) -> Option<IntervalMonthDayNano> {
    // Round to microseconds, which hides rounding errors.
    let micros = |part: f64| (part * 1e6).round_ties_even() / 1e6;
    let whole = |part: f64| (part.abs() < f64::from(i32::MAX)).then(|| part.trunc());
    let (months_exact, days_exact) = (by(value.months.into()), by(value.days.into()));
    let (months, mut days) = (whole(months_exact)?, whole(days_exact)?);
    let month_days = micros((months_exact - months) * 30.0);
    let mut seconds =
        micros((days_exact - days + month_days - month_days.trunc()) * DAY_SECONDS as f64);
    if seconds.abs() >= DAY_SECONDS as f64 {
        let carried = (seconds / DAY_SECONDS as f64).trunc();
        days += carried;
        seconds -= carried * DAY_SECONDS as f64;
    }
    days = whole(days + month_days.trunc())?;
    let time = (by((value.nanoseconds / 1_000) as f64) + seconds * 1e6).round_ties_even();
    (time.abs() < 9.2e15)
        .then(|| IntervalMonthDayNano::new(months as i32, days as i32, time as i64 * 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_keep_the_local_time() {
        let zone = Tz::from_str("Europe/Zurich").unwrap();
        let before = 1_711_753_200; // 2024-03-30T00:00 in Zurich, a day before the clocks change
        let by = IntervalMonthDayNano::new(0, 2, 0);
        let moved = shift(before, by, 1, TimeUnit::Second, Some(&zone)).unwrap();
        assert_eq!(moved - before, 2 * 86_400 - 3_600);
    }
}
