//! Whether files are still what they were when they were read.

use std::time::SystemTime;

/// Size and time of change of each file of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamps {
    files: Vec<Option<(u64, SystemTime)>>,
}

impl Stamps {
    /// As the files are now.
    pub(crate) fn of(paths: &[String]) -> Stamps {
        let stamp = |path: &String| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.len(), metadata.modified().ok()?))
        };
        Stamps { files: paths.iter().map(stamp).collect() }
    }

    /// Whether nothing can have changed between two looks: a file whose stamp is unknown counts as changed.
    pub(crate) fn unchanged(&self, other: &Stamps) -> bool {
        self == other && self.files.iter().all(Option::is_some)
    }
}
