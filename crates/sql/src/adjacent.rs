//! Joins adjacent string literals that only a line break separates: `'new'` and on the next line
//! `'er'`.

use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// Joins adjacent string literals into one token.
pub(crate) fn joined(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        if let Token::SingleQuotedString(more) = &token.token
            && let Some(before) = text_before_line_end(&out)
            && let Some(TokenWithSpan { token: Token::SingleQuotedString(text), span }) =
                out.get_mut(before)
        {
            text.push_str(more);
            span.end = token.span.end;
            out.truncate(before + 1);
            continue;
        }
        out.push(token);
    }
    out
}

/// Returns the position of a trailing string literal followed only by blanks with a line break.
fn text_before_line_end(tokens: &[TokenWithSpan]) -> Option<usize> {
    let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let blanks = tokens.iter().rev().take_while(is_blank);
    let ends_line = |blank: &TokenWithSpan| {
        matches!(
            blank.token,
            Token::Whitespace(Whitespace::Newline | Whitespace::SingleLineComment { .. })
        )
    };
    let (count, line_end) =
        blanks.fold((0, false), |(count, end), blank| (count + 1, end || ends_line(blank)));
    let before = tokens.len().checked_sub(count + 1)?;
    line_end.then_some(before)
}
