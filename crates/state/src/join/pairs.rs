//! Pairs of stream tuples and rows of a join table, by number: compiled code reads their fields in
//! place, other readers get columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};

use tessera_codegen::{InputPlace, RawInput};
use tessera_functions::{is_readable, raw};
use tessera_rows::{Candidates, RowRange};
use tessera_types::{Field, Tuple};
use tessera_vector::physical::Physical;
use tessera_vector::{Chunk, Column, LazyTuples};

use super::output::stored_positions;
use super::table::JoinTable;

/// Pairs, and the fields of both sides that they have as tuples.
#[derive(Debug, Clone)]
pub struct Pairs {
    of: Arc<Numbers>,
    /// Numbers from the stream's width on are fields of the table.
    fields: Arc<[usize]>,
}

/// The paired tuples and rows.
#[derive(Debug)]
struct Numbers {
    stream: Chunk,
    /// Positions among the stored tuples.
    places: UInt32Array,
    table: Arc<JoinTable>,
    rows: Vec<u64>,
}

impl Pairs {
    /// Returns whether tuples of this type can be paired by number. Lists and the like cannot: a
    /// column might be too small for all their copies.
    pub fn may_be_of(tuple: &Tuple) -> bool {
        let is_flat = |field: &Field| {
            let physical = field.atom().map(|atom| Physical::of(&atom.arrow()));
            matches!(physical, Some(Ok(physical)) if physical != Physical::Nested)
        };
        tuple.fields().iter().all(is_flat)
    }

    /// Returns the pairs as a chunk; every pair has a row.
    pub fn chunk(stream: &Chunk, table: &Arc<JoinTable>, pairs: Candidates) -> Chunk {
        let rows = pairs.len();
        let places = match stream.selection() {
            None => UInt32Array::from(pairs.positions),
            Some(_) => stored_positions(stream, &pairs.positions),
        };
        let fields = (0..stream.width() + table.tuple().len()).collect();
        let of = Numbers { stream: stream.clone(), places, table: table.clone(), rows: pairs.rows };
        Chunk::lazy(Pairs { of: Arc::new(of), fields }, rows)
    }
}

impl LazyTuples for Pairs {
    fn width(&self) -> usize {
        self.fields.len()
    }

    fn columns(&self) -> Vec<Column> {
        let Numbers { stream, places, table, rows } = &*self.of;
        let column = |field: &usize| match field.checked_sub(stream.width()) {
            None => stream.stored()[*field].take(places),
            Some(of_table) => table.gather(of_table, rows),
        };
        let column = |field| column(field).expect("pairs of tuples and rows that are there");
        self.fields.iter().map(column).collect()
    }

    fn value_bytes(&self) -> usize {
        let Numbers { stream, rows, table, .. } = &*self.of;
        let of_stream = stream.value_bytes() / stream.rows().max(1) * rows.len();
        of_stream + rows.len() * table.layout().stride_bytes()
    }

    fn project(&self, fields: &[usize]) -> Box<dyn LazyTuples> {
        let fields = fields.iter().map(|field| self.fields[*field]).collect();
        Box::new(Pairs { of: self.of.clone(), fields })
    }

    fn input(&self, field: usize, arrays: &mut Vec<ArrayRef>) -> Option<(InputPlace, RawInput)> {
        let Numbers { stream, places, table, rows } = &*self.of;
        let field = self.fields[field];
        if let Some(of_table) = field.checked_sub(stream.width()) {
            return table.input(of_table, rows);
        }
        if let Some(range) = stream.lazy_as::<RowRange>() {
            return range.listed(field, Some(places.values()));
        }
        let array = stream.stored()[field].plain().ok().filter(is_readable)?;
        let raw = RawInput { list: places.values().as_ptr().cast(), ..raw(&array) };
        arrays.push(array);
        Some((InputPlace::Indexed, raw))
    }
}
