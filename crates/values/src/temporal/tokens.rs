//! Tokenizer for dates, times and intervals, with PostgreSQL's rules.

use crate::temporal::read::is_calendar_word;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Digits, optionally with a point.
    Number,
    /// Letters.
    Text,
    /// Parts separated by `-`, `/` or `.`.
    Date,
    /// Digits with a colon.
    Time,
    /// A sign and digits: a time zone offset or a signed number.
    Signed,
    /// A sign and letters: `-infinity`.
    Special,
}

/// A token in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub text: String,
}

/// The maximum number of tokens of a text.
const TOKENS_MAX: usize = 25;

/// Words, besides months and days, that a digit may follow directly; other words become part of a
/// zone name.
const BEFORE_DIGITS: [&str; 13] =
    ["d", "h", "j", "jd", "m", "mm", "s", "t", "y", "am", "pm", "ad", "bc"];

/// Splits a text into tokens; `None` for invalid characters.
pub(crate) fn tokenize(text: &str) -> Option<Vec<Token>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    let class = |byte: Option<&u8>, test: fn(&u8) -> bool| byte.is_some_and(test);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        let run = |from: usize, test: &dyn Fn(u8) -> bool| {
            from + bytes[from..].iter().take_while(|byte| test(**byte)).count()
        };
        let kind = match byte {
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'0'..=b'9' => {
                at = run(at, &|byte| byte.is_ascii_digit());
                match bytes.get(at) {
                    Some(b':') => {
                        at = run(at, &|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'));
                        TokenKind::Time
                    }
                    Some(&delimiter @ (b'-' | b'/' | b'.')) => {
                        at += 1;
                        if class(bytes.get(at), u8::is_ascii_digit) {
                            at = run(at, &|byte| byte.is_ascii_digit());
                            if bytes.get(at) == Some(&delimiter) {
                                at = run(at, &|byte| byte.is_ascii_digit() || byte == delimiter);
                                TokenKind::Date
                            } else if delimiter == b'.' {
                                TokenKind::Number
                            } else {
                                TokenKind::Date
                            }
                        } else {
                            at = run(at, &|byte| byte.is_ascii_alphanumeric() || byte == delimiter);
                            if delimiter == b'.' && at == start + 1 {
                                TokenKind::Number
                            } else {
                                TokenKind::Date
                            }
                        }
                    }
                    _ => TokenKind::Number,
                }
            }
            b'.' => {
                at = run(at + 1, &|byte| byte.is_ascii_digit());
                TokenKind::Number
            }
            _ if byte.is_ascii_alphabetic() => {
                at = run(at, &|byte| byte.is_ascii_alphabetic());
                let word = text[start..at].to_ascii_lowercase();
                let is_date = match bytes.get(at) {
                    Some(b'-' | b'/' | b'.') => true,
                    Some(b'+' | b'0'..=b'9' | b'_') => {
                        !BEFORE_DIGITS.contains(&word.as_str()) && !is_calendar_word(&word)
                    }
                    _ => false,
                };
                if is_date {
                    at = run(at, &|byte| byte.is_ascii_alphanumeric() || b"+-/_.:".contains(&byte));
                    TokenKind::Date
                } else {
                    TokenKind::Text
                }
            }
            b'+' | b'-' => {
                at = run(at + 1, &|byte| byte.is_ascii_whitespace());
                if class(bytes.get(at), |byte| byte.is_ascii_digit() || *byte == b'.') {
                    at = run(at, &|byte| {
                        byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-')
                    });
                    TokenKind::Signed
                } else if class(bytes.get(at), u8::is_ascii_alphabetic) {
                    at = run(at, &|byte| byte.is_ascii_alphabetic());
                    TokenKind::Special
                } else {
                    return None;
                }
            }
            _ if byte.is_ascii_punctuation() => {
                at += 1;
                continue;
            }
            _ => return None,
        };
        let text = text[start..at].chars().filter(|c| !c.is_ascii_whitespace());
        let text = text.map(|c| c.to_ascii_lowercase()).collect();
        tokens.push(Token { kind, text });
        if tokens.len() > TOKENS_MAX {
            return None;
        }
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_into_fields() {
        let shown = |text: &str| {
            tokenize(text).map(|fields| {
                fields
                    .iter()
                    .map(|field| format!("{:?} {}", field.kind, field.text))
                    .collect::<Vec<_>>()
                    .join(", ")
            })
        };
        for (text, expected) in [
            ("2024-01-05 10:00:00.5+02", "Date 2024-01-05, Time 10:00:00.5, Signed +02"),
            ("Jan 5, 2020", "Text jan, Number 5, Number 2020"),
            ("1-2", "Date 1-2"),
            ("-1 day 1.5h", "Signed -1, Text day, Number 1.5, Text h"),
            ("- infinity", "Special -infinity"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(shown("é"), None);
    }
}
