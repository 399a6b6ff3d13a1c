//! Tuples in blocks, in Arrow's stream format, so that every type keeps its plain form.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use arrow::ipc::writer::StreamWriter;

use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::file::{SpillBlock, SpillFile};
use crate::Rows;
use crate::ipc::first_batch;

/// Approximate bytes of a block.
const BLOCK_BYTES: usize = 256 << 10;

/// A block of tuples.
#[derive(Debug, Clone, Copy)]
pub struct TupleBlock {
    /// The block.
    pub block: SpillBlock,
    /// The number of tuples.
    pub rows: usize,
}

/// Returns whether tuples can be spilled: collections created by sub-operators cannot.
pub fn spillable(tuple: &Tuple) -> bool {
    tuple.fields().iter().all(|field| field.atom().is_some())
}

/// Writes the selected tuples of a chunk as one block.
///
/// # Errors
/// Those of [`SpillFile::write`].
pub fn write_tuples(file: &SpillFile, chunk: &Chunk) -> Result<TupleBlock> {
    let chunk = chunk.clone().compact()?.with_compact_strings();
    let arrays = chunk.stored().iter().map(Column::plain).collect::<Result<Vec<_>>>()?;
    let fields: Vec<Field> =
        arrays.iter().map(|array| Field::new("", array.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows()));
    let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    writer.write(&batch)?;
    Ok(TupleBlock { block: file.write(&writer.into_inner()?)?, rows: chunk.rows() })
}

/// Writes all rows, in as many blocks as needed.
///
/// # Errors
/// Those of [`SpillFile::write`].
pub fn write_rows(file: &SpillFile, rows: &Rows, blocks: &mut Vec<TupleBlock>) -> Result<()> {
    let count = rows.len() as u64;
    let pieces = (rows.memory_bytes() / BLOCK_BYTES).max(1) as u64;
    let step = count.div_ceil(pieces).max(1);
    for first in (0..count).step_by(step as usize) {
        blocks.push(write_tuples(file, &rows.chunk(first..(first + step).min(count))?)?);
    }
    Ok(())
}

/// Reads the tuples of a block as one chunk, which may exceed the usual size of chunks.
///
/// # Errors
/// Those of [`SpillFile::read`].
pub fn read_tuples(file: &SpillFile, block: &TupleBlock) -> Result<Chunk> {
    let batch = first_batch(file.read(&block.block)?);
    let batch = batch
        .map_err(|error| Error::internal(format!("a block of tuples cannot be read: {error}")))?;
    let columns = batch.columns().iter().map(|array| Column::Plain(array.clone())).collect();
    Ok(Chunk::new(columns, batch.num_rows()))
}
