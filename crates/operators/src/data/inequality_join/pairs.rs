//! Pairs of tuples of the stream and of a block, as columns or by number.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};

use tessera_codegen::{InputPlace, RawInput};
use tessera_functions::{is_readable, raw};
use tessera_rows::Candidates;
use tessera_state::join::BuildSide;
use tessera_types::Result;
use tessera_vector::{Chunk, Column, LazyTuples};

/// The tuples of a block.
#[derive(Debug)]
pub(super) struct BlockTuples<'a>(pub(super) &'a Chunk);

impl BuildSide for BlockTuples<'_> {
    fn width(&self) -> usize {
        self.0.width()
    }

    fn gather(&self, field: usize, rows: &[u64]) -> Result<Column> {
        let rows = UInt32Array::from_iter_values(rows.iter().map(|row| *row as u32));
        self.0.stored()[field].take(&rows)
    }
}

/// Pairs whose fields are read where the tuples are: chunks without a selection, and positions in
/// them.
#[derive(Debug, Clone)]
pub(super) struct LazyPairs {
    sides: Arc<[(Chunk, UInt32Array); 2]>,
    /// The side of each field, and its number there.
    fields: Arc<[(usize, usize)]>,
}

impl LazyPairs {
    /// Returns the pairs as a chunk.
    pub(super) fn chunk(stream: &Chunk, block: &Chunk, pairs: Candidates) -> Chunk {
        let rows = pairs.len();
        let matches = UInt32Array::from_iter_values(pairs.rows.iter().map(|row| *row as u32));
        let of_stream = (0..stream.width()).map(|field| (0, field));
        let fields = of_stream.chain((0..block.width()).map(|field| (1, field))).collect();
        let sides = [(stream.clone(), pairs.positions.into()), (block.clone(), matches)];
        Chunk::lazy(LazyPairs { sides: Arc::new(sides), fields }, rows)
    }
}

impl LazyTuples for LazyPairs {
    fn width(&self) -> usize {
        self.fields.len()
    }

    fn columns(&self) -> Vec<Column> {
        let column = |(side, field): &(usize, usize)| {
            let (tuples, places) = &self.sides[*side];
            tuples.stored()[*field].take(places).expect("tuples that are there")
        };
        self.fields.iter().map(column).collect()
    }

    fn value_bytes(&self) -> usize {
        let bytes = |(tuples, places): &(Chunk, UInt32Array)| {
            tuples.value_bytes() / tuples.rows().max(1) * places.len()
        };
        self.sides.iter().map(bytes).sum()
    }

    fn project(&self, fields: &[usize]) -> Box<dyn LazyTuples> {
        let fields = fields.iter().map(|field| self.fields[*field]).collect();
        Box::new(LazyPairs { sides: self.sides.clone(), fields })
    }

    fn input(&self, field: usize, arrays: &mut Vec<ArrayRef>) -> Option<(InputPlace, RawInput)> {
        let (side, field) = self.fields[field];
        let (tuples, places) = &self.sides[side];
        let array = tuples.stored()[field].plain().ok().filter(is_readable)?;
        let raw = RawInput { list: places.values().as_ptr().cast(), ..raw(&array) };
        arrays.push(array);
        Some((InputPlace::Indexed, raw))
    }
}
