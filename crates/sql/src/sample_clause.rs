//! The clauses TABLESAMPLE and USING SAMPLE. The parser knows only a part of PostgreSQL's and
//! DuckDB's forms, so each is rewritten before parsing as one call, `"sample clause"('reservoir',
//! 5, 'rows', seed)`: after TABLESAMPLE, or as the last item of FROM for USING SAMPLE.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};
use tessera_types::{Code, Error, Result, SqlState};

/// The name of the call that stands for a clause.
pub(crate) const CLAUSE: &str = "sample clause";

const METHODS: [&str; 3] = ["bernoulli", "system", "reservoir"];

/// A part of a query between parentheses.
#[derive(Debug, Default)]
struct Part {
    /// The last two keywords.
    last: [Option<Keyword>; 2],
    /// Whether there was a FROM.
    has_from: bool,
    /// The position of the first clause after FROM.
    end_of_from: Option<usize>,
}

/// Rewrites the sample clauses.
///
/// # Errors
/// A clause is not complete, or its method is unknown.
pub(crate) fn rewritten(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let is_sample = |token: &TokenWithSpan| {
        matches!(keyword(token), Some(Keyword::TABLESAMPLE | Keyword::SAMPLE))
    };
    if !tokens.iter().any(is_sample) {
        return Ok(tokens);
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut parts = vec![Part::default()];
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token.token {
            Token::LParen => parts.push(Part::default()),
            Token::RParen if parts.len() > 1 => drop(parts.pop()),
            Token::SemiColon => parts = vec![Part::default()],
            _ => {}
        }
        let word = keyword(token);
        let Some(part) = parts.last_mut() else { break };
        if word == Some(Keyword::TABLESAMPLE) && !is_rewritten(&tokens[at + 1..]) {
            let (call, next) = clause(&tokens, at + 1)?;
            out.push(token.clone());
            out.extend(call);
            let follows = tokens[next..].iter().find(|token| !is_blank(token));
            // The parser would take OFFSET as a part of the clause.
            if follows.and_then(keyword) == Some(Keyword::OFFSET) {
                let span = token.span;
                let always = [Token::make_keyword("WHERE"), Token::make_keyword("TRUE")];
                out.extend(always.map(|token| TokenWithSpan { token, span }));
            }
            at = next;
            continue;
        }
        if let (Some(Keyword::USING), Some(sample)) = (word, next_word(&tokens, at + 1))
            && keyword(&tokens[sample]) == Some(Keyword::SAMPLE)
        {
            let (mut call, next) = clause(&tokens, sample + 1)?;
            let before = if part.has_from { Token::Comma } else { Token::make_keyword("FROM") };
            call.insert(0, TokenWithSpan { token: before, span: token.span });
            let place = part.end_of_from.unwrap_or(out.len());
            out.splice(place..place, call);
            at = next;
            continue;
        }
        if let Some(word) = word {
            part.read(word, out.len());
        }
        out.push(token.clone());
        at += 1;
    }
    Ok(out)
}

impl Part {
    /// Takes note of a keyword that gets this position.
    fn read(&mut self, word: Keyword, position: usize) {
        // IS [NOT] DISTINCT FROM is a comparison.
        let compares =
            matches!(self.last, [Some(Keyword::IS | Keyword::NOT), Some(Keyword::DISTINCT)]);
        match word {
            Keyword::FROM if !compares => (self.has_from, self.end_of_from) = (true, None),
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => *self = Part::default(),
            Keyword::SELECT if !self.has_from => {}
            Keyword::SELECT
            | Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::WINDOW
            | Keyword::QUALIFY
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::OFFSET
            | Keyword::FETCH => {
                self.end_of_from.get_or_insert(position);
            }
            _ => {}
        }
        self.last = [self.last[1], Some(word)];
    }
}

/// Returns the call that stands for the clause at a position, and the position after the clause.
fn clause(tokens: &[TokenWithSpan], start: usize) -> Result<(Vec<TokenWithSpan>, usize)> {
    let mut cursor = Cursor { tokens, at: start };
    let first = cursor.next("a method or the size of the sample")?;
    let span = first.span;
    let mut method = None;
    let (mut amount, mut next);
    match &first.token {
        Token::Word(word) if word.quote_style.is_none() => {
            method = Some(known_method(word, span)?);
            amount = cursor.parenthesized("( after the method of the sample")?;
            next = cursor.at;
        }
        Token::Number(..) => {
            amount = vec![first.clone()];
            next = cursor.at;
            if let Some(unit) = cursor.peek().filter(|token| unit_of(token).is_some()) {
                amount.push(unit.clone());
                cursor.next("a unit")?;
                next = cursor.at;
            }
        }
        other => {
            let expected = "a method (bernoulli, system, reservoir) or the size of the sample";
            return Err(unexpected(expected, &other.to_string(), span));
        }
    }
    let mut seed = None;
    // DuckDB's `10% (bernoulli, 7)`.
    if method.is_none() && cursor.peek().is_some_and(|token| token.token == Token::LParen) {
        let mut inside = cursor.parenthesized("(")?;
        next = cursor.at;
        match inside.first().map(|token| (&token.token, token.span)) {
            Some((Token::Word(word), span)) => method = Some(known_method(word, span)?),
            _ => return Err(unexpected("the method of the sample", "something else", span)),
        }
        if inside.get(1).is_some_and(|token| token.token == Token::Comma) {
            seed = Some(inside.split_off(2));
        }
    }
    if cursor.peek().and_then(keyword) == Some(Keyword::REPEATABLE) {
        cursor.next("REPEATABLE")?;
        seed = Some(cursor.parenthesized("( after REPEATABLE")?);
        next = cursor.at;
    }
    let unit = amount.last().and_then(unit_of);
    if unit.is_some() {
        amount.pop();
    }
    let method = method.unwrap_or(if unit == Some("percent") { "system" } else { "reservoir" });
    let unit = unit.unwrap_or(if method == "reservoir" { "rows" } else { "percent" });
    if amount.is_empty() || seed.as_ref().is_some_and(Vec::is_empty) {
        return Err(unexpected("a number in the sample clause", ")", span));
    }
    let text = |text: &str| vec![Token::SingleQuotedString(text.to_string())];
    let at = |tokens: Vec<Token>| {
        tokens.into_iter().map(move |token| TokenWithSpan { token, span }).collect::<Vec<_>>()
    };
    let mut call = at(vec![Token::make_word(CLAUSE, Some('"')), Token::LParen]);
    let mut arguments = vec![at(text(method)), amount, at(text(unit))];
    arguments.extend(seed);
    for (position, argument) in arguments.into_iter().enumerate() {
        if position > 0 {
            call.extend(at(vec![Token::Comma]));
        }
        call.extend(argument);
    }
    call.extend(at(vec![Token::RParen]));
    Ok((call, next))
}

/// The tokens of a clause, without blanks.
struct Cursor<'t> {
    tokens: &'t [TokenWithSpan],
    at: usize,
}

impl<'t> Cursor<'t> {
    fn peek(&self) -> Option<&'t TokenWithSpan> {
        next_word(self.tokens, self.at).map(|at| &self.tokens[at])
    }

    fn next(&mut self, expected: &str) -> Result<&'t TokenWithSpan> {
        let Some(at) = next_word(self.tokens, self.at) else {
            let span = self.tokens.last().map_or(Span::empty(), |token| token.span);
            return Err(unexpected(expected, "the end of the text", span));
        };
        self.at = at + 1;
        Ok(&self.tokens[at])
    }

    /// Reads `( … )` and returns the tokens inside.
    fn parenthesized(&mut self, expected: &str) -> Result<Vec<TokenWithSpan>> {
        let open = self.next(expected)?;
        if open.token != Token::LParen {
            return Err(unexpected(expected, &open.token.to_string(), open.span));
        }
        let mut depth = 1;
        let mut inside = Vec::new();
        loop {
            let token = self.next(") after the sample clause")?;
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(inside);
            }
            inside.push(token.clone());
        }
    }
}

fn known_method(word: &Word, span: Span) -> Result<&'static str> {
    let found = METHODS.into_iter().find(|method| word.value.eq_ignore_ascii_case(method));
    found.ok_or_else(|| {
        let message = format!(
            "unknown sampling method '{}'; expected bernoulli, system or reservoir",
            word.value
        );
        let error = Error::semantic(message).with_state(SqlState::UNDEFINED_OBJECT);
        crate::bind::with_span(error, span)
    })
}

fn unit_of(token: &TokenWithSpan) -> Option<&'static str> {
    match (&token.token, keyword(token)) {
        (Token::Mod, _) | (_, Some(Keyword::PERCENT)) => Some("percent"),
        (_, Some(Keyword::ROWS)) => Some("rows"),
        _ => None,
    }
}

/// Whether a clause was rewritten before: its text was printed from the syntax tree.
fn is_rewritten(tokens: &[TokenWithSpan]) -> bool {
    let next = next_word(tokens, 0).map(|at| &tokens[at].token);
    matches!(next, Some(Token::Word(Word { value, quote_style: Some(_), .. })) if value == CLAUSE)
}

fn keyword(token: &TokenWithSpan) -> Option<Keyword> {
    match &token.token {
        Token::Word(Word { keyword, quote_style: None, .. }) => Some(*keyword),
        _ => None,
    }
}

fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// Returns the position of the next token that is not blank.
fn next_word(tokens: &[TokenWithSpan], from: usize) -> Option<usize> {
    let more = tokens.get(from..)?;
    let next = more.iter().position(|token| !is_blank(token))?;
    (more[next].token != Token::EOF).then_some(from + next)
}

fn unexpected(expected: &str, found: &str, span: Span) -> Error {
    let message = format!("syntax error: expected {expected}, found {found}");
    crate::bind::with_span(Error::new(Code::Syntax, message), span)
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::Tessera;

    fn written(sql: &str) -> Result<String> {
        let tokens = Tokenizer::new(&Tessera, sql).tokenize_with_location().unwrap();
        let tokens = rewritten(tokens)?.into_iter().map(|token| token.token);
        let words = tokens.filter(|token| !matches!(token, Token::Whitespace(_)));
        Ok(words.map(|token| token.to_string()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn clauses_become_calls() {
        for (sql, wanted) in [
            (
                "from t as u tablesample bernoulli (10) repeatable (7) where a",
                "from t as u tablesample \"sample clause\" ( 'bernoulli' , 10 , 'percent' , 7 ) where a",
            ),
            (
                "from t tablesample reservoir(5 rows), u",
                "from t tablesample \"sample clause\" ( 'reservoir' , 5 , 'rows' ) , u",
            ),
            (
                "from t tablesample 10 percent offset 2",
                "from t tablesample \"sample clause\" ( 'system' , 10 , 'percent' ) WHERE TRUE offset 2",
            ),
            (
                "from t using sample 10% (bernoulli, 3)",
                "from t , \"sample clause\" ( 'bernoulli' , 10 , 'percent' , 3 )",
            ),
            (
                "select a from t join u using (a) where a is distinct from 1 group by a using sample 5 order by a",
                "select a from t join u using ( a ) , \"sample clause\" ( 'reservoir' , 5 , 'rows' ) \
                 where a is distinct from 1 group by a order by a",
            ),
            (
                "select (select 1 from t using sample 1 rows), sample from u using sample reservoir(2) repeatable (-1)",
                "select ( select 1 from t , \"sample clause\" ( 'reservoir' , 1 , 'rows' ) ) , sample \
                 from u , \"sample clause\" ( 'reservoir' , 2 , 'rows' , - 1 )",
            ),
            (
                "select 1 using sample 50%",
                "select 1 FROM \"sample clause\" ( 'system' , 50 , 'percent' )",
            ),
        ] {
            assert_eq!(written(sql).unwrap(), wanted);
            assert_eq!(written(wanted).unwrap(), wanted);
        }
    }

    #[test]
    fn clauses_that_are_not_complete_are_errors() {
        for (sql, expected) in [
            ("from t tablesample", "found the end of the text"),
            ("from t tablesample bernoulli", "expected ( after the method"),
            ("from t tablesample bernoulli (", "expected )"),
            ("from t tablesample bernoulli ()", "expected a number"),
            ("from t tablesample other (1)", "unknown sampling method 'other'"),
            ("from t using sample 'x'", "expected a method"),
            ("from t using sample 5 (7)", "expected the method"),
            ("from t using sample 5 repeatable 7", "expected ( after REPEATABLE"),
        ] {
            let error = written(sql).unwrap_err().to_string();
            assert!(error.contains(expected), "{sql}: {error}");
        }
    }
}
