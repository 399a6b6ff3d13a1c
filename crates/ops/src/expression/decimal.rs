//! Arithmetic on decimals, with DuckDB's result types.
//!
//! | operation | digits before the point | scale |
//! |---|---|---|
//! | `+`, `-` | the greater, and one more | the greater |
//! | `*` | the sum | the sum (a float above 38) |
//! | `%` | the greater | the greater |
//! | `/` | float64 | |
//!
//! The precision stops at 38; only then can an operation overflow. Up to 18 digits values are 64-bit, so a product of
//! two of them is one multiplication into 128 bits that needs no check.

use arrow::array::{ArrayRef, ArrowPrimitiveType};
use arrow::datatypes::{DataType, Decimal64Type, Decimal128Type, Float64Type};
use tessera_types::{Atom, DECIMAL_PRECISION_MAX, DECIMAL64_PRECISION_MAX, Error, Result};

use super::arithmetic::Operation;
use super::cast::decimal_text;
use super::kernel::{Argument, Kernel, argument, binary, pair};
use super::types::{Arg, Resolved};
use crate::code::{Op, ValueCode};

/// Types an operation on decimals (or integers as such) of these precisions and scales.
pub(crate) fn resolve(
    operation: Operation,
    (p, s): (u8, i8),
    (q, t): (u8, i8),
    args: &[Arg<'_>],
) -> Resolved {
    let casts = vec![Atom::Decimal(p.max(1), s), Atom::Decimal(q.max(1), t)];
    let (scale, precision) = match operation {
        Operation::Add | Operation::Sub => (s.max(t), (p as i8 - s).max(q as i8 - t) + s.max(t) + 1),
        Operation::Mul => (s + t, (p + q) as i8),
        Operation::Mod => (s.max(t), (p as i8 - s).max(q as i8 - t) + s.max(t)),
        Operation::Div => return floats(operation, args),
    };
    if scale > DECIMAL_PRECISION_MAX as i8 {
        return floats(operation, args);
    }
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
    Resolved::strict(atom, args, casts, kernel).raising(!exact || operation == Operation::Mod).costing(cost)
}

/// Division, and products of too many decimals, in floats.
fn floats(operation: Operation, args: &[Arg<'_>]) -> Resolved {
    let casts = vec![Atom::Float64, Atom::Float64];
    Resolved::strict(Atom::Float64, args, casts, FloatOfDecimals { operation }).raising(true)
}

/// Addition, subtraction, multiplication and remainder.
#[derive(Debug)]
struct DecimalArithmetic {
    operation: Operation,
    atom: Atom,
    scales: (i8, i8),
    /// What brings each side to the common scale.
    factors: (i128, i128),
    /// Whether the result's type holds every result.
    exact: bool,
}

/// A decimal's native integer.
trait Unscaled: Copy {
    /// Widened.
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
        if matches!(self.atom.arrow(), DataType::Decimal64(..)) && self.operation != Operation::Mod {
            return self.narrow(args, rows);
        }
        match (wide(0)?, wide(1)?) {
            (false, false) => self.widening::<Decimal64Type, Decimal64Type>(args, rows),
            (false, true) => self.widening::<Decimal64Type, Decimal128Type>(args, rows),
            (true, false) => self.widening::<Decimal128Type, Decimal64Type>(args, rows),
            (true, true) => self.widening::<Decimal128Type, Decimal128Type>(args, rows),
        }
    }

    /// Not the product of two that both have 128 bits, if it may not fit: to find out is a call.
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
        self.operation.error(l, r, right == 0, &self.atom)
    }

    /// At most 18 digits: everything in 64 bits. The flag is raised only by values that exceed their type.
    fn narrow(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        type D = Decimal64Type;
        let error = |a: i64, b: i64| self.error(a.into(), b.into());
        let (f, g) = (self.factors.0 as i64, self.factors.1 as i64);
        let data_type = self.atom.arrow();
        match (self.operation, f == 1 && g == 1) {
            (Operation::Add, true) => binary::<D, D, D>(args, rows, data_type, i64::overflowing_add, error),
            (Operation::Sub, true) => binary::<D, D, D>(args, rows, data_type, i64::overflowing_sub, error),
            (Operation::Mul, _) => binary::<D, D, D>(args, rows, data_type, i64::overflowing_mul, error),
            (operation, _) => {
                let negate = operation == Operation::Sub;
                let op = |a: i64, b: i64| {
                    let (a, wrong_a) = a.overflowing_mul(f);
                    let (b, wrong_b) = b.overflowing_mul(g);
                    let (value, wrong) = if negate { a.overflowing_sub(b) } else { a.overflowing_add(b) };
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
                // One side has 18 digits, so the product has 38 while the other stays below 2^66: a test of high bits
                // stands for the exact one, which runs only if it fails somewhere.
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
                        let op = |a: A::Native, b: B::Native| (a.wide().wrapping_sub(b.wide()), false);
                        binary::<A, B, D>(args, rows, data_type, op, error)
                    }
                    _ => {
                        let op = |a: A::Native, b: B::Native| (a.wide().wrapping_add(b.wide()), false);
                        binary::<A, B, D>(args, rows, data_type, op, error)
                    }
                }
            }
            operation => {
                let negate = operation == Operation::Sub;
                let op = |a: A::Native, b: B::Native| {
                    let (a, wrong_a) = a.wide().overflowing_mul(f);
                    let (b, wrong_b) = b.wide().overflowing_mul(g);
                    let (value, wrong) = if negate { a.overflowing_sub(b) } else { a.overflowing_add(b) };
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
            let (a, wrong_a) = a.wide().overflowing_mul(f);
            let (b, wrong_b) = b.wide().overflowing_mul(g);
            if b == 0 { (0, true) } else { (a.wrapping_rem(b), wrong_a | wrong_b) }
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

#[inline]
fn checked_product<A: Unscaled, B: Unscaled>(a: A, b: B) -> (i128, bool) {
    let (value, wrong) = a.wide().overflowing_mul(b.wide());
    (value, wrong || value.unsigned_abs() >= LIMIT)
}

/// An operation on decimals that were cast to floats.
#[derive(Debug)]
struct FloatOfDecimals {
    operation: Operation,
}

impl Kernel for FloatOfDecimals {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        type F = Float64Type;
        let divide = self.operation == Operation::Div;
        let op = |a: f64, b: f64| if divide { (a / b, b == 0.0) } else { (a * b, false) };
        let error = |a: f64, b: f64| self.operation.error(a, b, b == 0.0, &Atom::Float64);
        binary::<F, F, F>(args, rows, DataType::Float64, op, error)
    }

    fn code(&self, args: Vec<ValueCode>, _atom: &Atom) -> Option<Op> {
        Some(Op::OfDecimals(self.operation, pair(args)?))
    }
}
