//! Work on long texts in pieces, with a check for cancellation between them.

use memchr::memmem::Finder;
use tessera_context::interrupt::{SPAN_BYTES, point, spans};

/// The bytes of a piece.
const PIECE_BYTES: usize = SPAN_BYTES;

/// Splits a text into pieces, with a check for cancellation between them.
pub fn text_pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.len() < text.len() {
            point();
        }
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The number of characters of a text.
pub fn characters(text: &str) -> usize {
    // Counts all bytes except UTF-8 continuation bytes.
    let begin = |piece: &[u8]| piece.iter().filter(|byte| (**byte as i8) >= -0x40).count();
    spans(text.as_bytes()).map(begin).sum()
}

/// The byte offset of a character, by its index from 0; the length for the index after the last.
pub fn place_of(text: &str, number: usize) -> Option<usize> {
    let (mut passed, mut left) = (0, number);
    for piece in text_pieces(text) {
        let own = characters(piece);
        if left < own {
            return piece.char_indices().nth(left).map(|(at, _)| passed + at);
        }
        (passed, left) = (passed + piece.len(), left - own);
    }
    (left == 0).then_some(passed)
}

/// The first position of a byte string.
pub fn find(finder: &Finder<'_>, bytes: &[u8]) -> Option<usize> {
    let needle = finder.needle().len();
    let step = PIECE_BYTES.max(needle);
    let mut start = 0;
    while bytes.len() - start > step {
        // A match may begin in this piece and end in the next.
        let end = bytes.len().min(start + step + needle.saturating_sub(1));
        if let Some(at) = finder.find(&bytes[start..end]) {
            return Some(start + at);
        }
        point();
        start += step;
    }
    finder.find(&bytes[start..]).map(|at| start + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_whole_text() {
        for unit in ["ab", "äöü", &"語".repeat(PIECE_BYTES / 2)] {
            let text = unit.repeat(PIECE_BYTES / unit.len() * 2 + 1);
            assert_eq!(characters(&text), text.chars().count());
            let all: Vec<usize> =
                text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let (third, half, last) = (PIECE_BYTES / 3, PIECE_BYTES / 2 + 1, all.len() - 1);
            for number in [0, third, half, last - 1, last, last + 1] {
                assert_eq!(place_of(&text, number), all.get(number).copied(), "{number}");
            }
        }
        assert_eq!((place_of("", 0), place_of("", 1)), (Some(0), None));
    }

    #[test]
    fn what_lies_across_pieces_is_found() {
        let text = "x".repeat(PIECE_BYTES) + "yz" + &"x".repeat(PIECE_BYTES);
        for needle in ["yz", "xy", "zx", "xyzx", "", &text[1..], &text, "zy"] {
            assert_eq!(find(&Finder::new(needle), text.as_bytes()), text.find(needle));
        }
    }
}
