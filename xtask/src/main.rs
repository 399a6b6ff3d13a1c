//! Development tasks.
//!
//! - `cargo xtask rooms` checks that no room depends on one that it may not (docs/architecture.md §3).
//! - `cargo xtask sloc` counts lines per room, platforms apart.

mod rooms;
mod sloc;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = root();
    let result = match std::env::args().nth(1).as_deref() {
        Some("rooms") => rooms::run(&root),
        Some("sloc") => sloc::run(&root),
        _ => Err("usage: cargo xtask rooms | sloc".to_string()),
    };
    match result {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
