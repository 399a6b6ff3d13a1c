//! Formats values as text, as casts to string do.

use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::*;
use arrow::datatypes::*;

use tessera_text::calendar::{civil, offset_at};
use tessera_types::{Atom, Result, TimeUnit};

use crate::digits::{Text, push_date, push_padded};
use crate::format_float::{FloatStyle, write_double, write_single};
use crate::kernel::unexpected;
use crate::scalar::per_second;
use crate::temporal::timetz::TimeTz;
use crate::with_whole_number;

/// Formats each value as text.
pub fn format_array(array: &ArrayRef, atom: &Atom) -> Result<ArrayRef> {
    let mut builder = StringViewBuilder::with_capacity(array.len());
    let mut text = String::new();
    let nulls = array.logical_nulls();
    let mut write = writer(array, atom)?;
    for row in 0..array.len() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            builder.append_null();
            continue;
        }
        text.clear();
        write(&mut text, row);
        builder.append_value(&text);
    }
    Ok(Arc::new(builder.finish()))
}

type Writer<'a> = Box<dyn FnMut(&mut String, usize) + 'a>;

/// A writer that appends the value of a row as an element of a list, struct or map.
fn element_writer<'a>(array: &'a ArrayRef, atom: &Atom) -> Result<Writer<'a>> {
    let mut write = writer(array, atom)?;
    Ok(match atom {
        Atom::String
        | Atom::Bits
        | Atom::Enum(_)
        | Atom::Bytes
        | Atom::Time(_)
        | Atom::TimeTz
        | Atom::Timestamp(..)
        | Atom::Interval => Box::new(move |text, row| {
            let start = text.len();
            write(text, row);
            quote_element(text, start);
        }),
        _ => write,
    })
}

/// Quotes and escapes the element that begins at `start` if it could be parsed as NULL, or as no or
/// several elements. The rule is DuckDB's.
pub fn quote_element(text: &mut String, start: usize) {
    let is_space = |c: char| c.is_ascii_whitespace() || c == '\x0b';
    let element = &text[start..];
    let quoted = element.is_empty()
        || element.starts_with(is_space)
        || element.ends_with(is_space)
        || element.eq_ignore_ascii_case("null")
        || element.contains(['"', '\'', '(', ')', ',', ':', '=', '[', '\\', ']', '{', '}']);
    if quoted {
        let element = text.split_off(start);
        write_quoted(text, &element);
    }
}

fn write_quoted(text: &mut String, element: &str) {
    text.push('\'');
    for character in element.chars() {
        if matches!(character, '\'' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('\'');
}

/// A writer that appends the value of a row.
fn writer<'a>(array: &'a ArrayRef, atom: &Atom) -> Result<Writer<'a>> {
    let bad = || unexpected(array);
    Ok(match atom {
        Atom::Null => Box::new(|text, _| text.push_str("NULL")),
        Atom::Boolean => {
            let array = array.as_boolean_opt().ok_or_else(bad)?;
            Box::new(|text, row| text.push_str(if array.value(row) { "true" } else { "false" }))
        }
        Atom::Float32 => {
            let array = array.as_primitive_opt::<Float32Type>().ok_or_else(bad)?;
            Box::new(|text, row| write_single(text, array.value(row), FloatStyle::Bare))
        }
        Atom::Float64 => {
            let array = array.as_primitive_opt::<Float64Type>().ok_or_else(bad)?;
            Box::new(|text, row| write_double(text, array.value(row), FloatStyle::Bare))
        }
        Atom::String | Atom::Bits | Atom::Uuid => {
            let array = array.as_string_view_opt().ok_or_else(bad)?;
            Box::new(|text, row| text.push_str(array.value(row)))
        }
        Atom::Enum(labels) => {
            let array = array.as_primitive_opt::<UInt16Type>().ok_or_else(bad)?;
            let labels = labels.clone();
            Box::new(move |text, row| {
                let label = labels.labels().get(usize::from(array.value(row)));
                text.push_str(label.map_or("", |label| label));
            })
        }
        Atom::Bytes => {
            let array = array.as_binary_view_opt().ok_or_else(bad)?;
            Box::new(|text, row| {
                text.push_str("\\x");
                for byte in array.value(row) {
                    let _ = write!(text, "{byte:02x}");
                }
            })
        }
        Atom::Interval => {
            let array = array.as_primitive_opt::<IntervalMonthDayNanoType>().ok_or_else(bad)?;
            Box::new(|text, row| write_interval(text, array.value(row)))
        }
        Atom::List(slot) => {
            let array = array.as_list_opt::<i32>().ok_or_else(bad)?;
            let values = array.values();
            let mut item = element_writer(values, &slot.atom)?;
            let nulls = values.logical_nulls();
            Box::new(move |text, row| {
                let offsets = &array.offsets()[row..=row + 1];
                text.push('[');
                for (i, at) in (offsets[0] as usize..offsets[1] as usize).enumerate() {
                    text.push_str(if i > 0 { ", " } else { "" });
                    match nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
                        true => text.push_str("NULL"),
                        false => item(text, at),
                    }
                }
                text.push(']');
            })
        }
        Atom::Struct(slots) => {
            let array = array.as_struct_opt().ok_or_else(bad)?;
            let mut items = array
                .columns()
                .iter()
                .zip(slots.iter())
                .map(|(column, (name, slot))| {
                    Ok((name.clone(), column.logical_nulls(), element_writer(column, &slot.atom)?))
                })
                .collect::<Result<Vec<_>>>()?;
            Box::new(move |text, row| {
                text.push('{');
                for (i, (name, nulls, item)) in items.iter_mut().enumerate() {
                    text.push_str(if i > 0 { ", " } else { "" });
                    write_quoted(text, name);
                    text.push_str(": ");
                    match nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                        true => text.push_str("NULL"),
                        false => item(text, row),
                    }
                }
                text.push('}');
            })
        }
        Atom::Map(key, value) => {
            let array = array.as_map_opt().ok_or_else(bad)?;
            let (keys, values) = (array.keys(), array.values());
            let mut write_key = element_writer(keys, &key.atom)?;
            let mut write_value = element_writer(values, &value.atom)?;
            let nulls = values.logical_nulls();
            Box::new(move |text, row| {
                let offsets = &array.offsets()[row..=row + 1];
                text.push('{');
                for (i, at) in (offsets[0] as usize..offsets[1] as usize).enumerate() {
                    text.push_str(if i > 0 { ", " } else { "" });
                    write_key(text, at);
                    text.push('=');
                    match nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
                        true => text.push_str("NULL"),
                        false => write_value(text, at),
                    }
                }
                text.push('}');
            })
        }
        whole_number => {
            let write = whole_writer(whole_number);
            macro_rules! run {
                ($type:ty) => {{
                    let array = array.as_primitive_opt::<$type>().ok_or_else(bad)?;
                    Box::new(move |text: &mut String, row: usize| {
                        write(text, array.value(row) as i128)
                    }) as Writer<'a>
                }};
            }
            with_whole_number!(whole_number, run, return Err(bad()))
        }
    })
}

type WholeWriter = Box<dyn Fn(&mut String, i128)>;

/// A writer that appends an unscaled integer of a type.
fn whole_writer(atom: &Atom) -> WholeWriter {
    match atom.clone() {
        Atom::Decimal(_, scale) => {
            Box::new(move |text, value| text.push_str(&decimal_text(value, scale)))
        }
        Atom::Date => Box::new(|text, day| write_date(text, day as i64)),
        Atom::Time(unit) => Box::new(move |text, time| write_time(text, time as i64, unit)),
        Atom::TimeTz => Box::new(|text, packed| TimeTz::unpacked(packed as i64).write(text)),
        Atom::Timestamp(unit, zone) => {
            let zone = zone.and_then(|zone| Tz::from_str(&zone).ok());
            Box::new(move |text, moment| write_timestamp(text, moment as i64, unit, zone.as_ref()))
        }
        Atom::Duration(unit) => Box::new(move |text, length| {
            let nanos = length as i64 as i128 * (1_000_000_000 / per_second(unit)) as i128;
            text.push_str(if nanos < 0 { "-" } else { "" });
            write_clock(text, nanos.unsigned_abs());
        }),
        _ => Box::new(|text, value| {
            let _ = write!(text, "{value}");
        }),
    }
}

/// Formats an unscaled decimal.
pub fn decimal_text(value: i128, scale: i8) -> String {
    if scale <= 0 {
        return value.to_string();
    }
    let scale = scale as usize;
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    format!("{}{whole}.{fraction}", if value < 0 { "-" } else { "" })
}

/// Appends a date, given as days since 1970-01-01, in PostgreSQL's format.
pub fn write_date(text: &mut impl Text, day: i64) {
    match i32::try_from(day) {
        Ok(i32::MAX) => return text.push_str("infinity"),
        Ok(i32::MIN) => return text.push_str("-infinity"),
        _ => {}
    }
    let before_christ = write_day(text, day);
    text.push_str(if before_christ { " BC" } else { "" });
}

/// Appends a date without its era; returns true for a date before Christ.
fn write_day(text: &mut impl Text, day: i64) -> bool {
    let (year, month, date) = civil(day);
    if year > 0 && push_date(text, year, month, date) {
        return false;
    }
    let shown = if year > 0 { year } else { 1 - year };
    push_padded(text, shown.unsigned_abs(), 4);
    text.push_str("-");
    push_padded(text, month.unsigned_abs(), 2);
    text.push_str("-");
    push_padded(text, date.unsigned_abs(), 2);
    year <= 0
}

/// Appends a time of day.
pub(crate) fn write_time(text: &mut String, time: i64, unit: TimeUnit) {
    let per_second = per_second(unit);
    let (seconds, fraction) = (time.div_euclid(per_second), time.rem_euclid(per_second));
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let _ = write!(text, "{hours:02}:{minutes:02}:{:02}", seconds % 60);
    write_fraction(text, fraction, per_second);
}

fn write_fraction(text: &mut String, fraction: i64, per_second: i64) {
    if fraction != 0 {
        let digits = format!("{:09}", fraction * (1_000_000_000 / per_second));
        let _ = write!(text, ".{}", digits.trim_end_matches('0'));
    }
}

fn write_timestamp(text: &mut String, moment: i64, unit: TimeUnit, zone: Option<&Tz>) {
    match moment {
        i64::MAX => return text.push_str("infinity"),
        i64::MIN => return text.push_str("-infinity"),
        _ => {}
    }
    let per_second = per_second(unit);
    let offset = zone.map(|zone| offset_at(zone, moment.div_euclid(per_second)));
    let local = moment.saturating_add(offset.unwrap_or(0) * per_second);
    let per_day = per_second * 86_400;
    let before_christ = write_day(text, local.div_euclid(per_day));
    text.push(' ');
    write_time(text, local.rem_euclid(per_day), unit);
    if let Some(offset) = offset {
        write_offset(text, offset);
    }
    text.push_str(if before_christ { " BC" } else { "" });
}

/// Appends an offset in seconds east of Greenwich.
pub(crate) fn write_offset(text: &mut String, offset: i64) {
    let _ = write!(text, "{}{:02}", if offset < 0 { '-' } else { '+' }, offset.abs() / 3_600);
    if offset % 3_600 != 0 {
        let _ = write!(text, ":{:02}", offset.abs() / 60 % 60);
    }
    if offset % 60 != 0 {
        let _ = write!(text, ":{:02}", offset.abs() % 60);
    }
}

/// Appends an interval in PostgreSQL's format: a part after a negative one has an explicit sign.
pub(super) fn write_interval(text: &mut String, value: IntervalMonthDayNano) {
    let start = text.len();
    let mut after_negative = false;
    let mut part = |amount: i32, name: &str| {
        if amount != 0 {
            let space = if text.len() > start { " " } else { "" };
            let plus = if after_negative && amount > 0 { "+" } else { "" };
            let _ =
                write!(text, "{space}{plus}{amount} {name}{}", if amount == 1 { "" } else { "s" });
            after_negative = amount < 0;
        }
    };
    part(value.months / 12, "year");
    part(value.months % 12, "mon");
    part(value.days, "day");
    if value.nanoseconds != 0 || text.len() == start {
        let sign = match (value.nanoseconds < 0, after_negative) {
            (true, _) => "-",
            (false, true) => "+",
            (false, false) => "",
        };
        let space = if text.len() > start { " " } else { "" };
        let _ = write!(text, "{space}{sign}");
        write_clock(text, value.nanoseconds.unsigned_abs().into());
    }
}

/// Appends a duration in nanoseconds as hours, minutes and seconds.
fn write_clock(text: &mut String, nanos: u128) {
    let seconds = nanos / 1_000_000_000;
    let _ = write!(text, "{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    write_fraction(text, (nanos % 1_000_000_000) as i64, 1_000_000_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_keep_their_scale() {
        assert_eq!(decimal_text(-5, 2), "-0.05");
        assert_eq!(decimal_text(12345, 2), "123.45");
        assert_eq!(decimal_text(7, 0), "7");
    }

    #[test]
    fn intervals_read_well() {
        let text = |months, days, nanos| {
            let mut text = String::new();
            write_interval(&mut text, IntervalMonthDayNano::new(months, days, nanos));
            text
        };
        assert_eq!(text(14, -3, 3_661_500_000_000), "1 year 2 mons -3 days +01:01:01.5");
        assert_eq!(text(0, 0, 0), "00:00:00");
        assert_eq!(text(0, 1, 0), "1 day");
        assert_eq!(text(0, 0, -1_000_000_000), "-00:00:01");
    }
}
