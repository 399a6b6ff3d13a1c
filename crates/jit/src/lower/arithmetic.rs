//! Compiles arithmetic and its error checks.

use inkwell::builder::{Builder, BuilderError};
use inkwell::intrinsics::Intrinsic;
use inkwell::types::IntType;
use inkwell::values::{BasicValueEnum, FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};
use tessera_codegen::{MachineType, Operation, ValueCode};

use super::value::{Active, Built, Value, Values};

/// Extends an integer to a type of at least as many bits.
pub(crate) fn extend<'ctx>(
    builder: &Builder<'ctx>,
    value: IntValue<'ctx>,
    from: MachineType,
    to: IntType<'ctx>,
) -> Built<IntValue<'ctx>> {
    if value.get_type().get_bit_width() >= to.get_bit_width() {
        return Ok(value);
    }
    match from {
        MachineType::Integer { signed: true, .. } => builder.build_int_s_extend(value, to, ""),
        _ => builder.build_int_z_extend(value, to, ""),
    }
}

impl<'ctx> Values<'_, 'ctx> {
    /// Converts a decimal to the result's type and multiplies it by a factor.
    pub(crate) fn scale(
        &self,
        value: IntValue<'ctx>,
        of: IntType<'ctx>,
        factor: i128,
    ) -> Built<IntValue<'ctx>> {
        let wide =
            extend(self.builder, value, MachineType::Integer { bits: 64, signed: true }, of)?;
        match factor {
            1 => Ok(wide),
            factor => self.builder.build_int_mul(wide, self.integer(of, factor), ""),
        }
    }

    /// Records an error if the longer of two decimals has 66 bits or more. Below that, its product
    /// with a decimal of 18 digits fits 38 digits.
    pub(crate) fn raise_unless_small(
        &mut self,
        codes: &[ValueCode; 2],
        values: [Value<'ctx>; 2],
        valid: Option<IntValue<'ctx>>,
        active: Active<'ctx>,
    ) -> Built<()> {
        let is_long =
            |code: &&ValueCode| matches!(code.machine, MachineType::Integer { bits: 128, .. });
        let Some(at) = codes.iter().position(|code| is_long(&code)) else { return Ok(()) };
        let (builder, long) = (self.builder, values[at].value.into_int_value());
        let of = long.get_type();
        let high = builder.build_right_shift(long, of.const_int(66, false), true, "")?;
        let not_zero = builder.build_int_compare(IntPredicate::NE, high, of.const_zero(), "")?;
        let not_minus =
            builder.build_int_compare(IntPredicate::NE, high, of.const_all_ones(), "")?;
        self.raise(builder.build_and(not_zero, not_minus, "")?, valid, active)
    }

    /// Computes an addition, subtraction or multiplication, and whether it overflows.
    pub(crate) fn overflowing(
        &self,
        operation: Operation,
        signed: bool,
        left: IntValue<'ctx>,
        right: IntValue<'ctx>,
    ) -> Built<(IntValue<'ctx>, IntValue<'ctx>)> {
        if self.straight
            && let Some(both) = self.overflowing_straight(operation, signed, left, right)?
        {
            return Ok(both);
        }
        let name = match (operation, signed) {
            (Operation::Add, true) => "llvm.sadd.with.overflow",
            (Operation::Add, false) => "llvm.uadd.with.overflow",
            (Operation::Sub, true) => "llvm.ssub.with.overflow",
            (Operation::Sub, false) => "llvm.usub.with.overflow",
            (_, true) => "llvm.smul.with.overflow",
            (_, false) => "llvm.umul.with.overflow",
        };
        let declared = Intrinsic::find(name).and_then(|intrinsic| {
            intrinsic.get_declaration(self.module, &[left.get_type().into()])
        });
        let Some(function) = declared else { return Err(BuilderError::UnsetPosition) };
        let call = self.builder.build_call(function, &[left.into(), right.into()], "")?;
        let Some(both) = call.try_as_basic_value().basic() else {
            return Err(BuilderError::UnsetPosition);
        };
        let both = both.into_struct_value();
        let part = |number| self.builder.build_extract_value(both, number, "");
        Ok((part(0)?.into_int_value(), part(1)?.into_int_value()))
    }

    /// Like `overflowing`, with instructions that can be vectorized; `None` for 64-bit products.
    fn overflowing_straight(
        &self,
        operation: Operation,
        signed: bool,
        left: IntValue<'ctx>,
        right: IntValue<'ctx>,
    ) -> Built<Option<(IntValue<'ctx>, IntValue<'ctx>)>> {
        let (builder, of) = (self.builder, left.get_type());
        let value = match operation {
            Operation::Add => builder.build_int_add(left, right, "")?,
            Operation::Sub => builder.build_int_sub(left, right, "")?,
            _ if of.get_bit_width() > 32 => return Ok(None),
            _ => {
                let machine = MachineType::Integer { bits: of.get_bit_width(), signed };
                let wide = self.context.i64_type();
                let (left, right) =
                    (extend(builder, left, machine, wide)?, extend(builder, right, machine, wide)?);
                let product = builder.build_int_mul(left, right, "")?;
                let value = builder.build_int_truncate(product, of, "")?;
                let again = extend(builder, value, machine, wide)?;
                let wrong = builder.build_int_compare(IntPredicate::NE, again, product, "")?;
                return Ok(Some((value, wrong)));
            }
        };
        let wrong = match (operation, signed) {
            (Operation::Add, false) => {
                builder.build_int_compare(IntPredicate::ULT, value, left, "")?
            }
            (_, false) => builder.build_int_compare(IntPredicate::ULT, left, right, "")?,
            // The result's sign differs from the left operand's and from what the right operand
            // explains.
            (Operation::Add, true) => self.signs_differ(left, right, value)?,
            (_, true) => self.signs_differ(left, builder.build_not(right, "")?, value)?,
        };
        Ok(Some((value, wrong)))
    }

    /// Computes whether a number's sign differs from those of two others.
    fn signs_differ(
        &self,
        left: IntValue<'ctx>,
        right: IntValue<'ctx>,
        value: IntValue<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let builder = self.builder;
        let (left, right) =
            (builder.build_xor(left, value, "")?, builder.build_xor(right, value, "")?);
        let both = builder.build_and(left, right, "")?;
        builder.build_int_compare(IntPredicate::SLT, both, both.get_type().const_zero(), "")
    }

    pub(crate) fn integers(
        &self,
        operation: Operation,
        signed: bool,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
    ) -> Built<(BasicValueEnum<'ctx>, IntValue<'ctx>)> {
        let (left, right) = (left.into_int_value(), right.into_int_value());
        if !matches!(operation, Operation::Div | Operation::Mod) {
            let (value, wrong) = self.overflowing(operation, signed, left, right)?;
            return Ok((value.into(), wrong));
        }
        let builder = self.builder;
        let of = left.get_type();
        let zero = builder.build_int_compare(IntPredicate::EQ, right, of.const_zero(), "")?;
        let mut wrong = zero;
        let mut traps = zero;
        if signed {
            let least = self.integer(of, 1i128 << (of.get_bit_width() - 1));
            let is_least = builder.build_int_compare(IntPredicate::EQ, left, least, "")?;
            let by_minus_one =
                builder.build_int_compare(IntPredicate::EQ, right, of.const_all_ones(), "")?;
            let reaches_limit = builder.build_and(is_least, by_minus_one, "")?;
            traps = builder.build_or(zero, reaches_limit, "")?;
            // The minimum modulo -1 is 0, without overflow.
            if operation == Operation::Div {
                wrong = traps;
            }
        }
        // A division by zero would trap, even if its result is unused.
        let divisor =
            builder.build_select(traps, of.const_int(1, false), right, "")?.into_int_value();
        let value = match (operation, signed) {
            (Operation::Div, true) => builder.build_int_signed_div(left, divisor, "")?,
            (Operation::Div, false) => builder.build_int_unsigned_div(left, divisor, "")?,
            (_, true) => builder.build_int_signed_rem(left, divisor, "")?,
            (_, false) => builder.build_int_unsigned_rem(left, divisor, "")?,
        };
        Ok((value.into(), wrong))
    }

    fn is_infinite(&self, value: FloatValue<'ctx>) -> Built<IntValue<'ctx>> {
        let of = value.get_type();
        let (high, low) = (of.const_float(f64::INFINITY), of.const_float(f64::NEG_INFINITY));
        let high = self.builder.build_float_compare(FloatPredicate::OEQ, value, high, "")?;
        let low = self.builder.build_float_compare(FloatPredicate::OEQ, value, low, "")?;
        self.builder.build_or(high, low, "")
    }

    pub(crate) fn floats(
        &self,
        operation: Operation,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
    ) -> Built<(BasicValueEnum<'ctx>, IntValue<'ctx>)> {
        let builder = self.builder;
        let (left, right) = (left.into_float_value(), right.into_float_value());
        let value = match operation {
            Operation::Add => builder.build_float_add(left, right, "")?,
            Operation::Sub => builder.build_float_sub(left, right, "")?,
            Operation::Mul => builder.build_float_mul(left, right, "")?,
            _ => builder.build_float_div(left, right, "")?,
        };
        let was = builder.build_or(self.is_infinite(left)?, self.is_infinite(right)?, "")?;
        let new = builder.build_not(was, "")?;
        let mut wrong = builder.build_and(self.is_infinite(value)?, new, "")?;
        if matches!(operation, Operation::Mul | Operation::Div) {
            let zero = right.get_type().const_zero();
            let is_zero = builder.build_float_compare(FloatPredicate::OEQ, value, zero, "")?;
            let of_number = builder.build_float_compare(FloatPredicate::UNE, left, zero, "")?;
            let by_number = match operation {
                Operation::Mul => {
                    builder.build_float_compare(FloatPredicate::UNE, right, zero, "")?
                }
                _ => new,
            };
            let vanished =
                builder.build_and(builder.build_and(is_zero, of_number, "")?, by_number, "")?;
            wrong = builder.build_or(wrong, vanished, "")?;
        }
        if operation == Operation::Div {
            let zero = right.get_type().const_zero();
            let by_zero = builder.build_float_compare(FloatPredicate::OEQ, right, zero, "")?;
            wrong = builder.build_or(wrong, by_zero, "")?;
        }
        Ok((value.into(), wrong))
    }
}
