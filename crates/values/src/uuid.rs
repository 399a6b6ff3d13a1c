//! UUIDs: conversions from and to text and bytes.
//!
//! The plain form is the canonical text, `550e8400-e29b-41d4-a716-446655440000`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, StringViewBuilder};
use tessera_context::interrupt::Every;
use tessera_types::{Error, Result, SqlState, UUID_BYTES};

use crate::kernel::unexpected;
use crate::parse::excerpt;

/// The characters of the canonical text.
const TEXT_CHARS: usize = 36;
/// The bytes before which the canonical text has a hyphen.
const HYPHENS: [usize; 4] = [4, 6, 8, 10];

/// Reads a UUID in any form that PostgreSQL takes: digits of either case, with or without braces,
/// with or without a hyphen after each four digits.
pub fn parse(text: &str) -> Option<[u8; UUID_BYTES as usize]> {
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let mut rest = inner.as_bytes();
    let mut uuid = [0; UUID_BYTES as usize];
    for (at, byte) in uuid.iter_mut().enumerate() {
        if at > 0
            && at % 2 == 0
            && let [b'-', after @ ..] = rest
        {
            rest = after;
        }
        let [high, low, after @ ..] = rest else { return None };
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?;
        rest = after;
    }
    rest.is_empty().then_some(uuid)
}

/// Appends the canonical text of the bytes of a UUID.
pub fn write(bytes: &[u8], text: &mut String) {
    for (position, byte) in bytes.iter().enumerate() {
        if HYPHENS.contains(&position) {
            text.push('-');
        }
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
        text.extend([digit(byte >> 4), digit(byte & 0xf)]);
    }
}

/// Returns the UUID of each text.
///
/// # Errors
/// A text is not a UUID. With `safe` it becomes NULL instead.
pub fn from_texts(array: &ArrayRef, safe: bool) -> Result<ArrayRef> {
    let texts = array.as_string_view_opt().ok_or_else(|| unexpected(array))?;
    let rows = texts.iter().map(|text| match text.map(|text| (text, parse(text))) {
        None => Ok(None),
        Some((_, Some(uuid))) => Ok(Some(uuid)),
        Some(_) if safe => Ok(None),
        Some((text, None)) => Err(invalid(text)),
    });
    written(array.len(), rows)
}

/// Returns the UUID of each value of 16 bytes.
///
/// # Errors
/// A value has another number of bytes. With `safe` it becomes NULL instead.
pub(crate) fn from_bytes(array: &ArrayRef, safe: bool) -> Result<ArrayRef> {
    let values = array.as_binary_view_opt().ok_or_else(|| unexpected(array))?;
    let rows = values.iter().map(|bytes| match bytes.map(|bytes| (bytes, bytes.try_into())) {
        None => Ok(None),
        Some((_, Ok(uuid))) => Ok(Some(uuid)),
        Some(_) if safe => Ok(None),
        Some((bytes, Err(_))) => Err(Error::data(format!(
            "{} bytes cannot become a UUID; give {UUID_BYTES}",
            bytes.len()
        ))),
    });
    written(array.len(), rows)
}

/// Returns the UUID of each value of a fixed size of 16 bytes, as files have them.
pub(crate) fn from_fixed_bytes(array: &ArrayRef) -> Result<ArrayRef> {
    let values = array.as_fixed_size_binary_opt().ok_or_else(|| unexpected(array))?;
    let rows = values.iter().map(|bytes| Ok(bytes.and_then(|bytes| bytes.try_into().ok())));
    written(array.len(), rows)
}

/// Returns the 16 bytes of each UUID.
pub(crate) fn to_bytes(array: &ArrayRef) -> Result<ArrayRef> {
    let texts = array.as_string_view_opt().ok_or_else(|| unexpected(array))?;
    let mut values = BinaryViewBuilder::with_capacity(texts.len());
    texts.iter().for_each(|text| values.append_option(text.and_then(parse)));
    Ok(Arc::new(values.finish()))
}

fn written(
    rows: usize,
    uuids: impl Iterator<Item = Result<Option<[u8; UUID_BYTES as usize]>>>,
) -> Result<ArrayRef> {
    let mut texts = StringViewBuilder::with_capacity(rows);
    let mut text = String::with_capacity(TEXT_CHARS);
    let every = Every::default();
    for uuid in uuids {
        every.pass();
        match uuid? {
            None => texts.append_null(),
            Some(uuid) => {
                text.clear();
                write(&uuid, &mut text);
                texts.append_value(&text);
            }
        }
    }
    Ok(Arc::new(texts.finish()))
}

fn invalid(text: &str) -> Error {
    Error::data(format!(
        "invalid input for type uuid: '{}'; write 32 hexadecimal digits such as \
         'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        excerpt(text)
    ))
    .with_state(SqlState::INVALID_TEXT_REPRESENTATION)
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;
    use tessera_types::Atom;

    use super::*;
    use crate::cast::cast;

    const CANONICAL: &str = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";

    #[test]
    fn all_forms_of_postgresql() {
        for text in [
            CANONICAL,
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
        ] {
            let mut written = String::new();
            write(&parse(text).unwrap(), &mut written);
            assert_eq!(written, CANONICAL, "{text}");
        }
        for text in [
            "",
            "{}",
            " a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-",
            "-a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eeb-c999c0b4ef8bb6d6bb9bd380a11",
            "a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11",
            "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "é0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn texts_and_bytes_convert_both_ways() {
        let upper = CANONICAL.to_uppercase();
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec![Some(&*upper), None, Some("x")]));
        let safe = cast(&texts, &Atom::String, &Atom::Uuid, true).unwrap();
        let expected: ArrayRef = Arc::new(StringViewArray::from(vec![Some(CANONICAL), None, None]));
        assert_eq!(&safe, &expected);
        let error = cast(&texts, &Atom::String, &Atom::Uuid, false).unwrap_err();
        assert_eq!(error.sql_state(), SqlState::INVALID_TEXT_REPRESENTATION);
        let bytes = cast(&safe, &Atom::Uuid, &Atom::Bytes, false).unwrap();
        assert_eq!(bytes.as_binary_view().value(0), parse(CANONICAL).unwrap());
        assert_eq!(&cast(&bytes, &Atom::Bytes, &Atom::Uuid, false).unwrap(), &expected);
        assert_eq!(&cast(&safe, &Atom::Uuid, &Atom::String, false).unwrap(), &expected);
        let short = cast(&texts.slice(2, 1), &Atom::String, &Atom::Bytes, false).unwrap();
        assert!(cast(&short, &Atom::Bytes, &Atom::Uuid, false).is_err());
    }
}
