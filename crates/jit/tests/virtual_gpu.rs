//! Tests the device process of the virtual GPU.
#![cfg(feature = "llvm")]

use std::process::{Command, Stdio};

#[test]
fn it_says_what_it_is_when_it_is_started_by_hand() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_tessera-virtual-gpu"));
    let done = program.stdin(Stdio::null()).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(text.contains("--device virtual-gpu"), "{text}");
}
