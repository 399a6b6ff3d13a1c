//! Chunks of joined pairs, copying as little as possible.

use std::sync::Arc;

use arrow::array::{UInt32Array, new_null_array};

use tessera_context::Run;
use tessera_functions::{BoundExpr, Library};
use tessera_operator::{Reader, SourceRun, Step};
use tessera_plan::Expr;
use tessera_rows::{Candidates, NO_ROW};
use tessera_types::{Error, Item, Result, Tuple};
use tessera_vector::{Chunk, Column};

use super::matched::MatchBitmap;
use super::table::JoinTable;

/// Rows of a morsel of build tuples.
const REST_ROWS: usize = 65_536;

/// The build tuples of a join.
pub trait BuildSide {
    /// The number of their fields.
    fn width(&self) -> usize;

    /// Gathers a field of these rows; [`NO_ROW`] gives NULL.
    fn gather(&self, field: usize, rows: &[u64]) -> Result<Column>;
}

impl BuildSide for JoinTable {
    fn width(&self) -> usize {
        self.tuple().len()
    }

    fn gather(&self, field: usize, rows: &[u64]) -> Result<Column> {
        JoinTable::gather(self, field, rows)
    }
}

/// Converts positions among the selected tuples to positions among the stored tuples.
pub(super) fn stored_positions(chunk: &Chunk, positions: &[u32]) -> UInt32Array {
    match chunk.selection() {
        None => UInt32Array::from(positions.to_vec()),
        Some(selection) => {
            let stored = selection.values();
            UInt32Array::from_iter_values(
                positions.iter().map(|position| stored[*position as usize]),
            )
        }
    }
}

/// Returns the stream tuples at `pairs.positions` (ascending), each with the build tuple of its row
/// ([`NO_ROW`]: NULLs).
///
/// If every stream tuple occurs at most once, its columns can be shared under a selection; the
/// build columns are then gathered to the positions of the stored tuples. Used if it copies less.
pub fn pairs_chunk(chunk: &Chunk, table: &impl BuildSide, pairs: &Candidates) -> Result<Chunk> {
    let (matches, stored_rows) = (pairs.len(), chunk.rows_stored());
    let (stream_width, build_width) = (chunk.width(), table.width());
    let unique = pairs.positions.windows(2).all(|pair| pair[0] < pair[1]);
    if unique && matches == stored_rows {
        let mut columns = chunk.stored().to_vec();
        for field in 0..build_width {
            columns.push(table.gather(field, &pairs.rows)?);
        }
        return Ok(Chunk::new(columns, stored_rows));
    }
    let stored = stored_positions(chunk, &pairs.positions);
    let wasted = stored_rows.saturating_sub(matches) * build_width + stored_rows / 2;
    if unique && matches * stream_width > wasted {
        // Unselected positions read a row that is already in the cache.
        let filler = pairs.rows.first().copied().unwrap_or(NO_ROW);
        let mut rows = vec![filler; stored_rows];
        stored
            .values()
            .iter()
            .zip(&pairs.rows)
            .for_each(|(place, row)| rows[*place as usize] = *row);
        let mut columns = chunk.stored().to_vec();
        for field in 0..build_width {
            columns.push(table.gather(field, &rows)?);
        }
        return Ok(Chunk::new(columns, stored_rows).select(Arc::new(stored)));
    }
    let mut columns =
        chunk.stored().iter().map(|column| column.take(&stored)).collect::<Result<Vec<_>>>()?;
    for field in 0..build_width {
        columns.push(table.gather(field, &pairs.rows)?);
    }
    Ok(Chunk::new(columns, matches))
}

/// Selects the tuples of a chunk at these positions (ascending, among the selected ones); columns
/// are shared.
pub fn select_positions(chunk: &Chunk, positions: &[u32]) -> Chunk {
    if positions.len() == chunk.rows() {
        return chunk.clone();
    }
    chunk.clone().select(Arc::new(stored_positions(chunk, positions)))
}

/// Creates `rows` NULLs for each field.
pub fn null_columns(tuple: &Tuple, rows: usize) -> Result<Vec<Column>> {
    let column = |item: &Item| match item {
        Item::Atom(atom) => Ok(Column::Constant(new_null_array(&atom.arrow(), 1), rows)),
        Item::Collection(_) => Err(Error::internal("NULLs of a collection field")),
    };
    tuple.fields().iter().map(|field| column(&field.item)).collect()
}

/// A condition on pairs, in addition to equal keys.
#[derive(Debug)]
pub struct Residual {
    bound: BoundExpr,
    /// For each field it reads: whether it is a build field, and its position there.
    fields: Vec<(bool, usize)>,
}

impl Residual {
    /// Binds a condition over the fields of `stream` and `build`.
    pub fn new(
        expr: &Expr,
        stream: &Tuple,
        build: &Tuple,
        parameters: &Tuple,
        library: &Arc<Library>,
    ) -> Result<Residual> {
        let mut fields = Vec::new();
        let mut read = Vec::new();
        for name in expr.fields() {
            let place = stream.index_of(&name).map(|index| (false, index));
            let place = place.or_else(|| build.index_of(&name).map(|index| (true, index)));
            let (of_build, index) = place.ok_or_else(|| {
                Error::internal(format!("a residual reads the unknown field {name}"))
            })?;
            fields.push((of_build, index));
            read.push(if of_build { build } else { stream }.fields()[index].clone());
        }
        Ok(Residual {
            bound: BoundExpr::new(expr, &Tuple::new(read), parameters, library)?,
            fields,
        })
    }

    /// Retains the pairs for which the condition is true.
    pub fn retain(
        &self,
        chunk: &Chunk,
        table: &impl BuildSide,
        pairs: &mut Candidates,
        run: &Run,
    ) -> Result<()> {
        if pairs.is_empty() {
            return Ok(());
        }
        let stored = stored_positions(chunk, &pairs.positions);
        let column = |(of_build, index): &(bool, usize)| match of_build {
            true => table.gather(*index, &pairs.rows),
            false => chunk.stored()[*index].take(&stored),
        };
        let columns = self.fields.iter().map(column).collect::<Result<Vec<_>>>()?;
        let kept = self.bound.select(Chunk::new(columns, pairs.len()), run)?;
        if let Some(selection) = kept.selection() {
            pairs.rows = selection.values().iter().map(|at| pairs.rows[*at as usize]).collect();
            pairs.positions =
                selection.values().iter().map(|at| pairs.positions[*at as usize]).collect();
        }
        Ok(())
    }
}

/// Yields the matched or unmatched build tuples after all stream tuples.
#[derive(Debug)]
pub struct BuildRest {
    /// The build side.
    pub table: Arc<JoinTable>,
    /// The rows that have found a match.
    pub matched: Arc<MatchBitmap>,
    /// Whether to yield the matched tuples, instead of the unmatched ones.
    pub wanted: bool,
    /// The stream's tuple type, whose fields are NULL in the output; `None` if the output lacks
    /// them.
    pub stream: Option<Tuple>,
    /// The run it belongs to.
    pub run: Run,
}

struct RestReader {
    table: Arc<JoinTable>,
    rows: Vec<u64>,
    next: usize,
    stream: Option<Tuple>,
    run: Run,
}

impl SourceRun for BuildRest {
    fn morsels(&self) -> usize {
        self.table.len().div_ceil(REST_ROWS)
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let rows = self.table.row_range((morsel * REST_ROWS) as u64, REST_ROWS);
        let rows = rows.filter(|row| self.matched.get(*row) == self.wanted).collect();
        let (table, stream, run) = (self.table.clone(), self.stream.clone(), self.run.clone());
        Ok(Box::new(RestReader { table, rows, next: 0, stream, run }))
    }
}

impl Reader for RestReader {
    fn step(&mut self) -> Result<Step> {
        self.run.context.check()?;
        let end = (self.next + self.run.context.chunk_rows()).min(self.rows.len());
        let rows = &self.rows[self.next..end];
        if rows.is_empty() {
            return Ok(Step::Done);
        }
        self.next = end;
        let mut columns = match &self.stream {
            Some(stream) => null_columns(stream, rows.len())?,
            None => Vec::new(),
        };
        for field in 0..self.table.tuple().len() {
            columns.push(self.table.gather(field, rows)?);
        }
        Ok(Step::HasOutput(Chunk::new(columns, rows.len())))
    }
}
