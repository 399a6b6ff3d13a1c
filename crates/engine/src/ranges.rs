//! The morsels of a source, divided among the workers. Each worker has its own range and steals
//! from the others when it is empty.

use std::sync::atomic::{AtomicU64, Ordering};

/// Ranges of morsel numbers, one per worker; each packed as `next << 32 | end` in one word.
#[derive(Debug)]
pub(crate) struct MorselRanges {
    ranges: Vec<AtomicU64>,
}

const fn pack(next: u32, end: u32) -> u64 {
    (next as u64) << 32 | end as u64
}

const fn unpack(range: u64) -> (u32, u32) {
    ((range >> 32) as u32, range as u32)
}

impl MorselRanges {
    /// Morsels `0..count` for this many workers. `in_order` keeps them in one range, so that they
    /// start in order.
    pub(crate) fn new(count: usize, workers: usize, in_order: bool) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let parts = if in_order { 1 } else { workers.max(1) as u32 };
        let bound = |part: u32| (count as u64 * part as u64 / parts as u64) as u32;
        MorselRanges {
            ranges: (0..parts)
                .map(|part| AtomicU64::new(pack(bound(part), bound(part + 1))))
                .collect(),
        }
    }

    /// The next morsel for a worker: the first of its own range, or the first of the upper half of
    /// the longest range, which it takes over.
    pub(crate) fn take(&self, worker: usize) -> Option<usize> {
        let own = worker % self.ranges.len();
        loop {
            if let Some(morsel) = self.pop(own) {
                return Some(morsel as usize);
            }
            let left = |range: &AtomicU64| {
                let (next, end) = unpack(range.load(Ordering::Acquire));
                end.saturating_sub(next)
            };
            let (victim, most) =
                self.ranges.iter().map(left).enumerate().max_by_key(|(_, left)| *left)?;
            if most == 0 {
                return None;
            }
            if let Some(morsel) = self.steal(victim, own) {
                return Some(morsel as usize);
            }
        }
    }

    /// Whether no morsel is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.iter().all(|range| {
            let (next, end) = unpack(range.load(Ordering::Acquire));
            next >= end
        })
    }

    fn pop(&self, own: usize) -> Option<u32> {
        let take_first = |range| {
            let (next, end) = unpack(range);
            (next < end).then(|| pack(next + 1, end))
        };
        let taken =
            self.ranges[own].fetch_update(Ordering::AcqRel, Ordering::Acquire, take_first).ok()?;
        Some(unpack(taken).0)
    }

    /// Takes the upper half of `victim`'s range: its first morsel now, the rest as the thief's own
    /// range. The thief's range is empty, so no other worker writes to it between `pop` and the
    /// store (thieves need a range that is not empty).
    fn steal(&self, victim: usize, own: usize) -> Option<u32> {
        let range = self.ranges[victim].load(Ordering::Acquire);
        let (next, end) = unpack(range);
        if next >= end {
            return None;
        }
        let middle = next + (end - next) / 2;
        self.ranges[victim]
            .compare_exchange(range, pack(next, middle), Ordering::AcqRel, Ordering::Acquire)
            .ok()?;
        if victim != own && middle + 1 < end {
            self.ranges[own].store(pack(middle + 1, end), Ordering::Release);
        }
        Some(middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_morsel_is_taken_once() {
        for (count, workers) in [(0, 2), (1, 4), (1_000, 1), (1_000, 4)] {
            let ranges = MorselRanges::new(count, workers, false);
            let taken = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for worker in 0..workers {
                    let (ranges, taken) = (&ranges, &taken);
                    scope.spawn(move || {
                        while let Some(morsel) = ranges.take(worker) {
                            taken.lock().unwrap().push(morsel);
                        }
                    });
                }
            });
            let mut taken = taken.into_inner().unwrap();
            taken.sort_unstable();
            assert_eq!(taken, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn in_order_means_ascending() {
        let ranges = MorselRanges::new(5, 3, true);
        let taken: Vec<_> = (0..5).filter_map(|worker| ranges.take(worker)).collect();
        assert_eq!(taken, [0, 1, 2, 3, 4]);
        assert_eq!(ranges.take(0), None);
    }
}
