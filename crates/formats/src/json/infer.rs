//! The columns of JSON files, from a sample; sampled as CSV is.

use std::sync::Arc;

use tessera_context::RangeReader;
use tessera_context::interrupt::is_utf8;
use tessera_plan::{Params, Value};
use tessera_types::{Atom, Error, Field, Result, Slot, Tuple};

use super::keys::twice;
use super::layout::Arrangement;
use super::tokenizer::{Kind, elements, object, unescape};
use crate::csv::{Kinds, SAMPLE_ROWS, WHOLE_BYTES_MAX, wants_everything};
use crate::text::{BLOCK_BYTES, Head, RECORD_BYTES_MAX, line_ends, too_long};

/// The most columns.
const KEYS_MAX: usize = 10_000;

/// What the values of a key have all been so far.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Null,
    Boolean,
    Integer,
    WideInteger,
    Float,
    String,
    /// A string that is a date, a time or a timestamp.
    Temporal(Atom),
    List(Box<Shape>),
    Struct(Vec<(String, Shape)>),
    /// Different things: only text holds them all.
    Mixed,
}

impl Shape {
    fn of(kind: Kind, text: &[u8]) -> Result<Shape, String> {
        Ok(match kind {
            Kind::Null => Shape::Null,
            Kind::Boolean => Shape::Boolean,
            Kind::String => Shape::of_string(text),
            Kind::Number => {
                let text = std::str::from_utf8(text).unwrap_or_default();
                let whole = !text.contains(['.', 'e', 'E']);
                match () {
                    () if whole && text.parse::<i64>().is_ok() => Shape::Integer,
                    () if whole && text.len() <= 38 => Shape::WideInteger,
                    // Beyond what a number's type holds: only text keeps it.
                    () if whole || !text.parse::<f64>().is_ok_and(f64::is_finite) => Shape::Mixed,
                    () => Shape::Float,
                }
            }
            Kind::List => {
                let mut inner = Shape::Null;
                elements(text, &mut |kind, text| {
                    let element = Shape::of(kind, text)?;
                    inner.merge(element);
                    Ok(())
                })?;
                Shape::List(Box::new(inner))
            }
            Kind::Object => {
                let mut slots: Vec<(String, Shape)> = Vec::new();
                object(text, 0, &mut |key, kind, text| {
                    if slots.iter().any(|(known, _)| known.as_bytes() == key) {
                        return Err(twice(key));
                    }
                    add(&mut slots, key, Shape::of(kind, text)?)
                })?;
                Shape::Struct(slots)
            }
        })
    }

    fn of_string(text: &[u8]) -> Shape {
        /// No date or timestamp is longer.
        const LENGTH_MAX: usize = 40;
        let is_temporal =
            |atom: &Atom| matches!(atom, Atom::Date | Atom::Time(_) | Atom::Timestamp(..));
        let mut plain = Vec::new();
        let digits = text.first().is_some_and(u8::is_ascii_digit) && text.len() <= LENGTH_MAX;
        if !digits || unescape(text, &mut plain).is_err() {
            return Shape::String;
        }
        let mut kinds = Kinds::default();
        kinds.add(std::str::from_utf8(&plain).unwrap_or_default());
        Some(kinds.atom()).filter(is_temporal).map_or(Shape::String, Shape::Temporal)
    }

    fn merge(&mut self, other: Shape) {
        let merged = match (std::mem::replace(self, Shape::Null), other) {
            (Shape::Null, shape) | (shape, Shape::Null) => shape,
            (Shape::Integer | Shape::WideInteger, Shape::WideInteger)
            | (Shape::WideInteger, Shape::Integer) => Shape::WideInteger,
            (Shape::Integer, Shape::Float) | (Shape::Float, Shape::Integer) => Shape::Float,
            (Shape::List(mut left), Shape::List(right)) => {
                left.merge(*right);
                Shape::List(left)
            }
            (Shape::Struct(mut left), Shape::Struct(right)) => {
                for (key, shape) in right {
                    match left.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, known)) => known.merge(shape),
                        None => left.push((key, shape)),
                    }
                }
                Shape::Struct(left)
            }
            (left, right) if left == right => left,
            (Shape::String | Shape::Temporal(_), Shape::String | Shape::Temporal(_)) => {
                Shape::String
            }
            _ => Shape::Mixed,
        };
        *self = merged;
    }

    /// The type of a column; nothing where values differ within a nested one.
    fn atom(&self) -> Option<Atom> {
        match self {
            Shape::Temporal(atom) => Some(atom.clone()),
            shape => shape.nested_atom(),
        }
    }

    /// The type of a value in another one: texts stay texts there.
    fn nested_atom(&self) -> Option<Atom> {
        Some(match self {
            Shape::Null | Shape::String | Shape::Temporal(_) => Atom::String,
            Shape::Boolean => Atom::Boolean,
            Shape::Integer => Atom::Int64,
            Shape::WideInteger => Atom::Decimal(38, 0),
            Shape::Float => Atom::Float64,
            Shape::List(inner) => Atom::List(Box::new(Slot::nullable(inner.nested_atom()?))),
            Shape::Struct(slots) if !slots.is_empty() => Atom::Struct(
                slots
                    .iter()
                    .map(|(key, shape)| {
                        Some((Arc::from(key.as_str()), Slot::nullable(shape.nested_atom()?)))
                    })
                    .collect::<Option<Vec<_>>>()?
                    .into(),
            ),
            Shape::Struct(_) | Shape::Mixed => return None,
        })
    }
}

/// Adds a member that may have been there before.
fn add(slots: &mut Vec<(String, Shape)>, key: &[u8], shape: Shape) -> Result<(), String> {
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

/// The columns of JSON files that form one table, and the options that a scan of them needs. There
/// are no columns where no object has a key.
///
/// # Errors
/// A file cannot be read, or its sample is no JSON objects.
pub fn infer(readers: &[Arc<dyn RangeReader>], options: &Params) -> Result<(Tuple, Params)> {
    let everything = wants_everything(options)?;
    let mut slots = Vec::new();
    for reader in readers {
        let mut head = Head::new(&**reader, None);
        let limit =
            if everything || reader.len() <= WHOLE_BYTES_MAX { usize::MAX } else { SAMPLE_ROWS };
        infer_file(&mut head, limit, &mut slots)?;
    }
    let field = |(key, shape): &(String, Shape)| {
        Field::nullable(key.as_str(), shape.atom().unwrap_or(Atom::String))
    };
    let tuple = Tuple::new(slots.iter().map(field).collect::<Vec<_>>());
    let keys = slots.into_iter().map(|(key, _)| Value::string(key)).collect::<Vec<_>>();
    Ok((tuple, options.clone().with("keys", keys)))
}

/// The error of a file without columns, where none are declared.
pub fn without_columns(path: &str) -> Error {
    Error::data(format!("'{path}' holds no JSON object with a key, and so has no columns"))
}

fn infer_file(head: &mut Head<'_>, limit: usize, slots: &mut Vec<(String, Shape)>) -> Result<()> {
    let (arrangement, mut position) = Arrangement::of(head)?;
    let mut line = 1 + line_ends(&head.bytes()[..position], None);
    let mut rows = 0;
    while rows < limit {
        let Some((end, next)) = arrangement.record_end(head.bytes(), position, head.at_end())
        else {
            if head.at_end() {
                break;
            }
            if head.bytes().len() - position > RECORD_BYTES_MAX {
                return Err(too_long(head.path(), head.offset(position)));
            }
            position = head.passed(position);
            let len = (head.bytes().len() * 2).max(BLOCK_BYTES as usize);
            head.read_to(len)?;
            continue;
        };
        let record = &head.bytes()[position..end];
        // The keys of this record, as places in `slots`.
        let (mut expected, mut seen) = (0, vec![false; slots.len()]);
        let mut member = |key: &[u8], kind, text: &[u8]| {
            let shape = Shape::of(kind, text)?;
            let place = match slots.get(expected) {
                Some((known, _)) if known.as_bytes() == key => expected,
                _ => slots
                    .iter()
                    .position(|(known, _)| known.as_bytes() == key)
                    .unwrap_or(slots.len()),
            };
            expected = place + 1;
            match seen.get_mut(place) {
                Some(true) => return Err(twice(key)),
                Some(seen) => *seen = true,
                None => seen.push(true),
            }
            add(slots, key, shape)
        };
        let found = match is_utf8(record) {
            true => arrangement.members(record, &mut member),
            false => Err("the record is not valid UTF-8; convert the file to UTF-8".to_string()),
        };
        let found =
            found.map_err(|what| Error::data(format!("'{}', line {line}: {what}", head.path())))?;
        rows += usize::from(found);
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
                add(&mut slots, key, Shape::of(kind, text)?)
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
