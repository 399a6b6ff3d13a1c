//! Parses clock times and UTC offsets.

use crate::parse::Failure;

/// Parses digits.
pub(super) fn number(digits: &str) -> Result<i64, Failure> {
    match digits.parse::<i32>() {
        Ok(number) => Ok(number.into()),
        Err(_) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(Failure::Range)
        }
        Err(_) => Err(Failure::Invalid),
    }
}

/// Parses `HH:MM[:SS[.fraction]]` to hours and the remaining microseconds, and returns the rest of
/// the text.
pub(crate) fn clock(text: &str) -> Result<((i64, i64), &str), Failure> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let end = digits(text);
    let hour = number(&text[..end])?;
    let rest = text[end..].strip_prefix(':').ok_or(Failure::Invalid)?;
    let end = digits(rest);
    let minute = number(&rest[..end])?;
    let mut rest = &rest[end..];
    let (mut second, mut micros) = (0, 0);
    if let Some(fraction) = rest.strip_prefix('.') {
        // Minutes and seconds.
        let end = 1 + digits(fraction);
        return Ok((checked(0, hour, minute, microseconds(&rest[..end])?)?, &rest[end..]));
    }
    if let Some(after) = rest.strip_prefix(':') {
        let end = digits(after);
        second = number(&after[..end])?;
        rest = &after[end..];
        if rest.starts_with('.') {
            let end = 1 + digits(&rest[1..]);
            micros = microseconds(&rest[..end])?;
            rest = &rest[end..];
        }
    }
    Ok((checked(hour, minute, second, micros)?, rest))
}

/// Checks a time of day; 24:00 and a leap second are valid.
pub(super) fn checked(
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
) -> Result<(i64, i64), Failure> {
    let rest = (minute * 60 + second) * 1_000_000 + micros;
    let in_range = hour < 24 && minute < 60 && (second < 60 || (second == 60 && micros == 0))
        || (hour == 24 && rest == 0);
    if in_range { Ok((hour, rest)) } else { Err(Failure::Range) }
}

/// Parses a `.fraction` of a second to microseconds, rounded half to even as a double.
pub(crate) fn microseconds(fraction: &str) -> Result<i64, Failure> {
    if fraction == "." {
        return Ok(0);
    }
    let part: f64 = format!("0{fraction}").parse().map_err(|_| Failure::Invalid)?;
    Ok((part * 1e6).round_ties_even() as i64)
}

/// Parses `+HH`, `-HH:MM`, `+HHMM` or `+HH:MM:SS` to seconds.
pub(super) fn offset(text: &str) -> Result<i64, Failure> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => return Err(Failure::Invalid),
    };
    let (hours, minutes, seconds) = match digits.split(':').collect::<Vec<_>>()[..] {
        [whole] if whole.len() > 2 && whole.is_ascii() => {
            let (hours, minutes) = whole.split_at(whole.len() - 2);
            (number(hours)?, number(minutes)?, 0)
        }
        [hours] => (number(hours)?, 0, 0),
        [hours, minutes] => (number(hours)?, number(minutes)?, 0),
        [hours, minutes, seconds] => (number(hours)?, number(minutes)?, number(seconds)?),
        _ => return Err(Failure::Invalid),
    };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Failure::Zone);
    }
    let seconds = (hours * 60 + minutes) * 60 + seconds;
    Ok(if negative { -seconds } else { seconds })
}
