//! Translates PostgreSQL's regular expressions to the syntax of the `regex` crate.

use std::sync::Arc;

use parking_lot::Mutex;
use tessera_types::{Error, Result, SqlState};

use crate::regex_search::{Regex, Syntax};
use tessera_values::rowwise::fault;

/// Matching options, parsed from single letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags {
    /// Whether all matches are meant (`g`), not only the first.
    pub global: bool,
    ignore_case: bool,
    /// Whether `^` and `$` also match at line ends.
    lines: bool,
    /// Whether `.` and negated brackets match line ends.
    dot_matches_line_ends: bool,
    extended: bool,
    literal: bool,
    /// Whether the expression must match the whole text.
    whole: bool,
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
            whole: false,
        }
    }
}

impl Flags {
    /// The default options, with or without case sensitivity.
    pub fn ignoring_case(ignore_case: bool) -> Flags {
        Flags { ignore_case, ..Flags::default() }
    }

    /// The same options for matching the whole text.
    pub fn of_whole(self) -> Flags {
        Flags { whole: true, ..self }
    }

    /// Parses options from letters.
    ///
    /// # Errors
    /// A letter is unknown.
    pub fn read(text: &str) -> Result<Flags> {
        let mut flags = Flags::default();
        for letter in text.chars() {
            if matches!(letter, 'b' | 'e') {
                return Err(Error::unsupported(format!(
                    "unsupported regular expression option '{letter}' (basic or extended expressions)"
                )));
            }
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
            _ => return Err(()),
        }
        Ok(())
    }
}

/// Compiles a regular expression.
///
/// # Errors
/// The expression is invalid or uses unsupported features: back-references and lookaround.
pub fn compile(pattern: &str, mut flags: Flags) -> Result<Regex> {
    let mut body = pattern;
    if let Some(rest) = body.strip_prefix("***=") {
        (flags.literal, body) = (true, rest);
    } else if let Some(rest) = body.strip_prefix("***:") {
        body = rest;
    }
    // Embedded options such as `(?i)`.
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
    let translated = match flags.literal {
        true => regex::escape(body),
        false => RegexTranslator::of(body, &flags)?,
    };
    let translated = if flags.whole { format!("\\A(?:{translated})\\z") } else { translated };
    let syntax = Syntax {
        ignore_case: flags.ignore_case,
        lines: flags.lines,
        dot_matches_line_ends: flags.dot_matches_line_ends,
        extended: flags.extended,
    };
    Regex::new(&translated, syntax).map_err(|error| {
        let text = error.to_string();
        match text.contains("look-around") || text.contains("backreference") {
            true => Error::unsupported(format!(
                "regular expression '{pattern}' uses back-references or lookaround, which are not supported"
            )),
            false => invalid(pattern, &text),
        }
    })
}

fn invalid(pattern: &str, why: &str) -> Error {
    fault(
        format!("invalid regular expression '{pattern}': {why}"),
        SqlState::INVALID_REGULAR_EXPRESSION,
    )
}

/// The state of translating a pattern.
struct RegexTranslator<'a> {
    pattern: &'a str,
    rest: &'a str,
    out: String,
    /// Whether the last element can be repeated.
    repeatable: bool,
    flags: &'a Flags,
}

/// The maximum number of repetitions.
const REPETITIONS_MAX: u32 = 255;

impl RegexTranslator<'_> {
    fn of(pattern: &str, flags: &Flags) -> Result<String> {
        let out = String::with_capacity(pattern.len() + 8);
        let mut translation =
            RegexTranslator { pattern, rest: pattern, out, repeatable: false, flags };
        while !translation.rest.is_empty() {
            translation.step()?;
        }
        Ok(translation.out)
    }

    fn invalid(&self, why: &str) -> Error {
        invalid(self.pattern, why)
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    /// Consumes a prefix of the rest; returns whether it was there.
    fn passes(&mut self, text: &str) -> bool {
        let behind = self.rest.strip_prefix(text);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    fn step(&mut self) -> Result<()> {
        for (name, boundary) in [("[[:<:]]", "\\b{start}"), ("[[:>:]]", "\\b{end}")] {
            if self.passes(name) {
                self.out.push_str(boundary);
                self.repeatable = false;
                return Ok(());
            }
        }
        let Some(character) = self.next() else { return Ok(()) };
        match character {
            '\\' => self.escape(false)?,
            '[' => {
                self.brackets()?;
                self.repeatable = true;
            }
            '(' => {
                let looks =
                    ["?=", "?!", "?<=", "?<!"].iter().any(|look| self.rest.starts_with(look));
                if self.rest.starts_with('?') && !looks && !self.rest.starts_with("?:") {
                    return Err(self.invalid("quantifier operand invalid"));
                }
                self.out.push('(');
                // The `?` of a non-capturing group is not a quantifier.
                if self.passes("?") {
                    self.out.push('?');
                }
                self.repeatable = false;
            }
            '*' | '+' | '?' => self.repeat(&character.to_string())?,
            '{' if self.rest.starts_with(|c: char| c.is_ascii_digit()) => {
                let count = self.count()?;
                self.repeat(&count)?;
            }
            // A brace that is not followed by a number is a literal.
            '{' => {
                self.out.push_str("\\{");
                self.repeatable = true;
            }
            // A comment extends to the end of the line.
            '#' if self.flags.extended => {
                self.rest = self.rest.split_once('\n').map_or("", |(_, behind)| behind);
            }
            '^' | '$' | '|' => {
                self.out.push(character);
                self.repeatable = false;
            }
            _ => {
                self.out.push(character);
                self.repeatable =
                    !(self.flags.extended && character.is_whitespace()) || self.repeatable;
            }
        }
        Ok(())
    }

    /// Appends a quantifier, which may be lazy but cannot be repeated.
    fn repeat(&mut self, count: &str) -> Result<()> {
        if !self.repeatable {
            return Err(self.invalid("quantifier operand invalid"));
        }
        self.out.push_str(count);
        if self.passes("?") {
            self.out.push('?');
        }
        self.repeatable = false;
        Ok(())
    }

    /// Parses `{2}`, `{2,}` or `{2,3}` after its opening brace.
    fn count(&mut self) -> Result<String> {
        let wrong = || invalid(self.pattern, "invalid repetition count(s)");
        let (inner, behind) =
            self.rest.split_once('}').ok_or_else(|| self.invalid("braces {} not balanced"))?;
        let number =
            |text: &str| text.parse().ok().filter(|number: &u32| *number <= REPETITIONS_MAX);
        let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
        let least = number(least).ok_or_else(wrong)?;
        if !most.is_empty() && number(most).is_none_or(|most| most < least) {
            return Err(wrong());
        }
        self.rest = behind;
        Ok(format!("{{{inner}}}"))
    }

    /// Translates a bracket expression after its opening bracket. Its characters are escaped,
    /// because the crate has set operators.
    fn brackets(&mut self) -> Result<()> {
        self.out.push('[');
        if self.passes("^") {
            self.out.push('^');
            if !self.flags.dot_matches_line_ends {
                self.out.push_str("\\n");
            }
        }
        let mut first = true;
        loop {
            let Some(character) = self.next() else {
                return Err(self.invalid("brackets [] not balanced"));
            };
            match character {
                ']' if !first => break,
                '[' if self.passes(":") => {
                    let Some((name, behind)) = self.rest.split_once(":]") else {
                        return Err(self.invalid("brackets [] not balanced"));
                    };
                    self.out.push_str(&format!("[:{name}:]"));
                    self.rest = behind;
                }
                '[' if self.rest.starts_with(['.', '=']) => {
                    let mark = self.next().unwrap_or_default();
                    let single = self.next().unwrap_or_default();
                    if !self.passes(&format!("{mark}]")) {
                        return Err(self.invalid("invalid collating element"));
                    }
                    self.literal(single);
                }
                '\\' => self.escape(true)?,
                // Between two characters it denotes a range.
                '-' if !first && !self.rest.starts_with(']') => {
                    self.out.push('-');
                    if self.passes("-") {
                        self.literal('-');
                    }
                }
                other => self.literal(other),
            }
            first = false;
        }
        self.out.push(']');
        Ok(())
    }

    /// Appends a literal character.
    fn literal(&mut self, character: char) {
        if character.is_ascii_punctuation() && !matches!(character, '<' | '>') {
            self.out.push('\\');
        } else if character.is_ascii_whitespace() && self.flags.extended {
            self.out.push_str(&format!("\\x{{{:x}}}", u32::from(character)));
            return;
        }
        self.out.push(character);
    }

    /// Translates the character after a backslash.
    fn escape(&mut self, in_brackets: bool) -> Result<()> {
        let Some(escaped) = self.next() else {
            return Err(self.invalid("trailing backslash"));
        };
        let boundary = match escaped {
            _ if in_brackets => None,
            'm' => Some("\\b{start}"),
            'M' => Some("\\b{end}"),
            'y' => Some("\\b"),
            'Y' => Some("\\B"),
            'A' => Some("\\A"),
            'Z' => Some("\\z"),
            _ => None,
        };
        self.repeatable = boundary.is_none();
        if let Some(boundary) = boundary {
            self.out.push_str(boundary);
            return Ok(());
        }
        match escaped {
            'b' => self.out.push_str("\\x08"),
            'B' => self.out.push_str("\\\\"),
            'e' => self.out.push_str("\\x1b"),
            '0' => self.out.push_str("\\x00"),
            'c' => {
                let Some(control) = self.next() else { return Err(self.invalid("invalid escape")) };
                self.out.push_str(&format!("\\x{{{:x}}}", u32::from(control) & 31));
            }
            'u' | 'U' | 'x' => {
                let most = if escaped == 'u' { 4 } else { 8 };
                let digits: String =
                    self.rest.chars().take(most).take_while(char::is_ascii_hexdigit).collect();
                self.rest = &self.rest[digits.len()..];
                if digits.is_empty() || (escaped != 'x' && digits.len() < most) {
                    return Err(self.invalid("invalid escape \\ sequence"));
                }
                self.out.push_str(&format!("\\x{{{digits}}}"));
            }
            // Letters and digits have a meaning; other characters are literals.
            'a' | 'd' | 'D' | 'f' | 'n' | 'r' | 's' | 'S' | 't' | 'v' | 'w' | 'W' | '1'..='9' => {
                self.out.extend(['\\', escaped]);
            }
            _ if escaped.is_ascii_alphanumeric() => {
                return Err(self.invalid("invalid escape \\ sequence"));
            }
            _ => self.literal(escaped),
        }
        Ok(())
    }
}

/// Caches the most recently compiled expression: most patterns are constant. It is shared, because
/// a clone of an expression of the `regex` crate builds its automata's states anew.
#[derive(Debug, Default)]
pub struct RegexCache(Mutex<Option<(String, Flags, Arc<Regex>)>>);

impl RegexCache {
    /// Compiles an expression, or returns the cached one.
    ///
    /// # Errors
    /// As [`compile`].
    pub fn compile(&self, pattern: &str, flags: Flags) -> Result<Arc<Regex>> {
        let mut cached = self.0.lock();
        if let Some((known, with, regex)) = &*cached
            && known == pattern
            && *with == flags
        {
            return Ok(regex.clone());
        }
        let regex = Arc::new(compile(pattern, flags)?);
        *cached = Some((pattern.to_string(), flags, regex.clone()));
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
            ("\nb", "[^a]b", "n", false),
            ("-", "[+--]", "", true),
            ("=", "[[=a=]=]", "", true),
            ("b", "[a-c-]", "", true),
            ("a", "[[.a.]]", "", true),
            ("\x01", "\\cA", "", true),
        ] {
            let flags = Flags::read(flags).unwrap();
            assert_eq!(
                compile(pattern, flags).unwrap().is_match(text),
                expected,
                "'{text}' ~ '{pattern}'"
            );
        }
        assert_eq!(compile("(", Flags::default()).unwrap_err().sql_state().as_str(), "2201B");
        assert_eq!(compile("(a)\\1", Flags::default()).unwrap_err().sql_state().as_str(), "0A000");
        for pattern in ["a**", "^*", "(?P<n>a)", "a(?i)b", "a{300}", "a{3,2}", "*a", "\\q", "[a"] {
            let error = compile(pattern, Flags::default()).unwrap_err();
            assert_eq!(error.sql_state().as_str(), "2201B", "{pattern}");
        }
        assert!(Flags::read("z").is_err() && Flags::read("b").is_err());
    }
}
