//! `parquet_scan`: the tuples of Parquet files.
//!
//! Footers and page indexes are read when the scan starts. Files (by their hive partitions), row
//! groups and pages that cannot hold a tuple the predicate accepts are never read. A morsel is a
//! row group, or with a page index some [`MORSEL_ROWS`] of its rows, so that a small file keeps all
//! workers busy and bytes in flight stay bounded.
//!
//! Memory: for each worker the compressed bytes of one morsel, counted, or one page of a local file
//! where they are too many; decompressed pages, counted beyond a few megabytes; dictionaries as
//! long as a morsel of the row group is left. Order: the source's. Errors: a file that is missing,
//! damaged, or has other columns than declared. Lambada, section 3.3, describes such a scan.

mod fetch;
mod flat;
mod footer;
mod hybrid;
mod intervals;
mod metadata;
mod nested;
mod reader;
mod schema;
mod skip;
mod unpack;
mod write;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow::array::ArrayRef;

use tessera_context::{RangeReader, Run, lock};
use tessera_operator::stream_util::chunks_source;
use tessera_operator::{Lowering, Operator, Reader, Source, SourceRun, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role, SortKey};
use tessera_rows::Collected;
use tessera_state::sideways::{FilterOf, Heard, Threshold, ThresholdOf, wanted};
use tessera_types::{Atom, Error, Result, quote_name};

use crate::file::{
    self, Conjunct, FileScan, RunConjunct, check_type, conjuncts, null_constant, start_conjuncts,
    unreadable,
};

pub use intervals::Written;
pub use metadata::{Discovered, DiscoveredColumn, discover};
pub use write::{MATERIALIZE_OPTIONS, ParquetMaterialize};

use flat::RowGroupShared;
use metadata::Metadata;
use reader::{Morsel, MorselReader};

/// Files that are open at once while footers are read.
const FOOTERS_AHEAD: usize = 64;
/// Bytes at the end of an object that are read at once: most footers are shorter.
const FOOTER_BYTES: u64 = 64 << 10;

/// Rows of a morsel, where a page index allows to begin in the middle of a row group.
pub const MORSEL_ROWS: usize = 131_072;

/// The sub-operator.
#[derive(Debug)]
pub struct ParquetScan;

impl Descriptor for ParquetScan {
    tessera_operator::describe!(
        "parquet_scan",
        "Reads the tuples of Parquet files, skipping what statistics exclude.",
        ["paths", "columns", "fields", "filter", "partitions", "threshold", "filters"],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let columns = node.params.tuple("columns")?;
        ThresholdOf::new(node, columns)?;
        FilterOf::list(node, columns)?;
        file::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for ParquetScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let scan = FileScan::new(node)?;
        let threshold = ThresholdOf::new(node, &scan.columns)?;
        let filters = FilterOf::list(node, &scan.columns)?.into();
        let conjuncts = conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?;
        Ok(Operator::Source(Arc::new(LoweredScan {
            scan: Arc::new(scan),
            conjuncts: conjuncts.into(),
            threshold,
            filters,
            files: Mutex::default(),
        })))
    }
}

#[derive(Debug)]
struct LoweredScan {
    scan: Arc<FileScan>,
    conjuncts: Arc<[Conjunct]>,
    threshold: Option<ThresholdOf>,
    filters: Arc<[FilterOf]>,
    /// Parsed footers, kept for later runs of the same plan.
    files: Mutex<Option<Arc<[FileState]>>>,
}

/// A file whose footer has been read.
#[derive(Debug)]
struct FileState {
    path: Arc<str>,
    len: u64,
    metadata: Metadata,
    columns: Vec<SourceColumn>,
}

/// Where a column of the scan comes from in one file.
#[derive(Debug)]
enum SourceColumn {
    /// A hive partition, or NULL for a column that the file lacks.
    Constant(ArrayRef),
    /// A root column of the file.
    File { root: usize, found: Atom },
}

/// One run of a scan.
#[derive(Debug)]
struct ScanRun {
    run: Run,
    what: Arc<FileScan>,
    /// Columns that the predicate reads.
    filter_columns: Vec<usize>,
    conjuncts: Arc<[RunConjunct]>,
    files: Arc<[FileState]>,
    threshold: Option<ScanThreshold>,
    filters: Arc<[FilterOf]>,
}

/// Behind which value of a column no tuple is wanted any more.
#[derive(Debug)]
struct ScanThreshold {
    column: usize,
    key: SortKey,
    told: Arc<Threshold>,
}

#[derive(Debug)]
struct MorselRun {
    scan: Arc<ScanRun>,
    /// In which order morsels are best begun, where it matters.
    order: Option<Vec<usize>>,
    /// Taken when opened, so that what a row group's morsels share goes with the last of them.
    morsels: Vec<Mutex<Option<Morsel>>>,
}

impl Source for LoweredScan {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let files = self.files(run)?;
        let mut morsels = Vec::new();
        let (mut groups_read, mut groups_skipped) = (0, 0);
        for (position, file) in files.iter().enumerate() {
            for group in 0..file.metadata.parquet.num_row_groups() {
                let ranges = match &self.scan.filter {
                    Some(filter) => skip::rows_to_read(&self.scan, (position, file, group), filter),
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
            let told = run.board.find_or_publish::<Threshold>(&threshold.name);
            Some(ScanThreshold { column, key: threshold.key.clone(), told })
        });
        let order = threshold.as_ref().map(|threshold| {
            let places =
                morsels.iter().map(|morsel| (morsel.file, &files[morsel.file], morsel.group));
            skip::best_first(&self.scan, &threshold.key, places)
        });
        let scan = Arc::new(ScanRun {
            run: run.clone(),
            what: self.scan.clone(),
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
        let slot = self
            .morsels
            .get(morsel)
            .ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let morsel = lock(slot).take();
        let mut morsel = morsel.ok_or_else(|| Error::internal("a morsel was opened twice"))?;
        let filters = Heard::now(&self.scan.filters, &self.scan.what.columns, &self.scan.run);
        if !self.scan.narrow(&mut morsel, &filters) {
            return chunks_source(Vec::new(), 1).open(0);
        }
        Ok(Box::new(MorselReader::new(self.scan.clone(), morsel, filters)))
    }
}

impl ScanRun {
    /// Leaves out what statistics show to be behind the threshold or outside the filters, as they
    /// are now. Whether something is left.
    fn narrow(&self, morsel: &mut Morsel, filters: &[Heard]) -> bool {
        let behind = self.threshold.as_ref().and_then(|threshold| {
            let atom = self.what.columns.fields()[threshold.column].atom()?;
            wanted(&threshold.key, atom, &threshold.told.get()?)
        });
        let unmatched = filters.iter().filter_map(|heard| heard.filter.wanted(&heard.names));
        let unmatched = unmatched.map(|wanted| ("rows_skipped_without_match", wanted));
        for (counter, wanted) in behind
            .map(|wanted| ("rows_skipped_behind_threshold", wanted))
            .into_iter()
            .chain(unmatched)
        {
            let place = (morsel.file, &self.files[morsel.file], morsel.group);
            let kept =
                skip::intersect(&morsel.ranges, &skip::rows_to_read(&self.what, place, &wanted));
            let skipped = skip::rows(&morsel.ranges) - skip::rows(&kept);
            if skipped > 0 {
                self.run.counters.add(counter, skipped as u64);
                morsel.ranges = kept.into();
            }
        }
        !morsel.ranges.is_empty()
    }
}

impl LoweredScan {
    /// The files with their footers, read once per plan; a file that changes after that is an error
    /// when it is read.
    fn files(&self, run: &Run) -> Result<Arc<[FileState]>> {
        let mut kept = lock(&self.files);
        if let Some(files) = &*kept {
            return Ok(files.clone());
        }
        let mut files = Vec::with_capacity(self.scan.paths.len());
        for paths in self.scan.paths.chunks(FOOTERS_AHEAD) {
            let readers = paths.iter().map(|path| run.open(path)).collect::<Result<Vec<_>>>()?;
            for reader in readers.iter().filter(|reader| reader.is_remote()) {
                reader.prefetch(&[reader.len().saturating_sub(FOOTER_BYTES)..reader.len()])?;
            }
            for reader in readers {
                run.context.check()?;
                files.push(self.file(files.len(), &*reader, run)?);
            }
        }
        let files: Arc<[FileState]> = files.into();
        *kept = Some(files.clone());
        Ok(files)
    }

    fn file(&self, position: usize, reader: &dyn RangeReader, run: &Run) -> Result<FileState> {
        let path = &self.scan.paths[position];
        let metadata = Metadata::read(reader, Some(&run.context))?;
        let constants = self.scan.constants(position)?;
        let mut columns = Vec::with_capacity(constants.len());
        for (field, constant) in self.scan.columns.fields().iter().zip(constants) {
            let declared =
                field.atom().ok_or_else(|| Error::internal("a column of collections in a file"))?;
            columns.push(match (constant, metadata.tuple.index_of(&field.name)) {
                (Some(constant), _) => SourceColumn::Constant(constant),
                (None, Some(root)) => {
                    if let Some(reason) = metadata.unreadable.get(&root) {
                        return Err(unreadable(path, &field.name, reason));
                    }
                    let found = metadata.tuple.fields()[root].atom().cloned().unwrap_or(Atom::Null);
                    check_type(path, &field.name, &found, declared)?;
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
        Ok(FileState { path: path.clone(), len: reader.len(), metadata, columns })
    }
}

/// Morsels of a row group: one, or several where every column has a page index.
fn split(
    position: usize,
    file: &FileState,
    group: usize,
    ranges: Vec<Range<usize>>,
    morsels: &mut Vec<Morsel>,
) {
    let shared = Arc::new(RowGroupShared::default());
    let mut push = |ranges: &mut Vec<Range<usize>>| {
        if !ranges.is_empty() {
            let ranges = std::mem::take(ranges).into();
            morsels.push(Morsel { file: position, group, ranges, shared: shared.clone() });
        }
    };
    let indexed = file.columns.iter().all(|column| match column {
        SourceColumn::Constant(_) => true,
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
    let mut rows = 0;
    for mut range in ranges {
        while range.start < range.end {
            let taken = (range.end - range.start).min(MORSEL_ROWS - rows);
            current.push(range.start..range.start + taken);
            range.start += taken;
            rows += taken;
            if rows == MORSEL_ROWS {
                push(&mut current);
                rows = 0;
            }
        }
    }
    push(&mut current);
}
