//! The allocator of the program.

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// mimalloc, because the threads of the engine contend for the locks of the system allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// mimalloc's `mi_option_purge_delay`, which its crate does not name.
const PURGE_DELAY: mi_option_t = 15;
/// The time after which freed memory is returned to the system.
const PURGE_DELAY_MILLISECONDS: std::ffi::c_long = 10_000;

/// The purge delay with a small memory budget.
const PURGE_DELAY_MILLISECONDS_SHORT: std::ffi::c_long = 10;
/// mimalloc's `mi_option_arena_purge_mult`: the factor of the purge delay for whole arenas.
const ARENA_PURGE_MULT: mi_option_t = 24;
/// The limit of a small memory budget. Cached free memory (about 100 MB) would be a large part of
/// it.
const SHORT_BYTES: usize = 1 << 30;

/// Returns freed memory to the system soon if the memory budget is small. Queries then take about
/// 20 % longer.
pub(crate) fn keep_budget(memory_bytes: usize) {
    if memory_bytes >= SHORT_BYTES {
        return;
    }
    // SAFETY: as in `keep_freed_memory`; both versions have the second option too.
    unsafe {
        mi_option_set(PURGE_DELAY, PURGE_DELAY_MILLISECONDS_SHORT);
        mi_option_set(ARENA_PURGE_MULT, 0);
    }
    // SAFETY: the call takes no pointers. A failure (no transparent huge pages) is harmless.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}

/// Caches freed memory for the next pipeline. Scans allocate and free megabytes per morsel, and the
/// system would clear each page again.
pub(crate) fn keep_freed_memory() {
    // SAFETY: the option exists in all versions of mimalloc that the crate builds (2 and 3), takes
    // milliseconds, and is set before there is a second thread.
    unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MILLISECONDS) };
}
