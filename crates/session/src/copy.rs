//! `COPY (query) TO 'file'`: adds a materialize sub-operator to the plan of the query.

use std::sync::Arc;

use tessera_binder::PlannedQuery;
use tessera_context::Compression;
use tessera_operator::format::{Format, Formats};
use tessera_parser::STANDARD_OUTPUT;
use tessera_plan::{Builder, Expr, NodeId, Params, Plan, SortKey, Value};
use tessera_sql::CopyTo;
use tessera_types::{Error, Result, unique_names};

use crate::source::{alternatives, format_of_path, named, write_options};
use folders::Folders;

mod folders;

/// The plan that writes the file and returns its path and number of rows.
///
/// # Errors
/// The format is unknown, an option is invalid, or the path has the extension of a compressed file
/// and the format is not text.
pub(crate) fn plan(copy: &CopyTo, formats: &Formats) -> Result<Plan> {
    let format = match &copy.format {
        Some(name) => named(formats, name, true)?,
        None if copy.path == STANDARD_OUTPUT => named(formats, "csv", true)?,
        None => {
            format_of_path(formats, &copy.path).map_err(|_| unknown_format(&copy.path, formats))?
        }
    };
    let entry = format.entry();
    let materialize = entry.materialize.ok_or_else(|| unknown_format(&copy.path, formats))?;
    if Compression::of_path(&copy.path).is_some() && !entry.is_compressed_as_a_whole() {
        return Err(Error::unsupported(format!(
            "cannot write '{}': {} files are not compressed as a whole; remove the last extension",
            copy.path, entry.label
        )));
    }
    let names: Vec<Arc<str>> =
        unique_names(&copy.query.names).into_iter().map(Into::into).collect();
    let (mut builder, mut root) = with_names(&copy.query, names.clone());
    let mut params = Params::new().with("path", Value::string(copy.path.as_str()));
    let (folders, options) = Folders::take(&copy.options, entry)?;
    if let Some(folders) = folders {
        let keys = folders.keys(&names)?;
        let key = |name: &Arc<str>| {
            SortKey { field: name.clone(), descending: false, nulls_first: false }.to_value()
        };
        // One folder after the other: one file at a time is open.
        let keys_param = keys.iter().map(key).collect::<Vec<_>>();
        root = builder.add("sort", &[root], Params::new().with("keys", keys_param));
        params.set("partitions", folders.to_value(keys));
    } else if copy.path != STANDARD_OUTPUT && std::path::Path::new(&copy.path).is_dir() {
        return Err(Error::io(format!(
            "cannot write '{}': it is a directory; name a file, or the columns of its folders with PARTITION_BY",
            copy.path
        )));
    }
    for (name, value) in write_options(entry, &options)?.iter() {
        params.set(name.clone(), value.clone());
    }
    let root = builder.add(materialize, &[root], params);
    Ok(builder.finish(root))
}

fn unknown_format(path: &str, formats: &Formats) -> Error {
    let is_written = |format: &&Arc<dyn Format>| format.entry().materialize.is_some();
    let extensions = formats.iter().filter(is_written).flat_map(|f| f.entry().extensions);
    let extensions: Vec<String> = extensions.map(|extension| format!(".{extension}")).collect();
    Error::semantic(format!(
        "cannot tell the format of '{path}': its name must end in {}; or name the format as in COPY t TO '{path}' \
         (FORMAT csv)",
        alternatives(&extensions)
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
