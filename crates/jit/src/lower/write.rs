//! Rows: a function that writes tuples as rows, all their fields in one pass, word by word: short
//! fields beside each other are one store.

use std::collections::BTreeMap;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, BasicValueEnum, IntValue, PointerValue};
use tessera_codegen::WriteCode;

use super::parts::{Parts, Row};
use super::provider::Provider;
use super::value::{Built, Value, aligned};

/// The name of the function.
pub(crate) const WRITE: &str = "write";

/// Its own parameters.
const OUT: usize = 0;
const NULLS: usize = 1;

/// Rows are of whole words.
const WORD_BYTES: usize = 8;

/// The words of a row, by their numbers.
type Words<'ctx> = BTreeMap<usize, IntValue<'ctx>>;

/// Adds the function that writes rows to a module, as [`tessera_codegen::WriteRows::run`] has it; a
/// processor's.
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
        let inputs =
            (0..self.code.inputs.len()).map(|at| values.input(at)).collect::<Built<Vec<_>>>()?;
        let stride = parts.number(self.code.stride as u64);
        let start = builder.build_int_nuw_mul(row.number, stride, "")?;
        let start = self.byte(parts.other(OUT), start)?;
        let mut words = BTreeMap::new();
        for ((field, code), input) in self.code.fields.iter().zip(&self.code.inputs).zip(&inputs) {
            if code.machine.bytes() > WORD_BYTES {
                let stored = builder.build_store(
                    self.byte(start, parts.number(field.offset as u64))?,
                    input.value,
                )?;
                aligned(Some(stored), WORD_BYTES as u32);
                continue;
            }
            self.join(&mut words, field.offset, self.bits(input.value)?)?;
        }
        self.validity(&mut words, &inputs)?;
        for (word, value) in words {
            let at = parts.number((word * WORD_BYTES) as u64);
            let stored = builder.build_store(self.byte(start, at)?, value)?;
            aligned(Some(stored), WORD_BYTES as u32);
        }
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    }

    /// The bits of a value of up to a word.
    fn bits(&self, value: BasicValueEnum<'ctx>) -> Built<IntValue<'ctx>> {
        let (builder, context) = (&self.parts.builder, self.parts.context);
        let whole = match value {
            BasicValueEnum::FloatValue(float) => {
                let is_short = float.get_type() == context.f32_type();
                let of = if is_short { context.i32_type() } else { context.i64_type() };
                builder.build_bit_cast(float, of, "")?.into_int_value()
            }
            value => value.into_int_value(),
        };
        builder.build_int_z_extend_or_bit_cast(whole, context.i64_type(), "")
    }

    /// Puts bits where a byte of a row is into its word.
    fn join(&self, words: &mut Words<'ctx>, offset: usize, bits: IntValue<'ctx>) -> Built<()> {
        let builder = &self.parts.builder;
        let shift = self.parts.number((offset % WORD_BYTES * 8) as u64);
        let bits = builder.build_left_shift(bits, shift, "")?;
        let word = words.entry(offset / WORD_BYTES).or_insert(self.parts.number(0));
        *word = builder.build_or(*word, bits, "")?;
        Ok(())
    }

    /// A row's bits of validity, and what is known of all rows.
    fn validity(&self, words: &mut Words<'ctx>, inputs: &[Value<'ctx>]) -> Built<()> {
        let Some((first, count)) = self.code.validity else { return Ok(()) };
        let (parts, builder) = (self.parts, &self.parts.builder);
        let wide = parts.context.i64_type();
        let mut bytes = vec![parts.number(u8::MAX.into()); count];
        let valid = self.code.fields.iter().zip(inputs);
        for (field, valid) in valid.filter_map(|(field, input)| Some((field, input.valid?))) {
            let is_null = builder.build_int_z_extend(builder.build_not(valid, "")?, wide, "")?;
            let bit =
                |number: usize| builder.build_left_shift(is_null, parts.number(number as u64), "");
            bytes[field.number / 8] =
                builder.build_xor(bytes[field.number / 8], bit(field.number % 8)?, "")?;
            let all = self.nulls[field.number / 64];
            let before = builder.build_load(wide, all, "")?.into_int_value();
            builder.build_store(all, builder.build_or(before, bit(field.number % 64)?, "")?)?;
        }
        bytes.into_iter().enumerate().try_for_each(|(at, bits)| self.join(words, first + at, bits))
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
        unsafe {
            self.parts.builder.build_in_bounds_gep(
                self.parts.context.i8_type(),
                first,
                &[number],
                "",
            )
        }
    }
}
