//! The cells of a sheet, row by row.

use tessera_types::{Error, Result};

use crate::book::{Book, Meaning, rich_text};
use crate::range::{COLUMNS_MAX, ROWS_MAX, cell_name, parse_cell};
use crate::xml::{Token, Xml, attribute, is};

/// What a cell holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Text(String),
    /// A number as it is written, and what it means.
    Number(String, Meaning),
    Boolean(bool),
    /// The text of an error, such as `#DIV/0!`.
    Error(String),
    /// A date or timestamp as ISO 8601 writes it.
    Moment(String),
}

/// The rows of a sheet that have cells.
pub(super) struct Rows {
    xml: Xml,
    /// The number of the last row, from 1; 0 before the first.
    row: u32,
    is_done: bool,
}

/// Cells by their columns, from 0, in order.
pub(super) type Row = Vec<(u32, Content)>;

impl Rows {
    pub(super) fn new(xml: Xml) -> Rows {
        Rows { xml, row: 0, is_done: false }
    }

    /// Returns the next row that has a cell in these columns: its number, from 1, and these cells.
    ///
    /// # Errors
    /// The sheet is damaged, or the statement is cancelled.
    pub(super) fn next(
        &mut self,
        book: &Book,
        columns: std::ops::RangeInclusive<u32>,
    ) -> Result<Option<(u32, Row)>> {
        while !self.is_done {
            match self.xml.next()? {
                Token::Start(tag) if is(&tag, "row") => {
                    let written = attribute(&tag, "r").and_then(|number| number.parse().ok());
                    let row = written.unwrap_or(self.row + 1);
                    if row <= self.row || row > ROWS_MAX {
                        return Err(Error::data(format!(
                            "the sheet is damaged: row {row} follows row {}",
                            self.row
                        )));
                    }
                    self.row = row;
                    let cells = self.cells(book, &columns)?;
                    if !cells.is_empty() {
                        return Ok(Some((row, cells)));
                    }
                }
                // Cells are in one element; what follows are no cells.
                Token::Start(tag) if is(&tag, "sheetData") => {}
                Token::Start(tag) if is(&tag, "worksheet") => {}
                Token::Start(_) => self.xml.skip()?,
                Token::Done => self.is_done = true,
                Token::End | Token::Text(_) => {}
            }
        }
        Ok(None)
    }

    /// Reads the cells of the row whose start was read last.
    fn cells(&mut self, book: &Book, columns: &std::ops::RangeInclusive<u32>) -> Result<Row> {
        let (mut cells, mut next) = (Row::new(), 0);
        loop {
            match self.xml.next()? {
                Token::Start(tag) if is(&tag, "c") => {
                    let place = attribute(&tag, "r");
                    let written = place.as_deref().map(|place| parse_cell(place).map(|at| at.0));
                    let column = match written {
                        Some(Some(column)) => column,
                        Some(None) => return Err(self.damaged(place.as_deref().unwrap_or(""))),
                        None => next,
                    };
                    if column < next || column >= COLUMNS_MAX {
                        return Err(self.damaged(&cell_name(column, self.row)));
                    }
                    next = column + 1;
                    if !columns.contains(&column) {
                        self.xml.skip()?;
                        continue;
                    }
                    let (kind, style) = (attribute(&tag, "t"), attribute(&tag, "s"));
                    let style = style.and_then(|style| style.parse().ok()).unwrap_or(0);
                    if let Some(content) = self.content(book, kind.as_deref(), style, column)? {
                        cells.push((column, content));
                    }
                }
                Token::Start(_) => self.xml.skip()?,
                Token::End | Token::Done => return Ok(cells),
                Token::Text(_) => {}
            }
        }
    }

    /// Reads the cell whose start was read last. `None` if it is empty.
    fn content(
        &mut self,
        book: &Book,
        kind: Option<&str>,
        style: usize,
        column: u32,
    ) -> Result<Option<Content>> {
        let (mut value, mut inline) = (None, None);
        loop {
            match self.xml.next()? {
                Token::Start(tag) if is(&tag, "v") => {
                    self.xml.text(value.insert(String::new()))?;
                }
                Token::Start(tag) if is(&tag, "is") => {
                    rich_text(&mut self.xml, inline.insert(String::new()))?;
                }
                // Such as the formula.
                Token::Start(_) => self.xml.skip()?,
                Token::End | Token::Done => break,
                Token::Text(_) => {}
            }
        }
        let value = match kind {
            Some("inlineStr") => inline.or(value),
            Some("str") => value,
            // An empty number is an empty cell.
            _ => value.map(|text| text.trim().to_string()).filter(|text| !text.is_empty()),
        };
        let Some(value) = value else { return Ok(None) };
        Ok(Some(match kind {
            Some("s") => {
                let text = value.parse().ok().and_then(|number| book.texts.get(number));
                let text = text.ok_or_else(|| self.damaged(&cell_name(column, self.row)))?;
                Content::Text(text.to_string())
            }
            Some("str" | "inlineStr") => Content::Text(value),
            Some("b") => Content::Boolean(value == "1" || value.eq_ignore_ascii_case("true")),
            Some("e") => Content::Error(value),
            Some("d") => Content::Moment(value),
            _ => Content::Number(value, book.meaning(style)),
        }))
    }

    fn damaged(&self, cell: &str) -> Error {
        Error::data(format!("the sheet is damaged: cell {cell} in row {}", self.row))
    }
}
