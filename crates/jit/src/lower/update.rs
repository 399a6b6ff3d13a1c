//! Updates of aggregate states: a function over the tuples of a chunk.
//!
//! Where a tuple can raise an error, a first loop looks for one, and gives up before any state is touched.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tessera_ops::code::{Machine, StateCode, StepCode, UpdateCode, ValueCode};

use super::value::{Built, Place, Value, Values, in_words};

/// What the function gives: as [`tessera_ops::code::Updated`].
pub(crate) const DONE: u64 = 0;
pub(crate) const UNTOUCHED: u64 = 1;
pub(crate) const OVERFLOW: u64 = 2;

/// The name of the function.
pub(crate) const UPDATE: &str = "update";

struct Update<'a, 'ctx> {
    context: &'ctx Context,
    module: &'a Module<'ctx>,
    builder: Builder<'ctx>,
    function: FunctionValue<'ctx>,
    code: &'a UpdateCode,
    places: Vec<Place<'ctx>>,
    rows: IntValue<'ctx>,
    groups: PointerValue<'ctx>,
    area: PointerValue<'ctx>,
    /// Where it is noted that a sum has left its 128 bits.
    overflow: PointerValue<'ctx>,
}

/// Adds the function of some updates to a module: inputs, rows, groups, area, as [`tessera_ops::code::Update::run`] has them.
pub(crate) fn lower_update<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    code: &UpdateCode,
) -> Built<FunctionValue<'ctx>> {
    let (wide, pointer) = (context.i64_type(), context.ptr_type(AddressSpace::default()));
    let parameters = [pointer.into(), wide.into(), pointer.into(), pointer.into()];
    let function = module.add_function(UPDATE, context.i32_type().fn_type(&parameters, false), None);
    let flag = |name: &str| context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0);
    for parameter in [0, 2, 3] {
        function.add_attribute(AttributeLoc::Param(parameter), flag("noalias"));
    }
    for parameter in [0, 2] {
        function.add_attribute(AttributeLoc::Param(parameter), flag("readonly"));
    }
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, "entry"));
    let given = |number: u32| function.get_nth_param(number).unwrap_or_else(|| wide.const_zero().into());
    let overflow = builder.build_alloca(context.bool_type(), "overflow")?;
    builder.build_store(overflow, context.bool_type().const_zero())?;
    let mut update = Update {
        context,
        module,
        builder,
        function,
        code,
        places: Vec::new(),
        rows: given(1).into_int_value(),
        groups: given(2).into_pointer_value(),
        area: given(3).into_pointer_value(),
        overflow,
    };
    update.places = update.read_places(given(0).into_pointer_value())?;
    update.body()?;
    Ok(function)
}

impl<'ctx> Update<'_, 'ctx> {
    /// Where the inputs lie.
    fn read_places(&self, inputs: PointerValue<'ctx>) -> Built<Vec<Place<'ctx>>> {
        let (wide, pointer) = (self.context.i64_type(), self.context.ptr_type(AddressSpace::default()));
        let word = |number: u64| {
            let at = wide.const_int(number, false);
            // SAFETY: an address is computed; `RawInput` has four words.
            unsafe { self.builder.build_in_bounds_gep(wide, inputs, &[at], "") }
        };
        let place = |(number, code): (usize, &tessera_ops::code::InputCode)| {
            let first = number as u64 * 4;
            let address = |at| self.builder.build_load(pointer, word(at)?, "");
            let offset = |at| self.builder.build_load(wide, word(at)?, "");
            Ok(Place {
                code: *code,
                values: address(first)?.into_pointer_value(),
                validity: address(first + 1)?.into_pointer_value(),
                values_offset: offset(first + 2)?.into_int_value(),
                validity_offset: offset(first + 3)?.into_int_value(),
            })
        };
        self.code.inputs.iter().enumerate().map(place).collect()
    }

    fn body(&self) -> Built<()> {
        let result = self.context.i32_type();
        if self.code.raises() {
            let raised = self.builder.build_alloca(self.context.bool_type(), "raised")?;
            self.builder.build_store(raised, self.context.bool_type().const_zero())?;
            self.each_row(|row| self.row(row, Some(raised)))?;
            let raised = self.builder.build_load(self.context.bool_type(), raised, "")?.into_int_value();
            let (untouched, update) = (self.block("untouched"), self.block("no_error"));
            self.builder.build_conditional_branch(raised, untouched, update)?;
            self.builder.position_at_end(untouched);
            self.builder.build_return(Some(&result.const_int(UNTOUCHED, false)))?;
            self.builder.position_at_end(update);
        }
        self.each_row(|row| self.row(row, None))?;
        let overflow = self.builder.build_load(self.context.bool_type(), self.overflow, "")?.into_int_value();
        let (done, over) = (result.const_int(DONE, false), result.const_int(OVERFLOW, false));
        let result = self.builder.build_select(overflow, over, done, "")?;
        self.builder.build_return(Some(&result))?;
        Ok(())
    }

    fn block(&self, name: &str) -> BasicBlock<'ctx> {
        self.context.append_basic_block(self.function, name)
    }

    /// A loop over all tuples.
    fn each_row(&self, row: impl FnOnce(IntValue<'ctx>) -> Built<()>) -> Built<()> {
        let (builder, wide) = (&self.builder, self.context.i64_type());
        let Some(before) = builder.get_insert_block() else { return Ok(()) };
        let (head, body, after) = (self.block("rows"), self.block("row"), self.block("rows_end"));
        builder.build_unconditional_branch(head)?;
        builder.position_at_end(head);
        let number = builder.build_phi(wide, "row")?;
        number.add_incoming(&[(&wide.const_zero(), before)]);
        let at = number.as_basic_value().into_int_value();
        let more = builder.build_int_compare(IntPredicate::ULT, at, self.rows, "")?;
        builder.build_conditional_branch(more, body, after)?;
        builder.position_at_end(body);
        row(at)?;
        let next = builder.build_int_nuw_add(at, wide.const_int(1, false), "")?;
        if let Some(end) = builder.get_insert_block() {
            number.add_incoming(&[(&next, end)]);
        }
        builder.build_unconditional_branch(head)?;
        builder.position_at_end(after);
        Ok(())
    }

    /// All of a tuple: whether it raises an error, or what it does to states.
    fn row(&self, row: IntValue<'ctx>, raised: Option<PointerValue<'ctx>>) -> Built<()> {
        let mut values = Values {
            context: self.context,
            module: self.module,
            builder: &self.builder,
            places: &self.places,
            row,
            raised,
            read: vec![None; self.places.len()],
            shared: Vec::new(),
        };
        for code in &self.code.shared {
            let value = values.value(code, None)?;
            values.shared.push(value);
        }
        let record = match raised {
            None => Some(self.record(row)?),
            Some(_) => None,
        };
        for stage in &self.code.stages {
            let passes = match &stage.filter {
                Some(filter) => {
                    let value = values.value(filter, None)?;
                    let is_true = value.value.into_int_value();
                    Some(match value.valid {
                        Some(valid) => self.builder.build_and(is_true, valid, "")?,
                        None => is_true,
                    })
                }
                None => None,
            };
            let Some(record) = record else {
                for code in stage.states.iter().flat_map(|state| &state.args) {
                    values.value(code, passes)?;
                }
                continue;
            };
            // What is read behind the branch is not there after it.
            let (read, after) = (values.read.clone(), self.block("next"));
            if let Some(passes) = passes {
                let inside = self.block("passes");
                self.builder.build_conditional_branch(passes, inside, after)?;
                self.builder.position_at_end(inside);
            }
            for state in &stage.states {
                self.step(&mut values, state, record)?;
            }
            self.builder.build_unconditional_branch(after)?;
            self.builder.position_at_end(after);
            if passes.is_some() {
                values.read = read;
            }
        }
        Ok(())
    }

    /// The record of a tuple's group.
    fn record(&self, row: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        if !self.code.grouped {
            return Ok(self.area);
        }
        let (builder, wide, number) = (&self.builder, self.context.i64_type(), self.context.i32_type());
        // SAFETY: an address is computed; what is read there is the caller's promise (`Update::run`).
        let at = unsafe { builder.build_in_bounds_gep(number, self.groups, &[row], "")? };
        let group = builder.build_load(number, at, "")?.into_int_value();
        let group = builder.build_int_z_extend(group, wide, "")?;
        let word = builder.build_int_nuw_mul(group, wide.const_int(self.code.stride as u64, false), "")?;
        // SAFETY: as above.
        unsafe { builder.build_in_bounds_gep(wide, self.area, &[word], "") }
    }

    fn word(&self, record: PointerValue<'ctx>, number: usize) -> Built<PointerValue<'ctx>> {
        let wide = self.context.i64_type();
        // SAFETY: an address is computed; the state lies inside its record.
        unsafe { self.builder.build_in_bounds_gep(wide, record, &[wide.const_int(number as u64, false)], "") }
    }

    fn step(
        &self,
        values: &mut Values<'_, 'ctx>,
        state: &StateCode,
        record: PointerValue<'ctx>,
    ) -> Built<()> {
        let mut args = Vec::with_capacity(state.args.len());
        for code in &state.args {
            args.push(values.value(code, None)?);
        }
        let valid = values.all_valid(&args)?;
        match (state.step, &args[..], &state.args[..]) {
            (StepCode::Count, ..) => self.count(record, state.offset, valid),
            (StepCode::ExactSum, [arg], [code]) => {
                self.exact_sum(values, record, state.offset, *arg, code)?;
                self.count(record, state.offset + 2, valid)
            }
            (StepCode::FloatSum, [arg], _) => {
                self.float_sum(record, state.offset, *arg)?;
                self.count(record, state.offset + 1, valid)
            }
            (StepCode::Min | StepCode::Max, [arg], [code]) => {
                self.extreme(values, record, state, *arg, code.machine)
            }
            // A step without its argument does nothing.
            _ => Ok(()),
        }
    }

    /// One more where the tuple counts.
    fn count(&self, record: PointerValue<'ctx>, word: usize, counts: Option<IntValue<'ctx>>) -> Built<()> {
        let (builder, wide) = (&self.builder, self.context.i64_type());
        let place = self.word(record, word)?;
        let one = match counts {
            Some(counts) => builder.build_int_z_extend(counts, wide, "")?,
            None => wide.const_int(1, false),
        };
        let before = builder.build_load(wide, place, "")?.into_int_value();
        builder.build_store(place, builder.build_int_add(before, one, "")?)?;
        Ok(())
    }

    fn exact_sum(
        &self,
        values: &Values<'_, 'ctx>,
        record: PointerValue<'ctx>,
        word: usize,
        arg: Value<'ctx>,
        code: &ValueCode,
    ) -> Built<()> {
        let (builder, sum) = (&self.builder, self.context.i128_type());
        let place = self.word(record, word)?;
        let mut value = arg.value.into_int_value();
        if let Some(valid) = arg.valid {
            let nothing = value.get_type().const_zero();
            value = builder.build_select(valid, value, nothing, "")?.into_int_value();
        }
        let before = builder.build_load(sum, place, "")?;
        in_words(before.as_instruction_value());
        let before = before.into_int_value();
        // Narrower values cannot leave 128 bits before the count leaves its 64.
        let after = match code.machine {
            Machine::Integer { bits: 128, .. } => {
                let (after, wrong) =
                    values.overflowing(tessera_ops::code::Operation::Add, true, before, value)?;
                let noted = builder.build_load(self.context.bool_type(), self.overflow, "")?.into_int_value();
                builder.build_store(self.overflow, builder.build_or(noted, wrong, "")?)?;
                after
            }
            machine => builder.build_int_add(before, values.extended(value, machine, sum)?, "")?,
        };
        in_words(Some(builder.build_store(place, after)?));
        Ok(())
    }

    fn float_sum(&self, record: PointerValue<'ctx>, word: usize, arg: Value<'ctx>) -> Built<()> {
        let (builder, double) = (&self.builder, self.context.f64_type());
        let place = self.word(record, word)?;
        let value = builder.build_float_cast(arg.value.into_float_value(), double, "")?;
        let before = builder.build_load(double, place, "")?.into_float_value();
        let mut after: BasicValueEnum<'ctx> = builder.build_float_add(before, value, "")?.into();
        if let Some(valid) = arg.valid {
            after = builder.build_select(valid, after, before.into(), "")?;
        }
        builder.build_store(place, after)?;
        Ok(())
    }

    /// The smaller or larger of a value and what is kept: its bits, widened to words, and that there is one.
    fn extreme(
        &self,
        values: &Values<'_, 'ctx>,
        record: PointerValue<'ctx>,
        state: &StateCode,
        arg: Value<'ctx>,
        machine: Machine,
    ) -> Built<()> {
        let (builder, wide) = (&self.builder, self.context.i64_type());
        let is_long = matches!(machine, Machine::Integer { bits: 128, .. });
        let kept_type = if is_long { self.context.i128_type() } else { wide };
        let place = self.word(record, state.offset)?;
        let seen_place = self.word(record, state.offset + if is_long { 2 } else { 1 })?;
        let kept_bits = builder.build_load(kept_type, place, "")?;
        in_words(kept_bits.as_instruction_value());
        let kept_bits = kept_bits.into_int_value();
        let seen = builder.build_load(wide, seen_place, "")?.into_int_value();
        let (kept, bits): (BasicValueEnum<'ctx>, IntValue<'ctx>) = match arg.value {
            BasicValueEnum::IntValue(value) => {
                let kept = builder.build_int_truncate_or_bit_cast(kept_bits, value.get_type(), "")?;
                (kept.into(), values.extended(value, machine, kept_type)?)
            }
            value => {
                let of = if machine == Machine::Float32 { self.context.i32_type() } else { wide };
                let kept = builder.build_int_truncate_or_bit_cast(kept_bits, of, "")?;
                let kept = builder.build_bit_cast(kept, value.get_type(), "")?;
                let bits = builder.build_bit_cast(value, of, "")?.into_int_value();
                (kept, builder.build_int_z_extend_or_bit_cast(bits, wide, "")?)
            }
        };
        let closer = match state.step {
            StepCode::Min => values.less(machine, arg.value, kept)?,
            _ => values.less(machine, kept, arg.value)?,
        };
        let is_first = builder.build_int_compare(IntPredicate::EQ, seen, wide.const_zero(), "")?;
        let mut better = builder.build_or(closer, is_first, "")?;
        if let Some(valid) = arg.valid {
            better = builder.build_and(better, valid, "")?;
        }
        let bits = builder.build_select(better, bits, kept_bits, "")?;
        in_words(Some(builder.build_store(place, bits)?));
        let one = wide.const_int(1, false);
        builder.build_store(seen_place, builder.build_select(better, one, seen, "")?)?;
        Ok(())
    }
}
