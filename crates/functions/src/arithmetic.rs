//! Checked arithmetic on integers and floats, and the choice of arithmetic for a pair of types.
//!
//! Integer results have the wider type and fail on overflow; division truncates. Floats fail if
//! finite arguments give an infinite result, or if a product or quotient of nonzero numbers is
//! zero. Decimals are in [`super::decimal`], dates and intervals in [`super::datetime`].

use arrow::array::{ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType};
use arrow::datatypes::*;

use tessera_codegen::{Op, Operation, ValueCode};
use tessera_types::{Atom, Code, Error, Result};

use super::{datetime, decimal};
use tessera_values::kernel::{Argument, Kernel, binary, pair, single, unary, unexpected};
use tessera_values::types::{
    Arg, ResolvedCall, common_type, decimal_of_arg, expect_arguments, wrong_arguments,
};

/// The error of an operation that failed for these operands.
pub(crate) fn failure(
    operation: Operation,
    left: impl std::fmt::Display,
    right: impl std::fmt::Display,
    zero: bool,
    atom: &Atom,
) -> Error {
    let symbol = operation.symbol();
    if zero && matches!(operation, Operation::Div | Operation::Mod) {
        return division_by_zero(left, symbol);
    }
    let message = format!(
        "{left} {symbol} {right} is out of range for type {atom}; cast to a wider type first"
    );
    Error::new(Code::Overflow, message)
}

pub(crate) fn division_by_zero(left: impl std::fmt::Display, symbol: char) -> Error {
    Error::new(Code::DivisionByZero, format!("division by zero in {left} {symbol} 0"))
}

/// Resolves a binary operation.
pub(crate) fn resolve_binary(
    name: &str,
    operation: Operation,
    args: &[Arg<'_>],
) -> Result<ResolvedCall> {
    expect_arguments(name, args, 2)?;
    let (mut left, mut right) = (args[0].atom.clone(), args[1].atom.clone());
    match (&left, &right) {
        (Atom::Null, Atom::Null) => (left, right) = (Atom::Int64, Atom::Int64),
        (Atom::Null, other) if other.is_numeric() || *other == Atom::Interval => {
            left = right.clone()
        }
        (other, Atom::Null) if other.is_numeric() || *other == Atom::Interval => {
            right = left.clone()
        }
        _ => {}
    }
    if !left.is_numeric() || !right.is_numeric() {
        return datetime::resolve(operation, &left, &right, args).ok_or_else(|| {
            wrong_arguments(name, args, "cast them to numbers, dates or intervals")
        });
    }
    let common = common_type(&left, &right)
        .ok_or_else(|| wrong_arguments(name, args, "cast them to one type"))?;
    if matches!(common, Atom::Decimal(..)) {
        let constant_digits = |arg: &Arg<'_>, atom: &Atom| {
            decimal_of_arg(arg)
                .or_else(|| tessera_values::types::decimal_of(atom))
                .unwrap_or((1, 0))
        };
        let (l, r) = (constant_digits(&args[0], &left), constant_digits(&args[1], &right));
        return Ok(decimal::resolve(operation, l, r, args));
    }
    let kernel = Arithmetic { operation, atom: common.clone() };
    let casts = vec![common.clone(), common.clone()];
    Ok(ResolvedCall::strict(common, args, casts, kernel).raising(true))
}

/// Resolves `neg` and `abs`.
pub(crate) fn resolve_unary(name: &str, negate: bool, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    expect_arguments(name, args, 1)?;
    let atom = match args[0].atom {
        Atom::Null => Atom::Int64,
        Atom::UInt8 if negate => Atom::Int16,
        Atom::UInt16 if negate => Atom::Int32,
        Atom::UInt32 if negate => Atom::Int64,
        Atom::UInt64 if negate => Atom::Decimal(20, 0),
        Atom::Interval if negate => Atom::Interval,
        atom if atom.is_numeric() => atom.clone(),
        _ => return Err(wrong_arguments(name, args, "cast it to a number")),
    };
    let raises =
        atom.is_signed_integer() && args[0].atom.is_signed_integer() || atom == Atom::Interval;
    let casts = vec![atom.clone()];
    if negate {
        return Ok(ResolvedCall::strict(atom.clone(), args, casts, Negate { atom }).raising(raises));
    }
    Ok(ResolvedCall::strict(atom.clone(), args, casts, Absolute { atom }).raising(raises))
}

/// A binary operation on two integers or floats of one type.
#[derive(Debug)]
struct Arithmetic {
    operation: Operation,
    atom: Atom,
}

impl Kernel for Arithmetic {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        match &self.atom {
            Atom::Int8 => self.integers::<Int8Type>(args, rows),
            Atom::Int16 => self.integers::<Int16Type>(args, rows),
            Atom::Int32 => self.integers::<Int32Type>(args, rows),
            Atom::Int64 => self.integers::<Int64Type>(args, rows),
            Atom::UInt8 => self.integers::<UInt8Type>(args, rows),
            Atom::UInt16 => self.integers::<UInt16Type>(args, rows),
            Atom::UInt32 => self.integers::<UInt32Type>(args, rows),
            Atom::UInt64 => self.integers::<UInt64Type>(args, rows),
            Atom::Float32 => self.floats::<Float32Type>(args, rows, f32::is_infinite),
            Atom::Float64 => self.floats::<Float64Type>(args, rows, f64::is_infinite),
            other => Err(Error::internal(format!("arithmetic on {other}"))),
        }
    }

    fn code(&self, args: Vec<ValueCode>, atom: &Atom) -> Option<Op> {
        let calls_a_function = self.operation == Operation::Mod && !atom.is_integer();
        (!calls_a_function).then_some(Op::Arithmetic(self.operation, pair(args)?))
    }
}

/// Overflow-checked operations of the integer kernels.
trait Overflowing: ArrowNativeTypeOp + std::fmt::Display {
    fn add(self, other: Self) -> (Self, bool);
    fn sub(self, other: Self) -> (Self, bool);
    fn mul(self, other: Self) -> (Self, bool);
    fn div(self, other: Self) -> (Self, bool);
    fn rem(self, other: Self) -> (Self, bool);
}

macro_rules! overflowing {
    ($($type:ty),*) => {
        $(impl Overflowing for $type {
            #[inline(always)]
            fn add(self, other: Self) -> (Self, bool) {
                self.overflowing_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> (Self, bool) {
                self.overflowing_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> (Self, bool) {
                self.overflowing_mul(other)
            }
            #[inline(always)]
            fn div(self, other: Self) -> (Self, bool) {
                if other == 0 { (0, true) } else { self.overflowing_div(other) }
            }
            #[inline(always)]
            fn rem(self, other: Self) -> (Self, bool) {
                // MIN % -1 is 0 and does not overflow.
                if other == 0 { (0, true) } else { (self.wrapping_rem(other), false) }
            }
        })*
    };
}
overflowing!(i8, i16, i32, i64, u8, u16, u32, u64);

impl Arithmetic {
    fn integers<T>(&self, args: &[Argument], rows: usize) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType,
        T::Native: Overflowing,
    {
        let error =
            |a: T::Native, b: T::Native| failure(self.operation, a, b, b.is_zero(), &self.atom);
        let data_type = self.atom.arrow();
        match self.operation {
            Operation::Add => binary::<T, T, T>(args, rows, data_type, Overflowing::add, error),
            Operation::Sub => binary::<T, T, T>(args, rows, data_type, Overflowing::sub, error),
            Operation::Mul => binary::<T, T, T>(args, rows, data_type, Overflowing::mul, error),
            Operation::Div => binary::<T, T, T>(args, rows, data_type, Overflowing::div, error),
            Operation::Mod => binary::<T, T, T>(args, rows, data_type, Overflowing::rem, error),
        }
    }

    fn floats<T>(
        &self,
        args: &[Argument],
        rows: usize,
        infinite: fn(T::Native) -> bool,
    ) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType,
        T::Native: ArrowNativeTypeOp + std::fmt::Display,
    {
        let error =
            |a: T::Native, b: T::Native| failure(self.operation, a, b, b.is_zero(), &self.atom);
        let data_type = self.atom.arrow();
        macro_rules! run {
            ($op:ident, $zero:expr, $vanished:expr) => {
                binary::<T, T, T>(
                    args,
                    rows,
                    data_type,
                    |a, b| {
                        let value = a.$op(b);
                        let overflow = infinite(value) & !infinite(a) & !infinite(b);
                        // A zero product or quotient of nonzero numbers has lost all its digits.
                        let underflow = value.is_zero() & !a.is_zero() & $vanished(b);
                        (value, overflow | underflow | ($zero & b.is_zero()))
                    },
                    error,
                )
            };
        }
        match self.operation {
            Operation::Add => run!(add_wrapping, false, |_| false),
            Operation::Sub => run!(sub_wrapping, false, |_| false),
            Operation::Mul => run!(mul_wrapping, false, |b: T::Native| !b.is_zero()),
            Operation::Div => run!(div_wrapping, true, |b| !infinite(b)),
            Operation::Mod => run!(mod_wrapping, true, |_| false),
        }
    }
}

/// Negation of a signed number or interval.
#[derive(Debug)]
struct Negate {
    atom: Atom,
}

/// The absolute value of a number.
#[derive(Debug)]
struct Absolute {
    atom: Atom,
}

/// Calls `$integer!(ArrowType)` or `$float!(ArrowType)` for an Arrow type of signed numbers.
macro_rules! with_signed {
    ($data_type:expr, $integer:ident, $float:ident, $otherwise:expr) => {
        match $data_type {
            DataType::Int8 => $integer!(Int8Type),
            DataType::Int16 => $integer!(Int16Type),
            DataType::Int32 => $integer!(Int32Type),
            DataType::Int64 => $integer!(Int64Type),
            DataType::Decimal64(..) => $integer!(Decimal64Type),
            DataType::Decimal128(..) => $integer!(Decimal128Type),
            DataType::Float32 => $float!(Float32Type),
            DataType::Float64 => $float!(Float64Type),
            _ => $otherwise,
        }
    };
}

fn out_of_range(value: impl std::fmt::Display, atom: &Atom) -> Error {
    let message = format!(
        "the negative of {value} is out of range for type {atom}; cast to a wider type first"
    );
    Error::new(Code::Overflow, message)
}

impl Kernel for Negate {
    fn call(&self, args: &[Argument], _rows: usize) -> Result<ArrayRef> {
        let data_type = self.atom.arrow();
        macro_rules! integer {
            ($type:ty) => {
                unary::<$type, $type>(
                    args,
                    data_type,
                    |a| a.overflowing_neg(),
                    |a| out_of_range(a, &self.atom),
                )
            };
        }
        macro_rules! float {
            ($type:ty) => {
                unary::<$type, $type>(
                    args,
                    data_type,
                    |a| (-a, false),
                    |a| out_of_range(a, &self.atom),
                )
            };
        }
        with_signed!(
            &data_type,
            integer,
            float,
            match &data_type {
                DataType::Interval(_) =>
                    unary::<IntervalMonthDayNanoType, IntervalMonthDayNanoType>(
                        args,
                        data_type,
                        |a| match a.neg_checked() {
                            Ok(value) => (value, false),
                            Err(_) => (a, true),
                        },
                        |a| out_of_range(format!("{a:?}"), &self.atom),
                    ),
                _ => Err(unexpected(&args[0].array)),
            }
        )
    }

    fn code(&self, args: Vec<ValueCode>, _atom: &Atom) -> Option<Op> {
        Some(Op::Negate(single(args)?))
    }
}

impl Kernel for Absolute {
    fn call(&self, args: &[Argument], _rows: usize) -> Result<ArrayRef> {
        let data_type = self.atom.arrow();
        macro_rules! integer {
            ($type:ty) => {
                unary::<$type, $type>(
                    args,
                    data_type,
                    |a| (a.wrapping_abs(), a == <$type as ArrowPrimitiveType>::Native::MIN),
                    |a| out_of_range(a, &self.atom),
                )
            };
        }
        macro_rules! float {
            ($type:ty) => {
                unary::<$type, $type>(
                    args,
                    data_type,
                    |a| (a.abs(), false),
                    |a| out_of_range(a, &self.atom),
                )
            };
        }
        with_signed!(&data_type, integer, float, Ok(args[0].array.clone()))
    }
}
