//! Checks the dependencies between rooms.

use std::path::Path;
use std::process::Command;

use crate::files::each_source;

use serde_json::Value;

/// Rooms by storey: a room may depend only on rooms of lower storeys. `platforms/*` and `storage/*`
/// stand for all folders there.
const STOREYS: &[&[&str]] = &[
    &["types"],
    &["plan", "codegen", "text", "overloads"],
    &["vector"],
    &["context"],
    &["values", "parser"],
    &["patterns"],
    &["functions"],
    &["rows", "system-catalog"],
    &["operator"],
    &["state"],
    &["operators", "formats"],
    &["xlsx"],
    &["optimizer"],
    // Integration tests only.
    &["testing"],
    &["engine", "binder"],
    &["sql", "jit", "platforms/*", "storage/*"],
    // Generates files through storage/files; uses nothing else of the engine.
    &["generate"],
    &["session"],
    // Starts workers, which are sessions.
    &["platforms/serverless/launch"],
    &["cli", "server", "python"],
    // The command line with MPI.
    &["cli-mpi"],
];

/// Crates that only some rooms may use: the crate, the rooms, the reason.
const RESERVED: &[(&str, &[&str], &str)] =
    &[("inkwell", &["jit"], "jit is the only room that names LLVM")];

/// Crates that must not be in the dependency tree.
const BANNED: &[&str] = &[
    "datafusion",
    "datafusion-sql",
    "datafusion-optimizer",
    "datafusion-physical-plan",
    "datafusion-proto",
    "datafusion-functions-table",
];

/// A dependency of a room.
#[derive(Debug, PartialEq)]
struct Edge {
    /// The room: its folder below `crates/`.
    from: String,
    /// The room or crate it depends on.
    to: String,
    /// Whether `to` is a room.
    is_room: bool,
}

/// Checks the rooms of the workspace; returns a summary line.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let edges = edges(&metadata(root)?)?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock"))
        .map_err(|error| format!("reading Cargo.lock: {error}"))?;
    let mut wrong: Vec<String> = edges.iter().filter_map(|edge| check(edge).err()).collect();
    wrong.extend(reexports(&root.join("crates"))?);
    wrong.extend(
        banned(&lock).map(|name| format!("{name} is in Cargo.lock; remove the dependency")),
    );
    if wrong.is_empty() {
        let rooms = edges.iter().filter(|edge| edge.is_room).count();
        return Ok(format!("rooms: {rooms} dependencies between rooms, all downwards"));
    }
    Err(format!("rooms: {}\n(docs/architecture.md, section 3)", wrong.join("\n       ")))
}

/// Returns Cargo's metadata of the workspace, without external dependencies.
pub(crate) fn metadata(root: &Path) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("running cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("reading cargo metadata: {error}"))
}

/// Returns the folder below `crates/` of a package or a path dependency.
fn room(path: &str) -> Option<String> {
    let folder = path.strip_suffix("/Cargo.toml").unwrap_or(path);
    folder.rsplit_once("/crates/").map(|(_, room)| room.to_string())
}

fn edges(metadata: &Value) -> Result<Vec<Edge>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata without packages")?;
    let mut edges = Vec::new();
    for package in packages {
        let Some(from) = package["manifest_path"].as_str().and_then(room) else { continue };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Tests may use rooms of higher storeys, because tests do not ship.
            if dependency["kind"] == "dev" {
                continue;
            }
            let name = dependency["name"].as_str().unwrap_or_default().to_string();
            let to = dependency["path"].as_str().and_then(room);
            let is_room = to.is_some();
            edges.push(Edge { from: from.clone(), to: to.unwrap_or(name), is_room });
        }
    }
    Ok(edges)
}

fn storey(room: &str) -> Option<usize> {
    let named = |name: &&str| *name == room;
    let in_folder =
        |pattern: &&str| pattern.strip_suffix('*').is_some_and(|folder| room.starts_with(folder));
    let of = |fits: &dyn Fn(&&str) -> bool| STOREYS.iter().position(|rooms| rooms.iter().any(fits));
    of(&named).or_else(|| of(&in_folder))
}

fn check(edge: &Edge) -> Result<(), String> {
    let Edge { from, to, is_room } = edge;
    let Some(of_from) = storey(from) else {
        return Err(format!(
            "crates/{from} has no storey; add it to xtask/src/rooms.rs and docs/architecture.md"
        ));
    };
    if !is_room {
        return match RESERVED
            .iter()
            .find(|(name, rooms, _)| name == to && !rooms.contains(&from.as_str()))
        {
            Some((_, _, reason)) => Err(format!("{from} → {to}: {reason}")),
            None => Ok(()),
        };
    }
    if to == "testing" {
        return Err(format!("{from} → {to}: only tests may use it"));
    }
    match storey(to) {
        Some(of_to) if of_to < of_from => Ok(()),
        Some(_) => Err(format!("{from} → {to}: {from} may depend only on lower storeys")),
        None => Err(format!("{from} → {to}: {to} has no storey; add it to xtask/src/rooms.rs")),
    }
}

fn banned(lock: &str) -> impl Iterator<Item = &'static str> + '_ {
    BANNED
        .iter()
        .copied()
        .filter(|name| lock.lines().any(|line| line == format!("name = \"{name}\"")))
}

/// Returns the places where a room re-exports items of another room.
fn reexports(folder: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    each_source(folder, &mut |path, text| {
        let lines = text.lines().enumerate().filter(|(_, line)| is_reexport(line));
        found.extend(lines.map(|(line, _)| {
            format!(
                "{}:{}: re-exports another room's items; import them from that room instead",
                path.display(),
                line + 1
            )
        }));
    })?;
    Ok(found)
}

/// Returns whether the line is a `pub use` of another room.
fn is_reexport(line: &str) -> bool {
    let Some(line) = line.trim_start().strip_prefix("pub") else { return false };
    let line = line.strip_prefix("(crate)").unwrap_or(line);
    line.trim_start().strip_prefix("use tessera_").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str, is_room: bool) -> Edge {
        Edge { from: from.into(), to: to.into(), is_room }
    }

    #[test]
    fn only_downwards() {
        for (from, to) in [
            ("session", "sql"),
            ("platforms/local", "engine"),
            ("plan", "types"),
            ("cli", "generate"),
        ] {
            assert_eq!(check(&edge(from, to, true)), Ok(()), "{from} {to}");
        }
        for (from, to) in [
            ("types", "plan"),
            ("operators", "engine"),
            ("sql", "platforms/local"),
            ("formats", "operators"),
            ("storage/a", "storage/b"),
            ("operators", "new"),
        ] {
            let message = check(&edge(from, to, true)).unwrap_err();
            assert!(message.contains(&format!("{from} → {to}")), "{message}");
        }
    }

    #[test]
    fn only_tests_use_what_is_for_tests() {
        assert!(check(&edge("session", "testing", true)).unwrap_err().contains("only tests"));
    }

    #[test]
    fn a_room_offers_its_own_items() {
        assert!(is_reexport("pub use tessera_types::Error;"));
        assert!(is_reexport("    pub(crate) use tessera_types::{"));
        assert!(!is_reexport("use tessera_types::Error;"));
        assert!(!is_reexport("pub use error::Error;"));
    }

    #[test]
    fn some_crates_are_reserved() {
        assert_eq!(check(&edge("state", "datafusion-functions", false)), Ok(()));
        assert!(check(&edge("session", "inkwell", false)).unwrap_err().contains("LLVM"));
        let lock = "name = \"datafusion-expr\"\nname = \"datafusion\"\n";
        assert_eq!(banned(lock).collect::<Vec<_>>(), ["datafusion"]);
    }

    #[test]
    fn the_folder_is_the_room() {
        assert_eq!(
            room("/x/crates/platforms/local/Cargo.toml").as_deref(),
            Some("platforms/local")
        );
        assert_eq!(room("/x/xtask/Cargo.toml"), None);
    }
}
