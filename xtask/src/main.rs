//! Development tasks.
//!
//! - `cargo xtask rooms` checks that no room depends on one that it may not (docs/architecture.md
//!   §3).
//! - `cargo xtask sloc` counts lines per room, platforms apart.
//! - `cargo xtask affected FILE…` prints the packages that a change of these files touches.

mod affected;
mod rooms;
mod sloc;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = root();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("affected") => affected::run(&root, &arguments[1..]),
        Some("rooms") => rooms::run(&root),
        Some("sloc") => sloc::run(&root),
        _ => Err("usage: cargo xtask rooms | sloc | affected FILE…".to_string()),
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
