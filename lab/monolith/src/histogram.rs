//! Histograms: counts tuples at each rank, sums the counts over all ranks, and derives the regions
//! that each rank writes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mpi::collective::SystemOperation;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};

use crate::tuple::Tuple;

/// Counts the tuples of each partition by the lowest bits of the key. Each partition has four
/// counters used in turn; with one, a run of equal keys would stall on store forwarding.
pub(crate) fn count(tuples: &[Tuple], counts: &mut [u64]) {
    let mask = counts.len() - 1;
    let mut parts = vec![0u32; 4 * counts.len()];
    let (one, rest) = parts.split_at_mut(counts.len());
    let (two, rest) = rest.split_at_mut(counts.len());
    let (three, four) = rest.split_at_mut(counts.len());
    let chunks = tuples.chunks_exact(4);
    for tuple in chunks.remainder() {
        one[tuple.key as usize & mask] += 1;
    }
    for chunk in chunks {
        one[chunk[0].key as usize & mask] += 1;
        two[chunk[1].key as usize & mask] += 1;
        three[chunk[2].key as usize & mask] += 1;
        four[chunk[3].key as usize & mask] += 1;
    }
    for (place, count) in counts.iter_mut().enumerate() {
        *count = [&*one, &*two, &*three, &*four].iter().map(|part| u64::from(part[place])).sum();
    }
}

/// The tuples of one relation and partition in the owner's inbox.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Region {
    /// The position of the partition in its owner's inbox.
    pub(crate) begin: usize,
    /// The number of tuples from all ranks.
    pub(crate) len: usize,
    /// The position where this rank writes its own tuples, and their number.
    pub(crate) mine: usize,
    pub(crate) mine_len: usize,
}

/// The assignment of partitions to ranks.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The rank that joins each partition.
    pub(crate) owners: Vec<usize>,
    /// The regions of the build relation and of the probe relation, by partition.
    pub(crate) regions: [Vec<Region>; 2],
    /// The number of tuples that this rank receives, including its own.
    pub(crate) inbox_len: usize,
}

impl Plan {
    /// Computes the assignment on all ranks: one exclusive scan and one sum over the counts of both
    /// relations.
    pub(crate) fn agree(world: &SimpleCommunicator, counts: &[u64], partitions: usize) -> Self {
        let (rank, ranks) = (world.rank() as usize, world.size() as usize);
        let mut before = vec![0u64; counts.len()];
        let mut total = vec![0u64; counts.len()];
        world.exclusive_scan_into(counts, &mut before[..], SystemOperation::sum());
        if rank == 0 {
            // MPI leaves the first rank's result undefined.
            before.fill(0);
        }
        world.all_reduce_into(counts, &mut total[..], SystemOperation::sum());
        Self::new(rank, ranks, partitions, counts, &before, &total)
    }

    fn new(
        rank: usize,
        ranks: usize,
        partitions: usize,
        counts: &[u64],
        before: &[u64],
        total: &[u64],
    ) -> Self {
        let owners = assign(
            ranks,
            &(0..partitions).map(|p| total[p] + total[partitions + p]).collect::<Vec<_>>(),
        );
        let mut ends = vec![0usize; ranks];
        let regions = [0, partitions].map(|first| {
            (0..partitions)
                .map(|p| {
                    let begin = ends[owners[p]];
                    let len = total[first + p] as usize;
                    ends[owners[p]] += len;
                    let mine = begin + before[first + p] as usize;
                    Region { begin, len, mine, mine_len: counts[first + p] as usize }
                })
                .collect()
        });
        Self { owners, regions, inbox_len: ends[rank] }
    }
}

/// Assigns partitions to ranks: the heaviest first, each to the least loaded rank. Every rank
/// computes the same result.
fn assign(ranks: usize, weights: &[u64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&partition| (Reverse(weights[partition]), partition));
    let mut loads: BinaryHeap<_> = (0..ranks).map(|rank| Reverse((0, rank))).collect();
    let mut owners = vec![0; weights.len()];
    for partition in order {
        if let Some(Reverse((load, rank))) = loads.pop() {
            owners[partition] = rank;
            // One more than its weight, so that empty partitions are spread too.
            loads.push(Reverse((load + weights[partition] + 1, rank)));
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_disjoint_and_fill_the_inboxes() {
        let (ranks, partitions) = (3, 8);
        let counts: Vec<Vec<u64>> = (0..ranks)
            .map(|rank| (0..2 * partitions).map(|i| (i * 7 + rank * 5) as u64 % 11).collect())
            .collect();
        let total: Vec<u64> =
            (0..2 * partitions).map(|i| counts.iter().map(|of| of[i]).sum()).collect();
        let plans: Vec<Plan> = (0..ranks)
            .map(|rank| {
                let before: Vec<u64> = (0..2 * partitions)
                    .map(|i| counts[..rank].iter().map(|of| of[i]).sum())
                    .collect();
                Plan::new(rank, ranks, partitions, &counts[rank], &before, &total)
            })
            .collect();
        for owner in 0..ranks {
            let mut written = vec![0; plans[owner].inbox_len];
            for plan in &plans {
                assert_eq!(plan.owners, plans[0].owners);
                for regions in &plan.regions {
                    for (partition, region) in
                        regions.iter().enumerate().filter(|(p, _)| plan.owners[*p] == owner)
                    {
                        assert_eq!(region.len as u64 > 0, total[partition] > 0 || region.len > 0);
                        assert!(
                            region.mine >= region.begin
                                && region.mine + region.mine_len <= region.begin + region.len
                        );
                        written[region.mine..region.mine + region.mine_len]
                            .iter_mut()
                            .for_each(|times| *times += 1);
                    }
                }
            }
            assert!(written.iter().all(|&times| times == 1), "{written:?}");
        }
    }

    #[test]
    fn a_heavy_partition_keeps_its_rank_to_itself() {
        let owners = assign(3, &[10, 10, 1000, 10, 10]);
        assert_eq!(owners.iter().filter(|&&owner| owner == owners[2]).count(), 1);
        assert_eq!(assign(4, &[0, 0, 0, 0]), [0, 1, 2, 3]);
    }
}
