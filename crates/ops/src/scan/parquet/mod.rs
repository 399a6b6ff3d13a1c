//! `parquet_scan`: the tuples of Parquet files.
//!
//! Footers and page indexes are read when the scan starts. Files (by their hive partitions), row groups and pages that
//! cannot hold a tuple the predicate accepts are never read. A morsel is a row group, or with a page index some
//! [`MORSEL_ROWS`] of its rows, so that a small file keeps all workers busy and bytes in flight stay bounded.
//!
//! Memory: the compressed bytes of one morsel for each worker, counted; dictionaries as long as a morsel of the row
//! group is left. Order: the source's. Errors: a file that is missing, damaged, or has other columns than declared.
//! Lambada, section 3.3, describes such a scan.

mod fetch;
mod flat;
mod hybrid;
mod metadata;
mod nested;
mod reader;
mod unpack;
mod write;

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::ArrayRef;

use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::{Atom, Error, Result, Tuple, quote_name};

use crate::context::{RangeReader, Run};
use crate::operator::{Collected, Lowering, Operator, Reader, Source, SourceRun, SubOperator};
use crate::scan::file::{self, Conjunct, FileScan, check_type, conjuncts, null_constant};
use crate::scan::prune::{Bounds, may_be_true};

pub use metadata::{Discovered, DiscoveredColumn, discover};
pub use write::ParquetMaterialize;

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
    crate::describe!(
        "parquet_scan",
        "Reads the tuples of Parquet files, skipping what statistics exclude.",
        ["paths", "columns", "fields", "filter", "partitions"],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        file::derive(node, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for ParquetScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let scan = FileScan::new(node)?;
        let conjuncts = conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?;
        Ok(Operator::Source(Arc::new(LoweredScan {
            scan,
            conjuncts: conjuncts.into(),
            files: Mutex::default(),
        })))
    }
}

#[derive(Debug)]
struct LoweredScan {
    scan: FileScan,
    conjuncts: Arc<[Conjunct]>,
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
    columns: Tuple,
    fields: Vec<usize>,
    /// Columns that the predicate reads (all that are yielded, where there is none).
    filter_columns: Vec<usize>,
    conjuncts: Arc<[Conjunct]>,
    files: Arc<[FileState]>,
}

#[derive(Debug)]
struct MorselRun {
    scan: Arc<ScanRun>,
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
                let ranges = self.rows_to_read(position, file, group);
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
        let scan = Arc::new(ScanRun {
            run: run.clone(),
            columns: self.scan.columns.clone(),
            fields: self.scan.fields.clone(),
            filter_columns,
            conjuncts: self.conjuncts.clone(),
            files,
        });
        Ok(Arc::new(MorselRun {
            scan,
            morsels: morsels.into_iter().map(|morsel| Mutex::new(Some(morsel))).collect(),
        }))
    }
}

impl SourceRun for MorselRun {
    fn morsels(&self) -> usize {
        self.morsels.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let slot = self.morsels.get(morsel).ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let morsel = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let morsel = morsel.ok_or_else(|| Error::internal("a morsel was opened twice"))?;
        Ok(Box::new(MorselReader::new(self.scan.clone(), morsel)))
    }
}

impl LoweredScan {
    /// The files with their footers, read once per plan; a file that changes after that is an error when it is read.
    fn files(&self, run: &Run) -> Result<Arc<[FileState]>> {
        let mut kept = self.files.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// The rows of a row group that statistics do not exclude, ascending.
    fn rows_to_read(&self, position: usize, file: &FileState, group: usize) -> Vec<Range<usize>> {
        let rows = file.metadata.parquet.row_group(group).num_rows() as usize;
        let Some(filter) = self.scan.filter.as_ref().filter(|_| rows > 0) else {
            return if rows > 0 { vec![0..rows] } else { Vec::new() };
        };
        let lookup = |name: &str| self.bounds(position, file, group, name);
        if !may_be_true(filter, &lookup) {
            return Vec::new();
        }
        let mut ranges = vec![0..rows];
        let conjuncts = match filter {
            tessera_plan::Expr::And(list) => &list[..],
            other => std::slice::from_ref(other),
        };
        for conjunct in conjuncts {
            let [name] = &conjunct.fields()[..] else { continue };
            if let Some(kept) = self.pages_to_read(file, group, name, conjunct) {
                ranges = intersect(&ranges, &kept);
            }
        }
        ranges
    }

    fn bounds(&self, position: usize, file: &FileState, group: usize, name: &str) -> Option<Bounds> {
        let column = self.scan.columns.index_of(name)?;
        match &file.columns[column] {
            SourceColumn::File { root, found } => {
                // Bounds in another type than the declared one are of no use, unless both are integers.
                let declared = self.scan.columns.fields()[column].atom()?;
                let bounds = file.metadata.bounds(group, *root)?;
                let usable = found == declared || (found.is_integer() && declared.is_integer());
                usable.then(|| Bounds { atom: declared.clone(), ..bounds })
            }
            SourceColumn::Constant(_) => {
                let (_, scalar, atom) =
                    self.scan.partitions.get(position)?.iter().find(|(n, ..)| &**n == name)?;
                let value = Some(scalar.clone()).filter(|scalar| !scalar.is_null());
                Some(Bounds {
                    atom: atom.clone(),
                    some_null: value.is_none(),
                    some_value: value.is_some(),
                    min: value.clone(),
                    max: value,
                })
            }
        }
    }

    /// The rows of the pages of a column on which the conjunct may be true; nothing where there is no page index.
    fn pages_to_read(
        &self,
        file: &FileState,
        group: usize,
        name: &str,
        conjunct: &tessera_plan::Expr,
    ) -> Option<Vec<Range<usize>>> {
        let column = self.scan.columns.index_of(name)?;
        let SourceColumn::File { root, found } = &file.columns[column] else { return None };
        let declared = self.scan.columns.fields()[column].atom()?;
        if found != declared {
            return None;
        }
        let leaf = file.metadata.flat_leaf(*root)?;
        let rows = file.metadata.parquet.row_group(group).num_rows() as usize;
        let locations = file.metadata.locations(group, leaf)?;
        let mut kept: Vec<Range<usize>> = Vec::new();
        for (page, location) in locations.iter().enumerate() {
            let bounds = file.metadata.page_bounds(group, *root, page)?;
            if may_be_true(conjunct, &|_| Some(bounds.clone())) {
                let start = location.first_row_index as usize;
                let end = locations.get(page + 1).map_or(rows, |next| next.first_row_index as usize);
                match kept.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => kept.push(start..end),
                }
            }
        }
        Some(kept)
    }
}

fn intersect(left: &[Range<usize>], right: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(a), Some(b)) = (left.get(i), right.get(j)) {
        let both = a.start.max(b.start)..a.end.min(b.end);
        if both.start < both.end {
            out.push(both);
        }
        if a.end < b.end { i += 1 } else { j += 1 }
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_intersect() {
        let both = intersect(&[0..10, 20..30, 40..50], &[5..25, 29..41]);
        assert_eq!(both, [5..10, 20..25, 29..30, 40..41]);
        assert!(intersect(&[], &[0..1]).is_empty());
    }
}
