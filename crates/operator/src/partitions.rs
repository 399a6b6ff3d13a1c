//! The parameters that partitioning sub-operators share, and partitions as tuples.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use tessera_plan::Node;
use tessera_rows::Rows;
use tessera_types::{Atom, Error, Field, Result, Tuple};
use tessera_vector::{Chunk, Column, Handle};

use crate::describe::{count, keys};

/// The most hash bits per partitioning step; more partitions take two steps.
pub const PARTITION_BITS_MAX: usize = 16;

/// The parameters of a partitioning.
#[derive(Debug, Clone)]
pub struct Partitioning {
    /// Positions of the keys.
    pub keys: Arc<[usize]>,
    /// The number of hash bits that select the partition.
    pub bits: u32,
    /// The number of hash bits above them.
    pub shift: u32,
}

impl Partitioning {
    /// Reads the parameters `keys`, `bits` and `shift` of a node.
    ///
    /// # Errors
    /// A parameter is missing or out of its range.
    pub fn new(node: &Node, tuple: &Tuple) -> Result<Self> {
        let names = node.params.names("keys")?;
        if names.is_empty() {
            return Err(Error::semantic("parameter keys must name at least one field"));
        }
        let number = |name: &str| {
            let missing = || Error::semantic(format!("parameter {name} is missing"));
            count(node, name)?.ok_or_else(missing)
        };
        let (bits, shift) = (number("bits")?, number("shift")?);
        if bits > PARTITION_BITS_MAX {
            return Err(Error::semantic(format!(
                "bits = {bits} makes too many partitions at once; the most is {PARTITION_BITS_MAX}"
            )));
        }
        if shift.saturating_add(bits) > 64 {
            return Err(Error::semantic(format!(
                "shift {shift} + bits {bits} exceeds the 64 bits of a hash"
            )));
        }
        Ok(Partitioning {
            keys: keys(tuple, &names, "key")?.into(),
            bits: bits as u32,
            shift: shift as u32,
        })
    }

    /// The number of partitions.
    pub fn count(&self) -> usize {
        1 << self.bits
    }
}

/// The tuple type of partitions of `tuple`: partition number and rows.
pub fn partitions_tuple(tuple: &Tuple) -> Tuple {
    Tuple::new(vec![
        Field::new("partition", Atom::Int64),
        Field::collection("data", "rows", tuple.clone()),
    ])
}

/// Converts partitions to tuples, numbered from 0 in order.
pub fn partitions_chunk(partitions: Vec<Rows>) -> Chunk {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..partitions.len() as i64));
    let rows = partitions.len();
    let handles: Vec<Handle> = partitions.into_iter().map(Handle::new).collect();
    Chunk::new(vec![Column::Plain(numbers), Column::Handles(handles.into())], rows)
}
