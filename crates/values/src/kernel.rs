//! Kernels: functions over columns in plain form.

use std::fmt::Debug;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Datum, PrimitiveArray, UInt32Array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute;
use arrow::datatypes::DataType;
use tessera_types::{Atom, Error, Result};

use tessera_codegen::{MachineType, Op, TextCode, ValueCode};

/// A typed function over columns.
pub trait Kernel: Debug + Send + Sync {
    /// Computes the values of `rows` selected tuples. Calls on constants pass `rows` 1 and no
    /// constant arguments.
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef>;

    /// The operation for a compiler, on fixed-width values with a result of type `atom`; `None` if
    /// there is no such operation.
    fn code(&self, _args: Vec<ValueCode>, _atom: &Atom) -> Option<Op> {
        None
    }

    /// The operation on strings for a compiler, if there is one.
    fn code_of_texts(&self, _texts: Vec<TextCode>) -> Option<Op> {
        None
    }

    /// The string computed from `text` and constants for a compiler, if it is supported.
    fn text_code(&self, _text: TextCode, _others: &[&ArrayRef]) -> Option<TextCode> {
        None
    }
}

/// Code of a nullable boolean.
pub fn truth(op: Op) -> ValueCode {
    ValueCode { op, machine: MachineType::Boolean, nullable: true }
}

/// The two arguments, if there are exactly two.
pub fn pair(args: Vec<ValueCode>) -> Option<Box<[ValueCode; 2]>> {
    <[ValueCode; 2]>::try_from(args).ok().map(Box::new)
}

/// The argument, if there is exactly one.
pub fn single(args: Vec<ValueCode>) -> Option<Box<ValueCode>> {
    <[ValueCode; 1]>::try_from(args).ok().map(|[arg]| Box::new(arg))
}

/// An argument of a kernel: a plain array with one value per tuple, or one value for all tuples.
#[derive(Debug, Clone)]
pub struct Argument {
    /// The values, one per tuple, or a single one.
    pub array: ArrayRef,
    /// Whether the array has one value for all tuples.
    pub constant: bool,
}

impl Datum for Argument {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array.as_ref(), self.constant)
    }
}

impl Argument {
    /// Whether the argument is NULL for all tuples.
    pub fn is_null_constant(&self) -> bool {
        self.constant && self.array.logical_null_count() > 0
    }

    /// The array with one value per tuple.
    pub fn full(&self, rows: usize) -> Result<ArrayRef> {
        if !self.constant {
            return Ok(self.array.clone());
        }
        Ok(compute::take(&self.array, &UInt32Array::from_value(0, rows), None)?)
    }

    /// The array as the type that the binder chose.
    pub fn primitive<T: ArrowPrimitiveType>(&self) -> Result<&PrimitiveArray<T>> {
        self.array.as_primitive_opt::<T>().ok_or_else(|| unexpected(&self.array))
    }

    /// The index of a tuple's value in the array.
    #[inline]
    pub fn at(&self, row: usize) -> usize {
        if self.constant { 0 } else { row }
    }

    /// The validity per tuple, for an argument other than a NULL constant.
    pub fn validity(&self) -> Option<NullBuffer> {
        if self.constant { None } else { self.array.logical_nulls() }
    }
}

/// The argument at `index`.
pub fn argument(args: &[Argument], index: usize) -> Result<&Argument> {
    args.get(index).ok_or_else(|| Error::internal("a kernel received too few arguments"))
}

/// The error for an array of another type than the binder chose.
pub fn unexpected(array: &dyn Array) -> Error {
    Error::internal(format!("a kernel received an array of unexpected type {}", array.data_type()))
}

/// Downcasts to a boolean array.
pub fn as_boolean(array: &dyn Array) -> Result<&BooleanArray> {
    array.as_boolean_opt().ok_or_else(|| unexpected(array))
}

/// The bits of `mask` that are true and not NULL.
pub fn true_bits(mask: &BooleanArray) -> BooleanBuffer {
    match mask.nulls() {
        Some(nulls) if nulls.null_count() > 0 => mask.values() & nulls.inner(),
        _ => mask.values().clone(),
    }
}

/// An array of `rows` NULLs.
pub fn nulls(atom: &Atom, rows: usize) -> ArrayRef {
    arrow::array::new_null_array(&atom.arrow(), rows)
}

/// Applies `op` to each pair without branching on NULLs or failures: `op` returns a value and
/// whether it failed. If any pair failed, a second pass looks for a non-NULL one; `error` then
/// creates the error.
pub fn binary<A, B, O>(
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

/// Like [`binary`], with one argument.
pub fn unary<A, O>(
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
