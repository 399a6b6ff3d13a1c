//! Interrupts of a statement: Ctrl-C, a deadline, and a dropped connection are the same event.
//!
//! Most code calls [`Context::check`]. Code without a context that may run for long on a single
//! value (a kernel, a sort) calls [`point`], which checks the query that [`within`] set for the
//! thread.

use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use tessera_types::{Code, Error, Result};

use crate::context::Context;

/// Origin of deadlines, so that a deadline fits into an atomic integer.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

const NEVER: u64 = u64::MAX;

/// Ends the statement of a session from any thread. It is checked by workers, by threads that wait
/// for a store, and between planning steps.
#[derive(Debug)]
pub struct Interrupt {
    happened: AtomicBool,
    /// The deadline, in nanoseconds since [`ORIGIN`].
    ends_at: AtomicU64,
    /// The time left until the deadline while it is paused, in nanoseconds.
    left: AtomicU64,
}

impl Default for Interrupt {
    fn default() -> Self {
        let never = || AtomicU64::new(NEVER);
        Interrupt { happened: AtomicBool::new(false), ends_at: never(), left: never() }
    }
}

impl Interrupt {
    /// Creates an interrupt that triggers after `deadline`.
    pub fn after(deadline: Duration) -> Self {
        let interrupt = Interrupt::default();
        interrupt.begin(Some(deadline));
        interrupt
    }

    /// Starts a statement: clears the interrupt and sets its deadline.
    pub fn begin(&self, deadline: Option<Duration>) {
        let nanoseconds = |deadline| {
            u64::try_from(ORIGIN.elapsed().saturating_add(deadline).as_nanos()).unwrap_or(NEVER)
        };
        self.happened.store(false, Ordering::Relaxed);
        self.left.store(NEVER, Ordering::Relaxed);
        self.ends_at.store(deadline.map_or(NEVER, nanoseconds), Ordering::Relaxed);
    }

    /// Pauses the deadline while the statement waits for its user.
    pub fn pause(&self) {
        let ends_at = self.ends_at.swap(NEVER, Ordering::Relaxed);
        if ends_at != NEVER {
            self.left.store(ends_at.saturating_sub(now()), Ordering::Relaxed);
        }
    }

    /// Resumes the deadline.
    pub fn resume(&self) {
        let left = self.left.swap(NEVER, Ordering::Relaxed);
        if left != NEVER {
            self.ends_at.store(now().saturating_add(left), Ordering::Relaxed);
        }
    }

    /// Cancels the statement.
    pub fn cancel(&self) {
        self.happened.store(true, Ordering::Relaxed);
    }

    /// Fails if the statement has to end.
    ///
    /// # Errors
    /// The statement was cancelled, or its deadline has passed.
    pub fn check(&self) -> Result<()> {
        if self.happened.load(Ordering::Relaxed) {
            return Err(Error::new(Code::Cancelled, "the query was cancelled"));
        }
        match self.ends_at.load(Ordering::Relaxed) {
            NEVER => Ok(()),
            ends_at if ORIGIN.elapsed().as_nanos() < u128::from(ends_at) => Ok(()),
            _ => Err(Error::new(
                Code::Cancelled,
                "the query took longer than its deadline allows; raise it with --deadline SECONDS (or SET deadline)",
            )),
        }
    }
}

/// Nanoseconds since [`ORIGIN`].
fn now() -> u64 {
    u64::try_from(ORIGIN.elapsed().as_nanos()).unwrap_or(NEVER)
}

thread_local! {
    static WORK: RefCell<Option<Arc<dyn Context>>> = const { RefCell::new(None) };
}

/// The previous query of the thread, restored on drop.
struct Before(Option<Arc<dyn Context>>);

impl Drop for Before {
    fn drop(&mut self) {
        WORK.set(self.0.take());
    }
}

/// Runs a job of this query on the current thread. The caller must catch unwinding; a payload that
/// is an [`Error`] is the error of the job.
pub fn within<T>(context: &Arc<dyn Context>, job: impl FnOnce() -> T) -> T {
    let _before = Before(WORK.replace(Some(context.clone())));
    job()
}

/// The query that the current thread works for.
pub fn work() -> Option<Arc<dyn Context>> {
    WORK.with_borrow(Clone::clone)
}

/// Unwinds with an error if the query of the current thread has ended; for loops that cannot return
/// errors. It costs a few nanoseconds: do not call it for every tuple.
pub fn point() {
    if let Err(error) = check_here() {
        resume_unwind(Box::new(error));
    }
}

/// Fails if the query of the current thread has ended.
///
/// # Errors
/// The query was cancelled.
pub fn check_here() -> Result<()> {
    WORK.with_borrow(|work| work.as_ref().map_or(Ok(()), |context| context.check()))
}

/// Calls of [`Every::pass`] per check.
const EVERY: u32 = 1 << 12;

/// Calls [`point`] once every few thousand passes.
#[derive(Debug, Default)]
pub struct Every(Cell<u32>);

impl Every {
    /// Counts one pass.
    #[inline]
    pub fn pass(&self) {
        let count = self.0.get().wrapping_add(1);
        self.0.set(count);
        if count.is_multiple_of(EVERY) {
            point();
        }
    }
}

/// Bytes of a long value that are processed between two checks.
pub const SPAN_BYTES: usize = 1 << 20;

/// Splits bytes into pieces and calls [`point`] between them.
pub fn spans(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(SPAN_BYTES).enumerate().map(|(number, piece)| {
        if number > 0 {
            point();
        }
        piece
    })
}

/// Returns the first position that `find` reports, with a [`point`] between pieces.
#[inline]
pub fn find_byte(bytes: &[u8], find: impl Fn(&[u8]) -> Option<usize>) -> Option<usize> {
    if bytes.len() <= SPAN_BYTES {
        return find(bytes);
    }
    let mut passed = 0;
    for piece in spans(bytes) {
        if let Some(at) = find(piece) {
            return Some(passed + at);
        }
        passed += piece.len();
    }
    None
}

/// Whether bytes are valid UTF-8, with a [`point`] between pieces.
pub fn is_utf8(mut bytes: &[u8]) -> bool {
    while bytes.len() > SPAN_BYTES {
        point();
        match std::str::from_utf8(&bytes[..SPAN_BYTES]) {
            Ok(_) => bytes = &bytes[SPAN_BYTES..],
            // A character continues in the next piece.
            Err(error) if error.error_len().is_none() => bytes = &bytes[error.valid_up_to()..],
            Err(_) => return false,
        }
    }
    std::str::from_utf8(bytes).is_ok()
}

/// Calls [`point`] about once per megabyte of processed values.
#[derive(Debug, Default)]
pub struct EveryBytes(Cell<usize>);

impl EveryBytes {
    /// Counts a value of this many bytes.
    #[inline]
    pub fn pass(&self, bytes: usize) {
        let sum = self.0.get().saturating_add(bytes);
        self.0.set(sum);
        if sum >= SPAN_BYTES {
            self.0.set(0);
            point();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;

    use super::*;
    use crate::testing::TestContext;

    #[test]
    fn a_sort_ends_with_the_work_it_is_done_for() {
        let test = TestContext::new(1, 1);
        let context: Arc<dyn Context> = test.clone();
        let sort = || {
            let every = Every::default();
            let mut values: Vec<u32> =
                (0..100_000).map(|value: u32| value.wrapping_mul(2_654_435_761)).collect();
            values.sort_by(|a, b| {
                every.pass();
                a.cmp(b)
            });
            values
        };
        assert!(within(&context, sort).is_sorted());
        test.cancelled.store(true, Ordering::SeqCst);
        let unwound =
            std::panic::catch_unwind(AssertUnwindSafe(|| within(&context, sort))).unwrap_err();
        assert_eq!(unwound.downcast_ref::<Error>().unwrap().code(), Code::Cancelled);
        // Work without a query is not interrupted, and the thread can be reused.
        check_here().unwrap();
        assert!(sort().is_sorted());
    }

    #[test]
    fn long_values_are_gone_through_in_pieces() {
        let test = TestContext::new(1, 1);
        let context: Arc<dyn Context> = test.clone();
        let long = "ä".repeat(SPAN_BYTES) + "x";
        let find = |wanted: u8| {
            find_byte(long.as_bytes(), |piece| piece.iter().position(|byte| *byte == wanted))
        };
        assert_eq!((find(b'x'), find(b'y')), (Some(2 * SPAN_BYTES), None));
        assert_eq!(spans(long.as_bytes()).map(<[u8]>::len).sum::<usize>(), long.len());
        for shift in 0..3 {
            let text = "x".repeat(shift) + &"語".repeat(SPAN_BYTES);
            assert!(
                is_utf8(text.as_bytes()) && !is_utf8(&text.as_bytes()[..text.len() - 1]),
                "{shift}"
            );
            let mut wrong = text.into_bytes();
            wrong[SPAN_BYTES + 7] = b'x';
            assert!(!is_utf8(&wrong), "{shift}");
        }
        test.cancelled.store(true, Ordering::SeqCst);
        let every = EveryBytes::default();
        let passes: [&dyn Fn(); 4] = [
            &|| assert_eq!(find(b'y'), None),
            &|| assert!(is_utf8(long.as_bytes())),
            &|| assert_eq!(spans(long.as_bytes()).count(), 3),
            &|| (0..2).for_each(|_| every.pass(SPAN_BYTES / 2)),
        ];
        for pass in passes {
            let unwound = std::panic::catch_unwind(AssertUnwindSafe(|| within(&context, pass)));
            assert_eq!(
                unwound.unwrap_err().downcast_ref::<Error>().unwrap().code(),
                Code::Cancelled
            );
        }
    }

    #[test]
    fn what_was_cancelled_goes_on_with_the_next_statement() {
        let interrupt = Interrupt::default();
        interrupt.check().unwrap();
        interrupt.cancel();
        assert_eq!(interrupt.check().unwrap_err().code(), Code::Cancelled);
        interrupt.begin(None);
        interrupt.check().unwrap();
        interrupt.begin(Some(Duration::ZERO));
        assert!(interrupt.check().unwrap_err().message().contains("deadline"));
        interrupt.begin(Some(Duration::MAX));
        interrupt.check().unwrap();
        interrupt.begin(Some(Duration::from_millis(20)));
        interrupt.pause();
        std::thread::sleep(Duration::from_millis(30));
        interrupt.check().unwrap();
        interrupt.resume();
        std::thread::sleep(Duration::from_millis(30));
        assert!(interrupt.check().unwrap_err().message().contains("deadline"));
    }
}
