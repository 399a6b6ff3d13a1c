//! Texts: equality, LIKE, and parts of them, in Arrow's views.
//!
//! What needs a loop is a function of its own in the module: whether bytes are equal, where some
//! bytes stand among others, and how many bytes some characters are. Bytes are looked for 16 places
//! at a time, by the first and the last of them (Muła, *SIMD-friendly algorithms for substring
//! searching*).

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::{Linkage, Module};
use inkwell::types::IntType;
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, FunctionValue, IntValue, PointerValue, VectorValue,
};
use inkwell::{AddressSpace, IntPredicate};
use tessera_codegen::{LikeCode, SHORT_TEXT_BYTES, TextCode};

use super::value::{Built, Value, Values, aligned};
use crate::ask::ASK;

/// Places that are looked at together.
const LANES: u64 = 16;
/// After so many bytes a loop asks whether to go on.
const ASKING_BYTES: u64 = 1 << 12;
/// Bytes of a view, and those before the first byte of a short text.
const VIEW_BYTES: u64 = 16;
const VIEW_HEAD_BYTES: u64 = 4;

/// A text of a tuple.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text<'ctx> {
    /// Its first byte, where it has some.
    address: PointerValue<'ctx>,
    /// How many bytes it has.
    length: IntValue<'ctx>,
    /// The words of its view, where it has one.
    view: Option<[IntValue<'ctx>; 2]>,
    /// Whether it is not NULL; absent where it never is. What is NULL is empty.
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
        // SAFETY: an address is computed; who reads there says why he may.
        unsafe { self.builder.build_gep(self.context.i8_type(), first, &[number], "") }
    }

    /// A text; it is made once. Who asks does so where all of the tuple's values are computed, not
    /// in a branch.
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
            TextCode::Given { first, .. } => {
                let [low, high, address] =
                    [0, 1, 2].map(|at| self.given[first + at].into_int_value());
                let pointer = self.context.ptr_type(AddressSpace::default());
                let address = self.builder.build_int_to_ptr(address, pointer, "")?;
                Ok(Text {
                    address,
                    length: self.length(low)?,
                    view: Some([low, high]),
                    valid: None,
                })
            }
            TextCode::Part { text, skipped, most } => {
                let text = self.text(text)?;
                self.part(text, *skipped, *most)
            }
            // Those of a query are given when the code runs.
            TextCode::Constant(_) => Err(BuilderError::UnsetPosition),
        }
    }

    /// The length in a view's first word.
    fn length(&self, low: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        self.builder.build_and(low, self.word(u32::MAX.into()), "")
    }

    fn text_of_view(&self, number: usize) -> Built<Text<'ctx>> {
        let (builder, wide) = (self.builder, self.context.i64_type());
        let pointer = self.context.ptr_type(AddressSpace::default());
        let place = self.places[number];
        let offset = builder.build_int_nuw_mul(self.row, self.word(VIEW_BYTES), "")?;
        let at = self.byte_at(place.values, offset)?;
        let low = builder.build_load(wide, at, "")?.into_int_value();
        let high = builder.build_load(wide, self.byte_at(at, self.word(8))?, "")?.into_int_value();
        let (mut low, mut high, mut valid) = (low, high, None);
        if place.code.nullable {
            // What is NULL may have a view that refers to nothing.
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
        // SAFETY: an address is computed; an input has as many buffers as its views refer to, and
        // one at least.
        let buffer = unsafe { builder.build_gep(pointer, place.list, &[buffer], "")? };
        let buffer = builder.build_load(pointer, buffer, "")?.into_pointer_value();
        let offset = builder.build_right_shift(high, self.word(32), false, "")?;
        let (long, short) =
            (self.byte_at(buffer, offset)?, self.byte_at(at, self.word(VIEW_HEAD_BYTES))?);
        let address = builder.build_select(is_short, short, long, "")?.into_pointer_value();
        Ok(Text { address, length, view: Some([low, high]), valid })
    }

    /// What follows behind the first characters, or some of it.
    fn part(&mut self, text: Text<'ctx>, skipped: u64, most: Option<u64>) -> Built<Text<'ctx>> {
        let builder = self.builder;
        let bytes_of = |this: &Self, text: &Text<'ctx>, characters: u64| {
            let function = characters_function(this.context, this.module)?;
            let args = [text.address.into(), text.length.into(), this.word(characters).into()];
            called(builder, function, &args)
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

    /// Whether two texts are the same.
    pub(super) fn same_text(&mut self, codes: &[TextCode; 2]) -> Built<Value<'ctx>> {
        let (one, other) = (self.text(&codes[0])?, self.text(&codes[1])?);
        let builder = self.builder;
        let is_short =
            codes.iter().any(|code| matches!(code, TextCode::Given { is_short: true, .. }));
        let value = match (one.view, other.view) {
            (Some([low, high]), Some([other_low, other_high])) => {
                let low = builder.build_int_compare(IntPredicate::EQ, low, other_low, "")?;
                let high = builder.build_int_compare(IntPredicate::EQ, high, other_high, "")?;
                match is_short {
                    // The view of a short text is all of it.
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

    /// Whether a text is like a pattern.
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

    /// Whether pieces stand in some bytes, one behind the other.
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
        let place = called(builder, function, &args)?;
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
        called(self.builder, function, &[one.into(), other.into(), length.into()])
    }

    /// Something that is said only where a condition holds, and is false elsewhere.
    fn if_so(
        &self,
        condition: IntValue<'ctx>,
        then: impl FnOnce(&Self) -> Built<IntValue<'ctx>>,
    ) -> Built<IntValue<'ctx>> {
        let builder = self.builder;
        let (here, function) = here(builder)?;
        let (inside, after) = (
            self.context.append_basic_block(function, "so"),
            self.context.append_basic_block(function, "after"),
        );
        builder.build_conditional_branch(condition, inside, after)?;
        builder.position_at_end(inside);
        let found = then(self)?;
        let (inside, _) = self::here(builder)?;
        builder.build_unconditional_branch(after)?;
        builder.position_at_end(after);
        let phi = builder.build_phi(self.context.bool_type(), "")?;
        phi.add_incoming(&[(&self.context.bool_type().const_zero(), here), (&found, inside)]);
        Ok(phi.as_basic_value().into_int_value())
    }
}

/// The block that is being filled, and its function.
fn here<'ctx>(builder: &Builder<'ctx>) -> Built<(BasicBlock<'ctx>, FunctionValue<'ctx>)> {
    let block = builder.get_insert_block().ok_or(BuilderError::UnsetPosition)?;
    Ok((block, block.get_parent().ok_or(BuilderError::UnsetPosition)?))
}

fn called<'ctx>(
    builder: &Builder<'ctx>,
    function: FunctionValue<'ctx>,
    args: &[BasicMetadataValueEnum<'ctx>],
) -> Built<IntValue<'ctx>> {
    let value = builder.build_call(function, args, "")?.try_as_basic_value().basic();
    Ok(value.ok_or(BuilderError::UnsetPosition)?.into_int_value())
}

/// What code calls to ask whether to go on ([`crate::ask`]).
pub(crate) fn ask_function<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> FunctionValue<'ctx> {
    let make = || {
        let function = module.add_function(ASK, context.i8_type().fn_type(&[], false), None);
        for name in ["cold", "nounwind"] {
            let kind = Attribute::get_named_enum_kind_id(name);
            function.add_attribute(AttributeLoc::Function, context.create_enum_attribute(kind, 0));
        }
        function
    };
    module.get_function(ASK).unwrap_or_else(make)
}

/// A function of a module's own that is being made.
struct Own<'ctx> {
    ask: FunctionValue<'ctx>,
    context: &'ctx Context,
    builder: Builder<'ctx>,
    function: FunctionValue<'ctx>,
}

/// The function of a name: the one that is there, or what `make` makes of an empty one with
/// pointers and numbers among its parameters.
fn own_function<'ctx>(
    (context, module): (&'ctx Context, &Module<'ctx>),
    (name, result): (&str, IntType<'ctx>),
    are_pointers: &[bool],
    make: impl FnOnce(&Own<'ctx>) -> Built<()>,
) -> Built<FunctionValue<'ctx>> {
    if let Some(function) = module.get_function(name) {
        return Ok(function);
    }
    let pointer = context.ptr_type(AddressSpace::default());
    let parameter = |is_pointer: &bool| match is_pointer {
        true => pointer.into(),
        false => context.i64_type().into(),
    };
    let parameters: Vec<_> = are_pointers.iter().map(parameter).collect();
    let function =
        module.add_function(name, result.fn_type(&parameters, false), Some(Linkage::Private));
    let kind = Attribute::get_named_enum_kind_id("nounwind");
    function.add_attribute(AttributeLoc::Function, context.create_enum_attribute(kind, 0));
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, "entry"));
    make(&Own { ask: ask_function(context, module), context, builder, function })?;
    Ok(function)
}

impl<'ctx> Own<'ctx> {
    fn pointer(&self, number: u32) -> PointerValue<'ctx> {
        let null = self.context.ptr_type(AddressSpace::default()).const_null();
        self.function.get_nth_param(number).map_or(null, |value| value.into_pointer_value())
    }

    fn number(&self, number: u32) -> IntValue<'ctx> {
        self.function.get_nth_param(number).map_or(self.word(0), |value| value.into_int_value())
    }

    fn word(&self, value: u64) -> IntValue<'ctx> {
        self.context.i64_type().const_int(value, false)
    }

    fn block(&self, name: &str) -> BasicBlock<'ctx> {
        self.context.append_basic_block(self.function, name)
    }

    fn at(&self, first: PointerValue<'ctx>, number: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        // SAFETY: an address is computed; the loops read only bytes of the texts that they are
        // given.
        unsafe { self.builder.build_gep(self.context.i8_type(), first, &[number], "") }
    }

    fn load(
        &self,
        of: IntType<'ctx>,
        first: PointerValue<'ctx>,
        number: IntValue<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let value = self.builder.build_load(of, self.at(first, number)?, "")?;
        aligned(value.as_instruction_value(), 1);
        Ok(value.into_int_value())
    }

    fn give(&self, value: IntValue<'ctx>) -> Built<()> {
        self.builder.build_return(Some(&value))?;
        Ok(())
    }

    /// A loop over numbers in steps, as long as the next step stays within `most`; its body ends in
    /// a branch to the block that it is given. Afterwards it stands where the loop has ended; gives
    /// the number there. The function returns `ended` where it is told to return early.
    fn each(
        &self,
        (first, step, most): (IntValue<'ctx>, u64, IntValue<'ctx>),
        ended: IntValue<'ctx>,
        body: impl FnOnce(IntValue<'ctx>, BasicBlock<'ctx>) -> Built<()>,
    ) -> Built<IntValue<'ctx>> {
        let (builder, wide) = (&self.builder, self.context.i64_type());
        let (before, _) = here(builder)?;
        let [window, head, inside, next, end, ask, done] =
            ["window", "head", "inside", "next", "end", "ask", "done"].map(|name| self.block(name));
        builder.build_unconditional_branch(window)?;
        // A loop within bounds, so that nothing is counted in it.
        builder.position_at_end(window);
        let window_phi = builder.build_phi(wide, "window")?;
        let start = window_phi.as_basic_value().into_int_value();
        let bound = builder.build_int_add(start, self.word(ASKING_BYTES), "")?;
        let is_last = builder.build_int_compare(IntPredicate::ULE, most, bound, "")?;
        let bound = builder.build_select(is_last, most, bound, "")?.into_int_value();
        builder.build_unconditional_branch(head)?;
        builder.position_at_end(head);
        let phi = builder.build_phi(wide, "number")?;
        let number = phi.as_basic_value().into_int_value();
        let following = builder.build_int_nuw_add(number, self.word(step), "")?;
        let more = builder.build_int_compare(IntPredicate::ULE, following, bound, "")?;
        builder.build_conditional_branch(more, inside, end)?;
        builder.position_at_end(inside);
        body(number, next)?;
        builder.position_at_end(next);
        builder.build_unconditional_branch(head)?;
        phi.add_incoming(&[(&start, window), (&following, next)]);
        builder.position_at_end(end);
        builder.build_conditional_branch(is_last, done, ask)?;
        builder.position_at_end(ask);
        let answer = called(builder, self.ask, &[])?;
        let is_ended = builder.build_int_compare(
            IntPredicate::NE,
            answer,
            self.context.i8_type().const_zero(),
            "",
        )?;
        window_phi.add_incoming(&[(&first, before), (&number, ask)]);
        self.give_if(is_ended, ended, window)?;
        builder.position_at_end(done);
        Ok(number)
    }

    /// Gives a value where a condition holds, else goes on in `next`.
    fn give_if(
        &self,
        condition: IntValue<'ctx>,
        value: IntValue<'ctx>,
        next: BasicBlock<'ctx>,
    ) -> Built<()> {
        let found = self.block("found");
        self.builder.build_conditional_branch(condition, found, next)?;
        self.builder.position_at_end(found);
        self.give(value)
    }
}

/// `i1 equal(ptr one, ptr other, i64 bytes)`: eight at a time, then one.
fn equal_function<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Built<FunctionValue<'ctx>> {
    let truth = context.bool_type();
    own_function((context, module), ("text.equal", truth), &[true, true, false], |own| {
        let (one, other, bytes) = (own.pointer(0), own.pointer(1), own.number(2));
        let mut first = own.word(0);
        for (of, step) in [(context.i64_type(), 8), (context.i8_type(), 1)] {
            first = own.each((first, step, bytes), truth.const_zero(), |number, next| {
                let (left, right) = (own.load(of, one, number)?, own.load(of, other, number)?);
                let differ = own.builder.build_int_compare(IntPredicate::NE, left, right, "")?;
                own.give_if(differ, truth.const_zero(), next)
            })?;
        }
        own.give(truth.const_all_ones())
    })
}

/// `i64 find(ptr text, i64 bytes, ptr piece, i64 length)`: the first place of a piece that is not
/// empty, or -1.
fn find_function<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Built<FunctionValue<'ctx>> {
    let (wide, byte) = (context.i64_type(), context.i8_type());
    let equal = equal_function(context, module)?;
    let trailing = Intrinsic::find("llvm.cttz")
        .and_then(|intrinsic| intrinsic.get_declaration(module, &[context.i16_type().into()]))
        .ok_or(BuilderError::UnsetPosition)?;
    own_function((context, module), ("text.find", wide), &[true, false, true, false], |own| {
        let builder = &own.builder;
        let (text, bytes, piece, length) =
            (own.pointer(0), own.number(1), own.pointer(2), own.number(3));
        let minus_one = wide.const_all_ones();
        let (one, zero) = (own.word(1), own.word(0));
        let fits = own.block("fits");
        let is_longer = builder.build_int_compare(IntPredicate::UGT, length, bytes, "")?;
        own.give_if(is_longer, minus_one, fits)?;
        builder.position_at_end(fits);
        // Places where it could begin.
        let places = builder.build_int_add(builder.build_int_sub(bytes, length, "")?, one, "")?;
        let end = builder.build_int_sub(length, one, "")?;
        let (initial, last) = (own.load(byte, piece, zero)?, own.load(byte, piece, end)?);
        let rest = own.at(piece, one)?;
        // Whether it stands at a place where its first byte does.
        let stands_at = |place: IntValue<'ctx>| {
            let behind = own.at(text, builder.build_int_add(place, one, "")?)?;
            called(builder, equal, &[behind.into(), rest.into(), end.into()])
        };
        let (many, few) = (own.block("many"), own.block("few"));
        let are_many = builder.build_int_compare(IntPredicate::UGE, places, own.word(LANES), "")?;
        builder.build_conditional_branch(are_many, many, few)?;

        builder.position_at_end(few);
        own.each((zero, 1, places), minus_one, |place, next| {
            let is_first = builder.build_int_compare(
                IntPredicate::EQ,
                own.load(byte, text, place)?,
                initial,
                "",
            )?;
            let perhaps = own.block("perhaps");
            builder.build_conditional_branch(is_first, perhaps, next)?;
            builder.position_at_end(perhaps);
            let stands = stands_at(place)?;
            own.give_if(stands, place, next)
        })?;
        own.give(minus_one)?;

        builder.position_at_end(many);
        let vectors = byte.vec_type(LANES as u32);
        let all = |value: IntValue<'ctx>| -> Built<VectorValue<'ctx>> {
            let one = builder.build_insert_element(vectors.get_undef(), value, zero, "")?;
            builder.build_shuffle_vector(
                one,
                vectors.get_undef(),
                context.i32_type().vec_type(LANES as u32).const_zero(),
                "",
            )
        };
        let (initials, lasts) = (all(initial)?, all(last)?);
        let equal_to = |wanted: VectorValue<'ctx>, number: IntValue<'ctx>| {
            let found = builder.build_load(vectors, own.at(text, number)?, "")?;
            aligned(found.as_instruction_value(), 1);
            builder.build_int_compare(IntPredicate::EQ, found.into_vector_value(), wanted, "")
        };
        // The last places are looked at once more where there are fewer than go together: none of
        // them was it.
        let start = builder.build_int_sub(places, own.word(LANES), "")?;
        let above = builder.build_int_add(places, own.word(LANES - 1), "")?;
        own.each((zero, LANES, above), minus_one, |place, next| {
            let is_behind = builder.build_int_compare(IntPredicate::UGT, place, start, "")?;
            let place = builder.build_select(is_behind, start, place, "")?.into_int_value();
            let first_fit = equal_to(initials, place)?;
            let last_fit = equal_to(lasts, builder.build_int_add(place, end, "")?)?;
            let both = builder.build_and(first_fit, last_fit, "")?;
            let mask = builder.build_bit_cast(both, context.i16_type(), "")?.into_int_value();
            let (here, _) = here(builder)?;
            let (head, look, again) = (own.block("masks"), own.block("look"), own.block("again"));
            builder.build_unconditional_branch(head)?;
            builder.position_at_end(head);
            let phi = builder.build_phi(context.i16_type(), "mask")?;
            let left = phi.as_basic_value().into_int_value();
            let none = context.i16_type().const_zero();
            let is_done = builder.build_int_compare(IntPredicate::EQ, left, none, "")?;
            builder.build_conditional_branch(is_done, next, look)?;
            builder.position_at_end(look);
            let never_zero = context.bool_type().const_all_ones();
            let lane = called(builder, trailing, &[left.into(), never_zero.into()])?;
            let at =
                builder.build_int_add(place, builder.build_int_z_extend(lane, wide, "")?, "")?;
            let stands = stands_at(at)?;
            own.give_if(stands, at, again)?;
            builder.position_at_end(again);
            let less = builder.build_int_sub(left, context.i16_type().const_int(1, false), "")?;
            let less = builder.build_and(left, less, "")?;
            builder.build_unconditional_branch(head)?;
            phi.add_incoming(&[(&mask, here), (&less, again)]);
            Ok(())
        })?;
        own.give(minus_one)
    })
}

/// `i64 characters(ptr text, i64 bytes, i64 number)`: how many bytes the first characters of a text
/// are.
fn characters_function<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Built<FunctionValue<'ctx>> {
    let (wide, byte) = (context.i64_type(), context.i8_type());
    own_function((context, module), ("text.characters", wide), &[true, false, false], |own| {
        let builder = &own.builder;
        let (text, bytes, number) = (own.pointer(0), own.number(1), own.number(2));
        let seen = builder.build_alloca(wide, "seen")?;
        builder.build_store(seen, own.word(0))?;
        own.each((own.word(0), 1, bytes), bytes, |at, next| {
            // Bytes after the first of a character are 10xxxxxx.
            let bits =
                builder.build_and(own.load(byte, text, at)?, byte.const_int(0xc0, false), "")?;
            let begins = builder.build_int_compare(
                IntPredicate::NE,
                bits,
                byte.const_int(0x80, false),
                "",
            )?;
            let before = builder.build_load(wide, seen, "")?.into_int_value();
            let are_enough = builder.build_int_compare(IntPredicate::UGE, before, number, "")?;
            let count = own.block("count");
            own.give_if(builder.build_and(begins, are_enough, "")?, at, count)?;
            builder.position_at_end(count);
            let more = builder.build_int_z_extend(begins, wide, "")?;
            builder.build_store(seen, builder.build_int_add(before, more, "")?)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        own.give(bytes)
    })
}
