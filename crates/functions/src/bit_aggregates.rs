//! Aggregates that give bit strings: `bit_and`, `bit_or` and `bit_xor` of bit strings, and DuckDB's
//! `bitstring_agg`.

use std::mem::size_of_val;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use tessera_types::SqlState;

use crate::bit_strings::of_different_lengths;
use tessera_values::bits::BITS_MAX;
use tessera_values::rowwise::fault;

/// The functions of this module.
pub(super) fn functions() -> impl Iterator<Item = Arc<AggregateUDF>> {
    [Operation::And, Operation::Or, Operation::Xor, Operation::Collect].into_iter().map(
        |operation| {
            let signature = Signature::user_defined(Volatility::Immutable);
            Arc::new(AggregateUDF::from(BitFunction { operation, signature }))
        },
    )
}

/// Returns the function for bit strings behind an aggregate of numbers; `None` for others.
pub fn of_bit_strings(name: &str) -> Option<&'static str> {
    Some(match name {
        "bit_and" => "bits_and",
        "bit_or" => "bits_or",
        "bit_xor" => "bits_xor",
        _ => return None,
    })
}

/// The name of the aggregate that sets a bit for each number.
pub(super) const COLLECT: &str = "bitstring_agg";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    And,
    Or,
    Xor,
    /// `bitstring_agg(number, least, most)`: sets the bit of each number.
    Collect,
}

impl Operation {
    fn of(self, a: u8, b: u8) -> u8 {
        match self {
            Operation::And => a & b,
            Operation::Or | Operation::Collect => a | b,
            Operation::Xor => (a ^ b) | b'0',
        }
    }

    fn shown(self) -> &'static str {
        match self {
            Operation::And => "AND",
            Operation::Or | Operation::Collect => "OR",
            Operation::Xor => "XOR",
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BitFunction {
    operation: Operation,
    signature: Signature,
}

impl AggregateUDFImpl for BitFunction {
    fn name(&self) -> &str {
        match self.operation {
            Operation::And => "bits_and",
            Operation::Or => "bits_or",
            Operation::Xor => "bits_xor",
            Operation::Collect => COLLECT,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        match (self.operation, args.len()) {
            (Operation::Collect, 3) => Ok(vec![DataType::Int64; 3]),
            (Operation::And | Operation::Or | Operation::Xor, 1) => Ok(vec![DataType::Utf8View]),
            _ => plan_err!("{} does not take {} arguments", self.name(), args.len()),
        }
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Bits { operation: self.operation, digits: None }))
    }
}

/// The digits so far; `None` before the first value.
#[derive(Debug)]
struct Bits {
    operation: Operation,
    digits: Option<Vec<u8>>,
}

impl Bits {
    fn add_all(&mut self, values: &ArrayRef) -> Result<()> {
        let Some(values) = values.as_string_view_opt() else {
            return exec_err!("a bit string is not in its plain form");
        };
        for value in values.iter().flatten() {
            self.add(value.as_bytes())?;
        }
        Ok(())
    }

    fn add(&mut self, value: &[u8]) -> Result<()> {
        let Some(digits) = &mut self.digits else {
            self.digits = Some(value.to_vec());
            return Ok(());
        };
        if digits.len() != value.len() {
            let error = of_different_lengths(self.operation.shown(), digits.len(), value.len());
            return Err(DataFusionError::External(Box::new(error)));
        }
        for (digit, other) in digits.iter_mut().zip(value) {
            *digit = self.operation.of(*digit, *other);
        }
        Ok(())
    }

    /// Sets the bits of numbers. The bounds are those of the first number.
    fn collect(&mut self, args: &[ArrayRef]) -> Result<()> {
        let numbers = args.iter().map(|arg| arg.as_primitive_opt::<Int64Type>());
        let numbers: Option<Vec<_>> = numbers.collect();
        let Some([numbers, least, most]) = numbers.as_deref() else {
            return exec_err!("{COLLECT} takes whole numbers");
        };
        let failed = |message: String| {
            let error = fault(message, SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
            Err(DataFusionError::External(Box::new(error)))
        };
        for row in 0..numbers.len() {
            if numbers.is_null(row) {
                continue;
            }
            if least.is_null(row) || most.is_null(row) {
                return failed(format!("{COLLECT} needs bounds that are not NULL"));
            }
            let (number, least, most) = (numbers.value(row), least.value(row), most.value(row));
            let length = i128::from(most) - i128::from(least) + 1;
            if !(1..=i128::from(BITS_MAX)).contains(&length) {
                return failed(format!(
                    "{COLLECT} from {least} to {most} needs {} bits; expected 1 to {BITS_MAX}",
                    length.max(0)
                ));
            }
            let place = usize::try_from(i128::from(number) - i128::from(least)).ok();
            let digits = self.digits.get_or_insert_with(|| vec![b'0'; length as usize]);
            match place.and_then(|place| digits.get_mut(place)) {
                Some(digit) => *digit = b'1',
                None => {
                    return failed(format!(
                        "{number} is outside of the bounds of {COLLECT}, {least} to {most}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn text(&self) -> Result<ScalarValue> {
        let text = self.digits.clone().map(String::from_utf8).transpose();
        match text {
            Ok(text) => Ok(ScalarValue::Utf8View(text)),
            Err(_) => exec_err!("a bit string has other characters than digits"),
        }
    }
}

impl Accumulator for Bits {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match (self.operation, values) {
            (Operation::Collect, args) => self.collect(args),
            (_, [values]) => self.add_all(values),
            _ => exec_err!("an aggregate of bit strings takes one argument"),
        }
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states.iter().try_for_each(|state| self.add_all(state))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.text()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.text()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.digits.as_ref().map_or(0, Vec::capacity)
    }
}
