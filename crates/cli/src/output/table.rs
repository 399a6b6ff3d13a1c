//! A table for people: numbers to the right, the number of rows beneath.

use std::io::Write;

use arrow::array::RecordBatch;
use tessera_ops::scan::display::Texts;
use tessera_session::QueryResult;
use unicode_width::UnicodeWidthStr;

use super::Failure;

/// Values wider than this are cut where the number of rows is limited too.
const CELL_WIDTH_MAX: usize = 80;

pub(super) fn write(out: &mut impl Write, result: &QueryResult, rows_max: usize) -> Result<(), Failure> {
    let names: Vec<String> = result.names().iter().map(|name| printable(name)).collect();
    let numbers: Vec<bool> =
        result.schema().fields().iter().map(|field| field.data_type().is_numeric()).collect();
    let rows = cells(result, rows_max)?;
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].width());
        widths.chain([names[column].width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let mut text = String::new();
    line(&mut text, &names, &widths, &vec![false; names.len()]);
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    text.push_str(&rules.join("+"));
    text.push('\n');
    for row in &rows {
        line(&mut text, row, &widths, &numbers);
    }
    let count = result.row_count();
    let plural = if count == 1 { "row" } else { "rows" };
    if rows.len() < count {
        text.push_str(&format!("({count} {plural}, the first {} shown; .rows all shows all)\n", rows.len()));
    } else {
        text.push_str(&format!("({count} {plural})\n"));
    }
    Ok(out.write_all(text.as_bytes())?)
}

fn cells(result: &QueryResult, rows_max: usize) -> Result<Vec<Vec<String>>, Failure> {
    let mut rows = Vec::new();
    for batch in result.batches() {
        let batch: RecordBatch = batch?;
        let columns = batch.columns().iter().map(Texts::new).collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            if rows.len() == rows_max {
                return Ok(rows);
            }
            let mut values = Vec::with_capacity(columns.len());
            for column in &columns {
                let mut value = String::new();
                if !column.is_null(row) {
                    column.append(row, &mut value)?;
                    value = printable(&value);
                    if rows_max < usize::MAX {
                        cut(&mut value);
                    }
                } else {
                    value.push_str("NULL");
                }
                values.push(value);
            }
            rows.push(values);
        }
    }
    Ok(rows)
}

/// Control characters would break the table, or the terminal.
fn printable(text: &str) -> String {
    if text.contains(char::is_control) {
        text.chars()
            .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
            .collect()
    } else {
        text.to_string()
    }
}

fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(CELL_WIDTH_MAX) {
        text.truncate(at);
        text.push('…');
    }
}

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
