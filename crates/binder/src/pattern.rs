//! Pattern matches: LIKE, ILIKE, SIMILAR TO and regular expressions.

use sqlparser::ast::{
    Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments, Value, ValueWithSpan,
};
use tessera_functions::bytes::BYTES_TEXT;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState};

use super::list::is_called;
use super::row::any;
use super::typed::TypedExpr;
use super::{Binder, Place, unsupported_at};

/// A pattern match expression.
pub(super) struct Pattern<'q> {
    pub(super) function: &'static str,
    pub(super) negated: bool,
    /// Whether it is LIKE ANY.
    pub(super) any: bool,
    pub(super) value: &'q Ast,
    pub(super) pattern: &'q Ast,
    pub(super) escape: Option<&'q ValueWithSpan>,
}

impl Binder<'_> {
    pub(super) fn pattern(
        &mut self,
        written: Pattern<'_>,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let value = self.expr(written.value, place)?;
        let Some((patterns, all)) = several(&written)? else {
            let pattern = self.expr(written.pattern, place)?;
            return self.one_pattern(&written, value, pattern);
        };
        let value = self.once(value, place)?;
        let mut tests = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            let pattern = self.expr(pattern, place)?;
            tests.push(self.one_pattern(&written, value.clone(), pattern)?.expr);
        }
        Ok(TypedExpr::boolean(if all { Expr::all(tests) } else { any(tests) }))
    }

    fn one_pattern(
        &self,
        written: &Pattern<'_>,
        value: TypedExpr,
        pattern: TypedExpr,
    ) -> Result<TypedExpr> {
        let escape = match written.escape.map(|escape| &escape.value) {
            None => None,
            Some(Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text)) => {
                Some(text.as_str())
            }
            Some(Value::Null) => return Ok(TypedExpr::boolean(Expr::null(Atom::Boolean))),
            Some(other) => {
                return Err(Error::unsupported(format!("ESCAPE {other} is not supported")));
            }
        };
        let mut args = vec![value, pattern];
        match escape {
            None | Some("\\") => {}
            Some(text) if text.chars().count() == 1 && written.function != "similar" => {
                match (&args[1].expr, text.chars().next()) {
                    (Expr::Constant(Scalar::String(pattern), _), Some(mark)) => {
                        let unknown = args[1].unknown;
                        args[1] = TypedExpr {
                            unknown,
                            ..TypedExpr::text(&with_backslash(pattern, mark))
                        };
                    }
                    _ => args.push(TypedExpr::text(text)),
                }
            }
            Some(text) => args.push(TypedExpr::text(text)),
        }
        self.match_of(written.function, args, written.negated)
    }

    /// Applies a pattern operator such as `~` or `~~`.
    pub(super) fn pattern_operator(
        &self,
        function: &str,
        value: TypedExpr,
        pattern: TypedExpr,
        negated: bool,
    ) -> Result<TypedExpr> {
        self.match_of(function, vec![value, pattern], negated)
    }

    fn match_of(&self, function: &str, args: Vec<TypedExpr>, negated: bool) -> Result<TypedExpr> {
        let args = match args.iter().take(2).any(|arg| arg.atom == Atom::Bytes) {
            true => self.texts_of_bytes(function, args)?,
            false => {
                let is_text = |arg: &TypedExpr| matches!(arg.atom, Atom::String | Atom::Null);
                if let Some(other) = args.iter().find(|arg| !is_text(arg)) {
                    let message = format!(
                        "{} takes text, not {}; cast it to text",
                        shown(function),
                        other.atom
                    );
                    return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
                }
                let text = |arg: TypedExpr| match arg.is_null() {
                    true => self.cast_to(arg, &Atom::String, false),
                    false => Ok(arg.known()),
                };
                args.into_iter().map(text).collect::<Result<Vec<_>>>()?
            }
        };
        let args = match function {
            "like" | "ilike" => self.searched_keys(args)?,
            _ => args,
        };
        let call = self.call(function, args)?;
        Ok(call.negated_if(negated))
    }

    /// Converts the arguments of LIKE over bytes, where `_` matches one byte. As in PostgreSQL, a
    /// literal counts as bytes, and text cannot be compared with bytes.
    fn texts_of_bytes(&self, function: &str, args: Vec<TypedExpr>) -> Result<Vec<TypedExpr>> {
        if function != "like" {
            let message = format!("{} does not take bytes; use LIKE", shown(function));
            return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
        }
        let text = |arg: TypedExpr| match &arg.atom {
            Atom::Bytes => self.call(BYTES_TEXT, vec![arg]),
            Atom::Null => self.cast_to(arg, &Atom::String, false),
            _ => match arg.literal() {
                // Each byte of the literal is a character of the pattern.
                Some(text) => {
                    Ok(TypedExpr::text(&text.bytes().map(char::from).collect::<String>()))
                }
                None if matches!(arg.expr, Expr::Constant(..)) => Ok(arg),
                None => {
                    let message = "LIKE cannot compare bytes with text; cast one of them";
                    Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION))
                }
            },
        };
        args.into_iter().map(text).collect()
    }
}

fn shown(function: &str) -> &str {
    match function {
        "like" => "LIKE",
        "ilike" => "ILIKE",
        "similar" => "SIMILAR TO",
        "regex" => "~",
        "iregex" => "~*",
        other => other,
    }
}

/// Returns the patterns of `LIKE ANY (ARRAY[…])` or `ALL`, and whether it is ALL; `None` for a
/// single pattern.
fn several<'q>(written: &Pattern<'q>) -> Result<Option<(Vec<&'q Ast>, bool)>> {
    let (all, list) = match written.pattern {
        list if written.any => (false, list),
        Ast::Function(function) => {
            let all = is_called(function, "all");
            if !all && !is_called(function, "any") && !is_called(function, "some") {
                return Ok(None);
            }
            let FunctionArguments::List(list) = &function.args else { return Ok(None) };
            let [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] = &list.args[..] else {
                return Ok(None);
            };
            (all, list)
        }
        _ => return Ok(None),
    };
    match patterns(list) {
        Some(patterns) => Ok(Some((patterns, all))),
        None => Err(unsupported_at("LIKE ANY or ALL of anything but a list constructor", list)),
    }
}

fn patterns(list: &Ast) -> Option<Vec<&Ast>> {
    match list {
        Ast::Array(array) => Some(array.elem.iter().collect()),
        Ast::Tuple(patterns) => Some(patterns.iter().collect()),
        Ast::Nested(inner) => patterns(inner).or_else(|| Some(vec![inner])),
        _ => None,
    }
}

/// Rewrites a pattern so that a backslash is its escape character.
fn with_backslash(pattern: &str, escape: char) -> String {
    let mut out = String::with_capacity(pattern.len() + 2);
    let mut chars = pattern.chars();
    while let Some(next) = chars.next() {
        if next == escape {
            out.push('\\');
            out.extend(chars.next());
        } else if next == '\\' {
            out.push_str("\\\\");
        } else {
            out.push(next);
        }
    }
    out
}

/// Returns the regular expression of a pattern with `*`, `?` and sets of characters.
pub(super) fn regex_of_glob(pattern: &str) -> String {
    let mut regex = String::from("^");
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        rest = &rest[next.len_utf8()..];
        match (next, rest.get(1..).and_then(|after| after.find(']'))) {
            ('*', _) => regex.push_str(".*"),
            ('?', _) => regex.push('.'),
            ('[', Some(end)) => {
                let (set, after) = rest.split_at(end + 1);
                let (negation, set) = match set.strip_prefix('!') {
                    Some(set) => ("^", set),
                    None => ("", set),
                };
                regex.push_str(&format!("[{negation}{}]", set.replace('\\', "\\\\")));
                rest = &after[1..];
            }
            (letter, _) if letter.is_alphanumeric() || letter == '_' => regex.push(letter),
            (sign, _) => {
                regex.push('\\');
                regex.push(sign);
            }
        }
    }
    regex.push('$');
    regex
}
