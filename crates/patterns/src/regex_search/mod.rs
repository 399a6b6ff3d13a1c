//! Regular expressions whose search in a long text can be cancelled.
//!
//! The crate `regex` searches a text in one call. A text longer than [`SPAN_BYTES`] is searched
//! with automata of `regex-automata`, block by block, with a check for cancellation in between. The
//! results are the same: the leftmost match, and of those the one that the expression prefers.

mod blocks;
mod threads;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use regex::{CaptureLocations, RegexBuilder};
use tessera_context::interrupt::SPAN_BYTES;

use blocks::{BlockRegex, BlockSearch};
use threads::Slot;

/// The memory limit of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 10 << 20;

/// How an expression is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Syntax {
    /// Whether letters match in both cases.
    pub ignore_case: bool,
    /// Whether `^` and `$` also match at line ends.
    pub lines: bool,
    /// Whether `.` also matches line ends.
    pub dot_matches_line_ends: bool,
    /// Whether white space and comments are ignored.
    pub extended: bool,
}

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub struct Regex {
    /// Searches short texts.
    whole: regex::Regex,
    syntax: Syntax,
    /// Searches long texts; compiled for the first one.
    blocks: Arc<OnceLock<Option<BlockRegex>>>,
}

impl Regex {
    /// Compiles an expression of the syntax of the `regex` crate.
    ///
    /// # Errors
    /// The expression is invalid or too large.
    pub fn new(pattern: &str, syntax: Syntax) -> Result<Regex, regex::Error> {
        let whole = RegexBuilder::new(pattern)
            .case_insensitive(syntax.ignore_case)
            .multi_line(syntax.lines)
            .dot_matches_new_line(syntax.dot_matches_line_ends)
            .ignore_whitespace(syntax.extended)
            .size_limit(REGEX_BYTES_MAX)
            .build()?;
        Ok(Regex { whole, syntax, blocks: Arc::default() })
    }

    /// The number of groups; the whole match is one.
    pub fn groups(&self) -> usize {
        self.whole.captures_len()
    }

    /// Whether the expression matches a part of the text.
    pub fn is_match(&self, text: &str) -> bool {
        match self.blocks(text) {
            None => self.whole.is_match(text),
            Some(blocks) => blocks.search(text).end_of_first(0).is_some(),
        }
    }

    /// Starts a search.
    pub fn search<'a>(&'a self, text: &'a str) -> Search<'a> {
        let found = match self.blocks(text) {
            None => Found::Whole(self.whole.capture_locations()),
            Some(blocks) => Found::Blocks(Box::new(blocks.search(text)), Vec::new()),
        };
        Search { regex: self, text, found }
    }

    fn blocks(&self, text: &str) -> Option<&BlockRegex> {
        if text.len() <= SPAN_BYTES {
            return None;
        }
        let compile = || BlockRegex::new(self.whole.as_str(), self.syntax, SPAN_BYTES);
        self.blocks.get_or_init(compile).as_ref()
    }
}

/// A search in a text.
#[derive(Debug)]
pub struct Search<'a> {
    regex: &'a Regex,
    text: &'a str,
    found: Found<'a>,
}

/// The groups of the last match.
#[derive(Debug)]
enum Found<'a> {
    Whole(CaptureLocations),
    Blocks(Box<BlockSearch<'a>>, Vec<Slot>),
}

impl<'a> Search<'a> {
    /// The first match that starts at or behind an offset. It does not set the groups.
    pub fn find_at(&mut self, at: usize) -> Option<Range<usize>> {
        match &mut self.found {
            Found::Whole(_) => self.regex.whole.find_at(self.text, at).map(|found| found.range()),
            Found::Blocks(search, _) => search.find_at(at),
        }
    }

    /// Like [`Search::find_at`], and sets the groups.
    pub fn groups_at(&mut self, at: usize) -> Option<Range<usize>> {
        match &mut self.found {
            Found::Whole(groups) => {
                let found = self.regex.whole.captures_read_at(groups, self.text, at);
                found.map(|found| found.range())
            }
            Found::Blocks(search, groups) => search.groups_at(at, groups),
        }
    }

    /// A group of the last match of [`Search::groups_at`], if it took part.
    pub fn group(&self, index: usize) -> Option<Range<usize>> {
        match &self.found {
            Found::Whole(groups) => groups.get(index).map(|(start, end)| start..end),
            Found::Blocks(_, slots) => {
                let slot = |index: usize| Some(slots.get(index)?.as_ref()?.get());
                let first = index.checked_mul(2)?;
                Some(slot(first)?..slot(first + 1)?)
            }
        }
    }

    /// The text of such a group.
    pub fn group_text(&self, index: usize) -> Option<&'a str> {
        self.group(index).map(|part| &self.text[part])
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::Ordering;

    use tessera_context::Context;
    use tessera_context::interrupt::within;
    use tessera_context::testing::TestContext;
    use tessera_types::{Code, Error};

    use super::*;

    #[test]
    fn a_search_in_a_long_text_can_be_cancelled() {
        let test = TestContext::new(1, 1);
        let context: Arc<dyn Context> = test.clone();
        let text = "abcdefghij".repeat(SPAN_BYTES / 5);
        let words = "wörter ".repeat(SPAN_BYTES / 5);
        let all = Regex::new("(?s)(a.*)j", Syntax::default()).unwrap();
        let group = || all.search(&text).groups_at(0);
        assert_eq!(within(&context, group), Some(0..text.len()));
        test.cancelled.store(true, Ordering::SeqCst);
        let regex = |pattern: &str| Regex::new(pattern, Syntax::default()).unwrap();
        let (absent, bounded) = (regex("(a|b|c)+e.*(x|y)z"), regex("\\bwor"));
        let passes: [&dyn Fn(); 4] = [
            &|| assert!(!absent.is_match(&text)),
            &|| assert_eq!(absent.search(&text).find_at(0), None),
            &|| assert!(!bounded.is_match(&words)),
            &|| assert!(group().is_some()),
        ];
        for (number, pass) in passes.into_iter().enumerate() {
            let unwound = catch_unwind(AssertUnwindSafe(|| within(&context, pass)));
            let Err(unwound) = unwound else { panic!("pass {number} was not cancelled") };
            assert_eq!(unwound.downcast_ref::<Error>().unwrap().code(), Code::Cancelled);
        }
    }
}
