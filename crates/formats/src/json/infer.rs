//! Infers the columns of JSON files from a sample, which is chosen as for CSV.

use std::sync::Arc;

use tessera_context::RangeReader;
use tessera_context::interrupt::is_utf8;
use tessera_plan::{Params, Value};
use tessera_types::{Atom, Error, Field, Result, Slot, Tuple};

use super::keys::duplicate_key;
use super::layout::Arrangement;
use super::tokenizer::{Kind, elements, object, unescape};
use crate::csv::{Kinds, SAMPLE_ROWS, WHOLE_BYTES_MAX, flag, samples_whole_file};
use crate::text::{BLOCK_BYTES, Head, IGNORE_ERRORS, RECORD_BYTES_MAX, line_ends, too_long};

/// The most columns.
const KEYS_MAX: usize = 10_000;

/// The common type of all values of a key so far.
#[derive(Debug, Clone, PartialEq)]
enum JsonType {
    Null,
    Boolean,
    Integer,
    WideInteger,
    Float,
    String,
    /// A string that holds a date, a time or a timestamp.
    Temporal(Atom),
    List(Box<JsonType>),
    Struct(Vec<(String, JsonType)>),
    /// Values of different types, which only text can represent.
    Mixed,
}

impl JsonType {
    fn of(kind: Kind, text: &[u8]) -> Result<JsonType, String> {
        Ok(match kind {
            Kind::Null => JsonType::Null,
            Kind::Boolean => JsonType::Boolean,
            Kind::String => JsonType::of_string(text),
            Kind::Number => {
                let text = std::str::from_utf8(text).unwrap_or_default();
                let whole = !text.contains(['.', 'e', 'E']);
                match () {
                    () if whole && text.parse::<i64>().is_ok() => JsonType::Integer,
                    () if whole && text.len() <= 38 => JsonType::WideInteger,
                    // Only text holds a number beyond the range of the number types.
                    () if whole || !text.parse::<f64>().is_ok_and(f64::is_finite) => {
                        JsonType::Mixed
                    }
                    () => JsonType::Float,
                }
            }
            Kind::List => {
                let mut inner = JsonType::Null;
                elements(text, &mut |kind, text| {
                    let element = JsonType::of(kind, text)?;
                    inner.merge(element);
                    Ok(())
                })?;
                JsonType::List(Box::new(inner))
            }
            Kind::Object => {
                let mut slots: Vec<(String, JsonType)> = Vec::new();
                object(text, 0, &mut |key, kind, text| {
                    if slots.iter().any(|(known, _)| known.as_bytes() == key) {
                        return Err(duplicate_key(key));
                    }
                    add(&mut slots, key, JsonType::of(kind, text)?)
                })?;
                JsonType::Struct(slots)
            }
        })
    }

    fn of_string(text: &[u8]) -> JsonType {
        /// The longest date or timestamp.
        const LENGTH_MAX: usize = 40;
        let is_temporal =
            |atom: &Atom| matches!(atom, Atom::Date | Atom::Time(_) | Atom::Timestamp(..));
        let mut plain = Vec::new();
        let digits = text.first().is_some_and(u8::is_ascii_digit) && text.len() <= LENGTH_MAX;
        if !digits || unescape(text, &mut plain).is_err() {
            return JsonType::String;
        }
        let mut kinds = Kinds::default();
        kinds.add(std::str::from_utf8(&plain).unwrap_or_default());
        Some(kinds.atom()).filter(is_temporal).map_or(JsonType::String, JsonType::Temporal)
    }

    fn merge(&mut self, other: JsonType) {
        let merged = match (std::mem::replace(self, JsonType::Null), other) {
            (JsonType::Null, shape) | (shape, JsonType::Null) => shape,
            (JsonType::Integer | JsonType::WideInteger, JsonType::WideInteger)
            | (JsonType::WideInteger, JsonType::Integer) => JsonType::WideInteger,
            (JsonType::Integer, JsonType::Float) | (JsonType::Float, JsonType::Integer) => {
                JsonType::Float
            }
            (JsonType::List(mut left), JsonType::List(right)) => {
                left.merge(*right);
                JsonType::List(left)
            }
            (JsonType::Struct(mut left), JsonType::Struct(right)) => {
                for (key, shape) in right {
                    match left.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, known)) => known.merge(shape),
                        None => left.push((key, shape)),
                    }
                }
                JsonType::Struct(left)
            }
            (left, right) if left == right => left,
            (
                JsonType::String | JsonType::Temporal(_),
                JsonType::String | JsonType::Temporal(_),
            ) => JsonType::String,
            _ => JsonType::Mixed,
        };
        *self = merged;
    }

    /// Returns the type of a column, or `None` if nested values differ in type.
    fn atom(&self) -> Option<Atom> {
        match self {
            JsonType::Temporal(atom) => Some(atom.clone()),
            shape => shape.nested_atom(),
        }
    }

    /// Returns the type of a value inside a nested one, where strings stay strings.
    fn nested_atom(&self) -> Option<Atom> {
        Some(match self {
            JsonType::Null | JsonType::String | JsonType::Temporal(_) => Atom::String,
            JsonType::Boolean => Atom::Boolean,
            JsonType::Integer => Atom::Int64,
            JsonType::WideInteger => Atom::Decimal(38, 0),
            JsonType::Float => Atom::Float64,
            JsonType::List(inner) => Atom::List(Box::new(Slot::nullable(inner.nested_atom()?))),
            JsonType::Struct(slots) if !slots.is_empty() => Atom::Struct(
                slots
                    .iter()
                    .map(|(key, shape)| {
                        Some((Arc::from(key.as_str()), Slot::nullable(shape.nested_atom()?)))
                    })
                    .collect::<Option<Vec<_>>>()?
                    .into(),
            ),
            JsonType::Struct(_) | JsonType::Mixed => return None,
        })
    }
}

/// Adds a member, merging it with an earlier one of the same key.
fn add(slots: &mut Vec<(String, JsonType)>, key: &[u8], shape: JsonType) -> Result<(), String> {
    let full = slots.len() == KEYS_MAX;
    match slots.iter_mut().find(|(known, _)| known.as_bytes() == key) {
        Some((_, known)) => known.merge(shape),
        None if full => {
            return Err(format!("more than {KEYS_MAX} different keys (KEYS_MAX)"));
        }
        None => {
            let key =
                std::str::from_utf8(key).map_err(|_| "a key is not valid UTF-8".to_string())?;
            slots.push((key.to_string(), shape));
        }
    }
    Ok(())
}

/// Infers the columns of JSON files that form one table, and the options that a scan of them needs.
/// Returns no columns if no object has a key.
///
/// # Errors
/// A file cannot be read, or its sample is not JSON objects.
pub fn infer(readers: &[Arc<dyn RangeReader>], options: &Params) -> Result<(Tuple, Params)> {
    let everything = samples_whole_file(options)?;
    let ignores = flag(options, IGNORE_ERRORS.name)? == Some(true);
    let mut slots = Vec::new();
    for reader in readers {
        let mut head = Head::new(&**reader, None);
        let limit =
            if everything || reader.len() <= WHOLE_BYTES_MAX { usize::MAX } else { SAMPLE_ROWS };
        infer_file(&mut head, limit, ignores, &mut slots)?;
    }
    let field = |(key, shape): &(String, JsonType)| {
        Field::nullable(key.as_str(), shape.atom().unwrap_or(Atom::String))
    };
    let tuple = Tuple::new(slots.iter().map(field).collect::<Vec<_>>());
    let keys = slots.into_iter().map(|(key, _)| Value::string(key)).collect::<Vec<_>>();
    Ok((tuple, options.clone().with("keys", keys)))
}

/// The error of a file without columns if none are declared.
pub(super) fn without_columns(path: &str) -> Error {
    Error::data(format!("'{path}' contains no JSON object with a key, so it has no columns"))
}

fn infer_file(
    head: &mut Head<'_>,
    limit: usize,
    ignores: bool,
    slots: &mut Vec<(String, JsonType)>,
) -> Result<()> {
    let (arrangement, mut position) = Arrangement::of(head)?;
    if ignores {
        arrangement.check_lines(head.path())?;
    }
    let mut line = 1 + line_ends(&head.bytes()[..position], None);
    let mut rows = 0;
    while rows < limit {
        let Some((end, next)) = arrangement.record_end(head.bytes(), position, head.at_end())
        else {
            if head.at_end() {
                break;
            }
            if head.bytes().len() - position > RECORD_BYTES_MAX {
                if ignores {
                    break;
                }
                return Err(too_long(head.path(), head.offset(position), RECORD_BYTES_MAX));
            }
            position = head.passed(position);
            let len = (head.bytes().len() * 2).max(BLOCK_BYTES as usize);
            head.read_to(len)?;
            continue;
        };
        let record = &head.bytes()[position..end];
        if ignores
            && (!is_utf8(record) || arrangement.members(record, &mut |_, _, _| Ok(())).is_err())
        {
            // None of its keys is a column.
            line += line_ends(&head.bytes()[position..next], None);
            position = next;
            continue;
        }
        // The keys of this record, as positions in `slots`.
        let (mut expected, mut seen) = (0, vec![false; slots.len()]);
        let mut member = |key: &[u8], kind, text: &[u8]| {
            let shape = JsonType::of(kind, text)?;
            let place = match slots.get(expected) {
                Some((known, _)) if known.as_bytes() == key => expected,
                _ => slots
                    .iter()
                    .position(|(known, _)| known.as_bytes() == key)
                    .unwrap_or(slots.len()),
            };
            expected = place + 1;
            match seen.get_mut(place) {
                Some(true) => return Err(duplicate_key(key)),
                Some(seen) => *seen = true,
                None => seen.push(true),
            }
            add(slots, key, shape)
        };
        let found = match is_utf8(record) {
            true => arrangement.members(record, &mut member),
            false => Err("the record is not valid UTF-8; convert the file to UTF-8".to_string()),
        };
        match found {
            Ok(found) => rows += usize::from(found),
            Err(_) if ignores => {}
            Err(what) => {
                return Err(Error::data(format!("'{}', line {line}: {what}", head.path())));
            }
        }
        line += line_ends(&head.bytes()[position..next], None);
        position = next;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atoms(records: &[&str]) -> String {
        let mut slots = Vec::new();
        for record in records {
            super::super::tokenizer::members(record.as_bytes(), &mut |key, kind, text| {
                add(&mut slots, key, JsonType::of(kind, text)?)
            })
            .unwrap();
        }
        let types = slots
            .iter()
            .map(|(key, shape)| format!("{key}: {}", shape.atom().unwrap_or(Atom::String)));
        types.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn types_widen() {
        assert_eq!(atoms(&[r#"{"a": 1}"#, r#"{"a": 2.5, "b": null}"#]), "a: float64, b: string");
        assert_eq!(atoms(&[r#"{"a": 1}"#, r#"{"a": "x"}"#]), "a: string");
        assert_eq!(atoms(&[r#"{"a": 99999999999999999999}"#]), "a: decimal(38,0)");
        assert_eq!(atoms(&[r#"{"a": [1, null]}"#, r#"{"a": []}"#]), "a: list<int64?>");
        assert_eq!(
            atoms(&[r#"{"a": {"x": 1}}"#, r#"{"a": {"y": "z"}}"#]),
            "a: struct<x: int64?, y: string?>"
        );
        assert_eq!(atoms(&[r#"{"a": {"x": 1}}"#, r#"{"a": 3}"#]), "a: string");
        assert_eq!(atoms(&[r#"{"a": [1, "x"]}"#]), "a: string");
    }

    #[test]
    fn dates_and_times() {
        assert_eq!(atoms(&[r#"{"a": "2024-02-29"}"#, r#"{"a": null}"#]), "a: date");
        assert_eq!(atoms(&[r#"{"a": "2024-02-29T10:00:00"}"#]), "a: timestamp(us)");
        assert_eq!(atoms(&[r#"{"a": "2024-02-29T10:00:00Z"}"#]), "a: timestamp(us, UTC)");
        assert_eq!(atoms(&[r#"{"a": "10:00:00"}"#]), "a: time(us)");
        assert_eq!(atoms(&[r#"{"a": "2024-02-29"}"#, r#"{"a": "x"}"#]), "a: string");
        assert_eq!(
            atoms(&[r#"{"a": "2024-02-29"}"#, r#"{"a": "2024-02-29T10:00:00"}"#]),
            "a: string"
        );
        assert_eq!(atoms(&[r#"{"a": ["2024-02-29"]}"#]), "a: list<string?>", "only in columns");
        assert_eq!(atoms(&[r#"{"a": "1"}"#]), "a: string");
    }
}
