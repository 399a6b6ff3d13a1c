//! The join table: unchained (Birler, Kemper, Neumann, VLDB 2024), in the layout of
//! `docs/reference/layout.md`.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use tessera_codegen::{InputPlace, RawInput, RawTable, UNCHECKED_MATCHES};
use tessera_rows::{
    Candidates, HASH_OFFSET, Kind, NullKeys, Part, ResolvedColumns, RowLayout, RowSelection, Values,
};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::physical::Physical;
use tessera_vector::{Chunk, Column};

use super::buffers::TableBuild;
use super::compiled::CompiledLookup;
use super::directory::Directory;
use super::spilled::SpilledBuild;

/// How many directory entries are prefetched: the loop around one has about 40 instructions, so
/// out-of-order execution alone would look 10 entries ahead.
const PREFETCH_AHEAD: usize = 24;

/// A complete hash table of tuples, read by all workers.
#[derive(Debug)]
pub struct JoinTable {
    build: Arc<TableBuild>,
    directory: Arc<Directory>,
    part: Part,
    null_rows: OnceLock<Vec<u64>>,
}

/// The tuples of one chunk that may have matches, and the progress through their matches.
#[derive(Debug, Default)]
pub struct Lookup {
    hashes: Vec<u64>,
    keys: Option<ResolvedColumns>,
    /// Positions among the selected tuples of the chunk, with the rows of their slots.
    positions: Vec<u32>,
    ranges: Vec<(u64, u64)>,
    next: usize,
    /// All pairs found by compiled code, and how many were returned.
    all: Candidates,
    given: Option<usize>,
}

impl JoinTable {
    pub(crate) fn new(build: Arc<TableBuild>, directory: Arc<Directory>, part: Part) -> JoinTable {
        JoinTable { build, directory, part, null_rows: OnceLock::new() }
    }

    /// The tuple type of the rows.
    pub fn tuple(&self) -> &Tuple {
        self.layout().tuple()
    }

    pub(crate) fn layout(&self) -> &RowLayout {
        &self.build.layout
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.part.rows
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.part.rows == 0
    }

    /// The parameters of its construction.
    pub fn build(&self) -> &Arc<TableBuild> {
        &self.build
    }

    /// The spilled partitions, if there are any.
    pub fn spilled(&self) -> Option<&Arc<SpilledBuild>> {
        self.build.spilled.as_ref().filter(|spilled| spilled.spilled_mask() != 0)
    }

    /// The fields that are the keys.
    pub fn keys(&self) -> &[usize] {
        &self.build.keys
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.part.memory_bytes() + self.directory.memory_bytes()
    }

    /// Gathers a field of these rows; [`tessera_rows::NO_ROW`] gives NULL.
    pub fn gather(&self, field: usize, rows: &[u64]) -> Result<Column> {
        self.part.gather(&self.build.layout, field, RowSelection::Listed(rows))
    }

    /// Returns the offsets of the keys in a row if compiled code can look them up: integers of at
    /// most 64 bits.
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

    /// Returns the table for compiled code, with capacity for this many pairs; `None` if some keys
    /// are NULL or hashes are masked or rotated.
    pub(super) fn raw(&self, room: usize) -> Option<RawTable> {
        let has_nulls = self.keys().iter().any(|key| self.part.has_nulls[*key]);
        if has_nulls || self.build.hash_mask != u64::MAX || self.build.depth > 0 {
            return None;
        }
        Some(self.directory.raw(self.part.pages.address(0, self.part.rows)?, room))
    }

    /// Returns how compiled code reads a field of these rows, and its address.
    pub(super) fn input(&self, field: usize, rows: &[u64]) -> Option<(InputPlace, RawInput)> {
        let first = self.part.pages.address(0, self.part.rows)?;
        self.part.input(self.layout(), field, first, (64, rows.as_ptr().cast()))
    }

    /// Starts a lookup of the selected tuples of a chunk; `keys` are the positions of its key
    /// columns. Compiled code, if available, finds all matches at once.
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
        let incoming = ResolvedColumns::new(&columns, rows)?;
        let Lookup { hashes, positions, ranges, .. } = lookup;
        self.build.hash(&columns, rows, hashes)?;
        // Values from earlier lookups are overwritten or truncated.
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

    /// Replaces `pairs` with up to `limit` further matches, positions ascending. There may be
    /// fewer, even none; [`Lookup::is_done`] says whether all have been returned.
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

    /// Returns the next matches of each position that is still wanted: up to `limit` pairs, divided
    /// evenly among the positions, so that a position with an early match stops early. Positions
    /// for which `wanted` is false are dropped.
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
        self.expand(lookup, pairs, EvenShares { limit, share })
    }

    /// Expands candidates with the cheapest test (for a single integer key the key itself, which
    /// decides; else the hash), then compares keys if the test did not decide.
    fn expand(
        &self,
        lookup: &mut Lookup,
        pairs: &mut Candidates,
        expand: impl Expand,
    ) -> Result<()> {
        let Lookup { hashes, keys, positions, ranges, next, .. } = lookup;
        let Some(keys) = keys else {
            return Err(Error::internal("matches requested before a lookup"));
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

    /// Retains the pairs whose keys SQL's `IN` cannot rule out: NULL may equal anything.
    pub fn retain_not_unequal(&self, lookup: &Lookup, pairs: &mut Candidates) -> Result<()> {
        let Some(keys) = &lookup.keys else {
            return Err(Error::internal("keys compared before a lookup"));
        };
        let view = self.part.view(&self.build.layout);
        view.retain_equal(&self.build.keys, keys, NullKeys::Unknown, pairs)
    }

    /// Returns the rows with a NULL in their keys.
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
                let keys = ResolvedColumns::new(&keys, rows.len())?;
                found.extend(
                    rows.iter().enumerate().filter(|(i, _)| keys.any_null(*i)).map(|(_, row)| *row),
                );
            }
        }
        Ok(self.null_rows.get_or_init(|| found))
    }

    /// Returns the hash of a row's keys.
    #[inline(always)]
    pub fn hash_of(&self, row: u64) -> u64 {
        self.part.pages.field::<u64>(HASH_OFFSET).get(row)
    }

    /// Returns the numbers of at most `len` rows from `first`.
    pub fn row_range(&self, first: u64, len: usize) -> Range<u64> {
        first..(first + len as u64).min(self.len() as u64)
    }
}

impl Lookup {
    /// Returns whether all matches have been returned.
    pub fn is_done(&self) -> bool {
        self.given.map_or(self.next >= self.positions.len(), |given| given >= self.all.len())
    }

    /// Returns whether no position is left for further rounds.
    pub fn is_exhausted(&self) -> bool {
        match self.given {
            Some(given) => given >= self.all.len(),
            None => self.ranges.iter().all(|(begin, end)| begin >= end),
        }
    }

    /// Returns up to `limit` further pairs found by compiled code; `false` if the lookup did not
    /// use compiled code.
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

    /// Returns whether a position has a NULL in its keys.
    pub fn has_null_key(&self, position: u32) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.any_null(position as usize))
    }
}

/// Expands candidates into pairs; generic so that each test is compiled into its loop.
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
struct EvenShares {
    limit: usize,
    share: usize,
}

impl Expand for InOrder {
    /// Lists the candidates of many positions, then tests them: no branch in either loop depends on
    /// how many rows a slot has or on whether they match, which the processor could not predict.
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
            pairs.rows.resize(self.limit + UNCHECKED_MATCHES, 0);
            pairs.positions.resize(self.limit + UNCHECKED_MATCHES, 0);
            let mut listed = first;
            for (position, (begin, end)) in positions[taken..].iter().zip(&ranges[taken..]) {
                let count = (end - begin) as usize;
                if listed + count > self.limit {
                    break;
                }
                let at_once = count.max(UNCHECKED_MATCHES);
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
            // More candidates than the capacity: one by one, up to the capacity.
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

impl Expand for EvenShares {
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
