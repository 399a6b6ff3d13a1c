//! The arrangement of objects in a JSON file: one per line, in sequence, or in a list.

use tessera_types::{Error, Result};

use super::tokenizer::{blank, members, object, object_end, record_end};
use crate::text::Head;

/// The bytes of the first line that are examined.
const FIRST_LINE_BYTES: usize = 1 << 20;

/// How records are delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// One object per line.
    Lines,
    /// Objects in sequence, over several lines or several per line.
    Objects,
    /// Objects in one list. The comma or closing bracket after an object is part of its record.
    List,
}

impl Arrangement {
    /// Detects a file's arrangement, and returns it with the number of bytes before its first
    /// record.
    ///
    /// # Errors
    /// The file cannot be read or is not text.
    pub(super) fn of(head: &mut Head<'_>) -> Result<(Arrangement, usize)> {
        let start = head.mark_bytes()?;
        head.read_to(start + FIRST_LINE_BYTES)?;
        let bytes = head.bytes();
        let first = blank(bytes, start);
        if bytes.get(first) == Some(&b'[') {
            return Ok((Arrangement::List, blank(bytes, first + 1)));
        }
        let Some((end, _)) = record_end(bytes, first, head.at_end()) else {
            return Ok((Arrangement::Lines, start));
        };
        let is_line = members(&bytes[first..end], &mut |_, _, _| Ok(())).is_ok();
        // Objects over several lines require a complete first object; other text is an error of its
        // line.
        let is_object = object_end(bytes, first)
            .is_some_and(|end| members(&bytes[first..end], &mut |_, _, _| Ok(())).is_ok());
        match !is_line && is_object {
            true => Ok((Arrangement::Objects, first)),
            false => Ok((Arrangement::Lines, start)),
        }
    }

    /// Checks that records are lines, so that one that cannot be read can be skipped.
    ///
    /// # Errors
    /// They are not.
    pub(super) fn check_lines(self, path: &str) -> Result<()> {
        match self {
            Arrangement::Lines => Ok(()),
            _ => Err(Error::unsupported(format!(
                "option ignore_errors cannot skip records of '{path}', whose objects are not one per line; remove the option"
            ))),
        }
    }

    /// Returns the end of the record at `start`, and the start of the next one after white space as
    /// far as it is available, so that errors name the right line.
    pub(super) fn record_end(
        self,
        bytes: &[u8],
        start: usize,
        at_end: bool,
    ) -> Option<(usize, usize)> {
        if self == Arrangement::Lines {
            return record_end(bytes, start, at_end);
        }
        let rest = (at_end && start < bytes.len()).then_some((bytes.len(), bytes.len()));
        let Some(end) = object_end(bytes, start) else { return rest };
        if self == Arrangement::Objects {
            return Some((end, blank(bytes, end)));
        }
        let first = blank(bytes, start);
        let separator = if bytes.get(first) == Some(&b']') { first } else { blank(bytes, end) };
        let behind = blank(bytes, separator + 1);
        let is_last = behind >= bytes.len();
        // Text after the list, or a bracket after a comma, is included in the record, which is then
        // an error.
        match bytes.get(separator) {
            Some(b']') if is_last => rest,
            Some(b',') if is_last => at_end.then_some((separator, bytes.len())),
            Some(b',') if bytes.get(behind) != Some(&b']') => Some((separator + 1, behind)),
            Some(b',' | b']') => Some((behind + 1, behind + 1)),
            Some(_) => Some((end, end)),
            None => rest,
        }
    }

    /// Like [`members`], for a record in this arrangement. Returns `false` for an empty record.
    pub(super) fn members(
        self,
        record: &[u8],
        member: &mut dyn FnMut(&[u8], super::Kind, &[u8]) -> Result<(), String>,
    ) -> Result<bool, String> {
        let start = blank(record, 0);
        if start == record.len() {
            return Ok(false);
        }
        if self != Arrangement::List {
            return members(record, member).map(|()| true);
        }
        let behind = |end: usize| blank(record, end) == record.len();
        match record[start] {
            // The end of an empty list.
            b']' if behind(start + 1) => Ok(false),
            b']' => Err("text after the JSON list".to_string()),
            b'{' => {
                let end = blank(record, object(record, start, member)?);
                match record.get(end) {
                    Some(b',' | b']') if behind(end + 1) => Ok(true),
                    Some(b',') => Err("expected a value after a comma".to_string()),
                    Some(b']') => Err("text after the JSON list".to_string()),
                    _ => Err("expected a comma or the closing bracket of the list".to_string()),
                }
            }
            _ => Err("not a JSON object; each element of the list must be one".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::in_memory::InMemoryFile;

    /// The arrangement, and the keys of each record.
    fn records(text: &str) -> (Arrangement, Result<Vec<String>, String>) {
        let file = InMemoryFile(text.as_bytes().to_vec());
        let (arrangement, mut position) = Arrangement::of(&mut Head::new(&file, None)).unwrap();
        let mut found = Vec::new();
        let mut read = || {
            while let Some((end, next)) = arrangement.record_end(&file.0, position, true) {
                let mut keys = String::new();
                let record = arrangement.members(&file.0[position..end], &mut |key, _, _| {
                    keys.push_str(&String::from_utf8_lossy(key));
                    Ok(())
                })?;
                found.extend(record.then_some(keys));
                position = next;
            }
            Ok(std::mem::take(&mut found))
        };
        (arrangement, read())
    }

    #[test]
    fn arrangements() {
        use Arrangement::{Lines, List, Objects};
        for (text, expected, keys) in [
            ("{\"a\":1}\n \n{\"b\":2}", Lines, vec!["a", "b"]),
            ("\u{feff}{\"a\":1}\r\n", Lines, vec!["a"]),
            ("{\n \"a\": {\"x\": 1}\n}\n{\"b\":2}\n", Objects, vec!["a", "b"]),
            ("{\"a\":\"}\"}{\"b\":2}\n{\"c\":3} ", Objects, vec!["a", "b", "c"]),
            ("{\"a\":1}\r{\"b\":2}\r", Objects, vec!["a", "b"]),
            ("[{\"a\":1},\n{\"b\":[\"]\"]}]\n", List, vec!["a", "b"]),
            (" [ ] ", List, vec![]),
            ("[{\"a\":1} , {\"b\":2} ] \n", List, vec!["a", "b"]),
            ("", Lines, vec![]),
        ] {
            let keys: Vec<String> = keys.into_iter().map(String::from).collect();
            assert_eq!(records(text), (expected, Ok(keys)), "{text}");
        }
    }

    #[test]
    fn what_is_none_of_these_is_an_error() {
        for text in [
            "[{\"a\":1} {\"b\":2}]",
            "[{\"a\":1}",
            "[{\"a\":1},2]",
            "[{\"a\":1}] x",
            "[{\"a\":1},]",
            "[{\"a\":1},",
            "[{\"a\":1}, ",
            "[{\"a\":1}]{\"b\":2}]",
            "[{\"a\":1}] [{\"b\":2}]",
            "[{\"a\":1}],",
            "[]{\"b\":2}]",
            "[] x",
            "[,{\"b\":2}]",
            "{\"a\":1}{\"b\":2",
            "{\"a\":1} x {\"b\":2}",
            "{\"a\":1},{\"b\":2}",
            "{\"a\":",
            "{\"a\":1}\n{\"b\":}\n",
            "1\n2\n",
        ] {
            assert!(records(text).1.is_err(), "{text}");
        }
    }
}
