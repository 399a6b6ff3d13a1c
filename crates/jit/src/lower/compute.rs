//! Computations: a function that writes the value of an expression for each tuple.

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::BasicValue;
use tessera_codegen::{ComputeCode, Machine};

use super::NONE;
use super::parts::{Parts, Row};
use super::provider::Provider;
use super::value::{Built, aligned, machine_type};

/// The name of the function.
pub(crate) const COMPUTE: &str = "compute";

/// Its own parameters.
const VALUES: usize = 0;
const VALID: usize = 1;

/// Adds the function of a computation to a module, as [`tessera_codegen::Compute::run`] has it,
/// with nothing among positions; gives how many tuples there were, or that some perhaps raises an
/// error. A processor's.
pub(crate) fn lower_compute<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    (code, given): (&ComputeCode, &[Machine]),
) -> Built<()> {
    let mut parts = Parts::begin(of, (provider, COMPUTE), (&code.inputs, given), 2)?;
    parts.straight = true;
    let (builder, context) = (&parts.builder, parts.context);
    let (byte, machine) = (context.i8_type(), code.value.machine);
    let raised = parts.variable(context.bool_type().const_zero())?;
    let row = |row: &Row<'ctx>| {
        let mut values = parts.values(row);
        let found = values.value(&code.value, None)?;
        let (mut value, mut of) = (found.value, machine_type(context, machine));
        if machine == Machine::Boolean {
            of = byte.into();
            value = builder.build_int_z_extend(value.into_int_value(), byte, "")?.into();
        }
        // SAFETY: addresses are computed; there is room for all tuples (`Compute::run`).
        let (value_at, valid_at) = unsafe {
            (
                builder.build_in_bounds_gep(of, parts.other(VALUES), &[row.number], "")?,
                builder.build_in_bounds_gep(byte, parts.other(VALID), &[row.number], "")?,
            )
        };
        aligned(Some(builder.build_store(value_at, value)?), machine.bytes().min(8) as u32);
        if code.value.nullable {
            let valid = found.valid.unwrap_or_else(|| context.bool_type().const_all_ones());
            builder.build_store(valid_at, builder.build_int_z_extend(valid, byte, "")?)?;
        }
        if let Some(raises) = values.raised {
            parts.note(raised, raises)?;
        }
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    };
    parts.each_row(parts.all_rows()?, false, row, |done| {
        let raised = builder.build_load(context.bool_type(), raised, "")?.into_int_value();
        let result = builder.build_select(raised, parts.number(NONE), done, "")?;
        builder.build_return(Some(&result as &dyn BasicValue<'ctx>))?;
        Ok(())
    })
}
