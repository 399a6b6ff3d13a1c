//! Helper functions of a module: the loops over bytes, and the poll.

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

use super::super::value::{Built, set_alignment};
use crate::stop::POLL;

/// Positions that are tested together.
const LANES: u64 = 16;
/// Bytes between two polls in a loop.
const POLL_BYTES: u64 = 1 << 12;

/// Returns the current block and its function.
pub(super) fn current_block<'ctx>(
    builder: &Builder<'ctx>,
) -> Built<(BasicBlock<'ctx>, FunctionValue<'ctx>)> {
    let block = builder.get_insert_block().ok_or(BuilderError::UnsetPosition)?;
    Ok((block, block.get_parent().ok_or(BuilderError::UnsetPosition)?))
}

pub(super) fn call_integer<'ctx>(
    builder: &Builder<'ctx>,
    function: FunctionValue<'ctx>,
    args: &[BasicMetadataValueEnum<'ctx>],
) -> Built<IntValue<'ctx>> {
    let value = builder.build_call(function, args, "")?.try_as_basic_value().basic();
    Ok(value.ok_or(BuilderError::UnsetPosition)?.into_int_value())
}

/// Declares the function that code polls ([`crate::stop`]).
pub(crate) fn poll_function<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> FunctionValue<'ctx> {
    let make = || {
        let function = module.add_function(POLL, context.i8_type().fn_type(&[], false), None);
        for name in ["cold", "nounwind"] {
            let kind = Attribute::get_named_enum_kind_id(name);
            function.add_attribute(AttributeLoc::Function, context.create_enum_attribute(kind, 0));
        }
        function
    };
    module.get_function(POLL).unwrap_or_else(make)
}

/// Builds a helper function of the module.
struct Helper<'ctx> {
    poll: FunctionValue<'ctx>,
    context: &'ctx Context,
    builder: Builder<'ctx>,
    function: FunctionValue<'ctx>,
}

/// Returns the helper function of a name. If it does not exist, creates it with pointers and
/// numbers as parameters, and `make` emits its body.
fn helper_function<'ctx>(
    (context, module): (&'ctx Context, &Module<'ctx>),
    (name, result): (&str, IntType<'ctx>),
    are_pointers: &[bool],
    make: impl FnOnce(&Helper<'ctx>) -> Built<()>,
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
    make(&Helper { poll: poll_function(context, module), context, builder, function })?;
    Ok(function)
}

impl<'ctx> Helper<'ctx> {
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
        // SAFETY: this only computes an address; the loops read only within the texts passed to
        // them.
        unsafe { self.builder.build_gep(self.context.i8_type(), first, &[number], "") }
    }

    fn load(
        &self,
        of: IntType<'ctx>,
        first: PointerValue<'ctx>,
        number: IntValue<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let value = self.builder.build_load(of, self.at(first, number)?, "")?;
        set_alignment(value.as_instruction_value(), 1);
        Ok(value.into_int_value())
    }

    fn finish(&self, value: IntValue<'ctx>) -> Built<()> {
        self.builder.build_return(Some(&value))?;
        Ok(())
    }

    /// Emits a loop over numbers while the next step stays within `most`; the body ends in a branch
    /// to the given block. Leaves the builder after the loop and returns the last number. The
    /// function returns `ended` if a poll says that it must stop.
    fn each(
        &self,
        (first, step, most): (IntValue<'ctx>, u64, IntValue<'ctx>),
        ended: IntValue<'ctx>,
        body: impl FnOnce(IntValue<'ctx>, BasicBlock<'ctx>) -> Built<()>,
    ) -> Built<IntValue<'ctx>> {
        let (builder, wide) = (&self.builder, self.context.i64_type());
        let (before, _) = current_block(builder)?;
        let [window, head, inside, next, end, poll, done] =
            ["window", "head", "inside", "next", "end", "ask", "done"].map(|name| self.block(name));
        builder.build_unconditional_branch(window)?;
        // A bounded inner loop, so that it needs no poll counter.
        builder.position_at_end(window);
        let window_phi = builder.build_phi(wide, "window")?;
        let start = window_phi.as_basic_value().into_int_value();
        let bound = builder.build_int_add(start, self.word(POLL_BYTES), "")?;
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
        builder.build_conditional_branch(is_last, done, poll)?;
        builder.position_at_end(poll);
        let answer = call_integer(builder, self.poll, &[])?;
        let is_ended = builder.build_int_compare(
            IntPredicate::NE,
            answer,
            self.context.i8_type().const_zero(),
            "",
        )?;
        window_phi.add_incoming(&[(&first, before), (&number, poll)]);
        self.return_if(is_ended, ended, window)?;
        builder.position_at_end(done);
        Ok(number)
    }

    /// Returns a value if a condition holds, else continues at `next`.
    fn return_if(
        &self,
        condition: IntValue<'ctx>,
        value: IntValue<'ctx>,
        next: BasicBlock<'ctx>,
    ) -> Built<()> {
        let found = self.block("found");
        self.builder.build_conditional_branch(condition, found, next)?;
        self.builder.position_at_end(found);
        self.finish(value)
    }
}

/// `i1 equal(ptr one, ptr other, i64 bytes)`: compares eight bytes at a time, then single bytes.
pub(super) fn equal_function<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Built<FunctionValue<'ctx>> {
    let truth = context.bool_type();
    helper_function((context, module), ("text.equal", truth), &[true, true, false], |helper| {
        let (one, other, bytes) = (helper.pointer(0), helper.pointer(1), helper.number(2));
        let mut first = helper.word(0);
        for (of, step) in [(context.i64_type(), 8), (context.i8_type(), 1)] {
            first = helper.each((first, step, bytes), truth.const_zero(), |number, next| {
                let (left, right) =
                    (helper.load(of, one, number)?, helper.load(of, other, number)?);
                let differ = helper.builder.build_int_compare(IntPredicate::NE, left, right, "")?;
                helper.return_if(differ, truth.const_zero(), next)
            })?;
        }
        helper.finish(truth.const_all_ones())
    })
}

/// `i64 find(ptr text, i64 bytes, ptr piece, i64 length)`: returns the first position of a piece
/// that is not empty, or -1.
pub(super) fn find_function<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Built<FunctionValue<'ctx>> {
    let (wide, byte) = (context.i64_type(), context.i8_type());
    let equal = equal_function(context, module)?;
    let trailing = Intrinsic::find("llvm.cttz")
        .and_then(|intrinsic| intrinsic.get_declaration(module, &[context.i16_type().into()]))
        .ok_or(BuilderError::UnsetPosition)?;
    helper_function((context, module), ("text.find", wide), &[true, false, true, false], |helper| {
        let builder = &helper.builder;
        let (text, bytes, piece, length) =
            (helper.pointer(0), helper.number(1), helper.pointer(2), helper.number(3));
        let minus_one = wide.const_all_ones();
        let (one, zero) = (helper.word(1), helper.word(0));
        let fits = helper.block("fits");
        let is_longer = builder.build_int_compare(IntPredicate::UGT, length, bytes, "")?;
        helper.return_if(is_longer, minus_one, fits)?;
        builder.position_at_end(fits);
        // The number of candidate positions.
        let locations =
            builder.build_int_add(builder.build_int_sub(bytes, length, "")?, one, "")?;
        let end = builder.build_int_sub(length, one, "")?;
        let (initial, last) = (helper.load(byte, piece, zero)?, helper.load(byte, piece, end)?);
        let rest = helper.at(piece, one)?;
        // Whether the rest of the piece matches after its first byte.
        let stands_at = |place: IntValue<'ctx>| {
            let behind = helper.at(text, builder.build_int_add(place, one, "")?)?;
            call_integer(builder, equal, &[behind.into(), rest.into(), end.into()])
        };
        let (many, few) = (helper.block("many"), helper.block("few"));
        let are_many =
            builder.build_int_compare(IntPredicate::UGE, locations, helper.word(LANES), "")?;
        builder.build_conditional_branch(are_many, many, few)?;

        builder.position_at_end(few);
        helper.each((zero, 1, locations), minus_one, |place, next| {
            let is_first = builder.build_int_compare(
                IntPredicate::EQ,
                helper.load(byte, text, place)?,
                initial,
                "",
            )?;
            let perhaps = helper.block("perhaps");
            builder.build_conditional_branch(is_first, perhaps, next)?;
            builder.position_at_end(perhaps);
            let stands = stands_at(place)?;
            helper.return_if(stands, place, next)
        })?;
        helper.finish(minus_one)?;

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
            let found = builder.build_load(vectors, helper.at(text, number)?, "")?;
            set_alignment(found.as_instruction_value(), 1);
            builder.build_int_compare(IntPredicate::EQ, found.into_vector_value(), wanted, "")
        };
        // The last vector overlaps with positions that were already tested, which did not match.
        let start = builder.build_int_sub(locations, helper.word(LANES), "")?;
        let above = builder.build_int_add(locations, helper.word(LANES - 1), "")?;
        helper.each((zero, LANES, above), minus_one, |place, next| {
            let is_behind = builder.build_int_compare(IntPredicate::UGT, place, start, "")?;
            let place = builder.build_select(is_behind, start, place, "")?.into_int_value();
            let first_fit = equal_to(initials, place)?;
            let last_fit = equal_to(lasts, builder.build_int_add(place, end, "")?)?;
            let both = builder.build_and(first_fit, last_fit, "")?;
            let mask = builder.build_bit_cast(both, context.i16_type(), "")?.into_int_value();
            let (current_block, _) = current_block(builder)?;
            let (head, look, again) =
                (helper.block("masks"), helper.block("look"), helper.block("again"));
            builder.build_unconditional_branch(head)?;
            builder.position_at_end(head);
            let phi = builder.build_phi(context.i16_type(), "mask")?;
            let left = phi.as_basic_value().into_int_value();
            let none = context.i16_type().const_zero();
            let is_done = builder.build_int_compare(IntPredicate::EQ, left, none, "")?;
            builder.build_conditional_branch(is_done, next, look)?;
            builder.position_at_end(look);
            let never_zero = context.bool_type().const_all_ones();
            let lane = call_integer(builder, trailing, &[left.into(), never_zero.into()])?;
            let at =
                builder.build_int_add(place, builder.build_int_z_extend(lane, wide, "")?, "")?;
            let stands = stands_at(at)?;
            helper.return_if(stands, at, again)?;
            builder.position_at_end(again);
            let less = builder.build_int_sub(left, context.i16_type().const_int(1, false), "")?;
            let less = builder.build_and(left, less, "")?;
            builder.build_unconditional_branch(head)?;
            phi.add_incoming(&[(&mask, current_block), (&less, again)]);
            Ok(())
        })?;
        helper.finish(minus_one)
    })
}

/// `i64 characters(ptr text, i64 bytes, i64 number)`: returns the length of the first characters of
/// a text in bytes.
pub(super) fn characters_function<'ctx>(
    context: &'ctx Context,
    module: &Module<'ctx>,
) -> Built<FunctionValue<'ctx>> {
    let (wide, byte) = (context.i64_type(), context.i8_type());
    helper_function((context, module), ("text.characters", wide), &[true, false, false], |helper| {
        let builder = &helper.builder;
        let (text, bytes, number) = (helper.pointer(0), helper.number(1), helper.number(2));
        let seen = builder.build_alloca(wide, "seen")?;
        builder.build_store(seen, helper.word(0))?;
        helper.each((helper.word(0), 1, bytes), bytes, |at, next| {
            // Continuation bytes of UTF-8 are 10xxxxxx.
            let bits =
                builder.build_and(helper.load(byte, text, at)?, byte.const_int(0xc0, false), "")?;
            let begins = builder.build_int_compare(
                IntPredicate::NE,
                bits,
                byte.const_int(0x80, false),
                "",
            )?;
            let before = builder.build_load(wide, seen, "")?.into_int_value();
            let are_enough = builder.build_int_compare(IntPredicate::UGE, before, number, "")?;
            let count = helper.block("count");
            helper.return_if(builder.build_and(begins, are_enough, "")?, at, count)?;
            builder.position_at_end(count);
            let more = builder.build_int_z_extend(begins, wide, "")?;
            builder.build_store(seen, builder.build_int_add(before, more, "")?)?;
            builder.build_unconditional_branch(next)?;
            Ok(())
        })?;
        helper.finish(bytes)
    })
}
