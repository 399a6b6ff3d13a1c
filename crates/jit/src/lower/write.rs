//! Compiles writing of packed rows: a function that writes all fields of a tuple in one pass, word
//! by word; adjacent short fields become one store.

use std::collections::BTreeMap;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, BasicValueEnum, IntValue, PointerValue};
use tessera_codegen::WriteCode;

use super::emitter::{FunctionEmitter, Row};
use super::provider::Provider;
use super::value::{Built, Value, set_alignment};

/// The name of the function.
pub(crate) const WRITE: &str = "write";

/// Indexes of the function's own parameters.
const OUT: usize = 0;
const NULLS: usize = 1;

/// A row is a whole number of words.
const WORD_BYTES: usize = 8;

/// The words of a row by their index.
type Words<'ctx> = BTreeMap<usize, IntValue<'ctx>>;

/// Adds the CPU function that writes rows to a module ([`tessera_codegen::WriteRows::run`]).
pub(crate) fn lower_write<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: &WriteCode,
) -> Built<()> {
    let emitter = FunctionEmitter::begin(of, (provider, WRITE), (&code.inputs, &[]), 2)?;
    let words = code.fields.iter().map(|field| field.number / 64 + 1).max().unwrap_or(0);
    // In registers; in memory they would be stored for each tuple.
    let nulls =
        (0..words).map(|_| emitter.variable(emitter.number(0))).collect::<Built<Vec<_>>>()?;
    let write = Write { emitter: &emitter, code, nulls };
    emitter.each_row_of_either(emitter.all_rows()?, |row| write.row(row), |done| write.finish(done))
}

struct Write<'a, 'ctx> {
    emitter: &'a FunctionEmitter<'a, 'ctx>,
    code: &'a WriteCode,
    /// A bit for each field that was NULL in a tuple so far.
    nulls: Vec<PointerValue<'ctx>>,
}

impl<'ctx> Write<'_, 'ctx> {
    fn row(&self, row: &Row<'ctx>) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let mut values = emitter.values(row);
        let inputs =
            (0..self.code.inputs.len()).map(|at| values.input(at)).collect::<Built<Vec<_>>>()?;
        let stride = emitter.number(self.code.stride as u64);
        let start = builder.build_int_nuw_mul(row.number, stride, "")?;
        let start = self.byte(emitter.parameter(OUT), start)?;
        let mut words = BTreeMap::new();
        for ((field, code), input) in self.code.fields.iter().zip(&self.code.inputs).zip(&inputs) {
            if code.machine.bytes() > WORD_BYTES {
                let stored = builder.build_store(
                    self.byte(start, emitter.number(field.offset as u64))?,
                    input.value,
                )?;
                set_alignment(Some(stored), WORD_BYTES as u32);
                continue;
            }
            self.join(&mut words, field.offset, self.bits(input.value)?)?;
        }
        self.validity(&mut words, &inputs)?;
        for (word, value) in words {
            let at = emitter.number((word * WORD_BYTES) as u64);
            let stored = builder.build_store(self.byte(start, at)?, value)?;
            set_alignment(Some(stored), WORD_BYTES as u32);
        }
        builder.build_unconditional_branch(row.next)?;
        Ok(())
    }

    /// Returns the bits of a value of at most one word.
    fn bits(&self, value: BasicValueEnum<'ctx>) -> Built<IntValue<'ctx>> {
        let (builder, context) = (&self.emitter.builder, self.emitter.context);
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

    /// Merges bits into the word at a byte offset of a row.
    fn join(&self, words: &mut Words<'ctx>, offset: usize, bits: IntValue<'ctx>) -> Built<()> {
        let builder = &self.emitter.builder;
        let shift = self.emitter.number((offset % WORD_BYTES * 8) as u64);
        let bits = builder.build_left_shift(bits, shift, "")?;
        let word = words.entry(offset / WORD_BYTES).or_insert(self.emitter.number(0));
        *word = builder.build_or(*word, bits, "")?;
        Ok(())
    }

    /// Writes a row's validity bits, and accumulates the NULLs of all rows.
    fn validity(&self, words: &mut Words<'ctx>, inputs: &[Value<'ctx>]) -> Built<()> {
        let Some((first, count)) = self.code.validity else { return Ok(()) };
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let wide = emitter.context.i64_type();
        let mut bytes = vec![emitter.number(u8::MAX.into()); count];
        let valid = self.code.fields.iter().zip(inputs);
        for (field, valid) in valid.filter_map(|(field, input)| Some((field, input.valid?))) {
            let is_null = builder.build_int_z_extend(builder.build_not(valid, "")?, wide, "")?;
            let bit = |number: usize| {
                builder.build_left_shift(is_null, emitter.number(number as u64), "")
            };
            bytes[field.number / 8] =
                builder.build_xor(bytes[field.number / 8], bit(field.number % 8)?, "")?;
            let all = self.nulls[field.number / 64];
            let before = builder.build_load(wide, all, "")?.into_int_value();
            builder.build_store(all, builder.build_or(before, bit(field.number % 64)?, "")?)?;
        }
        bytes.into_iter().enumerate().try_for_each(|(at, bits)| self.join(words, first + at, bits))
    }

    /// Emits the end of the function.
    fn finish(&self, done: IntValue<'ctx>) -> Built<()> {
        let (emitter, builder) = (self.emitter, &self.emitter.builder);
        let wide = emitter.context.i64_type();
        for (number, nulls) in self.nulls.iter().enumerate() {
            let place = emitter.word(emitter.parameter(NULLS), emitter.number(number as u64))?;
            let before = builder.build_load(wide, place, "")?.into_int_value();
            let found = builder.build_load(wide, *nulls, "")?.into_int_value();
            builder.build_store(place, builder.build_or(before, found, "")?)?;
        }
        builder.build_return(Some(&done as &dyn BasicValue<'ctx>))?;
        Ok(())
    }

    fn byte(&self, first: PointerValue<'ctx>, number: IntValue<'ctx>) -> Built<PointerValue<'ctx>> {
        // SAFETY: this only computes an address; the output has room for all rows.
        unsafe {
            self.emitter.builder.build_in_bounds_gep(
                self.emitter.context.i8_type(),
                first,
                &[number],
                "",
            )
        }
    }
}
