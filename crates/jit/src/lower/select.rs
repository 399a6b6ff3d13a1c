//! Predicates: a function that writes the positions of the tuples for which one is true.

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::FunctionValue;
use tessera_ops::code::{Machine, SelectCode};

use super::NONE;
use super::parts::{Parts, Row};
use super::value::Built;

/// The name of the function.
pub(crate) const SELECT: &str = "select";

/// Adds the function of a predicate to a module, as [`tessera_ops::code::Select::run`] has it, with the numbers it is given behind `rows`.
pub(crate) fn lower_select<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    (code, given): (&SelectCode, &[Machine]),
) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin((context, module), SELECT, (&code.inputs, given), 1)?;
    let (wide, narrow, builder) = (context.i64_type(), context.i32_type(), &parts.builder);
    // Both become registers.
    let found = builder.build_alloca(wide, "found")?;
    builder.build_store(found, wide.const_zero())?;
    let raised = builder.build_alloca(context.bool_type(), "raised")?;
    builder.build_store(raised, context.bool_type().const_zero())?;
    let row = |row: &Row<'ctx>| {
        let mut values = parts.values(row);
        let is_true = values.truth(&code.predicate, None)?;
        // Written in any case: who is next writes over it.
        let count = builder.build_load(wide, found, "")?.into_int_value();
        // SAFETY: an address is computed; there is room for all tuples, by the caller's promise.
        let place = unsafe { builder.build_in_bounds_gep(narrow, parts.other(0), &[count], "")? };
        builder.build_store(place, builder.build_int_truncate(row.position, narrow, "")?)?;
        let more = builder.build_int_add(count, builder.build_int_z_extend(is_true, wide, "")?, "")?;
        builder.build_store(found, more)?;
        match values.raised {
            Some(raises) => {
                builder.build_store(raised, raises)?;
                builder.build_conditional_branch(raises, row.end, row.next)?;
            }
            None => {
                builder.build_unconditional_branch(row.next)?;
            }
        }
        Ok(())
    };
    parts.each_row_of_either(row, |_| {
        let count = builder.build_load(wide, found, "")?.into_int_value();
        let raised = builder.build_load(context.bool_type(), raised, "")?.into_int_value();
        let result = builder.build_select(raised, wide.const_int(NONE, false), count, "")?;
        Ok(result.into_int_value())
    })?;
    Ok(parts.function)
}
