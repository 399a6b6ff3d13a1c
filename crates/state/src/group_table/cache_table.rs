//! The table of one worker, with the groups since it was last emptied.

use std::sync::Arc;

use tessera_context::Run;
use tessera_types::Result;
use tessera_vector::{Chunk, Column};

use super::compiled::GroupFinder;
use super::dictionary_groups::DictionaryGroups;
use super::grouping::{Spec, WHOLE_TABLE_BYTES_MAX};
use super::keys::Packed;
use super::table::Table;
use crate::aggregate::{Compiled, Groups, Shape};

/// With at most this many groups, rows are ordered by group before the states are updated.
const CLUSTERED_GROUPS_MAX: usize = 64;

/// A full table with fewer rows per group than this (in sixteenths) did not reduce enough to be
/// worth its probes.
const REDUCTION_MIN_SIXTEENTHS: usize = 20;

/// The largest table, as a fraction of the memory budget, with a fixed minimum.
const TABLE_SHARE: usize = 64;
const TABLE_BYTES_LEAST: usize = 64 << 10;

/// Rows are considered clustered if they have fewer than this fraction of the groups that a random
/// choice of rows would have.
const CLUSTERED_FRACTION: f64 = 0.8;

/// After this many fills without a table, one is tried again.
const BYPASS_FILLS: usize = 16;

/// A group table with the size of the cache. When full, its groups are emitted and it is cleared.
/// After a fill that reduced too little, each tuple is a group of its own for a while.
#[derive(Debug)]
pub(super) struct CacheTable {
    pub(super) spec: Arc<Spec>,
    compiled: Option<Arc<Compiled>>,
    finder: Option<Arc<GroupFinder>>,
    run: Run,
    pub(super) table: Table,
    dictionary_groups: DictionaryGroups,
    packed: Packed,
    groups: Vec<u32>,
    clusters: Clusters,
    position: (u64, u64),
    rows: usize,
    /// The bytes at which the table is full.
    bytes_max: usize,
    /// The remaining fills that bypass the table.
    bypass_fills: usize,
    /// Whether keys in the table are distinct.
    pub(super) distinct: bool,
}

impl CacheTable {
    pub(super) fn new(spec: &Arc<Spec>, run: &Run) -> Result<CacheTable> {
        Ok(CacheTable {
            spec: spec.clone(),
            compiled: None,
            finder: None,
            run: run.clone(),
            table: Table::new(spec.layout.clone(), spec.program.clone(), 0)?,
            dictionary_groups: DictionaryGroups::default(),
            packed: Packed::default(),
            groups: Vec::new(),
            clusters: Clusters::default(),
            position: (0, 0),
            rows: 0,
            bytes_max: spec.limits.table_bytes_max,
            bypass_fills: 0,
            distinct: true,
        })
    }

    /// Adds compiled code for its states and for finding groups.
    pub(super) fn compiled(
        mut self,
        compiled: &Option<Arc<Compiled>>,
        finder: &Option<Arc<GroupFinder>>,
    ) -> CacheTable {
        (self.compiled, self.finder) = (compiled.clone(), finder.clone());
        self
    }

    /// Starts a morsel.
    pub(super) fn begin(&mut self, position: u64) {
        self.position = (position, 0);
    }

    /// Groups the tuples of a chunk.
    pub(super) fn take(&mut self, chunk: &Chunk) -> Result<()> {
        if self.is_compiled() {
            let chunk = self.read_of(chunk);
            return self.take_needed(&chunk);
        }
        let chunk = self.needed(chunk)?;
        self.take_needed(&chunk)
    }

    /// Returns whether compiled code updates the states: it also reads chunks with a selection.
    fn is_compiled(&self) -> bool {
        self.compiled.as_ref().is_some_and(|compiled| compiled.is_ready())
    }

    /// Returns the fields of a chunk that are read.
    fn read_of(&self, chunk: &Chunk) -> Chunk {
        chunk.project(&self.spec.inputs)
    }

    /// Returns the fields of a chunk that are read, without a selection.
    pub(super) fn needed(&self, chunk: &Chunk) -> Result<Chunk> {
        self.read_of(chunk).compact()
    }

    /// Skips tuples that bypass the table; returns their position.
    pub(super) fn bypass(&mut self, rows: usize) -> (u64, u64) {
        let position = self.position;
        self.position.1 += rows as u64;
        position
    }

    /// Groups tuples at a position of the source.
    pub(super) fn take_at(&mut self, position: (u64, u64), needed: &Chunk) -> Result<()> {
        self.position = position;
        self.take_needed(needed)
    }

    /// Groups tuples that have only the fields that are read.
    fn take_needed(&mut self, chunk: &Chunk) -> Result<()> {
        let rows = chunk.rows();
        if !self.find(chunk)? {
            self.assign(self.keys(chunk).compact()?.stored(), rows)?;
        }
        let (spec, is_compiled) = (self.spec.clone(), self.is_compiled());
        let store = &mut self.table.store;
        let few = spec.program.len() > 1
            && !is_compiled
            && store.groups() <= CLUSTERED_GROUPS_MAX
            && rows >= 4 * store.groups()
            && self.bypass_fills == 0;
        let shape = match few {
            true => self.clusters.shape(&self.groups, store.groups()),
            false => Shape::Each(&self.groups),
        };
        let groups = Groups { rows, shape, position: self.position };
        if !spec.program.is_empty() {
            let compiled = self.compiled.as_deref();
            spec.program.update(
                compiled,
                &mut store.states,
                &mut store.area,
                chunk,
                &groups,
                &self.run,
            )?;
        }
        self.position.1 += rows as u64;
        self.rows += rows;
        Ok(())
    }

    /// Returns whether the table has outgrown the cache.
    pub(super) fn is_full(&mut self) -> bool {
        let share = (self.run.context.memory_bytes() / TABLE_SHARE).max(TABLE_BYTES_LEAST);
        let bytes = self.table.table_bytes();
        if bytes > self.bytes_max && self.may_hold_all() {
            self.bytes_max = WHOLE_TABLE_BYTES_MAX;
        }
        bytes > self.bytes_max.min(share)
    }

    /// Returns whether the table may hold all expected groups: it has about as many groups as the
    /// rows so far would have by chance. Fewer mean that the input is clustered; then there is
    /// little to merge, and the estimate does not apply.
    fn may_hold_all(&self) -> bool {
        let (rows, groups) = (self.rows as f64, self.table.store.groups() as f64);
        let seen = |expected: usize| expected as f64 * (1.0 - (-rows / expected as f64).exp());
        let borne_out = |expected: usize| {
            groups >= CLUSTERED_FRACTION * seen(expected) && groups <= expected as f64
        };
        self.bytes_max < WHOLE_TABLE_BYTES_MAX && self.spec.expected.is_some_and(borne_out)
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.table.memory() + self.packed.memory()
    }

    /// Clears the table after its groups have been taken.
    pub(super) fn restart(&mut self) -> Result<()> {
        let groups = self.table.store.groups();
        let has_reduced = self.rows * 16 >= groups * REDUCTION_MIN_SIXTEENTHS;
        self.bypass_fills = match self.bypass_fills {
            0 if !has_reduced && self.spec.program.is_flat() => BYPASS_FILLS,
            0 => 0,
            left => left - 1,
        };
        let bytes_max = self.spec.limits.table_bytes_max;
        match self.bytes_max > bytes_max {
            // Its slots alone may exceed the memory that it may use from now on.
            true => {
                self.table = Table::new(self.spec.layout.clone(), self.spec.program.clone(), 0)?
            }
            false => self.table.clear()?,
        }
        self.bytes_max = bytes_max;
        self.dictionary_groups.clear();
        self.rows = 0;
        self.distinct = true;
        Ok(())
    }

    /// Returns the keys of tuples that have only the fields that are read.
    fn keys(&self, chunk: &Chunk) -> Chunk {
        chunk.project(&(0..self.spec.keys).collect::<Vec<_>>())
    }

    /// Finds the group of each tuple of a chunk with compiled code, into `self.groups`; returns
    /// whether code was ready.
    fn find(&mut self, chunk: &Chunk) -> Result<bool> {
        let finder = self.finder.as_ref().filter(|_| self.bypass_fills == 0);
        finder.map_or(Ok(false), |finder| finder.find(chunk, &mut self.table, &mut self.groups))
    }

    /// Finds the group of each row, into `self.groups`.
    fn assign(&mut self, keys: &[Column], rows: usize) -> Result<()> {
        let layout = self.spec.layout.clone();
        self.groups.clear();
        if self.bypass_fills > 0 {
            layout.pack(keys, rows, &mut self.packed)?;
            let store = &mut self.table.store;
            self.groups.extend((0..rows).map(|row| store.push(&self.packed, row, false)));
            self.distinct = false;
            return Ok(());
        }
        let Some(unknown) = self.dictionary_groups.assign(keys, rows, &mut self.groups)? else {
            layout.pack(keys, rows, &mut self.packed)?;
            return self.table.assign(&self.packed, 0, rows, &mut self.groups);
        };
        if !unknown.is_empty() {
            let keys = keys.iter().map(|key| key.take(&unknown)).collect::<Result<Vec<_>>>()?;
            layout.pack(&keys, unknown.len(), &mut self.packed)?;
            let mut found = Vec::with_capacity(unknown.len());
            self.table.assign(&self.packed, 0, unknown.len(), &mut found)?;
            self.dictionary_groups.learn(&unknown, &found, &mut self.groups);
        }
        Ok(())
    }
}

/// Rows sorted by group, with a counting sort.
#[derive(Debug, Default)]
struct Clusters {
    order: Vec<u32>,
    runs: Vec<(u32, u32, u32)>,
}

impl Clusters {
    fn shape<'a>(&'a mut self, groups: &'a [u32], count: usize) -> Shape<'a> {
        let mut ends = [0u32; CLUSTERED_GROUPS_MAX];
        for &group in groups {
            ends[group as usize] += 1;
        }
        self.runs.clear();
        let mut end = 0;
        for (group, size) in ends.iter_mut().enumerate().take(count) {
            let start = end;
            end += *size;
            if *size > 0 {
                self.runs.push((group as u32, start, end));
            }
            *size = start;
        }
        self.order.clear();
        self.order.resize(groups.len(), 0);
        for (row, &group) in groups.iter().enumerate() {
            let place = &mut ends[group as usize];
            self.order[*place as usize] = row as u32;
            *place += 1;
        }
        Shape::Clustered { groups, order: &self.order, runs: &self.runs }
    }
}
