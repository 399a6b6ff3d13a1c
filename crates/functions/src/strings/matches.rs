//! Regular expression functions.

use std::ops::Range;

use tessera_context::interrupt::Every;
use tessera_types::{Atom, Error, Result, SqlState};

use super::split::texts;
use tessera_patterns::pieces::{characters, place_of};
use tessera_patterns::regex_search::{Regex, Search};
use tessera_patterns::regexes::{Flags, RegexCache};
use tessera_patterns::similar::as_pattern_parts;
use tessera_values::rowwise::{InputValue, OutputValue, fault, signature, strict, takes};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

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
            return Ok(first_group(&as_pattern_parts(pattern, escape.text())?, text));
        }
        let regex = cache.compile(pattern, Flags::default())?;
        Ok(first_group(&regex, text))
    }))
}

/// The first group of the first match, or the whole match without groups.
fn first_group(regex: &Regex, text: &str) -> OutputValue {
    let mut search = regex.search(text);
    let found = search.groups_at(0).and_then(|_| search.group_text(first(regex)));
    OutputValue::from(found.map(String::from))
}

/// The first group to return: the whole match, if there are no groups.
fn first(regex: &Regex) -> usize {
    usize::from(regex.groups() > 1)
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
                let mut matches = Matches::new(&regex, text, start);
                Ok(OutputValue::Whole(std::iter::from_fn(|| matches.next()).count() as i64))
            }))
        }
        "regexp_substr" => {
            let rest = [Atom::Int64, Atom::Int64, Atom::String, Atom::Int64];
            let casts = optional(name, args, 2, &rest)?;
            Ok(strict(Atom::String, args, casts, move |arguments| {
                let regex = cache.compile(arguments[1].text(), flags(arguments.get(4), false)?)?;
                let (text, start) = from_start(arguments[0].text(), arguments.get(2))?;
                let found = nth(&regex, (text, start), arguments.get(3), arguments.get(5))?;
                Ok(OutputValue::from(found.map(|part| text[part].to_string())))
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
                let place = found.map(|part| if at_end { part.end } else { part.start });
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
                let mut search = regex.search(arguments[0].text());
                let found = search.groups_at(0);
                let group = |index| search.group_text(index).map(String::from);
                let groups = || (first(&regex)..regex.groups()).map(group).collect();
                Ok(found.map_or(OutputValue::Null, |_| OutputValue::Texts(groups())))
            }))
        }
        "regexp_split_to_array" => {
            let casts = optional(name, args, 2, &[Atom::String])?;
            Ok(strict(texts(), args, casts, move |arguments| {
                let regex = cache.compile(arguments[1].text(), flags(arguments.get(2), false)?)?;
                Ok(OutputValue::Texts(pieces(&regex, arguments[0].text())))
            }))
        }
        "regexp_matches" => {
            let casts = optional(name, args, 2, &[Atom::String])?;
            Ok(strict(Atom::Boolean, args, casts, move |arguments| {
                let regex = cache.compile(arguments[1].text(), flags(arguments.get(2), true)?)?;
                Ok(OutputValue::Boolean(regex.is_match(arguments[0].text())))
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
struct Matches<'a> {
    text: &'a str,
    search: Search<'a>,
    next: Option<usize>,
    every: Every,
}

impl<'a> Matches<'a> {
    fn new(regex: &'a Regex, text: &'a str, start: Option<usize>) -> Matches<'a> {
        Matches { text, search: regex.search(text), next: start, every: Every::default() }
    }

    /// The next match, without its groups.
    fn next(&mut self) -> Option<Range<usize>> {
        let found = self.search.find_at(self.next?);
        self.pass(found)
    }

    /// The next match; its groups are those of the search.
    fn next_with_groups(&mut self) -> Option<Range<usize>> {
        let found = self.search.groups_at(self.next?);
        self.pass(found)
    }

    fn pass(&mut self, found: Option<Range<usize>>) -> Option<Range<usize>> {
        self.every.pass();
        let found = found?;
        let passed = self.text[found.end..].chars().next();
        self.next = match found.is_empty() {
            true => passed.map(|passed| found.end + passed.len_utf8()),
            false => Some(found.end),
        };
        Some(found)
    }
}

/// The byte range of the n-th match or of one of its groups.
fn nth(
    regex: &Regex,
    (text, start): (&str, Option<usize>),
    number: Option<&InputValue<'_>>,
    group: Option<&InputValue<'_>>,
) -> Result<Option<Range<usize>>> {
    let number = number.map_or(1, InputValue::whole);
    if number < 1 {
        return Err(wrong(format!("invalid value for parameter n: {number}")));
    }
    let group = group.map_or(0, InputValue::whole);
    if group < 0 {
        return Err(wrong(format!("invalid value for parameter subexpr: {group}")));
    }
    let skipped = usize::try_from(number - 1).unwrap_or(usize::MAX);
    let mut matches = Matches::new(regex, text, start);
    for _ in 0..skipped {
        if matches.next().is_none() {
            return Ok(None);
        }
    }
    // Without groups, group 1 is the whole match.
    if group == 0 || (group == 1 && regex.groups() == 1) {
        return Ok(matches.next());
    }
    let found = matches.next_with_groups();
    let group = usize::try_from(group).unwrap_or(usize::MAX);
    Ok(found.and_then(|_| matches.search.group(group)))
}

/// The pieces between matches. An empty match at the end, or right after another match, does not
/// split.
fn pieces(regex: &Regex, text: &str) -> Vec<Option<String>> {
    let mut out = Vec::new();
    let mut matches = Matches::new(regex, text, Some(0));
    let mut from = 0;
    while let Some(found) = matches.next() {
        if found.is_empty() && (found.start == text.len() || found.start == from) {
            continue;
        }
        out.push(Some(text[from..found.start].to_string()));
        from = found.end;
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
        let mut matches = Matches::new(&regex, text, start);
        let uses_groups = has_groups(arguments[2].text());
        let mut turn = 0;
        while number == 0 || turn < number {
            turn += 1;
            let found = match uses_groups {
                true => matches.next_with_groups(),
                false => matches.next(),
            };
            let Some(found) = found else { break };
            if number == 0 || turn == number {
                out.push_str(&text[from..found.start]);
                let group = |index| match index {
                    0 => Some(&text[found.clone()]),
                    _ => matches.search.group_text(index),
                };
                filled(arguments[2].text(), group, &mut out);
                from = found.end;
            }
        }
        out.push_str(&text[from..]);
        Ok(OutputValue::Text(out))
    }))
}

/// Whether a replacement may use a group; it is slower to find groups than matches.
fn has_groups(replacement: &str) -> bool {
    let bytes = replacement.as_bytes();
    bytes.windows(2).any(|pair| pair[0] == b'\\' && pair[1].is_ascii_digit())
}

/// Expands a replacement: `\1` is a group, `\&` the whole match, `\\` a backslash.
fn filled<'a>(replacement: &str, group: impl Fn(usize) -> Option<&'a str>, out: &mut String) {
    let mut characters = replacement.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some('&') => out.push_str(group(0).unwrap_or_default()),
            Some(digit @ '1'..='9') => {
                out.push_str(group(digit as usize - '0' as usize).unwrap_or_default());
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
        if group >= regex.groups() {
            return Err(wrong(format!("the pattern has no group {group}")));
        }
        let text = arguments[0].text();
        let mut matches = Matches::new(&regex, text, Some(0));
        let mut next = || -> Option<(Range<usize>, String)> {
            let found = matches.next_with_groups()?;
            Some((found, matches.search.group_text(group).unwrap_or_default().to_string()))
        };
        if !all {
            return Ok(OutputValue::Text(next().map_or(String::new(), |(_, part)| part)));
        }
        // As in DuckDB, an empty match right after another does not count.
        let mut end = None;
        let mut parts = Vec::new();
        while let Some((found, part)) = next() {
            if !(found.is_empty() && end == Some(found.start)) {
                parts.push(Some(part));
            }
            end = Some(found.end);
        }
        Ok(OutputValue::Texts(parts))
    }))
}
