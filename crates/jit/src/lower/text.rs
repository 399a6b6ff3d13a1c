//! Compiles operations on texts in Arrow's view layout: equality, LIKE and substrings.
//!
//! Operations that loop become functions of the module: comparison of bytes, search for a
//! substring, and length of a number of characters in bytes. The search tests 16 positions at a
//! time by the first and last byte of the pattern (Muła, *SIMD-friendly algorithms for substring
//! searching*).

mod helpers;

use inkwell::builder::BuilderError;
use inkwell::values::{IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tessera_codegen::{LikeCode, SHORT_TEXT_BYTES, TextCode};

use super::value::{Built, Value, Values};
pub(crate) use helpers::poll_function;
use helpers::{call_integer, characters_function, current_block, equal_function, find_function};

/// Bytes of a view, and of its length prefix before the bytes of a short text.
const VIEW_BYTES: u64 = 16;
const VIEW_HEAD_BYTES: u64 = 4;

/// A text of a tuple.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'ctx> {
    /// The address of its first byte, if it is not empty.
    address: PointerValue<'ctx>,
    /// Its length in bytes.
    length: IntValue<'ctx>,
    /// The words of its view; `None` for substrings.
    view: Option<[IntValue<'ctx>; 2]>,
    /// Whether it is not NULL; `None` if it never is. A NULL text has length 0.
    valid: Option<IntValue<'ctx>>,
}

impl<'ctx> Values<'_, 'ctx> {
    fn word(&self, value: u64) -> IntValue<'ctx> {
        self.context.i64_type().const_int(value, false)
    }

    fn byte_at(
        &self,
        first: PointerValue<'ctx>,
        number: IntValue<'ctx>,
    ) -> Built<PointerValue<'ctx>> {
        // SAFETY: this only computes an address; each access justifies its own bounds.
        unsafe { self.builder.build_gep(self.context.i8_type(), first, &[number], "") }
    }

    /// Returns a text, which is computed only once. Call it outside of branches, because later code
    /// reuses it.
    fn text(&mut self, code: &TextCode) -> Built<Text<'ctx>> {
        if let Some((_, text)) = self.texts.iter().find(|(known, _)| known == code) {
            return Ok(*text);
        }
        let text = self.new_text(code)?;
        self.texts.push((code.clone(), text));
        Ok(text)
    }

    fn new_text(&mut self, code: &TextCode) -> Built<Text<'ctx>> {
        match code {
            TextCode::Input(number) => self.text_of_view(*number),
            TextCode::RuntimeConstant { first, .. } => {
                let [low, high, address] =
                    [0, 1, 2].map(|at| self.constants[first + at].into_int_value());
                let pointer = self.context.ptr_type(AddressSpace::default());
                let address = self.builder.build_int_to_ptr(address, pointer, "")?;
                Ok(Text {
                    address,
                    length: self.length(low)?,
                    view: Some([low, high]),
                    valid: None,
                })
            }
            TextCode::Substring { text, skipped, most } => {
                let text = self.text(text)?;
                self.part(text, *skipped, *most)
            }
            // Constants of a query are runtime constants here.
            TextCode::Constant(_) => Err(BuilderError::UnsetPosition),
        }
    }

    /// Returns the length from a view's first word.
    fn length(&self, low: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        self.builder.build_and(low, self.word(u32::MAX.into()), "")
    }

    fn text_of_view(&self, number: usize) -> Built<Text<'ctx>> {
        let (builder, wide) = (self.builder, self.context.i64_type());
        let pointer = self.context.ptr_type(AddressSpace::default());
        let place = self.locations[number];
        let offset = builder.build_int_nuw_mul(self.row, self.word(VIEW_BYTES), "")?;
        let at = self.byte_at(place.values, offset)?;
        let low = builder.build_load(wide, at, "")?.into_int_value();
        let high = builder.build_load(wide, self.byte_at(at, self.word(8))?, "")?.into_int_value();
        let (mut low, mut high, mut valid) = (low, high, None);
        if place.code.nullable {
            // The view of a NULL may refer to no buffer.
            let is_there = self.valid_bit(place)?;
            let nothing = self.word(0);
            low = builder.build_select(is_there, low, nothing, "")?.into_int_value();
            high = builder.build_select(is_there, high, nothing, "")?.into_int_value();
            valid = Some(is_there);
        }
        let length = self.length(low)?;
        let shortest = self.word(SHORT_TEXT_BYTES as u64);
        let is_short = builder.build_int_compare(IntPredicate::ULE, length, shortest, "")?;
        let buffer = self.length(high)?;
        let buffer = builder.build_select(is_short, self.word(0), buffer, "")?.into_int_value();
        // SAFETY: this only computes an address; an input has all buffers that its views refer to,
        // and at least one.
        let buffer = unsafe { builder.build_gep(pointer, place.list, &[buffer], "")? };
        let buffer = builder.build_load(pointer, buffer, "")?.into_pointer_value();
        let offset = builder.build_right_shift(high, self.word(32), false, "")?;
        let (long, short) =
            (self.byte_at(buffer, offset)?, self.byte_at(at, self.word(VIEW_HEAD_BYTES))?);
        let address = builder.build_select(is_short, short, long, "")?.into_pointer_value();
        Ok(Text { address, length, view: Some([low, high]), valid })
    }

    /// Computes a substring: up to `most` characters after the first `skipped`.
    fn part(&mut self, text: Text<'ctx>, skipped: u64, most: Option<u64>) -> Built<Text<'ctx>> {
        let builder = self.builder;
        let bytes_of = |this: &Self, text: &Text<'ctx>, characters: u64| {
            let function = characters_function(this.context, this.module)?;
            let args = [text.address.into(), text.length.into(), this.word(characters).into()];
            call_integer(builder, function, &args)
        };
        let mut part = Text { view: None, ..text };
        if skipped > 0 {
            let before = bytes_of(self, &part, skipped)?;
            part.address = self.byte_at(part.address, before)?;
            part.length = builder.build_int_sub(part.length, before, "")?;
        }
        if let Some(most) = most {
            part.length = bytes_of(self, &part, most)?;
        }
        Ok(part)
    }

    /// Computes whether two texts are equal.
    pub(super) fn same_text(&mut self, codes: &[TextCode; 2]) -> Built<Value<'ctx>> {
        let (one, other) = (self.text(&codes[0])?, self.text(&codes[1])?);
        let builder = self.builder;
        let is_short = codes
            .iter()
            .any(|code| matches!(code, TextCode::RuntimeConstant { is_short: true, .. }));
        let value = match (one.view, other.view) {
            (Some([low, high]), Some([other_low, other_high])) => {
                let low = builder.build_int_compare(IntPredicate::EQ, low, other_low, "")?;
                let high = builder.build_int_compare(IntPredicate::EQ, high, other_high, "")?;
                match is_short {
                    // The view of a short text holds all of it.
                    true => builder.build_and(low, high, "")?,
                    false => self.if_so(low, |this| {
                        this.same_bytes(one.address, other.address, one.length)
                    })?,
                }
            }
            _ => {
                let length =
                    builder.build_int_compare(IntPredicate::EQ, one.length, other.length, "")?;
                self.if_so(length, |this| this.same_bytes(one.address, other.address, one.length))?
            }
        };
        let valid = match (one.valid, other.valid) {
            (Some(one), Some(other)) => Some(builder.build_and(one, other, "")?),
            (one, other) => one.or(other),
        };
        Ok(Value { value: value.into(), valid })
    }

    /// Computes whether a text matches a LIKE pattern.
    pub(super) fn like(&mut self, like: &LikeCode) -> Built<Value<'ctx>> {
        let builder = self.builder;
        let text = self.text(&like.text)?;
        let mut pieces = |list: &mut dyn Iterator<Item = &TextCode>| {
            list.map(|piece| self.text(piece)).collect::<Built<Vec<_>>>()
        };
        let first = pieces(&mut like.first.iter())?;
        let middle = pieces(&mut like.middle.iter())?;
        let last = pieces(&mut like.last.iter())?;
        let mut least = self.word(0);
        for piece in first.iter().chain(&middle).chain(&last) {
            least = builder.build_int_nuw_add(least, piece.length, "")?;
        }
        let is_long = builder.build_int_compare(IntPredicate::UGE, text.length, least, "")?;
        let value = self.if_so(is_long, |this| {
            let (mut at, mut length) = (text.address, text.length);
            let mut fits = this.context.bool_type().const_all_ones();
            for piece in &first {
                let begins = this.same_bytes(at, piece.address, piece.length)?;
                fits = this.builder.build_and(fits, begins, "")?;
                at = this.byte_at(at, piece.length)?;
                length = this.builder.build_int_sub(length, piece.length, "")?;
            }
            for piece in &last {
                length = this.builder.build_int_sub(length, piece.length, "")?;
                let ends =
                    this.same_bytes(this.byte_at(at, length)?, piece.address, piece.length)?;
                fits = this.builder.build_and(fits, ends, "")?;
            }
            match middle.is_empty() {
                true => Ok(fits),
                false => this.if_so(fits, |this| this.in_order(&middle, at, length)),
            }
        })?;
        Ok(Value { value: value.into(), valid: text.valid })
    }

    /// Computes whether the pieces of a pattern occur in some bytes, one after the other.
    fn in_order(
        &self,
        pieces: &[Text<'ctx>],
        at: PointerValue<'ctx>,
        length: IntValue<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let Some((piece, rest)) = pieces.split_first() else {
            return Ok(self.context.bool_type().const_all_ones());
        };
        let builder = self.builder;
        let function = find_function(self.context, self.module)?;
        let args = [at.into(), length.into(), piece.address.into(), piece.length.into()];
        let place = call_integer(builder, function, &args)?;
        let is_there = builder.build_int_compare(IntPredicate::SGE, place, self.word(0), "")?;
        if rest.is_empty() {
            return Ok(is_there);
        }
        self.if_so(is_there, |this| {
            let end = this.builder.build_int_add(place, piece.length, "")?;
            let left = this.builder.build_int_sub(length, end, "")?;
            this.in_order(rest, this.byte_at(at, end)?, left)
        })
    }

    fn same_bytes(
        &self,
        one: PointerValue<'ctx>,
        other: PointerValue<'ctx>,
        length: IntValue<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let function = equal_function(self.context, self.module)?;
        call_integer(self.builder, function, &[one.into(), other.into(), length.into()])
    }

    /// Computes a condition only if another holds; the result is false otherwise.
    fn if_so(
        &self,
        condition: IntValue<'ctx>,
        then: impl FnOnce(&Self) -> Built<IntValue<'ctx>>,
    ) -> Built<IntValue<'ctx>> {
        let builder = self.builder;
        let (current_block, function) = current_block(builder)?;
        let (inside, after) = (
            self.context.append_basic_block(function, "so"),
            self.context.append_basic_block(function, "after"),
        );
        builder.build_conditional_branch(condition, inside, after)?;
        builder.position_at_end(inside);
        let found = then(self)?;
        let (inside, _) = self::current_block(builder)?;
        builder.build_unconditional_branch(after)?;
        builder.position_at_end(after);
        let phi = builder.build_phi(self.context.bool_type(), "")?;
        phi.add_incoming(&[
            (&self.context.bool_type().const_zero(), current_block),
            (&found, inside),
        ]);
        Ok(phi.as_basic_value().into_int_value())
    }
}
