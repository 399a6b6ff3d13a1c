//! Functions on doubles: roots, powers, logarithms, trigonometry; errors as in PostgreSQL.

mod gamma;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Float64Type};
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::degrees;
use tessera_values::kernel::{Argument, Kernel, binary, unary};
use tessera_values::types::{Arg, ResolvedCall, expect_arguments, wrong_arguments};

/// The reason why a call has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The result is too large.
    Overflow,
    /// The result is too close to zero.
    Underflow,
    /// The argument is outside the domain.
    Input,
    /// A root of a negative number.
    Root,
    /// A logarithm of zero or a negative number.
    Logarithm,
    /// Zero raised to a negative power.
    ZeroPower,
    /// A negative number raised to a non-integer power.
    ComplexPower,
    /// A logarithm to base 1.
    Division,
}

impl Fault {
    fn error(self, call: &str) -> Error {
        let overflow = |what: &str| Error::new(Code::Overflow, format!("{call} {what}"));
        let undefined = |what: &str| Error::new(Code::Data, format!("{call} is undefined: {what}"));
        match self {
            Fault::Overflow => overflow("is out of range for type float64: overflow"),
            Fault::Underflow => overflow("is out of range for type float64: underflow"),
            Fault::Input => overflow("is undefined: the argument is out of range"),
            Fault::Root => undefined("the square root of a negative number")
                .with_state(SqlState::INVALID_ARGUMENT_FOR_POWER),
            Fault::Logarithm => undefined("the logarithm of a number that is not positive")
                .with_state(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM),
            Fault::ZeroPower => undefined("zero raised to a negative power")
                .with_state(SqlState::INVALID_ARGUMENT_FOR_POWER),
            Fault::ComplexPower => undefined("a negative number raised to a non-integer power")
                .with_state(SqlState::INVALID_ARGUMENT_FOR_POWER),
            Fault::Division => {
                Error::new(Code::DivisionByZero, format!("division by zero in {call}"))
            }
        }
    }
}

type Value = std::result::Result<f64, Fault>;

/// A function of one number.
type UnaryFunction = fn(f64) -> Value;

/// A function of two numbers.
type BinaryFunction = fn(f64, f64) -> Value;

/// The functions of one number by name.
const UNARY_FUNCTIONS: [(&str, UnaryFunction); 32] = [
    ("even", |x| Ok(even(x))),
    ("gamma", gamma::gamma),
    ("lgamma", gamma::log_gamma),
    ("sqrt", |x| if x < 0.0 { Err(Fault::Root) } else { Ok(x.sqrt()) }),
    ("cbrt", |x| Ok(x.cbrt())),
    ("exp", |x| bounded(x.exp(), x.is_finite())),
    ("ln", |x| logarithm(x, f64::ln)),
    ("log", |x| logarithm(x, f64::log10)),
    ("log10", |x| logarithm(x, f64::log10)),
    ("log2", |x| logarithm(x, f64::log2)),
    ("sin", |x| trigonometric(x, f64::sin)),
    ("cos", |x| trigonometric(x, f64::cos)),
    ("tan", |x| trigonometric(x, f64::tan)),
    ("cot", |x| trigonometric(x, |x| 1.0 / x.tan())),
    ("asin", |x| within(x, x.abs() <= 1.0, f64::asin)),
    ("acos", |x| within(x, x.abs() <= 1.0, f64::acos)),
    ("atan", |x| Ok(x.atan())),
    ("sinh", |x| Ok(x.sinh())),
    ("cosh", |x| Ok(x.cosh())),
    ("tanh", |x| Ok(x.tanh())),
    ("asinh", |x| Ok(x.asinh())),
    ("acosh", |x| within(x, x >= 1.0, f64::acosh)),
    ("atanh", |x| within(x, x.abs() <= 1.0, f64::atanh)),
    ("sind", |x| trigonometric(x, degrees::sind)),
    ("cosd", |x| trigonometric(x, degrees::cosd)),
    ("tand", |x| trigonometric(x, degrees::tand)),
    ("cotd", |x| trigonometric(x, degrees::cotd)),
    ("asind", |x| within(x, x.abs() <= 1.0, degrees::asind)),
    ("acosd", |x| within(x, x.abs() <= 1.0, degrees::acosd)),
    ("atand", |x| Ok(degrees::atand(x))),
    ("degrees", |x| large(x / DEGREE, x)),
    ("radians", |x| bounded(x * DEGREE, x.is_finite() && x != 0.0)),
];

/// The functions of two numbers by name.
const BINARY_FUNCTIONS: [(&str, BinaryFunction); 6] = [
    ("nextafter", |x, y| Ok(next_after(x, y))),
    ("power", power),
    ("pow", power),
    ("log", logarithm_to),
    ("atan2", |y, x| Ok(y.atan2(x))),
    ("atan2d", |y, x| Ok(degrees::atan2d(y, x))),
];

/// One degree in radians.
const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// The names of all functions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    UNARY_FUNCTIONS
        .iter()
        .map(|(name, _)| *name)
        .chain(BINARY_FUNCTIONS.iter().map(|(name, _)| *name))
}

/// Checks that the result for a finite argument is neither infinite nor zero.
fn bounded(value: f64, finite: bool) -> Value {
    match value {
        _ if !finite => Ok(value),
        value if value.is_infinite() => Err(Fault::Overflow),
        0.0 => Err(Fault::Underflow),
        value => Ok(value),
    }
}

fn large(value: f64, argument: f64) -> Value {
    if value.is_infinite() && argument.is_finite() { Err(Fault::Overflow) } else { Ok(value) }
}

fn logarithm(x: f64, function: fn(f64) -> f64) -> Value {
    if x <= 0.0 { Err(Fault::Logarithm) } else { Ok(function(x)) }
}

fn trigonometric(x: f64, function: fn(f64) -> f64) -> Value {
    if x.is_infinite() { Err(Fault::Input) } else { Ok(function(x)) }
}

fn within(x: f64, inside: bool, function: fn(f64) -> f64) -> Value {
    if inside || x.is_nan() { Ok(function(x)) } else { Err(Fault::Input) }
}

fn power(base: f64, exponent: f64) -> Value {
    if base == 0.0 && exponent < 0.0 {
        return Err(Fault::ZeroPower);
    }
    if base < 0.0 && exponent.floor() != exponent && !exponent.is_nan() {
        return Err(Fault::ComplexPower);
    }
    let value = base.powf(exponent);
    bounded(value, base != 0.0 && base.is_finite() && exponent.is_finite())
}

/// The next even number away from zero.
fn even(x: f64) -> f64 {
    let half = x / 2.0;
    2.0 * if half < 0.0 { half.floor() } else { half.ceil() }
}

/// The neighbor of `x` in the direction of `y`.
fn next_after(x: f64, y: f64) -> f64 {
    match x.partial_cmp(&y) {
        None => f64::NAN,
        Some(std::cmp::Ordering::Equal) => y,
        Some(std::cmp::Ordering::Less) => x.next_up(),
        Some(std::cmp::Ordering::Greater) => x.next_down(),
    }
}

fn logarithm_to(base: f64, x: f64) -> Value {
    if base <= 0.0 || x <= 0.0 {
        return Err(Fault::Logarithm);
    }
    match base {
        1.0 => Err(Fault::Division),
        2.0 => Ok(x.log2()),
        10.0 => Ok(x.log10()),
        _ => Ok(x.ln() / base.ln()),
    }
}

/// Resolves a call; `None` for other names.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    let one = UNARY_FUNCTIONS.iter().find(|(known, _)| *known == name);
    let two = BINARY_FUNCTIONS.iter().find(|(known, _)| *known == name);
    if one.is_none() && two.is_none() {
        return None;
    }
    let numbers = args.iter().all(|arg| arg.atom.is_numeric() || *arg.atom == Atom::Null);
    if !numbers {
        return Some(Err(wrong_arguments(name, args, "cast them to numbers")));
    }
    // PostgreSQL computes these in `numeric`, where small results are rounded to zero.
    let small_is_zero = args.iter().any(|arg| matches!(arg.atom, Atom::Decimal(..)))
        && !args.iter().any(|arg| arg.atom.is_float());
    let casts = vec![Atom::Float64; args.len()];
    Some(match (args.len(), one, two) {
        (1, Some((name, function)), _) => {
            let kernel = UnaryKernel { name, function: *function, small_is_zero };
            Ok(ResolvedCall::strict(Atom::Float64, args, casts, kernel).raising(true).costing(20))
        }
        (2, _, Some((name, function))) => {
            let kernel = BinaryKernel { name, function: *function, small_is_zero };
            Ok(ResolvedCall::strict(Atom::Float64, args, casts, kernel).raising(true).costing(40))
        }
        (_, one, _) => expect_arguments(name, args, if one.is_some() { 1 } else { 2 })
            .and_then(|()| Err(wrong_arguments(name, args, "it takes one or two numbers"))),
    })
}

fn flush_underflow(value: Value, small_is_zero: bool) -> Value {
    match value {
        Err(Fault::Underflow) if small_is_zero => Ok(0.0),
        value => value,
    }
}

#[derive(Debug)]
struct UnaryKernel {
    name: &'static str,
    function: UnaryFunction,
    small_is_zero: bool,
}

impl Kernel for UnaryKernel {
    fn call(&self, args: &[Argument], _rows: usize) -> Result<ArrayRef> {
        let compute = |x: f64| flush_underflow((self.function)(x), self.small_is_zero);
        let op = |x: f64| compute(x).map_or((0.0, true), |value| (value, false));
        let error =
            |x: f64| compute(x).err().unwrap_or(Fault::Input).error(&format!("{}({x})", self.name));
        unary::<Float64Type, Float64Type>(args, DataType::Float64, op, error)
    }
}

#[derive(Debug)]
struct BinaryKernel {
    name: &'static str,
    function: BinaryFunction,
    small_is_zero: bool,
}

impl Kernel for BinaryKernel {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        type F = Float64Type;
        let compute = |x: f64, y: f64| flush_underflow((self.function)(x, y), self.small_is_zero);
        let op = |x: f64, y: f64| compute(x, y).map_or((0.0, true), |value| (value, false));
        let error = |x: f64, y: f64| {
            let fault = compute(x, y).err().unwrap_or(Fault::Input);
            fault.error(&format!("{}({x}, {y})", self.name))
        };
        binary::<F, F, F>(args, rows, DataType::Float64, op, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_and_logarithms_have_the_faults_of_postgresql() {
        assert_eq!(power(0.0, -1.0), Err(Fault::ZeroPower));
        assert_eq!(power(-8.0, 1.0 / 3.0), Err(Fault::ComplexPower));
        assert_eq!(power(-8.0, 3.0), Ok(-512.0));
        assert_eq!(power(10.0, 400.0), Err(Fault::Overflow));
        assert_eq!(power(10.0, -400.0), Err(Fault::Underflow));
        assert_eq!(power(f64::NAN, 0.0), Ok(1.0));
        assert_eq!(power(1.0, f64::NAN), Ok(1.0));
        assert_eq!(power(0.0, 3.0), Ok(0.0));
        assert_eq!(logarithm_to(2.0, 64.0), Ok(6.0));
        assert_eq!(logarithm_to(1.0, 64.0), Err(Fault::Division));
        assert_eq!(logarithm(0.0, f64::ln), Err(Fault::Logarithm));
    }
}
