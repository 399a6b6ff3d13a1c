//! `batch_scan`: the tuples in Arrow batches.

use std::collections::VecDeque;
use std::sync::Arc;

use tessera_encodings::{Chunk, Column};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_types::Result;

use crate::describe::{collection, edge, field_name, passes};
use crate::operator::{Collected, Lowering, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator};
use crate::scan::Batch;
use crate::{Context, Run, describe};

/// Yields the tuples in the `batch` collections of field `field`, one collection after the other (Modularis §2.3.2).
///
/// `<partition, data: batch<a>>` = `(0, batch of 1 and 2), (1, batch of 3)` with `field = data` gives `1, 2, 3`. Holds a tuple of its
/// input at a time, never blocks, keeps the order.
#[derive(Debug)]
pub struct BatchScan;

impl Descriptor for BatchScan {
    describe!("batch_scan", "Yields the tuples in collections of Arrow batches.", ["field"], 1, 1);

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        let (_, collection) = collection(&edge.tuple, &field_name(node, "field")?, "batch")?;
        let order = if edge.order == Order::None { Order::None } else { Order::Source };
        Ok(passes(edge, collection.tuple.clone(), order))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for BatchScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let (field, _) = collection(&lowering.inputs[0].tuple, &field_name(node, "field")?, "batch")?;
        Ok(Operator::Stream(Arc::new(Lowered { field })))
    }
}

#[derive(Debug)]
struct Lowered {
    field: usize,
}

impl Stream for Lowered {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(Arc::new(ScanRun { field: self.field, context: run.context.clone() }))
    }
}

#[derive(Debug)]
struct ScanRun {
    field: usize,
    context: Arc<dyn Context>,
}

impl StreamRun for ScanRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let (field, context) = (self.field, self.context.clone());
        Ok(Box::new(ScanWorker { field, context, pending: VecDeque::new(), next: (0, 0) }))
    }
}

struct ScanWorker {
    field: usize,
    context: Arc<dyn Context>,
    /// Collections to be read; let go of as soon as they have been.
    pending: VecDeque<Arc<Batch>>,
    /// Where in the first of them: the batch, and the row in it.
    next: (usize, usize),
}

impl StreamWorker for ScanWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        for handle in chunk.column(self.field)?.handles()? {
            self.pending.push_back(handle.get::<Batch>()?);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        self.context.check()?;
        while let Some(collection) = self.pending.front() {
            let (batch, row) = self.next;
            let Some(current) = collection.batches().get(batch) else {
                self.pending.pop_front();
                self.next = (0, 0);
                continue;
            };
            let len = self.context.chunk_rows().min(current.num_rows() - row);
            if len == 0 {
                self.next = (batch + 1, 0);
                continue;
            }
            self.next = (batch, row + len);
            let columns = current.columns().iter().map(|array| Column::new(array.slice(row, len)));
            return Ok(Step::HasOutput(Chunk::new(columns.collect(), len)));
        }
        Ok(Step::NeedInput)
    }
}
