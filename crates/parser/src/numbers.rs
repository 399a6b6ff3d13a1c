//! Tokenizes numbers as PostgreSQL and DuckDB write them, one token each.
//!
//! The tokenizer reads `0x1F` as bytes, and `0b101` and `0o17` as `0` with an alias.

use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use tessera_types::{Code, Error, Result, Span};

use crate::dialect::Tessera;
use crate::error::from_parser;

/// Tokenizes a text.
///
/// # Errors
/// The tokenizer rejects the text, or letters follow a number.
pub(crate) fn tokens(sql: &str) -> Result<Vec<TokenWithSpan>> {
    let all = Tokenizer::new(&Tessera, sql)
        .tokenize_with_location()
        .map_err(|error| from_parser(&sqlparser::parser::ParserError::from(error)))?;
    let mut tokens: Vec<TokenWithSpan> = Vec::with_capacity(all.len());
    for mut token in all {
        if is_prefixed_hexadecimal(&token)
            && let Token::HexStringLiteral(digits) = &token.token
        {
            let number = whole(digits, 16).ok_or_else(|| junk(&token, &format!("0x{digits}")))?;
            token.token = Token::Number(number, false);
        }
        if let Some(last) = tokens.last_mut()
            && last.span.end == token.span.start
            && let (Token::Number(digits, long), Token::Word(word)) = (&last.token, &token.token)
            && word.quote_style.is_none()
        {
            let text = format!("{digits}{}{}", if *long { "L" } else { "" }, word.value);
            let number = prefixed(&text).ok_or_else(|| junk(last, &text))?;
            last.token = Token::Number(number, false);
            last.span.end = token.span.end;
            continue;
        }
        if let Token::Number(digits, true) = &token.token {
            return Err(junk(&token, &format!("{digits}L")));
        }
        tokens.push(token);
    }
    Ok(with_precision(with_blanks(tokens)))
}

/// Rewrites `interval(2) 'text'` to `'text'::interval(2)`, because the parser drops its precision.
fn with_precision(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_interval = |token: &Token| {
        matches!(token, Token::Word(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("interval"))
    };
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if matches!(token.token, Token::SingleQuotedString(_)) {
            let before: Vec<usize> = out
                .iter()
                .enumerate()
                .rev()
                .filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)))
                .map(|(index, _)| index)
                .take(4)
                .collect();
            if let [close, digits, open, name] = before[..]
                && out[close].token == Token::RParen
                && matches!(out[digits].token, Token::Number(..))
                && out[open].token == Token::LParen
                && is_interval(&out[name].token)
            {
                let data_type = out.split_off(name);
                let span = token.span;
                out.push(token);
                out.push(TokenWithSpan { token: Token::DoubleColon, span });
                out.extend(data_type);
                continue;
            }
        }
        out.push(token);
    }
    out
}

/// Rewrites `trim(both from s)`, which the parser rejects, to `trim(both ' ' from s)`.
fn with_blanks(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_word = |token: &Token, words: &[&str]| match token {
        Token::Word(word) => {
            word.quote_style.is_none() && words.contains(&word.value.to_ascii_lowercase().as_str())
        }
        _ => false,
    };
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 1);
    for token in tokens {
        if is_word(&token.token, &["from"]) {
            let mut before = out
                .iter()
                .rev()
                .map(|token| &token.token)
                .filter(|t| !matches!(t, Token::Whitespace(_)));
            let mut last = before.next();
            if last.is_some_and(|last| is_word(last, &["both", "leading", "trailing"])) {
                last = before.next();
            }
            if matches!(last, Some(Token::LParen))
                && before.next().is_some_and(|t| is_word(t, &["trim"]))
            {
                let blank = Token::SingleQuotedString(" ".to_string());
                out.push(TokenWithSpan { token: blank, span: token.span });
                let space = Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
                out.push(TokenWithSpan { token: space, span: token.span });
            }
        }
        out.push(token);
    }
    out
}

/// Returns whether a token is `0x…` rather than `x'…'`; the tokens differ only in length.
fn is_prefixed_hexadecimal(token: &TokenWithSpan) -> bool {
    let Token::HexStringLiteral(digits) = &token.token else { return false };
    let (start, end) = (token.span.start, token.span.end);
    start.line == end.line && end.column - start.column == digits.chars().count() as u64 + 2
}

/// Converts `0b…`, `0o…` or `0X…` to a decimal number.
fn prefixed(text: &str) -> Option<String> {
    let digits = text.strip_prefix('0')?;
    let radix = match digits.chars().next()? {
        'b' | 'B' => 2,
        'o' | 'O' => 8,
        'x' | 'X' => 16,
        _ => return None,
    };
    whole(&digits[1..], radix)
}

/// Converts digits of a radix, with single underscores between them, to a decimal number.
fn whole(digits: &str, radix: u32) -> Option<String> {
    if digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    u128::from_str_radix(&digits.replace('_', ""), radix).ok().map(|number| number.to_string())
}

fn junk(token: &TokenWithSpan, text: &str) -> Error {
    let start = token.span.start;
    let place = Span { line: start.line as u32, column: start.column as u32 };
    Error::new(Code::Syntax, format!("trailing junk after numeric literal at or near \"{text}\""))
        .at(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(sql: &str) -> Result<String> {
        Ok(tokens(sql)?.into_iter().map(|token| token.token.to_string()).collect())
    }

    #[test]
    fn numbers_are_one_token() {
        for (sql, expected) in [
            ("0x1F", "31"),
            ("0X1f", "31"),
            ("0b101", "5"),
            ("0B1_01", "5"),
            ("0o17", "15"),
            ("0xFFFF_FFFF", "4294967295"),
            ("1_000", "1_000"),
            ("x'1f'", "X'1f'"),
            ("1 a", "1 a"),
            ("1e5", "1e5"),
        ] {
            assert_eq!(text(sql).unwrap(), expected, "{sql}");
        }
        for sql in ["1a", "0x", "0b2", "0o8", "1__0", "1_", "10L", "1e5x", "0x1FG"] {
            assert!(text(sql).is_err(), "{sql}");
        }
    }
}
