//! Predicates: a function that writes the positions of the tuples for which one is true.

use inkwell::IntPredicate;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, FunctionValue, IntValue, PointerValue};
use tessera_ops::code::{Machine, SelectCode};

use super::NONE;
use super::parts::{Parts, Row, Steps};
use super::provider::Provider;
use super::value::Built;

/// The name of the function.
pub(crate) const SELECT: &str = "select";

/// Where the positions go: the first of its own parameters. The others are a GPU's.
const OUT: usize = 0;
/// For each block, how many tuples it has found.
const FOUND: usize = 1;
/// For each tuple, whether it was found: a byte.
const FLAGS: usize = 2;
/// A word that is set where a tuple perhaps raises an error.
const RAISED: usize = 3;
const OTHERS: usize = 4;

type Of<'a, 'ctx> = (&'ctx Context, &'a Module<'ctx>);

/// Adds the function of a predicate to a module, as [`tessera_ops::code::Select::run`] has it, with the numbers it is given behind `rows`;
/// for a GPU a kernel. Each of its blocks takes as many tuples, one behind the other, and writes what it finds to where its first tuple
/// would stand.
pub(crate) fn lower_select<'ctx>(
    of: Of<'_, 'ctx>,
    provider: Provider,
    code: (&SelectCode, &[Machine]),
) -> Built<()> {
    if provider.is_alone() {
        return alone(of, provider, code);
    }
    let phases =
        [flag(of, provider, code)?, count(of, provider)?, place(of, provider)?, write(of, provider)?];
    provider.join(of, SELECT, &phases)
}

/// All tuples, one after the other.
fn alone<'ctx>(of: Of<'_, 'ctx>, provider: Provider, (code, given): (&SelectCode, &[Machine])) -> Built<()> {
    let parts = Parts::begin(of, (provider, SELECT), (&code.inputs, given), 1)?;
    let context = parts.context;
    let (wide, builder) = (context.i64_type(), &parts.builder);
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
        parts.write_position(count, row.position)?;
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
    parts.each_row_of_either(parts.all_rows()?, row, |_| {
        let count = builder.build_load(wide, found, "")?.into_int_value();
        let raised = builder.build_load(context.bool_type(), raised, "")?.into_int_value();
        let result = builder.build_select(raised, wide.const_int(NONE, false), count, "")?;
        builder.build_return(Some(&result as &dyn BasicValue<'ctx>))?;
        Ok(())
    })
}

/// The first phase: which tuples are found.
fn flag<'ctx>(
    of: Of<'_, 'ctx>,
    provider: Provider,
    (code, given): (&SelectCode, &[Machine]),
) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, "select.flag"), (&code.inputs, given), OTHERS)?;
    let (builder, raised) = (&parts.builder, parts.other(RAISED));
    let tuples = parts.of_block()?;
    let first = builder.build_int_add(tuples.first, parts.worker.lane, "")?;
    let steps = Steps { first, step: parts.worker.lanes, ..tuples };
    let row = |row: &Row<'ctx>| {
        let mut values = parts.values(row);
        let is_true = values.truth(&code.predicate, None)?;
        let byte = builder.build_int_z_extend(is_true, parts.context.i8_type(), "")?;
        builder.build_store(parts.flag(row.number)?, byte)?;
        match values.raised {
            Some(raises) => builder.build_conditional_branch(raises, row.end, row.next)?,
            None => builder.build_unconditional_branch(row.next)?,
        };
        Ok(())
    };
    parts.each_row_of_either(steps, row, |done| {
        let (early, late) = (parts.block("early"), parts.block("late"));
        let is_early = builder.build_int_compare(IntPredicate::ULT, done, tuples.below, "")?;
        builder.build_conditional_branch(is_early, early, late)?;
        builder.position_at_end(early);
        builder.build_store(raised, parts.number(1))?;
        builder.build_unconditional_branch(late)?;
        builder.position_at_end(late);
        builder.build_return(None)?;
        Ok(())
    })?;
    Ok(parts.function)
}

/// The second: how many there are among those of each lane, now one behind the other.
fn count<'ctx>(of: Of<'_, 'ctx>, provider: Provider) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, "select.count"), (&[], &[]), OTHERS)?;
    let builder = &parts.builder;
    let found = builder.build_alloca(parts.context.i64_type(), "found")?;
    builder.build_store(found, parts.number(0))?;
    parts.each(parts.of_lane()?, |number, next, _| {
        parts.count_flag(found, number)?;
        builder.build_unconditional_branch(next)?;
        Ok(())
    })?;
    let found = builder.build_load(parts.context.i64_type(), found, "")?;
    builder.build_store(parts.word(parts.worker.scratchpad, parts.worker.lane)?, found)?;
    builder.build_return(None)?;
    Ok(parts.function)
}

/// The third: how many stand before those of each lane, by the first one of the block.
fn place<'ctx>(of: Of<'_, 'ctx>, provider: Provider) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, "select.place"), (&[], &[]), OTHERS)?;
    let (builder, wide) = (&parts.builder, parts.context.i64_type());
    let (first, rest) = (parts.block("first"), parts.block("rest"));
    let is_first = builder.build_int_compare(IntPredicate::EQ, parts.worker.lane, parts.number(0), "")?;
    builder.build_conditional_branch(is_first, first, rest)?;
    builder.position_at_end(first);
    let before = builder.build_alloca(wide, "before")?;
    builder.build_store(before, parts.number(0))?;
    let lanes = Steps { first: parts.number(0), below: parts.worker.lanes, step: parts.number(1) };
    parts.each(lanes, |lane, next, _| {
        let word = parts.word(parts.worker.scratchpad, lane)?;
        let of_lane = builder.build_load(wide, word, "")?.into_int_value();
        let sum = builder.build_load(wide, before, "")?.into_int_value();
        builder.build_store(word, sum)?;
        builder.build_store(before, builder.build_int_add(sum, of_lane, "")?)?;
        builder.build_unconditional_branch(next)?;
        Ok(())
    })?;
    let all = builder.build_load(wide, before, "")?;
    builder.build_store(parts.word(parts.other(FOUND), parts.worker.block)?, all)?;
    builder.build_unconditional_branch(rest)?;
    builder.position_at_end(rest);
    builder.build_return(None)?;
    Ok(parts.function)
}

/// The last: each lane writes the positions of its tuples.
fn write<'ctx>(of: Of<'_, 'ctx>, provider: Provider) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, "select.write"), (&[], &[]), OTHERS)?;
    let (builder, wide) = (&parts.builder, parts.context.i64_type());
    let found = builder.build_alloca(wide, "found")?;
    let before = parts.word(parts.worker.scratchpad, parts.worker.lane)?;
    let before = builder.build_load(wide, before, "")?.into_int_value();
    let start = parts.of_block()?.first;
    builder.build_store(found, builder.build_int_add(start, before, "")?)?;
    let row = |row: &Row<'ctx>| {
        let (is_found, after) = (parts.block("found"), parts.block("after"));
        let byte = parts.context.i8_type();
        let flag = builder.build_load(byte, parts.flag(row.number)?, "")?.into_int_value();
        let is_set = builder.build_int_compare(IntPredicate::NE, flag, byte.const_zero(), "")?;
        builder.build_conditional_branch(is_set, is_found, after)?;
        builder.position_at_end(is_found);
        let count = builder.build_load(wide, found, "")?.into_int_value();
        parts.write_position(count, row.position)?;
        builder.build_store(found, builder.build_int_add(count, parts.number(1), "")?)?;
        builder.build_unconditional_branch(after)?;
        builder.position_at_end(after);
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    };
    parts.each_row_of_either(parts.of_lane()?, row, |_| {
        builder.build_return(None)?;
        Ok(())
    })?;
    Ok(parts.function)
}

impl<'ctx> Parts<'_, 'ctx> {
    /// As many as `all` for each of so many, rounded up, of which one takes its own: those from the first on, at most to the end.
    fn share(&self, all: Steps<'ctx>, number: IntValue<'ctx>, of: IntValue<'ctx>) -> Built<Steps<'ctx>> {
        let builder = &self.builder;
        let one = self.number(1);
        let many = builder.build_int_sub(all.below, all.first, "")?;
        let above = builder.build_int_add(many, builder.build_int_sub(of, one, "")?, "")?;
        let share = builder.build_int_unsigned_div(above, of, "")?;
        let at_most = |number: IntValue<'ctx>| -> Built<IntValue<'ctx>> {
            let offset = builder.build_int_mul(number, share, "")?;
            let is_less = builder.build_int_compare(IntPredicate::ULT, offset, many, "")?;
            let offset = builder.build_select(is_less, offset, many, "")?.into_int_value();
            builder.build_int_add(all.first, offset, "")
        };
        let next = builder.build_int_add(number, one, "")?;
        Ok(Steps { first: at_most(number)?, below: at_most(next)?, step: one })
    }

    /// The tuples of this block.
    fn of_block(&self) -> Built<Steps<'ctx>> {
        let all = Steps { first: self.number(0), below: self.rows, step: self.number(1) };
        self.share(all, self.worker.block, self.worker.blocks)
    }

    /// The tuples of this lane of its block.
    fn of_lane(&self) -> Built<Steps<'ctx>> {
        self.share(self.of_block()?, self.worker.lane, self.worker.lanes)
    }

    fn write_position(&self, at: IntValue<'ctx>, position: IntValue<'ctx>) -> Built<()> {
        let (builder, narrow) = (&self.builder, self.context.i32_type());
        // SAFETY: an address is computed; there is room for all tuples, by the caller's promise.
        let place = unsafe { builder.build_in_bounds_gep(narrow, self.other(OUT), &[at], "")? };
        builder.build_store(place, builder.build_int_truncate(position, narrow, "")?)?;
        Ok(())
    }

    fn flag(&self, number: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        let byte = self.context.i8_type();
        // SAFETY: an address is computed; who launches a kernel has room for a flag of each tuple.
        unsafe { self.builder.build_in_bounds_gep(byte, self.other(FLAGS), &[number], "") }
    }

    fn count_flag(&self, found: PointerValue<'ctx>, number: IntValue<'ctx>) -> Built<()> {
        let (builder, wide) = (&self.builder, self.context.i64_type());
        let flag = builder.build_load(self.context.i8_type(), self.flag(number)?, "")?.into_int_value();
        let before = builder.build_load(wide, found, "")?.into_int_value();
        let after = builder.build_int_add(before, builder.build_int_z_extend(flag, wide, "")?, "")?;
        builder.build_store(found, after)?;
        Ok(())
    }
}
