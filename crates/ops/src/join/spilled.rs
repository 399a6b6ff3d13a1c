//! Builds of which partitions have left memory, and the stream tuples that wait for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow::array::Array;

use tessera_encodings::{Chunk, Column};
use tessera_types::{Error, Result, Tuple};

use super::buffers::TableBuild;
use super::output::{select_positions, stored_positions};
use crate::Run;
use crate::rows::{Incoming, RowLayout, Rows};
use crate::spill::{PARTITIONS, SpillFile, SpilledPartitions, TupleBlock, partition_of};

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
pub(crate) struct SpilledBuild {
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
}

impl SpilledBuild {
    pub(crate) fn new(run: &Run, layout: &Arc<RowLayout>, keys: &[usize]) -> Arc<SpilledBuild> {
        let partitions = SpilledPartitions::new(SpillFile::new(run), layout.clone(), run.context.clone());
        Arc::new(SpilledBuild {
            partitions,
            key: keys.first().copied().unwrap_or(0),
            gone: AtomicU64::new(0),
            now_bytes: AtomicUsize::new(0),
            later_bytes: AtomicUsize::new(0),
            rows: AtomicU64::new(0),
            null_key_rows: AtomicU64::new(0),
        })
    }

    /// A bit for each partition that has left.
    pub(crate) fn gone(&self) -> u64 {
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
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// How many of them have NULL as their first key.
    pub(crate) fn null_key_rows(&self) -> u64 {
        self.null_key_rows.load(Ordering::Relaxed)
    }

    /// The tuples of a partition.
    pub(crate) fn blocks(&self, partition: usize) -> Result<Vec<TupleBlock>> {
        self.partitions.blocks(partition)
    }

    /// The file they are in.
    pub(crate) fn file(&self) -> &Arc<SpillFile> {
        self.partitions.file()
    }
}

/// Stream tuples whose partitions of the build have left memory: they leave too, and are joined later.
#[derive(Debug)]
pub(crate) struct Away {
    build: Arc<TableBuild>,
    keys: Vec<usize>,
    gone: u64,
    partitions: SpilledPartitions,
}

impl Away {
    /// For the stream of a probe of this build, of which `gone` has left.
    ///
    /// # Errors
    /// The stream has collections.
    pub(crate) fn new(
        build: &Arc<TableBuild>,
        gone: u64,
        (stream, keys): (&Tuple, &[usize]),
        run: &Run,
    ) -> Result<Away> {
        if !crate::spill::spillable(stream) {
            return Err(Error::unsupported(
                "a join that does not fit into memory, of tuples with collections; raise --memory SIZE (or SET memory)",
            ));
        }
        let layout = RowLayout::new(stream)?;
        let partitions = SpilledPartitions::new(SpillFile::new(run), layout, run.context.clone());
        Ok(Away { build: build.clone(), keys: keys.to_vec(), gone, partitions })
    }

    /// Takes the tuples of partitions that have left; gives the others, if there are any.
    pub(crate) fn put(&self, chunk: Chunk) -> Result<Option<Chunk>> {
        let columns = self.keys.iter().map(|key| chunk.column(*key)).collect::<Result<Vec<Column>>>()?;
        let mut hashes = Vec::new();
        self.build.hash(&columns, chunk.rows(), &mut hashes)?;
        let mut stay = Vec::new();
        let mut leave: Vec<Vec<u32>> = vec![Vec::new(); PARTITIONS];
        for (position, hash) in hashes.iter().enumerate() {
            let partition = partition_of(*hash);
            let gone = self.gone >> partition & 1 == 1;
            (if gone { &mut leave[partition] } else { &mut stay }).push(position as u32);
        }
        if stay.len() == chunk.rows() {
            return Ok(Some(chunk));
        }
        let incoming = Incoming::of_chunk(&chunk)?;
        for (partition, positions) in leave.iter().enumerate().filter(|(_, positions)| !positions.is_empty())
        {
            self.partitions.append(partition, &incoming, stored_positions(&chunk, positions).values())?;
        }
        Ok((!stay.is_empty()).then(|| select_positions(&chunk, &stay)))
    }

    /// The partitions that have left.
    pub(crate) fn gone(&self) -> impl Iterator<Item = usize> {
        let gone = self.gone;
        (0..PARTITIONS).filter(move |partition| gone >> partition & 1 == 1)
    }

    /// The tuples of a partition; all must have been put.
    pub(crate) fn blocks(&self, partition: usize) -> Result<Vec<TupleBlock>> {
        self.partitions.blocks(partition)
    }

    /// The file they are in.
    pub(crate) fn file(&self) -> &Arc<SpillFile> {
        self.partitions.file()
    }

    /// The build whose partitions they wait for.
    pub(crate) fn build(&self) -> &Arc<TableBuild> {
        &self.build
    }
}
