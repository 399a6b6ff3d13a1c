//! Compiles predicates: a function that writes the positions of the tuples for which the predicate
//! is true.

use inkwell::IntPredicate;
use inkwell::builder::BuilderError;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::VectorType;
use inkwell::values::{BasicValue, FunctionValue, IntValue, PointerValue};
use tessera_codegen::{MachineType, SelectCode};

use super::NONE;
use super::emitter::{FunctionEmitter, Row, Steps};
use super::provider::{Provider, Sharing};
use super::value::{Built, set_alignment};

/// The name of the function.
pub(crate) const SELECT: &str = "select";

/// Index of the output positions among the function's own parameters. The other indexes are for
/// GPUs.
const OUT: usize = 0;
/// The number of selected tuples in each block.
const FOUND: usize = 1;
/// A byte for each tuple: whether it is selected.
const FLAGS: usize = 2;
/// A flag that is set if a tuple may raise an error.
const RAISED: usize = 3;
const PARAMETERS: usize = 4;

type LlvmModule<'a, 'ctx> = (&'ctx Context, &'a Module<'ctx>);

/// Adds the function of a predicate to a module ([`tessera_codegen::Select::run`]), with the
/// runtime constants after `rows`; for a GPU a kernel. Each block of a kernel processes a
/// contiguous range of tuples and writes its output at the position of the first. `compresses`
/// enables AVX-512.
pub(crate) fn lower_select<'ctx>(
    of: LlvmModule<'_, 'ctx>,
    (provider, compresses): (Provider, bool),
    code: (&SelectCode, &[MachineType]),
) -> Built<()> {
    if provider.is_single_threaded() {
        return lower_for_cpu(of, (provider, compresses), code);
    }
    let phases = [
        flag(of, provider, code)?,
        count(of, provider)?,
        place(of, provider)?,
        write(of, provider)?,
    ];
    provider.join(of, SELECT, &phases)
}

/// Tuples that are tested before the selected ones are written.
const BLOCK_ROWS: u64 = 1 << 10;
/// The lanes of the compress instruction, and its intrinsic.
const LANES: u64 = 16;
const COMPRESS: &str = "llvm.x86.avx512.mask.compress.v16i32";

/// Builds the function for a CPU. Tuples at positions are processed one by one. All tuples are
/// processed by blocks: a loop that LLVM can vectorize tests them, then their positions are
/// written.
fn lower_for_cpu<'ctx>(
    of: LlvmModule<'_, 'ctx>,
    (provider, compresses): (Provider, bool),
    (code, constants): (&SelectCode, &[MachineType]),
) -> Built<()> {
    let mut emitter = FunctionEmitter::begin(of, (provider, SELECT), (&code.inputs, constants), 1)?;
    emitter.straight = true;
    let builder = &emitter.builder;
    let bytes = emitter.context.i8_type().array_type(BLOCK_ROWS as u32);
    let flags = builder.build_alloca(bytes, "flags")?;
    let (found, raised) = (
        emitter.variable(emitter.number(0))?,
        emitter.variable(emitter.context.bool_type().const_zero())?,
    );
    let select = CpuSelect { emitter: &emitter, code, flags, found, raised, compresses };
    let (at_positions, at_all) = (emitter.block("at_positions"), emitter.block("at_all"));
    builder.build_conditional_branch(emitter.are_all()?, at_all, at_positions)?;
    builder.position_at_end(at_positions);
    select.one_by_one()?;
    builder.position_at_end(at_all);
    select.blocks()
}

/// The function of a predicate for a CPU.
struct CpuSelect<'a, 'ctx> {
    emitter: &'a FunctionEmitter<'a, 'ctx>,
    code: &'a SelectCode,
    /// A byte for each tuple of a block.
    flags: PointerValue<'ctx>,
    /// The number of selected tuples.
    found: PointerValue<'ctx>,
    /// Whether a tuple may raise an error.
    raised: PointerValue<'ctx>,
    /// Whether the CPU can compress 16 numbers.
    compresses: bool,
}

impl<'ctx> CpuSelect<'_, 'ctx> {
    /// Emits the loop over positions, and the end of the function.
    fn one_by_one(&self) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let row = |row: &Row<'ctx>| {
            let mut values = emitter.values(row);
            let is_true = values.truth(&self.code.predicate, None)?;
            self.add(
                row.position,
                builder.build_int_z_extend(is_true, emitter.context.i64_type(), "")?,
            )?;
            match values.raised {
                Some(raises) => {
                    builder.build_store(self.raised, raises)?;
                    builder.build_conditional_branch(raises, row.end, row.next)?
                }
                None => builder.build_unconditional_branch(row.next)?,
            };
            Ok(())
        };
        emitter.each_row(emitter.all_rows()?, true, row, |_| self.finish())
    }

    /// Writes a position, and advances the output if it is selected; otherwise the next one
    /// overwrites it.
    fn add(&self, position: IntValue<'ctx>, selected: IntValue<'ctx>) -> Built<()> {
        let before = self.emitter.add(Sharing::Exclusive, self.found, selected)?;
        self.emitter.write_position(before, position)
    }

    /// Emits the end of the function.
    fn finish(&self) -> Built<()> {
        let (builder, context) = (&self.emitter.builder, self.emitter.context);
        let found = builder.build_load(context.i64_type(), self.found, "")?.into_int_value();
        let raised = builder.build_load(context.bool_type(), self.raised, "")?.into_int_value();
        let result = builder.build_select(raised, self.emitter.number(NONE), found, "")?;
        builder.build_return(Some(&result as &dyn BasicValue<'ctx>))?;
        Ok(())
    }

    /// Emits the loop over blocks, and the end of the function.
    fn blocks(&self) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let wide = emitter.context.i64_type();
        let steps = Steps {
            first: emitter.number(0),
            below: emitter.rows,
            step: emitter.number(BLOCK_ROWS),
        };
        emitter.each(steps, |first, next, end| {
            let rest = builder.build_int_sub(emitter.rows, first, "")?;
            let is_last = builder.build_int_compare(
                IntPredicate::ULT,
                rest,
                emitter.number(BLOCK_ROWS),
                "",
            )?;
            let rows = builder
                .build_select(is_last, rest, emitter.number(BLOCK_ROWS), "rows")?
                .into_int_value();
            self.flag(first, rows)?;
            let write = emitter.block("write");
            let wrong =
                builder.build_load(emitter.context.bool_type(), self.raised, "")?.into_int_value();
            builder.build_conditional_branch(wrong, end, write)?;
            builder.position_at_end(write);
            let mut done = emitter.number(0);
            if self.compresses {
                done = builder.build_and(
                    rows,
                    wide.const_int(LANES - 1, false).const_not(),
                    "vectors",
                )?;
                self.write_lanes(first, done)?;
            }
            self.write(first, (done, rows))?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        self.finish()
    }

    /// Returns the address of a tuple's flag.
    fn flag_of(&self, number: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        let byte = self.emitter.context.i8_type();
        // SAFETY: this only computes an address; the numbers are below `BLOCK_ROWS`.
        unsafe { self.emitter.builder.build_in_bounds_gep(byte, self.flags, &[number], "") }
    }

    fn steps(&self, first: IntValue<'ctx>, below: IntValue<'ctx>, step: u64) -> Steps<'ctx> {
        Steps { first, below, step: self.emitter.number(step) }
    }

    /// Sets the flag of each tuple of a block.
    fn flag(&self, first: IntValue<'ctx>, rows: IntValue<'ctx>) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        emitter.each(self.steps(emitter.number(0), rows, 1), |number, next, end| {
            let at = builder.build_int_add(first, number, "")?;
            let mut values = emitter.values(&Row { number: at, position: at, next, end });
            let is_true = values.truth(&self.code.predicate, None)?;
            let byte = builder.build_int_z_extend(is_true, emitter.context.i8_type(), "")?;
            builder.build_store(self.flag_of(number)?, byte)?;
            if let Some(raises) = values.raised {
                emitter.set_flag(self.raised, raises)?;
            }
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    /// Writes the positions of the selected tuples in a range of a block, one by one.
    fn write(
        &self,
        first: IntValue<'ctx>,
        (from, below): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        emitter.each(self.steps(from, below, 1), |number, next, _| {
            let at = builder.build_int_add(first, number, "")?;
            let byte = builder.build_load(emitter.context.i8_type(), self.flag_of(number)?, "")?;
            let wide = emitter.context.i64_type();
            self.add(at, builder.build_int_z_extend(byte.into_int_value(), wide, "")?)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    /// Like [`Self::write`], 16 tuples at a time (AVX-512). Each store writes 16 positions; the
    /// next overwrites the excess. The output has room: the selected tuples are at most as many as
    /// the tuples before.
    fn write_lanes(&self, first: IntValue<'ctx>, below: IntValue<'ctx>) -> Built<()> {
        let (emitter, builder, context) =
            (self.emitter, &self.emitter.builder, self.emitter.context);
        let (wide, narrow, byte) = (context.i64_type(), context.i32_type(), context.i8_type());
        let (lanes, bytes) = (narrow.vec_type(LANES as u32), byte.vec_type(LANES as u32));
        let masks = context.bool_type().vec_type(LANES as u32);
        let compress = emitter.module.get_function(COMPRESS).unwrap_or_else(|| {
            let of = lanes.fn_type(&[lanes.into(), lanes.into(), masks.into()], false);
            emitter.module.add_function(COMPRESS, of, None)
        });
        let short = context.i16_type();
        let bits = Intrinsic::find("llvm.ctpop")
            .and_then(|intrinsic| intrinsic.get_declaration(emitter.module, &[short.into()]))
            .ok_or(BuilderError::UnsetPosition)?;
        let numbers: Vec<IntValue<'ctx>> =
            (0..LANES).map(|lane| narrow.const_int(lane, false)).collect();
        let numbers = VectorType::const_vector(&numbers);
        emitter.each(self.steps(emitter.number(0), below, LANES), |number, next, _| {
            let at = builder.build_int_add(first, number, "")?;
            let start = builder.build_int_truncate(at, narrow, "")?;
            let one =
                builder.build_insert_element(lanes.get_undef(), start, wide.const_zero(), "")?;
            let all =
                builder.build_shuffle_vector(one, lanes.get_undef(), lanes.const_zero(), "")?;
            let positions = builder.build_int_add(all, numbers, "")?;
            let flags = builder.build_load(bytes, self.flag_of(number)?, "")?;
            set_alignment(flags.as_instruction_value(), 1);
            let zeros = bytes.const_zero();
            let mask = builder.build_int_compare(
                IntPredicate::NE,
                flags.into_vector_value(),
                zeros,
                "",
            )?;
            let arguments = [positions.into(), lanes.get_undef().into(), mask.into()];
            let packed = builder.build_call(compress, &arguments, "")?.try_as_basic_value().basic();
            let packed = packed.ok_or(BuilderError::UnsetPosition)?;
            let mask = builder.build_bit_cast(mask, short, "")?;
            let more = builder.build_call(bits, &[mask.into()], "")?.try_as_basic_value().basic();
            let more = more.ok_or(BuilderError::UnsetPosition)?.into_int_value();
            let more = builder.build_int_z_extend(more, wide, "")?;
            let before = emitter.add(Sharing::Exclusive, self.found, more)?;
            set_alignment(Some(builder.build_store(emitter.place_of_output(before)?, packed)?), 4);
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }
}

/// First phase: flags the selected tuples.
fn flag<'ctx>(
    of: LlvmModule<'_, 'ctx>,
    provider: Provider,
    (code, constants): (&SelectCode, &[MachineType]),
) -> Built<FunctionValue<'ctx>> {
    let emitter = FunctionEmitter::begin(
        of,
        (provider, "select.flag"),
        (&code.inputs, constants),
        PARAMETERS,
    )?;
    let (builder, raised) = (&emitter.builder, emitter.parameter(RAISED));
    let tuples = emitter.of_block()?;
    let first = builder.build_int_add(tuples.first, emitter.worker.lane, "")?;
    let steps = Steps { first, step: emitter.worker.lanes, ..tuples };
    let row = |row: &Row<'ctx>| {
        let mut values = emitter.values(row);
        let is_true = values.truth(&code.predicate, None)?;
        let byte = builder.build_int_z_extend(is_true, emitter.context.i8_type(), "")?;
        builder.build_store(emitter.flag(row.number)?, byte)?;
        match values.raised {
            Some(raises) => builder.build_conditional_branch(raises, row.end, row.next)?,
            None => builder.build_unconditional_branch(row.next)?,
        };
        Ok(())
    };
    emitter.each_row_of_either(steps, row, |done| {
        emitter.flag_early_end(raised, (done, tuples.below))?;
        builder.build_return(None)?;
        Ok(())
    })?;
    Ok(emitter.function)
}

/// Second phase: counts the selected tuples of each lane, which are now contiguous.
fn count<'ctx>(of: LlvmModule<'_, 'ctx>, provider: Provider) -> Built<FunctionValue<'ctx>> {
    let emitter = FunctionEmitter::begin(of, (provider, "select.count"), (&[], &[]), PARAMETERS)?;
    let builder = &emitter.builder;
    let found = emitter.variable(emitter.number(0))?;
    emitter.each(emitter.of_lane()?, |number, next, _| {
        let flag = builder.build_load(emitter.context.i8_type(), emitter.flag(number)?, "")?;
        let flag =
            builder.build_int_z_extend(flag.into_int_value(), emitter.context.i64_type(), "")?;
        emitter.add(Sharing::Exclusive, found, flag)?;
        builder.build_unconditional_branch(next)?;
        Ok(())
    })?;
    let found = builder.build_load(emitter.context.i64_type(), found, "")?;
    builder.build_store(emitter.word(emitter.worker.scratchpad, emitter.worker.lane)?, found)?;
    builder.build_return(None)?;
    Ok(emitter.function)
}

/// Third phase: the first lane of a block computes the output offset of each lane.
fn place<'ctx>(of: LlvmModule<'_, 'ctx>, provider: Provider) -> Built<FunctionValue<'ctx>> {
    let emitter = FunctionEmitter::begin(of, (provider, "select.place"), (&[], &[]), PARAMETERS)?;
    let (builder, wide) = (&emitter.builder, emitter.context.i64_type());
    let is_first =
        builder.build_int_compare(IntPredicate::EQ, emitter.worker.lane, emitter.number(0), "")?;
    let before = emitter.variable(emitter.number(0))?;
    emitter.only_if(Some(is_first), || {
        let lanes = Steps {
            first: emitter.number(0),
            below: emitter.worker.lanes,
            step: emitter.number(1),
        };
        emitter.each(lanes, |lane, next, _| {
            let word = emitter.word(emitter.worker.scratchpad, lane)?;
            let of_lane = builder.build_load(wide, word, "")?.into_int_value();
            builder.build_store(word, emitter.add(Sharing::Exclusive, before, of_lane)?)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        let all = builder.build_load(wide, before, "")?;
        builder.build_store(emitter.word(emitter.parameter(FOUND), emitter.worker.block)?, all)?;
        Ok(())
    })?;
    builder.build_return(None)?;
    Ok(emitter.function)
}

/// Last phase: each lane writes the positions of its tuples.
fn write<'ctx>(of: LlvmModule<'_, 'ctx>, provider: Provider) -> Built<FunctionValue<'ctx>> {
    let emitter = FunctionEmitter::begin(of, (provider, "select.write"), (&[], &[]), PARAMETERS)?;
    let (builder, wide) = (&emitter.builder, emitter.context.i64_type());
    let before = emitter.word(emitter.worker.scratchpad, emitter.worker.lane)?;
    let before = builder.build_load(wide, before, "")?.into_int_value();
    let start = emitter.of_block()?.first;
    let found = emitter.variable(builder.build_int_add(start, before, "")?)?;
    let row = |row: &Row<'ctx>| {
        let byte = emitter.context.i8_type();
        let flag = builder.build_load(byte, emitter.flag(row.number)?, "")?.into_int_value();
        let is_set = builder.build_int_compare(IntPredicate::NE, flag, byte.const_zero(), "")?;
        emitter.only_if(Some(is_set), || {
            let before = emitter.add(Sharing::Exclusive, found, emitter.number(1))?;
            emitter.write_position(before, row.position)
        })?;
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    };
    emitter.each_row_of_either(emitter.of_lane()?, row, |_| {
        builder.build_return(None)?;
        Ok(())
    })?;
    Ok(emitter.function)
}

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Divides `all` into contiguous shares, rounded up; returns the range of one of them.
    fn share(
        &self,
        all: Steps<'ctx>,
        number: IntValue<'ctx>,
        of: IntValue<'ctx>,
    ) -> Built<Steps<'ctx>> {
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

    /// Returns the tuples of this block.
    fn of_block(&self) -> Built<Steps<'ctx>> {
        let all = Steps { first: self.number(0), below: self.rows, step: self.number(1) };
        self.share(all, self.worker.block, self.worker.blocks)
    }

    /// Returns the tuples of this lane in its block.
    fn of_lane(&self) -> Built<Steps<'ctx>> {
        self.share(self.of_block()?, self.worker.lane, self.worker.lanes)
    }

    fn write_position(&self, at: IntValue<'ctx>, position: IntValue<'ctx>) -> Built<()> {
        let (builder, narrow) = (&self.builder, self.context.i32_type());
        let position = builder.build_int_truncate(position, narrow, "")?;
        builder.build_store(self.place_of_output(at)?, position)?;
        Ok(())
    }

    fn place_of_output(&self, at: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        let narrow = self.context.i32_type();
        // SAFETY: this only computes an address; the output has room for all tuples.
        unsafe { self.builder.build_in_bounds_gep(narrow, self.parameter(OUT), &[at], "") }
    }

    fn flag(&self, number: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        let byte = self.context.i8_type();
        // SAFETY: this only computes an address; the launch allocates a flag for each tuple.
        unsafe { self.builder.build_in_bounds_gep(byte, self.parameter(FLAGS), &[number], "") }
    }
}
