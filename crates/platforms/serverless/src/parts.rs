//! The row groups of an exchange's objects: what each holds, and who reads it.

use std::ops::Range;
use std::sync::Arc;

use tessera_operator::platform::Heavy;

/// To whom tuples go.
#[derive(Debug, Clone)]
pub(crate) enum To {
    /// Each to the worker that so many bits of its hash name; where they meet others in a join, its
    /// name and what may become of heavy partitions.
    ByKeys {
        bits: u32,
        meets: Option<(Arc<str>, Heavy)>,
    },
    All,
    First,
}

/// The row groups of each object of an exchange between so many workers: one for each receiver, or
/// for each partition, of which neighbours have one receiver.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    to: To,
    workers: usize,
}

impl Parts {
    pub(crate) fn new(to: To, workers: usize) -> Parts {
        Parts { to, workers }
    }

    /// What may become of heavy partitions.
    pub(crate) fn heavy(&self) -> Option<Heavy> {
        self.to.meets().map(|(_, heavy)| heavy)
    }

    /// How many row groups an object has.
    pub(crate) fn groups(&self) -> usize {
        match &self.to {
            To::ByKeys { bits, meets: Some(_) } => 1 << bits,
            To::ByKeys { meets: None, .. } => self.workers,
            To::All | To::First => 1,
        }
    }

    /// The group that a partition goes to.
    pub(crate) fn group(&self, partition: usize) -> usize {
        match &self.to {
            To::ByKeys { meets: Some(_), .. } => partition,
            To::ByKeys { bits, meets: None } => (partition * self.workers) >> bits,
            To::All | To::First => 0,
        }
    }

    /// The groups that a worker reads, heavy ones apart.
    pub(crate) fn of_receiver(&self, worker: usize) -> Range<usize> {
        match &self.to {
            To::ByKeys { bits, meets: Some(_) } => {
                let first = |worker: usize| (worker << bits).div_ceil(self.workers);
                first(worker)..first(worker + 1)
            }
            To::ByKeys { meets: None, .. } => worker..worker + 1,
            To::All => 0..1,
            To::First => 0..usize::from(worker == 0),
        }
    }

    /// Whether anybody but its sender reads an object; what nobody else reads needs no store.
    pub(crate) fn read_by_others(&self, sender: usize) -> bool {
        (0..self.workers).any(|other| other != sender && !self.of_receiver(other).is_empty())
    }

    /// Whether a sender that has so many rows in each group keeps this one, since it will read it:
    /// it is the receiver, or the group is heavy, as far as it can see by itself.
    pub(crate) fn is_kept(&self, group: usize, sender: usize, rows: &[u64]) -> bool {
        let all = rows.iter().sum::<u64>();
        let is_heavy = || rows[group].saturating_mul(2 * self.workers as u64) > all;
        let may_split = self.heavy().is_some_and(|heavy| heavy != Heavy::Copied);
        self.of_receiver(sender).contains(&group) || (may_split && is_heavy())
    }
}

impl To {
    /// The name of the join where they meet others, and what may become of heavy partitions.
    pub(crate) fn meets(&self) -> Option<(&Arc<str>, Heavy)> {
        match self {
            To::ByKeys { meets: Some((name, heavy)), .. } => Some((name, *heavy)),
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
            let met =
                Parts::new(To::ByKeys { bits, meets: Some(("j".into(), Heavy::Either)) }, workers);
            let unmet = Parts::new(To::ByKeys { bits, meets: None }, workers);
            assert_eq!((met.groups(), unmet.groups()), (1 << bits, workers));
            for partition in 0..met.groups() {
                let has = |parts: &Parts, worker| {
                    parts.of_receiver(worker).contains(&parts.group(partition))
                };
                let receivers = |parts: &Parts| {
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
            let parts = Parts::new(To::ByKeys { bits: 3, meets: Some(("j".into(), heavy)) }, 4);
            let rows = [2, 1, 1, 900, 1, 0, 50, 30];
            (0..8).filter(|group| parts.is_kept(*group, 0, &rows)).collect::<Vec<_>>()
        };
        assert_eq!(kept(Heavy::Either), [0, 1, 3]);
        assert_eq!(kept(Heavy::Split), [0, 1, 3]);
        assert_eq!(kept(Heavy::Copied), [0, 1]);
    }
}
