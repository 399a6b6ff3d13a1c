//! Tuples as generated, and their two wire formats.

use crate::raw::{Item, Line};

/// A tuple of 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Tuple {
    pub(crate) key: u64,
    pub(crate) payload: u64,
}

/// A tuple of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct JoinedTuple {
    pub(crate) key: u64,
    pub(crate) build: u64,
    pub(crate) probe: u64,
}

/// The wire format of tuples, also used at the receiver. A format may omit the `network_bits`
/// lowest bits of the key, which are the number of the network partition; the remaining bits are
/// the `rest`.
pub(crate) trait Form: Copy {
    /// The item that is sent.
    type Item: Item;

    fn encode(self, tuple: Tuple) -> Self::Item;
    fn rest(self, item: Self::Item) -> u64;
    fn payload(self, item: Self::Item) -> u64;
}

/// Unchanged tuples of two words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide {
    pub(crate) network_bits: u32,
}

impl Form for Wide {
    type Item = Tuple;

    #[inline(always)]
    fn encode(self, tuple: Tuple) -> Tuple {
        tuple
    }
    #[inline(always)]
    fn rest(self, item: Tuple) -> u64 {
        item.key >> self.network_bits
    }
    #[inline(always)]
    fn payload(self, item: Tuple) -> u64 {
        item.payload
    }
}

/// Key and payload in one word. Both are below 2^`domain_bits`, and `2 * domain_bits - network_bits
/// <= 64`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrow {
    pub(crate) network_bits: u32,
    pub(crate) domain_bits: u32,
}

impl Form for Narrow {
    type Item = u64;

    #[inline(always)]
    fn encode(self, tuple: Tuple) -> u64 {
        (tuple.key >> self.network_bits) << self.domain_bits | tuple.payload
    }
    #[inline(always)]
    fn rest(self, item: u64) -> u64 {
        item >> self.domain_bits
    }
    #[inline(always)]
    fn payload(self, item: u64) -> u64 {
        item & ((1 << self.domain_bits) - 1)
    }
}

impl Tuple {
    /// Stores the tuple into the two words of a slot of a cache line.
    #[inline(always)]
    pub(crate) fn store(self, line: &mut Line, slot: usize) {
        let slot = slot % 4;
        line.0[2 * slot] = self.key;
        line.0[2 * slot + 1] = self.payload;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_key_and_payload() {
        let form = Narrow { network_bits: 6, domain_bits: 35 };
        for tuple in [
            Tuple { key: 0, payload: 0 },
            Tuple { key: (1 << 35) - 1, payload: (1 << 35) - 1 },
            Tuple { key: 0x2_1234_5678, payload: 0x7_0000_0001 },
        ] {
            let item = form.encode(tuple);
            assert_eq!(form.rest(item), tuple.key >> 6);
            assert_eq!(form.payload(item), tuple.payload);
        }
    }
}
