//! Functions of single characters.

use tessera_types::{Atom, Error, Result, SqlState};

use crate::long::place_of;
use crate::rowwise::{Out, fault, signature, strict};
use crate::types::{Arg, Resolved};

/// `cut_text` and `cut_character`, which casts to `varchar(n)` and `char(n)` become: so many
/// characters stay. `char(n)` is not padded, so that blanks at its end go, too.
pub(super) fn cut(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &[Atom::String, Atom::Int64])?;
    let blanks_stay = name == "cut_text";
    Ok(strict(Atom::String, args, casts, move |given| {
        let (text, most) = (given[0].text(), given[1].whole());
        if most < 1 {
            let message = "the length of a character type must be at least 1";
            return Err(fault(message, SqlState::INVALID_PARAMETER_VALUE));
        }
        let end = place_of(text, usize::try_from(most).unwrap_or(usize::MAX));
        let cut = &text[..end.unwrap_or(text.len())];
        Ok(Out::Text(if blanks_stay { cut } else { cut.trim_end_matches(' ') }.to_string()))
    }))
}

/// `to_hex(n)`: negative numbers as their bits.
pub(super) fn hexadecimal(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &[Atom::Int64])?;
    let short = matches!(args[0].atom, Atom::Int8 | Atom::Int16 | Atom::Int32);
    Ok(strict(Atom::String, args, casts, move |given| {
        let number = given[0].whole();
        Ok(Out::Text(if short { format!("{:x}", number as i32) } else { format!("{number:x}") }))
    }))
}

/// `chr(n)`: the character of a number, but not that of 0.
pub(super) fn of_number(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &[Atom::Int64])?;
    Ok(strict(Atom::String, args, casts, |given| {
        let number = given[0].whole();
        let refused = |why: &str| -> Error {
            fault(format!("chr({number}): {why}"), SqlState::PROGRAM_LIMIT_EXCEEDED)
        };
        match u32::try_from(number) {
            Ok(0) => Err(refused("there are no texts with the character 0")),
            Ok(number) => {
                let character = char::from_u32(number);
                let character = character.ok_or_else(|| refused("there is no such character"))?;
                Ok(Out::Text(character.to_string()))
            }
            Err(_) if number < 0 => {
                let message = format!("chr({number}): the number of a character is positive");
                Err(fault(message, SqlState::INVALID_PARAMETER_VALUE))
            }
            Err(_) => Err(refused("there is no such character")),
        }
    }))
}
