//! The join of one network partition in this rank's memory: partitions by further bits of the key
//! until the build side fits the cache, then builds a hash table and probes it.

use std::time::{Duration, Instant};

use crate::generate::Answer;
use crate::raw::Area;
use crate::tuple::{Form, JoinedTuple};

/// The most bits of one pass, so that its write positions are covered by the first-level TLB.
const PASS_BITS: u32 = 7;

/// Tuples of the result, in pieces with stable addresses.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pieces: Vec<Area<JoinedTuple>>,
    /// The number of full pieces, and of tuples in the next one.
    full: usize,
    len: usize,
}

/// Tuples in a piece (6 MiB).
const PIECE: usize = 1 << 18;

impl Output {
    #[inline(always)]
    fn push(&mut self, joined: JoinedTuple) {
        if self.len == PIECE || self.pieces.is_empty() {
            self.turn();
        }
        self.pieces[self.full][self.len] = joined;
        self.len += 1;
    }

    #[cold]
    #[inline(never)]
    fn turn(&mut self) {
        if !self.pieces.is_empty() {
            self.full += 1;
        }
        if self.full == self.pieces.len() {
            self.pieces.push(Area::new(PIECE));
        }
        self.len = 0;
    }

    /// Removes the tuples and keeps the memory.
    pub(crate) fn clear(&mut self) {
        (self.full, self.len) = (0, 0);
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[JoinedTuple]> {
        let len = move |piece| if piece < self.full { PIECE } else { self.len };
        self.pieces
            .iter()
            .take(self.full + 1)
            .enumerate()
            .map(move |(piece, tuples)| &tuples[..len(piece)])
    }
}

/// A chained hash table: `heads` by hash and `next` by tuple hold the tuple's index plus one, and 0
/// at the end of a chain (Balkesen et al., "Main-memory hash joins on multi-core CPUs", 2013).
#[derive(Debug, Default)]
struct Table {
    heads: Vec<u32>,
    next: Vec<u32>,
}

/// The local join; its memory is reused for the next partition.
#[derive(Debug)]
pub(crate) struct Join<F: Form> {
    form: F,
    network_bits: u32,
    /// Bits of the keys without the network bits.
    rest_bits: u32,
    cache_bytes: usize,
    /// Partitioned copies of both sides for passes that are not running; the first pass's is on
    /// top.
    memory: Vec<[Area<F::Item>; 2]>,
    table: Table,
    materialize: bool,
    pub(crate) output: Output,
    pub(crate) answer: Answer,
    pub(crate) partitioning: Duration,
    pub(crate) building_and_probing: Duration,
}

impl<F: Form> Join<F> {
    pub(crate) fn new(
        form: F,
        network_bits: u32,
        rest_bits: u32,
        cache_bytes: usize,
        materialize: bool,
    ) -> Self {
        Self {
            form,
            network_bits,
            rest_bits,
            cache_bytes,
            memory: Vec::new(),
            table: Table::default(),
            materialize,
            output: Output::default(),
            answer: Answer::default(),
            partitioning: Duration::ZERO,
            building_and_probing: Duration::ZERO,
        }
    }

    /// Removes the result and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.output.clear();
        self.answer = Answer::default();
        (self.partitioning, self.building_and_probing) = (Duration::ZERO, Duration::ZERO);
    }

    /// Joins the two sides of a network partition.
    pub(crate) fn join(&mut self, partition: usize, build: &[F::Item], probe: &[F::Item]) {
        self.pass(partition as u64, build, probe, 0);
    }

    /// Partitions by the bits from `bit` on if the build side is too large, then joins.
    fn pass(&mut self, partition: u64, build: &[F::Item], probe: &[F::Item], bit: u32) {
        if build.is_empty() || probe.is_empty() {
            return;
        }
        let needed = (size_of_val(build) + 8 * build.len()).div_ceil(self.cache_bytes);
        let bits = needed.next_power_of_two().ilog2().min(self.rest_bits - bit).min(PASS_BITS);
        if bits == 0 {
            let start = Instant::now();
            if self.materialize {
                self.build_and_probe::<true>(partition, build, probe, bit);
            } else {
                self.build_and_probe::<false>(partition, build, probe, bit);
            }
            self.building_and_probing += start.elapsed();
            return;
        }
        let start = Instant::now();
        let mut memory = self.memory.pop().unwrap_or_else(|| [Area::new(0), Area::new(0)]);
        let [build_memory, probe_memory] = &mut memory;
        let build_ends = self.partition(build, build_memory, bit, bits);
        let probe_ends = self.partition(probe, probe_memory, bit, bits);
        self.partitioning += start.elapsed();
        let (mut build_begin, mut probe_begin) = (0, 0);
        for (&build_end, &probe_end) in build_ends.iter().zip(&probe_ends) {
            let build = &build_memory[build_begin..build_end];
            let probe = &probe_memory[probe_begin..probe_end];
            self.pass(partition, build, probe, bit + bits);
            (build_begin, probe_begin) = (build_end, probe_end);
        }
        self.memory.push(memory);
    }

    /// Writes the items in the order of their partitions; returns the end of each.
    fn partition(
        &self,
        items: &[F::Item],
        memory: &mut Area<F::Item>,
        bit: u32,
        bits: u32,
    ) -> Vec<usize> {
        if memory.len() < items.len() {
            *memory = Area::new(items.len());
        }
        let mask = (1usize << bits) - 1;
        let mut ends = vec![0usize; mask + 1];
        for &item in items {
            ends[(self.form.rest(item) >> bit) as usize & mask] += 1;
        }
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        let memory = &mut memory[..items.len()];
        for &item in items {
            let end = &mut ends[(self.form.rest(item) >> bit) as usize & mask];
            memory[*end] = item;
            *end += 1;
        }
        ends
    }

    fn build_and_probe<const MATERIALIZE: bool>(
        &mut self,
        partition: u64,
        build: &[F::Item],
        probe: &[F::Item],
        bit: u32,
    ) {
        let (form, network_bits) = (self.form, self.network_bits);
        let mask = build.len().next_power_of_two() - 1;
        let Table { heads, next } = &mut self.table;
        heads.clear();
        heads.resize(mask + 1, 0);
        next.resize(next.len().max(build.len()), 0);
        for (place, (&item, next)) in build.iter().zip(next.iter_mut()).enumerate() {
            let head = &mut heads[(form.rest(item) >> bit) as usize & mask];
            *next = *head;
            *head = place as u32 + 1;
        }
        let (mut matches, mut checksum) = (0u64, 0u64);
        for &item in probe {
            let rest = form.rest(item);
            let mut place = heads[(rest >> bit) as usize & mask];
            while place != 0 {
                let candidate = build[place as usize - 1];
                if form.rest(candidate) == rest {
                    let (build, probe) = (form.payload(candidate), form.payload(item));
                    matches += 1;
                    checksum = checksum.wrapping_add(build.wrapping_mul(probe));
                    if MATERIALIZE {
                        self.output.push(JoinedTuple {
                            key: rest << network_bits | partition,
                            build,
                            probe,
                        });
                    }
                }
                place = next[place as usize - 1];
            }
        }
        self.answer.matches += matches;
        self.answer.checksum = self.answer.checksum.wrapping_add(checksum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuple::{Narrow, Tuple, Wide};

    /// Keys with 3 as their two lowest bits; some occur more often than others.
    fn tuples(count: u64, keys: u64) -> Vec<Tuple> {
        (0..count)
            .map(|number| Tuple { key: number * number % keys * 4 + 3, payload: number })
            .collect()
    }

    fn check<F: Form>(form: F, build: &[Tuple], probe: &[Tuple], cache_bytes: usize) {
        let mut expected = Vec::new();
        for probe in probe {
            for build in build.iter().filter(|build| build.key == probe.key) {
                expected.push((build.key, build.payload, probe.payload));
            }
        }
        expected.sort_unstable();
        let encode =
            |tuples: &[Tuple]| tuples.iter().map(|&tuple| form.encode(tuple)).collect::<Vec<_>>();
        for materialize in [false, true] {
            let mut join = Join::new(form, 2, 14, cache_bytes, materialize);
            for _ in 0..2 {
                join.clear();
                join.join(3, &encode(build), &encode(probe));
                assert_eq!(join.answer.matches, expected.len() as u64);
                let mut found: Vec<_> = join
                    .output
                    .pieces()
                    .flatten()
                    .map(|row| (row.key, row.build, row.probe))
                    .collect();
                found.sort_unstable();
                assert!(if materialize { found == expected } else { found.is_empty() });
            }
        }
    }

    #[test]
    fn the_join_is_that_of_nested_loops() {
        for (build, probe, keys) in
            [(0, 9, 5), (9, 0, 5), (1, 1, 1), (300, 500, 1 << 12), (400, 200, 60)]
        {
            for cache_bytes in [64, 500, 1 << 20] {
                let (build, probe) = (tuples(build, keys), tuples(probe, keys));
                check(Wide { network_bits: 2 }, &build, &probe, cache_bytes);
                check(Narrow { network_bits: 2, domain_bits: 16 }, &build, &probe, cache_bytes);
            }
        }
    }
}
