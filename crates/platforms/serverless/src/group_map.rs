//! The mapping of partitions to the row groups of exchange objects, and of row groups to their
//! readers.

use std::ops::Range;
use std::sync::Arc;

use tessera_operator::platform::HeavyMode;

/// The receivers of an exchange.
#[derive(Debug, Clone)]
pub(crate) enum Destination {
    /// Each tuple goes to the worker that `bits` bits of its hash name. `meets` has the name of the
    /// join and the options for heavy partitions, if the exchange is a side of one.
    ByKeys {
        bits: u32,
        meets: Option<(Arc<str>, HeavyMode)>,
    },
    All,
    First,
}

/// The row groups of each object of an exchange: one per receiver, or one per partition, of which
/// neighbors share a receiver.
#[derive(Debug, Clone)]
pub(crate) struct GroupMap {
    to: Destination,
    workers: usize,
}

impl GroupMap {
    pub(crate) fn new(to: Destination, workers: usize) -> GroupMap {
        GroupMap { to, workers }
    }

    /// Returns the options for heavy partitions.
    pub(crate) fn heavy(&self) -> Option<HeavyMode> {
        self.to.meets().map(|(_, heavy)| heavy)
    }

    /// The number of row groups of an object.
    pub(crate) fn groups(&self) -> usize {
        match &self.to {
            Destination::ByKeys { bits, meets: Some(_) } => 1 << bits,
            Destination::ByKeys { meets: None, .. } => self.workers,
            Destination::All | Destination::First => 1,
        }
    }

    /// Returns the row group of a partition.
    pub(crate) fn group(&self, partition: usize) -> usize {
        match &self.to {
            Destination::ByKeys { meets: Some(_), .. } => partition,
            Destination::ByKeys { bits, meets: None } => (partition * self.workers) >> bits,
            Destination::All | Destination::First => 0,
        }
    }

    /// Returns the groups that a worker reads, apart from heavy ones.
    pub(crate) fn receiver_groups(&self, worker: usize) -> Range<usize> {
        match &self.to {
            Destination::ByKeys { bits, meets: Some(_) } => {
                let first = |worker: usize| (worker << bits).div_ceil(self.workers);
                first(worker)..first(worker + 1)
            }
            Destination::ByKeys { meets: None, .. } => worker..worker + 1,
            Destination::All => 0..1,
            Destination::First => 0..usize::from(worker == 0),
        }
    }

    /// Whether workers other than its sender read an object; an object without other readers is not
    /// written.
    pub(crate) fn read_by_others(&self, sender: usize) -> bool {
        (0..self.workers).any(|other| other != sender && !self.receiver_groups(other).is_empty())
    }

    /// Whether a sender with these rows per group keeps a group in memory because it will read it:
    /// it is the receiver, or the group seems heavy from the sender's own counts.
    pub(crate) fn is_retained(&self, group: usize, sender: usize, rows: &[u64]) -> bool {
        let all = rows.iter().sum::<u64>();
        let is_heavy = || rows[group].saturating_mul(2 * self.workers as u64) > all;
        let may_split = self.heavy().is_some_and(|heavy| heavy != HeavyMode::Copied);
        self.receiver_groups(sender).contains(&group) || (may_split && is_heavy())
    }
}

impl Destination {
    /// Returns the name of the join and the options for heavy partitions, if the exchange is a side
    /// of one.
    pub(crate) fn meets(&self) -> Option<(&Arc<str>, HeavyMode)> {
        match self {
            Destination::ByKeys { meets: Some((name, heavy)), .. } => Some((name, *heavy)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_has_the_receiver_that_it_had_without_groups_of_its_own() {
        for workers in 1..10 {
            let bits = usize::ilog2(workers * 8);
            let met = GroupMap::new(
                Destination::ByKeys { bits, meets: Some(("j".into(), HeavyMode::Either)) },
                workers,
            );
            let unmet = GroupMap::new(Destination::ByKeys { bits, meets: None }, workers);
            assert_eq!((met.groups(), unmet.groups()), (1 << bits, workers));
            for partition in 0..met.groups() {
                let has = |parts: &GroupMap, worker| {
                    parts.receiver_groups(worker).contains(&parts.group(partition))
                };
                let receivers = |parts: &GroupMap| {
                    (0..workers).filter(|worker| has(parts, *worker)).collect::<Vec<_>>()
                };
                assert_eq!(receivers(&met), receivers(&unmet));
                assert_eq!(receivers(&met).len(), 1);
            }
        }
    }

    #[test]
    fn what_looks_heavy_is_kept() {
        let kept = |heavy| {
            let parts =
                GroupMap::new(Destination::ByKeys { bits: 3, meets: Some(("j".into(), heavy)) }, 4);
            let rows = [2, 1, 1, 900, 1, 0, 50, 30];
            (0..8).filter(|group| parts.is_retained(*group, 0, &rows)).collect::<Vec<_>>()
        };
        assert_eq!(kept(HeavyMode::Either), [0, 1, 3]);
        assert_eq!(kept(HeavyMode::Split), [0, 1, 3]);
        assert_eq!(kept(HeavyMode::Copied), [0, 1]);
    }
}
