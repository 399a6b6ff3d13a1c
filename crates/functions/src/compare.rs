//! Comparison operators, including those that treat NULL as a value.
//!
//! Floats compare as in PostgreSQL: NaN equals itself and is the greatest value, and both zeros are
//! equal. Intervals compare by length with months of 30 days. Lists and structs compare element by
//! element; a NULL element is the greatest.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, make_comparator};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cmp;
use arrow::compute::{self, SortOptions};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType,
};

use tessera_codegen::{Comparison, Op, TextCode, ValueCode};
use tessera_types::{Atom, Result, TimeUnit};

use super::decimal::widened;
use tessera_values::canonical::canonical_floats;
use tessera_values::kernel::{Argument, Kernel, argument, nulls, pair, truth};
use tessera_values::types::{Arg, ResolvedCall, decimal_of, expect_arguments, wrong_arguments};

/// The name suffix of comparisons between decimals without a common type of 38 digits, or between
/// timestamps in nanoseconds and in other units.
const EXACT: &str = "_exact";

/// Comparisons of values without a common type; neither side is converted.
pub(crate) const EXACT_NAMES: [&str; 8] = [
    "eq_exact",
    "not_eq_exact",
    "lt_exact",
    "lt_eq_exact",
    "gt_exact",
    "gt_eq_exact",
    "is_distinct_exact",
    "is_not_distinct_exact",
];

/// Resolves such a comparison; `None` for other names.
pub(crate) fn resolve_exact(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    let comparison = Comparison::from_name(name.strip_suffix(EXACT)?)?;
    Some(expect_arguments(name, args, 2).and_then(|()| {
        if let Some(resolved) = resolve_timestamps(comparison, args) {
            return Ok(resolved);
        }
        let digits = |arg: &Arg<'_>| match arg.atom {
            Atom::Null => Some((1, 0)),
            atom => decimal_of(atom),
        };
        let (Some((p, s)), Some((q, t))) = (digits(&args[0]), digits(&args[1])) else {
            return Err(wrong_arguments(
                name,
                args,
                "it compares integers, decimals and timestamps",
            ));
        };
        let casts = vec![Atom::Decimal(p.max(1), s), Atom::Decimal(q.max(1), t)];
        let kernel =
            CompareExact { compare: Compare { comparison, atom: Atom::Null }, scales: (s, t) };
        let mut resolved = ResolvedCall::strict(Atom::Boolean, args, casts, kernel).costing(4);
        resolved.nullable &= !comparison.is_total();
        Ok(resolved)
    }))
}

/// Resolves a comparison of timestamps of any units, and dates; `None` for other types.
fn resolve_timestamps(comparison: Comparison, args: &[Arg<'_>]) -> Option<ResolvedCall> {
    let [left, right] = args else { return None };
    let atoms = match (left.atom, right.atom) {
        (Atom::Null, typed) | (typed, Atom::Null) => [typed, typed],
        both => both.into(),
    };
    let kernel = CompareTimestamps::new(comparison, atoms)?;
    let casts = atoms.map(Atom::clone).to_vec();
    let mut resolved = ResolvedCall::strict(Atom::Boolean, args, casts, kernel).costing(4);
    resolved.nullable &= !comparison.is_total();
    Some(resolved)
}

/// The unit of a date or timestamp type in nanoseconds.
fn tick_nanos(atom: &Atom) -> Option<i128> {
    Some(match atom {
        Atom::Date => 86_400_000_000_000,
        Atom::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        Atom::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        Atom::Timestamp(TimeUnit::Microsecond, _) => 1_000,
        Atom::Timestamp(TimeUnit::Nanosecond, _) => 1,
        _ => return None,
    })
}

/// The timestamps in their units; infinite ones are the least and the greatest 64-bit integer.
fn counts(argument: &Argument) -> Result<Int64Array> {
    if *argument.array.data_type() != DataType::Date32 {
        return Ok(compute::cast(&argument.array, &DataType::Int64)?
            .as_primitive::<Int64Type>()
            .clone());
    }
    let days = argument.primitive::<Date32Type>()?;
    Ok(days.unary(|day| match day {
        i32::MAX => i64::MAX,
        i32::MIN => i64::MIN,
        day => day.into(),
    }))
}

/// Converts a timestamp to nanoseconds. Timestamps in nanoseconds are never infinite.
fn nanos(count: i64, tick: i128) -> i128 {
    match count {
        i64::MAX if tick > 1 => i128::MAX,
        i64::MIN if tick > 1 => i128::MIN,
        count => i128::from(count) * tick,
    }
}

/// Compares timestamps of two units.
#[derive(Debug)]
pub(crate) struct CompareTimestamps {
    compare: Compare,
    ticks: [i128; 2],
}

impl CompareTimestamps {
    fn new(comparison: Comparison, [left, right]: [&Atom; 2]) -> Option<CompareTimestamps> {
        let ticks = [tick_nanos(left)?, tick_nanos(right)?];
        Some(CompareTimestamps { compare: Compare { comparison, atom: Atom::Null }, ticks })
    }

    /// For two types with different units that both have a time zone or both have none.
    pub(crate) fn of_units(comparison: Comparison, atoms: [&Atom; 2]) -> Option<CompareTimestamps> {
        let zoned = |atom: &Atom| matches!(atom, Atom::Timestamp(_, Some(_)));
        let kernel = CompareTimestamps::new(comparison, atoms)?;
        (kernel.ticks[0] != kernel.ticks[1] && zoned(atoms[0]) == zoned(atoms[1])).then_some(kernel)
    }
}

impl Kernel for CompareTimestamps {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let (left, right) = (argument(args, 0)?, argument(args, 1)?);
        if !self.compare.comparison.is_total()
            && (left.is_null_constant() || right.is_null_constant())
        {
            return Ok(nulls(&Atom::Boolean, rows));
        }
        let (l, r) = (counts(left)?, counts(right)?);
        let [f, g] = self.ticks;
        let ordering = |a: usize, b: usize| nanos(l.value(a), f).cmp(&nanos(r.value(b), g));
        Ok(Arc::new(self.compare.by_ordering(left, right, rows, ordering)))
    }
}

/// Compares decimals of two scales by value.
#[derive(Debug)]
struct CompareExact {
    compare: Compare,
    scales: (i8, i8),
}

impl Kernel for CompareExact {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let (left, right) = (widened(args, 0)?, widened(args, 1)?);
        if !self.compare.comparison.is_total()
            && (left.is_null_constant() || right.is_null_constant())
        {
            return Ok(nulls(&Atom::Boolean, rows));
        }
        let (l, r) = (left.primitive::<Decimal128Type>()?, right.primitive::<Decimal128Type>()?);
        let power = |more: i8| 10i128.pow(more.max(0) as u32);
        let (f, g) = (power(self.scales.1 - self.scales.0), power(self.scales.0 - self.scales.1));
        // One of the factors is 1. A product beyond 128 bits is farther from zero than any decimal.
        let ordering = |a: usize, b: usize| {
            let (a, b) = (l.value(a), r.value(b));
            match (a.checked_mul(f), b.checked_mul(g)) {
                (Some(a), Some(b)) => a.cmp(&b),
                (None, _) => a.cmp(&0),
                (_, None) => 0.cmp(&b),
            }
        };
        Ok(Arc::new(self.compare.by_ordering(&left, &right, rows, ordering)))
    }
}

/// Compares two arguments of the same type.
#[derive(Debug)]
pub(crate) struct Compare {
    pub comparison: Comparison,
    pub atom: Atom,
}

impl Kernel for Compare {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let (left, right) = (argument(args, 0)?, argument(args, 1)?);
        if !self.comparison.is_total() && (left.is_null_constant() || right.is_null_constant()) {
            return Ok(nulls(&Atom::Boolean, rows));
        }
        let compare = |ordering: &dyn Fn(usize, usize) -> Ordering| {
            self.by_ordering(left, right, rows, ordering)
        };
        let array = match &self.atom {
            Atom::Null => BooleanArray::from(vec![
                match self.comparison {
                    Comparison::Distinct => Some(false),
                    Comparison::NotDistinct => Some(true),
                    _ => None,
                };
                rows
            ]),
            Atom::Float32 => {
                let (l, r) = (
                    left.primitive::<Float32Type>()?.values(),
                    right.primitive::<Float32Type>()?.values(),
                );
                self.floats(left, right, rows, |i| l[i].into(), |i| r[i].into())
            }
            Atom::Float64 => {
                let (l, r) = (
                    left.primitive::<Float64Type>()?.values(),
                    right.primitive::<Float64Type>()?.values(),
                );
                self.floats(left, right, rows, |i| l[i], |i| r[i])
            }
            Atom::Interval => {
                let l = left.primitive::<IntervalMonthDayNanoType>()?.values();
                let r = right.primitive::<IntervalMonthDayNanoType>()?.values();
                compare(&|a, b| interval_length(l[a]).cmp(&interval_length(r[b])))
            }
            Atom::List(_) | Atom::Struct(_) | Atom::Map(..) => {
                let options = SortOptions { descending: false, nulls_first: false };
                let (left, right) =
                    (canonical_floats(&left.array)?, canonical_floats(&right.array)?);
                let comparator = make_comparator(&left, &right, options)?;
                compare(&|a, b| comparator(a, b))
            }
            _ => match self.comparison {
                Comparison::Eq => cmp::eq(left, right)?,
                Comparison::NotEq => cmp::neq(left, right)?,
                Comparison::Lt => cmp::lt(left, right)?,
                Comparison::LtEq => cmp::lt_eq(left, right)?,
                Comparison::Gt => cmp::gt(left, right)?,
                Comparison::GtEq => cmp::gt_eq(left, right)?,
                Comparison::Distinct => cmp::distinct(left, right)?,
                Comparison::NotDistinct => cmp::not_distinct(left, right)?,
            },
        };
        // Arrow returns a single value for two constants.
        if array.len() != rows && array.len() == 1 {
            return Argument { array: Arc::new(array), constant: true }.full(rows);
        }
        Ok(Arc::new(array))
    }

    fn code(&self, args: Vec<ValueCode>, _atom: &Atom) -> Option<Op> {
        Some(Op::Compare(self.comparison, pair(args)?))
    }

    fn code_of_texts(&self, texts: Vec<TextCode>) -> Option<Op> {
        let same = Op::TextEquals(<[TextCode; 2]>::try_from(texts).ok().map(Box::new)?);
        match self.comparison {
            Comparison::Eq => Some(same),
            Comparison::NotEq => Some(Op::Not(Box::new(truth(same)))),
            _ => None,
        }
    }
}

impl Compare {
    /// Derives the comparison from an ordering of positions. Results at NULL positions are ignored.
    fn by_ordering(
        &self,
        left: &Argument,
        right: &Argument,
        rows: usize,
        ordering: impl Fn(usize, usize) -> Ordering,
    ) -> BooleanArray {
        let at = |row| ordering(left.at(row), right.at(row));
        let bits =
            |test: fn(Ordering) -> bool| BooleanBuffer::collect_bool(rows, |row| test(at(row)));
        let values = match self.comparison {
            Comparison::Eq | Comparison::NotDistinct => bits(Ordering::is_eq),
            Comparison::NotEq | Comparison::Distinct => bits(Ordering::is_ne),
            Comparison::Lt => bits(Ordering::is_lt),
            Comparison::LtEq => bits(Ordering::is_le),
            Comparison::Gt => bits(Ordering::is_gt),
            Comparison::GtEq => bits(Ordering::is_ge),
        };
        self.with_nulls(left, right, rows, values)
    }

    fn floats(
        &self,
        left: &Argument,
        right: &Argument,
        rows: usize,
        l: impl Fn(usize) -> f64,
        r: impl Fn(usize) -> f64,
    ) -> BooleanArray {
        let (at_left, at_right) = (usize::from(!left.constant), usize::from(!right.constant));
        macro_rules! bits {
            ($test:expr) => {
                BooleanBuffer::collect_bool(rows, |row| $test(l(row * at_left), r(row * at_right)))
            };
        }
        let less = |a: f64, b: f64| (a < b) | (b.is_nan() & !a.is_nan());
        let equal = |a: f64, b: f64| (a == b) | (a.is_nan() & b.is_nan());
        let values = match self.comparison {
            Comparison::Eq | Comparison::NotDistinct => bits!(equal),
            Comparison::NotEq | Comparison::Distinct => bits!(|a, b| !equal(a, b)),
            Comparison::Lt => bits!(less),
            Comparison::LtEq => bits!(|a, b| !less(b, a)),
            Comparison::Gt => bits!(|a, b| less(b, a)),
            Comparison::GtEq => bits!(|a, b| !less(a, b)),
        };
        self.with_nulls(left, right, rows, values)
    }

    /// Applies the NULLs of the arguments to values that were compared without regard to NULLs.
    fn with_nulls(
        &self,
        left: &Argument,
        right: &Argument,
        rows: usize,
        values: BooleanBuffer,
    ) -> BooleanArray {
        let validity = |argument: &Argument| match argument.is_null_constant() {
            true => Some(NullBuffer::new_null(rows)),
            false => argument.validity(),
        };
        let (l, r) = (validity(left), validity(right));
        if !self.comparison.is_total() {
            return BooleanArray::new(values, NullBuffer::union(l.as_ref(), r.as_ref()));
        }
        if l.is_none() && r.is_none() {
            return BooleanArray::new(values, None);
        }
        let valid = |nulls: &Option<NullBuffer>, row| {
            nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row))
        };
        let distinct = self.comparison == Comparison::Distinct;
        let values =
            BooleanBuffer::collect_bool(rows, |row| match (valid(&l, row), valid(&r, row)) {
                (true, true) => values.value(row),
                (false, false) => !distinct,
                _ => distinct,
            });
        BooleanArray::new(values, None)
    }
}

/// The length of an interval in nanoseconds, with months of 30 days and days of 24 hours, as in
/// PostgreSQL comparisons.
pub(crate) fn interval_length(value: IntervalMonthDayNano) -> i128 {
    let days = i128::from(value.months) * 30 + i128::from(value.days);
    days * 86_400_000_000_000 + i128::from(value.nanoseconds)
}
