//! LLVM types, order and alignment of machine types.

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, InstructionValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};
use tessera_codegen::MachineType;

use super::Built;

/// Computes whether one value sorts before another; NaN sorts after all other numbers.
pub(crate) fn less<'ctx>(
    builder: &Builder<'ctx>,
    machine: MachineType,
    left: BasicValueEnum<'ctx>,
    right: BasicValueEnum<'ctx>,
) -> Built<IntValue<'ctx>> {
    match machine {
        MachineType::Boolean | MachineType::Integer { signed: false, .. } => builder
            .build_int_compare(
                IntPredicate::ULT,
                left.into_int_value(),
                right.into_int_value(),
                "",
            ),
        MachineType::Integer { .. } => builder.build_int_compare(
            IntPredicate::SLT,
            left.into_int_value(),
            right.into_int_value(),
            "",
        ),
        _ => {
            let (left, right) = (left.into_float_value(), right.into_float_value());
            let less = builder.build_float_compare(FloatPredicate::OLT, left, right, "")?;
            let right_is_nan =
                builder.build_float_compare(FloatPredicate::UNO, right, right, "")?;
            let left_is_number =
                builder.build_float_compare(FloatPredicate::ORD, left, left, "")?;
            let before_nan = builder.build_and(right_is_nan, left_is_number, "")?;
            builder.build_or(less, before_nan, "")
        }
    }
}

/// Returns the LLVM type of a machine type.
pub(crate) fn machine_type(context: &Context, machine: MachineType) -> BasicTypeEnum<'_> {
    match machine {
        MachineType::Boolean => context.bool_type().into(),
        MachineType::Integer { bits: 8, .. } => context.i8_type().into(),
        MachineType::Integer { bits: 16, .. } => context.i16_type().into(),
        MachineType::Integer { bits: 32, .. } => context.i32_type().into(),
        MachineType::Integer { bits: 64, .. } => context.i64_type().into(),
        MachineType::Integer { .. } => context.i128_type().into(),
        MachineType::Float32 => context.f32_type().into(),
        MachineType::Float64 => context.f64_type().into(),
    }
}

/// Sets the alignment of an access to 8 bytes, which is all that Arrow and records guarantee.
pub(crate) fn set_word_alignment(access: Option<InstructionValue<'_>>) {
    set_alignment(access, 8);
}

/// Sets the alignment of an access.
pub(crate) fn set_alignment(access: Option<InstructionValue<'_>>, bytes: u32) {
    if let Some(instruction) = access {
        let set_alignment = instruction.set_alignment(bytes);
        debug_assert!(set_alignment.is_ok());
    }
}
