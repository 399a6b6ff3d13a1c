//! LambdaExecutor on a worker: runs the nested plan on this worker's share; the first worker's result becomes an object.

use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use tessera_encodings::{Chunk, own_strings};
use tessera_exec::InShare;
use tessera_ops::orchestration::Runtime;
use tessera_ops::{
    Collected, Lowering, NestedPlan, Operator, Reader, Run, Share, Source, SourceRun, Step, Token, lock,
};
use tessera_plan::Node;
use tessera_types::{Error, Result, Tuple};

use crate::task::Task;
use crate::worker::Worker;

/// The first worker's result.
pub(crate) const RESULT: &str = "result";

/// Runs `executor` on a worker.
#[derive(Debug, Clone)]
pub(crate) struct OnWorkers(pub(crate) Arc<Worker>);

impl Runtime for OnWorkers {
    fn lower(&self, _node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let nested = lowering.nested.first().cloned();
        let nested = nested.ok_or_else(|| Error::internal("an executor without a plan"))?;
        let tuple = lowering.output.tuple.clone();
        Ok(Operator::Source(Arc::new(Lowered { worker: self.0.clone(), nested, tuple })))
    }
}

#[derive(Debug, Clone)]
struct Lowered {
    worker: Arc<Worker>,
    nested: Arc<dyn NestedPlan>,
    tuple: Tuple,
}

impl Source for Lowered {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        Ok(Arc::new(ExecutorRun { lowered: self.clone(), task: self.worker.task()?, run: run.clone() }))
    }
}

#[derive(Debug)]
struct ExecutorRun {
    lowered: Lowered,
    task: Arc<Task>,
    run: Run,
}

impl SourceRun for ExecutorRun {
    fn morsels(&self) -> usize {
        1
    }

    fn open(&self, _morsel: usize) -> Result<Box<dyn Reader>> {
        let (lowered, task, run) = (self.lowered.clone(), self.task.clone(), self.run.clone());
        Ok(Box::new(ExecutorReader { lowered, task, run, writing: None }))
    }
}

struct ExecutorReader {
    lowered: Lowered,
    task: Arc<Task>,
    run: Run,
    writing: Option<Writing>,
}

/// The result on its way to the store.
type Writing = (Token, Arc<Mutex<Option<Result<bool>>>>);

impl Reader for ExecutorReader {
    fn step(&mut self) -> Result<Step> {
        if self.writing.is_none() {
            let (order, ends) = (&self.task.order, self.task.clone());
            let share = Share { index: order.index, count: order.workers };
            let context = InShare::context(self.run.context.clone(), share, move || ends.stop.check());
            let collected = self.lowered.nested.run_parallel(Chunk::unit(), &context)?;
            *lock(&self.task.figures) = Some(self.lowered.nested.figures());
            if self.task.order.index > 0 {
                return Ok(Step::Done);
            }
            let bytes = encode(&collected, &self.lowered.tuple)?;
            let writing: Writing = Default::default();
            let (token, done) = writing.clone();
            let task = self.task.clone();
            self.task.io.spawn(async move {
                *lock(&done) = Some(task.space.put_new(RESULT, bytes.into()).await);
                token.set_ready();
            });
            self.writing = Some(writing);
        }
        match &self.writing {
            Some((token, _)) if !token.is_ready() => Ok(Step::Blocked(token.clone())),
            Some((_, done)) => lock(done).take().unwrap_or(Ok(true)).map(|_| Step::Done),
            None => Ok(Step::Done),
        }
    }
}

fn schema(tuple: &Tuple) -> Result<SchemaRef> {
    Ok(Arc::new(tuple.arrow_schema()?))
}

/// The result as an Arrow stream, which is what the driver passes on.
fn encode(collected: &Collected, tuple: &Tuple) -> Result<Vec<u8>> {
    let schema = schema(tuple)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    for chunk in collected.chunks.iter().filter(|chunk| !chunk.is_empty()) {
        // A stream would carry all of the buffers that views refer to.
        let columns = chunk.to_batch(tuple)?.columns().iter().map(own_strings).collect();
        writer.write(&RecordBatch::try_new(schema.clone(), columns)?)?;
    }
    writer.finish()?;
    Ok(writer.into_inner()?)
}

/// The chunks of a result.
///
/// # Errors
/// It is damaged.
pub(crate) fn decode(bytes: &Bytes) -> Result<Vec<Chunk>> {
    let reader = StreamReader::try_new(&bytes[..], None)?;
    reader.map(|batch| Ok(Chunk::from_arrays(batch?.columns().to_vec()))).collect()
}
