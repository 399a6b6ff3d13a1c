//! Parses structs, `{a: 1, 'b': x}` or the row `(1, x)`, and maps, `{k=1}`, whose values may be
//! nested.

use std::collections::HashSet;
use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, MapArray, StringViewBuilder, StructArray, new_empty_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType;
use tessera_types::{Atom, Error, Result, Slot, SqlState};

use crate::cast::cast;
use crate::format::format_array;
use crate::kernel::unexpected;
use crate::parse::Failure;
use crate::parse::list::{Style, element, separated, skip_spaces};

type Slots = [(Arc<str>, Slot)];

/// Parses each text as a struct; fields are cast from string to their type. A field that the text
/// lacks is NULL.
///
/// # Errors
/// A struct or a field is invalid. With `safe` it becomes NULL instead.
pub(crate) fn parse_structs(array: &ArrayRef, to: &Atom, safe: bool) -> Result<ArrayRef> {
    let texts = array.as_string_view_opt().ok_or_else(|| unexpected(array))?;
    let (Atom::Struct(slots), DataType::Struct(fields)) = (to, to.arrow()) else {
        return Err(Error::internal(format!("{to} is not a struct")));
    };
    let mut columns: Vec<StringViewBuilder> =
        slots.iter().map(|_| StringViewBuilder::new()).collect();
    let mut valid = Vec::with_capacity(texts.len());
    for text in texts {
        let found = match text.map(|text| values_of(text, slots)) {
            None => None,
            Some(Ok(found)) => Some(found),
            Some(Err(_)) if safe => None,
            Some(Err(failure)) => return Err(failure.error(text.unwrap_or_default(), to)),
        };
        valid.push(found.is_some());
        let found = found.unwrap_or_else(|| vec![None; slots.len()]);
        for (column, value) in columns.iter_mut().zip(found) {
            column.append_option(value);
        }
    }
    let columns = columns.into_iter().zip(slots.iter()).map(|(mut column, (_, slot))| {
        let column: ArrayRef = Arc::new(column.finish());
        cast(&column, &Atom::String, &slot.atom, safe)
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
    Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, texts.len())?))
}

/// Parses each text as a map; keys and values are cast from string to their types.
///
/// # Errors
/// A map, a key or a value is invalid, or a key repeats. With `safe` it becomes NULL instead.
pub(crate) fn parse_maps(array: &ArrayRef, to: &Atom, safe: bool) -> Result<ArrayRef> {
    let texts = array.as_string_view_opt().ok_or_else(|| unexpected(array))?;
    let Atom::Map(key, value) = to else {
        return Err(Error::internal(format!("{to} is not a map")));
    };
    let (mut keys, mut values) = (StringViewBuilder::new(), StringViewBuilder::new());
    let mut lengths = Vec::with_capacity(texts.len());
    let mut valid = Vec::with_capacity(texts.len());
    for text in texts {
        let found = match text.map(|text| pairs(text, '=')) {
            None => None,
            Some(Ok(found)) => Some(found),
            Some(Err(_)) if safe => None,
            Some(Err(failure)) => return Err(failure.error(text.unwrap_or_default(), to)),
        };
        valid.push(found.is_some());
        let found = found.unwrap_or_default();
        lengths.push(found.len());
        for (key, value) in found {
            keys.append_value(key);
            values.append_option(value);
        }
    }
    let (keys, values): (ArrayRef, ArrayRef) = (Arc::new(keys.finish()), Arc::new(values.finish()));
    let keys = cast(&keys, &Atom::String, &key.atom, false)?;
    let values = cast(&values, &Atom::String, &value.atom, safe)?;
    let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
    map_of(to, key, (keys, values), OffsetBuffer::from_lengths(lengths), nulls)
}

/// Builds maps from their keys and values.
///
/// # Errors
/// A key repeats in a map.
pub(crate) fn map_of(
    to: &Atom,
    key: &Slot,
    (keys, values): (ArrayRef, ArrayRef),
    offsets: OffsetBuffer<i32>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let DataType::Map(entries_field, sorted) = to.arrow() else {
        return Err(Error::internal(format!("{to} is not a map")));
    };
    let DataType::Struct(fields) = entries_field.data_type().clone() else {
        return Err(Error::internal("the entries of a map are not structs"));
    };
    let texts = match keys.is_empty() {
        true => new_empty_array(&DataType::Utf8View),
        false => format_array(&keys, &key.atom)?,
    };
    let texts = texts.as_string_view_opt().ok_or_else(|| unexpected(&texts))?;
    for pair in offsets.windows(2) {
        let mut known = HashSet::new();
        for at in pair[0] as usize..pair[1] as usize {
            if !known.insert(texts.value(at)) {
                let message = format!("key {} of a map repeats", texts.value(at));
                return Err(Error::data(message).with_state(SqlState::INVALID_TEXT_REPRESENTATION));
            }
        }
    }
    let entries = StructArray::try_new(fields, vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(entries_field, offsets, entries, nulls, sorted)?))
}

/// The values of a struct's fields as texts, in the order of the type.
fn values_of(text: &str, slots: &Slots) -> Result<Vec<Option<String>>, Failure> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('(') {
        let found = row(inner.strip_suffix(')').ok_or(Failure::Invalid)?)?;
        return if found.len() == slots.len() { Ok(found) } else { Err(Failure::Invalid) };
    }
    let mut values = vec![None; slots.len()];
    let mut known = vec![false; slots.len()];
    for (name, value) in pairs(text, ':')? {
        let at = slots.iter().position(|(slot, _)| slot.eq_ignore_ascii_case(&name));
        let at = at.filter(|at| !known[*at]).ok_or(Failure::Invalid)?;
        (values[at], known[at]) = (value, true);
    }
    Ok(values)
}

/// The values of a row as texts; one without any text is NULL.
fn row(inner: &str) -> Result<Vec<Option<String>>, Failure> {
    separated(inner, |characters| {
        skip_spaces(characters);
        match characters.peek() {
            None | Some(',') => Ok(None),
            Some(_) => element(characters, Style::Brackets, None),
        }
    })
}

/// The keys and values between braces, as texts; `None` for a NULL value.
fn pairs(text: &str, separator: char) -> Result<Vec<(String, Option<String>)>, Failure> {
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let inner = inner.ok_or(Failure::Invalid)?;
    if inner.trim().is_empty() {
        return Ok(Vec::new());
    }
    separated(inner, |characters| {
        let key = element(characters, Style::Brackets, Some(separator))?;
        let key = key.ok_or(Failure::Invalid)?;
        expect(characters, separator)?;
        Ok((key, element(characters, Style::Brackets, None)?))
    })
}

fn expect(characters: &mut Peekable<Chars<'_>>, expected: char) -> Result<(), Failure> {
    match characters.next() {
        Some(found) if found == expected => Ok(()),
        _ => Err(Failure::Invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read() {
        let shown = |text: &str, separator| match pairs(text, separator) {
            Ok(found) => found
                .into_iter()
                .map(|(key, value)| format!("{key}>{}", value.unwrap_or_else(|| "NULL".into())))
                .collect::<Vec<_>>()
                .join("|"),
            Err(_) => "error".to_string(),
        };
        for (text, separator, expected) in [
            ("{a: 1, 'b c': \"x, y\"}", ':', "a>1|b c>x, y"),
            ("{a: 10:30, b: NULL}", ':', "a>10:30|b>NULL"),
            ("{a: {b: 1}, c: [1, 2]}", ':', "a>{b: 1}|c>[1, 2]"),
            ("{}", ':', ""),
            ("{a=1, b=x=y}", '=', "a>1|b>x=y"),
            ("{a}", ':', "error"),
            ("{a:}", ':', "error"),
            ("{NULL: 1}", ':', "error"),
            ("a: 1", ':', "error"),
        ] {
            assert_eq!(shown(text, separator), expected, "{text}");
        }
        let values = row("1, \"x, y\",").unwrap();
        assert_eq!(values, [Some("1".to_string()), Some("x, y".to_string()), None]);
    }
}
