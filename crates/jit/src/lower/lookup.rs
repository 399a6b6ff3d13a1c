//! Look-ups in join tables: a function that writes a pair for each tuple and each row of the table
//! with the same keys.
//!
//! Tuples go through it in blocks, and each block three times: first their hashes, which ask for
//! their slots of the directory; then the slots, which ask for the first of their rows and list
//! all; then the rows. So what is asked for is on its way while others are worked on, and what is
//! between the three stays in the first-level cache (Chen et al., ICDE 2004; Menon et al., VLDB
//! 2017). Rows are listed four at once and pairs packed in place, so that no branch depends on how
//! many rows a slot has or on whether they match, which the processor could not foresee.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::{IntType, VectorType};
use inkwell::values::{BasicValue, IntValue, PointerValue, VectorValue};
use tessera_codegen::{LookupCode, Machine, WRITTEN_AT_ONCE};

use super::NONE;
use super::parts::{Parts, Row, Steps};
use super::provider::{Provider, Sharing};
use super::value::{Built, Value, aligned};

/// The name of the function.
pub(crate) const LOOKUP: &str = "lookup";

/// Its own parameters.
const TABLE: usize = 0;
const TUPLES: usize = 1;
const FOUND: usize = 2;

/// Tuples of a block: enough for what is asked for to come meanwhile. On 2^23 tuples and a table of
/// 2^15 rows 64, 128 and 256 are alike.
const BLOCK_ROWS: u64 = 128;
/// The bits of a hash that choose its tag, and those of a directory's entry that are tags.
const TAG_MASK: u64 = 2_047;
const ENTRY_TAG_BITS: u64 = 16;

/// Adds the function of look-ups to a module, as [`tessera_codegen::Lookup::run`] has it; a
/// processor's.
pub(crate) fn lower_lookup<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: &LookupCode,
) -> Built<()> {
    let parts = Parts::begin(of, (provider, LOOKUP), (&code.keys, &[]), 3)?;
    let (builder, wide, context) = (&parts.builder, parts.context.i64_type(), parts.context);
    let word = |number| {
        let at = parts.word(parts.other(TABLE), parts.number(number))?;
        Built::Ok(builder.build_load(wide, at, "")?.into_int_value())
    };
    let pointer = |number| {
        let of = context.ptr_type(inkwell::AddressSpace::default());
        let at = parts.word(parts.other(TABLE), parts.number(number))?;
        Built::Ok(builder.build_load(of, at, "")?.into_pointer_value())
    };
    let array = |of: IntType<'ctx>| builder.build_alloca(of.array_type(BLOCK_ROWS as u32), "block");
    let lookup = Lookup {
        code,
        entries: pointer(0)?,
        shift: word(1)?,
        tags: pointer(2)?,
        rows: pointer(3)?,
        room: word(4)?,
        hashes: array(wide)?,
        valid: array(context.i8_type())?,
        found: parts.variable(parts.number(0))?,
        listed: parts.variable(parts.number(0))?,
        full: parts.block("full"),
        parts: &parts,
    };
    let (at_positions, at_all) = (parts.block("at_positions"), parts.block("at_all"));
    builder.build_conditional_branch(parts.are_all()?, at_all, at_positions)?;
    for (block, has_positions) in [(at_positions, true), (at_all, false)] {
        builder.position_at_end(block);
        lookup.blocks(has_positions)?;
    }
    builder.position_at_end(lookup.full);
    builder.build_return(Some(&parts.number(NONE) as &dyn BasicValue<'ctx>))?;
    Ok(())
}

struct Lookup<'a, 'ctx> {
    parts: &'a Parts<'a, 'ctx>,
    code: &'a LookupCode,
    entries: PointerValue<'ctx>,
    shift: IntValue<'ctx>,
    tags: PointerValue<'ctx>,
    rows: PointerValue<'ctx>,
    room: IntValue<'ctx>,
    /// Of the tuples of a block: hashes, and whether no key is NULL.
    hashes: PointerValue<'ctx>,
    valid: PointerValue<'ctx>,
    /// How many pairs there are, and how many with those that may be some.
    found: PointerValue<'ctx>,
    listed: PointerValue<'ctx>,
    /// Where the function ends for want of room.
    full: BasicBlock<'ctx>,
}

impl<'ctx> Lookup<'_, 'ctx> {
    /// All blocks, and the function's end.
    fn blocks(&self, has_positions: bool) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let all =
            Steps { first: parts.number(0), below: parts.rows, step: parts.number(BLOCK_ROWS) };
        parts.each(all, |first, next, _| {
            let rest = builder.build_int_sub(parts.rows, first, "")?;
            let is_last =
                builder.build_int_compare(IntPredicate::ULT, rest, parts.number(BLOCK_ROWS), "")?;
            let rows =
                builder.build_select(is_last, rest, parts.number(BLOCK_ROWS), "")?.into_int_value();
            self.hash(first, rows, has_positions)?;
            self.slots(first, rows)?;
            self.compare(has_positions)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        let found = builder.build_load(parts.context.i64_type(), self.found, "")?;
        builder.build_return(Some(&found as &dyn BasicValue<'ctx>))?;
        Ok(())
    }

    fn steps(&self, below: IntValue<'ctx>) -> Steps<'ctx> {
        Steps { first: self.parts.number(0), below, step: self.parts.number(1) }
    }

    /// The keys of a tuple, NULL or not, and whether all are there.
    fn keys(
        &self,
        number: IntValue<'ctx>,
        has_positions: bool,
        (next, end): (BasicBlock<'ctx>, BasicBlock<'ctx>),
    ) -> Built<(Vec<Value<'ctx>>, Option<IntValue<'ctx>>)> {
        let position = if has_positions { self.parts.position(number)? } else { number };
        let mut values = self.parts.values(&Row { number, position, next, end });
        let keys =
            (0..self.code.keys.len()).map(|key| values.input(key)).collect::<Built<Vec<_>>>()?;
        let valid = values.all_valid(&keys)?;
        Ok((keys.into_iter().map(|key| Value { valid: None, ..key }).collect(), valid))
    }

    /// The first time: hashes.
    fn hash(&self, first: IntValue<'ctx>, rows: IntValue<'ctx>, has_positions: bool) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let byte = parts.context.i8_type();
        parts.each(self.steps(rows), |number, next, end| {
            let at = builder.build_int_add(first, number, "")?;
            let (keys, valid) = self.keys(at, has_positions, (next, end))?;
            let state = parts.hash(&keys, &self.code.keys)?;
            builder.build_store(parts.word(self.hashes, number)?, state)?;
            if let Some(valid) = valid {
                let valid = builder.build_int_z_extend(valid, byte, "")?;
                builder.build_store(self.element(byte, self.valid, number)?, valid)?;
            }
            parts.prefetch(parts.word(self.entries, self.slot(state)?)?)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    fn slot(&self, hash: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        self.parts.builder.build_right_shift(hash, self.shift, false, "")
    }

    fn element(
        &self,
        of: IntType<'ctx>,
        first: PointerValue<'ctx>,
        number: IntValue<'ctx>,
    ) -> Built<PointerValue<'ctx>> {
        // SAFETY: an address is computed; who reads or writes there says why he may.
        unsafe { self.parts.builder.build_in_bounds_gep(of, first, &[number], "") }
    }

    /// A row of the table.
    fn row(&self, number: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        let stride = self.parts.number(self.code.stride as u64);
        let offset = self.parts.builder.build_int_nuw_mul(number, stride, "")?;
        self.element(self.parts.context.i8_type(), self.rows, offset)
    }

    /// The same number as often as pairs are written at once.
    fn repeated(&self, number: IntValue<'ctx>) -> Built<VectorValue<'ctx>> {
        let (builder, of) =
            (&self.parts.builder, number.get_type().vec_type(WRITTEN_AT_ONCE as u32));
        let one = builder.build_insert_element(of.get_undef(), number, self.parts.number(0), "")?;
        let first = self.parts.context.i32_type().vec_type(WRITTEN_AT_ONCE as u32).const_zero();
        builder.build_shuffle_vector(one, of.get_undef(), first, "")
    }

    /// A tuple and the rows from `begin` on, of which `count` may be its own, are listed from `at`
    /// on.
    fn list(
        &self,
        (tuple, begin): (IntValue<'ctx>, IntValue<'ctx>),
        (at, count): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let (wide, narrow) = (parts.context.i64_type(), parts.context.i32_type());
        let place = |at| {
            let tuple = self.element(narrow, parts.other(TUPLES), at)?;
            Built::Ok((tuple, parts.word(parts.other(FOUND), at)?))
        };
        let following: Vec<IntValue<'ctx>> =
            (0..WRITTEN_AT_ONCE as u64).map(|number| wide.const_int(number, false)).collect();
        let tuples = self.repeated(tuple)?;
        let rows = builder.build_int_add(
            self.repeated(begin)?,
            VectorType::const_vector(&following),
            "",
        )?;
        let (tuples_at, rows_at) = place(at)?;
        aligned(Some(builder.build_store(tuples_at, tuples)?), 4);
        aligned(Some(builder.build_store(rows_at, rows)?), 8);
        let at_once = parts.number(WRITTEN_AT_ONCE as u64);
        let are_more = builder.build_int_compare(IntPredicate::UGT, count, at_once, "")?;
        parts.only_if(Some(are_more), || {
            let rest = Steps { first: at_once, below: count, step: parts.number(1) };
            parts.each(rest, |number, next, _| {
                let (tuple_at, row_at) = place(builder.build_int_nuw_add(at, number, "")?)?;
                builder.build_store(tuple_at, tuple)?;
                builder.build_store(row_at, builder.build_int_nuw_add(begin, number, "")?)?;
                builder.build_unconditional_branch(next)?;
                Ok(())
            })?;
            Ok(())
        })
    }

    /// The second time: slots.
    fn slots(&self, first: IntValue<'ctx>, rows: IntValue<'ctx>) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let (wide, byte) = (parts.context.i64_type(), parts.context.i8_type());
        let is_nullable = self.code.keys.iter().any(|key| key.nullable);
        builder.build_store(self.listed, builder.build_load(wide, self.found, "")?)?;
        parts.each(self.steps(rows), |number, next, _| {
            let load = |at| Built::Ok(builder.build_load(wide, at, "")?.into_int_value());
            let hash = load(parts.word(self.hashes, number)?)?;
            let slot = self.slot(hash)?;
            let before = load(parts.word(self.entries, slot)?)?;
            let entry = load(
                parts.word(self.entries, builder.build_int_nuw_add(slot, parts.number(1), "")?)?,
            )?;
            let of_tag = builder.build_and(hash, parts.number(TAG_MASK), "")?;
            let short = parts.context.i16_type();
            let tag = builder
                .build_load(short, self.element(short, self.tags, of_tag)?, "")?
                .into_int_value();
            let tag = builder.build_int_z_extend(tag, wide, "")?;
            let missing = builder.build_and(tag, builder.build_not(entry, "")?, "")?;
            // A slot without rows has no tags.
            let mut may_be =
                builder.build_int_compare(IntPredicate::EQ, missing, parts.number(0), "")?;
            if is_nullable {
                let valid =
                    builder.build_load(byte, self.element(byte, self.valid, number)?, "")?;
                let valid = valid.into_int_value();
                let valid =
                    builder.build_int_compare(IntPredicate::NE, valid, byte.const_zero(), "")?;
                may_be = builder.build_and(may_be, valid, "")?;
            }
            let row_of =
                |entry| builder.build_right_shift(entry, parts.number(ENTRY_TAG_BITS), false, "");
            let (begin, end) = (row_of(before)?, row_of(entry)?);
            parts.prefetch(self.row(begin)?)?;
            let all = builder.build_int_sub(end, begin, "")?;
            let count = builder.build_select(may_be, all, parts.number(0), "")?.into_int_value();
            let at = parts.add(Sharing::Alone, self.listed, count)?;
            let behind = builder.build_int_nuw_add(at, count, "")?;
            let fits = builder.build_int_compare(IntPredicate::ULE, behind, self.room, "")?;
            let list = parts.block("list");
            builder.build_conditional_branch(fits, list, self.full)?;
            builder.position_at_end(list);
            let tuple = builder.build_int_add(first, number, "")?;
            let tuple = builder.build_int_truncate(tuple, parts.context.i32_type(), "")?;
            self.list((tuple, begin), (at, count))?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    /// The third time: rows. The pairs that are some move to the front of what is listed.
    fn compare(&self, has_positions: bool) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let (wide, narrow) = (parts.context.i64_type(), parts.context.i32_type());
        let load =
            |of: IntType<'ctx>, at| Built::Ok(builder.build_load(of, at, "")?.into_int_value());
        let listed = Steps {
            first: load(wide, self.found)?,
            below: load(wide, self.listed)?,
            step: parts.number(1),
        };
        parts.each(listed, |number, next, end| {
            let tuple = load(narrow, self.element(narrow, parts.other(TUPLES), number)?)?;
            let row = load(wide, parts.word(parts.other(FOUND), number)?)?;
            let at = builder.build_int_z_extend(tuple, wide, "")?;
            let (keys, _) = self.keys(at, has_positions, (next, end))?;
            let row_at = self.row(row)?;
            let mut equal = parts.context.bool_type().const_all_ones();
            for ((key, offset), code) in keys.iter().zip(&self.code.offsets).zip(&self.code.keys) {
                let at =
                    self.element(parts.context.i8_type(), row_at, parts.number(*offset as u64))?;
                let of = match code.machine {
                    Machine::Integer { bits, .. } => parts.whole_type(bits),
                    _ => wide,
                };
                let key = key.value.into_int_value();
                let same = builder.build_int_compare(IntPredicate::EQ, load(of, at)?, key, "")?;
                equal = builder.build_and(equal, same, "")?;
            }
            let more = builder.build_int_z_extend(equal, wide, "")?;
            let place = parts.add(Sharing::Alone, self.found, more)?;
            builder.build_store(self.element(narrow, parts.other(TUPLES), place)?, tuple)?;
            builder.build_store(parts.word(parts.other(FOUND), place)?, row)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }
}
