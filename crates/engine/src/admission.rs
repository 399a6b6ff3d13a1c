//! Admission: the memory of a process, shared by its queries. A query is admitted when its minimum
//! is free.
//!
//! An admitted query counts as [`LEAST_BYTES`], or as what it holds if that is more. So every
//! admitted query can always have that much, whatever the others hold. Beyond it, memory is first
//! come, first served, up to each query's budget.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tessera_context::{Interrupt, lock};
use tessera_types::{Code, Error, Result};

/// The minimum with which a query is admitted. Smaller budgets count as they are.
pub const LEAST_BYTES: usize = 64 << 20;

/// How often a waiting query checks for an interrupt and for free memory.
const WAIT_INTERVAL: Duration = Duration::from_millis(5);

/// The share of the memory, in quarters, for data that outlives queries. The rest is left to admit
/// queries.
const KEPT_QUARTERS: usize = 3;

/// The memory of a process.
#[derive(Debug)]
pub struct Memory {
    limit_bytes: usize,
    used_bytes: AtomicUsize,
    /// The part of `used_bytes` that outlives queries.
    kept_bytes: AtomicUsize,
    /// Numbers of waiting queries, the first one first, and the next number.
    waiting: Mutex<(VecDeque<u64>, u64)>,
    changed: Condvar,
}

/// Memory that outlives the query that has made it. Released on drop.
#[derive(Debug)]
pub struct RetainedMemory {
    memory: Arc<Memory>,
    bytes: usize,
}

/// The admission of a query. Its memory is released on drop.
#[derive(Debug)]
pub struct Admission {
    memory: Arc<Memory>,
    least_bytes: usize,
}

impl Memory {
    /// Memory of this many bytes for all queries together.
    pub fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Memory {
            limit_bytes,
            used_bytes: AtomicUsize::new(0),
            kept_bytes: AtomicUsize::new(0),
            waiting: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Bytes in use or promised now.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// The limit for all queries together.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Admits a query with this budget after those that have waited longer. Calls `waits` before it
    /// waits, and waits no longer than `at_most`.
    ///
    /// # Errors
    /// The query was interrupted or has waited too long.
    pub fn admit(
        self: &Arc<Self>,
        budget_bytes: usize,
        (interrupt, at_most): (&Interrupt, Option<Duration>),
        waits: impl FnOnce(),
    ) -> Result<Admission> {
        let free = self.limit_bytes.saturating_sub(self.kept_bytes.load(Ordering::Relaxed));
        let least_bytes = budget_bytes.min(LEAST_BYTES).min(free);
        let mut waiting = lock(&self.waiting);
        if waiting.0.is_empty() && self.take(least_bytes) {
            return Ok(Admission { memory: self.clone(), least_bytes });
        }
        waits();
        let since = Instant::now();
        let number = waiting.1;
        waiting.1 += 1;
        waiting.0.push_back(number);
        let admitted = loop {
            if let Err(error) = interrupt.check() {
                break Err(error);
            }
            if waiting.0.front() == Some(&number) && self.take(least_bytes) {
                break Ok(Admission { memory: self.clone(), least_bytes });
            }
            if let Some(at_most) = at_most.filter(|at_most| since.elapsed() >= *at_most) {
                break Err(self.not_admitted(least_bytes, at_most));
            }
            let waited = self.changed.wait_timeout(waiting, WAIT_INTERVAL);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        waiting.0.retain(|other| *other != number);
        self.changed.notify_all();
        admitted
    }

    fn not_admitted(&self, least_bytes: usize, waited: Duration) -> Error {
        let message = format!(
            "the statement has waited {} s for {} of memory that other statements hold (setting admission_timeout); run it when \
             these have ended, or start with a larger --memory",
            waited.as_secs_f64(),
            ByteCount(least_bytes)
        );
        Error::new(Code::Limit, message)
    }

    /// Reserves memory that outlives its query, such as a table in memory. If queries hold too
    /// much, waits until they have ended.
    ///
    /// # Errors
    /// The query was interrupted, or too much memory is reserved already.
    pub fn keep(self: &Arc<Self>, bytes: usize, interrupt: &Interrupt) -> Result<RetainedMemory> {
        let kept = self.kept_bytes.fetch_add(bytes, Ordering::Relaxed);
        let give_back = || self.kept_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if kept.saturating_add(bytes) > self.limit_bytes / 4 * KEPT_QUARTERS {
            give_back();
            return Err(Error::new(
                Code::Limit,
                format!(
                    "there is no memory to keep {}: {} are kept by now, and of {} for all, three quarters may be. Drop a table, start with \
                     a larger --memory, or write a file with COPY",
                    ByteCount(bytes),
                    ByteCount(kept),
                    ByteCount(self.limit_bytes)
                ),
            ));
        }
        let mut waiting = lock(&self.waiting);
        while !self.take(bytes) {
            if let Err(error) = interrupt.check() {
                give_back();
                return Err(error);
            }
            let waited = self.changed.wait_timeout(waiting, WAIT_INTERVAL);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(RetainedMemory { memory: self.clone(), bytes })
    }

    /// Counts bytes if they fit.
    fn take(&self, bytes: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|now| *now <= self.limit_bytes);
        self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

impl Drop for RetainedMemory {
    fn drop(&mut self) {
        self.memory.kept_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.memory.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.memory.changed.notify_all();
    }
}

impl Admission {
    /// The query grew from `before` to `now` bytes. Always counted; returns whether it fits.
    pub(crate) fn grew(&self, before: usize, now: usize) -> bool {
        let more = now.max(self.least_bytes) - before.max(self.least_bytes);
        let used = self.memory.used_bytes.fetch_add(more, Ordering::Relaxed);
        more == 0 || used.saturating_add(more) <= self.memory.limit_bytes
    }

    /// The query shrank from `before` to `now` bytes.
    pub(crate) fn shrank(&self, before: usize, now: usize) {
        let less = before.max(self.least_bytes) - now.max(self.least_bytes);
        self.memory.used_bytes.fetch_sub(less, Ordering::Relaxed);
    }

    /// The minimum that the query can always have.
    pub(crate) fn least_bytes(&self) -> usize {
        self.least_bytes
    }

    /// The memory that admitted the query.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.memory.used_bytes.fetch_sub(self.least_bytes, Ordering::Relaxed);
        self.memory.changed.notify_all();
    }
}

/// A number of bytes, printed for people.
pub(crate) struct ByteCount(pub(crate) usize);

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 1usize << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        match units.iter().find(|(_, size)| self.0 >= *size) {
            Some((unit, size)) => write!(f, "{:.1} {unit}", self.0 as f64 / *size as f64),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::Governor;

    fn admit(memory: &Arc<Memory>, budget: usize) -> Result<Admission> {
        memory.admit(budget, (&Interrupt::default(), None), || ())
    }

    #[test]
    fn who_was_let_in_has_the_least_whatever_others_hold() {
        let memory = Memory::new(100);
        let (hog, short) = (admit(&memory, 30).unwrap(), admit(&memory, 30).unwrap());
        assert_eq!(memory.used_bytes(), 60);
        let (hog, short) = (Governor::within(1_000, hog), Governor::within(1_000, short));
        hog.grow(70).unwrap();
        assert_eq!(memory.used_bytes(), 100);
        let error = hog.grow(1).unwrap_err();
        assert!(error.code() == Code::Limit && error.message().contains("other"), "{error}");
        short.grow(30).unwrap();
        short.grow(1).unwrap_err();
        hog.shrink(50);
        assert_eq!((memory.used_bytes(), hog.used_bytes()), (60, 20));
        short.grow(1).unwrap();
        drop(hog);
        assert_eq!(memory.used_bytes(), 31);
        short.shrink(31);
        drop(short);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn what_can_never_fit_and_what_is_left_behind_leave_no_trace() {
        let memory = Memory::new(100);
        let governor = Governor::within(90, admit(&memory, 30).unwrap());
        governor.grow(20).unwrap();
        for absurd in [91, isize::MAX as usize, usize::MAX - 10, usize::MAX] {
            assert_eq!(governor.grow(absurd).unwrap_err().code(), Code::Limit);
            assert_eq!((governor.used_bytes(), memory.used_bytes()), (20, 30), "{absurd}");
        }
        governor.grow(60).unwrap();
        drop(governor);
        assert_eq!(memory.used_bytes(), 0);
        let unlimited = Governor::unlimited();
        unlimited.grow(10).unwrap();
        unlimited.grow(usize::MAX - 5).unwrap_err();
        assert_eq!(unlimited.used_bytes(), 10);
    }

    #[test]
    fn what_is_kept_leaves_room_for_queries() {
        let memory = Memory::new(100);
        let interrupt = Arc::new(Interrupt::default());
        let keep = |bytes: usize| memory.keep(bytes, &interrupt);
        let table = keep(60).unwrap();
        let error = keep(20).unwrap_err();
        assert!(error.code() == Code::Limit && error.message().contains("Drop a table"), "{error}");
        let query = admit(&memory, 80).unwrap();
        assert_eq!((query.least_bytes(), memory.used_bytes()), (40, 100));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| keep(1).unwrap());
            std::thread::sleep(2 * WAIT_INTERVAL);
            assert!(!waits.is_finished());
            drop(query);
            waits.join().unwrap();
        });
        drop(table);
        assert_eq!(memory.used_bytes(), 0);
        drop(keep(75).unwrap());
        let _query = admit(&memory, 80).unwrap();
        interrupt.cancel();
        assert_eq!(keep(75).unwrap_err().code(), Code::Cancelled);
        assert_eq!(memory.used_bytes(), 80);
    }

    #[test]
    fn queries_wait_in_line_until_there_is_room_or_they_are_ended() {
        let memory = Memory::new(100);
        let first = admit(&memory, 80).unwrap();
        let ended = Interrupt::after(Duration::from_millis(20));
        let mut waits = false;
        let error = memory.admit(80, (&ended, None), || waits = true).unwrap_err();
        assert!(waits && error.code() == Code::Cancelled);
        let other = memory.clone();
        let second = std::thread::spawn(move || admit(&other, 80).map(|_admitted| Instant::now()));
        while memory.waiting.lock().unwrap().0.is_empty() {
            std::thread::yield_now();
        }
        // A small query does not overtake.
        let ended = Interrupt::after(Duration::from_millis(20));
        memory.admit(10, (&ended, None), || ()).unwrap_err();
        let short = (&Interrupt::default(), Some(Duration::from_millis(20)));
        let error = memory.admit(10, short, || ()).unwrap_err();
        assert!(
            error.code() == Code::Limit && error.message().contains("admission_timeout"),
            "{error}"
        );
        let before = Instant::now();
        drop(first);
        assert!(second.join().unwrap().unwrap() >= before);
        assert_eq!(memory.used_bytes(), 0);
    }

    #[test]
    fn growth_from_many_threads_is_counted_exactly() {
        let memory = Memory::new(10_000);
        let governor = Governor::within(9_000, admit(&memory, 1_000).unwrap());
        std::thread::scope(|scope| {
            for size in 1..9 {
                let governor = &governor;
                scope.spawn(move || {
                    for _ in 0..10_000 {
                        if governor.grow(size * 300).is_ok() {
                            governor.shrink(size * 300);
                        }
                    }
                });
            }
        });
        assert_eq!((governor.used_bytes(), memory.used_bytes()), (0, 1_000));
        drop(governor);
        assert_eq!(memory.used_bytes(), 0);
    }
}
