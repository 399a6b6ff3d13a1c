//! Builds of which partitions have left memory, and the stream tuples that wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use arrow::array::Array;

use tessera_context::{Reservation, Run};
use tessera_rows::spill::{
    PARTITIONS, SpillFile, SpilledPartitions, TupleBlock, partition_of, read_tuples,
};
use tessera_rows::{Incoming, RowLayout, Rows};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::buffers::TableBuild;
use super::kind::JoinKind;
use super::output::{select_positions, stored_positions};
use crate::sideways::Bloom;

/// A filter of keys that have left may take this part of the memory budget.
const FILTER_SHARE: usize = 16;
/// With fewer bits for each key, too many others pass: with 4, about one in six.
const FILTER_BITS_MIN: usize = 4;

/// Memory of a build that is being filled.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    /// Counted already.
    pub(super) now_bytes: usize,
    /// What finishing will take.
    pub(super) later_bytes: usize,
}

/// What has left of a build, by partition; shared by its workers, and by the probes of its table.
#[derive(Debug)]
pub struct SpilledBuild {
    partitions: SpilledPartitions,
    key: usize,
    /// A bit for each partition that has left.
    gone: AtomicU64,
    /// What all workers hold.
    now_bytes: AtomicUsize,
    later_bytes: AtomicUsize,
    rows: AtomicU64,
    /// Of the first key.
    null_key_rows: AtomicU64,
    /// Whether a filter further up the stream knows the keys.
    filtered: AtomicBool,
}

impl SpilledBuild {
    /// For rows of this layout with keys at these positions.
    pub fn new(run: &Run, layout: &Arc<RowLayout>, keys: &[usize]) -> Arc<SpilledBuild> {
        let partitions =
            SpilledPartitions::new(SpillFile::new(run), layout.clone(), run.context.clone());
        Arc::new(SpilledBuild {
            partitions,
            key: keys.first().copied().unwrap_or(0),
            gone: AtomicU64::new(0),
            now_bytes: AtomicUsize::new(0),
            later_bytes: AtomicUsize::new(0),
            rows: AtomicU64::new(0),
            null_key_rows: AtomicU64::new(0),
            filtered: AtomicBool::new(false),
        })
    }

    /// A bit for each partition that has left.
    pub fn gone(&self) -> u64 {
        self.gone.load(Ordering::Relaxed)
    }

    /// A partition leaves from now on.
    pub(super) fn leave(&self, partition: usize) {
        self.gone.fetch_or(1 << partition, Ordering::Relaxed);
    }

    /// A worker holds `after` instead of `before`.
    pub(super) fn holds(&self, before: Held, after: Held) {
        self.now_bytes.fetch_add(after.now_bytes, Ordering::Relaxed);
        self.now_bytes.fetch_sub(before.now_bytes, Ordering::Relaxed);
        self.later_bytes.fetch_add(after.later_bytes, Ordering::Relaxed);
        self.later_bytes.fetch_sub(before.later_bytes, Ordering::Relaxed);
    }

    /// What all workers hold.
    pub(super) fn held(&self) -> Held {
        let load = |bytes: &AtomicUsize| bytes.load(Ordering::Relaxed);
        Held { now_bytes: load(&self.now_bytes), later_bytes: load(&self.later_bytes) }
    }

    /// Bytes of a partition that has left that are worth a block.
    pub(super) fn block_bytes(&self) -> usize {
        self.partitions.waiting_bytes()
    }

    /// Writes tuples of a partition that has left.
    pub(super) fn write(&self, partition: usize, rows: &Rows) -> Result<()> {
        let all: Vec<u64> = (0..rows.len() as u64).collect();
        let nulls = rows.gather(self.key, &all)?.plain()?.logical_null_count();
        self.null_key_rows.fetch_add(nulls as u64, Ordering::Relaxed);
        self.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
        self.partitions.write(partition, rows)
    }

    /// How many tuples have left.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// How many of them have NULL as their first key.
    pub fn null_key_rows(&self) -> u64 {
        self.null_key_rows.load(Ordering::Relaxed)
    }

    /// The tuples of a partition.
    pub fn blocks(&self, partition: usize) -> Result<Vec<TupleBlock>> {
        self.partitions.blocks(partition)
    }

    /// Shows the keys of all tuples that have left, block by block: their columns and hashes.
    /// `build` is what has left.
    ///
    /// # Errors
    /// The scratch directory is exhausted; or those of `see`.
    pub fn see_keys(
        &self,
        build: &TableBuild,
        mut see: impl FnMut(&[Column], &[u64]) -> Result<()>,
    ) -> Result<()> {
        let mut hashes = Vec::new();
        for partition in 0..PARTITIONS {
            for block in self.blocks(partition)? {
                let chunk = read_tuples(self.file(), &block)?;
                let keys =
                    build.keys.iter().map(|key| chunk.column(*key)).collect::<Result<Vec<_>>>()?;
                build.hash(&keys, chunk.rows(), &mut hashes)?;
                see(&keys, &hashes)?;
            }
        }
        Ok(())
    }

    /// A filter further up the stream drops what has none of the keys.
    pub fn set_filtered(&self) {
        self.filtered.store(true, Ordering::Relaxed);
    }

    /// The file they are in.
    pub fn file(&self) -> &Arc<SpillFile> {
        self.partitions.file()
    }
}

/// Stream tuples whose partitions of the build have left memory: they leave too, and are joined
/// later.
#[derive(Debug)]
pub struct Away {
    build: Arc<TableBuild>,
    keys: Vec<usize>,
    gone: u64,
    partitions: SpilledPartitions,
    /// What is none of the keys that have left need not leave.
    filter: Option<Bloom>,
    /// Whether it stays then, to be found without a match; it goes otherwise.
    keeps_unmatched: bool,
    _memory: Reservation,
}

impl Away {
    /// For the stream of a probe of this build, of which part has left, by a join of this kind.
    ///
    /// # Errors
    /// The stream has collections; the scratch directory is exhausted.
    pub fn new(
        build: &Arc<TableBuild>,
        spilled: &SpilledBuild,
        (stream, keys, kind): (&Tuple, &[usize], JoinKind),
        run: &Run,
    ) -> Result<Away> {
        if !tessera_rows::spill::spillable(stream) {
            return Err(Error::unsupported(
                "a join that does not fit into memory, of tuples with collections; raise --memory SIZE (or SET memory)",
            ));
        }
        let layout = RowLayout::new(stream)?;
        let partitions = SpilledPartitions::new(SpillFile::new(run), layout, run.context.clone());
        let mut memory = Reservation::new(run.context.clone());
        let filter = filter(build, spilled, &mut memory, run)?;
        Ok(Away {
            build: build.clone(),
            keys: keys.to_vec(),
            gone: spilled.gone(),
            partitions,
            filter,
            keeps_unmatched: kind.keeps_unmatched(),
            _memory: memory,
        })
    }

    /// Takes the tuples of partitions that have left; gives the others, if there are any.
    pub fn put(&self, chunk: Chunk) -> Result<Option<Chunk>> {
        let columns =
            self.keys.iter().map(|key| chunk.column(*key)).collect::<Result<Vec<Column>>>()?;
        let mut hashes = Vec::new();
        self.build.hash(&columns, chunk.rows(), &mut hashes)?;
        let (mut stay, mut leave) = (vec![0; hashes.len()], vec![0; hashes.len()]);
        let (mut staying, mut leaving) = (0, 0);
        for (position, hash) in hashes.iter().enumerate() {
            let is_here = self.gone >> partition_of(*hash) & 1 == 0;
            let may_match = self.filter.as_ref().is_none_or(|filter| filter.may_contain(*hash));
            // Written always and counted if so: it cannot be foretold.
            stay[staying] = position as u32;
            staying += usize::from(is_here | (!may_match & self.keeps_unmatched));
            leave[leaving] = position as u32;
            leaving += usize::from(!is_here & may_match);
        }
        if staying == chunk.rows() {
            return Ok(Some(chunk));
        }
        self.append(&chunk, &hashes, &leave[..leaving])?;
        Ok((staying > 0).then(|| select_positions(&chunk, &stay[..staying])))
    }

    /// Tuples leave.
    fn append(&self, chunk: &Chunk, hashes: &[u64], leave: &[u32]) -> Result<()> {
        if leave.is_empty() {
            return Ok(());
        }
        let mut partitions: Vec<Vec<u32>> = vec![Vec::new(); PARTITIONS];
        leave.iter().for_each(|position| {
            partitions[partition_of(hashes[*position as usize])].push(*position)
        });
        let incoming = Incoming::of_chunk(chunk)?;
        for (partition, positions) in
            partitions.iter().enumerate().filter(|(_, list)| !list.is_empty())
        {
            self.partitions.append(
                partition,
                &incoming,
                stored_positions(chunk, positions).values(),
            )?;
        }
        Ok(())
    }

    /// The partitions that have left.
    pub fn gone(&self) -> impl Iterator<Item = usize> {
        let gone = self.gone;
        (0..PARTITIONS).filter(move |partition| gone >> partition & 1 == 1)
    }

    /// The tuples of a partition; all must have been put.
    pub fn blocks(&self, partition: usize) -> Result<Vec<TupleBlock>> {
        self.partitions.blocks(partition)
    }

    /// The file they are in.
    pub fn file(&self) -> &Arc<SpillFile> {
        self.partitions.file()
    }

    /// The build whose partitions they wait for.
    pub fn build(&self) -> &Arc<TableBuild> {
        &self.build
    }
}

/// A filter of the keys that have left; nothing where one further up the stream knows them, where
/// they are what such a filter let pass, or where it would be too much of the memory.
fn filter(
    build: &TableBuild,
    spilled: &SpilledBuild,
    memory: &mut Reservation,
    run: &Run,
) -> Result<Option<Bloom>> {
    // A block is chosen by the same bits as a partition: those of partitions that stay are empty.
    let keys = spilled.rows() as usize * PARTITIONS / (spilled.gone().count_ones() as usize).max(1);
    let most = Bloom::blocks_within(run.context.memory_bytes() / FILTER_SHARE);
    let blocks = Bloom::blocks_for(keys).min(most);
    let is_known = spilled.filtered.load(Ordering::Relaxed) || build.depth > 0;
    let is_sparse = blocks * 64 / FILTER_BITS_MIN < keys;
    if is_known || is_sparse || memory.grow(Bloom::bytes_of(blocks)).is_err() {
        return Ok(None);
    }
    let mut bloom = Bloom::new(blocks);
    spilled.see_keys(build, |_, hashes| {
        hashes.iter().for_each(|hash| bloom.add(*hash));
        Ok(())
    })?;
    run.counters.add("filter_bytes", bloom.memory_bytes() as u64);
    Ok(Some(bloom))
}
