//! An open-addressing table over a [`Store`].

use std::sync::Arc;

use tessera_codegen::{GROUP_SLOT_BITS, RawGroups};
use tessera_rows::spill::PARTITION_BITS;
use tessera_types::{Code, Error, Result};
use tessera_vector::prefetch;

use super::keys::{KeyLayout, Keys};
use super::store::Store;
use crate::aggregate::Program;

/// How many rows ahead slots and records are prefetched.
const SLOT_AHEAD: usize = 16;
const RECORD_AHEAD: usize = 8;

const SLOTS_MIN: usize = 256;
const NUMBER_MASK: u64 = (1 << GROUP_SLOT_BITS) - 1;

/// Groups with distinct keys: a hash table.
///
/// Slots are probed linearly. A slot is 0 when free, else it has the low 16 bits of the hash (its
/// *tag*) at the top and 1 + the group's number below. The slot number is the hash's bits after the
/// partition's; at most half of all slots are taken.
#[derive(Debug)]
pub struct Table {
    layout: Arc<KeyLayout>,
    /// The groups.
    pub store: Store,
    slots: Vec<u64>,
    /// Bits at the top of the hash that all groups share, or that are not used.
    skipped_bits: u32,
}

/// Rows whose group existed already.
#[derive(Debug, Default)]
pub struct Hits {
    /// Their groups.
    pub into: Vec<u32>,
    /// The rows.
    pub rows: Vec<u32>,
}

impl Table {
    /// Creates a table without groups, with capacity for `groups`.
    pub fn new(layout: Arc<KeyLayout>, program: Arc<Program>, groups: usize) -> Result<Self> {
        let slots = (groups * 2).next_power_of_two().max(SLOTS_MIN);
        let store = Store::new(layout.clone(), program)?;
        Ok(Table { store, layout, slots: vec![0; slots], skipped_bits: PARTITION_BITS })
    }

    /// Bytes of a table with this many groups and words per record.
    pub fn bytes_for(groups: usize, stride: usize) -> usize {
        let slots = groups.saturating_mul(2).checked_next_power_of_two().unwrap_or(usize::MAX);
        groups.saturating_mul(stride).saturating_add(slots).saturating_mul(8)
    }

    /// Creates a table for groups of a partition that was subdivided `depth` times.
    pub fn of_cut(layout: Arc<KeyLayout>, program: Arc<Program>, depth: u32) -> Result<Self> {
        let skipped_bits = PARTITION_BITS * (depth + 1);
        Ok(Table { skipped_bits, ..Table::new(layout, program, 0)? })
    }

    /// Creates a table of keys only.
    pub fn of_keys(layout: Arc<KeyLayout>) -> Result<Self> {
        let program = Arc::new(Program::empty(layout.words()));
        Table::new(layout, program, 0)
    }

    /// Finds or creates the groups of rows `from..to`; appends their numbers to `groups`.
    pub fn assign<K: Keys>(
        &mut self,
        keys: &K,
        from: usize,
        to: usize,
        groups: &mut Vec<u32>,
    ) -> Result<()> {
        self.reserve(to - from)?;
        for row in from..to {
            self.prefetch(keys, row, to);
            let (group, _) = self.find_or_push(keys, row, false);
            groups.push(group);
        }
        Ok(())
    }

    /// Like [`Table::assign`], but new groups get the states of their row, and only the other rows
    /// are reported in `hits`.
    pub fn absorb(&mut self, keys: &Store, from: usize, to: usize, hits: &mut Hits) -> Result<()> {
        self.reserve(to - from)?;
        for row in from..to {
            self.prefetch(keys, row, to);
            if let (group, true) = self.find_or_push(keys, row, true) {
                hits.into.push(group);
                hits.rows.push(row as u32);
            }
        }
        Ok(())
    }

    /// Prefetches the slot of a row further ahead, and the record of the slot of a nearer row.
    #[inline(always)]
    fn prefetch<K: Keys>(&self, keys: &K, row: usize, to: usize) {
        if row + SLOT_AHEAD < to {
            let place = self.place(keys.record(row + SLOT_AHEAD)[0]);
            prefetch(self.slots.as_ptr().wrapping_add(place));
            let hash = keys.record(row + RECORD_AHEAD)[0];
            let slot = self.slots[self.place(hash)];
            if slot != 0 && (slot ^ hash << GROUP_SLOT_BITS) >> GROUP_SLOT_BITS == 0 {
                prefetch(self.store.area.record(((slot & NUMBER_MASK) - 1) as usize).as_ptr());
            }
        }
    }

    #[inline(always)]
    fn find_or_push<K: Keys>(&mut self, keys: &K, row: usize, whole: bool) -> (u32, bool) {
        let hash = keys.record(row)[0];
        let mask = self.slots.len() - 1;
        let mut place = self.place(hash);
        loop {
            let slot = self.slots[place];
            if slot == 0 {
                let group = self.store.push(keys, row, whole);
                self.slots[place] = hash << GROUP_SLOT_BITS | (u64::from(group) + 1);
                return (group, false);
            }
            if (slot ^ hash << GROUP_SLOT_BITS) >> GROUP_SLOT_BITS == 0 {
                let group = (slot & NUMBER_MASK) - 1;
                if self.layout.equal(&self.store, group as usize, keys, row) {
                    return (group as u32, true);
                }
            }
            place = (place + 1) & mask;
        }
    }

    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        let bits = self.slots.len().trailing_zeros();
        // Rotated, so that a hash whose bits have all been used still varies.
        (hash.rotate_left(self.skipped_bits) >> (64 - bits)) as usize
    }

    /// Lets compiled code create up to `rows` groups; the code returns whether it did.
    ///
    /// # Errors
    /// There are too many groups.
    pub(super) fn fill(
        &mut self,
        rows: usize,
        code: impl FnOnce(&mut RawGroups) -> bool,
    ) -> Result<bool> {
        self.reserve(rows)?;
        let mut raw = RawGroups {
            slots: self.slots.as_mut_ptr(),
            mask: self.slots.len() as u64 - 1,
            rotation: self.skipped_bits.into(),
            shift: (64 - self.slots.len().trailing_zeros()).into(),
            records: self.store.area.words_mut().as_mut_ptr(),
            groups: self.store.groups() as u64,
        };
        let is_done = code(&mut raw);
        self.store.area.set_groups(raw.groups as usize);
        Ok(is_done)
    }

    /// Reserves memory for this many more groups.
    fn reserve(&mut self, more: usize) -> Result<()> {
        let groups = self.store.groups() + more;
        self.store.area.reserve(groups);
        if groups >= u32::MAX as usize {
            return Err(Error::new(
                Code::Limit,
                "more than 2^32 groups in one of the 64 partitions of a group table; group by fewer keys",
            ));
        }
        if groups * 2 <= self.slots.len() {
            return Ok(());
        }
        self.slots = vec![0; (groups * 2).next_power_of_two()];
        let mask = self.slots.len() - 1;
        for group in 0..self.store.groups() {
            let hash = self.store.record(group)[0];
            let mut place = self.place(hash);
            while self.slots[place] != 0 {
                place = (place + 1) & mask;
            }
            self.slots[place] = hash << GROUP_SLOT_BITS | (group as u64 + 1);
        }
        Ok(())
    }

    /// Removes all groups but keeps the memory.
    pub fn clear(&mut self) -> Result<()> {
        self.slots.fill(0);
        self.store.clear()
    }

    /// Bytes of slots, records and strings, which should fit into a cache.
    pub fn table_bytes(&self) -> usize {
        self.slots.len() * 8 + self.store.record_bytes()
    }

    /// Bytes held in all.
    pub fn memory(&self) -> usize {
        self.slots.len() * 8 + self.store.memory()
    }
}
