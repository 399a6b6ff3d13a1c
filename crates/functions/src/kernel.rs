//! What a function is to the evaluator: a kernel over columns in plain form.

use std::fmt::Debug;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Datum, PrimitiveArray, UInt32Array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute;
use arrow::datatypes::DataType;
use tessera_types::{Atom, Error, Result};

use tessera_codegen::{Machine, Op, TextCode, ValueCode};

/// A function on columns, found and typed.
pub trait Kernel: Debug + Send + Sync {
    /// The values for `rows` tuples, all of which count. With `rows` 1 and no constant among the
    /// arguments this is also how a call on constants is made.
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef>;

    /// What it does to values of fixed width, giving `atom`, for a compiler; none where that has no
    /// such form.
    fn code(&self, _args: Vec<ValueCode>, _atom: &Atom) -> Option<Op> {
        None
    }

    /// What it does to texts, for a compiler.
    fn code_of_texts(&self, _texts: Vec<TextCode>) -> Option<Op> {
        None
    }

    /// The text that it makes of one and of constants, for a compiler.
    fn text_code(&self, _text: TextCode, _others: &[&ArrayRef]) -> Option<TextCode> {
        None
    }
}

/// What says true or false of each tuple, or NULL.
pub(crate) fn truth(op: Op) -> ValueCode {
    ValueCode { op, machine: Machine::Boolean, nullable: true }
}

/// The only two.
pub(crate) fn pair(args: Vec<ValueCode>) -> Option<Box<[ValueCode; 2]>> {
    <[ValueCode; 2]>::try_from(args).ok().map(Box::new)
}

/// The only one.
pub(crate) fn single(args: Vec<ValueCode>) -> Option<Box<ValueCode>> {
    <[ValueCode; 1]>::try_from(args).ok().map(|[arg]| Box::new(arg))
}

/// An argument of a kernel: a plain array with one value per tuple, or one value for all.
#[derive(Debug, Clone)]
pub struct Argument {
    pub array: ArrayRef,
    pub constant: bool,
}

impl Datum for Argument {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array.as_ref(), self.constant)
    }
}

impl Argument {
    /// Whether it is NULL for all tuples.
    pub fn is_null_constant(&self) -> bool {
        self.constant && self.array.logical_null_count() > 0
    }

    /// One value per tuple.
    pub fn full(&self, rows: usize) -> Result<ArrayRef> {
        if !self.constant {
            return Ok(self.array.clone());
        }
        Ok(compute::take(&self.array, &UInt32Array::from_value(0, rows), None)?)
    }

    /// The array as the type the binder promised.
    pub fn primitive<T: ArrowPrimitiveType>(&self) -> Result<&PrimitiveArray<T>> {
        self.array.as_primitive_opt::<T>().ok_or_else(|| unexpected(&self.array))
    }

    /// Where in the array the value of a tuple stands.
    #[inline]
    pub fn at(&self, row: usize) -> usize {
        if self.constant { 0 } else { row }
    }

    /// Validity per tuple, for an argument that is not the NULL constant.
    pub fn validity(&self) -> Option<NullBuffer> {
        if self.constant { None } else { self.array.logical_nulls() }
    }
}

/// The argument at `index`.
pub(crate) fn argument(args: &[Argument], index: usize) -> Result<&Argument> {
    args.get(index).ok_or_else(|| Error::internal("a kernel got too few arguments"))
}

/// An array is not of the type the binder promised.
pub(crate) fn unexpected(array: &dyn Array) -> Error {
    Error::internal(format!("a kernel met an array of type {}", array.data_type()))
}

/// A boolean array out of one that should be.
pub(crate) fn as_boolean(array: &dyn Array) -> Result<&BooleanArray> {
    array.as_boolean_opt().ok_or_else(|| unexpected(array))
}

/// The bits of `mask` that are true and not NULL.
pub(crate) fn true_bits(mask: &BooleanArray) -> BooleanBuffer {
    match mask.nulls() {
        Some(nulls) if nulls.null_count() > 0 => mask.values() & nulls.inner(),
        _ => mask.values().clone(),
    }
}

/// NULL for `rows` tuples.
pub(crate) fn nulls(atom: &Atom, rows: usize) -> ArrayRef {
    arrow::array::new_null_array(&atom.arrow(), rows)
}

/// Applies `op` to each pair without branching on NULL or failure: `op` gives a value and whether
/// it is wrong. Only when some value is wrong is it found out whether a tuple that is not NULL gave
/// it; then `error` says what happened.
pub(crate) fn binary<A, B, O>(
    args: &[Argument],
    rows: usize,
    data_type: DataType,
    op: impl Fn(A::Native, B::Native) -> (O::Native, bool),
    error: impl Fn(A::Native, B::Native) -> Error,
) -> Result<ArrayRef>
where
    A: ArrowPrimitiveType,
    B: ArrowPrimitiveType,
    O: ArrowPrimitiveType,
{
    let (left, right) = (argument(args, 0)?, argument(args, 1)?);
    if left.is_null_constant() || right.is_null_constant() {
        return Ok(arrow::array::new_null_array(&data_type, rows));
    }
    let (l, r) = (left.primitive::<A>()?.values(), right.primitive::<B>()?.values());
    let mut wrong = false;
    let values: Vec<O::Native> = match (left.constant, right.constant) {
        (false, true) => {
            let b = r[0];
            l.iter().map(|&a| flagged(op(a, b), &mut wrong)).collect()
        }
        (true, false) => {
            let a = l[0];
            r.iter().map(|&b| flagged(op(a, b), &mut wrong)).collect()
        }
        (true, true) => {
            let value = flagged(op(l[0], r[0]), &mut wrong);
            vec![value; rows]
        }
        (false, false) => l.iter().zip(r).map(|(&a, &b)| flagged(op(a, b), &mut wrong)).collect(),
    };
    let nulls = NullBuffer::union(left.validity().as_ref(), right.validity().as_ref());
    if wrong {
        for row in 0..rows {
            let (a, b) = (l[left.at(row)], r[right.at(row)]);
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) && op(a, b).1 {
                return Err(error(a, b));
            }
        }
    }
    let array = PrimitiveArray::<O>::try_new(values.into(), nulls)?.with_data_type(data_type);
    Ok(std::sync::Arc::new(array))
}

/// As [`binary`], with one argument.
pub(crate) fn unary<A, O>(
    args: &[Argument],
    data_type: DataType,
    op: impl Fn(A::Native) -> (O::Native, bool),
    error: impl Fn(A::Native) -> Error,
) -> Result<ArrayRef>
where
    A: ArrowPrimitiveType,
    O: ArrowPrimitiveType,
{
    let input = argument(args, 0)?.primitive::<A>()?;
    let mut wrong = false;
    let values: Vec<O::Native> =
        input.values().iter().map(|&a| flagged(op(a), &mut wrong)).collect();
    if wrong {
        for (row, &a) in input.values().iter().enumerate() {
            if input.is_valid(row) && op(a).1 {
                return Err(error(a));
            }
        }
    }
    let array = PrimitiveArray::<O>::try_new(values.into(), input.nulls().cloned())?
        .with_data_type(data_type);
    Ok(std::sync::Arc::new(array))
}

#[inline(always)]
fn flagged<T>((value, bad): (T, bool), wrong: &mut bool) -> T {
    *wrong |= bad;
    value
}
