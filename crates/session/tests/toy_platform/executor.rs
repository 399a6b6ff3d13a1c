//! The executor: every worker runs the nested plan on its share; the first one's result counts.

use std::sync::Arc;

use tessera_context::{Run, Share};
use tessera_engine::{DriverPlan, QueryShare};
use tessera_operator::platform::{Runtime, plan_to_send};
use tessera_operator::stream_util::one_morsel;
use tessera_operator::{
    Lowering, NestedPlan, Operator, Reader, Source, SourceRun, Step, nested_plan,
};
use tessera_plan::{Node, Plan};
use tessera_rows::Collected;
use tessera_types::{Code, Error, Result};
use tessera_vector::Chunk;

use super::world::{SharedRun, Worker};

#[derive(Debug, Clone)]
pub(crate) struct ToyExecutor(pub(crate) Arc<Worker>);

impl Runtime for ToyExecutor {
    fn lower(&self, node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let plan = Arc::new(plan_to_send(node, super::NAME)?);
        Ok(Operator::Source(Arc::new(ExecutorOperator { worker: self.0.clone(), plan })))
    }
}

#[derive(Debug, Clone)]
struct ExecutorOperator {
    worker: Arc<Worker>,
    plan: Arc<Plan>,
}

impl Source for ExecutorOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let (operator, nested, run) = (self.clone(), nested_plan(run)?, run.clone());
        Ok(one_morsel(move || {
            let (operator, nested, run) = (operator.clone(), nested.clone(), run.clone());
            Ok(Box::new(ExecutorReader { operator, nested, run, state: State::New }))
        }))
    }
}

struct ExecutorReader {
    operator: ExecutorOperator,
    nested: Arc<dyn NestedPlan>,
    run: Run,
    state: State,
}

enum State {
    New,
    Running(Box<dyn Reader>, Arc<SharedRun>),
    /// This worker has ended; the first one waits for the others.
    Ending(Arc<SharedRun>),
    Ended,
}

impl Reader for ExecutorReader {
    fn step(&mut self) -> Result<Step> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::New => self.state = self.begin()?,
                State::Running(mut running, shared) => match running.step() {
                    Ok(Step::Done) => {
                        drop(running);
                        self.end(shared, Ok(()));
                    }
                    Err(error) => {
                        drop(running);
                        self.end(shared, Err(error));
                    }
                    Ok(step) => {
                        self.state = State::Running(running, shared);
                        match step {
                            Step::HasOutput(_) if self.operator.worker.index > 0 => {}
                            step => return Ok(step),
                        }
                    }
                },
                State::Ending(shared) => {
                    if self.operator.worker.index > 0 {
                        continue;
                    }
                    if !shared.all_ended.is_ready() {
                        let token = shared.all_ended.clone();
                        self.state = State::Ending(shared);
                        return Ok(Step::Blocked(token));
                    }
                    shared.check()?;
                    let figures = shared.figures();
                    figures.iter().try_for_each(|figures| self.nested.add_figures(figures))?;
                }
                State::Ended => return Ok(Step::Done),
            }
        }
    }
}

impl ExecutorReader {
    fn begin(&self) -> Result<State> {
        let ExecutorOperator { worker, plan } = &self.operator;
        let query = self.run.context.clone();
        let shared = match worker.index {
            0 => worker.begin(&DriverPlan {
                plan: (**plan).clone(),
                chunk_rows: query.chunk_rows(),
                memory_bytes: query.memory_bytes(),
            }),
            _ => worker.current()?,
        };
        let share = Share { index: worker.index, count: worker.workers };
        let checked = shared.clone();
        let context = QueryShare::context(query, share, move || checked.check());
        match self.nested.stream(Chunk::unit(), &context) {
            Ok(running) => Ok(State::Running(running, shared)),
            Err(error) => {
                shared.fail(error.clone(), worker.index);
                Err(error)
            }
        }
    }

    /// Reports the end of the plan on this worker.
    fn end(&mut self, shared: Arc<SharedRun>, result: Result<()>) {
        let worker = &self.operator.worker;
        if let Err(error) = result {
            shared.fail(error, worker.index);
        }
        shared.end(worker.index, (worker.index > 0).then(|| self.nested.figures()));
        worker.forget();
        self.state = State::Ending(shared);
    }
}

impl Drop for ExecutorReader {
    /// Ends the plan on all workers if its result was not read to the end.
    fn drop(&mut self) {
        if let State::Running(running, shared) = std::mem::replace(&mut self.state, State::Ended) {
            drop(running);
            let error = Error::new(Code::Cancelled, "the result was not read to its end");
            self.end(shared, Err(error));
        }
    }
}
