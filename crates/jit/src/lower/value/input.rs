//! Loads inputs: values and validity bits in columns, entries of lists, and fields of packed rows.

use inkwell::IntPredicate;
use inkwell::types::IntType;
use inkwell::values::{BasicValue, IntValue, PointerValue};
use tessera_codegen::{InputPlace, MachineType};

use super::{Built, InputLocation, Value, Values, machine_type, set_word_alignment};

impl<'ctx> Values<'_, 'ctx> {
    fn bit(
        &self,
        bytes: PointerValue<'ctx>,
        offset: IntValue<'ctx>,
        row: IntValue<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let (builder, wide) = (self.builder, self.context.i64_type());
        let at = builder.build_int_add(offset, row, "")?;
        let byte = builder.build_right_shift(at, wide.const_int(3, false), false, "")?;
        let small = self.context.i8_type();
        // SAFETY: this only computes an address; the caller's contract covers the access
        // (`Update::run`).
        let place = unsafe { builder.build_in_bounds_gep(small, bytes, &[byte], "")? };
        let byte = builder.build_load(small, place, "")?.into_int_value();
        let number = builder.build_and(at, wide.const_int(7, false), "")?;
        let number = builder.build_int_truncate(number, small, "")?;
        let shifted = builder.build_right_shift(byte, number, false, "")?;
        builder.build_int_truncate(shifted, self.context.bool_type(), "")
    }

    /// Returns an input, which is loaded only once.
    pub(crate) fn input(&mut self, number: usize) -> Built<Value<'ctx>> {
        if let Some(value) = self.read[number] {
            return Ok(value);
        }
        let value = self.load(self.locations[number])?;
        self.read[number] = Some(value);
        Ok(value)
    }

    fn load(&self, place: InputLocation<'ctx>) -> Built<Value<'ctx>> {
        let row = match place.code.place {
            InputPlace::Column | InputPlace::Views => self.row,
            InputPlace::Constant => self.context.i64_type().const_zero(),
            InputPlace::Indexed => self.list_entry(place.list, self.context.i32_type())?,
            InputPlace::Row { stride, list_bits, validity_bit } => {
                let row = match list_bits {
                    0 => self.row,
                    32 => self.list_entry(place.list, self.context.i32_type())?,
                    _ => self.list_entry(place.list, self.context.i64_type())?,
                };
                return self.load_of_row(place, row, (stride, validity_bit));
            }
        };
        let value = match place.code.machine {
            MachineType::Boolean => self.bit(place.values, place.values_offset, row)?.into(),
            machine => {
                let of = machine_type(self.context, machine);
                // SAFETY: as in `bit`.
                let at = unsafe { self.builder.build_in_bounds_gep(of, place.values, &[row], "")? };
                let value = self.builder.build_load(of, at, "")?;
                if matches!(machine, MachineType::Integer { bits: 128, .. }) {
                    set_word_alignment(value.as_instruction_value());
                }
                value
            }
        };
        let valid = match place.code.nullable {
            true => Some(self.bit(place.validity, place.validity_offset, row)?),
            false => None,
        };
        Ok(Value { value, valid })
    }

    /// Loads the validity bit of an input.
    pub(crate) fn valid_bit(&self, place: InputLocation<'ctx>) -> Built<IntValue<'ctx>> {
        self.bit(place.validity, place.validity_offset, self.row)
    }

    /// Loads the tuple's entry of a list.
    fn list_entry(&self, list: PointerValue<'ctx>, of: IntType<'ctx>) -> Built<IntValue<'ctx>> {
        // SAFETY: this only computes an address; the caller's contract covers the access.
        let at = unsafe { self.builder.build_in_bounds_gep(of, list, &[self.row], "")? };
        let number = self.builder.build_load(of, at, "")?.into_int_value();
        self.builder.build_int_z_extend_or_bit_cast(number, self.context.i64_type(), "")
    }

    /// Loads a field of a packed row.
    fn load_of_row(
        &self,
        place: InputLocation<'ctx>,
        row: IntValue<'ctx>,
        (stride, validity_bit): (u32, u8),
    ) -> Built<Value<'ctx>> {
        let (builder, wide, byte) = (self.builder, self.context.i64_type(), self.context.i8_type());
        let offset = builder.build_int_nuw_mul(row, wide.const_int(stride.into(), false), "")?;
        // SAFETY: as above.
        let at = |first| unsafe { builder.build_in_bounds_gep(byte, first, &[offset], "") };
        let load_bit = |first, mask: u64| {
            let bits = builder.build_load(byte, at(first)?, "")?.into_int_value();
            let bit = builder.build_and(bits, byte.const_int(mask, false), "")?;
            builder.build_int_compare(IntPredicate::NE, bit, byte.const_zero(), "")
        };
        let value = match place.code.machine {
            MachineType::Boolean => load_bit(place.values, u8::MAX.into())?.into(),
            machine => {
                let value = builder.build_load(
                    machine_type(self.context, machine),
                    at(place.values)?,
                    "",
                )?;
                if matches!(machine, MachineType::Integer { bits: 128, .. }) {
                    set_word_alignment(value.as_instruction_value());
                }
                value
            }
        };
        let valid = match place.code.nullable {
            true => Some(load_bit(place.validity, 1 << validity_bit)?),
            false => None,
        };
        Ok(Value { value, valid })
    }
}
