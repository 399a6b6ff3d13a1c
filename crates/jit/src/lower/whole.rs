//! Updates of one group's states on a processor: in registers, for all tuples there are, so that
//! the loop has neither memory to write nor an end in the middle, and LLVM can take several tuples
//! at once. Where one perhaps raises an error, nothing has been done.

use std::ops::Range;

use inkwell::IntPredicate;
use inkwell::values::{BasicValue, BasicValueEnum, IntValue, PointerValue};
use tessera_codegen::{Machine, StateCode, StepCode};

use super::arithmetic::extended;
use super::parts::Row;
use super::provider::Sharing;
use super::update::Update;
use super::value::{Built, Value, less};
use super::{NONE, furthest};

/// What a state is while the loop runs.
#[derive(Debug, Clone, Copy)]
enum Register<'ctx> {
    /// How many more there are.
    Count(PointerValue<'ctx>),
    /// What is added: all of it, or the lower 32 bits of each number and the rest of them, so that
    /// neither leaves its 64 bits.
    Sum { low: PointerValue<'ctx>, high: Option<PointerValue<'ctx>>, count: PointerValue<'ctx> },
    /// The smallest or largest whole number, and how many there were.
    Extreme { best: PointerValue<'ctx>, count: PointerValue<'ctx> },
    /// A copy of the record's words, which the same steps change as do elsewhere.
    Copied,
}

/// The words of a state.
fn words(state: &StateCode) -> Range<usize> {
    let count = match (state.step, state.args.first().map(|arg| arg.machine)) {
        (StepCode::Count, _) => 1,
        (StepCode::ExactSum, _) => 3,
        (StepCode::Min | StepCode::Max, Some(Machine::Integer { bits: 128, .. })) => 3,
        _ => 2,
    };
    state.offset..state.offset + count
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
        let registers =
            all().map(|state| self.register(state, record)).collect::<Built<Vec<_>>>()?;
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
        let wide = self.parts.context.i64_type();
        let zeroed = || self.parts.variable(wide.const_zero());
        Ok(match (state.step, state.args.first().map(|arg| arg.machine)) {
            (StepCode::Count, _) => Register::Count(zeroed()?),
            (StepCode::ExactSum, Some(Machine::Integer { bits, .. })) if bits <= 64 => {
                Register::Sum {
                    low: zeroed()?,
                    high: if bits == 64 { Some(zeroed()?) } else { None },
                    count: zeroed()?,
                }
            }
            (
                step @ (StepCode::Min | StepCode::Max),
                Some(machine @ Machine::Integer { bits, .. }),
            ) if bits <= 64 => {
                let of = self.parts.whole_type(bits);
                let furthest = of.const_int(furthest(step, machine), false);
                Register::Extreme { best: self.parts.variable(furthest)?, count: zeroed()? }
            }
            _ => {
                self.parts.copy_words(record, self.area, words(state))?;
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
        self.raise_if_infinite(&mut values, &stages)?;
        if let Some(raises) = values.raised {
            self.parts.note(raised, raises)?;
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
                    Register::Copied => {
                        let step = || self.step(&values, state, &args, self.area);
                        self.parts.only_if(passes, step)?;
                    }
                    register => self.add_to((state, *register), &args, counts)?,
                }
            }
        }
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    }

    fn add_to(
        &self,
        (state, register): (&StateCode, Register<'ctx>),
        args: &[Value<'ctx>],
        counts: Option<IntValue<'ctx>>,
    ) -> Built<()> {
        let (builder, wide) = (&self.parts.builder, self.parts.context.i64_type());
        let or_else = |value: IntValue<'ctx>, otherwise: IntValue<'ctx>| match counts {
            Some(counts) => {
                Ok(builder.build_select(counts, value, otherwise, "")?.into_int_value())
            }
            None => Built::Ok(value),
        };
        let count = |place| self.add(place, or_else(self.parts.number(1), self.parts.number(0))?);
        let arg = match args.first().map(|arg| arg.value) {
            Some(BasicValueEnum::IntValue(value)) => {
                state.args.first().map(|arg| (value, arg.machine))
            }
            _ => None,
        };
        match (register, arg) {
            (Register::Sum { low, high, count: counted }, Some((value, machine))) => {
                let value = or_else(value, value.get_type().const_zero())?;
                let value = extended(builder, value, machine, wide)?;
                count(counted)?;
                let Some(high) = high else { return self.add(low, value) };
                let signed = matches!(machine, Machine::Integer { signed: true, .. });
                self.add(
                    low,
                    builder.build_and(value, self.parts.number(u64::from(u32::MAX)), "")?,
                )?;
                self.add(high, builder.build_right_shift(value, self.parts.number(32), signed, "")?)
            }
            (Register::Extreme { best, count: counted }, Some((value, machine))) => {
                let of = value.get_type();
                let value = or_else(value, of.const_int(furthest(state.step, machine), false))?;
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
        self.parts.add(Sharing::Alone, place, value).map(drop)
    }

    /// Puts what a register has into the record.
    fn keep(
        &self,
        state: &StateCode,
        register: Register<'ctx>,
        record: PointerValue<'ctx>,
    ) -> Built<()> {
        let (builder, wide) = (&self.parts.builder, self.parts.context.i64_type());
        let load = |place| Built::Ok(builder.build_load(wide, place, "")?.into_int_value());
        match register {
            Register::Count(count) => self.add(self.place(record, state.offset)?, load(count)?),
            Register::Sum { low, high, count } => {
                let Some(arg) = state.args.first() else { return Ok(()) };
                let (long, of_halves) =
                    (self.parts.context.i128_type(), Machine::Integer { bits: 64, signed: false });
                let of_low = if high.is_some() { of_halves } else { arg.machine };
                let mut sum = extended(builder, load(low)?, of_low, long)?;
                if let Some(high) = high {
                    let high = extended(builder, load(high)?, arg.machine, long)?;
                    let high = builder.build_left_shift(high, long.const_int(32, false), "")?;
                    sum = builder.build_int_add(high, sum, "")?;
                }
                let add = |before| builder.build_int_add(before, sum, "");
                self.change_long(record, state.offset, add)?;
                self.add(self.place(record, state.offset + 2)?, load(count)?)
            }
            Register::Extreme { best, count } => {
                let Some(arg) = state.args.first() else { return Ok(()) };
                let Machine::Integer { bits, .. } = arg.machine else { return Ok(()) };
                let value = builder.build_load(self.parts.whole_type(bits), best, "")?;
                let some = builder.build_int_compare(
                    IntPredicate::NE,
                    load(count)?,
                    wide.const_zero(),
                    "",
                )?;
                self.extreme(record, state, Value { value, valid: Some(some) }, arg.machine)
            }
            Register::Copied => self.parts.copy_words(self.area, record, words(state)),
        }
    }
}
