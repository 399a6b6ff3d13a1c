//! MpiExecutor: runs its nested plan on all ranks; the result is that of the first.

use std::sync::Arc;

use tessera_context::Run;
use tessera_engine::{InShare, Sent};
use tessera_operator::platform::{Runtime, to_send};
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

/// Sub-operators that take part in collective steps, one each.
const COLLECTIVE: [&str; 5] =
    ["mpi_histogram", "mpi_window", "mpi_exchange", "mpi_receive", "mpi_broadcast"];

/// Runs `executor`: the first rank sends the nested plan to the others as text, and all run it,
/// each on its share.
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
            node.nested.first().ok_or_else(|| Error::internal("an executor without a plan"))?;
        let lowered = Lowered {
            link: self.link.clone(),
            plan: Arc::new(to_send(node, crate::NAME)?),
            steps: steps(plan).into(),
            roles: Roles::of(plan, self.link.ranks()),
        };
        Ok(Operator::Source(Arc::new(lowered)))
    }
}

/// The collective steps of a plan, in its order.
pub(crate) fn steps(plan: &Plan) -> Vec<StepId> {
    let is_collective = |(_, node): &(usize, &Node)| {
        let in_rounds =
            &*node.operator == "mpi_receive" && node.params.flag("rounds").unwrap_or(false);
        COLLECTIVE.contains(&&*node.operator) && !in_rounds
    };
    plan.nodes.iter().enumerate().filter(is_collective).map(|(position, _)| position).collect()
}

#[derive(Debug, Clone)]
struct Lowered {
    link: Arc<Link>,
    plan: Arc<Plan>,
    steps: Arc<[StepId]>,
    roles: Roles,
}

impl Source for Lowered {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let (lowered, nested, run) = (self.clone(), nested_plan(run)?, run.clone());
        Ok(one_morsel(move || {
            let (lowered, nested, run) = (lowered.clone(), nested.clone(), run.clone());
            Ok(Box::new(ExecutorReader { lowered, nested, run, state: State::New }))
        }))
    }
}

struct ExecutorReader {
    lowered: Lowered,
    nested: Arc<dyn NestedPlan>,
    run: Run,
    state: State,
}

enum State {
    New,
    /// The plan runs here; its result is read.
    Running(Box<dyn Reader>),
    /// The plan has run here, and maybe not yet everywhere.
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
                            // The result is the first rank's.
                            Step::HasOutput(_) if self.lowered.link.rank() > 0 => {}
                            step => return Ok(step),
                        }
                    }
                },
                State::Ending(reply, ran) => {
                    if !reply.token().is_ready() {
                        let token = reply.token();
                        self.state = State::Ending(reply, ran);
                        return Ok(Step::Blocked(token));
                    }
                    if let Outcome::Ended(figures) = reply.take()? {
                        figures.iter().try_for_each(|figures| self.nested.add_figures(figures))?;
                    }
                    ran?;
                }
                State::Ended => return Ok(Step::Done),
            }
        }
    }
}

impl ExecutorReader {
    fn begin(&self) -> Result<Box<dyn Reader>> {
        let Lowered { link, plan, steps, roles } = &self.lowered;
        let query = self.run.context.clone();
        if link.rank() == 0 {
            let sent = Sent {
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
        let context = InShare::context(query, share, move || ends.check());
        self.nested.stream(Chunk::unit(), &context)
    }

    /// The plan has run here, or it never will.
    fn end(&mut self, ran: Result<()>) {
        let link = &self.lowered.link;
        match &ran {
            Err(error) => link.request(Request::Failed(error.clone())),
            Ok(()) if link.rank() > 0 => link.request(Request::Figures(self.nested.figures())),
            Ok(()) => {}
        }
        self.state = State::Ending(link.end(), ran);
    }
}

impl Drop for ExecutorReader {
    /// Ends the plan on all ranks where its result is not read to the end.
    fn drop(&mut self) {
        if let State::Running(running) = std::mem::replace(&mut self.state, State::Ended) {
            drop(running);
            self.end(Err(Error::new(Code::Cancelled, "the result was not read to its end")));
        }
    }
}
