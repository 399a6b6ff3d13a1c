//! `MpiExecutor`: runs its nested plan on all ranks and returns the first rank's result.

use std::sync::Arc;

use tessera_context::Run;
use tessera_engine::{DriverPlan, QueryShare};
use tessera_operator::platform::{Runtime, plan_to_send};
use tessera_operator::stream_util::one_morsel;
use tessera_operator::{
    Lowering, NestedPlan, Operator, Reader, Source, SourceRun, Step, nested_plan,
};
use tessera_plan::{Node, Plan, text};
use tessera_rows::Collected;
use tessera_types::{Code, Error, Result};
use tessera_vector::Chunk;

use crate::link::{Link, Outcome, Reply, Request, StepId};
use crate::roles::Roles;

/// Sub-operators that take one collective step each.
const COLLECTIVE: [&str; 5] =
    ["mpi_histogram", "mpi_window", "mpi_exchange", "mpi_receive", "mpi_broadcast"];

/// Runs `executor`: the first rank sends the nested plan to the others as text, and every rank runs
/// it on its share.
#[derive(Debug, Clone)]
pub(crate) struct MpiExecutor {
    link: Arc<Link>,
}

impl MpiExecutor {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        MpiExecutor { link }
    }
}

impl Runtime for MpiExecutor {
    fn lower(&self, node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        let plan =
            node.nested.first().ok_or_else(|| Error::internal("executor without a nested plan"))?;
        let operator = ExecutorOperator {
            link: self.link.clone(),
            plan: Arc::new(plan_to_send(node, crate::NAME)?),
            steps: steps(plan).into(),
            roles: Roles::of(plan, self.link.ranks()),
        };
        Ok(Operator::Source(Arc::new(operator)))
    }
}

/// Returns the collective steps of a plan, in plan order.
pub(crate) fn steps(plan: &Plan) -> Vec<StepId> {
    let is_collective = |(_, node): &(usize, &Node)| {
        let in_rounds =
            &*node.operator == "mpi_receive" && node.params.flag("rounds").unwrap_or(false);
        COLLECTIVE.contains(&&*node.operator) && !in_rounds
    };
    plan.nodes.iter().enumerate().filter(is_collective).map(|(position, _)| position).collect()
}

#[derive(Debug, Clone)]
struct ExecutorOperator {
    link: Arc<Link>,
    plan: Arc<Plan>,
    steps: Arc<[StepId]>,
    roles: Roles,
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
    /// The plan is running here and its result is being read.
    Running(Box<dyn Reader>),
    /// The plan has ended here, but perhaps not on every rank.
    Ending(Arc<Reply>, Result<()>),
    Ended,
}

impl Reader for ExecutorReader {
    fn step(&mut self) -> Result<Step> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::New => match self.begin() {
                    Ok(running) => self.state = State::Running(running),
                    Err(error) => self.end(Err(error)),
                },
                State::Running(mut running) => match running.step() {
                    Ok(Step::Done) => {
                        drop(running);
                        self.end(Ok(()));
                    }
                    Err(error) => {
                        drop(running);
                        self.end(Err(error));
                    }
                    Ok(step) => {
                        self.state = State::Running(running);
                        match step {
                            // Only the first rank's output is the result.
                            Step::HasOutput(_) if self.operator.link.rank() > 0 => {}
                            step => return Ok(step),
                        }
                    }
                },
                State::Ending(reply, result) => {
                    if !reply.token().is_ready() {
                        let token = reply.token();
                        self.state = State::Ending(reply, result);
                        return Ok(Step::Blocked(token));
                    }
                    if let Outcome::Ended(figures) = reply.take()? {
                        figures.iter().try_for_each(|figures| self.nested.add_figures(figures))?;
                    }
                    result?;
                }
                State::Ended => return Ok(Step::Done),
            }
        }
    }
}

impl ExecutorReader {
    fn begin(&self) -> Result<Box<dyn Reader>> {
        let ExecutorOperator { link, plan, steps, roles } = &self.operator;
        let query = self.run.context.clone();
        if link.rank() == 0 {
            let sent = DriverPlan {
                plan: (**plan).clone(),
                chunk_rows: query.chunk_rows(),
                memory_bytes: query.memory_bytes(),
            };
            link.set_failure(None);
            link.request(Request::Begin(text::print(plan), sent, steps.to_vec()));
        }
        link.set_memory(query.memory_bytes());
        link.request(Request::Budget(query.clone()));
        let (share, ends) = (roles.share(link.rank()), link.clone());
        let context = QueryShare::context(query, share, move || ends.check());
        self.nested.stream(Chunk::unit(), &context)
    }

    /// Reports the end of the plan here, with its result.
    fn end(&mut self, result: Result<()>) {
        let link = &self.operator.link;
        match &result {
            Err(error) => link.request(Request::Failed(error.clone())),
            Ok(()) if link.rank() > 0 => link.request(Request::Figures(self.nested.figures())),
            Ok(()) => {}
        }
        self.state = State::Ending(link.end(), result);
    }
}

impl Drop for ExecutorReader {
    /// Cancels the plan on all ranks if its result was not read to the end.
    fn drop(&mut self) {
        if let State::Running(running) = std::mem::replace(&mut self.state, State::Ended) {
            drop(running);
            self.end(Err(Error::new(Code::Cancelled, "the result was not read to its end")));
        }
    }
}
