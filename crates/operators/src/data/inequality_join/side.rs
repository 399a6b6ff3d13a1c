//! The side of a join by inequalities, in blocks that are sorted when they are first needed.

use std::sync::{Arc, Mutex, OnceLock};

use arrow::array::Array;

use tessera_context::{Context, Reservation, lock};
use tessera_rows::SpillableChunk;
use tessera_types::Result;
use tessera_vector::Chunk;

use super::comparison::Comparison;
use super::order::{KeyBytes, KeyOrder};
use crate::data::sort_keys::KeyEncoder;

/// The smallest and the largest value of each key; `None` if no tuple has all keys.
pub(super) type Bounds = Option<Vec<(KeyBytes, KeyBytes)>>;

/// The orders of a chunk's tuples: by the first key and, if there is one, by the second.
#[derive(Debug)]
pub(super) struct Orders {
    pub(super) first: KeyOrder,
    pub(super) second: Option<KeyOrder>,
}

impl Orders {
    /// Sorts the tuples of a chunk whose keys are not NULL.
    pub(super) fn new(encoders: &[KeyEncoder], chunk: &Chunk) -> Result<Orders> {
        let mut rows: Vec<u32> = (0..chunk.rows() as u32).collect();
        for encoder in encoders {
            let keys = chunk.column(encoder.first_field())?.plain()?;
            if let Some(nulls) = keys.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
                rows.retain(|row| nulls.is_valid(*row as usize));
            }
        }
        let order = |encoder: &KeyEncoder| KeyOrder::new(encoder, chunk, &rows);
        Ok(Orders { first: order(&encoders[0])?, second: encoders.get(1).map(order).transpose()? })
    }

    /// The smallest and the largest keys.
    pub(super) fn bounds(&self) -> Bounds {
        let orders = std::iter::once(&self.first).chain(&self.second);
        orders.map(KeyOrder::bounds).collect()
    }

    fn bytes(&self) -> usize {
        self.first.bytes() + self.second.as_ref().map_or(0, KeyOrder::bytes)
    }
}

/// The orders of a block, and how they relate.
#[derive(Debug)]
pub(super) struct BlockOrders {
    pub(super) orders: Orders,
    /// For each tuple in the second order: its position in the first one (the permutation of
    /// Khayyat et al.).
    pub(super) places: Vec<u32>,
}

impl BlockOrders {
    fn new(encoders: &[KeyEncoder], chunk: &Chunk) -> Result<BlockOrders> {
        let orders = Orders::new(encoders, chunk)?;
        let mut places = Vec::new();
        if let Some(second) = &orders.second {
            let mut of_row = vec![0; chunk.rows()];
            for (place, row) in orders.first.rows.iter().enumerate() {
                of_row[*row as usize] = place as u32;
            }
            places.extend(second.rows.iter().map(|row| of_row[*row as usize]));
        }
        Ok(BlockOrders { orders, places })
    }

    fn bytes(&self) -> usize {
        self.orders.bytes() + size_of_val(&*self.places)
    }
}

/// A block that has been read.
#[derive(Debug)]
pub(super) struct ReadBlock {
    pub(super) tuples: Chunk,
    pub(super) orders: Arc<BlockOrders>,
    /// The number of its first tuple in the side.
    pub(super) first_row: u64,
}

#[derive(Debug)]
struct Block {
    first_row: u64,
    tuples: SpillableChunk,
    bounds: OnceLock<Bounds>,
    /// Kept only while the budget permits; otherwise made again for each chunk of the stream.
    orders: OnceLock<Arc<BlockOrders>>,
}

/// The side of a join.
#[derive(Debug)]
pub(super) struct Side {
    blocks: Vec<Block>,
    encoders: Arc<[KeyEncoder]>,
    context: Arc<dyn Context>,
    /// The memory of bounds and of orders that are kept.
    memory: Mutex<Reservation>,
}

impl Side {
    /// Takes the chunks of a side, each with the number of its first tuple.
    pub(super) fn new(
        chunks: &[(u64, SpillableChunk)],
        encoders: Arc<[KeyEncoder]>,
        context: &Arc<dyn Context>,
    ) -> Side {
        let block = |(first_row, tuples): &(u64, SpillableChunk)| Block {
            first_row: *first_row,
            tuples: tuples.clone(),
            bounds: OnceLock::new(),
            orders: OnceLock::new(),
        };
        Side {
            blocks: chunks.iter().map(block).collect(),
            encoders,
            context: context.clone(),
            memory: Mutex::new(Reservation::new(context.clone())),
        }
    }

    /// The number of blocks.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether a block is known to have no match for tuples within these bounds.
    pub(super) fn is_apart(
        &self,
        number: usize,
        stream: &Bounds,
        comparisons: &[Comparison],
    ) -> bool {
        let bounds = self.blocks[number].bounds.get();
        bounds.is_some_and(|block| are_apart(stream, block, comparisons))
    }

    /// Reads a block.
    pub(super) fn read(&self, number: usize) -> Result<ReadBlock> {
        let block = &self.blocks[number];
        let tuples = block.tuples.chunk()?.compact()?;
        let orders = match block.orders.get() {
            Some(orders) => orders.clone(),
            None => self.ordered(block, &tuples)?,
        };
        Ok(ReadBlock { tuples, orders, first_row: block.first_row })
    }

    /// Sorts a block, and keeps its orders if there is memory for them.
    fn ordered(&self, block: &Block, tuples: &Chunk) -> Result<Arc<BlockOrders>> {
        let orders = Arc::new(BlockOrders::new(&self.encoders, tuples)?);
        let mut memory = lock(&self.memory);
        if block.bounds.get().is_none() {
            let bounds = orders.orders.bounds();
            let keys = bounds.iter().flatten().map(|(low, high)| low.len() + high.len());
            memory.grow(keys.sum())?;
            let _ = block.bounds.set(bounds);
        }
        let bytes = orders.bytes();
        if block.orders.get().is_none()
            && self.context.may_hold(memory.bytes(), bytes)
            && memory.grow(bytes).is_ok()
        {
            let _ = block.orders.set(orders.clone());
        }
        Ok(orders)
    }
}

/// Whether no tuple within one's bounds matches one within the other's.
pub(super) fn are_apart(stream: &Bounds, block: &Bounds, comparisons: &[Comparison]) -> bool {
    let (Some(stream), Some(block)) = (stream, block) else { return true };
    let keys = stream.iter().zip(block).zip(comparisons);
    keys.into_iter().any(|((stream, block), comparison)| !comparison.may_hold(stream, block))
}
