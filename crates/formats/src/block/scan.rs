//! `block_scan`: reads an in-memory table.

use std::sync::Arc;

use arrow::array::Int64Array;

use tessera_context::Run;
use tessera_operator::stream_util::{chunks_source, long_chunk_rows};
use tessera_operator::{Lowering, Operator, Reader, Source, SourceRun, Step, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Pushes, Role};
use tessera_rows::Collected;
use tessera_state::join::select_positions;
use tessera_state::sideways::{FilterSubscription, ReceivedFilter};
use tessera_types::{Error, Result, quote_name};
use tessera_vector::{Chunk, Column, Positions, Selection};

use super::conditions::{ColumnCondition, Conditions, Verdicts};
use super::{Block, Blocks, Table, Tables};
use crate::csv::flag;
use crate::file::{self, Conjunct, FileScan, RunConjunct, joined_conjuncts, start_conjuncts};
use crate::prune::{Bounds, may_be_true};

/// The parameter of a column with the number of each row in the table, and the column's name.
pub const ROW_NUMBER: &str = "rowid";
/// Stands for this column among the positions of columns.
pub(super) const NUMBERED: usize = usize::MAX;

/// Yields the tuples of the in-memory table named `table`.
///
/// Parameters as for scans of files: the `columns` that the `filter` reads, the output `fields`
/// among them, and `filters` on keys that a `semi_join_filter` publishes. A block is a morsel. A
/// block is skipped if its statistics or an encoding show that none of its tuples qualify. In other
/// blocks, a column is decoded only for the tuples that earlier conditions have left. Keeps the
/// order.
///
/// With `rowid`, a column of this name has the number of each row in the table, from 0.
#[derive(Debug, Default)]
pub struct BlockScan {
    tables: Tables,
}

impl BlockScan {
    /// Creates the scan of these tables.
    pub fn new(tables: Tables) -> BlockScan {
        BlockScan { tables }
    }
}

impl Descriptor for BlockScan {
    tessera_operator::describe!(
        "block_scan",
        "Yields the tuples of a table in memory.",
        ["table", "columns", "fields", "filter", "filters", "rowid"],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        node.params.string("table")?;
        flag(&node.params, ROW_NUMBER)?;
        let scan = FileScan::of(node, Vec::new())?;
        FilterSubscription::list(node, &scan.columns)?;
        file::derive_scan(&scan, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }

    fn pushes(&self) -> Pushes {
        Pushes { key_filters: true, ..Pushes::SCAN }
    }
}

impl SubOperator for BlockScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let name = node.params.string("table")?;
        let Table { tuple, blocks } = self.tables.get(name)?;
        let scan = FileScan::of(node, Vec::new())?;
        let filters = FilterSubscription::list(node, &scan.columns)?;
        let conjuncts = joined_conjuncts(scan.filter.as_ref(), &scan.columns, lowering)?;
        let numbers = flag(&node.params, ROW_NUMBER)? == Some(true);
        let position = |field: &tessera_types::Field| match tuple.index_of(&field.name) {
            None if numbers && &*field.name == ROW_NUMBER => Ok(NUMBERED),
            Some(at)
                if tuple.fields()[at].item == field.item
                    && (field.nullable || !tuple.fields()[at].nullable) =>
            {
                Ok(at)
            }
            _ => Err(Error::semantic(format!(
                "table '{name}' has no column {} of type {}; it is {tuple}",
                quote_name(&field.name),
                field.item
            ))),
        };
        let columns: Vec<usize> =
            scan.columns.fields().iter().map(position).collect::<Result<_>>()?;
        let can_raise = conjuncts.iter().any(|conjunct| conjunct.bound.can_raise());
        let conditions = Conditions::of(&conjuncts, &scan.columns, &columns);
        Ok(Operator::Source(Arc::new(BlockScanOperator(Arc::new(Scan {
            parameters: scan,
            first_rows: if numbers { blocks.first_rows() } else { Vec::new() },
            blocks,
            columns,
            conjuncts,
            conditions,
            can_raise,
            filters,
        })))))
    }
}

#[derive(Debug)]
struct Scan {
    parameters: FileScan,
    blocks: Arc<Blocks>,
    /// For each block, the number in the table of its first tuple, if tuples are numbered.
    first_rows: Vec<usize>,
    /// The positions in the table of the scan's columns, or [`NUMBERED`].
    columns: Vec<usize>,
    conjuncts: Vec<Conjunct>,
    /// For each conjunct, the conditions that segments can evaluate.
    conditions: Vec<Conditions>,
    /// Whether a conjunct can raise an error.
    can_raise: bool,
    filters: Vec<FilterSubscription>,
}

#[derive(Debug)]
struct BlockScanOperator(Arc<Scan>);

#[derive(Debug)]
struct ScanRun {
    scan: Arc<Scan>,
    conjuncts: Arc<[RunConjunct]>,
    run: Run,
}

impl Source for BlockScanOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let conjuncts = start_conjuncts(&self.0.conjuncts, run);
        Ok(Arc::new(ScanRun { scan: self.0.clone(), conjuncts, run: run.clone() }))
    }
}

impl SourceRun for ScanRun {
    fn morsels(&self) -> usize {
        self.scan.blocks.blocks.len()
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.reader(morsel, false)
    }

    fn open_long(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        self.reader(morsel, true)
    }
}

impl ScanRun {
    /// Opens a block. Long chunks are not used if there are conditions: each condition reuses data
    /// that the previous one left in the cache.
    fn reader(&self, morsel: usize, long: bool) -> Result<Box<dyn Reader>> {
        let block = self.scan.block(morsel)?;
        let filters =
            ReceivedFilter::published(&self.scan.filters, &self.scan.parameters.columns, &self.run);
        let unmatched =
            filters.iter().filter_map(|received| received.filter.wanted(&received.names));
        let filter =
            self.scan.parameters.filter.iter().map(|filter| ("rows_skipped", filter.clone()));
        let all = filter.chain(unmatched.map(|wanted| ("rows_skipped_without_match", wanted)));
        for (counter, wanted) in all {
            if !may_be_true(&wanted, &|name| self.scan.bounds(block, name)) {
                self.run.counters.add(counter, block.rows as u64);
                return chunks_source(Vec::new(), 1).open(0);
            }
        }
        let Some(verdicts) = Verdicts::of(&self.scan.conditions, block, &self.scan.columns)? else {
            self.run.counters.add("rows_skipped", block.rows as u64);
            return chunks_source(Vec::new(), 1).open(0);
        };
        let (scan, conjuncts, run) = (self.scan.clone(), self.conjuncts.clone(), self.run.clone());
        let chunk_rows = match long && verdicts.are_all_true() && filters.is_empty() {
            true => long_chunk_rows(run.context.chunk_rows()),
            false => run.context.chunk_rows(),
        };
        Ok(Box::new(BlockReader {
            scan,
            conjuncts,
            verdicts,
            filters,
            run,
            block: morsel,
            chunk_rows,
            row: 0,
            hashes: Vec::new(),
            dropped: 0,
        }))
    }
}

impl Scan {
    fn block(&self, number: usize) -> Result<&Block> {
        let block = self.blocks.blocks.get(number).map(|block| &**block);
        block.ok_or_else(|| Error::internal("the morsel does not exist"))
    }

    /// Returns the statistics of a column in a block.
    fn bounds(&self, block: &Block, name: &str) -> Option<Bounds> {
        let at = self.parameters.columns.index_of(name)?;
        let statistics = block.statistics.get(self.columns[at])?;
        let atom = self.parameters.columns.fields()[at].atom()?.clone();
        let (min, max) = statistics.ends.clone().unzip();
        Some(Bounds {
            atom,
            min,
            max,
            some_null: statistics.nulls > 0,
            some_value: statistics.nulls < block.rows,
        })
    }
}

struct BlockReader {
    scan: Arc<Scan>,
    conjuncts: Arc<[RunConjunct]>,
    verdicts: Verdicts,
    filters: Vec<ReceivedFilter>,
    run: Run,
    block: usize,
    chunk_rows: usize,
    row: usize,
    hashes: Vec<u64>,
    /// The number of tuples that filters have dropped.
    dropped: u64,
}

/// A range of tuples of a block whose columns are decoded on demand.
struct Piece<'a> {
    scan: &'a Scan,
    block: &'a Block,
    /// The number in the table of the block's first tuple.
    first: usize,
    positions: Positions,
    decoded: Vec<Option<Column>>,
    /// The tuples that still qualify, among the positions.
    selection: Option<Arc<Selection>>,
}

impl Piece<'_> {
    fn column(&mut self, at: usize) -> Result<Column> {
        if let Some(column) = &self.decoded[at] {
            return Ok(column.clone());
        }
        let column = match self.scan.columns[at] {
            NUMBERED => self.numbers(),
            stored => self.block.columns[stored].decode(&self.positions)?,
        };
        Ok(self.decoded[at].insert(column).clone())
    }

    /// Returns the numbers of the tuples in the table.
    fn numbers(&self) -> Column {
        let number = |row: usize| (self.first + row) as i64;
        let numbers: Int64Array = match &self.positions {
            Positions::Range(start, rows) => (*start..start + rows).map(number).collect(),
            Positions::Listed(rows) => rows.iter().map(|row| number(*row as usize)).collect(),
        };
        Column::Plain(Arc::new(numbers))
    }

    /// Returns these columns of the tuples that still qualify.
    fn chunk(&mut self, columns: &[usize]) -> Result<Chunk> {
        let columns = columns.iter().map(|at| self.column(*at)).collect::<Result<_>>()?;
        let chunk = Chunk::new(columns, self.positions.len());
        Ok(match &self.selection {
            Some(selection) => chunk.select(selection.clone()),
            None => chunk,
        })
    }

    /// Reduces the qualifying tuples. If few are left, the others and columns without further use
    /// are dropped, so that later columns are decoded for the remaining tuples only.
    fn keep(&mut self, selection: Option<Arc<Selection>>) -> Result<()> {
        self.selection = selection;
        let few = self.selection.take_if(|selection| selection.len() * 2 <= self.positions.len());
        if let Some(few) = few {
            for (at, decoded) in self.decoded.iter_mut().enumerate() {
                *decoded = match decoded.take_if(|_| self.scan.parameters.fields.contains(&at)) {
                    Some(column) => Some(column.take(&few)?),
                    None => None,
                };
            }
            self.positions = self.positions.at(&few);
        }
        Ok(())
    }

    /// Keeps the tuples that satisfy a condition, which the column's segment evaluates.
    fn filter(&mut self, part: &ColumnCondition) -> Result<()> {
        let segment = &self.block.columns[self.scan.columns[part.column]];
        let kept = match &self.selection {
            None => segment.filter(&part.condition, &self.positions)?,
            Some(selection) => {
                let found = segment.filter(&part.condition, &self.positions.at(selection))?;
                found
                    .values()
                    .iter()
                    .map(|at| selection.value(*at as usize))
                    .collect::<Vec<_>>()
                    .into()
            }
        };
        match kept.len() == self.positions.len() {
            true => Ok(()),
            false => self.keep(Some(Arc::new(kept))),
        }
    }

    fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }
}

/// Drops the tuples whose keys are not in the filters, and returns their number.
fn drop_unmatched(
    piece: &mut Piece<'_>,
    filters: &[&ReceivedFilter],
    hashes: &mut Vec<u64>,
) -> Result<usize> {
    let mut dropped = 0;
    for received in filters.iter().filter(|received| received.filter.is_on()) {
        let chunk = piece.chunk(&received.keys)?;
        let keys = (0..chunk.width()).map(|key| chunk.column(key)).collect::<Result<Vec<_>>>()?;
        let passed = received.filter.select(&keys, chunk.rows(), hashes)?;
        dropped += chunk.rows() - passed.len();
        piece.keep(select_positions(&chunk, &passed).selection().cloned())?;
    }
    Ok(dropped)
}

impl Reader for BlockReader {
    fn step(&mut self) -> Result<Step> {
        let (scan, block) = (&*self.scan, self.scan.block(self.block)?);
        let rows = self.chunk_rows.min(block.rows - self.row);
        if rows == 0 {
            if self.dropped > 0 {
                self.run
                    .counters
                    .add("rows_dropped_without_match", std::mem::take(&mut self.dropped));
            }
            return Ok(Step::Done);
        }
        let (positions, decoded) =
            (Positions::Range(self.row, rows), vec![None; scan.columns.len()]);
        let first = scan.first_rows.get(self.block).copied().unwrap_or_default();
        let mut piece = Piece { scan, block, first, positions, decoded, selection: None };
        self.row += rows;
        // The cheapest test comes first. It is empty where it could hide an error.
        for part in self.verdicts.filters(&scan.conditions) {
            if !piece.is_empty() {
                piece.filter(part)?;
            }
        }
        if piece.is_empty() {
            return Ok(Step::Again);
        }
        // The most selective filters come next, unless they could hide an error.
        let is_first = |received: &&ReceivedFilter| !scan.can_raise && received.filter.passes_few();
        let (first, last): (Vec<&ReceivedFilter>, Vec<&ReceivedFilter>) =
            self.filters.iter().partition(is_first);
        let mut dropped = drop_unmatched(&mut piece, &first, &mut self.hashes)?;
        for (at, conjunct) in self.conjuncts.iter().enumerate() {
            if !piece.is_empty() && !self.verdicts.is_decided(at) {
                let left = conjunct.predicate.select(piece.chunk(&conjunct.columns)?)?;
                piece.keep(left.selection().cloned())?;
            }
        }
        dropped += drop_unmatched(&mut piece, &last, &mut self.hashes)?;
        self.dropped += dropped as u64;
        if piece.is_empty() {
            return Ok(Step::Again);
        }
        piece.chunk(&scan.parameters.fields).map(Step::HasOutput)
    }
}
