//! Fields of times of day and of intervals.

use arrow::datatypes::IntervalMonthDayNano;
use tessera_values::temporal::timetz::TimeTz;

use crate::temporal::fields::Field;

/// A field of a time of day or of the time of an interval.
pub(super) fn of_time(time: i64, field: Field) -> i64 {
    match field {
        Field::Microseconds | Field::Milliseconds | Field::Second => time % 60_000_000,
        Field::Minute => time / 60_000_000 % 60,
        Field::Hour => time / 3_600_000_000,
        _ => time,
    }
}

/// A field of a time of day with an offset.
pub(super) fn of_time_with_zone(value: TimeTz, field: Field) -> i64 {
    match field {
        Field::Epoch => value.time + value.west * 1_000_000,
        Field::Zone => -value.west,
        Field::ZoneHour => -value.west / 3_600,
        Field::ZoneMinute => -value.west / 60 % 60,
        _ => of_time(value.time, field),
    }
}

/// A field of an interval.
pub(super) fn of_interval(value: IntervalMonthDayNano, field: Field) -> i64 {
    let (years, months) = (i64::from(value.months / 12), i64::from(value.months % 12));
    let time = value.nanoseconds / 1_000;
    match field {
        Field::Day => value.days.into(),
        Field::Month => months,
        Field::Quarter => months / 3 + 1,
        Field::Year => years,
        Field::Decade => years / 10,
        Field::Century => years / 100,
        Field::Millennium => years / 1_000,
        _ => of_time(time, field),
    }
}

/// The microseconds of an interval, with years of 365.25 days and months of 30 days.
pub(super) fn epoch(value: IntervalMonthDayNano) -> i128 {
    let (years, months) = (i128::from(value.months / 12), i128::from(value.months % 12));
    let seconds = years * 31_557_600 + (months * 30 + i128::from(value.days)) * 86_400;
    seconds * 1_000_000 + i128::from(value.nanoseconds / 1_000)
}
