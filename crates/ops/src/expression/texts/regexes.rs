//! PostgreSQL's regular expressions in the form of the library that matches them.

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};
use tessera_types::{Error, Result, SqlState};

use crate::expression::rowwise::fault;

/// A compiled regular expression may take this much memory.
const REGEX_BYTES_MAX: usize = 10 << 20;

/// How to match, from a text of single letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) global: bool,
    ignore_case: bool,
    /// `^` and `$` match at line ends, too.
    lines: bool,
    /// `.` and negated brackets match line ends.
    dot_matches_line_ends: bool,
    extended: bool,
    literal: bool,
}

impl Default for Flags {
    fn default() -> Flags {
        Flags {
            global: false,
            ignore_case: false,
            lines: false,
            dot_matches_line_ends: true,
            extended: false,
            literal: false,
        }
    }
}

impl Flags {
    /// Without regard to case.
    pub(crate) fn ignoring_case(ignore_case: bool) -> Flags {
        Flags { ignore_case, ..Flags::default() }
    }

    /// # Errors
    /// A letter that is none.
    pub(crate) fn read(text: &str) -> Result<Flags> {
        let mut flags = Flags::default();
        for letter in text.chars() {
            flags.add(letter).map_err(|()| {
                fault(
                    format!("invalid regular expression option: \"{letter}\""),
                    SqlState::INVALID_PARAMETER_VALUE,
                )
            })?;
        }
        Ok(flags)
    }

    fn add(&mut self, letter: char) -> std::result::Result<(), ()> {
        match letter {
            'g' => self.global = true,
            'i' => self.ignore_case = true,
            'c' => self.ignore_case = false,
            'm' | 'n' => (self.lines, self.dot_matches_line_ends) = (true, false),
            'p' => (self.lines, self.dot_matches_line_ends) = (false, false),
            'w' => (self.lines, self.dot_matches_line_ends) = (true, true),
            's' => (self.lines, self.dot_matches_line_ends) = (false, true),
            'x' => self.extended = true,
            't' => self.extended = false,
            'q' => self.literal = true,
            'e' | 'b' => {}
            _ => return Err(()),
        }
        Ok(())
    }
}

/// Compiles a regular expression.
///
/// # Errors
/// It is none, or needs what the library has not: references back and looking around.
pub(crate) fn compile(pattern: &str, mut flags: Flags) -> Result<Regex> {
    let mut body = pattern;
    if let Some(rest) = body.strip_prefix("***=") {
        (flags.literal, body) = (true, rest);
    } else if let Some(rest) = body.strip_prefix("***:") {
        body = rest;
    }
    // Options at the beginning, as `(?i)`.
    if let Some((options, rest)) = body.strip_prefix("(?").and_then(|rest| rest.split_once(')'))
        && !flags.literal
        && !options.is_empty()
        && options.chars().all(|c| c.is_ascii_lowercase())
    {
        for letter in options.chars() {
            flags.add(letter).map_err(|()| invalid(pattern, "invalid embedded option"))?;
        }
        body = rest;
    }
    let translated = if flags.literal { regex::escape(body) } else { translated(body)? };
    RegexBuilder::new(&translated)
        .case_insensitive(flags.ignore_case)
        .multi_line(flags.lines)
        .dot_matches_new_line(flags.dot_matches_line_ends)
        .ignore_whitespace(flags.extended)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|error| {
            let text = error.to_string();
            match text.contains("look-around") || text.contains("backreference") {
                true => Error::unsupported(format!(
                    "the regular expression '{pattern}': references back and looking around are not supported"
                )),
                false => invalid(pattern, &text),
            }
        })
}

fn invalid(pattern: &str, why: &str) -> Error {
    fault(format!("invalid regular expression '{pattern}': {why}"), SqlState::INVALID_REGULAR_EXPRESSION)
}

/// The pattern with the library's escapes.
fn translated(pattern: &str) -> Result<String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    let mut in_brackets = false;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        if !in_brackets && let Some(behind) = rest.strip_prefix("[[:<:]]") {
            out.push_str("\\b{start}");
            rest = behind;
            continue;
        }
        if !in_brackets && let Some(behind) = rest.strip_prefix("[[:>:]]") {
            out.push_str("\\b{end}");
            rest = behind;
            continue;
        }
        rest = after;
        match character {
            '\\' => {
                let Some(escaped) = after.chars().next() else {
                    return Err(invalid(pattern, "it ends with a backslash"));
                };
                rest = &after[escaped.len_utf8()..];
                escape(escaped, in_brackets, &mut rest, &mut out);
            }
            '[' if !in_brackets => {
                in_brackets = true;
                out.push('[');
                if let Some(behind) = rest.strip_prefix('^') {
                    out.push('^');
                    rest = behind;
                }
                if let Some(behind) = rest.strip_prefix(']') {
                    out.push_str("\\]");
                    rest = behind;
                }
            }
            '[' if rest.starts_with(':') => match rest.find(":]") {
                Some(end) => {
                    out.push('[');
                    out.push_str(&rest[..end + 2]);
                    rest = &rest[end + 2..];
                }
                None => return Err(invalid(pattern, "brackets [] not balanced")),
            },
            '[' | '&' | '~' if in_brackets => out.extend(['\\', character]),
            ']' if in_brackets => {
                in_brackets = false;
                out.push(']');
            }
            // A brace that no number follows stands for itself.
            '{' if !in_brackets && !rest.starts_with(|c: char| c.is_ascii_digit()) => out.push_str("\\{"),
            _ => out.push(character),
        }
    }
    Ok(out)
}

/// What stands behind a backslash.
fn escape(escaped: char, in_brackets: bool, rest: &mut &str, out: &mut String) {
    let mut digits = |count: usize| {
        let taken: String = rest.chars().take(count).take_while(char::is_ascii_hexdigit).collect();
        *rest = &rest[taken.len()..];
        taken
    };
    match escaped {
        'm' if !in_brackets => out.push_str("\\b{start}"),
        'M' if !in_brackets => out.push_str("\\b{end}"),
        'y' if !in_brackets => out.push_str("\\b"),
        'Y' if !in_brackets => out.push_str("\\B"),
        'Z' if !in_brackets => out.push_str("\\z"),
        'b' => out.push_str("\\x08"),
        'B' => out.push_str("\\\\"),
        'e' => out.push_str("\\x1b"),
        '0' => out.push_str("\\x00"),
        'u' => {
            let digits = digits(4);
            out.push_str(&format!("\\u{{{digits}}}"));
        }
        'U' => {
            let digits = digits(8);
            out.push_str(&format!("\\u{{{digits}}}"));
        }
        'x' => {
            let digits = digits(8);
            out.push_str(&format!("\\x{{{digits}}}"));
        }
        // Letters and digits mean something; other characters stand for themselves.
        _ if escaped.is_ascii_alphanumeric() => out.extend(['\\', escaped]),
        _ if escaped.is_ascii_punctuation() && !matches!(escaped, '<' | '>') => out.extend(['\\', escaped]),
        _ => out.push(escaped),
    }
}

/// The expression compiled last: a pattern mostly is a constant.
#[derive(Debug, Default)]
pub(crate) struct Last(Mutex<Option<(String, Flags, Regex)>>);

impl Last {
    /// # Errors
    /// As [`compile`].
    pub(crate) fn compile(&self, pattern: &str, flags: Flags) -> Result<Regex> {
        let mut last = self.0.lock();
        if let Some((known, with, regex)) = &*last
            && known == pattern
            && *with == flags
        {
            return Ok(regex.clone());
        }
        let regex = compile(pattern, flags)?;
        *last = Some((pattern.to_string(), flags, regex.clone()));
        Ok(regex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_postgresql() {
        for (text, pattern, flags, expected) in [
            ("a\nb", "a.b", "", true),
            ("a\nb", "a.b", "n", false),
            ("a\nb", "^b", "", false),
            ("a\nb", "^b", "m", true),
            ("one two", "\\mtwo\\M", "", true),
            ("onetwo", "\\mtwo", "", false),
            ("one two", "\\ytwo", "", true),
            ("ab", "A", "i", true),
            ("ab", "(?i)A", "", true),
            ("a{b", "a{b", "", true),
            ("a]", "[]]", "", true),
            ("&", "[a&&b]", "", true),
            ("a.b", "***=.b", "", true),
            ("axb", "a\\.b", "", false),
            ("a-b", "[\\-]", "", true),
            ("7", "[[:digit:]]", "", true),
            ("a b", "a b", "x", false),
        ] {
            let flags = Flags::read(flags).unwrap();
            assert_eq!(compile(pattern, flags).unwrap().is_match(text), expected, "'{text}' ~ '{pattern}'");
        }
        assert_eq!(compile("(", Flags::default()).unwrap_err().sql_state().as_str(), "2201B");
        assert_eq!(compile("(a)\\1", Flags::default()).unwrap_err().sql_state().as_str(), "0A000");
        assert!(Flags::read("z").is_err());
    }
}
