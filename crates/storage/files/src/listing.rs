//! Expands a path, a pattern or a directory to files.

use std::fs;
use std::path::Path;

use tessera_types::{Error, Result};

use crate::{descriptor, io_error};

/// The most files of one table.
const FILES_MAX: usize = 1_000_000;
/// The deepest nesting of folders below a table's directory.
const FOLDER_DEPTH_MAX: usize = 64;

/// Whether `path` is a pattern (`*`, `**`, `?`, `[…]`) and not the name of an existing file.
pub fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '[']) && !Path::new(path).exists()
}

/// Returns the sorted files of a path: itself, the matches of a pattern, or the files of a
/// directory ([`list`]). `is_data` tells by their paths which files have a known format.
///
/// # Errors
/// The path does not exist, or no file matches.
pub fn expand(path: &str, is_data: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
    if is_pattern(path) {
        let paths = glob(path)?;
        return match paths.is_empty() {
            true => Err(Error::io(format!("no file matches '{path}'"))),
            false => Ok(paths),
        };
    }
    if descriptor::named(Path::new(path)).is_some() {
        return Ok(vec![path.to_string()]);
    }
    let metadata = fs::metadata(path).map_err(|error| io_error("open", path, error))?;
    if metadata.is_dir() { list(path, is_data) } else { Ok(vec![path.to_string()]) }
}

/// Returns the sorted files that a pattern matches, or the file of this name; no folders.
///
/// # Errors
/// The pattern is malformed, or matches too many files.
pub fn glob(pattern: &str) -> Result<Vec<String>> {
    if !is_pattern(pattern) {
        let is_file = Path::new(pattern).is_file();
        return Ok(is_file.then(|| pattern.to_string()).into_iter().collect());
    }
    let bad = |error: &dyn std::fmt::Display| {
        Error::semantic(format!("the pattern '{pattern}' is malformed: {error}"))
    };
    let options = ::glob::MatchOptions { require_literal_leading_dot: true, ..Default::default() };
    // The library's `**` at the end matches folders alone.
    let of_files = match pattern == "**" || pattern.ends_with("/**") {
        true => format!("{pattern}/*"),
        false => pattern.to_string(),
    };
    let mut paths = Vec::new();
    for entry in ::glob::glob_with(&of_files, options).map_err(|error| bad(&error))? {
        let entry =
            entry.map_err(|error| Error::io(format!("cannot read '{pattern}': {error}")))?;
        if entry.is_file() {
            paths.push(text(&entry)?);
        }
        if paths.len() > FILES_MAX {
            return Err(too_many(pattern));
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the sorted data files of a directory and its subdirectories. Names that start with `.`
/// or `_` (hidden, temporary, markers) are skipped.
///
/// # Errors
/// The directory cannot be read, or has no data files.
pub fn list(directory: &str, is_data: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    walk(Path::new(directory), 0, &mut paths)?;
    // If some files have the extension of a known format, others (such as a README) are not data.
    if paths.iter().any(|path| is_data(path)) {
        paths.retain(|path| is_data(path));
    }
    if paths.is_empty() {
        return Err(Error::io(format!("the directory '{directory}' contains no data files")));
    }
    paths.sort();
    Ok(paths)
}

pub(crate) fn walk(folder: &Path, depth: usize, paths: &mut Vec<String>) -> Result<()> {
    let name = folder.to_string_lossy().into_owned();
    if depth > FOLDER_DEPTH_MAX {
        return Err(Error::io(format!(
            "'{name}' is nested more than {FOLDER_DEPTH_MAX} folders deep"
        )));
    }
    for entry in fs::read_dir(folder).map_err(|error| io_error("list", &name, error))? {
        let entry = entry.map_err(|error| io_error("list", &name, error))?;
        let file_name = entry.file_name();
        let file_name = file_name.to_string_lossy();
        // A folder such as `_year=2024` is a partition, not a marker.
        let hidden =
            file_name.starts_with('.') || (file_name.starts_with('_') && !file_name.contains('='));
        if hidden || file_name.ends_with(".tmp") {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            walk(&path, depth + 1, paths)?;
        } else if path.is_file() {
            paths.push(text(&path)?);
        }
        if paths.len() > FILES_MAX {
            return Err(too_many(&name));
        }
    }
    Ok(())
}

fn too_many(path: &str) -> Error {
    Error::new(
        tessera_types::Code::Limit,
        format!("'{path}' matches more than {FILES_MAX} files; use a narrower pattern"),
    )
}

fn text(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) => Ok(text.to_string()),
        None => Err(Error::io(format!("the file name {} is not UTF-8; rename it", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        folder
    }

    fn is_csv(path: &str) -> bool {
        path.ends_with(".csv")
    }

    fn names(folder: &tempfile::TempDir, paths: Vec<String>) -> Vec<String> {
        let prefix = format!("{}/", folder.path().display());
        paths.into_iter().map(|path| path.replace(&prefix, "")).collect()
    }

    #[test]
    fn directories_are_listed_in_order_without_hidden_files() {
        let folder = folder(&[
            "b.csv",
            "a.csv",
            "k=1/c.csv",
            ".hidden.csv",
            "_SUCCESS",
            "x.tmp",
            "README.md",
        ]);
        let paths = expand(folder.path().to_str().unwrap(), &is_csv).unwrap();
        assert_eq!(names(&folder, paths), ["a.csv", "b.csv", "k=1/c.csv"]);
    }

    #[test]
    fn patterns() {
        let folder = folder(&["a1.csv", "a2.csv", "b.csv", "deep/er/a3.csv", "odd[1].csv"]);
        let root = folder.path().to_str().unwrap();
        let expanded = |pattern: &str| {
            expand(&format!("{root}/{pattern}"), &is_csv).map(|paths| names(&folder, paths))
        };
        assert_eq!(expanded("a?.csv").unwrap(), ["a1.csv", "a2.csv"]);
        assert_eq!(expanded("a[2-3].csv").unwrap(), ["a2.csv"]);
        assert_eq!(expanded("**/a*.csv").unwrap(), ["a1.csv", "a2.csv", "deep/er/a3.csv"]);
        let below = ["deep/er/a3.csv"];
        assert_eq!(expanded("deep/**").unwrap(), below);
        assert_eq!(expanded("**/er/**").unwrap(), below);
        assert_eq!(expanded("**").unwrap().len(), 5);
        assert_eq!(
            expanded("odd[1].csv").unwrap(),
            ["odd[1].csv"],
            "an existing file is not a pattern"
        );
        assert!(expanded("*.parquet").unwrap_err().to_string().contains("no file matches"));
    }

    #[test]
    fn an_empty_directory_is_an_error() {
        let folder = folder(&[]);
        let error = expand(folder.path().to_str().unwrap(), &is_csv).unwrap_err();
        assert!(error.to_string().contains("contains no data files"), "{error}");
    }
}
