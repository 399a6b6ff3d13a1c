//! Common code of formats whose files do not say how many rows they have.

use std::sync::Arc;

use tessera_context::RangeReader;
use tessera_operator::format::{FormatOption, OptionKind, TEXT, TableFiles};
use tessera_plan::{Params, Statistics, Value};
use tessera_types::Result;

use crate::csv::flag;
use crate::file::UNION;

/// The maximum number of files to infer columns from. A further file with other columns is an error
/// when it is read.
const SAMPLED_FILES_MAX: usize = 256;

/// The assumed size of a row, for estimates.
const ROW_BYTES: f64 = 64.0;

/// Opens the files that columns are inferred from, which are the first ones unless `all` is set,
/// and estimates the rows of all.
///
/// # Errors
/// A file cannot be read.
pub fn sampled(
    files: &TableFiles<'_>,
    all: bool,
) -> Result<(Vec<Arc<dyn RangeReader>>, Statistics)> {
    let count = if all { files.paths.len() } else { files.paths.len().min(SAMPLED_FILES_MAX) };
    let sample = &files.paths[..count];
    let readers = (files.open)(sample)?;
    let bytes: u64 = readers.iter().map(|reader| reader.len()).sum();
    let share = sample.len().max(1) as f64 / files.paths.len().max(1) as f64;
    let rows = (bytes as f64 / ROW_BYTES / share).max(1.0);
    Ok((readers, Statistics { rows: Some(rows), columns: Vec::new() }))
}

/// The start of a text, for the detection of its format; `None` for binary data.
pub(crate) fn text_start(start: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        // The last character may be truncated.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(start.get(..error.valid_up_to())?).ok()?
        }
        Err(_) => return None,
    };
    (!text.contains('\0')).then_some(text)
}

/// The option of columns by name.
pub(crate) const UNION_BY_NAME: FormatOption = FormatOption {
    name: UNION,
    aliases: &[],
    help: "whether columns are those of all files, by name: NULL where a file lacks one, and of a common type",
    default: None,
    kind: TEXT,
};

/// Takes the option of columns by name from the parameters of a table.
///
/// # Errors
/// It is neither true nor false.
pub(crate) fn take_union(params: &mut Params) -> Result<bool> {
    let is_union = flag(params, UNION)? == Some(true);
    params.remove(UNION);
    Ok(is_union)
}

/// The option of the rows that columns are inferred from.
pub(crate) const SAMPLE: FormatOption = FormatOption {
    name: "sample",
    aliases: &["sample_size"],
    help: "`all`: columns are inferred from all rows; absent: from the first ones",
    default: None,
    // DuckDB writes -1 for all rows.
    kind: OptionKind::Literal(|text| Ok(Value::string(if text == "-1" { "all" } else { text }))),
};
