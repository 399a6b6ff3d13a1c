//! Text cut at a delimiter.

use tessera_context::interrupt::Every;
use tessera_types::{Atom, Result, Slot, SqlState};

use crate::rowwise::{In, Out, fault, lenient, signature, strict};
use crate::types::{Arg, Resolved, wrong_arguments};

/// A list of texts.
pub(super) fn texts() -> Atom {
    Atom::List(Box::new(Slot { atom: Atom::String, nullable: true }))
}

/// `split_part(text, delimiter, n)`, counted from the end where `n` is negative.
pub(super) fn part(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &[Atom::String, Atom::String, Atom::Int64])?;
    Ok(strict(Atom::String, args, casts, |given| {
        let (text, delimiter, number) = (given[0].text(), given[1].text(), given[2].whole());
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
            // From the end the same pieces are counted, not those that a search from the end would
            // give.
            _ => {
                let pieces: Vec<&str> = pieces().collect();
                let back = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
                pieces.len().checked_sub(back).map(|index| pieces[index])
            }
        };
        Ok(Out::Text(found.unwrap_or("").to_string()))
    }))
}

/// `string_to_array(text, delimiter [, null])`: of characters where the delimiter is NULL.
pub(super) fn to_list(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let text = |arg: &Arg<'_>| matches!(arg.atom, Atom::String | Atom::Null);
    if !matches!(args.len(), 2 | 3) || !args.iter().all(text) {
        return Err(wrong_arguments(
            name,
            args,
            "it takes a text, a delimiter and maybe what stands for NULL",
        ));
    }
    Ok(lenient(texts(), args, vec![Atom::String; args.len()], |given| {
        let In::Text(text) = given[0] else { return Ok(Out::Null) };
        if text.is_empty() {
            return Ok(Out::Texts(Vec::new()));
        }
        let null = match given.get(2) {
            Some(In::Text(null)) => Some(*null),
            _ => None,
        };
        let every = Every::default();
        let piece = |piece: &str| {
            every.pass();
            (Some(piece) != null).then(|| piece.to_string())
        };
        Ok(Out::Texts(match given[1] {
            In::Text("") => vec![piece(text)],
            In::Text(delimiter) => text.split(delimiter).map(piece).collect(),
            _ => text.chars().map(|character| piece(&character.to_string())).collect(),
        }))
    }))
}

/// DuckDB's `string_split(text, delimiter)`: of an empty text one empty piece, of an empty
/// delimiter the characters.
pub(super) fn pieces(name: &str, args: &[Arg<'_>]) -> Result<Resolved> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    Ok(strict(texts(), args, casts, |given| {
        let (text, delimiter) = (given[0].text(), given[1].text());
        let every = Every::default();
        let piece = |piece: String| {
            every.pass();
            Some(piece)
        };
        Ok(Out::Texts(match delimiter {
            "" => text.chars().map(|character| piece(character.to_string())).collect(),
            delimiter => text.split(delimiter).map(|part| piece(part.to_string())).collect(),
        }))
    }))
}
