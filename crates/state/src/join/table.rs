//! The join table: unchained (Birler, Kemper, Neumann, VLDB 2024), in the layout of
//! `docs/layout.md`.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tessera_codegen::{InputPlace, RawInput, RawTable, WRITTEN_AT_ONCE};
use tessera_rows::{
    Candidates, HASH_OFFSET, Incoming, Kind, NullKeys, Part, RowLayout, Values, Which,
};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::physical::Physical;
use tessera_vector::{Chunk, Column};

use super::buffers::TableBuild;
use super::compiled::CompiledLookup;
use super::directory::Directory;
use super::spilled::SpilledBuild;

/// How many directory entries are on their way to the cache at once: the loop around one is about
/// 40 instructions, so that the processor by itself would look ahead to 10.
const PREFETCH_AHEAD: usize = 24;

/// A hash table of tuples, complete; read by all workers.
#[derive(Debug)]
pub struct JoinTable {
    build: Arc<TableBuild>,
    directory: Arc<Directory>,
    part: Part,
    null_rows: OnceLock<Vec<u64>>,
}

/// The tuples of one chunk that may have matches, and how far their matches have been given out.
#[derive(Debug, Default)]
pub struct Lookup {
    hashes: Vec<u64>,
    keys: Option<Incoming>,
    /// Positions in the chunk (of the tuples that count), with the rows of their slots.
    positions: Vec<u32>,
    ranges: Vec<(u64, u64)>,
    next: usize,
    /// All pairs, where compiled code has found them, and how many were given out.
    all: Candidates,
    given: Option<usize>,
}

impl JoinTable {
    pub(crate) fn new(build: Arc<TableBuild>, directory: Arc<Directory>, part: Part) -> JoinTable {
        JoinTable { build, directory, part, null_rows: OnceLock::new() }
    }

    /// The tuple of the rows.
    pub fn tuple(&self) -> &Tuple {
        self.layout().tuple()
    }

    pub(crate) fn layout(&self) -> &RowLayout {
        &self.build.layout
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.part.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.part.rows == 0
    }

    /// How it was built.
    pub fn build(&self) -> &Arc<TableBuild> {
        &self.build
    }

    /// What has left memory, where something has.
    pub fn spilled(&self) -> Option<&Arc<SpilledBuild>> {
        self.build.spilled.as_ref().filter(|spilled| spilled.gone() != 0)
    }

    /// The fields that are the keys.
    pub fn keys(&self) -> &[usize] {
        &self.build.keys
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.part.memory_bytes() + self.directory.memory_bytes()
    }

    /// A field of these rows; [`tessera_rows::NO_ROW`] gives NULL.
    pub fn gather(&self, field: usize, rows: &[u64]) -> Result<Column> {
        self.part.gather(&self.build.layout, field, Which::Listed(rows))
    }

    /// Where the keys stand in a row, if compiled code can look them up: whole numbers of at most
    /// 64 bits.
    pub(super) fn coded_offsets(&self) -> Option<Vec<usize>> {
        let offset = |key: &usize| {
            let place = &self.layout().fields[*key];
            let is_word = |physical| {
                matches!(
                    physical,
                    Physical::Bits8 | Physical::Bits16 | Physical::Bits32 | Physical::Bits64
                )
            };
            matches!(place.kind, Kind::Value(physical, _) if is_word(physical))
                .then_some(place.offset)
        };
        self.keys().iter().map(offset).collect()
    }

    /// The table as compiled code reads it, with room for so many pairs; none where it has keys
    /// that are NULL, or hashes of its own.
    pub(super) fn raw(&self, room: usize) -> Option<RawTable> {
        let has_nulls = self.keys().iter().any(|key| self.part.has_nulls[*key]);
        if has_nulls || self.build.hash_mask != u64::MAX || self.build.depth > 0 {
            return None;
        }
        Some(self.directory.raw(self.part.pages.address(0, self.part.rows)?, room))
    }

    /// How compiled code finds a field of these rows, and where.
    pub(super) fn input(&self, field: usize, rows: &[u64]) -> Option<(InputPlace, RawInput)> {
        let first = self.part.pages.address(0, self.part.rows)?;
        self.part.input(self.layout(), field, first, (64, rows.as_ptr().cast()))
    }

    /// Starts looking up the tuples of a chunk that count; `keys` are the positions of its key
    /// columns. Compiled code, where there is some, finds all matches at once.
    pub fn lookup(
        &self,
        chunk: &Chunk,
        keys: &[usize],
        compiled: Option<&CompiledLookup>,
        lookup: &mut Lookup,
    ) -> Result<()> {
        lookup.given = None;
        if let Some(compiled) = compiled
            && compiled.run(self, chunk, &mut lookup.all)?
        {
            lookup.given = Some(0);
            return Ok(());
        }
        let columns = keys.iter().map(|key| chunk.column(*key)).collect::<Result<Vec<_>>>()?;
        let rows = chunk.rows();
        let incoming = Incoming::new(&columns, rows)?;
        let Lookup { hashes, positions, ranges, .. } = lookup;
        self.build.hash(&columns, rows, hashes)?;
        // Whatever earlier lookups left is overwritten or cut off.
        positions.resize(rows, 0);
        ranges.resize(rows, (0, 0));
        let skip_nulls = incoming.has_nulls() && !self.build.null_equal;
        let mut found = 0;
        if !self.is_empty() {
            let (positions, ranges) = (&mut positions[..rows], &mut ranges[..rows]);
            for (position, hash) in hashes[..rows].iter().enumerate() {
                if let Some(ahead) = hashes.get(position + PREFETCH_AHEAD) {
                    self.directory.prefetch(*ahead);
                }
                let (begin, end) = self.directory.range(*hash);
                positions[found] = position as u32;
                ranges[found] = (begin, end);
                found += usize::from(begin < end && !(skip_nulls && incoming.any_null(position)));
            }
            for (begin, _) in &ranges[..found] {
                self.part.pages.prefetch(*begin as usize);
            }
        }
        positions.truncate(found);
        ranges.truncate(found);
        lookup.next = 0;
        lookup.keys = Some(incoming);
        Ok(())
    }

    /// More matches: up to `limit` pairs of row and position into `pairs` (replaced), positions
    /// ascending. There may be fewer, even none; [`Lookup::is_done`] says whether that was all.
    pub fn next_pairs(
        &self,
        lookup: &mut Lookup,
        limit: usize,
        pairs: &mut Candidates,
    ) -> Result<()> {
        pairs.clear();
        if lookup.give(limit, pairs) {
            return Ok(());
        }
        self.expand(lookup, pairs, InOrder { limit })
    }

    /// The next match or matches of each position that is still wanted: up to `limit` pairs, shared
    /// out among the positions, which keeps early ends early. Positions for which `wanted` is false
    /// are given up.
    pub fn next_round(
        &self,
        lookup: &mut Lookup,
        limit: usize,
        wanted: impl Fn(u32) -> bool,
        pairs: &mut Candidates,
    ) -> Result<()> {
        pairs.clear();
        if lookup.give(limit, pairs) {
            return Ok(());
        }
        let mut kept = 0;
        for i in 0..lookup.positions.len() {
            lookup.positions[kept] = lookup.positions[i];
            lookup.ranges[kept] = lookup.ranges[i];
            let (begin, end) = lookup.ranges[i];
            kept += usize::from(begin < end && wanted(lookup.positions[i]));
        }
        lookup.positions.truncate(kept);
        lookup.ranges.truncate(kept);
        lookup.next = 0;
        let share = (limit / kept.max(1)).max(1);
        self.expand(lookup, pairs, SharedOut { limit, share })
    }

    /// Expands candidates with the cheapest test of a candidate (a single integer key: the key
    /// itself, which decides; else the hash), then compares keys where the test did not decide.
    fn expand(
        &self,
        lookup: &mut Lookup,
        pairs: &mut Candidates,
        expand: impl Expand,
    ) -> Result<()> {
        let Lookup { hashes, keys, positions, ranges, next, .. } = lookup;
        let Some(keys) = keys else {
            return Err(Error::internal("matches asked for before a lookup"));
        };
        let pages = &self.part.pages;
        if let ([field], [column]) = (&self.build.keys[..], keys.columns())
            && !self.part.has_nulls[*field]
            && column.nulls.is_none()
            && column.index.is_none()
        {
            let place = &self.build.layout.fields[*field];
            match (&place.kind, &column.values) {
                (Kind::Value(Physical::Bits64, _), Values::Bits64(values)) => {
                    let stored = pages.field::<u64>(place.offset);
                    let test =
                        |row: u64, position: u32| stored.get(row) == values[position as usize];
                    expand.run(positions, ranges, next, pairs, test);
                    return Ok(());
                }
                (Kind::Value(Physical::Bits32, _), Values::Bits32(values)) => {
                    let stored = pages.field::<u32>(place.offset);
                    let test =
                        |row: u64, position: u32| stored.get(row) == values[position as usize];
                    expand.run(positions, ranges, next, pairs, test);
                    return Ok(());
                }
                _ => {}
            }
        }
        let stored = pages.field::<u64>(HASH_OFFSET);
        let test = |row: u64, position: u32| stored.get(row) == hashes[position as usize];
        expand.run(positions, ranges, next, pairs, test);
        let nulls = if self.build.null_equal { NullKeys::Equal } else { NullKeys::Unequal };
        self.part.view(&self.build.layout).retain_equal(&self.build.keys, keys, nulls, pairs)
    }

    /// Keeps the pairs whose keys SQL's `IN` cannot call unequal: NULL may equal anything.
    pub fn retain_not_unequal(&self, lookup: &Lookup, pairs: &mut Candidates) -> Result<()> {
        let Some(keys) = &lookup.keys else {
            return Err(Error::internal("keys compared before a lookup"));
        };
        let view = self.part.view(&self.build.layout);
        view.retain_equal(&self.build.keys, keys, NullKeys::Unknown, pairs)
    }

    /// The rows with a NULL in their keys.
    pub fn rows_with_null_keys(&self) -> Result<&[u64]> {
        if let Some(rows) = self.null_rows.get() {
            return Ok(rows);
        }
        let mut found = Vec::new();
        if self.build.keys.iter().any(|key| self.part.has_nulls[*key]) {
            for first in (0..self.len() as u64).step_by(2_048) {
                let rows: Vec<u64> = self.row_range(first, 2_048).collect();
                let keys = self
                    .build
                    .keys
                    .iter()
                    .map(|key| self.gather(*key, &rows))
                    .collect::<Result<Vec<_>>>()?;
                let keys = Incoming::new(&keys, rows.len())?;
                found.extend(
                    rows.iter().enumerate().filter(|(i, _)| keys.any_null(*i)).map(|(_, row)| *row),
                );
            }
        }
        Ok(self.null_rows.get_or_init(|| found))
    }

    /// The hash of a row's keys.
    #[inline(always)]
    pub fn hash_of(&self, row: u64) -> u64 {
        self.part.pages.field::<u64>(HASH_OFFSET).get(row)
    }

    /// The numbers of at most `len` rows from `first`.
    pub fn row_range(&self, first: u64, len: usize) -> Range<u64> {
        first..(first + len as u64).min(self.len() as u64)
    }
}

impl Lookup {
    /// Whether all matches have been given out.
    pub fn is_done(&self) -> bool {
        self.given.map_or(self.next >= self.positions.len(), |given| given >= self.all.len())
    }

    /// Whether no position is left in rounds.
    pub fn is_exhausted(&self) -> bool {
        match self.given {
            Some(given) => given >= self.all.len(),
            None => self.ranges.iter().all(|(begin, end)| begin >= end),
        }
    }

    /// Gives out more of what compiled code has found, at most `limit` pairs; whether it was that
    /// which found them.
    fn give(&mut self, limit: usize, pairs: &mut Candidates) -> bool {
        let Some(given) = &mut self.given else { return false };
        if *given == 0 && self.all.len() <= limit {
            *given = self.all.len();
            std::mem::swap(&mut self.all, pairs);
            self.all.clear();
            return true;
        }
        let end = (*given + limit).min(self.all.len());
        pairs.rows.extend_from_slice(&self.all.rows[*given..end]);
        pairs.positions.extend_from_slice(&self.all.positions[*given..end]);
        *given = end;
        true
    }

    /// Whether a position has a NULL in its keys.
    pub fn has_null_key(&self, position: u32) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.any_null(position as usize))
    }
}

/// How candidates become pairs; generic so that each test is compiled into its loop.
trait Expand {
    fn run(
        self,
        positions: &[u32],
        ranges: &mut [(u64, u64)],
        next: &mut usize,
        pairs: &mut Candidates,
        test: impl Fn(u64, u32) -> bool,
    );
}

/// All matches of a position before those of the next.
struct InOrder {
    limit: usize,
}

/// At most `share` matches of each position.
struct SharedOut {
    limit: usize,
    share: usize,
}

impl Expand for InOrder {
    /// Lists the candidates of many positions, then tests them: in neither loop does a branch
    /// depend on how many rows a slot has or on whether they match, which the processor could not
    /// foresee.
    #[inline(always)]
    fn run(
        self,
        positions: &[u32],
        ranges: &mut [(u64, u64)],
        next: &mut usize,
        pairs: &mut Candidates,
        test: impl Fn(u64, u32) -> bool,
    ) {
        while *next < positions.len() && pairs.len() < self.limit {
            let (first, taken) = (pairs.len(), *next);
            pairs.rows.resize(self.limit + WRITTEN_AT_ONCE, 0);
            pairs.positions.resize(self.limit + WRITTEN_AT_ONCE, 0);
            let mut listed = first;
            for (position, (begin, end)) in positions[taken..].iter().zip(&ranges[taken..]) {
                let count = (end - begin) as usize;
                if listed + count > self.limit {
                    break;
                }
                let at_once = count.max(WRITTEN_AT_ONCE);
                let rows = &mut pairs.rows[listed..listed + at_once];
                rows.iter_mut().zip(*begin..).for_each(|(row, number)| *row = number);
                pairs.positions[listed..listed + at_once].fill(*position);
                listed += count;
                *next += 1;
            }
            pairs.rows.truncate(listed);
            pairs.positions.truncate(listed);
            pairs.retain_from(first, |row, position| test(row, position as u32));
            if *next > taken {
                continue;
            }
            // More candidates than there is room for: one by one, as far as it goes.
            let (begin, end) = &mut ranges[taken];
            while *begin < *end && pairs.len() < self.limit {
                if test(*begin, positions[taken]) {
                    pairs.push(*begin, positions[taken]);
                }
                *begin += 1;
            }
            *next += usize::from(begin == end);
        }
    }
}

impl Expand for SharedOut {
    #[inline(always)]
    fn run(
        self,
        positions: &[u32],
        ranges: &mut [(u64, u64)],
        _next: &mut usize,
        pairs: &mut Candidates,
        test: impl Fn(u64, u32) -> bool,
    ) {
        for (position, (begin, end)) in positions.iter().zip(ranges.iter_mut()) {
            let mut left = self.share;
            while *begin < *end && left > 0 {
                if pairs.len() == self.limit {
                    return;
                }
                if test(*begin, *position) {
                    pairs.push(*begin, *position);
                    left -= 1;
                }
                *begin += 1;
            }
        }
    }
}
