//! Searches with automata that a caller moves byte by byte, so that it can stop between blocks.

use std::ops::Range;

use regex_automata::hybrid;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson::NFA;
use regex_automata::util::prefilter::Prefilter;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind, meta};
use tessera_context::interrupt::point;

use super::Syntax;
use super::threads::{Slot, Threads};

/// The automata of an expression.
#[derive(Debug)]
pub(super) struct BlockRegex {
    /// Finds the end of a match, and then its start.
    lazy: hybrid::regex::Regex,
    /// Finds places where a match may start.
    prefilter: Option<Prefilter>,
    /// Finds the groups of a short match.
    groups: meta::Regex,
    /// Does what the others cannot do: see [`Threads`].
    nfa: NFA,
    /// Bytes between two checks.
    block: usize,
}

/// The lazy automata have no transition for a byte of the text: a boundary between words, next to a
/// letter beyond ASCII.
struct GaveUp;

impl BlockRegex {
    /// Compiles an expression that the `regex` crate accepts.
    pub(super) fn new(pattern: &str, options: Syntax, block: usize) -> Option<BlockRegex> {
        let syntax = syntax::Config::new()
            .case_insensitive(options.ignore_case)
            .multi_line(options.lines)
            .dot_matches_new_line(options.dot_matches_line_ends)
            .ignore_whitespace(options.extended);
        let hir = syntax::parse_with(pattern, &syntax).ok()?;
        let prefilter = Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, &hir)
            .filter(|prefilter| prefilter.is_fast() && prefilter.max_needle_len() < block);
        let config = DFA::config()
            .specialize_start_states(prefilter.is_some())
            .unicode_word_boundary(true)
            .skip_cache_capacity_check(true);
        let lazy =
            hybrid::regex::Regex::builder().syntax(syntax).dfa(config).build(pattern).ok()?;
        let groups = meta::Regex::builder().syntax(syntax).build(pattern).ok()?;
        let nfa = NFA::compiler().syntax(syntax).build(pattern).ok()?;
        Some(BlockRegex { lazy, prefilter, groups, nfa, block })
    }

    /// Starts a search.
    pub(super) fn search<'a>(&'a self, text: &'a str) -> BlockSearch<'a> {
        BlockSearch { regex: self, text, cache: self.lazy.create_cache() }
    }

    fn anchored(&self) -> Anchored {
        match self.nfa.is_always_start_anchored() {
            true => Anchored::Yes,
            false => Anchored::No,
        }
    }
}

/// A search in a text, with the states that the lazy automata have built.
#[derive(Debug)]
pub(super) struct BlockSearch<'a> {
    regex: &'a BlockRegex,
    text: &'a str,
    cache: hybrid::regex::Cache,
}

impl BlockSearch<'_> {
    /// The end of the first match that starts at or behind an offset.
    pub(super) fn end_of_first(&mut self, at: usize) -> Option<usize> {
        self.lazy_end(at).unwrap_or_else(|GaveUp| self.by_threads(at).map(|found| found.end))
    }

    /// The first match that starts at or behind an offset.
    pub(super) fn find_at(&mut self, at: usize) -> Option<Range<usize>> {
        self.lazy_match(at).unwrap_or_else(|GaveUp| self.by_threads(at))
    }

    /// Like `find_at`; `slots` becomes the starts and ends of all groups.
    pub(super) fn groups_at(&mut self, at: usize, slots: &mut Vec<Slot>) -> Option<Range<usize>> {
        let found = self.find_at(at)?;
        let BlockRegex { nfa, groups, block, .. } = self.regex;
        slots.clear();
        slots.resize(groups.group_info().slot_len(), None);
        if found.len() > *block {
            Threads::new(nfa, self.text, slots.len()).run(found.clone(), Anchored::Yes, slots);
        } else {
            let input = Input::new(self.text).range(found.clone()).anchored(Anchored::Yes);
            groups.search_slots(&input, slots);
        }
        Some(found)
    }

    fn by_threads(&self, at: usize) -> Option<Range<usize>> {
        let mut slots = [None; 2];
        let mut threads = Threads::new(&self.regex.nfa, self.text, slots.len());
        threads.run(at..self.text.len(), self.regex.anchored(), &mut slots);
        let [start, end] = slots;
        Some(start?.get()..end?.get())
    }

    fn lazy_match(&mut self, at: usize) -> Result<Option<Range<usize>>, GaveUp> {
        let Some(end) = self.lazy_end(at)? else { return Ok(None) };
        let start = self.lazy_start(at, end)?;
        // The lazy automata know bytes and not characters.
        let splits_character = start == end && !self.text.is_char_boundary(start);
        if splits_character { Err(GaveUp) } else { Ok(Some(start..end)) }
    }

    /// The end of the first match, by the forward automaton.
    fn lazy_end(&mut self, from: usize) -> Result<Option<usize>, GaveUp> {
        let (dfa, cache) = (self.regex.lazy.forward(), self.cache.forward_mut());
        let bytes = self.text.as_bytes();
        let input = Input::new(bytes).anchored(self.regex.anchored());
        let mut state = dfa.start_state_forward(cache, &input.clone().range(from..))?;
        let (mut at, mut end) = (from, None);
        let mut block_end = from;
        while at < bytes.len() {
            if at >= block_end {
                point();
                block_end = bytes.len().min(at + self.regex.block);
            }
            if state.is_start() && end.is_none() {
                match self.regex.candidate(bytes, at) {
                    None => return Ok(None),
                    Some(place) if place > at => {
                        at = place;
                        state = dfa.start_state_forward(cache, &input.clone().range(at..))?;
                    }
                    Some(_) => {}
                }
            }
            state = dfa.next_state(cache, state, bytes[at])?;
            if state.is_match() {
                // The automaton reports a match one byte behind its end.
                end = Some(at);
            } else if state.is_dead() {
                return Ok(end);
            } else if state.is_quit() {
                return Err(GaveUp);
            }
            at += 1;
        }
        state = dfa.next_eoi_state(cache, state)?;
        Ok(if state.is_match() { Some(bytes.len()) } else { end })
    }

    /// The start of a match that ends at `end`, by the reverse automaton.
    fn lazy_start(&mut self, from: usize, end: usize) -> Result<usize, GaveUp> {
        let (dfa, cache) = (self.regex.lazy.reverse(), self.cache.reverse_mut());
        let bytes = self.text.as_bytes();
        let input = Input::new(bytes).range(from..end).anchored(Anchored::Yes);
        let mut state = dfa.start_state_reverse(cache, &input)?;
        let mut start = None;
        for at in (from..end).rev() {
            if (end - at).is_multiple_of(self.regex.block) {
                point();
            }
            state = dfa.next_state(cache, state, bytes[at])?;
            if state.is_match() {
                start = Some(at + 1);
            } else if state.is_dead() {
                return start.ok_or(GaveUp);
            } else if state.is_quit() {
                return Err(GaveUp);
            }
        }
        state = match from.checked_sub(1) {
            Some(before) => dfa.next_state(cache, state, bytes[before])?,
            None => dfa.next_eoi_state(cache, state)?,
        };
        if state.is_match() { Ok(from) } else { start.ok_or(GaveUp) }
    }
}

impl BlockRegex {
    /// The next place where a match may start.
    fn candidate(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let Some(prefilter) = &self.prefilter else { return Some(from) };
        let mut at = from;
        loop {
            // A prefix may begin in this block and end in the next.
            let end = bytes.len().min(at + self.block + prefilter.max_needle_len());
            if let Some(found) = prefilter.find(bytes, (at..end).into()) {
                return Some(found.start);
            }
            if end == bytes.len() {
                return None;
            }
            point();
            at += self.block;
        }
    }
}

impl<E: std::error::Error> From<E> for GaveUp {
    fn from(_: E) -> GaveUp {
        GaveUp
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The groups of all matches, found by the `regex` crate.
    fn expected(pattern: &str, text: &str) -> Vec<Vec<Option<Range<usize>>>> {
        let regex = regex::Regex::new(pattern).unwrap();
        let starts = (0..=text.len()).filter(|at| text.is_char_boundary(*at));
        let groups = |at: usize| match regex.captures_at(text, at) {
            None => Vec::new(),
            Some(found) => found.iter().map(|part| part.map(|part| part.range())).collect(),
        };
        starts.map(groups).collect()
    }

    /// The same, found block by block.
    fn found(pattern: &str, text: &str, block: usize) -> Vec<Vec<Option<Range<usize>>>> {
        let regex = BlockRegex::new(pattern, Syntax::default(), block).unwrap();
        let mut search = regex.search(text);
        let starts = (0..=text.len()).filter(|at| text.is_char_boundary(*at));
        let mut groups = |at: usize| {
            let mut slots = Vec::new();
            let found = search.groups_at(at, &mut slots);
            assert_eq!(found, search.by_threads(at), "'{pattern}' in '{text}' from {at}");
            assert_eq!(search.end_of_first(at), found.as_ref().map(|found| found.end));
            let place = |slot: &Slot| slot.map(|place| place.get());
            let pair = |pair: &[Slot]| Some(place(&pair[0])?..place(&pair[1])?);
            // The slots of the whole match come before those of the groups.
            found.map_or(Vec::new(), |_| slots.chunks(2).map(pair).collect())
        };
        starts.map(&mut groups).collect()
    }

    #[test]
    fn matches_are_those_of_the_whole_text() {
        for (text, pattern) in [
            ("abcabcabd", "(a|b|c)+d"),
            ("abcabcabd", "(?:a(b)?c?)*?d"),
            ("xxxxneedlexx", "needle"),
            ("neneneedle", "(ne)+(e)dle.?"),
            ("ab\ncd\nef", "(?m)^(c|e).$"),
            ("ab", "\\Ab"),
            ("ab", "\\Aa(b*)"),
            ("äöü wort äöü", "\\b(w\\w+)\\b"),
            ("wort", "\\b"),
            ("äöü", "x*"),
            ("äöü", ""),
            ("ä", "\\B"),
            ("aäa", "[^a]"),
            ("aaaa", "a{2}|a{3}"),
            ("aaaab", "(a+?)(a*)(b)?"),
            ("foobarfoo", "foo$"),
            ("foobarfoo", "(foo|foobar)(bar)?"),
            ("", "a|$"),
            ("abc", "[a&&b]"),
        ] {
            for block in [1, 2, 3, 100] {
                assert_eq!(
                    found(pattern, text, block),
                    expected(pattern, text),
                    "'{pattern}' in '{text}'"
                );
            }
        }
    }

    fn pattern() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec![
            "a", "b", "ab", "ba", "ä", ".", "[ab]", "[^a]", "\\b", "\\B", "^", "$", "(?m:^)",
            "(?m:$)", "\\w", "\\A", "\\z", "", "aab",
        ]);
        leaf.prop_map(String::from).prop_recursive(4, 24, 3, |inner| {
            let many = prop::collection::vec(inner.clone(), 1..4);
            let count = prop::sample::select(vec!["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}"]);
            prop_oneof![
                many.clone().prop_map(|parts| parts.concat()),
                many.prop_map(|parts| format!("(?:{})", parts.join("|"))),
                inner.clone().prop_map(|part| format!("({part})")),
                (inner, count).prop_map(|(part, count)| format!("(?:{part}){count}")),
            ]
        })
    }

    proptest! {
        #[test]
        fn random_expressions_match_as_in_the_whole_text(
            pattern in pattern(),
            text in "[abä\n ]{0,12}",
            block in 1usize..6,
        ) {
            prop_assert_eq!(found(&pattern, &text, block), expected(&pattern, &text));
        }
    }
}
