//! `round`, `trunc`, `ceil` and `floor`: exact for decimals, processor rounding for doubles.
//!
//! As in PostgreSQL, a double is rounded to an integer half to even, a decimal half away from zero.
//! With a number of digits, decimals and integers stay exact; a double is scaled by a power of ten,
//! as in DuckDB.

use arrow::array::{ArrayRef, ArrowPrimitiveType};
use arrow::datatypes::{DataType, Decimal64Type, Decimal128Type, Float64Type, Int64Type};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, DECIMAL_PRECISION_MAX, Error, Result};

use tessera_values::cast::decimal_text;
use tessera_values::kernel::{Argument, Kernel, argument, binary, unary};
use tessera_values::types::{Arg, ResolvedCall, decimal_of, expect_arguments, wrong_arguments};

const PRECISION_MAX: i64 = DECIMAL_PRECISION_MAX as i64;

/// The names of the functions.
pub(crate) const NAMES: [&str; 5] = ["round", "trunc", "ceil", "ceiling", "floor"];

/// The direction of rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundingMode {
    Nearest,
    TowardsZero,
    Up,
    Down,
}

/// Resolves a rounding function; `None` for other names.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    let mode = match name {
        "round" => RoundingMode::Nearest,
        "trunc" => RoundingMode::TowardsZero,
        "ceil" | "ceiling" => RoundingMode::Up,
        "floor" => RoundingMode::Down,
        _ => return None,
    };
    Some(typed(name, mode, args))
}

fn typed(name: &str, mode: RoundingMode, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let takes_digits = matches!(mode, RoundingMode::Nearest | RoundingMode::TowardsZero);
    if !(takes_digits && args.len() == 2) {
        expect_arguments(name, args, 1)?;
    }
    let wrong =
        || wrong_arguments(name, args, "cast the first to a number and the second to an integer");
    let first = args[0].atom;
    let of_number = first.is_numeric() || *first == Atom::Null;
    let of_digits = args.get(1).is_none_or(|arg| arg.atom.is_integer() || *arg.atom == Atom::Null);
    if !of_number || !of_digits {
        return Err(wrong());
    }
    let with_digits = args.len() == 2;
    let decimal = match first {
        Atom::Decimal(precision, scale) => Some((*precision, *scale)),
        // PostgreSQL rounds integers as doubles unless a number of digits is given.
        whole if with_digits => decimal_of(whole),
        _ => None,
    };
    let Some((precision, scale)) = decimal else {
        let mut casts = vec![Atom::Float64];
        casts.extend(with_digits.then_some(Atom::Int64));
        let kernel = RoundDouble { mode, with_digits };
        return Ok(ResolvedCall::strict(Atom::Float64, args, casts, kernel)
            .costing(if with_digits { 8 } else { 1 }));
    };
    let digits = match args.get(1) {
        None => Some(0),
        Some(arg) => whole_constant(arg.expr),
    };
    let whole = i64::from(precision) - i64::from(scale);
    // Dropping digits may carry into a new digit.
    let carry = |to: i64| i64::from(mode != RoundingMode::TowardsZero && to < i64::from(scale));
    let result_scale = match digits {
        Some(digits) if (0..=i64::from(scale)).contains(&digits) => digits,
        Some(digits) if digits < 0 => 0,
        Some(digits) if whole.saturating_add(digits) <= PRECISION_MAX => digits,
        _ => i64::from(scale),
    };
    let carried = digits.map_or(1, carry);
    let wanted = (whole + carried + result_scale).max(1);
    let atom = Atom::Decimal(wanted.min(PRECISION_MAX) as u8, result_scale as i8);
    let mut casts = vec![Atom::Decimal(precision.max(1), scale)];
    casts.extend(with_digits.then_some(Atom::Int64));
    let kernel = RoundDecimal { mode, scale, with_digits, atom: atom.clone() };
    let raises = wanted > PRECISION_MAX;
    Ok(ResolvedCall::strict(atom, args, casts, kernel).raising(raises).costing(6))
}

/// The value of a constant integer argument.
fn whole_constant(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Constant(Scalar::Integer(value), atom) if atom.is_integer() => {
            i64::try_from(*value).ok()
        }
        Expr::Cast { input, to, .. } if to.is_integer() => whole_constant(input),
        _ => None,
    }
}

#[derive(Debug)]
struct RoundDouble {
    mode: RoundingMode,
    with_digits: bool,
}

impl Kernel for RoundDouble {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        type F = Float64Type;
        let never = || Error::internal("rounding of doubles cannot fail");
        let mode = self.mode;
        if self.with_digits {
            let op = move |value, digits| (round_to_digits(mode, value, digits), false);
            return binary::<F, Int64Type, F>(args, rows, DataType::Float64, op, |_, _| never());
        }
        unary::<F, F>(
            args,
            DataType::Float64,
            move |value| (round_to_integer(mode, value), false),
            |_| never(),
        )
    }
}

fn round_to_integer(mode: RoundingMode, value: f64) -> f64 {
    match mode {
        RoundingMode::Nearest => value.round_ties_even(),
        RoundingMode::TowardsZero => value.trunc(),
        RoundingMode::Up => value.ceil(),
        RoundingMode::Down => value.floor(),
    }
}

fn round_to_digits(mode: RoundingMode, value: f64, digits: i64) -> f64 {
    let rounded =
        |value: f64| if mode == RoundingMode::Nearest { value.round() } else { value.trunc() };
    let power = |digits: u64| 10f64.powi(digits.min(400) as i32);
    if digits >= 0 {
        let found = rounded(value * power(digits as u64)) / power(digits as u64);
        // With more digits than the value has, scaling overflows and the value is unchanged.
        return if found.is_finite() { found } else { value };
    }
    if !value.is_finite() {
        return value;
    }
    let found = rounded(value / power(digits.unsigned_abs())) * power(digits.unsigned_abs());
    if found.is_finite() { found } else { 0.0 }
}

#[derive(Debug)]
struct RoundDecimal {
    mode: RoundingMode,
    /// The scale of the argument.
    scale: i8,
    with_digits: bool,
    atom: Atom,
}

impl Kernel for RoundDecimal {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let data_type = self.atom.arrow();
        let from_narrow = matches!(argument(args, 0)?.array.data_type(), DataType::Decimal64(..));
        let to_narrow = matches!(data_type, DataType::Decimal64(..));
        match (from_narrow, to_narrow) {
            (true, true) => self.run::<Decimal64Type, Decimal64Type>(args, rows, data_type),
            (true, false) => self.run::<Decimal64Type, Decimal128Type>(args, rows, data_type),
            (false, true) => self.run::<Decimal128Type, Decimal64Type>(args, rows, data_type),
            (false, false) => self.run::<Decimal128Type, Decimal128Type>(args, rows, data_type),
        }
    }
}

impl RoundDecimal {
    fn run<A, O>(&self, args: &[Argument], rows: usize, data_type: DataType) -> Result<ArrayRef>
    where
        A: ArrowPrimitiveType,
        O: ArrowPrimitiveType,
        A::Native: Into<i128>,
        O::Native: TryFrom<i128> + Default,
    {
        let (precision, result_scale) = match self.atom {
            Atom::Decimal(precision, scale) => (precision, scale),
            _ => return Err(Error::internal("a decimal is rounded to another type")),
        };
        let limit = 10u128.pow(precision.into());
        let (mode, scale) = (self.mode, self.scale);
        let round = move |value: A::Native, digits: i64| {
            let found = round_decimal(mode, value.into(), scale, digits, result_scale);
            let found = found.filter(|found| found.unsigned_abs() < limit);
            match found.and_then(|found| O::Native::try_from(found).ok()) {
                Some(found) => (found, false),
                None => (O::Native::default(), true),
            }
        };
        let error = |value: A::Native| {
            let text = decimal_text(value.into(), scale);
            Error::new(
                Code::Overflow,
                format!("{text} rounded is out of range for type {}", self.atom),
            )
        };
        if self.with_digits {
            return binary::<A, Int64Type, O>(args, rows, data_type, round, |value, _| {
                error(value)
            });
        }
        unary::<A, O>(args, data_type, |value| round(value, 0), error)
    }
}

/// Rounds an unscaled decimal to `digits` fractional digits and converts it to scale `to`.
fn round_decimal(mode: RoundingMode, value: i128, scale: i8, digits: i64, to: i8) -> Option<i128> {
    let dropped = i64::from(scale).saturating_sub(digits);
    if dropped <= 0 {
        return rescale(value, i64::from(to) - i64::from(scale));
    }
    let (quotient, rest) =
        match u32::try_from(dropped).ok().and_then(|dropped| 10i128.checked_pow(dropped)) {
            Some(power) => (value / power, value % power),
            None => (0, value),
        };
    let more = match mode {
        RoundingMode::TowardsZero => 0,
        RoundingMode::Up => i128::from(rest > 0),
        RoundingMode::Down => -i128::from(rest < 0),
        // No value of 38 digits reaches half of 10^39.
        RoundingMode::Nearest if dropped > PRECISION_MAX => 0,
        RoundingMode::Nearest => {
            let half = 5 * 10u128.pow(dropped as u32 - 1);
            if rest.unsigned_abs() >= half { rest.signum() } else { 0 }
        }
    };
    match quotient + more {
        0 => Some(0),
        rounded => rescale(rounded, i64::from(to).saturating_sub(digits)),
    }
}

/// Multiplies by a power of ten; `None` if nonzero digits would be lost.
fn rescale(value: i128, by: i64) -> Option<i128> {
    let power = 10i128.checked_pow(u32::try_from(by.unsigned_abs()).ok()?)?;
    match by >= 0 {
        true => value.checked_mul(power),
        false => (value % power == 0).then_some(value / power),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_rounded_exactly() {
        for (mode, value, scale, digits, to, expected) in [
            (RoundingMode::Nearest, 125, 2, 1, 1, Some(13)),
            (RoundingMode::Nearest, -125, 2, 1, 1, Some(-13)),
            (RoundingMode::Nearest, 124, 2, 1, 1, Some(12)),
            (RoundingMode::Nearest, 55, 0, -2, 0, Some(100)),
            (RoundingMode::Nearest, 49, 0, -2, 0, Some(0)),
            (RoundingMode::Nearest, 125, 2, 400, 2, Some(125)),
            (RoundingMode::Nearest, 125, 2, -400, 0, Some(0)),
            (RoundingMode::Nearest, 6 * 10i128.pow(37), 0, -38, 0, Some(10i128.pow(38))),
            (RoundingMode::TowardsZero, -199, 2, 0, 0, Some(-1)),
            (RoundingMode::Up, 101, 2, 0, 0, Some(2)),
            (RoundingMode::Up, -101, 2, 0, 0, Some(-1)),
            (RoundingMode::Down, -101, 2, 0, 0, Some(-2)),
            (RoundingMode::Nearest, 125, 2, 3, 4, Some(12500)),
        ] {
            let found = round_decimal(mode, value, scale, digits, to);
            assert_eq!(found, expected, "{mode:?} {value} {scale} {digits}");
        }
    }

    #[test]
    fn doubles_keep_what_they_have() {
        assert_eq!(round_to_digits(RoundingMode::Nearest, 42.5, 400), 42.5);
        assert_eq!(round_to_digits(RoundingMode::Nearest, 42.55, 1), 42.6);
        assert_eq!(round_to_digits(RoundingMode::Nearest, 1234.5, -2), 1200.0);
        assert_eq!(round_to_digits(RoundingMode::Nearest, 1234.5, -400), 0.0);
        assert_eq!(round_to_digits(RoundingMode::TowardsZero, -1.27, 1), -1.2);
        assert_eq!(round_to_integer(RoundingMode::Nearest, 2.5), 2.0);
    }
}
