//! Aggregate functions: states, and how they are updated, merged and finished.
//!
//! A state is a few 8-byte words in an [`area::Area`], initially zero (`docs/reference/layout.md`,
//! "aggregate states"). Larger data (strings, library functions, values stored for `DISTINCT` or
//! `ORDER BY`) is in a side table of the [`Aggregate`], which is one function over all groups of
//! one table. [`Program`] binds the aggregates of a node: it finds what they share, evaluates their
//! arguments, and updates them.

mod always_null;
mod area;
mod call;
mod compiled;
mod count;
mod counted;
mod extreme;
mod extreme_bytes;
mod float_sum;
mod gathered;
mod groups;
mod interval_sum;
mod library;
mod moments;
mod ordered;
mod picked;
mod program;
mod quantile;
mod ranges;
mod regression;
mod share;
mod spilled_values;
mod sum;
mod variance;

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes as types;
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use tessera_rows::spill::SpillFile;
use tessera_types::{Error, Result};
use tessera_values::plain::to_form;
use tessera_vector::Column;

pub use area::Area;
pub use call::{Call, calls, output_fields};
pub use compiled::Compiled;
pub use groups::{Groups, Pairs, Shape};

pub use program::{Program, States};
pub use ranges::Ranges;

use counted::CountedKind;
use extreme::ExtremeKind;
use moments::Moment;
use regression::Regression;

/// One aggregate function over the groups of one table.
pub trait Aggregate: Any + Send + std::fmt::Debug {
    /// Updates the states of groups with the rows of a chunk.
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()>;

    /// Prepares side tables to be merged into another table; no update follows.
    fn seal(&mut self, _area: &Area) -> Result<()> {
        Ok(())
    }

    /// Merges states of another table; `other` is the same function, sealed.
    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, other: &mut dyn Any) -> Result<()>;

    /// Merges the states of ranges of groups in `from` into the groups of `into`: range `i` into
    /// group `i`. Both areas hold states of this object. Returns false if the function cannot do
    /// that; no update follows a call.
    fn merge_ranges(
        &mut self,
        _from: &Area,
        _ranges: &Ranges<'_>,
        _into: &mut Area,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Returns the results of all groups, in order. Called last, once for every output of the
    /// function.
    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef>;

    /// Bytes held outside the area, plus those needed to compute the results.
    fn memory(&self) -> usize {
        0
    }

    /// Spills its values, if supported. Afterwards it can be merged only into a table of the same
    /// groups.
    ///
    /// # Errors
    /// The scratch directory is full.
    fn spill(&mut self, _file: &Arc<SpillFile>) -> Result<()> {
        Ok(())
    }
}

/// Selects a result of a state that serves several functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// The function's own result.
    Value,
    /// The average of a sum's values.
    Average,
    /// The number of a sum's values.
    Count,
    /// A variance of a sample or of a population, or its square root.
    Variance {
        /// Whether to divide by one less than the count.
        sample: bool,
        /// Whether to return the standard deviation.
        root: bool,
    },
    /// A correlation, covariance or regression of two columns.
    Regression(Regression),
    /// A skewness or kurtosis.
    Moment(Moment),
}

/// A result and its Arrow type.
#[derive(Debug, Clone)]
pub struct Output {
    /// The kind of result.
    pub kind: OutputKind,
    /// Its plain Arrow type.
    pub data_type: DataType,
}

/// A function bound to its argument types.
#[derive(Debug, Clone)]
pub enum Function {
    /// Always NULL.
    Null,
    /// Counts rows, or rows whose arguments are not NULL; with `merged`, sums counts.
    Count {
        /// Whether the input is counts.
        merged: bool,
    },
    /// Sum, average and count; for intervals only the sum. With a second argument, the first one is
    /// partial sums and the second the number of values in each.
    Sum(DataType),
    /// Smallest, largest or any value.
    Extreme(ExtremeKind, DataType),
    /// Variances and standard deviations.
    Variance(DataType),
    /// Correlations, covariances and regressions.
    Regression,
    /// Skewnesses and kurtoses of doubles.
    Moments,
    /// The sum, average and count of doubles, with what the additions lose.
    CompensatedSum,
    /// The product of doubles.
    Product,
    /// The different values and their counts.
    Counted(CountedKind, DataType),
    /// Percentiles and modes.
    Quantile(Arc<quantile::QuantileSpec>),
    /// A function of DataFusion's library.
    Library(Arc<library::LibrarySpec>),
    /// All values as a list; only within `Ordered`.
    List,
    /// Strings joined with separators; only within `Ordered`.
    Joined,
    /// A function over values that are stored until all have arrived.
    Ordered(Arc<ordered::OrderedSpec>),
}

macro_rules! with_primitive {
    ($data_type:expr, $integer:ident, $float:ident, $other:ident, $else:expr) => {
        match $data_type {
            DataType::Int8 => $integer!(types::Int8Type),
            DataType::Int16 => $integer!(types::Int16Type),
            DataType::Int32 => $integer!(types::Int32Type),
            DataType::Int64 => $integer!(types::Int64Type),
            DataType::UInt8 => $integer!(types::UInt8Type),
            DataType::UInt16 => $integer!(types::UInt16Type),
            DataType::UInt32 => $integer!(types::UInt32Type),
            DataType::UInt64 => $integer!(types::UInt64Type),
            DataType::Decimal64(..) => $integer!(types::Decimal64Type),
            DataType::Decimal128(..) => $integer!(types::Decimal128Type),
            DataType::Float32 => $float!(types::Float32Type),
            DataType::Float64 => $float!(types::Float64Type),
            DataType::Date32 => $other!(types::Date32Type),
            DataType::Time32(TimeUnit::Second) => $other!(types::Time32SecondType),
            DataType::Time32(_) => $other!(types::Time32MillisecondType),
            DataType::Time64(TimeUnit::Microsecond) => $other!(types::Time64MicrosecondType),
            DataType::Time64(_) => $other!(types::Time64NanosecondType),
            DataType::Timestamp(TimeUnit::Second, _) => $other!(types::TimestampSecondType),
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                $other!(types::TimestampMillisecondType)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                $other!(types::TimestampMicrosecondType)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => $other!(types::TimestampNanosecondType),
            DataType::Duration(TimeUnit::Second) => $other!(types::DurationSecondType),
            DataType::Duration(TimeUnit::Millisecond) => $other!(types::DurationMillisecondType),
            DataType::Duration(TimeUnit::Microsecond) => $other!(types::DurationMicrosecondType),
            DataType::Duration(TimeUnit::Nanosecond) => $other!(types::DurationNanosecondType),
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                $other!(types::IntervalMonthDayNanoType)
            }
            _ => $else,
        }
    };
}

impl Function {
    /// Words of a state.
    pub fn words(&self) -> usize {
        match self {
            Function::Null => 0,
            Function::Count { .. } => 1,
            Function::Sum(DataType::Interval(_)) => 4,
            Function::Sum(DataType::Float32 | DataType::Float64) => 2,
            Function::Variance(DataType::Float32 | DataType::Float64) | Function::Sum(_) => 3,
            Function::Variance(_) => variance::EXACT_WORDS,
            Function::Regression => regression::WORDS,
            Function::Moments => moments::WORDS,
            Function::CompensatedSum => 4,
            Function::Product => 2,
            Function::Extreme(_, DataType::Decimal128(..) | DataType::Interval(_)) => 3,
            Function::Extreme(_, data_type) if data_type.is_primitive() => 2,
            Function::Extreme(_, DataType::Boolean) => 2,
            Function::Extreme(..) => 1,
            Function::Quantile(_) | Function::Library(_) | Function::Counted(..) => 0,
            Function::List | Function::Joined => 0,
            Function::Ordered(spec) => spec.function.words(),
        }
    }

    /// Creates the function over a new table whose records have its state at `offset`.
    pub fn make(&self, offset: usize) -> Result<Box<dyn Aggregate>> {
        Ok(match self {
            Function::Null => Box::new(always_null::AlwaysNull),
            Function::Sum(DataType::Interval(_)) => Box::new(interval_sum::IntervalSum { offset }),
            Function::Count { merged: false } => Box::new(count::Count { offset }),
            Function::Count { merged: true } => Box::new(count::MergedCount { offset }),
            Function::Variance(DataType::Float32 | DataType::Float64) => {
                Box::new(variance::Variance { offset })
            }
            Function::Regression => Box::new(regression::Regressions { offset }),
            Function::Quantile(spec) => Box::new(quantile::Quantiles::new(spec.clone())),
            Function::Moments => Box::new(moments::Moments { offset }),
            Function::CompensatedSum => Box::new(float_sum::CompensatedSum { offset }),
            Function::Product => Box::new(float_sum::Product { offset }),
            Function::Counted(kind, values) => Box::new(counted::Counted::new(*kind, values)?),
            Function::Sum(data_type @ DataType::Timestamp(TimeUnit::Microsecond, _)) => {
                Box::new(sum::ExactSum::<types::TimestampMicrosecondType>::new(offset, data_type))
            }
            Function::Variance(data_type) => {
                macro_rules! exact {
                    ($type:ty) => {
                        Box::new(variance::ExactVariance::<$type>::new(offset, data_type))
                    };
                }
                macro_rules! other {
                    ($type:ty) => {
                        return Err(Error::internal(format!("a variance of {data_type}")))
                    };
                }
                with_primitive!(
                    data_type,
                    exact,
                    other,
                    other,
                    return Err(Error::internal(format!("a variance of {data_type}")))
                )
            }
            Function::Library(spec) => Box::new(library::LibraryAggregate::new(spec.clone())?),
            Function::List => Box::new(gathered::List::default()),
            Function::Joined => Box::new(gathered::Joined::default()),
            Function::Ordered(spec) => Box::new(ordered::Ordered::new(spec.clone(), offset)?),
            Function::Sum(data_type) => {
                macro_rules! exact {
                    ($type:ty) => {
                        Box::new(sum::ExactSum::<$type>::new(offset, data_type))
                    };
                }
                macro_rules! float {
                    ($type:ty) => {
                        Box::new(sum::FloatSum::<$type>::new(offset))
                    };
                }
                macro_rules! other {
                    ($type:ty) => {
                        return Err(Error::internal(format!("a sum of {data_type}")))
                    };
                }
                with_primitive!(
                    data_type,
                    exact,
                    float,
                    other,
                    return Err(Error::internal(format!("a sum of {data_type}")))
                )
            }
            Function::Extreme(kind, data_type) => {
                macro_rules! extreme {
                    ($type:ty) => {
                        Box::new(extreme::Extreme::<$type>::new(offset, *kind, data_type.clone()))
                    };
                }
                match data_type {
                    DataType::Boolean => Box::new(extreme::BooleanExtreme { offset, kind: *kind }),
                    _ => with_primitive!(data_type, extreme, extreme, extreme, {
                        Box::new(extreme_bytes::BytesExtreme::new(offset, *kind, data_type)?)
                    }),
                }
            }
        })
    }
}

/// Returns whether Tessera sums this type itself.
fn is_summable(data_type: &DataType) -> bool {
    data_type.is_numeric()
        && !matches!(
            data_type,
            DataType::Float16 | DataType::Decimal32(..) | DataType::Decimal256(..)
        )
}

/// Returns an argument in plain form.
fn plain(args: &[Column], index: usize) -> Result<ArrayRef> {
    let arg = args
        .get(index)
        .ok_or_else(|| Error::internal("an aggregate function lacks an argument"))?;
    arg.plain()
}

/// Returns counts as a result.
fn counts(counts: impl Iterator<Item = u64>, output: &Output) -> Result<ArrayRef> {
    to_form(
        Arc::new(Int64Array::from_iter_values(counts.map(|count| count as i64))),
        &output.data_type,
    )
}
