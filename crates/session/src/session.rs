//! A session and the life of its statements.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use arrow::array::{ArrayRef, BooleanArray, StringViewArray};
use tessera_context::read_buffer;
use tessera_engine::{
    CompiledPlan, Engine, Governor, Memory, Pass, Phase, Platform, Query, Sent, Setup,
};
use tessera_formats::block::BlockScan;
use tessera_functions::Library;
use tessera_jit::InUse;
use tessera_operator::Registry;
use tessera_optimizer::physical;
use tessera_optimizer::table::Catalog;
use tessera_plan::{Plan, Rules, Traits, text, verify, verify_in};
use tessera_sql::{
    CreateFunction, CreateTableAs, Explain, ExplainFormat, ParsedStatement, Planned, Statement,
};
use tessera_types::{Atom, Error, Field, Result, SqlState, Tuple, redact};
use tessera_vector::Chunk;

use crate::analyze::{self, Report};
use crate::cancel::{Cancel, Registered};
use crate::catalog::FileCatalog;
use crate::config::Config;
use crate::explain::{self, Summary};
use crate::functions;
use crate::memory_table::{self, MemoryTable};
use crate::planning::interruptible;
use crate::result::{Columns, QueryResult, StatementResult};
use crate::run::{Ran, Runner, after_passes};
use crate::settings::Values;
use crate::source::Sampler;
use crate::stack::{contained, with_big_stack};
use crate::storage::{Storage, Streams};
use crate::stream::{Open, ResultStream, StatementOutput};

/// Of a statement's budget, threads keep one part in so many for later reads.
const KEPT_SHARE: usize = 32;

/// One user's tables, settings and statements.
#[derive(Debug)]
pub struct Session {
    registry: Arc<Registry>,
    /// Where statements run.
    platform: Arc<dyn Platform>,
    /// Those whose plans can be explained.
    platforms: Vec<Arc<dyn Platform>>,
    passes: Arc<[Pass]>,
    engine: Arc<Engine>,
    /// That of all sessions side by side.
    memory: Arc<Memory>,
    config: Config,
    storage: Storage,
    catalog: FileCatalog,
    sampler: Sampler,
    initial: Values,
    values: Values,
    cancel: Cancel,
    /// Whether the rows of a statement are being read.
    open: Arc<AtomicBool>,
    /// That code may be compiled beside its statements.
    _in_use: InUse,
}

impl Session {
    /// Opens a session: installs the extensions, starts the workers and looks at the database
    /// directory.
    ///
    /// # Errors
    /// Two extensions bring the same; there is no such platform; the database is no directory; a
    /// setting is out of its range; or the system gives no threads.
    pub fn new(config: Config) -> Result<Session> {
        let memory = Memory::new(config.process_memory_bytes.max(config.memory_bytes));
        // No budget counts the buffers that are kept for later reads: they must stay small beside
        // one.
        read_buffer::set_kept_bytes_max(config.memory_bytes / KEPT_SHARE);
        Session::with(config, None, memory)
    }

    /// Opens another session beside this one, set up like it: their statements share the workers
    /// evenly, and the memory of the process. A session that sets `threads` has workers of its own
    /// from then on.
    ///
    /// # Errors
    /// As [`Session::new`]; or the platform runs one statement at a time.
    pub fn beside(&self) -> Result<Session> {
        if !self.platform.concurrent_statements() {
            let name = self.platform.name();
            return Err(Error::unsupported(format!(
                "sessions side by side on platform {name}, which runs one statement at a time; start another process"
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
        let platform = called(&platforms, &config.platform)?.clone();
        let streams = match platform.accepts_local_paths() {
            true if config.sql_from_stdin => Streams::SqlFromStdin,
            true => Streams::Read,
            false => Streams::Refused(platform.name().to_string()),
        };
        let storage = Storage::new(config.stores.clone(), streams);
        storage.install(&mut setup)?;
        let values = Values::new(&config, setup.settings())?;
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
            Sampler::new(registry.clone(), storage.clone(), config.statistics_cache.clone());
        catalog.sample(values.samples.then(|| sampler.clone()));
        let cancel = Cancel::new(storage.interrupt());
        Ok(Session {
            registry,
            platform,
            platforms,
            passes,
            engine,
            memory,
            catalog,
            sampler,
            config,
            storage,
            initial: values.clone(),
            values,
            cancel,
            open: Arc::default(),
            _in_use: InUse::new(),
        })
    }

    /// The handle that ends a running statement.
    pub fn cancel_handle(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Names of tables and views, for messages and completion.
    pub fn table_names(&self) -> Vec<String> {
        self.catalog.list().into_iter().map(|(name, _)| name).collect()
    }

    /// Runs what the platform's driver sends, where this process is not the driver, until it sends
    /// no more; whether it was so.
    ///
    /// # Errors
    /// The driver cannot be heard any more.
    pub fn serve(&mut self) -> Result<bool> {
        with_big_stack(|| self.platform.serve(&mut |sent| contained(|| self.run_sent(sent))))
    }

    fn run_sent(&self, sent: &Sent) -> Result<()> {
        let governor = Governor::new(sent.memory_bytes);
        let query = Query::new(self.runner().query_settings(sent.chunk_rows), &governor);
        let times = (None, self.values.timeouts);
        let _registered =
            self.cancel.begin(&self.storage, Instant::now(), times, &self.values.temp_directory);
        let verified = verify(&sent.plan, self.registry.catalogue())?;
        self.storage.prepare(&sent.plan)?;
        let plan = CompiledPlan::lower_verified(&sent.plan, &verified, &self.registry)?;
        self.engine.run(&plan, query).map(|_| ())
    }

    /// Runs the statements of a text, one after the other.
    ///
    /// # Errors
    /// The first statement that fails; what those before it did stays done.
    pub fn execute(&mut self, sql: &str) -> Result<Vec<StatementResult>> {
        with_big_stack(|| {
            let started = Instant::now();
            let statements = tessera_sql::parse(sql)?;
            let mut results = Vec::with_capacity(statements.len());
            for (position, statement) in statements.into_iter().enumerate() {
                let started = if position == 0 { started } else { Instant::now() };
                results.push(match contained(|| self.run_statement(&statement, started))? {
                    StatementOutput::Rows(rows) => StatementResult::Rows(rows.collect_all()?),
                    StatementOutput::Text(text) => StatementResult::Text(text),
                    StatementOutput::Done(done) => StatementResult::Done(done),
                });
            }
            Ok(results)
        })
    }

    /// Runs the statement of a text, if there is one; its rows are read while it runs.
    ///
    /// # Errors
    /// It fails before its first row, there are several, or the rows of another one are still being
    /// read.
    pub fn statement(&mut self, sql: &str) -> Result<Option<StatementOutput>> {
        with_big_stack(|| {
            let started = Instant::now();
            let mut statements = tessera_sql::parse(sql)?.into_iter();
            match (statements.next(), statements.next()) {
                (None, _) => Ok(None),
                (Some(statement), None) => {
                    contained(|| self.run_statement(&statement, started)).map(Some)
                }
                _ => Err(Error::unsupported("several statements at once; run one after the other")),
            }
        })
    }

    /// Runs the query of a text; its rows are read while it runs.
    ///
    /// # Errors
    /// As [`Session::statement`], or the statement gives no rows.
    pub fn query(&mut self, sql: &str) -> Result<ResultStream> {
        match self.statement(sql)? {
            Some(StatementOutput::Rows(rows)) => Ok(rows),
            _ => Err(Error::unsupported("a statement without rows where a query is wanted")),
        }
    }

    /// Parses, binds and plans the statements of a text, and runs none.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn plan_only(&mut self, sql: &str) -> Result<()> {
        with_big_stack(|| {
            for statement in tessera_sql::parse(sql)? {
                let planned = tessera_sql::plan(
                    &statement,
                    &self.catalog,
                    &self.registry,
                    &self.values.planning,
                )?;
                if let Statement::Query(planned) = planned {
                    let runner = self.runner();
                    runner.for_platform(&self.optimised(&planned.plan)?)?;
                }
            }
            Ok(())
        })
    }

    /// Reads, verifies and prints a plan in its text form.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn verify_only(&self, text: &str) -> Result<String> {
        let plan = self.written(text)?;
        verify(&plan, self.registry.catalogue())?;
        Ok(text::print(&plan))
    }

    /// Verifies and runs a plan in its text form. A plan without an executor gets this platform's.
    ///
    /// # Errors
    /// The text is no plan, the plan is wrong, or it fails.
    pub fn run_plan(&mut self, text: &str) -> Result<QueryResult> {
        with_big_stack(|| contained(|| self.start_plan(text))?.collect_all())
    }

    /// As [`Session::run_plan`]; the rows are read while the plan runs.
    ///
    /// # Errors
    /// The text is no plan, the plan is wrong, or the rows of another statement are still being
    /// read.
    pub fn query_plan(&mut self, text: &str) -> Result<ResultStream> {
        with_big_stack(|| contained(|| self.start_plan(text)))
    }

    fn start_plan(&mut self, text: &str) -> Result<ResultStream> {
        let started = Instant::now();
        let registered = self.begin(started)?;
        let (plan, runner) = (self.written(text)?, self.runner());
        let columns = |tuple: &Tuple| {
            let names = tuple.fields().iter().map(|field| field.name.to_string()).collect();
            Columns::new(tuple.clone(), names)
        };
        let open = Open::new(&self.open);
        ResultStream::start(runner, &plan, None, columns, started, registered, open)
    }

    /// The plan of a text. One without an executor is verified and gets this platform's; the other
    /// is verified before it runs.
    fn written(&self, text: &str) -> Result<Plan> {
        let plan = text::parse(text)?;
        if self.has_platform(&plan) {
            return Ok(plan);
        }
        verify_in(&plan, self.registry.catalogue(), Traits::DRIVER)?;
        self.runner().for_platform(&plan)
    }

    /// A statement begins.
    fn begin(&self, started: Instant) -> Result<Registered> {
        Open::check(&self.open)?;
        let Values { deadline, timeouts, temp_directory, .. } = &self.values;
        Ok(self.cancel.begin(&self.storage, started, (*deadline, *timeouts), temp_directory))
    }

    fn interruptible<T>(&self, job: impl FnOnce() -> Result<T>) -> Result<T> {
        interruptible(&self.cancel.interrupt, self.values.memory_bytes, job)
    }

    fn run_statement(
        &mut self,
        statement: &ParsedStatement,
        started: Instant,
    ) -> Result<StatementOutput> {
        let registered = self.begin(started)?;
        let planned = self.interruptible(|| {
            tessera_sql::plan(statement, &self.catalog, &self.registry, &self.values.planning)
        })?;
        match planned {
            Statement::Query(planned) => {
                self.start_query(planned, started, registered).map(StatementOutput::Rows)
            }
            Statement::Explain(explain) => self
                .explain(&explain, started)
                .map(|text| StatementOutput::Text(redact(&text).into_owned())),
            Statement::CopyTo(copy) => {
                let (_, ran) =
                    self.runner().run_here(&self.optimised(&crate::copy::plan(&copy)?)?)?;
                let rows = rows_written(&ran)?;
                Ok(StatementOutput::Done(match tessera_files::is_standard_output(&copy.path) {
                    true => String::new(),
                    false => format!("COPY {rows}"),
                }))
            }
            Statement::CreateExternalTable(create) => {
                let Session { cancel, values, catalog, .. } = self;
                interruptible(&cancel.interrupt, values.memory_bytes, || {
                    catalog.create_external(&create)
                })?;
                Ok(StatementOutput::Done("CREATE EXTERNAL TABLE".to_string()))
            }
            Statement::CreateTableAs(create) => {
                self.create_table(&create).map(StatementOutput::Done)
            }
            Statement::CreateView { name, query, or_replace } => {
                self.catalog.create_view(&name, &query, or_replace)?;
                Ok(StatementOutput::Done("CREATE VIEW".to_string()))
            }
            Statement::Drop { names, view, if_exists } => {
                for name in &names {
                    self.catalog.drop(name, view, if_exists)?;
                }
                Ok(StatementOutput::Done(if view { "DROP VIEW" } else { "DROP TABLE" }.to_string()))
            }
            Statement::CreateFunction(create) => {
                self.create_function(&create)?;
                Ok(StatementOutput::Done("CREATE FUNCTION".to_string()))
            }
            Statement::DropFunctions { functions, if_exists } => {
                functions::drop(self.registry.library(), &functions, if_exists)?;
                Ok(StatementOutput::Done("DROP FUNCTION".to_string()))
            }
            Statement::Set { name, value } => {
                let mut changed = self.values.clone();
                changed.set(&name, &value)?;
                self.change(changed)?;
                Ok(StatementOutput::Done("SET".to_string()))
            }
            Statement::Reset { name } => {
                let mut changed = self.values.clone();
                if name == "all" {
                    changed = self.initial.clone();
                } else {
                    changed.set(&name, &self.initial.get(&name)?)?;
                }
                self.change(changed)?;
                Ok(StatementOutput::Done("RESET".to_string()))
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
            Statement::Describe { tuple, .. } => {
                describe(&tuple, started).map(StatementOutput::Rows)
            }
        }
    }

    /// Keeps the rows of a query in memory, as a table of this session.
    fn create_table(&mut self, create: &CreateTableAs) -> Result<String> {
        let name = create.name.join(".");
        if !create.temporary && self.config.database.is_some() {
            return Err(Error::unsupported(format!(
                "CREATE TABLE {name} AS in a database of files; CREATE TEMP TABLE keeps the rows in memory for this session, and \
                 COPY (query) TO 'file.parquet' writes them to a file"
            )));
        }
        if !self.platform.accepts_local_paths() {
            let platform = self.platform.name();
            return Err(Error::unsupported(format!(
                "CREATE TABLE {name} AS on platform {platform}: tables in memory are for platform local; write a file with COPY \
                 (query) TO 'file.parquet' and query that"
            )));
        }
        let Some(name) = self.catalog.free_name(create)? else {
            return Ok("CREATE TABLE".to_string());
        };
        let (_, ran) =
            self.runner().run_here(&self.optimised(&memory_table::plan(&create.query)?)?)?;
        let blocks = memory_table::blocks(&ran.collected)?;
        blocks.release();
        drop(ran);
        let kept = self.memory.keep(blocks.bytes(), &self.cancel.interrupt)?;
        let rows = blocks.rows();
        let (table, tuples) = MemoryTable::new(name, &create.query, blocks, kept);
        self.catalog.insert_in_memory(name, table, tuples);
        Ok(format!("SELECT {rows}"))
    }

    fn create_function(&self, create: &CreateFunction) -> Result<()> {
        let platform = self.platform.name();
        if !self.config.native_functions {
            return Err(Error::unsupported(format!(
                "CREATE FUNCTION {}: functions are machine code, which can do whatever this process can; --native-functions allows them",
                create.name
            )));
        }
        if !self.platform.accepts_local_paths() {
            return Err(Error::unsupported(format!(
                "CREATE FUNCTION {} on platform {platform}, whose other processes would not know it",
                create.name
            )));
        }
        functions::create(self.registry.library(), create)
    }

    /// Reads a table whole, or one after the other all but views; what was counted.
    fn analyze(&self, name: Option<&[String]>, started: Instant) -> Result<ResultStream> {
        let tables = || self.catalog.list().into_iter().filter(|(_, kind)| *kind != "view");
        let names = match name {
            Some(name) => vec![name.to_vec()],
            None => tables().map(|(name, _)| vec![name]).collect(),
        };
        let mut report = Report::default();
        for name in names {
            let shown = name.join(".");
            self.analyze_table(&name, &shown, &mut report)
                .map_err(|error| error.context(format!("ANALYZE {shown}")))?;
        }
        rows(&report.columns(), started)
    }

    fn analyze_table(&self, name: &[String], shown: &str, report: &mut Report) -> Result<()> {
        let parts: Vec<&str> = name.iter().map(String::as_str).collect();
        let table = self.catalog.table(&parts)?.ok_or_else(|| match self.catalog.view(&parts) {
            Ok(Some(_)) => Error::unsupported("it is a view; analyze the tables that it reads"),
            _ => {
                Error::semantic("there is no table of this name; SHOW TABLES lists those there are")
                    .with_state(SqlState::UNDEFINED_TABLE)
            }
        })?;
        let Some(sample) = &table.sample else {
            return Err(Error::unsupported(match self.values.samples {
                false => "SET statistics = samples first: nothing is kept of tables otherwise",
                true => {
                    "its store does not say which version of it was read, so that nothing can be kept of it"
                }
            }));
        };
        let run = |plan: &Plan| {
            Ok::<_, Error>(self.runner().run_here(&self.optimised(plan)?)?.1.collected)
        };
        let counted = run(&analyze::counts_plan(&table))?;
        let counts = analyze::counts(&counted)?;
        let collected = run(&analyze::sample_plan(&table, counts.rows))?;
        let drawn = analyze::drawn(&table, &counts, &collected)?;
        let kept = sample.replace(&drawn);
        report.add(shown, &table, &counts, &drawn, kept);
        Ok(())
    }

    fn change(&mut self, changed: Values) -> Result<()> {
        if changed.threads != self.values.threads {
            self.engine = Arc::new(Engine::new(changed.threads)?);
        }
        changed.apply()?;
        self.storage.set_smart(changed.smart_storage);
        self.catalog.sample(changed.samples.then(|| self.sampler.clone()));
        self.values = changed;
        Ok(())
    }

    fn start_query(
        &self,
        planned: Planned,
        started: Instant,
        registered: Registered,
    ) -> Result<ResultStream> {
        let (plan, runner) = (self.optimised(&planned.plan)?, self.runner());
        let for_platform = runner.for_platform(&plan)?;
        let columns = |_: &Tuple| Columns::new(planned.tuple, planned.names);
        let open = Open::new(&self.open);
        ResultStream::start(runner, &for_platform, Some(plan), columns, started, registered, open)
    }

    /// What runs this session's plans, with its settings of now.
    fn runner(&self) -> Runner {
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

    fn optimised(&self, plan: &Plan) -> Result<Plan> {
        let catalogue = self.registry.catalogue();
        self.cancel.interrupt.check()?;
        let plan = physical::optimise(plan, catalogue, self.rules())?;
        after_passes(&self.passes, Phase::Optimized, plan, catalogue, self.rules())
    }

    /// The rewrites that are on.
    fn rules(&self) -> Rules {
        self.values.planning.rules
    }

    /// Whether a plan names a sub-operator of a platform, at any depth.
    fn has_platform(&self, plan: &Plan) -> bool {
        let of_platform = |name: &str| {
            self.registry
                .catalogue()
                .descriptor(name)
                .is_ok_and(|descriptor| descriptor.of_platform())
        };
        plan.nodes.iter().any(|node| {
            of_platform(&node.operator)
                || node.nested.iter().any(|nested| self.has_platform(nested))
        })
    }

    fn explain(&self, explain: &Explain, started: Instant) -> Result<String> {
        let platform = match &explain.platform {
            Some(name) => Some(called(&self.platforms, name)?),
            None => None,
        };
        if explain.format == ExplainFormat::Html {
            return Err(Error::unsupported("EXPLAIN as HTML; there are TEXT and JSON"));
        }
        let json = explain.format == ExplainFormat::Json;
        let plan = self.optimised(&explain.query.plan)?;
        if explain.analyze {
            if let Some(other) = platform.filter(|platform| platform.name() != self.platform.name())
            {
                let (other, own) = (other.name(), self.platform.name());
                return Err(Error::unsupported(format!(
                    "EXPLAIN ANALYZE on platform {other}: statements run on {own} here; start with --platform {other}"
                )));
            }
            let (plan, ran) = self.runner().run_here(&plan)?;
            let profile = ran.ready.record.profile();
            let summary = Summary {
                planning: ran.ready.planned_at - started,
                execution: ran.ready.planned_at.elapsed(),
                rows: ran.collected.rows(),
                threads: self.engine.workers(),
                pipelines: ran.ready.record.plan().pipeline_count(),
                memory_peak_bytes: ran.ready.governor.peak_bytes(),
                device_memory_peak_bytes: ran.ready.governor.device_peak_bytes(),
                stores: self.storage.spent(),
                compiling: ran.ready.compiler.map(|compiler| compiler.spent()).unwrap_or_default(),
            };
            return Ok(match json {
                true => explain::json(&plan, Some((&profile, &summary))),
                false => explain::analyzed(&plan, &profile, &summary),
            });
        }
        let plan = match platform {
            Some(platform) => {
                Runner { platform: platform.clone(), ..self.runner() }.for_platform(&plan)?
            }
            None => plan,
        };
        let verified = verify(&plan, self.registry.catalogue())?;
        Ok(match (json, explain.verbose) {
            (true, _) => explain::json(&plan, None),
            (false, true) => text::explain(&plan, &verified),
            (false, false) => {
                let swapped = |path: &[usize]| {
                    let node = explain::plan_node_at(&plan, path)?;
                    let descriptor = self.registry.catalogue().descriptor(&node.operator).ok()?;
                    let platform = platform.filter(|_| descriptor.of_platform())?;
                    Some(format!("of platform {}", platform.name()))
                };
                text::annotate(&plan, &swapped)
            }
        })
    }

    fn show(&self, name: &str, started: Instant) -> Result<ResultStream> {
        if name != "all" {
            return rows(&[(name, texts(&[self.values.get(name)?]))], started);
        }
        let all = self.values.all();
        let values =
            all.iter().map(|(name, _)| self.values.get(name)).collect::<Result<Vec<_>>>()?;
        let (names, meanings): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let columns =
            [("name", texts(&names)), ("value", texts(&values)), ("meaning", texts(&meanings))];
        rows(&columns, started)
    }
}

/// The platform of this name.
fn called<'a>(platforms: &'a [Arc<dyn Platform>], name: &str) -> Result<&'a Arc<dyn Platform>> {
    platforms.iter().find(|platform| platform.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
        let names: Vec<&str> = platforms.iter().map(|platform| platform.name()).collect();
        Error::unsupported(format!("there is no platform {name}; there are {}", names.join(", ")))
    })
}

/// The number of rows a materialise sub-operator says it wrote.
fn rows_written(ran: &Ran) -> Result<String> {
    let written = ran.collected.single()?;
    let position = ran.ready.record.plan().tuple().index_of("rows");
    let column = position.map(|position| written.column(position)).transpose()?;
    let array = column.map(|column| column.plain()).transpose()?;
    let array =
        array.ok_or_else(|| Error::internal("a materialise sub-operator that counts no rows"))?;
    Ok(arrow::util::display::array_value_to_string(&array, 0)?)
}

fn describe(tuple: &Tuple, started: Instant) -> Result<ResultStream> {
    let names: Vec<&str> = tuple.fields().iter().map(|field| &*field.name).collect();
    let types: Vec<String> = tuple.fields().iter().map(|field| field.item.to_string()).collect();
    let nullable: BooleanArray = tuple.fields().iter().map(|field| Some(field.nullable)).collect();
    rows(
        &[("column", texts(&names)), ("type", texts(&types)), ("nullable", Arc::new(nullable))],
        started,
    )
}

fn texts<S: AsRef<str>>(values: &[S]) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(values))
}

fn rows(columns: &[(&str, ArrayRef)], started: Instant) -> Result<ResultStream> {
    let field = |(name, array): &(&str, ArrayRef)| {
        let atom = Atom::from_arrow(array.data_type())?;
        Ok(Field::new(*name, atom).with_nullable(array.null_count() > 0))
    };
    let tuple = Tuple::new(columns.iter().map(field).collect::<Result<Vec<_>>>()?);
    let names = columns.iter().map(|(name, _)| name.to_string()).collect();
    let chunk = Chunk::from_arrays(columns.iter().map(|(_, array)| array.clone()).collect());
    Ok(ResultStream::there(Columns::new(tuple, names)?, chunk, started))
}
