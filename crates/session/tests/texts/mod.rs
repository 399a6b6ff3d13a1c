//! Answers as text.

use tessera_session::QueryResult;

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
