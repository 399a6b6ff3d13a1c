//! Times and timestamps of text formats: ISO 8601, with a space or `T` between date and time.

use super::cells::parse_date;

const DAY_MICROSECONDS: i64 = 86_400_000_000;

/// A parsed timestamp with its optional zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrittenTimestamp {
    /// Microseconds since 1970-01-01 in local time.
    pub(crate) microseconds: i64,
    /// The offset of local time from UTC, if a zone was written.
    pub(crate) offset_seconds: Option<i32>,
}

impl WrittenTimestamp {
    /// Returns microseconds since 1970-01-01 in UTC. Without a zone, the time is UTC.
    pub(crate) fn utc(self) -> Option<i64> {
        let offset = i64::from(self.offset_seconds.unwrap_or(0)) * 1_000_000;
        self.microseconds.checked_sub(offset)
    }
}

/// Parses `HH:MM[:SS[.ffffff]]` to microseconds since midnight.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let text = text.trim();
    let mut parts = text.splitn(3, ':');
    let hour = two_digits(parts.next()?, 24)?;
    let minute = two_digits(parts.next()?, 60)?;
    let (second, fraction) = match parts.next() {
        None => (0, 0),
        Some(seconds) => match seconds.split_once('.') {
            None => (two_digits(seconds, 60)?, 0),
            Some((second, fraction)) => (two_digits(second, 60)?, microseconds(fraction)?),
        },
    };
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction)
}

/// Parses `YYYY-MM-DD HH:MM[:SS[.ffffff]][zone]`, also with `T` as the separator. A zone is `Z`,
/// `UTC`, `+HH`, `+HHMM` or `+HH:MM`.
pub(crate) fn parse_timestamp(text: &str) -> Option<WrittenTimestamp> {
    let text = text.trim();
    let separator = text.find([' ', 'T'])?;
    let (date, time) = (text.get(..separator)?, text.get(separator + 1..)?);
    let (date, time) = match time.strip_suffix(" (BC)") {
        Some(time) => (format!("{date} (BC)"), time),
        None => (date.to_string(), time),
    };
    let zone = time.find(['Z', 'U', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone);
    let days = i64::from(parse_date(&date).filter(|_| date.len() >= 10)?);
    Some(WrittenTimestamp {
        microseconds: days
            .checked_mul(DAY_MICROSECONDS)?
            .checked_add(parse_time(time.trim_end())?)?,
        offset_seconds: if zone.is_empty() { None } else { Some(offset_seconds(zone)?) },
    })
}

fn offset_seconds(zone: &str) -> Option<i32> {
    if matches!(zone, "Z" | "UTC") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits = zone.get(1..)?;
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at_checked(2)?,
        5 => digits.split_once(':')?,
        _ => return None,
    };
    let seconds = two_digits(hours, 16)? * 3_600 + two_digits(minutes, 60)? * 60;
    Some(sign * seconds as i32)
}

/// Parses a number of two digits below `limit`.
fn two_digits(text: &str, limit: i64) -> Option<i64> {
    let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number < limit)
}

/// Parses up to six digits after the decimal point.
fn microseconds(fraction: &str) -> Option<i64> {
    let is_number =
        (1..=6).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let scale = 10_i64.pow(6_u32.checked_sub(fraction.len() as u32)?);
    fraction.parse::<i64>().ok().filter(|_| is_number).map(|number| number * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(parse_time("00:00"), Some(0));
        assert_eq!(parse_time("23:59:59.000001"), Some(DAY_MICROSECONDS - 999_999));
        for text in
            ["24:00", "1:00", "10", "10:60", "10:00:", "10:00:00.", "10:00:00.1234567", "10:00:0x"]
        {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn timestamps() {
        let parsed = |text: &str| {
            parse_timestamp(text).map(|found| (found.microseconds, found.offset_seconds))
        };
        assert_eq!(parsed("1970-01-02 00:00:00"), Some((DAY_MICROSECONDS, None)));
        assert_eq!(parsed("1970-01-01T00:00:00.5Z"), Some((500_000, Some(0))));
        assert_eq!(parsed("1969-12-31 23:59+02:00"), Some((-60_000_000, Some(7_200))));
        assert_eq!(parsed("1970-01-01 00:00:00-0330"), Some((0, Some(-12_600))));
        assert_eq!(parsed("1970-01-01 00:00:00 +02"), Some((0, Some(7_200))));
        assert_eq!(parsed("0002-11-28 10:00:00 (BC)"), parsed("-0001-11-28 10:00:00"));
        assert_eq!(parsed("1970-01-01 00:00:00 UTC"), Some((0, Some(0))));
        assert_eq!(parse_timestamp("1970-01-01 02:00+02").unwrap().utc(), Some(0));
        for text in [
            "1970-01-01",
            "1970-01-01 ",
            "1970-1-1 00:00",
            "1970-01-01 00:00+2",
            "1970-01-01 00:00 x",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
