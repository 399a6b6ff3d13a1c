//! Rewrites `(name).*`, which the parser rejects, to the equivalent `name.*`.

use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Removes the parentheses around a name that `.*` follows.
pub(crate) fn plain(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut dropped = Vec::new();
    let solid: Vec<usize> = (0..tokens.len())
        .filter(|at| {
            !matches!(tokens.get(*at).map(|token| &token.token), Some(Token::Whitespace(_)))
        })
        .collect();
    for (first, window) in solid.windows(5).enumerate() {
        let of =
            |at: usize| window.get(at).and_then(|at| tokens.get(*at)).map(|token| &token.token);
        let is_star = matches!(
            (of(0), of(1), of(2), of(3), of(4)),
            (
                Some(Token::LParen),
                Some(Token::Word(_)),
                Some(Token::RParen),
                Some(Token::Period),
                Some(Token::Mul)
            )
        );
        // After a name, a parenthesis opens a call.
        let before =
            first.checked_sub(1).and_then(|at| solid.get(at)).and_then(|at| tokens.get(*at));
        let begins = match before.map(|token| &token.token) {
            Some(Token::Word(word)) => word.keyword != sqlparser::keywords::Keyword::NoKeyword,
            Some(token) => matches!(token, Token::Comma),
            None => false,
        };
        if is_star && begins {
            dropped.extend([window.first(), window.get(2)].into_iter().flatten().copied());
        }
    }
    let mut dropped = dropped.into_iter().peekable();
    let mut at = 0;
    tokens.retain(|_| {
        at += 1;
        dropped.next_if_eq(&(at - 1)).is_none()
    });
    tokens
}
