//! Table output: numbers are aligned to the right, and the number of rows is below.

use std::io::Write;

use arrow::array::RecordBatch;
use tessera_formats::display::ColumnText;
use tessera_session::ResultStream;
use tessera_types::Error;
use unicode_width::UnicodeWidthStr;

use super::Failure;

/// The number of rows that determine the widths of columns. Wider values in later rows stick out.
const WIDTH_ROWS: usize = 10_000;
/// The limits of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableLimits {
    /// The maximum number of rows.
    pub(crate) rows_max: usize,
    /// The maximum width of a value. Wider ones are cut.
    pub(crate) cell_width_max: usize,
    /// A hint how to show more rows.
    pub(crate) hint: &'static str,
}

impl Default for TableLimits {
    fn default() -> Self {
        TableLimits { rows_max: usize::MAX, cell_width_max: usize::MAX, hint: "" }
    }
}

/// The cells of a row.
type Row = Vec<String>;

/// Writes a table. `begins` is called before the first byte.
pub(super) fn write(
    out: &mut impl Write,
    mut stream: ResultStream,
    limits: TableLimits,
    begins: impl Fn(),
) -> Result<(), Failure> {
    let names: Vec<String> = stream.names().iter().map(|name| printable(name)).collect();
    let right: Vec<bool> =
        stream.schema().fields().iter().map(|field| field.data_type().is_numeric()).collect();
    // Reads one more row than it shows, to detect further rows.
    let most = limits.rows_max.saturating_add(1);
    let mut rows: Vec<Row> = Vec::new();
    while rows.len() < most.min(WIDTH_ROWS) {
        let Some(batch) = stream.next() else { break };
        let batch = batch.map_err(|error| Failure::Query(error, 0))?;
        let left = most - rows.len();
        add_cells(&mut rows, &batch, left, limits.cell_width_max)?;
    }
    begins();
    let width = |column: usize| {
        let shown = rows.iter().take(limits.rows_max);
        shown.map(|row| row[column].width()).chain([names[column].width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let mut text = String::new();
    line(&mut text, &names, &widths, &vec![false; names.len()]);
    text.push_str(&widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("+"));
    text.push('\n');
    let mut written = 0;
    while written <= limits.rows_max {
        for row in rows.drain(..) {
            if written < limits.rows_max {
                line(&mut text, &row, &widths, &right);
            }
            written += 1;
        }
        out.write_all(text.as_bytes())?;
        text.clear();
        match stream.next() {
            None => break,
            Some(Ok(batch)) => add_cells(&mut rows, &batch, most - written, limits.cell_width_max)?,
            Some(Err(error)) => {
                out.flush()?;
                return Err(Failure::Query(error, written));
            }
        }
    }
    let note = match (written > limits.rows_max, written) {
        (true, _) => format!("(the first {} rows; {})", limits.rows_max, limits.hint),
        (false, 1) => "(1 row)".to_string(),
        (false, count) => format!("({count} rows)"),
    };
    Ok(writeln!(out, "{note}")?)
}

/// Adds the first rows of a batch.
fn add_cells(
    rows: &mut Vec<Row>,
    batch: &RecordBatch,
    rows_max: usize,
    width_max: usize,
) -> Result<(), Error> {
    let columns = batch.columns().iter().map(ColumnText::new).collect::<Result<Vec<_>, _>>()?;
    for row in 0..batch.num_rows().min(rows_max) {
        let cell = |column: &ColumnText<'_>| -> Result<String, Error> {
            if column.is_null(row) {
                return Ok("NULL".to_string());
            }
            let mut value = String::new();
            column.append(row, &mut value)?;
            value = printable(&value);
            cut(&mut value, width_max);
            Ok(value)
        };
        rows.push(columns.iter().map(cell).collect::<Result<_, _>>()?);
    }
    Ok(())
}

/// Escapes control characters, which would break the table or the terminal.
fn printable(text: &str) -> String {
    if text.contains(char::is_control) {
        text.chars()
            .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
            .collect()
    } else {
        text.to_string()
    }
}

/// Cuts a value to a maximum width.
fn cut(text: &mut String, width_max: usize) {
    if let Some((at, _)) = text.char_indices().nth(width_max) {
        text.truncate(at);
        text.push('…');
    }
}

/// Appends a line of the table.
fn line(out: &mut String, cells: &[String], widths: &[usize], right: &[bool]) {
    for (position, cell) in cells.iter().enumerate() {
        if position > 0 {
            out.push('|');
        }
        let padding = " ".repeat(widths[position].saturating_sub(cell.width()));
        let last = position + 1 == cells.len();
        out.push(' ');
        if right[position] {
            out.push_str(&padding);
        }
        out.push_str(cell);
        if !right[position] && !last {
            out.push_str(&padding);
        }
        if !last {
            out.push(' ');
        }
    }
    out.push('\n');
}
