//! The end of the process: LLVM's own data goes then, which nobody may be using.

#[cfg(feature = "llvm")]
use std::sync::RwLockReadGuard;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};

/// Held by whoever compiles.
static COMPILING: RwLock<()> = RwLock::new(());

/// How many there are.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Whoever may want code, such as a session. Where the last one goes, nothing is compiled beside
/// any more: what is under way ends first, since the process may end next, and cannot while LLVM is
/// at work.
#[derive(Debug)]
pub struct InUse(());

impl InUse {
    /// One more.
    #[expect(clippy::new_without_default, reason = "it is no value but a claim")]
    pub fn new() -> InUse {
        LIVE.fetch_add(1, Ordering::SeqCst);
        InUse(())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        if LIVE.fetch_sub(1, Ordering::SeqCst) == 1 {
            drop(COMPILING.write().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// To be held while LLVM is at work.
#[cfg(feature = "llvm")]
pub(crate) fn compiling() -> RwLockReadGuard<'static, ()> {
    COMPILING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Whether somebody wants what is compiled beside; to be asked while LLVM may be at work.
#[cfg(feature = "llvm")]
pub(crate) fn is_in_use() -> bool {
    LIVE.load(Ordering::SeqCst) > 0
}
