//! Infers the columns of a CSV file from a sample.
//!
//! A file of at most [`WHOLE_BYTES_MAX`] bytes is read as a whole, and so is any file with the
//! option `sample = all`: the inferred types hold for every value. Of a larger file, only the start
//! is read. A later value that does not fit is an error when it is read; the error says where the
//! value is and what to do. It is never cast or dropped.

use std::sync::Arc;

use tessera_context::RangeReader;
use tessera_plan::{Params, Value};
use tessera_types::{Atom, Code, Error, Field, Result, TimeUnit, Tuple};

use super::header::is_header;
use super::header::{column_name, unnamed};
use super::sniff::{DELIMITERS, UnsetOptions, sniff};
use super::{CsvOptions, check_count, header_names, tokenizer};
use crate::text::cells::{parse_boolean, parse_date};
use crate::text::times::{parse_time, parse_timestamp};
use crate::text::{Head, line_ends};

/// Files up to this size are read as a whole.
pub(crate) const WHOLE_BYTES_MAX: u64 = 8 << 20;
/// The number of records sampled from larger files.
pub(crate) const SAMPLE_ROWS: usize = 20_480;

/// The types that all values of a column have had so far.
#[derive(Debug, Clone)]
pub(crate) struct Kinds {
    any: bool,
    boolean: bool,
    integer: bool,
    wide_integer: bool,
    float: bool,
    date: bool,
    time: bool,
    timestamp: bool,
    zoned: bool,
}

impl Default for Kinds {
    fn default() -> Kinds {
        let all = true;
        Kinds {
            any: false,
            boolean: all,
            integer: all,
            wide_integer: all,
            float: all,
            date: all,
            time: all,
            timestamp: all,
            zoned: all,
        }
    }
}

impl Kinds {
    /// Adds a value. Spaces around numbers, dates and times are not part of them.
    pub(crate) fn add(&mut self, text: &str) {
        self.any = true;
        let word = text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false");
        self.boolean &= word && parse_boolean(text).is_some();
        let text = text.trim_matches(' ');
        self.add_number(text);
        let first = text.as_bytes().first();
        if !(self.date || self.time || self.timestamp || self.zoned)
            || !first.is_some_and(u8::is_ascii_digit)
        {
            (self.date, self.time, self.timestamp, self.zoned) = (false, false, false, false);
            return;
        }
        self.date &= text.len() == 10 && parse_date(text).is_some();
        self.time &= parse_time(text).is_some();
        let timestamp = parse_timestamp(text);
        self.timestamp &= timestamp.is_some_and(|found| found.offset_seconds.is_none());
        self.zoned &= timestamp.is_some_and(|found| found.offset_seconds.is_some());
    }

    fn add_number(&mut self, text: &str) {
        // A plus sign would be lost in a number; it may be part of a telephone number.
        let digits = text.strip_prefix('-').unwrap_or(text);
        // A leading zero would be lost, too; it may be part of a postal code.
        let code = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
        let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) && !code;
        self.wide_integer &= whole && digits.len() <= 38;
        let fits = text.parse::<i64>().is_ok();
        self.integer &= whole && fits;
        let numeric = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && !code;
        let special =
            ["inf", "infinity", "nan"].iter().any(|word| digits.eq_ignore_ascii_case(word));
        // A double would round an integer of so many digits.
        let float = numeric && (!whole || fits) && text.parse::<f64>().is_ok_and(f64::is_finite);
        self.float &= special || float;
    }

    /// Merges the types from other files.
    fn merge(&mut self, other: &Kinds) {
        self.any |= other.any;
        self.boolean &= other.boolean;
        self.integer &= other.integer;
        self.wide_integer &= other.wide_integer;
        self.float &= other.float;
        self.date &= other.date;
        self.time &= other.time;
        self.timestamp &= other.timestamp;
        self.zoned &= other.zoned;
    }

    /// Whether only text can hold the values, or there are no values.
    pub(super) fn is_text(&self) -> bool {
        self.atom() == Atom::String
    }

    /// Returns the smallest type that holds all values unchanged.
    pub(crate) fn atom(&self) -> Atom {
        match () {
            () if !self.any => Atom::String,
            () if self.boolean => Atom::Boolean,
            () if self.integer => Atom::Int64,
            () if self.wide_integer => Atom::Decimal(38, 0),
            () if self.float => Atom::Float64,
            () if self.date => Atom::Date,
            () if self.time => Atom::Time(TimeUnit::Microsecond),
            () if self.timestamp => Atom::Timestamp(TimeUnit::Microsecond, None),
            () if self.zoned => Atom::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC"))),
            () => Atom::String,
        }
    }
}

/// Infers the columns of CSV files that form one table, and the options that a scan of them needs.
///
/// # Errors
/// A file cannot be read, its sample is not CSV, or the files have different fields.
pub fn infer(readers: &[Arc<dyn RangeReader>], options: &Params) -> Result<(Tuple, Params)> {
    let everything = samples_whole_file(options)?;
    let unset = UnsetOptions {
        delimiter: options.get("delimiter").is_none(),
        quotes: options.get("quote").is_none() && options.get("escape").is_none(),
        comment: options.get("comment").is_none(),
        skip: options.get("skip").is_none() && options.get("header").is_none(),
    };
    let mut csv = CsvOptions::new(options)?;
    let mut columns: Option<(Vec<String>, Vec<Kinds>)> = None;
    for reader in readers {
        let mut head = Head::new(&**reader, None);
        let mut start = csv.start(&mut head)?;
        if columns.is_none() {
            sniff(&mut head, start, unset, &mut csv)?;
            start = csv.start(&mut head)?;
        }
        let limit =
            if everything || reader.len() <= WHOLE_BYTES_MAX { usize::MAX } else { SAMPLE_ROWS };
        infer_file(&mut head, start, limit, &mut csv, &mut columns)?;
    }
    let Some((names, kinds)) = columns else {
        if !csv.names.is_empty() {
            let fields = csv.names.iter().map(|name| Field::nullable(name.clone(), Atom::String));
            return Ok((Tuple::new(fields.collect::<Vec<_>>()), options.clone()));
        }
        let path = readers.first().map_or("", |reader| reader.path());
        return Err(Error::data(format!("'{path}' is empty: without a header it has no columns")));
    };
    let fields =
        names.iter().zip(&kinds).map(|(name, kinds)| Field::nullable(name.as_str(), kinds.atom()));
    let tuple = Tuple::new(fields.collect::<Vec<_>>());
    let mut params = options.clone();
    let text = |byte: Option<u8>| {
        Value::string(byte.map(char::from).map_or_else(String::new, String::from))
    };
    if unset.delimiter && csv.delimiter != b',' {
        params.set("delimiter", text(Some(csv.delimiter)));
    }
    if unset.quotes && csv.quote != Some(b'"') {
        params.set("quote", text(csv.quote));
    }
    if unset.quotes && csv.escape != csv.quote {
        params.set("escape", text(csv.escape));
    }
    if unset.comment && csv.comment.is_some() {
        params.set("comment", text(csv.comment));
    }
    if unset.skip && csv.skip > 0 {
        params.set("skip", csv.skip as i64);
    }
    params.set("header", csv.header.unwrap_or(true));
    if csv.header == Some(false) || !csv.names.is_empty() {
        params.set("names", names.into_iter().map(Value::string).collect::<Vec<_>>());
    }
    Ok((tuple, params))
}

/// Whether the option `sample = all` is set.
pub(crate) fn samples_whole_file(options: &Params) -> Result<bool> {
    match options.get("sample") {
        None => Ok(false),
        Some(Value::String(text) | Value::Name(text)) if text.eq_ignore_ascii_case("all") => {
            Ok(true)
        }
        Some(_) => Err(Error::semantic("option sample must be 'all' or absent")),
    }
}

fn infer_file(
    head: &mut Head<'_>,
    start: usize,
    limit: usize,
    options: &mut CsvOptions,
    columns: &mut Option<(Vec<String>, Vec<Kinds>)>,
) -> Result<()> {
    let wrong = |path: &str, line: usize, what: String| {
        Error::data(format!("'{path}', line {line}: {what}"))
    };
    let first = options.first_of(head, start, options.header == Some(false))?;
    let Some((first, first_end, second)) = first else { return Ok(()) };
    let first_line = 1 + line_ends(&head.bytes()[..first], None);
    let lines = line_ends(&head.bytes()[first..second], None);
    let record = &head.bytes()[first..first_end];
    let names = match options.header {
        Some(false) => unnamed(options, record),
        _ => header_names(options, record),
    };
    let names = names.map_err(|what| wrong(head.path(), first_line, what))?;
    let record = if options.header.is_none() { record.to_vec() } else { Vec::new() };
    // If unset, the records below decide whether this is a header.
    let (mut position, mut line) = match options.header {
        Some(false) => (first, first_line),
        _ => (second, first_line + lines),
    };
    let mut kinds = vec![Kinds::default(); names.len()];
    let mut rows = 0;
    while rows < limit {
        let ends = match head.record(options, position) {
            // A record that is too long is skipped when it is read.
            Err(error) if options.ignores && error.code() == Code::Limit => break,
            ends => ends?,
        };
        let Some((end, next)) = ends else { break };
        let record = &head.bytes()[position..end];
        if !(record.is_empty() && names.len() != 1 || options.is_comment(record)) {
            let added = match options.ignores {
                true => add_good_record(options, record, &mut kinds),
                false => add_record(options, record, &mut kinds),
            };
            match added {
                Ok(()) => rows += 1,
                Err(_) if options.ignores => {}
                Err(what) => return Err(wrong(head.path(), line, what)),
            }
        }
        line += line_ends(&head.bytes()[position..next], None);
        position = head.passed(next);
    }
    let failed = |what| wrong(head.path(), first_line, what);
    let has_header = match options.header {
        Some(header) => header,
        None => {
            let header = is_header(options, &record, &kinds, rows).map_err(failed)?;
            if !header {
                add_record(options, &record, &mut kinds).map_err(failed)?;
            }
            *options.header.insert(header)
        }
    };
    if options.names.len() > names.len() {
        let (named, found) = (options.names.len(), names.len());
        let what = format!("the file has {found} fields, but the options name {named}");
        return Err(wrong(head.path(), first_line, what));
    }
    let names = match has_header {
        true => options.named(names),
        false => options.named((0..names.len()).map(column_name).collect()),
    };
    match columns {
        None => *columns = Some((names, kinds)),
        Some((known, before)) if *known == names => {
            before.iter_mut().zip(&kinds).for_each(|(before, kinds)| before.merge(kinds));
        }
        // The same names in another order: each file's header maps its fields.
        Some((known, before)) if has_header && is_permutation(known, &names) => {
            for (name, kinds) in names.iter().zip(&kinds) {
                let place = known.iter().position(|known| known == name);
                if let Some(before) = place.and_then(|place| before.get_mut(place)) {
                    before.merge(kinds);
                }
            }
        }
        Some((known, before)) if options.is_union => {
            check_delimiter(head.path(), &names, known, options)?;
            for (name, kinds) in names.into_iter().zip(kinds) {
                match known.iter().position(|known| *known == name) {
                    Some(place) => before[place].merge(&kinds),
                    None => {
                        known.push(name);
                        before.push(kinds);
                    }
                }
            }
        }
        Some((known, _)) => {
            return Err(Error::data(format!(
                "the files of a table have different fields: '{}' has the fields {}, the ones before have {}",
                head.path(),
                names.join(", "),
                known.join(", ")
            )));
        }
    }
    Ok(())
}

/// Rejects a file whose header has another delimiter than those of the files before: its records
/// would be one column with an odd name.
fn check_delimiter(
    path: &str,
    names: &[String],
    known: &[String],
    options: &CsvOptions,
) -> Result<()> {
    let [name] = names else { return Ok(()) };
    let Some(other) = name.bytes().find(|byte| DELIMITERS.contains(byte)) else { return Ok(()) };
    if known.contains(name) || options.header == Some(false) {
        return Ok(());
    }
    Err(Error::data(format!(
        "the header of '{path}' has the delimiter {:?}, those of the files before have {:?}; read it on its own and \
         combine both with UNION ALL BY NAME",
        char::from(other),
        char::from(options.delimiter)
    )))
}

/// Whether two lists of unique names differ in order only.
fn is_permutation(left: &[String], right: &[String]) -> bool {
    left.len() == right.len() && left.iter().all(|name| right.contains(name))
}

/// Adds the values of a record.
pub(super) fn add_record(
    options: &CsvOptions,
    record: &[u8],
    kinds: &mut [Kinds],
) -> Result<(), String> {
    let (mut count, mut is_empty) = (0, false);
    let mut invalid = false;
    tokenizer::fields(options, record, &mut |text, quoted| {
        is_empty = text.is_empty() && !quoted;
        if let Some(kinds) = kinds.get_mut(count)
            && (quoted || !options.is_null(text))
        {
            match std::str::from_utf8(text) {
                // Quoted values are typed like others: quotes alone do not make a value text.
                Ok(text) => kinds.add(text),
                Err(_) => invalid = true,
            }
        }
        count += 1;
    })?;
    if invalid {
        return Err("a field is not valid UTF-8; convert the file to UTF-8".to_string());
    }
    check_count(count, is_empty, kinds.len())
}

/// Adds the values of a record if all of it can be read.
fn add_good_record(options: &CsvOptions, record: &[u8], kinds: &mut [Kinds]) -> Result<(), String> {
    add_record(options, record, &mut vec![Kinds::default(); kinds.len()])?;
    add_record(options, record, kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atom(values: &[&str]) -> Atom {
        let mut kinds = Kinds::default();
        values.iter().for_each(|value| kinds.add(value));
        kinds.atom()
    }

    #[test]
    fn the_smallest_type_that_loses_nothing() {
        assert_eq!(atom(&[]), Atom::String);
        assert_eq!(atom(&["1", "-20"]), Atom::Int64);
        assert_eq!(atom(&[" 1", "2 "]), Atom::Int64, "spaces around numbers");
        assert_eq!(atom(&["1", "  "]), Atom::String, "spaces alone");
        assert_eq!(atom(&["1", "2.5", "1e3", "1.", ".5"]), Atom::Float64);
        assert_eq!(atom(&["1", "Infinity", "-inf", "NaN"]), Atom::Float64);
        assert_eq!(atom(&["1", "99999999999999999999"]), Atom::Decimal(38, 0));
        assert_eq!(atom(&["1.5", "99999999999999999999"]), Atom::String, "a double would round it");
        assert_eq!(atom(&["1", &"9".repeat(39)]), Atom::String);
        assert_eq!(atom(&["1.5", "1e30"]), Atom::Float64);
        assert_eq!(atom(&["007", "12"]), Atom::String, "leading zeros are kept");
        assert_eq!(atom(&["+1", "12"]), Atom::String, "signs of plus are kept");
        assert_eq!(atom(&["true", "FALSE"]), Atom::Boolean);
        assert_eq!(atom(&["1", "x"]), Atom::String);
        assert_eq!(atom(&["nan", "ann"]), Atom::String);
        assert_eq!(atom(&["1", "true"]), Atom::String);
    }

    #[test]
    fn dates_and_times() {
        let zoned = Atom::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")));
        let plain = Atom::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(atom(&["2024-02-29", " 2024-03-01 "]), Atom::Date);
        assert_eq!(atom(&["2023-02-29"]), Atom::String);
        assert_eq!(atom(&["10:00", "23:59:59.5"]), Atom::Time(TimeUnit::Microsecond));
        assert_eq!(atom(&["2024-02-29T10:00:00", "2024-02-29 10:00:00.5"]), plain);
        assert_eq!(atom(&["2024-02-29T10:00:00Z", "2024-02-29 10:00+02:00"]), zoned);
        // Text preserves what other types would lose.
        assert_eq!(atom(&["2024-02-29", "2024-02-29 10:00:00"]), Atom::String);
        assert_eq!(atom(&["2024-02-29T10:00:00Z", "2024-02-29 10:00:00"]), Atom::String);
        assert_eq!(atom(&["2024-02-29 10:00:00.1234567"]), Atom::String);
    }
}
