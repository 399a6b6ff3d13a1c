//! Compiles look-ups in group tables: a function that finds or creates the groups of tuples, in
//! blocks and passes like [`super::lookup`].

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{IntValue, PointerValue};
use tessera_codegen::{GROUP_SLOT_BITS, GroupCode, MachineType};

use super::emitter::{FunctionEmitter, Row, Steps};
use super::provider::Provider;
use super::value::{Built, Value};

/// The name of the function.
pub(crate) const GROUP: &str = "group";

/// Indexes of the function's own parameters.
const TABLE: usize = 0;
const GROUPS: usize = 1;

/// Tuples in a block: enough to hide the latency of prefetches.
const BLOCK_ROWS: u64 = 64;
/// The number of keys with NULL bits in one word.
const NULL_BITS: usize = 64;

/// Adds the CPU function that finds or creates groups to a module
/// ([`tessera_codegen::FindGroups::run`]).
pub(crate) fn lower_group<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: &GroupCode,
) -> Built<()> {
    let emitter = FunctionEmitter::begin(of, (provider, GROUP), (&code.keys, &[]), 2)?;
    let (builder, wide) = (&emitter.builder, emitter.context.i64_type());
    let word = |number| {
        let at = emitter.word(emitter.parameter(TABLE), emitter.number(number))?;
        Built::Ok(builder.build_load(wide, at, "")?.into_int_value())
    };
    let pointer = |number| {
        let of = emitter.context.ptr_type(inkwell::AddressSpace::default());
        let at = emitter.word(emitter.parameter(TABLE), emitter.number(number))?;
        Built::Ok(builder.build_load(of, at, "")?.into_pointer_value())
    };
    let group = Group {
        code,
        slots: pointer(0)?,
        mask: word(1)?,
        rotation: word(2)?,
        shift: word(3)?,
        records: pointer(4)?,
        hashes: builder.build_alloca(wide.array_type(BLOCK_ROWS as u32), "block")?,
        count: emitter.word(emitter.parameter(TABLE), emitter.number(5))?,
        emitter: &emitter,
    };
    let (at_positions, at_all) = (emitter.block("at_positions"), emitter.block("at_all"));
    builder.build_conditional_branch(emitter.are_all()?, at_all, at_positions)?;
    for (block, has_positions) in [(at_positions, true), (at_all, false)] {
        builder.position_at_end(block);
        group.blocks(has_positions)?;
    }
    Ok(())
}

struct Group<'a, 'ctx> {
    emitter: &'a FunctionEmitter<'a, 'ctx>,
    code: &'a GroupCode,
    slots: PointerValue<'ctx>,
    mask: IntValue<'ctx>,
    rotation: IntValue<'ctx>,
    shift: IntValue<'ctx>,
    records: PointerValue<'ctx>,
    /// The hashes of the block's tuples.
    hashes: PointerValue<'ctx>,
    /// The address of the number of groups.
    count: PointerValue<'ctx>,
}

impl<'ctx> Group<'_, 'ctx> {
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
            self.records(rows)?;
            self.find(first, rows, has_positions)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        builder.build_return(Some(&emitter.number(0)))?;
        Ok(())
    }

    fn steps(&self, below: IntValue<'ctx>) -> Steps<'ctx> {
        Steps { first: self.emitter.number(0), below, step: self.emitter.number(1) }
    }

    fn keys(
        &self,
        number: IntValue<'ctx>,
        has_positions: bool,
        (next, end): (BasicBlock<'ctx>, BasicBlock<'ctx>),
    ) -> Built<Vec<Value<'ctx>>> {
        let position = if has_positions { self.emitter.position(number)? } else { number };
        let mut values = self.emitter.values(&Row { number, position, next, end });
        (0..self.code.keys.len()).map(|key| values.input(key)).collect()
    }

    fn load(&self, words: PointerValue<'ctx>, number: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let wide = self.emitter.context.i64_type();
        Ok(self
            .emitter
            .builder
            .build_load(wide, self.emitter.word(words, number)?, "")?
            .into_int_value())
    }

    /// First pass: hashes, which prefetch their slots.
    fn hash(&self, first: IntValue<'ctx>, rows: IntValue<'ctx>, has_positions: bool) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        emitter.each(self.steps(rows), |number, next, end| {
            let at = builder.build_int_add(first, number, "")?;
            let keys = self.keys(at, has_positions, (next, end))?;
            let hash = emitter.hash(&keys, &self.code.keys)?;
            builder.build_store(emitter.word(self.hashes, number)?, hash)?;
            emitter.prefetch(emitter.word(self.slots, self.place(hash)?)?)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    /// Returns the slot index of a hash.
    fn place(&self, hash: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        // A rotation by two shifts, neither of which is by 64.
        let bits = builder.build_and(self.rotation, emitter.number(63), "")?;
        let rest = builder.build_and(builder.build_int_neg(bits, "")?, emitter.number(63), "")?;
        let left = builder.build_left_shift(hash, bits, "")?;
        let right = builder.build_right_shift(hash, rest, false, "")?;
        let rotated = builder.build_or(left, right, "")?;
        builder.build_right_shift(rotated, self.shift, false, "")
    }

    /// Computes whether a slot has the lowest bits of a hash.
    fn has_tag(&self, slot: IntValue<'ctx>, hash: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let bits = emitter.number(GROUP_SLOT_BITS.into());
        let differs = builder.build_xor(slot, builder.build_left_shift(hash, bits, "")?, "")?;
        let differs = builder.build_right_shift(differs, bits, false, "")?;
        builder.build_int_compare(IntPredicate::EQ, differs, emitter.number(0), "")
    }

    /// Returns the group of an occupied slot, and its record.
    fn group(&self, slot: IntValue<'ctx>) -> Built<(IntValue<'ctx>, PointerValue<'ctx>)> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let group = builder.build_and(slot, emitter.number((1 << GROUP_SLOT_BITS) - 1), "")?;
        let group = builder.build_int_sub(group, emitter.number(1), "")?;
        let word = builder.build_int_mul(group, emitter.number(self.code.stride as u64), "")?;
        Ok((group, emitter.word(self.records, word)?))
    }

    /// Second pass: slots, which prefetch their records. A free slot prefetches an unused address.
    fn records(&self, rows: IntValue<'ctx>) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        emitter.each(self.steps(rows), |number, next, _| {
            let hash = self.load(self.hashes, number)?;
            let slot = self.load(self.slots, self.place(hash)?)?;
            let is_free =
                builder.build_int_compare(IntPredicate::EQ, slot, emitter.number(0), "")?;
            let slot = builder.build_select(is_free, emitter.number(1), slot, "")?.into_int_value();
            emitter.prefetch(self.group(slot)?.1)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    /// Third pass: probes slots until one has the tuple's record, or is free and gets a new group.
    fn find(&self, first: IntValue<'ctx>, rows: IntValue<'ctx>, has_positions: bool) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let (wide, narrow) = (emitter.context.i64_type(), emitter.context.i32_type());
        emitter.each(self.steps(rows), |number, next, end| {
            let at = builder.build_int_add(first, number, "")?;
            let hash = self.load(self.hashes, number)?;
            let wanted = self.words(&self.keys(at, has_positions, (next, end))?)?;
            // SAFETY: this only computes an address; the output has room for all groups.
            let out = unsafe {
                builder.build_in_bounds_gep(narrow, emitter.parameter(GROUPS), &[at], "")?
            };
            let Some(before) = builder.get_insert_block() else {
                return Err(inkwell::builder::BuilderError::UnsetPosition);
            };
            let (look, taken, perhaps, further) = (
                emitter.block("look"),
                emitter.block("taken"),
                emitter.block("perhaps"),
                emitter.block("further"),
            );
            let (free, found) = (emitter.block("free"), emitter.block("found"));
            let start = self.place(hash)?;
            builder.build_unconditional_branch(look)?;
            builder.position_at_end(look);
            let phi = builder.build_phi(wide, "place")?;
            let place = phi.as_basic_value().into_int_value();
            let slot = self.load(self.slots, place)?;
            let is_free =
                builder.build_int_compare(IntPredicate::EQ, slot, emitter.number(0), "")?;
            builder.build_conditional_branch(is_free, free, taken)?;

            builder.position_at_end(taken);
            builder.build_conditional_branch(self.has_tag(slot, hash)?, perhaps, further)?;
            builder.position_at_end(perhaps);
            let (group, record) = self.group(slot)?;
            let mut differs = builder.build_xor(self.load(record, emitter.number(0))?, hash, "")?;
            for (word, value) in &wanted {
                let there = self.load(record, emitter.number(*word as u64))?;
                differs = builder.build_or(differs, builder.build_xor(there, *value, "")?, "")?;
            }
            let is_its =
                builder.build_int_compare(IntPredicate::EQ, differs, emitter.number(0), "")?;
            builder.build_conditional_branch(is_its, found, further)?;

            builder.position_at_end(further);
            let following = builder.build_int_add(place, emitter.number(1), "")?;
            let following = builder.build_and(following, self.mask, "")?;
            builder.build_unconditional_branch(look)?;
            phi.add_incoming(&[(&start, before), (&following, further)]);

            builder.position_at_end(found);
            builder.build_store(out, builder.build_int_truncate(group, narrow, "")?)?;
            builder.build_unconditional_branch(next)?;
            builder.position_at_end(free);
            let group = self.make(hash, place, &wanted)?;
            builder.build_store(out, builder.build_int_truncate(group, narrow, "")?)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    /// Creates a group with the given key words in a free slot.
    fn make(
        &self,
        hash: IntValue<'ctx>,
        place: IntValue<'ctx>,
        keys: &[(usize, IntValue<'ctx>)],
    ) -> Built<IntValue<'ctx>> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let group = self.load(self.count, emitter.number(0))?;
        let following = builder.build_int_add(group, emitter.number(1), "")?;
        builder.build_store(self.count, following)?;
        let tag = builder.build_left_shift(hash, emitter.number(GROUP_SLOT_BITS.into()), "")?;
        builder
            .build_store(emitter.word(self.slots, place)?, builder.build_or(tag, following, "")?)?;
        let first = builder.build_int_mul(group, emitter.number(self.code.stride as u64), "")?;
        let record = emitter.word(self.records, first)?;
        // The record is uninitialized memory; states begin with zeros.
        let mut words = vec![emitter.number(0); self.code.stride];
        words[0] = hash;
        keys.iter().for_each(|(word, key)| words[*word] = *key);
        for (at, word) in words.into_iter().enumerate() {
            builder.build_store(emitter.word(record, emitter.number(at as u64))?, word)?;
        }
        Ok(group)
    }

    /// Returns the words that a tuple's keys have in a record, after the hash.
    fn words(&self, keys: &[Value<'ctx>]) -> Built<Vec<(usize, IntValue<'ctx>)>> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let wide = emitter.context.i64_type();
        let mut nulls = vec![emitter.number(0); keys.len().div_ceil(NULL_BITS)];
        let mut words = Vec::new();
        for (number, ((key, code), offset)) in
            keys.iter().zip(&self.code.keys).zip(&self.code.offsets).enumerate()
        {
            let mut own = match code.machine {
                MachineType::Integer { bits: 128, .. } => {
                    let long = key.value.into_int_value();
                    let shift = long.get_type().const_int(64, false);
                    let high = builder.build_right_shift(long, shift, false, "")?;
                    vec![
                        builder.build_int_truncate(long, wide, "")?,
                        builder.build_int_truncate(high, wide, "")?,
                    ]
                }
                machine => vec![emitter.hashed_word(key.value, machine)?],
            };
            if let Some(valid) = key.valid {
                for word in &mut own {
                    *word =
                        builder.build_select(valid, *word, emitter.number(0), "")?.into_int_value();
                }
                let is_null =
                    builder.build_int_z_extend(builder.build_not(valid, "")?, wide, "")?;
                let bit = builder.build_left_shift(
                    is_null,
                    emitter.number((number % NULL_BITS) as u64),
                    "",
                )?;
                nulls[number / NULL_BITS] = builder.build_or(nulls[number / NULL_BITS], bit, "")?;
            }
            words.extend(own.into_iter().enumerate().map(|(at, word)| (offset + at, word)));
        }
        Ok(nulls.into_iter().enumerate().map(|(at, word)| (1 + at, word)).chain(words).collect())
    }
}
