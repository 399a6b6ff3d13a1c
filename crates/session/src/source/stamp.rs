//! Detection of changed files.

use crate::storage::{Stamp, Storage};

/// The versions of the files of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamps {
    files: Vec<Option<Stamp>>,
}

impl Stamps {
    /// Returns the current versions of files.
    pub(crate) fn of(storage: &Storage, paths: &[String]) -> Stamps {
        Stamps { files: storage.stamps(paths) }
    }

    /// Whether no file has changed. A file of unknown version counts as changed.
    pub(crate) fn unchanged(&self, other: &Stamps) -> bool {
        self == other && self.files.iter().all(Option::is_some)
    }
}
