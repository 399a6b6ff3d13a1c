//! Memory of aggregate states: one fixed-size record per group.

use std::mem::{align_of, size_of};

/// A state, or a part of one, in its memory representation.
///
/// # Safety
/// The type is `repr(C)`, its size a multiple of 8, its alignment at most 8, it has no padding, and
/// every bit pattern is a value of it.
pub unsafe trait Pod: Copy + 'static {}

// SAFETY: 8 bytes, aligned to 8 at most, every pattern is a value.
unsafe impl Pod for u64 {}
// SAFETY: as above.
unsafe impl Pod for f64 {}

/// The records of the groups of one table: `stride` 8-byte words per group. `words` may be longer
/// than the records.
#[derive(Debug)]
pub struct Area {
    words: Vec<u64>,
    stride: usize,
    groups: usize,
}

impl Area {
    /// Creates an area without groups.
    pub fn new(stride: usize) -> Self {
        Area { words: Vec::new(), stride, groups: 0 }
    }

    /// Creates an area from the words of its records.
    pub fn of_words(words: Vec<u64>, stride: usize) -> Self {
        Area { groups: words.len() / stride.max(1), words, stride }
    }

    /// The words of all records.
    pub fn words(&self) -> &[u64] {
        &self.words[..self.groups * self.stride]
    }

    /// All words, including unused capacity.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Sets the number of groups after their records have been written.
    pub fn set_groups(&mut self, groups: usize) {
        assert!(groups * self.stride <= self.words.len(), "groups outside their area");
        self.groups = groups;
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Reserves memory for this many groups in total.
    pub fn reserve(&mut self, groups: usize) {
        let words = groups * self.stride;
        if self.words.is_empty() {
            // The system provides zeroed pages lazily, when they are first touched.
            self.words = vec![0; words];
        } else if words > self.words.len() {
            self.words.resize(words.max(self.words.len() * 2), 0);
        }
    }

    /// Adds a group with a zeroed record.
    pub fn add(&mut self) {
        self.push(&[]);
    }

    /// Adds a group whose record starts with these words; the rest is zero.
    #[inline(always)]
    pub fn push(&mut self, start: &[u64]) -> u32 {
        let (at, group) = (self.groups * self.stride, self.groups);
        if at + self.stride > self.words.len() {
            self.reserve(group + 1);
        }
        let target = &mut self.words[at..at + self.stride];
        // Records are short: a loop over four words is cheaper than a call to copy them.
        let mut parts = start.chunks_exact(4);
        let mut targets = target.chunks_exact_mut(4);
        for (from, to) in (&mut parts).zip(&mut targets) {
            to.copy_from_slice(from);
        }
        let done = start.len() - parts.remainder().len();
        for (to, from) in target[done..].iter_mut().zip(parts.remainder()) {
            *to = *from;
        }
        target[start.len()..].fill(0);
        self.groups += 1;
        group as u32
    }

    /// Returns the words of a group's record.
    #[inline(always)]
    pub fn record(&self, group: usize) -> &[u64] {
        &self.words[group * self.stride..(group + 1) * self.stride]
    }

    /// Returns the words of a group's record, mutable.
    #[inline(always)]
    pub fn record_mut(&mut self, group: usize) -> &mut [u64] {
        &mut self.words[group * self.stride..(group + 1) * self.stride]
    }

    /// Removes all groups but keeps the memory.
    pub fn clear(&mut self) {
        self.groups = 0;
    }

    /// Bytes of the records.
    pub fn record_bytes(&self) -> usize {
        self.groups * self.stride * 8
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.words.capacity() * 8
    }

    /// Returns the part of a group's state that starts `offset` words into it.
    #[inline(always)]
    pub fn get<T: Pod>(&self, group: u32, offset: usize) -> T {
        let at = self.place::<T>(group, offset);
        // SAFETY: `place` checked that all of `T` lies inside `words`, whose alignment suffices;
        // `T` is `Pod`.
        unsafe { *self.words.as_ptr().add(at).cast::<T>() }
    }

    /// Like `get`, mutable.
    #[inline(always)]
    pub fn get_mut<T: Pod>(&mut self, group: u32, offset: usize) -> &mut T {
        let at = self.place::<T>(group, offset);
        // SAFETY: as in `get`; the borrow of `self` makes the reference the only one.
        unsafe { &mut *self.words.as_mut_ptr().add(at).cast::<T>() }
    }

    /// Iterates over that part of every group's state.
    pub fn states<T: Pod>(&self, offset: usize) -> impl Iterator<Item = T> {
        (0..self.groups as u32).map(move |group| self.get(group, offset))
    }

    #[inline(always)]
    fn place<T: Pod>(&self, group: u32, offset: usize) -> usize {
        const { assert!(size_of::<T>().is_multiple_of(8) && align_of::<T>() <= 8) };
        let at = group as usize * self.stride + offset;
        assert!(at + size_of::<T>() / 8 <= self.words.len(), "a state outside its area");
        at
    }
}
