//! Compiles look-ups in join tables: a function that writes a pair for each tuple and each matching
//! row of the table.
//!
//! Tuples are processed in blocks, in three passes: hashes, which prefetch directory slots; slots,
//! which list their rows and prefetch the first; and rows, which are compared. Prefetches thus
//! overlap with other work, and the intermediate lists stay in the L1 cache (Chen et al., ICDE
//! 2004; Menon et al., VLDB 2017). Rows are listed four at a time and pairs are compacted in place,
//! so that no unpredictable branch depends on how many rows a slot has or which match.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::{IntType, VectorType};
use inkwell::values::{BasicValue, IntValue, PointerValue, VectorValue};
use tessera_codegen::{LookupCode, MachineType, UNCHECKED_MATCHES};

use super::NONE;
use super::emitter::{FunctionEmitter, Row, Steps};
use super::provider::{Provider, Sharing};
use super::value::{Built, Value, set_alignment};

/// The name of the function.
pub(crate) const LOOKUP: &str = "lookup";

/// Indexes of the function's own parameters.
const TABLE: usize = 0;
const TUPLES: usize = 1;
const FOUND: usize = 2;

/// Tuples in a block: enough to hide the latency of prefetches. With 2^23 tuples and 2^15 rows, 64,
/// 128 and 256 perform alike.
const BLOCK_ROWS: u64 = 128;
/// The bits of a hash that select its tag, and the tag bits of a directory entry.
const TAG_MASK: u64 = 2_047;
const ENTRY_TAG_BITS: u64 = 16;

/// Adds the CPU function of look-ups to a module ([`tessera_codegen::Lookup::run`]).
pub(crate) fn lower_lookup<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: &LookupCode,
) -> Built<()> {
    let emitter = FunctionEmitter::begin(of, (provider, LOOKUP), (&code.keys, &[]), 3)?;
    let (builder, wide, context) = (&emitter.builder, emitter.context.i64_type(), emitter.context);
    let word = |number| {
        let at = emitter.word(emitter.parameter(TABLE), emitter.number(number))?;
        Built::Ok(builder.build_load(wide, at, "")?.into_int_value())
    };
    let pointer = |number| {
        let of = context.ptr_type(inkwell::AddressSpace::default());
        let at = emitter.word(emitter.parameter(TABLE), emitter.number(number))?;
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
        found: emitter.variable(emitter.number(0))?,
        list_entry: emitter.variable(emitter.number(0))?,
        full: emitter.block("full"),
        emitter: &emitter,
    };
    let (at_positions, at_all) = (emitter.block("at_positions"), emitter.block("at_all"));
    builder.build_conditional_branch(emitter.are_all()?, at_all, at_positions)?;
    for (block, has_positions) in [(at_positions, true), (at_all, false)] {
        builder.position_at_end(block);
        lookup.blocks(has_positions)?;
    }
    builder.position_at_end(lookup.full);
    builder.build_return(Some(&emitter.number(NONE) as &dyn BasicValue<'ctx>))?;
    Ok(())
}

struct Lookup<'a, 'ctx> {
    emitter: &'a FunctionEmitter<'a, 'ctx>,
    code: &'a LookupCode,
    entries: PointerValue<'ctx>,
    shift: IntValue<'ctx>,
    tags: PointerValue<'ctx>,
    rows: PointerValue<'ctx>,
    room: IntValue<'ctx>,
    /// Hashes of the block's tuples, and whether all keys are not NULL.
    hashes: PointerValue<'ctx>,
    valid: PointerValue<'ctx>,
    /// The number of confirmed pairs, and of pairs including candidates.
    found: PointerValue<'ctx>,
    list_entry: PointerValue<'ctx>,
    /// The block that returns early because the output is full.
    full: BasicBlock<'ctx>,
}

impl<'ctx> Lookup<'_, 'ctx> {
    /// Emits the loop over blocks, and the end of the function.
    fn blocks(&self, has_positions: bool) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let all = Steps {
            first: emitter.number(0),
            below: emitter.rows,
            step: emitter.number(BLOCK_ROWS),
        };
        emitter.each(all, |first, next, _| {
            let rest = builder.build_int_sub(emitter.rows, first, "")?;
            let is_last = builder.build_int_compare(
                IntPredicate::ULT,
                rest,
                emitter.number(BLOCK_ROWS),
                "",
            )?;
            let rows = builder
                .build_select(is_last, rest, emitter.number(BLOCK_ROWS), "")?
                .into_int_value();
            self.hash(first, rows, has_positions)?;
            self.slots(first, rows)?;
            self.compare(has_positions)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        let found = builder.build_load(emitter.context.i64_type(), self.found, "")?;
        builder.build_return(Some(&found as &dyn BasicValue<'ctx>))?;
        Ok(())
    }

    fn steps(&self, below: IntValue<'ctx>) -> Steps<'ctx> {
        Steps { first: self.emitter.number(0), below, step: self.emitter.number(1) }
    }

    /// Loads the keys of a tuple, and whether all are not NULL.
    fn keys(
        &self,
        number: IntValue<'ctx>,
        has_positions: bool,
        (next, end): (BasicBlock<'ctx>, BasicBlock<'ctx>),
    ) -> Built<(Vec<Value<'ctx>>, Option<IntValue<'ctx>>)> {
        let position = if has_positions { self.emitter.position(number)? } else { number };
        let mut values = self.emitter.values(&Row { number, position, next, end });
        let keys =
            (0..self.code.keys.len()).map(|key| values.input(key)).collect::<Built<Vec<_>>>()?;
        let valid = values.all_valid(&keys)?;
        Ok((keys.into_iter().map(|key| Value { valid: None, ..key }).collect(), valid))
    }

    /// First pass: hashes.
    fn hash(&self, first: IntValue<'ctx>, rows: IntValue<'ctx>, has_positions: bool) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let byte = emitter.context.i8_type();
        emitter.each(self.steps(rows), |number, next, end| {
            let at = builder.build_int_add(first, number, "")?;
            let (keys, valid) = self.keys(at, has_positions, (next, end))?;
            let state = emitter.hash(&keys, &self.code.keys)?;
            builder.build_store(emitter.word(self.hashes, number)?, state)?;
            if let Some(valid) = valid {
                let valid = builder.build_int_z_extend(valid, byte, "")?;
                builder.build_store(self.element(byte, self.valid, number)?, valid)?;
            }
            emitter.prefetch(emitter.word(self.entries, self.slot(state)?)?)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    fn slot(&self, hash: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        self.emitter.builder.build_right_shift(hash, self.shift, false, "")
    }

    fn element(
        &self,
        of: IntType<'ctx>,
        first: PointerValue<'ctx>,
        number: IntValue<'ctx>,
    ) -> Built<PointerValue<'ctx>> {
        // SAFETY: this only computes an address; each access justifies its own bounds.
        unsafe { self.emitter.builder.build_in_bounds_gep(of, first, &[number], "") }
    }

    /// Returns the address of a row of the table.
    fn row(&self, number: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        let stride = self.emitter.number(self.code.stride as u64);
        let offset = self.emitter.builder.build_int_nuw_mul(number, stride, "")?;
        self.element(self.emitter.context.i8_type(), self.rows, offset)
    }

    /// Broadcasts a number to a vector as wide as the pairs that are written together.
    fn repeated(&self, number: IntValue<'ctx>) -> Built<VectorValue<'ctx>> {
        let (builder, of) =
            (&self.emitter.builder, number.get_type().vec_type(UNCHECKED_MATCHES as u32));
        let one =
            builder.build_insert_element(of.get_undef(), number, self.emitter.number(0), "")?;
        let first = self.emitter.context.i32_type().vec_type(UNCHECKED_MATCHES as u32).const_zero();
        builder.build_shuffle_vector(one, of.get_undef(), first, "")
    }

    /// Lists a tuple with `count` candidate rows from `begin`, starting at output `at`.
    fn list(
        &self,
        (tuple, begin): (IntValue<'ctx>, IntValue<'ctx>),
        (at, count): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let (wide, narrow) = (emitter.context.i64_type(), emitter.context.i32_type());
        let place = |at| {
            let tuple = self.element(narrow, emitter.parameter(TUPLES), at)?;
            Built::Ok((tuple, emitter.word(emitter.parameter(FOUND), at)?))
        };
        let following: Vec<IntValue<'ctx>> =
            (0..UNCHECKED_MATCHES as u64).map(|number| wide.const_int(number, false)).collect();
        let tuples = self.repeated(tuple)?;
        let rows = builder.build_int_add(
            self.repeated(begin)?,
            VectorType::const_vector(&following),
            "",
        )?;
        let (tuples_at, rows_at) = place(at)?;
        set_alignment(Some(builder.build_store(tuples_at, tuples)?), 4);
        set_alignment(Some(builder.build_store(rows_at, rows)?), 8);
        let lower_in_registers = emitter.number(UNCHECKED_MATCHES as u64);
        let are_more =
            builder.build_int_compare(IntPredicate::UGT, count, lower_in_registers, "")?;
        emitter.only_if(Some(are_more), || {
            let rest = Steps { first: lower_in_registers, below: count, step: emitter.number(1) };
            emitter.each(rest, |number, next, _| {
                let (tuple_at, row_at) = place(builder.build_int_nuw_add(at, number, "")?)?;
                builder.build_store(tuple_at, tuple)?;
                builder.build_store(row_at, builder.build_int_nuw_add(begin, number, "")?)?;
                builder.build_unconditional_branch(next)?;
                Ok(())
            })?;
            Ok(())
        })
    }

    /// Second pass: slots.
    fn slots(&self, first: IntValue<'ctx>, rows: IntValue<'ctx>) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let (wide, byte) = (emitter.context.i64_type(), emitter.context.i8_type());
        let is_nullable = self.code.keys.iter().any(|key| key.nullable);
        builder.build_store(self.list_entry, builder.build_load(wide, self.found, "")?)?;
        emitter.each(self.steps(rows), |number, next, _| {
            let load = |at| Built::Ok(builder.build_load(wide, at, "")?.into_int_value());
            let hash = load(emitter.word(self.hashes, number)?)?;
            let slot = self.slot(hash)?;
            let before = load(emitter.word(self.entries, slot)?)?;
            let entry = load(
                emitter
                    .word(self.entries, builder.build_int_nuw_add(slot, emitter.number(1), "")?)?,
            )?;
            let of_tag = builder.build_and(hash, emitter.number(TAG_MASK), "")?;
            let short = emitter.context.i16_type();
            let tag = builder
                .build_load(short, self.element(short, self.tags, of_tag)?, "")?
                .into_int_value();
            let tag = builder.build_int_z_extend(tag, wide, "")?;
            let missing = builder.build_and(tag, builder.build_not(entry, "")?, "")?;
            // An empty slot has no tags.
            let mut may_be =
                builder.build_int_compare(IntPredicate::EQ, missing, emitter.number(0), "")?;
            if is_nullable {
                let valid =
                    builder.build_load(byte, self.element(byte, self.valid, number)?, "")?;
                let valid = valid.into_int_value();
                let valid =
                    builder.build_int_compare(IntPredicate::NE, valid, byte.const_zero(), "")?;
                may_be = builder.build_and(may_be, valid, "")?;
            }
            let row_of =
                |entry| builder.build_right_shift(entry, emitter.number(ENTRY_TAG_BITS), false, "");
            let (begin, end) = (row_of(before)?, row_of(entry)?);
            emitter.prefetch(self.row(begin)?)?;
            let all = builder.build_int_sub(end, begin, "")?;
            let count = builder.build_select(may_be, all, emitter.number(0), "")?.into_int_value();
            let at = emitter.add(Sharing::Exclusive, self.list_entry, count)?;
            let behind = builder.build_int_nuw_add(at, count, "")?;
            let fits = builder.build_int_compare(IntPredicate::ULE, behind, self.room, "")?;
            let list = emitter.block("list");
            builder.build_conditional_branch(fits, list, self.full)?;
            builder.position_at_end(list);
            let tuple = builder.build_int_add(first, number, "")?;
            let tuple = builder.build_int_truncate(tuple, emitter.context.i32_type(), "")?;
            self.list((tuple, begin), (at, count))?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    /// Third pass: rows. Confirmed pairs are moved to the front of the list.
    fn compare(&self, has_positions: bool) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let (wide, narrow) = (emitter.context.i64_type(), emitter.context.i32_type());
        let load =
            |of: IntType<'ctx>, at| Built::Ok(builder.build_load(of, at, "")?.into_int_value());
        let list_entry = Steps {
            first: load(wide, self.found)?,
            below: load(wide, self.list_entry)?,
            step: emitter.number(1),
        };
        emitter.each(list_entry, |number, next, end| {
            let tuple = load(narrow, self.element(narrow, emitter.parameter(TUPLES), number)?)?;
            let row = load(wide, emitter.word(emitter.parameter(FOUND), number)?)?;
            let at = builder.build_int_z_extend(tuple, wide, "")?;
            let (keys, _) = self.keys(at, has_positions, (next, end))?;
            let row_at = self.row(row)?;
            let mut equal = emitter.context.bool_type().const_all_ones();
            for ((key, offset), code) in keys.iter().zip(&self.code.offsets).zip(&self.code.keys) {
                let at = self.element(
                    emitter.context.i8_type(),
                    row_at,
                    emitter.number(*offset as u64),
                )?;
                let of = match code.machine {
                    MachineType::Integer { bits, .. } => emitter.whole_type(bits),
                    _ => wide,
                };
                let key = key.value.into_int_value();
                let same = builder.build_int_compare(IntPredicate::EQ, load(of, at)?, key, "")?;
                equal = builder.build_and(equal, same, "")?;
            }
            let more = builder.build_int_z_extend(equal, wide, "")?;
            let place = emitter.add(Sharing::Exclusive, self.found, more)?;
            builder.build_store(self.element(narrow, emitter.parameter(TUPLES), place)?, tuple)?;
            builder.build_store(emitter.word(emitter.parameter(FOUND), place)?, row)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }
}
