//! `width_bucket`: the bucket of a value in an equi-width histogram.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array};
use arrow::datatypes::*;
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::decimal::widened;
use tessera_values::kernel::{Argument, Kernel, argument};
use tessera_values::types::{Arg, ResolvedCall, common_type, expect_arguments, wrong_arguments};

/// `width_bucket`: the bucket of an equi-width histogram; exact decimals unless an argument is a
/// float.
pub(super) fn resolve(args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let name = "width_bucket";
    expect_arguments(name, args, 4)?;
    let numbers = args[..3].iter().all(|arg| arg.atom.is_numeric() || *arg.atom == Atom::Null);
    let counts = args[3].atom.is_integer() || *args[3].atom == Atom::Null;
    if !numbers || !counts {
        return Err(wrong_arguments(name, args, "it takes three numbers and an integer"));
    }
    let common =
        args[..3].iter().try_fold(Atom::Null, |common, arg| common_type(&common, arg.atom));
    let common = match common {
        Some(Atom::Decimal(precision, scale)) => Atom::Decimal(precision, scale),
        Some(atom) if atom.is_integer() => Atom::Decimal(20, 0),
        _ => Atom::Float64,
    };
    let casts = vec![common.clone(), common.clone(), common, Atom::Int64];
    Ok(ResolvedCall::strict(Atom::Int32, args, casts, WidthBucket).raising(true).costing(40))
}

#[derive(Debug)]
struct WidthBucket;

impl Kernel for WidthBucket {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let count = argument(args, 3)?;
        let counts = count.primitive::<Int64Type>()?;
        let count_of = |row: usize| match counts.value(count.at(row)) {
            ..=0 => Err(refused("the count must be greater than zero")),
            count if count > i64::from(i32::MAX) => {
                Err(Error::new(Code::Overflow, "width_bucket: the count is out of range"))
            }
            count => Ok(count),
        };
        let is_null = |row: usize| args.iter().any(|arg| arg.array.is_null(arg.at(row)));
        if *args[0].array.data_type() == DataType::Float64 {
            let columns = args[..3]
                .iter()
                .map(|arg| arg.primitive::<Float64Type>())
                .collect::<Result<Vec<_>>>()?;
            let found = (0..rows).map(|row| {
                if is_null(row) {
                    return Ok(None);
                }
                let at = |index: usize| columns[index].value(args[index].at(row));
                let (x, low, high, count) = (at(0), at(1), at(2), count_of(row)?);
                if x.is_nan() || low.is_nan() || high.is_nan() {
                    return Err(refused("the operand and the bounds cannot be NaN"));
                }
                if !low.is_finite() || !high.is_finite() {
                    return Err(refused("the bounds must be finite"));
                }
                // Halving avoids overflow if the bounds are far apart.
                let share = || (x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
                let inside = || ((count as f64 * share()) as i64).min(count - 1) + 1;
                bucket(x, (low, high), count, inside).map(Some)
            });
            return Ok(Arc::new(found.collect::<Result<Int32Array>>()?));
        }
        let wide = (0..3).map(|index| widened(args, index)).collect::<Result<Vec<_>>>()?;
        let columns =
            wide.iter().map(|arg| arg.primitive::<Decimal128Type>()).collect::<Result<Vec<_>>>()?;
        let found = (0..rows).map(|row| {
            if is_null(row) {
                return Ok(None);
            }
            let at = |index: usize| columns[index].value(args[index].at(row));
            let (x, low, high, count) = (at(0), at(1), at(2), count_of(row)?);
            let inside = || {
                let [distance, width] = [x, high].map(|end| i256::from_parts(end.abs_diff(low), 0));
                let product = distance.wrapping_mul(i256::from_i128(count.into()));
                product.wrapping_div(width).as_i128() as i64 + 1
            };
            bucket(x, (low, high), count, inside).map(Some)
        });
        Ok(Arc::new(found.collect::<Result<Int32Array>>()?))
    }
}

fn refused(what: &str) -> Error {
    let state = SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET;
    Error::new(Code::Data, format!("width_bucket: {what}")).with_state(state)
}

/// Returns the bucket of `x`: 0 before the bounds, `count` + 1 beyond them, else what `inside`
/// returns. The bounds may be descending.
fn bucket<T: PartialOrd>(
    x: T,
    (low, high): (T, T),
    count: i64,
    inside: impl FnOnce() -> i64,
) -> Result<i32> {
    if low == high {
        return Err(refused("the bounds must differ"));
    }
    let (before, beyond) = if low < high { (x < low, x >= high) } else { (x > low, x <= high) };
    let found = match (before, beyond) {
        (true, _) => 0,
        (_, true) => count + 1,
        _ => inside(),
    };
    let message = "width_bucket: the bucket is out of range for type int32";
    i32::try_from(found).map_err(|_| Error::new(Code::Overflow, message))
}
