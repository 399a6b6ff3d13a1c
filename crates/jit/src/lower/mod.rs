//! From the form that `ops` gives to LLVM IR.

mod update;
mod value;

pub(crate) use update::{OVERFLOW, UPDATE, lower_update};
