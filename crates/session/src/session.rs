//! A session: the tables, settings and statements of one user.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use arrow::array::ArrayRef;
use tessera_binder::{Definitions, Parameters, PlannedQuery};
use tessera_context::read_buffer;
use tessera_engine::{
    CompiledPlan, DriverPlan, Engine, Governor, Memory, Pass, Platform, Query, Setup,
};
use tessera_formats::block::BlockScan;
use tessera_functions::Library;
use tessera_jit::CompilerLease;
use tessera_operator::Registry;
use tessera_parser::ParsedStatement;
use tessera_plan::{Plan, Traits, text, verify, verify_in};
use tessera_sql::Statement;
use tessera_types::{Error, Result, Tuple, redact, suggest};

use crate::cancel::{Cancel, RunningGuard};
use crate::catalog::FileCatalog;
use crate::config::Config;
use crate::plan_cache::{KnownPlan, PlanCache};
use crate::planning::run_interruptible;
use crate::result::{QueryResult, ResultColumns, StatementResult};
use crate::run::Runner;
use crate::settings::Values;
use crate::source::TableSampler;
use crate::stack::{catch_panics, with_big_stack};
use crate::statements::{describe, rows, rows_written, texts};
use crate::storage::{Storage, StreamAccess};
use crate::stream::{OpenStream, ResultStream, StatementOutput};

/// Threads cache read buffers of at most 1/`READ_BUFFER_SHARE` of a statement's budget.
const READ_BUFFER_SHARE: usize = 32;

/// A session: the tables, settings and statements of one user.
#[derive(Debug)]
pub struct Session {
    pub(crate) registry: Arc<Registry>,
    /// The platform that runs its statements.
    pub(crate) platform: Arc<dyn Platform>,
    /// The platforms whose plans it can explain.
    pub(crate) platforms: Vec<Arc<dyn Platform>>,
    pub(crate) passes: Arc<[Pass]>,
    pub(crate) engine: Arc<Engine>,
    /// The memory of all sessions of the process.
    pub(crate) memory: Arc<Memory>,
    pub(crate) config: Config,
    pub(crate) storage: Storage,
    pub(crate) catalog: FileCatalog,
    /// Macros, variables and prepared statements.
    pub(crate) definitions: Definitions,
    /// The plans of earlier queries.
    plans: PlanCache,
    pub(crate) sampler: TableSampler,
    pub(crate) initial: Values,
    pub(crate) values: Values,
    pub(crate) cancel: Cancel,
    /// The scans whose rejects were kept.
    pub(crate) reject_scans: u64,
    /// Whether a result stream is open.
    pub(crate) open: Arc<AtomicBool>,
    /// Allows compilation in the background while the session lives.
    _compiler_lease: CompilerLease,
}

impl Session {
    /// Opens a session: installs the extensions, starts the workers and checks the database
    /// directory.
    ///
    /// # Errors
    /// Two extensions register the same name, the platform is unknown, the database is not a
    /// directory, a setting is out of range, or a thread cannot be started.
    pub fn new(config: Config) -> Result<Session> {
        let memory = Memory::new(config.process_memory_bytes.max(config.memory_bytes));
        // The buffers do not count for any budget, so they must be small in comparison.
        read_buffer::set_cached_bytes_max(config.memory_bytes / READ_BUFFER_SHARE);
        Session::with(config, None, memory)
    }

    /// Opens another session with the same configuration. The statements of both share the workers
    /// fairly, and the memory of the process. A session that sets `threads` starts its own workers.
    ///
    /// # Errors
    /// As [`Session::new`], or the platform runs one statement at a time.
    pub fn beside(&self) -> Result<Session> {
        if !self.platform.concurrent_statements() {
            let name = self.platform.name();
            return Err(Error::unsupported(format!(
                "cannot open another session on platform {name}, which runs one statement at a time; start another process"
            )));
        }
        let config = Config { threads: self.engine.workers(), ..self.config.clone() };
        Session::with(config, Some(self.engine.clone()), self.memory.clone())
    }

    fn with(config: Config, engine: Option<Arc<Engine>>, memory: Arc<Memory>) -> Result<Session> {
        let mut setup = Setup::new(Registry::new(Arc::new(Library::default())));
        for extension in &config.extensions {
            let name = extension.name();
            extension
                .install(&mut setup)
                .map_err(|error| error.context(format!("extension {name}")))?;
        }
        let platforms = setup.platforms().to_vec();
        let platform = find_platform(&platforms, &config.platform)?.clone();
        let streams = match platform.accepts_local_paths() {
            true if config.sql_from_stdin => StreamAccess::NotStandardInput,
            true => StreamAccess::All,
            false => StreamAccess::Refused(platform.name().to_string()),
        };
        let storage = Storage::new(config.stores.clone(), streams, setup.formats().clone());
        storage.install(&mut setup)?;
        let values = Values::new(&config, setup.settings(), setup.devices())?;
        values.apply()?;
        storage.set_smart(values.smart_storage);
        let engine = match engine {
            Some(engine) => engine,
            None => Arc::new(Engine::new(values.threads)?),
        };
        let passes = setup.passes().into();
        let mut catalog = FileCatalog::new(
            config.database.clone(),
            storage.clone(),
            setup.table_catalogs().to_vec(),
        )?;
        let mut registry = setup.into_registry(&*platform);
        registry.register(BlockScan::new(catalog.tables().clone()));
        let registry = Arc::new(registry);
        let sampler =
            TableSampler::new(registry.clone(), storage.clone(), config.statistics_cache.clone());
        catalog.set_sampler(values.samples.then(|| sampler.clone()));
        let cancel = Cancel::new(storage.interrupt());
        Ok(Session {
            registry,
            platform,
            platforms,
            passes,
            engine,
            memory,
            catalog,
            definitions: Definitions::default(),
            plans: PlanCache::default(),
            sampler,
            config,
            storage,
            initial: values.clone(),
            values,
            cancel,
            reject_scans: 0,
            open: Arc::default(),
            _compiler_lease: CompilerLease::new(),
        })
    }

    /// A handle that cancels the running statement.
    pub fn cancel_handle(&self) -> Cancel {
        self.cancel.clone()
    }

    /// The memory budget of a statement, which `SET memory` changes.
    pub fn memory_bytes(&self) -> usize {
        self.values.memory_bytes
    }

    /// The number of plans that it keeps for queries to come, and how often it used one again.
    pub fn kept_plans(&self) -> (usize, usize) {
        self.plans.figures()
    }

    /// Names of tables and views, for messages and completion.
    pub fn table_names(&self) -> Vec<String> {
        self.catalog.list().into_iter().map(|(name, _)| name).collect()
    }

    /// Runs the plans of the platform's driver until it ends, if this process is not the driver.
    /// Returns whether it is not.
    ///
    /// # Errors
    /// The connection to the driver is lost.
    pub fn serve(&mut self) -> Result<bool> {
        with_big_stack(|| {
            self.platform.serve(&mut |sent| catch_panics(|| self.run_driver_plan(sent)))
        })
    }

    fn run_driver_plan(&self, sent: &DriverPlan) -> Result<()> {
        let governor = Governor::new(sent.memory_bytes);
        let query = Query::new(self.runner().query_settings(sent.chunk_rows), &governor);
        let times = (None, self.values.timeouts);
        let _guard =
            self.cancel.begin(&self.storage, Instant::now(), times, &self.values.temp_directory);
        let verified = verify(&sent.plan, self.registry.catalog())?;
        self.storage.prepare(&sent.plan)?;
        let plan = CompiledPlan::lower_verified(&sent.plan, &verified, &self.registry)?;
        self.engine.run(&plan, query).map(|_| ())
    }

    /// Runs the statements of a text, one after the other.
    ///
    /// # Errors
    /// The error of the first statement that fails. The effects of earlier statements remain.
    pub fn execute(&mut self, sql: &str) -> Result<Vec<StatementResult>> {
        with_big_stack(|| {
            let started = Instant::now();
            let none = Parameters::default();
            let statements = tessera_parser::parse(sql)?;
            let mut results = Vec::with_capacity(statements.len());
            for (position, statement) in statements.into_iter().enumerate() {
                let started = if position == 0 { started } else { Instant::now() };
                results.push(match catch_panics(|| self.run_with(&statement, &none, started))? {
                    StatementOutput::Rows(rows) => StatementResult::Rows(rows.collect_all()?),
                    StatementOutput::Text(text) => StatementResult::Text(text),
                    StatementOutput::Done(done) => StatementResult::Done(done),
                });
            }
            Ok(results)
        })
    }

    /// Runs the only statement of a text, whose rows are read while it runs. `None` if the text has
    /// no statement.
    ///
    /// # Errors
    /// The statement fails before its first row, the text has several statements, or the rows of
    /// another statement are still being read.
    pub fn statement(&mut self, sql: &str) -> Result<Option<StatementOutput>> {
        self.statement_with(sql, &Parameters::default())
    }

    /// Runs the query of a text, whose rows are read while it runs.
    ///
    /// # Errors
    /// As [`Session::statement`], or the statement returns no rows.
    pub fn query(&mut self, sql: &str) -> Result<ResultStream> {
        self.query_with(sql, &Parameters::default())
    }

    /// Parses, binds and plans the statements of a text without running them.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn plan_only(&mut self, sql: &str) -> Result<()> {
        with_big_stack(|| {
            // The deadline counts from here.
            let _registered = self.begin(Instant::now())?;
            for statement in tessera_parser::parse(sql)? {
                let (planned, _) = self.planned(&statement, &Parameters::default())?;
                if let Statement::Query(planned) = planned {
                    let runner = self.runner();
                    runner.for_platform(&self.optimized(&planned.plan)?)?;
                }
            }
            Ok(())
        })
    }

    /// Reads, verifies and prints a plan in its text form.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn verify_only(&self, text: &str) -> Result<String> {
        let plan = self.parse_plan(text)?;
        verify(&plan, self.registry.catalog())?;
        Ok(text::print(&plan))
    }

    /// Verifies and runs a plan in its text form. A plan without an executor gets this platform's.
    ///
    /// # Errors
    /// The text cannot be parsed, the plan is invalid, or it fails.
    pub fn run_plan(&mut self, text: &str) -> Result<QueryResult> {
        with_big_stack(|| catch_panics(|| self.start_plan(text))?.collect_all())
    }

    /// Like [`Session::run_plan`], but the rows are read while the plan runs.
    ///
    /// # Errors
    /// The text cannot be parsed, the plan is invalid, or the rows of another statement are still
    /// being read.
    pub fn query_plan(&mut self, text: &str) -> Result<ResultStream> {
        with_big_stack(|| catch_panics(|| self.start_plan(text)))
    }

    fn start_plan(&mut self, text: &str) -> Result<ResultStream> {
        let started = Instant::now();
        let registered = self.begin(started)?;
        let (plan, runner) = (self.parse_plan(text)?, self.runner());
        let columns = |tuple: &Tuple| {
            let names = tuple.fields().iter().map(|field| field.name.to_string()).collect();
            ResultColumns::new(tuple.clone(), names)
        };
        let open = OpenStream::new(&self.open);
        ResultStream::start(runner, &plan, None, columns, started, registered, open)
    }

    /// Parses a plan. A plan without an executor is verified and gets this platform's executor.
    /// Other plans are verified before they run.
    fn parse_plan(&self, text: &str) -> Result<Plan> {
        let plan = text::parse(text)?;
        if self.is_platform_plan(&plan) {
            return Ok(plan);
        }
        verify_in(&plan, self.registry.catalog(), Traits::DRIVER)?;
        self.runner().for_platform(&plan)
    }

    /// Begins a statement.
    fn begin(&self, started: Instant) -> Result<RunningGuard> {
        OpenStream::check(&self.open)?;
        let Values { deadline, timeouts, temp_directory, .. } = &self.values;
        Ok(self.cancel.begin(&self.storage, started, (*deadline, *timeouts), temp_directory))
    }

    fn run_interruptible<T>(&self, job: impl FnOnce() -> Result<T>) -> Result<T> {
        run_interruptible(&self.cancel.interrupt, self.values.memory_bytes, job)
    }

    /// Runs a statement with values for its parameters.
    pub(crate) fn run_with(
        &mut self,
        statement: &ParsedStatement,
        parameters: &Parameters,
        started: Instant,
    ) -> Result<StatementOutput> {
        OpenStream::check(&self.open)?;
        self.keep_rejects()?;
        let registered = self.begin(started)?;
        let reuses = self.values.plan_cache && *parameters == Parameters::default();
        if reuses
            && let Some(known) =
                self.run_interruptible(|| self.plans.get(&statement.text, &self.catalog))?
        {
            return self.start_query(&known, started, registered).map(StatementOutput::Rows);
        }
        let (planned, answers) = self.run_interruptible(|| self.planned(statement, parameters))?;
        if !matches!(planned, Statement::Query(_) | Statement::Explain(_)) {
            self.plans.clear();
        }
        match planned {
            Statement::Query(planned) => {
                let PlannedQuery { plan, tuple, names, is_repeatable } = planned;
                let plan = Arc::new(KnownPlan { plan: self.optimized(&plan)?, tuple, names });
                if let Some(answers) = answers.filter(|_| reuses && is_repeatable) {
                    self.plans.insert(&statement.text, plan.clone(), answers);
                }
                self.start_query(&plan, started, registered).map(StatementOutput::Rows)
            }
            Statement::Explain(explain) => self
                .explain(&explain, started)
                .map(|text| StatementOutput::Text(redact(&text).into_owned())),
            Statement::CopyTo(copy) => {
                let (_, finished) = self.runner().run_with_retry(
                    &self.optimized(&crate::copy::plan(&copy, self.registry.formats())?)?,
                )?;
                let rows = rows_written(&finished)?;
                Ok(StatementOutput::Done(match tessera_files::is_standard_output(&copy.path) {
                    true => String::new(),
                    false => format!("COPY {rows}"),
                }))
            }
            Statement::CreateExternalTable(create) => {
                let Session { cancel, values, catalog, .. } = self;
                run_interruptible(&cancel.interrupt, values.memory_bytes, || {
                    catalog.create_external(&create)
                })?;
                Ok(StatementOutput::Done("CREATE EXTERNAL TABLE".to_string()))
            }
            Statement::CreateTableAs(create) => {
                self.create_table(&create).map(StatementOutput::Done)
            }
            Statement::Show { name } => self.show(&name, started).map(StatementOutput::Rows),
            Statement::Analyze { name } => {
                self.analyze(name.as_deref(), started).map(StatementOutput::Rows)
            }
            Statement::ShowTables => {
                let (names, kinds): (Vec<_>, Vec<_>) = self.catalog.list().into_iter().unzip();
                let columns: [(&str, ArrayRef); 2] =
                    [("name", texts(&names)), ("kind", texts(&kinds))];
                rows(&columns, started).map(StatementOutput::Rows)
            }
            Statement::Describe { query } => describe(&query, started).map(StatementOutput::Rows),
            other => self.define(other),
        }
    }

    /// Applies changed settings.
    pub(crate) fn apply(&mut self, changed: Values) -> Result<()> {
        if changed.threads != self.values.threads {
            self.engine = Arc::new(Engine::new(changed.threads)?);
        }
        changed.apply()?;
        self.plans.clear();
        self.storage.set_smart(changed.smart_storage);
        self.catalog.set_sampler(changed.samples.then(|| self.sampler.clone()));
        self.values = changed;
        Ok(())
    }

    fn start_query(
        &self,
        known: &KnownPlan,
        started: Instant,
        registered: RunningGuard,
    ) -> Result<ResultStream> {
        let (plan, runner) = (known.plan.clone(), self.runner());
        let for_platform = runner.for_platform(&plan)?;
        let columns = |_: &Tuple| ResultColumns::new(known.tuple.clone(), known.names.clone());
        let open = OpenStream::new(&self.open);
        ResultStream::start(runner, &for_platform, Some(plan), columns, started, registered, open)
    }

    /// A runner for plans, with the current settings.
    pub(crate) fn runner(&self) -> Runner {
        Runner {
            registry: self.registry.clone(),
            platform: self.platform.clone(),
            engine: self.engine.clone(),
            memory: self.memory.clone(),
            storage: self.storage.clone(),
            cancel: self.cancel.clone(),
            passes: self.passes.clone(),
            values: self.values.clone(),
        }
    }

    /// Optimizes a plan: the physical rewrites, then the passes of extensions.
    ///
    /// # Errors
    /// The statement is cancelled, or a pass fails.
    pub(crate) fn optimized(&self, plan: &Plan) -> Result<Plan> {
        self.runner().optimized(plan)
    }

    /// Whether a plan names a sub-operator of a platform, at any depth.
    fn is_platform_plan(&self, plan: &Plan) -> bool {
        let is_platform_specific = |name: &str| {
            self.registry
                .catalog()
                .descriptor(name)
                .is_ok_and(|descriptor| descriptor.is_platform_specific())
        };
        plan.nodes.iter().any(|node| {
            is_platform_specific(&node.operator)
                || node.nested.iter().any(|nested| self.is_platform_plan(nested))
        })
    }
}

/// Finds a platform by name.
///
/// # Errors
/// The name is unknown.
pub(crate) fn find_platform<'a>(
    platforms: &'a [Arc<dyn Platform>],
    name: &str,
) -> Result<&'a Arc<dyn Platform>> {
    platforms.iter().find(|platform| platform.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
        let names: Vec<&str> = platforms.iter().map(|platform| platform.name()).collect();
        Error::unsupported(format!(
            "unknown platform '{name}'{}",
            suggest(name, "expected one of", &names)
        ))
    })
}
