//! Pattern matches: `like`, `ilike`, `regex`, `iregex`, `similar`.
//!
//! A LIKE pattern is cut at its `%` into pieces of fixed length, the first and the last anchored;
//! the pieces between are found leftmost first, which is exact because nothing but their order
//! matters. Pieces without `_` are searched as bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use memchr::memmem::Finder;
use regex::{Regex, RegexBuilder};

use tessera_codegen::{LikeCode, Op, TextCode};
use tessera_context::interrupt::{Every, point};
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::kernel::{Argument, Kernel, argument, nulls, unexpected};
use super::long::{find, text_pieces};
use super::similar::as_regex;
use super::texts::regexes::{Flags, compile};
use super::types::{Arg, Resolved, wrong_arguments};

/// Before a text of this length the query is asked whether it goes on.
const LONG_BYTES: usize = 1 << 16;
/// The longest piece that compiled code looks for: it compares it anew at each place where its
/// first and last bytes fit.
const CODED_BYTES_MAX: usize = 64;
/// A compiled regular expression may take this much memory.
const REGEX_BYTES_MAX: usize = 10 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Like,
    Regex,
    Similar,
}

/// Types a pattern match; none when the name is not one.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<Resolved>> {
    let (language, ignore_case) = match name {
        "like" => (Language::Like, false),
        "ilike" => (Language::Like, true),
        "regex" => (Language::Regex, false),
        "iregex" => (Language::Regex, true),
        "similar" => (Language::Similar, false),
        _ => return None,
    };
    let most = if language == Language::Regex { 2 } else { 3 };
    if args.len() < 2 || args.len() > most || args.iter().any(|arg| !is_text(arg.atom)) {
        return Some(Err(wrong_arguments(name, args, "it takes a string and a pattern")));
    }
    let mut kernel = Match { language, ignore_case, compiled: None };
    let constant = |index: usize| -> Option<String> {
        let value = args.get(index)?.value.as_ref()?;
        let value = value.as_string_view_opt()?;
        value.is_valid(0).then(|| value.value(0).to_string())
    };
    if let Some(pattern) = constant(1)
        && (args.len() == 2 || constant(2).is_some())
    {
        kernel.compiled = kernel.compile(&pattern, constant(2).as_deref()).ok();
    }
    let cost = match &kernel.compiled {
        Some(Pattern::Like(_)) => 10,
        Some(Pattern::Regex(_) | Pattern::Unfinished(_)) => 50,
        None => 1_000,
    };
    let raises = matches!(kernel.compiled, None | Some(Pattern::Unfinished(_)));
    let casts = vec![Atom::String; args.len()];
    Some(Ok(Resolved::strict(Atom::Boolean, args, casts, kernel).raising(raises).costing(cost)))
}

fn is_text(atom: &Atom) -> bool {
    matches!(atom, Atom::String | Atom::Null)
}

#[derive(Debug)]
enum Pattern {
    Like(Box<Like>),
    Regex(Regex),
    Unfinished(Unfinished),
}

impl Pattern {
    /// # Errors
    /// The text reaches the end of a pattern that ends with its escape.
    fn try_matches(&self, text: &str, ignore_case: bool) -> Result<bool> {
        match self {
            Pattern::Unfinished(pattern) if ignore_case => pattern.matches(&folded(text)),
            Pattern::Unfinished(pattern) => pattern.matches(text),
            pattern => Ok(pattern.matches(text, ignore_case)),
        }
    }

    fn matches(&self, text: &str, ignore_case: bool) -> bool {
        if text.len() >= LONG_BYTES {
            point();
        }
        match self {
            Pattern::Like(like) if ignore_case => like.matches(&folded(text)),
            Pattern::Like(like) => like.matches(text),
            Pattern::Regex(regex) => regex.is_match(text),
            Pattern::Unfinished(_) => false,
        }
    }
}

/// A text in lower case, character by character: those that would become several stay, so that `_`
/// is one.
fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text_pieces(text).for_each(|piece| fold(piece, &mut out));
    out
}

fn fold(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.push_str(&text.to_ascii_lowercase());
        return;
    }
    let lower = |character: char| {
        let mut lower = character.to_lowercase();
        if lower.len() == 1 { lower.next().unwrap_or(character) } else { character }
    };
    out.extend(text.chars().map(lower));
}

#[derive(Debug)]
struct Match {
    language: Language,
    ignore_case: bool,
    compiled: Option<Pattern>,
}

impl Match {
    fn compile(&self, pattern: &str, escape: Option<&str>) -> Result<Pattern> {
        match self.language {
            Language::Like if self.ignore_case => {
                let escape = escape.map(folded);
                like_pattern(&folded(pattern), escape.as_deref())
            }
            Language::Like => like_pattern(pattern, escape),
            Language::Regex => {
                compile(pattern, Flags::ignoring_case(self.ignore_case)).map(Pattern::Regex)
            }
            Language::Similar => self.regex(&as_regex(pattern, escape)?, pattern),
        }
    }

    /// A regular expression that SIMILAR TO has become.
    fn regex(&self, regex: &str, pattern: &str) -> Result<Pattern> {
        RegexBuilder::new(regex)
            .case_insensitive(self.ignore_case)
            .size_limit(REGEX_BYTES_MAX)
            .build()
            .map(Pattern::Regex)
            .map_err(|error| {
                Error::data(format!("invalid regular expression '{pattern}': {error}"))
                    .with_state(SqlState::INVALID_REGULAR_EXPRESSION)
            })
    }

    fn compile_row(&self, args: &[Argument], row: usize) -> Result<Option<Pattern>> {
        let text = |index: usize| -> Result<Option<&str>> {
            let argument = argument(args, index)?;
            let array = strings(argument)?;
            let at = argument.at(row);
            Ok(array.is_valid(at).then(|| array.value(at)))
        };
        let Some(pattern) = text(1)? else { return Ok(None) };
        let escape = match args.len() {
            3 => match text(2)? {
                None => return Ok(None),
                escape => escape,
            },
            _ => None,
        };
        self.compile(pattern, escape).map(Some)
    }
}

fn strings(argument: &Argument) -> Result<&StringViewArray> {
    argument.array.as_string_view_opt().ok_or_else(|| unexpected(&argument.array))
}

impl Kernel for Match {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        if args.iter().any(Argument::is_null_constant) {
            return Ok(nulls(&Atom::Boolean, rows));
        }
        let input = argument(args, 0)?;
        let texts = strings(input)?;
        // Where all texts are NULL, the pattern is not read: what is wrong with it raises nothing.
        if input.array.null_count() > 0 && (0..rows).all(|row| texts.is_null(input.at(row))) {
            return Ok(nulls(&Atom::Boolean, rows));
        }
        let constant = args[1..].iter().all(|argument| argument.constant);
        let once = match (&self.compiled, constant) {
            (None, true) => self.compile_row(args, 0)?,
            _ => None,
        };
        if let Some(pattern @ Pattern::Unfinished(_)) = self.compiled.as_ref().or(once.as_ref()) {
            let nulls: Vec<_> =
                args.iter().map(|argument| argument.array.logical_nulls()).collect();
            let is_null = |row: usize| {
                let mut each = args.iter().zip(&nulls);
                each.any(|(arg, nulls)| {
                    nulls.as_ref().is_some_and(|nulls| nulls.is_null(arg.at(row)))
                })
            };
            let row_matches = |row: usize| match is_null(row) {
                true => Ok(None),
                false => {
                    pattern.try_matches(texts.value(input.at(row)), self.ignore_case).map(Some)
                }
            };
            return Ok(Arc::new((0..rows).map(row_matches).collect::<Result<BooleanArray>>()?));
        }
        if let Some(pattern) = self.compiled.as_ref().or(once.as_ref()) {
            let matches = |row| pattern.matches(texts.value(input.at(row)), self.ignore_case);
            let validity = args
                .iter()
                .map(Argument::validity)
                .reduce(|a, b| NullBuffer::union(a.as_ref(), b.as_ref()));
            let values = BooleanBuffer::collect_bool(rows, matches);
            return Ok(Arc::new(BooleanArray::new(values, validity.flatten())));
        }
        let row_matches = |row| -> Result<Option<bool>> {
            let at = input.at(row);
            if texts.is_null(at) {
                return Ok(None);
            }
            let Some(pattern) = self.compile_row(args, row)? else { return Ok(None) };
            pattern.try_matches(texts.value(at), self.ignore_case).map(Some)
        };
        Ok(Arc::new((0..rows).map(row_matches).collect::<Result<BooleanArray>>()?))
    }

    fn code_of_texts(&self, texts: Vec<TextCode>) -> Option<Op> {
        let (Some(Pattern::Like(like)), false) = (&self.compiled, self.ignore_case) else {
            return None;
        };
        let [text, ..] = &texts[..] else { return None };
        let Some(last) = &like.last else {
            return Some(Op::SameText(Box::new([
                text.clone(),
                like.first.code()?.unwrap_or_else(nothing),
            ])));
        };
        Some(Op::Like(Box::new(LikeCode {
            text: text.clone(),
            first: like.first.code()?,
            middle: like.middle.iter().map(|piece| piece.code()?).collect::<Option<_>>()?,
            last: last.code()?,
        })))
    }
}

fn nothing() -> TextCode {
    TextCode::Constant("".into())
}

/// A LIKE pattern, compiled.
fn like_pattern(pattern: &str, escape: Option<&str>) -> Result<Pattern> {
    match Unfinished::new(pattern, escape) {
        Some(unfinished) => Ok(Pattern::Unfinished(unfinished)),
        None => Like::new(pattern, escape).map(Box::new).map(Pattern::Like),
    }
}

/// A pattern that ends with its escape: an error for a text that reaches its end, and for no other.
#[derive(Debug)]
struct Unfinished {
    pattern: String,
    items: Vec<Item>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Item {
    Any,
    One,
    Character(char),
    End,
}

impl Unfinished {
    fn new(pattern: &str, escape: Option<&str>) -> Option<Unfinished> {
        let mut marks = escape.unwrap_or("\\").chars();
        let (Some(escape), None) = (marks.next(), marks.next()) else { return None };
        let mut items = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            items.push(match character {
                c if c == escape => characters.next().map_or(Item::End, Item::Character),
                '%' => Item::Any,
                '_' => Item::One,
                c => Item::Character(c),
            });
        }
        (items.last() == Some(&Item::End))
            .then(|| Unfinished { pattern: pattern.to_string(), items })
    }

    fn matches(&self, text: &str) -> Result<bool> {
        let text: Vec<char> = text_pieces(text).flat_map(str::chars).collect();
        Ok(self.walk(&text, &self.items, &Every::default())? == Some(true))
    }

    /// Whether the items match the text; none where a longer text could not help.
    fn walk(&self, mut text: &[char], mut items: &[Item], every: &Every) -> Result<Option<bool>> {
        let ended = || {
            let pattern = &self.pattern;
            Error::new(
                Code::Data,
                format!("LIKE pattern '{pattern}' ends with its escape character"),
            )
            .with_state(SqlState::INVALID_ESCAPE_SEQUENCE)
        };
        while let ([first, rest_of_text @ ..], [item, rest_of_items @ ..]) = (text, items) {
            match item {
                Item::End => return Err(ended()),
                Item::Character(character) if character != first => return Ok(Some(false)),
                Item::Character(_) | Item::One => (text, items) = (rest_of_text, rest_of_items),
                Item::Any => {
                    items = rest_of_items;
                    while let [item @ (Item::Any | Item::One), rest @ ..] = items {
                        if *item == Item::One {
                            match text {
                                [] => return Ok(None),
                                [_, rest @ ..] => text = rest,
                            }
                        }
                        items = rest;
                    }
                    let wanted = match items {
                        [] => return Ok(Some(true)),
                        [Item::Character(wanted), ..] => *wanted,
                        _ => return Err(ended()),
                    };
                    for (start, character) in text.iter().enumerate() {
                        every.pass();
                        if *character == wanted {
                            match self.walk(&text[start..], items, every)? {
                                Some(false) => {}
                                other => return Ok(other),
                            }
                        }
                    }
                    return Ok(None);
                }
            }
        }
        match text.is_empty() && items.iter().all(|item| *item == Item::Any) {
            true => Ok(Some(true)),
            // Where the text has ended and the pattern has not, a later beginning does not help.
            false => Ok((!text.is_empty()).then_some(false)),
        }
    }
}

/// A compiled LIKE pattern.
#[derive(Debug)]
struct Like {
    /// Must stand at the beginning; empty when the pattern begins with `%`.
    first: Piece,
    /// Found one after the other between the two.
    middle: Vec<Piece>,
    /// Must stand at the end; none when there is no `%`, and then the first piece is everything.
    last: Option<Piece>,
}

/// Part of a pattern between two `%`.
#[derive(Debug)]
enum Piece {
    /// Without `_`.
    Text(Box<Finder<'static>>),
    /// With `_`, which is none here.
    Characters(Vec<Option<char>>),
}

impl Like {
    /// # Errors
    /// The escape is not one character, or the pattern ends with it.
    fn new(pattern: &str, escape: Option<&str>) -> Result<Like> {
        let escape = match escape.map(|escape| escape.chars().collect::<Vec<_>>()).as_deref() {
            None => Some('\\'),
            Some([]) => None,
            Some([escape]) => Some(*escape),
            Some(_) => {
                return Err(Error::data("the escape of LIKE must be one character or empty")
                    .with_state(SqlState::INVALID_ESCAPE_SEQUENCE));
            }
        };
        let mut pieces = vec![Vec::new()];
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let item = match character {
                c if Some(c) == escape => Some(characters.next().ok_or_else(|| {
                    Error::new(
                        Code::Data,
                        format!("LIKE pattern '{pattern}' ends with its escape character"),
                    )
                    .with_state(SqlState::INVALID_ESCAPE_SEQUENCE)
                })?),
                '%' => {
                    pieces.push(Vec::new());
                    continue;
                }
                '_' => None,
                c => Some(c),
            };
            if let Some(piece) = pieces.last_mut() {
                piece.push(item);
            }
        }
        let mut pieces = pieces.into_iter().map(Piece::new);
        let first = pieces.next().unwrap_or(Piece::Characters(Vec::new()));
        let mut middle: Vec<Piece> = pieces.collect();
        let last = middle.pop();
        middle.retain(|piece| !piece.is_empty());
        Ok(Like { first, middle, last })
    }

    fn matches(&self, text: &str) -> bool {
        let Some(length) = self.first.at_start(text) else { return false };
        let mut rest = &text[length..];
        let Some(last) = &self.last else { return rest.is_empty() };
        let every = Every::default();
        for piece in &self.middle {
            every.pass();
            match piece.find(rest) {
                Some(end) => rest = &rest[end..],
                None => return false,
            }
        }
        last.at_end(rest)
    }
}

impl Piece {
    /// It for a compiler, if it is not empty; none where it has no code.
    fn code(&self) -> Option<Option<TextCode>> {
        match self {
            piece if piece.is_empty() => Some(None),
            Piece::Text(finder) if finder.needle().len() <= CODED_BYTES_MAX => {
                Some(Some(TextCode::Constant(std::str::from_utf8(finder.needle()).ok()?.into())))
            }
            _ => None,
        }
    }

    fn new(items: Vec<Option<char>>) -> Piece {
        match items.iter().copied().collect::<Option<String>>() {
            Some(text) => Piece::Text(Box::new(Finder::new(text.as_bytes()).into_owned())),
            None => Piece::Characters(items),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Piece::Text(finder) => finder.needle().is_empty(),
            Piece::Characters(items) => items.is_empty(),
        }
    }

    /// The bytes it takes at the beginning of `text`. Nothing is not compared: some processors take
    /// a hundred times as long for a comparison of no bytes at an address that is not mapped, which
    /// is where nothing stands.
    fn at_start(&self, text: &str) -> Option<usize> {
        match self {
            Piece::Text(finder) if finder.needle().is_empty() => Some(0),
            Piece::Text(finder) => {
                text.as_bytes().starts_with(finder.needle()).then_some(finder.needle().len())
            }
            Piece::Characters(items) => {
                let mut characters = text.chars();
                let fits = items
                    .iter()
                    .all(|item| characters.next().is_some_and(|c| item.is_none_or(|i| i == c)));
                fits.then(|| text.len() - characters.as_str().len())
            }
        }
    }

    /// Whether it stands at the end of `text`.
    fn at_end(&self, text: &str) -> bool {
        match self {
            Piece::Text(finder) => {
                finder.needle().is_empty() || text.as_bytes().ends_with(finder.needle())
            }
            Piece::Characters(items) => {
                let mut characters = text.chars().rev();
                items
                    .iter()
                    .rev()
                    .all(|item| characters.next().is_some_and(|c| item.is_none_or(|i| i == c)))
            }
        }
    }

    /// The end of its first place in `text`.
    fn find(&self, text: &str) -> Option<usize> {
        match self {
            Piece::Text(finder) => {
                find(finder, text.as_bytes()).map(|start| start + finder.needle().len())
            }
            Piece::Characters(_) => {
                let every = Every::default();
                text.char_indices().find_map(|(start, _)| {
                    every.pass();
                    self.at_start(&text[start..]).map(|length| start + length)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        Like::new(pattern, None).unwrap().matches(text)
    }

    #[test]
    fn patterns_match_as_in_sql() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("a", "", false),
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "%a%c%", true),
            ("abc", "%c%a%", false),
            ("aa", "a%a", true),
            ("a", "a%a", false),
            ("aba", "a%ba", true),
            ("ab", "_b", true),
            ("äb", "_b", true),
            ("ab", "__%", true),
            ("a", "__%", false),
            ("xaby", "%a_y", true),
            ("a%b", "a\\%b", true),
            ("axb", "a\\%b", false),
            ("abcabd", "%ab_", true),
            ("abcabd", "%a_c%d", true),
            ("special packages requests", "%special%requests%", true),
            ("line\nbreak", "line%break", true),
            ("äöü", "%_ö%", true),
        ] {
            assert_eq!(like(text, pattern), expected, "'{text}' like '{pattern}'");
        }
        assert!(Like::new("a\\", None).is_err());
        assert!(Like::new("a!%", Some("!")).unwrap().matches("a%"));
        assert!(Like::new("a\\", Some("")).unwrap().matches("a\\"));
        assert!(Like::new("a", Some("!!")).is_err());
    }
}
