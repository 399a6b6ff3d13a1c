//! AND, OR, NOT, IS NULL, CASE, COALESCE and TRY: nodes that decide for which tuples their operands
//! are evaluated.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, Datum, new_null_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{self, interleave};
use arrow::datatypes::DataType;
use tessera_types::{Atom, Error, Result};
use tessera_vector::Column;

use super::bind::Node;
use super::evaluate::{View, evaluate, is_raised};
use tessera_values::kernel::{Argument, as_boolean, true_bits};

/// Nodes up to this cost that cannot fail are evaluated for all tuples instead of a selection:
/// gathering a column costs about as much as a few comparisons.
pub(crate) const CHEAP: u32 = 8;

/// The values of a boolean column.
#[derive(Debug)]
pub(crate) enum Truth {
    /// One value for all tuples.
    Constant(Option<bool>),
    /// One value per tuple.
    Each(BooleanArray),
}

impl Truth {
    /// Converts a boolean column.
    pub(crate) fn of(column: &Column) -> Result<Truth> {
        if let Column::Constant(value, _) = column {
            let value = as_boolean(value)?;
            return Ok(Truth::Constant(value.is_valid(0).then(|| value.value(0))));
        }
        let array = column.plain()?;
        Ok(Truth::Each(as_boolean(&array)?.clone()))
    }
}

fn constant(value: Option<bool>, rows: usize) -> Column {
    Column::Constant(Arc::new(BooleanArray::from(vec![value])), rows)
}

/// AND, or OR if `any` is true. `any` is also the deciding value: tuples that have it need no
/// further operands.
pub(crate) fn connective(list: &[Node], view: &View<'_>, any: bool) -> Result<Column> {
    let rows = view.rows();
    let mut known: Option<BooleanArray> = None;
    for node in list {
        let undecided = match &known {
            Some(known) if node.raises || node.cost > CHEAP => undecided(known, any),
            _ => None,
        };
        let truth = match &undecided {
            Some(numbers) if numbers.is_empty() => break,
            Some(numbers) => {
                let found = Truth::of(&evaluate(node, &view.narrow(numbers))?)?;
                Truth::Each(scatter(&found, numbers, rows, !any))
            }
            None => Truth::of(&evaluate(node, view)?)?,
        };
        known = match (known, truth) {
            (_, Truth::Constant(Some(value))) if value == any => {
                return Ok(constant(Some(any), rows));
            }
            (known, Truth::Constant(Some(_))) => known,
            (known, Truth::Constant(None)) => {
                let nulls = BooleanArray::new_null(rows);
                Some(known.map_or(Ok(nulls.clone()), |known| combine(&known, &nulls, any))?)
            }
            (None, Truth::Each(array)) => Some(array),
            (Some(known), Truth::Each(array)) => Some(combine(&known, &array, any)?),
        };
    }
    Ok(known.map_or_else(|| constant(Some(!any), rows), |known| Column::Plain(Arc::new(known))))
}

fn combine(left: &BooleanArray, right: &BooleanArray, any: bool) -> Result<BooleanArray> {
    Ok(if any { compute::or_kleene(left, right)? } else { compute::and_kleene(left, right)? })
}

/// The indexes of tuples without the deciding value; `None` if no tuple has it.
fn undecided(known: &BooleanArray, any: bool) -> Option<Vec<u32>> {
    let decided = match any {
        true => true_bits(known),
        false => match known.nulls() {
            Some(nulls) => &!known.values() & nulls.inner(),
            None => !known.values(),
        },
    };
    let open = !&decided;
    (open.count_set_bits() < known.len()).then(|| open.set_indices_u32().collect())
}

/// Truth values at the given tuples, and `default` at all others.
fn scatter(found: &Truth, numbers: &[u32], rows: usize, default: bool) -> BooleanArray {
    let mut values = BooleanBufferBuilder::new(rows);
    values.append_n(rows, default);
    let nullable = match found {
        Truth::Constant(value) => value.is_none(),
        Truth::Each(array) => array.null_count() > 0,
    };
    let mut valid = nullable.then(|| {
        let mut valid = BooleanBufferBuilder::new(rows);
        valid.append_n(rows, true);
        valid
    });
    for (i, &number) in numbers.iter().enumerate() {
        let value = match found {
            Truth::Constant(value) => *value,
            Truth::Each(array) => array.is_valid(i).then(|| array.value(i)),
        };
        values.set_bit(number as usize, value.unwrap_or(false));
        if let (None, Some(valid)) = (value, &mut valid) {
            valid.set_bit(number as usize, false);
        }
    }
    BooleanArray::new(values.finish(), valid.map(|mut valid| NullBuffer::new(valid.finish())))
}

/// Logical negation.
pub(crate) fn not(column: Column) -> Result<Column> {
    match (Truth::of(&column)?, column.len()) {
        (Truth::Constant(value), rows) => Ok(constant(value.map(|value| !value), rows)),
        (Truth::Each(array), _) => Ok(Column::Plain(Arc::new(compute::not(&array)?))),
    }
}

/// Whether each value is NULL.
pub(crate) fn is_null(column: Column) -> Result<Column> {
    let rows = column.len();
    match &column {
        Column::Constant(value, _) => Ok(constant(Some(value.logical_null_count() > 0), rows)),
        Column::Plain(array) | Column::Dictionary(array) => match array.logical_nulls() {
            None => Ok(constant(Some(false), rows)),
            Some(nulls) => Ok(Column::Plain(Arc::new(BooleanArray::new(!nulls.inner(), None)))),
        },
        Column::Handles(_) => Err(Error::internal("a collection was asked whether it is NULL")),
    }
}

/// Values computed for some tuples of a view.
struct PartialResult {
    numbers: Vec<u32>,
    column: Column,
}

/// `CASE`: evaluates each condition where no previous one held, and each value where its condition
/// holds.
pub(crate) fn case(
    branches: &[(Node, Node)],
    otherwise: Option<&Node>,
    atom: &Atom,
    view: &View<'_>,
) -> Result<Column> {
    if let ([(condition, value)], Some(otherwise)) = (branches, otherwise)
        && [value, otherwise].iter().all(|node| !node.raises && node.cost <= CHEAP)
    {
        return choice(condition, value, otherwise, view);
    }
    let mut parts = Vec::new();
    // `None` means all tuples.
    let mut open: Option<Vec<u32>> = None;
    for (condition, value) in branches {
        let found = match &open {
            None => Truth::of(&evaluate(condition, view)?)?,
            Some(open) => Truth::of(&evaluate(condition, &view.narrow(open))?)?,
        };
        match found {
            Truth::Constant(Some(true)) => {
                let column = take_part(value, view, open.as_deref())?;
                parts.push(PartialResult {
                    numbers: open.take().unwrap_or_else(|| numbers(view.rows())),
                    column,
                });
                open = Some(Vec::new());
            }
            Truth::Constant(_) => {}
            Truth::Each(array) => {
                let (taken, rest) = partition(&true_bits(&array), open.as_deref());
                if !taken.is_empty() {
                    let column = evaluate(value, &view.narrow(&taken))?;
                    parts.push(PartialResult { numbers: taken, column });
                }
                open = Some(rest);
            }
        }
        if open.as_ref().is_some_and(Vec::is_empty) {
            return assemble(parts, atom, view.rows());
        }
    }
    if let Some(otherwise) = otherwise {
        let column = take_part(otherwise, view, open.as_deref())?;
        parts.push(PartialResult { numbers: open.unwrap_or_else(|| numbers(view.rows())), column });
    }
    assemble(parts, atom, view.rows())
}

fn take_part(node: &Node, view: &View<'_>, numbers: Option<&[u32]>) -> Result<Column> {
    match numbers {
        None => evaluate(node, view),
        Some(numbers) => evaluate(node, &view.narrow(numbers)),
    }
}

fn numbers(rows: usize) -> Vec<u32> {
    (0..rows as u32).collect()
}

/// Splits tuples by their bit: those that have it set and those that do not, as indexes in the
/// view.
fn partition(bits: &BooleanBuffer, open: Option<&[u32]>) -> (Vec<u32>, Vec<u32>) {
    let number = |i: u32| open.map_or(i, |open| open[i as usize]);
    let taken = bits.set_indices_u32().map(number).collect();
    let rest = (!bits).set_indices_u32().map(number).collect();
    (taken, rest)
}

/// A CASE with one condition and two cheap values that cannot fail: computes everything for all
/// tuples and then selects.
fn choice(condition: &Node, value: &Node, otherwise: &Node, view: &View<'_>) -> Result<Column> {
    let mask = match Truth::of(&evaluate(condition, view)?)? {
        Truth::Constant(Some(true)) => return evaluate(value, view),
        Truth::Constant(_) => return evaluate(otherwise, view),
        Truth::Each(array) => BooleanArray::new(true_bits(&array), None),
    };
    let side = |node: &Node| -> Result<Argument> {
        Ok(match evaluate(node, view)? {
            Column::Constant(array, _) => {
                Argument { array: without_spare_strings(array), constant: true }
            }
            column => Argument { array: column.plain()?, constant: false },
        })
    };
    let (value, otherwise) = (side(value)?, side(otherwise)?);
    let (truthy, falsy): (&dyn Datum, &dyn Datum) = (&value, &otherwise);
    Ok(Column::Plain(compute::kernels::zip::zip(&mask, truthy, falsy)?))
}

/// Copies the string of a constant out of shared buffers. Arrow's `zip` of two constants changes
/// the buffer index in the view of a short string, which has none: bytes 9 to 12 of the view are
/// text.
fn without_spare_strings(constant: ArrayRef) -> ArrayRef {
    match constant.data_type() {
        DataType::Utf8View => Arc::new(constant.as_string_view().gc()),
        DataType::BinaryView => Arc::new(constant.as_binary_view().gc()),
        _ => constant,
    }
}

/// Merges the parts in the order of their tuples; NULL where no part has a value.
fn assemble(parts: Vec<PartialResult>, atom: &Atom, rows: usize) -> Result<Column> {
    if let [part] = parts.as_slice()
        && part.numbers.len() == rows
    {
        return Ok(part.column.clone());
    }
    let mut arrays: Vec<ArrayRef> = vec![new_null_array(&atom.arrow(), 1)];
    let mut places = vec![(0, 0); rows];
    for part in &parts {
        let at = arrays.len();
        match &part.column {
            Column::Constant(value, _) => {
                part.numbers.iter().for_each(|&number| places[number as usize] = (at, 0));
                arrays.push(value.clone());
            }
            column => {
                for (i, &number) in part.numbers.iter().enumerate() {
                    places[number as usize] = (at, i);
                }
                arrays.push(column.plain()?);
            }
        }
    }
    let arrays: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref()).collect();
    Ok(Column::Plain(interleave(&arrays, &places)?))
}

/// `COALESCE`: evaluates each operand where all previous ones are NULL.
pub(crate) fn coalesce(list: &[Node], atom: &Atom, view: &View<'_>) -> Result<Column> {
    let mut parts = Vec::new();
    let mut open: Option<Vec<u32>> = None;
    for node in list {
        let column = take_part(node, view, open.as_deref())?;
        let nulls = match &column {
            Column::Constant(value, rows) => match value.logical_null_count() {
                0 => None,
                _ => Some(NullBuffer::new_null(*rows)),
            },
            column => column.plain()?.logical_nulls(),
        };
        let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else {
            let all = open.take().unwrap_or_else(|| numbers(view.rows()));
            parts.push(PartialResult { numbers: all, column });
            return assemble(parts, atom, view.rows());
        };
        let (_, rest) = partition(nulls.inner(), open.as_deref());
        let all = open.take().unwrap_or_else(|| numbers(view.rows()));
        // Later operands overwrite tuples that are still NULL.
        parts.push(PartialResult { numbers: all, column });
        open = Some(rest);
    }
    assemble(parts, atom, view.rows())
}

/// `TRY`: true for a tuple if its evaluation raises an error. Splits the tuples in halves until
/// each failing one is alone.
pub(crate) fn attempt(input: &Node, view: &View<'_>) -> Result<Column> {
    match evaluate(input, view) {
        Ok(column) => Ok(column),
        Err(error) if !is_raised(&error) => Err(error),
        Err(_) if view.rows() <= 1 => Ok(constant(Some(true), view.rows())),
        Err(_) => {
            let numbers = numbers(view.rows());
            let (first, second) = numbers.split_at(numbers.len() / 2);
            let first = attempt(input, &view.narrow(first))?.plain()?;
            let second = attempt(input, &view.narrow(second))?.plain()?;
            Ok(Column::Plain(compute::concat(&[&first, &second])?))
        }
    }
}
