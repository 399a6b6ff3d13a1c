//! Compiles updates of aggregate states: a function over the tuples of a chunk.
//!
//! All arguments of a tuple are computed before its states are changed, so that the vectorized tier
//! can process the tuple instead if it may raise an error.

use std::num::NonZeroU32;

use inkwell::builder::BuilderError;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, FloatValue, IntValue, PointerValue};
use inkwell::{FloatPredicate, IntPredicate};
use tessera_codegen::{MachineType, Operation, StateCode, StepCode, UpdateCode, ValueCode};

use super::NONE;
use super::arithmetic::extend;
use super::emitter::{FunctionEmitter, Row};
use super::grid::lower_for_grid;
use super::provider::{Provider, Sharing};
use super::value::{Built, Value, Values, less, machine_type, set_word_alignment};

/// The name of the function.
pub(crate) const UPDATE: &str = "update";

/// The most bits of a number that a GPU sums.
const SUMMED_BITS: u32 = 96;

/// Whether a tuple passes a stage's filter, and the arguments of the stage's states.
type Arguments<'ctx> = (Option<IntValue<'ctx>>, Vec<Vec<Value<'ctx>>>);

/// Builds the function of some updates.
pub(super) struct Update<'a, 'ctx> {
    pub(super) emitter: FunctionEmitter<'a, 'ctx>,
    pub(super) code: &'a UpdateCode,
    pub(super) groups: PointerValue<'ctx>,
    pub(super) area: PointerValue<'ctx>,
    /// Whether other threads update the area concurrently.
    pub(super) sharing: Sharing,
    /// Set when a sum overflows 128 bits; `None` if no sum can, because all numbers are shorter.
    pub(super) overflow: Option<PointerValue<'ctx>>,
}

/// Adds the function of aggregate updates to a module ([`tessera_codegen::Update::run`]), with the
/// runtime constants after `rows`; for a GPU a kernel ([`super::grid`]).
pub(crate) fn lower_update<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: (&UpdateCode, &[MachineType]),
) -> Built<()> {
    match provider.is_single_threaded() {
        true => lower_for_cpu(of, provider, code),
        false => lower_for_grid(of, provider, code),
    }
}

/// Builds the function for a CPU: processes tuples one by one up to one that may raise an error.
/// With a single group it processes all tuples or none.
fn lower_for_cpu<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    (code, constants): (&UpdateCode, &[MachineType]),
) -> Built<()> {
    let mut emitter = FunctionEmitter::begin(of, (provider, UPDATE), (&code.inputs, constants), 2)?;
    emitter.straight = !code.grouped;
    let no = emitter.context.bool_type().const_zero();
    let overflow = emitter.variable(no)?;
    let (groups, area) = (emitter.parameter(0), emitter.parameter(1));
    if !code.grouped {
        let raised = emitter.variable(no)?;
        let words = emitter.context.i64_type().array_type(code.stride as u32);
        let copy = emitter.builder.build_alloca(words, "states")?;
        let update = Update {
            emitter,
            code,
            groups,
            area: copy,
            sharing: Sharing::Exclusive,
            overflow: Some(overflow),
        };
        return update.lower_in_registers(area, (raised, overflow));
    }
    let update = Update {
        emitter,
        code,
        groups,
        area,
        sharing: Sharing::Exclusive,
        overflow: Some(overflow),
    };
    update.each_row(|done| {
        let (builder, context) = (&update.emitter.builder, update.emitter.context);
        let overflow = builder.build_load(context.bool_type(), overflow, "")?.into_int_value();
        let result = builder.build_select(overflow, update.emitter.number(NONE), done, "")?;
        builder.build_return(Some(&result as &dyn BasicValue<'ctx>))?;
        Ok(())
    })
}

impl<'ctx> Update<'_, 'ctx> {
    /// Emits the loop over this thread's tuples.
    pub(super) fn each_row(&self, finish: impl Fn(IntValue<'ctx>) -> Built<()>) -> Built<()> {
        let (steps, row) = (self.emitter.all_rows()?, |row: &Row<'ctx>| self.row(row));
        match self.code.grouped {
            true => self.emitter.each_row(steps, true, row, finish),
            false => self.emitter.each_row_of_either(steps, row, finish),
        }
    }

    /// Computes for each stage whether the tuple passes its filter, and the arguments of its
    /// states.
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

    /// Updates the states for a tuple, unless it may raise an error.
    fn row(&self, row: &Row<'ctx>) -> Built<()> {
        let builder = &self.emitter.builder;
        let mut values = self.emitter.values(row);
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
            let touch = self.emitter.block("no_error");
            builder.build_conditional_branch(raises, row.end, touch)?;
            builder.position_at_end(touch);
        }
        let record = self.record(row.number)?;
        for (stage, (passes, args)) in self.code.stages.iter().zip(stages) {
            self.emitter.only_if(passes, || {
                let mut states = stage.states.iter().zip(args);
                states.try_for_each(|(state, args)| self.step(&values, state, &args, record))
            })?;
        }
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    }

    /// Returns the record of a tuple's group.
    fn record(&self, row: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        if !self.code.grouped {
            return Ok(self.area);
        }
        let (builder, wide, number) = (
            &self.emitter.builder,
            self.emitter.context.i64_type(),
            self.emitter.context.i32_type(),
        );
        // SAFETY: this only computes an address; the caller's contract covers the access
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
        self.emitter.word(record, self.emitter.number(number as u64))
    }

    /// Records an error for summed numbers of 96 bits or more. Sums of shorter ones cannot overflow
    /// 128 bits.
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
        if !matches!(code.machine, MachineType::Integer { bits: 128, .. }) {
            return Ok(());
        }
        let builder = &self.emitter.builder;
        let short = NonZeroU32::new(SUMMED_BITS)
            .map(|bits| self.emitter.context.custom_width_int_type(bits));
        let Some(Ok(short)) = short else { return Err(BuilderError::BitwidthError) };
        let long = arg.value.into_int_value();
        let cut = builder.build_int_truncate(long, short, "")?;
        let again = builder.build_int_s_extend(cut, long.get_type(), "")?;
        let wrong = builder.build_int_compare(IntPredicate::NE, again, long, "")?;
        values.raise(wrong, arg.valid, passes)
    }

    /// Leaves tuples with an infinite argument of a sum to the vectorized tier, which records
    /// infinity in the state.
    pub(super) fn raise_if_infinite(
        &self,
        values: &mut Values<'_, 'ctx>,
        stages: &[Arguments<'ctx>],
    ) -> Built<()> {
        let builder = &self.emitter.builder;
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

    /// Increments a counter if the tuple is selected.
    fn count(
        &self,
        sharing: Sharing,
        record: PointerValue<'ctx>,
        word: usize,
        selected: Option<IntValue<'ctx>>,
    ) -> Built<()> {
        let one = match selected {
            Some(selected) => self.emitter.builder.build_int_z_extend(
                selected,
                self.emitter.context.i64_type(),
                "",
            )?,
            None => self.emitter.number(1),
        };
        self.emitter.add(sharing, self.place(record, word)?, one)?;
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
        let (builder, sum) = (&self.emitter.builder, self.emitter.context.i128_type());
        let mut value = arg.value.into_int_value();
        if let Some(valid) = arg.valid {
            let nothing = value.get_type().const_zero();
            value = builder.build_select(valid, value, nothing, "")?.into_int_value();
        }
        if self.sharing == Sharing::Worker {
            return self.add_long(record, word, extend(builder, value, code.machine, sum)?);
        }
        self.change_long(record, word, |before| match (code.machine, self.overflow) {
            (MachineType::Integer { bits: 128, .. }, Some(overflow)) => {
                let (after, wrong) = values.overflowing(Operation::Add, true, before, value)?;
                self.emitter.set_flag(overflow, wrong)?;
                Ok(after)
            }
            // Sums of narrower values overflow 128 bits only after the count overflows 64.
            (machine, _) => {
                builder.build_int_add(before, extend(builder, value, machine, sum)?, "")
            }
        })
    }

    /// Updates a 128-bit number in two words.
    pub(super) fn change_long(
        &self,
        record: PointerValue<'ctx>,
        word: usize,
        change: impl FnOnce(IntValue<'ctx>) -> Built<IntValue<'ctx>>,
    ) -> Built<()> {
        let (builder, place) = (&self.emitter.builder, self.place(record, word)?);
        let before = builder.build_load(self.emitter.context.i128_type(), place, "")?;
        set_word_alignment(before.as_instruction_value());
        let after = change(before.into_int_value())?;
        set_word_alignment(Some(builder.build_store(place, after)?));
        Ok(())
    }

    /// Adds to a 128-bit number that other threads also update, word by word. Each thread detects
    /// whether its own addition to the lower word carries.
    pub(super) fn add_long(
        &self,
        record: PointerValue<'ctx>,
        word: usize,
        value: IntValue<'ctx>,
    ) -> Built<()> {
        let (builder, wide) = (&self.emitter.builder, self.emitter.context.i64_type());
        let low = builder.build_int_truncate(value, wide, "")?;
        let shift = value.get_type().const_int(64, false);
        let high = builder.build_right_shift(value, shift, false, "")?;
        let high = builder.build_int_truncate(high, wide, "")?;
        let before = self.emitter.add(Sharing::Worker, self.place(record, word)?, low)?;
        let after = builder.build_int_add(before, low, "")?;
        let carries = builder.build_int_compare(IntPredicate::ULT, after, low, "")?;
        let high =
            builder.build_int_add(high, builder.build_int_z_extend(carries, wide, "")?, "")?;
        self.emitter.add(Sharing::Worker, self.place(record, word + 1)?, high)?;
        Ok(())
    }

    fn float_sum(&self, record: PointerValue<'ctx>, word: usize, arg: Value<'ctx>) -> Built<()> {
        let (builder, double) = (&self.emitter.builder, self.emitter.context.f64_type());
        let mut value = builder.build_float_cast(arg.value.into_float_value(), double, "")?;
        if let Some(valid) = arg.valid {
            // The identity of float addition, also for a sum of -0.
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
        let (builder, wide) = (&self.emitter.builder, self.emitter.context.i64_type());
        self.emitter.change(sharing, place, |before| {
            let before = builder.build_bit_cast(before, value.get_type(), "")?.into_float_value();
            let after = builder.build_float_add(before, value, "")?;
            Ok(builder.build_bit_cast(after, wide, "")?.into_int_value())
        })
    }

    /// Updates a min or max state: the value's bits, extended to words, and whether a value is
    /// present.
    pub(super) fn extreme(
        &self,
        record: PointerValue<'ctx>,
        state: &StateCode,
        arg: Value<'ctx>,
        machine: MachineType,
    ) -> Built<()> {
        let (builder, wide) = (&self.emitter.builder, self.emitter.context.i64_type());
        let is_long = matches!(machine, MachineType::Integer { bits: 128, .. });
        let state_type = if is_long { self.emitter.context.i128_type() } else { wide };
        let bits = match arg.value {
            BasicValueEnum::IntValue(value) => extend(builder, value, machine, state_type)?,
            value => {
                let of = if machine == MachineType::Float32 {
                    self.emitter.context.i32_type()
                } else {
                    wide
                };
                let bits = builder.build_bit_cast(value, of, "")?.into_int_value();
                builder.build_int_z_extend_or_bit_cast(bits, wide, "")?
            }
        };
        if self.sharing == Sharing::Worker {
            return self.update_shared_extreme(record, state, bits, arg.valid, machine);
        }
        let place = self.place(record, state.offset)?;
        let seen_place = self.place(record, state.offset + if is_long { 2 } else { 1 })?;
        let current = builder.build_load(state_type, place, "")?;
        set_word_alignment(current.as_instruction_value());
        let current = current.into_int_value();
        let seen = builder.build_load(wide, seen_place, "")?.into_int_value();
        let replaces = self.is_better(state.step, machine, bits, current)?;
        let is_first = builder.build_int_compare(IntPredicate::EQ, seen, wide.const_zero(), "")?;
        let mut better = builder.build_or(replaces, is_first, "")?;
        if let Some(valid) = arg.valid {
            better = builder.build_and(better, valid, "")?;
        }
        let bits = builder.build_select(better, bits, current, "")?;
        set_word_alignment(Some(builder.build_store(place, bits)?));
        let one = wide.const_int(1, false);
        builder.build_store(seen_place, builder.build_select(better, one, seen, "")?)?;
        Ok(())
    }

    /// Updates a min or max state that other threads also update; it begins with the identity.
    pub(super) fn update_shared_extreme(
        &self,
        record: PointerValue<'ctx>,
        state: &StateCode,
        bits: IntValue<'ctx>,
        valid: Option<IntValue<'ctx>>,
        machine: MachineType,
    ) -> Built<()> {
        let builder = &self.emitter.builder;
        self.emitter.change(Sharing::Worker, self.place(record, state.offset)?, |current| {
            let mut better = self.is_better(state.step, machine, bits, current)?;
            if let Some(valid) = valid {
                better = builder.build_and(better, valid, "")?;
            }
            Ok(builder.build_select(better, bits, current, "")?.into_int_value())
        })?;
        // A count instead of a flag: readers only distinguish zero from nonzero.
        self.count(Sharing::Worker, record, state.offset + 1, valid)
    }

    /// Computes whether one value is better than another: smaller for min, larger for max.
    fn is_better(
        &self,
        step: StepCode,
        machine: MachineType,
        bits: IntValue<'ctx>,
        current: IntValue<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let builder = &self.emitter.builder;
        let of_bits = |bits: IntValue<'ctx>| -> Built<BasicValueEnum<'ctx>> {
            let (narrow, wide) = (self.emitter.context.i32_type(), self.emitter.context.i64_type());
            Ok(match machine_type(self.emitter.context, machine) {
                BasicTypeEnum::IntType(of) => {
                    builder.build_int_truncate_or_bit_cast(bits, of, "")?.into()
                }
                of => {
                    let width = if machine == MachineType::Float32 { narrow } else { wide };
                    let bits = builder.build_int_truncate_or_bit_cast(bits, width, "")?;
                    builder.build_bit_cast(bits, of, "")?
                }
            })
        };
        let (value, current) = (of_bits(bits)?, of_bits(current)?);
        match step {
            StepCode::Min => less(builder, machine, value, current),
            _ => less(builder, machine, current, value),
        }
    }
}
