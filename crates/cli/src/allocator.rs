//! The allocator of the program.

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// The engine allocates from many threads at once; the system's allocator makes them wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// mimalloc's `mi_option_purge_delay`, which its crate does not name.
const PURGE_DELAY: mi_option_t = 15;
/// After this long, freed memory goes back to the system.
const PURGE_DELAY_MILLISECONDS: std::ffi::c_long = 10_000;

/// Keeps freed memory for the next pipeline, which would otherwise pay for getting it cleared by the system again: scans take
/// and free megabytes for every morsel.
pub(crate) fn keep_freed_memory() {
    // SAFETY: the option exists in all versions of mimalloc that the crate builds (2 and 3), takes milliseconds, and is
    // set before there is a second thread.
    unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MILLISECONDS) };
}
