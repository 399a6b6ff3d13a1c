//! Roles of ranks: which ranks read the leaves of a plan, and which own the partitions of its
//! exchanges.

use tessera_context::Share;
use tessera_plan::Plan;

/// The split into readers and owners. By default every rank is both. Split, the first half reads
/// and sends and the rest receives, as ranks must that block in every send (micro-operators
/// §3.8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Roles {
    ranks: usize,
    senders: usize,
    first_receiver: usize,
}

impl Roles {
    /// Every rank reads leaves and owns partitions.
    pub(crate) fn all(ranks: usize) -> Roles {
        Roles { ranks, senders: ranks, first_receiver: 0 }
    }

    /// The first half reads, the rest owns; a single rank does both.
    pub(crate) fn split(ranks: usize) -> Roles {
        match ranks / 2 {
            0 => Roles::all(ranks),
            receivers => {
                Roles { ranks, senders: ranks - receivers, first_receiver: ranks - receivers }
            }
        }
    }

    /// Returns the roles for a plan: split if one of its sends has `split`.
    pub(crate) fn of(plan: &Plan, ranks: usize) -> Roles {
        let is_split = plan.nodes.iter().any(|node| {
            &*node.operator == "mpi_send" && node.params.flag("split").unwrap_or(false)
        });
        if is_split { Roles::split(ranks) } else { Roles::all(ranks) }
    }

    pub(crate) fn ranks(self) -> usize {
        self.ranks
    }

    /// Returns the rank that owns a partition. Neighboring partitions share a rank.
    pub(crate) fn owner(self, partition: usize, partitions: usize) -> usize {
        self.first_receiver + partition * (self.ranks - self.first_receiver) / partitions
    }

    /// The share of the leaves that a rank reads; empty for a rank that only receives.
    pub(crate) fn share(self, rank: usize) -> Share {
        Share { index: rank, count: self.senders }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_has_an_owner_that_may_receive() {
        for ranks in 1..10 {
            for roles in [Roles::all(ranks), Roles::split(ranks)] {
                let owners: Vec<usize> =
                    (0..64).map(|partition| roles.owner(partition, 64)).collect();
                assert!(owners.is_sorted());
                assert_eq!((owners[0], owners[63]), (roles.first_receiver, ranks - 1));
                assert!(ranks == 1 || roles == Roles::all(ranks) || owners[0] >= roles.senders);
                assert!(roles.senders > 0);
            }
        }
    }
}
