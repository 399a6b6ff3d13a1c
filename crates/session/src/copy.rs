//! `COPY (query) TO 'file'`: adds a materialize sub-operator to the plan of the query.

use std::sync::Arc;

use tessera_files::{Compression, FileFormat};
use tessera_plan::{Builder, Expr, NodeId, Params, Plan, Value};
use tessera_sql::{CopyTo, PlannedQuery, STANDARD_OUTPUT};
use tessera_types::{Error, Result, unique_names};

use crate::source::Direction;

/// The plan that writes the file and returns its path and number of rows.
///
/// # Errors
/// The format is unknown, an option is invalid, or the path has the extension of a compressed file.
pub(crate) fn plan(copy: &CopyTo) -> Result<Plan> {
    if Compression::of_path(&copy.path).is_some() {
        return Err(Error::unsupported(format!(
            "cannot write '{}': compressed files can be read but not written; remove the last \
             extension",
            copy.path
        )));
    }
    let format = match &copy.format {
        Some(name) => FileFormat::called(name).ok_or_else(|| {
            Error::unsupported(format!(
                "unknown format '{name}'; expected parquet, csv, tsv, json or arrow"
            ))
        })?,
        None if copy.path == STANDARD_OUTPUT => FileFormat::Csv,
        None => FileFormat::of_path(&copy.path).map_err(|_| unknown_format(&copy.path))?,
    };
    let names: Vec<Arc<str>> =
        unique_names(&copy.query.names).into_iter().map(Into::into).collect();
    let (mut builder, root) = with_names(&copy.query, names);
    let mut params = Params::new().with("path", Value::string(copy.path.as_str()));
    for (name, value) in
        crate::source::params_of_options(format, Direction::Write, &copy.options)?.iter()
    {
        params.set(name.clone(), value.clone());
    }
    let root = builder.add(format.materialize(), &[root], params);
    Ok(builder.finish(root))
}

fn unknown_format(path: &str) -> Error {
    Error::semantic(format!(
        "cannot tell the format of '{path}': its name must end in .parquet, .csv, .tsv, .json, .jsonl, .ndjson, .arrow, .ipc or \
         .feather; or name the format as in COPY t TO '{path}' (FORMAT csv)"
    ))
}

/// Starts a plan with a query, renaming its fields to `names`. Returns the root of the query.
pub(crate) fn with_names(query: &PlannedQuery, names: Vec<Arc<str>>) -> (Builder, NodeId) {
    let mut builder = Builder::new(query.plan.parameters.clone());
    let mut root = builder.append(query.plan.clone());
    if query.tuple.fields().iter().map(|field| &field.name).ne(&names) {
        let fields = query.tuple.fields().iter().map(|field| Expr::Field(field.name.clone()));
        let renamed = Value::exprs(names.into_iter().zip(fields));
        root = builder.add("map", &[root], Params::new().with("exprs", renamed));
    }
    (builder, root)
}
