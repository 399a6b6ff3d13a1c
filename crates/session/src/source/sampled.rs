//! CSV, JSON lines and Arrow IPC: columns from a sample or a header.

use tessera_files::FileFormat;
use tessera_plan::{Params, Value};
use tessera_sql::Statistics;
use tessera_types::{Error, Result, Tuple};

use super::Source;

/// Columns, statistics and the options that the scan needs.
///
/// # Errors
/// A file cannot be read, or the files do not agree.
pub(super) fn describe(source: &Source) -> Result<(Tuple, Statistics, Params)> {
    Err(Error::unsupported(format!("reading '{}'", source.paths[0])))
}

/// Options as SQL writes them, as parameters of a scan or materialise sub-operator.
///
/// # Errors
/// The format has no such option, or the value does not fit it.
pub(crate) fn params_of_options(format: FileFormat, options: &[(String, String)]) -> Result<Params> {
    let mut params = Params::new();
    if format == FileFormat::Tsv {
        params.set("delimiter", Value::string("\t"));
    }
    for (name, value) in options {
        params.set(name.as_str(), Value::string(value.as_str()));
    }
    Ok(params)
}
