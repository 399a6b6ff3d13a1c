//! `cargo xtask unsafe`: lists the files that hold unsafe code, with the comments that justify it.
//!
//! A crate without unsafe code must forbid it, and each file with unsafe code must state why it is
//! sound. The report fails otherwise; a test runs it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::files::{each_source, entries};

/// The beginnings of unsafe code. They are cut in two, as this file has none.
const UNSAFE: [&str; 5] = [
    concat!("unsafe", " {"),
    concat!("unsafe", " fn"),
    concat!("unsafe", " impl"),
    concat!("unsafe", " extern"),
    concat!("unsafe", " trait"),
];

/// Files of one crate.
#[derive(Debug, Default)]
struct Crate {
    folder: PathBuf,
    /// Its `lib.rs` or `main.rs`, and whether that forbids unsafe code.
    root: Option<(PathBuf, bool)>,
    /// Files with unsafe code: blocks, functions and implementations, and reasons.
    files: Vec<(PathBuf, usize, usize)>,
}

/// Lists unsafe code; fails where it is not forbidden or not justified.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let (mut report, mut problems) = (String::new(), Vec::new());
    for one in crates(root)? {
        let name = one.folder.strip_prefix(root).unwrap_or(&one.folder).display().to_string();
        match (&one.root, one.files.is_empty()) {
            (Some((_, true)), true) => continue,
            (Some((_, true)), false) => {
                problems.push(format!("{name} forbids and has unsafe code"))
            }
            (Some((file, false)), true) => problems.push(format!(
                "{name} has no unsafe code; add #![forbid(unsafe_code)] to {}",
                file.display()
            )),
            (Some((_, false)), false) => {}
            (None, _) => problems.push(format!("{name} has neither lib.rs nor main.rs")),
        }
        let _ = writeln!(report, "{name}");
        for (path, places, reasons) in &one.files {
            let path = path.strip_prefix(&one.folder).unwrap_or(path).display();
            let _ = writeln!(report, "  {path}: {places} unsafe, {reasons} reasons");
            if *reasons == 0 {
                problems
                    .push(format!("{name}/{path}: no comment says why its unsafe code is sound"));
            }
        }
    }
    match problems.is_empty() {
        true => Ok(report.trim_end().to_string()),
        false => Err(format!("{report}{}", problems.join("\n"))),
    }
}

/// All crates of the workspace that ship: those of tests may be unsafe as they like.
fn crates(root: &Path) -> Result<Vec<Crate>, String> {
    let mut crates = Vec::new();
    for folder in ["crates", "lab", "xtask"] {
        find(&root.join(folder), &mut crates)?;
    }
    Ok(crates)
}

fn find(folder: &Path, crates: &mut Vec<Crate>) -> Result<(), String> {
    if folder.join("Cargo.toml").exists() {
        let mut one = Crate { folder: folder.to_path_buf(), ..Crate::default() };
        each_source(&folder.join("src"), &mut |path, text| add(&mut one, path, text))?;
        crates.push(one);
    }
    for path in entries(folder)? {
        if path.is_dir() && !path.ends_with("src") && !path.ends_with("tests") {
            find(&path, crates)?;
        }
    }
    Ok(())
}

/// Adds a source file of the crate.
fn add(one: &mut Crate, path: &Path, text: &str) {
    let is_root = path.parent().is_some_and(|folder| folder.ends_with("src"))
        && (path.ends_with("lib.rs") || path.ends_with("main.rs"));
    if is_root && (one.root.is_none() || path.ends_with("lib.rs")) {
        one.root = Some((path.to_path_buf(), text.contains("#![forbid(unsafe_code)]")));
    }
    let (mut places, mut reasons) = (0, 0);
    for line in text.lines().map(str::trim_start) {
        let is_reason = line.contains("SAFETY") || line.contains("# Safety");
        match line.starts_with("//") {
            true => reasons += usize::from(is_reason),
            false => places += usize::from(UNSAFE.iter().any(|word| line.contains(word))),
        }
    }
    if places > 0 {
        one.files.push((path.to_path_buf(), places, reasons));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn unsafe_code_is_forbidden_or_justified() {
        if let Err(problems) = super::run(&crate::root()) {
            panic!("{problems}");
        }
    }
}
