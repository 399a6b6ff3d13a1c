//! `parquet_scan`: reads Parquet files, as Lambada §3.3 describes.
//!
//! Footers and page indexes are read when the scan starts. Files (by their hive partitions), row
//! groups and pages that cannot contain a qualifying tuple are never read. A morsel is a row group,
//! or with a page index about [`MORSEL_ROWS`] of its rows, so that a small file keeps all workers
//! busy and bytes in flight stay bounded.
//!
//! Memory: for each worker the compressed bytes of one morsel, counted, or one page of a local file
//! if they are too large; decompressed pages, counted beyond a few megabytes; dictionaries until
//! the last morsel of the row group ends. Order: the source's. Errors: a file is missing, damaged,
//! or has other columns than declared.

mod facts;
mod fetch;
mod flat;
mod footer;
mod format;
mod hybrid;
mod intervals;
mod metadata;
mod nested;
mod reader;
mod schema;
mod skip;
mod summary;
mod unpack;
mod write;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow::array::ArrayRef;

use tessera_context::{RangeReader, Run, lock};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{Lowering, Operator, Reader, Source, SourceRun, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Pushes, Role, SortKey};
use tessera_rows::Collected;
use tessera_state::sideways::{
    FilterSubscription, ReceivedFilter, Threshold, ThresholdSubscription, wanted,
};
use tessera_types::{Atom, Error, Result, quote_name};

use crate::csv::flag;
use crate::file::{
    self, Conjunct, FilePredicate, FileScan, RunConjunct, check_type, conjuncts, null_constant,
    start_conjuncts, unreadable,
};

pub use format::Parquet;
pub use intervals::WriterSchema;
pub(crate) use intervals::stored;
pub use write::ParquetMaterialize;

use flat::RowGroupState;
pub use summary::{ColumnSummary, FileSummary, discover};

use metadata::Metadata;
use reader::{Morsel, MorselReader};

/// The option of a column with the number of each row in its file, and the column's name.
const ROW_NUMBER: &str = "file_row_number";
/// The files opened at once while footers are read.
const FOOTERS_AHEAD: usize = 64;
/// The bytes read at the end of an object, which contain most footers.
const FOOTER_BYTES: u64 = 64 << 10;

/// The rows of a morsel, if a page index permits to begin inside a row group.
pub const MORSEL_ROWS: usize = 131_072;
/// The most morsels of a row group; those of a larger one have more rows.
const GROUP_MORSELS_MAX: usize = 16_384;

/// The sub-operator `parquet_scan`.
#[derive(Debug)]
pub struct ParquetScan;

impl Descriptor for ParquetScan {
    tessera_operator::describe!(
        "parquet_scan",
        "Reads the tuples of Parquet files, skipping what statistics exclude.",
        [
            "paths",
            "columns",
            "fields",
            "filter",
            "partitions",
            "threshold",
            "filters",
            "union_by_name",
            "file_row_number"
        ],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let columns = node.params.tuple("columns")?;
        ThresholdSubscription::new(node, columns)?;
        FilterSubscription::list(node, columns)?;
        file::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }

    fn pushes(&self) -> Pushes {
        Pushes { key_filters: true, thresholds: true, ..Pushes::SCAN }
    }
}

impl SubOperator for ParquetScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let scan = FileScan::new(node)?;
        let threshold = ThresholdSubscription::new(node, &scan.columns)?;
        let filters = FilterSubscription::list(node, &scan.columns)?.into();
        let conjuncts = conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?;
        let wanted = FilePredicate::new(&scan, lowering)?;
        let row_number = match flag(&node.params, ROW_NUMBER)? {
            Some(true) => scan.columns.index_of(ROW_NUMBER),
            _ => None,
        };
        Ok(Operator::Source(Arc::new(ParquetScanOperator {
            scan: Arc::new(scan),
            conjuncts: conjuncts.into(),
            threshold,
            filters,
            wanted,
            row_number,
            files: Mutex::default(),
        })))
    }
}

#[derive(Debug)]
struct ParquetScanOperator {
    scan: Arc<FileScan>,
    conjuncts: Arc<[Conjunct]>,
    threshold: Option<ThresholdSubscription>,
    filters: Arc<[FilterSubscription]>,
    /// The predicate that decides which files are opened.
    wanted: FilePredicate,
    /// The column of the numbers of rows, if any.
    row_number: Option<usize>,
    /// Parsed footers by the position of the file, cached for later runs of the same plan.
    files: Mutex<BTreeMap<usize, Arc<FileState>>>,
}

/// A file whose footer was read.
#[derive(Debug)]
struct FileState {
    path: Arc<str>,
    /// The file's position in the scan.
    position: usize,
    len: u64,
    metadata: Metadata,
    columns: Vec<SourceColumn>,
}

/// The source of a scan column in one file.
#[derive(Debug)]
enum SourceColumn {
    /// A hive partition, or NULL for a column that the file lacks.
    Constant(ArrayRef),
    /// A root column of the file.
    File { root: usize, found: Atom },
    /// The number of each row in the file, from 0.
    RowNumber,
}

/// One run of a scan.
#[derive(Debug)]
struct ScanRun {
    run: Run,
    parameters: Arc<FileScan>,
    /// The columns that the predicate reads.
    filter_columns: Vec<usize>,
    conjuncts: Arc<[RunConjunct]>,
    files: Vec<Arc<FileState>>,
    threshold: Option<ScanThreshold>,
    filters: Arc<[FilterSubscription]>,
}

/// A column and the published threshold beyond which no tuple qualifies.
#[derive(Debug)]
struct ScanThreshold {
    column: usize,
    key: SortKey,
    value: Arc<Threshold>,
}

#[derive(Debug)]
struct MorselRun {
    scan: Arc<ScanRun>,
    /// The preferred order of morsels, if any.
    order: Option<Vec<usize>>,
    /// Each morsel is taken when it is opened, so that the state shared by a row group is freed
    /// with its last morsel.
    morsels: Vec<Mutex<Option<Morsel>>>,
}

impl Source for ParquetScanOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let files = self.files(run)?;
        let mut morsels = Vec::new();
        let (mut groups_read, mut groups_skipped) = (0, 0);
        for (position, file) in files.iter().enumerate() {
            for group in 0..file.metadata.parquet.num_row_groups() {
                let ranges = match &self.scan.filter {
                    Some(filter) => skip::rows_to_read(&self.scan, (file, group), filter),
                    None => skip::all_rows(file, group),
                };
                if ranges.is_empty() {
                    groups_skipped += 1;
                } else {
                    groups_read += 1;
                    split(position, file, group, ranges, &mut morsels);
                }
            }
        }
        run.counters.add("row_groups_read", groups_read);
        run.counters.add("row_groups_skipped", groups_skipped);
        let mut filter_columns: Vec<usize> =
            self.conjuncts.iter().flat_map(|c| c.columns.iter().copied()).collect();
        filter_columns.sort_unstable();
        filter_columns.dedup();
        let threshold = self.threshold.as_ref().and_then(|threshold| {
            let column = self.scan.columns.index_of(&threshold.key.field)?;
            let value = run.board.find_or_publish::<Threshold>(&threshold.name);
            Some(ScanThreshold { column, key: threshold.key.clone(), value })
        });
        let order = threshold.as_ref().map(|threshold| {
            let places = morsels.iter().map(|morsel| (&*files[morsel.file], morsel.group));
            skip::best_first(&self.scan, &threshold.key, places)
        });
        let scan = Arc::new(ScanRun {
            run: run.clone(),
            parameters: self.scan.clone(),
            filter_columns,
            conjuncts: start_conjuncts(&self.conjuncts, run),
            files,
            threshold,
            filters: self.filters.clone(),
        });
        Ok(Arc::new(MorselRun {
            scan,
            order,
            morsels: morsels.into_iter().map(|morsel| Mutex::new(Some(morsel))).collect(),
        }))
    }
}

impl SourceRun for MorselRun {
    fn morsels(&self) -> usize {
        self.morsels.len()
    }

    fn order(&self) -> Option<&[usize]> {
        self.order.as_deref()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let slot =
            self.morsels.get(morsel).ok_or_else(|| Error::internal("the morsel does not exist"))?;
        let morsel = lock(slot).take();
        let mut morsel = morsel.ok_or_else(|| Error::internal("the morsel was opened twice"))?;
        let filters = ReceivedFilter::published(
            &self.scan.filters,
            &self.scan.parameters.columns,
            &self.scan.run,
        );
        if !self.scan.narrow(&mut morsel, &filters) {
            return chunks_source(Vec::new(), 1).open(0);
        }
        Ok(Box::new(MorselReader::new(self.scan.clone(), morsel, filters)))
    }
}

impl ScanRun {
    /// Removes the rows that statistics show to be beyond the current threshold or outside the
    /// current filters. Returns whether rows remain.
    fn narrow(&self, morsel: &mut Morsel, filters: &[ReceivedFilter]) -> bool {
        let beyond = self.threshold.as_ref().and_then(|threshold| {
            let atom = self.parameters.columns.fields()[threshold.column].atom()?;
            wanted(&threshold.key, atom, &threshold.value.get()?)
        });
        let unmatched =
            filters.iter().filter_map(|received| received.filter.wanted(&received.names));
        let unmatched = unmatched.map(|wanted| ("rows_skipped_without_match", wanted));
        for (counter, wanted) in beyond
            .map(|wanted| ("rows_skipped_behind_threshold", wanted))
            .into_iter()
            .chain(unmatched)
        {
            let place = (&*self.files[morsel.file], morsel.group);
            let remaining = skip::intersect(
                &morsel.ranges,
                &skip::rows_to_read(&self.parameters, place, &wanted),
            );
            let skipped = skip::rows(&morsel.ranges) - skip::rows(&remaining);
            if skipped > 0 {
                self.run.counters.add(counter, skipped as u64);
                morsel.ranges = remaining.into();
            }
        }
        !morsel.ranges.is_empty()
    }
}

impl ParquetScanOperator {
    /// Returns the wanted files with their footers, which are read once per plan. A file that
    /// changes later is an error when it is read.
    fn files(&self, run: &Run) -> Result<Vec<Arc<FileState>>> {
        let wanted = self.wanted.wanted(&self.scan, run)?;
        let mut cached = lock(&self.files);
        let unread = wanted.iter().copied().filter(|position| !cached.contains_key(position));
        for positions in unread.collect::<Vec<_>>().chunks(FOOTERS_AHEAD) {
            let paths = positions.iter().map(|&position| &self.scan.paths[position]);
            let readers = paths.map(|path| run.open(path)).collect::<Result<Vec<_>>>()?;
            for reader in readers.iter().filter(|reader| reader.is_remote()) {
                reader.prefetch(&[reader.len().saturating_sub(FOOTER_BYTES)..reader.len()])?;
            }
            for (&position, reader) in positions.iter().zip(readers) {
                run.context.check()?;
                cached.insert(position, Arc::new(self.file(position, &*reader, run)?));
            }
        }
        let files = wanted.iter().filter_map(|position| cached.get(position).cloned());
        Ok(files.collect())
    }

    fn file(&self, position: usize, reader: &dyn RangeReader, run: &Run) -> Result<FileState> {
        let path = &self.scan.paths[position];
        let metadata = Metadata::read(reader, Some(&run.context))?;
        let constants = self.scan.constants(position)?;
        let mut columns = Vec::with_capacity(constants.len());
        let fields = self.scan.columns.fields().iter().zip(constants);
        for (place, (field, constant)) in fields.enumerate() {
            if Some(place) == self.row_number {
                columns.push(SourceColumn::RowNumber);
                continue;
            }
            let declared = field
                .atom()
                .ok_or_else(|| Error::internal("a file column has a collection type"))?;
            columns.push(match (constant, metadata.tuple.index_of(&field.name)) {
                (Some(constant), _) => SourceColumn::Constant(constant),
                (None, Some(root)) => {
                    if let Some(reason) = metadata.unreadable.get(&root) {
                        return Err(unreadable(path, &field.name, reason));
                    }
                    let found = metadata.tuple.fields()[root].atom().cloned().unwrap_or(Atom::Null);
                    check_type(path, &field.name, &found, declared, self.scan.is_union)?;
                    SourceColumn::File { root, found }
                }
                (None, None) if field.nullable && self.scan.paths.len() > 1 => {
                    SourceColumn::Constant(null_constant(declared))
                }
                (None, None) => {
                    let name = quote_name(&field.name);
                    return Err(Error::data(format!(
                        "'{path}' has no column {name}; it has {}",
                        metadata.tuple
                    )));
                }
            });
        }
        Ok(FileState { path: path.clone(), position, len: reader.len(), metadata, columns })
    }
}

/// Splits a row group into morsels: one, or several if every column has a page index.
fn split(
    position: usize,
    file: &FileState,
    group: usize,
    ranges: Vec<Range<usize>>,
    morsels: &mut Vec<Morsel>,
) {
    let shared = Arc::new(RowGroupState::default());
    let mut push = |ranges: &mut Vec<Range<usize>>| {
        if !ranges.is_empty() {
            let ranges = std::mem::take(ranges).into();
            morsels.push(Morsel { file: position, group, ranges, shared: shared.clone() });
        }
    };
    let indexed = file.columns.iter().all(|column| match column {
        SourceColumn::Constant(_) | SourceColumn::RowNumber => true,
        SourceColumn::File { root, .. } => {
            let leaves = file.metadata.first_leaf[*root]..file.metadata.first_leaf[*root + 1];
            leaves.into_iter().all(|leaf| file.metadata.locations(group, leaf).is_some())
        }
    });
    let mut current = Vec::new();
    if !indexed {
        current = ranges;
        return push(&mut current);
    }
    // A damaged footer may have any number of rows.
    let all: usize = ranges.iter().map(ExactSizeIterator::len).fold(0, usize::saturating_add);
    let morsel_rows = MORSEL_ROWS.max(all.div_ceil(GROUP_MORSELS_MAX));
    let mut rows = 0;
    for mut range in ranges {
        while range.start < range.end {
            let taken = (range.end - range.start).min(morsel_rows - rows);
            current.push(range.start..range.start + taken);
            range.start += taken;
            rows += taken;
            if rows == morsel_rows {
                push(&mut current);
                rows = 0;
            }
        }
    }
    push(&mut current);
}
