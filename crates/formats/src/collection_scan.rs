//! Common code of scans of collections. A format only implements how a chunk of tuples is read.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use tessera_context::{Context, Run};
use tessera_operator::describe::{collection, edge, field_name, passes};
use tessera_operator::{Lowering, Operator, Step, Stream, StreamRun, StreamWorker};
use tessera_plan::{Edge, Inputs, Node, Order};
use tessera_rows::Collected;
use tessera_types::Result;
use tessera_vector::Chunk;

/// A collection that can be read from its first tuple to its last.
pub(super) trait ScannableCollection: Debug + Send + Sync + 'static {
    /// The name of the format.
    const FORMAT: &'static str;

    /// The position of a reader; the default is before the first tuple.
    type Cursor: Default + Send;

    /// Reads the next tuples, at most `rows` (not 0). Returns `None` at the end.
    ///
    /// # Errors
    /// The memory budget is exhausted.
    fn next(&self, cursor: &mut Self::Cursor, rows: usize) -> Result<Option<Chunk>>;

    /// Like `next`, for consumers that accept tuples that are not yet columns.
    ///
    /// # Errors
    /// Those of [`ScannableCollection::next`].
    fn next_lazy(&self, cursor: &mut Self::Cursor, rows: usize) -> Result<Option<Chunk>> {
        self.next(cursor, rows)
    }
}

/// Derives the output edge of a scan of collections.
///
/// # Errors
/// Parameter `field` does not name a field that holds a collection in the format.
pub(super) fn derive<C: ScannableCollection>(node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
    let edge = edge(inputs)?;
    let (_, collection) = collection(&edge.tuple, &field_name(node, "field")?, C::FORMAT)?;
    let order = if edge.order == Order::None { Order::None } else { Order::Source };
    Ok(passes(edge, collection.tuple.clone(), order))
}

/// Lowers a scan of the collections in parameter `field`.
///
/// # Errors
/// Those of [`derive`].
pub(super) fn lower<C: ScannableCollection>(
    node: &Node,
    lowering: &Lowering<'_>,
) -> Result<Operator> {
    let (field, _) = collection(&lowering.inputs[0].tuple, &field_name(node, "field")?, C::FORMAT)?;
    Ok(Operator::Stream(Arc::new(CollectionScanOperator::<C> { field, collections: PhantomData })))
}

#[derive(Debug)]
struct CollectionScanOperator<C> {
    field: usize,
    collections: PhantomData<fn() -> C>,
}

impl<C: ScannableCollection> Stream for CollectionScanOperator<C> {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let (field, context) = (self.field, run.context.clone());
        Ok(Arc::new(ScanRun::<C> { field, context, collections: PhantomData }))
    }
}

#[derive(Debug)]
struct ScanRun<C> {
    field: usize,
    context: Arc<dyn Context>,
    collections: PhantomData<fn() -> C>,
}

impl<C: ScannableCollection> StreamRun for ScanRun<C> {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        self.worker_for_consumer(false)
    }

    fn worker_for_consumer(&self, lazy: bool) -> Result<Box<dyn StreamWorker>> {
        let (field, context) = (self.field, self.context.clone());
        let pending = VecDeque::<Arc<C>>::new();
        Ok(Box::new(ScanWorker { field, context, lazy, pending, cursor: Default::default() }))
    }
}

struct ScanWorker<C: ScannableCollection> {
    field: usize,
    context: Arc<dyn Context>,
    /// Whether the consumer accepts tuples that are not yet columns.
    lazy: bool,
    /// Collections to read; each is dropped when it has been read.
    pending: VecDeque<Arc<C>>,
    /// The position in the first of them.
    cursor: C::Cursor,
}

impl<C: ScannableCollection> StreamWorker for ScanWorker<C> {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        for handle in chunk.column(self.field)?.handles()? {
            self.pending.push_back(handle.get::<C>()?);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        self.context.check()?;
        while let Some(collection) = self.pending.front() {
            let rows = self.context.chunk_rows();
            let next = match self.lazy {
                true => collection.next_lazy(&mut self.cursor, rows)?,
                false => collection.next(&mut self.cursor, rows)?,
            };
            if let Some(chunk) = next {
                return Ok(Step::HasOutput(chunk));
            }
            self.pending.pop_front();
            self.cursor = C::Cursor::default();
        }
        Ok(Step::NeedInput)
    }
}
