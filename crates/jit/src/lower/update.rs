//! Updates of aggregate states: a function over the tuples of a chunk.
//!
//! Of each tuple all arguments are computed before its states are touched, so that it can be left
//! to the vectorised tier where it raises an error.

use std::num::NonZeroU32;

use inkwell::builder::BuilderError;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, FloatValue, IntValue, PointerValue};
use inkwell::{FloatPredicate, IntPredicate};
use tessera_codegen::{Machine, Operation, StateCode, StepCode, UpdateCode, ValueCode};

use super::NONE;
use super::arithmetic::extended;
use super::grid::by_grid;
use super::parts::{Parts, Row};
use super::provider::{Provider, Sharing};
use super::value::{Built, Value, Values, in_words, less, machine_type};

/// The name of the function.
pub(crate) const UPDATE: &str = "update";

/// How long numbers are that a GPU sums.
const SUMMED_BITS: u32 = 96;

/// Whether a tuple passes a filter, and the arguments of states.
type Arguments<'ctx> = (Option<IntValue<'ctx>>, Vec<Vec<Value<'ctx>>>);

/// Updates that become a function.
pub(super) struct Update<'a, 'ctx> {
    pub(super) parts: Parts<'a, 'ctx>,
    pub(super) code: &'a UpdateCode,
    pub(super) groups: PointerValue<'ctx>,
    pub(super) area: PointerValue<'ctx>,
    /// Whether other threads work on the area meanwhile.
    pub(super) sharing: Sharing,
    /// Where it is noted that a sum has left its 128 bits; absent where no sum can, since it takes
    /// no long numbers.
    pub(super) overflow: Option<PointerValue<'ctx>>,
}

/// Adds the function of some updates to a module, as [`tessera_codegen::Update::run`] has it, with
/// the numbers it is given behind `rows`; for a GPU a kernel ([`super::grid`]).
pub(crate) fn lower_update<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: (&UpdateCode, &[Machine]),
) -> Built<()> {
    match provider.is_alone() {
        true => alone(of, provider, code),
        false => by_grid(of, provider, code),
    }
}

/// All tuples, one after the other, up to one that perhaps raises an error; of one group all or
/// none.
fn alone<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    (code, given): (&UpdateCode, &[Machine]),
) -> Built<()> {
    let mut parts = Parts::begin(of, (provider, UPDATE), (&code.inputs, given), 2)?;
    parts.straight = !code.grouped;
    let no = parts.context.bool_type().const_zero();
    let overflow = parts.variable(no)?;
    let (groups, area) = (parts.other(0), parts.other(1));
    if !code.grouped {
        let raised = parts.variable(no)?;
        let words = parts.context.i64_type().array_type(code.stride as u32);
        let copy = parts.builder.build_alloca(words, "states")?;
        let update = Update {
            parts,
            code,
            groups,
            area: copy,
            sharing: Sharing::Alone,
            overflow: Some(overflow),
        };
        return update.at_once(area, (raised, overflow));
    }
    let update =
        Update { parts, code, groups, area, sharing: Sharing::Alone, overflow: Some(overflow) };
    update.each_row(|done| {
        let (builder, context) = (&update.parts.builder, update.parts.context);
        let overflow = builder.build_load(context.bool_type(), overflow, "")?.into_int_value();
        let result = builder.build_select(overflow, update.parts.number(NONE), done, "")?;
        builder.build_return(Some(&result as &dyn BasicValue<'ctx>))?;
        Ok(())
    })
}

impl<'ctx> Update<'_, 'ctx> {
    /// What this thread's tuples do to the states.
    pub(super) fn each_row(&self, finish: impl Fn(IntValue<'ctx>) -> Built<()>) -> Built<()> {
        let (steps, row) = (self.parts.all_rows()?, |row: &Row<'ctx>| self.row(row));
        match self.code.grouped {
            true => self.parts.each_row(steps, true, row, finish),
            false => self.parts.each_row_of_either(steps, row, finish),
        }
    }

    /// Of each stage, whether a tuple passes its filter, and the arguments of its states.
    pub(super) fn arguments(&self, values: &mut Values<'_, 'ctx>) -> Built<Vec<Arguments<'ctx>>> {
        for code in &self.code.shared {
            let value = values.value(code, None)?;
            values.shared.push(value);
        }
        let mut stages = Vec::with_capacity(self.code.stages.len());
        for stage in &self.code.stages {
            let filter = stage.filter.as_ref();
            let passes = filter.map(|filter| values.truth(filter, None)).transpose()?;
            let mut args = |state: &StateCode| {
                state.args.iter().map(|code| values.value(code, passes)).collect()
            };
            stages.push((passes, stage.states.iter().map(&mut args).collect::<Built<_>>()?));
        }
        Ok(stages)
    }

    /// What a tuple does to the states, unless it perhaps raises an error.
    fn row(&self, row: &Row<'ctx>) -> Built<()> {
        let builder = &self.parts.builder;
        let mut values = self.parts.values(row);
        let stages = self.arguments(&mut values)?;
        self.raise_if_infinite(&mut values, &stages)?;
        if self.overflow.is_none() {
            let with_args = self.code.stages.iter().zip(&stages);
            for (state, args, passes) in with_args.flat_map(|(stage, (passes, args))| {
                stage.states.iter().zip(args).map(move |(state, args)| (state, args, *passes))
            }) {
                self.raise_if_long(&mut values, state, args, passes)?;
            }
        }
        if let Some(raises) = values.raised {
            let touch = self.parts.block("no_error");
            builder.build_conditional_branch(raises, row.end, touch)?;
            builder.position_at_end(touch);
        }
        let record = self.record(row.number)?;
        for (stage, (passes, args)) in self.code.stages.iter().zip(stages) {
            self.parts.only_if(passes, || {
                let mut states = stage.states.iter().zip(args);
                states.try_for_each(|(state, args)| self.step(&values, state, &args, record))
            })?;
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
        // SAFETY: an address is computed; what is read there is the caller's promise
        // (`Update::run`).
        let at = unsafe { builder.build_in_bounds_gep(number, self.groups, &[row], "")? };
        let group = builder.build_load(number, at, "")?.into_int_value();
        let group = builder.build_int_z_extend(group, wide, "")?;
        let word =
            builder.build_int_nuw_mul(group, wide.const_int(self.code.stride as u64, false), "")?;
        // SAFETY: as above.
        unsafe { builder.build_in_bounds_gep(wide, self.area, &[word], "") }
    }

    pub(super) fn place(
        &self,
        record: PointerValue<'ctx>,
        number: usize,
    ) -> Built<PointerValue<'ctx>> {
        self.parts.word(record, self.parts.number(number as u64))
    }

    /// Notes an error where a sum takes a number of 96 bits or more: of shorter ones, as many as
    /// there can be stay within 128 bits.
    fn raise_if_long(
        &self,
        values: &mut Values<'_, 'ctx>,
        state: &StateCode,
        args: &[Value<'ctx>],
        passes: Option<IntValue<'ctx>>,
    ) -> Built<()> {
        let (StepCode::ExactSum, [arg], [code]) = (state.step, args, &state.args[..]) else {
            return Ok(());
        };
        if !matches!(code.machine, Machine::Integer { bits: 128, .. }) {
            return Ok(());
        }
        let builder = &self.parts.builder;
        let short =
            NonZeroU32::new(SUMMED_BITS).map(|bits| self.parts.context.custom_width_int_type(bits));
        let Some(Ok(short)) = short else { return Err(BuilderError::BitwidthError) };
        let long = arg.value.into_int_value();
        let cut = builder.build_int_truncate(long, short, "")?;
        let again = builder.build_int_s_extend(cut, long.get_type(), "")?;
        let wrong = builder.build_int_compare(IntPredicate::NE, again, long, "")?;
        values.raise(wrong, arg.valid, passes)
    }

    /// Leaves tuples whose infinite value a sum takes to the vectorised tier, which notes in the
    /// state that there was one.
    pub(super) fn raise_if_infinite(
        &self,
        values: &mut Values<'_, 'ctx>,
        stages: &[Arguments<'ctx>],
    ) -> Built<()> {
        let builder = &self.parts.builder;
        for (stage, (passes, args)) in self.code.stages.iter().zip(stages) {
            for (state, args) in stage.states.iter().zip(args) {
                let (StepCode::FloatSum, [arg]) = (state.step, &args[..]) else { continue };
                let value = arg.value.into_float_value();
                let is = |number: f64| {
                    let number = value.get_type().const_float(number);
                    builder.build_float_compare(FloatPredicate::OEQ, value, number, "")
                };
                let infinite = builder.build_or(is(f64::INFINITY)?, is(f64::NEG_INFINITY)?, "")?;
                values.raise(infinite, arg.valid, *passes)?;
            }
        }
        Ok(())
    }

    pub(super) fn step(
        &self,
        values: &Values<'_, 'ctx>,
        state: &StateCode,
        args: &[Value<'ctx>],
        record: PointerValue<'ctx>,
    ) -> Built<()> {
        let valid = values.all_valid(args)?;
        match (state.step, args, &state.args[..]) {
            (StepCode::Count, ..) => self.count(self.sharing, record, state.offset, valid),
            (StepCode::ExactSum, [arg], [code]) => {
                self.exact_sum(values, record, state.offset, *arg, code)?;
                self.count(self.sharing, record, state.offset + 2, valid)
            }
            (StepCode::FloatSum, [arg], _) => {
                self.float_sum(record, state.offset, *arg)?;
                self.count(self.sharing, record, state.offset + 1, valid)
            }
            (StepCode::Min | StepCode::Max, [arg], [code]) => {
                self.extreme(record, state, *arg, code.machine)
            }
            // A step without its argument does nothing.
            _ => Ok(()),
        }
    }

    /// One more where the tuple counts.
    fn count(
        &self,
        sharing: Sharing,
        record: PointerValue<'ctx>,
        word: usize,
        counts: Option<IntValue<'ctx>>,
    ) -> Built<()> {
        let one = match counts {
            Some(counts) => {
                self.parts.builder.build_int_z_extend(counts, self.parts.context.i64_type(), "")?
            }
            None => self.parts.number(1),
        };
        self.parts.add(sharing, self.place(record, word)?, one)?;
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
        let mut value = arg.value.into_int_value();
        if let Some(valid) = arg.valid {
            let nothing = value.get_type().const_zero();
            value = builder.build_select(valid, value, nothing, "")?.into_int_value();
        }
        if self.sharing == Sharing::Worker {
            return self.add_long(record, word, extended(builder, value, code.machine, sum)?);
        }
        self.change_long(record, word, |before| match (code.machine, self.overflow) {
            (Machine::Integer { bits: 128, .. }, Some(overflow)) => {
                let (after, wrong) = values.overflowing(Operation::Add, true, before, value)?;
                self.parts.note(overflow, wrong)?;
                Ok(after)
            }
            // Narrower values cannot leave 128 bits before the count leaves its 64.
            (machine, _) => {
                builder.build_int_add(before, extended(builder, value, machine, sum)?, "")
            }
        })
    }

    /// Puts another number in the place of the 128 bits in two words.
    pub(super) fn change_long(
        &self,
        record: PointerValue<'ctx>,
        word: usize,
        change: impl FnOnce(IntValue<'ctx>) -> Built<IntValue<'ctx>>,
    ) -> Built<()> {
        let (builder, place) = (&self.parts.builder, self.place(record, word)?);
        let before = builder.build_load(self.parts.context.i128_type(), place, "")?;
        in_words(before.as_instruction_value());
        let after = change(before.into_int_value())?;
        in_words(Some(builder.build_store(place, after)?));
        Ok(())
    }

    /// Adds to 128 bits that others add to, too, word by word: each sees whether its own addition
    /// to the lower one carries.
    pub(super) fn add_long(
        &self,
        record: PointerValue<'ctx>,
        word: usize,
        value: IntValue<'ctx>,
    ) -> Built<()> {
        let (builder, wide) = (&self.parts.builder, self.parts.context.i64_type());
        let low = builder.build_int_truncate(value, wide, "")?;
        let shift = value.get_type().const_int(64, false);
        let high = builder.build_right_shift(value, shift, false, "")?;
        let high = builder.build_int_truncate(high, wide, "")?;
        let before = self.parts.add(Sharing::Worker, self.place(record, word)?, low)?;
        let after = builder.build_int_add(before, low, "")?;
        let carries = builder.build_int_compare(IntPredicate::ULT, after, low, "")?;
        let high =
            builder.build_int_add(high, builder.build_int_z_extend(carries, wide, "")?, "")?;
        self.parts.add(Sharing::Worker, self.place(record, word + 1)?, high)?;
        Ok(())
    }

    fn float_sum(&self, record: PointerValue<'ctx>, word: usize, arg: Value<'ctx>) -> Built<()> {
        let (builder, double) = (&self.parts.builder, self.parts.context.f64_type());
        let mut value = builder.build_float_cast(arg.value.into_float_value(), double, "")?;
        if let Some(valid) = arg.valid {
            // What changes no sum, not even one of -0.
            let nothing = double.const_float(-0.0);
            value = builder.build_select(valid, value, nothing, "")?.into_float_value();
        }
        self.add_float(self.sharing, self.place(record, word)?, value)
    }

    pub(super) fn add_float(
        &self,
        sharing: Sharing,
        place: PointerValue<'ctx>,
        value: FloatValue<'ctx>,
    ) -> Built<()> {
        let (builder, wide) = (&self.parts.builder, self.parts.context.i64_type());
        self.parts.change(sharing, place, |before| {
            let before = builder.build_bit_cast(before, value.get_type(), "")?.into_float_value();
            let after = builder.build_float_add(before, value, "")?;
            Ok(builder.build_bit_cast(after, wide, "")?.into_int_value())
        })
    }

    /// The smaller or larger of a value and what is kept: its bits, widened to words, and that
    /// there is one.
    pub(super) fn extreme(
        &self,
        record: PointerValue<'ctx>,
        state: &StateCode,
        arg: Value<'ctx>,
        machine: Machine,
    ) -> Built<()> {
        let (builder, wide) = (&self.parts.builder, self.parts.context.i64_type());
        let is_long = matches!(machine, Machine::Integer { bits: 128, .. });
        let kept_type = if is_long { self.parts.context.i128_type() } else { wide };
        let bits = match arg.value {
            BasicValueEnum::IntValue(value) => extended(builder, value, machine, kept_type)?,
            value => {
                let of =
                    if machine == Machine::Float32 { self.parts.context.i32_type() } else { wide };
                let bits = builder.build_bit_cast(value, of, "")?.into_int_value();
                builder.build_int_z_extend_or_bit_cast(bits, wide, "")?
            }
        };
        if self.sharing == Sharing::Worker {
            return self.keep_closer(record, state, bits, arg.valid, machine);
        }
        let place = self.place(record, state.offset)?;
        let seen_place = self.place(record, state.offset + if is_long { 2 } else { 1 })?;
        let kept = builder.build_load(kept_type, place, "")?;
        in_words(kept.as_instruction_value());
        let kept = kept.into_int_value();
        let seen = builder.build_load(wide, seen_place, "")?.into_int_value();
        let closer = self.is_closer(state.step, machine, bits, kept)?;
        let is_first = builder.build_int_compare(IntPredicate::EQ, seen, wide.const_zero(), "")?;
        let mut better = builder.build_or(closer, is_first, "")?;
        if let Some(valid) = arg.valid {
            better = builder.build_and(better, valid, "")?;
        }
        let bits = builder.build_select(better, bits, kept, "")?;
        in_words(Some(builder.build_store(place, bits)?));
        let one = wide.const_int(1, false);
        builder.build_store(seen_place, builder.build_select(better, one, seen, "")?)?;
        Ok(())
    }

    /// The smaller or larger of a value and what is kept where others keep theirs, too: what is
    /// kept at first is further than any.
    pub(super) fn keep_closer(
        &self,
        record: PointerValue<'ctx>,
        state: &StateCode,
        bits: IntValue<'ctx>,
        valid: Option<IntValue<'ctx>>,
        machine: Machine,
    ) -> Built<()> {
        let builder = &self.parts.builder;
        self.parts.change(Sharing::Worker, self.place(record, state.offset)?, |kept| {
            let mut better = self.is_closer(state.step, machine, bits, kept)?;
            if let Some(valid) = valid {
                better = builder.build_and(better, valid, "")?;
            }
            Ok(builder.build_select(better, bits, kept, "")?.into_int_value())
        })?;
        // How many, instead of one: who reads it asks for none or some.
        self.count(Sharing::Worker, record, state.offset + 1, valid)
    }

    /// Whether the value of some bits is smaller, or larger, than that of others.
    fn is_closer(
        &self,
        step: StepCode,
        machine: Machine,
        bits: IntValue<'ctx>,
        kept: IntValue<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let builder = &self.parts.builder;
        let of_bits = |bits: IntValue<'ctx>| -> Built<BasicValueEnum<'ctx>> {
            let (narrow, wide) = (self.parts.context.i32_type(), self.parts.context.i64_type());
            Ok(match machine_type(self.parts.context, machine) {
                BasicTypeEnum::IntType(of) => {
                    builder.build_int_truncate_or_bit_cast(bits, of, "")?.into()
                }
                of => {
                    let width = if machine == Machine::Float32 { narrow } else { wide };
                    let bits = builder.build_int_truncate_or_bit_cast(bits, width, "")?;
                    builder.build_bit_cast(bits, of, "")?
                }
            })
        };
        let (value, kept) = (of_bits(bits)?, of_bits(kept)?);
        match step {
            StepCode::Min => less(builder, machine, value, kept),
            _ => less(builder, machine, kept, value),
        }
    }
}
