//! Queries without SELECT: `FROM t` and `TABLE t` mean `SELECT * FROM t`. The parser accepts no
//! further clauses in such queries, so `SELECT *` is inserted before parsing.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

/// The parse state of a query or of a parenthesized part.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// A query may start here.
    Start,
    /// After WITH or EXPLAIN: a query follows at the same depth.
    Before,
    /// Inside a query, or outside of one.
    Body,
}

/// Inserts `SELECT *` before each FROM that starts a query without SELECT.
pub(crate) fn with_select(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let (mut places, mut tables) = (Vec::new(), Vec::new());
    let mut is_create = false;
    let mut states = vec![State::Start];
    let mut last: Option<Keyword> = None;
    for (position, token) in tokens.iter().enumerate() {
        let is_outermost = states.len() == 1;
        let Some(state) = states.last_mut() else { break };
        let word = match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => {
                if *state == State::Start && last != Some(Keyword::EXPLAIN) {
                    *state = State::Body;
                }
                // TRIM(FROM s) is not a query.
                let inside = if last == Some(Keyword::TRIM) { State::Body } else { State::Start };
                states.push(inside);
                None
            }
            Token::RParen => {
                states.pop();
                None
            }
            Token::SemiColon => {
                states = vec![State::Start];
                None
            }
            Token::Word(Word { keyword, quote_style: None, .. }) => Some(*keyword),
            _ => {
                if *state == State::Start {
                    *state = State::Body;
                }
                None
            }
        };
        if let (Some(keyword), Some(state)) = (word, states.last_mut()) {
            if *state == State::Start && is_outermost {
                is_create = keyword == Keyword::CREATE;
            }
            let begins_table = *state != State::Body || (last == Some(Keyword::AS) && is_create);
            let begins = *state != State::Body || last == Some(Keyword::AS);
            *state = match keyword {
                Keyword::FROM if begins => {
                    if !selects(&tokens[position + 1..]) {
                        places.push(position);
                    }
                    State::Body
                }
                Keyword::TABLE if begins_table && is_name(&tokens[position + 1..]) => {
                    places.push(position);
                    tables.push(position);
                    State::Body
                }
                Keyword::WITH | Keyword::EXPLAIN if *state == State::Start => State::Before,
                Keyword::SELECT
                | Keyword::VALUES
                | Keyword::INSERT
                | Keyword::DELETE
                | Keyword::UPDATE => State::Body,
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => State::Start,
                Keyword::ALL | Keyword::DISTINCT if *state == State::Start => State::Start,
                _ if *state == State::Start => State::Body,
                _ => *state,
            };
        }
        last = word;
    }
    for position in tables {
        tokens[position].token = Token::make_keyword("FROM");
    }
    insert(tokens, &places)
}

/// Returns whether the next token is a name.
fn is_name(tokens: &[TokenWithSpan]) -> bool {
    let next = tokens.iter().find(|token| !matches!(token.token, Token::Whitespace(_)));
    matches!(next.map(|next| &next.token), Some(Token::Word(_)))
}

/// Returns whether a query has a SELECT after its FROM.
fn selects(tokens: &[TokenWithSpan]) -> bool {
    let mut depth = 0usize;
    for token in tokens {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return false,
            Token::RParen => depth -= 1,
            Token::SemiColon => return false,
            Token::Word(Word { keyword, quote_style: None, .. }) if depth == 0 => match keyword {
                Keyword::SELECT => return true,
                Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => return false,
                _ => {}
            },
            _ => {}
        }
    }
    false
}

fn insert(tokens: Vec<TokenWithSpan>, places: &[usize]) -> Vec<TokenWithSpan> {
    if places.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + 2 * places.len());
    for (position, token) in tokens.into_iter().enumerate() {
        if places.contains(&position) {
            let Span { start, .. } = token.span;
            for added in [Token::make_keyword("SELECT"), Token::Mul] {
                out.push(TokenWithSpan { token: added, span: Span { start, end: start } });
            }
        }
        out.push(token);
    }
    out
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::Tessera;

    fn written(sql: &str) -> String {
        let tokens = Tokenizer::new(&Tessera, sql).tokenize_with_location().unwrap();
        let tokens = with_select(tokens).into_iter().map(|token| token.token);
        let words = tokens.filter(|token| !matches!(token, Token::Whitespace(_)));
        words.map(|token| token.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn select_is_put_before_queries_that_have_none() {
        for (sql, wanted) in [
            ("from t", "SELECT * from t"),
            ("from t where a > 1; from u", "SELECT * from t where a > 1 ; SELECT * from u"),
            ("with c as (from t) from c", "with c as ( SELECT * from t ) SELECT * from c"),
            ("explain analyze from t", "explain analyze SELECT * from t"),
            ("copy (from t) to 'x'", "copy ( SELECT * from t ) to 'x'"),
            ("create view v as from t", "create view v as SELECT * from t"),
            ("from t union all from u", "SELECT * from t union all SELECT * from u"),
            ("select (from t), 1", "select ( SELECT * from t ) , 1"),
            ("select a from (from t) x", "select a from ( SELECT * from t ) x"),
            ("table t", "SELECT * FROM t"),
            (
                "table t union all table \"U\" order by 1",
                "SELECT * FROM t union all SELECT * FROM \"U\" order by 1",
            ),
            ("with c as (table t) table c", "with c as ( SELECT * FROM t ) SELECT * FROM c"),
            ("create table t as table u", "create table t as SELECT * FROM u"),
            ("select (table t)", "select ( SELECT * FROM t )"),
            ("from (from t) x", "SELECT * from ( SELECT * from t ) x"),
        ] {
            assert_eq!(written(sql), wanted);
        }
    }

    #[test]
    fn other_froms_stay() {
        for sql in [
            "select a from t",
            "from t select a where b",
            "select (1) from t",
            "select trim ( from s ) , extract ( year from d ) , substring ( s from 2 ) from t",
            "with c as ( select 1 a ) select a from c",
            "( select 1 ) union select a from t",
            "select a as b from t",
            "select a is distinct from b from t",
            "delete from t",
            "drop table t",
            "analyze table t",
            "select 1 as table from t",
            "create table if not exists t as select a",
        ] {
            assert_eq!(written(sql).replace(' ', ""), sql.replace(' ', ""));
        }
    }
}
