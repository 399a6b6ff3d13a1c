//! Decimal arithmetic with DuckDB's result types.
//!
//! | operation | integer digits | scale |
//! |---|---|---|
//! | `+`, `-` | the maximum, plus one | the maximum |
//! | `*` | the sum | the sum; if above 38, as many as leave room for the integer digits |
//! | `%` | the maximum | the maximum |
//! | `/` | float64 | |
//!
//! The precision is at most 38; only at 38 can an operation overflow. Values of up to 18 digits
//! have 64 bits, so the product of two of them is one multiplication to 128 bits without a check.

use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{DataType, Decimal64Type, Decimal128Type, Float64Type, i256};

use tessera_codegen::{Op, Operation, ValueCode};
use tessera_types::{Atom, Code, DECIMAL_PRECISION_MAX, DECIMAL64_PRECISION_MAX, Error, Result};

use super::arithmetic::failure;
use tessera_values::cast::decimal_text;
use tessera_values::kernel::{Argument, Kernel, argument, binary, pair};
use tessera_values::types::{Arg, ResolvedCall};

/// Resolves an operation on decimals (or integers treated as decimals) of these precisions and
/// scales.
pub(crate) fn resolve(
    operation: Operation,
    (p, s): (u8, i8),
    (q, t): (u8, i8),
    args: &[Arg<'_>],
) -> ResolvedCall {
    let casts = vec![Atom::Decimal(p.max(1), s), Atom::Decimal(q.max(1), t)];
    let (scale, precision) = match operation {
        Operation::Add | Operation::Sub => {
            (s.max(t), (p as i8 - s).max(q as i8 - t) + s.max(t) + 1)
        }
        Operation::Mul if s + t > DECIMAL_PRECISION_MAX as i8 => {
            return long_product((p, s), (q, t), args);
        }
        Operation::Mul => (s + t, (p + q) as i8),
        Operation::Mod => (s.max(t), (p as i8 - s).max(q as i8 - t) + s.max(t)),
        Operation::Div => return floats(operation, args),
    };
    let exact = precision <= DECIMAL_PRECISION_MAX as i8;
    let atom = Atom::Decimal((precision.max(1) as u8).min(DECIMAL_PRECISION_MAX), scale);
    let (rescale_left, rescale_right) = match operation {
        Operation::Mul => (0, 0),
        _ => (scale - s, scale - t),
    };
    let kernel = DecimalArithmetic {
        operation,
        atom: atom.clone(),
        scales: (s, t),
        factors: (10i128.pow(rescale_left as u32), 10i128.pow(rescale_right as u32)),
        exact,
    };
    let cost = if precision <= DECIMAL64_PRECISION_MAX as i8 { 1 } else { 2 };
    ResolvedCall::strict(atom, args, casts, kernel)
        .raising(!exact || operation == Operation::Mod)
        .costing(cost)
}

/// A product with more fractional digits than a decimal can have: the excess digits must be zeros.
fn long_product((p, s): (u8, i8), (q, t): (u8, i8), args: &[Arg<'_>]) -> ResolvedCall {
    let most = DECIMAL_PRECISION_MAX as i8;
    let whole = (p as i8 - s).max(0) + (q as i8 - t).max(0);
    let scale = (most - whole).max(s).max(t).min(most);
    let atom = Atom::Decimal(DECIMAL_PRECISION_MAX, scale);
    let casts = vec![Atom::Decimal(p.max(1), s), Atom::Decimal(q.max(1), t)];
    let kernel = LongProduct { scales: (s, t), scale, atom: atom.clone() };
    ResolvedCall::strict(atom, args, casts, kernel).raising(true).costing(10)
}

/// Multiplies in 256 bits; digits beyond the result's scale must be zeros.
#[derive(Debug)]
struct LongProduct {
    scales: (i8, i8),
    scale: i8,
    atom: Atom,
}

impl Kernel for LongProduct {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        type D = Decimal128Type;
        let (s, t) = self.scales;
        let dropped = i256::from_i128(10).wrapping_pow((s + t - self.scale) as u32);
        let op = |a: i128, b: i128| {
            let product = i256::from_i128(a).wrapping_mul(i256::from_i128(b));
            let exact = product.wrapping_rem(dropped) == i256::ZERO;
            match product.wrapping_div(dropped).to_i128() {
                Some(value) if exact && value.unsigned_abs() < LIMIT => (value, false),
                _ => (0, true),
            }
        };
        let error = |a: i128, b: i128| {
            let (a, b) = (decimal_text(a, s), decimal_text(b, t));
            Error::new(
                Code::Overflow,
                format!(
                    "{a} * {b} does not fit type {}, and is not rounded; round the factors to fewer digits or cast \
                     one to double precision",
                    self.atom
                ),
            )
        };
        binary::<D, D, D>(
            &[widened(args, 0)?, widened(args, 1)?],
            rows,
            self.atom.arrow(),
            op,
            error,
        )
    }
}

/// A decimal argument in 128 bits.
pub(crate) fn widened(args: &[Argument], index: usize) -> Result<Argument> {
    let argument = argument(args, index)?;
    let array: ArrayRef = match argument.array.data_type() {
        DataType::Decimal64(_, scale) => {
            let input = argument.array.as_primitive::<Decimal64Type>();
            let data_type = DataType::Decimal128(DECIMAL_PRECISION_MAX, *scale);
            Arc::new(input.unary::<_, Decimal128Type>(i128::from).with_data_type(data_type))
        }
        _ => argument.array.clone(),
    };
    Ok(Argument { array, constant: argument.constant })
}

/// Division, computed in floats.
fn floats(operation: Operation, args: &[Arg<'_>]) -> ResolvedCall {
    let casts = vec![Atom::Float64, Atom::Float64];
    ResolvedCall::strict(Atom::Float64, args, casts, DecimalFloatArithmetic { operation })
        .raising(true)
}

/// Addition, subtraction, multiplication and remainder.
#[derive(Debug)]
struct DecimalArithmetic {
    operation: Operation,
    atom: Atom,
    scales: (i8, i8),
    /// Factors that bring each side to the common scale.
    factors: (i128, i128),
    /// Whether the result type can represent every result.
    exact: bool,
}

/// The native integer of a decimal.
trait Unscaled: Copy {
    /// Widens to 128 bits.
    fn wide(self) -> i128;
}

impl Unscaled for i64 {
    #[inline(always)]
    fn wide(self) -> i128 {
        self.into()
    }
}

impl Unscaled for i128 {
    #[inline(always)]
    fn wide(self) -> i128 {
        self
    }
}

const LIMIT: u128 = 10u128.pow(DECIMAL_PRECISION_MAX as u32);

impl Kernel for DecimalArithmetic {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let wide = |index| -> Result<bool> {
            Ok(matches!(argument(args, index)?.array.data_type(), DataType::Decimal128(..)))
        };
        if matches!(self.atom.arrow(), DataType::Decimal64(..)) && self.operation != Operation::Mod
        {
            return self.narrow(args, rows);
        }
        match (wide(0)?, wide(1)?) {
            (false, false) => self.widening::<Decimal64Type, Decimal64Type>(args, rows),
            (false, true) => self.widening::<Decimal64Type, Decimal128Type>(args, rows),
            (true, false) => self.widening::<Decimal128Type, Decimal64Type>(args, rows),
            (true, true) => self.widening::<Decimal128Type, Decimal128Type>(args, rows),
        }
    }

    /// A product of two 128-bit decimals that may overflow is not compiled: the check is a call.
    fn code(&self, args: Vec<ValueCode>, _atom: &Atom) -> Option<Op> {
        let (operation, factors, exact) = (self.operation, self.factors, self.exact);
        let args = pair(args)?;
        let has_form = match operation {
            Operation::Add | Operation::Sub => exact || factors == (1, 1),
            Operation::Mul => exact || args[0].machine != args[1].machine,
            Operation::Div | Operation::Mod => false,
        };
        has_form.then_some(Op::Decimal { operation, factors, exact, args })
    }
}

impl DecimalArithmetic {
    fn error(&self, left: i128, right: i128) -> Error {
        let (l, r) = (decimal_text(left, self.scales.0), decimal_text(right, self.scales.1));
        failure(self.operation, l, r, right == 0, &self.atom)
    }

    /// Results of at most 18 digits: computes in 64 bits. Only values that exceed their type set
    /// the overflow flag.
    fn narrow(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        type D = Decimal64Type;
        let error = |a: i64, b: i64| self.error(a.into(), b.into());
        let (f, g) = (self.factors.0 as i64, self.factors.1 as i64);
        let data_type = self.atom.arrow();
        match (self.operation, f == 1 && g == 1) {
            (Operation::Add, true) => {
                binary::<D, D, D>(args, rows, data_type, i64::overflowing_add, error)
            }
            (Operation::Sub, true) => {
                binary::<D, D, D>(args, rows, data_type, i64::overflowing_sub, error)
            }
            (Operation::Mul, _) => {
                binary::<D, D, D>(args, rows, data_type, i64::overflowing_mul, error)
            }
            (operation, _) => {
                let negate = operation == Operation::Sub;
                let op = |a: i64, b: i64| {
                    let (a, wrong_a) = a.overflowing_mul(f);
                    let (b, wrong_b) = b.overflowing_mul(g);
                    let (value, wrong) =
                        if negate { a.overflowing_sub(b) } else { a.overflowing_add(b) };
                    (value, wrong_a | wrong_b | wrong)
                };
                binary::<D, D, D>(args, rows, data_type, op, error)
            }
        }
    }

    fn widening<A, B>(&self, args: &[Argument], rows: usize) -> Result<ArrayRef>
    where
        A: ArrowPrimitiveType,
        B: ArrowPrimitiveType,
        A::Native: Unscaled,
        B::Native: Unscaled,
    {
        type D = Decimal128Type;
        let error = |a: A::Native, b: B::Native| self.error(a.wide(), b.wide());
        let data_type = self.atom.arrow();
        let (f, g) = self.factors;
        match self.operation {
            Operation::Mul if self.exact => {
                let op = |a: A::Native, b: B::Native| (a.wide().wrapping_mul(b.wide()), false);
                binary::<A, B, D>(args, rows, data_type, op, error)
            }
            Operation::Mul if size_of::<A::Native>() + size_of::<B::Native>() < 32 => {
                // One side has at most 18 digits, so the product fits 38 digits if the other side
                // is below 2^66. This cheap test replaces the exact one, which runs only if it
                // fails somewhere.
                let op = |a: A::Native, b: B::Native| {
                    let (a, b) = (a.wide(), b.wide());
                    let wide = if size_of::<A::Native>() == 16 { a } else { b };
                    let near = (wide >> 66) == 0 || (wide >> 66) == -1;
                    (a.wrapping_mul(b), !near)
                };
                let fast = binary::<A, B, D>(args, rows, data_type.clone(), op, error);
                fast.or_else(|_| binary::<A, B, D>(args, rows, data_type, checked_product, error))
            }
            Operation::Mul => binary::<A, B, D>(args, rows, data_type, checked_product, error),
            Operation::Mod => self.remainder::<A, B>(args, rows),
            operation if self.exact => {
                let sign = if operation == Operation::Sub { -1 } else { 1 };
                let op = |a: A::Native, b: B::Native| {
                    let (a, b) = (a.wide().wrapping_mul(f), b.wide().wrapping_mul(g));
                    (a.wrapping_add(b.wrapping_mul(sign)), false)
                };
                if f != 1 || g != 1 {
                    return binary::<A, B, D>(args, rows, data_type, op, error);
                }
                match operation {
                    Operation::Sub => {
                        let op =
                            |a: A::Native, b: B::Native| (a.wide().wrapping_sub(b.wide()), false);
                        binary::<A, B, D>(args, rows, data_type, op, error)
                    }
                    _ => {
                        let op =
                            |a: A::Native, b: B::Native| (a.wide().wrapping_add(b.wide()), false);
                        binary::<A, B, D>(args, rows, data_type, op, error)
                    }
                }
            }
            operation => {
                let negate = operation == Operation::Sub;
                let op = |a: A::Native, b: B::Native| {
                    let (a, wrong_a) = a.wide().overflowing_mul(f);
                    let (b, wrong_b) = b.wide().overflowing_mul(g);
                    let (value, wrong) =
                        if negate { a.overflowing_sub(b) } else { a.overflowing_add(b) };
                    (value, wrong_a | wrong_b | wrong | (value.unsigned_abs() >= LIMIT))
                };
                binary::<A, B, D>(args, rows, data_type, op, error)
            }
        }
    }

    fn remainder<A, B>(&self, args: &[Argument], rows: usize) -> Result<ArrayRef>
    where
        A: ArrowPrimitiveType,
        B: ArrowPrimitiveType,
        A::Native: Unscaled,
        B::Native: Unscaled,
    {
        let (f, g) = self.factors;
        let op = |a: A::Native, b: B::Native| {
            let (dividend, wrong_a) = a.wide().overflowing_mul(f);
            let (divisor, wrong_b) = b.wide().overflowing_mul(g);
            match divisor {
                _ if b.wide() == 0 => (0, true),
                _ if wrong_a | wrong_b => long_remainder((a.wide(), f), (b.wide(), g)),
                divisor => (dividend.wrapping_rem(divisor), false),
            }
        };
        let error = |a: A::Native, b: B::Native| self.error(a.wide(), b.wide());
        let data_type = self.atom.arrow();
        match data_type {
            DataType::Decimal64(..) => {
                let op = |a, b| {
                    let (value, wrong) = op(a, b);
                    (value as i64, wrong)
                };
                binary::<A, B, Decimal64Type>(args, rows, data_type, op, error)
            }
            _ => binary::<A, B, Decimal128Type>(args, rows, data_type, op, error),
        }
    }
}

/// The remainder of operands beyond 128 bits at the common scale, and whether it exceeds a decimal.
#[cold]
fn long_remainder((a, f): (i128, i128), (b, g): (i128, i128)) -> (i128, bool) {
    let wide =
        |value: i128, factor: i128| i256::from_i128(value).wrapping_mul(i256::from_i128(factor));
    match wide(a, f).wrapping_rem(wide(b, g)).to_i128() {
        Some(value) if value.unsigned_abs() < LIMIT => (value, false),
        _ => (0, true),
    }
}

#[inline]
fn checked_product<A: Unscaled, B: Unscaled>(a: A, b: B) -> (i128, bool) {
    let (value, wrong) = a.wide().overflowing_mul(b.wide());
    (value, wrong || value.unsigned_abs() >= LIMIT)
}

/// An operation on decimals that were cast to floats.
#[derive(Debug)]
struct DecimalFloatArithmetic {
    operation: Operation,
}

impl Kernel for DecimalFloatArithmetic {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        type F = Float64Type;
        let divide = self.operation == Operation::Div;
        let op = |a: f64, b: f64| if divide { (a / b, b == 0.0) } else { (a * b, false) };
        let error = |a: f64, b: f64| failure(self.operation, a, b, b == 0.0, &Atom::Float64);
        binary::<F, F, F>(args, rows, DataType::Float64, op, error)
    }

    fn code(&self, args: Vec<ValueCode>, _atom: &Atom) -> Option<Op> {
        Some(Op::DecimalsAsFloats(self.operation, pair(args)?))
    }
}
