//! Names of cells and ranges: `B3`, `A1:C10`, `A:C`, `5:10`.

use std::ops::RangeInclusive;

use tessera_types::{Error, Result};

/// The most rows of a sheet.
pub(super) const ROWS_MAX: u32 = 1_048_576;
/// The most columns of a sheet.
pub(super) const COLUMNS_MAX: u32 = 16_384;

/// A part of a sheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    /// Columns, from 0.
    pub(super) columns: RangeInclusive<u32>,
    /// Rows, from 1.
    pub(super) rows: RangeInclusive<u32>,
    /// Whether the last row is named.
    pub(super) has_end: bool,
}

impl Range {
    /// A whole sheet.
    pub(super) fn whole() -> Range {
        Range { columns: 0..=COLUMNS_MAX - 1, rows: 1..=ROWS_MAX, has_end: false }
    }

    /// Parses a range.
    ///
    /// # Errors
    /// The text is none.
    pub(super) fn parse(text: &str) -> Result<Range> {
        let wrong = || {
            Error::semantic(format!(
                "option range must be cells such as A1:C10, columns such as A:C, or rows such as 5:10, not '{text}'"
            ))
        };
        let (first, last) = text.trim().split_once(':').ok_or_else(wrong)?;
        let whole = Range::whole();
        let range = match (parse_place(first), parse_place(last)) {
            (Some((Some(left), Some(top))), Some((Some(right), Some(bottom)))) => {
                Range { columns: left..=right, rows: top..=bottom, has_end: true }
            }
            (Some((Some(left), None)), Some((Some(right), None))) => {
                Range { columns: left..=right, ..whole }
            }
            (Some((None, Some(top))), Some((None, Some(bottom)))) => {
                Range { rows: top..=bottom, has_end: true, ..whole }
            }
            _ => return Err(wrong()),
        };
        match range.columns.is_empty() || range.rows.is_empty() {
            true => Err(wrong()),
            false => Ok(range),
        }
    }

    /// Whether it names its columns.
    pub(super) fn has_columns(&self) -> bool {
        *self.columns.end() < COLUMNS_MAX - 1
    }
}

/// Parses a column, from 0, a row, from 1, or both. `$` may be before each.
fn parse_place(text: &str) -> Option<(Option<u32>, Option<u32>)> {
    let text = text.trim();
    let text = text.strip_prefix('$').unwrap_or(text);
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (letters, digits) = text.split_at(letters);
    let digits = digits.strip_prefix('$').unwrap_or(digits);
    let column = match letters.len() {
        0 => None,
        1..=3 => {
            let number = |number, letter: u8| {
                number * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1
            };
            Some(letters.bytes().fold(0, number) - 1).filter(|column| *column < COLUMNS_MAX)
        }
        _ => return None,
    };
    if column.is_none() && !letters.is_empty() {
        return None;
    }
    let row = match digits.is_empty() {
        true => None,
        false => {
            let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
            let row = digits.parse().ok().filter(|row| is_number && (1..=ROWS_MAX).contains(row));
            Some(row?)
        }
    };
    (column.is_some() || row.is_some()).then_some((column, row))
}

/// Parses the name of a cell to its column, from 0, and row, from 1.
pub(super) fn parse_cell(text: &str) -> Option<(u32, u32)> {
    match parse_place(text)? {
        (Some(column), Some(row)) => Some((column, row)),
        _ => None,
    }
}

/// The letters of a column, from 0.
pub(super) fn column_name(column: u32) -> String {
    let (mut name, mut left) = (String::new(), column + 1);
    while left > 0 {
        let letter = b'A' + ((left - 1) % 26) as u8;
        name.insert(0, char::from(letter));
        left = (left - 1) / 26;
    }
    name
}

/// The name of a cell.
pub(super) fn cell_name(column: u32, row: u32) -> String {
    format!("{}{row}", column_name(column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cells() {
        for (name, column, row) in
            [("A1", 0, 1), ("Z9", 25, 9), ("AA10", 26, 10), ("XFD1048576", 16_383, 1_048_576)]
        {
            assert_eq!(parse_cell(name), Some((column, row)));
            assert_eq!(cell_name(column, row), name);
        }
        for name in ["", "A", "1", "A0", "XFE1", "A1048577", "AAAA1", "A1B", "A-1", "É1", "A+1"] {
            assert_eq!(parse_cell(name), None, "{name}");
        }
        assert_eq!(parse_cell("$b$3"), Some((1, 3)));
    }

    #[test]
    fn ranges() {
        let parsed = |text: &str| Range::parse(text).unwrap();
        let cells = parsed("B2:D5");
        assert_eq!((cells.columns, cells.rows, cells.has_end), (1..=3, 2..=5, true));
        let columns = parsed("a:c");
        assert_eq!(
            (columns.columns, columns.rows.clone(), columns.has_end),
            (0..=2, 1..=ROWS_MAX, false)
        );
        let rows = parsed("5:10");
        assert!(!rows.has_columns() && rows.rows == (5..=10) && rows.has_end);
        for text in ["", "A1", "A1:", ":", "A1:C", "A:5", "B3:A1", "A2:A1", "A1:ZZZZ1", "0:3"] {
            assert!(Range::parse(text).is_err(), "{text}");
        }
    }
}
