//! What functions have in common: who runs them, their parameters, inputs, loops.

use std::ops::Range;

use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::IntType;
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tessera_codegen::{InputCode, Machine, RawInput};

use super::provider::{Provider, Worker};
use super::value::{Built, Place, Values, in_words, machine_type};
use crate::given::words;

/// A function that is being made, over tuples; it has parameters of its own behind the common ones.
pub(crate) struct Parts<'a, 'ctx> {
    pub(crate) context: &'ctx Context,
    pub(crate) module: &'a Module<'ctx>,
    pub(crate) builder: Builder<'ctx>,
    pub(crate) function: FunctionValue<'ctx>,
    pub(crate) worker: Worker<'ctx>,
    /// Its own parameters.
    others: Vec<PointerValue<'ctx>>,
    places: Vec<Place<'ctx>>,
    given: Vec<BasicValueEnum<'ctx>>,
    positions: PointerValue<'ctx>,
    pub(crate) rows: IntValue<'ctx>,
    /// Whether the tuple's part of the loop is to be without branches and calls, for LLVM to take
    /// several at once.
    pub(crate) straight: bool,
}

/// What a loop goes over: from a number on, below another, in steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps<'ctx> {
    pub(crate) first: IntValue<'ctx>,
    pub(crate) below: IntValue<'ctx>,
    pub(crate) step: IntValue<'ctx>,
}

/// A tuple, as a loop comes to it.
pub(crate) struct Row<'ctx> {
    /// How many came before.
    pub(crate) number: IntValue<'ctx>,
    /// Where it stands in the inputs.
    pub(crate) position: IntValue<'ctx>,
    /// Where the loop goes on; the body ends there.
    pub(crate) next: BasicBlock<'ctx>,
    /// Where the loop ends: behind the last tuple, or in the middle.
    pub(crate) end: BasicBlock<'ctx>,
}

impl<'a, 'ctx> Parts<'a, 'ctx> {
    /// Begins a function of this name for a device; `others` are pointers.
    pub(crate) fn begin(
        (context, module): (&'ctx Context, &'a Module<'ctx>),
        (provider, name): (Provider, &str),
        (inputs, given): (&[InputCode], &[Machine]),
        others: usize,
    ) -> Built<Parts<'a, 'ctx>> {
        let builder = context.create_builder();
        let pointer = context.ptr_type(AddressSpace::default());
        let begun = provider.begin((context, module, &builder), name, others)?;
        let mut addresses = begun.addresses.into_iter();
        let mut address = || addresses.next().unwrap_or_else(|| pointer.const_null());
        let (inputs_at, positions, given_at) = (address(), address(), address());
        let mut parts = Parts {
            context,
            module,
            function: begun.function,
            worker: begun.worker,
            others: addresses.collect(),
            places: Vec::new(),
            given: Vec::new(),
            positions,
            rows: begun.rows,
            straight: false,
            builder,
        };
        parts.places = parts.read_places(inputs_at, inputs)?;
        parts.given = parts.read_given(given_at, given)?;
        Ok(parts)
    }

    /// One of its own parameters.
    pub(crate) fn other(&self, number: usize) -> PointerValue<'ctx> {
        self.others[number]
    }

    pub(crate) fn number(&self, value: u64) -> IntValue<'ctx> {
        self.context.i64_type().const_int(value, false)
    }

    /// Where the inputs lie.
    fn read_places(
        &self,
        inputs: PointerValue<'ctx>,
        codes: &[InputCode],
    ) -> Built<Vec<Place<'ctx>>> {
        let (wide, pointer) =
            (self.context.i64_type(), self.context.ptr_type(AddressSpace::default()));
        let word = |number: u64| {
            let at = wide.const_int(number, false);
            // SAFETY: an address is computed; an input has so many words.
            unsafe { self.builder.build_in_bounds_gep(wide, inputs, &[at], "") }
        };
        let place = |(number, code): (usize, &InputCode)| {
            let first = (number * RawInput::WORDS) as u64;
            let address = |at| self.builder.build_load(pointer, word(at)?, "");
            let offset = |at| self.builder.build_load(wide, word(at)?, "");
            Ok(Place {
                code: *code,
                values: address(first)?.into_pointer_value(),
                validity: address(first + 1)?.into_pointer_value(),
                values_offset: offset(first + 2)?.into_int_value(),
                validity_offset: offset(first + 3)?.into_int_value(),
                list: address(first + 4)?.into_pointer_value(),
            })
        };
        codes.iter().enumerate().map(place).collect()
    }

    /// The numbers that the code is given, each in as many words as it takes.
    fn read_given(
        &self,
        given: PointerValue<'ctx>,
        machines: &[Machine],
    ) -> Built<Vec<BasicValueEnum<'ctx>>> {
        let wide = self.context.i64_type();
        let mut word = 0;
        let read = |machine: &Machine| {
            // SAFETY: an address is computed; there are words for all numbers.
            let at = unsafe {
                self.builder.build_in_bounds_gep(wide, given, &[wide.const_int(word, false)], "")?
            };
            word += words(*machine) as u64;
            let value =
                self.builder.build_load(machine_type(self.context, *machine), at, "given")?;
            in_words(value.as_instruction_value());
            Ok(value)
        };
        machines.iter().map(read).collect()
    }

    /// The type of whole numbers of 8 to 64 bits.
    pub(crate) fn whole_type(&self, bits: u32) -> IntType<'ctx> {
        machine_type(self.context, Machine::Integer { bits, signed: true }).into_int_type()
    }

    /// A variable with a value to begin with. It is to be made where the function begins, and
    /// becomes a register.
    pub(crate) fn variable(&self, value: impl BasicValue<'ctx>) -> Built<PointerValue<'ctx>> {
        let value = value.as_basic_value_enum();
        let place = self.builder.build_alloca(value.get_type(), "variable")?;
        self.builder.build_store(place, value)?;
        Ok(place)
    }

    /// Sets a boolean variable where a condition holds.
    pub(crate) fn note(
        &self,
        variable: PointerValue<'ctx>,
        condition: IntValue<'ctx>,
    ) -> Built<()> {
        let before = self.builder.build_load(condition.get_type(), variable, "")?.into_int_value();
        self.builder.build_store(variable, self.builder.build_or(before, condition, "")?)?;
        Ok(())
    }

    /// Does something only where a condition holds; in any case, where there is none.
    pub(crate) fn only_if(
        &self,
        condition: Option<IntValue<'ctx>>,
        then: impl FnOnce() -> Built<()>,
    ) -> Built<()> {
        let Some(condition) = condition else { return then() };
        let (inside, after) = (self.block("inside"), self.block("after"));
        self.builder.build_conditional_branch(condition, inside, after)?;
        self.builder.position_at_end(inside);
        then()?;
        self.builder.build_unconditional_branch(after)?;
        self.builder.position_at_end(after);
        Ok(())
    }

    /// Sets a word of a GPU's memory where a thread's loop has ended before its last tuple: that
    /// one perhaps raises an error.
    pub(crate) fn note_early(
        &self,
        raised: PointerValue<'ctx>,
        (done, below): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Built<()> {
        let is_early = self.builder.build_int_compare(IntPredicate::ULT, done, below, "")?;
        self.only_if(Some(is_early), || {
            self.builder.build_store(raised, self.number(1))?;
            Ok(())
        })
    }

    /// Copies words of one record to the same places of another.
    pub(crate) fn copy_words(
        &self,
        from: PointerValue<'ctx>,
        to: PointerValue<'ctx>,
        words: Range<usize>,
    ) -> Built<()> {
        for word in words {
            let number = self.number(word as u64);
            let value =
                self.builder.build_load(self.context.i64_type(), self.word(from, number)?, "")?;
            self.builder.build_store(self.word(to, number)?, value)?;
        }
        Ok(())
    }

    pub(crate) fn block(&self, name: &str) -> BasicBlock<'ctx> {
        self.context.append_basic_block(self.function, name)
    }

    /// The values of a tuple.
    pub(crate) fn values(&self, row: &Row<'ctx>) -> Values<'_, 'ctx> {
        Values {
            context: self.context,
            module: self.module,
            builder: &self.builder,
            places: &self.places,
            given: &self.given,
            row: row.position,
            straight: self.straight,
            raised: None,
            read: vec![None; self.places.len()],
            texts: Vec::new(),
            shared: Vec::new(),
        }
    }

    /// All tuples, as the threads of a worker share them: a thread takes every so many-th.
    pub(crate) fn all_rows(&self) -> Built<Steps<'ctx>> {
        let (first, step) =
            (self.worker.thread(&self.builder)?, self.worker.threads(&self.builder)?);
        Ok(Steps { first, below: self.rows, step })
    }

    /// Whether it is for all tuples that there are, rather than for those at positions.
    pub(crate) fn are_all(&self) -> Built<IntValue<'ctx>> {
        self.builder.build_is_null(self.positions, "all")
    }

    /// The loop over tuples and the function's end, twice: for tuples at positions, and for all
    /// there are where `positions` is null.
    pub(crate) fn each_row_of_either(
        &self,
        steps: Steps<'ctx>,
        row: impl Fn(&Row<'ctx>) -> Built<()>,
        finish: impl Fn(IntValue<'ctx>) -> Built<()>,
    ) -> Built<()> {
        let (at_positions, at_all) = (self.block("at_positions"), self.block("at_all"));
        self.builder.build_conditional_branch(self.are_all()?, at_all, at_positions)?;
        self.builder.position_at_end(at_positions);
        self.each_row(steps, true, &row, &finish)?;
        self.builder.position_at_end(at_all);
        self.each_row(steps, false, &row, &finish)
    }

    /// The loop over tuples and the function's end, which is told the tuple that the loop has ended
    /// before.
    pub(crate) fn each_row(
        &self,
        steps: Steps<'ctx>,
        at_positions: bool,
        row: impl Fn(&Row<'ctx>) -> Built<()>,
        finish: impl Fn(IntValue<'ctx>) -> Built<()>,
    ) -> Built<()> {
        let body = |number, next, end| {
            let position = match at_positions {
                false => number,
                true => self.position(number)?,
            };
            row(&Row { number, position, next, end })
        };
        let number = self.each(steps, body)?;
        finish(number)
    }

    /// Where the tuple of a number stands, if that is said.
    pub(crate) fn position(&self, number: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let (builder, narrow) = (&self.builder, self.context.i32_type());
        // SAFETY: an address is computed; what is read there is the caller's promise.
        let place = unsafe { builder.build_in_bounds_gep(narrow, self.positions, &[number], "")? };
        let position = builder.build_load(narrow, place, "")?.into_int_value();
        builder.build_int_z_extend(position, self.context.i64_type(), "")
    }

    /// A loop, which goes on in one block and ends in another; gives the number it has ended
    /// before.
    pub(crate) fn each(
        &self,
        steps: Steps<'ctx>,
        body: impl Fn(IntValue<'ctx>, BasicBlock<'ctx>, BasicBlock<'ctx>) -> Built<()>,
    ) -> Built<IntValue<'ctx>> {
        let builder = &self.builder;
        let Some(before) = builder.get_insert_block() else {
            return Err(BuilderError::UnsetPosition);
        };
        let (head, inside) = (self.block("rows"), self.block("row"));
        let (next, end) = (self.block("next"), self.block("end"));
        builder.build_unconditional_branch(head)?;
        builder.position_at_end(head);
        let phi = builder.build_phi(self.context.i64_type(), "number")?;
        let number = phi.as_basic_value().into_int_value();
        let more = builder.build_int_compare(IntPredicate::ULT, number, steps.below, "")?;
        builder.build_conditional_branch(more, inside, end)?;
        builder.position_at_end(inside);
        body(number, next, end)?;
        builder.position_at_end(next);
        let following = builder.build_int_nuw_add(number, steps.step, "")?;
        builder.build_unconditional_branch(head)?;
        phi.add_incoming(&[(&steps.first, before), (&following, next)]);
        builder.position_at_end(end);
        Ok(number)
    }

    /// Asks the processor for a line of its cache.
    pub(crate) fn prefetch(&self, address: PointerValue<'ctx>) -> Built<()> {
        let prefetch = Intrinsic::find("llvm.prefetch")
            .and_then(|intrinsic| {
                intrinsic.get_declaration(self.module, &[address.get_type().into()])
            })
            .ok_or(BuilderError::UnsetPosition)?;
        // For reading, with high locality, of data.
        let [read, locality, data] =
            [0, 3, 1].map(|number| self.context.i32_type().const_int(number, false));
        let given = [address.into(), read.into(), locality.into(), data.into()];
        self.builder.build_call(prefetch, &given, "")?;
        Ok(())
    }

    /// The word of a number.
    pub(crate) fn word(
        &self,
        words: PointerValue<'ctx>,
        number: IntValue<'ctx>,
    ) -> Built<PointerValue<'ctx>> {
        // SAFETY: an address is computed; who reads or writes there says why he may.
        unsafe { self.builder.build_in_bounds_gep(self.context.i64_type(), words, &[number], "") }
    }
}
