//! Bit strings: their texts, and conversions from and to whole numbers.
//!
//! The plain form has a digit, `0` or `1`, for each bit.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, StringViewBuilder};
use tessera_context::interrupt::EveryBytes;
use tessera_types::{Atom, Code, Error, Result, SqlState};

use crate::append::append;
use crate::kernel::unexpected;
use crate::parse::excerpt;

/// The maximum length of `bit(n)` and `bit varying(n)`, in bits.
pub const BITS_MAX: i64 = 83_886_080;

/// Returns the digits of a text: those of the text itself or, after `x`, of its hexadecimal digits.
/// A `b` may stand before the digits.
///
/// # Errors
/// A character is not a digit.
pub fn parse(text: &str) -> Result<Cow<'_, str>> {
    let (digits, is_hexadecimal) = match text.as_bytes().first() {
        Some(b'x' | b'X') => (&text[1..], true),
        Some(b'b' | b'B') => (&text[1..], false),
        _ => (text, false),
    };
    if is_hexadecimal {
        return from_hexadecimal(digits).map(Cow::Owned);
    }
    match digits.chars().find(|digit| !matches!(digit, '0' | '1')) {
        Some(wrong) => Err(invalid(wrong, "binary", text)),
        None => Ok(Cow::Borrowed(digits)),
    }
}

/// Returns the bits of hexadecimal digits, four for each.
///
/// # Errors
/// A character is not a digit.
pub fn from_hexadecimal(text: &str) -> Result<String> {
    let mut digits = String::with_capacity(text.len() * 4);
    for character in text.chars() {
        let value =
            character.to_digit(16).ok_or_else(|| invalid(character, "hexadecimal", text))?;
        push_bits(&mut digits, value.into(), 4);
    }
    Ok(digits)
}

fn invalid(character: char, kind: &str, text: &str) -> Error {
    let short = excerpt(text);
    let expected = if kind == "binary" { "0 and 1" } else { "0 to 9 and a to f" };
    Error::data(format!(
        "'{character}' is not a {kind} digit in the bit string '{short}'; expected {expected}"
    ))
    .with_state(SqlState::INVALID_TEXT_REPRESENTATION)
}

/// Returns the lowest `length` bits of a number in two's complement.
pub fn of_number(number: i64, length: usize) -> String {
    let mut digits = String::with_capacity(length);
    let sign = if number < 0 { '1' } else { '0' };
    digits.extend(std::iter::repeat_n(sign, length.saturating_sub(64)));
    push_bits(&mut digits, number, length.min(64) as u32);
    digits
}

fn push_bits(digits: &mut String, number: i64, count: u32) {
    digits.extend((0..count).rev().map(|bit| if number >> bit & 1 == 1 { '1' } else { '0' }));
}

/// Returns the number of at most 64 bits; `None` if there are more.
fn number_of(digits: &str) -> Option<i64> {
    let value = |number: u64, digit: u8| number << 1 | u64::from(digit == b'1');
    (digits.len() <= 64).then(|| digits.bytes().fold(0, value) as i64)
}

/// Parses each text as a bit string.
///
/// # Errors
/// A text has another character than a digit. With `safe` it becomes NULL instead.
pub(crate) fn from_texts(array: &ArrayRef, safe: bool) -> Result<ArrayRef> {
    let texts = array.as_string_view_opt().ok_or_else(|| unexpected(array))?;
    let mut builder = StringViewBuilder::with_capacity(texts.len());
    let (mut changed, every) = (false, EveryBytes::default());
    for text in texts {
        let Some(text) = text else {
            builder.append_null();
            continue;
        };
        every.pass(text.len());
        match parse(text) {
            Ok(Cow::Borrowed(digits)) if digits.len() == text.len() => {
                builder.append_value(digits);
            }
            Ok(digits) => {
                changed = true;
                append(&mut builder, digits.into_owned());
            }
            Err(_) if safe => {
                changed = true;
                builder.append_null();
            }
            Err(error) => return Err(error),
        }
    }
    Ok(if changed { Arc::new(builder.finish()) } else { array.clone() })
}

/// Converts bit strings to `int32` or `int64`. All bits of the number make it negative.
///
/// # Errors
/// A bit string has more bits than the number. With `safe` it becomes NULL instead.
pub(crate) fn to_integers(array: &ArrayRef, to: &Atom, safe: bool) -> Result<ArrayRef> {
    let bits = array.as_string_view_opt().ok_or_else(|| unexpected(array))?;
    let most = to.width_bytes().unwrap_or(8) * 8;
    let number = |digits: Option<&str>| -> Result<Option<i64>> {
        let Some(digits) = digits else { return Ok(None) };
        match number_of(digits).filter(|_| digits.len() <= most) {
            Some(number) => Ok(Some(number)),
            None if safe => Ok(None),
            None => Err(Error::new(
                Code::Overflow,
                format!(
                    "a bit string of {} bits is out of range for type {to}; expected at most {most}",
                    digits.len()
                ),
            )),
        }
    };
    let numbers = bits.iter().map(number);
    Ok(match to {
        // The highest of 32 bits is the sign.
        Atom::Int32 => Arc::new(
            numbers
                .map(|number| Ok(number?.map(|number| number as i32)))
                .collect::<Result<Int32Array>>()?,
        ),
        Atom::Int64 => Arc::new(numbers.collect::<Result<Int64Array>>()?),
        _ => return Err(Error::internal(format!("no conversion from bits to {to}"))),
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;

    use super::*;
    use crate::cast::cast;

    #[test]
    fn texts_are_digits_of_two_kinds() {
        for (text, digits) in [
            ("101", "101"),
            ("", ""),
            ("b01", "01"),
            ("x1F", "00011111"),
            ("Xa", "1010"),
            ("B", ""),
        ] {
            assert_eq!(parse(text).unwrap(), digits, "{text}");
        }
        for text in ["2", " 1", "x1g", "b1x", "bb1", "é"] {
            assert_eq!(parse(text).unwrap_err().sql_state().as_str(), "22P02", "{text}");
        }
    }

    #[test]
    fn numbers_have_their_bits() {
        assert_eq!(of_number(44, 3), "100");
        assert_eq!(of_number(-5, 8), "11111011");
        assert_eq!(of_number(-1, 66), "1".repeat(66));
        assert_eq!(of_number(i64::MIN, 65), format!("11{}", "0".repeat(63)));
        assert_eq!(of_number(5, 0), "");
    }

    #[test]
    fn bits_convert_to_numbers() {
        let all = "1".repeat(64);
        let of = |digits: &str| -> ArrayRef { Arc::new(StringViewArray::from(vec![digits])) };
        let number = |digits: &str, to: &str, safe: bool| {
            cast(&of(digits), &Atom::Bits, &to.parse().unwrap(), safe)
        };
        let same = |array: ArrayRef, value: i64| {
            let wide = arrow::compute::cast(&array, &arrow::datatypes::DataType::Int64).unwrap();
            wide.as_primitive::<arrow::datatypes::Int64Type>().value(0) == value
        };
        assert!(same(number("101", "int32", false).unwrap(), 5));
        assert!(same(number(&all[..32], "int32", false).unwrap(), -1));
        assert!(same(number(&all[..32], "int64", false).unwrap(), u32::MAX.into()));
        assert!(same(number(&all, "int64", false).unwrap(), -1));
        assert!(same(number("", "int64", false).unwrap(), 0));
        let error = number(&all[..33], "int32", false).unwrap_err();
        assert_eq!(error.sql_state().as_str(), "22003");
        assert_eq!(number(&all[..33], "int32", true).unwrap().null_count(), 1);
    }
}
