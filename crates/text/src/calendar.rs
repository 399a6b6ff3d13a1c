//! The proleptic Gregorian calendar and time zone offsets.

use arrow::array::timezone::Tz;
use chrono::{DateTime, Offset, TimeZone};

/// The number of microseconds in a day.
pub const DAY_MICROSECONDS: i64 = 86_400_000_000;
/// The Julian day of 1970-01-01.
pub const JULIAN_EPOCH: i64 = 2_440_588;

/// 2100-01-01 in seconds. The list of a time zone's transitions ends before it.
const LISTED_SECONDS: i64 = 4_102_444_800;

/// Maps a time after the listed transitions to a listed time with the same offset by the zone's
/// last rules: in a year with the same length and the same days of the week.
pub fn with_rules(seconds: i64) -> i64 {
    if seconds < LISTED_SECONDS {
        return seconds;
    }
    let (year, ..) = civil(seconds.div_euclid(86_400));
    let first = |year: i64| day_number(year, 1, 1);
    let shape = |year: i64| (first(year).rem_euclid(7), first(year + 1) - first(year));
    let like = (2072..2100).find(|like| shape(*like) == shape(year)).unwrap_or(2072);
    seconds - (first(year) - first(like)) * 86_400
}

/// Returns a time zone's offset from UTC at a time, in seconds.
pub fn offset_at(zone: &Tz, seconds: i64) -> i64 {
    DateTime::from_timestamp(with_rules(seconds), 0).map_or(0, |utc| {
        zone.offset_from_utc_datetime(&utc.naive_utc()).fix().local_minus_utc().into()
    })
}

/// Adds months to a day (since 1970-01-01), clamped to the last day of the month.
pub fn add_months(day: i64, months: i64) -> i64 {
    if months == 0 {
        return day;
    }
    let (year, month, date) = civil(day);
    let index = year * 12 + (month - 1) + months;
    let (year, month) = (index.div_euclid(12), index.rem_euclid(12) + 1);
    let next =
        if month == 12 { day_number(year + 1, 1, 1) } else { day_number(year, month + 1, 1) };
    let first = day_number(year, month, 1);
    first + (date - 1).min(next - first - 1)
}

/// Returns the year, month and day of a day number, in the proleptic Gregorian calendar.
pub fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let date = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, date)
}

/// Returns the day number of a date.
pub fn day_number(year: i64, month: i64, date: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + date - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_round_trips() {
        for day in (-800_000..800_000).step_by(97) {
            let (year, month, date) = civil(day);
            assert_eq!(day_number(year, month, date), day);
        }
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(19_782), (2024, 2, 29));
    }

    #[test]
    fn months_stop_at_the_end_of_a_month() {
        let day = day_number(2024, 1, 31);
        assert_eq!(civil(add_months(day, 1)), (2024, 2, 29));
        assert_eq!(civil(add_months(day, 13)), (2025, 2, 28));
        assert_eq!(civil(add_months(day, -2)), (2023, 11, 30));
        assert_eq!(civil(add_months(day, 11)), (2024, 12, 31));
    }
}
