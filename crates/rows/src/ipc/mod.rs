//! Messages of Arrow's IPC format, checked before Arrow decodes them: damaged ones are errors and
//! allocate no more memory than their bytes.

mod in_memory;
pub mod message;
mod shape;

pub use in_memory::first_batch;
