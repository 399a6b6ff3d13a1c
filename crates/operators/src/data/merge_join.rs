//! `merge_join`: joins two sides that are sorted by their keys.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float32Array, Float64Array, UInt32Array,
};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::row::{RowConverter, Rows as SortableRows, SortField};

use tessera_context::{Reservation, Run};
use tessera_operator::{
    Lowering, Operator, Reader, Source, SourceRun, Step, SubOperator, describe,
};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Role};
use tessera_rows::{Candidates, Collected, NO_ROW};
use tessera_state::join::{BuildSide, JoinKind, Residual, pairs_chunk, select_positions};
use tessera_types::{Error, Result, Tuple, quote_name};
use tessera_vector::physical::{canonical32, canonical64, interval_length, interval_values};
use tessera_vector::{Chunk, Column, concat_chunks};

/// Chunks of the left side in a morsel.
const MORSEL_CHUNKS: usize = 16;
const KINDS: [JoinKind; 4] = [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti];

/// `merge_join`: joins two sides that are sorted ascending by their keys, NULLs last.
///
/// * Inputs: sides `L` and `R`; output as `probe` for `inner`, `left`, `semi`, `anti`, in the order
///   of `L`. NULL keys match nothing.
/// * `left_keys`, `right_keys`: fields of the same types; each side's order must start with them.
/// * `residual`: a condition over the fields of `L` and `R` that a match must satisfy too.
/// * Memory: a concatenated copy of both sides, with their keys encoded as comparable bytes.
/// * Morsels are ranges of `L`; each finds its start in `R` by binary search.
/// * Source: Graefe, *Query evaluation techniques*, 1993, §5.2.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%l = values() {columns = <k: int64, a: string>, rows = [[1, 'x'], [2, 'y'], [4, 'z']]}
///      %r = values() {columns = <j: int64, b: string>, rows = [[1, 'one'], [2, 'two'], [2,
///        'due']]}
///      %ls = sort(%l) {keys = [{field = k}]}
///      %rs = sort(%r) {keys = [{field = j}]}
///      %result = merge_join(%ls, %rs) {left_keys = [k], right_keys = [j], join = :inner}",
/// );
/// assert_eq!(rows, ["1 x 1 one", "2 y 2 two", "2 y 2 due"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MergeJoin;

#[derive(Debug)]
struct MergeSource {
    kind: JoinKind,
    left_keys: Vec<usize>,
    right_keys: Vec<usize>,
    left: Tuple,
    right: Tuple,
    residual: Option<Arc<Residual>>,
}

#[derive(Debug)]
struct MergeRun {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    kind: JoinKind,
    left: SortedSide,
    right: SortedSide,
    residual: Option<Arc<Residual>>,
    run: Run,
    _reservation: Reservation,
}

/// One side, concatenated.
#[derive(Debug)]
struct SortedSide {
    columns: Vec<Column>,
    keys: SortableRows,
    /// Marks tuples with a NULL among their keys; with several keys they may occur anywhere.
    null_key: Vec<bool>,
}

struct MergeReader {
    shared: Arc<Shared>,
    next: usize,
    end: usize,
    block: Option<LeftRange>,
    /// The first tuple of the right side that is not below the current key.
    cursor: usize,
    pairs: Candidates,
    ready: std::collections::VecDeque<Chunk>,
}

/// A range of the left side being joined.
struct LeftRange {
    chunk: Chunk,
    first: usize,
    found: Vec<bool>,
    /// The tuple being joined, and the next tuple of the right side to try for it. Earlier tuples
    /// are complete.
    position: usize,
    at: Option<usize>,
    /// Tuples before this one have been output.
    settled: usize,
}

impl Descriptor for MergeJoin {
    tessera_operator::describe!(
        "merge_join",
        "Joins two sides that are sorted by their keys.",
        ["left_keys", "right_keys", "join", "residual"],
        2,
        2
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let [left, right] = describe::edges(inputs)? else {
            return Err(Error::internal("a merge join without two inputs"));
        };
        let kind = JoinKind::of(node, &KINDS)?;
        describe::require_all(left, 0)?;
        describe::require_all(right, 1)?;
        let left_keys = sorted_keys(node, "left_keys", left, 0)?;
        let right_keys = sorted_keys(node, "right_keys", right, 1)?;
        if left_keys.len() != right_keys.len() || left_keys.is_empty() {
            return Err(Error::semantic(format!(
                "left_keys names {} fields and right_keys {}; name as many, at least one",
                left_keys.len(),
                right_keys.len()
            )));
        }
        describe::same_types(
            ("left key", &left.tuple, &left_keys),
            ("right key", &right.tuple, &right_keys),
        )?;
        if let Some(residual) = node.params.expr_opt("residual")? {
            let both = left.tuple.concat(&right.tuple);
            both.check()?;
            describe::predicate(residual, &both, inputs)
                .map_err(|error| error.context("parameter residual"))?;
        }
        let output = kind.output(&left.tuple, &right.tuple, node)?;
        Ok(describe::single_edge(left, output, left.order.clone()))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

/// Returns the key positions; checks that the order starts with them, ascending, NULLs last.
fn sorted_keys(node: &Node, parameter: &str, edge: &Edge, input: usize) -> Result<Vec<usize>> {
    let names = node.params.names(parameter)?;
    let keys = describe::keys(&edge.tuple, &names, "key")?;
    let sorted = match &edge.order {
        Order::Sorted(order) => {
            let suits = |(name, key): (&Arc<str>, &tessera_plan::SortKey)| {
                *name == key.field && !key.descending && !key.nulls_first
            };
            order.len() >= names.len() && names.iter().zip(order).all(suits)
        }
        _ => false,
    };
    if sorted {
        return Ok(keys);
    }
    let names: Vec<String> = names.iter().map(|name| quote_name(name).to_string()).collect();
    Err(Error::semantic(format!(
        "input {input} is not sorted ascending by {} with NULLs last; insert a sort",
        names.join(", ")
    )))
}

impl SubOperator for MergeJoin {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let (left, right) = (lowering.inputs[0].tuple.clone(), lowering.inputs[1].tuple.clone());
        let residual = node.params.expr_opt("residual")?;
        let residual = residual
            .map(|e| Residual::new(e, &left, &right, lowering.parameters, lowering.library))
            .transpose()?;
        Ok(Operator::Source(Arc::new(MergeSource {
            kind: JoinKind::of(node, &KINDS)?,
            left_keys: describe::keys(&left, &node.params.names("left_keys")?, "key")?,
            right_keys: describe::keys(&right, &node.params.names("right_keys")?, "key")?,
            left,
            right,
            residual: residual.map(Arc::new),
        })))
    }
}

impl Source for MergeSource {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let [left, right] = sides else {
            return Err(Error::internal("a merge join without two sides"));
        };
        let atoms = self.left_keys.iter().map(|key| self.left.fields()[*key].atom());
        let mut types = Vec::new();
        for atom in atoms {
            let atom = atom.ok_or_else(|| Error::internal("a key that is a collection"))?;
            let data_type = match atom.arrow() {
                DataType::Interval(_) => DataType::Decimal128(38, 0),
                other => other,
            };
            let options = SortOptions { descending: false, nulls_first: false };
            types.push(SortField::new_with_options(data_type, options));
        }
        let converter = RowConverter::new(types)?;
        let mut reservation = Reservation::new(run.context.clone());
        let left =
            SortedSide::new(left, &self.left, &self.left_keys, &converter, &mut reservation)?;
        let right =
            SortedSide::new(right, &self.right, &self.right_keys, &converter, &mut reservation)?;
        let shared = Shared {
            kind: self.kind,
            left,
            right,
            residual: self.residual.clone(),
            run: run.clone(),
            _reservation: reservation,
        };
        Ok(Arc::new(MergeRun { shared: Arc::new(shared) }))
    }
}

impl SortedSide {
    fn new(
        side: &Collected,
        tuple: &Tuple,
        keys: &[usize],
        converter: &RowConverter,
        reservation: &mut Reservation,
    ) -> Result<SortedSide> {
        let chunks = side.spillable_chunks().iter().filter(|kept| !kept.is_empty());
        let chunks = chunks.map(|kept| kept.chunk()?.compact()).collect::<Result<Vec<_>>>()?;
        let columns = match chunks.is_empty() {
            true => tessera_state::join::null_columns(tuple, 0)?,
            false => concat_chunks(&chunks)?.stored().to_vec(),
        };
        reservation.grow(columns.iter().map(Column::memory_bytes).sum())?;
        let mut arrays = Vec::new();
        for key in keys {
            arrays.push(canonical(columns[*key].plain()?)?);
        }
        let rows = arrays.first().map_or(0, |array| array.len());
        let null_key = (0..rows).map(|row| arrays.iter().any(|array| array.is_null(row))).collect();
        let keys = converter.convert_columns(&arrays)?;
        reservation.grow(keys.size())?;
        Ok(SortedSide { columns, keys, null_key })
    }

    fn len(&self) -> usize {
        self.null_key.len()
    }
}

/// Normalizes keys so that equal keys have equal bytes.
fn canonical(array: ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>();
            let floats: Float32Array = floats.unary(|v| f32::from_bits(canonical32(v.to_bits())));
            Arc::new(floats)
        }
        DataType::Float64 => {
            let floats = array.as_primitive::<Float64Type>();
            let floats: Float64Array = floats.unary(|v| f64::from_bits(canonical64(v.to_bits())));
            Arc::new(floats)
        }
        DataType::Interval(_) => {
            let lengths =
                interval_values(&array)?.iter().map(|v| interval_length(*v)).collect::<Vec<_>>();
            let lengths = Decimal128Array::new(lengths.into(), array.nulls().cloned());
            Arc::new(lengths.with_precision_and_scale(38, 0)?)
        }
        _ => array,
    })
}

impl BuildSide for SortedSide {
    fn width(&self) -> usize {
        self.columns.len()
    }

    fn gather(&self, field: usize, rows: &[u64]) -> Result<Column> {
        if !rows.contains(&NO_ROW) {
            return self.columns[field]
                .take(&UInt32Array::from_iter_values(rows.iter().map(|r| *r as u32)));
        }
        // NULL positions give NULL, but only for plain columns.
        let positions: UInt32Array =
            rows.iter().map(|row| (*row != NO_ROW).then_some(*row as u32)).collect();
        Ok(Column::Plain(arrow::compute::take(&self.columns[field].plain()?, &positions, None)?))
    }
}

impl SourceRun for MergeRun {
    fn morsels(&self) -> usize {
        self.shared.left.len().div_ceil(self.morsel_rows())
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let next = morsel * self.morsel_rows();
        let end = (next + self.morsel_rows()).min(self.shared.left.len());
        let (left, right) = (&self.shared.left, &self.shared.right);
        let (mut low, mut high) = (0, right.len());
        while next < left.len() && low < high {
            let middle = low + (high - low) / 2;
            if right.keys.row(middle) < left.keys.row(next) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        Ok(Box::new(MergeReader {
            shared: self.shared.clone(),
            next,
            end,
            block: None,
            cursor: low,
            pairs: Candidates::default(),
            ready: Default::default(),
        }))
    }
}

impl MergeRun {
    fn morsel_rows(&self) -> usize {
        self.shared.run.context.chunk_rows().max(1) * MORSEL_CHUNKS
    }
}

impl Reader for MergeReader {
    fn step(&mut self) -> Result<Step> {
        if let Some(chunk) = self.ready.pop_front() {
            return Ok(Step::HasOutput(chunk));
        }
        self.shared.run.context.check()?;
        let mut block = match self.block.take() {
            Some(block) => block,
            None if self.next >= self.end => return Ok(Step::Done),
            None => self.next_block(),
        };
        self.pair(&mut block);
        if let Some(residual) = &self.shared.residual {
            residual.retain(&block.chunk, &self.shared.right, &mut self.pairs, &self.shared.run)?;
        }
        self.pairs.positions.iter().for_each(|position| block.found[*position as usize] = true);
        self.settle(&mut block)?;
        if block.position < block.found.len() {
            self.block = Some(block);
        }
        Ok(self.ready.pop_front().map_or(Step::Again, Step::HasOutput))
    }
}

impl MergeReader {
    fn limit(&self) -> usize {
        self.shared.run.context.chunk_rows().max(1)
    }

    fn next_block(&mut self) -> LeftRange {
        let (first, len) = (self.next, self.limit().min(self.end - self.next));
        self.next += len;
        let columns: Vec<Column> =
            self.shared.left.columns.iter().map(|column| column.slice(first, len)).collect();
        let chunk = Chunk::new(columns, len);
        LeftRange { chunk, first, found: vec![false; len], position: 0, at: None, settled: 0 }
    }

    /// Collects the next pairs with equal keys, in order.
    fn pair(&mut self, block: &mut LeftRange) {
        let limit = self.limit();
        let (left, right) = (&self.shared.left, &self.shared.right);
        let once = self.shared.residual.is_none() && !self.shared.kind.yields_pairs();
        self.pairs.clear();
        while block.position < block.found.len() && self.pairs.len() < limit {
            if left.null_key[block.first + block.position] {
                block.position += 1;
                continue;
            }
            let key = left.keys.row(block.first + block.position);
            while block.at.is_none()
                && self.cursor < right.len()
                && right.keys.row(self.cursor) < key
            {
                self.cursor += 1;
            }
            let mut at = block.at.unwrap_or(self.cursor);
            let mut equal = at < right.len() && right.keys.row(at) == key;
            while equal && self.pairs.len() < limit {
                self.pairs.push(at as u64, block.position as u32);
                at += 1;
                equal = !once && at < right.len() && right.keys.row(at) == key;
            }
            block.at = equal.then_some(at);
            block.position += usize::from(!equal);
        }
    }

    /// Appends the complete tuples to the output, in order.
    fn settle(&mut self, block: &mut LeftRange) -> Result<()> {
        let kind = self.shared.kind;
        let complete = block.position == block.found.len();
        if !kind.yields_pairs() {
            if !complete {
                return Ok(());
            }
            let wanted = kind == JoinKind::Semi;
            let kept = (0..block.found.len()).filter(|p| block.found[*p] == wanted);
            let positions: Vec<u32> = kept.map(|p| p as u32).collect();
            if !positions.is_empty() {
                self.ready.push_back(select_positions(&block.chunk, &positions));
            }
            return Ok(());
        }
        if kind == JoinKind::Left {
            let mut merged = Candidates::default();
            let mut next = 0;
            for position in block.settled..block.position {
                let start = next;
                while self.pairs.positions.get(next) == Some(&(position as u32)) {
                    merged.push(self.pairs.rows[next], position as u32);
                    next += 1;
                }
                if start == next && !block.found[position] {
                    merged.push(NO_ROW, position as u32);
                }
            }
            for i in next..self.pairs.len() {
                merged.push(self.pairs.rows[i], self.pairs.positions[i]);
            }
            block.settled = block.position;
            self.pairs = merged;
        }
        let limit = self.limit();
        for first in (0..self.pairs.len()).step_by(limit) {
            let last = (first + limit).min(self.pairs.len());
            let part = Candidates {
                rows: self.pairs.rows[first..last].to_vec(),
                positions: self.pairs.positions[first..last].to_vec(),
            };
            self.ready.push_back(pairs_chunk(&block.chunk, &self.shared.right, &part)?);
        }
        Ok(())
    }
}
