//! Splits CSV into records and fields.
//!
//! A record ends at `\n`, `\r\n` or `\r` outside of quotes. A quote opens a quoted field only at
//! the start of a field, after optional spaces; elsewhere it is an ordinary character.

use memchr::{memchr, memchr2, memchr3};

use tessera_context::interrupt::{Every, find_byte};

use super::CsvOptions;
use crate::text::quotes::{STATES, Transition};

/// The state after a byte. The first state is the one at the start of a file.
const FIELD_START: u8 = 0;
/// In a field without quotes, or after the closing quote.
pub(super) const UNQUOTED: u8 = 1;
const QUOTED: u8 = 2;
/// After a quote in a quoted field: it closes the field, or is escaped by the next quote.
const QUOTE_SEEN: u8 = 3;
/// After an escape that is not the quote.
const ESCAPED: u8 = 4;

/// The bytes after which the possible states at the start of a block have mostly converged to two.
const CONVERGED_BYTES: usize = 16;

/// Returns the end of the record at `start`, without the line end, and the start of the next one.
pub(crate) fn record_end(
    options: &CsvOptions,
    bytes: &[u8],
    start: usize,
    at_end: bool,
) -> Option<(usize, usize)> {
    if options.comment.is_some() && bytes.get(start).copied() == options.comment {
        // A quote in a comment is an ordinary character.
        let bare = CsvOptions { quote: None, ..options.clone() };
        return rest_of_record(&bare, bytes, start, UNQUOTED, at_end);
    }
    rest_of_record(options, bytes, start, FIELD_START, at_end)
}

/// Returns the start of the first record in `bytes[1..]`, which begins in `state`; `bytes[0]` is
/// the byte before.
pub(crate) fn first_record(
    options: &CsvOptions,
    bytes: &[u8],
    state: u8,
    at_end: bool,
) -> Option<usize> {
    let before = bytes.first()?;
    if state == FIELD_START && matches!(before, b'\n' | b'\r') {
        let split_line_end = *before == b'\r' && bytes.get(1) == Some(&b'\n');
        return Some(1 + usize::from(split_line_end));
    }
    rest_of_record(options, bytes, 1, state, at_end).map(|(_, next)| next)
}

/// Like [`record_end`], for a record that is in `state` at `start`.
fn rest_of_record(
    options: &CsvOptions,
    bytes: &[u8],
    start: usize,
    state: u8,
    at_end: bool,
) -> Option<(usize, usize)> {
    let rest = bytes.get(start..)?;
    let (mut from, mut state) = (0, state);
    let every = Every::default();
    while from < rest.len() {
        every.pass();
        if state >= QUOTED {
            (from, state) = leave_quotes(options, rest, from, state);
            continue;
        }
        let found = match options.quote {
            Some(quote) => find_byte(&rest[from..], |piece| memchr3(b'\n', b'\r', quote, piece)),
            None => find_byte(&rest[from..], |piece| memchr2(b'\n', b'\r', piece)),
        };
        let Some(at) = found.map(|offset| from + offset) else { break };
        match rest[at] {
            b'\n' => return Some((start + at, start + at + 1)),
            b'\r' => match rest.get(at + 1) {
                Some(b'\n') => return Some((start + at, start + at + 2)),
                None if !at_end => return None,
                _ => return Some((start + at, start + at + 1)),
            },
            _ => {
                let opens = unquoted_state(options, rest, from, at, state) == FIELD_START;
                (from, state) = (at + 1, if opens { QUOTED } else { UNQUOTED });
            }
        }
    }
    (at_end && !rest.is_empty()).then_some((bytes.len(), bytes.len()))
}

/// Reads inside quotes until the state changes or the bytes end.
fn leave_quotes(options: &CsvOptions, bytes: &[u8], from: usize, state: u8) -> (usize, u8) {
    let Some(quote) = options.quote else { return (from, UNQUOTED) };
    match state {
        QUOTED => {
            let escape = options.escape.unwrap_or(quote);
            match find_byte(&bytes[from..], |piece| memchr2(quote, escape, piece)) {
                None => (bytes.len(), QUOTED),
                Some(at) if bytes[from + at] == quote => (from + at + 1, QUOTE_SEEN),
                Some(at) => (from + at + 1, ESCAPED),
            }
        }
        QUOTE_SEEN if bytes[from] == quote && options.escape == options.quote => (from + 1, QUOTED),
        // The byte after the closing quote is read again: it may end the field or the record.
        QUOTE_SEEN => (from, UNQUOTED),
        _ => (from + 1, QUOTED),
    }
}

/// Returns the state at `to`, given `state` at `from` and no quotes in between.
fn unquoted_state(options: &CsvOptions, bytes: &[u8], from: usize, to: usize, state: u8) -> u8 {
    let is_blank = |byte: &u8| *byte == b' ' && options.delimiter != b' ';
    match bytes[from..to].iter().rev().find(|byte| !is_blank(byte)) {
        None => state,
        Some(byte) if *byte == options.delimiter || matches!(byte, b'\n' | b'\r') => FIELD_START,
        Some(_) => UNQUOTED,
    }
}

/// Returns the state after `bytes` for each state before them.
pub(crate) fn transition(options: &CsvOptions, bytes: &[u8]) -> Transition {
    let (head, tail) = bytes.split_at(bytes.len().min(CONVERGED_BYTES));
    let mut known = [None; STATES];
    std::array::from_fn(|state| {
        let middle = state_behind(options, head, state as u8);
        *known[usize::from(middle)].get_or_insert_with(|| state_behind(options, tail, middle))
    })
}

fn state_behind(options: &CsvOptions, bytes: &[u8], mut state: u8) -> u8 {
    let mut from = 0;
    while from < bytes.len() {
        if state >= QUOTED {
            (from, state) = leave_quotes(options, bytes, from, state);
            continue;
        }
        let found = options.quote.and_then(|quote| memchr(quote, &bytes[from..]));
        let at = found.map_or(bytes.len(), |offset| from + offset);
        state = unquoted_state(options, bytes, from, at, state);
        if found.is_some() {
            state = if state == FIELD_START { QUOTED } else { UNQUOTED };
        }
        from = at + 1;
    }
    state
}

/// Calls `field` with the text of each field of a record and whether it was quoted.
pub(crate) fn fields(
    options: &CsvOptions,
    record: &[u8],
    field: &mut dyn FnMut(&[u8], bool),
) -> Result<(), String> {
    let mut rest = record;
    let mut unescaped = Vec::new();
    loop {
        let after = match opened(options, rest) {
            Some((quote, inside)) => {
                let (text, after) = quoted(options, quote, inside, &mut unescaped)?;
                field(text, true);
                after
            }
            None => {
                let end =
                    find_byte(rest, |piece| memchr(options.delimiter, piece)).unwrap_or(rest.len());
                field(&rest[..end], false);
                &rest[end..]
            }
        };
        match after.split_first() {
            None => return Ok(()),
            Some((_, next)) => rest = next,
        }
    }
}

/// Returns the start of a field in a record. A field that cannot be read is the last one.
pub(super) fn field_start(options: &CsvOptions, record: &[u8], field: usize) -> Option<usize> {
    let (mut rest, mut unescaped) = (record, Vec::new());
    for _ in 0..field {
        let after = match opened(options, rest) {
            Some((quote, inside)) => quoted(options, quote, inside, &mut unescaped).ok()?.1,
            None => &rest[memchr(options.delimiter, rest).unwrap_or(rest.len())..],
        };
        rest = after.split_first()?.1;
    }
    Some(record.len() - rest.len())
}

/// Returns the quote that a field begins with, and the bytes after it.
fn opened<'a>(options: &CsvOptions, field: &'a [u8]) -> Option<(u8, &'a [u8])> {
    let quote = options.quote?;
    let (first, inside) = without_blanks(options, field).split_first()?;
    (*first == quote).then_some((quote, inside))
}

/// Removes spaces around quotes, which are not part of a field.
fn without_blanks<'a>(options: &CsvOptions, bytes: &'a [u8]) -> &'a [u8] {
    let is_blank = |byte: &u8| *byte == b' ' && options.delimiter != b' ';
    let first = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    &bytes[first..]
}

/// Returns the text of a quoted field after its opening quote, and the rest of the record after the
/// field: a delimiter, or nothing.
fn quoted<'a, 'b: 'a>(
    options: &CsvOptions,
    quote: u8,
    bytes: &'b [u8],
    unescaped: &'a mut Vec<u8>,
) -> Result<(&'a [u8], &'b [u8]), String> {
    let special = |byte: &u8| *byte == quote || options.escape == Some(*byte);
    let mut position = 0;
    let mut copied = false;
    unescaped.clear();
    let (escape, every) = (options.escape.unwrap_or(quote), Every::default());
    loop {
        every.pass();
        let found = find_byte(&bytes[position..], |piece| memchr2(quote, escape, piece));
        let Some(found) = found.map(|offset| position + offset) else {
            return Err("a quoted field has no closing quote".to_string());
        };
        let next = bytes.get(found + 1);
        let escapes = options.escape == Some(bytes[found]) && next.is_some_and(special);
        if escapes {
            unescaped.extend_from_slice(&bytes[position..found]);
            unescaped.push(bytes[found + 1]);
            copied = true;
            position = found + 2;
        } else if bytes[found] == quote {
            let after = without_blanks(options, &bytes[found + 1..]);
            if after.first().is_some_and(|next| *next != options.delimiter) {
                return Err("text after the closing quote of a field; double the quotes in it, \
                            or set the option quote to ''"
                    .to_string());
            }
            let text = if copied {
                unescaped.extend_from_slice(&bytes[position..found]);
                &unescaped[..]
            } else {
                &bytes[..found]
            };
            return Ok((text, after));
        } else {
            // An escape before any other character is literal.
            unescaped.extend_from_slice(&bytes[position..=found]);
            copied = true;
            position = found + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use tessera_plan::{Params, Value};

    use super::*;

    fn split(options: &CsvOptions, record: &str) -> Result<Vec<(String, bool)>, String> {
        let mut out = Vec::new();
        fields(options, record.as_bytes(), &mut |text, quoted| {
            out.push((String::from_utf8_lossy(text).into_owned(), quoted));
        })?;
        Ok(out)
    }

    /// A text with `!` before it was quoted.
    fn plain(texts: &[&str]) -> Vec<(String, bool)> {
        texts
            .iter()
            .map(|text| (text.trim_start_matches('!').to_string(), text.starts_with('!')))
            .collect()
    }

    fn options(pairs: &[(&str, &str)]) -> CsvOptions {
        let params = pairs
            .iter()
            .fold(Params::new(), |params, (name, value)| params.with(*name, Value::string(*value)));
        CsvOptions::new(&params).unwrap()
    }

    #[test]
    fn fields_of_records() {
        let options = options(&[]);
        assert_eq!(split(&options, "a,,c").unwrap(), plain(&["a", "", "c"]));
        assert_eq!(split(&options, "").unwrap(), plain(&[""]));
        assert_eq!(split(&options, "a,").unwrap(), plain(&["a", ""]));
        assert_eq!(
            split(&options, "\"a,b\",\"\",\"x\"\"y\"").unwrap(),
            plain(&["!a,b", "!", "!x\"y"])
        );
        assert_eq!(split(&options, " \"a,b\" , c ").unwrap(), plain(&["!a,b", " c "]));
        assert_eq!(split(&options, "5\" disk,x\"y\"").unwrap(), plain(&["5\" disk", "x\"y\""]));
        assert!(split(&options, "\"a\"b,c").unwrap_err().contains("after the closing quote"));
        assert!(split(&options, "\"abc").unwrap_err().contains("no closing quote"));
    }

    #[test]
    fn another_escape_and_no_quote() {
        let escaped = options(&[("escape", "\\")]);
        assert_eq!(split(&escaped, "\"a\\\"b\\\\c\\d\",x").unwrap(), plain(&["!a\"b\\c\\d", "x"]));
        assert_eq!(record_end(&escaped, b"\"a\\\"\n\"\nx", 0, false), Some((6, 7)));
        let unquoted = options(&[("quote", "")]);
        assert_eq!(split(&unquoted, "5\" disk,\"").unwrap(), plain(&["5\" disk", "\""]));
        assert_eq!(record_end(&unquoted, b"\"a\nb", 0, false), Some((2, 3)));
    }

    #[test]
    fn ends_of_records() {
        let options = options(&[]);
        assert_eq!(record_end(&options, b"a\r\nb", 0, false), Some((1, 3)));
        assert_eq!(record_end(&options, b"a\r\nb", 3, false), None);
        assert_eq!(record_end(&options, b"a\r\nb", 3, true), Some((4, 4)));
        assert_eq!(record_end(&options, b"a\rb", 0, false), Some((1, 2)));
        assert_eq!(record_end(&options, b"a\r", 0, false), None, "a line feed may follow");
        assert_eq!(record_end(&options, b"a\r", 0, true), Some((1, 2)));
        assert_eq!(record_end(&options, b"\"\n\"\n", 0, false), Some((3, 4)));
        assert_eq!(record_end(&options, b"5\" a\nb\"\n", 0, false), Some((4, 5)), "a stray quote");
        assert_eq!(record_end(&options, b"a, \"\n\"\n", 0, false), Some((6, 7)));
        assert_eq!(record_end(&options, b"a\n", 2, true), None);
    }

    /// After any cut, the rest begins with the records that follow the cut.
    #[test]
    fn records_are_found_from_anywhere() {
        let texts: [(&str, &[(&str, &str)]); 4] = [
            ("a,\"b\nc\"\r\n5\" d,e\n\"x\"\"\n\",\"\"\ry, \"z\n\"\n\n1,2", &[]),
            ("\"a\\\"\n\",b\n\"\\\\\",c\nd,\"\\\r\n\"\r\n", &[("escape", "\\")]),
            ("'a\n''b';c\r'';d'\n", &[("quote", "'"), ("delimiter", ";")]),
            ("a\"b\nc\"\r\nd\n", &[("quote", "")]),
        ];
        for (text, pairs) in texts {
            let (options, bytes) = (options(pairs), text.as_bytes());
            let mut starts = vec![0];
            while let Some((_, next)) = record_end(&options, bytes, *starts.last().unwrap(), true) {
                starts.push(next);
            }
            for cut in 1..bytes.len() {
                let state = transition(&options, &bytes[..cut])[0];
                let found = first_record(&options, &bytes[cut - 1..], state, true);
                let expected = starts.iter().find(|start| **start >= cut).copied();
                assert_eq!(found.map(|found| cut - 1 + found), expected, "{text:?} at {cut}");
                for middle in 1..cut {
                    let first = transition(&options, &bytes[..middle])[0];
                    let second = transition(&options, &bytes[middle..cut]);
                    assert_eq!(second[usize::from(first)], state, "{text:?} at {middle} and {cut}");
                }
            }
        }
    }
}
