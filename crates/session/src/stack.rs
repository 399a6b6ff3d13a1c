//! Big stacks for planning, which recurses over expressions, and conversion of panics to errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tessera_types::{Error, Result};

/// The size of a big stack. Only the pages that are used take memory.
const STACK_BYTES: usize = 512 << 20;

thread_local! {
    /// Whether this thread has a big stack.
    static ON_BIG_STACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` on a thread with a big stack for deeply nested statements. Calls it directly if the
/// current thread already has one.
///
/// # Errors
/// The error of `work`, or the thread cannot be started.
pub fn with_big_stack<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if ON_BIG_STACK.get() {
        return work();
    }
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("session".to_string()).stack_size(STACK_BYTES);
        let thread = thread
            .spawn_scoped(scope, || {
                ON_BIG_STACK.set(true);
                work()
            })
            .map_err(|error| {
                Error::io(format!("cannot start a thread for the statement: {error}"))
            })?;
        thread.join().unwrap_or_else(|panic| Err(panic_error(panic.as_ref())))
    })
}

/// Runs `work`, converting a panic to an error, so that it ends the statement and not the session.
///
/// # Errors
/// The error of `work`, or that of [`panic_error`].
pub(crate) fn catch_panics<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panic_error(panic.as_ref())))
}

/// The error that a panic carries, or an internal error with the message of the panic.
pub(crate) fn panic_error(panic: &(dyn std::any::Any + Send)) -> Error {
    if let Some(error) = panic.downcast_ref::<Error>() {
        return error.clone();
    }
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.as_deref().unwrap_or("no message");
    Error::internal(format!("a part of the engine panicked: {text}"))
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
