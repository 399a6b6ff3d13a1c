//! `rows_scan`: the tuples in `Rows`.

use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::{Rows, RowsPlace};
use tessera_types::Result;
use tessera_vector::Chunk;

use super::collection_scan::{Scanned, derive, lower};

/// Yields the tuples in the `rows` collections of field `field`, one collection after the other
/// (Modularis §2.3.2).
///
/// `<partition, data: rows<a>>` = `(0, rows of 1 and 2), (1, rows of 3)` with `field = data` gives
/// `1, 2, 3`. Holds a tuple of its input at a time, never blocks, keeps the order.
#[derive(Debug)]
pub struct RowsScan;

impl Descriptor for RowsScan {
    tessera_operator::describe!(
        "rows_scan",
        "Yields the tuples in collections of rows.",
        ["field"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        derive::<Rows>(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for RowsScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        lower::<Rows>(node, lowering)
    }
}

impl Scanned for Rows {
    const FORMAT: &'static str = "rows";

    type Place = RowsPlace;

    fn next(&self, place: &mut RowsPlace, rows: usize) -> Result<Option<Chunk>> {
        Rows::next(self, place, rows, false)
    }

    fn next_lying(&self, place: &mut RowsPlace, rows: usize) -> Result<Option<Chunk>> {
        Rows::next(self, place, rows, true)
    }
}
