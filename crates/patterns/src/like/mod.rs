//! Pattern matching: `like`, `ilike`, `regex`, `iregex`, `similar`.

mod dangling;
mod pattern;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};

use tessera_codegen::{LikeCode, Op, TextCode};
use tessera_context::interrupt::point;
use tessera_types::{Atom, Error, Result, SqlState};

use crate::pieces::text_pieces;
use crate::regex_search::{Regex, Syntax};
use crate::regexes::{Flags, compile};
use crate::similar::as_regex;
use tessera_values::kernel::{Argument, Kernel, argument, nulls, unexpected};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

use dangling::DanglingEscape;
use pattern::Like;

/// The text length from which matching first checks for cancellation.
const LONG_BYTES: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Like,
    Regex,
    Similar,
}

/// Resolves a pattern match; `None` for other names.
pub fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
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
        Some(Pattern::Regex(_) | Pattern::DanglingEscape(_)) => 50,
        None => 1_000,
    };
    let raises = matches!(kernel.compiled, None | Some(Pattern::DanglingEscape(_)));
    let casts = vec![Atom::String; args.len()];
    Some(Ok(ResolvedCall::strict(Atom::Boolean, args, casts, kernel).raising(raises).costing(cost)))
}

fn is_text(atom: &Atom) -> bool {
    matches!(atom, Atom::String | Atom::Null)
}

#[derive(Debug)]
enum Pattern {
    Like(Box<Like>),
    Regex(Regex),
    DanglingEscape(DanglingEscape),
}

impl Pattern {
    /// Like [`Pattern::matches`], for patterns that may fail.
    ///
    /// # Errors
    /// A pattern ends with its escape character, and matching reaches that end.
    fn try_matches(&self, text: &str, ignore_case: bool) -> Result<bool> {
        match self {
            Pattern::DanglingEscape(pattern) if ignore_case => pattern.matches(&lower_case(text)),
            Pattern::DanglingEscape(pattern) => pattern.matches(text),
            pattern => Ok(pattern.matches(text, ignore_case)),
        }
    }

    fn matches(&self, text: &str, ignore_case: bool) -> bool {
        if text.len() >= LONG_BYTES {
            point();
        }
        match self {
            Pattern::Like(like) if ignore_case => like.matches(&lower_case(text)),
            Pattern::Like(like) => like.matches(text),
            Pattern::Regex(regex) => regex.is_match(text),
            Pattern::DanglingEscape(_) => false,
        }
    }
}

/// Converts a text to lower case. Characters that would become several stay unchanged, so that `_`
/// still matches each as one.
fn lower_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text_pieces(text).for_each(|piece| push_lower_case(piece, &mut out));
    out
}

fn push_lower_case(text: &str, out: &mut String) {
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
                let escape = escape.map(lower_case);
                like_pattern(&lower_case(pattern), escape.as_deref())
            }
            Language::Like => like_pattern(pattern, escape),
            Language::Regex => {
                compile(pattern, Flags::ignoring_case(self.ignore_case)).map(Pattern::Regex)
            }
            Language::Similar => self.regex(&as_regex(pattern, escape)?, pattern),
        }
    }

    /// Compiles the regular expression of a SIMILAR TO pattern.
    fn regex(&self, regex: &str, pattern: &str) -> Result<Pattern> {
        let syntax = Syntax { ignore_case: self.ignore_case, ..Syntax::default() };
        Regex::new(regex, syntax).map(Pattern::Regex).map_err(|error| {
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
        // If all texts are NULL, the pattern is not compiled, so an invalid one raises no error.
        if input.array.null_count() > 0 && (0..rows).all(|row| texts.is_null(input.at(row))) {
            return Ok(nulls(&Atom::Boolean, rows));
        }
        let constant = args[1..].iter().all(|argument| argument.constant);
        let compiled_once = match (&self.compiled, constant) {
            (None, true) => self.compile_row(args, 0)?,
            _ => None,
        };
        if let Some(pattern @ Pattern::DanglingEscape(_)) =
            self.compiled.as_ref().or(compiled_once.as_ref())
        {
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
        if let Some(pattern) = self.compiled.as_ref().or(compiled_once.as_ref()) {
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
            return Some(Op::TextEquals(Box::new([
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

/// Compiles a LIKE pattern.
fn like_pattern(pattern: &str, escape: Option<&str>) -> Result<Pattern> {
    match DanglingEscape::new(pattern, escape) {
        Some(dangling) => Ok(Pattern::DanglingEscape(dangling)),
        None => Like::new(pattern, escape).map(Box::new).map(Pattern::Like),
    }
}
