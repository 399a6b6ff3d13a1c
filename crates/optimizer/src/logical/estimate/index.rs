//! A hash index from keys to the rows of a sample.

use crate::sample::NULL_HASH;

/// The minimum number of slots per row of an index. Most keys without a match are found at the
/// first slot.
const SLOTS_PER_ROW: usize = 4;

/// An open-addressing hash index from keys to rows. Keys are hashes already.
#[derive(Debug)]
pub(super) struct Index {
    /// The number of the key in each slot; [`FREE`] for an empty slot.
    slots: Vec<u32>,
    shift: u32,
    pub(super) keys: Vec<Key>,
    pub(super) rows: Vec<u32>,
}

/// An empty slot.
const FREE: u32 = u32::MAX;

/// A key with the start and the number of its rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    hash: u64,
    start: u32,
    count: u32,
}

impl Index {
    pub(super) fn new(hashes: &[u64]) -> Index {
        let bits = (hashes.len() * SLOTS_PER_ROW).next_power_of_two().max(SLOTS_PER_ROW).ilog2();
        let mut index = Index {
            slots: vec![FREE; 1 << bits],
            shift: 64 - bits,
            keys: Vec::new(),
            rows: Vec::new(),
        };
        let mut numbers = Vec::with_capacity(hashes.len());
        for hash in hashes {
            numbers.push(if *hash == NULL_HASH { FREE } else { index.number(*hash) });
        }
        let mut next = 0;
        for key in &mut index.keys {
            (key.start, next) = (next, next + key.count);
            key.count = 0;
        }
        index.rows = vec![0; next as usize];
        for (number, row) in numbers.into_iter().zip(0..).filter(|(number, _)| *number != FREE) {
            let key = &mut index.keys[number as usize];
            index.rows[(key.start + key.count) as usize] = row;
            key.count += 1;
        }
        index
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u32>()
            + self.keys.len() * size_of::<Key>()
            + self.rows.len() * size_of::<u32>()
    }

    /// Returns the slot of a key, or the empty slot where it belongs.
    fn place(&self, hash: u64) -> usize {
        let mut place = (hash >> self.shift) as usize;
        while self.slots[place] != FREE && self.keys[self.slots[place] as usize].hash != hash {
            place = (place + 1) & (self.slots.len() - 1);
        }
        place
    }

    /// Returns the number of a key and counts one more row for it.
    fn number(&mut self, hash: u64) -> u32 {
        let place = self.place(hash);
        if self.slots[place] == FREE {
            self.slots[place] = self.keys.len() as u32;
            self.keys.push(Key { hash, start: 0, count: 0 });
        }
        let number = self.slots[place];
        self.keys[number as usize].count += 1;
        number
    }

    /// Returns the start and the number of a key's rows.
    pub(super) fn get(&self, hash: u64) -> (u32, u32) {
        let number = if hash == NULL_HASH { FREE } else { self.slots[self.place(hash)] };
        self.keys.get(number as usize).map_or((0, 0), |key| (key.start, key.count))
    }

    /// Iterates over the start and the number of each key's rows, in order of first appearance.
    pub(super) fn each(&self) -> impl Iterator<Item = (u32, u32)> {
        self.keys.iter().map(|key| (key.start, key.count))
    }
}
