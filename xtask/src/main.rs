//! Development tasks.
//!
//! - `cargo xtask rooms` checks that no room depends on one that it may not (docs/architecture.md
//!   §3).
//! - `cargo xtask messages` writes `docs/reference/messages.md`, a snapshot of all error messages.
//! - `cargo xtask sloc` counts lines per room, platforms apart.
//! - `cargo xtask unsafe` lists unsafe code with its reasons.
//! - `cargo xtask affected FILE…` prints the packages that a change of these files touches.

#![forbid(unsafe_code)]

mod affected;
mod files;
mod messages;
mod rooms;
mod sloc;
mod unsafe_code;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = root();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("affected") => affected::run(&root, &arguments[1..]),
        Some("messages") => messages::run(&root),
        Some("rooms") => rooms::run(&root),
        Some("sloc") => sloc::run(&root),
        Some("unsafe") => unsafe_code::run(&root),
        _ => {
            Err("usage: cargo xtask rooms | messages | sloc | unsafe | affected FILE…".to_string())
        }
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

/// Returns the workspace's folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
