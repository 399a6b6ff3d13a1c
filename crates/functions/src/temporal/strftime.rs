//! DuckDB's `strftime` and `strptime`, with the format specifiers of C.

use std::fmt::Write;

use tessera_text::calendar::{DAY_MICROSECONDS, civil, day_number};
use tessera_text::names::{DAYS, MONTHS};
use tessera_types::{Atom, Result, SqlState, TimeUnit};

use crate::temporal::fields::Calendar;
use tessera_values::rowwise::{MICROSECONDS, OutputValue, fault, strict, takes};
use tessera_values::temporal::session_zone::NamedZone;
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

/// Resolves `strftime(timestamp, format)`; the arguments may be swapped.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let wrong = || wrong_arguments(name, args, "it takes a date or timestamp and a format");
    let [first, second] = args else { return Err(wrong()) };
    let is_timestamp = |arg: &Arg<'_>| *arg.atom != Atom::String && takes(arg, &MICROSECONDS);
    let is_text = |arg: &Arg<'_>| matches!(arg.atom, Atom::String | Atom::Null);
    let moment_first =
        match (is_timestamp(first) && is_text(second), is_text(first) && is_timestamp(second)) {
            (true, _) => true,
            (false, true) => false,
            _ => return Err(wrong()),
        };
    let moment = if moment_first { first } else { second };
    let (atom, zone) = match moment.atom {
        Atom::Timestamp(_, Some(zone)) => {
            let atom = Atom::Timestamp(TimeUnit::Microsecond, Some(zone.clone()));
            (atom, Some(NamedZone::of(zone)?))
        }
        _ => (MICROSECONDS, None),
    };
    let mut casts = vec![atom, Atom::String];
    if !moment_first {
        casts.reverse();
    }
    Ok(strict(Atom::String, args, casts, move |arguments| {
        let (moment, format) = if moment_first {
            (&arguments[0], &arguments[1])
        } else {
            (&arguments[1], &arguments[0])
        };
        let moment = moment.whole();
        let offset = zone.map_or(0, |zone| zone.at(moment).0);
        let local = moment.saturating_add(offset * 1_000_000);
        format_timestamp(local, format.text(), offset).map(OutputValue::Text)
    }))
}

/// Resolves `strptime(text, format)`.
pub(super) fn resolve_parse(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = tessera_values::rowwise::signature(name, args, &[Atom::String, Atom::String])?;
    let tries = name == "try_strptime";
    Ok(strict(MICROSECONDS, args, casts, move |arguments| {
        let (text, format) = (arguments[0].text(), arguments[1].text());
        let found = parse_timestamp(text, format);
        if tries {
            return Ok(found.map_or(OutputValue::Null, OutputValue::Whole));
        }
        let moment = found.ok_or_else(|| {
            fault(
                format!("'{text}' does not match the format '{format}' of strptime"),
                SqlState::INVALID_DATETIME_FORMAT,
            )
        })?;
        Ok(OutputValue::Whole(moment))
    }))
}

/// Formats a local time, whose offset from UTC is in seconds.
fn format_timestamp(moment: i64, format: &str, offset: i64) -> Result<String> {
    let date = Calendar::of(moment.div_euclid(DAY_MICROSECONDS));
    let time = moment.rem_euclid(DAY_MICROSECONDS);
    let (hour, minute, second) =
        (time / 3_600_000_000, time / 60_000_000 % 60, time / 1_000_000 % 60);
    let micros = time % 1_000_000;
    let noon_hour = if hour % 12 == 0 { 12 } else { hour % 12 };
    let weekday = DAYS[date.day_of_week() as usize % 7];
    let month = MONTHS[(date.month - 1) as usize % 12];
    let mut out = String::with_capacity(format.len() + 16);
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        let mut specifier = characters.next();
        let bare = specifier == Some('-');
        if bare {
            specifier = characters.next();
        }
        let mut number = |value: i64, width: usize| {
            let width = if bare { 0 } else { width };
            let _ = write!(out, "{value:0width$}");
        };
        match specifier {
            Some('Y') => number(date.year, 4),
            Some('y') => number(date.year.rem_euclid(100), 2),
            Some('m') => number(date.month, 2),
            Some('d') => number(date.date, 2),
            Some('H') => number(hour, 2),
            Some('I') => number(noon_hour, 2),
            Some('M') => number(minute, 2),
            Some('S') => number(second, 2),
            Some('f') => number(micros, 6),
            Some('g') => number(micros / 1_000, 3),
            Some('n') => number(micros * 1_000, 9),
            Some('j') => number(date.day_of_year(), 3),
            Some('U') => number((date.day_of_year() + 6 - date.day_of_week()) / 7, 2),
            Some('W') => number((date.day_of_year() + 7 - date.iso_day_of_week()) / 7, 2),
            Some('V') => number(date.week(), 2),
            Some('G') => number(date.shown_iso_year(), 4),
            Some('u') => number(date.iso_day_of_week(), 1),
            Some('w') => number(date.day_of_week(), 1),
            Some('a') => out.push_str(&weekday[..3]),
            Some('A') => out.push_str(weekday),
            Some('b' | 'h') => out.push_str(&month[..3]),
            Some('B') => out.push_str(month),
            Some('p') => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            Some('c') => out.push_str(&format_timestamp(moment, "%Y-%m-%d %H:%M:%S", offset)?),
            Some('x') => out.push_str(&format_timestamp(moment, "%Y-%m-%d", offset)?),
            Some('X') => out.push_str(&format_timestamp(moment, "%H:%M:%S", offset)?),
            Some('z') => {
                let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
                let _ = write!(out, "{sign}{:02}", minutes / 60);
                if minutes % 60 != 0 {
                    let _ = write!(out, ":{:02}", minutes % 60);
                }
            }
            Some('Z') => {}
            Some('%') => out.push('%'),
            other => {
                let shown = other.map_or(String::new(), String::from);
                return Err(fault(
                    format!("unknown specifier '%{shown}' in the format of strftime"),
                    SqlState::INVALID_PARAMETER_VALUE,
                ));
            }
        }
    }
    Ok(out)
}

/// Parses a timestamp in a format.
fn parse_timestamp(text: &str, format: &str) -> Option<i64> {
    let (mut year, mut month, mut date, mut day_of_year) = (1900, 1, 1, None);
    let (mut hour, mut minute, mut second, mut micros, mut afternoon, mut offset) =
        (0, 0, 0, 0, None, 0);
    let mut rest = text.trim();
    let mut characters = format.trim().chars();
    while let Some(character) = characters.next() {
        if character.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        if character != '%' {
            rest = rest.strip_prefix(character)?;
            continue;
        }
        let mut specifier = characters.next()?;
        if specifier == '-' {
            specifier = characters.next()?;
        }
        let mut number = |most: usize| -> Option<i64> {
            let end = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
            let value = rest[..end].parse().ok()?;
            rest = &rest[end..];
            Some(value)
        };
        match specifier {
            'Y' => year = number(4)?,
            'y' => {
                let short = number(2)?;
                year = if short < 70 { 2_000 + short } else { 1_900 + short };
            }
            'm' => month = number(2)?,
            'd' => date = number(2)?,
            'j' => day_of_year = Some(number(3)?),
            'H' | 'I' => hour = number(2)?,
            'M' => minute = number(2)?,
            'S' => second = number(2)?,
            'f' | 'g' | 'n' => {
                let end = rest.bytes().take(9).take_while(u8::is_ascii_digit).count();
                micros = format!("{:0<6}", &rest[..end]).get(..6)?.parse().ok()?;
                rest = &rest[end..];
            }
            'a' | 'A' => rest = &rest[word(rest, &DAYS)?.1..],
            'b' | 'B' | 'h' => {
                let (index, end) = word(rest, &MONTHS)?;
                month = index as i64 + 1;
                rest = &rest[end..];
            }
            'p' => {
                let half = rest.get(..2)?.to_ascii_uppercase();
                afternoon = Some(match half.as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                });
                rest = &rest[2..];
            }
            'z' => {
                let sign = match rest.bytes().next()? {
                    b'+' => 1,
                    b'-' => -1,
                    _ => return None,
                };
                let end = 1 + rest[1..]
                    .bytes()
                    .take_while(|byte| byte.is_ascii_digit() || *byte == b':')
                    .count();
                let digits: String = rest[1..end].chars().filter(char::is_ascii_digit).collect();
                let hours: i64 = digits.get(..2)?.parse().ok()?;
                let minutes: i64 =
                    digits.get(2..4).map_or(Some(0), |digits| digits.parse().ok())?;
                offset = sign * (hours * 60 + minutes);
                rest = &rest[end..];
            }
            '%' => rest = rest.strip_prefix('%')?,
            _ => return None,
        }
    }
    if !rest.trim().is_empty() {
        return None;
    }
    if let Some(afternoon) = afternoon {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if afternoon { 12 } else { 0 };
    }
    let day = match day_of_year {
        Some(days) => day_number(year, 1, 1) + days - 1,
        None => {
            let in_range = (1..=12).contains(&month) && (1..=31).contains(&date);
            let day = in_range.then(|| day_number(year, month, date))?;
            (civil(day) == (year, month, date)).then_some(day)?
        }
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let time = ((hour * 60 + minute - offset) * 60 + second) * 1_000_000 + micros;
    day.checked_mul(DAY_MICROSECONDS)?.checked_add(time)
}

/// The index of the name at the start of a text, in full or as three letters, and the length of the
/// match.
fn word(text: &str, names: &[&str]) -> Option<(usize, usize)> {
    let begins =
        |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    let whole = names.iter().position(|name| begins(name)).map(|index| (index, names[index].len()));
    whole.or_else(|| names.iter().position(|name| begins(&name[..3])).map(|index| (index, 3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_go_there_and_back() {
        let moment = parse_timestamp("2024-02-29 13:04:05.000006", "%Y-%m-%d %H:%M:%S.%f").unwrap();
        let shown = |format| format_timestamp(moment, format, 19_800).unwrap();
        assert_eq!(shown("%a %d %B %y, %-I:%M %p %f %j"), "Thu 29 February 24, 1:04 PM 000006 060");
        assert_eq!(shown("%z"), "+05:30");
        assert_eq!(shown("%x %X %%"), "2024-02-29 13:04:05 %");
        assert_eq!(
            parse_timestamp("Feb 29 2024", "%b %d %Y"),
            parse_timestamp("29/2/24", "%d/%m/%y")
        );
        assert_eq!(parse_timestamp("x", "%Y"), None);
        assert_eq!(parse_timestamp("2023-02-29", "%Y-%m-%d"), None);
        assert!(format_timestamp(moment, "%Q", 0).is_err());
    }
}
