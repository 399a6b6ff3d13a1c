//! `frame_offset`: the offset of a frame bound of a window function, which must be neither NULL nor
//! negative.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::decimal::widened;
use tessera_values::canonical::canonical_values;
use tessera_values::kernel::{Argument, Kernel, argument, unexpected};
use tessera_values::types::{Arg, ResolvedCall, expect_arguments, wrong_arguments};

/// Resolves `frame_offset`, which returns its argument: an integer of 64 bits, a decimal, a double
/// or an interval.
pub(crate) fn resolve(args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let name = "frame_offset";
    expect_arguments(name, args, 1)?;
    let atom = match args[0].atom {
        atom @ (Atom::Int64 | Atom::Decimal(..) | Atom::Float64 | Atom::Interval) => atom.clone(),
        _ => return Err(wrong_arguments(name, args, "it takes a number or an interval")),
    };
    let mut resolved =
        ResolvedCall::strict(atom.clone(), args, vec![atom], FrameOffset).raising(true);
    resolved.nullable = false;
    Ok(resolved)
}

#[derive(Debug)]
struct FrameOffset;

impl Kernel for FrameOffset {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let offset = argument(args, 0)?;
        if offset.array.logical_null_count() > 0 {
            let error = Error::new(Code::Data, "the offset of a window frame must not be NULL");
            return Err(error.with_state(SqlState::NULL_VALUE_NOT_ALLOWED));
        }
        let values = canonical_values(widened(args, 0)?.array)?;
        let is_wrong = match values.data_type() {
            DataType::Int64 => values.as_primitive::<Int64Type>().values().iter().any(|v| *v < 0),
            DataType::Decimal128(..) => {
                values.as_primitive::<Decimal128Type>().values().iter().any(|v| *v < 0)
            }
            DataType::Float64 => {
                let values = values.as_primitive::<Float64Type>().values();
                values.iter().any(|value| value.is_nan() || *value < 0.0)
            }
            _ => return Err(unexpected(&values)),
        };
        if is_wrong {
            let message = "the offset of a window frame must not be negative";
            return Err(Error::new(Code::Data, message).with_state(SqlState::INVALID_FRAME_OFFSET));
        }
        offset.full(rows)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array, IntervalMonthDayNanoArray};
    use arrow::datatypes::IntervalMonthDayNano;

    use super::*;

    fn call(array: ArrayRef) -> Result<ArrayRef> {
        let rows = array.len();
        FrameOffset.call(&[Argument { array, constant: false }], rows)
    }

    #[test]
    fn an_offset_is_returned_unless_it_is_null_or_negative() {
        let good: ArrayRef = Arc::new(Int64Array::from(vec![0, 3]));
        assert_eq!(call(good.clone()).unwrap().as_ref(), good.as_ref());
        let months = |months| -> ArrayRef {
            Arc::new(IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(months, 1, 0)]))
        };
        assert!(call(months(1)).is_ok());
        for (array, state) in [
            (Arc::new(Int64Array::from(vec![1, -1])) as ArrayRef, "22013"),
            (Arc::new(Int64Array::from(vec![Some(1), None])), "22004"),
            (Arc::new(Float64Array::from(vec![f64::NAN])), "22013"),
            (months(-1), "22013"),
        ] {
            assert_eq!(call(array).unwrap_err().sql_state().as_str(), state);
        }
    }
}
