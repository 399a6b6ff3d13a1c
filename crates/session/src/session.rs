//! A session and the life of its statements.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, BooleanArray, StringViewArray};
use tessera_encodings::Chunk;
use tessera_exec::{Engine, Governor, Platform, Program, Query, Sent};
use tessera_files::ScratchFile;
use tessera_local::Local;
use tessera_objects::Interrupt;
use tessera_ops::{Collected, Registry, Scratch};
use tessera_plan::{Plan, pass, text, verify};
use tessera_platform_mpi::{EXCHANGE, Mpi};
use tessera_serverless::Serverless;
use tessera_sql::{Explain, ExplainFormat, ParsedStatement, Planned, Statement};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use crate::catalog::FileCatalog;
use crate::config::Config;
use crate::explain::{self, Summary};
use crate::result::{QueryResult, StatementResult};
use crate::settings::{SETTINGS, Values};
use crate::source::Sampler;
use crate::stack::with_big_stack;
use crate::storage::Storage;

/// One user's tables, settings and statements.
#[derive(Debug)]
pub struct Session {
    registry: Arc<Registry>,
    /// Where statements run.
    platform: Arc<dyn Platform>,
    /// Whose plans can be explained.
    explained: Vec<Arc<dyn Platform>>,
    engine: Engine,
    storage: Storage,
    catalog: FileCatalog,
    sampler: Sampler,
    initial: Values,
    values: Values,
    cancel: Cancel,
}

/// Ends what a session is doing, from any thread, and tells how far it is.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    running: Arc<Mutex<Running>>,
    /// Ends what waits for a store.
    stores: Arc<Interrupt>,
}

#[derive(Debug, Default)]
struct Running {
    query: Option<Arc<Query>>,
    program: Option<Arc<Program>>,
    since: Option<Instant>,
}

/// How far the running statement is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Since it began.
    pub elapsed: Duration,
    /// Morsels done, in all pipelines that have begun.
    pub morsels_done: u64,
    /// Morsels there are, in all pipelines that have begun.
    pub morsels: u64,
}

impl Cancel {
    /// Ends the running statement; whether there is one.
    pub fn cancel(&self) -> bool {
        self.stores.cancel();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(query) = &running.query {
            query.cancel();
        }
        running.query.is_some()
    }

    /// How far the running statement is; nothing while none runs.
    pub fn progress(&self) -> Option<Progress> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let (morsels_done, morsels) = running.program.as_ref()?.progress();
        Some(Progress { elapsed: running.since?.elapsed(), morsels_done, morsels })
    }

    fn set(&self, change: impl FnOnce(&mut Running)) {
        change(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A statement's query is the one to cancel for as long as this lives.
struct Registered<'a>(&'a Cancel);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.0.set(|running| *running = Running::default());
    }
}

/// A plan that has run.
struct Ran {
    program: Arc<Program>,
    collected: Arc<Collected>,
    governor: Arc<Governor>,
    planned_at: Instant,
}

impl Session {
    /// Opens a session: starts the workers and looks at the database directory.
    ///
    /// # Errors
    /// The database is no directory, a setting is out of its range, or the system gives no threads.
    pub fn new(config: Config) -> Result<Session> {
        Session::on(Arc::new(Local), config)
    }

    /// As [`Session::new`], on another platform than `local`.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn on(platform: Arc<dyn Platform>, config: Config) -> Result<Session> {
        let values = Values::new(&config)?;
        let explained: Vec<Arc<dyn Platform>> =
            vec![Arc::new(Local), Arc::new(Mpi::default()), Arc::new(Serverless::default())];
        let mut registry = tessera_ops::standard_registry();
        for other in explained.iter().chain([&platform]) {
            other.register(&mut registry);
        }
        let exchange = values.mpi_exchange.name();
        explained.iter().chain([&platform]).try_for_each(|other| other.set(EXCHANGE, exchange))?;
        let storage = Storage::new(config.stores);
        registry.register(storage.select_request());
        let registry = Arc::new(registry);
        let mut catalog = FileCatalog::new(config.database, storage.clone())?;
        let sampler = Sampler::new(registry.clone(), storage.clone(), config.statistics_cache);
        catalog.sample(values.samples.then(|| sampler.clone()));
        let cancel = Cancel { stores: storage.interrupt(), ..Cancel::default() };
        Ok(Session {
            registry,
            platform,
            explained,
            engine: Engine::new(values.threads)?,
            catalog,
            sampler,
            storage,
            initial: values.clone(),
            values,
            cancel,
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

    /// Runs what the platform's driver sends, where this process is not the driver, until it sends no more; whether it was so.
    ///
    /// # Errors
    /// The driver cannot be heard any more.
    pub fn serve(&mut self) -> Result<bool> {
        with_big_stack(|| self.platform.serve(&mut |sent| self.run_sent(sent)))
    }

    fn run_sent(&self, sent: &Sent) -> Result<()> {
        let governor = Governor::new(sent.memory_bytes);
        let query = Query::new(self.query_settings(sent.chunk_rows, None), &governor);
        self.storage.begin(None);
        self.storage.prepare(&sent.plan)?;
        let program = Program::lower(&sent.plan, &self.registry)?;
        self.engine.run(&program, query).map(|_| ())
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
                results.push(self.run_statement(&statement, started)?);
            }
            Ok(results)
        })
    }

    /// Verifies and runs a plan in its text form. A plan without an executor gets this platform's.
    ///
    /// # Errors
    /// The text is no plan, the plan is wrong, or it fails.
    pub fn run_plan(&mut self, text: &str) -> Result<QueryResult> {
        with_big_stack(|| {
            let started = Instant::now();
            self.storage.begin(self.values.deadline);
            let plan = text::parse(text)?;
            let plan = if self.has_platform(&plan) { plan } else { self.for_platform(&plan)? };
            let ran = self.run(&plan, started)?;
            let tuple = ran.program.tuple().clone();
            let names = tuple.fields().iter().map(|field| field.name.to_string()).collect();
            QueryResult::new(tuple, names, ran.collected, started.elapsed())
        })
    }

    /// As [`Session::run_plan`], from a file.
    ///
    /// # Errors
    /// As [`Session::run_plan`]; or the file cannot be read.
    pub fn run_plan_file(&mut self, path: &Path) -> Result<QueryResult> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::io(format!("cannot read the plan '{}': {error}", path.display())))?;
        self.run_plan(&text)
    }

    fn run_statement(&mut self, statement: &ParsedStatement, started: Instant) -> Result<StatementResult> {
        self.storage.begin(self.values.deadline);
        let planned = tessera_sql::plan(statement, &self.catalog, &self.registry, &self.values.planning)?;
        match planned {
            Statement::Query(planned) => self.query(planned, started).map(StatementResult::Rows),
            Statement::Explain(explain) => self.explain(&explain, started).map(StatementResult::Text),
            Statement::CopyTo(copy) => {
                let plan = self.for_platform(&self.optimised(&crate::copy::plan(&copy)?)?)?;
                let ran = self.run(&plan, started)?;
                Ok(StatementResult::Done(format!("COPY {}", rows_written(&ran)?)))
            }
            Statement::CreateExternalTable(create) => {
                self.catalog.create_external(&create)?;
                Ok(StatementResult::Done("CREATE EXTERNAL TABLE".to_string()))
            }
            Statement::CreateTableAs(create) => Err(Error::unsupported(format!(
                "CREATE TABLE {} AS; write the rows to a file with COPY (query) TO 'file.parquet' and query that",
                create.name.join(".")
            ))),
            Statement::CreateView { name, query, or_replace } => {
                self.catalog.create_view(&name, &query, or_replace)?;
                Ok(StatementResult::Done("CREATE VIEW".to_string()))
            }
            Statement::Drop { names, view, if_exists } => {
                for name in &names {
                    self.catalog.drop(name, view, if_exists)?;
                }
                Ok(StatementResult::Done(if view { "DROP VIEW" } else { "DROP TABLE" }.to_string()))
            }
            Statement::Set { name, value } => {
                let mut changed = self.values.clone();
                changed.set(&name, &value)?;
                self.change(changed)?;
                Ok(StatementResult::Done("SET".to_string()))
            }
            Statement::Reset { name } => {
                let mut changed = self.values.clone();
                if name == "all" {
                    changed = self.initial.clone();
                } else {
                    changed.set(&name, &self.initial.get(&name)?)?;
                }
                self.change(changed)?;
                Ok(StatementResult::Done("RESET".to_string()))
            }
            Statement::Show { name } => self.show(&name, started).map(StatementResult::Rows),
            Statement::ShowTables => {
                let (names, kinds): (Vec<_>, Vec<_>) = self.catalog.list().into_iter().unzip();
                let columns: [(&str, ArrayRef); 2] = [("name", texts(&names)), ("kind", texts(&kinds))];
                rows(&columns, started).map(StatementResult::Rows)
            }
            Statement::Describe { tuple, .. } => describe(&tuple, started).map(StatementResult::Rows),
        }
    }

    fn change(&mut self, changed: Values) -> Result<()> {
        if changed.threads != self.values.threads {
            self.engine = Engine::new(changed.threads)?;
        }
        let exchange = changed.mpi_exchange.name();
        self.explained
            .iter()
            .chain([&self.platform])
            .try_for_each(|platform| platform.set(EXCHANGE, exchange))?;
        self.catalog.sample(changed.samples.then(|| self.sampler.clone()));
        self.values = changed;
        Ok(())
    }

    fn query(&self, planned: Planned, started: Instant) -> Result<QueryResult> {
        let plan = self.for_platform(&self.optimised(&planned.plan)?)?;
        let ran = self.run(&plan, started)?;
        QueryResult::new(planned.tuple, planned.names, ran.collected, started.elapsed())
    }

    fn optimised(&self, plan: &Plan) -> Result<Plan> {
        let catalogue = self.registry.catalogue();
        let plan = pass::optimise(plan, catalogue)?;
        self.storage.push_selects(&plan, catalogue, self.values.smart_storage)
    }

    fn for_platform(&self, plan: &Plan) -> Result<Plan> {
        self.platform.pass(plan, self.registry.catalogue())
    }

    /// Whether a plan names a sub-operator of a platform, at any depth.
    fn has_platform(&self, plan: &Plan) -> bool {
        let of_platform = |name: &str| {
            self.registry.catalogue().descriptor(name).is_ok_and(|descriptor| descriptor.of_platform())
        };
        plan.nodes.iter().any(|node| {
            of_platform(&node.operator) || node.nested.iter().any(|nested| self.has_platform(nested))
        })
    }

    fn run(&self, plan: &Plan, started: Instant) -> Result<Ran> {
        let governor = Governor::new(self.values.memory_bytes);
        let query = Query::new(self.query_settings(self.values.chunk_rows, self.values.deadline), &governor);
        self.cancel.set(|running| {
            *running = Running { query: Some(query.clone()), program: None, since: Some(started) };
        });
        let _registered = Registered(&self.cancel);
        self.storage.prepare(plan)?;
        let program = Program::lower(plan, &self.registry)?;
        self.cancel.set(|running| running.program = Some(program.clone()));
        let planned_at = Instant::now();
        let collected = self.engine.run(&program, query)?;
        Ok(Ran { program, collected, governor, planned_at })
    }

    fn query_settings(&self, chunk_rows: usize, deadline: Option<Duration>) -> tessera_exec::Settings {
        let (opener, creator) = (self.storage.opener(), self.storage.creator());
        let directory = self.values.temp_directory.clone();
        let scratch = move || Ok(Arc::new(ScratchFile::create(&directory)?) as Arc<dyn Scratch>);
        tessera_exec::Settings { chunk_rows, deadline, opener, creator, scratch: Some(Arc::new(scratch)) }
    }

    fn explain(&self, explain: &Explain, started: Instant) -> Result<String> {
        let platform = match &explain.platform {
            Some(name) => Some(self.platform_called(name)?),
            None => None,
        };
        if explain.format == ExplainFormat::Html {
            return Err(Error::unsupported("EXPLAIN as HTML; there are TEXT and JSON"));
        }
        let json = explain.format == ExplainFormat::Json;
        let plan = self.optimised(&explain.query.plan)?;
        if explain.analyze {
            if let Some(other) = platform.filter(|platform| platform.name() != self.platform.name()) {
                let (other, own) = (other.name(), self.platform.name());
                return Err(Error::unsupported(format!(
                    "EXPLAIN ANALYZE on platform {other}: statements run on {own} here; start with --platform {other}"
                )));
            }
            let plan = self.for_platform(&plan)?;
            let ran = self.run(&plan, started)?;
            let profile = ran.program.profile();
            let summary = Summary {
                planning: ran.planned_at - started,
                execution: ran.planned_at.elapsed(),
                rows: ran.collected.rows(),
                threads: self.engine.workers(),
                pipelines: ran.program.pipeline_count(),
                memory_peak_bytes: ran.governor.peak_bytes(),
                stores: self.storage.spent(),
            };
            return Ok(match json {
                true => explain::json(&plan, Some((&profile, &summary))),
                false => explain::analyzed(&plan, &profile, &summary),
            });
        }
        let plan = match platform {
            Some(platform) => platform.pass(&plan, self.registry.catalogue())?,
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

    /// A platform whose plans can be explained: the one statements run on, or another as it would be.
    fn platform_called(&self, name: &str) -> Result<&Arc<dyn Platform>> {
        let all = || std::iter::once(&self.platform).chain(&self.explained);
        all().find(|platform| platform.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names: Vec<&str> = self.explained.iter().map(|platform| platform.name()).collect();
            Error::unsupported(format!("there is no platform {name}; there are {}", names.join(", ")))
        })
    }

    fn show(&self, name: &str, started: Instant) -> Result<QueryResult> {
        if name != "all" {
            return rows(&[(name, texts(&[self.values.get(name)?]))], started);
        }
        let values = SETTINGS.iter().map(|(name, _)| self.values.get(name)).collect::<Result<Vec<_>>>()?;
        let (names, meanings): (Vec<_>, Vec<_>) = SETTINGS.into_iter().unzip();
        let columns = [("name", texts(&names)), ("value", texts(&values)), ("meaning", texts(&meanings))];
        rows(&columns, started)
    }
}

/// The number of rows a materialise sub-operator says it wrote.
fn rows_written(ran: &Ran) -> Result<String> {
    let written = ran.collected.single()?;
    let position = ran.program.tuple().index_of("rows");
    let column = position.map(|position| written.column(position)).transpose()?;
    let array = column.map(|column| column.plain()).transpose()?;
    let array = array.ok_or_else(|| Error::internal("a materialise sub-operator that counts no rows"))?;
    Ok(arrow::util::display::array_value_to_string(&array, 0)?)
}

fn describe(tuple: &Tuple, started: Instant) -> Result<QueryResult> {
    let names: Vec<&str> = tuple.fields().iter().map(|field| &*field.name).collect();
    let types: Vec<String> = tuple.fields().iter().map(|field| field.item.to_string()).collect();
    let nullable: BooleanArray = tuple.fields().iter().map(|field| Some(field.nullable)).collect();
    rows(&[("column", texts(&names)), ("type", texts(&types)), ("nullable", Arc::new(nullable))], started)
}

fn texts<S: AsRef<str>>(values: &[S]) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(values))
}

fn rows(columns: &[(&str, ArrayRef)], started: Instant) -> Result<QueryResult> {
    let field =
        |(name, array): &(&str, ArrayRef)| Ok(Field::new(*name, Atom::from_arrow(array.data_type())?));
    let tuple = Tuple::new(columns.iter().map(field).collect::<Result<Vec<_>>>()?);
    let names = columns.iter().map(|(name, _)| name.to_string()).collect();
    let chunk = Chunk::from_arrays(columns.iter().map(|(_, array)| array.clone()).collect());
    let collected = Arc::new(Collected { chunks: vec![chunk] });
    QueryResult::new(tuple, names, collected, started.elapsed())
}
