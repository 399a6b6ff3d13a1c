//! Long lists of literals after IN and VALUES, stored as one token with their text. The parser and
//! the binder then need no syntax tree per literal: the binder parses the text again and keeps only
//! the values.
//!
//! The token is a placeholder; the parser passes its text through. A placeholder of a user begins
//! with `$`, `?`, `:` or `@`, and a list never does.

use std::borrow::Cow;

use sqlparser::ast::{Expr as Ast, UnaryOperator, Value, ValueWithSpan};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};
use tessera_types::Result;

/// The minimum number of literals after IN; the parser reads shorter lists.
const LITERALS_MIN: usize = 256;
/// The minimum number of rows after VALUES; the parser reads shorter lists.
const ROWS_MIN: usize = 1_024;
/// The number of literals read between two checks for cancellation.
const INTERRUPT_EVERY: usize = 1 << 12;

/// A literal in source form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Literal<'t> {
    /// Digits with an optional decimal point, and whether a minus precedes them.
    Number(&'t str, bool),
    /// The text between the quotes; inner quotes are doubled.
    Text(&'t str),
    /// NULL.
    Null,
}

impl Literal<'_> {
    /// Returns the value of the text between quotes.
    pub fn unquoted(text: &str) -> Cow<'_, str> {
        match text.contains('\'') {
            true => Cow::Owned(text.replace("''", "'")),
            false => Cow::Borrowed(text),
        }
    }

    /// Returns the syntax tree that the parser would produce.
    pub fn parsed(self, span: Span) -> Ast {
        let value = |value| Ast::Value(ValueWithSpan { value, span });
        match self {
            Literal::Null => value(Value::Null),
            Literal::Text(text) => {
                value(Value::SingleQuotedString(Literal::unquoted(text).into_owned()))
            }
            Literal::Number(digits, false) => value(Value::Number(digits.to_string(), false)),
            Literal::Number(digits, true) => {
                let expr = Box::new(value(Value::Number(digits.to_string(), false)));
                Ast::UnaryOp { op: UnaryOperator::Minus, expr }
            }
        }
    }
}

/// Returns the text of a long list if the expression is its placeholder.
pub fn list_text(expr: &Ast) -> Option<(&str, Span)> {
    match expr {
        Ast::Value(ValueWithSpan { value: Value::Placeholder(text), span })
            if !text.starts_with(['$', '?', ':', '@']) =>
        {
            Some((text, *span))
        }
        _ => None,
    }
}

/// An iterator over the literals of a list and whether each one ends its row.
#[derive(Debug)]
pub struct Literals<'t> {
    text: &'t str,
    at: usize,
    read: usize,
}

impl<'t> Literals<'t> {
    /// Reads the text of a list.
    pub fn new(text: &'t str) -> Literals<'t> {
        Literals { text, at: 0, read: 0 }
    }
}

impl<'t> Iterator for Literals<'t> {
    type Item = (Literal<'t>, bool);

    fn next(&mut self) -> Option<Self::Item> {
        self.read += 1;
        if self.read.is_multiple_of(INTERRUPT_EVERY) {
            tessera_context::interrupt::point();
        }
        let (literal, end) = literal(self.text, self.at)?;
        let bytes = self.text.as_bytes();
        let mut at = blanks(bytes, end);
        let ends = !matches!(bytes.get(at), Some(b','));
        if bytes.get(at) == Some(&b')') {
            // `), (`
            at = blanks(bytes, blanks(bytes, at + 1) + 1);
        }
        self.at = at + 1;
        Some((literal, ends))
    }
}

/// Tokenizes a text; each long list of literals becomes one token.
///
/// # Errors
/// The tokenizer rejects the text.
pub(crate) fn tokens(sql: &str) -> Result<Vec<TokenWithSpan>> {
    let cuts = cuts(sql);
    if cuts.is_empty() {
        return crate::numbers::tokens(sql);
    }
    let mut tokens = Vec::new();
    let (mut from, mut place) = (0, Location { line: 1, column: 1 });
    for (start, end) in cuts.into_iter().chain([(sql.len(), sql.len())]) {
        // Tokenize the whole text for an error with the right position.
        let Ok(part) = crate::numbers::tokens(&sql[from..start]) else {
            return crate::numbers::tokens(sql);
        };
        tokens.extend(part.into_iter().map(|token| TokenWithSpan {
            span: Span { start: moved(token.span.start, place), end: moved(token.span.end, place) },
            token: token.token,
        }));
        if start < end {
            let start_place = behind(&sql[from..start], place);
            place = behind(&sql[start..end], start_place);
            let token = Token::Placeholder(sql[start..end].to_string());
            tokens.push(TokenWithSpan { token, span: Span { start: start_place, end: place } });
        }
        from = end;
    }
    Ok(tokens)
}

/// Shifts a position in a text that begins at `start`.
fn moved(place: Location, start: Location) -> Location {
    match place.line {
        0 => place,
        1 => Location { line: start.line, column: start.column + place.column - 1 },
        line => Location { line: start.line + line - 1, column: place.column },
    }
}

/// Returns the position after a text that begins at `start`.
fn behind(text: &str, start: Location) -> Location {
    match text.rsplit_once('\n') {
        None => Location { line: start.line, column: start.column + text.chars().count() as u64 },
        Some((before, last)) => Location {
            line: start.line + before.matches('\n').count() as u64 + 1,
            column: last.chars().count() as u64 + 1,
        },
    }
}

/// Finds the contents of long lists, in order.
fn cuts(sql: &str) -> Vec<(usize, usize)> {
    let bytes = sql.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    if bytes.len() < 2 * LITERALS_MIN {
        return found;
    }
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        at = match byte {
            b'\'' => quoted(bytes, at, is_escaped(bytes, at)),
            b'"' => quoted(bytes, at, false),
            b'-' if next == Some(b'-') => position(bytes, at, b'\n'),
            b'/' if next == Some(b'*') => comment(bytes, at),
            b'$' => dollars(sql, at),
            _ if is_word(byte) => {
                let end = (at..bytes.len()).find(|&at| !is_word(bytes[at])).unwrap_or(bytes.len());
                let open = blanks(bytes, end);
                let inside = match bytes.get(open) {
                    Some(b'(') if sql[at..end].eq_ignore_ascii_case("in") => list(sql, open + 1),
                    Some(b'(') if sql[at..end].eq_ignore_ascii_case("values") => {
                        rows(sql, open + 1)
                    }
                    _ => None,
                };
                match inside {
                    Some(last) => {
                        found.push((open + 1, last));
                        last
                    }
                    None => end,
                }
            }
            _ => at + 1,
        };
    }
    found
}

/// Returns the end of a list if it holds only literals and is long enough.
fn list(sql: &str, mut at: usize) -> Option<usize> {
    let bytes = sql.as_bytes();
    for count in 1.. {
        let (_, end) = literal(sql, at)?;
        let next = blanks(bytes, end);
        match bytes.get(next)? {
            b',' => at = next + 1,
            b')' => return (count >= LITERALS_MIN).then_some(next),
            _ => return None,
        }
    }
    None
}

/// Returns the end of the last row if all rows hold only literals and there are enough of them.
fn rows(sql: &str, mut at: usize) -> Option<usize> {
    let bytes = sql.as_bytes();
    let mut count = 0;
    loop {
        let (_, end) = literal(sql, at)?;
        let next = blanks(bytes, end);
        match bytes.get(next)? {
            b',' => at = next + 1,
            b')' => {
                count += 1;
                let comma = blanks(bytes, next + 1);
                if bytes.get(comma) != Some(&b',') {
                    return (count >= ROWS_MIN).then_some(next);
                }
                let open = blanks(bytes, comma + 1);
                if bytes.get(open) != Some(&b'(') {
                    return None;
                }
                at = open + 1;
            }
            _ => return None,
        }
    }
}

/// Reads a literal after blanks and returns its end; `None` for other literals or expressions.
fn literal(sql: &str, at: usize) -> Option<(Literal<'_>, usize)> {
    let bytes = sql.as_bytes();
    let start = blanks(bytes, at);
    let found = match bytes.get(start)? {
        b'\'' => {
            let end = quoted(bytes, start, false);
            (Literal::Text(sql.get(start + 1..end.checked_sub(1)?)?), end)
        }
        b'n' | b'N' => {
            let end = start + 4;
            sql.get(start..end)?.eq_ignore_ascii_case("null").then_some((Literal::Null, end))?
        }
        sign => {
            let digits = start + usize::from(*sign == b'-');
            let is_digit = |at: &usize| bytes.get(*at).is_some_and(u8::is_ascii_digit);
            let mut end = digits + (digits..).take_while(is_digit).count();
            let point = end;
            if point > digits && bytes.get(point) == Some(&b'.') {
                end = point + 1 + (point + 1..).take_while(is_digit).count();
                if end == point + 1 {
                    return None;
                }
            }
            (end > digits)
                .then_some((Literal::Number(sql.get(digits..end)?, *sign == b'-'), end))?
        }
    };
    match bytes.get(found.1) {
        None | Some(b',' | b')' | b' ' | b'\t' | b'\n' | b'\r') => Some(found),
        Some(_) => None,
    }
}

/// Returns the position after blanks.
fn blanks(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Returns whether a quote opens a string with backslash escapes: `E'…'`.
fn is_escaped(bytes: &[u8], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).and_then(|at| bytes.get(at)).copied();
    matches!(before(1), Some(b'e' | b'E')) && !before(2).is_some_and(is_word)
}

/// Returns the end of a quoted text, in which quotes are doubled.
fn quoted(bytes: &[u8], start: usize, escaped: bool) -> usize {
    let quote = bytes[start];
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        if byte == quote {
            if bytes.get(at + 1) != Some(&quote) {
                return at + 1;
            }
            at += 1;
        } else if escaped && byte == b'\\' {
            at += 1;
        }
        at += 1;
    }
    bytes.len()
}

/// Returns the position of a byte, or the end of the text.
fn position(bytes: &[u8], from: usize, wanted: u8) -> usize {
    (from..bytes.len()).find(|&at| bytes[at] == wanted).unwrap_or(bytes.len())
}

/// Returns the end of a comment, which may contain nested comments.
fn comment(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at + 1 < bytes.len() {
        match (bytes[at], bytes[at + 1]) {
            (b'/', b'*') => (depth, at) = (depth + 1, at + 2),
            (b'*', b'/') => {
                (depth, at) = (depth - 1, at + 2);
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the end of a dollar-quoted string (`$$…$$`, `$tag$…$tag$`), or of the dollar sign
/// itself.
fn dollars(sql: &str, start: usize) -> usize {
    let bytes = sql.as_bytes();
    let is_name = start > 0 && is_word(bytes[start - 1]);
    let close = start + 1 + bytes[start + 1..].iter().take_while(|byte| is_word(**byte)).count();
    if is_name || bytes.get(close) != Some(&b'$') {
        return start + 1;
    }
    let tag = &sql[start..=close];
    sql[close + 1..].find(tag).map_or(sql.len(), |at| close + 1 + at + tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize) -> String {
        (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn long_lists_are_one_token() {
        let list = numbers(300);
        let rows = (0..1_100)
            .map(|n| format!("({n}, 'it''s {n}',-1.5 ,NULL)"))
            .collect::<Vec<_>>()
            .join(",\n");
        for (sql, lists) in [
            (format!("select 1 where a in ({list}) and b IN\n({list})"), 2),
            (format!("values {rows}"), 1),
            (format!("select 'in ({list})', \"in ({list})\", $$in ({list})$$ -- in ({list})"), 0),
            (format!("select E'\\'in ({list})' /* in /* ({list}) */ in ({list}) */"), 0),
            (format!("select a in ({list}, b)"), 0),
            (format!("select a in ({list}, 1e5)"), 0),
            (format!("select a in ({})", numbers(20)), 0),
            (format!("select begin ({list})"), 0),
        ] {
            let tokens = tokens(&sql).unwrap();
            let found =
                tokens.iter().filter(|token| matches!(token.token, Token::Placeholder(_))).count();
            assert_eq!(found, lists, "{}", &sql[..40]);
            // All tokens after the lists keep their position.
            let whole: Vec<_> = crate::numbers::tokens(&sql).unwrap();
            let (first, last) = (tokens.last().unwrap(), whole.last().unwrap());
            assert_eq!((first.span, &first.token), (last.span, &last.token), "{}", &sql[..40]);
        }
    }

    #[test]
    fn literals_are_read_again() {
        let text = "1, 'it''s' ,NULL), ( -2.5,'',3";
        let read: Vec<_> = Literals::new(text).collect();
        use Literal::{Null, Number, Text};
        let wanted = [
            (Number("1", false), false),
            (Text("it''s"), false),
            (Null, true),
            (Number("2.5", true), false),
            (Text(""), false),
            (Number("3", false), true),
        ];
        assert_eq!(read, wanted);
        assert_eq!(Literal::unquoted("it''s"), "it's");
    }
}
