//! Splits JSON into records and members, without building values.

use memchr::{memchr, memchr2};

use tessera_context::interrupt::{Every, SPAN_BYTES, find_byte, point, spans};

/// The deepest nesting of a value.
pub(super) const JSON_DEPTH_MAX: usize = 128;

/// The kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Boolean,
    Number,
    /// The text of the value is between the quotes, with its escapes.
    String,
    List,
    Object,
}

/// Returns the end of the line at `start`, and the start of the next one.
pub(crate) fn record_end(bytes: &[u8], start: usize, at_end: bool) -> Option<(usize, usize)> {
    let rest = bytes.get(start..)?;
    match find_byte(rest, |piece| memchr(b'\n', piece)) {
        Some(offset) => Some((start + offset, start + offset + 1)),
        None if at_end && !rest.is_empty() => Some((bytes.len(), bytes.len())),
        None => None,
    }
}

/// Calls `member` with the key, kind and text of each member of a record, which must be an object.
pub(crate) fn members(
    record: &[u8],
    member: &mut dyn FnMut(&[u8], Kind, &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let start = blank(record, 0);
    if record.get(start) != Some(&b'{') {
        return Err("not a JSON object; each record must be one".to_string());
    }
    let end = object(record, start, member)?;
    match record.get(blank(record, end)) {
        None => Ok(()),
        Some(_) => Err("text after the JSON object of the line".to_string()),
    }
}

/// Returns the first position at or after `position` that is not white space.
pub(super) fn blank(bytes: &[u8], position: usize) -> usize {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    match bytes.get(position) {
        Some(byte) if !is_text(byte) => {
            let rest = &bytes[position..];
            position + find_byte(rest, |piece| piece.iter().position(is_text)).unwrap_or(rest.len())
        }
        _ => position,
    }
}

/// Returns the end of the object at or after `start` without validating it, or `None` if the bytes
/// end first.
pub(super) fn object_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut position = blank(bytes, start);
    let mut depth = 0_usize;
    let every = Every::default();
    loop {
        every.pass();
        match bytes.get(position)? {
            b'"' => position = quoted_end(bytes, position)?,
            b'{' | b'[' => (depth, position) = (depth + 1, position + 1),
            b'}' | b']' if depth <= 1 => return Some(position + 1),
            b'}' | b']' => (depth, position) = (depth - 1, position + 1),
            // Text between objects becomes a record of its own, which is an error.
            b'\n' if depth == 0 => return Some(position),
            _ => position += 1,
        }
    }
}

/// Returns the end of the string at `start`, after its closing quote.
fn quoted_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut position = start + 1;
    let every = Every::default();
    loop {
        every.pass();
        let found =
            position + find_byte(bytes.get(position..)?, |piece| memchr2(b'"', b'\\', piece))?;
        match bytes[found] {
            b'"' => return Some(found + 1),
            _ => position = found + 2,
        }
    }
}

/// Calls `member` for each member of the object at `start`, and returns its end.
pub(super) fn object(
    bytes: &[u8],
    start: usize,
    member: &mut dyn FnMut(&[u8], Kind, &[u8]) -> Result<(), String>,
) -> Result<usize, String> {
    let mut position = blank(bytes, start + 1);
    if bytes.get(position) == Some(&b'}') {
        return Ok(position + 1);
    }
    let mut unescaped = Vec::new();
    let every = Every::default();
    loop {
        if bytes.get(position) != Some(&b'"') {
            return Err("expected a quoted key in a JSON object".to_string());
        }
        let (key_end, escaped) = string(bytes, position)?;
        let raw = &bytes[position + 1..key_end - 1];
        let key = if escaped {
            unescaped.clear();
            unescape(raw, &mut unescaped)?;
            &unescaped[..]
        } else {
            raw
        };
        position = blank(bytes, key_end);
        if bytes.get(position) != Some(&b':') {
            return Err("expected a colon after a key".to_string());
        }
        position = blank(bytes, position + 1);
        let (kind, end) = value(bytes, position, (0, &every))?;
        let text = if kind == Kind::String {
            &bytes[position + 1..end - 1]
        } else {
            &bytes[position..end]
        };
        member(key, kind, text)?;
        position = blank(bytes, end);
        match bytes.get(position) {
            Some(b',') => position = blank(bytes, position + 1),
            Some(b'}') => return Ok(position + 1),
            _ => return Err("expected a comma or a closing brace in a JSON object".to_string()),
        }
    }
}

/// Calls `element` for each element of a JSON list.
pub(crate) fn elements(
    bytes: &[u8],
    element: &mut dyn FnMut(Kind, &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let mut position = blank(bytes, 1);
    if bytes.get(position) == Some(&b']') {
        return Ok(());
    }
    // A list may be as long as its file.
    let every = Every::default();
    loop {
        let (kind, end) = value(bytes, position, (0, &every))?;
        element(
            kind,
            if kind == Kind::String {
                &bytes[position + 1..end - 1]
            } else {
                &bytes[position..end]
            },
        )?;
        position = blank(bytes, end);
        match bytes.get(position) {
            Some(b',') => position = blank(bytes, position + 1),
            Some(b']') => return Ok(()),
            _ => return Err("expected a comma or a closing bracket in a JSON list".to_string()),
        }
    }
}

/// Returns kind and end of the value at `start` at this nesting depth.
fn value(
    bytes: &[u8],
    start: usize,
    (depth, every): (usize, &Every),
) -> Result<(Kind, usize), String> {
    every.pass();
    if depth > JSON_DEPTH_MAX {
        return Err(format!(
            "a JSON value nested deeper than {JSON_DEPTH_MAX} levels (JSON_DEPTH_MAX)"
        ));
    }
    let word = |word: &[u8], kind: Kind| match bytes[start..].starts_with(word) {
        true => Ok((kind, start + word.len())),
        false => Err("expected a JSON value".to_string()),
    };
    match bytes.get(start) {
        Some(b'"') => Ok((Kind::String, string(bytes, start)?.0)),
        Some(b'n') => word(b"null", Kind::Null),
        Some(b't') => word(b"true", Kind::Boolean),
        Some(b'f') => word(b"false", Kind::Boolean),
        Some(b'-' | b'0'..=b'9') => number(bytes, start).map(|end| (Kind::Number, end)),
        Some(open @ (b'{' | b'[')) => {
            let (close, kind) =
                if *open == b'{' { (b'}', Kind::Object) } else { (b']', Kind::List) };
            let mut position = blank(bytes, start + 1);
            if bytes.get(position) == Some(&close) {
                return Ok((kind, position + 1));
            }
            loop {
                if kind == Kind::Object {
                    if bytes.get(position) != Some(&b'"') {
                        return Err("expected a quoted key in a JSON object".to_string());
                    }
                    position = blank(bytes, string(bytes, position)?.0);
                    if bytes.get(position) != Some(&b':') {
                        return Err("expected a colon after a key".to_string());
                    }
                    position = blank(bytes, position + 1);
                }
                position = blank(bytes, value(bytes, position, (depth + 1, every))?.1);
                match bytes.get(position) {
                    Some(b',') => position = blank(bytes, position + 1),
                    Some(byte) if *byte == close => return Ok((kind, position + 1)),
                    _ => return Err("incomplete JSON value".to_string()),
                }
            }
        }
        Some(_) => Err("expected a JSON value".to_string()),
        None => Err("incomplete JSON value".to_string()),
    }
}

/// Returns the end of the number at `start`.
fn number(bytes: &[u8], start: usize) -> Result<usize, String> {
    let digits = |mut position: usize| {
        let first = position;
        while bytes.get(position).is_some_and(u8::is_ascii_digit) {
            position += 1;
            if position.is_multiple_of(SPAN_BYTES) {
                point();
            }
        }
        (position > first).then_some(position).ok_or_else(|| "a malformed JSON number".to_string())
    };
    let first = start + usize::from(bytes.get(start) == Some(&b'-'));
    let mut position = digits(first)?;
    if bytes[first] == b'0' && position > first + 1 {
        return Err("a JSON number with a leading zero".to_string());
    }
    if bytes.get(position) == Some(&b'.') {
        position = digits(position + 1)?;
    }
    if matches!(bytes.get(position), Some(b'e' | b'E')) {
        let signed = matches!(bytes.get(position + 1), Some(b'+' | b'-'));
        position = digits(position + 1 + usize::from(signed))?;
    }
    Ok(position)
}

/// Returns the end of the string at `start`, after its closing quote, and whether it contains
/// (valid) escapes.
fn string(bytes: &[u8], start: usize) -> Result<(usize, bool), String> {
    let end =
        quoted_end(bytes, start).ok_or_else(|| "a JSON string has no closing quote".to_string())?;
    let text = &bytes[start + 1..end - 1];
    // Without an early exit, so that the loop is vectorized.
    if spans(text).any(|piece| piece.iter().fold(false, |found, byte| found | (*byte < b' '))) {
        return Err("a control character in a JSON string must be written as an escape".to_string());
    }
    let is_escaped = find_byte(text, |piece| memchr(b'\\', piece)).is_some();
    if is_escaped {
        unescape(text, &mut Vec::new())?;
    }
    Ok((end, is_escaped))
}

/// Appends the unescaped text of a string.
pub(crate) fn unescape(text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let bad = || "a malformed escape in a JSON string".to_string();
    let unit = |at: usize| {
        let digits = text.get(at..at + 4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok()).ok_or_else(bad)?;
        u32::from_str_radix(digits, 16).map_err(|_| bad())
    };
    let mut position = 0;
    let every = Every::default();
    while let Some(offset) = find_byte(&text[position..], |piece| memchr(b'\\', piece)) {
        every.pass();
        out.extend_from_slice(&text[position..position + offset]);
        position += offset;
        let byte = match text.get(position + 1).ok_or_else(bad)? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                let mut code = unit(position + 2)?;
                position += 6;
                if (0xd800..0xdc00).contains(&code)
                    && text.get(position..position + 2) == Some(b"\\u")
                {
                    let low = unit(position + 2)?;
                    if !(0xdc00..0xe000).contains(&low) {
                        return Err(bad());
                    }
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    position += 6;
                }
                let character = char::from_u32(code).ok_or_else(bad)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            byte @ (b'"' | b'\\' | b'/') => *byte,
            _ => return Err(bad()),
        };
        out.push(byte);
        position += 2;
    }
    out.extend_from_slice(&text[position..]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(record: &str) -> Result<Vec<(String, Kind, String)>, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut out = Vec::new();
        members(record.as_bytes(), &mut |key, kind, value| {
            out.push((text(key), kind, text(value)));
            Ok(())
        })?;
        Ok(out)
    }

    #[test]
    fn members_of_objects() {
        let found = all(
            r#" {"a": 1, "b\u00e9": "x\"y", "c": [1, {"d": "]"}], "e": {}, "f": null, "g": true} "#,
        )
        .unwrap();
        let expected = [
            ("a", Kind::Number, "1"),
            ("bé", Kind::String, "x\\\"y"),
            ("c", Kind::List, r#"[1, {"d": "]"}]"#),
            ("e", Kind::Object, "{}"),
            ("f", Kind::Null, "null"),
            ("g", Kind::Boolean, "true"),
        ];
        assert_eq!(
            found,
            expected.map(|(key, kind, value)| (key.to_string(), kind, value.to_string()))
        );
        assert_eq!(all("{}").unwrap(), []);
    }

    #[test]
    fn malformed_records() {
        for record in [
            "",
            "1",
            "[1]",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":1} x",
            "{\"a\":01}",
            "{\"a\":\"x}",
            "{\"a\":-}",
            "{\"a\":tru}",
            "{a:1}",
            "{\"a\":[1}",
            "{\"a\":[1,]}",
            "{\"a\":{\"b\":1,}}",
            "{\"a\":\"x\ty\"}",
            "{\"a\":[\"x\u{1}\"]}",
            "{\"a\":\"\\u+123\"}",
        ] {
            assert!(all(record).is_err(), "{record}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        assert!(all(&deep).unwrap_err().contains("JSON_DEPTH_MAX"));
    }

    #[test]
    fn escapes() {
        let plain = |text: &str| {
            let mut out = Vec::new();
            unescape(text.as_bytes(), &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        assert_eq!(plain(r#"a\n\"\\\/\u0041\ud83d\ude00z"#).unwrap(), "a\n\"\\/A😀z");
        assert!(plain(r"\x").is_err() && plain(r"\u12").is_err() && plain(r"\ud83d").is_err());
    }
}
