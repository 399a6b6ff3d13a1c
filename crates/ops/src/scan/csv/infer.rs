//! The columns of a CSV file, from a sample.
//!
//! A file of at most [`WHOLE_BYTES_MAX`] bytes is looked at as a whole, and so is any with the option `sample = all`: its
//! types hold for every value. Of a larger one only the start is: a later value that does not fit is an error when it is
//! read, which says where it stands and what to do; it is never cast or dropped.

use std::sync::Arc;

use tessera_plan::{Params, Value};
use tessera_types::{Atom, Error, Field, Result, TimeUnit, Tuple};

use super::{CsvOptions, header_names, tokenizer};
use crate::context::RangeReader;
use crate::scan::text::cells::{parse_boolean, parse_date};
use crate::scan::text::{Head, TextFormat};

/// Files up to this size are looked at as a whole.
pub(crate) const WHOLE_BYTES_MAX: u64 = 8 << 20;
/// Of larger files, so many records are looked at.
pub(crate) const SAMPLE_ROWS: usize = 20_480;

/// What the values of a column have all been so far.
#[derive(Debug, Clone)]
struct Kinds {
    any: bool,
    boolean: bool,
    integer: bool,
    wide_integer: bool,
    float: bool,
    date: bool,
    timestamp: bool,
}

impl Kinds {
    fn new() -> Kinds {
        let all = true;
        Kinds {
            any: false,
            boolean: all,
            integer: all,
            wide_integer: all,
            float: all,
            date: all,
            timestamp: all,
        }
    }

    fn add(&mut self, text: &str) {
        self.any = true;
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        // A leading zero is part of a code (a postcode, say) that a number would lose.
        let code = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
        let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && !code;
        self.wide_integer &= whole && digits.len() <= 38;
        self.integer &= whole && text.parse::<i64>().is_ok();
        let numeric = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && !code;
        self.float &= numeric && text.parse::<f64>().is_ok_and(f64::is_finite);
        let word = text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false");
        self.boolean &= word && parse_boolean(text).is_some();
        let date = text.len() == 10 && parse_date(text).is_some();
        self.date &= date;
        self.timestamp &= date || is_timestamp(text);
    }

    fn atom(&self) -> Atom {
        match () {
            () if !self.any => Atom::String,
            () if self.boolean => Atom::Boolean,
            () if self.integer => Atom::Int64,
            () if self.wide_integer => Atom::Decimal(38, 0),
            () if self.float => Atom::Float64,
            () if self.date => Atom::Date,
            () if self.timestamp => Atom::Timestamp(TimeUnit::Microsecond, None),
            () => Atom::String,
        }
    }
}

/// `YYYY-MM-DD HH:MM[:SS[.ffffff]]`, also with `T` between.
fn is_timestamp(text: &str) -> bool {
    let Some((date, time)) = text.get(..10).zip(text.get(11..)) else { return false };
    let separated = matches!(text.as_bytes().get(10), Some(b' ' | b'T'));
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let parts: Vec<&str> = clock.split(':').collect();
    let below = |part: &str, limit: u32| {
        part.len() == 2
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.parse::<u32>().is_ok_and(|n| n < limit)
    };
    let clock = match parts[..] {
        [hour, minute] => below(hour, 24) && below(minute, 60) && !time.contains('.'),
        [hour, minute, second] => below(hour, 24) && below(minute, 60) && below(second, 60),
        _ => false,
    };
    let fraction = (1..=6).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    separated && clock && fraction && parse_date(date).is_some()
}

/// The columns of CSV files that form one table, and the options that a scan of them needs.
///
/// # Errors
/// A file cannot be read, or its sample is no CSV, or the files have different fields.
pub fn infer(readers: &[Arc<dyn RangeReader>], options: &Params) -> Result<(Tuple, Params)> {
    let mut csv = CsvOptions::new(options)?;
    let everything = wants_everything(options)?;
    let mut columns: Option<(Vec<String>, Vec<Kinds>)> = None;
    for reader in readers {
        let mut head = Head::new(&**reader, None);
        let start = head.mark_bytes()?;
        let limit = if everything || reader.len() <= WHOLE_BYTES_MAX { usize::MAX } else { SAMPLE_ROWS };
        infer_file(&mut head, start, limit, &mut csv, &mut columns)?;
    }
    let Some((names, kinds)) = columns else {
        let path = readers.first().map_or("", |reader| reader.path());
        return Err(Error::data(format!("'{path}' is empty: without a header it has no columns")));
    };
    let fields = names.iter().zip(&kinds).map(|(name, kinds)| Field::nullable(name.as_str(), kinds.atom()));
    let tuple = Tuple::new(fields.collect::<Vec<_>>());
    let mut params = options.clone();
    params.set("header", csv.header.unwrap_or(true));
    if csv.header == Some(false) {
        params.set("names", names.into_iter().map(Value::string).collect::<Vec<_>>());
    }
    Ok((tuple, params))
}

/// The option `sample = all`.
pub(crate) fn wants_everything(options: &Params) -> Result<bool> {
    match options.get("sample") {
        None => Ok(false),
        Some(Value::String(text) | Value::Name(text)) if text.eq_ignore_ascii_case("all") => Ok(true),
        Some(_) => Err(Error::semantic("option sample must be 'all', or be left out")),
    }
}

fn infer_file(
    head: &mut Head<'_>,
    start: usize,
    limit: usize,
    options: &mut CsvOptions,
    columns: &mut Option<(Vec<String>, Vec<Kinds>)>,
) -> Result<()> {
    let path = head.path().to_string();
    let wrong = |line: usize, what: String| Error::data(format!("'{path}', line {line}: {what}"));
    let mut position = start;
    let mut line = 1;
    let mut first = true;
    let mut rows = 0;
    while rows < limit {
        let Some((end, next)) = head.record(&*options as &dyn TextFormat, position)? else { break };
        let record = &head.bytes()[position..end];
        let lines = head.bytes()[position..next].iter().filter(|byte| **byte == b'\n').count();
        if first {
            first = false;
            let is_header = *options
                .header
                .get_or_insert(looks_like_header(options, record).map_err(|w| wrong(line, w))?);
            let names = match is_header {
                true => header_names(options, record).map_err(|what| wrong(line, what))?,
                false if options.names.is_empty() => {
                    let count = header_names(options, record).map_err(|what| wrong(line, what))?.len();
                    (0..count).map(|position| format!("column{position}")).collect()
                }
                false => options.names.iter().map(ToString::to_string).collect(),
            };
            match columns {
                None => *columns = Some((names.clone(), vec![Kinds::new(); names.len()])),
                Some((known, _)) if *known == names => {}
                Some((known, _)) => {
                    return Err(Error::data(format!(
                        "the files of one table differ: '{path}' has the fields {}, the ones before have {}",
                        names.join(", "),
                        known.join(", ")
                    )));
                }
            }
            if is_header {
                (position, line) = (next, line + lines);
                continue;
            }
        }
        let Some((names, kinds)) = columns else { break };
        if !(record.is_empty() && names.len() != 1) {
            let mut count = 0;
            let mut invalid = false;
            let result = tokenizer::fields(options, record, &mut |text, quoted| {
                if let Some(kinds) = kinds.get_mut(count)
                    && (quoted || !options.is_null(text))
                {
                    match std::str::from_utf8(text) {
                        // What is quoted was text to whoever wrote it only if it cannot be anything else.
                        Ok(text) => kinds.add(text),
                        Err(_) => invalid = true,
                    }
                }
                count += 1;
            });
            result.map_err(|what| wrong(line, what))?;
            if invalid {
                return Err(wrong(line, "a field is not valid UTF-8; convert the file to UTF-8".to_string()));
            }
            if count != names.len() {
                let relation = if count > names.len() { "too many" } else { "too few" };
                return Err(wrong(
                    line,
                    format!("{relation} fields: {count} where {} are expected", names.len()),
                ));
            }
            rows += 1;
        }
        (position, line) = (next, line + lines);
    }
    Ok(())
}

/// Names look unlike values: none is empty, repeated, a number, a date or a boolean.
fn looks_like_header(options: &CsvOptions, record: &[u8]) -> Result<bool, String> {
    let mut texts: Vec<Vec<u8>> = Vec::new();
    let mut names = true;
    tokenizer::fields(options, record, &mut |text, _| {
        let mut kinds = Kinds::new();
        let repeated = texts.iter().any(|other| other == text);
        match std::str::from_utf8(text) {
            Ok(text) if !text.is_empty() && !repeated => kinds.add(text),
            _ => names = false,
        }
        names &= kinds.atom() == Atom::String;
        texts.push(text.to_vec());
    })?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atom(values: &[&str]) -> Atom {
        let mut kinds = Kinds::new();
        values.iter().for_each(|value| kinds.add(value));
        kinds.atom()
    }

    #[test]
    fn the_smallest_type_that_loses_nothing() {
        assert_eq!(atom(&[]), Atom::String);
        assert_eq!(atom(&["1", "-20"]), Atom::Int64);
        assert_eq!(atom(&["1", "2.5", "1e3"]), Atom::Float64);
        assert_eq!(atom(&["1", "99999999999999999999"]), Atom::Decimal(38, 0));
        assert_eq!(atom(&["007", "12"]), Atom::String, "leading zeros are kept");
        assert_eq!(atom(&["true", "FALSE"]), Atom::Boolean);
        assert_eq!(atom(&["2024-02-29"]), Atom::Date);
        assert_eq!(
            atom(&["2024-02-29", "2024-02-29 10:00:00.5"]),
            Atom::Timestamp(TimeUnit::Microsecond, None)
        );
        assert_eq!(atom(&["2023-02-29"]), Atom::String);
        assert_eq!(atom(&["1", "x"]), Atom::String);
        assert_eq!(atom(&["nan"]), Atom::String);
        assert_eq!(atom(&["1", "true"]), Atom::String);
    }
}
