//! Whether files are still what they were when they were read.

use crate::storage::{Stamp, Storage};

/// The version of each file of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamps {
    files: Vec<Option<Stamp>>,
}

impl Stamps {
    /// As the files are now.
    pub(crate) fn of(storage: &Storage, paths: &[String]) -> Stamps {
        Stamps { files: storage.stamps(paths) }
    }

    /// Whether nothing can have changed between two looks: a file whose stamp is unknown counts as
    /// changed.
    pub(crate) fn unchanged(&self, other: &Stamps) -> bool {
        self == other && self.files.iter().all(Option::is_some)
    }
}
