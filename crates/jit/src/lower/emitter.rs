//! The common parts of generated functions: parameters, inputs, variables and loops.

use std::ops::Range;

use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::IntType;
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tessera_codegen::{InputCode, MachineType, RawInput};

use super::provider::{Provider, Worker};
use super::value::{Built, InputLocation, Values, machine_type, set_word_alignment};
use crate::constants::words;

/// Builds a function over tuples, with parameters of its own after the common ones.
pub(crate) struct FunctionEmitter<'a, 'ctx> {
    pub(crate) context: &'ctx Context,
    pub(crate) module: &'a Module<'ctx>,
    pub(crate) builder: Builder<'ctx>,
    pub(crate) function: FunctionValue<'ctx>,
    pub(crate) worker: Worker<'ctx>,
    /// The function's own parameters.
    parameter_count: Vec<PointerValue<'ctx>>,
    locations: Vec<InputLocation<'ctx>>,
    constants: Vec<BasicValueEnum<'ctx>>,
    positions: PointerValue<'ctx>,
    pub(crate) rows: IntValue<'ctx>,
    /// Whether the loop body must have neither branches nor calls, so that LLVM can vectorize it.
    pub(crate) straight: bool,
}

/// The range of a loop: from `first` up to but not including `below`, in steps of `step`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps<'ctx> {
    pub(crate) first: IntValue<'ctx>,
    pub(crate) below: IntValue<'ctx>,
    pub(crate) step: IntValue<'ctx>,
}

/// The tuple of one loop iteration.
pub(crate) struct Row<'ctx> {
    /// The index of the iteration.
    pub(crate) number: IntValue<'ctx>,
    /// The position of the tuple in the inputs.
    pub(crate) position: IntValue<'ctx>,
    /// The block that continues the loop; the body branches to it.
    pub(crate) next: BasicBlock<'ctx>,
    /// The block after the loop; branching to it leaves the loop early.
    pub(crate) end: BasicBlock<'ctx>,
}

impl<'a, 'ctx> FunctionEmitter<'a, 'ctx> {
    /// Begins a function for a device, with `parameter_count` pointers as its own parameters.
    pub(crate) fn begin(
        (context, module): (&'ctx Context, &'a Module<'ctx>),
        (provider, name): (Provider, &str),
        (inputs, constants): (&[InputCode], &[MachineType]),
        parameter_count: usize,
    ) -> Built<FunctionEmitter<'a, 'ctx>> {
        let builder = context.create_builder();
        let pointer = context.ptr_type(AddressSpace::default());
        let start = provider.begin((context, module, &builder), name, parameter_count)?;
        let mut addresses = start.addresses.into_iter();
        let mut address = || addresses.next().unwrap_or_else(|| pointer.const_null());
        let (inputs_at, positions, constants_at) = (address(), address(), address());
        let mut emitter = FunctionEmitter {
            context,
            module,
            function: start.function,
            worker: start.worker,
            parameter_count: addresses.collect(),
            locations: Vec::new(),
            constants: Vec::new(),
            positions,
            rows: start.rows,
            straight: false,
            builder,
        };
        emitter.locations = emitter.load_locations(inputs_at, inputs)?;
        emitter.constants = emitter.load_constants(constants_at, constants)?;
        Ok(emitter)
    }

    /// Returns one of the function's own parameters.
    pub(crate) fn parameter(&self, number: usize) -> PointerValue<'ctx> {
        self.parameter_count[number]
    }

    pub(crate) fn number(&self, value: u64) -> IntValue<'ctx> {
        self.context.i64_type().const_int(value, false)
    }

    /// Loads the addresses of the inputs.
    fn load_locations(
        &self,
        inputs: PointerValue<'ctx>,
        codes: &[InputCode],
    ) -> Built<Vec<InputLocation<'ctx>>> {
        let (wide, pointer) =
            (self.context.i64_type(), self.context.ptr_type(AddressSpace::default()));
        let word = |number: u64| {
            let at = wide.const_int(number, false);
            // SAFETY: this only computes an address; each input has `RawInput::WORDS` words.
            unsafe { self.builder.build_in_bounds_gep(wide, inputs, &[at], "") }
        };
        let place = |(number, code): (usize, &InputCode)| {
            let first = (number * RawInput::WORDS) as u64;
            let address = |at| self.builder.build_load(pointer, word(at)?, "");
            let offset = |at| self.builder.build_load(wide, word(at)?, "");
            Ok(InputLocation {
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

    /// Loads the runtime constants.
    fn load_constants(
        &self,
        constants: PointerValue<'ctx>,
        machines: &[MachineType],
    ) -> Built<Vec<BasicValueEnum<'ctx>>> {
        let wide = self.context.i64_type();
        let mut word = 0;
        let read = |machine: &MachineType| {
            // SAFETY: this only computes an address; the caller passes words for all constants.
            let at = unsafe {
                self.builder.build_in_bounds_gep(
                    wide,
                    constants,
                    &[wide.const_int(word, false)],
                    "",
                )?
            };
            word += words(*machine) as u64;
            let value =
                self.builder.build_load(machine_type(self.context, *machine), at, "given")?;
            set_word_alignment(value.as_instruction_value());
            Ok(value)
        };
        machines.iter().map(read).collect()
    }

    /// Returns the integer type of 8 to 64 bits.
    pub(crate) fn whole_type(&self, bits: u32) -> IntType<'ctx> {
        machine_type(self.context, MachineType::Integer { bits, signed: true }).into_int_type()
    }

    /// Creates a variable with an initial value. Call it in the entry block, so that LLVM promotes
    /// the variable to a register.
    pub(crate) fn variable(&self, value: impl BasicValue<'ctx>) -> Built<PointerValue<'ctx>> {
        let value = value.as_basic_value_enum();
        let place = self.builder.build_alloca(value.get_type(), "variable")?;
        self.builder.build_store(place, value)?;
        Ok(place)
    }

    /// Sets a boolean variable if a condition holds.
    pub(crate) fn set_flag(
        &self,
        variable: PointerValue<'ctx>,
        condition: IntValue<'ctx>,
    ) -> Built<()> {
        let before = self.builder.build_load(condition.get_type(), variable, "")?.into_int_value();
        self.builder.build_store(variable, self.builder.build_or(before, condition, "")?)?;
        Ok(())
    }

    /// Emits code that runs only if a condition holds; without a condition it always runs.
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

    /// Sets a flag in GPU memory if a thread's loop ended before its last tuple, which may raise an
    /// error.
    pub(crate) fn flag_early_end(
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

    /// Copies a range of words from one record to another.
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

    /// Returns the expression compiler for a tuple.
    pub(crate) fn values(&self, row: &Row<'ctx>) -> Values<'_, 'ctx> {
        Values {
            context: self.context,
            module: self.module,
            builder: &self.builder,
            locations: &self.locations,
            constants: &self.constants,
            row: row.position,
            straight: self.straight,
            raised: None,
            read: vec![None; self.locations.len()],
            texts: Vec::new(),
            shared: Vec::new(),
        }
    }

    /// Returns the range of all tuples for this thread: the threads of a worker take them in a
    /// strided loop.
    pub(crate) fn all_rows(&self) -> Built<Steps<'ctx>> {
        let (first, step) =
            (self.worker.thread(&self.builder)?, self.worker.threads(&self.builder)?);
        Ok(Steps { first, below: self.rows, step })
    }

    /// Returns whether the function processes all tuples, not those at given positions.
    pub(crate) fn are_all(&self) -> Built<IntValue<'ctx>> {
        self.builder.build_is_null(self.positions, "all")
    }

    /// Emits the loop over tuples and the end of the function twice: for tuples at `positions`, and
    /// for all tuples if `positions` is null.
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

    /// Emits the loop over tuples, then the end of the function, which gets the index where the
    /// loop ended.
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

    /// Loads the position of a tuple.
    pub(crate) fn position(&self, number: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let (builder, narrow) = (&self.builder, self.context.i32_type());
        // SAFETY: this only computes an address; the caller passes a position for each tuple.
        let place = unsafe { builder.build_in_bounds_gep(narrow, self.positions, &[number], "")? };
        let position = builder.build_load(narrow, place, "")?.into_int_value();
        builder.build_int_z_extend(position, self.context.i64_type(), "")
    }

    /// Emits a loop; its body branches to `next` or `end`. Returns the index where it ended.
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

    /// Prefetches a cache line.
    pub(crate) fn prefetch(&self, address: PointerValue<'ctx>) -> Built<()> {
        let prefetch = Intrinsic::find("llvm.prefetch")
            .and_then(|intrinsic| {
                intrinsic.get_declaration(self.module, &[address.get_type().into()])
            })
            .ok_or(BuilderError::UnsetPosition)?;
        // Read access, high temporal locality, data cache.
        let [read, locality, data] =
            [0, 3, 1].map(|number| self.context.i32_type().const_int(number, false));
        let constants = [address.into(), read.into(), locality.into(), data.into()];
        self.builder.build_call(prefetch, &constants, "")?;
        Ok(())
    }

    /// Returns the address of a word.
    pub(crate) fn word(
        &self,
        words: PointerValue<'ctx>,
        number: IntValue<'ctx>,
    ) -> Built<PointerValue<'ctx>> {
        // SAFETY: this only computes an address; each access justifies its own bounds.
        unsafe { self.builder.build_in_bounds_gep(self.context.i64_type(), words, &[number], "") }
    }
}
