//! Runs plans: admits them, compiles them, and retries a plan that has run out of memory as one
//! that needs less.

use std::sync::Arc;
use std::time::Instant;

use tessera_codegen::Compiler;
use tessera_context::Scratch;
use tessera_engine::{
    CompiledPlan, Engine, Governor, Memory, Pass, Phase, Platform, Query, QueryRun, RunRecord,
};
use tessera_files::ScratchFile;
use tessera_operator::Registry;
use tessera_optimizer::physical::{self, check_after};
use tessera_plan::{OperatorCatalog, Plan, Rules, Traits, verify};
use tessera_rows::Collected;
use tessera_types::{Code, Error, Result};

use crate::cancel::{Cancel, StopReport};
use crate::settings::Values;
use crate::storage::Storage;

/// The parts of a session that a plan needs to run. A result stream keeps them.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    pub(crate) registry: Arc<Registry>,
    pub(crate) platform: Arc<dyn Platform>,
    /// The passes of extensions.
    pub(crate) passes: Arc<[Pass]>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) storage: Storage,
    pub(crate) cancel: Cancel,
    pub(crate) values: Values,
}

/// An admitted plan, ready to run.
#[derive(Debug)]
pub(crate) struct PreparedRun {
    pub(crate) record: Arc<RunRecord>,
    pub(crate) query: Arc<Query>,
    pub(crate) governor: Arc<Governor>,
    pub(crate) compiler: Option<Arc<dyn Compiler>>,
    pub(crate) planned_at: Instant,
}

/// A finished run and its result.
#[derive(Debug)]
pub(crate) struct FinishedRun {
    pub(crate) ready: PreparedRun,
    pub(crate) collected: Arc<Collected>,
}

impl Runner {
    /// Optimizes a plan: the physical rewrites, then the passes of extensions.
    ///
    /// # Errors
    /// The statement is cancelled, or a pass fails.
    pub(crate) fn optimized(&self, plan: &Plan) -> Result<Plan> {
        let (catalog, rules) = (self.registry.catalog(), self.values.planning.rules);
        self.cancel.interrupt.check()?;
        let plan = physical::optimize(plan, catalog, rules)?;
        after_passes(&self.passes, Phase::Optimized, plan, catalog, rules)
    }

    /// Runs a plan on the platform. If it runs out of memory, runs the platform's plan that needs
    /// less memory, if there is one and nothing was written to a stream. Returns the executed plan
    /// too.
    ///
    /// # Errors
    /// The error of the last run.
    pub(crate) fn run_with_retry(&self, plan: &Plan) -> Result<(Plan, FinishedRun)> {
        let first = self.for_platform(plan)?;
        match self.run(&first) {
            Err(error) if error.code() == Code::Limit && !self.storage.has_streamed() => {
                match self.frugal(plan)? {
                    Some(frugal) => self.run(&frugal).map(|finished| (frugal, finished)),
                    None => Err(error),
                }
            }
            result => result.map(|finished| (first, finished)),
        }
    }

    /// Runs a plan to its end.
    ///
    /// # Errors
    /// The plan is invalid, it fails, or the statement is cancelled.
    pub(crate) fn run(&self, plan: &Plan) -> Result<FinishedRun> {
        let ready = self.prepare(plan)?;
        let collected = self.engine.run_recorded(&ready.record, ready.query.clone());
        let collected = collected.map_err(|error| self.record_stop(&ready, error))?;
        Ok(FinishedRun { ready, collected })
    }

    /// Starts a plan whose result is a stream.
    ///
    /// # Errors
    /// The plan is invalid, or the statement is cancelled while it waits for memory.
    pub(crate) fn start(&self, plan: &Plan) -> Result<(PreparedRun, QueryRun)> {
        let ready = self.prepare(plan)?;
        let run = self.engine.start(&ready.record, ready.query.clone())?;
        Ok((ready, run))
    }

    /// The plan for the platform: its pass and those of extensions are applied.
    ///
    /// # Errors
    /// A pass fails, or returns an invalid plan.
    pub(crate) fn for_platform(&self, plan: &Plan) -> Result<Plan> {
        let plan = self.platform.pass(plan, self.registry.catalog(), self.values.planning.rules)?;
        self.distributed(plan)
    }

    fn distributed(&self, plan: Plan) -> Result<Plan> {
        let rules = self.values.planning.rules;
        after_passes(&self.passes, Phase::Distributed, plan, self.registry.catalog(), rules)
    }

    /// The plan for the platform that needs less memory, if there is one.
    ///
    /// # Errors
    /// A pass fails, or returns an invalid plan.
    pub(crate) fn frugal(&self, plan: &Plan) -> Result<Option<Plan>> {
        let frugal =
            self.platform.frugal_pass(plan, self.registry.catalog(), self.values.planning.rules)?;
        frugal.map(|plan| self.distributed(plan)).transpose()
    }

    /// Verifies a plan first, then admits and compiles it.
    fn prepare(&self, plan: &Plan) -> Result<PreparedRun> {
        let verified = verify(plan, self.registry.catalog())?;
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
        Ok(PreparedRun { record, query, governor, compiler, planned_at: Instant::now() })
    }

    /// Records how a failed run ended.
    pub(crate) fn record_stop(&self, ready: &PreparedRun, error: Error) -> Error {
        let last = ready.record.last_job().unwrap_or_default();
        let stopped = StopReport { held_bytes: ready.governor.used_bytes(), last };
        self.cancel.set(|running| running.stopped = Some(stopped));
        error
    }

    /// The settings of a query that this session runs.
    pub(crate) fn query_settings(&self, chunk_rows: usize) -> tessera_engine::Settings {
        let (opener, creator) = (self.storage.opener(), self.storage.creator());
        let folder_creator = self.storage.folder_creator();
        let directory = self.values.temp_directory.clone();
        let scratch = move || Ok(Arc::new(ScratchFile::create(&directory)?) as Arc<dyn Scratch>);
        let interrupt = self.cancel.interrupt.clone();
        let (scratch, compiler) = (Some(Arc::new(scratch) as _), self.values.compiler());
        let lanes = self.values.device.lanes;
        tessera_engine::Settings {
            chunk_rows,
            interrupt,
            opener,
            creator,
            folder_creator,
            scratch,
            compiler,
            lanes,
            rejects: Some(self.storage.begin_rejects()),
        }
    }
}

/// Applies the passes of a phase to a plan.
///
/// # Errors
/// A pass fails, or returns an invalid plan.
pub(crate) fn after_passes(
    passes: &[Pass],
    phase: Phase,
    plan: Plan,
    catalog: &OperatorCatalog,
    rules: Rules,
) -> Result<Plan> {
    passes.iter().filter(|pass| pass.phase == phase).try_fold(plan, |plan, pass| {
        let plan = (pass.rewrite)(plan, catalog, rules)?;
        check_after(pass.name, &plan, catalog, Traits::DRIVER)?;
        Ok(plan)
    })
}
