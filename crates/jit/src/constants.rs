//! Runtime constants: literals of a query are moved out of its code and passed as arguments, so
//! that queries that differ only in literals share machine code.

use std::sync::Arc;

use tessera_codegen::{
    ComputeCode, MachineType, Op, Operation, SHORT_TEXT_BYTES, SelectCode, TextCode, UpdateCode,
    ValueCode,
};

/// The machine type of each word of a text constant.
const WORD: MachineType = MachineType::Integer { bits: 64, signed: false };

/// The runtime constants of a piece of code: values and their types.
#[derive(Debug, Default)]
pub(crate) struct RuntimeConstants {
    pub(crate) machines: Vec<MachineType>,
    /// Each constant takes [`words`] words, lowest first.
    pub(crate) words: Vec<u64>,
    /// The texts that `words` point to.
    pub(crate) texts: Vec<Arc<str>>,
}

/// Returns the number of 64-bit words of a constant.
pub(crate) fn words(machine: MachineType) -> usize {
    machine.bytes().div_ceil(8)
}

impl RuntimeConstants {
    /// Moves the literals out of a predicate.
    pub(crate) fn from_select(code: &mut SelectCode) -> RuntimeConstants {
        let mut constants = RuntimeConstants::default();
        constants.take(&mut code.predicate);
        constants
    }

    /// Moves the literals out of a computation.
    pub(crate) fn from_compute(code: &mut ComputeCode) -> RuntimeConstants {
        let mut constants = RuntimeConstants::default();
        constants.take(&mut code.value);
        constants
    }

    /// Moves the literals out of aggregate updates.
    pub(crate) fn from_update(code: &mut UpdateCode) -> RuntimeConstants {
        let mut constants = RuntimeConstants::default();
        code.shared.iter_mut().for_each(|value| constants.take(value));
        for stage in &mut code.stages {
            stage.filter.iter_mut().for_each(|value| constants.take(value));
            stage
                .states
                .iter_mut()
                .flat_map(|state| &mut state.args)
                .for_each(|value| constants.take(value));
        }
        constants
    }

    fn take(&mut self, code: &mut ValueCode) {
        while let Some(op) = merged_additions(code) {
            code.op = op;
        }
        if let Some((low, high)) = bits(code) {
            code.op = Op::RuntimeConstant(self.machines.len());
            self.machines.push(code.machine);
            self.words.extend(&[low, high][..words(code.machine)]);
            return;
        }
        code.op.each_text_mut(&mut |text| self.take_text(text));
        let is_division = matches!(code.op, Op::Arithmetic(Operation::Div | Operation::Mod, _));
        let mut number = 0;
        code.each_operand_mut(&mut |operand| {
            // A literal divisor stays: LLVM turns the division into a multiplication.
            if !(is_division && number == 1) || bits(operand).is_none() {
                self.take(operand);
            }
            number += 1;
        });
    }

    fn take_text(&mut self, text: &mut TextCode) {
        match text {
            TextCode::Substring { text, .. } => self.take_text(text),
            TextCode::Input(_) | TextCode::RuntimeConstant { .. } => {}
            TextCode::Constant(constant) => {
                let (first, is_short) = (self.machines.len(), constant.len() <= SHORT_TEXT_BYTES);
                self.machines.extend([WORD; 3]);
                self.words.extend(view(constant));
                self.words.push(constant.as_ptr() as u64);
                self.texts.push(constant.clone());
                *text = TextCode::RuntimeConstant { first, is_short };
            }
        }
    }
}

/// Returns the two words of a text's view. The view of a long text lacks its buffer and offset.
fn view(text: &str) -> [u64; 2] {
    let (length, mut view) = (text.len().min(SHORT_TEXT_BYTES), [0; 16]);
    let shown = if text.len() <= SHORT_TEXT_BYTES { length } else { 4 };
    view[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
    view[4..4 + shown].copy_from_slice(&text.as_bytes()[..shown]);
    let bits = u128::from_le_bytes(view);
    [bits as u64, (bits >> 64) as u64]
}

/// Merges two chained additions (or subtractions) of literals into one. Both literals have the same
/// sign, so the second operation overflows if the first does.
fn merged_additions(code: &ValueCode) -> Option<Op> {
    let Op::Arithmetic(operation @ (Operation::Add | Operation::Sub), outer) = &code.op else {
        return None;
    };
    let [
        ValueCode { op: Op::Arithmetic(first, inner), .. },
        ValueCode { op: Op::Integer(last), .. },
    ] = &**outer
    else {
        return None;
    };
    let [value, ValueCode { op: Op::Integer(number), .. }] = &**inner else { return None };
    let MachineType::Integer { bits, signed } = code.machine else { return None };
    let both = number.checked_add(*last)?;
    let most = if signed { i128::MAX >> (128 - bits) } else { !(i128::MAX.checked_shl(bits)?) };
    let fits = (if signed { !most } else { 0 }..=most).contains(&both);
    (first == operation && (*number < 0) == (*last < 0) && fits).then(|| {
        let number = ValueCode { op: Op::Integer(both), ..outer[1].clone() };
        Op::Arithmetic(*operation, Box::new([value.clone(), number]))
    })
}

/// Returns the bits of a literal that becomes a runtime constant. 0, 1 and -1 stay in the code,
/// where they simplify it.
fn bits(code: &ValueCode) -> Option<(u64, u64)> {
    match (&code.op, code.machine) {
        (Op::Integer(-1..=1), _) => None,
        (Op::Integer(value), MachineType::Integer { .. }) => {
            Some((*value as u64, (*value >> 64) as u64))
        }
        (Op::Float(bits), MachineType::Float64) => Some((*bits, 0)),
        (Op::Float(bits), MachineType::Float32) => {
            Some(((f64::from_bits(*bits) as f32).to_bits().into(), 0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tessera_codegen::Comparison;

    use super::*;

    const NARROW: MachineType = MachineType::Integer { bits: 32, signed: true };
    const LONG: MachineType = MachineType::Integer { bits: 128, signed: true };

    fn value(op: Op, machine: MachineType) -> ValueCode {
        ValueCode { op, machine, nullable: false }
    }

    fn select(predicate: ValueCode) -> SelectCode {
        SelectCode { inputs: Vec::new(), predicate }
    }

    #[test]
    fn numbers_are_taken_out_and_the_rest_is_the_same() {
        let with = |short: i128, long: i128, float: f64| {
            let input = value(Op::Input(0), NARROW);
            let number = |number| value(Op::Integer(number), NARROW);
            let compare = |left, right| {
                value(Op::Compare(Comparison::Lt, Box::new([left, right])), MachineType::Boolean)
            };
            let numbers = vec![number(short), number(7)];
            let among = Op::InList { value: Box::new(input.clone()), numbers, null: false };
            let floats = [Op::Float(float.to_bits()), Op::Float(float.to_bits())];
            let [left, right] = floats.map(|op| value(op, MachineType::Float32));
            let mut code = select(value(
                Op::And(vec![
                    value(among, MachineType::Boolean),
                    compare(value(Op::Input(1), LONG), value(Op::Integer(long), LONG)),
                    compare(left, right),
                    compare(input.clone(), number(1)),
                ]),
                MachineType::Boolean,
            ));
            let constants = RuntimeConstants::from_select(&mut code);
            (format!("{code:?}"), constants)
        };
        let (one, constants) = with(-5, -(1 << 70), 2.5);
        let (other, _) = with(900, 3, -1e9);
        assert_eq!(one, other);
        assert_eq!(
            constants.machines,
            [NARROW, NARROW, LONG, MachineType::Float32, MachineType::Float32]
        );
        let float = u64::from(2.5f32.to_bits());
        assert_eq!(constants.words, [-5i64 as u64, 7, 0, -64i64 as u64, float, float]);
    }

    /// The acceptance test of chained operators (micro-operators).
    #[test]
    fn four_chained_additions_become_one_of_one_number() {
        let chain = |operation, numbers: &[i128], machine| {
            let mut sum = value(Op::Input(0), machine);
            for number in numbers {
                let number = value(Op::Integer(*number), machine);
                sum = value(Op::Arithmetic(operation, Box::new([sum, number])), machine);
            }
            let mut code = select(sum);
            let constants = RuntimeConstants::from_select(&mut code);
            (code.predicate.size(), constants.words)
        };
        let (add, sub) = (Operation::Add, Operation::Sub);
        assert_eq!(chain(add, &[1, 2, 3, 4], NARROW), (3, vec![10]));
        assert_eq!(chain(sub, &[1, 2, 3, 4], LONG), (3, vec![10, 0]));
        assert_eq!(chain(add, &[-5, -7], NARROW), (3, vec![-12i64 as u64]));
        // Not merged: the intermediate result or the merged literal may overflow.
        assert_eq!(chain(add, &[5, -7], NARROW).0, 5);
        assert_eq!(chain(add, &[i128::from(i32::MAX), 2], NARROW).0, 5);
        assert_eq!(chain(sub, &[i128::from(i32::MIN), -2], NARROW).0, 5);
        let byte = MachineType::Integer { bits: 8, signed: false };
        assert_eq!(chain(add, &[200, 55], byte), (3, vec![255]));
        assert_eq!(chain(add, &[200, 56], byte).0, 5);
    }

    #[test]
    fn a_known_divisor_stays() {
        let number = |number| value(Op::Integer(number), NARROW);
        let divided =
            |left| value(Op::Arithmetic(Operation::Div, Box::new([left, number(10)])), NARROW);
        let mut code = select(divided(divided(number(20))));
        assert_eq!(RuntimeConstants::from_select(&mut code).words, [20]);
        let mut code = select(divided(value(Op::Negate(Box::new(number(5))), NARROW)));
        assert_eq!(RuntimeConstants::from_select(&mut code).words, [5]);
    }
}
