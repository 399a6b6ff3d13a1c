//! `batch_materialize`: stores tuples as Arrow batches.

use std::sync::Arc;

use arrow::array::RecordBatch;

use tessera_context::{Reservation, Run};
use tessera_operator::describe::{collection_edge, edge};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{
    Finish, Lowering, Operator, Sink, SinkRun, SinkWorker, SubOperator, downcast_workers,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_rows::Collected;
use tessera_types::{Result, Tuple};
use tessera_vector::{Chunk, Column};

use crate::Batch;

/// Stores all tuples in one collection of Arrow batches, and yields it as the only field of one
/// tuple (Modularis §2.3.2).
///
/// `<a>` = `1, 2` gives one `<data: batch<a>>`. Buffers the tuples; ends its pipeline; the tuples
/// inside are in the order of the source. Errors: a field that holds a collection, which Arrow
/// cannot represent.
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
pub struct BatchMaterialize;

impl Descriptor for BatchMaterialize {
    tessera_operator::describe!(
        "batch_materialize",
        "Keeps all tuples in one collection of Arrow batches.",
        [],
        1,
        1
    );

    fn derive(&self, _node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let output = collection_edge(inputs, "batch")?;
        edge(inputs)?.tuple.arrow_schema()?;
        Ok(output)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Sink(0)
    }
}

impl SubOperator for BatchMaterialize {
    fn lower(&self, _node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = lowering.inputs[0].tuple.clone();
        Ok(Operator::Sink(Arc::new(BatchMaterializeOperator { tuple })))
    }
}

#[derive(Debug)]
struct BatchMaterializeOperator {
    tuple: Tuple,
}

impl Sink for BatchMaterializeOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SinkRun>> {
        Ok(Arc::new(MaterializeRun { tuple: self.tuple.clone(), run: run.clone() }))
    }
}

#[derive(Debug)]
struct MaterializeRun {
    tuple: Tuple,
    run: Run,
}

/// Batches with the positions of their morsels.
struct MaterializeWorker {
    tuple: Tuple,
    run: Run,
    position: u64,
    batches: Vec<(u64, RecordBatch)>,
    memory: Reservation,
}

impl SinkRun for MaterializeRun {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        let (tuple, run) = (self.tuple.clone(), self.run.clone());
        let memory = Reservation::new(run.context.clone());
        Ok(Box::new(MaterializeWorker { tuple, run, position: 0, batches: Vec::new(), memory }))
    }

    fn finish(self: Arc<Self>, workers: Vec<Box<dyn SinkWorker>>) -> Result<Finish> {
        let (mut batches, mut reservations) = (Vec::new(), Vec::new());
        for worker in downcast_workers::<MaterializeWorker>(workers)? {
            batches.extend(worker.batches);
            reservations.push(worker.memory);
        }
        // The sort is stable, so the batches of a morsel keep their order.
        batches.sort_by_key(|(position, _)| *position);
        let batch = Batch::new(batches.into_iter().map(|(_, batch)| batch).collect(), reservations);
        let chunk = Chunk::new(vec![Column::handle(batch)], 1);
        Ok(Finish {
            tasks: Vec::new(),
            output: chunks_source(vec![chunk], self.run.context.chunk_rows()),
        })
    }
}

impl SinkWorker for MaterializeWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        self.position = position;
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.context.check()?;
        let chunk = chunk.compact()?;
        self.memory.grow(chunk.value_bytes())?;
        self.batches.push((self.position, chunk.to_batch(&self.tuple)?));
        Ok(())
    }
}
