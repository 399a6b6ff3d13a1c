//! Common types of arguments, and the properties of a resolved call.

use std::sync::Arc;

use arrow::array::ArrayRef;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, DECIMAL_PRECISION_MAX, Error, Result, SqlState, TimeUnit};

use crate::kernel::Kernel;

/// An argument of a call that is being resolved.
#[derive(Debug)]
pub struct Arg<'a> {
    /// The type.
    pub atom: &'a Atom,
    /// Whether values may be NULL.
    pub nullable: bool,
    /// The argument as written. Result types may depend only on it, so that typing and binding
    /// agree.
    pub expr: &'a Expr,
    /// The value, if the binder computed it as a constant.
    pub value: Option<ArrayRef>,
}

/// A resolved call: its kernel and types.
#[derive(Debug)]
pub struct ResolvedCall {
    /// The result type.
    pub atom: Atom,
    /// Whether results may be NULL.
    pub nullable: bool,
    /// Whether some input makes the call fail.
    pub raises: bool,
    /// Whether two calls with the same arguments may return different values.
    pub volatile: bool,
    /// The rough cost per value; adding two integers costs 1.
    pub cost: u32,
    /// The types that the arguments are cast to.
    pub casts: Vec<Atom>,
    /// The function.
    pub kernel: Arc<dyn Kernel>,
}

impl ResolvedCall {
    /// Creates a cheap call that returns NULL for NULL arguments and cannot fail.
    pub fn strict(
        atom: Atom,
        args: &[Arg<'_>],
        casts: Vec<Atom>,
        kernel: impl Kernel + 'static,
    ) -> Self {
        ResolvedCall {
            atom,
            nullable: args.iter().any(|arg| arg.nullable),
            raises: false,
            volatile: false,
            cost: 1,
            casts,
            kernel: Arc::new(kernel),
        }
    }

    /// Sets whether the call can fail.
    pub fn raising(mut self, raises: bool) -> Self {
        self.raises = raises;
        self
    }

    /// Sets the cost of the call.
    pub fn costing(mut self, cost: u32) -> Self {
        self.cost = cost;
        self
    }
}

/// The maximum number of digits of an integer type.
pub fn integer_digits(atom: &Atom) -> Option<u8> {
    Some(match atom {
        Atom::Int8 | Atom::UInt8 => 3,
        Atom::Int16 | Atom::UInt16 => 5,
        Atom::Int32 | Atom::UInt32 => 10,
        Atom::Int64 => 19,
        Atom::UInt64 => 20,
        _ => return None,
    })
}

/// The precision and scale of a decimal type, or of an integer type as a decimal.
pub fn decimal_of(atom: &Atom) -> Option<(u8, i8)> {
    match atom {
        Atom::Decimal(precision, scale) => Some((*precision, *scale)),
        _ => integer_digits(atom).map(|digits| (digits, 0)),
    }
}

/// Like [`decimal_of`], but counts only the actual digits of an integer constant: the 1 in `1 -
/// l_discount` does not need 19 digits.
pub fn decimal_of_arg(arg: &Arg<'_>) -> Option<(u8, i8)> {
    let (precision, scale) = decimal_of(arg.atom)?;
    let digits = if scale == 0 { whole_digits(arg.expr) } else { None };
    Some((digits.unwrap_or(precision), scale))
}

fn whole_digits(expr: &Expr) -> Option<u8> {
    match expr {
        Expr::Constant(Scalar::Integer(value), atom)
            if decimal_of(atom).is_some_and(|(_, scale)| scale == 0) =>
        {
            Some(value.unsigned_abs().checked_ilog10().map_or(1, |log| log as u8 + 1))
        }
        Expr::Cast { input, to, .. } if decimal_of(to).is_some_and(|(_, scale)| scale == 0) => {
            whole_digits(input)
        }
        _ => None,
    }
}

fn integer_width(atom: &Atom) -> u8 {
    match atom {
        Atom::Int8 | Atom::UInt8 => 1,
        Atom::Int16 | Atom::UInt16 => 2,
        Atom::Int32 | Atom::UInt32 => 4,
        _ => 8,
    }
}

/// The common type in which two types are compared or combined; `None` if an explicit cast is
/// needed.
pub fn common_type(left: &Atom, right: &Atom) -> Option<Atom> {
    use Atom::*;
    Some(match (left, right) {
        _ if left == right => left.clone(),
        (Null, other) | (other, Null) => other.clone(),
        (Float32, Float64) | (Float64, Float32) => Float64,
        (a, b) if (a.is_float() && b.is_numeric()) || (b.is_float() && a.is_numeric()) => Float64,
        (a, b) if a.is_integer() && b.is_integer() => {
            let (wide, narrow) = if integer_width(a) >= integer_width(b) { (a, b) } else { (b, a) };
            if a.is_signed_integer() == b.is_signed_integer()
                || (wide.is_signed_integer() && integer_width(wide) > integer_width(narrow))
            {
                wide.clone()
            } else {
                match integer_width(wide) {
                    1 => Int16,
                    2 => Int32,
                    4 => Int64,
                    _ => Decimal(20, 0),
                }
            }
        }
        (a, b) if decimal_of(a).is_some() && decimal_of(b).is_some() => {
            let ((p, s), (q, t)) = (decimal_of(a)?, decimal_of(b)?);
            let scale = s.max(t);
            let whole = (p as i8 - s).max(q as i8 - t);
            Decimal((whole + scale).clamp(1, DECIMAL_PRECISION_MAX as i8) as u8, scale)
        }
        (Date, Timestamp(unit, zone)) | (Timestamp(unit, zone), Date) => {
            Timestamp(*unit, zone.clone())
        }
        (Timestamp(a, zone), Timestamp(b, other)) => {
            Timestamp(finer(*a, *b), zone.clone().or_else(|| other.clone()))
        }
        (Time(a), Time(b)) => Time(finer(*a, *b)),
        (Time(_), TimeTz) | (TimeTz, Time(_)) => TimeTz,
        (Duration(a), Duration(b)) => Duration(finer(*a, *b)),
        (Duration(_), Interval) | (Interval, Duration(_)) => Interval,
        (Enum(_), String) | (String, Enum(_)) => String,
        (List(a), List(b)) => List(Box::new(tessera_types::Slot {
            atom: common_type(&a.atom, &b.atom)?,
            nullable: a.nullable || b.nullable,
        })),
        (Struct(a), Struct(b)) if a.len() == b.len() => {
            let slots = a.iter().zip(b.iter()).map(|((name, a), (_, b))| {
                let atom = common_type(&a.atom, &b.atom)?;
                Some((
                    name.clone(),
                    tessera_types::Slot { atom, nullable: a.nullable || b.nullable },
                ))
            });
            Struct(slots.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// The finer of two units.
pub fn finer(a: TimeUnit, b: TimeUnit) -> TimeUnit {
    if crate::scalar::per_second(a) >= crate::scalar::per_second(b) { a } else { b }
}

/// Whether an integer constant can be converted exactly to another type, so that a comparison can
/// use the type of the column instead of converting it.
pub fn exact_in(value: &Scalar, from: &Atom, to: &Atom) -> bool {
    let Scalar::Integer(value) = value else { return false };
    let per_day = |unit: &TimeUnit| i128::from(crate::scalar::per_second(*unit)) * 86_400;
    match (from, to) {
        (Atom::Timestamp(unit, None), Atom::Date) => {
            value % per_day(unit) == 0 && i32::try_from(value / per_day(unit)).is_ok()
        }
        _ => {
            let (Some((_, scale)), Some((precision, to_scale))) =
                (decimal_of(from), decimal_of(to))
            else {
                return false;
            };
            let moved = if to_scale >= scale {
                value.checked_mul(10i128.pow((to_scale - scale) as u32))
            } else {
                let factor = 10i128.pow((scale - to_scale) as u32);
                (value % factor == 0).then_some(value / factor)
            };
            match (moved, to) {
                (None, _) => false,
                (Some(moved), Atom::Decimal(..)) => {
                    moved.unsigned_abs() < 10u128.pow(precision.into())
                }
                (Some(moved), _) => {
                    crate::scalar::scalar_to_array(&Scalar::Integer(moved), to).is_ok()
                }
            }
        }
    }
}

/// A function as SQL shows it: one that stands behind an operator has the operator's name.
fn shown(name: &str) -> String {
    let operator = match name {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        "mod" => "%",
        "concat_op" => "||",
        "bit_and" => "&",
        "bit_or" => "|",
        "bit_xor" => "#",
        "bit_not" => "~",
        "shift_left" => "<<",
        "shift_right" => ">>",
        "like" => "LIKE",
        "ilike" => "ILIKE",
        "neg" => return "unary -".to_string(),
        _ => return format!("function {name}"),
    };
    format!("operator {operator}")
}

/// The error of a call with arguments of wrong types.
pub fn wrong_arguments(name: &str, args: &[Arg<'_>], hint: &str) -> Error {
    let types = args.iter().map(|arg| arg.atom.to_string()).collect::<Vec<_>>().join(", ");
    Error::semantic(format!("{} does not take ({types}); {hint}", shown(name)))
        .with_state(SqlState::UNDEFINED_FUNCTION)
}

/// Checks the number of arguments.
pub fn expect_arguments(name: &str, args: &[Arg<'_>], count: usize) -> Result<()> {
    match args.len() == count {
        true => Ok(()),
        false => Err(Error::semantic(format!(
            "{} takes {count} arguments, not {}",
            shown(name),
            args.len()
        ))
        .with_state(SqlState::UNDEFINED_FUNCTION)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_operators_by_their_symbols() {
        let (date, expr) = (Atom::Date, Expr::int64(1));
        let arg = || Arg { atom: &date, nullable: false, expr: &expr, value: None };
        for (name, shown) in [("add", "operator +"), ("neg", "unary -"), ("sqrt", "function sqrt")]
        {
            let message = wrong_arguments(name, &[arg(), arg()], "cast them");
            assert_eq!(message.message(), format!("{shown} does not take (date, date); cast them"));
            let message = expect_arguments(name, &[arg()], 2).unwrap_err();
            assert_eq!(message.message(), format!("{shown} takes 2 arguments, not 1"));
        }
    }

    #[test]
    fn common_types_hold_both() {
        for (a, b, common) in [
            ("int32", "int64", Some("int64")),
            ("uint32", "int32", Some("int64")),
            ("uint8", "int64", Some("int64")),
            ("uint64", "int8", Some("decimal(20,0)")),
            ("int64", "decimal(15,2)", Some("decimal(21,2)")),
            ("decimal(38,0)", "decimal(4,4)", Some("decimal(38,4)")),
            ("decimal(4,2)", "float32", Some("float64")),
            ("date", "timestamp(us)", Some("timestamp(us)")),
            ("null", "string", Some("string")),
            ("list<int8?>", "list<int64>", Some("list<int64?>")),
            ("string", "int8", None),
            ("boolean", "int8", None),
        ] {
            let found = common_type(&a.parse().unwrap(), &b.parse().unwrap());
            assert_eq!(found.map(|atom| atom.to_string()).as_deref(), common, "{a} {b}");
            let found = common_type(&b.parse().unwrap(), &a.parse().unwrap());
            assert_eq!(found.map(|atom| atom.to_string()).as_deref(), common, "{b} {a}");
        }
    }
}
