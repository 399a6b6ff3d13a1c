//! Generates the two relations, and computes the answer of their join from how they are generated.

use std::ops::Range;

use crate::raw::Area;
use crate::tuple::Tuple;

/// A permutation of 0..`len` and its inverse: an invertible hash of `bits` bits, repeated until the
/// value falls into the range.
#[derive(Clone, Copy, Debug)]
struct Permutation {
    len: u64,
    bits: u32,
    factors: [u64; 3],
    inverses: [u64; 3],
}

impl Permutation {
    fn new(len: u64, seed: u64) -> Self {
        let factors = [1, 2, 3].map(|round| mix(seed.wrapping_mul(4).wrapping_add(round)) | 1);
        Self { len, bits: domain_bits(len), factors, inverses: factors.map(inverse) }
    }

    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    fn fold(&self, x: u64) -> u64 {
        // A shift by at least half of the bits is its own inverse.
        x ^ (x >> self.bits.div_ceil(2))
    }

    fn apply(&self, mut x: u64) -> u64 {
        loop {
            for factor in self.factors {
                x = self.fold(x.wrapping_mul(factor) & self.mask());
            }
            if x < self.len {
                return x;
            }
        }
    }

    fn invert(&self, mut x: u64) -> u64 {
        loop {
            for inverse in self.inverses.iter().rev() {
                x = self.fold(x).wrapping_mul(*inverse) & self.mask();
            }
            if x < self.len {
                return x;
            }
        }
    }
}

/// Returns how many bits the numbers below `len` take, at least one.
pub(crate) fn domain_bits(len: u64) -> u32 {
    (64 - len.saturating_sub(1).leading_zeros()).max(1)
}

/// Returns the inverse of an odd number modulo 2^64 by Newton's method: each step doubles the
/// number of correct bits.
fn inverse(odd: u64) -> u64 {
    (0..6).fold(odd, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))))
}

/// A 64-bit hash (the finalizer of SplitMix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The shape of the relations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Tuples per relation, over all ranks.
    pub(crate) tuples: u64,
    pub(crate) seed: u64,
    /// Occurrences of each key in the build relation, and in the probe relation.
    pub(crate) build_copies: u64,
    pub(crate) probe_copies: u64,
    /// Percentage of the probe relation that has one key.
    pub(crate) skew: u64,
}

/// One of the two relations; its tuples are numbered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relation {
    order: Permutation,
    copies: u64,
    skew: u64,
    payloads: u64,
}

/// The key of skewed tuples. It occurs in the build relation.
const HEAVY_KEY: u64 = 0;

impl Relation {
    fn is_heavy(&self, number: u64) -> bool {
        number % 100 < self.skew
    }

    fn payload(&self, number: u64) -> u64 {
        mix(number ^ self.payloads) & self.order.mask()
    }

    fn tuple(&self, number: u64) -> Tuple {
        let key =
            if self.is_heavy(number) { HEAVY_KEY } else { self.order.apply(number) / self.copies };
        Tuple { key, payload: self.payload(number) }
    }

    /// Fills the memory with the tuples from number `first` on.
    pub(crate) fn fill(&self, first: u64, tuples: &mut Area<Tuple>) {
        for (number, tuple) in (first..).zip(tuples.iter_mut()) {
            *tuple = self.tuple(number);
        }
    }

    /// Returns the number of light tuples with a key, and the sum of their payloads.
    fn of_key(&self, key: u64) -> (u64, u64) {
        let places = key * self.copies..((key + 1) * self.copies).min(self.order.len);
        let numbers =
            places.map(|place| self.order.invert(place)).filter(|&number| !self.is_heavy(number));
        numbers.fold((0, 0), |(count, sum), number| (count + 1, sum + self.payload(number)))
    }
}

/// The expected result of a join. All sums are modulo 2^64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) matches: u64,
    /// The sum over the result of build payload times probe payload.
    pub(crate) checksum: u64,
    /// The sum over the result of the keys.
    pub(crate) keys: u64,
}

impl Answer {
    pub(crate) fn as_words(self) -> [u64; 3] {
        [self.matches, self.checksum, self.keys]
    }

    fn add(&mut self, key: u64, build: (u64, u64), probe: (u64, u64)) {
        let matches = build.0.wrapping_mul(probe.0);
        self.matches = self.matches.wrapping_add(matches);
        self.checksum = self.checksum.wrapping_add(build.1.wrapping_mul(probe.1));
        self.keys = self.keys.wrapping_add(key.wrapping_mul(matches));
    }
}

impl Shape {
    pub(crate) fn build(&self) -> Relation {
        Relation {
            order: Permutation::new(self.tuples, mix(self.seed)),
            copies: self.build_copies,
            skew: 0,
            payloads: mix(self.seed ^ 0xb),
        }
    }

    pub(crate) fn probe(&self) -> Relation {
        Relation {
            order: Permutation::new(self.tuples, mix(self.seed ^ 0x5)),
            copies: self.probe_copies,
            skew: self.skew,
            payloads: mix(self.seed ^ 0xf),
        }
    }

    /// Returns the part of the answer for a range of numbers: light probe tuples by key, heavy ones
    /// by number.
    pub(crate) fn answer(&self, numbers: Range<u64>) -> Answer {
        let (build, probe) = (self.build(), self.probe());
        let mut answer = Answer::default();
        for key in numbers.clone() {
            answer.add(key, build.of_key(key), probe.of_key(key));
        }
        let heavy = build.of_key(HEAVY_KEY);
        for number in numbers.filter(|&number| probe.is_heavy(number)) {
            answer.add(HEAVY_KEY, heavy, (1, probe.payload(number)));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_have_inverses() {
        for len in [1, 2, 3, 5, 64, 65, 1000, 4096] {
            for seed in 0..5 {
                let permutation = Permutation::new(len, seed);
                let mut seen = vec![false; len as usize];
                for x in 0..len {
                    let y = permutation.apply(x);
                    assert_eq!(permutation.invert(y), x);
                    assert!(!std::mem::replace(&mut seen[y as usize], true));
                }
            }
        }
    }

    #[test]
    fn the_answer_is_that_of_nested_loops() {
        for (tuples, build_copies, probe_copies, skew) in [
            (0, 1, 1, 0),
            (1, 1, 1, 0),
            (97, 1, 1, 0),
            (200, 3, 1, 0),
            (150, 1, 4, 0),
            (150, 4, 7, 0),
            (300, 2, 3, 90),
        ] {
            let shape = Shape { tuples, seed: 7, build_copies, probe_copies, skew };
            let all = |relation: Relation| (0..tuples).map(move |number| relation.tuple(number));
            let mut expected = Answer::default();
            for build in all(shape.build()) {
                for probe in all(shape.probe()).filter(|probe| probe.key == build.key) {
                    expected.add(build.key, (1, build.payload), (1, probe.payload));
                }
            }
            let middle = tuples / 3;
            let (one, other) = (shape.answer(0..middle), shape.answer(middle..tuples));
            assert_eq!(one.matches + other.matches, expected.matches);
            assert_eq!(one.checksum.wrapping_add(other.checksum), expected.checksum);
            assert_eq!(one.keys.wrapping_add(other.keys), expected.keys);
            assert!(tuples == 0 || expected.matches > 0);
        }
    }
}
