//! Functions on bytes.

use tessera_types::{Atom, Error, Result, SqlState, suggest};

use tessera_context::interrupt::Every;

use tessera_patterns::pieces::find;
use tessera_values::parse::hexadecimal;
use tessera_values::rowwise::{OutputValue, fault, signature, strict};
use tessera_values::types::{Arg, ResolvedCall};

/// `substr(bytes, start [, length])`.
pub(super) fn part(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let mut wanted = vec![Atom::Bytes, Atom::Int64];
    wanted.extend((args.len() > 2).then_some(Atom::Int64));
    let casts = signature(name, args, &wanted)?;
    Ok(strict(Atom::Bytes, args, casts, |arguments| {
        let length = arguments.get(2).map(|length| length.whole());
        if length.is_some_and(|length| length < 0) {
            return Err(fault("negative substring length not allowed", SqlState::SUBSTRING_ERROR));
        }
        Ok(OutputValue::Bytes(between(arguments[0].bytes(), arguments[1].whole(), length).to_vec()))
    }))
}

/// `length` bytes from position `start` (counted from 1), which may be before the first byte.
fn between(bytes: &[u8], start: i64, length: Option<i64>) -> &[u8] {
    let place =
        |number: i64| usize::try_from(number.max(1) - 1).unwrap_or(usize::MAX).min(bytes.len());
    let from = place(start);
    let to = length.map_or(bytes.len(), |length| place(start.saturating_add(length)));
    &bytes[from..to.max(from)]
}

/// `strpos(bytes, part)`: the first position of a part, from 1; 0 if there is no such part.
pub(super) fn position(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bytes, Atom::Bytes])?;
    Ok(strict(Atom::Int32, args, casts, |arguments| {
        let found = find(&memchr::memmem::Finder::new(arguments[1].bytes()), arguments[0].bytes());
        Ok(OutputValue::Whole(found.map_or(0, |at| at as i64 + 1)))
    }))
}

/// `overlay(bytes placing other from start [for length])`.
pub(super) fn overlay(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let mut wanted = vec![Atom::Bytes, Atom::Bytes, Atom::Int64];
    wanted.extend((args.len() > 3).then_some(Atom::Int64));
    let casts = signature(name, args, &wanted)?;
    Ok(strict(Atom::Bytes, args, casts, |arguments| {
        let (bytes, other, start) =
            (arguments[0].bytes(), arguments[1].bytes(), arguments[2].whole());
        let length = arguments.get(3).map_or(other.len() as i64, |length| length.whole());
        if start <= 0 {
            return Err(fault("negative substring length not allowed", SqlState::SUBSTRING_ERROR));
        }
        let before = between(bytes, 1, Some(start - 1));
        let after = between(bytes, start.saturating_add(length), None);
        Ok(OutputValue::Bytes([before, other, after].concat()))
    }))
}

/// `btrim(bytes, set)` and the like.
pub(super) fn trim(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bytes, Atom::Bytes])?;
    let (left, right) = (name != "rtrim", name != "ltrim");
    Ok(strict(Atom::Bytes, args, casts, move |arguments| {
        let (mut bytes, set) = (arguments[0].bytes(), arguments[1].bytes());
        while let ([first, rest @ ..], true) = (bytes, left) {
            if !set.contains(first) {
                break;
            }
            bytes = rest;
        }
        while let ([rest @ .., last], true) = (bytes, right) {
            if !set.contains(last) {
                break;
            }
            bytes = rest;
        }
        Ok(OutputValue::Bytes(bytes.to_vec()))
    }))
}

/// The supported text encodings.
#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    Utf8,
    Latin1,
    Ascii,
}

impl Encoding {
    fn named(name: &str) -> Result<Encoding> {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        Ok(match plain.to_ascii_lowercase().as_str() {
            "utf8" | "unicode" => Encoding::Utf8,
            "latin1" | "iso88591" => Encoding::Latin1,
            "sqlascii" => Encoding::Ascii,
            _ => {
                let hint = suggest(name, "expected", &["UTF8", "LATIN1", "SQL_ASCII"]);
                let message = format!("unknown encoding '{name}'{hint}");
                return Err(fault(message, SqlState::INVALID_PARAMETER_VALUE));
            }
        })
    }
}

/// `convert_from(bytes, encoding)` and `convert_to(text, encoding)`.
pub(super) fn converted(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    if name == "convert_to" {
        let casts = signature(name, args, &[Atom::String, Atom::String])?;
        return Ok(strict(Atom::Bytes, args, casts, |arguments| {
            let text = arguments[0].text();
            let beyond = |character: char| {
                let message = format!("the character '{character}' is not in the encoding LATIN1");
                fault(message, SqlState::UNTRANSLATABLE_CHARACTER)
            };
            match Encoding::named(arguments[1].text())? {
                Encoding::Utf8 | Encoding::Ascii => {
                    Ok(OutputValue::Bytes(text.as_bytes().to_vec()))
                }
                Encoding::Latin1 => {
                    let byte =
                        |character: char| u8::try_from(character).map_err(|_| beyond(character));
                    Ok(OutputValue::Bytes(text.chars().map(byte).collect::<Result<_>>()?))
                }
            }
        }));
    }
    let casts = signature(name, args, &[Atom::Bytes, Atom::String])?;
    Ok(strict(Atom::String, args, casts, |arguments| {
        let bytes = arguments[0].bytes();
        let encoding = Encoding::named(arguments[1].text())?;
        let invalid = || -> Error {
            fault("invalid byte sequence for the encoding", SqlState::CHARACTER_NOT_IN_REPERTOIRE)
        };
        if bytes.contains(&0) {
            return Err(invalid());
        }
        match encoding {
            Encoding::Latin1 => {
                Ok(OutputValue::Text(bytes.iter().map(|byte| char::from(*byte)).collect()))
            }
            _ => Ok(OutputValue::Text(
                std::str::from_utf8(bytes).map_err(|_| invalid())?.to_string(),
            )),
        }
    }))
}

/// DuckDB's `encode(text)` and `decode(bytes)`: the text in UTF-8.
pub(super) fn of_utf8(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    if name == "encode" {
        let casts = signature(name, args, &[Atom::String])?;
        return Ok(strict(Atom::Bytes, args, casts, |arguments| {
            Ok(OutputValue::Bytes(arguments[0].bytes().to_vec()))
        }));
    }
    let casts = signature(name, args, &[Atom::Bytes])?;
    Ok(strict(Atom::String, args, casts, |arguments| {
        let text = std::str::from_utf8(arguments[0].bytes())
            .map_err(|_| fault("the bytes are not UTF-8", SqlState::CHARACTER_NOT_IN_REPERTOIRE))?;
        Ok(OutputValue::Text(text.to_string()))
    }))
}

/// `error(text)`, which raises an error with this text.
pub(super) fn error(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String])?;
    Ok(strict(Atom::Null, args, casts, |arguments| Err(Error::data(arguments[0].text()))))
}

/// The text format of bytes.
#[derive(Clone, Copy)]
enum Form {
    Hex,
    Base64,
    Escape,
}

impl Form {
    fn named(name: &str) -> Result<Form> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "hex" => Form::Hex,
            "base64" => Form::Base64,
            "escape" => Form::Escape,
            _ => {
                let hint = suggest(name, "expected", &["hex", "base64", "escape"]);
                let message = format!("unknown format '{name}'{hint}");
                return Err(fault(message, SqlState::INVALID_PARAMETER_VALUE));
            }
        })
    }
}

/// `encode(bytes, format)` and `decode(text, format)`.
pub(super) fn coded(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    if name == "decode" {
        let casts = signature(name, args, &[Atom::String, Atom::String])?;
        return Ok(strict(Atom::Bytes, args, casts, |arguments| {
            let text = arguments[0].text();
            let wrong = |what: &str| -> Error {
                fault(format!("invalid {what} in '{text}'"), SqlState::INVALID_PARAMETER_VALUE)
            };
            Ok(OutputValue::Bytes(match Form::named(arguments[1].text())? {
                Form::Hex => hexadecimal(text).ok_or_else(|| wrong("hexadecimal data"))?,
                Form::Base64 => from_base64(text).ok_or_else(|| wrong("base64 data"))?,
                Form::Escape => tessera_values::parse::escaped(text)
                    .map_err(|state| fault(format!("invalid escape in '{text}'"), state))?,
            }))
        }));
    }
    let casts = signature(name, args, &[Atom::Bytes, Atom::String])?;
    Ok(strict(Atom::String, args, casts, |arguments| {
        let (bytes, every) = (arguments[0].bytes(), Every::default());
        let hexadecimal = |byte: &u8| {
            every.pass();
            format!("{byte:02x}")
        };
        Ok(OutputValue::Text(match Form::named(arguments[1].text())? {
            Form::Hex => bytes.iter().map(hexadecimal).collect(),
            Form::Base64 => to_base64(bytes),
            Form::Escape => {
                let mut out = String::with_capacity(bytes.len());
                for &byte in bytes {
                    every.pass();
                    match byte {
                        b'\\' => out.push_str("\\\\"),
                        0 | 0x80.. => out.push_str(&format!("\\{byte:03o}")),
                        _ => out.push(char::from(byte)),
                    }
                }
                out
            }
        }))
    }))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes base64 with a newline after every 76 characters, as in MIME.
pub(super) fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() / 3 * 4 + 8);
    let every = Every::default();
    for (index, group) in bytes.chunks(3).enumerate() {
        every.pass();
        if index > 0 && index % 19 == 0 {
            out.push('\n');
        }
        let number = group.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for place in 0..4 {
            match place <= group.len() {
                true => out.push(char::from(BASE64[(number >> (18 - 6 * place)) as usize & 63])),
                false => out.push('='),
            }
        }
    }
    out
}

pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut number, mut held, mut ends) = (0u32, 0, 0);
    let every = Every::default();
    for byte in text.bytes().filter(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
        every.pass();
        let digit = match byte {
            b'=' => {
                ends += 1;
                if held < 2 || ends > 2 {
                    return None;
                }
                0
            }
            _ if ends > 0 => return None,
            byte => BASE64.iter().position(|known| *known == byte)? as u32,
        };
        number = number << 6 | digit;
        held += 1;
        if held == 4 {
            let group = number.to_be_bytes();
            out.extend(&group[1..4 - ends]);
            (number, held) = (0, 0);
        }
    }
    (held == 0).then_some(out)
}

fn out_of_range(index: i64, length: usize) -> Error {
    fault(
        format!("index {index} out of valid range, 0..{}", length as i64 - 1),
        SqlState::ARRAY_SUBSCRIPT_ERROR,
    )
}

/// The index of the byte that contains a byte or bit index.
fn place(index: i64, per: i64, bytes: &[u8]) -> Result<usize> {
    let at = usize::try_from(index / per).ok().filter(|at| index >= 0 && *at < bytes.len());
    at.ok_or_else(|| out_of_range(index, bytes.len() * per as usize))
}

/// `get_byte(bytes, n)` and `get_bit(bytes, n)`, counted from 0.
pub(super) fn get(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bytes, Atom::Int64])?;
    let of_bits = name == "get_bit";
    Ok(strict(Atom::Int32, args, casts, move |arguments| {
        let (bytes, index) = (arguments[0].bytes(), arguments[1].whole());
        let at = place(index, if of_bits { 8 } else { 1 }, bytes)?;
        let byte = i64::from(bytes[at]);
        Ok(OutputValue::Whole(if of_bits { byte >> (index % 8) & 1 } else { byte }))
    }))
}

/// `set_byte(bytes, n, value)` and `set_bit(bytes, n, value)`.
pub(super) fn set(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bytes, Atom::Int64, Atom::Int64])?;
    let of_bits = name == "set_bit";
    Ok(strict(Atom::Bytes, args, casts, move |arguments| {
        let (index, value) = (arguments[1].whole(), arguments[2].whole());
        let mut bytes = arguments[0].bytes().to_vec();
        let at = place(index, if of_bits { 8 } else { 1 }, &bytes)?;
        match (of_bits, value) {
            (false, _) => bytes[at] = value as u8,
            (true, 0) => bytes[at] &= !(1 << (index % 8)),
            (true, 1) => bytes[at] |= 1 << (index % 8),
            (true, _) => {
                return Err(fault("new bit must be 0 or 1", SqlState::INVALID_PARAMETER_VALUE));
            }
        }
        Ok(OutputValue::Bytes(bytes))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_goes_there_and_back() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
        ] {
            assert_eq!(to_base64(bytes), text);
            assert_eq!(from_base64(text).as_deref(), Some(bytes));
        }
        assert_eq!(to_base64(&[0; 58]).lines().count(), 2);
        assert_eq!(from_base64("Zg="), None);
        assert_eq!(from_base64("Zg==Zg=="), None);
    }

    #[test]
    fn parts_of_bytes() {
        assert_eq!(between(&[1, 2, 3, 4], 2, Some(2)), &[2u8, 3][..]);
        assert_eq!(between(&[1, 2, 3], -1, Some(3)), &[1u8][..]);
        assert!(between(&[1, 2, 3], 9, None).is_empty());
    }
}
