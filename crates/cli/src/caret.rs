//! The line of a statement or plan with an error, and a caret below the position.

use tessera_types::{Span, redact};

/// The maximum number of characters to show.
const WIDTH_MAX: usize = 100;

/// The mark at a cut end of a long line.
const CUT: &str = "…";

/// The line of `text` that holds `span`, prefixed with `number`, and a second line with a caret
/// below the place. `None` if the text does not have the place, or if the line holds a secret, such
/// as the password in a URL.
///
/// Tabs are shown as one space, and other control characters as `�`, so that the caret is below
/// its character. Of a line over 100 characters, the part around the place is shown.
pub(crate) fn excerpt(text: &str, span: Span, number: u32) -> Option<String> {
    let line = text.split('\n').nth(usize::try_from(span.line.checked_sub(1)?).ok()?)?;
    if redact(line) != line {
        return None;
    }
    let characters: Vec<char> = line.trim_end().chars().map(shown).collect();
    let at = usize::try_from(span.column.checked_sub(1)?).ok()?;
    // An error at the end of the text is behind its last character.
    if at > characters.len() || characters.is_empty() {
        return None;
    }
    let start = match characters.len() > WIDTH_MAX {
        true => at.saturating_sub(WIDTH_MAX / 2).min(characters.len() - WIDTH_MAX),
        false => 0,
    };
    let end = characters.len().min(start + WIDTH_MAX);
    let cut = |is_cut: bool| if is_cut { CUT } else { "" };
    let prefix = format!("line {number}: {}", cut(start > 0));
    let part: String = characters[start..end].iter().collect();
    let indent = prefix.chars().count() + at - start;
    Some(format!("{prefix}{part}{}\n{}^", cut(end < characters.len()), " ".repeat(indent)))
}

fn shown(character: char) -> char {
    match character {
        '\t' => ' ',
        _ if character.is_control() => char::REPLACEMENT_CHARACTER,
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, line: u32, column: u32) -> Option<String> {
        excerpt(text, Span { line, column }, line + 6)
    }

    #[test]
    fn a_caret_stands_below_the_place() {
        assert_eq!(at("select a,\n  b", 2, 3).unwrap(), "line 8:   b\n          ^");
        assert_eq!(at("select\té", 1, 8).unwrap(), "line 7: select é\n               ^");
        assert_eq!(at("select ", 1, 7).unwrap(), "line 7: select\n              ^");
    }

    #[test]
    fn of_a_long_line_a_part_is_shown() {
        let text = format!("select {}wrong{}", "a + ".repeat(100), " + a".repeat(100));
        let lines = at(&text, 1, 408).unwrap();
        let (line, caret) = lines.split_once('\n').unwrap();
        assert!(line.chars().count() <= WIDTH_MAX + 20, "{line}");
        let below: String = line.chars().skip(caret.chars().count() - 1).take(5).collect();
        assert_eq!(below, "wrong");
        assert!(line.starts_with("line 7: …") && line.ends_with('…'), "{line}");
    }

    #[test]
    fn a_line_with_a_secret_is_not_shown() {
        assert!(at("select * from 'https://host/x.csv'", 1, 15).is_some());
        assert_eq!(at("select * from 'https://me:secret@host/x.csv'", 1, 15), None);
    }

    #[test]
    fn a_place_outside_of_the_text_has_no_line() {
        for (line, column) in [(0, 1), (1, 0), (1, 10), (3, 1), (2, 1)] {
            assert_eq!(at("select 1\n", line, column), None, "{line}, {column}");
        }
    }
}
