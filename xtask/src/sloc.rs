//! Counts lines of code in each room, and the share of each platform.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use crate::files::each_source;

/// Lines that are neither blank nor only a comment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Lines {
    code: usize,
    tests: usize,
}

impl Lines {
    fn add(&mut self, more: Lines) {
        self.code += more.code;
        self.tests += more.tests;
    }
}

/// Counts lines; returns a table.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let crates = root.join("crates");
    let mut modules = BTreeSet::new();
    each_source(&crates, &mut |path, text| {
        let (folder, file) = (path.parent().unwrap_or(root), path.with_extension(""));
        let is_root = ["lib", "main", "mod"].iter().any(|name| file.ends_with(name));
        let below = if is_root { folder } else { &file };
        modules.extend(test_modules(text).map(|name| below.join(name)));
    })?;
    let mut rooms: BTreeMap<String, Lines> = BTreeMap::new();
    let (selection, mut smart) = (crates.join("storage/objects/src/select"), Lines::default());
    each_source(&crates, &mut |path, text| {
        let is_test = path.components().any(|part| part.as_os_str() == "tests")
            || path.with_extension("").ancestors().any(|part| modules.contains(part));
        let lines = count(text, is_test);
        rooms.entry(room(&crates, path)).or_default().add(lines);
        if path.starts_with(&selection) {
            smart.add(lines);
        }
    })?;
    let mut out = format!("{:<20} {:>8} {:>8}\n", "room", "code", "tests");
    let mut simulators = Lines::default();
    let (mut shared, mut platforms) = (Lines::default(), Lines::default());
    for (room, lines) in &rooms {
        let _ = writeln!(out, "{room:<20} {:>8} {:>8}", lines.code, lines.tests);
        let sum = match room {
            // A simulator of a platform's environment does not count as the platform.
            room if room.ends_with("/local") && room.matches('/').count() == 2 => &mut simulators,
            room if room.starts_with("platforms/") => &mut platforms,
            _ => &mut shared,
        };
        sum.add(*lines);
    }
    let _ = writeln!(out, "{:<20} {:>8} {:>8}", "all shared rooms", shared.code, shared.tests);
    let _ = writeln!(out, "{:<20} {:>8} {:>8}", "all platforms", platforms.code, platforms.tests);
    let _ =
        write!(out, "{:<20} {:>8} {:>8}", "their simulators", simulators.code, simulators.tests);
    let _ = write!(
        out,
        "\n{:<20} {:>8} {:>8}  (of storage/objects)",
        "smart storage", smart.code, smart.tests
    );
    let is_platform = |room: &str| room.starts_with("platforms/") && room.matches('/').count() == 1;
    for (room, lines) in rooms.iter().filter(|(room, _)| is_platform(room)) {
        let share = 100.0 * lines.code as f64 / (shared.code + lines.code).max(1) as f64;
        let _ = write!(out, "\n{room} is {share:.1} % of the code that runs on it");
    }
    Ok(out)
}

/// The path of the innermost crate around a file.
fn room(crates: &Path, file: &Path) -> String {
    let crate_folder = file.ancestors().find(|folder| folder.join("Cargo.toml").exists());
    let room = crate_folder.and_then(|folder| folder.strip_prefix(crates).ok());
    room.map(|room| room.display().to_string()).unwrap_or_default()
}

/// The names of the modules in other files that a text declares for tests only.
fn test_modules(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let declared = line.trim_start_matches("pub(crate) ").strip_prefix("mod ");
        let name = declared.and_then(|rest| rest.strip_suffix(';')).filter(|_| is_test);
        is_test = is_test_attribute(line) || is_test && line.starts_with("#[");
        name
    })
}

/// Whether a line limits the next item to tests and fuzzing.
fn is_test_attribute(line: &str) -> bool {
    matches!(line, "#[cfg(test)]" | "#[cfg(any(test, fuzzing))]")
}

/// Counts lines. An item for tests ends at the indentation of its attribute: files are formatted.
fn count(text: &str, is_test: bool) -> Lines {
    let mut lines = Lines::default();
    // The indentation of the item for tests around the line.
    let mut test_item: Option<&str> = None;
    for line in text.lines() {
        let code = line.trim();
        let indentation = &line[..line.len() - line.trim_start().len()];
        if test_item.is_none() && is_test_attribute(code) {
            test_item = Some(indentation);
        }
        if !code.is_empty() && !code.starts_with("//") {
            match is_test || test_item.is_some() {
                true => lines.tests += 1,
                false => lines.code += 1,
            }
        }
        if test_item == Some(indentation) && code.ends_with(['}', ';', ',']) {
            test_item = None;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_do_not_count() {
        let text =
            "//! Doc.\n\nfn a() {\n    // Why.\n    b();\n}\n\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(count(text, false), Lines { code: 3, tests: 3 });
        assert_eq!(count("fn a() {}\n", true), Lines { code: 0, tests: 1 });
    }
    #[test]
    fn code_after_an_item_for_tests_counts() {
        let text = "#[cfg(test)]\nmod naive;\nmod a;\n\n#[cfg(any(test, fuzzing))]\nfn b() {\n    \
                    c();\n}\n\nimpl D {\n    #[cfg(test)]\n    fn e() {}\n    f: u8,\n}\n";
        assert_eq!(count(text, false), Lines { code: 4, tests: 8 });
    }

    #[test]
    fn modules_for_tests_are_found_by_their_declarations() {
        let text = "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\n#[rustfmt::skip]\npub(crate) mod c;\n\
                    mod d;\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(test_modules(text).collect::<Vec<_>>(), ["b", "c"]);
    }
}
