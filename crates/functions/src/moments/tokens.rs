//! Text of dates, times and intervals, cut into fields as PostgreSQL does.

use super::read::is_of_calendar;

/// What a field looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Digits, maybe with a point.
    Number,
    /// Letters.
    Text,
    /// Parts with `-`, `/` or `.` between them.
    Date,
    /// Digits with a colon.
    Time,
    /// A sign and digits: an offset of a zone, or a signed number.
    Signed,
    /// A sign and letters: `-infinity`.
    Special,
}

/// A field of a text, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub kind: Kind,
    pub text: String,
}

/// A text has at most so many fields.
const FIELDS_MAX: usize = 25;

/// Words that a digit may follow at once, beside months and days; others become names of zones with
/// it.
const BEFORE_DIGITS: [&str; 13] =
    ["d", "h", "j", "jd", "m", "mm", "s", "t", "y", "am", "pm", "ad", "bc"];

/// The fields of a text; none where a character belongs to none.
pub(crate) fn fields(text: &str) -> Option<Vec<Field>> {
    let bytes = text.as_bytes();
    let mut fields = Vec::new();
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
                        Kind::Time
                    }
                    Some(&delimiter @ (b'-' | b'/' | b'.')) => {
                        at += 1;
                        if class(bytes.get(at), u8::is_ascii_digit) {
                            at = run(at, &|byte| byte.is_ascii_digit());
                            if bytes.get(at) == Some(&delimiter) {
                                at = run(at, &|byte| byte.is_ascii_digit() || byte == delimiter);
                                Kind::Date
                            } else if delimiter == b'.' {
                                Kind::Number
                            } else {
                                Kind::Date
                            }
                        } else {
                            at = run(at, &|byte| byte.is_ascii_alphanumeric() || byte == delimiter);
                            if delimiter == b'.' && at == start + 1 {
                                Kind::Number
                            } else {
                                Kind::Date
                            }
                        }
                    }
                    _ => Kind::Number,
                }
            }
            b'.' => {
                at = run(at + 1, &|byte| byte.is_ascii_digit());
                Kind::Number
            }
            _ if byte.is_ascii_alphabetic() => {
                at = run(at, &|byte| byte.is_ascii_alphabetic());
                let word = text[start..at].to_ascii_lowercase();
                let is_date = match bytes.get(at) {
                    Some(b'-' | b'/' | b'.') => true,
                    Some(b'+' | b'0'..=b'9' | b'_') => {
                        !BEFORE_DIGITS.contains(&word.as_str()) && !is_of_calendar(&word)
                    }
                    _ => false,
                };
                if is_date {
                    at = run(at, &|byte| byte.is_ascii_alphanumeric() || b"+-/_.:".contains(&byte));
                    Kind::Date
                } else {
                    Kind::Text
                }
            }
            b'+' | b'-' => {
                at = run(at + 1, &|byte| byte.is_ascii_whitespace());
                if class(bytes.get(at), |byte| byte.is_ascii_digit() || *byte == b'.') {
                    at = run(at, &|byte| {
                        byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-')
                    });
                    Kind::Signed
                } else if class(bytes.get(at), u8::is_ascii_alphabetic) {
                    at = run(at, &|byte| byte.is_ascii_alphabetic());
                    Kind::Special
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
        fields.push(Field { kind, text });
        if fields.len() > FIELDS_MAX {
            return None;
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_into_fields() {
        let shown = |text: &str| {
            fields(text).map(|fields| {
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
