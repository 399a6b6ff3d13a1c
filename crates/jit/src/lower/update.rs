//! Updates of aggregate states: a function over the tuples of a chunk.
//!
//! Of each tuple all arguments are computed before its states are touched, so that it can be left to the vectorised tier where it raises
//! an error.

use inkwell::IntPredicate;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue};
use tessera_ops::code::{Machine, Operation, StateCode, StepCode, UpdateCode, ValueCode};

use super::NONE;
use super::parts::{Parts, Row};
use super::value::{Built, Value, Values, in_words};

/// The name of the function.
pub(crate) const UPDATE: &str = "update";

struct Update<'a, 'ctx> {
    parts: Parts<'a, 'ctx>,
    code: &'a UpdateCode,
    groups: PointerValue<'ctx>,
    area: PointerValue<'ctx>,
    /// Where it is noted that a sum has left its 128 bits.
    overflow: PointerValue<'ctx>,
}

/// Adds the function of some updates to a module, as [`tessera_ops::code::Update::run`] has it, with the numbers it is given behind `rows`.
pub(crate) fn lower_update<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    (code, given): (&UpdateCode, &[Machine]),
) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin((context, module), UPDATE, (&code.inputs, given), 2)?;
    let overflow = parts.builder.build_alloca(context.bool_type(), "overflow")?;
    parts.builder.build_store(overflow, context.bool_type().const_zero())?;
    let (groups, area) = (parts.other(0), parts.other(1));
    let update = Update { parts, code, groups, area, overflow };
    let row = |row: &Row<'ctx>| update.row(row);
    match code.grouped {
        true => update.parts.each_row(true, row, |done| update.result(done))?,
        false => update.parts.each_row_of_either(row, |done| update.result(done))?,
    }
    Ok(update.parts.function)
}

impl<'ctx> Update<'_, 'ctx> {
    /// So many tuples, unless a sum has left its range.
    fn result(&self, done: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let (builder, context) = (&self.parts.builder, self.parts.context);
        let overflow = builder.build_load(context.bool_type(), self.overflow, "")?.into_int_value();
        let none = context.i64_type().const_int(NONE, false);
        Ok(builder.build_select(overflow, none, done, "")?.into_int_value())
    }

    /// What a tuple does to the states, unless it perhaps raises an error.
    fn row(&self, row: &Row<'ctx>) -> Built<()> {
        let builder = &self.parts.builder;
        let mut values = self.parts.values(row);
        for code in &self.code.shared {
            let value = values.value(code, None)?;
            values.shared.push(value);
        }
        let mut stages = Vec::with_capacity(self.code.stages.len());
        for stage in &self.code.stages {
            let filter = stage.filter.as_ref();
            let passes = filter.map(|filter| values.truth(filter, None)).transpose()?;
            let mut args =
                |state: &StateCode| state.args.iter().map(|code| values.value(code, passes)).collect();
            stages.push((passes, stage.states.iter().map(&mut args).collect::<Built<Vec<Vec<_>>>>()?));
        }
        if let Some(raises) = values.raised {
            let touch = self.parts.block("no_error");
            builder.build_conditional_branch(raises, row.end, touch)?;
            builder.position_at_end(touch);
        }
        let record = self.record(row.number)?;
        for (stage, (passes, args)) in self.code.stages.iter().zip(stages) {
            let after = self.parts.block("after");
            if let Some(passes) = passes {
                let inside = self.parts.block("passes");
                builder.build_conditional_branch(passes, inside, after)?;
                builder.position_at_end(inside);
            }
            for (state, args) in stage.states.iter().zip(args) {
                self.step(&values, state, &args, record)?;
            }
            builder.build_unconditional_branch(after)?;
            builder.position_at_end(after);
        }
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    }

    /// The record of a tuple's group.
    fn record(&self, row: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        if !self.code.grouped {
            return Ok(self.area);
        }
        let (builder, wide, number) =
            (&self.parts.builder, self.parts.context.i64_type(), self.parts.context.i32_type());
        // SAFETY: an address is computed; what is read there is the caller's promise (`Update::run`).
        let at = unsafe { builder.build_in_bounds_gep(number, self.groups, &[row], "")? };
        let group = builder.build_load(number, at, "")?.into_int_value();
        let group = builder.build_int_z_extend(group, wide, "")?;
        let word = builder.build_int_nuw_mul(group, wide.const_int(self.code.stride as u64, false), "")?;
        // SAFETY: as above.
        unsafe { builder.build_in_bounds_gep(wide, self.area, &[word], "") }
    }

    fn word(&self, record: PointerValue<'ctx>, number: usize) -> Built<PointerValue<'ctx>> {
        let wide = self.parts.context.i64_type();
        // SAFETY: an address is computed; the state lies inside its record.
        unsafe {
            self.parts.builder.build_in_bounds_gep(wide, record, &[wide.const_int(number as u64, false)], "")
        }
    }

    fn step(
        &self,
        values: &Values<'_, 'ctx>,
        state: &StateCode,
        args: &[Value<'ctx>],
        record: PointerValue<'ctx>,
    ) -> Built<()> {
        let valid = values.all_valid(args)?;
        match (state.step, args, &state.args[..]) {
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
        let (builder, wide) = (&self.parts.builder, self.parts.context.i64_type());
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
        let (builder, sum) = (&self.parts.builder, self.parts.context.i128_type());
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
                let (after, wrong) = values.overflowing(Operation::Add, true, before, value)?;
                let noted =
                    builder.build_load(self.parts.context.bool_type(), self.overflow, "")?.into_int_value();
                builder.build_store(self.overflow, builder.build_or(noted, wrong, "")?)?;
                after
            }
            machine => builder.build_int_add(before, values.extended(value, machine, sum)?, "")?,
        };
        in_words(Some(builder.build_store(place, after)?));
        Ok(())
    }

    fn float_sum(&self, record: PointerValue<'ctx>, word: usize, arg: Value<'ctx>) -> Built<()> {
        let (builder, double) = (&self.parts.builder, self.parts.context.f64_type());
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
        let (builder, wide) = (&self.parts.builder, self.parts.context.i64_type());
        let is_long = matches!(machine, Machine::Integer { bits: 128, .. });
        let kept_type = if is_long { self.parts.context.i128_type() } else { wide };
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
                let of = if machine == Machine::Float32 { self.parts.context.i32_type() } else { wide };
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
