//! LambdaExecutor on a worker: runs the nested plan on this worker's share; the first worker's result becomes an object.

use std::sync::{Arc, Mutex};

use arrow::array::RecordBatch;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use tessera_context::{Run, Share, Token, lock};
use tessera_engine::InShare;
use tessera_operator::platform::Runtime;
use tessera_operator::{Lowering, NestedPlan, Operator, Reader, Source, SourceRun, Step};
use tessera_plan::Node;
use tessera_rows::Collected;
use tessera_types::{Error, Result, Tuple};
use tessera_vector::{Chunk, own_strings};

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
        Ok(Box::new(ExecutorReader { lowered, task, run, state: State::New }))
    }
}

struct ExecutorReader {
    lowered: Lowered,
    task: Arc<Task>,
    run: Run,
    state: State,
}

enum State {
    New,
    /// The plan runs here; the first worker encodes its result.
    Running(Box<dyn Reader>, Box<Encoder>),
    Writing(Writing),
    Ended,
}

/// The result on its way to the store.
type Writing = (Token, Arc<Mutex<Option<Result<bool>>>>);

impl Reader for ExecutorReader {
    fn step(&mut self) -> Result<Step> {
        loop {
            match &mut self.state {
                State::New => {
                    self.state = State::Running(self.begin()?, Box::new(Encoder::new(&self.lowered.tuple)?))
                }
                State::Running(running, encoder) => match running.step()? {
                    Step::HasOutput(chunk) if self.task.order.index == 0 => encoder.add(&chunk)?,
                    Step::HasOutput(_) => {}
                    Step::Done => self.state = self.ran()?,
                    other => return Ok(other),
                },
                State::Writing((token, done)) => {
                    if !token.is_ready() {
                        return Ok(Step::Blocked(token.clone()));
                    }
                    let written = lock(done).take().unwrap_or(Ok(true));
                    self.state = State::Ended;
                    written?;
                }
                State::Ended => return Ok(Step::Done),
            }
        }
    }
}

impl ExecutorReader {
    fn begin(&self) -> Result<Box<dyn Reader>> {
        let (order, ends) = (&self.task.order, self.task.clone());
        let share = Share { index: order.index, count: order.workers };
        let context = InShare::context(self.run.context.clone(), share, move || ends.stop.check());
        self.lowered.nested.stream(Chunk::unit(), &context)
    }

    /// The plan has run: the first worker writes its result.
    fn ran(&mut self) -> Result<State> {
        let State::Running(running, encoder) = std::mem::replace(&mut self.state, State::Ended) else {
            return Ok(State::Ended);
        };
        drop(running);
        *lock(&self.task.figures) = Some(self.lowered.nested.figures());
        if self.task.order.index > 0 {
            return Ok(State::Ended);
        }
        let bytes = encoder.finish()?;
        let writing: Writing = Default::default();
        let (token, done) = writing.clone();
        let task = self.task.clone();
        self.task.io.spawn(async move {
            *lock(&done) = Some(task.put_new(RESULT.to_string(), bytes.into()).await);
            token.set_ready();
        });
        Ok(State::Writing(writing))
    }
}

/// The result as an Arrow stream, which is what the driver passes on.
struct Encoder {
    tuple: Tuple,
    writer: StreamWriter<Vec<u8>>,
}

impl Encoder {
    fn new(tuple: &Tuple) -> Result<Self> {
        let schema = tuple.arrow_schema()?;
        Ok(Encoder { tuple: tuple.clone(), writer: StreamWriter::try_new(Vec::new(), &schema)? })
    }

    fn add(&mut self, chunk: &Chunk) -> Result<()> {
        if self.tuple.fields().is_empty() {
            let message =
                "on platform serverless: a result without columns is not supported; select a column";
            return Err(Error::unsupported(message));
        }
        // A stream would carry all of the buffers that views refer to.
        let batch = chunk.to_batch(&self.tuple)?;
        let columns = batch.columns().iter().map(own_strings).collect();
        Ok(self.writer.write(&RecordBatch::try_new(batch.schema(), columns)?)?)
    }

    fn finish(mut self) -> Result<Vec<u8>> {
        self.writer.finish()?;
        Ok(self.writer.into_inner()?)
    }
}

/// The chunks of a result.
///
/// # Errors
/// It is damaged.
pub(crate) fn decode(bytes: &Bytes) -> Result<Vec<Chunk>> {
    let reader = StreamReader::try_new(&bytes[..], None)?;
    reader.map(|batch| Ok(Chunk::from_arrays(batch?.columns().to_vec()))).collect()
}
