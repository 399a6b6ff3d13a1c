//! Services that a run offers to its operators: memory by place, tokens to wait for, interrupts,
//! byte sources, and a board on which nodes publish values for each other.

#![forbid(unsafe_code)]

mod board;
pub mod conformance;
mod context;
pub mod guard;
pub mod interrupt;
pub mod read_buffer;
#[doc(hidden)]
pub mod testing;

pub use board::Board;
pub use context::{
    Context, Counters, FolderMode, LANES, Output, OutputFolder, Place, RangeReader, Read,
    Reservation, Run, Scratch, Share, Token, Traffic, file_changed, lock,
};
pub use interrupt::Interrupt;
pub use read_buffer::ReadBuffer;
