//! Regular expression functions.

use regex::{Captures, Regex};

use tessera_context::interrupt::Every;
use tessera_types::{Atom, Error, Result, SqlState};

use super::regexes::{Flags, RegexCache};
use super::split::texts;
use crate::long_strings::{characters, place_of};
use crate::rowwise::{InputValue, OutputValue, fault, signature, strict, takes};
use crate::similar::as_pattern_parts;
use crate::types::{Arg, ResolvedCall, wrong_arguments};

fn wrong(message: impl Into<String>) -> Error {
    fault(message, SqlState::INVALID_PARAMETER_VALUE)
}

/// Whether the arguments match `substring(text from pattern [for escape])`.
pub(super) fn is_pattern(args: &[Arg<'_>]) -> bool {
    matches!(args.len(), 2 | 3)
        && args.iter().all(|arg| matches!(arg.atom, Atom::String | Atom::Null))
        && args[1..].iter().all(|arg| *arg.atom == Atom::String)
}

/// `substring(text from pattern)`: the match of the first group, or the whole match. With an
/// escape, the pattern is an SQL pattern.
pub(super) fn part(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &vec![Atom::String; args.len()])?;
    let cache = RegexCache::default();
    Ok(strict(Atom::String, args, casts, move |arguments| {
        let (text, pattern) = (arguments[0].text(), arguments[1].text());
        if let Some(escape) = arguments.get(2) {
            let regex = as_pattern_parts(pattern, escape.text())?;
            let captures = regex.captures(text);
            let found = captures.and_then(|captures| {
                captures.name("part").or(captures.get(0)).map(|part| part.as_str().to_string())
            });
            return Ok(OutputValue::from(found));
        }
        let regex = cache.compile(pattern, Flags::default())?;
        let found = regex.captures(text).and_then(|captures| {
            let group = if regex.captures_len() > 1 { 1 } else { 0 };
            captures.get(group).map(|part| part.as_str().to_string())
        });
        Ok(OutputValue::from(found))
    }))
}

/// Resolves the `regexp_…` functions.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let cache = RegexCache::default();
    match name {
        "regexp_replace" => replace(name, args, cache),
        "regexp_count" => {
            let casts = optional(name, args, 2, &[Atom::Int64, Atom::String])?;
            Ok(strict(Atom::Int64, args, casts, move |arguments| {
                let regex = cache.compile(arguments[1].text(), flags(arguments.get(3), false)?)?;
                let (text, start) = from_start(arguments[0].text(), arguments.get(2))?;
                Ok(OutputValue::Whole(all(&regex, text, start).count() as i64))
            }))
        }
        "regexp_substr" => {
            let rest = [Atom::Int64, Atom::Int64, Atom::String, Atom::Int64];
            let casts = optional(name, args, 2, &rest)?;
            Ok(strict(Atom::String, args, casts, move |arguments| {
                let regex = cache.compile(arguments[1].text(), flags(arguments.get(4), false)?)?;
                let (text, start) = from_start(arguments[0].text(), arguments.get(2))?;
                let found = nth(&regex, (text, start), arguments.get(3), arguments.get(5))?;
                Ok(OutputValue::from(found.map(|(start, end)| text[start..end].to_string())))
            }))
        }
        "regexp_instr" => {
            let rest = [Atom::Int64, Atom::Int64, Atom::Int64, Atom::String, Atom::Int64];
            let casts = optional(name, args, 2, &rest)?;
            Ok(strict(Atom::Int64, args, casts, move |arguments| {
                let at_end = match arguments.get(4).map_or(0, InputValue::whole) {
                    0 => false,
                    1 => true,
                    other => {
                        return Err(wrong(format!(
                            "invalid value for parameter endoption: {other}"
                        )));
                    }
                };
                let regex = cache.compile(arguments[1].text(), flags(arguments.get(5), false)?)?;
                let (text, start) = from_start(arguments[0].text(), arguments.get(2))?;
                let found = nth(&regex, (text, start), arguments.get(3), arguments.get(6))?;
                let place = found.map(|(start, end)| if at_end { end } else { start });
                Ok(OutputValue::Whole(
                    place.map_or(0, |place| characters(&text[..place]) as i64 + 1),
                ))
            }))
        }
        "regexp_like" => {
            let casts = optional(name, args, 2, &[Atom::String])?;
            Ok(strict(Atom::Boolean, args, casts, move |arguments| {
                let regex = cache.compile(arguments[1].text(), flags(arguments.get(2), false)?)?;
                Ok(OutputValue::Boolean(regex.is_match(arguments[0].text())))
            }))
        }
        "regexp_match" => {
            let casts = optional(name, args, 2, &[Atom::String])?;
            Ok(strict(texts(), args, casts, move |arguments| {
                let regex = cache.compile(arguments[1].text(), flags(arguments.get(2), false)?)?;
                let found = regex.captures(arguments[0].text());
                Ok(found.map_or(OutputValue::Null, |captures| {
                    OutputValue::Texts(groups(&regex, &captures))
                }))
            }))
        }
        "regexp_split_to_array" => {
            let casts = optional(name, args, 2, &[Atom::String])?;
            Ok(strict(texts(), args, casts, move |arguments| {
                let regex = cache.compile(arguments[1].text(), flags(arguments.get(2), false)?)?;
                Ok(OutputValue::Texts(pieces(&regex, arguments[0].text())))
            }))
        }
        "regexp_full_match" => {
            let casts = optional(name, args, 2, &[Atom::String])?;
            Ok(strict(Atom::Boolean, args, casts, move |arguments| {
                let regex = cache
                    .compile(arguments[1].text(), flags(arguments.get(2), true)?.of_whole())?;
                Ok(OutputValue::Boolean(regex.is_match(arguments[0].text())))
            }))
        }
        _ => extract(name, args, cache),
    }
}

/// The parameter types: `texts` strings, then as many optional ones as there are arguments.
fn optional(name: &str, args: &[Arg<'_>], texts: usize, rest: &[Atom]) -> Result<Vec<Atom>> {
    let mut wanted = vec![Atom::String; texts];
    wanted.extend(rest.iter().take(args.len().saturating_sub(texts)).cloned());
    signature(name, args, &wanted)
}

fn flags(arguments: Option<&InputValue<'_>>, global: bool) -> Result<Flags> {
    let flags = arguments.map_or(Ok(Flags::default()), |text| Flags::read(text.text()))?;
    match flags.global && !global {
        true => Err(wrong("this function does not take the regular expression option \"g\"")),
        false => Ok(flags),
    }
}

/// The text and the byte offset at which the search starts; `None` beyond the end.
fn from_start<'a>(
    text: &'a str,
    start: Option<&InputValue<'_>>,
) -> Result<(&'a str, Option<usize>)> {
    let start = start.map_or(1, InputValue::whole);
    if start < 1 {
        return Err(wrong(format!("invalid value for parameter start: {start}")));
    }
    let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
    Ok((text, place_of(text, skipped)))
}

/// All matches from an offset on, including empty ones right after others. `^` and `\y` see the
/// text before the offset, but no match includes it.
fn all<'a>(
    regex: &Regex,
    text: &'a str,
    start: Option<usize>,
) -> impl Iterator<Item = Captures<'a>> {
    let (mut next, every) = (start, Every::default());
    std::iter::from_fn(move || {
        every.pass();
        let captures = regex.captures_at(text, next?)?;
        let found = captures.get(0)?;
        let passed = text[found.end()..].chars().next();
        next = match found.is_empty() {
            true => passed.map(|passed| found.end() + passed.len_utf8()),
            false => Some(found.end()),
        };
        Some(captures)
    })
}

/// The byte range of the n-th match or of one of its groups.
fn nth(
    regex: &Regex,
    (text, start): (&str, Option<usize>),
    number: Option<&InputValue<'_>>,
    group: Option<&InputValue<'_>>,
) -> Result<Option<(usize, usize)>> {
    let number = number.map_or(1, InputValue::whole);
    if number < 1 {
        return Err(wrong(format!("invalid value for parameter n: {number}")));
    }
    let group = group.map_or(0, InputValue::whole);
    if group < 0 {
        return Err(wrong(format!("invalid value for parameter subexpr: {group}")));
    }
    let skipped = usize::try_from(number - 1).unwrap_or(usize::MAX);
    let found = all(regex, text, start).nth(skipped);
    // Without groups, group 1 is the whole match.
    let group = if regex.captures_len() == 1 && group == 1 { 0 } else { group };
    let group = usize::try_from(group).unwrap_or(usize::MAX);
    Ok(found.and_then(|captures| captures.get(group)).map(|part| (part.start(), part.end())))
}

/// The matches of all groups, or the whole match without groups.
fn groups(regex: &Regex, captures: &Captures<'_>) -> Vec<Option<String>> {
    let first = if regex.captures_len() > 1 { 1 } else { 0 };
    let group = |index: usize| captures.get(index).map(|part| part.as_str().to_string());
    (first..regex.captures_len()).map(group).collect()
}

/// The pieces between matches. An empty match at the end, or right after another match, does not
/// split.
fn pieces(regex: &Regex, text: &str) -> Vec<Option<String>> {
    let (mut out, every) = (Vec::new(), Every::default());
    let mut from = 0;
    for found in regex.find_iter(text) {
        every.pass();
        if found.is_empty() && (found.start() == text.len() || found.start() == from) {
            continue;
        }
        out.push(Some(text[from..found.start()].to_string()));
        from = found.end();
    }
    out.push(Some(text[from..].to_string()));
    out
}

/// `regexp_replace(text, pattern, replacement [, start [, n]] [, flags])`.
fn replace(name: &str, args: &[Arg<'_>], cache: RegexCache) -> Result<ResolvedCall> {
    let by_number = args.get(3).is_some_and(|arg| arg.atom.is_integer());
    let casts = match by_number {
        true => optional(name, args, 3, &[Atom::Int64, Atom::Int64, Atom::String])?,
        false => optional(name, args, 3, &[Atom::String])?,
    };
    Ok(strict(Atom::String, args, casts, move |arguments| {
        let letters = if by_number { arguments.get(5) } else { arguments.get(3) };
        if let (false, Some(letters)) = (by_number, letters)
            && letters.text().starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(wrong(format!(
                "invalid regular expression option: \"{}\"",
                letters.text()
            )));
        }
        let flags = flags(letters, true)?;
        let regex = cache.compile(arguments[1].text(), flags)?;
        let (text, start) =
            from_start(arguments[0].text(), arguments.get(3).filter(|_| by_number))?;
        let number = match arguments.get(4) {
            Some(number) if number.whole() < 0 => {
                return Err(wrong(format!("invalid value for parameter n: {}", number.whole())));
            }
            Some(number) => number.whole(),
            None if flags.global => 0,
            None => 1,
        };
        let mut out = String::new();
        let mut from = 0;
        for (index, captures) in all(&regex, text, start).enumerate() {
            let turn = index as i64 + 1;
            if number > 0 && turn > number {
                break;
            }
            let Some(found) = captures.get(0) else { continue };
            if number == 0 || turn == number {
                out.push_str(&text[from..found.start()]);
                filled(arguments[2].text(), &captures, &mut out);
                from = found.end();
            }
        }
        out.push_str(&text[from..]);
        Ok(OutputValue::Text(out))
    }))
}

/// Expands a replacement: `\1` is a group, `\&` the whole match, `\\` a backslash.
fn filled(replacement: &str, captures: &Captures<'_>, out: &mut String) {
    let mut characters = replacement.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('&') => out.push_str(&captures[0]),
            Some(digit @ '1'..='9') => {
                let group = digit as usize - '0' as usize;
                out.push_str(captures.get(group).map_or("", |part| part.as_str()));
            }
            Some('\\') | None => out.push('\\'),
            Some(other) => out.extend(['\\', other]),
        }
    }
}

/// DuckDB's `regexp_extract(text, pattern [, group [, flags]])` and `regexp_extract_all`.
fn extract(name: &str, args: &[Arg<'_>], cache: RegexCache) -> Result<ResolvedCall> {
    let all = name == "regexp_extract_all";
    let number =
        args.get(2).is_none_or(|group| takes(group, &Atom::Int64) && *group.atom != Atom::String);
    if !number {
        return Err(wrong_arguments(
            name,
            args,
            "it takes a string, a pattern and an optional group number",
        ));
    }
    let casts = optional(name, args, 2, &[Atom::Int64, Atom::String])?;
    let atom = if all { texts() } else { Atom::String };
    Ok(strict(atom, args, casts, move |arguments| {
        let regex = cache.compile(arguments[1].text(), flags(arguments.get(3), true)?)?;
        let group =
            usize::try_from(arguments.get(2).map_or(0, InputValue::whole)).unwrap_or(usize::MAX);
        if group >= regex.captures_len() {
            return Err(wrong(format!("the pattern has no group {group}")));
        }
        let part = |captures: Captures<'_>| {
            captures.get(group).map_or("", |part| part.as_str()).to_string()
        };
        let (text, every) = (arguments[0].text(), Every::default());
        let matches = regex.captures_iter(text).inspect(|_| every.pass());
        Ok(match all {
            true => OutputValue::Texts(matches.map(|captures| Some(part(captures))).collect()),
            false => OutputValue::Text(regex.captures(text).map_or(String::new(), part)),
        })
    }))
}
