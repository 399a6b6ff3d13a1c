//! The allocator of the program.

use std::ffi::c_long;
use std::sync::atomic::{AtomicBool, Ordering};

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// mimalloc, because the threads of the engine contend for the locks of the system allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// mimalloc's `mi_option_purge_delay`, which its crate does not name.
const PURGE_DELAY: mi_option_t = 15;
/// mimalloc's `mi_option_arena_purge_mult`: the factor of the purge delay for whole arenas.
const ARENA_PURGE_MULT: mi_option_t = 24;

/// The limit of a small memory budget. Cached free memory (about 100 MB) would be a large part of
/// it.
const SHORT_BYTES: usize = 1 << 30;

/// When freed memory is returned to the system.
struct Purge {
    delay_milliseconds: c_long,
    arena_factor: c_long,
}

/// Scans allocate and free megabytes per morsel, and the system would clear each page again.
const KEEP: Purge = Purge { delay_milliseconds: 10_000, arena_factor: 1 };
/// With a small budget. Queries then take about 20 % longer.
const RETURN_SOON: Purge = Purge { delay_milliseconds: 10, arena_factor: 0 };

/// Whether memory is returned soon.
static RETURNS_SOON: AtomicBool = AtomicBool::new(false);

/// Returns freed memory to the system soon if the memory budget is small, else caches it for the
/// next pipeline.
pub(crate) fn keep_budget(memory_bytes: usize) {
    let soon = memory_bytes < SHORT_BYTES;
    if RETURNS_SOON.swap(soon, Ordering::Relaxed) == soon {
        return;
    }
    set_purge(if soon { RETURN_SOON } else { KEEP });
    // SAFETY: the call takes no pointers. A failure (no transparent huge pages) is harmless.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, c_long::from(soon), 0, 0, 0);
    }
}

/// Caches freed memory for the next pipeline.
pub(crate) fn keep_freed_memory() {
    set_purge(KEEP);
}

fn set_purge(purge: Purge) {
    // SAFETY: both options exist in all versions of mimalloc that the crate builds (2 and 3). Each
    // is an aligned word that mimalloc reads again for each use, so other threads see the old or
    // the new value.
    unsafe {
        mi_option_set(PURGE_DELAY, purge.delay_milliseconds);
        mi_option_set(ARENA_PURGE_MULT, purge.arena_factor);
    }
}
