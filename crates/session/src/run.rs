//! Runs plans: memory is asked for, they are compiled, and a plan that has run out of memory is
//! tried as one that needs less.

use std::sync::Arc;
use std::time::Instant;

use tessera_codegen::Compiler;
use tessera_context::Scratch;
use tessera_engine::{
    CompiledPlan, Engine, Governor, Memory, Pass, Phase, Platform, Query, QueryRun, RunRecord,
};
use tessera_files::ScratchFile;
use tessera_operator::Registry;
use tessera_optimizer::physical::check_after;
use tessera_plan::{Catalogue, Plan, Rules, Traits, verify};
use tessera_rows::Collected;
use tessera_types::{Code, Error, Result};

use crate::cancel::{Cancel, Stopped};
use crate::settings::Values;
use crate::storage::Storage;

/// What plans need of a session to run; a result that is read later keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    pub(crate) registry: Arc<Registry>,
    pub(crate) platform: Arc<dyn Platform>,
    /// Of extensions.
    pub(crate) passes: Arc<[Pass]>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) storage: Storage,
    pub(crate) cancel: Cancel,
    pub(crate) values: Values,
}

/// A plan that can run, let into the process's memory.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) record: Arc<RunRecord>,
    pub(crate) query: Arc<Query>,
    pub(crate) governor: Arc<Governor>,
    pub(crate) compiler: Option<Arc<dyn Compiler>>,
    pub(crate) planned_at: Instant,
}

/// A plan that has run, and its result.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) ready: Ready,
    pub(crate) collected: Arc<Collected>,
}

impl Runner {
    /// Runs a plan to its end on the platform; once more where it has run out of memory and the
    /// platform knows a plan that needs less, unless what the first has written went to a stream.
    /// Gives the plan that has run, too.
    pub(crate) fn run_here(&self, plan: &Plan) -> Result<(Plan, Ran)> {
        let first = self.for_platform(plan)?;
        match self.run(&first) {
            Err(error) if error.code() == Code::Limit && !self.storage.has_streamed() => {
                match self.frugal(plan)? {
                    Some(frugal) => self.run(&frugal).map(|ran| (frugal, ran)),
                    None => Err(error),
                }
            }
            ran => ran.map(|ran| (first, ran)),
        }
    }

    pub(crate) fn run(&self, plan: &Plan) -> Result<Ran> {
        let ready = self.prepare(plan)?;
        let collected = self.engine.run_recorded(&ready.record, ready.query.clone());
        let collected = collected.map_err(|error| self.stopped(&ready, error))?;
        Ok(Ran { ready, collected })
    }

    /// Starts a plan whose result is read while it comes.
    pub(crate) fn start(&self, plan: &Plan) -> Result<(Ready, QueryRun)> {
        let ready = self.prepare(plan)?;
        let run = self.engine.start(&ready.record, ready.query.clone())?;
        Ok((ready, run))
    }

    /// The plan for the platform.
    pub(crate) fn for_platform(&self, plan: &Plan) -> Result<Plan> {
        let plan =
            self.platform.pass(plan, self.registry.catalogue(), self.values.planning.rules)?;
        self.distributed(plan)
    }

    fn distributed(&self, plan: Plan) -> Result<Plan> {
        let rules = self.values.planning.rules;
        after_passes(&self.passes, Phase::Distributed, plan, self.registry.catalogue(), rules)
    }

    /// The plan for the platform that needs less memory, where there is one.
    pub(crate) fn frugal(&self, plan: &Plan) -> Result<Option<Plan>> {
        let frugal = self.platform.frugal_pass(
            plan,
            self.registry.catalogue(),
            self.values.planning.rules,
        )?;
        frugal.map(|plan| self.distributed(plan)).transpose()
    }

    /// Verifies a plan, before anything else is done for it, and compiles it within the memory that
    /// it is let into.
    fn prepare(&self, plan: &Plan) -> Result<Ready> {
        let verified = verify(plan, self.registry.catalogue())?;
        let waits = || self.cancel.set(|running| running.waiting = true);
        let admitted = self.memory.admit(
            self.values.memory_bytes,
            (&self.cancel.interrupt, self.values.admission_timeout),
            waits,
        )?;
        self.cancel.set(|running| running.waiting = false);
        let governor = Governor::within(self.values.memory_bytes, admitted);
        let settings = self.query_settings(self.values.chunk_rows);
        let compiler = settings.compiler.clone();
        let query = Query::new(settings, &governor);
        self.storage.prepare(plan)?;
        let record =
            RunRecord::new(&CompiledPlan::lower_verified(plan, &verified, &self.registry)?);
        self.cancel.interrupt.check()?;
        self.cancel.set(|running| running.record = Some(record.clone()));
        Ok(Ready { record, query, governor, compiler, planned_at: Instant::now() })
    }

    /// Notes how a run came to an end before its time.
    pub(crate) fn stopped(&self, ready: &Ready, error: Error) -> Error {
        let last = ready.record.last_job().unwrap_or_default();
        let stopped = Stopped { held_bytes: ready.governor.used_bytes(), last };
        self.cancel.set(|running| running.stopped = Some(stopped));
        error
    }

    pub(crate) fn query_settings(&self, chunk_rows: usize) -> tessera_engine::Settings {
        let (opener, creator) = (self.storage.opener(), self.storage.creator());
        let directory = self.values.temp_directory.clone();
        let scratch = move || Ok(Arc::new(ScratchFile::create(&directory)?) as Arc<dyn Scratch>);
        let interrupt = self.cancel.interrupt.clone();
        let (scratch, compiler) = (Some(Arc::new(scratch) as _), self.values.compiler());
        tessera_engine::Settings { chunk_rows, interrupt, opener, creator, scratch, compiler }
    }
}

/// A plan after the passes of a phase.
pub(crate) fn after_passes(
    passes: &[Pass],
    phase: Phase,
    plan: Plan,
    catalogue: &Catalogue,
    rules: Rules,
) -> Result<Plan> {
    passes.iter().filter(|pass| pass.phase == phase).try_fold(plan, |plan, pass| {
        let plan = (pass.rewrite)(plan, catalogue, rules)?;
        check_after(pass.name, &plan, catalogue, Traits::DRIVER)?;
        Ok(plan)
    })
}
