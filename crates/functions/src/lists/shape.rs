//! Functions on the shape of lists: the number of dimensions and their lengths.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int32Builder, ListArray, StringViewBuilder, UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Int64Type};
use tessera_types::{Atom, Result, SqlState};

use super::list_type;
use tessera_values::kernel::{Argument, Kernel, argument, unexpected};
use tessera_values::rowwise::{fault, takes};
use tessera_values::types::{Arg, ResolvedCall, expect_arguments, wrong_arguments};

/// A property of a list's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShapeProperty {
    /// The length of a dimension, which is also its upper bound.
    Length,
    /// The lower bound of a dimension, always 1.
    Lower,
    /// The number of dimensions.
    Dimensions,
    /// The bounds of all dimensions as text.
    Bounds,
}

/// `array_length(list, dimension)`, and `array_upper`.
pub(super) fn length(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    of_dimension(name, args, ShapeProperty::Length)
}

/// `array_lower(list, dimension)`.
pub(super) fn lower(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    of_dimension(name, args, ShapeProperty::Lower)
}

/// `array_ndims(list)`.
pub(super) fn dimensions(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    expect_arguments(name, args, 1)?;
    Ok(resolved_shape(Atom::Int32, args, vec![list_type(name, args)?], ShapeProperty::Dimensions))
}

/// `array_dims(list)`.
pub(super) fn bounds(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    expect_arguments(name, args, 1)?;
    Ok(resolved_shape(Atom::String, args, vec![list_type(name, args)?], ShapeProperty::Bounds))
}

fn of_dimension(name: &str, args: &[Arg<'_>], property: ShapeProperty) -> Result<ResolvedCall> {
    expect_arguments(name, args, 2)?;
    let list = list_type(name, args)?;
    if !takes(&args[1], &Atom::Int64) {
        return Err(wrong_arguments(name, args, "it takes a list and the number of a dimension"));
    }
    Ok(resolved_shape(Atom::Int32, args, vec![list, Atom::Int64], property))
}

fn resolved_shape(
    atom: Atom,
    args: &[Arg<'_>],
    casts: Vec<Atom>,
    property: ShapeProperty,
) -> ResolvedCall {
    let mut resolved = ResolvedCall::strict(atom, args, casts, Shape(property)).costing(10);
    resolved.nullable = true;
    resolved
}

#[derive(Debug)]
struct Shape(ShapeProperty);

impl Kernel for Shape {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let lists = argument(args, 0)?;
        let of = |row: usize| -> Result<Vec<i32>> {
            match lists.array.data_type() {
                DataType::Null => Ok(Vec::new()),
                _ => lengths(&lists.array, lists.at(row)),
            }
        };
        match self.0 {
            ShapeProperty::Bounds => {
                let mut texts = StringViewBuilder::with_capacity(rows);
                for row in 0..rows {
                    let text: String =
                        of(row)?.iter().map(|length| format!("[1:{length}]")).collect();
                    texts.append_option(Some(text).filter(|text| !text.is_empty()));
                }
                Ok(Arc::new(texts.finish()))
            }
            ShapeProperty::Dimensions => {
                let counts = (0..rows).map(|row| {
                    let count = of(row)?.len() as i32;
                    Ok((count > 0).then_some(count))
                });
                Ok(Arc::new(counts.collect::<Result<Int32Array>>()?))
            }
            ShapeProperty::Length | ShapeProperty::Lower => {
                let dimensions = argument(args, 1)?;
                let numbers = dimensions.primitive::<Int64Type>()?;
                let mut found = Int32Builder::with_capacity(rows);
                for row in 0..rows {
                    let at = dimensions.at(row);
                    let number = if numbers.is_valid(at) { numbers.value(at) } else { 0 };
                    let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
                    let length = of(row)?.get(index).copied();
                    found.append_option(if self.0 == ShapeProperty::Lower {
                        length.map(|_| 1)
                    } else {
                        length
                    });
                }
                Ok(Arc::new(found.finish()))
            }
        }
    }
}

/// The length of a list, of its first item, and so on. An empty list has no dimensions.
fn lengths(array: &ArrayRef, row: usize) -> Result<Vec<i32>> {
    let (mut array, mut row) = (array.clone(), row);
    let mut found = Vec::new();
    while let DataType::List(_) = array.data_type() {
        let lists = array.as_list_opt::<i32>().ok_or_else(|| unexpected(&array))?;
        let (start, length) = (lists.offsets()[row] as usize, lists.value_length(row));
        if lists.is_null(row) || length == 0 {
            break;
        }
        found.push(length);
        (row, array) = (start, lists.values().clone());
    }
    Ok(found)
}

/// `trim_array(list, n)`: the list without its last `n` items.
pub(super) fn trim(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    expect_arguments(name, args, 2)?;
    let list = list_type(name, args)?;
    if !takes(&args[1], &Atom::Int64) {
        return Err(wrong_arguments(name, args, "it takes a list and a number of items"));
    }
    let mut resolved = ResolvedCall::strict(list.clone(), args, vec![list, Atom::Int64], Trim)
        .raising(true)
        .costing(20);
    resolved.nullable = true;
    Ok(resolved)
}

#[derive(Debug)]
struct Trim;

impl Kernel for Trim {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let array = argument(args, 0)?.full(rows)?;
        let Some(lists) = array.as_list_opt::<i32>() else { return Ok(array) };
        let counts = argument(args, 1)?;
        let numbers = counts.primitive::<Int64Type>()?;
        let (mut kept, mut sizes, mut valid) =
            (Vec::new(), Vec::with_capacity(rows), Vec::with_capacity(rows));
        for row in 0..rows {
            let at = counts.at(row);
            let is_valid = lists.is_valid(row) && numbers.is_valid(at);
            valid.push(is_valid);
            if !is_valid {
                sizes.push(0);
                continue;
            }
            let (number, length) = (numbers.value(at), i64::from(lists.value_length(row)));
            if !(0..=length).contains(&number) {
                return Err(fault(
                    format!("trim_array: the number of items must be between 0 and {length}"),
                    SqlState::ARRAY_SUBSCRIPT_ERROR,
                ));
            }
            let start = lists.offsets()[row] as u32;
            let size = (length - number) as u32;
            kept.extend(start..start + size);
            sizes.push(size as usize);
        }
        let DataType::List(item) = lists.data_type() else { return Err(unexpected(&array)) };
        let values = take(lists.values(), &UInt32Array::from(kept), None)?;
        let offsets = OffsetBuffer::from_lengths(sizes);
        Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, Some(valid.into()))?))
    }
}
