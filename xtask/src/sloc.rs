//! Counts lines of code in each room, and the share of each platform.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::files::entries;

/// Lines that are neither blank nor only a comment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Lines {
    code: usize,
    tests: usize,
}

/// A row of the table: the part of a room for selection in stores.
const SMART: &str = "smart storage";

/// Counts lines; returns a table.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let mut rooms: BTreeMap<String, Lines> = BTreeMap::new();
    walk(&root.join("crates"), "", &mut rooms)?;
    let mut smart: BTreeMap<String, Lines> = BTreeMap::new();
    walk(&root.join("crates/storage/objects/src/select"), SMART, &mut smart)?;
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
        sum.code += lines.code;
        sum.tests += lines.tests;
    }
    let _ = writeln!(out, "{:<20} {:>8} {:>8}", "all shared rooms", shared.code, shared.tests);
    let _ = writeln!(out, "{:<20} {:>8} {:>8}", "all platforms", platforms.code, platforms.tests);
    let _ =
        write!(out, "{:<20} {:>8} {:>8}", "their simulators", simulators.code, simulators.tests);
    if let Some(lines) = smart.get(SMART) {
        let _ =
            write!(out, "\n{SMART:<20} {:>8} {:>8}  (of storage/objects)", lines.code, lines.tests);
    }
    let is_platform = |room: &str| room.starts_with("platforms/") && room.matches('/').count() == 1;
    for (room, lines) in rooms.iter().filter(|(room, _)| is_platform(room)) {
        let share = 100.0 * lines.code as f64 / (shared.code + lines.code).max(1) as f64;
        let _ = write!(out, "\n{room} is {share:.1} % of the code that runs on it");
    }
    Ok(out)
}

/// Adds the Rust files below a folder; `room` is the folder of the innermost crate.
fn walk(folder: &Path, room: &str, rooms: &mut BTreeMap<String, Lines>) -> Result<(), String> {
    for path in entries(folder)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            let parent = path.parent().is_some_and(|parent| parent.join("Cargo.toml").exists());
            let inner = match (room, parent) {
                ("", _) => name.to_string(),
                (room, _) if path.join("Cargo.toml").exists() => format!("{room}/{name}"),
                (room, true) => room.to_string(),
                (room, false) => room.to_string(),
            };
            walk(&path, &inner, rooms)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("reading {}: {error}", path.display()))?;
            let is_test = path
                .components()
                .any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs")));
            let lines = count(&text, is_test);
            let sum = rooms.entry(room.to_string()).or_default();
            sum.code += lines.code;
            sum.tests += lines.tests;
        }
    }
    Ok(())
}

/// Counts lines; `#[cfg(test)]` modules are at the end of files.
fn count(text: &str, is_test: bool) -> Lines {
    let mut lines = Lines::default();
    let mut in_tests = is_test;
    for line in text.lines().map(str::trim) {
        in_tests |= line == "#[cfg(test)]";
        match line.is_empty() || line.starts_with("//") {
            true => {}
            false if in_tests => lines.tests += 1,
            false => lines.code += 1,
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
}
