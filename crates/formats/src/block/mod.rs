//! The `block` format: in-memory tuples with columns encoded block by block. `block_materialize`
//! writes it, `block_scan` reads it.

mod conditions;
mod materialize;
mod scan;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow::array::Array;
use tessera_context::{Reservation, lock};
use tessera_plan::Scalar;
use tessera_state::sideways::Extremes;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::encoding::Aggregate;
use tessera_vector::{Chunk, Segment};

pub use materialize::BlockMaterialize;
pub use scan::{BlockScan, ROW_NUMBER};

/// The rows of a block, which is a morsel of a scan and the unit for which an encoding is chosen.
pub const BLOCK_ROWS: usize = 65_536;

/// A block of tuples with encoded columns.
#[derive(Debug)]
pub struct Block {
    rows: usize,
    columns: Vec<Segment>,
    /// The statistics of each column.
    statistics: Vec<ColumnStatistics>,
}

/// The statistics of a column in a block.
#[derive(Debug)]
struct ColumnStatistics {
    /// The minimum and maximum, if statistics.
    ends: Option<(Scalar, Scalar)>,
    /// The number of NULLs.
    nulls: usize,
}

impl Block {
    /// Encodes a chunk without a selection.
    fn new(chunk: &Chunk, tuple: &Tuple) -> Result<Block> {
        let mut block = Block { rows: chunk.rows(), columns: Vec::new(), statistics: Vec::new() };
        for (column, field) in chunk.stored().iter().zip(tuple.fields()) {
            let values = column.plain()?;
            let mut ends = field.atom().map(Extremes::leaving_nulls);
            let segment = Segment::new(&values)?;
            // Most encodings know minimum and maximum without decoding every value.
            if let Some(ends) = ends.as_mut().filter(|ends| ends.is_known()) {
                for end in [Aggregate::Min, Aggregate::Max] {
                    if let Some(end) = segment.aggregate(end)? {
                        ends.add(&end)?;
                    }
                }
            }
            block.columns.push(segment);
            block.statistics.push(ColumnStatistics {
                ends: ends.and_then(Extremes::known),
                nulls: values.logical_null_count(),
            });
        }
        Ok(block)
    }

    fn bytes(&self) -> usize {
        self.columns.iter().map(Segment::bytes).sum()
    }
}

/// A collection of tuples as encoded blocks, in order.
#[derive(Debug)]
pub struct Blocks {
    blocks: Vec<Arc<Block>>,
    /// The memory reservations of the query that encoded the blocks.
    memory: Mutex<Vec<Reservation>>,
}

impl Blocks {
    /// Encodes tuples behind those of `before`, a block for each chunk. The caller accounts for
    /// them.
    ///
    /// # Errors
    /// A column cannot be encoded.
    pub fn append(before: Option<&Blocks>, chunks: &[Chunk], tuple: &Tuple) -> Result<Blocks> {
        let mut blocks = before.map(|before| before.blocks.clone()).unwrap_or_default();
        for chunk in chunks {
            blocks.push(Arc::new(Block::new(chunk, tuple)?));
        }
        Ok(Blocks { blocks, memory: Mutex::default() })
    }

    /// The number of tuples.
    pub fn rows(&self) -> usize {
        self.blocks.iter().map(|block| block.rows).sum()
    }

    /// For each block, the number of tuples before it.
    fn first_rows(&self) -> Vec<usize> {
        let rows = self.blocks.iter().scan(0, |next, block| {
            let first = *next;
            *next += block.rows;
            Some(first)
        });
        rows.collect()
    }

    /// The bytes of memory that the blocks use.
    pub fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.bytes()).sum()
    }

    /// Releases the reservations, when the blocks outlive their query; the new owner accounts for
    /// them.
    pub fn release(&self) {
        lock(&self.memory).clear();
    }
}

/// In-memory tables by name, shared by the scans that read them.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    tables: Arc<Mutex<HashMap<String, Table>>>,
}

/// An in-memory table.
#[derive(Debug, Clone)]
pub struct Table {
    /// The columns.
    pub tuple: Tuple,
    /// The tuples.
    pub blocks: Arc<Blocks>,
}

impl Tables {
    /// Adds a table, replacing one of the same name.
    pub fn insert(&self, name: &str, table: Table) {
        lock(&self.tables).insert(name.to_string(), table);
    }

    /// Removes a table. Running scans keep its tuples until they end.
    pub fn remove(&self, name: &str) {
        lock(&self.tables).remove(name);
    }

    /// Returns the table of this name.
    ///
    /// # Errors
    /// The table does not exist.
    pub fn get(&self, name: &str) -> Result<Table> {
        lock(&self.tables).get(name).cloned().ok_or_else(|| {
            Error::semantic(format!(
                "unknown in-memory table '{name}'; CREATE TEMP TABLE creates one for its own session"
            ))
        })
    }
}
