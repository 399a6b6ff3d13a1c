//! `batch_scan`: reads the tuples of Arrow batches.

use tessera_operator::{Lowering, Operator, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::Result;
use tessera_vector::{Chunk, Column};

use super::collection_scan::{ScannableCollection, derive, lower};
use crate::Batch;

/// Yields the tuples of the `batch` collections in field `field`, one collection after the other
/// (Modularis §2.3.2).
///
/// `<partition, data: batch<a>>` = `(0, batch of 1 and 2), (1, batch of 3)` with `field = data`
/// gives `1, 2, 3`. Buffers one input tuple at a time, never blocks, keeps the order.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <x: int64?>, rows = [[1], [2], [NULL::int64], [3]]}
///      %kept = batch_materialize(%t)
///      %result = batch_scan(%kept) {field = data}",
/// );
/// assert_eq!(rows, ["1", "2", "NULL", "3"]);
/// ```
#[derive(Debug)]
pub struct BatchScan;

impl Descriptor for BatchScan {
    tessera_operator::describe!(
        "batch_scan",
        "Yields the tuples in collections of Arrow batches.",
        ["field"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        derive::<Batch>(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for BatchScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        lower::<Batch>(node, lowering)
    }
}

impl ScannableCollection for Batch {
    const FORMAT: &'static str = "batch";

    /// The position of a batch, and of a row in it.
    type Cursor = (usize, usize);

    fn next(&self, (batch, row): &mut (usize, usize), rows: usize) -> Result<Option<Chunk>> {
        while let Some(current) = self.batches().get(*batch) {
            let (start, len) = (*row, rows.min(current.num_rows() - *row));
            if len == 0 {
                (*batch, *row) = (*batch + 1, 0);
                continue;
            }
            *row += len;
            let columns =
                current.columns().iter().map(|array| Column::new(array.slice(start, len)));
            return Ok(Some(Chunk::new(columns.collect(), len)));
        }
        Ok(None)
    }
}
