//! What ends a statement before its time: Ctrl-C, a deadline and a dropped connection are the same event.
//!
//! Most code asks its [`Context`]. What lies below and may run for long over a single value (a kernel, the order of a sort)
//! asks at a [`point`] for the thread's work, which is known [`within`] a job.

use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use tessera_types::{Code, Error, Result};

use crate::context::Context;

/// Deadlines are counted from here, so that one is a number.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// No deadline.
const NEVER: u64 = u64::MAX;

/// Ends a session's statement, from any thread; asked by workers, by whoever waits for a store, and between the steps of planning.
#[derive(Debug)]
pub struct Interrupt {
    happened: AtomicBool,
    /// Nanoseconds since the origin.
    ends_at: AtomicU64,
    /// While the deadline does not count: nanoseconds that are left of it.
    left: AtomicU64,
}

impl Default for Interrupt {
    fn default() -> Self {
        let never = || AtomicU64::new(NEVER);
        Interrupt { happened: AtomicBool::new(false), ends_at: never(), left: never() }
    }
}

impl Interrupt {
    /// One that happens when `deadline` has passed.
    pub fn after(deadline: Duration) -> Self {
        let interrupt = Interrupt::default();
        interrupt.begin(Some(deadline));
        interrupt
    }

    /// A statement begins: nothing has happened yet, and it ends after `deadline`.
    pub fn begin(&self, deadline: Option<Duration>) {
        let nanoseconds =
            |deadline| u64::try_from(ORIGIN.elapsed().saturating_add(deadline).as_nanos()).unwrap_or(NEVER);
        self.happened.store(false, Ordering::Relaxed);
        self.left.store(NEVER, Ordering::Relaxed);
        self.ends_at.store(deadline.map_or(NEVER, nanoseconds), Ordering::Relaxed);
    }

    /// From now on the deadline does not come nearer: the statement waits for its user.
    pub fn pause(&self) {
        let ends_at = self.ends_at.swap(NEVER, Ordering::Relaxed);
        if ends_at != NEVER {
            self.left.store(ends_at.saturating_sub(now()), Ordering::Relaxed);
        }
    }

    /// The deadline counts again.
    pub fn resume(&self) {
        let left = self.left.swap(NEVER, Ordering::Relaxed);
        if left != NEVER {
            self.ends_at.store(now().saturating_add(left), Ordering::Relaxed);
        }
    }

    /// Ends it.
    pub fn cancel(&self) {
        self.happened.store(true, Ordering::Relaxed);
    }

    /// Whether it goes on.
    ///
    /// # Errors
    /// It was cancelled, or its deadline has passed.
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

/// Nanoseconds since the origin.
fn now() -> u64 {
    u64::try_from(ORIGIN.elapsed().as_nanos()).unwrap_or(NEVER)
}

thread_local! {
    static WORK: RefCell<Option<Arc<dyn Context>>> = const { RefCell::new(None) };
}

/// What the thread worked for before, to which it comes back.
struct Before(Option<Arc<dyn Context>>);

impl Drop for Before {
    fn drop(&mut self) {
        WORK.set(self.0.take());
    }
}

/// Does a job of this query. Whoever calls this catches what unwinds, and takes a payload that is an [`Error`] for the job's.
pub fn within<T>(context: &Arc<dyn Context>, job: impl FnOnce() -> T) -> T {
    let _before = Before(WORK.replace(Some(context.clone())));
    job()
}

/// The query that the thread works for.
pub fn work() -> Option<Arc<dyn Context>> {
    WORK.with_borrow(Clone::clone)
}

/// Unwinds with the error when the query that the thread works for has been ended; for loops that can say nothing themselves. Some
/// nanoseconds: not for every tuple.
pub fn point() {
    if let Err(error) = check_here() {
        resume_unwind(Box::new(error));
    }
}

/// Whether the query that the thread works for goes on.
///
/// # Errors
/// It was ended.
pub fn check_here() -> Result<()> {
    WORK.with_borrow(|work| work.as_ref().map_or(Ok(()), |context| context.check()))
}

/// Calls of [`Every::pass`] between two points.
const EVERY: u32 = 1 << 12;

/// A [`point`] at every few thousandth call.
#[derive(Debug, Default)]
pub struct Every(Cell<u32>);

impl Every {
    /// Counts one call.
    #[inline]
    pub fn pass(&self) {
        let count = self.0.get().wrapping_add(1);
        self.0.set(count);
        if count.is_multiple_of(EVERY) {
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
        let unwound = std::panic::catch_unwind(AssertUnwindSafe(|| within(&context, sort))).unwrap_err();
        assert_eq!(unwound.downcast_ref::<Error>().unwrap().code(), Code::Cancelled);
        // What is done for nobody goes on, and so does the thread.
        check_here().unwrap();
        assert!(sort().is_sorted());
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
