//! Lets machine code stop when its query is cancelled or the stack runs out.
//!
//! Long loops call [`poll`] and return early if it says so. The return value is then meaningless:
//! [`run_stoppable`], which runs the code, returns the error instead.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering};

use tessera_context::interrupt::check_here;
use tessera_types::{Code, Error, Result};

/// The symbols of [`poll`] and [`STOPPING`] in generated code.
pub(crate) const POLL: &str = "tessera.ask";
pub(crate) const STOPPING_NAME: &str = "tessera.ending";

/// One in this many calls checks the interrupt; the others take a nanosecond or two.
const CALLS_PER_CHECK: u32 = 16;

/// Recursive code is stopped when less stack than this is left.
const STACK_BYTES_MIN: usize = 512 << 10;

/// How many threads are returning early from stopped code. While it is not zero, code polls after
/// each call of a function that may return early, because its result may be meaningless.
pub(crate) static STOPPING: AtomicU32 = AtomicU32::new(0);

/// The polling state of a thread.
struct PollState {
    /// Calls left until the next check. It stays 1 once the code must stop.
    left: Cell<u32>,
    /// The lowest address that the stack pointer may reach.
    stack_end: Cell<usize>,
}

thread_local! {
    // Separate from the error, because this needs no destructor.
    static POLL_STATE: PollState = const { PollState { left: Cell::new(CALLS_PER_CHECK), stack_end: Cell::new(0) } };
    /// Why the code that this thread runs must stop.
    static ERROR: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Returns 1 if the calling code must return at once, else 0. After the first 1 it returns 1 until
/// [`run_stoppable`] resets it.
pub(crate) extern "C" fn poll() -> u8 {
    POLL_STATE.with(|state| {
        let left = state.left.get() - 1;
        if left > 0 && stack_pointer() > state.stack_end.get() {
            state.left.set(left);
            return 0;
        }
        must_stop(state).into()
    })
}

/// Returns an address close to the top of the stack.
#[inline(always)]
fn stack_pointer() -> usize {
    let here = 0u8;
    (&raw const here).addr()
}

#[cold]
fn must_stop(state: &PollState) -> bool {
    state.left.set(1);
    if ERROR.with_borrow(Option::is_some) {
        return true;
    }
    let checked = match stack_pointer() > state.stack_end.get() {
        true => check_here(),
        false => Err(Error::new(
            Code::Limit,
            "stack overflow: a function in LLVM IR recurses too deeply; limit its recursion",
        )),
    };
    let Err(error) = checked else {
        state.left.set(CALLS_PER_CHECK);
        return false;
    };
    ERROR.set(Some(error));
    STOPPING.fetch_add(1, Ordering::Relaxed);
    true
}

/// Runs code that may call [`poll`].
///
/// # Errors
/// The code was stopped: its query was cancelled, or the stack is used up.
pub(crate) fn run_stoppable<T>(run: impl FnOnce() -> T) -> Result<T> {
    // The thread may have switched stacks since it last ran code.
    let left = stacker::remaining_stack().unwrap_or(usize::MAX);
    let stack_end = stack_pointer().saturating_sub(left.saturating_sub(STACK_BYTES_MIN));
    POLL_STATE.with(|state| state.stack_end.set(stack_end));
    let value = run();
    match ERROR.take() {
        None => Ok(value),
        Some(error) => {
            POLL_STATE.with(|state| state.left.set(CALLS_PER_CHECK));
            STOPPING.fetch_sub(1, Ordering::Relaxed);
            Err(error)
        }
    }
}
