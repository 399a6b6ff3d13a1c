//! Dates in the formats of HTTP, S3 and AWS signatures.

use std::time::Duration;

/// Converts days since 1970 to year, month and day (Hinnant's algorithm).
fn civil(days: i64) -> (i64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day = shifted.rem_euclid(146_097) as u64;
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year as i64 + era * 400 + i64::from(month <= 2), month, of_month)
}

/// Converts a date to days since 1970; `None` for invalid dates and dates before 1970.
pub(crate) fn civil_days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let from_march = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (from_march / 400, from_march % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).checked_sub(719_468)
}

fn time(since: Duration) -> (i64, u64, u64, u64, u64, u64, i64) {
    let seconds = since.as_secs();
    let days = (seconds / 86_400) as i64;
    let (year, month, day) = civil(days);
    (year, month, day, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60, days)
}

/// Formats a date for HTTP headers.
pub(crate) fn date(since: Duration) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day, hour, minute, second, days) = time(since);
    let (weekday, month) = (DAYS[days.rem_euclid(7) as usize], MONTHS[month as usize - 1]);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Formats a date for listings.
pub(crate) fn iso_date(since: Duration) -> String {
    let (year, month, day, hour, minute, second, _) = time(since);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let time = Duration::from_secs(1_732_233_599);
        assert_eq!(date(time), "Thu, 21 Nov 2024 23:59:59 GMT");
        assert_eq!(iso_date(time), "2024-11-21T23:59:59.000Z");
        for days in 0..40_000 {
            let (year, month, day) = civil(days);
            assert_eq!(civil_days(year as u64, month, day), Some(days as u64));
        }
        assert_eq!(civil_days(2024, 13, 1), None);
    }
}
