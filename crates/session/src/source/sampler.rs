//! Samples: a few rows of a table, read with its scan.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tessera_context::{Run, lock};
use tessera_engine::{Governor, Query};
use tessera_objects::is_object;
use tessera_operator::{Lowering, Operator, Registry, SourceRun};
use tessera_optimizer::sample::{Sample, SampledRows, Sampler};
use tessera_optimizer::table::Table;
use tessera_plan::{Edge, Inputs, Node, Order, Traits, Value};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::compact_strings;

use super::Stamps;
use super::sample_file::{SampleFile, SampledColumns};
use super::sample_reader::{SampledRanges, read_sample};
use crate::storage::Storage;

/// A table of at most this many rows is sampled entirely, so that the sample of a dimension has all
/// keys.
const WHOLE_ROWS_MAX: f64 = 100_000.0;
/// The sample size of a larger table. It gives a selectivity of 1 in 100 to within about 10 %.
const SAMPLE_ROWS: f64 = 8_000.0;
/// The number of morsels to read whole. Four of 131,072 rows take about 2 ms per column.
const MORSELS_MAX: usize = 4;
/// The number of morsels to read in part, if there are more: the rows of many files are ordered by
/// time, and a few whole morsels would miss most of it.
const PARTS_MAX: usize = 8;
/// The number of rows to read from these parts.
const PART_ROWS: usize = MORSELS_MAX << 17;
/// The time limit for reading a sample.
const TIME_MAX: Duration = Duration::from_millis(30);
/// A sample that was cut short, for instance because the machine was busy, is kept for later
/// processes if it has this many rows and need not have all.
const KEPT_ROWS_MIN: usize = 1_000;
/// The memory limit for reading a sample.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// Creates the samples of tables.
#[derive(Clone)]
pub(crate) struct TableSampler {
    registry: Arc<Registry>,
    storage: Storage,
    /// The directory that caches samples for later processes.
    cache: Option<PathBuf>,
}

impl fmt::Debug for TableSampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSampler").finish_non_exhaustive()
    }
}

/// Draws a sample of one table with its scan.
#[derive(Debug)]
struct ScanSampler {
    sampler: TableSampler,
    node: Node,
    tuple: Tuple,
    /// The number of rows in the statistics of the table.
    rows: f64,
    /// Whether the files are objects in a store.
    remote: bool,
    file: Option<SampleFile>,
    state: Mutex<SampleState>,
}

/// The rows drawn so far.
#[derive(Debug, Default)]
struct SampleState {
    /// Whether the sample file has been read.
    is_loaded: bool,
    /// The ranges of the first draw. Later draws read the same ranges.
    ranges: Option<SampledRanges>,
    /// Whether the first draw was cut short, and is not worth keeping.
    is_poor: bool,
    columns: SampledColumns,
}

impl TableSampler {
    /// Creates a sampler that caches samples in the directory `cache`, if given.
    pub(crate) fn new(
        registry: Arc<Registry>,
        storage: Storage,
        cache: Option<PathBuf>,
    ) -> TableSampler {
        TableSampler { registry, storage, cache }
    }

    /// The sample of a table of files. Objects are not read, because each range takes a round trip:
    /// their sample is the cached one of `ANALYZE`. `None` if a store reports no object versions.
    pub(crate) fn sample(&self, table: &Table, stamps: &Stamps) -> Option<Arc<Sample>> {
        Some(self.lazy_sample(table, self.scan_sampler(table, stamps)?))
    }

    /// The sample of a table in memory.
    pub(crate) fn sample_in_memory(&self, table: &Table) -> Arc<Sample> {
        self.lazy_sample(table, self.new_scan_sampler(table, false, None))
    }

    /// A sample that `sampler` draws when it is first used.
    fn lazy_sample(&self, table: &Table, sampler: ScanSampler) -> Arc<Sample> {
        Arc::new(Sample::new(
            table.tuple.clone(),
            Box::new(sampler),
            self.registry.library().clone(),
        ))
    }

    fn scan_sampler(&self, table: &Table, stamps: &Stamps) -> Option<ScanSampler> {
        let Some(Value::List(paths)) = table.params.get("paths") else { return None };
        let remote =
            paths.iter().any(|path| matches!(path, Value::String(path) if is_object(path)));
        if remote && !stamps.unchanged(stamps) {
            return None;
        }
        let scan = format!("{} {:?} {}", table.operator, table.params, table.tuple);
        let versions =
            format!("{scan}\n{stamps:?}\n{WHOLE_ROWS_MAX} {SAMPLE_ROWS} {KEPT_ROWS_MIN}");
        let cache = self.cache.as_ref().filter(|_| stamps.unchanged(stamps));
        let file = cache.map(|directory| SampleFile::new(directory, &scan, versions));
        Some(self.new_scan_sampler(table, remote, file))
    }

    fn new_scan_sampler(
        &self,
        table: &Table,
        remote: bool,
        file: Option<SampleFile>,
    ) -> ScanSampler {
        let node = Node::new(table.operator.clone(), Vec::new(), table.params.clone(), Vec::new());
        let (sampler, tuple) = (self.clone(), table.tuple.clone());
        let rows = table.statistics.rows.unwrap_or(0.0);
        ScanSampler { sampler, node, tuple, rows, remote, file, state: Mutex::default() }
    }
}

impl Sampler for ScanSampler {
    fn draw(&self, columns: &[usize]) -> Option<SampledRows> {
        let mut state = lock(&self.state);
        if !state.is_loaded {
            state.is_loaded = true;
            if let Some(found) = self.file.as_ref().and_then(SampleFile::load) {
                state.ranges = SampledRanges::decode(&found.ranges);
                state.columns = found;
            }
        }
        let missing: Vec<usize> = columns
            .iter()
            .copied()
            .filter(|column| !state.columns.numbers.contains(column))
            .collect();
        if !missing.is_empty() {
            if self.remote {
                return None;
            }
            // Ignores the error: the query reports it when it reads the file.
            self.read_rows(&missing, &mut state).ok()?;
            // Keeps the better sample that `ANALYZE` in another process may have written meanwhile.
            let is_analyzed =
                |file: &SampleFile| file.load().is_some_and(|found| found.is_analyzed());
            let kept = |file: &&SampleFile| !state.is_poor && !is_analyzed(file);
            if let Some(file) = self.file.as_ref().filter(kept) {
                file.save(&state.columns);
            }
        }
        let SampleState { columns: SampledColumns { numbers, rows, .. }, .. } = &*state;
        let position = |column: &usize| numbers.iter().position(|known| known == column);
        let array = |column: &usize| rows.columns.get(position(column)?).cloned();
        let counted = |column: &usize| rows.distinct.get(position(column)?).copied().flatten();
        Some(SampledRows {
            columns: columns.iter().map(array).collect::<Option<Vec<_>>>()?,
            distinct: columns.iter().map(counted).collect(),
            rows: rows.rows,
            table_rows: rows.table_rows,
            uniform: rows.uniform,
        })
    }

    fn replace(&self, rows: &SampledRows) -> bool {
        let numbers = (0..rows.columns.len()).collect();
        let columns = SampledColumns { ranges: Vec::new(), numbers, rows: rows.clone() };
        let is_saved = self.file.as_ref().is_some_and(|file| file.save(&columns));
        *lock(&self.state) = SampleState { is_loaded: true, ranges: None, is_poor: false, columns };
        is_saved
    }
}

impl ScanSampler {
    /// Reads columns and adds them to the sample.
    fn read_rows(&self, columns: &[usize], state: &mut SampleState) -> Result<()> {
        let fields = columns.iter().filter_map(|column| self.tuple.fields().get(*column)).cloned();
        let tuple = Tuple::new(fields.collect::<Vec<_>>());
        let source = self.source(&tuple, &self.run())?;
        let all = source.morsels();
        let known = state.ranges.clone().filter(|ranges| ranges.all == all);
        let first = known.is_none();
        let ranges = known.unwrap_or_else(|| self.ranges(all));
        let start = Instant::now();
        let is_over = || first && start.elapsed() > TIME_MAX;
        let (sample, progress) = read_sample(&*source, &ranges, &tuple, &is_over)?;
        let rows_read: usize = progress.morsels.iter().map(|(_, rows)| *rows).sum();
        if first {
            let in_parts = ranges.morsels.iter().any(|(_, limit)| *limit != usize::MAX);
            let complete = progress.morsels.len() == all && !progress.timed_out && !in_parts;
            let least = sample.num_rows() as f64 + 1.0;
            let table_rows = match complete {
                true if ranges.takes_all() => rows_read as f64,
                _ if self.has_row_count() => self.rows.max(least),
                _ => (rows_read as f64 / progress.morsels.len().max(1) as f64 * all as f64)
                    .max(least),
            };
            let ranges = SampledRanges { morsels: progress.morsels, ..ranges };
            let rows = sample.num_rows();
            state.is_poor = progress.timed_out && (ranges.takes_all() || rows < KEPT_ROWS_MIN);
            let rows =
                SampledRows { rows, table_rows, uniform: complete, ..SampledRows::default() };
            state.columns = SampledColumns { ranges: ranges.encode(), numbers: Vec::new(), rows };
            state.ranges = Some(ranges);
        }
        if sample.num_rows() != state.columns.rows.rows {
            return Err(Error::data("the table has changed while it was sampled"));
        }
        state.columns.numbers.extend(columns);
        state.columns.rows.columns.extend(sample.columns().iter().map(compact_strings));
        state.columns.rows.distinct.resize(state.columns.numbers.len(), None);
        Ok(())
    }

    /// Whether the table has an exact row count, as a table in memory has.
    fn has_row_count(&self) -> bool {
        let format = self.sampler.registry.formats().of_scan(&self.node.operator);
        format.map_or(&*self.node.operator == "block_scan", |format| format.entry().counts_rows)
    }

    /// Chooses the ranges of the first draw: evenly spaced morsels.
    fn ranges(&self, all: usize) -> SampledRanges {
        let is_small = self.rows <= WHOLE_ROWS_MAX;
        let in_parts = !is_small && all > MORSELS_MAX && self.has_row_count();
        let count = all.min(if is_small || in_parts { PARTS_MAX } else { MORSELS_MAX });
        let limit = if in_parts { PART_ROWS / count } else { usize::MAX };
        // Reading may stop early, so that the first ones should be far apart.
        let apart = (0..PARTS_MAX).map(|n| n.reverse_bits() >> PARTS_MAX.leading_zeros() >> 1);
        let morsels = apart.filter(|n| *n < count).map(|n| (n * all / count, limit)).collect();
        let rows = count as f64 * (self.rows / all.max(1) as f64).min(limit as f64);
        let share = if is_small { 1.0 } else { (SAMPLE_ROWS / rows).min(1.0) };
        SampledRanges { morsels, all, share: (share * (1u64 << 32) as f64) as u64 }
    }

    /// A run with a small memory budget and no workers.
    fn run(&self) -> Run {
        let (opener, creator) = (self.sampler.storage.opener(), self.sampler.storage.creator());
        let settings = tessera_engine::Settings { opener, creator, ..Default::default() };
        Run::new(Query::new(settings, &Governor::new(MEMORY_BYTES_MAX)))
    }

    /// Starts the scan of the given columns.
    fn source(&self, columns: &Tuple, run: &Run) -> Result<Arc<dyn SourceRun>> {
        let mut node = self.node.clone();
        node.params.set("columns", columns.clone());
        let (registry, parameters) = (&self.sampler.registry, Tuple::empty());
        let edge = Edge { tuple: parameters.clone(), traits: Traits::DRIVER, order: Order::Source };
        let edges = std::slice::from_ref(&edge);
        let scan = registry.implementation(&node.operator)?;
        let functions = registry.catalog().functions();
        let output =
            scan.derive(&node, &Inputs { edges, nested: &[], parameters: &parameters, functions })?;
        let lowering = Lowering {
            inputs: edges,
            output: &output,
            parameters: &parameters,
            nested_outputs: Vec::new(),
            position: 0,
            library: registry.library(),
        };
        match scan.lower(&node, &lowering)? {
            Operator::Source(source) => source.start(run, &[]),
            _ => Err(Error::internal(format!(
                "the scan {} of a table is not a source",
                node.operator
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::*;

    #[test]
    fn what_was_read_to_its_end_is_whole_however_late() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let late = |rows: usize| {
            let lines = (0..rows).map(|row| format!("{row}\n"));
            std::fs::write(
                &path,
                std::iter::once("x\n".to_string()).chain(lines).collect::<String>(),
            )
            .unwrap();
            let registry = Arc::new(tessera_testing::standard_registry());
            let formats = registry.formats().clone();
            let storage = Storage::new(Vec::new(), crate::storage::StreamAccess::All, formats);
            let table = Source::at(&storage, "t", path.to_str().unwrap())
                .unwrap()
                .describe(&storage)
                .unwrap();
            let stamps = Stamps::of(&storage, &[path.to_str().unwrap().to_string()]);
            let sampler = TableSampler::new(registry, storage, None);
            let draw = sampler.scan_sampler(&table, &stamps).unwrap();
            let source = draw.source(&draw.tuple, &draw.run()).unwrap();
            let ranges = draw.ranges(source.morsels());
            read_sample(&*source, &ranges, &draw.tuple, &|| true).unwrap()
        };
        let (sample, progress) = late(20);
        assert_eq!((sample.num_rows(), progress.timed_out), (20, false));
        let (sample, progress) = late(10_000);
        assert!(
            progress.timed_out && (1..10_000).contains(&sample.num_rows()),
            "{}",
            sample.num_rows()
        );
    }
}
