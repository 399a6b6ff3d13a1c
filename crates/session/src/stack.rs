//! Planning walks expressions recursively, to depths a thread's usual stack does not hold.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tessera_types::{Error, Result};

/// Address space, of which only what is touched becomes memory.
const STACK_BYTES: usize = 512 << 20;

thread_local! {
    static BIG: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on a thread with a stack for deeply nested statements; at once where the caller is
/// on one already.
///
/// # Errors
/// What `work` gives; or the system gives no thread.
pub fn with_big_stack<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if BIG.get() {
        return work();
    }
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("session".to_string()).stack_size(STACK_BYTES);
        let thread = thread
            .spawn_scoped(scope, || {
                BIG.set(true);
                work()
            })
            .map_err(|error| {
                Error::io(format!("cannot start a thread for the statement: {error}"))
            })?;
        thread.join().unwrap_or_else(|panic| Err(from_panic(panic.as_ref())))
    })
}

/// Does the work of one statement: a panic in it ends the statement, not the session.
///
/// # Errors
/// What `work` gives; a panic is a mistake of ours, but for one that carries an error: that ended
/// the statement.
pub(crate) fn contained<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(from_panic(panic.as_ref())))
}

/// A mistake of ours that ended in a panic, as an error.
pub(crate) fn from_panic(panic: &(dyn std::any::Any + Send)) -> Error {
    if let Some(ended) = panic.downcast_ref::<Error>() {
        return ended.clone();
    }
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.as_deref().unwrap_or("no message");
    Error::internal(format!("a part of the engine failed: {text}; please report this statement"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_recursion_and_panics() {
        fn depth(n: u64) -> u64 {
            let padding = std::hint::black_box([n; 100]);
            if n == 0 { 0 } else { 1 + depth(n - 1) + (padding[0] - n) }
        }
        assert_eq!(with_big_stack(|| Ok(depth(100_000))).unwrap(), 100_000);
        let error = with_big_stack(|| -> Result<()> { panic!("on purpose") }).unwrap_err();
        assert!(error.message().contains("on purpose"), "{error}");
    }
}
