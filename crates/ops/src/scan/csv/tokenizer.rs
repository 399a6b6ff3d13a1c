//! Records and fields of CSV.

use super::CsvOptions;

/// The end of the record at `start`, line end excluded, and the start of the next one.
pub(crate) fn record_end(
    options: &CsvOptions,
    bytes: &[u8],
    start: usize,
    at_end: bool,
) -> Option<(usize, usize)> {
    let rest = bytes.get(start..)?;
    let mut inside = false;
    let mut offset = 0;
    while offset < rest.len() {
        let byte = rest[offset];
        if byte == b'\n' && !inside {
            let end = start + offset;
            let carriage = end > start && bytes[end - 1] == b'\r';
            return Some((end - usize::from(carriage), end + 1));
        }
        if inside && options.escape == Some(byte) && options.escape != options.quote {
            offset += 1;
        } else if options.quote == Some(byte) {
            inside = !inside;
        }
        offset += 1;
    }
    if !at_end || rest.is_empty() {
        return None;
    }
    let end = bytes.len();
    let carriage = bytes.ends_with(b"\r") && end > start;
    Some((end - usize::from(carriage), end))
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
        let quote = options.quote.filter(|quote| rest.first() == Some(quote));
        let after = match quote {
            Some(quote) => {
                let (text, after) = quoted(options, quote, &rest[1..], &mut unescaped)?;
                field(text, true);
                after
            }
            None => {
                let special = |byte: &u8| *byte == options.delimiter || options.quote == Some(*byte);
                let end = rest.iter().position(special).unwrap_or(rest.len());
                if rest.get(end).is_some_and(|byte| *byte != options.delimiter) {
                    return Err(
                        "a quote inside a field that does not start with one; quote the whole field and double the quotes \
                         in it, or set the option quote to ''"
                            .to_string(),
                    );
                }
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

/// The text of a quoted field whose opening quote has been passed, and what follows it: a delimiter, or nothing.
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
    loop {
        let Some(found) = bytes[position..].iter().position(special).map(|offset| position + offset) else {
            return Err("a quoted field has no closing quote".to_string());
        };
        let next = bytes.get(found + 1).copied();
        let escapes = options.escape == Some(bytes[found]) && next.is_some_and(|next| special(&next));
        if escapes {
            unescaped.extend_from_slice(&bytes[position..found]);
            unescaped.push(bytes[found + 1]);
            copied = true;
            position = found + 2;
        } else if bytes[found] == quote {
            if next.is_some_and(|next| next != options.delimiter) {
                return Err("text after the closing quote of a field".to_string());
            }
            let text = if copied {
                unescaped.extend_from_slice(&bytes[position..found]);
                &unescaped[..]
            } else {
                &bytes[..found]
            };
            return Ok((text, &bytes[found + 1..]));
        } else {
            // An escape before anything else stands for itself.
            unescaped.extend_from_slice(&bytes[position..=found]);
            copied = true;
            position = found + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_plan::{Params, Value};

    fn split(options: &CsvOptions, record: &str) -> Result<Vec<(String, bool)>, String> {
        let mut out = Vec::new();
        fields(options, record.as_bytes(), &mut |text, quoted| {
            out.push((String::from_utf8_lossy(text).into_owned(), quoted));
        })?;
        Ok(out)
    }

    fn plain(texts: &[&str]) -> Vec<(String, bool)> {
        texts.iter().map(|text| (text.trim_start_matches('!').to_string(), text.starts_with('!'))).collect()
    }

    #[test]
    fn fields_of_records() {
        let options = CsvOptions::new(&Params::new()).unwrap();
        assert_eq!(split(&options, "a,,c").unwrap(), plain(&["a", "", "c"]));
        assert_eq!(split(&options, "").unwrap(), plain(&[""]));
        assert_eq!(split(&options, "a,").unwrap(), plain(&["a", ""]));
        assert_eq!(split(&options, "\"a,b\",\"\",\"x\"\"y\"").unwrap(), plain(&["!a,b", "!", "!x\"y"]));
        assert!(split(&options, "\"a\"b,c").unwrap_err().contains("after the closing quote"));
        assert!(split(&options, "\"abc").unwrap_err().contains("no closing quote"));
        assert!(split(&options, "5\" disk").unwrap_err().contains("inside a field"));
    }

    #[test]
    fn another_escape_and_no_quote() {
        let options = CsvOptions::new(&Params::new().with("escape", Value::string("\\"))).unwrap();
        assert_eq!(split(&options, "\"a\\\"b\\\\c\\d\",x").unwrap(), plain(&["!a\"b\\c\\d", "x"]));
        assert_eq!(record_end(&options, b"\"a\\\"\n\"\nx", 0, false), Some((6, 7)));
        let options = CsvOptions::new(&Params::new().with("quote", Value::string(""))).unwrap();
        assert_eq!(split(&options, "5\" disk,\"").unwrap(), plain(&["5\" disk", "\""]));
    }

    #[test]
    fn ends_of_records() {
        let options = CsvOptions::new(&Params::new()).unwrap();
        assert_eq!(record_end(&options, b"a\r\nb", 0, false), Some((1, 3)));
        assert_eq!(record_end(&options, b"a\r\nb", 3, false), None);
        assert_eq!(record_end(&options, b"a\r\nb", 3, true), Some((4, 4)));
        assert_eq!(record_end(&options, b"\"\n\"\n", 0, false), Some((3, 4)));
        assert_eq!(record_end(&options, b"a\n", 2, true), None);
    }
}
