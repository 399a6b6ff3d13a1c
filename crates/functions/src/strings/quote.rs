//! Functions that quote text for SQL.

use tessera_types::{Atom, Result};

use super::keywords::is_keyword;
use tessera_values::rowwise::{InputValue, OutputValue, lenient, strict};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    if args.len() != 1
        || (name == "quote_ident" && !matches!(args[0].atom, Atom::String | Atom::Null))
    {
        return Err(wrong_arguments(name, args, "it takes one text"));
    }
    let casts = vec![Atom::String];
    Ok(match name {
        "quote_ident" => strict(Atom::String, args, casts, |arguments| {
            Ok(OutputValue::Text(ident(arguments[0].text())))
        }),
        "quote_literal" => strict(Atom::String, args, casts, |arguments| {
            Ok(OutputValue::Text(literal(arguments[0].text())))
        }),
        _ => lenient(Atom::String, args, casts, |arguments| {
            Ok(OutputValue::Text(match arguments[0] {
                InputValue::Null => "NULL".to_string(),
                value => literal(value.text()),
            }))
        }),
    })
}

/// Quotes a name if it needs quotes.
pub(super) fn ident(name: &str) -> String {
    let mut characters = name.chars();
    let plain = characters.next().is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    match plain && !is_keyword(name) {
        true => name.to_string(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Quotes a literal; with a backslash, it uses escape syntax.
pub(super) fn literal(text: &str) -> String {
    let prefix = if text.contains('\\') { "E" } else { "" };
    format!("{prefix}'{}'", text.replace('\'', "''").replace('\\', "\\\\"))
}
