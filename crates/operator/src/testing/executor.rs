//! A simple executor of plans, with one thread per worker.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tessera_context::{Context, Run};
use tessera_plan::pipeline::{Chain, ChainStart, PipelineEnd, Pipelines, cut};
use tessera_plan::{Edge, NodeId, Order, Plan, Traits, VerifiedPlan};
use tessera_rows::{Collected, OutputCollector, OutputCollectorWorker};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::Chunk;

use crate::stream_util::{ChunksReader, collected_source};
use crate::{
    Lowering, NestedPlan, NestedPlans, Operator, Reader, Registry, SinkRun, SinkWorker, SourceRun,
    Step, StreamRun, StreamWorker, stream_workers,
};

/// A plan with its sub-operators lowered.
#[derive(Debug)]
pub(super) struct CompiledPlan {
    parameters: Tuple,
    operators: Vec<Operator>,
    /// The nested plans of each node.
    nested: Vec<Vec<Arc<CompiledPlan>>>,
    pipelines: Pipelines,
}

pub(super) fn compile(
    plan: &Plan,
    verified: &VerifiedPlan,
    registry: &Registry,
) -> Result<Arc<CompiledPlan>> {
    let (mut operators, mut nested) = (Vec::new(), Vec::new());
    for (id, node) in plan.ids().zip(&plan.nodes) {
        let inner = node.nested.iter().zip(&verified.nested[id.index()]);
        nested.push(
            inner
                .map(|(plan, verified)| compile(plan, verified, registry))
                .collect::<Result<_>>()?,
        );
        let nested_outputs = node.nested.iter().zip(&verified.nested[id.index()]);
        let leaf =
            [Edge { tuple: plan.parameters.clone(), traits: Traits::DRIVER, order: Order::Source }];
        let inputs: Vec<Edge> =
            node.inputs.iter().map(|input| verified.edges[input.index()].clone()).collect();
        let lowering = Lowering {
            inputs: if inputs.is_empty() { &leaf } else { &inputs },
            output: &verified.edges[id.index()],
            parameters: &plan.parameters,
            nested_outputs: nested_outputs.map(|(p, v)| v.edges[p.root.index()].clone()).collect(),
            position: id.index(),
            library: registry.library(),
        };
        operators.push(registry.implementation(&node.operator)?.lower(node, &lowering)?);
    }
    let pipelines = cut(plan, registry.catalog())?;
    Ok(Arc::new(CompiledPlan { parameters: plan.parameters.clone(), operators, nested, pipelines }))
}

/// The result of a pipeline.
enum PipelineResult {
    Collected(Arc<Collected>),
    Output(Arc<dyn SourceRun>),
}

/// A sink that keeps the chunks of a pipeline by morsel and position.
#[derive(Debug)]
struct CollectSink {
    chunks: Mutex<BTreeMap<(u64, usize), Chunk>>,
}

struct CollectWorker {
    run: Arc<CollectSink>,
    position: u64,
    count: usize,
}

impl SinkRun for CollectSink {
    fn worker(&self) -> Result<Box<dyn SinkWorker>> {
        Err(Error::internal("the executor creates the workers of this sink"))
    }

    fn finish(self: Arc<Self>, _workers: Vec<Box<dyn SinkWorker>>) -> Result<crate::Finish> {
        Err(Error::internal("the executor reads the chunks of this sink"))
    }
}

impl SinkWorker for CollectWorker {
    fn begin(&mut self, position: u64) -> Result<()> {
        (self.position, self.count) = (position, 0);
        Ok(())
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.chunks.lock().unwrap().insert((self.position, self.count), chunk);
        self.count += 1;
        Ok(())
    }
}

impl NestedPlan for CompiledPlan {
    fn run(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Collected> {
        self.execute(parameters, context, 1)
    }

    fn stream(&self, parameters: Chunk, context: &Arc<dyn Context>) -> Result<Box<dyn Reader>> {
        let collected = self.execute(parameters, context, context.workers())?;
        Ok(Box::new(ChunksReader::from_spillable(
            collected.spillable_chunks().to_vec(),
            context.chunk_rows(),
        )))
    }

    fn figures(&self) -> String {
        String::new()
    }

    fn add_figures(&self, _figures: &str) -> Result<()> {
        Ok(())
    }
}

/// Stores chunks as the engine does: chunks that exceed the budget are spilled.
fn store_chunks(mut chunks: impl Iterator<Item = Chunk>, run: &Run) -> Result<Collected> {
    let mut local = OutputCollector::new(run).worker();
    chunks.try_for_each(|chunk| local.push(chunk))?;
    Ok(OutputCollectorWorker::collect(vec![local]).0)
}

impl CompiledPlan {
    pub(super) fn execute(
        &self,
        parameters: Chunk,
        context: &Arc<dyn Context>,
        workers: usize,
    ) -> Result<Collected> {
        let parameter_tuple = self.parameters.clone();
        let run = Run { parameter_tuple, parameters, ..Run::new(context.clone()) };
        let mut products: Vec<PipelineResult> = Vec::new();
        for pipeline in &self.pipelines.pipelines {
            let product = match pipeline.end {
                PipelineEnd::Collect(_) => {
                    let sink = Arc::new(CollectSink { chunks: Mutex::default() });
                    let worker = || {
                        Ok(Box::new(CollectWorker { run: sink.clone(), position: 0, count: 0 })
                            as Box<dyn SinkWorker>)
                    };
                    self.pipeline(&pipeline.chains, &run, &products, workers, &*sink, &worker)?;
                    let chunks = std::mem::take(&mut *sink.chunks.lock().unwrap());
                    let is_last = products.len() + 1 == self.pipelines.pipelines.len();
                    let collected = match is_last {
                        true => Collected::new(chunks.into_values()),
                        false => store_chunks(chunks.into_values(), &run)?,
                    };
                    PipelineResult::Collected(Arc::new(collected))
                }
                PipelineEnd::Sink(node) => {
                    let Operator::Sink(sink) = &self.operators[node.index()] else {
                        return Err(Error::internal(
                            "a node with role sink was not lowered to a sink",
                        ));
                    };
                    let sink =
                        sink.start(&self.run_of(node, &run), &self.sides(node, &products))?;
                    let states =
                        self.pipeline(&pipeline.chains, &run, &products, workers, &*sink, &|| {
                            sink.worker()
                        })?;
                    let finish = sink.finish(states)?;
                    std::thread::scope(|scope| {
                        let tasks: Vec<_> =
                            finish.tasks.into_iter().map(|task| scope.spawn(task)).collect();
                        tasks.into_iter().try_for_each(|task| task.join().unwrap())
                    })?;
                    PipelineResult::Output(finish.output)
                }
            };
            products.push(product);
        }
        match products.pop() {
            Some(PipelineResult::Collected(collected)) => Ok((*collected).clone()),
            _ => Err(Error::internal("the plan has no result")),
        }
    }

    fn run_of(&self, node: NodeId, run: &Run) -> Run {
        let nested =
            self.nested[node.index()].iter().map(|plan| plan.clone() as Arc<dyn NestedPlan>);
        Run { nested: NestedPlans::of(nested.collect()), ..run.clone() }
    }

    fn sides(&self, node: NodeId, products: &[PipelineResult]) -> Vec<Arc<Collected>> {
        let sides = self.pipelines.sides.get(&node).map_or(&[][..], Vec::as_slice);
        sides
            .iter()
            .map(|&(_, pipeline)| match &products[pipeline] {
                PipelineResult::Collected(collected) => collected.clone(),
                PipelineResult::Output(_) => panic!("the side was not collected"),
            })
            .collect()
    }

    fn pipeline(
        &self,
        chains: &[Chain],
        run: &Run,
        products: &[PipelineResult],
        workers: usize,
        sink: &dyn SinkRun,
        sink_worker: &(dyn Fn() -> Result<Box<dyn SinkWorker>> + Sync),
    ) -> Result<Vec<Box<dyn SinkWorker>>> {
        let mut states = (0..workers).map(|_| sink_worker()).collect::<Result<Vec<_>>>()?;
        let mut base = 0;
        for chain in chains {
            let source = match chain.start {
                ChainStart::Pipeline(pipeline) => match &products[pipeline] {
                    PipelineResult::Collected(collected) => {
                        collected_source(collected, run.context.chunk_rows())
                    }
                    PipelineResult::Output(output) => output.clone(),
                },
                ChainStart::Node(node) => match &self.operators[node.index()] {
                    Operator::Source(source) => {
                        source.start(&self.run_of(node, run), &self.sides(node, products))?
                    }
                    _ => {
                        return Err(Error::internal(
                            "a node with role source was not lowered to a source",
                        ));
                    }
                },
            };
            let mut streams = Vec::new();
            for &node in &chain.streams {
                match &self.operators[node.index()] {
                    Operator::Stream(stream) => streams
                        .push(stream.start(&self.run_of(node, run), &self.sides(node, products))?),
                    _ => {
                        return Err(Error::internal(
                            "a node with role stream was not lowered to a stream",
                        ));
                    }
                }
            }
            base = drive(&*source, &streams, sink, &mut states, base)?;
            for index in 0..streams.len() {
                if let Some(rest) = streams[index].rest()? {
                    base = drive(&*rest, &streams[index + 1..], sink, &mut states, base)?;
                }
            }
        }
        Ok(states)
    }
}

/// Drives every morsel of a source through streams into a sink, with one thread per sink worker.
fn drive(
    source: &dyn SourceRun,
    streams: &[Arc<dyn StreamRun>],
    sink: &dyn SinkRun,
    states: &mut [Box<dyn SinkWorker>],
    base: u64,
) -> Result<u64> {
    let morsels = source.morsels();
    let next = AtomicUsize::new(0);
    let work = |state: &mut Box<dyn SinkWorker>| -> Result<()> {
        let mut workers = stream_workers(streams.iter(), sink)?;
        loop {
            let morsel = next.fetch_add(1, Ordering::SeqCst);
            if morsel >= morsels || sink.satisfied() {
                return Ok(());
            }
            state.begin(base + morsel as u64)?;
            workers.iter_mut().for_each(|worker| worker.begin(base + morsel as u64));
            let mut reader = source.open(morsel)?;
            loop {
                match reader.step()? {
                    Step::Again => {}
                    Step::HasOutput(chunk) if chunk.is_empty() => {}
                    Step::HasOutput(chunk) => pass(&mut workers, chunk, &mut **state)?,
                    Step::Blocked(token) => token.wait(Duration::from_millis(10)),
                    Step::Done => break,
                    Step::NeedInput => return Err(Error::internal("a source returned NeedInput")),
                }
            }
            for index in 0..workers.len() {
                let (first, after) = workers[index..].split_first_mut().unwrap();
                first.end()?;
                drain(first, after, &mut **state)?;
            }
            state.end()?;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = states.iter_mut().map(|state| scope.spawn(|| work(state))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    Ok(base + morsels as u64)
}

fn pass(
    workers: &mut [Box<dyn StreamWorker>],
    chunk: Chunk,
    sink: &mut dyn SinkWorker,
) -> Result<()> {
    match workers.split_first_mut() {
        None => sink.push(chunk),
        Some((first, after)) => {
            first.push(chunk)?;
            drain(first, after, sink)
        }
    }
}

fn drain(
    first: &mut Box<dyn StreamWorker>,
    after: &mut [Box<dyn StreamWorker>],
    sink: &mut dyn SinkWorker,
) -> Result<()> {
    loop {
        match first.step()? {
            Step::Again => {}
            Step::HasOutput(chunk) if chunk.is_empty() => {}
            Step::HasOutput(chunk) => pass(after, chunk, sink)?,
            Step::Blocked(token) => token.wait(Duration::from_millis(10)),
            Step::NeedInput | Step::Done => return Ok(()),
        }
    }
}
