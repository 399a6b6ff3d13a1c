//! Gives the program its version with the commit and the compiler, for `--version`.

use std::path::Path;
use std::process::Command;

fn main() {
    // Git writes here at each commit and checkout. In a copy without history there is no such file.
    let log = "../../.git/logs/HEAD";
    if Path::new(log).exists() {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    let commit = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output();
    let commit = commit.ok().filter(|output| output.status.success());
    let commit = commit.and_then(|output| String::from_utf8(output.stdout).ok());
    let commit = commit.map_or("unknown".to_string(), |commit| commit.trim().to_string());
    let tier = match std::env::var_os("CARGO_FEATURE_LLVM") {
        Some(_) => "compiled tier with LLVM 19",
        None => "without the compiled tier",
    };
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    println!("cargo:rustc-env=TESSERA_VERSION={version} (commit {commit}, {tier})");
}
