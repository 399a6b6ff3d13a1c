//! `zip`: pairs streams of the same length by position.

use std::collections::VecDeque;
use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::describe::edges;
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{Lowering, Operator, Source, SourceRun, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Parallelism, Role, Traits};
use tessera_rows::Collected;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, Column};

/// Yields the first tuples of all inputs as one tuple, then the second ones, and so on (Modularis
/// §2.3.2).
///
/// `<a>` = `1, 2` and `<b>` = `x, y` give `(1, x), (2, y)`. Used to pair, for example, the
/// partitions of two inputs with the same partitioning. Starts when its inputs are complete and
/// holds them; keeps the order. Errors: inputs of different lengths.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%l = values() {columns = <a: string>, rows = [['x'], ['y']]}
///      %r = values() {columns = <b: int64>, rows = [[1], [2]]}
///      %result = zip(%l, %r)",
/// );
/// assert_eq!(rows, ["x 1", "y 2"]);
/// ```
#[derive(Debug)]
pub struct Zip;

impl Descriptor for Zip {
    tessera_operator::describe!(
        "zip",
        "Puts the tuples of its inputs side by side, position by position.",
        [],
        2,
        usize::MAX
    );

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edges = edges(inputs)?;
        let locality = edges[0].traits.locality;
        if let Some(other) = edges.iter().position(|edge| edge.traits.locality != locality) {
            return Err(Error::semantic(format!(
                "input 0 has locality {locality} and input {other} has locality {}, so that positions do not \
                 correspond; insert an exchange",
                edges[other].traits.locality
            )));
        }
        let many = edges.iter().any(|edge| edge.traits.parallelism == Parallelism::Many);
        let parallelism = if many { Parallelism::Many } else { Parallelism::One };
        let fields: Vec<_> = edges.iter().flat_map(|edge| edge.tuple.fields()).cloned().collect();
        Ok(Edge {
            tuple: Tuple::new(fields),
            traits: Traits { parallelism, ..edges[0].traits },
            order: Order::Source,
        })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for Zip {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Source(Arc::new(ZipOperator)))
    }
}

#[derive(Debug)]
struct ZipOperator;

impl Source for ZipOperator {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let rows: Vec<usize> = sides.iter().map(|side| side.rows()).collect();
        if let Some(other) = rows.iter().position(|count| *count != rows[0]) {
            return Err(Error::data(format!(
                "zip pairs tuples by position, but input 0 has {} of them and input {other} has {}",
                rows[0], rows[other]
            )));
        }
        Ok(chunks_source(zip(sides)?, run.context.chunk_rows()))
    }
}

/// Pairs the chunks, splitting at the chunk borders of every input.
fn zip(sides: &[Arc<Collected>]) -> Result<Vec<Chunk>> {
    let mut cursors: Vec<Cursor> = sides.iter().map(Cursor::new).collect::<Result<_>>()?;
    let mut zipped = Vec::new();
    loop {
        let Some(len) = cursors.iter_mut().map(Cursor::left).min().filter(|len| *len > 0) else {
            return Ok(zipped);
        };
        let mut columns: Vec<Column> = Vec::new();
        for cursor in &mut cursors {
            let part = cursor.take(len);
            for index in 0..part.width() {
                columns.push(part.column(index)?);
            }
        }
        zipped.push(Chunk::new(columns, len));
    }
}

struct Cursor {
    chunks: VecDeque<Chunk>,
    offset: usize,
}

impl Cursor {
    fn new(side: &Arc<Collected>) -> Result<Cursor> {
        Ok(Cursor { chunks: side.chunks().collect::<Result<_>>()?, offset: 0 })
    }

    /// The number of tuples left in the current chunk; 0 at the end.
    fn left(&mut self) -> usize {
        while let Some(chunk) = self.chunks.front() {
            if self.offset < chunk.rows() {
                return chunk.rows() - self.offset;
            }
            self.chunks.pop_front();
            self.offset = 0;
        }
        0
    }

    fn take(&mut self, len: usize) -> Chunk {
        let part = self.chunks[0].slice(self.offset, len);
        self.offset += len;
        part
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, same};
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::{Expr, Params};

    use crate::testing::test_plan;

    #[test]
    fn positions_are_paired_whatever_the_chunks() {
        let mut plan = test_plan();
        let a = plan.table(batch("<a: int64>", "1|2|3|4|5|6|7|8|9"));
        let more = Expr::call("gt", vec![Expr::field("a"), Expr::int64(4)]);
        let a = plan.add("filter", &[a], Params::new().with("predicate", more));
        let b = plan.table(batch("<b: string?>", "x|NULL|y|z|w"));
        let c = plan.table(batch("<c: int64>", "0|0|0|0|1"));
        let root = plan.add("zip", &[a, b, c], Params::new());
        for (chunk, workers) in SETTINGS {
            let batch = plan.run(root, chunk, workers).unwrap();
            same(&batch, "<a: int64, b: string?, c: int64>", "5 x 0|6 NULL 0|7 y 0|8 z 0|9 w 1");
        }
        let root = plan.add("zip", &[b, b], Params::new());
        assert!(plan.verify(root).unwrap_err().to_string().contains("duplicate field"));
    }

    #[test]
    fn a_length_that_differs_is_an_error() {
        let mut plan = test_plan();
        let a = plan.table(batch("<a: int64>", "1|2"));
        let b = plan.table(batch("<b: int64>", "1|2|3"));
        let root = plan.add("zip", &[a, b], Params::new());
        let message = plan.run(root, 7, 1).unwrap_err().to_string();
        assert!(
            message.contains("input 0 has 2") && message.contains("input 1 has 3"),
            "{message}"
        );
    }

    #[test]
    fn nothing_zipped_is_nothing() {
        let mut plan = test_plan();
        let a = plan.table(batch("<a: int64>", ""));
        let b = plan.table(batch("<b: int64>", ""));
        let root = plan.add("zip", &[a, b], Params::new());
        assert_eq!(plan.run(root, 7, 2).unwrap().num_rows(), 0);
    }
}
