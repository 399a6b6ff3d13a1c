//! Calls of library functions over long strings, in pieces, so that a query that has been ended hears of it between them.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray};
use arrow::compute::{cast, concat};
use memchr::memmem::Finder;
use regex::Regex;

use tessera_context::interrupt::{Every, check_here};
use tessera_types::Result;

use super::kernel::Argument;

/// Bytes of strings that a function is called for at once, about: some milliseconds.
const PIECE_BYTES: usize = 1 << 20;

/// Makes a call, run of rows by run of rows.
///
/// # Errors
/// Those of `call`, and the query's end.
pub(super) fn in_pieces(
    function: &str,
    args: &[Argument],
    rows: usize,
    call: &dyn Fn(&[Argument], usize) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let of_run = |args: &[Argument], rows: usize| {
        check_here()?;
        match long_value(args, rows) {
            Some(text) => match function {
                "lower" | "upper" => converted(text, &|piece| call(&[piece], 1)),
                "character_length" => counted(text, &|piece| call(&[piece], 1)),
                "replace" => replaced(text, args).unwrap_or_else(|| call(args, 1)),
                "regexp_count" => matches(text, args).unwrap_or_else(|| call(args, 1)),
                _ => call(args, 1),
            },
            None => call(args, rows),
        }
    };
    let runs = runs(args, rows);
    if runs.len() < 2 {
        return of_run(args, rows);
    }
    let slice = |arg: &Argument, run: &Range<usize>| match arg.constant {
        true => arg.clone(),
        false => Argument { array: arg.array.slice(run.start, run.len()), constant: false },
    };
    let part = |run: Range<usize>| {
        let args: Vec<Argument> = args.iter().map(|arg| slice(arg, &run)).collect();
        of_run(&args, run.len())
    };
    let parts = runs.into_iter().map(part).collect::<Result<Vec<_>>>()?;
    Ok(concat(&parts.iter().map(|part| &**part).collect::<Vec<_>>())?)
}

/// Rows whose strings have about as many bytes as are wanted, or one row.
fn runs(args: &[Argument], rows: usize) -> Vec<Range<usize>> {
    let strings: Vec<&StringViewArray> =
        args.iter().filter(|arg| !arg.constant).filter_map(|arg| arg.array.as_string_view_opt()).collect();
    let bytes =
        |row: usize| strings.iter().map(|strings| strings.views()[row] as u32 as usize).sum::<usize>();
    let (mut runs, mut start, mut held) = (Vec::new(), 0, 0);
    for row in 0..rows {
        let own = bytes(row);
        if held + own > PIECE_BYTES && row > start {
            runs.push(start..row);
            (start, held) = (row, 0);
        }
        held += own;
    }
    runs.push(start..rows);
    runs
}

/// The first argument's value, where it alone is longer than a piece.
fn long_value(args: &[Argument], rows: usize) -> Option<&str> {
    if rows != 1 {
        return None;
    }
    string(args.first()?).filter(|text| text.len() > PIECE_BYTES)
}

/// `character_length`, in the type that the function gives.
fn counted(text: &str, call: &dyn Fn(Argument) -> Result<ArrayRef>) -> Result<ArrayRef> {
    let mut characters = 0;
    for piece in text.as_bytes().chunks(PIECE_BYTES) {
        check_here()?;
        // All bytes but those that go on with a character.
        characters += piece.iter().filter(|byte| (**byte as i8) >= -0x40).count() as i64;
    }
    let empty: ArrayRef = Arc::new(StringViewArray::from_iter_values([""]));
    let like = call(Argument { array: empty, constant: false })?;
    Ok(cast(&Int64Array::from(vec![characters]), like.data_type())?)
}

/// A function that gives for a text what it gives for its words: how a letter is written never depends on what stands beyond a space.
fn converted(text: &str, call: &dyn Fn(Argument) -> Result<ArrayRef>) -> Result<ArrayRef> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        check_here()?;
        let after_space = |bytes: &[u8]| bytes.iter().position(|byte| *byte == b' ').map(|space| space + 1);
        let end = rest
            .as_bytes()
            .get(PIECE_BYTES..)
            .and_then(after_space)
            .map_or(rest.len(), |end| PIECE_BYTES + end);
        let (piece, behind) = rest.split_at(end);
        let piece: ArrayRef = Arc::new(StringViewArray::from_iter_values([piece]));
        let converted = call(Argument { array: piece, constant: false })?;
        out.extend(converted.as_string_view_opt().map(|converted| converted.value(0)));
        rest = behind;
    }
    Ok(Arc::new(StringViewArray::from_iter_values([out])))
}

/// The string that is this argument's only value.
fn string(arg: &Argument) -> Option<&str> {
    let strings = arg.array.as_string_view_opt()?;
    strings.is_valid(0).then(|| strings.value(0))
}

/// `regexp_count` from the start without flags.
fn matches(text: &str, args: &[Argument]) -> Option<Result<ArrayRef>> {
    let [_, pattern] = args else { return None };
    let pattern = Regex::new(string(pattern)?).ok()?;
    let every = Every::default();
    let count = pattern.find_iter(text).inspect(|_| every.pass()).count();
    Some(Ok(Arc::new(Int64Array::from(vec![count as i64]))))
}

/// `replace`, where there is something to look for.
fn replaced(text: &str, args: &[Argument]) -> Option<Result<ArrayRef>> {
    let [_, from, to] = args else { return None };
    let (from, to) = (string(from)?, string(to)?);
    let finder = (!from.is_empty()).then(|| Finder::new(from))?;
    let (mut out, mut copied, mut looked) = (String::with_capacity(text.len()), 0, 0);
    while looked < text.len() {
        if let Err(error) = check_here() {
            return Some(Err(error));
        }
        // What begins in a piece may end behind it.
        let end = text.len().min(looked + PIECE_BYTES);
        let window = &text.as_bytes()[looked..text.len().min(end + from.len() - 1)];
        let mut behind = looked;
        for at in finder.find_iter(window) {
            let at = looked + at;
            out.push_str(&text[copied..at]);
            out.push_str(to);
            copied = at + from.len();
            behind = copied;
        }
        looked = end.max(behind);
    }
    out.push_str(&text[copied..]);
    Some(Ok(Arc::new(StringViewArray::from_iter_values([out]))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(values: &[&str]) -> Argument {
        Argument { array: Arc::new(StringViewArray::from_iter_values(values)), constant: false }
    }

    fn value(array: &ArrayRef) -> &str {
        array.as_string_view().value(0)
    }

    #[test]
    fn rows_are_taken_together_up_to_a_piece() {
        let (short, long) = ("x".repeat(PIECE_BYTES / 4), "x".repeat(PIECE_BYTES * 2));
        let args = [strings(&[&short, &short, &short, &short, &short, &long, &short])];
        assert_eq!(runs(&args, 7), [0..4, 4..5, 5..6, 6..7]);
        assert_eq!(runs(&[], 7), [0..7]);
        let lengths = |args: &[Argument], _: usize| -> Result<ArrayRef> {
            Ok(arrow::compute::kernels::length::length(&args[0].array)?)
        };
        let all = in_pieces("octet_length", &args, 7, &lengths).unwrap();
        let expected = lengths(&args, 7).unwrap();
        assert_eq!(&all, &expected);
    }

    #[test]
    fn letters_are_converted_word_by_word() {
        // A sigma at the end of a word is another letter than within one; the piece's end is in a word.
        let word = "ΟΔΟΣ ΣΟΦΟΣ ";
        let text = word.repeat(PIECE_BYTES * 3 / word.len());
        let lower = |args: &[Argument], _: usize| -> Result<ArrayRef> {
            let text = args[0].array.as_string_view().value(0).to_lowercase();
            Ok(Arc::new(StringViewArray::from_iter_values([text])))
        };
        let found = in_pieces("lower", &[strings(&[&text])], 1, &lower).unwrap();
        assert_eq!(value(&found), text.to_lowercase());
        let length = |args: &[Argument], _: usize| -> Result<ArrayRef> {
            let text = args[0].array.as_string_view().value(0);
            Ok(Arc::new(arrow::array::Int32Array::from(vec![text.chars().count() as i32])))
        };
        let found = in_pieces("character_length", &[strings(&[&text])], 1, &length).unwrap();
        assert_eq!(&found, &length(&[strings(&[&text])], 1).unwrap());
        let without_space = "ΟΔΟΣ".repeat(PIECE_BYTES / 4);
        let found = in_pieces("lower", &[strings(&[&without_space])], 1, &lower).unwrap();
        assert_eq!(value(&found), without_space.to_lowercase());
    }

    #[test]
    fn what_lies_across_pieces_is_replaced() {
        let never = |_: &[Argument], _: usize| -> Result<ArrayRef> { panic!("not in one call") };
        for from in ["aab", "aa", "a", "aaaa"] {
            for shift in 0..4 {
                let text = "x".repeat(shift) + &"aaab".repeat(PIECE_BYTES * 5 / 8);
                let args = [strings(&[&text]), strings(&[from]), strings(&["-é"])];
                let found = in_pieces("replace", &args, 1, &never).unwrap();
                assert_eq!(value(&found), text.replace(from, "-é"), "{from} {shift}");
            }
        }
        let args = [strings(&[&"aaab".repeat(PIECE_BYTES)]), strings(&["a(a|b)"])];
        let count = in_pieces("regexp_count", &args, 1, &never).unwrap();
        assert_eq!(count.as_ref(), &Int64Array::from(vec![2 * PIECE_BYTES as i64]));
        let text = "x".repeat(PIECE_BYTES + 1);
        let whole = |args: &[Argument], _: usize| -> Result<ArrayRef> { Ok(args[0].array.clone()) };
        let args = [strings(&[&text]), strings(&[""]), strings(&["y"])];
        assert_eq!(value(&in_pieces("replace", &args, 1, &whole).unwrap()), text);
    }
}
