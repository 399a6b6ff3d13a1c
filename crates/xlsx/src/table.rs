//! Which cells of a sheet are a table: its names, its types and its rows.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tessera_plan::Params;
use tessera_types::{Atom, Error, Result, TimeUnit, unique_names};

use crate::book::{Book, Meaning};
use crate::range::{Range, cell_name, column_name};
use crate::sheet::{Content, Row, Rows};
use tessera_formats::csv::flag;
use tessera_formats::text::cells::Cells;

/// The options of reading a sheet.
#[derive(Debug, Clone)]
pub(super) struct Options {
    sheet: Option<Arc<str>>,
    /// Whether the first row has names; `None` if the row tells.
    header: Option<bool>,
    range: Option<Range>,
    empty_is_text: bool,
    stops_at_empty: bool,
    /// Whether a value of another type than its column's is NULL.
    pub(super) ignores: bool,
}

impl Options {
    /// Reads the parameters of a scan.
    ///
    /// # Errors
    /// A parameter has an invalid value.
    pub(super) fn new(params: &Params) -> Result<Options> {
        let text = |name: &str| match params.get(name) {
            None => Ok(None),
            Some(_) => params.string(name).map(|text| Some(text.clone())),
        };
        let range = text("range")?.map(|text| Range::parse(&text)).transpose()?;
        let stops = flag(params, "stop_at_empty")?.unwrap_or(range.is_none());
        Ok(Options {
            sheet: text("sheet")?,
            header: flag(params, "header")?,
            range,
            empty_is_text: flag(params, "empty_as_varchar")? == Some(true),
            stops_at_empty: stops,
            ignores: flag(params, "ignore_errors")? == Some(true),
        })
    }
}

/// The table of a sheet.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) names: Vec<String>,
    pub(super) types: Vec<Atom>,
    columns: RangeInclusive<u32>,
    /// The rows that have values.
    rows: RangeInclusive<u32>,
    /// Whether rows without cells follow to the end.
    has_end: bool,
    stops_at_empty: bool,
}

impl Table {
    /// Finds the table of a sheet.
    ///
    /// # Errors
    /// There is no such sheet, it has no rows, or it is damaged.
    pub(super) fn of(book: &Book, options: &Options) -> Result<Table> {
        let sheet = options.sheet.as_deref();
        let mut rows = Rows::new(book.sheet(sheet)?);
        let range = options.range.clone().unwrap_or_else(Range::whole);
        let mut next = || -> Result<Option<(u32, Row)>> {
            while let Some((number, row)) = rows.next(book, range.columns.clone())? {
                if number >= *range.rows.start() {
                    return Ok(Some((number, row)).filter(|_| range.rows.contains(&number)));
                }
            }
            Ok(None)
        };
        let first = next()?;
        // Without a range, the first row with cells says which columns there are.
        let is_given = options.range.as_ref().is_some_and(Range::has_columns);
        let columns = match (&first, is_given) {
            (_, true) => range.columns.clone(),
            (Some((_, row)), false) => {
                let place = |cell: Option<&(u32, Content)>| cell.map_or(0, |(column, _)| *column);
                place(row.first())..=place(row.last())
            }
            (None, false) => {
                return Err(Error::data(match sheet {
                    Some(sheet) => format!("sheet '{sheet}' has no rows with cells"),
                    None => {
                        "its first sheet has no rows with cells; name another with the option sheet"
                            .to_string()
                    }
                }));
            }
        };
        let start = match (&first, options.range.is_some()) {
            (Some((number, _)), false) => *number,
            _ => *range.rows.start(),
        };
        let header = first.as_ref().filter(|(number, _)| *number == start).map(|(_, row)| row);
        let is_name = |content: Option<&Content>| matches!(content, Some(Content::Text(text)) if !text.is_empty());
        let looks_like_names = |row: &Row| columns.clone().all(|column| is_name(cell(row, column)));
        let has_header = options.header.unwrap_or_else(|| header.is_some_and(looks_like_names));
        let name = |column: u32| match header.and_then(|row| cell(row, column)).map(text_of) {
            Some(text) if has_header && !text.is_empty() => text,
            // As DuckDB names them.
            _ if options.range.is_some() => column_name(column),
            _ => cell_name(column, start),
        };
        let names = unique_names(columns.clone().map(name).collect::<Vec<_>>());
        let values = match (has_header, first.as_ref()) {
            (true, Some((number, _))) if *number == start => next()?.map(|(_, row)| row),
            (_, first) => first.map(|(_, row)| row.clone()),
        };
        let values = values.unwrap_or_default();
        let empty = if options.empty_is_text { Atom::String } else { Atom::Float64 };
        let of_column = |column| cell(&values, column).map_or(empty.clone(), type_of);
        let types = columns.clone().map(of_column).collect();
        Ok(Table {
            names,
            types,
            columns,
            rows: start + u32::from(has_header)..=*range.rows.end(),
            has_end: range.has_end,
            stops_at_empty: options.stops_at_empty,
        })
    }

    /// The column of the sheet at a position.
    pub(super) fn column(&self, position: usize) -> u32 {
        self.columns.start() + position as u32
    }
}

/// Returns the cell of a row in a column.
pub(super) fn cell(row: &Row, column: u32) -> Option<&Content> {
    let place = row.binary_search_by_key(&column, |(column, _)| *column).ok()?;
    Some(&row[place].1)
}

/// The type of a column that begins with a cell.
fn type_of(content: &Content) -> Atom {
    match content {
        Content::Text(_) | Content::Error(_) => Atom::String,
        Content::Boolean(_) => Atom::Boolean,
        Content::Number(_, Meaning::Number) => Atom::Float64,
        Content::Number(_, Meaning::Date) => Atom::Date,
        Content::Number(_, Meaning::Time) => Atom::Time(TimeUnit::Microsecond),
        Content::Number(_, Meaning::Moment) => Atom::Timestamp(TimeUnit::Microsecond, None),
        Content::Moment(text) if text.contains('T') => Atom::Timestamp(TimeUnit::Microsecond, None),
        Content::Moment(_) => Atom::Date,
    }
}

/// A cell as text: numbers as they are written.
fn text_of(content: &Content) -> String {
    match content {
        Content::Text(text)
        | Content::Error(text)
        | Content::Moment(text)
        | Content::Number(text, _) => text.clone(),
        Content::Boolean(flag) => if *flag { "1" } else { "0" }.to_string(),
    }
}

/// The rows of a table.
pub(super) struct TableRows {
    rows: Rows,
    /// The next row.
    next: u32,
    /// The next row that has cells.
    pending: Option<(u32, Row)>,
    is_done: bool,
}

impl TableRows {
    /// Begins with the first row.
    ///
    /// # Errors
    /// There is no such sheet.
    pub(super) fn new(book: &Book, table: &Table, options: &Options) -> Result<TableRows> {
        let rows = Rows::new(book.sheet(options.sheet.as_deref())?);
        Ok(TableRows { rows, next: *table.rows.start(), pending: None, is_done: false })
    }

    /// Returns the next row and its number.
    ///
    /// # Errors
    /// The sheet is damaged, or the statement is cancelled.
    pub(super) fn next(&mut self, book: &Book, table: &Table) -> Result<Option<(u32, Row)>> {
        while self.pending.is_none() && !self.is_done {
            self.pending = self.rows.next(book, table.columns.clone())?;
            let number = self.pending.as_ref().map(|(number, _)| *number);
            self.is_done = number.is_none_or(|number| number > *table.rows.end());
            self.pending = self.pending.take().filter(|(number, _)| table.rows.contains(number));
        }
        let number = self.next;
        let is_row = self.pending.as_ref().is_some_and(|(pending, _)| *pending == number);
        if is_row {
            self.next += 1;
            return Ok(self.pending.take());
        }
        let is_between = self.pending.is_some();
        let goes_on = is_between || table.has_end && table.rows.contains(&number);
        if table.stops_at_empty || !goes_on {
            (self.pending, self.is_done, self.next) = (None, true, u32::MAX);
            return Ok(None);
        }
        self.next += 1;
        Ok(Some((number, Row::new())))
    }
}

/// Adds a cell to a column of this type.
pub(super) fn push(cells: &mut Cells, content: Option<&Content>, atom: &Atom, is_1904: bool) {
    match content {
        None => cells.push_null(),
        Some(Content::Number(text, _)) => match moment(text, atom, is_1904) {
            Some(moment) => cells.push(moment.as_bytes()),
            None => cells.push(text.as_bytes()),
        },
        Some(Content::Text(text)) if text.is_empty() && *atom != Atom::String => cells.push_null(),
        Some(content) => cells.push(text_of(content).as_bytes()),
    }
}

/// The text of a date or time that a number stands for; `None` for other types, and for numbers
/// that are none.
fn moment(text: &str, atom: &Atom, is_1904: bool) -> Option<String> {
    /// The milliseconds of a day, as precise as Excel is.
    const DAY: i64 = 86_400_000;
    if !matches!(atom, Atom::Date | Atom::Time(_) | Atom::Timestamp(..)) {
        return None;
    }
    let days: f64 = text.parse().ok()?;
    // The range of dates that Excel has.
    if !(0.0..2_958_466.0).contains(&days) {
        return None;
    }
    let all = (days * DAY as f64).round() as i64;
    let (day, within) = (all.div_euclid(DAY), all.rem_euclid(DAY));
    let time = chrono::NaiveTime::from_num_seconds_from_midnight_opt(
        (within / 1_000) as u32,
        (within % 1_000 * 1_000_000) as u32,
    )?;
    // Excel counts a 29th of February 1900, which was none.
    let (first, day) = match is_1904 {
        true => (chrono::NaiveDate::from_ymd_opt(1904, 1, 1)?, day),
        false => (chrono::NaiveDate::from_ymd_opt(1899, 12, 30)?, day + i64::from(day < 60)),
    };
    let date = first.checked_add_signed(chrono::TimeDelta::try_days(day)?)?;
    Some(match atom {
        Atom::Date => date.format("%Y-%m-%d").to_string(),
        Atom::Time(_) => time.format("%H:%M:%S%.3f").to_string(),
        _ => date.and_time(time).format("%Y-%m-%d %H:%M:%S%.3f").to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_moments() {
        let date = |text| moment(text, &Atom::Date, false);
        assert_eq!(date("1").unwrap(), "1900-01-01");
        assert_eq!(date("59").unwrap(), "1900-02-28");
        assert_eq!(date("60").unwrap(), "1900-02-28");
        assert_eq!(date("61").unwrap(), "1900-03-01");
        assert_eq!(date("45293.9").unwrap(), "2024-01-02");
        assert_eq!((date("-1"), date("x"), date("1e9")), (None, None, None));
        assert_eq!(moment("0", &Atom::Date, true).unwrap(), "1904-01-01");
        let time = |text| moment(text, &Atom::Time(TimeUnit::Microsecond), false).unwrap();
        assert_eq!(time("0.4375"), "10:30:00.000");
        assert_eq!(time("1.25"), "06:00:00.000");
        let stamp = Atom::Timestamp(TimeUnit::Microsecond, None);
        let of = |text| moment(text, &stamp, false).unwrap();
        assert_eq!(of("45293.12784143518"), "2024-01-02 03:04:05.500");
        assert_eq!(of("45292.9999999999"), "2024-01-02 00:00:00.000");
        assert_eq!(moment("1", &Atom::String, false), None);
    }
}
