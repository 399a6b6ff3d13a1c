//! Hashes the sources that define how code is generated and the state that it works on. Cached
//! machine code of another build is then not reused.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

/// The rooms with sources that define code generation or the layout of state.
const ROOMS: [&str; 6] = ["jit", "codegen", "vector", "functions", "rows", "state"];

fn add(hasher: &mut DefaultHasher, path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        let mut entries = std::fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::path);
        return entries.iter().try_for_each(|entry| add(hasher, &entry.path()));
    }
    hasher.write(&std::fs::read(path)?);
    Ok(())
}

fn main() -> std::io::Result<()> {
    let mut hasher = DefaultHasher::new();
    for room in ROOMS {
        let sources = format!("../{room}/src");
        println!("cargo::rerun-if-changed={sources}");
        add(&mut hasher, Path::new(&sources))?;
    }
    println!("cargo::rustc-env=TESSERA_CODE_VERSION={:016x}", hasher.finish());
    Ok(())
}
