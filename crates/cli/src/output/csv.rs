//! CSV: a header line; NULL is nothing, the empty string `""`.

use std::io::Write;

use tessera_session::QueryResult;

use super::Failure;
use super::cells::Cells;

/// Text is handed to the output in pieces of about this size.
const BUFFER_BYTES: usize = 64 << 10;

pub(super) fn write(out: &mut impl Write, result: &QueryResult) -> Result<(), Failure> {
    let mut text = String::with_capacity(BUFFER_BYTES + 1024);
    for (position, name) in result.names().iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        field(&mut text, name);
    }
    text.push('\n');
    let mut cell = String::new();
    for batch in result.batches() {
        let batch = batch?;
        let columns = batch.columns().iter().map(Cells::new).collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            for (position, column) in columns.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                if !column.is_null(row) {
                    cell.clear();
                    column.append(row, &mut cell)?;
                    field(&mut text, &cell);
                }
            }
            text.push('\n');
            if text.len() >= BUFFER_BYTES {
                out.write_all(text.as_bytes())?;
                text.clear();
            }
        }
    }
    Ok(out.write_all(text.as_bytes())?)
}

fn field(out: &mut String, value: &str) {
    if value.is_empty() || value.contains([',', '"', '\n', '\r']) {
        out.push('"');
        out.push_str(&value.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(value);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn quotes_only_where_needed() {
        let written = |value: &str| {
            let mut out = String::new();
            super::field(&mut out, value);
            out
        };
        assert_eq!(written("a b"), "a b");
        assert_eq!(written(""), "\"\"");
        assert_eq!(written("a\"b,c"), "\"a\"\"b,c\"");
    }
}
