//! The time zone of a session: its name as `SET timezone` takes it, and local times in it.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use chrono_tz::OffsetName;
use tessera_text::calendar::offset_at;
use tessera_types::Result;

use crate::temporal::zones::{posix_offset, unknown_zone};

/// PostgreSQL's limit for offsets, in hours.
const OFFSET_HOURS_MAX: f64 = 168.0;

/// Names of UTC in the database of time zones.
const UTC: [&str; 9] = [
    "UTC",
    "Etc/UTC",
    "UCT",
    "Etc/UCT",
    "Universal",
    "Etc/Universal",
    "Zulu",
    "Etc/Zulu",
    "Etc/GMT",
];

/// The time zone of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionZone {
    /// The name, which `SHOW timezone` prints and `SET timezone` takes.
    pub name: Arc<str>,
    /// The zone in the types of timestamps: `UTC`, `Europe/Berlin` or `+02:00`.
    pub zone: Arc<str>,
}

impl Default for SessionZone {
    fn default() -> Self {
        SessionZone { name: "UTC".into(), zone: "UTC".into() }
    }
}

/// Parses the time zone of a session as PostgreSQL does: a name of the IANA database in any case,
/// a number of hours east of Greenwich, or a POSIX offset, which counts to the west.
///
/// # Errors
/// The name is unknown; the message has the nearest one.
pub fn session_zone(text: &str) -> Result<SessionZone> {
    if let Ok(hours) = text.trim().parse::<f64>() {
        let seconds = (hours * 3_600.0).round();
        if hours.is_nan() || hours.abs() >= OFFSET_HOURS_MAX {
            return Err(unknown_zone(text));
        }
        return fixed(text, &posix_name(seconds as i64), seconds as i64);
    }
    let named = chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name());
    if let Some(name) = named.into_iter().find(|name| name.eq_ignore_ascii_case(text)) {
        let zone = if UTC.contains(&name) { "UTC" } else { name };
        return Ok(SessionZone { name: name.into(), zone: zone.into() });
    }
    let spelled = match text.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((_, offset)) => format!("utc{offset}"),
        None if text.starts_with(['+', '-']) => format!("utc{text}"),
        None => text.to_ascii_lowercase(),
    };
    match posix_offset(&spelled) {
        Some(seconds) => fixed(text, &text.to_ascii_uppercase(), seconds),
        None => Err(unknown_zone(text)),
    }
}

/// A zone with one offset. Types of timestamps have whole minutes and less than a day.
fn fixed(text: &str, name: &str, seconds: i64) -> Result<SessionZone> {
    let minutes = seconds.abs() / 60;
    let sign = if seconds < 0 { '-' } else { '+' };
    let zone = match seconds {
        0 => "UTC".to_string(),
        _ => format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60),
    };
    if seconds % 60 != 0 || minutes >= 24 * 60 {
        return Err(unknown_zone(text));
    }
    Ok(SessionZone { name: name.into(), zone: zone.into() })
}

/// The name of an offset in POSIX notation: `<+02>-02` is two hours east of Greenwich.
fn posix_name(seconds: i64) -> String {
    let minutes = seconds.abs() / 60;
    let text = match minutes % 60 {
        0 => format!("{:02}", minutes / 60),
        rest => format!("{:02}:{rest:02}", minutes / 60),
    };
    match seconds < 0 {
        true => format!("<-{text}>+{text}"),
        false => format!("<+{text}>-{text}"),
    }
}

/// Converts microseconds since 1970 in UTC to the local time of a zone.
///
/// # Errors
/// The zone is unknown.
pub fn local_microseconds(moment: i64, zone: &str) -> Result<i64> {
    let zone = Tz::from_str(zone)?;
    Ok(moment.saturating_add(offset_at(&zone, moment.div_euclid(1_000_000)) * 1_000_000))
}

/// A zone that can be written: its offsets and their abbreviations.
#[derive(Debug, Clone, Copy)]
pub struct NamedZone {
    offsets: Tz,
    names: Option<chrono_tz::Tz>,
}

impl NamedZone {
    /// Finds the zone in the type of a timestamp.
    pub fn of(zone: &str) -> Result<NamedZone> {
        Ok(NamedZone { offsets: Tz::from_str(zone)?, names: zone.parse().ok() })
    }

    /// The offset in seconds and its abbreviation at a time in microseconds since 1970.
    pub fn at(&self, moment: i64) -> (i64, String) {
        use chrono::{DateTime, TimeZone};
        let seconds = moment.div_euclid(1_000_000);
        let offset = offset_at(&self.offsets, seconds);
        let listed = DateTime::from_timestamp(tessera_text::calendar::with_rules(seconds), 0);
        let name = self.names.zip(listed).and_then(|(zone, listed)| {
            let offset = zone.offset_from_utc_datetime(&listed.naive_utc());
            offset.abbreviation().map(String::from)
        });
        let name = name.unwrap_or_else(|| {
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
            match minutes % 60 {
                0 => format!("{sign}{:02}", minutes / 60),
                rest => format!("{sign}{:02}{rest:02}", minutes / 60),
            }
        });
        (offset, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_named_as_in_postgresql() {
        for (text, name, zone) in [
            ("utc", "UTC", "UTC"),
            ("etc/utc", "Etc/UTC", "UTC"),
            ("europe/berlin", "Europe/Berlin", "Europe/Berlin"),
            ("2", "<+02>-02", "+02:00"),
            ("+02", "<+02>-02", "+02:00"),
            ("-7.5", "<-07:30>+07:30", "-07:30"),
            ("<+02>-02", "<+02>-02", "+02:00"),
            ("+02:00", "+02:00", "-02:00"),
            ("utc+3", "UTC+3", "-03:00"),
            ("0", "<+00>-00", "UTC"),
        ] {
            let found = session_zone(text).unwrap();
            assert_eq!((&*found.name, &*found.zone), (name, zone), "{text}");
            assert_eq!(session_zone(&found.name).unwrap(), found, "{text}");
        }
        for text in ["", "pst", "z", "200", "nan", "abc-5:45:10", "Europe"] {
            assert!(session_zone(text).is_err(), "{text}");
        }
        let message = session_zone("Europe/Berlni").unwrap_err().to_string();
        assert!(message.contains("did you mean 'Europe/Berlin'?"), "{message}");
    }
}
