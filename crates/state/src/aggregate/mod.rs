//! Aggregate functions: states, and how they are updated, merged and finished.
//!
//! A state is a few 8-byte words in an [`area::Area`], zero at first (`docs/layout.md`, "aggregate
//! states"). What does not fit there (strings, library functions, values kept for `DISTINCT` or
//! `ORDER BY`) lies in a side table of the [`Aggregate`], which is one function over all groups of
//! one table. [`Program`] binds the aggregates of a node: it finds what they share, evaluates their
//! arguments, and feeds them.

mod area;
mod call;
mod compiled;
mod count;
mod extreme;
mod extreme_bytes;
mod gathered;
mod groups;
mod interval_sum;
mod left;
mod library;
mod nothing;
mod ordered;
mod program;
mod quantile;
mod regression;
mod share;
mod sum;
mod variance;

use std::any::Any;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes as types;
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use tessera_functions::plain::to_form;
use tessera_rows::spill::SpillFile;
use tessera_types::{Error, Result};
use tessera_vector::Column;

pub use area::Area;
pub use call::{Call, calls, output_fields};
pub use compiled::Compiled;
pub use groups::{Groups, Pairs, Shape};

pub use program::{Program, States};

use extreme::Keep;
use regression::Regression;

/// One aggregate function over the groups of one table.
pub trait Aggregate: Any + Send + std::fmt::Debug {
    /// Takes the rows of a chunk into the states of their groups.
    fn update(&mut self, area: &mut Area, groups: &Groups<'_>, args: &[Column]) -> Result<()>;

    /// Makes side tables ready to be merged from; no update follows.
    fn seal(&mut self, _area: &Area) -> Result<()> {
        Ok(())
    }

    /// Takes states of another table, where `other` is the same function, sealed.
    fn merge(&mut self, area: &mut Area, pairs: &Pairs<'_>, other: &mut dyn Any) -> Result<()>;

    /// The results of all groups, in their order. Asked once for every output of a function, last.
    fn finish(&mut self, area: &mut Area, output: &Output) -> Result<ArrayRef>;

    /// Bytes held beside the area, and those that making the results will take.
    fn memory(&self) -> usize {
        0
    }

    /// Has what it keeps leave memory, if it can; it may be merged from no more, but by another of
    /// the same groups.
    ///
    /// # Errors
    /// The scratch directory is exhausted.
    fn leave(&mut self, _file: &Arc<SpillFile>) -> Result<()> {
        Ok(())
    }
}

/// Which result is wanted of a state that serves several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// The function's own.
    Value,
    /// The average of a sum's values.
    Average,
    /// The number of a sum's values.
    Count,
    /// A variance: of a sample or of all, or its square root.
    Variance {
        /// Divide by one less than the count.
        sample: bool,
        /// The standard deviation.
        root: bool,
    },
    /// What two columns have to do with each other.
    Regression(Regression),
}

/// A result and its Arrow type.
#[derive(Debug, Clone)]
pub struct Output {
    /// Which result.
    pub kind: OutputKind,
    /// Its plain form.
    pub data_type: DataType,
}

/// A function bound to its argument types.
#[derive(Debug, Clone)]
pub enum Function {
    /// NULL, whatever comes.
    Nothing,
    /// Rows, or rows whose arguments are not NULL; `merged`: the sum of counts.
    Count {
        /// Whether what comes are counts.
        merged: bool,
    },
    /// Sum, average and count; of intervals the sum alone. With a second argument the first one is
    /// sums, the second how many values are in each.
    Sum(DataType),
    /// Smallest, largest or any value.
    Extreme(Keep, DataType),
    /// Variances and standard deviations.
    Variance(DataType),
    /// Correlations, covariances and regressions.
    Regression,
    /// Percentiles and modes.
    Quantile(Arc<quantile::QuantileSpec>),
    /// Of DataFusion's library.
    Library(Arc<library::LibrarySpec>),
    /// All values as a list; only within `Ordered`.
    List,
    /// Strings joined with separators; only within `Ordered`.
    Joined,
    /// With values kept until all have come.
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
            Function::Nothing => 0,
            Function::Count { .. } => 1,
            Function::Sum(DataType::Interval(_)) => 4,
            Function::Sum(DataType::Float32 | DataType::Float64) => 2,
            Function::Variance(DataType::Float32 | DataType::Float64) | Function::Sum(_) => 3,
            Function::Variance(_) => variance::EXACT_WORDS,
            Function::Regression => regression::WORDS,
            Function::Extreme(_, DataType::Decimal128(..) | DataType::Interval(_)) => 3,
            Function::Extreme(_, data_type) if data_type.is_primitive() => 2,
            Function::Extreme(_, DataType::Boolean) => 2,
            Function::Extreme(..) => 1,
            Function::Quantile(_) | Function::Library(_) | Function::List | Function::Joined => 0,
            Function::Ordered(spec) => spec.function.words(),
        }
    }

    /// The function over a new table whose states have room for it at `offset`.
    pub fn make(&self, offset: usize) -> Result<Box<dyn Aggregate>> {
        Ok(match self {
            Function::Nothing => Box::new(nothing::Nothing),
            Function::Sum(DataType::Interval(_)) => Box::new(interval_sum::IntervalSum { offset }),
            Function::Count { merged: false } => Box::new(count::Count { offset }),
            Function::Count { merged: true } => Box::new(count::MergedCount { offset }),
            Function::Variance(DataType::Float32 | DataType::Float64) => {
                Box::new(variance::Variance { offset })
            }
            Function::Regression => Box::new(regression::Regressions { offset }),
            Function::Quantile(spec) => Box::new(quantile::Quantiles::new(spec.clone())),
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
            Function::Extreme(keep, data_type) => {
                macro_rules! extreme {
                    ($type:ty) => {
                        Box::new(extreme::Extreme::<$type>::new(offset, *keep, data_type.clone()))
                    };
                }
                match data_type {
                    DataType::Boolean => Box::new(extreme::BooleanExtreme { offset, keep: *keep }),
                    _ => with_primitive!(data_type, extreme, extreme, extreme, {
                        Box::new(extreme_bytes::BytesExtreme::new(offset, *keep, data_type)?)
                    }),
                }
            }
        })
    }
}

/// Whether a sum over this type is ours.
fn is_summable(data_type: &DataType) -> bool {
    data_type.is_numeric()
        && !matches!(
            data_type,
            DataType::Float16 | DataType::Decimal32(..) | DataType::Decimal256(..)
        )
}

/// An argument in plain form.
fn plain(args: &[Column], index: usize) -> Result<ArrayRef> {
    let arg = args
        .get(index)
        .ok_or_else(|| Error::internal("an aggregate function lacks an argument"))?;
    arg.plain()
}

/// Counts as a result.
fn counts(counts: impl Iterator<Item = u64>, output: &Output) -> Result<ArrayRef> {
    to_form(
        Arc::new(Int64Array::from_iter_values(counts.map(|count| count as i64))),
        &output.data_type,
    )
}
