//! Compiles hashes: a function that writes the hashes of tuples, and the hash of a tuple's keys for
//! other functions ([`tessera_vector::hash`]).

use inkwell::FloatPredicate;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{BasicValue, BasicValueEnum, FloatValue, IntValue};
use tessera_codegen::{HashCode, InputCode, MachineType};
use tessera_vector::hash::{MULTIPLIER, NULL_WORD, SEED, WIDE};

use super::emitter::{FunctionEmitter, Row};
use super::provider::Provider;
use super::value::{Built, Value};

/// The name of the function.
pub(crate) const HASH: &str = "hash";

/// Index of the function's own parameter.
const OUT: usize = 0;

/// The bits of the canonical NaN.
const NAN_32: u64 = 0x7fc0_0000;
const NAN_64: u64 = 0x7ff8_0000_0000_0000;

/// Adds the CPU function of hashes to a module ([`tessera_codegen::HashKeys::run`]).
pub(crate) fn lower_hash<'ctx>(
    of: (&'ctx Context, &Module<'ctx>),
    provider: Provider,
    code: &HashCode,
) -> Built<()> {
    let emitter = FunctionEmitter::begin(of, (provider, HASH), (&code.keys, &[]), 1)?;
    let row = |row: &Row<'ctx>| {
        let mut values = emitter.values(row);
        let keys = (0..code.keys.len()).map(|key| values.input(key)).collect::<Built<Vec<_>>>()?;
        let hash = emitter.hash(&keys, &code.keys)?;
        emitter.builder.build_store(emitter.word(emitter.parameter(OUT), row.position)?, hash)?;
        emitter.builder.build_unconditional_branch(row.next)?;
        Ok(())
    };
    emitter.each_row_of_either(emitter.all_rows()?, row, |done| {
        emitter.builder.build_return(Some(&done as &dyn BasicValue<'ctx>))?;
        Ok(())
    })
}

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Computes the hash of a tuple's keys.
    pub(super) fn hash(&self, keys: &[Value<'ctx>], codes: &[InputCode]) -> Built<IntValue<'ctx>> {
        let builder = &self.builder;
        let mut state = self.number(SEED);
        for (key, code) in keys.iter().zip(codes) {
            let mut word = self.hashed_word(key.value, code.machine)?;
            if let Some(valid) = key.valid {
                word =
                    builder.build_select(valid, word, self.number(NULL_WORD), "")?.into_int_value();
            }
            state = self.fold(builder.build_xor(state, word, "")?, self.number(MULTIPLIER))?;
        }
        Ok(state)
    }

    /// Computes the word of a value that enters the hash.
    pub(super) fn hashed_word(
        &self,
        value: BasicValueEnum<'ctx>,
        machine: MachineType,
    ) -> Built<IntValue<'ctx>> {
        let (builder, wide) = (&self.builder, self.context.i64_type());
        match (value, machine) {
            (BasicValueEnum::FloatValue(float), MachineType::Float32) => {
                self.canonical(float, 32, NAN_32)
            }
            (BasicValueEnum::FloatValue(float), _) => self.canonical(float, 64, NAN_64),
            (value, MachineType::Integer { bits: 128, .. }) => {
                let long = value.into_int_value();
                let shift = long.get_type().const_int(64, false);
                let high = builder.build_right_shift(long, shift, false, "")?;
                let high = builder.build_int_truncate(high, wide, "")?;
                let high = builder.build_xor(high, self.number(WIDE), "")?;
                let low = builder.build_int_truncate(long, wide, "")?;
                builder.build_xor(low, self.fold(high, self.number(MULTIPLIER))?, "")
            }
            (value, _) => builder.build_int_z_extend_or_bit_cast(value.into_int_value(), wide, ""),
        }
    }

    /// Returns the canonical bits of a float: equal floats have equal bits.
    fn canonical(&self, value: FloatValue<'ctx>, bits: u32, nan: u64) -> Built<IntValue<'ctx>> {
        let (builder, wide) = (&self.builder, self.context.i64_type());
        // Converts -0 to +0.
        let positive = builder.build_float_add(value, value.get_type().const_zero(), "")?;
        let is_nan = builder.build_float_compare(FloatPredicate::UNO, value, value, "")?;
        let found = builder.build_bit_cast(positive, self.whole_type(bits), "")?.into_int_value();
        let found = builder.build_int_z_extend_or_bit_cast(found, wide, "")?;
        Ok(builder.build_select(is_nan, self.number(nan), found, "")?.into_int_value())
    }

    /// Multiplies to 128 bits and combines the halves by exclusive or
    /// ([`tessera_vector::hash::fold`]).
    fn fold(&self, a: IntValue<'ctx>, b: IntValue<'ctx>) -> Built<IntValue<'ctx>> {
        let (builder, long, wide) =
            (&self.builder, self.context.i128_type(), self.context.i64_type());
        let (a, b) =
            (builder.build_int_z_extend(a, long, "")?, builder.build_int_z_extend(b, long, "")?);
        let product = builder.build_int_mul(a, b, "")?;
        let high = builder.build_right_shift(product, long.const_int(64, false), false, "")?;
        let high = builder.build_int_truncate(high, wide, "")?;
        builder.build_xor(high, builder.build_int_truncate(product, wide, "")?, "")
    }
}
