//! Calls into libraries that may panic on malformed input.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tessera_types::Error;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Calls `work` and returns `None` if it panics. An unwinding [`Error`], which ends a statement,
/// keeps unwinding.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    match done {
        Ok(done) => Some(done),
        Err(payload) if payload.is::<Error>() => resume_unwind(payload),
        Err(_) => None,
    }
}

/// Whether this thread is inside [`guarded`]. A panic hook should then stay silent, because the
/// panic becomes an error about a file.
pub fn is_guarded() -> bool {
    DEPTH.get() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_caught_and_ended_statements_are_not() {
        assert_eq!(guarded(is_guarded), Some(true));
        assert_eq!(guarded(|| -> usize { panic!("of a library") }), None);
        let ended = || guarded(|| resume_unwind(Box::new(Error::data("ended"))));
        assert!(catch_unwind(ended).is_err());
        assert!(!is_guarded());
    }
}
