//! Predicates: a function that writes the positions of the tuples for which one is true.

use inkwell::IntPredicate;
use inkwell::builder::BuilderError;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::VectorType;
use inkwell::values::{BasicValue, FunctionValue, IntValue, PointerValue};
use tessera_codegen::{Machine, SelectCode};

use super::NONE;
use super::parts::{Parts, Row, Steps};
use super::provider::{Provider, Sharing};
use super::value::{Built, aligned};

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

/// Adds the function of a predicate to a module, as [`tessera_codegen::Select::run`] has it, with
/// the numbers it is given behind `rows`; for a GPU a kernel. Each of its blocks takes as many
/// tuples, one behind the other, and writes what it finds to where its first tuple would stand.
/// `compresses` says that a processor has AVX-512.
pub(crate) fn lower_select<'ctx>(
    of: Of<'_, 'ctx>,
    (provider, compresses): (Provider, bool),
    code: (&SelectCode, &[Machine]),
) -> Built<()> {
    if provider.is_alone() {
        return alone(of, (provider, compresses), code);
    }
    let phases = [
        flag(of, provider, code)?,
        count(of, provider)?,
        place(of, provider)?,
        write(of, provider)?,
    ];
    provider.join(of, SELECT, &phases)
}

/// How many tuples are looked at before those found are written.
const BLOCK_ROWS: u64 = 1 << 10;
/// How many numbers a processor brings together at once, and by what.
const LANES: u64 = 16;
const COMPRESS: &str = "llvm.x86.avx512.mask.compress.v16i32";

/// Tuples at positions one after the other; all that there are block by block: first which ones are
/// found, a loop that LLVM can take several tuples at once in, then where those are.
fn alone<'ctx>(
    of: Of<'_, 'ctx>,
    (provider, compresses): (Provider, bool),
    (code, given): (&SelectCode, &[Machine]),
) -> Built<()> {
    let mut parts = Parts::begin(of, (provider, SELECT), (&code.inputs, given), 1)?;
    parts.straight = true;
    let builder = &parts.builder;
    let bytes = parts.context.i8_type().array_type(BLOCK_ROWS as u32);
    let flags = builder.build_alloca(bytes, "flags")?;
    let (found, raised) =
        (parts.variable(parts.number(0))?, parts.variable(parts.context.bool_type().const_zero())?);
    let select = Alone { parts: &parts, code, flags, found, raised, compresses };
    let (at_positions, at_all) = (parts.block("at_positions"), parts.block("at_all"));
    builder.build_conditional_branch(parts.are_all()?, at_all, at_positions)?;
    builder.position_at_end(at_positions);
    select.one_by_one()?;
    builder.position_at_end(at_all);
    select.blocks()
}

/// A predicate's function for a processor.
struct Alone<'a, 'ctx> {
    parts: &'a Parts<'a, 'ctx>,
    code: &'a SelectCode,
    /// A byte for each tuple of a block.
    flags: PointerValue<'ctx>,
    /// How many were found.
    found: PointerValue<'ctx>,
    /// Whether a tuple perhaps raises an error.
    raised: PointerValue<'ctx>,
    /// Whether the processor brings the chosen ones of 16 numbers together.
    compresses: bool,
}

impl<'ctx> Alone<'_, 'ctx> {
    /// The loop over positions, and the function's end.
    fn one_by_one(&self) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let row = |row: &Row<'ctx>| {
            let mut values = parts.values(row);
            let is_true = values.truth(&self.code.predicate, None)?;
            self.add(
                row.position,
                builder.build_int_z_extend(is_true, parts.context.i64_type(), "")?,
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
        parts.each_row(parts.all_rows()?, true, row, |_| self.give())
    }

    /// Writes a position, and counts it or not: then who is next writes over it.
    fn add(&self, position: IntValue<'ctx>, counts: IntValue<'ctx>) -> Built<()> {
        let before = self.parts.add(Sharing::Alone, self.found, counts)?;
        self.parts.write_position(before, position)
    }

    /// The function's end.
    fn give(&self) -> Built<()> {
        let (builder, context) = (&self.parts.builder, self.parts.context);
        let found = builder.build_load(context.i64_type(), self.found, "")?.into_int_value();
        let raised = builder.build_load(context.bool_type(), self.raised, "")?.into_int_value();
        let result = builder.build_select(raised, self.parts.number(NONE), found, "")?;
        builder.build_return(Some(&result as &dyn BasicValue<'ctx>))?;
        Ok(())
    }

    /// The loop over blocks, and the function's end.
    fn blocks(&self) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let wide = parts.context.i64_type();
        let steps =
            Steps { first: parts.number(0), below: parts.rows, step: parts.number(BLOCK_ROWS) };
        parts.each(steps, |first, next, end| {
            let rest = builder.build_int_sub(parts.rows, first, "")?;
            let is_last =
                builder.build_int_compare(IntPredicate::ULT, rest, parts.number(BLOCK_ROWS), "")?;
            let rows = builder
                .build_select(is_last, rest, parts.number(BLOCK_ROWS), "rows")?
                .into_int_value();
            self.flag(first, rows)?;
            let write = parts.block("write");
            let wrong =
                builder.build_load(parts.context.bool_type(), self.raised, "")?.into_int_value();
            builder.build_conditional_branch(wrong, end, write)?;
            builder.position_at_end(write);
            let mut done = parts.number(0);
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
        self.give()
    }

    /// The place of a tuple's byte.
    fn flag_of(&self, number: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        let byte = self.parts.context.i8_type();
        // SAFETY: an address is computed; the numbers are below `BLOCK_ROWS`.
        unsafe { self.parts.builder.build_in_bounds_gep(byte, self.flags, &[number], "") }
    }

    fn steps(&self, first: IntValue<'ctx>, below: IntValue<'ctx>, step: u64) -> Steps<'ctx> {
        Steps { first, below, step: self.parts.number(step) }
    }

    /// For each tuple of a block, whether it is found.
    fn flag(&self, first: IntValue<'ctx>, rows: IntValue<'ctx>) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        parts.each(self.steps(parts.number(0), rows, 1), |number, next, end| {
            let at = builder.build_int_add(first, number, "")?;
            let mut values = parts.values(&Row { number: at, position: at, next, end });
            let is_true = values.truth(&self.code.predicate, None)?;
            let byte = builder.build_int_z_extend(is_true, parts.context.i8_type(), "")?;
            builder.build_store(self.flag_of(number)?, byte)?;
            if let Some(raises) = values.raised {
                parts.note(self.raised, raises)?;
            }
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    /// Writes the positions of those found among some tuples of a block, one by one.
    fn write(
        &self,
        first: IntValue<'ctx>,
        (from, below): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        parts.each(self.steps(from, below, 1), |number, next, _| {
            let at = builder.build_int_add(first, number, "")?;
            let byte = builder.build_load(parts.context.i8_type(), self.flag_of(number)?, "")?;
            let wide = parts.context.i64_type();
            self.add(at, builder.build_int_z_extend(byte.into_int_value(), wide, "")?)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    /// The same, 16 at a time (AVX-512). As many are written, of which those behind the ones found
    /// are written over: there is room, since no more were found than there were tuples before.
    fn write_lanes(&self, first: IntValue<'ctx>, below: IntValue<'ctx>) -> Built<()> {
        let (parts, builder, context) = (self.parts, &self.parts.builder, self.parts.context);
        let (wide, narrow, byte) = (context.i64_type(), context.i32_type(), context.i8_type());
        let (lanes, bytes) = (narrow.vec_type(LANES as u32), byte.vec_type(LANES as u32));
        let masks = context.bool_type().vec_type(LANES as u32);
        let compress = parts.module.get_function(COMPRESS).unwrap_or_else(|| {
            let of = lanes.fn_type(&[lanes.into(), lanes.into(), masks.into()], false);
            parts.module.add_function(COMPRESS, of, None)
        });
        let short = context.i16_type();
        let bits = Intrinsic::find("llvm.ctpop")
            .and_then(|intrinsic| intrinsic.get_declaration(parts.module, &[short.into()]))
            .ok_or(BuilderError::UnsetPosition)?;
        let numbers: Vec<IntValue<'ctx>> =
            (0..LANES).map(|lane| narrow.const_int(lane, false)).collect();
        let numbers = VectorType::const_vector(&numbers);
        parts.each(self.steps(parts.number(0), below, LANES), |number, next, _| {
            let at = builder.build_int_add(first, number, "")?;
            let start = builder.build_int_truncate(at, narrow, "")?;
            let one =
                builder.build_insert_element(lanes.get_undef(), start, wide.const_zero(), "")?;
            let all =
                builder.build_shuffle_vector(one, lanes.get_undef(), lanes.const_zero(), "")?;
            let positions = builder.build_int_add(all, numbers, "")?;
            let flags = builder.build_load(bytes, self.flag_of(number)?, "")?;
            aligned(flags.as_instruction_value(), 1);
            let zeros = bytes.const_zero();
            let mask = builder.build_int_compare(
                IntPredicate::NE,
                flags.into_vector_value(),
                zeros,
                "",
            )?;
            let given = [positions.into(), lanes.get_undef().into(), mask.into()];
            let packed = builder.build_call(compress, &given, "")?.try_as_basic_value().basic();
            let packed = packed.ok_or(BuilderError::UnsetPosition)?;
            let mask = builder.build_bit_cast(mask, short, "")?;
            let more = builder.build_call(bits, &[mask.into()], "")?.try_as_basic_value().basic();
            let more = more.ok_or(BuilderError::UnsetPosition)?.into_int_value();
            let more = builder.build_int_z_extend(more, wide, "")?;
            let before = parts.add(Sharing::Alone, self.found, more)?;
            aligned(Some(builder.build_store(parts.place_of_output(before)?, packed)?), 4);
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }
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
        parts.note_early(raised, (done, tuples.below))?;
        builder.build_return(None)?;
        Ok(())
    })?;
    Ok(parts.function)
}

/// The second: how many there are among those of each lane, now one behind the other.
fn count<'ctx>(of: Of<'_, 'ctx>, provider: Provider) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, "select.count"), (&[], &[]), OTHERS)?;
    let builder = &parts.builder;
    let found = parts.variable(parts.number(0))?;
    parts.each(parts.of_lane()?, |number, next, _| {
        let flag = builder.build_load(parts.context.i8_type(), parts.flag(number)?, "")?;
        let flag =
            builder.build_int_z_extend(flag.into_int_value(), parts.context.i64_type(), "")?;
        parts.add(Sharing::Alone, found, flag)?;
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
    let is_first =
        builder.build_int_compare(IntPredicate::EQ, parts.worker.lane, parts.number(0), "")?;
    let before = parts.variable(parts.number(0))?;
    parts.only_if(Some(is_first), || {
        let lanes =
            Steps { first: parts.number(0), below: parts.worker.lanes, step: parts.number(1) };
        parts.each(lanes, |lane, next, _| {
            let word = parts.word(parts.worker.scratchpad, lane)?;
            let of_lane = builder.build_load(wide, word, "")?.into_int_value();
            builder.build_store(word, parts.add(Sharing::Alone, before, of_lane)?)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        let all = builder.build_load(wide, before, "")?;
        builder.build_store(parts.word(parts.other(FOUND), parts.worker.block)?, all)?;
        Ok(())
    })?;
    builder.build_return(None)?;
    Ok(parts.function)
}

/// The last: each lane writes the positions of its tuples.
fn write<'ctx>(of: Of<'_, 'ctx>, provider: Provider) -> Built<FunctionValue<'ctx>> {
    let parts = Parts::begin(of, (provider, "select.write"), (&[], &[]), OTHERS)?;
    let (builder, wide) = (&parts.builder, parts.context.i64_type());
    let before = parts.word(parts.worker.scratchpad, parts.worker.lane)?;
    let before = builder.build_load(wide, before, "")?.into_int_value();
    let start = parts.of_block()?.first;
    let found = parts.variable(builder.build_int_add(start, before, "")?)?;
    let row = |row: &Row<'ctx>| {
        let byte = parts.context.i8_type();
        let flag = builder.build_load(byte, parts.flag(row.number)?, "")?.into_int_value();
        let is_set = builder.build_int_compare(IntPredicate::NE, flag, byte.const_zero(), "")?;
        parts.only_if(Some(is_set), || {
            let before = parts.add(Sharing::Alone, found, parts.number(1))?;
            parts.write_position(before, row.position)
        })?;
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
    /// As many as `all` for each of so many, rounded up, of which one takes its own: those from the
    /// first on, at most to the end.
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
        let position = builder.build_int_truncate(position, narrow, "")?;
        builder.build_store(self.place_of_output(at)?, position)?;
        Ok(())
    }

    fn place_of_output(&self, at: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        let narrow = self.context.i32_type();
        // SAFETY: an address is computed; there is room for all tuples, by the caller's promise.
        unsafe { self.builder.build_in_bounds_gep(narrow, self.other(OUT), &[at], "") }
    }

    fn flag(&self, number: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        let byte = self.context.i8_type();
        // SAFETY: an address is computed; who launches a kernel has room for a flag of each tuple.
        unsafe { self.builder.build_in_bounds_gep(byte, self.other(FLAGS), &[number], "") }
    }
}
