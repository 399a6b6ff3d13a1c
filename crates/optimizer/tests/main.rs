//! Passes over plans, from outside.

#[path = "../../plan/tests/common/mod.rs"]
mod common;
mod passes;
