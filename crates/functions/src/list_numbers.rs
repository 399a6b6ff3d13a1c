//! `list_sum` and `list_avg`, exact for integers and decimals, with the result types of `sum` and
//! `avg`.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Builder, Float64Builder, Int64Builder,
};
use arrow::datatypes::*;
use tessera_types::{Atom, Code, DECIMAL_PRECISION_MAX, Error, Result};

use tessera_values::exact::quotient;
use tessera_values::kernel::{Argument, Kernel, argument, unexpected};
use tessera_values::types::{Arg, ResolvedCall, decimal_of, expect_arguments, wrong_arguments};

/// The names of the functions.
pub(crate) const NAMES: [&str; 4] = ["list_sum", "array_sum", "list_avg", "array_avg"];

/// Resolves a call; `None` for other names.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    let average = match name {
        "list_sum" | "array_sum" => false,
        "list_avg" | "array_avg" => true,
        _ => return None,
    };
    Some(expect_arguments(name, args, 1).and_then(|()| {
        let wrong = || wrong_arguments(name, args, "cast it to a list of numbers");
        let (item, cast) = match args[0].atom {
            Atom::List(slot) => match slot.atom {
                Atom::Null => (Atom::Int32, list_of(Atom::Int32)),
                _ => (slot.atom.clone(), args[0].atom.clone()),
            },
            Atom::Null => (Atom::Int32, list_of(Atom::Int32)),
            _ => return Err(wrong()),
        };
        let atom = match &item {
            item if !item.is_numeric() => return Err(wrong()),
            _ if average => Atom::Float64,
            Atom::Int64 | Atom::UInt64 => Atom::Decimal(DECIMAL_PRECISION_MAX, 0),
            Atom::Decimal(_, scale) => Atom::Decimal(DECIMAL_PRECISION_MAX, *scale),
            item if item.is_float() => Atom::Float64,
            _ => Atom::Int64,
        };
        let scale = decimal_of(&item).map_or(0, |(_, scale)| scale);
        let kernel = ListSum { average, scale, atom: atom.clone() };
        let mut resolved =
            ResolvedCall::strict(atom, args, vec![cast], kernel).raising(true).costing(50);
        resolved.nullable = true;
        Ok(resolved)
    }))
}

fn list_of(atom: Atom) -> Atom {
    Atom::List(Box::new(tessera_types::Slot { atom, nullable: true }))
}

#[derive(Debug)]
struct ListSum {
    average: bool,
    scale: i8,
    atom: Atom,
}

impl Kernel for ListSum {
    fn call(&self, args: &[Argument], _rows: usize) -> Result<ArrayRef> {
        let array = &argument(args, 0)?.array;
        let lists = array.as_list_opt::<i32>().ok_or_else(|| unexpected(array))?;
        macro_rules! exact {
            ($type:ty) => {
                self.exact::<$type>(lists)
            };
        }
        match lists.values().data_type() {
            DataType::Int8 => exact!(Int8Type),
            DataType::Int16 => exact!(Int16Type),
            DataType::Int32 => exact!(Int32Type),
            DataType::Int64 => exact!(Int64Type),
            DataType::UInt8 => exact!(UInt8Type),
            DataType::UInt16 => exact!(UInt16Type),
            DataType::UInt32 => exact!(UInt32Type),
            DataType::UInt64 => exact!(UInt64Type),
            DataType::Decimal64(..) => exact!(Decimal64Type),
            DataType::Decimal128(..) => exact!(Decimal128Type),
            DataType::Float32 | DataType::Float64 => {
                let values = arrow::compute::cast(lists.values(), &DataType::Float64)?;
                let values = values.as_primitive::<Float64Type>();
                let mut sums = Float64Builder::with_capacity(lists.len());
                for row in 0..lists.len() {
                    let mut some = (0u64, 0.0f64);
                    for at in range(lists, row).filter(|at| values.is_valid(*at)) {
                        some = (some.0 + 1, some.1 + values.value(at));
                    }
                    let divisor = if self.average { some.0 as f64 } else { 1.0 };
                    sums.append_option((some.0 > 0).then(|| some.1 / divisor));
                }
                Ok(Arc::new(sums.finish()))
            }
            _ => Err(unexpected(array)),
        }
    }
}

/// The positions of a list's items; empty for a NULL list.
fn range(lists: &arrow::array::ListArray, row: usize) -> std::ops::Range<usize> {
    match lists.is_valid(row) {
        true => lists.offsets()[row] as usize..lists.offsets()[row + 1] as usize,
        false => 0..0,
    }
}

impl ListSum {
    fn exact<T>(&self, lists: &arrow::array::ListArray) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType,
        T::Native: Into<i128>,
    {
        let values = lists.values().as_primitive::<T>();
        let beyond = || {
            Error::new(
                Code::Overflow,
                format!("the sum of a list is out of range for type {}", self.atom),
            )
        };
        let sums = (0..lists.len()).map(|row| {
            let mut found: Option<(i128, u64)> = None;
            for at in range(lists, row).filter(|at| values.is_valid(*at)) {
                let (sum, count) = found.unwrap_or((0, 0));
                found =
                    Some((sum.checked_add(values.value(at).into()).ok_or_else(beyond)?, count + 1));
            }
            Ok::<_, Error>(found)
        });
        if self.average {
            let mut averages = Float64Builder::with_capacity(lists.len());
            for sum in sums {
                averages.append_option(sum?.map(|(sum, count)| quotient(sum, count, self.scale)));
            }
            return Ok(Arc::new(averages.finish()));
        }
        match self.atom.arrow() {
            DataType::Int64 => {
                let mut found = Int64Builder::with_capacity(lists.len());
                for sum in sums {
                    let sum = sum?
                        .map(|(sum, _)| i64::try_from(sum).map_err(|_| beyond()))
                        .transpose()?;
                    found.append_option(sum);
                }
                Ok(Arc::new(found.finish()))
            }
            data_type => {
                let limit = 10u128.pow(DECIMAL_PRECISION_MAX.into());
                let mut found =
                    Decimal128Builder::with_capacity(lists.len()).with_data_type(data_type);
                for sum in sums {
                    match sum? {
                        Some((sum, _)) if sum.unsigned_abs() >= limit => return Err(beyond()),
                        sum => found.append_option(sum.map(|(sum, _)| sum)),
                    }
                }
                Ok(Arc::new(found.finish()))
            }
        }
    }
}
