//! `zip`: pairs streams by position.

use std::sync::Arc;

use tessera_context::Run;
use tessera_operator::describe::edges;
use tessera_operator::{Lowering, Operator, Reader, Source, SourceRun, Step, SubOperator};
use tessera_plan::{Descriptor, Edge, Inputs, Node, Order, Parallelism, Role, Traits};
use tessera_rows::Collected;
use tessera_state::join::null_columns;
use tessera_types::{Error, Item, Result, Tuple, quote_name};
use tessera_vector::{Chunk, Column};

/// Chunks in a morsel.
const MORSEL_CHUNKS: usize = 16;
/// The most morsels of tuples with collections, each of which may be a whole partition.
const HANDLE_MORSELS_MAX: usize = 64;

/// Yields the first tuples of all inputs as one tuple, then the second ones, and so on (Modularis
/// §2.3.2).
///
/// `<a>` = `1, 2` and `<b>` = `x, y` give `(1, x), (2, y)`. Used to pair, for example, the
/// partitions of two inputs with the same partitioning. With `pad`, NULLs stand for the missing
/// tuples of shorter inputs. Starts when its inputs are complete and holds them; keeps the order.
/// Errors: inputs of different lengths without `pad`.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%l = values() {columns = <a: string>, rows = [['x'], ['y']]}
///      %r = values() {columns = <b: int64>, rows = [[1], [2]]}
///      %result = zip(%l, %r)",
/// );
/// assert_eq!(rows, ["x 1", "y 2"]);
/// ```
#[derive(Debug)]
pub struct Zip;

impl Descriptor for Zip {
    tessera_operator::describe!(
        "zip",
        "Puts the tuples of its inputs side by side, position by position.",
        ["pad"],
        2,
        usize::MAX
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edges = edges(inputs)?;
        let locality = edges[0].traits.locality;
        if let Some(other) = edges.iter().position(|edge| edge.traits.locality != locality) {
            return Err(Error::semantic(format!(
                "input 0 has locality {locality} and input {other} has locality {}, so that positions do not \
                 correspond; insert an exchange",
                edges[other].traits.locality
            )));
        }
        let many = edges.iter().any(|edge| edge.traits.parallelism == Parallelism::Many);
        let parallelism = if many { Parallelism::Many } else { Parallelism::One };
        let mut fields: Vec<_> =
            edges.iter().flat_map(|edge| edge.tuple.fields()).cloned().collect();
        if node.params.flag("pad")? {
            for field in &mut fields {
                if matches!(field.item, Item::Collection(_)) {
                    return Err(Error::semantic(format!(
                        "field {} is a collection, which NULL cannot replace; leave out pad",
                        quote_name(&field.name)
                    )));
                }
                field.nullable = true;
            }
        }
        Ok(Edge {
            tuple: Tuple::new(fields),
            traits: Traits { parallelism, ..edges[0].traits },
            order: Order::Source,
        })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Source
    }
}

impl SubOperator for Zip {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let tuples = lowering.inputs.iter().map(|edge| edge.tuple.clone()).collect();
        Ok(Operator::Source(Arc::new(ZipOperator { tuples, pads: node.params.flag("pad")? })))
    }
}

#[derive(Debug)]
struct ZipOperator {
    tuples: Arc<[Tuple]>,
    pads: bool,
}

impl Source for ZipOperator {
    fn start(&self, run: &Run, sides: &[Arc<Collected>]) -> Result<Arc<dyn SourceRun>> {
        let counts: Vec<usize> = sides.iter().map(|side| side.rows()).collect();
        if let Some(other) = counts.iter().position(|count| *count != counts[0])
            && !self.pads
        {
            return Err(Error::data(format!(
                "zip pairs tuples by position, but input 0 has {} of them and input {other} has {}",
                counts[0], counts[other]
            )));
        }
        let rows = counts.into_iter().max().unwrap_or(0);
        let chunk_rows = run.context.chunk_rows().max(1);
        let morsel_rows = match holds_handles(sides)? {
            true => rows.div_ceil(HANDLE_MORSELS_MAX).clamp(1, chunk_rows),
            false => chunk_rows.saturating_mul(MORSEL_CHUNKS),
        };
        let (tuples, sides) = (self.tuples.clone(), sides.to_vec());
        Ok(Arc::new(ZipRun { tuples, sides, rows, chunk_rows, morsel_rows }))
    }
}

/// Whether the tuples hold collections.
fn holds_handles(sides: &[Arc<Collected>]) -> Result<bool> {
    let is_handle = |column: &Column| matches!(column, Column::Handles(_));
    for side in sides {
        if let Some(first) = side.spillable_chunks().iter().find(|kept| !kept.is_empty())
            && first.chunk()?.stored().iter().any(is_handle)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Debug)]
struct ZipRun {
    tuples: Arc<[Tuple]>,
    sides: Vec<Arc<Collected>>,
    rows: usize,
    chunk_rows: usize,
    morsel_rows: usize,
}

impl SourceRun for ZipRun {
    fn morsels(&self) -> usize {
        self.rows.div_ceil(self.morsel_rows)
    }

    fn open(&self, morsel: usize) -> Result<Box<dyn Reader>> {
        let first = morsel * self.morsel_rows;
        let cursors = self.tuples.iter().zip(&self.sides);
        Ok(Box::new(ZipReader {
            cursors: cursors.map(|(tuple, side)| Cursor::new(tuple, side, first)).collect(),
            left: self.morsel_rows.min(self.rows - first),
            chunk_rows: self.chunk_rows,
        }))
    }
}

struct ZipReader {
    cursors: Vec<Cursor>,
    left: usize,
    chunk_rows: usize,
}

impl Reader for ZipReader {
    /// Pairs the tuples up to the next chunk border of any input.
    fn step(&mut self) -> Result<Step> {
        let mut len = self.left.min(self.chunk_rows);
        if len == 0 {
            return Ok(Step::Done);
        }
        for cursor in &mut self.cursors {
            len = cursor.available()?.map_or(len, |available| len.min(available));
        }
        let mut columns: Vec<Column> = Vec::new();
        for cursor in &mut self.cursors {
            cursor.take(len, &mut columns)?;
        }
        self.left -= len;
        Ok(Step::HasOutput(Chunk::new(columns, len)))
    }
}

/// A position in an input.
struct Cursor {
    tuple: Tuple,
    side: Arc<Collected>,
    /// The number of the current chunk, the position in it, and the chunk once it is read.
    chunk: usize,
    offset: usize,
    read: Option<Chunk>,
}

impl Cursor {
    /// Starts behind the first `skipped` tuples.
    fn new(tuple: &Tuple, side: &Arc<Collected>, skipped: usize) -> Cursor {
        let (mut chunk, mut offset) = (0, skipped);
        for kept in side.spillable_chunks() {
            if offset < kept.rows() {
                break;
            }
            offset -= kept.rows();
            chunk += 1;
        }
        Cursor { tuple: tuple.clone(), side: side.clone(), chunk, offset, read: None }
    }

    /// Returns the number of tuples left in the current chunk; `None` behind the last one.
    fn available(&mut self) -> Result<Option<usize>> {
        while let Some(kept) = self.side.spillable_chunks().get(self.chunk) {
            if self.offset < kept.rows() {
                if self.read.is_none() {
                    self.read = Some(kept.chunk()?.compact()?);
                }
                return Ok(Some(kept.rows() - self.offset));
            }
            (self.chunk, self.offset, self.read) = (self.chunk + 1, 0, None);
        }
        Ok(None)
    }

    /// Adds the columns of the next tuples, or NULLs behind the last one.
    fn take(&mut self, len: usize, columns: &mut Vec<Column>) -> Result<()> {
        let Some(chunk) = &self.read else {
            columns.extend(null_columns(&self.tuple, len)?);
            return Ok(());
        };
        let part = chunk.slice(self.offset, len);
        for index in 0..part.width() {
            columns.push(part.column(index)?);
        }
        self.offset += len;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{batch, same};
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::{Expr, Params};

    use crate::testing::test_plan;

    #[test]
    fn positions_are_paired_whatever_the_chunks() {
        let mut plan = test_plan();
        let a = plan.table(batch("<a: int64>", "1|2|3|4|5|6|7|8|9"));
        let more = Expr::call("gt", vec![Expr::field("a"), Expr::int64(4)]);
        let a = plan.add("filter", &[a], Params::new().with("predicate", more));
        let b = plan.table(batch("<b: string?>", "x|NULL|y|z|w"));
        let c = plan.table(batch("<c: int64>", "0|0|0|0|1"));
        let root = plan.add("zip", &[a, b, c], Params::new());
        for (chunk, workers) in SETTINGS {
            let batch = plan.run(root, chunk, workers).unwrap();
            same(&batch, "<a: int64, b: string?, c: int64>", "5 x 0|6 NULL 0|7 y 0|8 z 0|9 w 1");
        }
        let root = plan.add("zip", &[b, b], Params::new());
        assert!(plan.verify(root).unwrap_err().to_string().contains("duplicate field"));
    }

    #[test]
    fn a_length_that_differs_is_an_error() {
        let mut plan = test_plan();
        let a = plan.table(batch("<a: int64>", "1|2"));
        let b = plan.table(batch("<b: int64>", "1|2|3"));
        let root = plan.add("zip", &[a, b], Params::new());
        let message = plan.run(root, 7, 1).unwrap_err().to_string();
        assert!(
            message.contains("input 0 has 2") && message.contains("input 1 has 3"),
            "{message}"
        );
    }

    #[test]
    fn shorter_inputs_are_padded_with_nulls() {
        let mut plan = test_plan();
        let a = plan.table(batch("<a: int64>", "1|2|3|4|5|6|7|8|9"));
        let b = plan.table(batch("<b: string>", "x|y"));
        let none = plan.table(batch("<c: int64>", ""));
        let root = plan.add("zip", &[a, b, none], Params::new().with("pad", true));
        for (chunk, workers) in SETTINGS {
            same(
                &plan.run(root, chunk, workers).unwrap(),
                "<a: int64?, b: string?, c: int64?>",
                "1 x NULL|2 y NULL|3 NULL NULL|4 NULL NULL|5 NULL NULL|6 NULL NULL|7 NULL NULL|\
                 8 NULL NULL|9 NULL NULL",
            );
        }
    }

    #[test]
    fn nothing_zipped_is_nothing() {
        let mut plan = test_plan();
        let a = plan.table(batch("<a: int64>", ""));
        let b = plan.table(batch("<b: int64>", ""));
        let root = plan.add("zip", &[a, b], Params::new());
        assert_eq!(plan.run(root, 7, 2).unwrap().num_rows(), 0);
    }
}
