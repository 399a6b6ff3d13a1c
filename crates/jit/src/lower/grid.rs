//! Updates of aggregate states by a grid of threads, in four phases: blocks begin with records
//! without tuples, threads update those of their block, of which there are several copies for
//! neighbours not to wait for each other, the copies become one, and what a block has come to goes
//! into the records of all (reference 004, Listing 5.1: a strided loop, a reduction of neighbours,
//! worker-scoped atomics).

use inkwell::IntPredicate;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, FunctionValue, IntValue, PointerValue};
use tessera_codegen::{Machine, StepCode, UpdateCode};

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
/// How many copies of all records a block's scratchpad has: a power of two, or none where there is
/// no room.
const COPIES: usize = 4;
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
    let phases = [
        begin_blocks(of, provider, code)?,
        update_rows(of, provider, code)?,
        // All copies but the first into that, and that into those of the grid.
        merge_copies(
            (of, provider, "update.join"),
            code,
            (IntPredicate::NE, |parts| parts.worker.scratchpad),
        )?,
        merge_copies(
            (of, provider, "update.end"),
            code,
            (IntPredicate::EQ, |parts| parts.other(AREA)),
        )?,
    ];
    provider.join(of, UPDATE, &phases)
}

/// The copies of records that a block has.
struct Copies<'ctx> {
    /// How many there are.
    count: IntValue<'ctx>,
    /// How many groups each has.
    groups: IntValue<'ctx>,
    /// How many words of the scratchpad each has: an odd number, for those of the same group to lie
    /// in different banks.
    words: IntValue<'ctx>,
}

impl<'ctx> Copies<'ctx> {
    fn of(parts: &Parts<'_, 'ctx>, stride: usize) -> Built<Copies<'ctx>> {
        let (builder, wide) = (&parts.builder, parts.context.i64_type());
        let number = |at| builder.build_ptr_to_int(parts.other(at), wide, "");
        let (count, groups) = (number(COPIES)?, number(COUNT)?);
        let words = builder.build_int_mul(groups, parts.number(stride as u64), "")?;
        let words = builder.build_or(words, parts.number(1), "words")?;
        Ok(Copies { count, groups, words })
    }

    /// Which copy a number falls to.
    fn choose(&self, parts: &Parts<'_, 'ctx>, number: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let mask = parts.builder.build_int_sub(self.count, parts.number(1), "")?;
        parts.builder.build_and(number, mask, "copy")
    }

    /// Where the records of a copy begin.
    fn place(&self, parts: &Parts<'_, 'ctx>, copy: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        parts.word(parts.worker.scratchpad, parts.builder.build_int_mul(copy, self.words, "")?)
    }

    /// A record of each copy in turn, and then of the next group.
    fn each_record(
        &self,
        parts: &Parts<'_, 'ctx>,
        stride: usize,
        each: impl Fn(IntValue<'ctx>, IntValue<'ctx>) -> Built<()>,
    ) -> Built<()> {
        let builder = &parts.builder;
        let all = builder.build_int_mul(self.count, self.groups, "")?;
        parts.each(parts.by_lanes(all), |number, next, _| {
            let group = builder.build_int_unsigned_div(number, self.count, "group")?;
            let word = builder.build_int_mul(group, parts.number(stride as u64), "")?;
            each(self.choose(parts, number)?, word)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }
}

/// The records that a lane updates: a copy in its block's scratchpad, and where there is none those
/// of the whole grid.
fn records_of_lane<'ctx>(parts: &Parts<'_, 'ctx>, stride: usize) -> Built<PointerValue<'ctx>> {
    let copies = Copies::of(parts, stride)?;
    let own = copies.place(parts, copies.choose(parts, parts.worker.lane)?)?;
    let outside = parts.builder.build_is_null(parts.other(COPIES), "outside")?;
    Ok(parts.builder.build_select(outside, parts.other(AREA), own, "")?.into_pointer_value())
}

/// The first phase: a block's own records begin like new ones.
fn begin_blocks<'ctx>(
    of: Of<'_, 'ctx>,
    provider: Provider,
    (code, _): (&UpdateCode, &[Machine]),
) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, "update.begin"), (&[], &[]), OTHERS)?;
    let copies = Copies::of(&parts, code.stride)?;
    let words = parts.builder.build_int_mul(copies.count, copies.words, "")?;
    parts.each(parts.by_lanes(words), |word, next, _| {
        let (builder, wide) = (&parts.builder, parts.context.i64_type());
        let of_copy = builder.build_int_unsigned_rem(word, copies.words, "")?;
        let of_record =
            builder.build_int_unsigned_rem(of_copy, parts.number(code.stride as u64), "")?;
        let initial = builder.build_load(wide, parts.word(parts.other(INITIAL), of_record)?, "")?;
        builder.build_store(parts.word(parts.worker.scratchpad, word)?, initial)?;
        builder.build_unconditional_branch(next)?;
        Ok(())
    })?;
    parts.builder.build_return(None)?;
    Ok(parts.function)
}

/// The second phase: each thread's tuples. Where all belong to one group, a thread has a record of
/// its own (in registers) until its end.
fn update_rows<'ctx>(
    of: Of<'_, 'ctx>,
    provider: Provider,
    (code, given): (&UpdateCode, &[Machine]),
) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, "update.rows"), (&code.inputs, given), OTHERS)?;
    let (groups, raised) = (parts.other(GROUPS), parts.other(RAISED));
    let records = records_of_lane(&parts, code.stride)?;
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

/// A phase that merges those copies of a block's records whose numbers compare so with the first's
/// into others.
fn merge_copies<'ctx>(
    (of, provider, name): (Of<'_, 'ctx>, Provider, &str),
    (code, _): (&UpdateCode, &[Machine]),
    (which, others): (IntPredicate, impl Fn(&Parts<'_, 'ctx>) -> PointerValue<'ctx>),
) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, name), (&[], &[]), OTHERS)?;
    let (groups, area) = (parts.other(GROUPS), parts.other(AREA));
    let update = Update { parts, code, groups, area, sharing: Sharing::Worker, overflow: None };
    let parts = &update.parts;
    let copies = Copies::of(parts, code.stride)?;
    copies.each_record(parts, code.stride, |copy, word| {
        let is_merged = parts.builder.build_int_compare(which, copy, parts.number(0), "")?;
        parts.only_if(Some(is_merged), || {
            update.merge(
                parts.word(copies.place(parts, copy)?, word)?,
                parts.word(others(parts), word)?,
            )
        })
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
                    let long = builder.build_load(
                        self.parts.context.i128_type(),
                        self.place(from, offset)?,
                        "",
                    )?;
                    in_words(long.as_instruction_value());
                    self.add_long(to, offset, long.into_int_value())?;
                    add(offset + 2)?;
                }
                (StepCode::FloatSum, _) => {
                    let double = self.parts.context.f64_type();
                    let more =
                        builder.build_bit_cast(read(offset)?, double, "")?.into_float_value();
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
