//! Updates of aggregate states by a grid of threads, in three phases: blocks begin with records without tuples, threads update those of their
//! block, and what a block has come to goes into the records of all (reference 004, Listing 5.1: a strided loop, a reduction of
//! neighbours, worker-scoped atomics).

use inkwell::IntPredicate;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, FunctionValue, IntValue, PointerValue};
use tessera_ops::code::{Machine, StepCode, UpdateCode};

use super::parts::Parts;
use super::provider::{Provider, Sharing};
use super::update::{UPDATE, Update};
use super::value::{Built, in_words};

/// Places of the kernel's own parameters.
const GROUPS: usize = 0;
const AREA: usize = 1;
/// A record of a group without tuples.
const INITIAL: usize = 2;
/// How many groups there are.
const COUNT: usize = 3;
/// Whether there is a scratchpad for all groups of a block: not null.
const IN_SCRATCHPAD: usize = 4;
/// A word that is set where a tuple perhaps raises an error.
const RAISED: usize = 5;
const OTHERS: usize = 6;

type Of<'a, 'ctx> = (&'ctx Context, &'a Module<'ctx>);

/// Adds the kernel of some updates to a module.
pub(super) fn by_grid<'ctx>(
    of: Of<'_, 'ctx>,
    provider: Provider,
    code: (&UpdateCode, &[Machine]),
) -> Built<()> {
    let begin = begin_blocks(of, provider, code)?;
    let phases = [begin, update_rows(of, provider, code)?, end_blocks(of, provider, code)?];
    provider.join(of, UPDATE, &phases)
}

/// The records of a block, in its scratchpad if there is room, and else those of the whole grid.
fn records_of_block<'ctx>(parts: &Parts<'_, 'ctx>) -> Built<PointerValue<'ctx>> {
    let outside = parts.builder.build_is_null(parts.other(IN_SCRATCHPAD), "outside")?;
    let records = parts.builder.build_select(outside, parts.other(AREA), parts.worker.scratchpad, "")?;
    Ok(records.into_pointer_value())
}

/// How many groups there are, for what a block has in its scratchpad: else none.
fn groups_of_block<'ctx>(parts: &Parts<'_, 'ctx>) -> Built<IntValue<'ctx>> {
    let (builder, wide) = (&parts.builder, parts.context.i64_type());
    let outside = builder.build_is_null(parts.other(IN_SCRATCHPAD), "outside")?;
    let count = builder.build_ptr_to_int(parts.other(COUNT), wide, "")?;
    Ok(builder.build_select(outside, wide.const_zero(), count, "")?.into_int_value())
}

/// The first phase: a block's own records begin like new ones.
fn begin_blocks<'ctx>(
    of: Of<'_, 'ctx>,
    provider: Provider,
    (code, _): (&UpdateCode, &[Machine]),
) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, "update.begin"), (&[], &[]), OTHERS)?;
    let stride = parts.number(code.stride as u64);
    let words = parts.builder.build_int_mul(groups_of_block(&parts)?, stride, "")?;
    parts.each(parts.by_lanes(words), |word, next, _| {
        let (builder, wide) = (&parts.builder, parts.context.i64_type());
        let of_record = builder.build_int_unsigned_rem(word, stride, "")?;
        let initial = builder.build_load(wide, parts.word(parts.other(INITIAL), of_record)?, "")?;
        builder.build_store(parts.word(parts.worker.scratchpad, word)?, initial)?;
        builder.build_unconditional_branch(next)?;
        Ok(())
    })?;
    parts.builder.build_return(None)?;
    Ok(parts.function)
}

/// The second phase: each thread's tuples. Where all belong to one group, a thread has a record of its own (in registers) until its end.
fn update_rows<'ctx>(
    of: Of<'_, 'ctx>,
    provider: Provider,
    (code, given): (&UpdateCode, &[Machine]),
) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, "update.rows"), (&code.inputs, given), OTHERS)?;
    let (groups, records, raised) = (parts.other(GROUPS), records_of_block(&parts)?, parts.other(RAISED));
    let (area, sharing) = match code.grouped {
        true => (records, Sharing::Worker),
        false => (own_record(&parts, code.stride)?, Sharing::Alone),
    };
    let update = Update { parts, code, groups, area, sharing, overflow: None };
    let (parts, builder) = (&update.parts, &update.parts.builder);
    update.each_row(|done| {
        parts.note_early(raised, (done, parts.rows))?;
        if !code.grouped {
            update.merge(area, records)?;
        }
        builder.build_return(None)?;
        Ok(())
    })?;
    Ok(update.parts.function)
}

/// A record of this thread alone, without tuples.
fn own_record<'ctx>(parts: &Parts<'_, 'ctx>, stride: usize) -> Built<PointerValue<'ctx>> {
    let words = parts.context.i64_type().array_type(stride as u32);
    let own = parts.builder.build_alloca(words, "own")?;
    parts.copy_words(parts.other(INITIAL), own, 0..stride)?;
    Ok(own)
}

/// The last phase: a block's own records are merged into those of the grid.
fn end_blocks<'ctx>(
    of: Of<'_, 'ctx>,
    provider: Provider,
    (code, _): (&UpdateCode, &[Machine]),
) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, "update.end"), (&[], &[]), OTHERS)?;
    let (groups, area) = (parts.other(GROUPS), parts.other(AREA));
    let update = Update { parts, code, groups, area, sharing: Sharing::Worker, overflow: None };
    let parts = &update.parts;
    let count = groups_of_block(parts)?;
    parts.each(parts.by_lanes(count), |group, next, _| {
        let word = parts.builder.build_int_mul(group, parts.number(code.stride as u64), "")?;
        update.merge(parts.word(parts.worker.scratchpad, word)?, parts.word(area, word)?)?;
        parts.builder.build_unconditional_branch(next)?;
        Ok(())
    })?;
    parts.builder.build_return(None)?;
    Ok(update.parts.function)
}

impl<'ctx> Update<'_, 'ctx> {
    /// Adds what one record has come to to another, which other threads change, too.
    fn merge(&self, from: PointerValue<'ctx>, to: PointerValue<'ctx>) -> Built<()> {
        let (builder, wide) = (&self.parts.builder, self.parts.context.i64_type());
        let read = |word: usize| -> Built<IntValue<'ctx>> {
            Ok(builder.build_load(wide, self.place(from, word)?, "")?.into_int_value())
        };
        let add = |word: usize| self.parts.add(Sharing::Worker, self.place(to, word)?, read(word)?);
        for state in self.code.stages.iter().flat_map(|stage| &stage.states) {
            let offset = state.offset;
            match (state.step, &state.args[..]) {
                (StepCode::Count, _) => {
                    add(offset)?;
                }
                (StepCode::ExactSum, _) => {
                    let long =
                        builder.build_load(self.parts.context.i128_type(), self.place(from, offset)?, "")?;
                    in_words(long.as_instruction_value());
                    self.add_long(to, offset, long.into_int_value())?;
                    add(offset + 2)?;
                }
                (StepCode::FloatSum, _) => {
                    let double = self.parts.context.f64_type();
                    let more = builder.build_bit_cast(read(offset)?, double, "")?.into_float_value();
                    self.add_float(Sharing::Worker, self.place(to, offset)?, more)?;
                    add(offset + 1)?;
                }
                (StepCode::Min | StepCode::Max, [code]) => {
                    let seen = read(offset + 1)?;
                    let is_there =
                        builder.build_int_compare(IntPredicate::NE, seen, wide.const_zero(), "")?;
                    self.keep_closer(to, state, read(offset)?, Some(is_there), code.machine)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
