//! Statements that are not plain queries: CREATE TABLE AS, CREATE FUNCTION, ANALYZE, EXPLAIN, SHOW.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, BooleanArray, StringViewArray};
use tessera_binder::PlannedQuery;
use tessera_optimizer::table::TableCatalog;
use tessera_parser::ExplainFormat;
use tessera_plan::{Plan, text, verify};
use tessera_sql::{CreateFunction, CreateTableAs, Explain};
use tessera_types::{Atom, Error, Field, Result, SqlState, Tuple, did_you_mean};
use tessera_vector::Chunk;

use crate::analyze::{self, Report};
use crate::explain::{self, Summary};
use crate::functions;
use crate::memory_table::{self, MemoryTable};
use crate::result::ResultColumns;
use crate::run::{FinishedRun, Runner};
use crate::session::{Session, find_platform};
use crate::stream::ResultStream;

impl Session {
    /// Materializes the rows of a query as a table of this session.
    pub(crate) fn create_table(&mut self, create: &CreateTableAs) -> Result<String> {
        let name = create.name.join(".");
        if !create.temporary && self.config.database.is_some() {
            return Err(Error::unsupported(format!(
                "cannot create table {name} in a database of files; CREATE TEMP TABLE keeps the rows in memory for this session, and \
                 COPY (query) TO 'file.parquet' writes them to a file"
            )));
        }
        if !self.platform.accepts_local_paths() {
            let platform = self.platform.name();
            return Err(Error::unsupported(format!(
                "cannot create table {name} on platform {platform}: only platform local has tables in memory; write a file with COPY \
                 (query) TO 'file.parquet' and query that"
            )));
        }
        let Some(name) = self.catalog.available_name(create)? else {
            return Ok("CREATE TABLE".to_string());
        };
        let (_, finished) =
            self.runner().run_with_retry(&self.optimized(&memory_table::plan(&create.query)?)?)?;
        let blocks = memory_table::blocks(&finished.collected)?;
        blocks.release();
        drop(finished);
        let memory = self.memory.keep(blocks.bytes(), &self.cancel.interrupt)?;
        let rows = blocks.rows();
        let (table, tuples) = MemoryTable::new(name, &create.query, blocks, memory);
        self.catalog.insert_in_memory(name, table, tuples);
        Ok(format!("SELECT {rows}"))
    }

    /// Compiles a function and adds it to the library.
    pub(crate) fn create_function(&self, create: &CreateFunction) -> Result<()> {
        let platform = self.platform.name();
        if !self.config.native_functions {
            return Err(Error::unsupported(format!(
                "cannot create function {}: functions are machine code with all rights of this process; start with --native-functions to allow them",
                create.name
            )));
        }
        if !self.platform.accepts_local_paths() {
            return Err(Error::unsupported(format!(
                "cannot create function {} on platform {platform}, whose other processes do not have it; use platform local",
                create.name
            )));
        }
        functions::create(self.registry.library(), create)
    }

    /// Reads one table, or all tables but views, and returns the statistics.
    pub(crate) fn analyze(
        &self,
        name: Option<&[String]>,
        started: Instant,
    ) -> Result<ResultStream> {
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
            Ok(Some(_)) => {
                Error::unsupported("it is a view; run ANALYZE on the tables that it reads")
            }
            _ => {
                let known = self.table_names();
                let hint = did_you_mean(shown, known.iter().map(String::as_str));
                Error::semantic(format!("unknown table{hint}; SHOW TABLES lists the tables"))
                    .with_state(SqlState::UNDEFINED_TABLE)
            }
        })?;
        let Some(sample) = &table.sample else {
            return Err(Error::unsupported(match self.values.samples {
                false => {
                    "statistics = metadata does not use samples; run SET statistics = samples first"
                }
                true => {
                    "its store does not report object versions, so that statistics cannot be cached; copy the table to a store that does"
                }
            }));
        };
        let run = |plan: &Plan| {
            Ok::<_, Error>(self.runner().run_with_retry(&self.optimized(plan)?)?.1.collected)
        };
        let counted = run(&analyze::counts_plan(&table))?;
        let counts = analyze::counts(&counted)?;
        let collected = run(&analyze::sample_plan(&table, counts.rows))?;
        let drawn = analyze::sampled_rows(&table, &counts, &collected)?;
        let is_cached = sample.replace(&drawn);
        report.add(shown, &table, &counts, &drawn, is_cached);
        Ok(())
    }

    /// The text of `EXPLAIN`. Runs the query for `EXPLAIN ANALYZE`.
    pub(crate) fn explain(&self, explain: &Explain, started: Instant) -> Result<String> {
        let platform = match &explain.platform {
            Some(name) => Some(find_platform(&self.platforms, name)?),
            None => None,
        };
        if explain.format == ExplainFormat::Html {
            return Err(Error::unsupported(
                "unsupported EXPLAIN format HTML; expected TEXT or JSON",
            ));
        }
        let json = explain.format == ExplainFormat::Json;
        let plan = self.optimized(&explain.query.plan)?;
        if explain.analyze {
            if let Some(other) = platform.filter(|platform| platform.name() != self.platform.name())
            {
                let (other, current) = (other.name(), self.platform.name());
                return Err(Error::unsupported(format!(
                    "cannot run EXPLAIN ANALYZE on platform {other}: this session runs on {current}; start with --platform {other}"
                )));
            }
            let (plan, finished) = self.runner().run_with_retry(&plan)?;
            let profile = finished.ready.record.profile();
            let summary = Summary {
                planning: finished.ready.planned_at - started,
                execution: finished.ready.planned_at.elapsed(),
                rows: finished.collected.rows(),
                threads: self.engine.workers(),
                pipelines: finished.ready.record.plan().pipeline_count(),
                memory_peak_bytes: finished.ready.governor.peak_bytes(),
                device_memory_peak_bytes: finished.ready.governor.device_peak_bytes(),
                stores: self.storage.totals(),
                compiling: finished
                    .ready
                    .compiler
                    .map(|compiler| compiler.compile_stats())
                    .unwrap_or_default(),
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
        let verified = verify(&plan, self.registry.catalog())?;
        Ok(match (json, explain.verbose) {
            (true, _) => explain::json(&plan, None),
            (false, true) => text::explain(&plan, &verified),
            (false, false) => {
                let platform_note = |path: &[usize]| {
                    let node = explain::plan_node_at(&plan, path)?;
                    let descriptor = self.registry.catalog().descriptor(&node.operator).ok()?;
                    let platform = platform.filter(|_| descriptor.is_platform_specific())?;
                    Some(format!("of platform {}", platform.name()))
                };
                text::annotate(&plan, &platform_note)
            }
        })
    }

    /// The value of a setting, or all settings with values and meanings.
    pub(crate) fn show(&self, name: &str, started: Instant) -> Result<ResultStream> {
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

/// The number of rows that a materialize sub-operator has written.
pub(crate) fn rows_written(finished: &FinishedRun) -> Result<String> {
    let written = finished.collected.single()?;
    let position = finished.ready.record.plan().tuple().index_of("rows");
    let column = position.map(|position| written.column(position)).transpose()?;
    let array = column.map(|column| column.plain()).transpose()?;
    let array =
        array.ok_or_else(|| Error::internal("a materialize sub-operator without a row count"))?;
    Ok(arrow::util::display::array_value_to_string(&array, 0)?)
}

/// The result of `DESCRIBE`.
pub(crate) fn describe(query: &PlannedQuery, started: Instant) -> Result<ResultStream> {
    let fields = query.tuple.fields();
    let types: Vec<String> = fields.iter().map(|field| field.item.to_string()).collect();
    let nullable: BooleanArray = fields.iter().map(|field| Some(field.nullable)).collect();
    rows(
        &[
            ("column", texts(&query.names)),
            ("type", texts(&types)),
            ("nullable", Arc::new(nullable)),
        ],
        started,
    )
}

/// A column of strings.
pub(crate) fn texts<S: AsRef<str>>(values: &[S]) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(values))
}

/// A result of named columns in memory.
pub(crate) fn rows(columns: &[(&str, ArrayRef)], started: Instant) -> Result<ResultStream> {
    let field = |(name, array): &(&str, ArrayRef)| {
        let atom = Atom::from_arrow(array.data_type())?;
        Ok(Field::new(*name, atom).with_nullable(array.null_count() > 0))
    };
    let tuple = Tuple::new(columns.iter().map(field).collect::<Result<Vec<_>>>()?);
    let names = columns.iter().map(|(name, _)| name.to_string()).collect();
    let chunk = Chunk::from_arrays(columns.iter().map(|(_, array)| array.clone()).collect());
    Ok(ResultStream::in_memory(ResultColumns::new(tuple, names)?, chunk, started))
}
