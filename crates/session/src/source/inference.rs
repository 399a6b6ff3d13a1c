//! Columns of CSV, JSON and Arrow IPC tables, inferred from their first rows or read from headers.

use std::sync::Arc;

use tessera_context::RangeReader;
use tessera_files::FileFormat;
use tessera_formats::file::merge_tuples;
use tessera_formats::{csv, ipc, json};
use tessera_optimizer::table::Statistics;
use tessera_plan::{Params, Value};
use tessera_types::{Error, Result, Tuple};

use super::Source;
use crate::storage::Storage;

/// The maximum number of files to infer columns from. A further file with other columns is an error
/// when it is read.
const SAMPLED_FILES_MAX: usize = 256;

/// The assumed size of a row, for estimates.
const ROW_BYTES: f64 = 64.0;

/// The columns and statistics of a table, and the parameters of its scan.
///
/// # Errors
/// A file cannot be read, or the files have incompatible columns.
pub(super) fn describe(storage: &Storage, source: &Source) -> Result<(Tuple, Statistics, Params)> {
    let sample = &source.paths[..source.paths.len().min(SAMPLED_FILES_MAX)];
    let readers = storage.open_all(sample)?;
    let bytes: u64 = readers.iter().map(|reader| reader.len()).sum();
    let share = sample.len().max(1) as f64 / source.paths.len().max(1) as f64;
    let rows = (bytes as f64 / ROW_BYTES / share).max(1.0);
    let statistics = Statistics { rows: Some(rows), columns: Vec::new() };
    let (tuple, params) = match source.format {
        FileFormat::Json => {
            let (tuple, mut params) = match json::infer(&readers, &source.options) {
                // Files without keys are valid if columns are declared.
                Ok((tuple, _)) if tuple.is_empty() && source.declared.is_none() => {
                    return Err(json::without_columns(&source.paths[0]));
                }
                found => found?,
            };
            // Declared columns may appear only after the rows that inference reads.
            if let (Some(declared), Some(Value::List(keys))) =
                (&source.declared, params.get("keys"))
            {
                let declared = declared.iter().map(|field| Value::string(field.name.clone()));
                let more = declared.filter(|name| !keys.contains(name)).collect::<Vec<_>>();
                let keys = keys.iter().cloned().chain(more).collect::<Vec<_>>();
                params.set("keys", keys);
            }
            (tuple, params)
        }
        FileFormat::Ipc => {
            let describe = |reader: Arc<dyn RangeReader>| {
                Ok((reader.path().to_string(), ipc::discover(reader)?))
            };
            let tuples = readers.into_iter().map(describe).collect::<Result<Vec<_>>>()?;
            (merge_tuples(&tuples)?, source.options.clone())
        }
        _ => {
            let (tuple, mut params) = csv::infer(&readers, &source.options)?;
            // Without a header, declared columns name the fields in order, like the option
            // `columns`. One more field is allowed: a delimiter may end the records. Otherwise the
            // record is reported as an error when it is read.
            let is_named = source.options.get("names").is_some();
            let more = usize::from(params.get("header") == Some(&Value::Boolean(false)));
            if let (Some(declared), Some(_)) = (&source.declared, params.get("names")) {
                if (declared.len()..=declared.len() + more).contains(&tuple.len()) {
                    let names = declared.iter().map(|field| Value::string(field.name.clone()));
                    params.set("names", names.collect::<Vec<_>>());
                } else if is_named {
                    return Err(Error::semantic(format!(
                        "option columns names {} columns, but records of '{}' have {} fields",
                        declared.len(),
                        source.paths[0],
                        tuple.len()
                    )));
                }
            }
            (tuple, params)
        }
    };
    Ok((tuple, statistics, params))
}
