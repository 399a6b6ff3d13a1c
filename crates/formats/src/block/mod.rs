//! The `block` format: tuples in memory, their columns encoded block by block; `block_materialize`
//! makes it, `block_scan` reads it.

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
pub use scan::BlockScan;

/// Rows of a block: a morsel of a scan, and what an encoding is chosen for.
pub const BLOCK_ROWS: usize = 65_536;

/// Some tuples, column-wise.
#[derive(Debug)]
pub struct Block {
    rows: usize,
    columns: Vec<Segment>,
    /// What is known of each column.
    known: Vec<Known>,
}

/// What is known of a column's values in a block.
#[derive(Debug)]
struct Known {
    /// The least and the greatest that are not NULL, where they are known.
    ends: Option<(Scalar, Scalar)>,
    /// How many are NULL.
    nulls: usize,
}

impl Block {
    /// Encodes a chunk without selection of tuples of this type.
    fn new(chunk: &Chunk, tuple: &Tuple) -> Result<Block> {
        let mut block = Block { rows: chunk.rows(), columns: Vec::new(), known: Vec::new() };
        for (column, field) in chunk.stored().iter().zip(tuple.fields()) {
            let values = column.plain()?;
            let mut ends = field.atom().map(Extremes::leaving_nulls);
            let segment = Segment::new(&values)?;
            // Most encodings know them without a look at every value.
            if let Some(ends) = ends.as_mut().filter(|ends| ends.is_known()) {
                for end in [Aggregate::Min, Aggregate::Max] {
                    if let Some(end) = segment.aggregate(end)? {
                        ends.add(&end)?;
                    }
                }
            }
            block.columns.push(segment);
            block.known.push(Known {
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
    blocks: Vec<Block>,
    /// Of the query that has made them.
    memory: Mutex<Vec<Reservation>>,
}

impl Blocks {
    /// How many tuples there are.
    pub fn rows(&self) -> usize {
        self.blocks.iter().map(|block| block.rows).sum()
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> usize {
        self.blocks.iter().map(Block::bytes).sum()
    }

    /// They outlive the query that has made them: from now on they count for whoever keeps them.
    pub fn release(&self) {
        lock(&self.memory).clear();
    }
}

/// Tables in memory, by name, for the scans that name them.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    tables: Arc<Mutex<HashMap<String, Table>>>,
}

/// A table in memory: its columns and its tuples.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its columns.
    pub tuple: Tuple,
    /// Its tuples.
    pub blocks: Arc<Blocks>,
}

impl Tables {
    /// Keeps a table under a name, in the place of one that was there.
    pub fn insert(&self, name: &str, table: Table) {
        lock(&self.tables).insert(name.to_string(), table);
    }

    /// Forgets a table; scans that run keep its tuples until they end.
    pub fn remove(&self, name: &str) {
        lock(&self.tables).remove(name);
    }

    /// The table of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self, name: &str) -> Result<Table> {
        lock(&self.tables).get(name).cloned().ok_or_else(|| {
            Error::semantic(format!(
                "there is no table '{name}' in the memory of this process; CREATE TEMP TABLE makes one for its own session"
            ))
        })
    }
}
