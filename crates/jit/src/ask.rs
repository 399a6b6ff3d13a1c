//! How machine code learns that its query was ended: long loops call [`ask`], and return early if
//! it says so. What such code returns is worthless: [`answered`], which runs it, gives the error.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering};

use tessera_context::interrupt::check_here;
use tessera_types::{Code, Error, Result};

/// The names that code has for [`ask`] and [`ENDING`].
pub(crate) const ASK: &str = "tessera.ask";
pub(crate) const ENDING_NAME: &str = "tessera.ending";

/// Of so many calls one checks the interrupt; the others take a nanosecond or two.
const EVERY: u32 = 16;

/// Code that calls itself ends when less of the stack than this is left.
const STACK_BYTES_MIN: usize = 512 << 10;

/// How many threads are returning from code that was ended. While there are any, code asks after
/// each call of a function that may return early, since its value may be worthless.
pub(crate) static ENDING: AtomicU32 = AtomicU32::new(0);

/// What a thread that runs code knows.
struct Asking {
    /// How many calls are left until one checks; after code was told to return, each does.
    left: Cell<u32>,
    /// Where the stack is as good as used up.
    stack_end: Cell<usize>,
}

thread_local! {
    // Apart from the error, as this needs no destructor.
    static ASKING: Asking = const { Asking { left: Cell::new(EVERY), stack_end: Cell::new(0) } };
    /// Why the code that this thread runs was told to return.
    static ERROR: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Whether the code that calls this must return at once: 1 or 0. Once it must, this says so until
/// all of it has returned.
pub(crate) extern "C" fn ask() -> u8 {
    ASKING.with(|asking| {
        let left = asking.left.get() - 1;
        if left > 0 && stack_pointer() > asking.stack_end.get() {
            asking.left.set(left);
            return 0;
        }
        is_over(asking).into()
    })
}

/// An address about where the stack ends now.
#[inline(always)]
fn stack_pointer() -> usize {
    let here = 0u8;
    (&raw const here).addr()
}

#[cold]
fn is_over(asking: &Asking) -> bool {
    asking.left.set(1);
    if ERROR.with_borrow(Option::is_some) {
        return true;
    }
    let checked = match stack_pointer() > asking.stack_end.get() {
        true => check_here(),
        false => Err(Error::new(
            Code::Limit,
            "a function in LLVM IR calls itself too deeply: the stack is used up",
        )),
    };
    let Err(error) = checked else {
        asking.left.set(EVERY);
        return false;
    };
    ERROR.set(Some(error));
    ENDING.fetch_add(1, Ordering::Relaxed);
    true
}

/// Runs code that may ask.
///
/// # Errors
/// The code was told to return: its query was ended, or the stack is used up.
pub(crate) fn answered<T>(run: impl FnOnce() -> T) -> Result<T> {
    // The thread may have changed its stack since it ran code last.
    let left = stacker::remaining_stack().unwrap_or(usize::MAX);
    let stack_end = stack_pointer().saturating_sub(left.saturating_sub(STACK_BYTES_MIN));
    ASKING.with(|asking| asking.stack_end.set(stack_end));
    let value = run();
    match ERROR.take() {
        None => Ok(value),
        Some(error) => {
            ASKING.with(|asking| asking.left.set(EVERY));
            ENDING.fetch_sub(1, Ordering::Relaxed);
            Err(error)
        }
    }
}
