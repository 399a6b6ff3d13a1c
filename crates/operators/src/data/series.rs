//! `series`: generates numbers or timestamps between two bounds.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, Int64Array, PrimitiveArray, UInt32Array};
use arrow::datatypes::{
    ArrowPrimitiveType, Int64Type, IntervalMonthDayNanoType, TimestampMicrosecondType,
};
use tessera_context::{Context, Run};
use tessera_functions::TimestampSeries;
use tessera_operator::describe::{edge, passes, typed};
use tessera_operator::{Lowering, Operator, Step, Stream, StreamRun, StreamWorker, SubOperator};
use tessera_plan::{Descriptor, Edge, Expr, Inputs, Node, Role};
use tessera_rows::Collected;
use tessera_types::{Atom, Error, Field, Item, Result, SqlState, TimeUnit, Tuple, quote_name};
use tessera_vector::{Chunk, Column};

use crate::data::projector::{Projection, Projector};

/// Generates for each tuple the numbers from `start` to `stop` by `step`, in the field `into`; the
/// other fields are repeated.
///
/// `<k: int64>` = `5, 9` with `into = n`, `start = k`, `stop = 8::int64`, `step = 2::int64` gives
/// `(5, 5), (5, 7)`. Without `inclusive`, `stop` itself is excluded. Timestamps (`timestamp<us>`)
/// step by an interval. A tuple with a NULL bound or step yields nothing. Holds a chunk, never
/// blocks, keeps the order. Errors: those of the expressions; a step of zero.
///
/// ```
/// # use tessera_testing::run_text;
/// let rows = run_text(
///     "%t = values() {columns = <k: int64>, rows = [[5], [9]]}
///      %result = series(%t) {into = n, start = k, stop = 10::int64, step = 2::int64}",
/// );
/// assert_eq!(rows, ["5 5", "5 7", "5 9", "9 9"]);
/// ```
#[derive(Debug)]
pub struct Series;

/// The parameters with the bounds, in the order in which they are computed.
const BOUNDS: [&str; 3] = ["start", "stop", "step"];

impl Descriptor for Series {
    tessera_operator::describe!(
        "series",
        "Generates for each tuple the numbers or timestamps between two bounds.",
        ["into", "start", "stop", "step", "inclusive"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = edge(inputs)?;
        let into = into(node)?;
        if edge.tuple.index_of(&into).is_some() {
            let message =
                format!("field {} of the series is in its input already", quote_name(&into));
            return Err(Error::semantic(message));
        }
        let mut atoms = Vec::with_capacity(BOUNDS.len());
        for bound in BOUNDS {
            let field = typed(&bound.into(), node.params.expr(bound)?, &edge.tuple, inputs)?;
            atoms.push(match field.item {
                Item::Atom(atom) => atom,
                other => {
                    return Err(Error::semantic(format!(
                        "{bound} is {other}; series expects a value"
                    )));
                }
            });
        }
        let kinds = match &atoms[..] {
            [Atom::Int64, Atom::Int64, Atom::Int64] => true,
            [start @ Atom::Timestamp(TimeUnit::Microsecond, _), stop, Atom::Interval] => {
                start == stop
            }
            _ => false,
        };
        if !kinds {
            let found = atoms.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(Error::semantic(format!(
                "a series is of int64 with a step of int64, or of timestamp<us> with a step of interval, not of {found}"
            )));
        }
        node.params.flag("inclusive")?;
        let mut fields = edge.tuple.fields().to_vec();
        fields.push(Field::new(into, atoms.swap_remove(0)));
        Ok(passes(edge, Tuple::new(fields), edge.order.clone()))
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }
}

/// Returns the name of the new field.
fn into(node: &Node) -> Result<Arc<str>> {
    match node.params.expr("into")? {
        Expr::Field(name) => Ok(name.clone()),
        _ => Err(Error::semantic("parameter into must be the name of a field")),
    }
}

impl SubOperator for Series {
    fn lower(&self, node: &Node, lowering: &Lowering<'_>) -> Result<Operator> {
        let bounds = BOUNDS
            .iter()
            .map(|bound| Ok((Arc::from(*bound), node.params.expr(bound)?)))
            .collect::<Result<Vec<_>>>()?;
        let projector = Projector::new(
            &bounds,
            &lowering.inputs[0].tuple,
            lowering.parameters,
            lowering.library,
        )?;
        let Some(Item::Atom(atom)) =
            lowering.output.tuple.fields().last().map(|field| field.item.clone())
        else {
            return Err(Error::internal("a series without a field"));
        };
        let inclusive = node.params.flag("inclusive")?;
        Ok(Operator::Stream(Arc::new(SeriesOperator { projector, atom, inclusive })))
    }
}

#[derive(Debug)]
struct SeriesOperator {
    projector: Projector,
    atom: Atom,
    inclusive: bool,
}

impl Stream for SeriesOperator {
    fn start(&self, run: &Run, _sides: &[Arc<Collected>]) -> Result<Arc<dyn StreamRun>> {
        Ok(Arc::new(SeriesRun {
            projection: Arc::new(self.projector.start(run)),
            atom: self.atom.clone(),
            inclusive: self.inclusive,
            context: run.context.clone(),
        }))
    }
}

#[derive(Debug, Clone)]
struct SeriesRun {
    projection: Arc<Projection>,
    atom: Atom,
    inclusive: bool,
    context: Arc<dyn Context>,
}

impl StreamRun for SeriesRun {
    fn worker(&self) -> Result<Box<dyn StreamWorker>> {
        Ok(Box::new(SeriesWorker { run: self.clone(), current: None }))
    }
}

struct SeriesWorker {
    run: SeriesRun,
    current: Option<CurrentChunk>,
}

/// A chunk, its bounds, the next tuple, and the rest of the current tuple's series.
struct CurrentChunk {
    chunk: Chunk,
    bounds: Vec<ArrayRef>,
    row: usize,
    rest: Rest,
}

enum Rest {
    Numbers { next: i64, step: i64, left: u128 },
    TimestampSeries(TimestampSeries),
}

impl CurrentChunk {
    /// Starts the series of the next tuple that has one; `None` after the last tuple.
    fn begin(&mut self, atom: &Atom, inclusive: bool) -> Result<Option<()>> {
        let row = self.row;
        if row == self.chunk.rows() {
            return Ok(None);
        }
        self.row += 1;
        self.rest = Rest::Numbers { next: 0, step: 1, left: 0 };
        if self.bounds.iter().any(|bound| bound.is_null(row)) {
            return Ok(Some(()));
        }
        self.rest = match atom {
            Atom::Int64 => {
                let number = |bound| self.value::<Int64Type>(bound, row);
                let (start, stop, step) = (number(0)?, number(1)?, number(2)?);
                Rest::Numbers { next: start, step, left: count([start, stop, step], inclusive)? }
            }
            _ => {
                let (start, stop) = (
                    self.value::<TimestampMicrosecondType>(0, row)?,
                    self.value::<TimestampMicrosecondType>(1, row)?,
                );
                let step = self.value::<IntervalMonthDayNanoType>(2, row)?;
                Rest::TimestampSeries(
                    TimestampSeries::new(start, stop, step, inclusive)?.in_zone(zone_of(atom)),
                )
            }
        };
        Ok(Some(()))
    }

    fn value<T: ArrowPrimitiveType>(&self, bound: usize, row: usize) -> Result<T::Native> {
        let array = self.bounds[bound].as_any().downcast_ref::<PrimitiveArray<T>>();
        array
            .map(|array| array.value(row))
            .ok_or_else(|| Error::internal("a bound of another type"))
    }

    /// Generates up to `most` values, and the tuple of each.
    fn next(&mut self, most: usize, run: &SeriesRun) -> Result<(Vec<i64>, Vec<u32>)> {
        let (mut values, mut parents) = (Vec::with_capacity(most), Vec::new());
        loop {
            let before = values.len();
            let room = most - before;
            match &mut self.rest {
                Rest::Numbers { next, step, left } => {
                    let taken = (*left).min(room as u128) as usize;
                    let (first, by) = (*next, *step);
                    values.extend(
                        (0..taken as i64).map(|at| first.wrapping_add(by.wrapping_mul(at))),
                    );
                    *next = first.wrapping_add(by.wrapping_mul(taken as i64));
                    *left -= taken as u128;
                }
                Rest::TimestampSeries(moments) => {
                    for moment in moments.by_ref().take(room) {
                        values.push(moment?);
                    }
                }
            }
            if !self.chunk.stored().is_empty() {
                parents.resize(values.len(), self.row.saturating_sub(1) as u32);
            }
            if values.len() == most || self.begin(&run.atom, run.inclusive)?.is_none() {
                return Ok((values, parents));
            }
        }
    }
}

/// Returns the time zone of a timestamp type.
fn zone_of(atom: &Atom) -> Option<Tz> {
    match atom {
        Atom::Timestamp(_, Some(zone)) => Tz::from_str(zone).ok(),
        _ => None,
    }
}

/// Returns the length of a series.
fn count([start, stop, step]: [i64; 3], inclusive: bool) -> Result<u128> {
    if step == 0 {
        return Err(Error::data("step size cannot equal zero")
            .with_state(SqlState::INVALID_PARAMETER_VALUE));
    }
    let ahead = i128::from(stop) - i128::from(start);
    let ahead = if step < 0 { -ahead } else { ahead };
    let step = u128::from(step.unsigned_abs());
    Ok(match u128::try_from(ahead) {
        Err(_) => 0,
        Ok(ahead) if inclusive => ahead / step + 1,
        Ok(ahead) => ahead.div_ceil(step),
    })
}

impl StreamWorker for SeriesWorker {
    fn push(&mut self, chunk: Chunk) -> Result<()> {
        let chunk = chunk.compact()?;
        let bounds = self.run.projection.apply(&chunk)?.compact()?;
        let bounds = bounds.stored().iter().map(Column::plain).collect::<Result<Vec<_>>>()?;
        let rest = Rest::Numbers { next: 0, step: 1, left: 0 };
        self.current = Some(CurrentChunk { chunk, bounds, row: 0, rest });
        Ok(())
    }

    fn step(&mut self) -> Result<Step> {
        let Some(current) = &mut self.current else { return Ok(Step::NeedInput) };
        self.run.context.check()?;
        let (values, parents) = current.next(self.run.context.chunk_rows(), &self.run)?;
        if values.is_empty() {
            self.current = None;
            return Ok(Step::NeedInput);
        }
        let rows = values.len();
        let parents = UInt32Array::from(parents);
        let stored = current.chunk.stored().iter();
        let mut columns = stored.map(|column| column.take(&parents)).collect::<Result<Vec<_>>>()?;
        let array: ArrayRef = match &self.run.atom {
            Atom::Int64 => Arc::new(Int64Array::from(values)),
            atom => {
                let moments = PrimitiveArray::<TimestampMicrosecondType>::from(values);
                Arc::new(moments.with_data_type(atom.arrow()))
            }
        };
        columns.push(Column::Plain(array));
        Ok(Step::HasOutput(Chunk::new(columns, rows)))
    }
}

#[cfg(test)]
mod tests {
    use tessera_context::testing::batch;
    use tessera_operator::testing::SETTINGS;
    use tessera_plan::Params;
    use tessera_types::Code;

    use super::*;
    use crate::testing::test_plan;

    fn series(tuple: &str, rows: &str, bounds: [Expr; 3], inclusive: bool) -> Result<Vec<String>> {
        let mut plan = test_plan();
        let table = plan.table(batch(tuple, rows));
        let [start, stop, step] = bounds;
        let params =
            Params::new().with("into", Expr::field("n")).with("start", start).with("stop", stop);
        let root =
            plan.add("series", &[table], params.with("step", step).with("inclusive", inclusive));
        plan.verify(root)?;
        let mut found: Option<Vec<String>> = None;
        for (chunk, workers) in SETTINGS {
            let rows: Vec<String> =
                tessera_context::testing::rows(&plan.run(root, chunk, workers)?);
            assert!(found.is_none() || found.as_ref() == Some(&rows), "{rows:?}");
            found = Some(rows);
        }
        Ok(found.unwrap_or_default())
    }

    #[test]
    fn numbers() {
        let bounds = || [Expr::field("a"), Expr::int64(8), Expr::field("s")];
        let tuple = "<a: int64?, s: int64>";
        let rows = "5 2|9 1|NULL 1|9 -1|8 3";
        let expected = ["5 2 5", "5 2 7", "9 -1 9", "9 -1 8", "8 3 8"];
        assert_eq!(series(tuple, rows, bounds(), true).unwrap(), expected);
        assert_eq!(series(tuple, rows, bounds(), false).unwrap(), ["5 2 5", "5 2 7", "9 -1 9"]);
        assert_eq!(series(tuple, "1 0", bounds(), true).unwrap_err().code(), Code::Data);
        // Ends at the largest number, and spans many chunks.
        let ends = [Expr::int64(i64::MAX - 2), Expr::int64(i64::MAX), Expr::int64(2)];
        let expected = [format!("1 {}", i64::MAX - 2), format!("1 {}", i64::MAX)];
        assert_eq!(series("<a: int64>", "1", ends, true).unwrap(), expected);
        let many = [Expr::int64(1), Expr::int64(20_000), Expr::int64(1)];
        let found = series("<a: int64>", "7", many, true).unwrap();
        assert_eq!((found.len(), &*found[19_999]), (20_000, "7 20000"));
    }

    #[test]
    fn bounds_of_other_types_are_refused() {
        let bounds = [Expr::field("a"), Expr::string("x"), Expr::int64(1)];
        let message = series("<a: int64>", "1", bounds, true).unwrap_err().to_string();
        assert!(message.contains("not of int64, string, int64"), "{message}");
        let bounds = [Expr::field("n"), Expr::field("n"), Expr::field("n")];
        let message = series("<n: int64>", "1", bounds, true).unwrap_err().to_string();
        assert!(message.contains("in its input already"), "{message}");
    }
}
