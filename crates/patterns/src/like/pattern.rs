//! Compiled LIKE patterns.
//!
//! A pattern is split at `%` into pieces of fixed length. The first and the last are anchored; the
//! others are searched leftmost first, which is exact because only their order matters. Pieces
//! without `_` are searched as bytes.

use memchr::memmem::Finder;
use tessera_codegen::TextCode;
use tessera_context::interrupt::Every;
use tessera_types::{Code, Error, Result, SqlState};

use crate::pieces::find;

/// The longest piece that compiled code searches for: the code compares it at every position where
/// its first and last bytes match.
const CODED_BYTES_MAX: usize = 64;

/// A compiled LIKE pattern.
#[derive(Debug)]
pub(super) struct Like {
    /// Matches at the beginning; empty if the pattern begins with `%`.
    pub(super) first: Piece,
    /// Found in order between the first and the last piece.
    pub(super) middle: Vec<Piece>,
    /// Matches at the end; `None` without a `%`, in which case `first` is the whole pattern.
    pub(super) last: Option<Piece>,
}

/// Part of a pattern between two `%`.
#[derive(Debug)]
pub(super) enum Piece {
    /// A piece without `_`.
    Text(Box<Finder<'static>>),
    /// A piece with `_`, which is `None` here.
    Characters(Vec<Option<char>>),
}

impl Like {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// The escape is longer than one character, or the pattern ends with it.
    pub(super) fn new(pattern: &str, escape: Option<&str>) -> Result<Like> {
        let escape = match escape.map(|escape| escape.chars().collect::<Vec<_>>()).as_deref() {
            None => Some('\\'),
            Some([]) => None,
            Some([escape]) => Some(*escape),
            Some(_) => {
                return Err(Error::data("the escape of LIKE must be one character or empty")
                    .with_state(SqlState::INVALID_ESCAPE_SEQUENCE));
            }
        };
        let mut pieces = vec![Vec::new()];
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let item = match character {
                c if Some(c) == escape => Some(characters.next().ok_or_else(|| {
                    Error::new(
                        Code::Data,
                        format!("LIKE pattern '{pattern}' ends with its escape character"),
                    )
                    .with_state(SqlState::INVALID_ESCAPE_SEQUENCE)
                })?),
                '%' => {
                    pieces.push(Vec::new());
                    continue;
                }
                '_' => None,
                c => Some(c),
            };
            if let Some(piece) = pieces.last_mut() {
                piece.push(item);
            }
        }
        let mut pieces = pieces.into_iter().map(Piece::new);
        let first = pieces.next().unwrap_or(Piece::Characters(Vec::new()));
        let mut middle: Vec<Piece> = pieces.collect();
        let last = middle.pop();
        middle.retain(|piece| !piece.is_empty());
        Ok(Like { first, middle, last })
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let Some(length) = self.first.at_start(text) else { return false };
        let mut rest = &text[length..];
        let Some(last) = &self.last else { return rest.is_empty() };
        let every = Every::default();
        for piece in &self.middle {
            every.pass();
            match piece.find(rest) {
                Some(end) => rest = &rest[end..],
                None => return false,
            }
        }
        last.at_end(rest)
    }
}

impl Piece {
    /// The piece for a compiler: `Some(None)` if it is empty, `None` if it cannot be compiled.
    pub(super) fn code(&self) -> Option<Option<TextCode>> {
        match self {
            piece if piece.is_empty() => Some(None),
            Piece::Text(finder) if finder.needle().len() <= CODED_BYTES_MAX => {
                Some(Some(TextCode::Constant(std::str::from_utf8(finder.needle()).ok()?.into())))
            }
            _ => None,
        }
    }

    fn new(items: Vec<Option<char>>) -> Piece {
        match items.iter().copied().collect::<Option<String>>() {
            Some(text) => Piece::Text(Box::new(Finder::new(text.as_bytes()).into_owned())),
            None => Piece::Characters(items),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Piece::Text(finder) => finder.needle().is_empty(),
            Piece::Characters(items) => items.is_empty(),
        }
    }

    /// The length of the match at the beginning of `text`. An empty piece is not compared: some
    /// processors are a hundred times slower to compare zero bytes at an unmapped address, where an
    /// empty text may point.
    fn at_start(&self, text: &str) -> Option<usize> {
        match self {
            Piece::Text(finder) if finder.needle().is_empty() => Some(0),
            Piece::Text(finder) => {
                text.as_bytes().starts_with(finder.needle()).then_some(finder.needle().len())
            }
            Piece::Characters(items) => {
                let mut characters = text.chars();
                let fits = items
                    .iter()
                    .all(|item| characters.next().is_some_and(|c| item.is_none_or(|i| i == c)));
                fits.then(|| text.len() - characters.as_str().len())
            }
        }
    }

    /// Whether the piece matches at the end of `text`.
    fn at_end(&self, text: &str) -> bool {
        match self {
            Piece::Text(finder) => {
                finder.needle().is_empty() || text.as_bytes().ends_with(finder.needle())
            }
            Piece::Characters(items) => {
                let mut characters = text.chars().rev();
                items
                    .iter()
                    .rev()
                    .all(|item| characters.next().is_some_and(|c| item.is_none_or(|i| i == c)))
            }
        }
    }

    /// The end of the first match in `text`.
    fn find(&self, text: &str) -> Option<usize> {
        match self {
            Piece::Text(finder) => {
                find(finder, text.as_bytes()).map(|start| start + finder.needle().len())
            }
            Piece::Characters(_) => {
                let every = Every::default();
                text.char_indices().find_map(|(start, _)| {
                    every.pass();
                    self.at_start(&text[start..]).map(|length| start + length)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        Like::new(pattern, None).unwrap().matches(text)
    }

    #[test]
    fn patterns_match_as_in_sql() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("a", "", false),
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "%a%c%", true),
            ("abc", "%c%a%", false),
            ("aa", "a%a", true),
            ("a", "a%a", false),
            ("aba", "a%ba", true),
            ("ab", "_b", true),
            ("äb", "_b", true),
            ("ab", "__%", true),
            ("a", "__%", false),
            ("xaby", "%a_y", true),
            ("a%b", "a\\%b", true),
            ("axb", "a\\%b", false),
            ("abcabd", "%ab_", true),
            ("abcabd", "%a_c%d", true),
            ("special packages requests", "%special%requests%", true),
            ("line\nbreak", "line%break", true),
            ("äöü", "%_ö%", true),
        ] {
            assert_eq!(like(text, pattern), expected, "'{text}' like '{pattern}'");
        }
        assert!(Like::new("a\\", None).is_err());
        assert!(Like::new("a!%", Some("!")).unwrap().matches("a%"));
        assert!(Like::new("a\\", Some("")).unwrap().matches("a\\"));
        assert!(Like::new("a", Some("!!")).is_err());
    }
}
