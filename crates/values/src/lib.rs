//! Values: one value as a [`Scalar`](tessera_plan::Scalar), as an element of an array, and as text,
//! and the casts between types.
//!
//! A [`Kernel`](kernel::Kernel) is a function over whole columns; [`types`] says how a call of one
//! is resolved, and [`rowwise`] makes one from a function of single values. Texts are read by
//! [`parse`] and [`temporal`] and written by [`format`](mod@format), as PostgreSQL does.
//!
//! `unsafe` code is confined to `append`, which appends strings without a copy.

pub mod append;
pub mod bits;
pub mod canonical;
pub mod cast;
pub mod digits;
mod enums;
pub mod exact;
pub mod format;
pub mod format_float;
pub mod hidden_values;
pub mod kernel;
pub mod parse;
pub mod plain;
pub mod rowwise;
pub mod scalar;
mod struct_cast;
pub mod temporal;
pub mod types;
pub mod uuid;
