//! Services that a run offers to its operators: memory by place, tokens to wait for, interrupts,
//! byte sources, a board on which nodes publish values for each other, and a list of records that
//! scans have skipped.

#![forbid(unsafe_code)]

mod board;
mod compression;
pub mod conformance;
mod context;
mod counting;
pub mod guard;
pub mod interrupt;
pub mod read_buffer;
mod rejects;
#[doc(hidden)]
pub mod testing;

pub use board::Board;
pub use compression::Compression;
pub use context::{
    Context, Counters, FolderMode, LANES, Output, OutputFolder, Place, RangeReader, Read,
    Reservation, Run, Scratch, Share, Token, Traffic, file_changed, lock,
};
pub use interrupt::Interrupt;
pub use read_buffer::ReadBuffer;
pub use rejects::{Reject, RejectFile, RejectKind, RejectScan, Rejects};
