//! Samples: a few rows of a table, read by its own scan.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use tessera_context::{Run, lock};
use tessera_engine::{Governor, Query};
use tessera_objects::is_object;
use tessera_operator::{Lowering, Operator, Registry, SourceRun, Step};
use tessera_optimizer::sample::{Draw, Drawn, Sample};
use tessera_optimizer::table::Table;
use tessera_plan::{Edge, Inputs, Node, Order, Traits, Value};
use tessera_types::{Error, Result, Tuple};
use tessera_vector::hash::{MULTIPLIER, SEED, fold};
use tessera_vector::own_strings;

use super::Stamps;
use super::kept::{Columns, Kept};
use crate::storage::Storage;

/// A table of at most this many rows is sampled whole, so that keys of a dimension are all there.
const WHOLE_ROWS_MAX: f64 = 20_000.0;
/// Rows that are kept of a larger one: a share of 1 in 100 is then known to some 10 %.
const SAMPLE_ROWS: f64 = 8_000.0;
/// Morsels that are read of a table: four of 131,072 rows take some 2 ms a column.
const MORSELS_MAX: usize = 4;
/// No more is read after this time.
const TIME_MAX: Duration = Duration::from_millis(30);
/// How long it is waited for bytes that are not there yet, at a time.
const WAIT: Duration = Duration::from_millis(5);
/// The most memory that reading may take.
const MEMORY_BYTES_MAX: usize = 256 << 20;

/// Reads samples of tables.
#[derive(Clone)]
pub(crate) struct Sampler {
    registry: Arc<Registry>,
    storage: Storage,
    /// Where samples are kept for other processes.
    cache: Option<PathBuf>,
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampler").finish_non_exhaustive()
    }
}

/// Draws rows of one table.
#[derive(Debug)]
struct ScanDraw {
    sampler: Sampler,
    node: Node,
    tuple: Tuple,
    /// How many rows the table is said to have.
    rows: f64,
    /// It is of objects.
    remote: bool,
    kept: Option<Kept>,
    state: Mutex<State>,
}

/// What has been drawn.
#[derive(Debug, Default)]
struct State {
    /// Whether it has been looked at what is kept.
    looked: bool,
    /// Where the first draw has read; later ones read the same.
    places: Option<Places>,
    columns: Columns,
}

/// Where sampled rows lie.
#[derive(Debug, Clone, PartialEq)]
struct Places {
    /// Numbers of morsels, and how many rows of each are looked at.
    morsels: Vec<(usize, usize)>,
    /// How many morsels there are.
    all: usize,
    /// The share of rows that is kept, as a part of 2^32.
    kept: u64,
}

impl Sampler {
    /// Samples are kept in the directory `cache`, if there is one.
    pub(crate) fn new(
        registry: Arc<Registry>,
        storage: Storage,
        cache: Option<PathBuf>,
    ) -> Sampler {
        Sampler { registry, storage, cache }
    }

    /// The sample of a table of files. Of objects, which take a round trip for each range, there is
    /// what `ANALYZE` has left; nothing where a store does not say which version they are.
    pub(crate) fn sample(&self, table: &Table, stamps: &Stamps) -> Option<Arc<Sample>> {
        Some(self.drawn_by(table, self.draws(table, stamps)?))
    }

    /// The sample of a table in memory.
    pub(crate) fn sample_in_memory(&self, table: &Table) -> Arc<Sample> {
        self.drawn_by(table, self.draws_from(table, false, None))
    }

    fn drawn_by(&self, table: &Table, draw: ScanDraw) -> Arc<Sample> {
        Arc::new(Sample::new(table.tuple.clone(), Box::new(draw), self.registry.library().clone()))
    }

    fn draws(&self, table: &Table, stamps: &Stamps) -> Option<ScanDraw> {
        let Some(Value::List(paths)) = table.params.get("paths") else { return None };
        let remote =
            paths.iter().any(|path| matches!(path, Value::String(path) if is_object(path)));
        if remote && !stamps.unchanged(stamps) {
            return None;
        }
        let reads = format!("{} {:?} {}", table.operator, table.params, table.tuple);
        let versions = format!("{reads}\n{stamps:?}");
        let cache = self.cache.as_ref().filter(|_| stamps.unchanged(stamps));
        let kept = cache.map(|directory| Kept::new(directory, &reads, versions));
        Some(self.draws_from(table, remote, kept))
    }

    fn draws_from(&self, table: &Table, remote: bool, kept: Option<Kept>) -> ScanDraw {
        let node = Node::new(table.operator.clone(), Vec::new(), table.params.clone(), Vec::new());
        let (sampler, tuple) = (self.clone(), table.tuple.clone());
        let rows = table.statistics.rows.unwrap_or(0.0);
        ScanDraw { sampler, node, tuple, rows, remote, kept, state: Mutex::default() }
    }
}

impl Draw for ScanDraw {
    fn draw(&self, columns: &[usize]) -> Option<Drawn> {
        let mut state = lock(&self.state);
        if !state.looked {
            state.looked = true;
            if let Some(found) = self.kept.as_ref().and_then(Kept::load) {
                state.places = Places::of(&found.places);
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
            // What cannot be read is the query's to complain of.
            self.read_rows(&missing, &mut state).ok()?;
            // What `ANALYZE` has left meanwhile, in another process, is better.
            let better = |kept: &Kept| kept.load().is_some_and(|found| found.is_counted());
            if let Some(kept) = self.kept.as_ref().filter(|kept| !better(kept)) {
                kept.save(&state.columns);
            }
        }
        let State { columns: Columns { numbers, drawn, .. }, .. } = &*state;
        let position = |column: &usize| numbers.iter().position(|known| known == column);
        let array = |column: &usize| drawn.columns.get(position(column)?).cloned();
        let counted = |column: &usize| drawn.distinct.get(position(column)?).copied().flatten();
        Some(Drawn {
            columns: columns.iter().map(array).collect::<Option<Vec<_>>>()?,
            distinct: columns.iter().map(counted).collect(),
            rows: drawn.rows,
            table_rows: drawn.table_rows,
            even: drawn.even,
        })
    }

    fn replace(&self, drawn: &Drawn) -> bool {
        let numbers = (0..drawn.columns.len()).collect();
        let columns = Columns { places: Vec::new(), numbers, drawn: drawn.clone() };
        let kept = self.kept.as_ref().is_some_and(|kept| kept.save(&columns));
        *lock(&self.state) = State { looked: true, places: None, columns };
        kept
    }
}

impl ScanDraw {
    /// Adds columns to what has been drawn.
    fn read_rows(&self, columns: &[usize], state: &mut State) -> Result<()> {
        let fields = columns.iter().filter_map(|column| self.tuple.fields().get(*column)).cloned();
        let tuple = Tuple::new(fields.collect::<Vec<_>>());
        let source = self.source(&tuple, &self.run())?;
        let all = source.morsels();
        let known = state.places.clone().filter(|places| places.all == all);
        let first = known.is_none();
        let places = known.unwrap_or_else(|| self.places(all));
        let ends_at = first.then(|| Instant::now() + TIME_MAX);
        let (sample, read) = sampled(&*source, &places, &tuple, ends_at)?;
        let looked_at: usize = read.morsels.iter().map(|(_, rows)| *rows).sum();
        if first {
            let complete = read.morsels.len() == all && !read.cut;
            let least = sample.num_rows() as f64 + 1.0;
            let table_rows = match complete {
                true if places.kept >> 32 > 0 => looked_at as f64,
                _ if self.known_rows() => self.rows.max(least),
                _ => (looked_at as f64 / read.morsels.len().max(1) as f64 * all as f64).max(least),
            };
            let places = Places { morsels: read.morsels, ..places };
            let rows = sample.num_rows();
            let drawn = Drawn { rows, table_rows, even: complete, ..Drawn::default() };
            state.columns = Columns { places: places.numbers(), numbers: Vec::new(), drawn };
            state.places = Some(places);
        }
        if sample.num_rows() != state.columns.drawn.rows {
            return Err(Error::data("a sample has other rows than before: the table has changed"));
        }
        state.columns.numbers.extend(columns);
        state.columns.drawn.columns.extend(sample.columns().iter().map(own_strings));
        state.columns.drawn.distinct.resize(state.columns.numbers.len(), None);
        Ok(())
    }

    /// Whether the file tells how many rows there are, or the table in memory.
    fn known_rows(&self) -> bool {
        matches!(&*self.node.operator, "parquet_scan" | "block_scan")
    }

    fn places(&self, all: usize) -> Places {
        let count = all.min(MORSELS_MAX);
        let morsels = (0..count).map(|number| (number * all / count, usize::MAX)).collect();
        let rows = self.rows * count as f64 / all.max(1) as f64;
        let share = if self.rows <= WHOLE_ROWS_MAX { 1.0 } else { (SAMPLE_ROWS / rows).min(1.0) };
        Places { morsels, all, kept: (share * (1u64 << 32) as f64) as u64 }
    }

    fn run(&self) -> Run {
        let (opener, creator) = (self.sampler.storage.opener(), self.sampler.storage.creator());
        let settings = tessera_engine::Settings { opener, creator, ..Default::default() };
        Run::of(Query::new(settings, &Governor::new(MEMORY_BYTES_MAX)))
    }

    /// The table's scan of these columns.
    fn source(&self, columns: &Tuple, run: &Run) -> Result<Arc<dyn SourceRun>> {
        let mut node = self.node.clone();
        node.params.set("columns", columns.clone());
        let (registry, parameters) = (&self.sampler.registry, Tuple::empty());
        let edge = Edge { tuple: parameters.clone(), traits: Traits::DRIVER, order: Order::Source };
        let edges = std::slice::from_ref(&edge);
        let scan = registry.implementation(&node.operator)?;
        let functions = registry.catalogue().functions();
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
            _ => Err(Error::internal(format!("{} is a table's scan and no source", node.operator))),
        }
    }
}

/// What was read of a source.
struct Read {
    /// Numbers of morsels, and how many rows were looked at.
    morsels: Vec<(usize, usize)>,
    /// Time was over.
    cut: bool,
}

/// The sampled rows of a source, until `ends_at`, of the first chunk in any case.
fn sampled(
    source: &dyn SourceRun,
    places: &Places,
    tuple: &Tuple,
    ends_at: Option<Instant>,
) -> Result<(RecordBatch, Read)> {
    let over = || ends_at.is_some_and(|ends_at| Instant::now() > ends_at);
    let (mut batches, mut read) = (Vec::new(), Read { morsels: Vec::new(), cut: false });
    for (morsel, limit) in &places.morsels {
        // Only where there is more is it cut: what was read to its end is known whole, however
        // late.
        read.cut = !batches.is_empty() && over();
        if read.cut {
            break;
        }
        let mut reader = source.open(*morsel)?;
        let mut rows = 0;
        while rows < *limit {
            match reader.step()? {
                Step::HasOutput(_) if !batches.is_empty() && over() => {
                    read.cut = true;
                    break;
                }
                Step::HasOutput(chunk) => {
                    let chunk = chunk.compact()?;
                    let batch = chunk.slice(0, chunk.rows().min(limit - rows)).to_batch(tuple)?;
                    let kept =
                        (rows..rows + batch.num_rows()).map(|row| places.keeps(*morsel, row));
                    rows += batch.num_rows();
                    batches.push(filter_record_batch(
                        &batch,
                        &kept.map(Some).collect::<BooleanArray>(),
                    )?);
                }
                Step::Again => {}
                Step::Blocked(token) => token.wait(WAIT),
                Step::NeedInput | Step::Done => break,
            }
        }
        read.morsels.push((*morsel, rows));
        if read.cut {
            break;
        }
    }
    Ok((concat_batches(&Arc::new(tuple.arrow_schema()?), &batches)?, read))
}

impl Places {
    /// As numbers, to be kept.
    fn numbers(&self) -> Vec<u64> {
        let morsels = self.morsels.iter().flat_map(|(morsel, rows)| [*morsel as u64, *rows as u64]);
        [self.all as u64, self.kept].into_iter().chain(morsels).collect()
    }

    /// What [`Places::numbers`] has made.
    fn of(numbers: &[u64]) -> Option<Places> {
        let ([all, kept], morsels) = numbers.split_first_chunk()?;
        let morsels =
            morsels.chunks_exact(2).map(|pair| (pair[0] as usize, pair[1] as usize)).collect();
        Some(Places { morsels, all: *all as usize, kept: *kept })
    }

    /// Whether a row of a morsel is sampled: by its number, so that every draw has the same rows.
    fn keeps(&self, morsel: usize, row: usize) -> bool {
        let word = fold(SEED ^ (morsel as u64) << 40 ^ row as u64, MULTIPLIER);
        word >> 32 < self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::*;

    #[test]
    fn about_the_wanted_share_of_rows_is_kept() {
        for share in [0.01, 0.2, 1.0] {
            let kept = (share * (1u64 << 32) as f64) as u64;
            let places = Places { morsels: vec![(0, 7), (2, 9)], all: 3, kept };
            let found = (0..100_000).filter(|row| places.keeps(2, *row)).count() as f64 / 1e5;
            assert!((found - share).abs() < 0.01, "{found} of {share}");
            assert_eq!(Places::of(&places.numbers()), Some(places));
        }
    }

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
            let storage = Storage::new(Vec::new(), crate::storage::Streams::Read);
            let table = Source::at(&storage, "t", path.to_str().unwrap())
                .unwrap()
                .describe(&storage)
                .unwrap();
            let stamps = Stamps::of(&storage, &[path.to_str().unwrap().to_string()]);
            let sampler =
                Sampler::new(Arc::new(tessera_testing::standard_registry()), storage, None);
            let draw = sampler.draws(&table, &stamps).unwrap();
            let source = draw.source(&draw.tuple, &draw.run()).unwrap();
            let places = draw.places(source.morsels());
            sampled(&*source, &places, &draw.tuple, Some(Instant::now())).unwrap()
        };
        let (sample, read) = late(20);
        assert_eq!((sample.num_rows(), read.cut), (20, false));
        let (sample, read) = late(10_000);
        assert!(read.cut && (1..10_000).contains(&sample.num_rows()), "{}", sample.num_rows());
    }
}
