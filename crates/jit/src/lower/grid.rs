//! Updates of aggregate states by a grid of threads, in four phases: each block initializes its
//! records, its threads update them, the copies of the records are merged into one, and that into
//! the records of the grid. A block has several copies of its records to reduce contention
//! (Proteus, Listing 5.1: a strided loop, a reduction within a block, worker-scoped atomics).

use inkwell::IntPredicate;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, FunctionValue, IntValue, PointerValue};
use tessera_codegen::{MachineType, StepCode, UpdateCode};

use super::emitter::FunctionEmitter;
use super::provider::{Provider, Sharing};
use super::update::{UPDATE, Update};
use super::value::{Built, set_word_alignment};

/// Indexes of the kernel's own parameters.
const GROUPS: usize = 0;
const AREA: usize = 1;
/// The initial record of a group.
const INITIAL: usize = 2;
/// The number of groups.
const COUNT: usize = 3;
/// The number of copies of all records in a block's scratchpad: a power of two, or 0 if they do not
/// fit.
const COPIES: usize = 4;
/// A flag that is set if a tuple may raise an error.
const RAISED: usize = 5;
const PARAMETERS: usize = 6;

type LlvmModule<'a, 'ctx> = (&'ctx Context, &'a Module<'ctx>);

/// Adds the kernel of aggregate updates to a module.
pub(super) fn lower_for_grid<'ctx>(
    of: LlvmModule<'_, 'ctx>,
    provider: Provider,
    code: (&UpdateCode, &[MachineType]),
) -> Built<()> {
    let phases = [
        begin_blocks(of, provider, code)?,
        update_rows(of, provider, code)?,
        // Merges all copies into the first, then the first into the records of the grid.
        merge_copies(
            (of, provider, "update.join"),
            code,
            (IntPredicate::NE, |emitter| emitter.worker.scratchpad),
        )?,
        merge_copies(
            (of, provider, "update.end"),
            code,
            (IntPredicate::EQ, |emitter| emitter.parameter(AREA)),
        )?,
    ];
    provider.join(of, UPDATE, &phases)
}

/// The copies of records in a block.
struct Copies<'ctx> {
    /// The number of copies.
    count: IntValue<'ctx>,
    /// The number of groups in each copy.
    groups: IntValue<'ctx>,
    /// Words of scratchpad for each copy: an odd number, so that records of a group are in
    /// different banks.
    words: IntValue<'ctx>,
}

impl<'ctx> Copies<'ctx> {
    fn of(emitter: &FunctionEmitter<'_, 'ctx>, stride: usize) -> Built<Copies<'ctx>> {
        let (builder, wide) = (&emitter.builder, emitter.context.i64_type());
        let number = |at| builder.build_ptr_to_int(emitter.parameter(at), wide, "");
        let (count, groups) = (number(COPIES)?, number(COUNT)?);
        let words = builder.build_int_mul(groups, emitter.number(stride as u64), "")?;
        let words = builder.build_or(words, emitter.number(1), "words")?;
        Ok(Copies { count, groups, words })
    }

    /// Selects a copy by a number.
    fn choose(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        number: IntValue<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let mask = emitter.builder.build_int_sub(self.count, emitter.number(1), "")?;
        emitter.builder.build_and(number, mask, "copy")
    }

    /// Returns the address of the records of a copy.
    fn place(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        copy: IntValue<'ctx>,
    ) -> Built<PointerValue<'ctx>> {
        emitter
            .word(emitter.worker.scratchpad, emitter.builder.build_int_mul(copy, self.words, "")?)
    }

    /// Emits a loop over the block's records: those of a group in each copy, then of the next
    /// group.
    fn each_record(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        stride: usize,
        each: impl Fn(IntValue<'ctx>, IntValue<'ctx>) -> Built<()>,
    ) -> Built<()> {
        let builder = &emitter.builder;
        let all = builder.build_int_mul(self.count, self.groups, "")?;
        emitter.each(emitter.by_lanes(all), |number, next, _| {
            let group = builder.build_int_unsigned_div(number, self.count, "group")?;
            let word = builder.build_int_mul(group, emitter.number(stride as u64), "")?;
            each(self.choose(emitter, number)?, word)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }
}

/// Returns the records that a lane updates: a copy in its block's scratchpad, or those of the grid
/// if there are no copies.
fn records_of_lane<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    stride: usize,
) -> Built<PointerValue<'ctx>> {
    let copies = Copies::of(emitter, stride)?;
    let own = copies.place(emitter, copies.choose(emitter, emitter.worker.lane)?)?;
    let outside = emitter.builder.build_is_null(emitter.parameter(COPIES), "outside")?;
    Ok(emitter
        .builder
        .build_select(outside, emitter.parameter(AREA), own, "")?
        .into_pointer_value())
}

/// First phase: initializes the records of a block.
fn begin_blocks<'ctx>(
    of: LlvmModule<'_, 'ctx>,
    provider: Provider,
    (code, _): (&UpdateCode, &[MachineType]),
) -> Built<FunctionValue<'ctx>> {
    let emitter = FunctionEmitter::begin(of, (provider, "update.begin"), (&[], &[]), PARAMETERS)?;
    let copies = Copies::of(&emitter, code.stride)?;
    let words = emitter.builder.build_int_mul(copies.count, copies.words, "")?;
    emitter.each(emitter.by_lanes(words), |word, next, _| {
        let (builder, wide) = (&emitter.builder, emitter.context.i64_type());
        let of_copy = builder.build_int_unsigned_rem(word, copies.words, "")?;
        let of_record =
            builder.build_int_unsigned_rem(of_copy, emitter.number(code.stride as u64), "")?;
        let initial =
            builder.build_load(wide, emitter.word(emitter.parameter(INITIAL), of_record)?, "")?;
        builder.build_store(emitter.word(emitter.worker.scratchpad, word)?, initial)?;
        builder.build_unconditional_branch(next)?;
        Ok(())
    })?;
    emitter.builder.build_return(None)?;
    Ok(emitter.function)
}

/// Second phase: processes each thread's tuples. With a single group, a thread keeps its record in
/// registers until the end.
fn update_rows<'ctx>(
    of: LlvmModule<'_, 'ctx>,
    provider: Provider,
    (code, constants): (&UpdateCode, &[MachineType]),
) -> Built<FunctionValue<'ctx>> {
    let emitter = FunctionEmitter::begin(
        of,
        (provider, "update.rows"),
        (&code.inputs, constants),
        PARAMETERS,
    )?;
    let (groups, raised) = (emitter.parameter(GROUPS), emitter.parameter(RAISED));
    let records = records_of_lane(&emitter, code.stride)?;
    let (area, sharing) = match code.grouped {
        true => (records, Sharing::Worker),
        false => (own_record(&emitter, code.stride)?, Sharing::Exclusive),
    };
    let update = Update { emitter, code, groups, area, sharing, overflow: None };
    let (emitter, builder) = (&update.emitter, &update.emitter.builder);
    update.each_row(|done| {
        emitter.flag_early_end(raised, (done, emitter.rows))?;
        if !code.grouped {
            update.merge(area, records)?;
        }
        builder.build_return(None)?;
        Ok(())
    })?;
    Ok(update.emitter.function)
}

/// Allocates an initial record for this thread.
fn own_record<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    stride: usize,
) -> Built<PointerValue<'ctx>> {
    let words = emitter.context.i64_type().array_type(stride as u32);
    let own = emitter.builder.build_alloca(words, "own")?;
    emitter.copy_words(emitter.parameter(INITIAL), own, 0..stride)?;
    Ok(own)
}

/// A phase that merges copies of a block into `target`: those with an index that compares to 0 by
/// `predicate`.
fn merge_copies<'ctx>(
    (of, provider, name): (LlvmModule<'_, 'ctx>, Provider, &str),
    (code, _): (&UpdateCode, &[MachineType]),
    (predicate, target): (IntPredicate, impl Fn(&FunctionEmitter<'_, 'ctx>) -> PointerValue<'ctx>),
) -> Built<FunctionValue<'ctx>> {
    let emitter = FunctionEmitter::begin(of, (provider, name), (&[], &[]), PARAMETERS)?;
    let (groups, area) = (emitter.parameter(GROUPS), emitter.parameter(AREA));
    let update = Update { emitter, code, groups, area, sharing: Sharing::Worker, overflow: None };
    let emitter = &update.emitter;
    let copies = Copies::of(emitter, code.stride)?;
    copies.each_record(emitter, code.stride, |copy, word| {
        let is_merged =
            emitter.builder.build_int_compare(predicate, copy, emitter.number(0), "")?;
        emitter.only_if(Some(is_merged), || {
            update.merge(
                emitter.word(copies.place(emitter, copy)?, word)?,
                emitter.word(target(emitter), word)?,
            )
        })
    })?;
    emitter.builder.build_return(None)?;
    Ok(update.emitter.function)
}

impl<'ctx> Update<'_, 'ctx> {
    /// Merges one record into another, which other threads update concurrently.
    fn merge(&self, from: PointerValue<'ctx>, to: PointerValue<'ctx>) -> Built<()> {
        let (builder, wide) = (&self.emitter.builder, self.emitter.context.i64_type());
        let read = |word: usize| -> Built<IntValue<'ctx>> {
            Ok(builder.build_load(wide, self.place(from, word)?, "")?.into_int_value())
        };
        let add =
            |word: usize| self.emitter.add(Sharing::Worker, self.place(to, word)?, read(word)?);
        for state in self.code.stages.iter().flat_map(|stage| &stage.states) {
            let offset = state.offset;
            match (state.step, &state.args[..]) {
                (StepCode::Count, _) => {
                    add(offset)?;
                }
                (StepCode::ExactSum, _) => {
                    let long = builder.build_load(
                        self.emitter.context.i128_type(),
                        self.place(from, offset)?,
                        "",
                    )?;
                    set_word_alignment(long.as_instruction_value());
                    self.add_long(to, offset, long.into_int_value())?;
                    add(offset + 2)?;
                }
                (StepCode::FloatSum, _) => {
                    let double = self.emitter.context.f64_type();
                    let more =
                        builder.build_bit_cast(read(offset)?, double, "")?.into_float_value();
                    self.add_float(Sharing::Worker, self.place(to, offset)?, more)?;
                    add(offset + 1)?;
                }
                (StepCode::Min | StepCode::Max, [code]) => {
                    let seen = read(offset + 1)?;
                    let is_there =
                        builder.build_int_compare(IntPredicate::NE, seen, wide.const_zero(), "")?;
                    self.update_shared_extreme(
                        to,
                        state,
                        read(offset)?,
                        Some(is_there),
                        code.machine,
                    )?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
