//! Answers as text.

use tessera_session::{QueryResult, Session, StatementResult};

/// Every value as text, row by row.
pub(crate) fn texts(result: &QueryResult) -> Vec<String> {
    let mut out = Vec::new();
    for batch in result.batches() {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let value = |column: &arrow::array::ArrayRef| match column.is_null(row) {
                true => "NULL".to_string(),
                false => arrow::util::display::array_value_to_string(column, row).unwrap(),
            };
            out.push(batch.columns().iter().map(value).collect::<Vec<_>>().join(" "));
        }
    }
    out
}

/// The result of a statement, a line for each row.
pub(crate) fn answer(session: &mut Session, sql: &str) -> String {
    match session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}")).pop() {
        Some(StatementResult::Rows(rows)) => texts(&rows).join("\n"),
        Some(StatementResult::Text(text) | StatementResult::Done(text)) => text,
        other => panic!("{sql}: {other:?}"),
    }
}
