//! The executor on a worker: runs the nested plan on its share; the first worker writes the result.

use std::sync::Arc;

use tessera_context::{Run, Share, lock};
use tessera_engine::QueryShare;
use tessera_operator::platform::Runtime;
use tessera_operator::stream_util::one_morsel;
use tessera_operator::{
    Lowering, NestedPlan, Operator, Reader, Source, SourceRun, Step, nested_plan,
};
use tessera_plan::Node;
use tessera_rows::Collected;
use tessera_types::{Result, Tuple};
use tessera_vector::Chunk;

use crate::result::Writer;
use crate::task::Task;
use crate::worker::Worker;

/// Runs `executor` on a worker.
#[derive(Debug, Clone)]
pub(crate) struct WorkerRuntime(pub(crate) Arc<Worker>);

impl Runtime for WorkerRuntime {
    fn lower(&self, _node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuple = lowering.output.tuple.clone();
        Ok(Operator::Source(Arc::new(ExecutorOperator { worker: self.0.clone(), tuple })))
    }
}

#[derive(Debug, Clone)]
struct ExecutorOperator {
    worker: Arc<Worker>,
    tuple: Tuple,
}

impl Source for ExecutorOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let (operator, nested) = (self.clone(), nested_plan(run)?);
        let (task, run) = (self.worker.task()?, run.clone());
        Ok(one_morsel(move || {
            let (operator, nested) = (operator.clone(), nested.clone());
            let (task, run) = (task.clone(), run.clone());
            Ok(Box::new(ExecutorReader { operator, nested, task, run, state: State::New }))
        }))
    }
}

struct ExecutorReader {
    operator: ExecutorOperator,
    nested: Arc<dyn NestedPlan>,
    task: Arc<Task>,
    run: Run,
    state: State,
}

enum State {
    New,
    /// The plan is running; the first worker writes its result.
    Running(Box<dyn Reader>, Option<Box<Writer>>),
    /// The plan has ended; the first worker writes the rest of its result.
    Writing(Box<Writer>),
    Ended,
}

impl Reader for ExecutorReader {
    fn step(&mut self) -> Result<Step> {
        loop {
            match &mut self.state {
                State::New => self.state = self.begin()?,
                State::Running(running, writer) => {
                    if let Some(token) =
                        writer.as_mut().map_or(Ok(None), |writer| writer.blocked())?
                    {
                        return Ok(Step::Blocked(token));
                    }
                    match (running.step()?, writer) {
                        (Step::HasOutput(chunk), Some(writer)) => writer.add(&chunk)?,
                        (Step::HasOutput(_), None) => {}
                        (Step::Done, _) => self.state = self.end_plan(),
                        (other, _) => return Ok(other),
                    }
                }
                State::Writing(writer) => match writer.finish()? {
                    Some(token) => return Ok(Step::Blocked(token)),
                    None => self.state = State::Ended,
                },
                State::Ended => return Ok(Step::Done),
            }
        }
    }
}

impl ExecutorReader {
    fn begin(&self) -> Result<State> {
        let (order, ends) = (&self.task.order, self.task.clone());
        let tuple = &self.operator.tuple;
        let writer = match order.index {
            0 => Some(Box::new(Writer::new(self.task.clone(), tuple, &self.run.context)?)),
            _ => None,
        };
        let share = Share { index: order.index, count: order.workers };
        let context =
            QueryShare::context(self.run.context.clone(), share, move || ends.stop.check());
        Ok(State::Running(self.nested.stream(Chunk::unit(), &context)?, writer))
    }

    /// Ends the plan; the first worker writes the rest of its result next.
    fn end_plan(&mut self) -> State {
        let State::Running(running, writer) = std::mem::replace(&mut self.state, State::Ended)
        else {
            return State::Ended;
        };
        drop(running);
        *lock(&self.task.figures) = Some(self.nested.figures());
        writer.map_or(State::Ended, State::Writing)
    }
}
