//! What the parser does not know of window frames: EXCLUDE, and texts with casts as offsets.
//!
//! `ROWS 1 PRECEDING EXCLUDE TIES` loses its EXCLUDE before parsing, and the window gets a further
//! key of ORDER BY, a placeholder that says what was excluded. So the syntax trees of two calls
//! that differ in EXCLUDE differ, too: clauses find each other's expressions by their syntax trees.
//! A placeholder of a user has no blank.

use sqlparser::ast::{Expr as Ast, Value, ValueWithSpan};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use tessera_optimizer::logical::window::Exclude;

/// The words after EXCLUDE, the placeholders and their meanings.
const EXCLUSIONS: [(&[&str], &str, Exclude); 4] = [
    (&["current", "row"], "$EXCLUDE CURRENT ROW", Exclude::CurrentRow),
    (&["group"], "$EXCLUDE GROUP", Exclude::Group),
    (&["ties"], "$EXCLUDE TIES", Exclude::Ties),
    (&["no", "others"], "$EXCLUDE NO OTHERS", Exclude::NoOthers),
];

/// The most tokens of the start of a frame.
const START_TOKENS_MAX: usize = 32;

/// Returns what a key of ORDER BY says about EXCLUDE; `None` for a key that was written.
pub(crate) fn exclusion(key: &Ast) -> Option<Exclude> {
    let Ast::Value(ValueWithSpan { value: Value::Placeholder(text), .. }) = key else {
        return None;
    };
    EXCLUSIONS.iter().find(|(_, known, _)| known == text).map(|(_, _, exclude)| *exclude)
}

/// Returns the text of an expression with EXCLUDE where it was written.
pub(crate) fn shown(expr: &impl std::fmt::Display) -> String {
    let mut text = expr.to_string();
    for (_, placeholder, _) in EXCLUSIONS {
        while let Some(at) = text.find(placeholder) {
            let end = at + placeholder.len();
            let (start, behind) =
                match (text[..at].strip_suffix(", "), text[..at].strip_suffix("ORDER BY ")) {
                    (Some(before), _) => (before.len(), end),
                    (None, Some(before)) => (before.len(), end + 1),
                    (None, None) => break,
                };
            text.insert_str(closing(&text, end), &placeholder.replace('$', " "));
            text.replace_range(start..behind, "");
        }
    }
    text
}

/// Returns the position of the parenthesis that closes the one around a position.
fn closing(text: &str, from: usize) -> usize {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate().skip(from) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return at,
            b')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// An EXCLUDE clause in a list of tokens.
struct Clause {
    /// The first word of the frame, before which the placeholder is inserted.
    unit: usize,
    /// Whether the window has keys of ORDER BY.
    has_order: bool,
    /// The words of EXCLUDE.
    words: std::ops::Range<usize>,
    placeholder: &'static str,
}

/// Moves each EXCLUDE of a frame into the ORDER BY of its window.
pub(crate) fn in_order_by(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let clauses: Vec<Clause> =
        (0..tokens.len()).filter_map(|position| clause(&tokens, position)).collect();
    if clauses.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 3 * clauses.len());
    for (position, token) in tokens.into_iter().enumerate() {
        if let Some(clause) = clauses.iter().find(|clause| clause.unit == position) {
            let keywords = match clause.has_order {
                true => vec![Token::Comma],
                false => vec![Token::make_keyword("ORDER"), Token::make_keyword("BY")],
            };
            let marker = Token::Placeholder(clause.placeholder.to_string());
            let span = token.span;
            out.extend(
                keywords.into_iter().chain([marker]).map(|token| TokenWithSpan { token, span }),
            );
        }
        if !clauses.iter().any(|clause| clause.words.contains(&position)) {
            out.push(token);
        }
    }
    out
}

/// Puts the offset of a frame that is a text with a cast (`'1 day'::interval`) in parentheses: the
/// parser takes a bare text for a whole offset.
pub(crate) fn with_parentheses(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let wrapped: Vec<usize> =
        (0..tokens.len()).filter(|position| is_cast_offset(&tokens, *position)).collect();
    if wrapped.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 2 * wrapped.len());
    for (position, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        let is_wrapped = wrapped.binary_search(&position).is_ok();
        let added = |token: Token| is_wrapped.then_some(TokenWithSpan { token, span });
        out.extend(added(Token::LParen));
        out.push(token);
        out.extend(added(Token::RParen));
    }
    out
}

/// Whether the token is a text that is cast and begins an offset of a frame.
fn is_cast_offset(tokens: &[TokenWithSpan], position: usize) -> bool {
    let Token::SingleQuotedString(_) = tokens[position].token else { return false };
    let next = tokens[position + 1..].iter().find(|token| is_solid(token));
    if next.is_none_or(|token| token.token != Token::DoubleColon) {
        return false;
    }
    let mut before = tokens[..position].iter().rev().filter(|token| is_solid(token)).map(keyword);
    match before.next().flatten() {
        Some(keyword) if is_unit(keyword) => true,
        Some(Keyword::BETWEEN) => before.next().flatten().is_some_and(is_unit),
        // The start of the frame is a few tokens before.
        Some(Keyword::AND) => {
            let mut start = before.take(START_TOKENS_MAX);
            start.any(|keyword| keyword == Some(Keyword::BETWEEN))
                && start.next().flatten().is_some_and(is_unit)
        }
        _ => false,
    }
}

fn is_unit(keyword: Keyword) -> bool {
    matches!(keyword, Keyword::ROWS | Keyword::RANGE | Keyword::GROUPS)
}

/// Returns the EXCLUDE clause that begins at a position: it follows a bound and ends its window.
fn clause(tokens: &[TokenWithSpan], start: usize) -> Option<Clause> {
    if keyword(tokens.get(start)?) != Some(Keyword::EXCLUDE) {
        return None;
    }
    let before = (0..start).rev().find(|at| is_solid(&tokens[*at]))?;
    if !matches!(keyword(&tokens[before])?, Keyword::PRECEDING | Keyword::FOLLOWING | Keyword::ROW)
    {
        return None;
    }
    let mut solid = (start + 1..tokens.len()).filter(|at| is_solid(&tokens[*at]));
    let follows: Vec<usize> = solid.by_ref().take(3).collect();
    let matches = |(words, _, _): &&(&[&str], &'static str, Exclude)| {
        let closes = follows.get(words.len()).map(|at| &tokens[*at].token) == Some(&Token::RParen);
        closes && words.iter().zip(&follows).all(|(word, at)| is_word(&tokens[*at], word))
    };
    let (words, placeholder, _) = EXCLUSIONS.iter().find(matches)?;
    let end = follows.get(words.len() - 1)? + 1;
    let (unit, has_order) = frame_start(&tokens[..start])?;
    Some(Clause { unit, has_order, words: start..end, placeholder })
}

/// Returns where the frame of the innermost open window begins, and whether the window has an ORDER
/// BY.
fn frame_start(tokens: &[TokenWithSpan]) -> Option<(usize, bool)> {
    let (mut depth, mut unit) = (0usize, None);
    for (position, token) in tokens.iter().enumerate().rev() {
        match &token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => break,
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            _ => match keyword(token) {
                Some(Keyword::ORDER) => return Some((unit?, true)),
                Some(keyword) if is_unit(keyword) && unit.is_none() => {
                    unit = Some(position);
                }
                _ => {}
            },
        }
    }
    Some((unit?, false))
}

fn is_solid(token: &TokenWithSpan) -> bool {
    !matches!(token.token, Token::Whitespace(_))
}

fn is_word(token: &TokenWithSpan, word: &str) -> bool {
    match &token.token {
        Token::Word(Word { value, quote_style: None, .. }) => value.eq_ignore_ascii_case(word),
        _ => false,
    }
}

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(Word { keyword, quote_style: None, .. }) => Some(*keyword),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::Tessera;

    fn written(sql: &str) -> String {
        let tokens = Tokenizer::new(&Tessera, sql).tokenize_with_location().unwrap();
        let tokens = in_order_by(tokens).into_iter().filter(is_solid);
        tokens.map(|token| token.token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn exclude_becomes_a_key_of_its_own_window() {
        for (sql, wanted) in [
            (
                "sum(a) over (order by b rows 1 preceding exclude ties)",
                "sum ( a ) over ( order by b , $EXCLUDE TIES rows 1 preceding )",
            ),
            (
                "over (rows between current row and 1 following exclude no others)",
                "over ( ORDER BY $EXCLUDE NO OTHERS rows between current row and 1 following )",
            ),
            (
                "over (partition by (select max(c) over (order by d groups current row exclude group) from t) \
                 range unbounded preceding exclude current row)",
                "over ( partition by ( select max ( c ) over ( order by d , $EXCLUDE GROUP groups current row ) \
                 from t ) ORDER BY $EXCLUDE CURRENT ROW range unbounded preceding )",
            ),
        ] {
            assert_eq!(written(sql), wanted);
        }
    }

    #[test]
    fn texts_with_casts_are_offsets() {
        let parenthesized = |sql: &str| {
            let tokens = Tokenizer::new(&Tessera, sql).tokenize_with_location().unwrap();
            let tokens = with_parentheses(tokens).into_iter().filter(is_solid);
            tokens.map(|token| token.token.to_string()).collect::<Vec<_>>().join(" ")
        };
        for (sql, wanted) in [
            ("range '1 day'::interval preceding", "range ( '1 day' ) :: interval preceding"),
            (
                "range between '1 day'::interval preceding and '2'::interval following",
                "range between ( '1 day' ) :: interval preceding and ( '2' ) :: interval following",
            ),
            ("x between '1'::int and '2'::int", "x between '1' :: int and '2' :: int"),
            ("range '1 day' preceding", "range '1 day' preceding"),
        ] {
            assert_eq!(parenthesized(sql), wanted);
        }
    }

    #[test]
    fn exclude_is_shown_where_it_was_written() {
        for (parsed, wanted) in [
            (
                "sum(a) OVER (ORDER BY b, $EXCLUDE TIES ROWS abs(1) PRECEDING)",
                "sum(a) OVER (ORDER BY b ROWS abs(1) PRECEDING EXCLUDE TIES)",
            ),
            (
                "max(c) OVER (ORDER BY $EXCLUDE NO OTHERS ROWS 1 PRECEDING) + 1",
                "max(c) OVER (ROWS 1 PRECEDING EXCLUDE NO OTHERS) + 1",
            ),
            ("'$EXCLUDE TIES'", "'$EXCLUDE TIES'"),
        ] {
            assert_eq!(shown(&parsed), wanted);
        }
    }

    #[test]
    fn columns_and_names_stay() {
        for sql in [
            "select * exclude ( a ) from t",
            "( select * exclude ties )",
            "select exclude from t",
            "over ( rows 1 preceding exclude some )",
        ] {
            assert_eq!(written(sql), sql);
        }
    }
}
