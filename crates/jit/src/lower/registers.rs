//! Updates of a single group's states on a CPU, in registers and over all tuples: the loop has no
//! stores and no early exit, so that LLVM can vectorize it. If a tuple may raise an error, the
//! states stay unchanged.

use std::ops::Range;

use inkwell::IntPredicate;
use inkwell::values::{BasicValue, BasicValueEnum, IntValue, PointerValue};
use tessera_codegen::{MachineType, StateCode, StepCode};

use super::arithmetic::extend;
use super::emitter::Row;
use super::provider::Sharing;
use super::update::Update;
use super::value::{Built, Value, less};
use super::{NONE, identity};

/// The representation of a state during the loop.
#[derive(Debug, Clone, Copy)]
enum Register<'ctx> {
    /// The number of counted tuples.
    Count(PointerValue<'ctx>),
    /// A sum and its count. A sum of numbers that could overflow 64 bits is split into the sums of
    /// their lower 32 bits and of the rest.
    Sum { low: PointerValue<'ctx>, high: Option<PointerValue<'ctx>>, count: PointerValue<'ctx> },
    /// The smallest or largest integer, and the number of values.
    Extreme { best: PointerValue<'ctx>, count: PointerValue<'ctx> },
    /// A copy of the record's words, updated by the general code.
    Copied,
}

/// Returns the words of a state.
fn words(state: &StateCode) -> Range<usize> {
    let count = match (state.step, state.args.first().map(|arg| arg.machine)) {
        (StepCode::Count, _) => 1,
        (StepCode::ExactSum, _) => 3,
        (StepCode::Min | StepCode::Max, Some(MachineType::Integer { bits: 128, .. })) => 3,
        _ => 2,
    };
    state.offset..state.offset + count
}

impl<'ctx> Update<'_, 'ctx> {
    /// Emits the whole function; `record` is the host's record, `self.area` a copy.
    pub(super) fn lower_in_registers(
        &self,
        record: PointerValue<'ctx>,
        (raised, overflow): (PointerValue<'ctx>, PointerValue<'ctx>),
    ) -> Built<()> {
        let (builder, emitter) = (&self.emitter.builder, &self.emitter);
        let all = || self.code.stages.iter().flat_map(|stage| &stage.states);
        let registers =
            all().map(|state| self.register(state, record)).collect::<Built<Vec<_>>>()?;
        let done = emitter.block("done");
        let row = |row: &Row<'ctx>| self.update_registers(row, &registers, raised);
        emitter.each_row_of_either(emitter.all_rows()?, row, |_| {
            builder.build_unconditional_branch(done)?;
            Ok(())
        })?;
        builder.position_at_end(done);
        let (keep, end) = (emitter.block("keep"), emitter.block("end"));
        let boolean = emitter.context.bool_type();
        let raised = builder.build_load(boolean, raised, "")?.into_int_value();
        let overflow = builder.build_load(boolean, overflow, "")?.into_int_value();
        let result = builder.build_select(overflow, emitter.number(NONE), emitter.rows, "")?;
        let result = builder.build_select(raised, emitter.number(0).into(), result, "")?;
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
        let wide = self.emitter.context.i64_type();
        let zeroed = || self.emitter.variable(wide.const_zero());
        Ok(match (state.step, state.args.first().map(|arg| arg.machine)) {
            (StepCode::Count, _) => Register::Count(zeroed()?),
            (StepCode::ExactSum, Some(MachineType::Integer { bits, .. })) if bits <= 64 => {
                Register::Sum {
                    low: zeroed()?,
                    high: if bits == 64 { Some(zeroed()?) } else { None },
                    count: zeroed()?,
                }
            }
            (
                step @ (StepCode::Min | StepCode::Max),
                Some(machine @ MachineType::Integer { bits, .. }),
            ) if bits <= 64 => {
                let of = self.emitter.whole_type(bits);
                let identity = of.const_int(identity(step, machine), false);
                Register::Extreme { best: self.emitter.variable(identity)?, count: zeroed()? }
            }
            _ => {
                self.emitter.copy_words(record, self.area, words(state))?;
                Register::Copied
            }
        })
    }

    fn update_registers(
        &self,
        row: &Row<'ctx>,
        registers: &[Register<'ctx>],
        raised: PointerValue<'ctx>,
    ) -> Built<()> {
        let builder = &self.emitter.builder;
        let mut values = self.emitter.values(row);
        let stages = self.arguments(&mut values)?;
        self.raise_if_infinite(&mut values, &stages)?;
        if let Some(raises) = values.raised {
            self.emitter.set_flag(raised, raises)?;
        }
        let mut registers = registers.iter();
        for (stage, (passes, args)) in self.code.stages.iter().zip(stages) {
            for ((state, args), register) in stage.states.iter().zip(args).zip(registers.by_ref()) {
                let valid = values.all_valid(&args)?;
                let selected = match (passes, valid) {
                    (Some(passes), Some(valid)) => Some(builder.build_and(passes, valid, "")?),
                    (passes, valid) => passes.or(valid),
                };
                match register {
                    Register::Copied => {
                        let step = || self.step(&values, state, &args, self.area);
                        self.emitter.only_if(passes, step)?;
                    }
                    register => self.add_to((state, *register), &args, selected)?,
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
        selected: Option<IntValue<'ctx>>,
    ) -> Built<()> {
        let (builder, wide) = (&self.emitter.builder, self.emitter.context.i64_type());
        let or_else = |value: IntValue<'ctx>, otherwise: IntValue<'ctx>| match selected {
            Some(selected) => {
                Ok(builder.build_select(selected, value, otherwise, "")?.into_int_value())
            }
            None => Built::Ok(value),
        };
        let count =
            |place| self.add(place, or_else(self.emitter.number(1), self.emitter.number(0))?);
        let arg = match args.first().map(|arg| arg.value) {
            Some(BasicValueEnum::IntValue(value)) => {
                state.args.first().map(|arg| (value, arg.machine))
            }
            _ => None,
        };
        match (register, arg) {
            (Register::Sum { low, high, count: counted }, Some((value, machine))) => {
                let value = or_else(value, value.get_type().const_zero())?;
                let value = extend(builder, value, machine, wide)?;
                count(counted)?;
                let Some(high) = high else { return self.add(low, value) };
                let signed = matches!(machine, MachineType::Integer { signed: true, .. });
                self.add(
                    low,
                    builder.build_and(value, self.emitter.number(u64::from(u32::MAX)), "")?,
                )?;
                self.add(
                    high,
                    builder.build_right_shift(value, self.emitter.number(32), signed, "")?,
                )
            }
            (Register::Extreme { best, count: counted }, Some((value, machine))) => {
                let of = value.get_type();
                let value = or_else(value, of.const_int(identity(state.step, machine), false))?;
                let before = builder.build_load(of, best, "")?.into_int_value();
                let replaces = match state.step {
                    StepCode::Min => less(builder, machine, value.into(), before.into())?,
                    _ => less(builder, machine, before.into(), value.into())?,
                };
                builder.build_store(best, builder.build_select(replaces, value, before, "")?)?;
                count(counted)
            }
            (Register::Count(place), _) => count(place),
            // A step without its argument does nothing.
            _ => Ok(()),
        }
    }

    fn add(&self, place: PointerValue<'ctx>, value: IntValue<'ctx>) -> Built<()> {
        self.emitter.add(Sharing::Exclusive, place, value).map(drop)
    }

    /// Stores a register into the record.
    fn keep(
        &self,
        state: &StateCode,
        register: Register<'ctx>,
        record: PointerValue<'ctx>,
    ) -> Built<()> {
        let (builder, wide) = (&self.emitter.builder, self.emitter.context.i64_type());
        let load = |place| Built::Ok(builder.build_load(wide, place, "")?.into_int_value());
        match register {
            Register::Count(count) => self.add(self.place(record, state.offset)?, load(count)?),
            Register::Sum { low, high, count } => {
                let Some(arg) = state.args.first() else { return Ok(()) };
                let (long, of_halves) = (
                    self.emitter.context.i128_type(),
                    MachineType::Integer { bits: 64, signed: false },
                );
                let of_low = if high.is_some() { of_halves } else { arg.machine };
                let mut sum = extend(builder, load(low)?, of_low, long)?;
                if let Some(high) = high {
                    let high = extend(builder, load(high)?, arg.machine, long)?;
                    let high = builder.build_left_shift(high, long.const_int(32, false), "")?;
                    sum = builder.build_int_add(high, sum, "")?;
                }
                let add = |before| builder.build_int_add(before, sum, "");
                self.change_long(record, state.offset, add)?;
                self.add(self.place(record, state.offset + 2)?, load(count)?)
            }
            Register::Extreme { best, count } => {
                let Some(arg) = state.args.first() else { return Ok(()) };
                let MachineType::Integer { bits, .. } = arg.machine else { return Ok(()) };
                let value = builder.build_load(self.emitter.whole_type(bits), best, "")?;
                let some = builder.build_int_compare(
                    IntPredicate::NE,
                    load(count)?,
                    wide.const_zero(),
                    "",
                )?;
                self.extreme(record, state, Value { value, valid: Some(some) }, arg.machine)
            }
            Register::Copied => self.emitter.copy_words(self.area, record, words(state)),
        }
    }
}
