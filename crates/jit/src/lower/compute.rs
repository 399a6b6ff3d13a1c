//! Compiles computations: a function that writes the value of an expression for each tuple.

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::BasicValue;
use tessera_codegen::{ComputeCode, MachineType};

use super::NONE;
use super::emitter::{FunctionEmitter, Row};
use super::provider::Provider;
use super::value::{Built, machine_type, set_alignment};

/// The name of the function.
pub(crate) const COMPUTE: &str = "compute";

/// Indexes of the function's own parameters.
const VALUES: usize = 0;
const VALID: usize = 1;

/// Adds the CPU function of a computation to a module ([`tessera_codegen::Compute::run`]), without
/// positions. It returns the number of tuples, or [`super::NONE`] if a tuple may raise an error.
pub(crate) fn lower_compute<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    (code, constants): (&ComputeCode, &[MachineType]),
) -> Built<()> {
    let mut emitter =
        FunctionEmitter::begin(of, (provider, COMPUTE), (&code.inputs, constants), 2)?;
    emitter.straight = true;
    let (builder, context) = (&emitter.builder, emitter.context);
    let (byte, machine) = (context.i8_type(), code.value.machine);
    let raised = emitter.variable(context.bool_type().const_zero())?;
    let row = |row: &Row<'ctx>| {
        let mut values = emitter.values(row);
        let found = values.value(&code.value, None)?;
        let (mut value, mut of) = (found.value, machine_type(context, machine));
        if machine == MachineType::Boolean {
            of = byte.into();
            value = builder.build_int_z_extend(value.into_int_value(), byte, "")?.into();
        }
        // SAFETY: this only computes addresses; the outputs have room for all tuples
        // (`Compute::run`).
        let (value_at, valid_at) = unsafe {
            (
                builder.build_in_bounds_gep(of, emitter.parameter(VALUES), &[row.number], "")?,
                builder.build_in_bounds_gep(byte, emitter.parameter(VALID), &[row.number], "")?,
            )
        };
        set_alignment(Some(builder.build_store(value_at, value)?), machine.bytes().min(8) as u32);
        if code.value.nullable {
            let valid = found.valid.unwrap_or_else(|| context.bool_type().const_all_ones());
            builder.build_store(valid_at, builder.build_int_z_extend(valid, byte, "")?)?;
        }
        if let Some(raises) = values.raised {
            emitter.set_flag(raised, raises)?;
        }
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    };
    emitter.each_row(emitter.all_rows()?, false, row, |done| {
        let raised = builder.build_load(context.bool_type(), raised, "")?.into_int_value();
        let result = builder.build_select(raised, emitter.number(NONE), done, "")?;
        builder.build_return(Some(&result as &dyn BasicValue<'ctx>))?;
        Ok(())
    })
}
