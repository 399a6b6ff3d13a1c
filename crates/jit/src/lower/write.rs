//! Rows: a function that writes tuples as rows, all their fields in one pass.

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, IntValue, PointerValue};
use tessera_ops::code::{Machine, WriteCode};

use super::parts::{Parts, Row};
use super::provider::Provider;
use super::value::{Built, Value, aligned};

/// The name of the function.
pub(crate) const WRITE: &str = "write";

/// Its own parameters.
const OUT: usize = 0;
const NULLS: usize = 1;

/// Adds the function that writes rows to a module, as [`tessera_ops::code::WriteRows::run`] has it; a processor's.
pub(crate) fn lower_write<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: &WriteCode,
) -> Built<()> {
    let parts = Parts::begin(of, (provider, WRITE), (&code.inputs, &[]), 2)?;
    let words = code.fields.iter().map(|field| field.number / 64 + 1).max().unwrap_or(0);
    // In registers: kept in memory they would be written for each tuple.
    let nulls = (0..words).map(|_| parts.variable(parts.number(0))).collect::<Built<Vec<_>>>()?;
    let write = Write { parts: &parts, code, nulls };
    parts.each_row_of_either(parts.all_rows()?, |row| write.row(row), |done| write.finish(done))
}

struct Write<'a, 'ctx> {
    parts: &'a Parts<'a, 'ctx>,
    code: &'a WriteCode,
    /// The bits of the fields that a tuple was NULL in so far.
    nulls: Vec<PointerValue<'ctx>>,
}

impl<'ctx> Write<'_, 'ctx> {
    fn row(&self, row: &Row<'ctx>) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let mut values = parts.values(row);
        let inputs = (0..self.code.inputs.len()).map(|at| values.input(at)).collect::<Built<Vec<_>>>()?;
        let stride = parts.number(self.code.stride as u64);
        let start = builder.build_int_nuw_mul(row.number, stride, "")?;
        let start = self.byte(parts.other(OUT), start)?;
        let fields = self.code.fields.iter().zip(&self.code.inputs).zip(&inputs);
        for ((field, code), input) in fields {
            let mut value = input.value;
            if code.machine == Machine::Boolean {
                value =
                    builder.build_int_z_extend(value.into_int_value(), parts.context.i8_type(), "")?.into();
            }
            let stored = builder.build_store(self.byte(start, parts.number(field.offset as u64))?, value)?;
            aligned(Some(stored), code.machine.bytes().min(8) as u32);
        }
        self.validity(start, &inputs)?;
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    }

    /// A row's bits of validity, and what is known of all rows.
    fn validity(&self, row: PointerValue<'ctx>, inputs: &[Value<'ctx>]) -> Built<()> {
        let Some((first, count)) = self.code.validity else { return Ok(()) };
        let (parts, builder) = (self.parts, &self.parts.builder);
        let byte = parts.context.i8_type();
        let mut bytes = vec![byte.const_all_ones(); count];
        let valid = self.code.fields.iter().zip(inputs);
        for (field, valid) in valid.filter_map(|(field, input)| Some((field, input.valid?))) {
            let is_null = builder.build_not(valid, "")?;
            let bit = |of: inkwell::types::IntType<'ctx>, number: usize| {
                let bit = builder.build_int_z_extend(is_null, of, "")?;
                builder.build_left_shift(bit, of.const_int(number as u64, false), "")
            };
            let cleared = builder.build_not(bit(byte, field.number % 8)?, "")?;
            bytes[field.number / 8] = builder.build_and(bytes[field.number / 8], cleared, "")?;
            let (wide, all) = (parts.context.i64_type(), self.nulls[field.number / 64]);
            let before = builder.build_load(wide, all, "")?.into_int_value();
            builder.build_store(all, builder.build_or(before, bit(wide, field.number % 64)?, "")?)?;
        }
        for (at, bits) in bytes.into_iter().enumerate() {
            builder.build_store(self.byte(row, parts.number((first + at) as u64))?, bits)?;
        }
        Ok(())
    }

    /// The function's end.
    fn finish(&self, done: IntValue<'ctx>) -> Built<()> {
        let (parts, builder) = (self.parts, &self.parts.builder);
        let wide = parts.context.i64_type();
        for (number, nulls) in self.nulls.iter().enumerate() {
            let place = parts.word(parts.other(NULLS), parts.number(number as u64))?;
            let before = builder.build_load(wide, place, "")?.into_int_value();
            let found = builder.build_load(wide, *nulls, "")?.into_int_value();
            builder.build_store(place, builder.build_or(before, found, "")?)?;
        }
        builder.build_return(Some(&done as &dyn BasicValue<'ctx>))?;
        Ok(())
    }

    fn byte(&self, first: PointerValue<'ctx>, number: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        // SAFETY: an address is computed; there is room for all rows, by the caller's promise.
        unsafe { self.parts.builder.build_in_bounds_gep(self.parts.context.i8_type(), first, &[number], "") }
    }
}
