//! Parses lists: PostgreSQL's `{a,"b c",NULL}` and DuckDB's `[a, 'b c', NULL]`, nested to the depth
//! of the type.

use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringViewBuilder};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType;
use tessera_types::{Atom, Error, Result, Slot, SqlState};

use crate::cast::cast;
use crate::kernel::unexpected;
use crate::parse::Failure;

/// Parses each text as a list; elements are cast from string to their type.
///
/// # Errors
/// A list or an element is invalid. With `safe` it becomes NULL instead.
pub(crate) fn parse_lists(array: &ArrayRef, slot: &Slot, safe: bool) -> Result<ArrayRef> {
    let to = Atom::List(Box::new(slot.clone()));
    let texts = array.as_string_view_opt().ok_or_else(|| unexpected(array))?;
    let DataType::List(field) = to.arrow() else {
        return Err(Error::internal("a list type has no Arrow list form"));
    };
    let mut items = StringViewBuilder::new();
    let mut lengths = Vec::with_capacity(texts.len());
    let mut valid = Vec::with_capacity(texts.len());
    for text in texts {
        let found = match text.map(elements) {
            None => None,
            Some(Ok(found)) => Some(found),
            Some(Err(_)) if safe => None,
            Some(Err(failure)) => return Err(failure.error(text.unwrap_or_default(), &to)),
        };
        valid.push(found.is_some());
        let found = found.unwrap_or_default();
        lengths.push(found.len());
        found.into_iter().for_each(|item| items.append_option(item));
    }
    let items: ArrayRef = Arc::new(items.finish());
    let items = cast(&items, &Atom::String, &slot.atom, safe)?;
    if !slot.nullable && items.logical_null_count() > 0 {
        return Err(Error::data(format!("NULL cannot be an element of type {to}"))
            .with_state(SqlState::INVALID_TEXT_REPRESENTATION));
    }
    let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
    Ok(Arc::new(ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), items, nulls)?))
}

/// The elements of a list as texts; `None` for a NULL element.
fn elements(text: &str) -> Result<Vec<Option<String>>, Failure> {
    let text = text.trim();
    let (inner, style) = match (text.strip_prefix('{'), text.strip_prefix('[')) {
        (Some(rest), _) => (rest.strip_suffix('}'), Style::Braces),
        (_, Some(rest)) => (rest.strip_suffix(']'), Style::Brackets),
        _ => (None, Style::Braces),
    };
    let inner = inner.ok_or(Failure::Invalid)?;
    if inner.trim().is_empty() {
        return Ok(Vec::new());
    }
    separated(inner, |characters| element(characters, style, None))
}

/// Reads items with commas between them up to the end of a text.
pub(super) fn separated<T>(
    text: &str,
    mut item: impl FnMut(&mut Peekable<Chars<'_>>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut characters = text.chars().peekable();
    let mut found = Vec::new();
    loop {
        found.push(item(&mut characters)?);
        match characters.next() {
            None => return Ok(found),
            Some(',') => {}
            Some(_) => return Err(Failure::Invalid),
        }
    }
}

/// The notation of a list.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Style {
    Braces,
    Brackets,
}

/// Parses one element, up to the next comma, a separator or the end.
pub(super) fn element(
    characters: &mut Peekable<Chars<'_>>,
    style: Style,
    separator: Option<char>,
) -> Result<Option<String>, Failure> {
    skip_spaces(characters);
    let quoted = match characters.peek() {
        Some('"') => Some('"'),
        Some('\'') if style == Style::Brackets => Some('\''),
        _ => None,
    };
    if let Some(quote) = quoted {
        characters.next();
        let text = until_quote(characters, quote)?;
        skip_spaces(characters);
        return Ok(Some(text));
    }
    // `kept` is the length of `text` without trailing spaces.
    let (mut text, mut depth, mut kept, mut nested) = (String::new(), 0_usize, 0, false);
    while let Some(&next) = characters.peek() {
        match next {
            ',' if depth == 0 => break,
            next if depth == 0 && separator == Some(next) => break,
            '{' | '[' if text.is_empty() || nested => (depth, nested) = (depth + 1, true),
            '}' | ']' if nested => depth = depth.checked_sub(1).ok_or(Failure::Invalid)?,
            '{' | '}' | '"' if !nested && style == Style::Braces => return Err(Failure::Invalid),
            // A nested list keeps its quotes and escapes until it is parsed itself.
            '"' | '\'' if nested => {
                characters.next();
                copy_quoted(characters, next, &mut text)?;
                kept = text.len();
                continue;
            }
            '\\' => {
                characters.next();
                let escaped = characters.next().ok_or(Failure::Invalid)?;
                text.extend(nested.then_some('\\'));
                text.push(escaped);
                kept = text.len();
                continue;
            }
            _ => {}
        }
        characters.next();
        text.push(next);
        if !next.is_whitespace() {
            kept = text.len();
        }
    }
    text.truncate(kept);
    if depth > 0 || text.is_empty() {
        return Err(Failure::Invalid);
    }
    Ok(if text.eq_ignore_ascii_case("null") { None } else { Some(text) })
}

pub(super) fn skip_spaces(characters: &mut Peekable<Chars<'_>>) {
    while characters.next_if(|next| next.is_whitespace()).is_some() {}
}

/// Consumes the text up to a quote, and the quote.
fn until_quote(characters: &mut Peekable<Chars<'_>>, quote: char) -> Result<String, Failure> {
    let mut text = String::new();
    loop {
        match characters.next().ok_or(Failure::Invalid)? {
            '\\' => text.push(characters.next().ok_or(Failure::Invalid)?),
            next if next == quote => return Ok(text),
            next => text.push(next),
        }
    }
}

/// Copies a quoted text including its quotes and escapes.
fn copy_quoted(
    characters: &mut Peekable<Chars<'_>>,
    quote: char,
    text: &mut String,
) -> Result<(), Failure> {
    text.push(quote);
    loop {
        let next = characters.next().ok_or(Failure::Invalid)?;
        text.push(next);
        match next {
            '\\' => text.push(characters.next().ok_or(Failure::Invalid)?),
            next if next == quote => return Ok(()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let shown = |text: &str| match elements(text) {
            Ok(items) => {
                let items = items.into_iter().map(|item| item.unwrap_or_else(|| "NULL".into()));
                items.collect::<Vec<_>>().join("|")
            }
            Err(_) => "error".to_string(),
        };
        for (text, expected) in [
            ("{a,b}", "a|b"),
            (" { a , b c } ", "a|b c"),
            ("{}", ""),
            ("[ ]", ""),
            ("[a, b]", "a|b"),
            ("{1,NULL,null}", "1|NULL|NULL"),
            (r#"{"NULL","a,b","c\"d"}"#, r#"NULL|a,b|c"d"#),
            (r#"{a\,b}"#, "a,b"),
            ("['it, is', \"x\"]", "it, is|x"),
            ("{{1,2},{3}}", "{1,2}|{3}"),
            (r#"{{"a,}",b},{c}}"#, r#"{"a,}",b}|{c}"#),
            ("[[1, 2], NULL, []]", "[1, 2]|NULL|[]"),
            ("a,b", "error"),
            ("{a", "error"),
            ("{a,}", "error"),
            ("{,a}", "error"),
            ("{a}}", "error"),
            (r#"{"a" b}"#, "error"),
            (r#"{"a}"#, "error"),
            ("", "error"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
