//! The domain of functions on floats: where DataFusion gives NaN or infinity for a finite argument, SQL has an error.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Float32Type, Float64Type};
use tessera_types::{Code, Error, Result, SqlState};

use super::kernel::{Argument, Kernel};
use super::types::Resolved;

/// The functions that are checked.
const CHECKED: [&str; 18] = [
    "sqrt", "ln", "log", "log2", "log10", "exp", "power", "acos", "asin", "acosh", "atanh", "cosh", "sinh",
    "sin", "cos", "tan", "cot", "degrees",
];

/// Functions that are infinite where their curves are: `atanh(1)`, `cot(0)`.
const INFINITE: [&str; 2] = ["atanh", "cot"];

/// The call with its results checked, if the function is one of those.
pub(crate) fn checked(name: &str, mut resolved: Resolved) -> Resolved {
    // `pow` and other aliases come under the name of the function.
    if let Some(&function) = CHECKED.iter().find(|checked| **checked == name)
        && resolved.atom.is_float()
    {
        resolved.kernel = Arc::new(Domain { function, inner: resolved.kernel });
        resolved.raises = true;
    }
    resolved
}

/// The SQLSTATE for a call with arguments that are out of the function's domain, or whose result is too large.
fn state(function: &str, args: &[Argument], row: usize) -> SqlState {
    let base = args.first().and_then(|base| value(&base.array, base.at(row)));
    match function {
        "ln" | "log" | "log2" | "log10" => SqlState::INVALID_ARGUMENT_FOR_LOGARITHM,
        "sqrt" => SqlState::INVALID_ARGUMENT_FOR_POWER,
        "power" if base.is_some_and(|base| base <= 0.0) => SqlState::INVALID_ARGUMENT_FOR_POWER,
        _ => SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
    }
}

#[derive(Debug)]
struct Domain {
    function: &'static str,
    inner: Arc<dyn Kernel>,
}

impl Kernel for Domain {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let result = self.inner.call(args, rows)?;
        let infinite = INFINITE.contains(&self.function);
        let given = |row: usize| args.iter().filter_map(move |arg| value(&arg.array, arg.at(row)));
        let wrong = |row: usize, found: f64| {
            (found.is_nan() && !given(row).any(f64::is_nan))
                || (found.is_infinite() && !infinite && given(row).all(f64::is_finite))
        };
        for row in 0..rows {
            if value(&result, row).is_some_and(|found| wrong(row, found)) && result.is_valid(row) {
                let given: Vec<String> = args
                    .iter()
                    .map(|argument| {
                        value(&argument.array, argument.at(row)).map_or("…".into(), |v| v.to_string())
                    })
                    .collect();
                let message = format!("{}({}) has no finite value", self.function, given.join(", "));
                return Err(Error::new(Code::Overflow, message).with_state(state(self.function, args, row)));
            }
        }
        Ok(result)
    }
}

/// The value of a float array; none for other types, all of whose values are finite.
fn value(array: &ArrayRef, row: usize) -> Option<f64> {
    if let Some(array) = array.as_primitive_opt::<Float64Type>() {
        return Some(array.value(row));
    }
    array.as_primitive_opt::<Float32Type>().map(|array| array.value(row).into())
}
