//! CSV: a header line; NULL is nothing, the empty string `""`.

use std::io::Write;

use tessera_ops::scan::csv::{write_batch, write_header};
use tessera_session::QueryResult;

use super::Failure;

/// Text is handed to the output in pieces of about this size.
const BUFFER_BYTES: usize = 64 << 10;

pub(super) fn write(out: &mut impl Write, result: &QueryResult) -> Result<(), Failure> {
    let mut text = Vec::with_capacity(2 * BUFFER_BYTES);
    write_header(&result.schema(), &mut text)?;
    for batch in result.batches() {
        write_batch(&batch?, &mut text)?;
        if text.len() >= BUFFER_BYTES {
            out.write_all(&text)?;
            text.clear();
        }
    }
    Ok(out.write_all(&text)?)
}
