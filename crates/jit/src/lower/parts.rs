//! What functions have in common: their parameters, inputs, loops.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, IntValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tessera_ops::code::{InputCode, Machine};

use super::value::{Built, Place, Values, in_words, machine_type};
use crate::given::words;

/// The parameters of every function: inputs, positions, how many rows, the numbers it is given.
const COMMON: u32 = 4;

/// A function that is being made, over tuples; it has parameters of its own behind the common ones.
pub(crate) struct Parts<'a, 'ctx> {
    pub(crate) context: &'ctx Context,
    pub(crate) module: &'a Module<'ctx>,
    pub(crate) builder: Builder<'ctx>,
    pub(crate) function: FunctionValue<'ctx>,
    places: Vec<Place<'ctx>>,
    given: Vec<BasicValueEnum<'ctx>>,
    positions: PointerValue<'ctx>,
    rows: IntValue<'ctx>,
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
    /// Begins a function of this name; `others` are pointers.
    pub(crate) fn begin(
        (context, module): (&'ctx Context, &'a Module<'ctx>),
        name: &str,
        (inputs, given): (&[InputCode], &[Machine]),
        others: usize,
    ) -> Built<Parts<'a, 'ctx>> {
        let (wide, pointer) = (context.i64_type(), context.ptr_type(AddressSpace::default()));
        let mut parameters = vec![pointer.into(), pointer.into(), wide.into(), pointer.into()];
        parameters.extend(std::iter::repeat_n(inkwell::types::BasicMetadataTypeEnum::from(pointer), others));
        let function = module.add_function(name, wide.fn_type(&parameters, false), None);
        let flag = |name: &str| context.create_enum_attribute(Attribute::get_named_enum_kind_id(name), 0);
        for parameter in (0..parameters.len() as u32).filter(|parameter| *parameter != 2) {
            function.add_attribute(AttributeLoc::Param(parameter), flag("noalias"));
        }
        let builder = context.create_builder();
        builder.position_at_end(context.append_basic_block(function, "entry"));
        let (zero, null) = (wide.const_zero(), pointer.const_null());
        let parameter = |number: u32| function.get_nth_param(number);
        let address = |number: u32| parameter(number).map_or(null, |value| value.into_pointer_value());
        let mut parts = Parts {
            context,
            module,
            builder,
            function,
            places: Vec::new(),
            given: Vec::new(),
            positions: address(1),
            rows: parameter(2).map_or(zero, |value| value.into_int_value()),
        };
        parts.places = parts.read_places(address(0), inputs)?;
        parts.given = parts.read_given(address(3), given)?;
        Ok(parts)
    }

    /// One of its own parameters.
    pub(crate) fn other(&self, number: u32) -> PointerValue<'ctx> {
        let null = self.context.ptr_type(AddressSpace::default()).const_null();
        self.function.get_nth_param(COMMON + number).map_or(null, |value| value.into_pointer_value())
    }

    /// Where the inputs lie.
    fn read_places(&self, inputs: PointerValue<'ctx>, codes: &[InputCode]) -> Built<Vec<Place<'ctx>>> {
        let (wide, pointer) = (self.context.i64_type(), self.context.ptr_type(AddressSpace::default()));
        let word = |number: u64| {
            let at = wide.const_int(number, false);
            // SAFETY: an address is computed; `RawInput` has four words.
            unsafe { self.builder.build_in_bounds_gep(wide, inputs, &[at], "") }
        };
        let place = |(number, code): (usize, &InputCode)| {
            let first = number as u64 * 4;
            let address = |at| self.builder.build_load(pointer, word(at)?, "");
            let offset = |at| self.builder.build_load(wide, word(at)?, "");
            Ok(Place {
                code: *code,
                values: address(first)?.into_pointer_value(),
                validity: address(first + 1)?.into_pointer_value(),
                values_offset: offset(first + 2)?.into_int_value(),
                validity_offset: offset(first + 3)?.into_int_value(),
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
            let at =
                unsafe { self.builder.build_in_bounds_gep(wide, given, &[wide.const_int(word, false)], "")? };
            word += words(*machine) as u64;
            let value = self.builder.build_load(machine_type(self.context, *machine), at, "given")?;
            in_words(value.as_instruction_value());
            Ok(value)
        };
        machines.iter().map(read).collect()
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
            raised: None,
            read: vec![None; self.places.len()],
            shared: Vec::new(),
        }
    }

    /// The loop over all tuples and the function's end, twice: for tuples at positions, and for all there are where `positions` is null.
    pub(crate) fn each_row_of_either(
        &self,
        row: impl Fn(&Row<'ctx>) -> Built<()>,
        result: impl Fn(IntValue<'ctx>) -> Built<IntValue<'ctx>>,
    ) -> Built<()> {
        let (at_positions, at_all) = (self.block("at_positions"), self.block("at_all"));
        let all = self.builder.build_is_null(self.positions, "all")?;
        self.builder.build_conditional_branch(all, at_all, at_positions)?;
        self.builder.position_at_end(at_positions);
        self.each_row(true, &row, &result)?;
        self.builder.position_at_end(at_all);
        self.each_row(false, &row, &result)
    }

    /// The loop over all tuples and the function's end; `result` is made of how many tuples were done.
    pub(crate) fn each_row(
        &self,
        at_positions: bool,
        row: impl Fn(&Row<'ctx>) -> Built<()>,
        result: impl Fn(IntValue<'ctx>) -> Built<IntValue<'ctx>>,
    ) -> Built<()> {
        let (builder, wide) = (&self.builder, self.context.i64_type());
        let Some(before) = builder.get_insert_block() else { return Ok(()) };
        let (head, body) = (self.block("rows"), self.block("row"));
        let (next, end) = (self.block("next"), self.block("end"));
        builder.build_unconditional_branch(head)?;
        builder.position_at_end(head);
        let phi = builder.build_phi(wide, "number")?;
        let number = phi.as_basic_value().into_int_value();
        let more = builder.build_int_compare(IntPredicate::ULT, number, self.rows, "")?;
        builder.build_conditional_branch(more, body, end)?;
        builder.position_at_end(body);
        let position = match at_positions {
            false => number,
            true => {
                let narrow = self.context.i32_type();
                // SAFETY: an address is computed; what is read there is the caller's promise.
                let place = unsafe { builder.build_in_bounds_gep(narrow, self.positions, &[number], "")? };
                let position = builder.build_load(narrow, place, "")?.into_int_value();
                builder.build_int_z_extend(position, wide, "")?
            }
        };
        row(&Row { number, position, next, end })?;
        builder.position_at_end(next);
        let following = builder.build_int_nuw_add(number, wide.const_int(1, false), "")?;
        builder.build_unconditional_branch(head)?;
        phi.add_incoming(&[(&wide.const_zero(), before), (&following, next)]);
        builder.position_at_end(end);
        let result = result(number)?;
        builder.build_return(Some(&result as &dyn BasicValue<'ctx>))?;
        Ok(())
    }
}
