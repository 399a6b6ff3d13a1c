//! The lexer of the plan language.

use tessera_types::{Atom, Code, Error, Result, Span, Tuple, TypeParser};

/// Reserved words: names only when quoted. They are case-sensitive.
pub(super) const KEYWORDS: &[&str] = &[
    "AND", "OR", "NOT", "IS", "NULL", "DISTINCT", "FROM", "LIKE", "ILIKE", "CASE", "WHEN", "THEN",
    "ELSE", "END", "CAST", "TRY_CAST", "AS", "COALESCE", "TRY", "RAW", "ITEMS", "INTERVAL", "NAN",
    "INF", "LAMBDA", "true", "false",
];

/// Symbols; a symbol precedes its own prefixes.
const SYMBOLS: &[&str] = &[
    "::", "<=", ">=", "<>", "~*", "{", "}", "(", ")", "[", "]", ",", "=", ":", "<", ">", "+", "-",
    "*", "/", "%", "~",
];

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// The end of the text.
    End,
    /// Punctuation or an operator.
    Symbol(&'static str),
    /// One of [`KEYWORDS`].
    Keyword(&'static str),
    /// A name, bare or in double quotes.
    Name(String),
    /// `$name`.
    Parameter(String),
    /// A number, possibly with a fraction or an exponent, but without a sign.
    Number(String),
    /// A string in single quotes.
    Text(String),
    /// Bytes: `x'00ff'`.
    Bytes(Vec<u8>),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::End => f.write_str("the end of the text"),
            Token::Symbol(symbol) => write!(f, "`{symbol}`"),
            Token::Keyword(word) => write!(f, "`{word}`"),
            Token::Name(name) => write!(f, "the name `{}`", shorten(name)),
            Token::Parameter(name) => write!(f, "the parameter `${}`", shorten(name)),
            Token::Number(number) => write!(f, "the number `{}`", shorten(number)),
            Token::Text(text) => write!(f, "the text '{}'", shorten(text)),
            Token::Bytes(_) => f.write_str("bytes"),
        }
    }
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// A lexer with one token of lookahead. [`TypeParser`] reads the types in between.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    /// The byte offset after the last consumed token.
    position: usize,
    /// The next token, its start and its end.
    peeked: Option<(Token, usize, usize)>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Lexer { text, position: 0, peeked: None }
    }

    /// Returns the next token without consuming it.
    pub(super) fn peek(&mut self) -> Result<&Token> {
        if self.peeked.is_none() {
            let start = self.skip_space(self.position);
            let (token, end) = self.read(start)?;
            self.peeked = Some((token, start, end));
        }
        match &self.peeked {
            Some((token, ..)) => Ok(token),
            None => Err(Error::internal("the lexer has no next token")),
        }
    }

    /// Consumes the next token.
    pub(super) fn next(&mut self) -> Result<Token> {
        self.peek()?;
        match self.peeked.take() {
            Some((token, _, end)) => {
                self.position = end;
                Ok(token)
            }
            None => Err(Error::internal("the lexer has no next token")),
        }
    }

    /// Consumes the next token if it is this symbol.
    pub(super) fn accept(&mut self, symbol: &str) -> Result<bool> {
        let found = matches!(self.peek()?, Token::Symbol(found) if *found == symbol);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    /// Consumes the next token if it is this keyword.
    pub(super) fn accept_keyword(&mut self, word: &str) -> Result<bool> {
        let found = matches!(self.peek()?, Token::Keyword(found) if *found == word);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    /// Consumes the next token if it is this unquoted word, which is not reserved elsewhere.
    pub(super) fn accept_word(&mut self, word: &str) -> Result<bool> {
        let found = matches!(self.peek()?, Token::Name(found) if found == word)
            && self
                .peeked
                .as_ref()
                .is_some_and(|(_, start, _)| self.text.as_bytes().get(*start) != Some(&b'"'));
        if found {
            self.next()?;
        }
        Ok(found)
    }

    /// Consumes this symbol.
    pub(super) fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.accept(symbol)? { Ok(()) } else { Err(self.unexpected(&format!("`{symbol}`"))) }
    }

    /// Consumes this keyword.
    pub(super) fn expect_keyword(&mut self, word: &str) -> Result<()> {
        if self.accept_keyword(word)? { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    /// Consumes a name.
    pub(super) fn name(&mut self) -> Result<String> {
        match self.peek()? {
            Token::Name(_) => match self.next()? {
                Token::Name(name) => Ok(name),
                _ => Err(Error::internal("the next token has changed")),
            },
            _ => Err(self.unexpected("a name")),
        }
    }

    /// Consumes a node id: `%` and letters, digits, `_`, without spaces.
    pub(super) fn id(&mut self) -> Result<String> {
        if !matches!(self.peek()?, Token::Symbol("%")) {
            return Err(self.unexpected("the id of a node, such as `%0`"));
        }
        self.next()?;
        let rest = self.text.get(self.position..).unwrap_or("");
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.error("expected digits, letters or `_` after `%`"));
        }
        self.position += end;
        Ok(rest[..end].to_string())
    }

    /// Consumes a tuple type.
    pub(super) fn tuple(&mut self) -> Result<Tuple> {
        self.embedded(TypeParser::tuple)
    }

    /// Consumes a scalar type.
    pub(super) fn atom(&mut self) -> Result<Atom> {
        self.embedded(TypeParser::atom)
    }

    fn embedded<T>(&mut self, read: impl FnOnce(&mut TypeParser<'a>) -> Result<T>) -> Result<T> {
        self.peeked = None;
        let start = self.skip_space(self.position);
        let mut types = TypeParser::new(self.text, start);
        let result = read(&mut types);
        self.position = types.position();
        result.map_err(|error| error.at(self.span(self.position)))
    }

    /// The byte offset of the next token. [`Lexer::span`] counts lines, only for errors.
    pub(super) fn start(&self) -> usize {
        match &self.peeked {
            Some((_, start, _)) => *start,
            None => self.skip_space(self.position),
        }
    }

    /// The line and column of the next token.
    pub(super) fn here(&self) -> Span {
        self.span(self.start())
    }

    /// Returns a syntax error at the next token.
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::new(Code::Syntax, message).at(self.here())
    }

    /// Returns the error that `expected` was not found.
    pub(super) fn unexpected(&mut self, expected: &str) -> Error {
        let found = match self.peek() {
            Ok(token) => token.to_string(),
            Err(error) => return error,
        };
        self.error(format!("expected {expected}, found {found}"))
    }

    /// Returns the line and column of a byte offset.
    pub(super) fn span(&self, position: usize) -> Span {
        let before = self.text.get(..position).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Span { line: narrow(line), column: narrow(column) }
    }

    fn failure(&self, position: usize, message: impl Into<String>) -> Error {
        Error::new(Code::Syntax, message).at(self.span(position))
    }

    fn skip_space(&self, mut position: usize) -> usize {
        loop {
            let rest = self.text.get(position..).unwrap_or("");
            let trimmed = rest.trim_start();
            position += rest.len() - trimmed.len();
            if !trimmed.starts_with("--") {
                return position;
            }
            position += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Reads the token at `start` and returns it with its end.
    fn read(&self, start: usize) -> Result<(Token, usize)> {
        let rest = self.text.get(start..).unwrap_or("");
        let Some(first) = rest.chars().next() else { return Ok((Token::End, start)) };
        if rest.starts_with("x'") {
            return self.bytes(start);
        }
        if rest.starts_with("e'") {
            return self.escaped(start);
        }
        if first == '\'' {
            return self.quoted(start, '\'').map(|(text, end)| (Token::Text(text), end));
        }
        if first == '"' {
            return self.quoted(start, '"').map(|(name, end)| (Token::Name(name), end));
        }
        if first == '$' {
            let (name, end) = match rest[1..].chars().next() {
                Some('"') => self.quoted(start + 1, '"')?,
                _ => self.word(start + 1),
            };
            if end == start + 1 {
                return Err(self.failure(start, "expected the name of a parameter after `$`"));
            }
            return Ok((Token::Parameter(name), end));
        }
        if first.is_ascii_digit() {
            return Ok(number(rest, start));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let (name, end) = self.word(start);
            return Ok(match KEYWORDS.iter().find(|word| **word == name) {
                Some(word) => (Token::Keyword(word), end),
                None => (Token::Name(name), end),
            });
        }
        match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(symbol) => Ok((Token::Symbol(symbol), start + symbol.len())),
            None => Err(self.failure(start, format!("unexpected character {first:?}"))),
        }
    }

    fn word(&self, start: usize) -> (String, usize) {
        let rest = &self.text[start..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'))
            .unwrap_or(rest.len());
        (rest[..end].to_string(), start + end)
    }

    /// Reads a text in `quote`s, in which a doubled `quote` stands for one.
    fn quoted(&self, start: usize, quote: char) -> Result<(String, usize)> {
        let mut text = String::new();
        let mut position = start + 1;
        loop {
            let rest = self.text.get(position..).unwrap_or("");
            let Some(end) = rest.find(quote) else {
                return Err(self.failure(start, format!("missing closing `{quote}`")));
            };
            text.push_str(&rest[..end]);
            position += end + 1;
            if !self.text[position..].starts_with(quote) {
                return Ok((text, position));
            }
            position += 1;
            text.push(quote);
        }
    }

    /// Reads `e'…'` with `\n`, `\t`, `\r`, `\\`, `\'` and `\u{hexadecimal}`.
    fn escaped(&self, start: usize) -> Result<(Token, usize)> {
        let mut text = String::new();
        let body = start + 2;
        let mut chars = self.text[body..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\'' => return Ok((Token::Text(text), body + at + 1)),
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some(c @ ('\\' | '\'')) => text.push(c),
                    Some('u') => {
                        let (c, len) = character(chars.as_str()).ok_or_else(|| {
                            self.failure(
                                body + at,
                                "expected the hexadecimal code of a character, such as `\\u{1f}`",
                            )
                        })?;
                        text.push(c);
                        chars.nth(len - 1);
                    }
                    _ => {
                        return Err(self.failure(
                            body + at,
                            "unknown escape; expected \\n, \\t, \\r, \\\\, \\' or \\u{…}",
                        ));
                    }
                },
                c => text.push(c),
            }
        }
        Err(self.failure(start, "missing closing `'` of `e'`"))
    }

    fn bytes(&self, start: usize) -> Result<(Token, usize)> {
        let body = &self.text[start + 2..];
        let digits = body.find('\'').map(|end| &body[..end]);
        let digits = digits.ok_or_else(|| self.failure(start, "missing closing `'` of `x'`"))?;
        let bytes = (0..digits.len() / 2)
            .map(|i| {
                digits.get(2 * i..2 * i + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok())
            })
            .collect::<Option<Vec<u8>>>()
            .filter(|_| {
                digits.len().is_multiple_of(2) && digits.bytes().all(|b| b.is_ascii_hexdigit())
            });
        let bytes = bytes
            .ok_or_else(|| self.failure(start, "expected pairs of hexadecimal digits in x'…'"))?;
        Ok((Token::Bytes(bytes), start + 2 + digits.len() + 1))
    }
}

/// Reads `{…}`, the hexadecimal code of a character, from the start of a text. Returns the
/// character and the number of bytes read.
fn character(text: &str) -> Option<(char, usize)> {
    let (digits, _) = text.strip_prefix('{')?.split_once('}')?;
    // `from_str_radix` accepts a sign, too.
    let is_code = (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let code = is_code.then(|| u32::from_str_radix(digits, 16).ok())??;
    Some((char::from_u32(code)?, digits.len() + 2))
}

fn number(rest: &str, start: usize) -> (Token, usize) {
    let digits = |from: usize| rest[from..].bytes().take_while(u8::is_ascii_digit).count();
    let bytes = rest.as_bytes();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = if rest.len() > end + 1 + sign { digits(end + 1 + sign) } else { 0 };
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    (Token::Number(rest[..end].to_string()), start + end)
}
