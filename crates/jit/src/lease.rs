//! The shutdown of compilation: LLVM's global data is destroyed when the process exits, so no
//! thread may still compile then.

#[cfg(feature = "llvm")]
use std::sync::RwLockReadGuard;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

/// Read-locked by each thread that compiles.
static COMPILING: RwLock<()> = RwLock::new(());

/// The number of live leases.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// A lease on background compilation, held by a session. Dropping the last one stops background
/// compilation and waits for the piece being compiled, because the process must not exit while LLVM
/// runs.
#[derive(Debug)]
pub struct CompilerLease(());

impl CompilerLease {
    /// Acquires a lease.
    #[expect(
        clippy::new_without_default,
        reason = "a lease has side effects, so it has no default value"
    )]
    pub fn new() -> CompilerLease {
        LIVE.fetch_add(1, Ordering::SeqCst);
        CompilerLease(())
    }
}

impl Drop for CompilerLease {
    fn drop(&mut self) {
        if LIVE.fetch_sub(1, Ordering::SeqCst) == 1 {
            drop(COMPILING.write().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Locks out process shutdown while LLVM is working.
#[cfg(feature = "llvm")]
pub(crate) fn compilation_guard() -> RwLockReadGuard<'static, ()> {
    COMPILING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a lease is live. The caller holds the guard of [`compilation_guard`].
#[cfg(feature = "llvm")]
pub(crate) fn has_lease() -> bool {
    LIVE.load(Ordering::SeqCst) > 0
}
