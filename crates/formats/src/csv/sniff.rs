//! Infers the dialect of a CSV file where options do not specify it: delimiter, quote, escape and
//! comments, from the first records.

use tessera_types::Result;

use super::preamble::{named_delimiter, sniff_preamble};
use super::{CsvOptions, tokenizer};
use crate::text::Head;

/// The delimiters to try, the most likely first.
pub(super) const DELIMITERS: [u8; 4] = *b",|;\t";
/// The pairs of quote and escape to try.
const QUOTES: [(u8, u8); 3] = [(b'"', b'"'), (b'"', b'\\'), (b'\'', b'\'')];
/// The first character of comments.
const COMMENT: u8 = b'#';
/// The bytes and records to examine.
const SNIFFED_BYTES: usize = 1 << 20;
pub(super) const SNIFFED_RECORDS: usize = 1_000;

/// The options that are not set and must be inferred.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnsetOptions {
    pub(super) delimiter: bool,
    pub(super) quotes: bool,
    pub(super) comment: bool,
    pub(super) skip: bool,
}

/// The shape of records when read with one dialect.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordShape {
    /// The number of fields of the first record.
    pub(super) fields: usize,
    /// Whether all records have the same number of fields.
    is_even: bool,
    /// Whether every record could be read.
    is_well_formed: bool,
    /// Whether any field was quoted.
    has_quotes: bool,
}

/// Infers the dialect of the file at `start` and sets it in `options`.
///
/// A dialect is valid if all records have the same number of fields; the one with most fields wins.
/// If none is valid, the delimiter is the most frequent one in the first record, so that the error
/// about the first record that differs has its position.
///
/// # Errors
/// The file cannot be read.
pub(super) fn sniff(
    head: &mut Head<'_>,
    start: usize,
    unset: UnsetOptions,
    options: &mut CsvOptions,
) -> Result<()> {
    if !unset.delimiter && !unset.quotes && !unset.comment && !unset.skip {
        return Ok(());
    }
    head.read_to(SNIFFED_BYTES)?;
    let (at_end, bytes) = (head.at_end(), head.bytes().get(start..).unwrap_or_default());
    if unset.delimiter
        && unset.skip
        && let Some(delimiter) = named_delimiter(bytes)
    {
        let named = CsvOptions { delimiter, skip: options.skip + 1, ..options.clone() };
        let start = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let rest = start.map_or(&[][..], |start| bytes[start..].trim_ascii_start());
        let unset = UnsetOptions { delimiter: false, ..unset };
        let found = sniff_fields((rest, at_end), unset, &named);
        *options = found.map_or(named, |(dialect, _)| dialect);
        return Ok(());
    }
    let Some((dialect, shape)) = sniff_fields((bytes, at_end), unset, options) else {
        return Ok(());
    };
    // Comments are assumed only if the file has one field with them as data, or an uneven number of
    // fields.
    if unset.comment && !(is_sound(&shape) && shape.fields > 1) && has_comments(bytes) {
        let commented = CsvOptions { comment: Some(COMMENT), ..options.clone() };
        if let Some((dialect, shape)) = sniff_fields((bytes, at_end), unset, &commented)
            && is_sound(&shape)
            && shape.fields > 1
        {
            *options = dialect;
            return Ok(());
        }
    }
    let is_table = is_sound(&shape) && shape.fields > 1;
    let preamble = match unset.skip && !is_table {
        true => sniff_preamble((bytes, at_end), unset, options),
        false => None,
    };
    *options = preamble.unwrap_or(dialect);
    Ok(())
}

pub(super) fn is_sound(shape: &RecordShape) -> bool {
    shape.is_even && shape.is_well_formed
}

fn has_comments(bytes: &[u8]) -> bool {
    bytes.first() == Some(&COMMENT)
        || bytes.windows(2).any(|pair| matches!(pair[0], b'\n' | b'\r') && pair[1] == COMMENT)
}

/// Returns the best dialect for the fields at the start of a file.
pub(super) fn sniff_fields(
    (bytes, at_end): (&[u8], bool),
    unset: UnsetOptions,
    options: &CsvOptions,
) -> Option<(CsvOptions, RecordShape)> {
    let delimiters: Vec<u8> = match unset.delimiter {
        true => DELIMITERS.to_vec(),
        false => vec![options.delimiter],
    };
    let pairs: Vec<(Option<u8>, Option<u8>)> = match unset.quotes {
        true => QUOTES.iter().map(|(quote, escape)| (Some(*quote), Some(*escape))).collect(),
        false => vec![(options.quote, options.escape)],
    };
    let mut dialects: Vec<(CsvOptions, RecordShape)> = Vec::new();
    for (quote, escape) in &pairs {
        let readings =
            delimiters.iter().filter(|delimiter| Some(**delimiter) != *quote).map(|delimiter| {
                let dialect = CsvOptions {
                    delimiter: *delimiter,
                    quote: *quote,
                    escape: *escape,
                    ..options.clone()
                };
                let shape = shape(&dialect, bytes, at_end);
                (dialect, shape)
            });
        dialects.extend(best(readings.collect()));
    }
    // Other quotes are used only if they occur, and the usual ones do not occur or do not fit.
    let usual = dialects.first().map(|(_, shape)| shape.clone()).unwrap_or_default();
    let other = dialects.iter().skip(1).find(|(_, shape)| {
        let better = !is_sound(&usual) || (!usual.has_quotes && shape.fields >= usual.fields);
        shape.has_quotes && is_sound(shape) && better
    });
    other.or(dialects.first()).cloned()
}

/// Returns the best of several dialects that have the same quotes.
fn best(dialects: Vec<(CsvOptions, RecordShape)>) -> Option<(CsvOptions, RecordShape)> {
    let rank = |shape: &RecordShape| match shape.fields {
        // Every text has one field per record with a delimiter that does not occur.
        0 | 1 => (0, usize::from(is_sound(shape)), 0),
        fields => (1, usize::from(is_sound(shape)), fields),
    };
    // The first of equally good dialects wins.
    dialects
        .into_iter()
        .reduce(|best, dialect| if rank(&dialect.1) > rank(&best.1) { dialect } else { best })
}

fn shape(options: &CsvOptions, bytes: &[u8], at_end: bool) -> RecordShape {
    let mut shape = RecordShape { is_even: true, is_well_formed: true, ..RecordShape::default() };
    let (mut position, mut records, mut odd, mut malformed) = (0, 0, 0, 0);
    while records < SNIFFED_RECORDS {
        let Some((end, next)) = tokenizer::record_end(options, bytes, position, at_end) else {
            // A quote that is not closed within the sample is not a quote.
            shape.is_well_formed &= records > 0 || bytes.is_empty();
            break;
        };
        let record = &bytes[position..end];
        position = next;
        if record.is_empty() || options.is_comment(record) {
            continue;
        }
        let mut fields = 0;
        let read = tokenizer::fields(options, record, &mut |_, quoted| {
            fields += 1;
            shape.has_quotes |= quoted;
        });
        malformed += usize::from(read.is_err());
        match records {
            0 => shape.fields = fields,
            _ => odd += usize::from(fields != shape.fields),
        }
        records += 1;
    }
    // Where records may be skipped, most of them must fit.
    let tolerated = if options.ignores { records / 2 } else { 0 };
    shape.is_even = odd <= tolerated;
    shape.is_well_formed &= malformed <= tolerated;
    shape
}

#[cfg(test)]
mod tests {
    use tessera_plan::Params;

    use super::*;
    use crate::text::in_memory::InMemoryFile;

    /// The delimiter, quote and escape.
    fn sniffed(text: &str) -> String {
        let reader = InMemoryFile(text.as_bytes().to_vec());
        let mut options = CsvOptions::new(&Params::new()).unwrap();
        let unset = UnsetOptions { delimiter: true, quotes: true, comment: true, skip: true };
        sniff(&mut Head::new(&reader, None), 0, unset, &mut options).unwrap();
        let bytes = [Some(options.delimiter), options.quote, options.escape];
        bytes.into_iter().flatten().map(char::from).collect()
    }

    #[test]
    fn delimiters() {
        for (text, expected) in [
            ("a,b\n1,2\n", ","),
            ("a;b\n1;2\n", ";"),
            ("a|b\r1|2\r", "|"),
            ("a\tb\r\n1,5\t2\r\n", "\t"),
            ("a;b;c\n1,5;2,5;3,5\n", ";"),
            ("a;b\n\"x;y\";1\n", ";"),
            ("a,b\n1;2,3;4\n", ","),
            ("name\n\"ann, bob\"\n", ","),
            ("name\nann, bob\ncarl\n", "|"),
            ("name\nx\n", ","),
            ("a,b\n", ","),
            ("a;b", ";"),
            ("", ","),
            ("a,b\n1,2,3\n", ","),
            ("a;b\n1;2\n1,5;3;4\n", ";"),
            ("a|b,c\n1|2,3\n", ","),
        ] {
            assert_eq!(sniffed(text).chars().next(), expected.chars().next(), "{text:?}");
        }
    }

    #[test]
    fn comments() {
        let comment = |text: &str| {
            let reader = InMemoryFile(text.as_bytes().to_vec());
            let mut options = CsvOptions::new(&Params::new()).unwrap();
            let unset = UnsetOptions { delimiter: true, quotes: true, comment: true, skip: true };
            sniff(&mut Head::new(&reader, None), 0, unset, &mut options).unwrap();
            (options.comment.is_some(), options.delimiter)
        };
        assert_eq!(comment("# a, \"b\na;b\n1;2\n# c\n"), (true, b';'));
        assert_eq!(comment("a,b\n#c\n1,2\n"), (true, b','));
        assert_eq!(comment("#a,b\n1,2\n"), (false, b','), "a name");
        assert_eq!(comment("#a\n1\n"), (false, b','), "a column");
        assert_eq!(comment("a,b\n#1,2\n"), (false, b','), "a value");
    }

    #[test]
    fn quotes_and_escapes() {
        for (text, expected) in [
            ("a,b\n\"x,y\",1\n", ",\"\""),
            ("a,b\n\"x\\\"y\",1\n", ",\"\\"),
            ("a,b\n\"x\\y\",1\n", ",\"\""),
            ("a,b\n'x,y',1\n", ",''"),
            ("'a';'b'\n'x';'y'\n", ";''"),
            ("a,b\n'tis,1\n'twas,2\n", ",\"\""),
            ("a,b\nit's,1\n", ",\"\""),
            ("a,b\n5\" pipe,1\n", ",\"\""),
        ] {
            assert_eq!(sniffed(text), expected, "{text:?}");
        }
    }
}
