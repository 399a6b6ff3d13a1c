//! Which room may depend on which.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Rooms by storey: one may depend on those of lower storeys only, never on its neighbours.
/// `platforms/*` and `storage/*` stand for all folders there.
const STOREYS: &[&[&str]] = &[
    &["types"],
    &["plan", "codegen", "text"],
    &["vector"],
    &["context"],
    &["functions"],
    &["rows"],
    &["operator"],
    &["state"],
    &["operators", "formats"],
    &["optimizer"],
    // Integration tests only.
    &["testing"],
    &["engine"],
    &["sql", "jit", "platforms/*", "storage/*"],
    // Makes files, which storage/files writes, and knows nothing else of the engine; only what
    // people touch uses it.
    &["generate"],
    &["session"],
    // Starts workers, which are sessions.
    &["platforms/serverless/launch"],
    &["cli", "server", "python"],
    // The program again, with MPI.
    &["cli-mpi"],
];

/// Crates that only some rooms may name: the crate, the rooms, the reason.
const RESERVED: &[(&str, &[&str], &str)] =
    &[("inkwell", &["jit"], "jit is the only room that names LLVM")];

/// Crates that must not be in the tree at all.
const BANNED: &[&str] = &[
    "datafusion",
    "datafusion-sql",
    "datafusion-optimizer",
    "datafusion-physical-plan",
    "datafusion-proto",
    "datafusion-functions-table",
];

/// A dependency of a room, as Cargo tells it.
#[derive(Debug, PartialEq)]
struct Edge {
    /// The room: its folder below `crates/`.
    from: String,
    /// The room or crate it depends on.
    to: String,
    /// Whether `to` is a room.
    is_room: bool,
}

/// Checks the rooms of the workspace; gives a line for the terminal.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let edges = edges(&metadata(root)?)?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock"))
        .map_err(|error| format!("reading Cargo.lock: {error}"))?;
    let mut wrong: Vec<String> = edges.iter().filter_map(|edge| check(edge).err()).collect();
    wrong.extend(passed_on(&root.join("crates"))?);
    wrong.extend(
        banned(&lock).map(|name| format!("{name} is in Cargo.lock; it must not be in the tree")),
    );
    if wrong.is_empty() {
        let rooms = edges.iter().filter(|edge| edge.is_room).count();
        return Ok(format!("rooms: {rooms} dependencies between rooms, all downwards"));
    }
    Err(format!("rooms: {}\n(docs/architecture.md, section 3)", wrong.join("\n       ")))
}

/// What Cargo says of the workspace, without its dependencies.
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

/// The folder below `crates/` of a package or a path dependency.
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
            // Tests may use what stands above: nothing of it ships.
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
            "crates/{from} stands in no storey; add it to xtask/src/rooms.rs and to the page"
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
        Some(_) => Err(format!("{from} → {to}: {from} may depend only on what stands below it")),
        None => Err(format!("{from} → {to}: {to} stands in no storey")),
    }
}

fn banned(lock: &str) -> impl Iterator<Item = &'static str> + '_ {
    BANNED
        .iter()
        .copied()
        .filter(|name| lock.lines().any(|line| line == format!("name = \"{name}\"")))
}

/// The places where a room offers another's items as its own.
fn passed_on(folder: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder)
        .map_err(|error| format!("reading {}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            found.extend(passed_on(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let lines = text.lines().enumerate().filter(|(_, line)| passes_on(line));
            found.extend(lines.map(|(line, _)| {
                format!(
                    "{}:{}: offers another room's items; name that room where they are used",
                    path.display(),
                    line + 1
                )
            }));
        }
    }
    found.sort();
    Ok(found)
}

/// Whether the line is a `pub use` of another room.
fn passes_on(line: &str) -> bool {
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
        assert!(passes_on("pub use tessera_types::Error;"));
        assert!(passes_on("    pub(crate) use tessera_types::{"));
        assert!(!passes_on("use tessera_types::Error;"));
        assert!(!passes_on("pub use error::Error;"));
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
