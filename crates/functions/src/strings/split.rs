//! Functions that split strings.

use tessera_context::interrupt::Every;
use tessera_types::{Atom, Result, Slot, SqlState};

use tessera_values::rowwise::{InputValue, OutputValue, fault, lenient, signature, strict};
use tessera_values::types::{Arg, ResolvedCall, wrong_arguments};

/// The type list of strings.
pub(super) fn texts() -> Atom {
    Atom::List(Box::new(Slot { atom: Atom::String, nullable: true }))
}

/// `split_part(text, delimiter, n)`; a negative `n` counts from the end.
pub(super) fn part(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::String, Atom::Int64])?;
    Ok(strict(Atom::String, args, casts, |arguments| {
        let (text, delimiter, number) =
            (arguments[0].text(), arguments[1].text(), arguments[2].whole());
        let every = Every::default();
        let pieces = || text.split(delimiter).inspect(|_| every.pass());
        let found = match number {
            0 => {
                return Err(fault(
                    "field position must not be zero",
                    SqlState::INVALID_PARAMETER_VALUE,
                ));
            }
            1 | -1 if delimiter.is_empty() => Some(text),
            _ if delimiter.is_empty() => None,
            1.. => pieces().nth(usize::try_from(number - 1).unwrap_or(usize::MAX)),
            // Count the pieces of a forward search from the end; a backward search could find
            // others.
            _ => {
                let pieces: Vec<&str> = pieces().collect();
                let back = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
                pieces.len().checked_sub(back).map(|index| pieces[index])
            }
        };
        Ok(OutputValue::Text(found.unwrap_or("").to_string()))
    }))
}

/// `string_to_array(text, delimiter [, null])`; a NULL delimiter splits into characters.
pub(super) fn to_list(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let text = |arg: &Arg<'_>| matches!(arg.atom, Atom::String | Atom::Null);
    if !matches!(args.len(), 2 | 3) || !args.iter().all(text) {
        return Err(wrong_arguments(
            name,
            args,
            "it takes a string, a delimiter and an optional string for NULL",
        ));
    }
    Ok(lenient(texts(), args, vec![Atom::String; args.len()], |arguments| {
        let InputValue::Text(text) = arguments[0] else { return Ok(OutputValue::Null) };
        if text.is_empty() {
            return Ok(OutputValue::Texts(Vec::new()));
        }
        let null = match arguments.get(2) {
            Some(InputValue::Text(null)) => Some(*null),
            _ => None,
        };
        let every = Every::default();
        let piece = |piece: &str| {
            every.pass();
            (Some(piece) != null).then(|| piece.to_string())
        };
        Ok(OutputValue::Texts(match arguments[1] {
            InputValue::Text("") => vec![piece(text)],
            InputValue::Text(delimiter) => text.split(delimiter).map(piece).collect(),
            _ => text.chars().map(|character| piece(&character.to_string())).collect(),
        }))
    }))
}

/// DuckDB's `string_split(text, delimiter)`: an empty text gives one empty piece, and an empty
/// delimiter splits into characters.
pub(super) fn pieces(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    Ok(strict(texts(), args, casts, |arguments| {
        let (text, delimiter) = (arguments[0].text(), arguments[1].text());
        let every = Every::default();
        let piece = |piece: String| {
            every.pass();
            Some(piece)
        };
        Ok(OutputValue::Texts(match delimiter {
            "" => text.chars().map(|character| piece(character.to_string())).collect(),
            delimiter => text.split(delimiter).map(|part| piece(part.to_string())).collect(),
        }))
    }))
}
