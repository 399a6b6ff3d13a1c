//! `cartesian_product`: pairs every tuple of one input with every tuple of the other.

use std::sync::Arc;

use tessera_context::{Context, Run};
use tessera_operator::describe::{edges, passes, require_all};
use tessera_operator::stream_util::pairs_with_row;
use tessera_operator::{Lowering, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Collected, SpillableChunk};
use tessera_types::{Error, Result};
use tessera_vector::Chunk;

/// Joins every tuple of the first input (a side) to every tuple of the second (Modularis §2.3.2).
///
/// `<a>` = `1, 2` and `<b>` = `x, y` give `(1, x), (1, y), (2, x), (2, y)` in some order. For each
/// pair of chunks, the values of the shorter chunk are repeated as constants, so nothing is copied.
/// Holds its side and a chunk, never blocks, promises no order.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%l = values() {columns = <a: string>, rows = [['x'], ['y']]}
///      %r = values() {columns = <b: int64>, rows = [[1], [2]]}
///      %result = cartesian_product(%l, %r)",
/// );
/// assert_eq!(rows, ["x 1", "x 2", "y 1", "y 2"]);
/// ```
#[derive(Debug)]
pub struct CartesianProduct;

impl Descriptor for CartesianProduct {
    tessera_operator::describe!(
        "cartesian_product",
        "Joins every tuple of a side to every tuple of a stream.",
        [],
        2,
        2
    );

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let [side, stream] = edges(inputs)? else { return Err(Error::internal("two inputs")) };
        require_all(side, 0)?;
        Ok(passes(stream, side.tuple.concat(&stream.tuple), Order::None))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(1)
    }
}

impl SubOperator for CartesianProduct {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Ok(Operator::Stream(Arc::new(CartesianProductOperator)))
    }
}

#[derive(Debug)]
struct CartesianProductOperator;

impl Stream for CartesianProductOperator {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let side = sides.first().ok_or_else(|| Error::internal("a side is missing"))?;
        let filled = side
            .spillable_chunks()
            .iter()
            .filter(|kept| !kept.is_empty())
            .map(SpillableChunk::compact);
        Ok(Arc::new(ProductRun {
            side: filled.collect::<Result<_>>()?,
            context: run.context.clone(),
        }))
    }
}

#[derive(Debug)]
struct ProductRun {
    side: Arc<[SpillableChunk]>,
    context: Arc<dyn Context>,
}

impl StreamRun for ProductRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let (side, context) = (self.side.clone(), self.context.clone());
        Ok(Box::new(ProductWorker { side, context, current: None, left: None, chunk: 0, row: 0 }))
    }
}

struct ProductWorker {
    side: Arc<[SpillableChunk]>,
    context: Arc<dyn Context>,
    current: Option<Chunk>,
    /// The chunk of the side that is being joined; `None` until it is read.
    left: Option<Chunk>,
    /// The number of that chunk.
    chunk: usize,
    /// The next tuple of the shorter of the two chunks.
    row: usize,
}

impl StreamWorker for ProductWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.current = Some(chunk.compact()?);
        self.go_to(0);
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        let Some(right) = &self.current else { return Ok(Step::NeedInput) };
        let Some(kept) = self.side.get(self.chunk) else {
            self.current = None;
            return Ok(Step::NeedInput);
        };
        self.context.check()?;
        let left = match self.left.take() {
            Some(left) => left,
            None => kept.chunk()?,
        };
        let repeat_left = left.rows() <= right.rows();
        let output = pairs_with_row(&left, right, repeat_left, self.row)?;
        self.row += 1;
        match self.row == left.rows().min(right.rows()) {
            true => self.go_to(self.chunk + 1),
            false => self.left = Some(left),
        }
        Ok(Step::HasOutput(output))
    }
}

impl ProductWorker {
    /// Moves to the first tuple of a chunk of the side.
    fn go_to(&mut self, chunk: usize) {
        (self.left, self.chunk, self.row) = (None, chunk, 0);
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{TestContext, batch, rows};
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::Params;

    use crate::testing::test_plan;

    #[test]
    fn every_pair_comes_once() {
        let text = |n: i64, letter: &str| {
            (0..n).map(|i| format!("{letter}{i}")).collect::<Vec<_>>().join("|")
        };
        for (left, right) in [(0, 3), (3, 0), (1, 1), (20, 3), (2, 30)] {
            let mut plan = test_plan();
            let l = plan.table(batch("<a: string?>", &text(left, "l")));
            let r = plan.table(batch("<b: string>", &text(right, "r")));
            let root = plan.add("cartesian_product", &[l, r], Params::new());
            let mut expected: Vec<String> =
                (0..left).flat_map(|a| (0..right).map(move |b| format!("l{a} r{b}"))).collect();
            expected.sort();
            for (chunk, workers) in SETTINGS {
                let mut found = rows(&plan.run(root, chunk, workers).unwrap());
                found.sort();
                assert_eq!(found, expected);
                let context = TestContext::with_state_budget(chunk, workers, 0);
                let mut found = rows(&plan.run_in(root, context).unwrap());
                found.sort();
                assert_eq!(found, expected);
            }
        }
    }
}
