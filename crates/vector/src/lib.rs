//! Column encodings with their kernels, and the chunks that carry columns through a pipeline.
//!
//! A [`Column`] holds values of one logical type in one of several encodings: plain (an Arrow array
//! in the type's plain form), dictionary (an Arrow dictionary array with plain values), constant
//! (one plain value, repeated), or handles to collections. An encoding changes cost, never the
//! type: [`Column::plain`] is always allowed. A [`Segment`] stores a longer column in fewer bytes
//! with an [`encoding`]. A [`Chunk`] holds about [`CHUNK_ROWS`] tuples in columns, with a selection
//! vector.
//!
//! `unsafe` code is confined to `packed`, `packed::avx512` and `prefetch`.

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

pub use chunk::{CHUNK_ROWS, CHUNK_ROWS_MAX, Chunk, HashFields, LazyTuples, Selection};
pub use column::{Column, Handle, compact_strings};
pub use gather::{concat_chunks, concat_columns, interleave_columns, repeat_value};
pub use prefetch::prefetch;
pub use segment::{Positions, Segment};
