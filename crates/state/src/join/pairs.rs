//! Pairs of stream tuples and rows of a join table, by number: compiled code reads their fields
//! where they lie, others get columns.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};

use tessera_codegen::{InputPlace, RawInput};
use tessera_functions::{lies_at, raw};
use tessera_rows::{Candidates, RowRange};
use tessera_types::{Field, Tuple};
use tessera_vector::physical::Physical;
use tessera_vector::{Chunk, Column, Elsewhere};

use super::output::stored_positions;
use super::table::JoinTable;

/// Pairs, and which fields of both they have as tuples.
#[derive(Debug, Clone)]
pub struct Pairs {
    of: Arc<Numbers>,
    /// Those from the stream's width on are the table's.
    fields: Arc<[usize]>,
}

/// Which tuples, and which rows.
#[derive(Debug)]
struct Numbers {
    stream: Chunk,
    /// Positions among the stored ones.
    places: UInt32Array,
    table: Arc<JoinTable>,
    rows: Vec<u64>,
}

impl Pairs {
    /// Whether tuples of this type can be paired by number: lists and the like cannot, of which as
    /// many copies may be too many for a column.
    pub fn may_be_of(tuple: &Tuple) -> bool {
        let is_flat = |field: &Field| {
            let physical = field.atom().map(|atom| Physical::of(&atom.arrow()));
            matches!(physical, Some(Ok(physical)) if physical != Physical::Nested)
        };
        tuple.fields().iter().all(is_flat)
    }

    /// The pairs as a chunk; none of them without a row.
    pub fn chunk(stream: &Chunk, table: &Arc<JoinTable>, pairs: Candidates) -> Chunk {
        let rows = pairs.len();
        let places = match stream.selection() {
            None => UInt32Array::from(pairs.positions),
            Some(_) => stored_positions(stream, &pairs.positions),
        };
        let fields = (0..stream.width() + table.tuple().len()).collect();
        let of = Numbers { stream: stream.clone(), places, table: table.clone(), rows: pairs.rows };
        Chunk::lying(Pairs { of: Arc::new(of), fields }, rows)
    }
}

impl Elsewhere for Pairs {
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

    fn project(&self, fields: &[usize]) -> Box<dyn Elsewhere> {
        let fields = fields.iter().map(|field| self.fields[*field]).collect();
        Box::new(Pairs { of: self.of.clone(), fields })
    }

    fn input(&self, field: usize, arrays: &mut Vec<ArrayRef>) -> Option<(InputPlace, RawInput)> {
        let Numbers { stream, places, table, rows } = &*self.of;
        let field = self.fields[field];
        if let Some(of_table) = field.checked_sub(stream.width()) {
            return table.input(of_table, rows);
        }
        if let Some(range) = stream.elsewhere::<RowRange>() {
            return range.listed(field, Some(places.values()));
        }
        let array = stream.stored()[field].plain().ok().filter(lies_at)?;
        let raw = RawInput { list: places.values().as_ptr().cast(), ..raw(&array) };
        arrays.push(array);
        Some((InputPlace::Listed, raw))
    }
}
