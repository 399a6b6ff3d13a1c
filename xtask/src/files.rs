//! The files of the tree, in the order of their paths.

use std::path::{Path, PathBuf};

/// Returns the entries of a folder; none if there is no such folder.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("reading {}: {error}", folder.display());
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<_, _>>().map_err(failed)?;
    paths.sort();
    Ok(paths)
}

/// Calls `take` with the path and the text of each Rust file below a folder.
pub(crate) fn each_source(folder: &Path, take: &mut impl FnMut(&Path, &str)) -> Result<(), String> {
    for path in entries(folder)? {
        if path.is_dir() {
            each_source(&path, take)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("reading {}: {error}", path.display()))?;
            take(&path, &text);
        }
    }
    Ok(())
}
