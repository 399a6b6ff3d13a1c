//! Memory settings that concern the whole process.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::support::program;

/// The setting is seen from outside by the huge pages, which a small budget excludes.
#[test]
fn set_memory_changes_the_allocator_as_the_option_does() {
    let mut child = program(&["--format", "csv"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let status = format!("/proc/{}/status", child.id());
    let mut huge_pages = |statement: &str| {
        writeln!(input, "{statement}; SELECT 1 AS done;").unwrap();
        let mut line = String::new();
        while line != "1\n" {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the program ended");
        }
        let status = std::fs::read_to_string(&status).unwrap();
        let value = status.lines().find_map(|line| line.strip_prefix("THP_enabled:"));
        value.map(|value| value.trim().to_string())
    };
    let whole = huge_pages("SET memory = '4GB'");
    let small = huge_pages("SET memory = '64MB'");
    let reset = huge_pages("SET memory = '2GB'");
    drop(input);
    assert!(child.wait().unwrap().success());
    // Old kernels do not show it.
    if whole.is_some() {
        assert_eq!((small.as_deref(), &reset), (Some("0"), &whole));
    }
}
