//! LIKE patterns that end with their escape character.

use tessera_context::interrupt::Every;
use tessera_types::{Code, Error, Result, SqlState};

use crate::pieces::text_pieces;

/// A pattern that ends with its escape character. It fails only for texts that reach its end.
#[derive(Debug)]
pub(super) struct DanglingEscape {
    pattern: String,
    items: Vec<Item>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Item {
    Any,
    One,
    Character(char),
    End,
}

impl DanglingEscape {
    /// Parses a pattern; `None` if it does not end with its escape character.
    pub(super) fn new(pattern: &str, escape: Option<&str>) -> Option<DanglingEscape> {
        let mut marks = escape.unwrap_or("\\").chars();
        let (Some(escape), None) = (marks.next(), marks.next()) else { return None };
        let mut items = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            items.push(match character {
                c if c == escape => characters.next().map_or(Item::End, Item::Character),
                '%' => Item::Any,
                '_' => Item::One,
                c => Item::Character(c),
            });
        }
        (items.last() == Some(&Item::End))
            .then(|| DanglingEscape { pattern: pattern.to_string(), items })
    }

    /// Whether the pattern matches a text.
    ///
    /// # Errors
    /// Matching reaches the escape character at the end of the pattern.
    pub(super) fn matches(&self, text: &str) -> Result<bool> {
        let text: Vec<char> = text_pieces(text).flat_map(str::chars).collect();
        Ok(self.walk(&text, &self.items, &Every::default())? == Some(true))
    }

    /// Whether the items match the text; `None` if trying a later start cannot succeed.
    fn walk(&self, mut text: &[char], mut items: &[Item], every: &Every) -> Result<Option<bool>> {
        let ended = || {
            let pattern = &self.pattern;
            Error::new(
                Code::Data,
                format!("LIKE pattern '{pattern}' ends with its escape character"),
            )
            .with_state(SqlState::INVALID_ESCAPE_SEQUENCE)
        };
        while let ([first, rest_of_text @ ..], [item, rest_of_items @ ..]) = (text, items) {
            match item {
                Item::End => return Err(ended()),
                Item::Character(character) if character != first => return Ok(Some(false)),
                Item::Character(_) | Item::One => (text, items) = (rest_of_text, rest_of_items),
                Item::Any => {
                    items = rest_of_items;
                    while let [item @ (Item::Any | Item::One), rest @ ..] = items {
                        if *item == Item::One {
                            match text {
                                [] => return Ok(None),
                                [_, rest @ ..] => text = rest,
                            }
                        }
                        items = rest;
                    }
                    let wanted = match items {
                        [] => return Ok(Some(true)),
                        [Item::Character(wanted), ..] => *wanted,
                        _ => return Err(ended()),
                    };
                    for (start, character) in text.iter().enumerate() {
                        every.pass();
                        if *character == wanted {
                            match self.walk(&text[start..], items, every)? {
                                Some(false) => {}
                                other => return Ok(other),
                            }
                        }
                    }
                    return Ok(None);
                }
            }
        }
        match text.is_empty() && items.iter().all(|item| *item == Item::Any) {
            true => Ok(Some(true)),
            // If the text ends before the pattern, a later start cannot match.
            false => Ok((!text.is_empty()).then_some(false)),
        }
    }
}
