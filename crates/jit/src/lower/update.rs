//! Updates of aggregate states: a function over the tuples of a chunk.
//!
//! Of each tuple all arguments are computed before its states are touched, so that it can be left to the vectorised tier where it raises
//! an error.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tessera_ops::code::{Machine, StateCode, StepCode, UpdateCode, ValueCode};

use super::value::{Built, Place, Value, Values, in_words};

/// What the function gives in the place of a number of tuples where a sum has left its 128 bits.
pub(crate) const OVERFLOW: u64 = u64::MAX;

/// The name of the function.
pub(crate) const UPDATE: &str = "update";

struct Update<'a, 'ctx> {
    context: &'ctx Context,
    module: &'a Module<'ctx>,
    builder: Builder<'ctx>,
    function: FunctionValue<'ctx>,
    code: &'a UpdateCode,
    places: Vec<Place<'ctx>>,
    positions: PointerValue<'ctx>,
    rows: IntValue<'ctx>,
    groups: PointerValue<'ctx>,
    area: PointerValue<'ctx>,
    /// Where it is noted that a sum has left its 128 bits.
    overflow: PointerValue<'ctx>,
}

/// Adds the function of some updates to a module: inputs, positions, rows, groups, area, as [`tessera_ops::code::Update::run`] has them.
pub(crate) fn lower_update<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
    code: &UpdateCode,
) -> Built<FunctionValue<'ctx>> {
    let (wide, pointer) = (context.i64_type(), context.ptr_type(AddressSpace::default()));
    let parameters = [pointer.into(), pointer.into(), wide.into(), pointer.into(), pointer.into()];
    let function = module.add_function(UPDATE, wide.fn_type(&parameters, false), None);
    let flag = |name: &str| context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0);
    for parameter in [0, 1, 3, 4] {
        function.add_attribute(AttributeLoc::Param(parameter), flag("noalias"));
    }
    for parameter in [0, 1, 3] {
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
        positions: given(1).into_pointer_value(),
        rows: given(2).into_int_value(),
        groups: given(3).into_pointer_value(),
        area: given(4).into_pointer_value(),
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

    /// The loop over the tuples; where all may count, one that looks for no positions, too.
    fn body(&self) -> Built<()> {
        if self.code.grouped {
            return self.each_row(true);
        }
        let (at_positions, at_all) = (self.block("at_positions"), self.block("at_all"));
        let all = self.builder.build_is_null(self.positions, "all")?;
        self.builder.build_conditional_branch(all, at_all, at_positions)?;
        self.builder.position_at_end(at_positions);
        self.each_row(true)?;
        self.builder.position_at_end(at_all);
        self.each_row(false)
    }

    fn block(&self, name: &str) -> BasicBlock<'ctx> {
        self.context.append_basic_block(self.function, name)
    }

    /// A loop over all tuples, and the function's end.
    fn each_row(&self, at_positions: bool) -> Built<()> {
        let (builder, wide) = (&self.builder, self.context.i64_type());
        let Some(before) = builder.get_insert_block() else { return Ok(()) };
        let (head, body, next, after) =
            (self.block("rows"), self.block("row"), self.block("next"), self.block("end"));
        builder.build_unconditional_branch(head)?;
        builder.position_at_end(head);
        let number = builder.build_phi(wide, "number")?;
        let at = number.as_basic_value().into_int_value();
        let more = builder.build_int_compare(IntPredicate::ULT, at, self.rows, "")?;
        builder.build_conditional_branch(more, body, after)?;
        builder.position_at_end(body);
        let position = match at_positions {
            false => at,
            true => {
                let narrow = self.context.i32_type();
                // SAFETY: an address is computed; what is read there is the caller's promise (`Update::run`).
                let place = unsafe { builder.build_in_bounds_gep(narrow, self.positions, &[at], "")? };
                let position = builder.build_load(narrow, place, "")?.into_int_value();
                builder.build_int_z_extend(position, wide, "")?
            }
        };
        self.row(at, position, next, after)?;
        builder.position_at_end(next);
        let following = builder.build_int_nuw_add(at, wide.const_int(1, false), "")?;
        builder.build_unconditional_branch(head)?;
        number.add_incoming(&[(&wide.const_zero(), before), (&following, next)]);
        builder.position_at_end(after);
        let overflow = builder.build_load(self.context.bool_type(), self.overflow, "")?.into_int_value();
        let done = builder.build_select(overflow, wide.const_int(OVERFLOW, false), at, "")?;
        builder.build_return(Some(&done))?;
        Ok(())
    }

    /// What a tuple does to the states, and on to `next`; or to `raised`, where it perhaps raises an error.
    fn row(
        &self,
        number: IntValue<'ctx>,
        position: IntValue<'ctx>,
        next: BasicBlock<'ctx>,
        raised: BasicBlock<'ctx>,
    ) -> Built<()> {
        let mut values = Values {
            context: self.context,
            module: self.module,
            builder: &self.builder,
            places: &self.places,
            row: position,
            raised: None,
            read: vec![None; self.places.len()],
            shared: Vec::new(),
        };
        for code in &self.code.shared {
            let value = values.value(code, None)?;
            values.shared.push(value);
        }
        let mut stages = Vec::with_capacity(self.code.stages.len());
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
            let args = |state: &StateCode| state.args.iter().map(|code| values.value(code, passes)).collect();
            stages.push((passes, stage.states.iter().map(args).collect::<Built<Vec<Vec<_>>>>()?));
        }
        if let Some(raises) = values.raised {
            let touch = self.block("no_error");
            self.builder.build_conditional_branch(raises, raised, touch)?;
            self.builder.position_at_end(touch);
        }
        let record = self.record(number)?;
        for (stage, (passes, args)) in self.code.stages.iter().zip(stages) {
            let after = self.block("after");
            if let Some(passes) = passes {
                let inside = self.block("passes");
                self.builder.build_conditional_branch(passes, inside, after)?;
                self.builder.position_at_end(inside);
            }
            for (state, args) in stage.states.iter().zip(args) {
                self.step(&values, state, &args, record)?;
            }
            self.builder.build_unconditional_branch(after)?;
            self.builder.position_at_end(after);
        }
        self.builder.build_unconditional_branch(next)?;
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
