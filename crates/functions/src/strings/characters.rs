//! Functions on single characters.

use tessera_types::{Atom, Error, Result, SqlState};

use tessera_patterns::pieces::place_of;
use tessera_values::rowwise::{OutputValue, fault, signature, strict};
use tessera_values::types::{Arg, ResolvedCall};

/// `cut_text` and `cut_character`: casts to `varchar(n)` and `char(n)`, which keep the first `n`
/// characters. As `char(n)` is not padded here, its trailing blanks are removed.
pub(super) fn cut(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::Int64])?;
    let blanks_stay = name == "cut_text";
    Ok(strict(Atom::String, args, casts, move |arguments| {
        let (text, most) = (arguments[0].text(), arguments[1].whole());
        if most < 1 {
            let message = "the length of a character type must be at least 1";
            return Err(fault(message, SqlState::INVALID_PARAMETER_VALUE));
        }
        let end = place_of(text, usize::try_from(most).unwrap_or(usize::MAX));
        let cut = &text[..end.unwrap_or(text.len())];
        Ok(OutputValue::Text(if blanks_stay { cut } else { cut.trim_end_matches(' ') }.to_string()))
    }))
}

/// `text_slice(text, index)` and `text_slice(text, from, to)`: `text[index]` and `text[from:to]`,
/// as in DuckDB. Negative positions count from the end.
pub(super) fn slice(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let wanted = [Atom::String, Atom::Int64, Atom::Int64];
    let casts = signature(name, args, &wanted[..args.len().clamp(2, 3)])?;
    Ok(strict(Atom::String, args, casts, |arguments| {
        let (text, from) = (arguments[0].text(), arguments[1].whole());
        let to = arguments.get(2).map(|to| to.whole());
        let negative = from < 0 || to.is_some_and(|to| to < 0);
        let length = if negative { text.chars().count() as i64 } else { 0 };
        let place = |at: i64| if at < 0 { at.saturating_add(length + 1) } else { at };
        let (from, to) = (place(from), place(to.unwrap_or(from)));
        let start = usize::try_from(from.max(1) - 1).unwrap_or(usize::MAX);
        let end = usize::try_from(to.max(0)).unwrap_or(0);
        if start >= end {
            return Ok(OutputValue::Text(String::new()));
        }
        let [start, end] = [start, end].map(|at| place_of(text, at).unwrap_or(text.len()));
        Ok(OutputValue::Text(text[start..end].to_string()))
    }))
}

/// `to_hex(n)`; negative numbers are formatted as their bits.
pub(super) fn hexadecimal(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Int64])?;
    let short = matches!(args[0].atom, Atom::Int8 | Atom::Int16 | Atom::Int32);
    Ok(strict(Atom::String, args, casts, move |arguments| {
        let number = arguments[0].whole();
        Ok(OutputValue::Text(if short {
            format!("{:x}", number as i32)
        } else {
            format!("{number:x}")
        }))
    }))
}

/// `chr(n)`: the character with a code point other than 0.
pub(super) fn of_number(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::Int64])?;
    Ok(strict(Atom::String, args, casts, |arguments| {
        let number = arguments[0].whole();
        let refused = |why: &str| -> Error {
            fault(format!("chr({number}): {why}"), SqlState::PROGRAM_LIMIT_EXCEEDED)
        };
        match u32::try_from(number) {
            Ok(0) => Err(refused("a string cannot contain the character 0")),
            Ok(number) => {
                let character = char::from_u32(number);
                let character = character.ok_or_else(|| refused("not a valid code point"))?;
                Ok(OutputValue::Text(character.to_string()))
            }
            Err(_) if number < 0 => {
                let message = format!("chr({number}): the code point must be positive");
                Err(fault(message, SqlState::INVALID_PARAMETER_VALUE))
            }
            Err(_) => Err(refused("not a valid code point")),
        }
    }))
}
