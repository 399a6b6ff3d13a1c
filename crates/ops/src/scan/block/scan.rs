//! `block_scan`: the tuples of a table in memory.

use std::sync::Arc;

use tessera_encodings::{Chunk, Column};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Role};
use tessera_types::{Error, Result, quote_name};

use super::{Blocks, Table, Tables};
use crate::Run;
use crate::operator::{Collected, Lowering, Operator, Reader, Source, SourceRun, Step, SubOperator};
use crate::scan::file::{self, Conjunct, FileScan, RunConjunct, conjuncts, selected, start_conjuncts};

/// Yields the tuples of the table in memory that is called `table`.
///
/// Parameters as of scans of files: `columns` that the `filter` sees, and of these the `fields` that are yielded. A block is a morsel; of
/// a chunk, only those columns are decoded that its tuples are still wanted for. Keeps the order.
#[derive(Debug, Default)]
pub struct BlockScan {
    tables: Tables,
}

impl BlockScan {
    /// The scan of these tables.
    pub fn new(tables: Tables) -> BlockScan {
        BlockScan { tables }
    }
}

impl Descriptor for BlockScan {
    crate::describe!(
        "block_scan",
        "Yields the tuples of a table in memory.",
        ["table", "columns", "fields", "filter"],
        0,
        0
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        node.params.string("table")?;
        file::derive_scan(&FileScan::of(node, Vec::new())?, inputs)
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for BlockScan {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let name = node.params.string("table")?;
        let Table { tuple, blocks } = self.tables.get(name)?;
        let FileScan { columns, fields, filter, .. } = FileScan::of(node, Vec::new())?;
        let conjuncts = conjuncts(filter.as_ref(), &columns, lowering)?;
        let position = |field: &tessera_types::Field| match tuple.index_of(&field.name) {
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
        let columns = columns.fields().iter().map(position).collect::<Result<_>>()?;
        Ok(Operator::Source(Arc::new(Lowered(Arc::new(Scan { blocks, columns, fields, conjuncts })))))
    }
}

#[derive(Debug)]
struct Scan {
    blocks: Arc<Blocks>,
    /// Positions in the table of the columns that are listed.
    columns: Vec<usize>,
    fields: Vec<usize>,
    conjuncts: Vec<Conjunct>,
}

#[derive(Debug)]
struct Lowered(Arc<Scan>);

#[derive(Debug)]
struct ScanRun {
    scan: Arc<Scan>,
    conjuncts: Arc<[RunConjunct]>,
    run: Run,
}

impl Source for Lowered {
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
        let (scan, conjuncts, run) = (self.scan.clone(), self.conjuncts.clone(), self.run.clone());
        Ok(Box::new(BlockReader { scan, conjuncts, run, block: morsel, row: 0 }))
    }
}

struct BlockReader {
    scan: Arc<Scan>,
    conjuncts: Arc<[RunConjunct]>,
    run: Run,
    block: usize,
    row: usize,
}

impl Reader for BlockReader {
    fn step(&mut self) -> Result<Step> {
        let Scan { blocks, columns, fields, .. } = &*self.scan;
        let block = blocks.blocks.get(self.block);
        let block = block.ok_or_else(|| Error::internal("a morsel that does not exist"))?;
        let (start, rows) = (self.row, self.run.context.chunk_rows().min(block.rows - self.row));
        if rows == 0 {
            return Ok(Step::Done);
        }
        self.row += rows;
        let mut decoded: Vec<Option<Column>> = vec![None; columns.len()];
        let mut column = |at: usize| match &mut decoded[at] {
            Some(column) => Ok(column.clone()),
            none => Ok(none.insert(block.columns[columns[at]].decode(start, rows)?).clone()),
        };
        let selection = selected(&mut column, rows, &self.conjuncts)?;
        if selection.as_ref().is_some_and(|selection| selection.is_empty()) {
            return Ok(Step::Again);
        }
        let chunk = Chunk::new(fields.iter().map(|at| column(*at)).collect::<Result<_>>()?, rows);
        Ok(Step::HasOutput(match selection {
            Some(selection) => chunk.select(selection),
            None => chunk,
        }))
    }
}
