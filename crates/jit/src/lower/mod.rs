//! From the form that `ops` gives to LLVM IR.

mod arithmetic;
mod function;
mod grid;
mod parts;
mod provider;
mod select;
mod update;
mod value;
mod whole;

pub(crate) use function::{FUNCTION, linked_name, lower_function};
pub(crate) use provider::Provider;
pub(crate) use select::{SELECT, lower_select};
pub(crate) use update::{UPDATE, lower_update};

/// What a function gives in the place of a number of tuples where it has none to give.
pub(crate) const NONE: u64 = u64::MAX;
