//! Functions and operators of bit strings, with PostgreSQL's semantics; what PostgreSQL lacks
//! follows DuckDB.
//!
//! A bit string is the text of its digits, so that a bit is a byte of the text.

use memchr::memmem::Finder;
use tessera_types::{Atom, Error, Result, SqlState};

use crate::strings::pad::reserving;
use tessera_patterns::pieces::find;
use tessera_values::bits::{BITS_MAX, of_number, parse};
use tessera_values::rowwise::{InputValue, OutputValue, fault, signature, strict};
use tessera_values::types::{Arg, ResolvedCall};

/// The names of the functions that take bit strings alone.
pub(crate) const NAMES: &[&str] = &["bit_position", "bits_of", "bitstring", "cut_bits", "fit_bits"];

/// Resolves a call of one of these functions, or of another function of a bit string.
pub(crate) fn resolve(name: &str, args: &[Arg<'_>]) -> Option<Result<ResolvedCall>> {
    Some(match name {
        "bits_of" => bits_of(name, args),
        "cut_bits" | "fit_bits" => cut(name, args),
        "bitstring" => widened(name, args),
        "bit_position" => position(name, args, true),
        _ if !args.iter().any(|arg| *arg.atom == Atom::Bits) => return None,
        "concat_op" if args.iter().all(|arg| matches!(arg.atom, Atom::Bits | Atom::Null)) => {
            joined(name, args)
        }
        "bit_and" => combined(name, "AND", args, |a, b| a & b),
        "bit_or" => combined(name, "OR", args, |a, b| a | b),
        "bit_xor" => combined(name, "XOR", args, |a, b| (a ^ b) | b'0'),
        "bit_not" => inverted(name, args),
        "shift_left" => shifted(name, args, i64::saturating_add),
        "shift_right" => shifted(name, args, i64::saturating_sub),
        "length" | "char_length" | "character_length" | "bit_length" => {
            measured(name, args, Atom::Int32, |bits| bits.len() as i64)
        }
        "octet_length" => measured(name, args, Atom::Int32, |bits| bits.len().div_ceil(8) as i64),
        "bit_count" => measured(name, args, Atom::Int64, |bits| {
            bits.iter().filter(|bit| **bit == b'1').count() as i64
        }),
        "get_bit" => bit(name, args),
        "set_bit" => with_bit(name, args),
        "substr" | "substring" => part(name, args),
        "overlay" => overlaid(name, args),
        "strpos" => position(name, args, false),
        _ => return None,
    })
}

/// The bits of a value.
fn bits<'a>(arguments: &[InputValue<'a>], index: usize) -> &'a [u8] {
    arguments.get(index).map_or(&[], InputValue::bytes)
}

fn whole(arguments: &[InputValue<'_>], index: usize) -> i64 {
    arguments.get(index).map_or(0, InputValue::whole)
}

/// Returns bits as a value.
fn value(digits: Vec<u8>) -> Result<OutputValue> {
    let digits = String::from_utf8(digits);
    Ok(OutputValue::Text(digits.map_err(|_| Error::internal("a bit string has other characters"))?))
}

/// Checks a length of a type of bit strings.
fn length_of(arguments: &[InputValue<'_>], index: usize) -> Result<usize> {
    let length = whole(arguments, index);
    match usize::try_from(length) {
        Ok(fits @ 1..) if length <= BITS_MAX => Ok(fits),
        _ => {
            let message = format!(
                "the length of a bit string must be between 1 and {BITS_MAX}, not {length}"
            );
            Err(fault(message, SqlState::INVALID_PARAMETER_VALUE))
        }
    }
}

/// `bits_of(number, length)`: the cast of a whole number to `bit(length)`.
fn bits_of(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Int64, Atom::Int64])?;
    Ok(reserving(
        "bits_of",
        strict(Atom::Bits, args, casts, |arguments| {
            let length = length_of(arguments, 1)?;
            Ok(OutputValue::Text(of_number(whole(arguments, 0), length)))
        }),
    ))
}

/// `fit_bits(bits, length)` and `cut_bits(bits, length)`: the casts of a bit string to
/// `bit(length)`, which cuts or appends zeros, and to `bit varying(length)`, which cuts.
fn cut(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bits, Atom::Int64])?;
    let fills = name == "fit_bits";
    let call = strict(Atom::Bits, args, casts, move |arguments| {
        let (bits, length) = (bits(arguments, 0), length_of(arguments, 1)?);
        let mut digits = bits[..length.min(bits.len())].to_vec();
        if fills {
            digits.resize(length, b'0');
        }
        value(digits)
    });
    Ok(if fills { reserving("fit_bits", call) } else { call })
}

/// DuckDB's `bitstring(bits, length)`: puts zeros before bits.
fn widened(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let is_text = args.first().is_some_and(|arg| *arg.atom == Atom::String);
    let from = if is_text { Atom::String } else { Atom::Bits };
    let casts = signature(name, args, &[from, Atom::Int64])?;
    Ok(reserving(
        "bitstring",
        strict(Atom::Bits, args, casts, |arguments| {
            let (digits, length) =
                (parse(arguments.first().map_or("", InputValue::text))?, whole(arguments, 1));
            let fits = usize::try_from(length).ok().filter(|_| length <= BITS_MAX);
            let missing = fits.and_then(|length| length.checked_sub(digits.len()));
            let missing = missing.ok_or_else(|| {
                let message = format!(
                    "bitstring: the length {length} must be between that of the bits, {}, and {BITS_MAX}",
                    digits.len()
                );
                fault(message, SqlState::INVALID_PARAMETER_VALUE)
            })?;
            Ok(OutputValue::Text("0".repeat(missing) + &digits))
        }),
    ))
}

/// `bits || bits`.
fn joined(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bits, Atom::Bits])?;
    let joined =
        |arguments: &[InputValue<'_>]| value([bits(arguments, 0), bits(arguments, 1)].concat());
    Ok(strict(Atom::Bits, args, casts, joined).raising(false))
}

/// `&`, `|` and `#` of bit strings of one length.
fn combined(
    name: &str,
    shown: &'static str,
    args: &[Arg<'_>],
    operation: fn(u8, u8) -> u8,
) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bits, Atom::Bits])?;
    Ok(strict(Atom::Bits, args, casts, move |arguments| {
        let (left, right) = (bits(arguments, 0), bits(arguments, 1));
        if left.len() != right.len() {
            return Err(of_different_lengths(shown, left.len(), right.len()));
        }
        value(left.iter().zip(right).map(|(a, b)| operation(*a, *b)).collect())
    }))
}

/// The error of an operation on bit strings of different lengths.
pub(crate) fn of_different_lengths(operation: &str, left: usize, right: usize) -> Error {
    let message = format!(
        "{operation} of bit strings of different lengths, {left} and {right}; cast them to one length"
    );
    fault(message, SqlState::STRING_DATA_LENGTH_MISMATCH)
}

/// `~bits`.
fn inverted(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bits])?;
    // The codes of the digits differ in their last bit.
    let inverted = |arguments: &[InputValue<'_>]| {
        value(bits(arguments, 0).iter().map(|digit| digit ^ 1).collect())
    };
    Ok(strict(Atom::Bits, args, casts, inverted).raising(false))
}

/// `bits << count` and `bits >> count`: keeps the length, and zeros come in. A negative count
/// shifts the other way. `moved` returns the position of a bit from its position in the result.
fn shifted(name: &str, args: &[Arg<'_>], moved: fn(i64, i64) -> i64) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bits, Atom::Int64])?;
    let shifted = move |arguments: &[InputValue<'_>]| {
        let (bits, count) = (bits(arguments, 0), whole(arguments, 1));
        let digit = |at: i64| {
            let from = usize::try_from(moved(at, count)).ok();
            from.and_then(|from| bits.get(from)).copied().unwrap_or(b'0')
        };
        value((0..bits.len() as i64).map(digit).collect())
    };
    Ok(strict(Atom::Bits, args, casts, shifted).raising(false))
}

/// A number that a bit string has.
fn measured(
    name: &str,
    args: &[Arg<'_>],
    atom: Atom,
    measure: fn(&[u8]) -> i64,
) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bits])?;
    let measured =
        move |arguments: &[InputValue<'_>]| Ok(OutputValue::Whole(measure(bits(arguments, 0))));
    Ok(strict(atom, args, casts, measured).raising(false))
}

/// The position of a bit, counted from 0 and from the left.
fn place(arguments: &[InputValue<'_>]) -> Result<usize> {
    let (length, index) = (bits(arguments, 0).len(), whole(arguments, 1));
    usize::try_from(index).ok().filter(|at| *at < length).ok_or_else(|| {
        let message = match length {
            0 => format!("bit index {index} of an empty bit string"),
            _ => format!("bit index {index} out of range; expected 0 to {}", length - 1),
        };
        fault(message, SqlState::ARRAY_SUBSCRIPT_ERROR)
    })
}

/// `get_bit(bits, n)`.
fn bit(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bits, Atom::Int64])?;
    Ok(strict(Atom::Int32, args, casts, |arguments| {
        let at = place(arguments)?;
        Ok(OutputValue::Whole(i64::from(bits(arguments, 0).get(at) == Some(&b'1'))))
    }))
}

/// `set_bit(bits, n, value)`.
fn with_bit(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bits, Atom::Int64, Atom::Int64])?;
    Ok(strict(Atom::Bits, args, casts, |arguments| {
        let at = place(arguments)?;
        let digit = match whole(arguments, 2) {
            0 => b'0',
            1 => b'1',
            _ => return Err(fault("new bit must be 0 or 1", SqlState::INVALID_PARAMETER_VALUE)),
        };
        let mut digits = bits(arguments, 0).to_vec();
        digits[at] = digit;
        value(digits)
    }))
}

/// `length` bits from position `start` (counted from 1), which may be before the first bit.
fn between(bits: &[u8], start: i64, length: Option<i64>) -> &[u8] {
    let place =
        |number: i64| usize::try_from(number.max(1) - 1).unwrap_or(usize::MAX).min(bits.len());
    let from = place(start);
    let to = length.map_or(bits.len(), |length| place(start.saturating_add(length)));
    &bits[from..to.max(from)]
}

fn negative_length() -> Error {
    fault("negative substring length not allowed", SqlState::SUBSTRING_ERROR)
}

/// `substring(bits from start [for length])`.
fn part(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let mut wanted = vec![Atom::Bits, Atom::Int64];
    wanted.extend((args.len() > 2).then_some(Atom::Int64));
    let casts = signature(name, args, &wanted)?;
    Ok(strict(Atom::Bits, args, casts, |arguments| {
        let length = arguments.get(2).map(InputValue::whole);
        if length.is_some_and(|length| length < 0) {
            return Err(negative_length());
        }
        value(between(bits(arguments, 0), whole(arguments, 1), length).to_vec())
    }))
}

/// `overlay(bits placing other from start [for length])`.
fn overlaid(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let mut wanted = vec![Atom::Bits, Atom::Bits, Atom::Int64];
    wanted.extend((args.len() > 3).then_some(Atom::Int64));
    let casts = signature(name, args, &wanted)?;
    Ok(strict(Atom::Bits, args, casts, |arguments| {
        let (all, other, start) = (bits(arguments, 0), bits(arguments, 1), whole(arguments, 2));
        let length = arguments.get(3).map_or(other.len() as i64, InputValue::whole);
        if start <= 0 {
            return Err(negative_length());
        }
        let before = between(all, 1, Some(start - 1));
        let after = between(all, start.saturating_add(length), None);
        value([before, other, after].concat())
    }))
}

/// `position(part in bits)`, and DuckDB's `bit_position(part, bits)`: the first position of a part,
/// from 1; 0 if there is no such part.
fn position(name: &str, args: &[Arg<'_>], part_first: bool) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Bits, Atom::Bits])?;
    let position = move |arguments: &[InputValue<'_>]| {
        let (first, second) = (bits(arguments, 0), bits(arguments, 1));
        let (part, all) = if part_first { (first, second) } else { (second, first) };
        let found = find(&Finder::new(part), all).filter(|_| !all.is_empty());
        Ok(OutputValue::Whole(found.map_or(0, |at| at as i64 + 1)))
    };
    Ok(strict(Atom::Int32, args, casts, position).raising(false))
}
