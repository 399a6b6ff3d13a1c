//! `substr` of strings in characters. Positions start at 1; positions before the string are empty.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use arrow::datatypes::Int64Type;

use tessera_codegen::TextCode;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result, SqlState};

use tessera_patterns::pieces::place_of;
use tessera_values::kernel::{Argument, Kernel, argument, unexpected};
use tessera_values::types::{Arg, ResolvedCall};

/// Resolves a call if the arguments are a string and integers.
pub(crate) fn resolve(args: &[Arg<'_>]) -> Option<ResolvedCall> {
    let numbers = args.get(1..).filter(|numbers| matches!(numbers.len(), 1 | 2))?;
    let whole = numbers.iter().all(|arg| arg.atom.is_integer() && *arg.atom != Atom::UInt64);
    if *args[0].atom != Atom::String || !whole {
        return None;
    }
    let safe = match numbers {
        [_, length] => matches!(length.expr, Expr::Constant(Scalar::Integer(0..), _)),
        _ => true,
    };
    let casts = [Atom::String].into_iter().chain(numbers.iter().map(|_| Atom::Int64)).collect();
    Some(ResolvedCall::strict(Atom::String, args, casts, Substr).raising(!safe).costing(12))
}

#[derive(Debug)]
struct Substr;

impl Kernel for Substr {
    fn call(&self, args: &[Argument], rows: usize) -> Result<ArrayRef> {
        let (text, start) = (argument(args, 0)?, argument(args, 1)?);
        let length = args.get(2);
        let texts = text.array.as_string_view_opt().ok_or_else(|| unexpected(&text.array))?;
        let starts = start.primitive::<Int64Type>()?;
        let lengths = length.map(Argument::primitive::<Int64Type>).transpose()?;
        let mut out = StringViewBuilder::with_capacity(rows);
        for row in 0..rows {
            let from = start.at(row);
            let length = length.zip(lengths).map(|(length, lengths)| (lengths, length.at(row)));
            let null = texts.is_null(text.at(row))
                || starts.is_null(from)
                || length.is_some_and(|(lengths, at)| lengths.is_null(at));
            if null {
                out.append_null();
                continue;
            }
            let start = starts.value(from);
            let length = length.map(|(lengths, at)| lengths.value(at));
            if let Some(length @ ..0) = length {
                return Err(Error::data(format!(
                    "negative substring length not allowed: substr(…, {start}, {length})"
                ))
                .with_state(SqlState::SUBSTRING_ERROR));
            }
            out.append_value(part(texts.value(text.at(row)), start, length));
        }
        Ok(Arc::new(out.finish()))
    }

    fn text_code(&self, text: TextCode, others: &[&ArrayRef]) -> Option<TextCode> {
        let number = |array: &&ArrayRef| {
            let numbers = array.as_primitive_opt::<Int64Type>()?;
            numbers.is_valid(0).then(|| numbers.value(0))
        };
        let (start, length) = match others {
            [start] => (number(start)?, None),
            [start, length] => {
                (number(start)?, Some(number(length).filter(|length| *length >= 0)?))
            }
            _ => return None,
        };
        // Positions before the first character are empty but count toward the length.
        let most = length
            .map(|length| length.saturating_add(start.min(1).saturating_sub(1)).max(0) as u64);
        Some(TextCode::Substring { text: Box::new(text), skipped: (start.max(1) - 1) as u64, most })
    }
}

/// The substring of `length` characters from position `start`, which may be before the string.
fn part(text: &str, start: i64, length: Option<i64>) -> &str {
    let from = start.max(1) - 1;
    let to = length.map_or(i64::MAX, |length| start.saturating_add(length) - 1).max(from);
    let (from, to) =
        (usize::try_from(from).unwrap_or(usize::MAX), usize::try_from(to).unwrap_or(usize::MAX));
    let place = |characters: usize| {
        if characters >= text.len() {
            return text.len();
        }
        match text.as_bytes()[..=characters].is_ascii() {
            true => characters,
            false => place_of(text, characters).unwrap_or(text.len()),
        }
    };
    text.get(place(from)..place(to)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_are_postgresqls() {
        assert_eq!(part("alphabet", 3, None), "phabet");
        assert_eq!(part("alphabet", 3, Some(2)), "ph");
        assert_eq!(part("alphabet", 0, Some(3)), "al");
        assert_eq!(part("alphabet", -2, Some(2)), "");
        assert_eq!(part("alphabet", i64::MIN, Some(5)), "");
        assert_eq!(part("alphabet", 2, Some(i64::MAX)), "lphabet");
        assert_eq!(part("alphabet", i64::MAX, Some(i64::MAX)), "");
        assert_eq!(part("alphabet", 9, Some(1)), "");
        assert_eq!(part("grüße dich", 3, Some(3)), "üße");
        assert_eq!(part("日本語", 2, None), "本語");
        assert_eq!(part("a日本", 1, Some(1)), "a");
        assert_eq!(part("", 1, Some(1)), "");
    }
}
