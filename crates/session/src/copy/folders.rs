//! The options of `COPY … TO 'folder' (PARTITION_BY (a, b))`.

use std::sync::Arc;

use tessera_context::Compression;
use tessera_operator::format::{COMPRESSION, FormatEntry};
use tessera_parser::parse_names;
use tessera_plan::Value;
use tessera_types::{Error, Result, did_you_mean, quote_name};

use crate::source::flag;

/// The label in a pattern of file names for the number of the file in its folder.
const NUMBER: &str = "{i}";
/// The label for a random identifier, and another spelling.
const UNIQUE: [&str; 2] = ["{uuid}", "{uuidv4}"];

/// How rows are divided into files.
#[derive(Debug)]
pub(super) struct Folders {
    columns: Vec<String>,
    /// The name of a file, with its extension.
    file: String,
    mode: &'static str,
    /// Whether files have the columns that the folders name.
    keep: bool,
}

impl Folders {
    /// Takes the options of folders from others; `None` if the statement writes one file.
    ///
    /// # Errors
    /// An option is invalid, conflicts with another, or needs `PARTITION_BY`.
    pub(super) fn take(
        options: &[(String, String)],
        entry: &FormatEntry,
    ) -> Result<(Option<Folders>, Vec<(String, String)>)> {
        let (mut by, mut modes, mut pattern, mut extension, mut keep) =
            (None, Vec::new(), None, None, false);
        let (mut others, mut dependent) = (Vec::new(), None);
        for (name, value) in options {
            match name.as_str() {
                "partition_by" if by.is_none() => {
                    by = Some(parse_names(value).unwrap_or_else(|| vec![value.clone()]))
                }
                "partition_by" => {
                    return Err(Error::semantic(
                        "duplicate option partition_by; remove one of them",
                    ));
                }
                "overwrite" | "overwrite_or_ignore" | "append" => {
                    if flag(name, value)? {
                        modes.push(name.as_str());
                    }
                }
                "filename_pattern" => pattern = Some(value.as_str()),
                "file_extension" => extension = Some(value.trim_start_matches('.')),
                "write_partition_columns" => keep = flag(name, value)?,
                _ => {
                    others.push((name.clone(), value.clone()));
                    continue;
                }
            }
            if name != "partition_by" {
                dependent = Some(name);
            }
        }
        let Some(columns) = by else {
            return match dependent {
                None => Ok((None, others)),
                Some(name) => Err(Error::semantic(format!(
                    "option {name} needs the option PARTITION_BY (column, …), which names the columns of folders"
                ))),
            };
        };
        let mode = match modes.as_slice() {
            [] => "new",
            ["overwrite"] => "overwrite",
            ["overwrite_or_ignore"] => "replace",
            [_] => "append",
            [one, other, ..] => {
                return Err(Error::semantic(format!(
                    "options {one} and {other} contradict each other; remove one of them"
                )));
            }
        };
        let extension = match extension {
            Some(extension) => extension.to_string(),
            None => default_extension(entry, &others),
        };
        let file = format!("{}.{extension}", stem(pattern, mode)?);
        Ok((Some(Folders { columns, file, mode, keep }), others))
    }

    /// The names of the columns in the query, with the case they have there.
    ///
    /// # Errors
    /// A column does not exist or is repeated, or no other column is left for the files.
    pub(super) fn keys(&self, names: &[Arc<str>]) -> Result<Vec<Arc<str>>> {
        let mut keys: Vec<Arc<str>> = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let found = names.iter().find(|name| ***name == **column);
            let found =
                found.or_else(|| names.iter().find(|name| name.eq_ignore_ascii_case(column)));
            let Some(found) = found else {
                let hint = did_you_mean(column, names.iter().map(|name| &**name));
                return Err(Error::semantic(format!(
                    "unknown column {} in PARTITION_BY{hint}",
                    quote_name(column)
                )));
            };
            if keys.contains(found) {
                return Err(Error::semantic(format!(
                    "PARTITION_BY names column {} twice; remove one of them",
                    quote_name(column)
                )));
            }
            keys.push(found.clone());
        }
        if keys.len() == names.len() && !self.keep {
            return Err(Error::semantic(
                "PARTITION_BY names all columns, so that none is left for the files; keep them with \
                 WRITE_PARTITION_COLUMNS true",
            ));
        }
        Ok(keys)
    }

    /// The parameter of the materialize sub-operator.
    pub(super) fn to_value(&self, keys: Vec<Arc<str>>) -> Value {
        let names = keys.into_iter().map(Value::string).collect::<Vec<_>>();
        Value::Record(vec![
            ("by".into(), Value::List(names)),
            ("file".into(), Value::string(self.file.as_str())),
            ("mode".into(), Value::string(self.mode)),
            ("keep".into(), Value::Boolean(self.keep)),
        ])
    }
}

/// The extension of the format's files, with that of the compression if an option names one.
fn default_extension(entry: &FormatEntry, options: &[(String, String)]) -> String {
    let extension = entry.extensions.first().copied().unwrap_or(entry.name);
    let named = |(name, value): &(String, String)| match name == COMPRESSION.name {
        true => Compression::named(value),
        false => None,
    };
    match options.iter().find_map(named).filter(|_| entry.is_compressed_as_a_whole()) {
        Some(compression) => format!("{extension}.{}", compression.extension()),
        None => extension.to_string(),
    }
}

/// The name of a file without its extension.
fn stem(pattern: Option<&str>, mode: &str) -> Result<String> {
    let unique = |pattern: &str| UNIQUE.iter().any(|label| pattern.contains(label));
    let stem = match pattern {
        None if mode == "append" => UNIQUE[0].to_string(),
        None => format!("data_{NUMBER}"),
        Some(pattern) if mode == "append" && !unique(pattern) => {
            return Err(Error::semantic(format!(
                "option filename_pattern '{pattern}' needs a label {} with APPEND, since files that exist stay",
                UNIQUE[0]
            )));
        }
        Some(pattern) if unique(pattern) || pattern.contains(NUMBER) => {
            pattern.replace(UNIQUE[1], UNIQUE[0])
        }
        Some(pattern) => format!("{pattern}{NUMBER}"),
    };
    // A file of another folder, or one that listings skip, would be lost.
    if stem.contains(['/', '\0']) || stem.starts_with(['.', '_']) {
        return Err(Error::semantic(format!(
            "option filename_pattern '{stem}' must be a file name without '/' that does not begin with '.' or '_'"
        )));
    }
    Ok(stem)
}
