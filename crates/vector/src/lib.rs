//! Column encodings and their kernels, and the chunk that carries columns through a pipeline.
//!
//! A [`Column`] is a run of values of one logical type in one of several encodings: plain (an Arrow
//! array in the atom's plain form), dictionary (an Arrow dictionary array whose values are plain),
//! constant (one plain value, repeated), or handles to collections. Encodings change cost, never
//! type: [`Column::plain`] is always allowed. A [`Segment`] is a column of more tuples, kept in
//! fewer bytes by some [`encoding`]. A [`Chunk`] is some [`CHUNK_ROWS`] tuples, column-wise, with a
//! selection vector.

mod chunk;
mod column;
pub mod conformance;
pub mod encoding;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gather;
pub mod hash;
mod packed;
pub mod physical;
mod prefetch;
mod segment;

pub use chunk::{CHUNK_ROWS, CHUNK_ROWS_MAX, Chunk, Elsewhere, HashFields, Selection};
pub use column::{Column, Handle, own_strings};
pub use gather::{concat_chunks, concat_columns, interleave_columns, repeat_value};
pub use prefetch::prefetch;
pub use segment::{Positions, Segment};
