//! Numeric functions other than operators: signs, integer division, common divisors, factorials,
//! and histogram buckets.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array, StringViewBuilder};
use arrow::datatypes::*;
use tessera_types::{Atom, Code, DECIMAL_PRECISION_MAX, Error, Result};

use super::arithmetic::division_by_zero;
use super::decimal::widened;
use super::width_bucket;
use tessera_values::cast::decimal_text;
use tessera_values::kernel::{Argument, Kernel, argument, binary, unary, unexpected};
use tessera_values::types::{
    Arg, ResolvedCall, common_type, decimal_of, expect_arguments, integer_digits, wrong_arguments,
};
use tessera_values::with_integer;

/// `div(a, b)`, the integer part of a quotient. The plan name `div` is taken by the operator.
pub const WHOLE_QUOTIENT: &str = "whole_quotient";

/// The names of the functions.
pub(crate) const NAMES: [&str; 10] = [
    "sign",
    "signum",
    WHOLE_QUOTIENT,
    "gcd",
    "lcm",
    "factorial",
    "to_hex",
    "width_bucket",
    "isinf",
    "scale",
];

/// The largest argument of `factorial`: its result still fits a decimal.
const FACTORIAL_MAX: i64 = 33;

const ANY_DECIMAL: DataType = DataType::Decimal128(DECIMAL_PRECISION_MAX, 0);

/// Resolves a call; `None` for other names.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    Some(match name {
        "sign" | "signum" => sign(name, args),
        WHOLE_QUOTIENT => whole_quotient(args),
        "gcd" | "lcm" => divisor(name, args),
        "factorial" => one_integer(name, args, Atom::Int64).map(|casts| {
            ResolvedCall::strict(Atom::Decimal(DECIMAL_PRECISION_MAX, 0), args, casts, Factorial)
                .raising(true)
        }),
        "to_hex" => hexadecimal(args),
        "width_bucket" => width_bucket::resolve(args),
        "isinf" => expect_arguments(name, args, 1).and_then(|()| {
            if !args[0].atom.is_numeric() && *args[0].atom != Atom::Null {
                return Err(wrong_arguments(name, args, "cast it to a number"));
            }
            Ok(ResolvedCall::strict(Atom::Boolean, args, vec![Atom::Float64], IsInfinite))
        }),
        "scale" => expect_arguments(name, args, 1).and_then(|()| match decimal_of(args[0].atom) {
            Some((precision, scale)) => {
                let casts = vec![Atom::Decimal(precision, scale)];
                Ok(ResolvedCall::strict(Atom::Int32, args, casts, Scale { scale }))
            }
            None => Err(wrong_arguments(name, args, "cast it to a decimal")),
        }),
        _ => return None,
    })
}

/// The cast of the only argument, which must be an integer.
fn one_integer(name: &str, args: &[Arg<'_>], to: Atom) -> Result<Vec<Atom>> {
    expect_arguments(name, args, 1)?;
    match args[0].atom {
        Atom::Null => Ok(vec![to]),
        atom if atom.is_integer() => Ok(vec![to]),
        _ => Err(wrong_arguments(name, args, "cast it to an integer")),
    }
}

fn sign(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    expect_arguments(name, args, 1)?;
    Ok(match args[0].atom {
        Atom::Decimal(precision, scale) => {
            let casts = vec![Atom::Decimal(*precision, *scale)];
            ResolvedCall::strict(Atom::Decimal(1, 0), args, casts, Sign)
        }
        atom if atom.is_numeric() || *atom == Atom::Null => {
            ResolvedCall::strict(Atom::Float64, args, vec![Atom::Float64], Sign)
        }
        _ => return Err(wrong_arguments(name, args, "cast it to a number")),
    })
}

#[derive(Debug)]
struct Sign;

impl Kernel for Sign {
    fn call(&self, args: &[Argument], _rows: usize) -> Result<ArrayRef> {
        let to = Atom::Decimal(1, 0).arrow();
        let never = || Error::internal("a sign cannot fail");
        match argument(args, 0)?.array.data_type() {
            DataType::Float64 => {
                // The sign of NaN is 0, as in PostgreSQL.
                let sign = |x: f64| f64::from(i8::from(x > 0.0) - i8::from(x < 0.0));
                unary::<Float64Type, Float64Type>(
                    args,
                    DataType::Float64,
                    |x| (sign(x), false),
                    |_| never(),
                )
            }
            DataType::Decimal64(..) => unary::<Decimal64Type, Decimal64Type>(
                args,
                to,
                |x| (x.signum(), false),
                |_| never(),
            ),
            _ => unary::<Decimal128Type, Decimal64Type>(
                args,
                to,
                |x| (x.signum() as i64, false),
                |_| never(),
            ),
        }
    }
}

fn power(digits: i8) -> i128 {
    10i128.pow(digits.max(0) as u32)
}

fn whole_quotient(args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let name = "div";
    expect_arguments(name, args, 2)?;
    let digits = |arg: &Arg<'_>| match arg.atom {
        Atom::Null => Some((1, 0)),
        atom => decimal_of(atom),
    };
    let (Some((p, s)), Some((q, t))) = (digits(&args[0]), digits(&args[1])) else {
        return Err(wrong_arguments(name, args, "it takes integers and decimals"));
    };
    // Dividing by a fraction adds integer digits.
    let whole =
        (i16::from(p) - i16::from(s) + i16::from(t)).clamp(1, DECIMAL_PRECISION_MAX.into()) as u8;
    let atom = Atom::Decimal(whole, 0);
    let casts = vec![Atom::Decimal(p.max(1), s), Atom::Decimal(q.max(1), t)];
    let kernel = WholeQuotient { scales: (s, t), atom: atom.clone() };
    Ok(ResolvedCall::strict(atom, args, casts, kernel).raising(true).costing(8))
}

#[derive(Debug)]
struct WholeQuotient {
    scales: (i8, i8),
    atom: Atom,
}

impl Kernel for WholeQuotient {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let (s, t) = self.scales;
        let (f, g) = (power(t - s), power(s - t));
        let limit = match self.atom {
            Atom::Decimal(precision, _) => 10u128.pow(precision.into()),
            _ => 10u128.pow(DECIMAL_PRECISION_MAX.into()),
        };
        let op = |a: i128, b: i128| {
            let (Some(dividend), Some(divisor)) = (a.checked_mul(f), b.checked_mul(g)) else {
                // A divisor beyond 128 bits is larger than any dividend.
                return if b != 0 && b.checked_mul(g).is_none() { (0, false) } else { (0, true) };
            };
            match dividend.checked_div(divisor) {
                Some(value) if value.unsigned_abs() < limit => (value, false),
                _ => (0, true),
            }
        };
        let error = |a: i128, b: i128| match b {
            0 => division_by_zero(decimal_text(a, s), '/'),
            _ => {
                let (a, b) = (decimal_text(a, s), decimal_text(b, t));
                Error::new(
                    Code::Overflow,
                    format!("div({a}, {b}) is out of range for type {}", self.atom),
                )
            }
        };
        wide_binary(args, rows, &self.atom, op, error)
    }
}

/// Computes a function of two decimals with 128 bits. The decimal type `atom` can hold the results.
fn wide_binary(
    args: &[Argument],
    rows: usize,
    atom: &Atom,
    op: impl Fn(i128, i128) -> (i128, bool),
    error: impl Fn(i128, i128) -> Error,
) -> Result<ArrayRef> {
    type D = Decimal128Type;
    let args = [widened(args, 0)?, widened(args, 1)?];
    let array = binary::<D, D, D>(&args, rows, ANY_DECIMAL, op, error)?;
    let data_type = atom.arrow();
    let values = array.as_primitive_opt::<Decimal128Type>().ok_or_else(|| unexpected(&array))?;
    Ok(match data_type {
        DataType::Decimal64(..) => Arc::new(
            values.unary::<_, Decimal64Type>(|value| value as i64).with_data_type(data_type),
        ),
        _ => Arc::new(values.clone().with_data_type(data_type)),
    })
}

/// `gcd` and `lcm`.
fn divisor(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    expect_arguments(name, args, 2)?;
    let wrong = || wrong_arguments(name, args, "cast them to integers or decimals");
    let common = match common_type(args[0].atom, args[1].atom).ok_or_else(wrong)? {
        Atom::Null => Atom::Int64,
        atom if atom.is_integer() || matches!(atom, Atom::Decimal(..)) => atom,
        _ => return Err(wrong()),
    };
    let atom = match (&common, name) {
        (Atom::Decimal(_, scale), "lcm") => Atom::Decimal(DECIMAL_PRECISION_MAX, *scale),
        (atom, _) => atom.clone(),
    };
    let kernel = Divisor { multiple: name == "lcm", common: common.clone(), atom: atom.clone() };
    let casts = vec![common.clone(), common];
    Ok(ResolvedCall::strict(atom, args, casts, kernel).raising(true).costing(60))
}

#[derive(Debug)]
struct Divisor {
    multiple: bool,
    common: Atom,
    atom: Atom,
}

impl Divisor {
    /// The result for two integers; `None` if it is too large.
    fn of(&self, a: i128, b: i128) -> Option<i128> {
        let (mut x, mut y) = (a.unsigned_abs(), b.unsigned_abs());
        while y != 0 {
            (x, y) = (y, x % y);
        }
        let value = match self.multiple {
            true if x == 0 => 0,
            true => (a.unsigned_abs() / x).checked_mul(b.unsigned_abs())?,
            false => x,
        };
        i128::try_from(value).ok()
    }

    fn error(&self, a: i128, b: i128) -> Error {
        let name = if self.multiple { "lcm" } else { "gcd" };
        let scale = decimal_of(&self.common).map_or(0, |(_, scale)| scale);
        let (a, b) = (decimal_text(a, scale), decimal_text(b, scale));
        let message = format!(
            "{name}({a}, {b}) is out of range for type {}; cast to a wider type",
            self.atom
        );
        Error::new(Code::Overflow, message)
    }
}

impl Kernel for Divisor {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        macro_rules! integers {
            ($type:ty) => {{
                type N = <$type as arrow::array::ArrowPrimitiveType>::Native;
                let op = |a: N, b: N| match self.of(a as i128, b as i128).map(N::try_from) {
                    Some(Ok(value)) => (value, false),
                    _ => (0, true),
                };
                let error = |a: N, b: N| self.error(a as i128, b as i128);
                binary::<$type, $type, $type>(args, rows, self.atom.arrow(), op, error)
            }};
        }
        with_integer!(&self.atom, integers, {
            let limit = match self.atom {
                Atom::Decimal(precision, _) => 10i128.pow(precision.into()),
                _ => return Err(unexpected(&argument(args, 0)?.array)),
            };
            let op = |a: i128, b: i128| match self.of(a, b) {
                Some(value) if value < limit => (value, false),
                _ => (0, true),
            };
            wide_binary(args, rows, &self.atom, op, |a, b| self.error(a, b))
        })
    }
}

#[derive(Debug)]
struct Factorial;

impl Kernel for Factorial {
    fn call(&self, args: &[Argument], _rows: usize) -> Result<ArrayRef> {
        let op = |n: i64| match n {
            0..=FACTORIAL_MAX => ((1..=i128::from(n)).product(), false),
            _ => (0, true),
        };
        let error = |n: i64| {
            let message = match n {
                ..0 => format!("factorial({n}) is undefined for a negative number"),
                _ => format!("factorial({n}) has more than {DECIMAL_PRECISION_MAX} digits"),
            };
            Error::new(Code::Overflow, message)
        };
        unary::<Int64Type, Decimal128Type>(args, ANY_DECIMAL, op, error)
    }
}

/// `to_hex`: the bits of a 32-bit or 64-bit integer.
fn hexadecimal(args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let narrow =
        args.first().is_some_and(|arg| integer_digits(arg.atom).is_some_and(|digits| digits <= 10))
            && !matches!(args.first().map(|arg| arg.atom), Some(Atom::UInt32));
    let wide = if args.first().is_some_and(|arg| *arg.atom == Atom::UInt64) {
        Atom::UInt64
    } else {
        Atom::Int64
    };
    let casts = one_integer("to_hex", args, if narrow { Atom::Int32 } else { wide })?;
    Ok(ResolvedCall::strict(Atom::String, args, casts, Hexadecimal).costing(20))
}

#[derive(Debug)]
struct Hexadecimal;

impl Kernel for Hexadecimal {
    fn call(&self, args: &[Argument], _rows: usize) -> Result<ArrayRef> {
        let array = &argument(args, 0)?.array;
        let mut texts = StringViewBuilder::with_capacity(array.len());
        macro_rules! write {
            ($type:ty, $unsigned:ty) => {
                for value in array.as_primitive::<$type>() {
                    texts.append_option(value.map(|value| format!("{:x}", value as $unsigned)));
                }
            };
        }
        match array.data_type() {
            DataType::Int32 => write!(Int32Type, u32),
            DataType::Int64 => write!(Int64Type, u64),
            DataType::UInt64 => write!(UInt64Type, u64),
            _ => return Err(unexpected(array)),
        }
        Ok(Arc::new(texts.finish()))
    }
}

#[derive(Debug)]
struct IsInfinite;

impl Kernel for IsInfinite {
    fn call(&self, args: &[Argument], _rows: usize) -> Result<ArrayRef> {
        let input = argument(args, 0)?.primitive::<Float64Type>()?;
        Ok(Arc::new(BooleanArray::from_unary(input, f64::is_infinite)))
    }
}

#[derive(Debug)]
struct Scale {
    scale: i8,
}

impl Kernel for Scale {
    fn call(&self, args: &[Argument], _rows: usize) -> Result<ArrayRef> {
        let array = &argument(args, 0)?.array;
        let scale = i32::from(self.scale);
        let scales = (0..array.len()).map(|row| array.is_valid(row).then_some(scale));
        Ok(Arc::new(scales.collect::<Int32Array>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_and_multiples() {
        let of =
            |multiple, a, b| Divisor { multiple, common: Atom::Int64, atom: Atom::Int64 }.of(a, b);
        assert_eq!(of(false, 12, -18), Some(6));
        assert_eq!(of(false, 0, 0), Some(0));
        assert_eq!(of(false, i64::MIN.into(), 0), Some(1 << 63));
        assert_eq!(of(true, 4, 6), Some(12));
        assert_eq!(of(true, 0, 6), Some(0));
        assert_eq!(of(true, i128::MAX, i128::MAX - 1), None);
    }
}
