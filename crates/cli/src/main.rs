//! The `tessera` program.
fn main() {}
