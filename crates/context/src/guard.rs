//! Calls into libraries that may panic on bytes that no writer makes.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tessera_types::Error;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Does work in which a library may panic; `None` when it did. What unwinds with an [`Error`] (an
/// ended statement) goes on unwinding.
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

/// Whether this thread is in a call whose panics are errors of a file: a hook has nothing to say of
/// them.
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
