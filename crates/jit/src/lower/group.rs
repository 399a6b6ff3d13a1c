//! Groups: a function that finds or makes those of tuples in a group table, block by block as
//! look-ups do ([`super::lookup`]).

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{IntValue, PointerValue};
use tessera_codegen::{GROUP_SLOT_BITS, GroupCode, Machine};

use super::parts::{Parts, Row, Steps};
use super::provider::Provider;
use super::value::{Built, Value};

/// The name of the function.
pub(crate) const GROUP: &str = "group";

/// Its own parameters.
const TABLE: usize = 0;
const GROUPS: usize = 1;

/// Tuples of a block: enough for what is asked for to come meanwhile.
const BLOCK_ROWS: u64 = 64;
/// Keys of which a word has the bits of NULL.
const NULL_BITS: usize = 64;

/// Adds the function that finds or makes groups to a module, as
/// [`tessera_codegen::FindGroups::run`] has it; a processor's.
pub(crate) fn lower_group<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: &GroupCode,
) -> Built<()> {
    let parts = Parts::begin(of, (provider, GROUP), (&code.keys, &[]), 2)?;
    let (builder, wide) = (&parts.builder, parts.context.i64_type());
    let word = |number| {
        let at = parts.word(parts.other(TABLE), parts.number(number))?;
        Built::Ok(builder.build_load(wide, at, "")?.into_int_value())
    };
    let pointer = |number| {
        let of = parts.context.ptr_type(inkwell::AddressSpace::default());
        let at = parts.word(parts.other(TABLE), parts.number(number))?;
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
        count: parts.word(parts.other(TABLE), parts.number(5))?,
        parts: &parts,
    };
    let (at_positions, at_all) = (parts.block("at_positions"), parts.block("at_all"));
    builder.build_conditional_branch(parts.are_all()?, at_all, at_positions)?;
    for (block, has_positions) in [(at_positions, true), (at_all, false)] {
        builder.position_at_end(block);
        group.blocks(has_positions)?;
    }
    Ok(())
}

struct Group<'a, 'ctx> {
    parts: &'a Parts<'a, 'ctx>,
    code: &'a GroupCode,
    slots: PointerValue<'ctx>,
    mask: IntValue<'ctx>,
    rotation: IntValue<'ctx>,
    shift: IntValue<'ctx>,
    records: PointerValue<'ctx>,
    /// Of the tuples of a block.
    hashes: PointerValue<'ctx>,
    /// Where it stands how many groups there are.
    count: PointerValue<'ctx>,
}

impl<'ctx> Group<'_, 'ctx> {
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
            self.records(rows)?;
            self.find(first, rows, has_positions)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        builder.build_return(Some(&parts.number(0)))?;
        Ok(())
    }

    fn steps(&self, below: IntValue<'ctx>) -> Steps<'ctx> {
        Steps { first: self.parts.number(0), below, step: self.parts.number(1) }
    }

    fn keys(
        &self,
        number: IntValue<'ctx>,
        has_positions: bool,
        (next, end): (BasicBlock<'ctx>, BasicBlock<'ctx>),
    ) -> Built<Vec<Value<'ctx>>> {
        let position = if has_positions { self.parts.position(number)? } else { number };
        let mut values = self.parts.values(&Row { number, position, next, end });
        (0..self.code.keys.len()).map(|key| values.input(key)).collect()
    }

    fn load(&self, words: PointerValue<'ctx>, number: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let wide = self.parts.context.i64_type();
        Ok(self
            .parts
            .builder
            .build_load(wide, self.parts.word(words, number)?, "")?
            .into_int_value())
    }

    /// The first time: hashes, which ask for their slots.
    fn hash(&self, first: IntValue<'ctx>, rows: IntValue<'ctx>, has_positions: bool) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        parts.each(self.steps(rows), |number, next, end| {
            let at = builder.build_int_add(first, number, "")?;
            let keys = self.keys(at, has_positions, (next, end))?;
            let hash = parts.hash(&keys, &self.code.keys)?;
            builder.build_store(parts.word(self.hashes, number)?, hash)?;
            parts.prefetch(parts.word(self.slots, self.place(hash)?)?)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    /// The number of a hash's slot.
    fn place(&self, hash: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        // Two shifts of which neither is by 64.
        let bits = builder.build_and(self.rotation, parts.number(63), "")?;
        let rest = builder.build_and(builder.build_int_neg(bits, "")?, parts.number(63), "")?;
        let left = builder.build_left_shift(hash, bits, "")?;
        let right = builder.build_right_shift(hash, rest, false, "")?;
        let rotated = builder.build_or(left, right, "")?;
        builder.build_right_shift(rotated, self.shift, false, "")
    }

    /// Whether a slot has a hash's lowest bits.
    fn has_tag(&self, slot: IntValue<'ctx>, hash: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let bits = parts.number(GROUP_SLOT_BITS.into());
        let differs = builder.build_xor(slot, builder.build_left_shift(hash, bits, "")?, "")?;
        let differs = builder.build_right_shift(differs, bits, false, "")?;
        builder.build_int_compare(IntPredicate::EQ, differs, parts.number(0), "")
    }

    /// The group of a slot that is taken, and its record.
    fn group(&self, slot: IntValue<'ctx>) -> Built<(IntValue<'ctx>, PointerValue<'ctx>)> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let group = builder.build_and(slot, parts.number((1 << GROUP_SLOT_BITS) - 1), "")?;
        let group = builder.build_int_sub(group, parts.number(1), "")?;
        let word = builder.build_int_mul(group, parts.number(self.code.stride as u64), "")?;
        Ok((group, parts.word(self.records, word)?))
    }

    /// The second time: slots, which ask for their records. Of a free one something is asked for
    /// that nobody reads.
    fn records(&self, rows: IntValue<'ctx>) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        parts.each(self.steps(rows), |number, next, _| {
            let hash = self.load(self.hashes, number)?;
            let slot = self.load(self.slots, self.place(hash)?)?;
            let is_free = builder.build_int_compare(IntPredicate::EQ, slot, parts.number(0), "")?;
            let slot = builder.build_select(is_free, parts.number(1), slot, "")?.into_int_value();
            parts.prefetch(self.group(slot)?.1)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        Ok(())
    }

    /// The third time: from slot to slot until one has the tuple's record, or is free and a new
    /// group's.
    fn find(&self, first: IntValue<'ctx>, rows: IntValue<'ctx>, has_positions: bool) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let (wide, narrow) = (parts.context.i64_type(), parts.context.i32_type());
        parts.each(self.steps(rows), |number, next, end| {
            let at = builder.build_int_add(first, number, "")?;
            let hash = self.load(self.hashes, number)?;
            let wanted = self.words(&self.keys(at, has_positions, (next, end))?)?;
            // SAFETY: an address is computed; there is room for all groups.
            let out =
                unsafe { builder.build_in_bounds_gep(narrow, parts.other(GROUPS), &[at], "")? };
            let Some(before) = builder.get_insert_block() else {
                return Err(inkwell::builder::BuilderError::UnsetPosition);
            };
            let (look, taken, perhaps, further) = (
                parts.block("look"),
                parts.block("taken"),
                parts.block("perhaps"),
                parts.block("further"),
            );
            let (free, found) = (parts.block("free"), parts.block("found"));
            let start = self.place(hash)?;
            builder.build_unconditional_branch(look)?;
            builder.position_at_end(look);
            let phi = builder.build_phi(wide, "place")?;
            let place = phi.as_basic_value().into_int_value();
            let slot = self.load(self.slots, place)?;
            let is_free = builder.build_int_compare(IntPredicate::EQ, slot, parts.number(0), "")?;
            builder.build_conditional_branch(is_free, free, taken)?;

            builder.position_at_end(taken);
            builder.build_conditional_branch(self.has_tag(slot, hash)?, perhaps, further)?;
            builder.position_at_end(perhaps);
            let (group, record) = self.group(slot)?;
            let mut differs = builder.build_xor(self.load(record, parts.number(0))?, hash, "")?;
            for (word, value) in &wanted {
                let there = self.load(record, parts.number(*word as u64))?;
                differs = builder.build_or(differs, builder.build_xor(there, *value, "")?, "")?;
            }
            let is_its =
                builder.build_int_compare(IntPredicate::EQ, differs, parts.number(0), "")?;
            builder.build_conditional_branch(is_its, found, further)?;

            builder.position_at_end(further);
            let following = builder.build_int_add(place, parts.number(1), "")?;
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

    /// A new group, of these words, in a slot that is free.
    fn make(
        &self,
        hash: IntValue<'ctx>,
        place: IntValue<'ctx>,
        keys: &[(usize, IntValue<'ctx>)],
    ) -> Built<IntValue<'ctx>> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let group = self.load(self.count, parts.number(0))?;
        let following = builder.build_int_add(group, parts.number(1), "")?;
        builder.build_store(self.count, following)?;
        let tag = builder.build_left_shift(hash, parts.number(GROUP_SLOT_BITS.into()), "")?;
        builder
            .build_store(parts.word(self.slots, place)?, builder.build_or(tag, following, "")?)?;
        let first = builder.build_int_mul(group, parts.number(self.code.stride as u64), "")?;
        let record = parts.word(self.records, first)?;
        // What a record was before may be anything; states begin with zeros.
        let mut words = vec![parts.number(0); self.code.stride];
        words[0] = hash;
        keys.iter().for_each(|(word, key)| words[*word] = *key);
        for (at, word) in words.into_iter().enumerate() {
            builder.build_store(parts.word(record, parts.number(at as u64))?, word)?;
        }
        Ok(group)
    }

    /// The words of a record behind its hash that a tuple's keys make.
    fn words(&self, keys: &[Value<'ctx>]) -> Built<Vec<(usize, IntValue<'ctx>)>> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let wide = parts.context.i64_type();
        let mut nulls = vec![parts.number(0); keys.len().div_ceil(NULL_BITS)];
        let mut words = Vec::new();
        for (number, ((key, code), offset)) in
            keys.iter().zip(&self.code.keys).zip(&self.code.offsets).enumerate()
        {
            let mut own = match code.machine {
                Machine::Integer { bits: 128, .. } => {
                    let long = key.value.into_int_value();
                    let shift = long.get_type().const_int(64, false);
                    let high = builder.build_right_shift(long, shift, false, "")?;
                    vec![
                        builder.build_int_truncate(long, wide, "")?,
                        builder.build_int_truncate(high, wide, "")?,
                    ]
                }
                machine => vec![parts.hashed_word(key.value, machine)?],
            };
            if let Some(valid) = key.valid {
                for word in &mut own {
                    *word =
                        builder.build_select(valid, *word, parts.number(0), "")?.into_int_value();
                }
                let is_null =
                    builder.build_int_z_extend(builder.build_not(valid, "")?, wide, "")?;
                let bit = builder.build_left_shift(
                    is_null,
                    parts.number((number % NULL_BITS) as u64),
                    "",
                )?;
                nulls[number / NULL_BITS] = builder.build_or(nulls[number / NULL_BITS], bit, "")?;
            }
            words.extend(own.into_iter().enumerate().map(|(at, word)| (offset + at, word)));
        }
        Ok(nulls.into_iter().enumerate().map(|(at, word)| (1 + at, word)).chain(words).collect())
    }
}
