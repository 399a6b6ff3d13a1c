//! Translates `SIMILAR TO` patterns to regular expressions, as PostgreSQL does.

use tessera_types::{Error, Result, SqlState};

use crate::regex_search::{Regex, Syntax};

/// Translates a pattern to a regular expression. The default escape is a backslash; an empty escape
/// disables escaping.
///
/// # Errors
/// The escape has more than one character.
pub fn as_regex(pattern: &str, escape: Option<&str>) -> Result<String> {
    let escape = match escape.map(|escape| escape.chars().collect::<Vec<_>>()).as_deref() {
        None => Some('\\'),
        Some([]) => None,
        Some([escape]) => Some(*escape),
        Some(_) => {
            return Err(Error::data("the escape of SIMILAR TO must be one character or empty")
                .with_state(SqlState::INVALID_ESCAPE_CHARACTER));
        }
    };
    let mut out = String::with_capacity(pattern.len() + 16);
    out.push_str("^(?s:");
    let mut class = Class::Outside;
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            match characters.next() {
                // Class escapes such as `\d`.
                Some(next) if next.is_ascii_alphanumeric() => out.extend(['\\', next]),
                Some(next) => literal(next, &mut out),
                None => {}
            }
            class = class.after();
            continue;
        }
        match (class, character) {
            (Class::Outside, '[') => {
                out.push('[');
                class = Class::First;
            }
            (Class::Outside, '%') => out.push_str(".*"),
            (Class::Outside, '_') => out.push('.'),
            (Class::Outside, '(') => out.push_str("(?:"),
            (Class::Outside, '\\' | '.' | '^' | '$') => literal(character, &mut out),
            (Class::Outside, _) => out.push(character),
            (Class::First, '^') => out.push('^'),
            (Class::Inside, ']') => {
                out.push(']');
                class = Class::Outside;
            }
            // A named class such as `[:alpha:]`.
            (_, '[') if characters.peek() == Some(&':') => {
                out.push('[');
                named_class(&mut characters, &mut out);
                class = Class::Inside;
            }
            (_, '-') => {
                out.push('-');
                class = Class::Inside;
            }
            (_, _) => {
                literal(character, &mut out);
                class = Class::Inside;
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}

/// Translates the pattern of `substring(text from pattern for escape)`. The part between two
/// escaped quotes is the only group; the part before it matches as little as possible.
///
/// # Errors
/// The escape has more than one character, or there are not exactly two escaped quotes.
pub fn as_pattern_parts(pattern: &str, escape: &str) -> Result<Regex> {
    let mut characters = escape.chars();
    let (Some(mark), None) = (characters.next(), characters.next()) else {
        if escape.is_empty() {
            return built(&as_regex(pattern, Some(""))?, pattern);
        }
        return Err(Error::data("the escape must be one character or empty")
            .with_state(SqlState::INVALID_ESCAPE_CHARACTER));
    };
    let mut parts = vec![String::new()];
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        let part = parts.len() - 1;
        match character {
            c if c == mark => match rest.next() {
                Some('"') => parts.push(String::new()),
                Some(next) => parts[part].extend([mark, next]),
                None => parts[part].push(mark),
            },
            c => parts[part].push(c),
        }
    }
    let inner = |part: &str| -> Result<String> {
        let regex = as_regex(part, Some(escape))?;
        Ok(regex.trim_start_matches('^').trim_end_matches('$').to_string())
    };
    match &parts[..] {
        [whole] => built(&as_regex(whole, Some(escape))?, pattern),
        [before, part, after] => {
            // `(?U:…)` makes repetitions lazy.
            let before = format!("(?U:{})", inner(before)?);
            built(&format!("^{before}({}){}$", inner(part)?, inner(after)?), pattern)
        }
        _ => Err(Error::data("an SQL pattern must have two escaped quotes or none")
            .with_state(SqlState::INVALID_USE_OF_ESCAPE)),
    }
}

fn built(regex: &str, pattern: &str) -> Result<Regex> {
    Regex::new(regex, Syntax::default()).map_err(|error| {
        Error::data(format!("invalid regular expression '{pattern}': {error}"))
            .with_state(SqlState::INVALID_REGULAR_EXPRESSION)
    })
}

/// The position of a character relative to bracket expressions.
#[derive(Clone, Copy)]
enum Class {
    /// Outside of bracket expressions.
    Outside,
    /// At the start of one, where `^` negates and `]` is a literal.
    First,
    /// Further inside of one.
    Inside,
}

impl Class {
    fn after(self) -> Class {
        match self {
            Class::Outside => Class::Outside,
            Class::First | Class::Inside => Class::Inside,
        }
    }
}

fn named_class(characters: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    for next in characters.by_ref() {
        out.push(next);
        if next == ']' {
            return;
        }
    }
}

/// Escapes a literal character, for use inside and outside of brackets.
fn literal(character: char, out: &mut String) {
    if character.is_ascii_punctuation() && !matches!(character, '<' | '>') {
        out.push('\\');
    }
    out.push(character);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_postgresql() {
        for (text, pattern, escape, expected) in [
            ("abc", "abc", None, true),
            ("abc", "a", None, false),
            ("abc", "%(b|d)%", None, true),
            ("abc", "(b|c)%", None, false),
            ("a.c", "a.c", None, true),
            ("abc", "a.c", None, false),
            ("abc", "a_c", None, true),
            ("a\nc", "a_c", None, true),
            ("aaa", "a{2,3}", None, true),
            ("a", "a{2,3}", None, false),
            ("b5", "[a-c][0-9]", None, true),
            ("x", "[^a-c]", None, true),
            ("a", "[^a-c]", None, false),
            ("a%", "a\\%", None, true),
            ("ab", "a\\%", None, false),
            ("a%", "a!%", Some("!"), true),
            ("a\\", "a\\", Some(""), true),
            ("q", "[[:alpha:]]", None, true),
            ("7", "[[:alpha:]]", None, false),
            ("&&", "[&&a]+", None, true),
            ("[", "[[]", None, true),
            ("7", "\\d", None, true),
            ("^a$", "^a$", None, true),
            ("", "", None, true),
            ("é", "_", None, true),
            ("ab", "a|b", None, false),
            ("b", "a|b", None, true),
        ] {
            let regex = as_regex(pattern, escape).unwrap();
            let found = regex::Regex::new(&regex).unwrap().is_match(text);
            assert_eq!(found, expected, "'{text}' similar to '{pattern}' as {regex}");
        }
        assert!(as_regex("a", Some("ab")).is_err());
    }
}
