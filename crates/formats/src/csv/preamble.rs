//! Detects a preamble: lines of text before a CSV file's header, such as a title, an author or a
//! date.
//!
//! Lines are a preamble only where they are unambiguous: the lines after it are records with one
//! number of fields and a header, and the preamble has neither.

use std::collections::HashSet;

use super::header::is_header;
use super::infer::{Kinds, add_record};
use super::sniff::{DELIMITERS, SNIFFED_RECORDS, UnsetOptions, is_sound, sniff_fields};
use super::{CsvOptions, tokenizer};

/// The most lines of a preamble, and the most bytes examined.
const LINES_MAX: usize = 32;
const BYTES_MAX: usize = 64 << 10;

/// Returns the options of a file that begins with a preamble.
pub(super) fn sniff_preamble(
    (bytes, at_end): (&[u8], bool),
    unset: UnsetOptions,
    options: &CsvOptions,
) -> Option<CsvOptions> {
    let (bytes, at_end) = match bytes.get(..BYTES_MAX) {
        Some(start) if start.len() < bytes.len() => (start, false),
        _ => (bytes, at_end),
    };
    let delimiters = if unset.delimiter { &DELIMITERS[..] } else { &[options.delimiter] };
    if !bytes.iter().any(|byte| delimiters.contains(byte)) {
        return None;
    }
    let mut start = 0;
    for skip in 1..=LINES_MAX {
        start = line_after(bytes, start)?;
        let rest = &bytes[start..];
        let Some((way, look)) = sniff_fields((rest, at_end), unset, options) else { continue };
        if !is_sound(&look) || look.fields < 2 {
            continue;
        }
        let before = lines_before(&way, &bytes[..start], look.fields);
        if before.is_some_and(|before| has_header(&way, rest, at_end, look.fields, before)) {
            return Some(CsvOptions { skip: options.skip + skip, ..way });
        }
    }
    None
}

/// Returns the delimiter from Excel's first line `sep=;`.
pub(super) fn named_delimiter(bytes: &[u8]) -> Option<u8> {
    match bytes.get(..5)? {
        [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter]
            if delimiter.is_ascii_punctuation() || *delimiter == b'\t' =>
        {
            matches!(bytes.get(5), None | Some(b'\n' | b'\r')).then_some(*delimiter)
        }
        _ => None,
    }
}

fn line_after(bytes: &[u8], start: usize) -> Option<usize> {
    let at = start + bytes[start..].iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
    let is_pair = bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
    Some(at + 1 + usize::from(is_pair))
}

/// Returns the number of text lines before a header, and whether any line is blank. Returns `None`
/// if a line has so many fields that it may be a record.
fn lines_before(options: &CsvOptions, bytes: &[u8], fields: usize) -> Option<(usize, bool)> {
    // Quotes have no meaning in a preamble.
    let bare = CsvOptions { quote: None, escape: None, ..options.clone() };
    let (mut texts, mut any_blank, mut position) = (0, false, 0);
    while let Some((end, next)) = tokenizer::record_end(&bare, bytes, position, true) {
        let line = &bytes[position..end];
        position = next;
        if line.trim_ascii().is_empty() {
            any_blank = true;
            continue;
        }
        let mut count = 0;
        tokenizer::fields(&bare, line, &mut |_, _| count += 1).ok()?;
        if count > 1 && count * 2 > fields {
            return None;
        }
        texts += 1;
    }
    (texts > 0).then_some((texts, any_blank))
}

/// Whether the first record can only be a header: a column below it is not text and the header's
/// value has another type; or all columns are text, and the record has names and the lines `before`
/// it leave no doubt.
fn has_header(
    options: &CsvOptions,
    bytes: &[u8],
    at_end: bool,
    fields: usize,
    (texts, any_blank): (usize, bool),
) -> bool {
    let mut records = Vec::new();
    let mut position = 0;
    while records.len() < SNIFFED_RECORDS
        && let Some((end, next)) = tokenizer::record_end(options, bytes, position, at_end)
    {
        let record = &bytes[position..end];
        position = next;
        if !record.is_empty() && !options.is_comment(record) {
            records.push(record);
        }
    }
    let Some((header, below)) = records.split_first().filter(|(_, below)| !below.is_empty()) else {
        return false;
    };
    let mut kinds = vec![Kinds::default(); fields];
    if below.iter().any(|record| add_record(options, record, &mut kinds).is_err()) {
        return false;
    }
    let is_text = kinds.iter().all(Kinds::is_text);
    let is_clear = !is_text || texts > 1 || any_blank || fields > 2 && below.len() > 1;
    is_clear
        && is_header(options, header, &kinds, below.len()) == Ok(true)
        && has_names(options, header)
}

/// Whether all fields are distinct words.
fn has_names(options: &CsvOptions, header: &[u8]) -> bool {
    let (mut names, mut are_names) = (HashSet::new(), true);
    let read = tokenizer::fields(options, header, &mut |text, _| {
        let starts = text
            .trim_ascii()
            .first()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte >= 0x80);
        are_names &= starts && names.insert(text.to_vec());
    });
    read.is_ok() && are_names
}

#[cfg(test)]
mod tests {
    use tessera_plan::Params;

    use super::*;

    /// The number of skipped lines, and the delimiter.
    fn sniffed(text: &str) -> Option<(usize, char)> {
        let unset = UnsetOptions { delimiter: true, quotes: true, comment: false, skip: true };
        let options = CsvOptions::new(&Params::new()).unwrap();
        let found = sniff_preamble((text.as_bytes(), true), unset, &options)?;
        Some((found.skip, char::from(found.delimiter)))
    }

    #[test]
    fn lines_before_a_header() {
        assert_eq!(sniffed("Report 2020\na,b\n1,2\n"), Some((1, ',')));
        assert_eq!(sniffed("Report\r\n\r\nby: me\r\na;b\r\n1;x\r\n"), Some((3, ';')));
        assert_eq!(sniffed("Title\n\na,b\nx,y\n"), Some((2, ',')));
        assert_eq!(sniffed("a \"quoted\n\"word\na|b|c\n1|2|3\n"), Some((2, '|')));
        assert_eq!(sniffed("Sales, all of them\na,b,c,d\n1,2,3,4\n"), Some((1, ',')));
        assert_eq!(sniffed("Report\na,b,c\nx,y,z\nu,v,w\n"), Some((1, ',')));
    }

    #[test]
    fn what_may_be_meant_otherwise_is_none() {
        for text in [
            "price\n1,50\n2,75\n",
            "name\nann, bob\ncarl, joe\n",
            "a,b\n1,2,3\n4,5,6\n",
            "a,b,c\n1,2\n3,4\n",
            "address\n12 Main St,Springfield\n5 Elm St,Shelbyville\n",
            "a\nx,1\n",
            "a\n\n1\n",
            "",
        ] {
            assert_eq!(sniffed(text), None, "{text:?}");
        }
    }

    #[test]
    fn delimiters_that_a_first_line_names() {
        assert_eq!(named_delimiter(b"sep=;\na;b\n"), Some(b';'));
        assert_eq!(named_delimiter(b"SEP=\t"), Some(b'\t'));
        assert_eq!(named_delimiter(b"sep=;a\n"), None);
        assert_eq!(named_delimiter(b"sep,b\n"), None);
    }
}
