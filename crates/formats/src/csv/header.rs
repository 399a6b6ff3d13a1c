//! The header of a CSV file: detection and names.

use tessera_types::{Atom, unique_names};

use super::infer::Kinds;
use super::{CsvOptions, tokenizer};

/// The longest header in bytes. Names appear in every plan, message and result; a file with a
/// longer first record is of another kind.
const HEADER_BYTES_MAX: usize = 4 << 20;

/// Returns the names in a header, trimmed. Empty or repeated names get a unique one.
pub(crate) fn header_names(options: &CsvOptions, record: &[u8]) -> Result<Vec<String>, String> {
    if record.len() > HEADER_BYTES_MAX {
        return Err(format!(
            "the header is {} bytes long, more than {HEADER_BYTES_MAX}; if the file is CSV without a header, \
             set the option header to false",
            record.len()
        ));
    }
    let mut names: Vec<String> = Vec::new();
    let mut invalid = None;
    tokenizer::fields(options, record, &mut |text, quoted| {
        let text = std::str::from_utf8(text).unwrap_or_else(|_| {
            invalid = Some("the header is not valid UTF-8; convert the file to UTF-8");
            ""
        });
        let text = if quoted { text } else { text.trim() };
        names.push(if text.is_empty() { column_name(names.len()) } else { text.to_string() });
    })?;
    match invalid {
        Some(what) => Err(what.to_string()),
        None => Ok(unique_names(names)),
    }
}

/// The name of a field without a name.
pub(super) fn column_name(position: usize) -> String {
    format!("column{position}")
}

/// Returns names for a record without a header, one for each field.
pub(super) fn unnamed(options: &CsvOptions, record: &[u8]) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    tokenizer::fields(options, record, &mut |_, _| names.push(column_name(names.len())))?;
    Ok(names)
}

/// Whether the first record is a header, from its values and those of the records below (`kinds`);
/// the rule of DuckDB. The record is data only if a column that is not text could hold its value.
/// If all columns are text, or the record has no values, it is a header.
///
/// `rows` is the number of records below; if it is 0, the first record decides alone.
pub(super) fn is_header(
    options: &CsvOptions,
    record: &[u8],
    kinds: &[Kinds],
    rows: usize,
) -> Result<bool, String> {
    let (mut position, mut any, mut typed, mut fits) = (0, false, false, true);
    tokenizer::fields(options, record, &mut |text, quoted| {
        let below = kinds.get(position).cloned().unwrap_or_default();
        position += 1;
        let mut with_first = below.clone();
        if let (true, Ok(text)) = (quoted || !options.is_null(text), std::str::from_utf8(text)) {
            any |= !text.is_empty();
            with_first.add(text);
        }
        let column = if rows == 0 { with_first.atom() } else { below.atom() };
        if column != Atom::String {
            typed = true;
            fits &= with_first.atom() != Atom::String;
        }
    })?;
    Ok(!(any && typed && fits))
}

#[cfg(test)]
mod tests {
    use tessera_plan::Params;

    use super::*;

    fn names(record: &str) -> Vec<String> {
        header_names(&CsvOptions::new(&Params::new()).unwrap(), record.as_bytes()).unwrap()
    }

    #[test]
    fn names_are_unique() {
        assert_eq!(names("a,a,b"), ["a", "a_1", "b"]);
        assert_eq!(names("a,,b"), ["a", "column1", "b"]);
        assert_eq!(names("a,b,"), ["a", "b", "column2"]);
        assert_eq!(names("a, b,\" c \",\"x\ny\""), ["a", "b", " c ", "x\ny"]);
        assert_eq!(names("a,a_1,a,column4,"), ["a", "a_1", "a_2", "column4", "column4_1"]);
    }

    #[test]
    fn a_header_is_unlike_the_values_below() {
        let options = CsvOptions::new(&Params::new()).unwrap();
        let decided = |first: &str, below: &[&str]| {
            let mut kinds = vec![Kinds::default(); first.split(',').count()];
            for record in below {
                record
                    .split(',')
                    .zip(&mut kinds)
                    .filter(|(text, _)| !text.is_empty())
                    .for_each(|(text, kinds)| kinds.add(text));
            }
            is_header(&options, first.as_bytes(), &kinds, below.len()).unwrap()
        };
        let headers: [(&str, &[&str]); 8] = [
            ("a,b", &["1,2"]),
            ("a,2021", &["3,4"]),
            ("a,a", &["1,x"]),
            ("a,b", &["x,y"]),
            ("a,b", &[]),
            (",", &["1,2"]),
            ("1,2", &["x,y"]),
            ("a,,", &["x,,y"]),
        ];
        // A column of numbers can hold 1.5.
        let records: [(&str, &[&str]); 6] = [
            ("1,2", &["3,4"]),
            ("1,b", &["2,c"]),
            ("1,2", &[]),
            ("1.5,2", &["3,4"]),
            (",2", &["3,4"]),
            ("a,1", &[]),
        ];
        for (first, below) in headers {
            assert!(decided(first, below), "{first} above {below:?}");
        }
        for (first, below) in records {
            assert!(!decided(first, below), "{first} above {below:?}");
        }
    }
}
