//! How a CSV file is written, where options do not say: its delimiter, quote, escape and comments,
//! from the first records.

use tessera_types::Result;

use super::preamble::{named_delimiter, sniff_preamble};
use super::{CsvOptions, tokenizer};
use crate::text::Head;

/// The delimiters that are tried, the likeliest first.
pub(super) const DELIMITERS: [u8; 4] = *b",|;\t";
/// Quotes and escapes that are tried.
const QUOTES: [(u8, u8); 3] = [(b'"', b'"'), (b'"', b'\\'), (b'\'', b'\'')];
/// What comments begin with.
const COMMENT: u8 = b'#';
/// Bytes and records that are looked at.
const SNIFFED_BYTES: usize = 1 << 20;
pub(super) const SNIFFED_RECORDS: usize = 1_000;

/// What was not said, and is found out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unknown {
    pub(super) delimiter: bool,
    pub(super) quotes: bool,
    pub(super) comment: bool,
    pub(super) skip: bool,
}

/// What records look like, read in one way.
#[derive(Debug, Clone, Default)]
pub(super) struct Look {
    /// Fields of the first record.
    pub(super) fields: usize,
    /// All records have as many.
    is_even: bool,
    /// Each could be read.
    is_well_formed: bool,
    /// Whether any field was quoted.
    has_quotes: bool,
}

/// Finds the way to read the file at `start` and sets it in `options`.
///
/// A way counts where all records have the same number of fields; the one with most is taken. Where
/// none counts, the delimiter is the one that the first record has most of, so that the error of
/// the first record that differs says where it stands.
///
/// # Errors
/// The file cannot be read.
pub(super) fn sniff(
    head: &mut Head<'_>,
    start: usize,
    unknown: Unknown,
    options: &mut CsvOptions,
) -> Result<()> {
    if !unknown.delimiter && !unknown.quotes && !unknown.comment && !unknown.skip {
        return Ok(());
    }
    head.read_to(SNIFFED_BYTES)?;
    let (at_end, bytes) = (head.at_end(), head.bytes().get(start..).unwrap_or_default());
    if unknown.delimiter
        && unknown.skip
        && let Some(delimiter) = named_delimiter(bytes)
    {
        let named = CsvOptions { delimiter, skip: options.skip + 1, ..options.clone() };
        let start = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let rest = start.map_or(&[][..], |start| bytes[start..].trim_ascii_start());
        let unknown = Unknown { delimiter: false, ..unknown };
        let found = sniff_fields((rest, at_end), unknown, &named);
        *options = found.map_or(named, |(way, _)| way);
        return Ok(());
    }
    let Some((way, look)) = sniff_fields((bytes, at_end), unknown, options) else { return Ok(()) };
    // Comments are taken for such only where the file has no fields with them, or not the same in
    // all records.
    if unknown.comment && !(is_sound(&look) && look.fields > 1) && has_comments(bytes) {
        let commented = CsvOptions { comment: Some(COMMENT), ..options.clone() };
        if let Some((way, look)) = sniff_fields((bytes, at_end), unknown, &commented)
            && is_sound(&look)
            && look.fields > 1
        {
            *options = way;
            return Ok(());
        }
    }
    let is_table = is_sound(&look) && look.fields > 1;
    let preamble = match unknown.skip && !is_table {
        true => sniff_preamble((bytes, at_end), unknown, options),
        false => None,
    };
    *options = preamble.unwrap_or(way);
    Ok(())
}

pub(super) fn is_sound(look: &Look) -> bool {
    look.is_even && look.is_well_formed
}

fn has_comments(bytes: &[u8]) -> bool {
    bytes.first() == Some(&COMMENT)
        || bytes.windows(2).any(|pair| matches!(pair[0], b'\n' | b'\r') && pair[1] == COMMENT)
}

/// The best way to read the fields of what a file begins with.
pub(super) fn sniff_fields(
    (bytes, at_end): (&[u8], bool),
    unknown: Unknown,
    options: &CsvOptions,
) -> Option<(CsvOptions, Look)> {
    let delimiters: Vec<u8> = match unknown.delimiter {
        true => DELIMITERS.to_vec(),
        false => vec![options.delimiter],
    };
    let pairs: Vec<(Option<u8>, Option<u8>)> = match unknown.quotes {
        true => QUOTES.iter().map(|(quote, escape)| (Some(*quote), Some(*escape))).collect(),
        false => vec![(options.quote, options.escape)],
    };
    let mut ways: Vec<(CsvOptions, Look)> = Vec::new();
    for (quote, escape) in &pairs {
        let readings =
            delimiters.iter().filter(|delimiter| Some(**delimiter) != *quote).map(|delimiter| {
                let way = CsvOptions {
                    delimiter: *delimiter,
                    quote: *quote,
                    escape: *escape,
                    ..options.clone()
                };
                let look = look(&way, bytes, at_end);
                (way, look)
            });
        ways.extend(best(readings.collect()));
    }
    // Other quotes are taken only where they are there, and the usual ones are not or do not fit.
    let usual = ways.first().map(|(_, look)| look.clone()).unwrap_or_default();
    let other = ways.iter().skip(1).find(|(_, look)| {
        let better = !is_sound(&usual) || (!usual.has_quotes && look.fields >= usual.fields);
        look.has_quotes && is_sound(look) && better
    });
    other.or(ways.first()).cloned()
}

/// The best of some ways to read a file that have the same quotes.
fn best(ways: Vec<(CsvOptions, Look)>) -> Option<(CsvOptions, Look)> {
    let rank = |look: &Look| match look.fields {
        // One field a record is what every text is; the delimiter must only be none of its bytes.
        0 | 1 => (0, usize::from(is_sound(look)), 0),
        fields => (1, usize::from(is_sound(look)), fields),
    };
    // The first of those that are equal.
    ways.into_iter().reduce(|best, way| if rank(&way.1) > rank(&best.1) { way } else { best })
}

fn look(options: &CsvOptions, bytes: &[u8], at_end: bool) -> Look {
    let mut look = Look { is_even: true, is_well_formed: true, ..Look::default() };
    let (mut position, mut records) = (0, 0);
    while records < SNIFFED_RECORDS {
        let Some((end, next)) = tokenizer::record_end(options, bytes, position, at_end) else {
            // Quotes that are opened and not closed within what is looked at are none.
            look.is_well_formed &= records > 0 || bytes.is_empty();
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
            look.has_quotes |= quoted;
        });
        look.is_well_formed &= read.is_ok();
        match records {
            0 => look.fields = fields,
            _ => look.is_even &= fields == look.fields,
        }
        records += 1;
    }
    look
}

#[cfg(test)]
mod tests {
    use tessera_plan::Params;

    use super::*;
    use crate::text::in_memory::InMemory;

    /// Delimiter, quote and escape.
    fn sniffed(text: &str) -> String {
        let reader = InMemory(text.as_bytes().to_vec());
        let mut options = CsvOptions::new(&Params::new()).unwrap();
        let unknown = Unknown { delimiter: true, quotes: true, comment: true, skip: true };
        sniff(&mut Head::new(&reader, None), 0, unknown, &mut options).unwrap();
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
            let reader = InMemory(text.as_bytes().to_vec());
            let mut options = CsvOptions::new(&Params::new()).unwrap();
            let unknown = Unknown { delimiter: true, quotes: true, comment: true, skip: true };
            sniff(&mut Head::new(&reader, None), 0, unknown, &mut options).unwrap();
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
