//! What functions of FROM say about files: `glob` and those of the formats.

use tessera_objects::is_object;
use tessera_operator::format::TableFiles;
use tessera_optimizer::table::FileOption;
use tessera_plan::{FileFacts, Scalar};
use tessera_types::{Atom, Error, Result};

use crate::source::Source;
use crate::storage::Storage;

/// The function of the paths that a pattern matches.
pub(crate) const GLOB: &str = "glob";

/// The paths that patterns match. A pattern that nothing matches has no rows.
pub(crate) fn glob(
    storage: &Storage,
    patterns: &[String],
    options: &[FileOption],
) -> Result<FileFacts> {
    if let Some(option) = options.first() {
        return Err(Error::semantic(format!(
            "unknown option '{}' of {GLOB}, which has none; remove it",
            option.name
        )));
    }
    let mut rows = Vec::new();
    for pattern in patterns {
        let paths = storage.glob(pattern)?;
        rows.extend(paths.into_iter().map(|path| vec![Scalar::String(path.into())]));
    }
    Ok(FileFacts { columns: vec![("file", Atom::String)], rows })
}

impl Source {
    /// Returns what a function of the format says about the files.
    ///
    /// # Errors
    /// A file cannot be read or is damaged.
    pub(crate) fn facts(&self, function: &str, storage: &Storage) -> Result<FileFacts> {
        let open = |paths: &[String]| {
            storage.open_all(paths, self.format.entry().first_read, &self.options)
        };
        self.format.facts(
            function,
            &TableFiles {
                paths: &self.paths,
                params: &self.options,
                declared: self.declared.as_deref(),
                open: &open,
            },
        )
    }
}

impl Storage {
    /// The files that a pattern matches, sorted, or the file of this name; none is no error.
    ///
    /// # Errors
    /// The pattern is malformed, or a store rejects the request.
    pub(crate) fn glob(&self, pattern: &str) -> Result<Vec<String>> {
        match is_object(pattern) {
            true => self.expand(pattern, false).map(|files| files.paths),
            false => tessera_files::glob(pattern),
        }
    }
}
