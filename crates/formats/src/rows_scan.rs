//! `rows_scan`: reads the tuples of `Rows`.

use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::{Rows, RowsPlace};
use tessera_types::Result;
use tessera_vector::Chunk;

use super::collection_scan::{ScannableCollection, derive, lower};

/// Yields the tuples of the `rows` collections in field `field`, one collection after the other
/// (Modularis §2.3.2).
///
/// `<partition, data: rows<a>>` = `(0, rows of 1 and 2), (1, rows of 3)` with `field = data` gives
/// `1, 2, 3`. Buffers one input tuple at a time, never blocks, keeps the order.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %kept = rows_materialize(%t)
///      %result = rows_scan(%kept) {field = data}",
/// );
/// assert_eq!(rows, ["1", "2", "NULL", "3"]);
/// ```
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

impl ScannableCollection for Rows {
    const FORMAT: &'static str = "rows";

    type Cursor = RowsPlace;

    fn next(&self, cursor: &mut RowsPlace, rows: usize) -> Result<Option<Chunk>> {
        Rows::next(self, cursor, rows, false)
    }

    fn next_lazy(&self, cursor: &mut RowsPlace, rows: usize) -> Result<Option<Chunk>> {
        Rows::next(self, cursor, rows, true)
    }
}
