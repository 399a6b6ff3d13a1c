//! Comparisons of values with a constant.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar};
use arrow::compute::kernels::cmp;
use arrow::compute::take;
use arrow::datatypes::{
    DataType, Decimal128Type, Float32Type, Float64Type, IntervalMonthDayNanoType,
};
use tessera_codegen::Comparison;
use tessera_types::{Error, Result};

use super::Values;
use crate::column::Column;
use crate::physical::{Physical, canonical32, canonical64, interval_length};

/// `value <comparison> constant` in SQL order: NaN equals itself and is the greatest float, both
/// zeros are equal, and intervals compare by length.
#[derive(Debug, Clone)]
pub struct Condition {
    comparison: Comparison,
    /// The type of the constant and of the values.
    data_type: DataType,
    /// The constant, converted by [`comparable`].
    constant: ArrayRef,
    number: Option<i128>,
}

impl Condition {
    /// Creates a condition from a constant: an array of one value in the type of the values.
    /// Returns `None` for types that cannot be compared here.
    pub fn new(comparison: Comparison, constant: &ArrayRef) -> Option<Condition> {
        match Physical::of(constant.data_type()).ok()? {
            Physical::Null | Physical::Nested => return None,
            _ if constant.len() != 1 => return None,
            _ => {}
        }
        let is_there = constant.is_valid(0);
        let number = match constant.as_primitive_opt::<Decimal128Type>() {
            Some(decimals) => Some(decimals.value(0)),
            None => Values::new(constant)
                .numbers()
                .and_then(|numbers| Some(i128::from(*numbers.first()?))),
        };
        Some(Condition {
            comparison,
            data_type: constant.data_type().clone(),
            constant: comparable(constant),
            number: number.filter(|_| is_there),
        })
    }

    /// The comparison operator.
    pub fn comparison(&self) -> Comparison {
        self.comparison
    }

    /// Whether the result is never NULL: the comparison treats NULL as a value.
    pub fn is_total(&self) -> bool {
        self.comparison.is_total()
    }

    /// The constant as an integer, if it is not NULL and of a type that [`Values::numbers`]
    /// supports.
    pub fn number(&self) -> Option<i128> {
        self.number
    }

    /// Evaluates the condition for plain values.
    ///
    /// # Errors
    /// The values and the constant have different types.
    pub fn of_plain(&self, values: &ArrayRef) -> Result<BooleanArray> {
        if *values.data_type() != self.data_type {
            return Err(Error::internal(format!(
                "values of type {} are compared with a constant of type {}",
                values.data_type(),
                self.data_type
            )));
        }
        let (values, constant) = (comparable(values), Scalar::new(&self.constant));
        Ok(match self.comparison {
            Comparison::Eq => cmp::eq(&values, &constant)?,
            Comparison::NotEq => cmp::neq(&values, &constant)?,
            Comparison::Lt => cmp::lt(&values, &constant)?,
            Comparison::LtEq => cmp::lt_eq(&values, &constant)?,
            Comparison::Gt => cmp::gt(&values, &constant)?,
            Comparison::GtEq => cmp::gt_eq(&values, &constant)?,
            Comparison::Distinct => cmp::distinct(&values, &constant)?,
            Comparison::NotDistinct => cmp::not_distinct(&values, &constant)?,
        })
    }

    /// Evaluates the condition for a column: once per dictionary value, once for a constant.
    ///
    /// # Errors
    /// As [`Condition::of_plain`].
    pub fn of_column(&self, column: &Column) -> Result<BooleanArray> {
        match column {
            Column::Constant(value, len) => {
                let truth = self.of_plain(value)?;
                Ok(vec![truth.is_valid(0).then(|| truth.value(0)); *len].into())
            }
            // A total comparison does not return NULL for a NULL key.
            Column::Dictionary(array) if !(self.is_total() && array.null_count() > 0) => {
                let dictionary = array.as_any_dictionary();
                let truth = self.of_plain(dictionary.values())?;
                Ok(take(&truth, dictionary.keys(), None)?.as_boolean().clone())
            }
            _ => self.of_plain(&column.plain()?),
        }
    }
}

/// Converts values such that Arrow's order is SQL's order.
fn comparable(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => {
            let floats = values.as_primitive::<Float32Type>();
            Arc::new(
                floats
                    .unary::<_, Float32Type>(|value| f32::from_bits(canonical32(value.to_bits()))),
            )
        }
        DataType::Float64 => {
            let floats = values.as_primitive::<Float64Type>();
            Arc::new(
                floats
                    .unary::<_, Float64Type>(|value| f64::from_bits(canonical64(value.to_bits()))),
            )
        }
        DataType::Interval(_) => match values.as_primitive_opt::<IntervalMonthDayNanoType>() {
            Some(intervals) => Arc::new(intervals.unary::<_, Decimal128Type>(interval_length)),
            None => values.clone(),
        },
        _ => values.clone(),
    }
}
