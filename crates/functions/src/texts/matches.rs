//! Functions of regular expressions.

use regex::{Captures, Regex};

use tessera_context::interrupt::Every;
use tessera_types::{Atom, Error, Result, SqlState};

use super::regexes::{Flags, Last};
use super::split::texts;
use crate::long::{characters, place_of};
use crate::rowwise::{In, Out, fault, signature, strict, takes};
use crate::similar::as_pattern_parts;
use crate::types::{Arg, Resolved, wrong_arguments};

fn wrong(message: impl Into<String>) -> Error {
    fault(message, SqlState::INVALID_PARAMETER_VALUE)
}

/// Whether the arguments are those of `substring(text from pattern [for escape])`.
pub(super) fn is_pattern(args: &[Arg<'_>]) -> bool {
    matches!(args.len(), 2 | 3)
        && args.iter().all(|arg| matches!(arg.atom, Atom::String | Atom::Null))
        && args[1..].iter().all(|arg| *arg.atom == Atom::String)
}

/// `substring(text from pattern)`: what the first group matches, or all; with an escape, an SQL
/// pattern.
pub(super) fn part(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &vec![Atom::String; args.len()])?;
    let last = Last::default();
    Ok(strict(Atom::String, args, casts, move |given| {
        let (text, pattern) = (given[0].text(), given[1].text());
        if let Some(escape) = given.get(2) {
            let regex = as_pattern_parts(pattern, escape.text())?;
            let captures = regex.captures(text);
            let found = captures.and_then(|captures| {
                captures.name("part").or(captures.get(0)).map(|part| part.as_str().to_string())
            });
            return Ok(Out::from(found));
        }
        let regex = last.compile(pattern, Flags::default())?;
        let found = regex.captures(text).and_then(|captures| {
            let group = if regex.captures_len() > 1 { 1 } else { 0 };
            captures.get(group).map(|part| part.as_str().to_string())
        });
        Ok(Out::from(found))
    }))
}

/// Types `regexp_…`.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let last = Last::default();
    match name {
        "regexp_replace" => replace(name, args, last),
        "regexp_count" => {
            let casts = optional(name, args, 2, &[Atom::Int64, Atom::String])?;
            Ok(strict(Atom::Int64, args, casts, move |given| {
                let regex = last.compile(given[1].text(), flags(given.get(3), false)?)?;
                let (text, start) = from_start(given[0].text(), given.get(2))?;
                Ok(Out::Whole(all(&regex, text, start).count() as i64))
            }))
        }
        "regexp_substr" => {
            let rest = [Atom::Int64, Atom::Int64, Atom::String, Atom::Int64];
            let casts = optional(name, args, 2, &rest)?;
            Ok(strict(Atom::String, args, casts, move |given| {
                let regex = last.compile(given[1].text(), flags(given.get(4), false)?)?;
                let (text, start) = from_start(given[0].text(), given.get(2))?;
                let found = nth(&regex, (text, start), given.get(3), given.get(5))?;
                Ok(Out::from(found.map(|(start, end)| text[start..end].to_string())))
            }))
        }
        "regexp_instr" => {
            let rest = [Atom::Int64, Atom::Int64, Atom::Int64, Atom::String, Atom::Int64];
            let casts = optional(name, args, 2, &rest)?;
            Ok(strict(Atom::Int64, args, casts, move |given| {
                let at_end = match given.get(4).map_or(0, In::whole) {
                    0 => false,
                    1 => true,
                    other => {
                        return Err(wrong(format!(
                            "invalid value for parameter endoption: {other}"
                        )));
                    }
                };
                let regex = last.compile(given[1].text(), flags(given.get(5), false)?)?;
                let (text, start) = from_start(given[0].text(), given.get(2))?;
                let found = nth(&regex, (text, start), given.get(3), given.get(6))?;
                let place = found.map(|(start, end)| if at_end { end } else { start });
                Ok(Out::Whole(place.map_or(0, |place| characters(&text[..place]) as i64 + 1)))
            }))
        }
        "regexp_like" => {
            let casts = optional(name, args, 2, &[Atom::String])?;
            Ok(strict(Atom::Boolean, args, casts, move |given| {
                let regex = last.compile(given[1].text(), flags(given.get(2), false)?)?;
                Ok(Out::Boolean(regex.is_match(given[0].text())))
            }))
        }
        "regexp_match" => {
            let casts = optional(name, args, 2, &[Atom::String])?;
            Ok(strict(texts(), args, casts, move |given| {
                let regex = last.compile(given[1].text(), flags(given.get(2), false)?)?;
                let found = regex.captures(given[0].text());
                Ok(found.map_or(Out::Null, |captures| Out::Texts(groups(&regex, &captures))))
            }))
        }
        "regexp_split_to_array" => {
            let casts = optional(name, args, 2, &[Atom::String])?;
            Ok(strict(texts(), args, casts, move |given| {
                let regex = last.compile(given[1].text(), flags(given.get(2), false)?)?;
                Ok(Out::Texts(pieces(&regex, given[0].text())))
            }))
        }
        "regexp_full_match" => {
            let casts = optional(name, args, 2, &[Atom::String])?;
            Ok(strict(Atom::Boolean, args, casts, move |given| {
                let regex = last.compile(given[1].text(), flags(given.get(2), true)?.of_whole())?;
                Ok(Out::Boolean(regex.is_match(given[0].text())))
            }))
        }
        _ => extract(name, args, last),
    }
}

/// The types of arguments: texts, and so many of the others as there are.
fn optional(name: &str, args: &[Arg<'_>], texts: usize, rest: &[Atom]) -> Result<Vec<Atom>> {
    let mut wanted = vec![Atom::String; texts];
    wanted.extend(rest.iter().take(args.len().saturating_sub(texts)).cloned());
    signature(name, args, &wanted)
}

fn flags(given: Option<&In<'_>>, global: bool) -> Result<Flags> {
    let flags = given.map_or(Ok(Flags::default()), |text| Flags::read(text.text()))?;
    match flags.global && !global {
        true => Err(wrong("this function does not take the regular expression option \"g\"")),
        false => Ok(flags),
    }
}

/// A text and where the character stands from which it is searched; none behind its end.
fn from_start<'a>(text: &'a str, start: Option<&In<'_>>) -> Result<(&'a str, Option<usize>)> {
    let start = start.map_or(1, In::whole);
    if start < 1 {
        return Err(wrong(format!("invalid value for parameter start: {start}")));
    }
    let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
    Ok((text, place_of(text, skipped)))
}

/// All matches from a place on, also empty ones right behind others. What stands before the place
/// is seen by `^` and `\y`, but is part of no match.
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

/// Where the n-th match, or a group of it, begins and ends.
fn nth(
    regex: &Regex,
    (text, start): (&str, Option<usize>),
    number: Option<&In<'_>>,
    group: Option<&In<'_>>,
) -> Result<Option<(usize, usize)>> {
    let number = number.map_or(1, In::whole);
    if number < 1 {
        return Err(wrong(format!("invalid value for parameter n: {number}")));
    }
    let group = group.map_or(0, In::whole);
    if group < 0 {
        return Err(wrong(format!("invalid value for parameter subexpr: {group}")));
    }
    let skipped = usize::try_from(number - 1).unwrap_or(usize::MAX);
    let found = all(regex, text, start).nth(skipped);
    // Where there are no groups, the whole match is the first.
    let group = if regex.captures_len() == 1 && group == 1 { 0 } else { group };
    let group = usize::try_from(group).unwrap_or(usize::MAX);
    Ok(found.and_then(|captures| captures.get(group)).map(|part| (part.start(), part.end())))
}

/// What the groups have matched, or the whole where there are none.
fn groups(regex: &Regex, captures: &Captures<'_>) -> Vec<Option<String>> {
    let first = if regex.captures_len() > 1 { 1 } else { 0 };
    let group = |index: usize| captures.get(index).map(|part| part.as_str().to_string());
    (first..regex.captures_len()).map(group).collect()
}

/// The pieces between matches. An empty match at an end, or behind another match, separates
/// nothing.
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
fn replace(name: &str, args: &[Arg<'_>], last: Last) -> Result<Resolved> {
    let by_number = args.get(3).is_some_and(|arg| arg.atom.is_integer());
    let casts = match by_number {
        true => optional(name, args, 3, &[Atom::Int64, Atom::Int64, Atom::String])?,
        false => optional(name, args, 3, &[Atom::String])?,
    };
    Ok(strict(Atom::String, args, casts, move |given| {
        let letters = if by_number { given.get(5) } else { given.get(3) };
        if let (false, Some(letters)) = (by_number, letters)
            && letters.text().starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(wrong(format!(
                "invalid regular expression option: \"{}\"",
                letters.text()
            )));
        }
        let flags = flags(letters, true)?;
        let regex = last.compile(given[1].text(), flags)?;
        let (text, start) = from_start(given[0].text(), given.get(3).filter(|_| by_number))?;
        let number = match given.get(4) {
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
                filled(given[2].text(), &captures, &mut out);
                from = found.end();
            }
        }
        out.push_str(&text[from..]);
        Ok(Out::Text(out))
    }))
}

/// A replacement: `\1` is a group, `\&` the whole match, `\\` a backslash.
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
fn extract(name: &str, args: &[Arg<'_>], last: Last) -> Result<Resolved> {
    let all = name == "regexp_extract_all";
    let number =
        args.get(2).is_none_or(|group| takes(group, &Atom::Int64) && *group.atom != Atom::String);
    if !number {
        return Err(wrong_arguments(
            name,
            args,
            "it takes a text, a pattern and maybe the number of a group",
        ));
    }
    let casts = optional(name, args, 2, &[Atom::Int64, Atom::String])?;
    let atom = if all { texts() } else { Atom::String };
    Ok(strict(atom, args, casts, move |given| {
        let regex = last.compile(given[1].text(), flags(given.get(3), true)?)?;
        let group = usize::try_from(given.get(2).map_or(0, In::whole)).unwrap_or(usize::MAX);
        if group >= regex.captures_len() {
            return Err(wrong(format!("the pattern has no group {group}")));
        }
        let part = |captures: Captures<'_>| {
            captures.get(group).map_or("", |part| part.as_str()).to_string()
        };
        let (text, every) = (given[0].text(), Every::default());
        let matches = regex.captures_iter(text).inspect(|_| every.pass());
        Ok(match all {
            true => Out::Texts(matches.map(|captures| Some(part(captures))).collect()),
            false => Out::Text(regex.captures(text).map_or(String::new(), part)),
        })
    }))
}
