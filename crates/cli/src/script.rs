//! Splits SQL text into statements as it arrives.
//!
//! A semicolon ends a statement unless it is in quotes, a comment or a dollar-quoted string. Other
//! errors are left to the parser.

/// The text of a statement and the position of its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatementText {
    pub(crate) text: String,
    /// Line, from 1.
    pub(crate) line: u32,
    /// Column in characters, from 1.
    pub(crate) column: u32,
}

/// Input text that has not been returned as statements.
#[derive(Debug, Default)]
pub(crate) struct Script {
    buffer: String,
    /// The number of scanned bytes of the buffer.
    seen: usize,
    state: State,
    /// The position of the start of the buffer, from 0.
    line: u32,
    column: u32,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum State {
    #[default]
    Plain,
    /// In quotes. With `escapes`, a backslash escapes the next character.
    Quoted {
        quote: u8,
        escapes: bool,
    },
    LineComment,
    BlockComment {
        depth: u32,
    },
    /// In a dollar-quoted string, until the same tag.
    Dollar {
        tag: String,
    },
}

impl Script {
    /// Appends whole lines of text. Tokens of several characters must not be split.
    pub(crate) fn push(&mut self, text: &str) {
        self.buffer.push_str(text);
    }

    /// The next complete statement, without its semicolon.
    pub(crate) fn next(&mut self) -> Option<StatementText> {
        while self.seen < self.buffer.len() {
            if self.step() {
                let text = self.buffer[..self.seen - 1].to_string();
                return Some(self.give(text));
            }
        }
        None
    }

    /// The remaining text at the end of the input, unless it is blank.
    pub(crate) fn finish(&mut self) -> Option<StatementText> {
        let text = self.buffer.clone();
        self.seen = self.buffer.len();
        self.state = State::Plain;
        let piece = self.give(text);
        (!piece.text.trim().is_empty()).then_some(piece)
    }

    /// Whether the remaining text is blank.
    pub(crate) fn is_blank(&self) -> bool {
        self.buffer.trim().is_empty()
    }

    /// The text of the incomplete statement.
    pub(crate) fn rest(&self) -> &str {
        &self.buffer
    }

    /// Removes the scanned text from the buffer.
    fn give(&mut self, text: String) -> StatementText {
        let piece = StatementText { text, line: self.line + 1, column: self.column + 1 };
        let given = &self.buffer[..self.seen];
        match given.rfind('\n') {
            Some(last) => {
                self.line += given.matches('\n').count() as u32;
                self.column = given[last + 1..].chars().count() as u32;
            }
            None => self.column += given.chars().count() as u32,
        }
        self.buffer.drain(..self.seen);
        self.seen = 0;
        piece
    }

    /// Scans the next token. Returns whether it ended a statement.
    fn step(&mut self) -> bool {
        let bytes = self.buffer.as_bytes();
        let at = self.seen;
        let byte = bytes[at];
        let next = bytes.get(at + 1).copied();
        let mut width = 1;
        match &mut self.state {
            State::Plain => match byte {
                b';' => {
                    self.seen += 1;
                    return true;
                }
                b'\'' => {
                    self.state = State::Quoted { quote: byte, escapes: is_escape_string(bytes, at) }
                }
                b'"' => self.state = State::Quoted { quote: byte, escapes: false },
                b'-' if next == Some(b'-') => self.state = State::LineComment,
                b'/' if next == Some(b'*') => {
                    width = 2;
                    self.state = State::BlockComment { depth: 1 };
                }
                b'$' => {
                    if let Some(tag) = dollar_tag(bytes, at) {
                        width = tag.len();
                        self.state = State::Dollar { tag };
                    }
                }
                _ => {}
            },
            // A doubled quote ends the quotes and starts them again, with the same effect.
            State::Quoted { quote, .. } if byte == *quote => self.state = State::Plain,
            State::Quoted { escapes: true, .. } if byte == b'\\' && next.is_some() => width = 2,
            State::Quoted { .. } => {}
            State::LineComment if byte == b'\n' => self.state = State::Plain,
            State::LineComment => {}
            State::BlockComment { depth } => match (byte, next) {
                (b'/', Some(b'*')) => {
                    width = 2;
                    *depth += 1;
                }
                (b'*', Some(b'/')) => {
                    width = 2;
                    *depth -= 1;
                    if *depth == 0 {
                        self.state = State::Plain;
                    }
                }
                _ => {}
            },
            State::Dollar { tag } => {
                if bytes[at..].starts_with(tag.as_bytes()) {
                    width = tag.len();
                    self.state = State::Plain;
                }
            }
        }
        self.seen += width;
        false
    }
}

/// Whether the quote at `at` follows a lone `E`.
fn is_escape_string(bytes: &[u8], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|at| bytes[at]);
    matches!(before(1), Some(b'e' | b'E')) && !before(2).is_some_and(is_name)
}

/// The tag, with both its signs, that opens a dollar-quoted string at `at`.
fn dollar_tag(bytes: &[u8], at: usize) -> Option<String> {
    if at.checked_sub(1).is_some_and(|before| is_name(bytes[before])) {
        return None;
    }
    let length = bytes[at + 1..].iter().position(|byte| !is_name(*byte) || *byte == b'$')?;
    let name = &bytes[at + 1..at + 1 + length];
    let closed = bytes[at + 1 + length] == b'$' && !name.first().is_some_and(u8::is_ascii_digit);
    closed.then(|| String::from_utf8_lossy(&bytes[at..at + length + 2]).into_owned())
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<String> {
        let mut script = Script::default();
        script.push(sql);
        let mut found: Vec<String> =
            std::iter::from_fn(|| script.next()).map(|piece| piece.text).collect();
        found.extend(script.finish().map(|piece| piece.text));
        found
    }

    #[test]
    fn semicolons_that_end_nothing() {
        for sql in [
            "select 'a;''b;'",
            "select \"a;b\"",
            "select 1 -- ;\n + 2",
            "select /* ; /* ; */ ; */ 1",
            "select $$a;b$$",
            "select $tag$a;$$;b$tag$",
            "select E'it\\'s;'",
            "select 'grün;'",
        ] {
            assert_eq!(texts(&format!("{sql};select 2")), [sql, "select 2"], "{sql}");
        }
        assert_eq!(texts("select 'a\\';select 2"), ["select 'a\\'", "select 2"]);
        assert_eq!(texts("select $1;select a$b$;x"), ["select $1", "select a$b$", "x"]);
    }

    #[test]
    fn statements_come_out_as_soon_as_they_are_complete() {
        let mut script = Script::default();
        script.push("select 1;\nselect\n");
        assert_eq!(
            script.next().unwrap(),
            StatementText { text: "select 1".into(), line: 1, column: 1 }
        );
        assert_eq!(script.next(), None);
        script.push("  2; sel");
        assert_eq!(
            script.next().unwrap(),
            StatementText { text: "\nselect\n  2".into(), line: 1, column: 10 }
        );
        assert_eq!(script.next(), None);
        assert_eq!(
            script.finish().unwrap(),
            StatementText { text: " sel".into(), line: 3, column: 5 }
        );
        assert_eq!(script.finish(), None);
    }
}
