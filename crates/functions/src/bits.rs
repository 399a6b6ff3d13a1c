//! Bitwise operations on integers: `bit_and`, `bit_or`, `bit_xor`, `bit_not`, `shift_left`,
//! `shift_right`.

use arrow::array::ArrayRef;
use arrow::datatypes::*;
use tessera_types::{Atom, Code, Error, Result};

use tessera_values::kernel::{Argument, Kernel, binary, unary, unexpected};
use tessera_values::rowwise::{InputValue, OutputValue, strict};
use tessera_values::types::{Arg, ResolvedCall, common_type, expect_arguments, wrong_arguments};
use tessera_values::with_integer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
    Left,
    Right,
}

/// Resolves a bitwise operation; `None` for other names. `bit_count` gives the number of bits that
/// are set.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    if name == "bit_count" {
        return Some(bit_count(name, args));
    }
    let operation = match name {
        "bit_and" => Operation::And,
        "bit_or" => Operation::Or,
        "bit_xor" => Operation::Xor,
        "bit_not" => Operation::Not,
        "shift_left" => Operation::Left,
        "shift_right" => Operation::Right,
        _ => return None,
    };
    Some(typed(name, operation, args))
}

fn bit_count(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    expect_arguments(name, args, 1)?;
    let bits = args[0].atom.width_bytes().map_or(64, |bytes| 8 * bytes as u32);
    let cast = match args[0].atom {
        Atom::Bytes => Atom::Bytes,
        Atom::Null => Atom::Int64,
        atom if atom.is_integer() && *atom != Atom::UInt64 => Atom::Int64,
        _ => return Err(wrong_arguments(name, args, "it takes a whole number or bytes")),
    };
    Ok(strict(Atom::Int64, args, vec![cast], move |arguments| {
        Ok(OutputValue::Whole(match arguments[0] {
            // A negative number has the bits of its type.
            InputValue::Whole(number) => {
                let all = number.count_ones();
                i64::from(if number < 0 { all - (64 - bits.min(64)) } else { all })
            }
            value => value.bytes().iter().map(|byte| i64::from(byte.count_ones())).sum(),
        }))
    }))
}

fn typed(name: &str, operation: Operation, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    expect_arguments(name, args, if operation == Operation::Not { 1 } else { 2 })?;
    let wrong = || wrong_arguments(name, args, "cast them to integers");
    let mut atom = args[0].atom.clone();
    if matches!(operation, Operation::And | Operation::Or | Operation::Xor) {
        atom = common_type(&atom, args[1].atom).ok_or_else(wrong)?;
    }
    if atom == Atom::Null {
        atom = Atom::Int64;
    }
    if !atom.is_integer()
        || !args.iter().all(|arg| arg.atom.is_integer() || *arg.atom == Atom::Null)
    {
        return Err(wrong());
    }
    let shift = matches!(operation, Operation::Left | Operation::Right);
    let casts = match shift {
        true => vec![atom.clone(), Atom::Int64],
        false => vec![atom.clone(); args.len()],
    };
    Ok(ResolvedCall::strict(atom.clone(), args, casts, Bits { operation, atom }).raising(shift))
}

#[derive(Debug)]
struct Bits {
    operation: Operation,
    atom: Atom,
}

impl Kernel for Bits {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let data_type = self.atom.arrow();
        let error = |by: i64| {
            let bits = self.atom.width_bytes().unwrap_or(8) * 8;
            Error::new(
                Code::Overflow,
                format!("cannot shift {} by {by} bits; expected 0 to {}", self.atom, bits - 1),
            )
        };
        let never = || Error::internal("bit operations cannot fail");
        macro_rules! run {
            ($type:ty) => {
                match self.operation {
                    Operation::And => binary::<$type, $type, $type>(
                        args,
                        rows,
                        data_type,
                        |a, b| (a & b, false),
                        |_, _| never(),
                    ),
                    Operation::Or => binary::<$type, $type, $type>(
                        args,
                        rows,
                        data_type,
                        |a, b| (a | b, false),
                        |_, _| never(),
                    ),
                    Operation::Xor => binary::<$type, $type, $type>(
                        args,
                        rows,
                        data_type,
                        |a, b| (a ^ b, false),
                        |_, _| never(),
                    ),
                    Operation::Not => {
                        unary::<$type, $type>(args, data_type, |a| (!a, false), |_| never())
                    }
                    Operation::Left => binary::<$type, Int64Type, $type>(
                        args,
                        rows,
                        data_type,
                        |a, by| match u32::try_from(by).ok().and_then(|by| a.checked_shl(by)) {
                            Some(value) => (value, false),
                            None => (a, true),
                        },
                        |_, by| error(by),
                    ),
                    Operation::Right => binary::<$type, Int64Type, $type>(
                        args,
                        rows,
                        data_type,
                        |a, by| match u32::try_from(by).ok().and_then(|by| a.checked_shr(by)) {
                            Some(value) => (value, false),
                            None => (a, true),
                        },
                        |_, by| error(by),
                    ),
                }
            };
        }
        with_integer!(&self.atom, run, Err(unexpected(&args[0].array)))
    }
}
