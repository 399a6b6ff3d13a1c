//! Runs one scan or one materialize sub-operator on real files.

// Each test file uses a part of this.
#![allow(dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use tessera_context::{Context, Output, Place, RangeReader, Run};
use tessera_operator::{Lowering, Operator, SinkRun, SourceRun, Step};
use tessera_plan::{Edge, Inputs, Node, Order, Params, Traits, Value};
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;

/// A context over local files.
#[derive(Debug)]
pub(crate) struct FileContext {
    chunk_rows: usize,
    held: AtomicUsize,
}

impl Context for FileContext {
    fn grow(&self, _place: Place, bytes: usize) -> Result<()> {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn shrink(&self, _place: Place, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn chunk_rows(&self) -> usize {
        self.chunk_rows
    }

    fn workers(&self) -> usize {
        2
    }

    fn open(&self, path: &str) -> Result<Arc<dyn RangeReader>> {
        tessera_files::open(path)
    }

    fn create(&self, path: &str) -> Result<Box<dyn Output>> {
        Ok(Box::new(tessera_files::AtomicFile::create(path)?))
    }
}

/// A run with this chunk size, and its context, for checks of the memory in use.
pub(crate) fn run(chunk_rows: usize) -> (Run, Arc<FileContext>) {
    let context = Arc::new(FileContext { chunk_rows, held: AtomicUsize::new(0) });
    let run = Run::new(context.clone());
    (run, context)
}

fn edge(tuple: Tuple) -> Edge {
    Edge { tuple, traits: Traits::DRIVER, order: Order::Source }
}

fn lower(operator: &str, params: Params, input: &Edge, inputs: usize) -> Result<(Operator, Edge)> {
    let registry = tessera_testing::standard_registry();
    let nodes = vec![tessera_plan::NodeId(0); inputs];
    let node = Node::new(operator, nodes, params, Vec::new());
    let inputs = std::slice::from_ref(input);
    let parameters = Tuple::empty();
    let implementation = registry.implementation(operator)?;
    let functions = registry.catalog().functions();
    let output = implementation.derive(
        &node,
        &Inputs { edges: inputs, nested: &[], parameters: &parameters, functions },
    )?;
    let lowering = Lowering {
        inputs,
        output: &output,
        parameters: &parameters,
        nested_outputs: Vec::new(),
        position: 0,
        library: registry.library(),
    };
    Ok((implementation.lower(&node, &lowering)?, output.clone()))
}

fn read(source: &Arc<dyn SourceRun>, chunk_rows: usize, tuple: &Tuple) -> Result<RecordBatch> {
    let mut batches = Vec::new();
    for morsel in 0..source.morsels() {
        let mut reader = source.open(morsel)?;
        loop {
            match reader.step()? {
                Step::HasOutput(chunk) => {
                    assert!(chunk.rows() <= chunk_rows && !chunk.is_empty());
                    batches.push(chunk.to_batch(tuple)?);
                }
                Step::Done => break,
                step => panic!("{step:?} from local files"),
            }
        }
    }
    Ok(concat_batches(&Arc::new(tuple.arrow_schema()?), &batches)?)
}

/// Returns all tuples of a scan.
pub(crate) fn scan(operator: &str, params: Params, chunk_rows: usize) -> Result<RecordBatch> {
    let (operator, output) = lower(operator, params, &edge(Tuple::empty()), 0)?;
    let Operator::Source(source) = operator else { panic!("a scan is a source") };
    let (run, context) = run(chunk_rows);
    let source = source.start(&run, &[])?;
    let batch = read(&source, chunk_rows, &output.tuple);
    assert_eq!(context.held.load(Ordering::Relaxed), 0, "memory is given back");
    batch
}

/// Writes a batch with its chunks split between two workers, and returns the sub-operator's output.
pub(crate) fn materialize(
    operator: &str,
    params: Params,
    batch: &RecordBatch,
    chunk_rows: usize,
) -> Result<RecordBatch> {
    let tuple = Tuple::from_arrow_schema(&batch.schema())?;
    let (operator, output) = lower(operator, params, &edge(tuple), 1)?;
    let Operator::Sink(sink) = operator else { panic!("materialize is a sink") };
    let (run, _) = run(chunk_rows);
    let sink: Arc<dyn SinkRun> = sink.start(&run, &[])?;
    let mut workers = vec![sink.worker()?, sink.worker()?];
    for (morsel, start) in (0..batch.num_rows()).step_by(chunk_rows * 2).enumerate() {
        let worker = &mut workers[morsel % 2];
        worker.begin(morsel as u64)?;
        for start in (start..batch.num_rows().min(start + chunk_rows * 2)).step_by(chunk_rows) {
            let slice = batch.slice(start, chunk_rows.min(batch.num_rows() - start));
            worker.push(Chunk::from_arrays(slice.columns().to_vec()))?;
        }
        worker.end()?;
    }
    let finish = sink.finish(workers)?;
    finish.tasks.into_iter().try_for_each(|task| task())?;
    read(&finish.output, chunk_rows, &output.tuple)
}

/// The parameters of a scan.
pub(crate) fn scan_params(paths: &[&str], columns: &Tuple) -> Params {
    let paths = paths.iter().map(|path| Value::string(*path)).collect::<Vec<_>>();
    Params::new().with("paths", paths).with("columns", columns.clone())
}
