//! What scans of collections have in common: a format says only how its tuples are read, a chunk at
//! a time.

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

/// A collection that is read from its first tuple to its last.
pub(super) trait Scanned: Debug + Send + Sync + 'static {
    /// The name of the format.
    const FORMAT: &'static str;

    /// Where a reader stands; by default before the first tuple.
    type Place: Default + Send;

    /// The next tuples, at most `rows` (not 0); nothing when there are no more.
    ///
    /// # Errors
    /// There is no memory for them.
    fn next(&self, place: &mut Self::Place, rows: usize) -> Result<Option<Chunk>>;

    /// The same for who reads tuples where they lie.
    ///
    /// # Errors
    /// As [`Scanned::next`].
    fn next_lying(&self, place: &mut Self::Place, rows: usize) -> Result<Option<Chunk>> {
        self.next(place, rows)
    }
}

/// The edge out of a scan of collections.
///
/// # Errors
/// Parameter `field` names no field that holds a collection in the format.
pub(super) fn derive<C: Scanned>(node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
    let edge = edge(inputs)?;
    let (_, collection) = collection(&edge.tuple, &field_name(node, "field")?, C::FORMAT)?;
    let order = if edge.order == Order::None { Order::None } else { Order::Source };
    Ok(passes(edge, collection.tuple.clone(), order))
}

/// The scan of the collections in parameter `field`.
///
/// # Errors
/// As [`derive`].
pub(super) fn lower<C: Scanned>(node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
    let (field, _) = collection(&lowering.inputs[0].tuple, &field_name(node, "field")?, C::FORMAT)?;
    Ok(Operator::Stream(Arc::new(Lowered::<C> { field, collections: PhantomData })))
}

#[derive(Debug)]
struct Lowered<C> {
    field: usize,
    collections: PhantomData<fn() -> C>,
}

impl<C: Scanned> Stream for Lowered<C> {
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

impl<C: Scanned> StreamRun for ScanRun<C> {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        self.worker_before(false)
    }

    fn worker_before(&self, lying: bool) -> Result<Box<dyn StreamWorker>> {
        let (field, context) = (self.field, self.context.clone());
        let pending = VecDeque::<Arc<C>>::new();
        Ok(Box::new(ScanWorker { field, context, lying, pending, place: Default::default() }))
    }
}

struct ScanWorker<C: Scanned> {
    field: usize,
    context: Arc<dyn Context>,
    /// Whether tuples may stay where they lie.
    lying: bool,
    /// Collections to be read; let go of as soon as they have been.
    pending: VecDeque<Arc<C>>,
    /// Where in the first of them.
    place: C::Place,
}

impl<C: Scanned> StreamWorker for ScanWorker<C> {
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
            let next = match self.lying {
                true => collection.next_lying(&mut self.place, rows)?,
                false => collection.next(&mut self.place, rows)?,
            };
            if let Some(chunk) = next {
                return Ok(Step::HasOutput(chunk));
            }
            self.pending.pop_front();
            self.place = C::Place::default();
        }
        Ok(Step::NeedInput)
    }
}
