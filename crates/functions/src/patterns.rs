//! PostgreSQL's `to_char`, `to_date`, `to_timestamp` and `to_number`: formatting and parsing values
//! with a pattern.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use parking_lot::Mutex;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, DECIMAL_PRECISION_MAX, Result, TimeUnit};

use tessera_text::{DateTimePattern, DateTimeValue, Number, NumberPattern};

use tessera_values::parse::timestamp::offset_in;
use tessera_values::rowwise::{InputValue, MICROSECONDS, OutputValue, signature, strict, zoned};
use tessera_values::temporal::session_zone::NamedZone;
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

/// The names of the functions.
pub(crate) const NAMES: &[&str] = &["to_char", "to_date", "to_number", "to_timestamp"];

/// Resolves a call if it is one of these functions.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    Some(match name {
        "to_char" => format_value(name, args),
        "to_date" => parse_date(name, args),
        "to_timestamp" => parse_timestamp(name, args),
        "to_number" => parse_number(name, args),
        _ => return None,
    })
}

/// Caches the most recently parsed pattern: most patterns are constant.
pub(crate) struct PatternCache<T> {
    parsed: Mutex<Option<(String, Arc<T>)>>,
    parse: fn(&str) -> Result<T>,
}

impl<T> PatternCache<T> {
    pub(crate) fn new(parse: fn(&str) -> Result<T>) -> Self {
        PatternCache { parsed: Mutex::new(None), parse }
    }

    pub(crate) fn get(&self, pattern: &str) -> Result<Arc<T>> {
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
fn format_value(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let wrong = || {
        let hint = "it takes a number, date, timestamp or interval, and a pattern as text";
        wrong_arguments(name, args, hint)
    };
    let [value, pattern] = args else { return Err(wrong()) };
    if !matches!(pattern.atom, Atom::String | Atom::Null) {
        return Err(wrong());
    }
    match value.atom {
        // PostgreSQL converts a date to a timestamp with time zone.
        Atom::Date => format_timestamp(args, zoned()),
        Atom::Timestamp(_, Some(zone)) => {
            format_timestamp(args, Atom::Timestamp(TimeUnit::Microsecond, Some(zone.clone())))
        }
        Atom::Timestamp(_, None) | Atom::Null => format_timestamp(args, MICROSECONDS),
        Atom::Interval | Atom::Time(_) | Atom::Duration(_) => {
            format_timestamp(args, Atom::Interval)
        }
        atom if atom.is_numeric() => format_number(args),
        _ => Err(wrong()),
    }
}

fn format_timestamp(args: &[Arg<'_>], atom: Atom) -> Result<ResolvedCall> {
    let zone = match &atom {
        Atom::Timestamp(_, Some(zone)) => Some(NamedZone::of(zone)?),
        _ => None,
    };
    let cache = PatternCache::new(|text| Ok(DateTimePattern::parse(text)));
    Ok(strict(Atom::String, args, vec![atom, Atom::String], move |arguments| {
        let text = arguments[1].text();
        let moment = match arguments[0] {
            InputValue::Interval(interval) => Some(DateTimeValue::of_interval(interval)),
            ref value => {
                let moment = value.whole();
                DateTimeValue::of_timestamp(moment, zone.map(|zone| zone.at(moment)))
            }
        };
        match moment {
            Some(moment) if !text.is_empty() => {
                let pattern = cache.get(text)?;
                tessera_text::format_date_time(&moment, &pattern).map(OutputValue::Text)
            }
            _ => Ok(OutputValue::Null),
        }
    }))
}

fn format_number(args: &[Arg<'_>]) -> Result<ResolvedCall> {
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
        // Decimals are formatted from their digits.
        _ => Atom::String,
    };
    let cache = PatternCache::new(NumberPattern::parse);
    Ok(strict(Atom::String, args, vec![cast, Atom::String], move |arguments| {
        let text = arguments[1].text();
        if text.is_empty() {
            return Ok(OutputValue::Text(String::new()));
        }
        let number = match arguments[0] {
            InputValue::Double(value) if from == Atom::Float32 => Number::Single(value as f32),
            InputValue::Double(value) => Number::Double(value),
            InputValue::Text(digits) => Number::Decimal(digits),
            ref value if matches!(from, Atom::Int64 | Atom::UInt32) => Number::Long(value.whole()),
            ref value => Number::Short(value.whole()),
        };
        let pattern = cache.get(text)?;
        tessera_text::format_number(number, &pattern).map(OutputValue::Text)
    }))
}

/// `to_date(text, pattern)`.
fn parse_date(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    let cache = PatternCache::new(|text| Ok(DateTimePattern::parse(text)));
    Ok(strict(Atom::Date, args, casts, move |arguments| {
        let pattern = cache.get(arguments[1].text())?;
        let found = tessera_text::parse_date_time(arguments[0].text(), &pattern)?;
        found.date(arguments[0].text()).map(OutputValue::Whole)
    }))
}

/// `to_timestamp(text, pattern)`. The binder adds the zone of the session, if it is not UTC, for
/// texts without an offset.
fn parse_timestamp(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let zone = match args {
        [_, _, Arg { expr: Expr::Constant(Scalar::String(zone), _), .. }] => {
            Some(Tz::from_str(zone)?)
        }
        _ => None,
    };
    let wanted = [Atom::String, Atom::String, Atom::String];
    let casts = signature(name, args, &wanted[..2 + usize::from(zone.is_some())])?;
    let cache = PatternCache::new(|text| Ok(DateTimePattern::parse(text)));
    Ok(strict(zoned(), args, casts, move |arguments| {
        let pattern = cache.get(arguments[1].text())?;
        let found = tessera_text::parse_date_time(arguments[0].text(), &pattern)?;
        let offset = |local: i64| zone.as_ref().map_or(0, |zone| offset_in(local, zone));
        found.timestamp(offset).map(OutputValue::Whole)
    }))
}

/// `to_number(text, pattern)`. A constant pattern determines the decimal type of the result.
fn parse_number(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    let pattern = match args[1].expr {
        Expr::Constant(Scalar::String(text), _) => NumberPattern::parse(text).ok(),
        _ => None,
    };
    let (precision, scale) = match pattern {
        Some(pattern) => pattern.decimal(),
        None => (DECIMAL_PRECISION_MAX, 10),
    };
    let cache = PatternCache::new(NumberPattern::parse);
    Ok(strict(Atom::Decimal(precision, scale), args, casts, move |arguments| {
        let (text, pattern) = (arguments[0].text(), arguments[1].text());
        if pattern.is_empty() {
            return Ok(OutputValue::Null);
        }
        let pattern = cache.get(pattern)?;
        tessera_text::parse_number(text, &pattern, precision, scale).map(OutputValue::Decimal)
    }))
}
