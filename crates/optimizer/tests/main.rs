//! Integration tests of the passes.

#[path = "../../plan/tests/common/mod.rs"]
mod common;
mod passes;
