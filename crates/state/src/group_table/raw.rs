//! Tuples that are spilled before they are grouped, because the states of their groups cannot be
//! spilled.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::Int64Type;

use tessera_context::Run;
use tessera_rows::spill::{
    PARTITIONS, SpillFile, SpilledPartitions, TupleBlock, partition_of, read_tuples,
};
use tessera_rows::{ResolvedColumns, RowLayout};
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::keys::{KeyLayout, Keys, Packed};

/// Tuples of all workers, by partition, with their positions in the source.
#[derive(Debug)]
pub(super) struct RawTuples {
    partitions: SpilledPartitions,
}

/// Consecutive tuples of a chunk, and the position of the chunk.
pub(super) type PlacedChunk = ((u64, u64), Chunk);

impl RawTuples {
    /// Creates storage for tuples of this type.
    pub(super) fn new(tuple: &Tuple, run: &Run) -> Result<RawTuples> {
        let mut fields = tuple.fields().to_vec();
        for (number, field) in fields.iter_mut().enumerate() {
            field.name = number.to_string().into();
        }
        fields.extend(["morsel", "place"].map(|name| Field::new(name, Atom::Int64)));
        let layout = RowLayout::new(&Tuple::new(fields))?;
        let partitions = SpilledPartitions::new(SpillFile::new(run), layout, run.context.clone());
        Ok(RawTuples { partitions })
    }

    /// Appends the tuples of a chunk without selection, keys first; the chunk is at `position`.
    pub(super) fn put(
        &self,
        chunk: &Chunk,
        keys: usize,
        layout: &Arc<KeyLayout>,
        position: (u64, u64),
    ) -> Result<()> {
        let rows = chunk.rows();
        let mut packed = Packed::default();
        layout.pack(&chunk.stored()[..keys], rows, &mut packed)?;
        let mut positions: Vec<Vec<u32>> = vec![Vec::new(); PARTITIONS];
        (0..rows).for_each(|row| positions[partition_of(packed.record(row)[0])].push(row as u32));
        let mut columns = chunk.stored().to_vec();
        for place in [position.0, position.1] {
            let value = Arc::new(Int64Array::from_value(place as i64, 1));
            columns.push(Column::Constant(value, rows));
        }
        let incoming = ResolvedColumns::new(&columns, rows)?;
        for (partition, positions) in
            positions.iter().enumerate().filter(|(_, list)| !list.is_empty())
        {
            self.partitions.append(partition, &incoming, positions)?;
        }
        Ok(())
    }

    /// Returns the blocks of a partition; nothing may be appended afterwards.
    pub(super) fn blocks(&self, partition: usize) -> Result<Vec<TupleBlock>> {
        self.partitions.blocks(partition)
    }

    /// Reads the tuples of a block, separated by chunk.
    pub(super) fn read(&self, block: &TupleBlock) -> Result<Vec<PlacedChunk>> {
        let chunk = read_tuples(self.partitions.file(), block)?;
        let Some((columns, [morsel, place])) = chunk.stored().split_last_chunk() else {
            return Err(Error::internal("tuples without their places"));
        };
        let (morsel, place) = (morsel.plain()?, place.plain()?);
        let (morsel, place) =
            (morsel.as_primitive::<Int64Type>(), place.as_primitive::<Int64Type>());
        let tuples = Chunk::new(columns.to_vec(), chunk.rows());
        let at = |row: usize| (morsel.value(row) as u64, place.value(row) as u64);
        let mut pieces = Vec::new();
        let mut first = 0;
        for row in 1..=morsel.len() {
            if row == morsel.len() || at(row) != at(first) {
                pieces.push((at(first), tuples.slice(first, row - first)));
                first = row;
            }
        }
        Ok(pieces)
    }
}
