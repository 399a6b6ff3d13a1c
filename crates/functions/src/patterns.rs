//! PostgreSQL's `to_char`, `to_date`, `to_timestamp` and `to_number`: values as texts of a pattern,
//! and back.

use std::sync::Arc;

use parking_lot::Mutex;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, DECIMAL_PRECISION_MAX, Result};

use tessera_text::{Moment, Number, NumberPattern, Pattern};

use super::rowwise::{In, MICROSECONDS, Out, signature, strict, zoned};
use super::types::{Arg, Resolved, wrong_arguments};

/// The functions, by name.
pub(crate) const NAMES: &[&str] = &["to_char", "to_date", "to_number", "to_timestamp"];

/// Types a call, if the function is one of these.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<Resolved>> {
    Some(match name {
        "to_char" => written(name, args),
        "to_date" => read_date(name, args),
        "to_timestamp" => read_moment(name, args),
        "to_number" => read_number(name, args),
        _ => return None,
    })
}

/// The pattern parsed last: a pattern mostly is a constant.
struct Last<T> {
    parsed: Mutex<Option<(String, Arc<T>)>>,
    parse: fn(&str) -> Result<T>,
}

impl<T> Last<T> {
    fn new(parse: fn(&str) -> Result<T>) -> Self {
        Last { parsed: Mutex::new(None), parse }
    }

    fn get(&self, pattern: &str) -> Result<Arc<T>> {
        let mut parsed = self.parsed.lock();
        if let Some((text, known)) = &*parsed
            && text == pattern
        {
            return Ok(known.clone());
        }
        let known = Arc::new((self.parse)(pattern)?);
        *parsed = Some((pattern.to_string(), known.clone()));
        Ok(known)
    }
}

/// `to_char(value, pattern)`.
fn written(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let wrong = || {
        let hint = "it takes a number, date, timestamp or interval, and a pattern as text";
        wrong_arguments(name, args, hint)
    };
    let [value, pattern] = args else { return Err(wrong()) };
    if !matches!(pattern.atom, Atom::String | Atom::Null) {
        return Err(wrong());
    }
    match value.atom {
        // PostgreSQL takes a date as a timestamp with time zone.
        Atom::Date | Atom::Timestamp(_, Some(_)) => written_moment(args, zoned()),
        Atom::Timestamp(_, None) | Atom::Null => written_moment(args, MICROSECONDS),
        Atom::Interval | Atom::Time(_) | Atom::Duration(_) => written_moment(args, Atom::Interval),
        atom if atom.is_numeric() => written_number(args),
        _ => Err(wrong()),
    }
}

fn written_moment(args: &[Arg<'_>], atom: Atom) -> Result<Resolved> {
    let with_zone = matches!(atom, Atom::Timestamp(_, Some(_)));
    let last = Last::new(|text| Ok(Pattern::parse(text)));
    Ok(strict(Atom::String, args, vec![atom, Atom::String], move |given| {
        let text = given[1].text();
        let moment = match given[0] {
            In::Interval(interval) => Some(Moment::of_interval(interval)),
            ref value => Moment::of_timestamp(value.whole(), with_zone),
        };
        match moment {
            Some(moment) if !text.is_empty() => {
                let pattern = last.get(text)?;
                tessera_text::write_moment(&moment, &pattern).map(Out::Text)
            }
            _ => Ok(Out::Null),
        }
    }))
}

fn written_number(args: &[Arg<'_>]) -> Result<Resolved> {
    let from = args[0].atom.clone();
    let cast = match &from {
        Atom::Int8
        | Atom::Int16
        | Atom::Int32
        | Atom::UInt8
        | Atom::UInt16
        | Atom::UInt32
        | Atom::Int64 => Atom::Int64,
        atom if atom.is_float() => Atom::Float64,
        // Decimals by their digits.
        _ => Atom::String,
    };
    let last = Last::new(NumberPattern::parse);
    Ok(strict(Atom::String, args, vec![cast, Atom::String], move |given| {
        let text = given[1].text();
        if text.is_empty() {
            return Ok(Out::Text(String::new()));
        }
        let number = match given[0] {
            In::Double(value) if from == Atom::Float32 => Number::Single(value as f32),
            In::Double(value) => Number::Double(value),
            In::Text(digits) => Number::Decimal(digits),
            ref value if matches!(from, Atom::Int64 | Atom::UInt32) => Number::Long(value.whole()),
            ref value => Number::Short(value.whole()),
        };
        let pattern = last.get(text)?;
        tessera_text::write_number(number, &pattern).map(Out::Text)
    }))
}

/// `to_date(text, pattern)`.
fn read_date(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    let last = Last::new(|text| Ok(Pattern::parse(text)));
    Ok(strict(Atom::Date, args, casts, move |given| {
        let pattern = last.get(given[1].text())?;
        let found = tessera_text::read_moment(given[0].text(), &pattern)?;
        found.date(given[0].text()).map(Out::Whole)
    }))
}

/// `to_timestamp(text, pattern)`.
fn read_moment(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    let last = Last::new(|text| Ok(Pattern::parse(text)));
    Ok(strict(zoned(), args, casts, move |given| {
        let pattern = last.get(given[1].text())?;
        let found = tessera_text::read_moment(given[0].text(), &pattern)?;
        found.timestamp().map(Out::Whole)
    }))
}

/// `to_number(text, pattern)`. The digits of a constant pattern say which decimal it is.
fn read_number(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    let pattern = match args[1].expr {
        Expr::Constant(Scalar::String(text), _) => NumberPattern::parse(text).ok(),
        _ => None,
    };
    let (precision, scale) = match pattern {
        Some(pattern) => pattern.decimal(),
        None => (DECIMAL_PRECISION_MAX, 10),
    };
    let last = Last::new(NumberPattern::parse);
    Ok(strict(Atom::Decimal(precision, scale), args, casts, move |given| {
        let (text, pattern) = (given[0].text(), given[1].text());
        if pattern.is_empty() {
            return Ok(Out::Null);
        }
        let pattern = last.get(pattern)?;
        tessera_text::read_number(text, &pattern, precision, scale).map(Out::Decimal)
    }))
}
