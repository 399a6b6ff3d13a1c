//! The allocator of the program.

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// The engine allocates from many threads at once; the system's allocator makes them wait for each
/// other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// mimalloc's `mi_option_purge_delay`, which its crate does not name.
const PURGE_DELAY: mi_option_t = 15;
/// After this long, freed memory goes back to the system.
const PURGE_DELAY_MILLISECONDS: std::ffi::c_long = 10_000;

/// The same where memory was said to be short, and `mi_option_arena_purge_mult`: by how much longer
/// that is for whole arenas.
const PURGE_DELAY_MILLISECONDS_SHORT: std::ffi::c_long = 10;
const ARENA_PURGE_MULT: mi_option_t = 24;
/// A smaller budget is kept closely: what is kept for later, about a hundred megabytes, would be
/// much of it.
const SHORT_BYTES: usize = 1 << 30;

/// Gives freed memory back to the system at once, where the budget is small. A query then takes
/// about a fifth longer.
pub(crate) fn keep_budget(memory_bytes: usize) {
    if memory_bytes >= SHORT_BYTES {
        return;
    }
    // SAFETY: as in `keep_freed_memory`; both versions have the second option too.
    unsafe {
        mi_option_set(PURGE_DELAY, PURGE_DELAY_MILLISECONDS_SHORT);
        mi_option_set(ARENA_PURGE_MULT, 0);
    }
    // SAFETY: takes no pointers. That it fails where there are no such pages does not matter.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

/// Keeps freed memory for the next pipeline, which would otherwise pay for getting it cleared by
/// the system again: scans take and free megabytes for every morsel.
pub(crate) fn keep_freed_memory() {
    // SAFETY: the option exists in all versions of mimalloc that the crate builds (2 and 3), takes
    // milliseconds, and is set before there is a second thread.
    unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MILLISECONDS) };
}
