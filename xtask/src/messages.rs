//! `cargo xtask messages`: writes every message of an error to `docs/reference/messages.md`.
//!
//! The page is a snapshot: a test fails when it is stale, so that each change of a message shows in
//! a review. The sources are scanned as text: a message is the string literal in a call that
//! creates an error, or in the statement that assigns the variable of the call.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use crate::files::each_source;

/// The page, below the root.
pub(crate) const PAGE: &str = "docs/reference/messages.md";

/// Calls that create an error, and the kind of it; `None` where the first argument names the kind.
const CALLS: [(&str, Option<&str>); 6] = [
    ("Error::semantic(", Some("semantic")),
    ("Error::unsupported(", Some("unsupported")),
    ("Error::data(", Some("data")),
    ("Error::io(", Some("io")),
    ("Error::internal(", Some("internal")),
    ("Error::new(", None),
];

/// Kinds, as in `Code`, with their printed names.
const KINDS: [(&str, &str); 10] = [
    ("Syntax", "syntax"),
    ("Semantic", "semantic"),
    ("Unsupported", "unsupported"),
    ("Overflow", "overflow"),
    ("DivisionByZero", "division_by_zero"),
    ("Data", "data"),
    ("Io", "io"),
    ("Limit", "limit"),
    ("Cancelled", "cancelled"),
    ("Internal", "internal"),
];

/// Writes the page.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let page = page(root)?;
    std::fs::write(root.join(PAGE), &page).map_err(|error| format!("{PAGE}: {error}"))?;
    Ok(format!("{PAGE}: {} messages", page.lines().filter(|line| line.starts_with("- ")).count()))
}

/// The text of the page.
pub(crate) fn page(root: &Path) -> Result<String, String> {
    let mut messages: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let crates = root.join("crates");
    each_source(&crates, &mut |path, text| {
        if !is_test(path.strip_prefix(&crates).unwrap_or(path)) {
            let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
            collect(text, &mut messages);
        }
    })?;
    let mut page = String::from(
        "# Messages\n\nEvery message of an error, by its kind ([errors](errors.md)). `{}` stands for \
         a value. The page is made by\n`cargo xtask messages`; a test fails when it is stale.\n",
    );
    for (_, kind) in KINDS {
        let Some(messages) = messages.get(kind) else { continue };
        let _ = write!(page, "\n## {kind}\n\n");
        for message in messages {
            let _ = writeln!(page, "- `{}`", message.replace('`', "'"));
        }
    }
    Ok(page)
}

/// Whether a source file does not ship.
fn is_test(path: &Path) -> bool {
    let names = path.components().filter_map(|part| part.as_os_str().to_str());
    let folders = ["tests", "examples", "testing"];
    path.to_string_lossy().ends_with("_tests.rs")
        || names.map(|name| name.trim_end_matches(".rs")).any(|name| folders.contains(&name))
}

fn collect(text: &str, messages: &mut BTreeMap<&str, BTreeSet<String>>) {
    for (call, kind) in CALLS {
        for (at, _) in text.match_indices(call) {
            let line = text[..at].rsplit('\n').next().unwrap_or_default();
            if line.trim_start().starts_with("//") {
                continue;
            }
            let argument = balanced(&text[at + call.len()..]);
            let Some(kind) = kind.or_else(|| kind_of(argument)) else { continue };
            let mut found = literals(argument);
            if found.is_empty() {
                found = assigned(&text[..at], argument);
            }
            messages.entry(kind).or_default().extend(found);
        }
    }
}

/// The printed name of the kind that the first argument names.
fn kind_of(argument: &str) -> Option<&'static str> {
    let first = argument.split(',').next()?.trim();
    let name = first.strip_prefix("Code::")?;
    KINDS.iter().find(|(known, _)| *known == name).map(|(_, printed)| *printed)
}

/// The text up to the parenthesis that closes what has been opened before it.
fn balanced(text: &str) -> &str {
    let (mut depth, mut at) = (1usize, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = string_end(bytes, at),
            // A character; a lifetime has no second quote two or three bytes on.
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\\') && bytes.get(at + 3) == Some(&b'\'') => {
                at += 3
            }
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[..at];
        }
        at += 1;
    }
    text
}

/// The position of the quote that ends the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at
}

/// The string literals with at least two words, values in braces as `{}`.
fn literals(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(start) = text[at..].find('"').map(|start| at + start) {
        let end = string_end(bytes, start).min(text.len());
        let message = plain(&text[start + 1..end]);
        if message.trim().contains(' ') {
            found.push(message);
        }
        at = (end + 1).min(text.len());
    }
    found
}

/// A literal as it is printed: continued lines joined, escapes resolved, values as `{}`.
fn plain(literal: &str) -> String {
    let mut out = String::new();
    let mut characters = literal.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('\n') => while characters.next_if(|c| c.is_whitespace()).is_some() {},
                Some('n') => out.push(' '),
                Some(other) => out.push(other),
                None => {}
            },
            '{' if characters.next_if_eq(&'{').is_some() => out.push('{'),
            '}' if characters.next_if_eq(&'}').is_some() => out.push('}'),
            '{' => {
                while characters.next().is_some_and(|c| c != '}') {}
                out.push_str("{}");
            }
            other => out.push(other),
        }
    }
    out
}

/// The literals of the last statement before a call that assigns a variable that the call's
/// argument names.
fn assigned(before: &str, argument: &str) -> Vec<String> {
    let names = argument.split(|c: char| !c.is_alphanumeric() && c != '_');
    let statements = names.filter(|name| !name.is_empty()).filter_map(|name| {
        ["let ", "let mut ", "("]
            .iter()
            .filter_map(|with| before.rfind(&format!("{with}{name} =")))
            .max()
    });
    let Some(start) = statements.max() else { return Vec::new() };
    let statement = &before[start..];
    // A statement ends at a semicolon at the end of a line; a match ends with `};`.
    let end = statement.find(";\n").map_or(statement.len(), |end| end + 1);
    let end = match statement[..end].matches('{').count() > statement[..end].matches('}').count() {
        true => statement.find("};\n").unwrap_or(end),
        false => end,
    };
    literals(&statement[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_not_stale() {
        let root = crate::root();
        let page = page(&root).unwrap();
        let written = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
        let differs = page.lines().zip(written.lines()).find(|(new, old)| new != old);
        assert!(page == written, "{PAGE} is stale ({differs:?}); run cargo xtask messages");
    }

    #[test]
    fn every_kind_is_listed() {
        let path = crate::root().join("crates/types/src/error.rs");
        let source = std::fs::read_to_string(path).unwrap();
        let (_, rest) = source.split_once("pub enum Code {\n").unwrap();
        let (body, _) = rest.split_once("\n}").unwrap();
        let lines = body.lines().map(|line| line.trim().trim_end_matches(','));
        let kinds: Vec<&str> = lines.filter(|line| !line.starts_with("//")).collect();
        assert_eq!(kinds, KINDS.map(|(kind, _)| kind), "KINDS and Code in crates/types differ");
        for (kind, printed) in KINDS {
            assert!(
                source.contains(&format!("Code::{kind} => \"{printed}\"")),
                "{kind}: {printed}"
            );
        }
    }

    #[test]
    fn messages_are_found_in_calls_and_before_them() {
        let text = r#"
            return Err(Error::semantic(format!("unknown column {name}; {}", hint(')'))));
            let message = format!("two \
                lines of {text:?}");
            Error::new(Code::Limit, message).at(place)
            // Error::data("not a call")
            Error::io("cannot")"#;
        let mut found = BTreeMap::new();
        collect(text, &mut found);
        let of = |kind: &str| found.get(kind).map(|set| set.iter().cloned().collect::<Vec<_>>());
        assert_eq!(of("semantic").unwrap(), ["unknown column {}; {}"]);
        assert_eq!(of("limit").unwrap(), ["two lines of {}"]);
        assert_eq!(of("data"), None);
        assert_eq!(of("io").unwrap(), [""; 0]);
    }
}
