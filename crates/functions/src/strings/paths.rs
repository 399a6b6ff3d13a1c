//! DuckDB's functions on paths and URLs.

use std::fmt::Write;

use tessera_types::{Atom, Result, SqlState};

use super::split::texts;
use tessera_values::rowwise::{InputValue, OutputValue, fault, signature, strict};
use tessera_values::types::{Arg, ResolvedCall};

/// `parse_filename(path [, without extension] [, separator])`: what is after the last separator.
pub(super) fn file_name(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = match args {
        [_, second] if *second.atom == Atom::String => {
            signature(name, args, &[Atom::String, Atom::String])?
        }
        _ => {
            let wanted = [Atom::String, Atom::Boolean, Atom::String];
            signature(name, args, &wanted[..args.len().clamp(1, 3)])?
        }
    };
    Ok(strict(Atom::String, args, casts, |arguments| {
        let path = arguments[0].text();
        let trims = matches!(arguments.get(1), Some(InputValue::Boolean(true)));
        let separators = separators(arguments.get(1..).unwrap_or_default())?;
        let file = path.rsplit(separators).next().unwrap_or(path);
        let end = if trims { file.rfind('.') } else { None };
        Ok(OutputValue::Text(file[..end.unwrap_or(file.len())].to_string()))
    }))
}

/// `parse_dirname(path [, separator])`: the first part of a path, or its root.
pub(super) fn first_directory(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    of_path(name, args, Atom::String, |path, separators| {
        let end = path.find(separators).map_or(0, |at| at.max(1));
        OutputValue::Text(path[..end].to_string())
    })
}

/// `parse_dirpath(path [, separator])`: what is before the last separator.
pub(super) fn directories(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    of_path(name, args, Atom::String, |path, separators| {
        let end = match path.rfind(separators) {
            Some(0) if path.len() == 1 => 1,
            found => found.unwrap_or(0),
        };
        OutputValue::Text(path[..end].to_string())
    })
}

/// `parse_path(path [, separator])`: the parts of a path, its root first.
pub(super) fn parts(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    of_path(name, args, texts(), |path, separators| {
        let root = path.starts_with(separators).then(|| path[..1].to_string());
        let parts = path.split(separators).filter(|part| !part.is_empty()).map(str::to_string);
        OutputValue::Texts(root.into_iter().chain(parts).map(Some).collect())
    })
}

fn of_path(
    name: &str,
    args: &[Arg<'_>],
    atom: Atom,
    function: impl Fn(&str, &'static [char]) -> OutputValue + Send + Sync + 'static,
) -> Result<ResolvedCall> {
    let wanted = [Atom::String, Atom::String];
    let casts = signature(name, args, &wanted[..args.len().clamp(1, 2)])?;
    Ok(strict(atom, args, casts, move |arguments| {
        let separators = separators(arguments.get(1..).unwrap_or_default())?;
        Ok(function(arguments[0].text(), separators))
    }))
}

/// Returns the characters that separate the parts of a path, by the last argument if it is a text.
fn separators(arguments: &[InputValue<'_>]) -> Result<&'static [char]> {
    let Some(InputValue::Text(word)) = arguments.last() else { return Ok(&['/', '\\']) };
    Ok(match *word {
        "both_slash" => &['/', '\\'],
        "forward_slash" | "system" => &['/'],
        "backslash" => &['\\'],
        other => {
            let message = format!(
                "unknown separator of paths '{other}'; expected both_slash, forward_slash, backslash or system"
            );
            return Err(fault(message, SqlState::INVALID_PARAMETER_VALUE));
        }
    })
}

/// `url_encode(text)`: all bytes but letters, digits and `-_.~` as `%` and two hexadecimal digits.
pub(super) fn url_encode(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String])?;
    Ok(strict(Atom::String, args, casts, |arguments| {
        let text = arguments[0].text();
        let mut out = String::with_capacity(text.len());
        for byte in text.bytes() {
            match byte {
                b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
                _ if byte.is_ascii_alphanumeric() => out.push(byte.into()),
                // Writing to a string does not fail.
                _ => drop(write!(out, "%{byte:02X}")),
            }
        }
        Ok(OutputValue::Text(out))
    }))
}

/// `url_decode(text)`; a `%` without two hexadecimal digits stays.
pub(super) fn url_decode(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String])?;
    Ok(strict(Atom::String, args, casts, |arguments| {
        let text = arguments[0].text();
        let mut rest = text.as_bytes();
        let mut out = Vec::with_capacity(rest.len());
        while let [first, after @ ..] = rest {
            let byte = match (first, after) {
                (b'%', [high, low, ..]) => hexadecimal(*high).zip(hexadecimal(*low)),
                _ => None,
            };
            out.push(byte.map_or(*first, |(high, low)| high << 4 | low));
            rest = if byte.is_some() { &after[2..] } else { after };
        }
        String::from_utf8(out).map(OutputValue::Text).map_err(|_| {
            let message = format!("url_decode: the decoded bytes of '{text}' are not valid UTF-8");
            fault(message, SqlState::CHARACTER_NOT_IN_REPERTOIRE)
        })
    }))
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use tessera_plan::{Expr, Scalar};

    use crate::testing::{call, constant};

    fn text(function: &str, args: &[&str]) -> String {
        let args: Vec<Expr> = args.iter().map(|arg| Expr::string(arg)).collect();
        match constant(&call(function, args)) {
            Ok(Scalar::String(text)) => text.to_string(),
            Ok(Scalar::Nested(parts)) => format!("{parts:?}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn parts_of_paths() {
        for (path, file, first, directories) in [
            ("path/to/file.csv", "file.csv", "path", "path/to"),
            ("/a/b", "b", "/", "/a"),
            ("file", "file", "", ""),
            ("", "", "", ""),
            ("/", "", "/", "/"),
            ("//a", "a", "/", "/"),
            ("a\\b", "b", "a", "a"),
        ] {
            assert_eq!(text("parse_filename", &[path]), file, "{path}");
            assert_eq!(text("parse_dirname", &[path]), first, "{path}");
            assert_eq!(text("parse_dirpath", &[path]), directories, "{path}");
        }
        assert_eq!(text("parse_filename", &["a\\b/c", "backslash"]), "b/c");
        let trimmed = call("parse_filename", [Expr::string("a/b.c.d"), Expr::boolean(true)]);
        assert_eq!(constant(&trimmed).unwrap(), Scalar::String("b.c".into()));
        assert!(text("parse_path", &["a", "x"]).contains("unknown separator of paths 'x'"));
    }

    #[test]
    fn urls() {
        assert_eq!(text("url_encode", &["é ~-_./"]), "%C3%A9%20~-_.%2F");
        assert_eq!(text("url_decode", &["%C3%a9+%20%%zz%2"]), "é+ %%zz%2");
        assert!(text("url_decode", &["%ff"]).contains("not valid UTF-8"));
    }
}
