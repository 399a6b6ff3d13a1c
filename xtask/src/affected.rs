//! Lists the packages that a change affects: those with changed files, and their dependents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::rooms::metadata;

/// Path prefixes of files outside of packages, and the packages with tests that read them.
const READ_BY: &[(&str, &[&str])] = &[
    ("queries/", &["tessera-sql"]),
    ("plans/", &["tessera-plan"]),
    ("docs/reference/plan-language.md", &["tessera-plan"]),
    ("tests/sql/", &["tessera-session"]),
    ("vendor/sqlparser/", &["tessera-parser"]),
];

/// Files that affect every package.
const READ_BY_ALL: &[&str] = &["Cargo.toml", "Cargo.lock", "rustfmt.toml", ".cargo/config.toml"];

/// A package of the workspace.
#[derive(Debug)]
struct Package {
    /// Its folder relative to the workspace, with a trailing slash.
    folder: String,
    /// Packages of the workspace that it depends on, including test dependencies.
    needs: Vec<String>,
}

/// Prints the packages that the files affect, one per line; without files, all packages.
pub(crate) fn run(root: &Path, files: &[String]) -> Result<String, String> {
    let packages = packages(&metadata(root)?, root)?;
    let found = affected(&packages, files);
    Ok(found.into_iter().collect::<Vec<_>>().join("\n"))
}

fn packages(metadata: &Value, root: &Path) -> Result<BTreeMap<String, Package>, String> {
    let list = metadata["packages"].as_array().ok_or("cargo metadata without packages")?;
    let mut packages = BTreeMap::new();
    for package in list {
        let name = package["name"].as_str().unwrap_or_default().to_string();
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().and_then(|folder| folder.strip_prefix(root).ok());
        let Some(folder) = folder.and_then(Path::to_str) else { continue };
        let needs = package["dependencies"].as_array().into_iter().flatten();
        let needs = needs.filter(|dependency| dependency["path"].is_string());
        let needs = needs
            .filter_map(|dependency| dependency["name"].as_str().map(str::to_string))
            .collect();
        packages.insert(name, Package { folder: format!("{folder}/"), needs });
    }
    Ok(packages)
}

fn affected(packages: &BTreeMap<String, Package>, files: &[String]) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for file in files {
        if READ_BY_ALL.contains(&file.as_str()) {
            return packages.keys().cloned().collect();
        }
        // Packages may be nested: the innermost one owns the file.
        let holders = packages.iter().filter(|(_, package)| file.starts_with(&package.folder));
        let holder = holders.max_by_key(|(_, package)| package.folder.len());
        found.extend(holder.map(|(name, _)| name.clone()));
        for (_, readers) in READ_BY.iter().filter(|(start, _)| file.starts_with(start)) {
            found.extend(readers.iter().map(|name| name.to_string()));
        }
    }
    loop {
        let more: Vec<String> = packages
            .iter()
            .filter(|(name, package)| {
                !found.contains(*name) && package.needs.iter().any(|need| found.contains(need))
            })
            .map(|(name, _)| name.clone())
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> BTreeMap<String, Package> {
        [("a", "crates/a/", vec![]), ("b", "crates/b/", vec!["a"]), ("c", "crates/b/c/", vec!["b"])]
            .into_iter()
            .map(|(name, folder, needs): (&str, &str, Vec<&str>)| {
                let needs = needs.into_iter().map(str::to_string).collect();
                (name.to_string(), Package { folder: folder.to_string(), needs })
            })
            .collect()
    }

    fn names(files: &[&str]) -> Vec<String> {
        let files: Vec<String> = files.iter().map(|file| file.to_string()).collect();
        affected(&workspace(), &files).into_iter().collect()
    }

    #[test]
    fn a_change_touches_what_depends_on_it() {
        assert_eq!(names(&["crates/a/src/lib.rs"]), ["a", "b", "c"]);
        assert_eq!(names(&["crates/b/src/lib.rs"]), ["b", "c"]);
        assert_eq!(names(&["crates/b/c/tests/main.rs"]), ["c"]);
        assert_eq!(names(&["Cargo.lock"]), ["a", "b", "c"]);
        assert_eq!(names(&["docs/page.md"]), Vec::<String>::new());
        assert_eq!(names(&["tests/sql/casts.slt"]), ["tessera-session"]);
    }
}
