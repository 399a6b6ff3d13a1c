//! Text in quotes, as SQL would read it.

use tessera_types::{Atom, Result};

use super::keywords::is_keyword;
use crate::rowwise::{In, Out, lenient, strict};
use crate::types::{Arg, Resolved, wrong_arguments};

pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    if args.len() != 1
        || (name == "quote_ident" && !matches!(args[0].atom, Atom::String | Atom::Null))
    {
        return Err(wrong_arguments(name, args, "it takes one text"));
    }
    let casts = vec![Atom::String];
    Ok(match name {
        "quote_ident" => {
            strict(Atom::String, args, casts, |given| Ok(Out::Text(ident(given[0].text()))))
        }
        "quote_literal" => {
            strict(Atom::String, args, casts, |given| Ok(Out::Text(literal(given[0].text()))))
        }
        _ => lenient(Atom::String, args, casts, |given| {
            Ok(Out::Text(match given[0] {
                In::Null => "NULL".to_string(),
                value => literal(value.text()),
            }))
        }),
    })
}

/// A name, in quotes where it needs them.
pub(super) fn ident(name: &str) -> String {
    let mut characters = name.chars();
    let plain = characters.next().is_some_and(|first| first.is_ascii_lowercase() || first == '_')
        && characters.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    match plain && !is_keyword(name) {
        true => name.to_string(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A literal; with a backslash in it, one with escapes.
pub(super) fn literal(text: &str) -> String {
    let prefix = if text.contains('\\') { "E" } else { "" };
    format!("{prefix}'{}'", text.replace('\'', "''").replace('\\', "\\\\"))
}
