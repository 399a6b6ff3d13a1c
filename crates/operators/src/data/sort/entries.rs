//! The sorted entries of a run.

use std::cmp::Ordering;

use arrow::row::{Row, Rows};
use tessera_context::interrupt::Every;

use super::packed::Packed;
use super::runs::{Entry, compare_prefixes, prefix};

/// Sorts runs one after the other in the same memory, by keys that prefixes hold.
#[derive(Debug, Default)]
pub(super) struct PrefixSorter<const W: usize> {
    prefixes: Vec<[u64; W]>,
    packed: Packed,
}

impl<const W: usize> PrefixSorter<W> {
    /// Returns the entries of tuples with these keys in order.
    pub(super) fn sort_prefixes(&mut self, keys: Rows) -> Vec<Entry<W>> {
        self.prefixes.clear();
        let every = Every::default();
        self.prefixes.extend(keys.iter().map(|key| {
            every.pass();
            prefix(key.data())
        }));
        drop(keys);
        let prefixes = &self.prefixes;
        let entry = |row: u32| {
            every.pass();
            Entry { prefix: prefixes[row as usize], run: 0, row }
        };
        match self.packed.order(prefixes.iter(), false) {
            Some(order) => order.map(entry).collect(),
            None => {
                let mut entries: Vec<_> = (0..prefixes.len() as u32).map(entry).collect();
                sort(&mut entries, |_, _| Ordering::Equal);
                entries
            }
        }
    }

    /// The bytes of memory that it keeps for the next run.
    pub(super) fn bytes(&self) -> usize {
        self.prefixes.capacity() * size_of::<[u64; W]>() + self.packed.bytes()
    }
}

/// Returns the entries of tuples with these keys in order.
pub(super) fn sort_keys<const W: usize>(keys: &Rows) -> Vec<Entry<W>> {
    let entry = |(row, key): (usize, Row<'_>)| Entry {
        prefix: prefix(key.data()),
        run: 0,
        row: row as u32,
    };
    let mut entries: Vec<Entry<W>> = keys.iter().enumerate().map(entry).collect();
    sort(&mut entries, |a, b| keys.row(a.row as usize).cmp(&keys.row(b.row as usize)));
    entries
}

/// Sorts by prefixes, and equal ones by `rest`.
fn sort<const W: usize>(entries: &mut [Entry<W>], rest: impl Fn(&Entry<W>, &Entry<W>) -> Ordering) {
    let every = Every::default();
    entries.sort_by(|a, b| {
        every.pass();
        compare_prefixes(&a.prefix, &b.prefix).then_with(|| rest(a, b))
    });
}
