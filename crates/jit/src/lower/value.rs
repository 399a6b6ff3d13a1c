//! Expressions: a value and its validity for one tuple, in straight lines. What a tuple does not
//! come to (a later operand of AND, a branch of CASE) is computed too, and neither its value nor
//! its errors count.

use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::{BasicValue, BasicValueEnum, InstructionValue, IntValue, PointerValue};
use inkwell::{FloatPredicate, IntPredicate};
use tessera_codegen::{
    Comparison, InputCode, InputPlace, Machine, Op, Operation, Status, TextCode, ValueCode,
};

use super::arithmetic::extended;
use super::text::Text;

/// The digits of the longest decimal, as a power of ten: no decimal reaches it.
const DECIMAL_LIMIT: i128 = 10i128.pow(38);

pub(crate) type Built<T> = Result<T, BuilderError>;

/// A value of a tuple.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'ctx> {
    pub(crate) value: BasicValueEnum<'ctx>,
    /// Whether it is not NULL; absent where it never is.
    pub(crate) valid: Option<IntValue<'ctx>>,
}

/// Where an input lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'ctx> {
    pub(crate) code: InputCode,
    pub(crate) values: PointerValue<'ctx>,
    pub(crate) validity: PointerValue<'ctx>,
    pub(crate) values_offset: IntValue<'ctx>,
    pub(crate) validity_offset: IntValue<'ctx>,
    /// Of places in the values, or of rows.
    pub(crate) list: PointerValue<'ctx>,
}

/// Computes values of one tuple.
pub(crate) struct Values<'a, 'ctx> {
    pub(crate) context: &'ctx Context,
    pub(crate) module: &'a Module<'ctx>,
    pub(crate) builder: &'a Builder<'ctx>,
    pub(crate) places: &'a [Place<'ctx>],
    /// The numbers that the code is given.
    pub(crate) given: &'a [BasicValueEnum<'ctx>],
    /// The tuple.
    pub(crate) row: IntValue<'ctx>,
    /// As [`super::parts::Parts`] has it.
    pub(crate) straight: bool,
    /// Whether the tuple perhaps raises an error; absent where none does.
    pub(crate) raised: Option<IntValue<'ctx>>,
    /// What was read and shared so far.
    pub(crate) read: Vec<Option<Value<'ctx>>>,
    pub(crate) texts: Vec<(TextCode, Text<'ctx>)>,
    pub(crate) shared: Vec<Value<'ctx>>,
}

/// For whom a value is computed: all tuples, or those for which it is true.
pub(crate) type Active<'ctx> = Option<IntValue<'ctx>>;

impl<'ctx> Values<'_, 'ctx> {
    fn boolean(&self, value: bool) -> IntValue<'ctx> {
        self.context.bool_type().const_int(value.into(), false)
    }

    pub(crate) fn integer(&self, of: IntType<'ctx>, value: i128) -> IntValue<'ctx> {
        of.const_int_arbitrary_precision(&[value as u64, (value >> 64) as u64])
    }

    /// The value of an expression for a tuple.
    pub(crate) fn value(&mut self, code: &ValueCode, active: Active<'ctx>) -> Built<Value<'ctx>> {
        let builder = self.builder;
        let of = machine_type(self.context, code.machine);
        let plain = |value: BasicValueEnum<'ctx>| Value { value, valid: None };
        Ok(match &code.op {
            Op::Input(number) => self.input(*number)?,
            Op::Shared(number) => self.shared[*number],
            Op::Null => Value { value: of.const_zero(), valid: Some(self.boolean(false)) },
            Op::Integer(value) => plain(self.integer(of.into_int_type(), *value).into()),
            Op::Float(bits) => {
                plain(of.into_float_type().const_float(f64::from_bits(*bits)).into())
            }
            Op::Given(number) => plain(self.given[*number]),
            Op::Compare(comparison, args) => {
                let (left, right) = self.both(args, active)?;
                self.compare(*comparison, args[0].machine, left, right)?
            }
            Op::Arithmetic(operation, args) => {
                let (left, right) = self.both(args, active)?;
                let valid = self.all_valid(&[left, right])?;
                let (value, wrong) = match code.machine {
                    Machine::Integer { signed, .. } => {
                        self.integers(*operation, signed, left.value, right.value)?
                    }
                    _ => self.floats(*operation, left.value, right.value)?,
                };
                self.raise(wrong, valid, active)?;
                Value { value, valid }
            }
            Op::Decimal { operation, factors, exact, args } => {
                let (left, right) = self.both(args, active)?;
                let valid = self.all_valid(&[left, right])?;
                let of = of.into_int_type();
                if *operation == Operation::Mul && !exact {
                    self.raise_unless_small(args, [left, right], valid, active)?;
                }
                let left = self.scaled(left.value.into_int_value(), of, factors.0)?;
                let right = self.scaled(right.value.into_int_value(), of, factors.1)?;
                let value = match operation {
                    Operation::Mul => builder.build_int_mul(left, right, "")?,
                    _ if *exact => match operation {
                        Operation::Sub => builder.build_int_sub(left, right, "")?,
                        _ => builder.build_int_add(left, right, "")?,
                    },
                    operation => {
                        let (value, wrong) = self.overflowing(*operation, true, left, right)?;
                        let beyond = self.beyond(value, DECIMAL_LIMIT)?;
                        self.raise(builder.build_or(wrong, beyond, "")?, valid, active)?;
                        value
                    }
                };
                Value { value: value.into(), valid }
            }
            Op::OfDecimals(operation, args) => {
                let (left, right) = self.both(args, active)?;
                let valid = self.all_valid(&[left, right])?;
                let (left, right) = (left.value.into_float_value(), right.value.into_float_value());
                let value = match operation {
                    Operation::Div => {
                        let zero = right.get_type().const_zero();
                        let wrong =
                            builder.build_float_compare(FloatPredicate::OEQ, right, zero, "")?;
                        self.raise(wrong, valid, active)?;
                        builder.build_float_div(left, right, "")?
                    }
                    _ => builder.build_float_mul(left, right, "")?,
                };
                Value { value: value.into(), valid }
            }
            Op::Widen(factor, input) => {
                let value = self.value(input, active)?;
                let of = of.into_int_type();
                let wide = extended(builder, value.value.into_int_value(), input.machine, of)?;
                let scaled = builder.build_int_mul(wide, self.integer(of, *factor), "")?;
                Value { value: scaled.into(), valid: value.valid }
            }
            Op::ToFloat(divisor, input) => {
                let value = self.value(input, active)?;
                let (of, whole) = (of.into_float_type(), value.value.into_int_value());
                let float = match input.machine {
                    Machine::Integer { signed: true, .. } => {
                        builder.build_signed_int_to_float(whole, of, "")?
                    }
                    _ => builder.build_unsigned_int_to_float(whole, of, "")?,
                };
                let float = builder.build_float_div(float, of.const_float(*divisor), "")?;
                Value { value: float.into(), valid: value.valid }
            }
            Op::Negate(input) => {
                let value = self.value(input, active)?;
                let negative = match value.value {
                    BasicValueEnum::IntValue(whole) => {
                        let zero = whole.get_type().const_zero();
                        let (negative, wrong) =
                            self.overflowing(Operation::Sub, true, zero, whole)?;
                        self.raise(wrong, value.valid, active)?;
                        negative.into()
                    }
                    float => builder.build_float_neg(float.into_float_value(), "")?.into(),
                };
                Value { value: negative, valid: value.valid }
            }
            Op::And(list) => self.connective(list, false, active)?,
            Op::Or(list) => self.connective(list, true, active)?,
            Op::Not(input) => {
                let value = self.value(input, active)?;
                let value_not = builder.build_not(value.value.into_int_value(), "")?;
                Value { value: value_not.into(), valid: value.valid }
            }
            Op::IsNull(input) => {
                let valid = self.value(input, active)?.valid;
                plain(match valid {
                    Some(valid) => builder.build_not(valid, "")?.into(),
                    None => self.boolean(false).into(),
                })
            }
            Op::Coalesce(list) => self.coalesce(list, active)?,
            Op::Case(branches, otherwise) => {
                self.case(branches, otherwise.as_deref(), of, active)?
            }
            Op::Among { value, numbers, null } => {
                let value = self.value(value, active)?;
                let whole = value.value.into_int_value();
                let mut found = self.boolean(false);
                for number in numbers {
                    let number = self.value(number, active)?.value.into_int_value();
                    let same = builder.build_int_compare(IntPredicate::EQ, whole, number, "")?;
                    found = builder.build_or(found, same, "")?;
                }
                let valid = match (*null, value.valid) {
                    (true, Some(valid)) => Some(builder.build_and(valid, found, "")?),
                    (true, None) => Some(found),
                    (false, valid) => valid,
                };
                Value { value: found.into(), valid }
            }
            Op::Function(function, args) => {
                let called = self.call(function, args, active)?;
                let last = self.context.i32_type().const_int(Status::Null as u64, false);
                let wrong =
                    builder.build_int_compare(IntPredicate::UGT, called.status, last, "")?;
                self.raise(wrong, None, active)?;
                Value { value: called.value, valid: Some(called.is_value(builder)?) }
            }
            Op::SameText(texts) => self.same_text(texts)?,
            Op::Like(like) => self.like(like)?,
        })
    }

    fn both(
        &mut self,
        args: &[ValueCode; 2],
        active: Active<'ctx>,
    ) -> Built<(Value<'ctx>, Value<'ctx>)> {
        Ok((self.value(&args[0], active)?, self.value(&args[1], active)?))
    }

    /// Whether a condition is true for a tuple: neither false nor NULL.
    pub(crate) fn truth(
        &mut self,
        condition: &ValueCode,
        active: Active<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let Value { value, valid } = self.value(condition, active)?;
        match valid {
            Some(valid) => self.builder.build_and(value.into_int_value(), valid, ""),
            None => Ok(value.into_int_value()),
        }
    }

    /// Whether all values are not NULL; absent where none ever is.
    pub(crate) fn all_valid(&self, values: &[Value<'ctx>]) -> Built<Option<IntValue<'ctx>>> {
        let mut all: Option<IntValue<'ctx>> = None;
        for valid in values.iter().filter_map(|value| value.valid) {
            all = Some(match all {
                Some(all) => self.builder.build_and(all, valid, "")?,
                None => valid,
            });
        }
        Ok(all)
    }

    /// Notes an error of a tuple that counts.
    pub(crate) fn raise(
        &mut self,
        wrong: IntValue<'ctx>,
        valid: Option<IntValue<'ctx>>,
        active: Active<'ctx>,
    ) -> Built<()> {
        let mut wrong = wrong;
        for counts in [valid, active].into_iter().flatten() {
            wrong = self.builder.build_and(wrong, counts, "")?;
        }
        self.raised = Some(match self.raised {
            Some(raised) => self.builder.build_or(raised, wrong, "")?,
            None => wrong,
        });
        Ok(())
    }

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
        // SAFETY: an address is computed; what is read there is the caller's promise
        // (`Update::run`).
        let place = unsafe { builder.build_in_bounds_gep(small, bytes, &[byte], "")? };
        let byte = builder.build_load(small, place, "")?.into_int_value();
        let number = builder.build_and(at, wide.const_int(7, false), "")?;
        let number = builder.build_int_truncate(number, small, "")?;
        let shifted = builder.build_right_shift(byte, number, false, "")?;
        builder.build_int_truncate(shifted, self.context.bool_type(), "")
    }

    /// An input; it is loaded once.
    pub(crate) fn input(&mut self, number: usize) -> Built<Value<'ctx>> {
        if let Some(value) = self.read[number] {
            return Ok(value);
        }
        let value = self.load(self.places[number])?;
        self.read[number] = Some(value);
        Ok(value)
    }

    fn load(&self, place: Place<'ctx>) -> Built<Value<'ctx>> {
        let row = match place.code.place {
            InputPlace::Column | InputPlace::Views => self.row,
            InputPlace::Once => self.context.i64_type().const_zero(),
            InputPlace::Listed => self.listed(place.list, self.context.i32_type())?,
            InputPlace::InRow { stride, list_bits, validity_bit } => {
                let row = match list_bits {
                    0 => self.row,
                    32 => self.listed(place.list, self.context.i32_type())?,
                    _ => self.listed(place.list, self.context.i64_type())?,
                };
                return self.load_of_row(place, row, (stride, validity_bit));
            }
        };
        let value = match place.code.machine {
            Machine::Boolean => self.bit(place.values, place.values_offset, row)?.into(),
            machine => {
                let of = machine_type(self.context, machine);
                // SAFETY: as in `bit`.
                let at = unsafe { self.builder.build_in_bounds_gep(of, place.values, &[row], "")? };
                let value = self.builder.build_load(of, at, "")?;
                if matches!(machine, Machine::Integer { bits: 128, .. }) {
                    in_words(value.as_instruction_value());
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

    /// Whether an input in a column is not NULL.
    pub(crate) fn valid_bit(&self, place: Place<'ctx>) -> Built<IntValue<'ctx>> {
        self.bit(place.validity, place.validity_offset, self.row)
    }

    /// What a list has for the tuple.
    fn listed(&self, list: PointerValue<'ctx>, of: IntType<'ctx>) -> Built<IntValue<'ctx>> {
        // SAFETY: an address is computed; what is read there is the caller's promise.
        let at = unsafe { self.builder.build_in_bounds_gep(of, list, &[self.row], "")? };
        let number = self.builder.build_load(of, at, "")?.into_int_value();
        self.builder.build_int_z_extend_or_bit_cast(number, self.context.i64_type(), "")
    }

    /// The value of a field of a row.
    fn load_of_row(
        &self,
        place: Place<'ctx>,
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
            Machine::Boolean => load_bit(place.values, u8::MAX.into())?.into(),
            machine => {
                let value = builder.build_load(
                    machine_type(self.context, machine),
                    at(place.values)?,
                    "",
                )?;
                if matches!(machine, Machine::Integer { bits: 128, .. }) {
                    in_words(value.as_instruction_value());
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

    fn equal(
        &self,
        machine: Machine,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let builder = self.builder;
        if matches!(machine, Machine::Boolean | Machine::Integer { .. }) {
            let (left, right) = (left.into_int_value(), right.into_int_value());
            return builder.build_int_compare(IntPredicate::EQ, left, right, "");
        }
        let (left, right) = (left.into_float_value(), right.into_float_value());
        let equal = builder.build_float_compare(FloatPredicate::OEQ, left, right, "")?;
        let left_is_nan = builder.build_float_compare(FloatPredicate::UNO, left, left, "")?;
        let right_is_nan = builder.build_float_compare(FloatPredicate::UNO, right, right, "")?;
        let both = builder.build_and(left_is_nan, right_is_nan, "")?;
        builder.build_or(equal, both, "")
    }

    fn compare(
        &self,
        comparison: Comparison,
        machine: Machine,
        left: Value<'ctx>,
        right: Value<'ctx>,
    ) -> Built<Value<'ctx>> {
        let builder = self.builder;
        let (l, r) = (left.value, right.value);
        let not = |value: IntValue<'ctx>| builder.build_not(value, "");
        let value = match comparison {
            Comparison::Eq | Comparison::NotDistinct => self.equal(machine, l, r)?,
            Comparison::NotEq | Comparison::Distinct => not(self.equal(machine, l, r)?)?,
            Comparison::Lt => less(builder, machine, l, r)?,
            Comparison::LtEq => not(less(builder, machine, r, l)?)?,
            Comparison::Gt => less(builder, machine, r, l)?,
            Comparison::GtEq => not(less(builder, machine, l, r)?)?,
        };
        if !matches!(comparison, Comparison::Distinct | Comparison::NotDistinct) {
            return Ok(Value { value: value.into(), valid: self.all_valid(&[left, right])? });
        }
        let valid = |value: Value<'ctx>| value.valid.unwrap_or_else(|| self.boolean(true));
        let (l, r) = (valid(left), valid(right));
        let both = builder.build_and(l, r, "")?;
        let differ = builder.build_xor(l, r, "")?;
        let of_nulls = match comparison {
            Comparison::Distinct => differ,
            _ => not(differ)?,
        };
        let value = builder.build_select(both, value, of_nulls, "")?;
        Ok(Value { value, valid: None })
    }

    /// Whether a signed number reaches a limit, or that below zero.
    pub(crate) fn beyond(&self, value: IntValue<'ctx>, limit: i128) -> Built<IntValue<'ctx>> {
        let (builder, limit) = (self.builder, self.integer(value.get_type(), limit));
        let least = builder.build_int_neg(limit, "")?;
        let high = builder.build_int_compare(IntPredicate::SGE, value, limit, "")?;
        let low = builder.build_int_compare(IntPredicate::SLE, value, least, "")?;
        builder.build_or(high, low, "")
    }

    /// Those of some tuples for which a condition is true.
    pub(crate) fn among(
        &self,
        active: Active<'ctx>,
        condition: IntValue<'ctx>,
    ) -> Built<Active<'ctx>> {
        Ok(Some(match active {
            Some(active) => self.builder.build_and(active, condition, "")?,
            None => condition,
        }))
    }

    /// Conjunction or, with `any`, disjunction: `any` decides, NULL comes next.
    fn connective(
        &mut self,
        list: &[ValueCode],
        any: bool,
        active: Active<'ctx>,
    ) -> Built<Value<'ctx>> {
        let builder = self.builder;
        let mut decided = self.boolean(false);
        let mut all_valid: Option<IntValue<'ctx>> = None;
        for (number, code) in list.iter().enumerate() {
            let counts = match number {
                0 => active,
                _ => self.among(active, builder.build_not(decided, "")?)?,
            };
            let value = self.value(code, counts)?;
            let mut decides = value.value.into_int_value();
            if !any {
                decides = builder.build_not(decides, "")?;
            }
            if let Some(valid) = value.valid {
                decides = builder.build_and(decides, valid, "")?;
                all_valid = self.among(all_valid, valid)?;
            }
            decided = builder.build_or(decided, decides, "")?;
        }
        let valid = match all_valid {
            Some(all_valid) => Some(builder.build_or(decided, all_valid, "")?),
            None => None,
        };
        let value = if any { decided } else { builder.build_not(decided, "")? };
        Ok(Value { value: value.into(), valid })
    }

    /// One of two values.
    fn chosen(
        &self,
        condition: IntValue<'ctx>,
        then: Value<'ctx>,
        otherwise: Value<'ctx>,
    ) -> Built<Value<'ctx>> {
        let value = self.builder.build_select(condition, then.value, otherwise.value, "")?;
        let valid = match (then.valid, otherwise.valid) {
            (None, None) => None,
            (then, otherwise) => {
                let or_true =
                    |valid: Option<IntValue<'ctx>>| valid.unwrap_or_else(|| self.boolean(true));
                let valid =
                    self.builder.build_select(condition, or_true(then), or_true(otherwise), "")?;
                Some(valid.into_int_value())
            }
        };
        Ok(Value { value, valid })
    }

    fn coalesce(&mut self, list: &[ValueCode], active: Active<'ctx>) -> Built<Value<'ctx>> {
        let mut found: Option<Value<'ctx>> = None;
        for code in list {
            found = Some(match found {
                None => self.value(code, active)?,
                Some(Value { value, valid: None }) => Value { value, valid: None },
                Some(first @ Value { valid: Some(valid), .. }) => {
                    let counts = self.among(active, self.builder.build_not(valid, "")?)?;
                    let next = self.value(code, counts)?;
                    self.chosen(valid, Value { valid: None, ..first }, next)?
                }
            });
        }
        found.ok_or(BuilderError::UnsetPosition)
    }

    fn case(
        &mut self,
        branches: &[(ValueCode, ValueCode)],
        otherwise: Option<&ValueCode>,
        of: BasicTypeEnum<'ctx>,
        active: Active<'ctx>,
    ) -> Built<Value<'ctx>> {
        let builder = self.builder;
        let mut rest = active;
        let mut taken = Vec::with_capacity(branches.len());
        for (condition, value) in branches {
            let is_true = self.truth(condition, rest)?;
            let counts = self.among(rest, is_true)?;
            taken.push((is_true, self.value(value, counts)?));
            rest = self.among(rest, builder.build_not(is_true, "")?)?;
        }
        let mut result = match otherwise {
            Some(otherwise) => self.value(otherwise, rest)?,
            None => Value { value: of.const_zero(), valid: Some(self.boolean(false)) },
        };
        for (is_true, value) in taken.into_iter().rev() {
            result = self.chosen(is_true, value, result)?;
        }
        Ok(result)
    }
}

/// Whether one value comes before another: NaN after every other number.
pub(crate) fn less<'ctx>(
    builder: &Builder<'ctx>,
    machine: Machine,
    left: BasicValueEnum<'ctx>,
    right: BasicValueEnum<'ctx>,
) -> Built<IntValue<'ctx>> {
    match machine {
        Machine::Boolean | Machine::Integer { signed: false, .. } => builder.build_int_compare(
            IntPredicate::ULT,
            left.into_int_value(),
            right.into_int_value(),
            "",
        ),
        Machine::Integer { .. } => builder.build_int_compare(
            IntPredicate::SLT,
            left.into_int_value(),
            right.into_int_value(),
            "",
        ),
        _ => {
            let (left, right) = (left.into_float_value(), right.into_float_value());
            let less = builder.build_float_compare(FloatPredicate::OLT, left, right, "")?;
            let right_is_nan =
                builder.build_float_compare(FloatPredicate::UNO, right, right, "")?;
            let left_is_number =
                builder.build_float_compare(FloatPredicate::ORD, left, left, "")?;
            let before_nan = builder.build_and(right_is_nan, left_is_number, "")?;
            builder.build_or(less, before_nan, "")
        }
    }
}

/// The type of a value.
pub(crate) fn machine_type(context: &Context, machine: Machine) -> BasicTypeEnum<'_> {
    match machine {
        Machine::Boolean => context.bool_type().into(),
        Machine::Integer { bits: 8, .. } => context.i8_type().into(),
        Machine::Integer { bits: 16, .. } => context.i16_type().into(),
        Machine::Integer { bits: 32, .. } => context.i32_type().into(),
        Machine::Integer { bits: 64, .. } => context.i64_type().into(),
        Machine::Integer { .. } => context.i128_type().into(),
        Machine::Float32 => context.f32_type().into(),
        Machine::Float64 => context.f64_type().into(),
    }
}

/// Says that what is read or written stands in words of 8 bytes: Arrow and records promise no more.
pub(crate) fn in_words(access: Option<InstructionValue<'_>>) {
    aligned(access, 8);
}

/// Says that what is read or written stands at a multiple of so many bytes.
pub(crate) fn aligned(access: Option<InstructionValue<'_>>, bytes: u32) {
    if let Some(instruction) = access {
        let aligned = instruction.set_alignment(bytes);
        debug_assert!(aligned.is_ok());
    }
}
