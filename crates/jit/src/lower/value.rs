//! Compiles expressions: the value and validity for one tuple, in straight-line code. Operands that
//! SQL would not evaluate (later operands of AND, branches of CASE) are computed too, but their
//! values and errors are ignored.

mod input;
mod machine;

use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use inkwell::{FloatPredicate, IntPredicate};
use tessera_codegen::{
    Comparison, InputCode, MachineType, Op, Operation, Status, TextCode, ValueCode,
};

use super::arithmetic::extend;
use super::text::Text;
pub(crate) use machine::{less, machine_type, set_alignment, set_word_alignment};

/// The exclusive limit of decimals with 38 digits, the longest.
const DECIMAL_LIMIT: i128 = 10i128.pow(38);

pub(crate) type Built<T> = Result<T, BuilderError>;

/// A value of a tuple.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'ctx> {
    pub(crate) value: BasicValueEnum<'ctx>,
    /// Whether it is not NULL; `None` if it never is.
    pub(crate) valid: Option<IntValue<'ctx>>,
}

/// The location of an input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InputLocation<'ctx> {
    pub(crate) code: InputCode,
    pub(crate) values: PointerValue<'ctx>,
    pub(crate) validity: PointerValue<'ctx>,
    pub(crate) values_offset: IntValue<'ctx>,
    pub(crate) validity_offset: IntValue<'ctx>,
    /// The positions of values, or the row pointers.
    pub(crate) list: PointerValue<'ctx>,
}

/// Computes values of one tuple.
pub(crate) struct Values<'a, 'ctx> {
    pub(crate) context: &'ctx Context,
    pub(crate) module: &'a Module<'ctx>,
    pub(crate) builder: &'a Builder<'ctx>,
    pub(crate) locations: &'a [InputLocation<'ctx>],
    /// The runtime constants of the code.
    pub(crate) constants: &'a [BasicValueEnum<'ctx>],
    /// The position of the tuple.
    pub(crate) row: IntValue<'ctx>,
    /// See [`super::emitter::FunctionEmitter::straight`].
    pub(crate) straight: bool,
    /// Whether the tuple may raise an error; `None` if it cannot.
    pub(crate) raised: Option<IntValue<'ctx>>,
    /// Inputs, texts and shared values that were computed so far.
    pub(crate) read: Vec<Option<Value<'ctx>>>,
    pub(crate) texts: Vec<(TextCode, Text<'ctx>)>,
    pub(crate) shared: Vec<Value<'ctx>>,
}

/// The condition under which a value is used; `None` means always.
pub(crate) type Active<'ctx> = Option<IntValue<'ctx>>;

impl<'ctx> Values<'_, 'ctx> {
    fn boolean(&self, value: bool) -> IntValue<'ctx> {
        self.context.bool_type().const_int(value.into(), false)
    }

    pub(crate) fn integer(&self, of: IntType<'ctx>, value: i128) -> IntValue<'ctx> {
        of.const_int_arbitrary_precision(&[value as u64, (value >> 64) as u64])
    }

    /// Computes an expression.
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
            Op::RuntimeConstant(number) => plain(self.constants[*number]),
            Op::Compare(comparison, args) => {
                let (left, right) = self.both(args, active)?;
                self.compare(*comparison, args[0].machine, left, right)?
            }
            Op::Arithmetic(operation, args) => {
                let (left, right) = self.both(args, active)?;
                let valid = self.all_valid(&[left, right])?;
                let (value, wrong) = match code.machine {
                    MachineType::Integer { signed, .. } => {
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
                let left = self.scale(left.value.into_int_value(), of, factors.0)?;
                let right = self.scale(right.value.into_int_value(), of, factors.1)?;
                let value = match operation {
                    Operation::Mul => builder.build_int_mul(left, right, "")?,
                    _ if *exact => match operation {
                        Operation::Sub => builder.build_int_sub(left, right, "")?,
                        _ => builder.build_int_add(left, right, "")?,
                    },
                    operation => {
                        let (value, wrong) = self.overflowing(*operation, true, left, right)?;
                        let reaches_limit = self.reaches_limit(value, DECIMAL_LIMIT)?;
                        self.raise(builder.build_or(wrong, reaches_limit, "")?, valid, active)?;
                        value
                    }
                };
                Value { value: value.into(), valid }
            }
            Op::DecimalsAsFloats(operation, args) => {
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
                let wide = extend(builder, value.value.into_int_value(), input.machine, of)?;
                let scale = builder.build_int_mul(wide, self.integer(of, *factor), "")?;
                Value { value: scale.into(), valid: value.valid }
            }
            Op::ToFloat(divisor, input) => {
                let value = self.value(input, active)?;
                let (of, whole) = (of.into_float_type(), value.value.into_int_value());
                let float = match input.machine {
                    MachineType::Integer { signed: true, .. } => {
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
            Op::InList { value, numbers, null } => {
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
            Op::TextEquals(texts) => self.same_text(texts)?,
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

    /// Computes whether a condition is true, not false or NULL.
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

    /// Computes whether all values are not NULL; `None` if none can be NULL.
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

    /// Records an error if the value is valid and active.
    pub(crate) fn raise(
        &mut self,
        wrong: IntValue<'ctx>,
        valid: Option<IntValue<'ctx>>,
        active: Active<'ctx>,
    ) -> Built<()> {
        let mut wrong = wrong;
        for condition in [valid, active].into_iter().flatten() {
            wrong = self.builder.build_and(wrong, condition, "")?;
        }
        self.raised = Some(match self.raised {
            Some(raised) => self.builder.build_or(raised, wrong, "")?,
            None => wrong,
        });
        Ok(())
    }

    fn equal(
        &self,
        machine: MachineType,
        left: BasicValueEnum<'ctx>,
        right: BasicValueEnum<'ctx>,
    ) -> Built<IntValue<'ctx>> {
        let builder = self.builder;
        if matches!(machine, MachineType::Boolean | MachineType::Integer { .. }) {
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
        machine: MachineType,
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

    /// Computes whether the absolute value of a signed number reaches a limit.
    pub(crate) fn reaches_limit(
        &self,
        value: IntValue<'ctx>,
        limit: i128,
    ) -> Built<IntValue<'ctx>> {
        let (builder, limit) = (self.builder, self.integer(value.get_type(), limit));
        let least = builder.build_int_neg(limit, "")?;
        let high = builder.build_int_compare(IntPredicate::SGE, value, limit, "")?;
        let low = builder.build_int_compare(IntPredicate::SLE, value, least, "")?;
        builder.build_or(high, low, "")
    }

    /// Restricts a set of active tuples by a condition.
    pub(crate) fn restrict(
        &self,
        active: Active<'ctx>,
        condition: IntValue<'ctx>,
    ) -> Built<Active<'ctx>> {
        Ok(Some(match active {
            Some(active) => self.builder.build_and(active, condition, "")?,
            None => condition,
        }))
    }

    /// Computes a conjunction (`any` is false) or disjunction (`any` is true) in three-valued
    /// logic: an operand equal to `any` decides, then NULL.
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
                _ => self.restrict(active, builder.build_not(decided, "")?)?,
            };
            let value = self.value(code, counts)?;
            let mut decides = value.value.into_int_value();
            if !any {
                decides = builder.build_not(decides, "")?;
            }
            if let Some(valid) = value.valid {
                decides = builder.build_and(decides, valid, "")?;
                all_valid = self.restrict(all_valid, valid)?;
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

    /// Selects one of two values.
    fn choose(
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
                    let counts = self.restrict(active, self.builder.build_not(valid, "")?)?;
                    let next = self.value(code, counts)?;
                    self.choose(valid, Value { valid: None, ..first }, next)?
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
            let counts = self.restrict(rest, is_true)?;
            taken.push((is_true, self.value(value, counts)?));
            rest = self.restrict(rest, builder.build_not(is_true, "")?)?;
        }
        let mut result = match otherwise {
            Some(otherwise) => self.value(otherwise, rest)?,
            None => Value { value: of.const_zero(), valid: Some(self.boolean(false)) },
        };
        for (is_true, value) in taken.into_iter().rev() {
            result = self.choose(is_true, value, result)?;
        }
        Ok(result)
    }
}
