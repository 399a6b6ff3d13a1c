//! Spilled sets, and the tuples to look up in them: both by partition, so that only one partition
//! of the set is in memory at a time.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, UInt32Array};
use arrow::datatypes::Int64Type;

use tessera_context::{Reservation, Run};
use tessera_rows::spill::{
    PARTITIONS, SpillFile, SpilledPartitions, TupleBlock, partition_of, read_tuples,
};
use tessera_rows::{ResolvedColumns, RowLayout, RowsCollectorWorker, SpillableChunk};
use tessera_state::group_table::{KeyLayout, Keys, Packed, Table};
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column};

/// Tuples that are written at a time.
const PIECE_ROWS: usize = 8_192;

/// A set in a scratch file: its tuples by partition, each with its number.
#[derive(Debug)]
pub(super) struct SpilledSet {
    /// The number of tuples in the set.
    pub(super) tuples: usize,
    partitions: Vec<Vec<SetBlock>>,
}

/// A block of tuples of a set. Tuples with numbers at or above the limit belong to another set,
/// which shares the block.
#[derive(Debug, Clone)]
struct SetBlock {
    block: SpillableChunk,
    below: i64,
}

/// Writes tuples by partition.
#[derive(Debug)]
pub(super) struct PartitionWriter {
    keys: Arc<KeyLayout>,
    written: SpilledPartitions,
    file: Arc<SpillFile>,
}

impl PartitionWriter {
    /// Creates an empty writer; `numbered` tuples have their number as an extra column.
    pub(super) fn new(
        tuple: &Tuple,
        keys: &Arc<KeyLayout>,
        numbered: bool,
        run: &Run,
    ) -> Result<PartitionWriter> {
        let mut fields = tuple.fields().to_vec();
        fields.extend(numbered.then(|| Field::new("", Atom::Int64)));
        for (number, field) in fields.iter_mut().enumerate() {
            field.name = number.to_string().into();
        }
        let (layout, file) = (RowLayout::new(&Tuple::new(fields))?, SpillFile::new(run));
        let written = SpilledPartitions::new(file.clone(), layout, run.context.clone());
        Ok(PartitionWriter { keys: keys.clone(), written, file })
    }

    /// Appends the tuples of a chunk without selection.
    pub(super) fn put(&self, chunk: &Chunk) -> Result<()> {
        let (rows, mut packed) = (chunk.rows(), Packed::default());
        self.keys.pack(&chunk.stored()[..self.keys.len()], rows, &mut packed)?;
        let mut positions: Vec<Vec<u32>> = vec![Vec::new(); PARTITIONS];
        (0..rows).for_each(|row| positions[partition_of(packed.record(row)[0])].push(row as u32));
        let incoming = ResolvedColumns::new(chunk.stored(), rows)?;
        for (partition, positions) in
            positions.iter().enumerate().filter(|(_, list)| !list.is_empty())
        {
            self.written.append(partition, &incoming, positions)?;
        }
        Ok(())
    }

    fn blocks(&self, partition: usize) -> Result<Vec<TupleBlock>> {
        self.written.blocks(partition)
    }
}

impl SpilledSet {
    /// Spills a table.
    pub(super) fn of_table(
        mut table: Table,
        tuple: &Tuple,
        keys: &Arc<KeyLayout>,
        run: &Run,
    ) -> Result<Self> {
        let mut set = SpilledSet { tuples: 0, partitions: vec![Vec::new(); PARTITIONS] };
        let writer = PartitionWriter::new(tuple, keys, true, run)?;
        let all = table.store.finish()?;
        drop(table);
        while set.tuples < all.rows() {
            run.context.check()?;
            let piece = all.slice(set.tuples, PIECE_ROWS.min(all.rows() - set.tuples));
            writer.put(&numbered(&piece, set.tuples))?;
            set.tuples += piece.rows();
        }
        set.take(&writer)?;
        Ok(set)
    }

    /// Returns the set of the first tuples.
    pub(super) fn first(&self, tuples: usize) -> SpilledSet {
        let limit = |set_block: &SetBlock| SetBlock {
            block: set_block.block.clone(),
            below: set_block.below.min(tuples as i64),
        };
        let partitions =
            self.partitions.iter().map(|part| part.iter().map(limit).collect()).collect();
        SpilledSet { tuples, partitions }
    }

    /// Adds the blocks of a writer.
    fn take(&mut self, writer: &PartitionWriter) -> Result<()> {
        for (partition, part) in self.partitions.iter_mut().enumerate() {
            let blocks = writer.blocks(partition)?;
            part.extend(blocks.into_iter().map(|block| {
                let block = SpillableChunk::in_file(&writer.file, block);
                SetBlock { block, below: i64::MAX }
            }));
        }
        Ok(())
    }

    /// Adds the candidates that it lacks, and appends them to `new`.
    pub(super) fn add(
        &mut self,
        candidates: &PartitionWriter,
        tuple: &Tuple,
        new: &mut RowsCollectorWorker,
        run: &Run,
    ) -> Result<()> {
        let keys = &candidates.keys;
        let writer = PartitionWriter::new(tuple, keys, true, run)?;
        let mut memory = Reservation::new(run.context.clone());
        for partition in 0..PARTITIONS {
            let blocks = candidates.blocks(partition)?;
            if blocks.is_empty() {
                continue;
            }
            let mut table = Table::of_keys(keys.clone())?;
            for set_block in &self.partitions[partition] {
                assign(&mut table, keys, &set_block.tuples()?, &mut memory, run)?;
            }
            for block in blocks {
                let chunk = read_tuples(&candidates.file, &block)?;
                let rows = assign(&mut table, keys, &chunk, &mut memory, run)?;
                if rows.is_empty() {
                    continue;
                }
                let columns = chunk.stored().iter().map(|column| column.take(&rows));
                let chunk = Chunk::new(columns.collect::<Result<_>>()?, rows.len());
                new.append(chunk.value_bytes(), |rows| rows.append_chunk(&chunk, &[]).map(drop))?;
                writer.put(&numbered(&chunk, self.tuples))?;
                self.tuples += chunk.rows();
            }
        }
        self.take(&writer)
    }
}

impl SetBlock {
    fn tuples(&self) -> Result<Chunk> {
        let chunk = self.block.chunk()?;
        let Some((numbers, columns)) = chunk.stored().split_last() else {
            return Err(Error::internal("tuples of a set without their numbers"));
        };
        let numbers = numbers.plain()?;
        let numbers = numbers.as_primitive::<Int64Type>().values();
        let tuples = Chunk::new(columns.to_vec(), chunk.rows());
        if numbers.iter().all(|number| *number < self.below) {
            return Ok(tuples);
        }
        let own = (0..numbers.len() as u32).filter(|row| numbers[*row as usize] < self.below);
        tuples.select(Arc::new(own.collect::<UInt32Array>())).compact()
    }
}

/// Appends a column with the numbers of the tuples, starting at `first`.
fn numbered(chunk: &Chunk, first: usize) -> Chunk {
    let numbers = (first as i64..).take(chunk.rows());
    let mut columns = chunk.stored().to_vec();
    columns.push(Column::Plain(Arc::new(Int64Array::from_iter_values(numbers))));
    chunk.with_stored(columns)
}

/// Adds all tuples of a chunk to a table accounted to `memory`; returns the positions of the new
/// ones.
pub(super) fn assign(
    table: &mut Table,
    keys: &Arc<KeyLayout>,
    chunk: &Chunk,
    memory: &mut Reservation,
    run: &Run,
) -> Result<UInt32Array> {
    run.context.check()?;
    let (mut packed, mut groups) = (Packed::default(), Vec::new());
    keys.pack(chunk.stored(), chunk.rows(), &mut packed)?;
    let mut next = table.store.groups() as u32;
    table.assign(&packed, 0, chunk.rows(), &mut groups)?;
    memory.resize(table.memory())?;
    // A new tuple's group number is the number of groups before it.
    let mut new = Vec::new();
    for (row, group) in groups.iter().enumerate() {
        if *group == next {
            new.push(row as u32);
            next += 1;
        }
    }
    Ok(UInt32Array::from(new))
}
