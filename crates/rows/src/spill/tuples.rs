//! Tuples in blocks: Arrow's stream format, so that every type keeps its plain form.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use arrow::ipc::writer::StreamWriter;

use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::file::{Block, SpillFile};
use crate::Rows;
use crate::ipc::first_batch;

/// Bytes of a block of many tuples, about.
const BLOCK_BYTES: usize = 256 << 10;

/// Tuples in a block.
#[derive(Debug, Clone, Copy)]
pub struct TupleBlock {
    /// Where.
    pub block: Block,
    /// How many.
    pub rows: usize,
}

/// Whether tuples can be written: collections that sub-operators made cannot.
pub fn spillable(tuple: &Tuple) -> bool {
    tuple.fields().iter().all(|field| field.atom().is_some())
}

/// Writes the tuples of a chunk that count, as one block.
///
/// # Errors
/// Those of [`SpillFile::write`].
pub fn write_tuples(file: &SpillFile, chunk: &Chunk) -> Result<TupleBlock> {
    let chunk = chunk.clone().compact()?.with_own_strings();
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

/// Writes all rows, in as many blocks as they need.
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

/// The tuples of a block, as one chunk (that may be larger than what flows).
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
