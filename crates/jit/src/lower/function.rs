//! Calls of user-defined functions: within expressions, and over columns.

use inkwell::IntPredicate;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{
    BasicMetadataValueEnum, BasicValueEnum, FunctionValue, IntValue, PointerValue,
};
use tessera_codegen::{FunctionCode, InputCode, MachineType, Op, Status, ValueCode};

use super::emitter::{FunctionEmitter, Row};
use super::provider::Provider;
use super::value::{Active, Built, Values, machine_type, set_word_alignment};

/// The name of the function over columns.
pub(crate) const FUNCTION: &str = "function";
/// Indexes of the function's own parameters.
const VALUES: usize = 0;
const STATUSES: usize = 1;

/// Returns the name of a user-defined function in the module of a piece.
pub(crate) fn linked_name(function: &FunctionCode) -> String {
    format!("user.{}", function.name)
}

/// The result of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallResult<'ctx> {
    /// The returned value; zero if there is none.
    pub(crate) value: BasicValueEnum<'ctx>,
    /// The returned [`Status`] as a number.
    pub(crate) status: IntValue<'ctx>,
}

impl<'ctx> CallResult<'ctx> {
    /// Computes whether the call returned a value.
    pub(crate) fn is_value(&self, builder: &Builder<'ctx>) -> Built<IntValue<'ctx>> {
        let value = self.status.get_type().const_int(Status::Value as u64, false);
        builder.build_int_compare(IntPredicate::EQ, self.status, value, "")
    }
}

impl<'ctx> Values<'_, 'ctx> {
    /// Calls a user-defined function if the tuple is active and no argument is NULL. For other
    /// tuples it might not terminate.
    pub(crate) fn call(
        &mut self,
        code: &FunctionCode,
        args: &[ValueCode],
        active: Active<'ctx>,
    ) -> Built<CallResult<'ctx>> {
        let builder = self.builder;
        let args = args.iter().map(|arg| self.value(arg, active)).collect::<Built<Vec<_>>>()?;
        let called = match self.all_valid(&args)? {
            Some(valid) => self.restrict(active, valid)?,
            None => active,
        };
        let args: Vec<BasicValueEnum<'ctx>> = args.into_iter().map(|arg| arg.value).collect();
        let Some(called) = called else { return self.call_always(code, &args) };
        let Some(before) = builder.get_insert_block() else {
            return Err(BuilderError::UnsetPosition);
        };
        let call = self.context.insert_basic_block_after(before, "call");
        let after = self.context.insert_basic_block_after(call, "called");
        builder.build_conditional_branch(called, call, after)?;
        builder.position_at_end(call);
        let CallResult { value, status } = self.call_always(code, &args)?;
        let Some(call) = builder.get_insert_block() else {
            return Err(BuilderError::UnsetPosition);
        };
        builder.build_unconditional_branch(after)?;
        builder.position_at_end(after);
        let null = status.get_type().const_int(Status::Null as u64, false);
        let (values, statuses) =
            (builder.build_phi(value.get_type(), "")?, builder.build_phi(status.get_type(), "")?);
        values.add_incoming(&[(&value, call), (&value.get_type().const_zero(), before)]);
        statuses.add_incoming(&[(&status, call), (&null, before)]);
        Ok(CallResult {
            value: values.as_basic_value(),
            status: statuses.as_basic_value().into_int_value(),
        })
    }

    fn call_always(
        &self,
        code: &FunctionCode,
        args: &[BasicValueEnum<'ctx>],
    ) -> Built<CallResult<'ctx>> {
        let (builder, context) = (self.builder, self.context);
        let function =
            self.module.get_function(&linked_name(code)).ok_or(BuilderError::UnsetPosition)?;
        let of = machine_type(context, code.result);
        let is_boolean = code.result == MachineType::Boolean;
        let in_memory = if is_boolean { context.i8_type().into() } else { of };
        let place = self.at_entry(|entry| entry.build_alloca(in_memory, "result"))?;
        let mut constants: Vec<BasicMetadataValueEnum<'ctx>> = vec![place.into()];
        let types = function.get_type().get_param_types();
        for (arg, wanted) in args.iter().zip(types.iter().skip(1)) {
            constants.push(match (arg, wanted) {
                // A boolean passed as a byte.
                (BasicValueEnum::IntValue(arg), BasicMetadataTypeEnum::IntType(wanted))
                    if arg.get_type().get_bit_width() < wanted.get_bit_width() =>
                {
                    builder.build_int_z_extend(*arg, *wanted, "")?.into()
                }
                _ => (*arg).into(),
            });
        }
        let status = builder.build_call(function, &constants, "status")?.try_as_basic_value();
        let status = status.basic().ok_or(BuilderError::UnsetPosition)?.into_int_value();
        let mut value = builder.build_load(in_memory, place, "")?;
        if is_boolean {
            value =
                builder.build_int_truncate(value.into_int_value(), context.bool_type(), "")?.into();
        }
        let called = CallResult { value, status };
        let Some(limit) = code.limit else { return Ok(called) };
        let reaches_limit = self.reaches_limit(value.into_int_value(), limit)?;
        let reaches_limit = builder.build_and(reaches_limit, called.is_value(builder)?, "")?;
        let overflow = status.get_type().const_int(Status::Overflow as u64, false);
        let status = builder.build_select(reaches_limit, overflow, status, "")?.into_int_value();
        Ok(CallResult { value, status })
    }

    /// Emits code in the entry block: an `alloca` in a loop would grow the stack with each
    /// iteration.
    fn at_entry(
        &self,
        build: impl FnOnce(&Builder<'ctx>) -> Built<PointerValue<'ctx>>,
    ) -> Built<PointerValue<'ctx>> {
        let function = self.builder.get_insert_block().and_then(|block| block.get_parent());
        let entry = function.and_then(FunctionValue::get_first_basic_block);
        let Some(entry) = entry else { return Err(BuilderError::UnsetPosition) };
        let builder = self.context.create_builder();
        match entry.get_first_instruction() {
            Some(first) => builder.position_before(&first),
            None => builder.position_at_end(entry),
        }
        build(&builder)
    }
}

/// Adds a function that calls a user-defined function for each tuple
/// ([`tessera_codegen::Function::run`]), without positions or runtime constants. It returns the
/// number of tuples.
pub(crate) fn lower_function<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: &FunctionCode,
) -> Built<()> {
    let inputs: Vec<InputCode> =
        code.args.iter().map(|machine| InputCode::column(*machine, true)).collect();
    let arg = |(number, input): (usize, &InputCode)| ValueCode {
        op: Op::Input(number),
        machine: input.machine,
        nullable: true,
    };
    let args: Vec<ValueCode> = inputs.iter().enumerate().map(arg).collect();
    let emitter = FunctionEmitter::begin(of, (provider, FUNCTION), (&inputs, &[]), 2)?;
    let (builder, context) = (&emitter.builder, emitter.context);
    let row = |row: &Row<'ctx>| {
        let called = emitter.values(row).call(code, &args, None)?;
        let (mut value, mut of) = (called.value, machine_type(context, code.result));
        if code.result == MachineType::Boolean {
            of = context.i8_type().into();
            value =
                builder.build_int_z_extend(value.into_int_value(), context.i8_type(), "")?.into();
        }
        // SAFETY: this only computes addresses; the outputs have room for all tuples
        // (`Function::run`).
        let (at, status_at) = unsafe {
            (
                builder.build_in_bounds_gep(of, emitter.parameter(VALUES), &[row.number], "")?,
                builder.build_in_bounds_gep(
                    context.i32_type(),
                    emitter.parameter(STATUSES),
                    &[row.number],
                    "",
                )?,
            )
        };
        set_word_alignment(
            Some(builder.build_store(at, value)?).filter(|_| code.result.bytes() == 16),
        );
        builder.build_store(status_at, called.status)?;
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    };
    emitter.each_row(emitter.all_rows()?, false, row, |rows| {
        builder.build_return(Some(&rows))?;
        Ok(())
    })
}
