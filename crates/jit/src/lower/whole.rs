//! Updates of one group's states on a processor: in registers, for all tuples there are, so that the loop has neither memory to write nor
//! an end in the middle, and LLVM can take several tuples at once. Where one perhaps raises an error, nothing has been done.

use inkwell::IntPredicate;
use inkwell::types::IntType;
use inkwell::values::{BasicValue, BasicValueEnum, IntValue, PointerValue};
use tessera_ops::code::{Machine, StateCode, StepCode};

use super::NONE;
use super::parts::Row;
use super::update::Update;
use super::value::{Built, Value, Values, in_words, less};

/// What a state is while the loop runs.
#[derive(Debug, Clone, Copy)]
enum Register<'ctx> {
    /// How many more there are.
    Count(PointerValue<'ctx>),
    /// What is added: all of it, or the lower 32 bits of each number and the rest of them, so that neither leaves its 64 bits.
    Sum { low: PointerValue<'ctx>, high: Option<PointerValue<'ctx>>, count: PointerValue<'ctx> },
    /// The smallest or largest whole number, and how many there were.
    Extreme { best: PointerValue<'ctx>, count: PointerValue<'ctx> },
    /// A copy of the record's words, which the same steps change as do elsewhere.
    Copied,
}

/// How many words a state has.
fn words(state: &StateCode) -> usize {
    match (state.step, state.args.first().map(|arg| arg.machine)) {
        (StepCode::Count, _) => 1,
        (StepCode::ExactSum, _) => 3,
        (StepCode::Min | StepCode::Max, Some(Machine::Integer { bits: 128, .. })) => 3,
        _ => 2,
    }
}

impl<'ctx> Update<'_, 'ctx> {
    /// The whole function; `record` is where the states are, `self.area` is a copy.
    pub(super) fn at_once(
        &self,
        record: PointerValue<'ctx>,
        (raised, overflow): (PointerValue<'ctx>, PointerValue<'ctx>),
    ) -> Built<()> {
        let (builder, parts) = (&self.parts.builder, &self.parts);
        let all = || self.code.stages.iter().flat_map(|stage| &stage.states);
        let registers = all().map(|state| self.register(state, record)).collect::<Built<Vec<_>>>()?;
        let done = parts.block("done");
        let row = |row: &Row<'ctx>| self.row_at_once(row, &registers, raised);
        parts.each_row_of_either(parts.all_rows()?, row, |_| {
            builder.build_unconditional_branch(done)?;
            Ok(())
        })?;
        builder.position_at_end(done);
        let (keep, end) = (parts.block("keep"), parts.block("end"));
        let boolean = parts.context.bool_type();
        let raised = builder.build_load(boolean, raised, "")?.into_int_value();
        let overflow = builder.build_load(boolean, overflow, "")?.into_int_value();
        let result = builder.build_select(overflow, parts.number(NONE), parts.rows, "")?;
        let result = builder.build_select(raised, parts.number(0).into(), result, "")?;
        let lost = builder.build_or(raised, overflow, "")?;
        builder.build_conditional_branch(lost, end, keep)?;
        builder.position_at_end(keep);
        for (state, register) in all().zip(registers) {
            self.keep(state, register, record)?;
        }
        builder.build_unconditional_branch(end)?;
        builder.position_at_end(end);
        builder.build_return(Some(&result as &dyn BasicValue<'ctx>))?;
        Ok(())
    }

    fn register(&self, state: &StateCode, record: PointerValue<'ctx>) -> Built<Register<'ctx>> {
        let (builder, wide) = (&self.parts.builder, self.parts.context.i64_type());
        let zeroed = || {
            let place = builder.build_alloca(wide, "")?;
            builder.build_store(place, wide.const_zero())?;
            Built::Ok(place)
        };
        Ok(match (state.step, state.args.first().map(|arg| arg.machine)) {
            (StepCode::Count, _) => Register::Count(zeroed()?),
            (StepCode::ExactSum, Some(Machine::Integer { bits, .. })) if bits <= 64 => Register::Sum {
                low: zeroed()?,
                high: if bits == 64 { Some(zeroed()?) } else { None },
                count: zeroed()?,
            },
            (step @ (StepCode::Min | StepCode::Max), Some(machine @ Machine::Integer { bits, .. }))
                if bits <= 64 =>
            {
                let of = self.parts.whole_type(bits);
                let best = builder.build_alloca(of, "best")?;
                builder.build_store(best, furthest(step, machine, of))?;
                Register::Extreme { best, count: zeroed()? }
            }
            _ => {
                for word in state.offset..state.offset + words(state) {
                    let value = builder.build_load(wide, self.place(record, word)?, "")?;
                    builder.build_store(self.place(self.area, word)?, value)?;
                }
                Register::Copied
            }
        })
    }

    fn row_at_once(
        &self,
        row: &Row<'ctx>,
        registers: &[Register<'ctx>],
        raised: PointerValue<'ctx>,
    ) -> Built<()> {
        let builder = &self.parts.builder;
        let mut values = self.parts.values(row);
        let stages = self.arguments(&mut values)?;
        if let Some(raises) = values.raised {
            let before = builder.build_load(raises.get_type(), raised, "")?.into_int_value();
            builder.build_store(raised, builder.build_or(before, raises, "")?)?;
        }
        let mut registers = registers.iter();
        for (stage, (passes, args)) in self.code.stages.iter().zip(stages) {
            for ((state, args), register) in stage.states.iter().zip(args).zip(registers.by_ref()) {
                let valid = values.all_valid(&args)?;
                let counts = match (passes, valid) {
                    (Some(passes), Some(valid)) => Some(builder.build_and(passes, valid, "")?),
                    (passes, valid) => passes.or(valid),
                };
                match register {
                    Register::Copied => self.copied_step(&values, state, &args, passes)?,
                    register => self.add_to(&values, (state, *register), &args, counts)?,
                }
            }
        }
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    }

    fn copied_step(
        &self,
        values: &Values<'_, 'ctx>,
        state: &StateCode,
        args: &[Value<'ctx>],
        passes: Option<IntValue<'ctx>>,
    ) -> Built<()> {
        let Some(passes) = passes else { return self.step(values, state, args, self.area) };
        let builder = &self.parts.builder;
        let (inside, after) = (self.parts.block("passes"), self.parts.block("after"));
        builder.build_conditional_branch(passes, inside, after)?;
        builder.position_at_end(inside);
        self.step(values, state, args, self.area)?;
        builder.build_unconditional_branch(after)?;
        builder.position_at_end(after);
        Ok(())
    }

    fn add_to(
        &self,
        values: &Values<'_, 'ctx>,
        (state, register): (&StateCode, Register<'ctx>),
        args: &[Value<'ctx>],
        counts: Option<IntValue<'ctx>>,
    ) -> Built<()> {
        let (builder, wide) = (&self.parts.builder, self.parts.context.i64_type());
        let or_else = |value: IntValue<'ctx>, otherwise: IntValue<'ctx>| match counts {
            Some(counts) => Ok(builder.build_select(counts, value, otherwise, "")?.into_int_value()),
            None => Built::Ok(value),
        };
        let count = |place| self.add(place, or_else(self.parts.number(1), self.parts.number(0))?);
        let arg = match args.first().map(|arg| arg.value) {
            Some(BasicValueEnum::IntValue(value)) => state.args.first().map(|arg| (value, arg.machine)),
            _ => None,
        };
        match (register, arg) {
            (Register::Sum { low, high, count: counted }, Some((value, machine))) => {
                let value = or_else(value, value.get_type().const_zero())?;
                let value = values.extended(value, machine, wide)?;
                count(counted)?;
                let Some(high) = high else { return self.add(low, value) };
                let signed = matches!(machine, Machine::Integer { signed: true, .. });
                self.add(low, builder.build_and(value, self.parts.number(u64::from(u32::MAX)), "")?)?;
                self.add(high, builder.build_right_shift(value, self.parts.number(32), signed, "")?)
            }
            (Register::Extreme { best, count: counted }, Some((value, machine))) => {
                let of = value.get_type();
                let value = or_else(value, furthest(state.step, machine, of))?;
                let before = builder.build_load(of, best, "")?.into_int_value();
                let closer = match state.step {
                    StepCode::Min => less(builder, machine, value.into(), before.into())?,
                    _ => less(builder, machine, before.into(), value.into())?,
                };
                builder.build_store(best, builder.build_select(closer, value, before, "")?)?;
                count(counted)
            }
            (Register::Count(place), _) => count(place),
            // A step without its argument does nothing.
            _ => Ok(()),
        }
    }

    fn add(&self, place: PointerValue<'ctx>, value: IntValue<'ctx>) -> Built<()> {
        let builder = &self.parts.builder;
        let before = builder.build_load(value.get_type(), place, "")?.into_int_value();
        builder.build_store(place, builder.build_int_add(before, value, "")?)?;
        Ok(())
    }

    /// Puts what a register has into the record.
    fn keep(&self, state: &StateCode, register: Register<'ctx>, record: PointerValue<'ctx>) -> Built<()> {
        let (builder, wide) = (&self.parts.builder, self.parts.context.i64_type());
        let load = |place| Built::Ok(builder.build_load(wide, place, "")?.into_int_value());
        match register {
            Register::Count(count) => self.add(self.place(record, state.offset)?, load(count)?),
            Register::Sum { low, high, count } => {
                let signed =
                    state.args.iter().all(|arg| matches!(arg.machine, Machine::Integer { signed: true, .. }));
                let long = self.parts.context.i128_type();
                let extend = |value: IntValue<'ctx>, signed: bool| match signed {
                    true => builder.build_int_s_extend(value, long, ""),
                    false => builder.build_int_z_extend(value, long, ""),
                };
                let mut sum = extend(load(low)?, signed && high.is_none())?;
                if let Some(high) = high {
                    let high = extend(load(high)?, signed)?;
                    let high = builder.build_left_shift(high, long.const_int(32, false), "")?;
                    sum = builder.build_int_add(high, sum, "")?;
                }
                let place = self.place(record, state.offset)?;
                let before = builder.build_load(long, place, "")?;
                in_words(before.as_instruction_value());
                let after = builder.build_int_add(before.into_int_value(), sum, "")?;
                in_words(Some(builder.build_store(place, after)?));
                self.add(self.place(record, state.offset + 2)?, load(count)?)
            }
            Register::Extreme { best, count } => {
                let Some(arg) = state.args.first() else { return Ok(()) };
                let Machine::Integer { bits, signed } = arg.machine else { return Ok(()) };
                let best = builder.build_load(self.parts.whole_type(bits), best, "")?.into_int_value();
                let best = match signed {
                    true => builder.build_int_s_extend_or_bit_cast(best, wide, "")?,
                    false => builder.build_int_z_extend_or_bit_cast(best, wide, "")?,
                };
                let some =
                    builder.build_int_compare(IntPredicate::NE, load(count)?, wide.const_zero(), "")?;
                let place = self.place(record, state.offset)?;
                let seen_place = self.place(record, state.offset + 1)?;
                let (before, seen) = (load(place)?, load(seen_place)?);
                let closer = self.is_closer(state.step, arg.machine, best, before)?;
                let first = builder.build_int_compare(IntPredicate::EQ, seen, wide.const_zero(), "")?;
                let better = builder.build_and(some, builder.build_or(closer, first, "")?, "")?;
                builder.build_store(place, builder.build_select(better, best, before, "")?)?;
                let one = wide.const_int(1, false);
                builder.build_store(seen_place, builder.build_select(better, one, seen, "")?)?;
                Ok(())
            }
            Register::Copied => {
                for word in state.offset..state.offset + words(state) {
                    let value = builder.build_load(wide, self.place(self.area, word)?, "")?;
                    builder.build_store(self.place(record, word)?, value)?;
                }
                Ok(())
            }
        }
    }
}

/// What no whole number is further away from.
fn furthest<'ctx>(step: StepCode, machine: Machine, of: IntType<'ctx>) -> IntValue<'ctx> {
    let signed = matches!(machine, Machine::Integer { signed: true, .. });
    let least = match signed {
        true => of.const_all_ones().const_xor(all_but_sign(of)),
        false => of.const_zero(),
    };
    match (step, signed) {
        (StepCode::Min, true) => all_but_sign(of),
        (StepCode::Min, false) => of.const_all_ones(),
        _ => least,
    }
}

fn all_but_sign(of: IntType<'_>) -> IntValue<'_> {
    of.const_int(u64::MAX >> (65 - of.get_bit_width()), false)
}
