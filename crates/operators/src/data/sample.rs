//! `sample`: keeps a random share of its input.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, Int64Array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::Float64Type;

use tessera_context::{Context, Run};
use tessera_functions::BoundExpr;
use tessera_operator::describe::{count, edge, field_name, passes, typed};
use tessera_operator::stream_util::Packer;
use tessera_operator::{Lowering, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator};
use tessera_plan::{Descriptor, Edge, Expr, Inputs, Node, Role, Scalar};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Field, Item, Result, SqlState, Tuple, quote_name};
use tessera_vector::{Chunk, Column};

/// Keeps each tuple with a probability of `percent` in a hundred.
///
/// The random number of a tuple is a hash of `seed` and of its position: the number of its morsel,
/// and its place there. Sources divide their input into the same morsels for any number of workers,
/// so one seed gives the same tuples again. `seed = random()` gives others in each run. With
/// `block` = n, each n successive tuples of a morsel share their number, so they are kept or
/// dropped together. With `into` = a name, this field has the number of the tuple (int64, not
/// negative): the first tuples by it are a sample of a fixed size. Holds at most a chunk, never
/// blocks, keeps the order.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%one = values() {columns = <a: int64>, rows = [[0]]}
///      %t = series(%one) {into = n, start = 1::int64, stop = 40::int64, step = 1::int64, inclusive
///        = true}
///      %kept = sample(%t) {percent = 12.5::float64, seed = 7::float64}
///      %result = projection(%kept) {fields = [n]}",
/// );
/// assert_eq!(rows, ["7", "9", "10", "15"]);
/// ```
#[derive(Debug)]
pub struct Sample;

impl Descriptor for Sample {
    tessera_operator::describe!(
        "sample",
        "Keeps a random share of its input.",
        ["percent", "seed", "block", "into"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        percent(node)?;
        block(node)?;
        let seed = typed(&"seed".into(), node.params.expr("seed")?, &Tuple::empty(), inputs)?;
        if seed.item != Item::Atom(Atom::Float64) {
            return Err(Error::semantic(format!("parameter seed is {}, not float64", seed.item)));
        }
        let mut fields = edge.tuple.fields().to_vec();
        if let Some(into) = into(node)? {
            if edge.tuple.index_of(&into).is_some() {
                let message =
                    format!("field {} of the sample is in its input already", quote_name(&into));
                return Err(Error::semantic(message));
            }
            fields.push(Field::new(into, Atom::Int64));
        }
        Ok(passes(edge, Tuple::new(fields), edge.order.clone()))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

impl SubOperator for Sample {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let seed = node.params.expr("seed")?;
        let (parameters, library) = (lowering.parameters, lowering.library);
        Ok(Operator::Stream(Arc::new(SampleOperator {
            share: percent(node)? / 100.0,
            seed: BoundExpr::new(seed, &Tuple::empty(), parameters, library)?,
            block: block(node)?,
            numbers: into(node)?.is_some(),
        })))
    }
}

/// Returns the percentage of the tuples to keep.
fn percent(node: &Node) -> Result<f64> {
    let percent = match node.params.expr("percent")? {
        Expr::Constant(Scalar::Float(percent), Atom::Float64) => *percent,
        _ => return Err(Error::semantic("parameter percent must be a constant of type float64")),
    };
    if !(0.0..=100.0).contains(&percent) {
        let message = format!("parameter percent must be between 0 and 100, it is {percent}");
        return Err(Error::semantic(message).with_state(SqlState::INVALID_TABLESAMPLE_ARGUMENT));
    }
    Ok(percent)
}

/// Returns the number of successive tuples that share a random number.
fn block(node: &Node) -> Result<u64> {
    match count(node, "block")?.unwrap_or(1) {
        0 => Err(Error::semantic("parameter block must be at least 1")),
        rows => Ok(rows as u64),
    }
}

/// Returns the name of the field for the random numbers, if they are wanted.
fn into(node: &Node) -> Result<Option<Arc<str>>> {
    node.param("into").map(|_| field_name(node, "into")).transpose()
}

#[derive(Debug)]
struct SampleOperator {
    /// The probability of a tuple to be kept.
    share: f64,
    seed: BoundExpr,
    block: u64,
    /// Whether the random numbers become a field.
    numbers: bool,
}

impl Stream for SampleOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        let seed = self.seed.evaluate(&Chunk::unit(), run)?.plain()?;
        let seed = seed.as_primitive_opt::<Float64Type>().filter(|seed| seed.null_count() == 0);
        let seed = seed.and_then(|seed| seed.values().first());
        let seed =
            seed.ok_or_else(|| Error::data("the seed of a sample is NULL; give a number"))?;
        // Workers number their morsels from 0, each on its own.
        let worker = run.context.share().index as u64;
        Ok(Arc::new(SampleRun {
            share: self.share,
            seed: mixed(seed.to_bits() ^ mixed(worker)),
            block: self.block,
            numbers: self.numbers,
            context: run.context.clone(),
        }))
    }
}

#[derive(Debug, Clone)]
struct SampleRun {
    share: f64,
    seed: u64,
    block: u64,
    numbers: bool,
    context: Arc<dyn Context>,
}

impl StreamRun for SampleRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        let packer = Packer::new(self.context.chunk_rows());
        Ok(Box::new(SampleWorker { run: self.clone(), morsel: 0, rows: 0, packer }))
    }
}

struct SampleWorker {
    run: SampleRun,
    /// The seed of the current morsel.
    morsel: u64,
    /// The number of tuples of the morsel so far.
    rows: u64,
    packer: Packer,
}

impl StreamWorker for SampleWorker {
    fn begin(&mut self, position: u64) {
        (self.morsel, self.rows) = (mixed(self.run.seed ^ mixed(position)), 0);
    }

    fn push(&mut self, chunk: Chunk) -> Result<()> {
        self.run.context.check()?;
        let rows = chunk.rows();
        let number = |row: usize| mixed(self.morsel ^ ((self.rows + row as u64) / self.run.block));
        // The 53 bits of a float's fraction: a share of 0 keeps none, one of 1 keeps all.
        let fraction = |row| (number(row) >> 11) as f64 / (1u64 << 53) as f64;
        let mask = BooleanBuffer::collect_bool(rows, |row| fraction(row) < self.run.share);
        let mut kept = chunk;
        if self.run.numbers {
            let numbers =
                Int64Array::from_iter_values((0..rows).map(|row| (number(row) >> 1) as i64));
            kept = kept.compact()?;
            let mut columns = kept.stored().to_vec();
            columns.push(Column::new(Arc::new(numbers)));
            kept = Chunk::new(columns, rows);
        }
        self.rows += rows as u64;
        self.packer.push(kept.filter(&BooleanArray::new(mask, None)))
    }

    fn step(&mut self) -> Result<Step> {
        Ok(self.packer.pop().map_or(Step::NeedInput, Step::HasOutput))
    }

    fn end(&mut self) -> Result<()> {
        self.packer.flush()
    }
}

/// Returns a number in which each bit depends on all bits of `value` (splitmix64).
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::{TestContext, batch, rows};
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::{Params, Value, text};
    use tessera_types::Result;

    use super::*;
    use crate::testing::test_plan;

    const ROWS: usize = 20_000;

    fn params(percent: f64, seed: Expr) -> Params {
        let percent = Expr::Constant(Scalar::Float(percent), Atom::Float64);
        Params::new().with("percent", percent).with("seed", seed)
    }

    fn seed(number: f64) -> Expr {
        Expr::Constant(Scalar::Float(number), Atom::Float64)
    }

    /// Returns the sample of the numbers below [`ROWS`]. All are in one morsel, since those of a
    /// test table depend on the size of chunks.
    fn sampled(params: &Params, chunk: usize, workers: usize) -> Result<Vec<String>> {
        let mut plan = test_plan();
        let unit = plan.table(batch("<a: int64>", &ROWS.to_string()));
        let bound = |expr: Expr| Value::Expr(expr);
        let series = Params::new()
            .with("into", bound(Expr::field("n")))
            .with("start", Expr::int64(0))
            .with("stop", Expr::field("a"))
            .with("step", Expr::int64(1));
        let series = plan.add("series", &[unit], series);
        let root = plan.add("sample", &[series], params.clone());
        let only = Params::new().with("fields", Value::names(["n"]));
        let root = plan.add("projection", &[root], only);
        Ok(rows(&plan.run(root, chunk, workers)?))
    }

    #[test]
    fn a_seed_gives_the_same_tuples_for_any_chunks_and_workers() {
        for params in [
            params(10.0, seed(7.0)),
            params(10.0, seed(7.0)).with("block", 100),
            params(10.0, seed(7.0)).with("into", Value::Expr(Expr::field("key"))),
        ] {
            let expected = sampled(&params, 2048, 1).unwrap();
            assert!(expected.len() > ROWS / 20 && expected.len() < ROWS / 5, "{}", expected.len());
            for (chunk, workers) in SETTINGS {
                assert_eq!(sampled(&params, chunk, workers).unwrap(), expected, "{params:?}");
            }
            let other = params.clone().with("seed", seed(8.0));
            assert_ne!(sampled(&other, 2048, 1).unwrap(), expected);
        }
    }

    #[test]
    fn morsels_differ_and_their_workers_do_not_matter() {
        let mut plan = test_plan();
        let numbers: Vec<String> = (0..4_000).map(|i| i.to_string()).collect();
        let table = plan.table(batch("<a: int64>", &numbers.join("|")));
        let root = plan.add("sample", &[table], params(50.0, seed(1.0)));
        for chunk in [1, 7, 8192] {
            let expected = rows(&plan.run(root, chunk, 1).unwrap());
            assert!((1_800..2_200).contains(&expected.len()), "{}", expected.len());
            assert_eq!(rows(&plan.run(root, chunk, 4).unwrap()), expected);
            let morsel = (3 * chunk).min(800);
            let taken = |at: usize| -> Vec<usize> {
                let numbers = expected.iter().map(|number| number.parse::<usize>().unwrap());
                numbers.filter(|n| n / morsel == at).map(|n| n % morsel).collect()
            };
            let morsels = 0..4_000 / morsel;
            assert!(morsels.clone().any(|at| taken(at) != taken(0)), "{chunk}");
        }
    }

    #[test]
    fn none_and_all() {
        for (chunk, workers) in SETTINGS {
            let rows =
                |percent| sampled(&params(percent, seed(3.0)), chunk, workers).unwrap().len();
            assert_eq!((rows(0.0), rows(100.0)), (0, ROWS));
        }
    }

    #[test]
    fn the_tuples_of_a_block_stay_together() {
        let found = sampled(&params(50.0, seed(2.0)).with("block", 1000), 8192, 2).unwrap();
        assert!(!found.is_empty() && found.len() < ROWS && found.len().is_multiple_of(1000));
        assert!(found.chunks(1000).all(|block| block[0].ends_with("000") || block[0] == "0"));
    }

    #[test]
    fn a_volatile_seed_gives_other_tuples_each_time() {
        let volatile = params(50.0, Expr::call("random", vec![]));
        assert_ne!(sampled(&volatile, 2048, 1).unwrap(), sampled(&volatile, 2048, 1).unwrap());
    }

    #[test]
    fn it_holds_a_chunk() {
        let mut plan = test_plan();
        let numbers: Vec<String> = (0..10_000).map(|i| i.to_string()).collect();
        let table = plan.table(batch("<a: int64>", &numbers.join("|")));
        let root = plan.add("sample", &[table], params(1.0, seed(1.0)));
        let context = TestContext::with_budget(7, 2, 4096);
        assert!(plan.run_in(root, context).unwrap().num_rows() > 0);
    }

    #[test]
    fn its_text_is_read_again() {
        let mut plan = test_plan();
        let table = plan.table(batch("<a: int64>", ""));
        let all = params(12.5, seed(7.0)).with("block", 9);
        let root = plan.add("sample", &[table], all);
        let plan = plan.builder.clone().finish(root);
        let printed = text::print(&plan);
        assert!(printed.contains("block = 9"), "{printed}");
        assert_eq!(text::parse(&printed).unwrap(), plan);
    }

    #[test]
    fn wrong_parameters_are_rejected() {
        let message = |params: Params| {
            let mut plan = test_plan();
            let table = plan.table(batch("<a: int64>", ""));
            let root = plan.add("sample", &[table], params);
            plan.verify(root).unwrap_err().to_string()
        };
        let fine = || params(5.0, seed(1.0));
        for (params, expected) in [
            (params(100.5, seed(1.0)), "between 0 and 100"),
            (params(-1.0, seed(1.0)), "between 0 and 100"),
            (params(f64::NAN, seed(1.0)), "between 0 and 100"),
            (params(5.0, Expr::int64(1)), "seed is int64, not float64"),
            (fine().with("block", 0), "block must be at least 1"),
            (fine().with("into", Value::Expr(Expr::field("a"))), "is in its input already"),
            (Params::new().with("seed", seed(1.0)), "percent is missing"),
        ] {
            let found = message(params);
            assert!(found.contains(expected), "{found}");
        }
    }
}
