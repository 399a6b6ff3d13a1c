//! Piecewise evaluation of library functions on long strings, with checks for cancellation in
//! between.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, Int64Array, StringViewArray, StringViewBuilder,
};
use arrow::compute::{cast, concat};
use arrow::datatypes::Int64Type;
use md5::Md5;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use memchr::memmem::Finder;
use tessera_context::interrupt::{SPAN_BYTES, check_here};
use tessera_types::Result;

use tessera_patterns::pieces::characters;
use tessera_values::append::append;
use tessera_values::kernel::Argument;

/// The approximate number of string bytes per call: a few milliseconds of work.
const PIECE_BYTES: usize = SPAN_BYTES;

/// Makes a call for runs of rows, one after the other.
///
/// # Errors
/// The errors of `call`, or the query was cancelled.
pub(super) fn in_pieces(
    function: &str,
    args: &[Argument],
    rows: usize,
    call: &dyn Fn(&[Argument], usize) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let call_run = |args: &[Argument], rows: usize| {
        check_here()?;
        if rows != 1 {
            return call(args, rows);
        }
        let own = match long_value(args) {
            Some(LongValue::Text(text)) => match function {
                "lower" | "upper" => Some(converted(text, &|piece| call(&[piece], 1))),
                "character_length" => Some(counted(text, &|piece| call(&[piece], 1))),
                "replace" => replaced(text, args),
                "reverse" => Some(reversed(text)),
                "repeat" => repeated(args),
                _ => hashed(function, text.as_bytes(), args),
            },
            Some(LongValue::Bytes(bytes)) => hashed(function, bytes, args),
            None if function == "repeat" => repeated(args),
            None => None,
        };
        own.unwrap_or_else(|| call(args, 1))
    };
    let runs = runs(function, args, rows);
    if runs.len() < 2 {
        return call_run(args, rows);
    }
    let slice = |arg: &Argument, run: &Range<usize>| match arg.constant {
        true => arg.clone(),
        false => Argument { array: arg.array.slice(run.start, run.len()), constant: false },
    };
    let part = |run: Range<usize>| {
        let args: Vec<Argument> = args.iter().map(|arg| slice(arg, &run)).collect();
        call_run(&args, run.len())
    };
    let parts = runs.into_iter().map(part).collect::<Result<Vec<_>>>()?;
    Ok(concat(&parts.iter().map(|part| &**part).collect::<Vec<_>>())?)
}

/// Splits the rows into runs of about [`PIECE_BYTES`] each, or of a single longer row.
fn runs(function: &str, args: &[Argument], rows: usize) -> Vec<Range<usize>> {
    let views: Vec<&[u128]> = args.iter().filter(|arg| !arg.constant).filter_map(views).collect();
    let result = |row: usize| match function {
        "repeat" => repeated_bytes(args, row).unwrap_or(0),
        _ => 0,
    };
    let bytes = |row: usize| {
        views.iter().map(|views| views[row] as u32 as usize).sum::<usize>() + result(row)
    };
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

/// The string views of an argument, if it has any.
fn views(arg: &Argument) -> Option<&[u128]> {
    let strings = arg.array.as_string_view_opt().map(|strings| &**strings.views());
    strings.or_else(|| Some(&**arg.array.as_binary_view_opt()?.views()))
}

/// A value longer than a piece.
enum LongValue<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// The only value of the first argument, if it is long.
fn long_value(args: &[Argument]) -> Option<LongValue<'_>> {
    let first = args.first()?;
    if let Some(text) = string(first) {
        return (text.len() > PIECE_BYTES).then_some(LongValue::Text(text));
    }
    let bytes = first.array.as_binary_view_opt().filter(|bytes| bytes.is_valid(0))?.value(0);
    (bytes.len() > PIECE_BYTES).then_some(LongValue::Bytes(bytes))
}

/// An array of one text.
fn one(text: String) -> ArrayRef {
    let mut builder = StringViewBuilder::new();
    append(&mut builder, text);
    Arc::new(builder.finish())
}

/// `character_length` of a long text, in the type that the function returns.
fn counted(text: &str, call: &dyn Fn(Argument) -> Result<ArrayRef>) -> Result<ArrayRef> {
    let characters = characters(text) as i64;
    let empty: ArrayRef = Arc::new(StringViewArray::from_iter_values([""]));
    let like = call(Argument { array: empty, constant: false })?;
    Ok(cast(&Int64Array::from(vec![characters]), like.data_type())?)
}

/// Applies a function word by word. The case of a letter never depends on text beyond a space.
fn converted(text: &str, call: &dyn Fn(Argument) -> Result<ArrayRef>) -> Result<ArrayRef> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        check_here()?;
        let after_space =
            |bytes: &[u8]| bytes.iter().position(|byte| *byte == b' ').map(|space| space + 1);
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
    Ok(one(out))
}

/// `reverse` of a long text.
fn reversed(text: &str) -> Result<ArrayRef> {
    let (mut out, mut end) = (String::with_capacity(text.len()), text.len());
    while end > 0 {
        check_here()?;
        let start = text.floor_char_boundary(end.saturating_sub(PIECE_BYTES));
        out.extend(text[start..end].chars().rev());
        end = start;
    }
    Ok(one(out))
}

/// The result size of `repeat` for a row; `None` if it is unknown or too large.
fn repeated_bytes(args: &[Argument], row: usize) -> Option<usize> {
    let [text, count] = args else { return None };
    let counts = count.array.as_primitive_opt::<Int64Type>()?;
    let (at, count_at) = (text.at(row), count.at(row));
    let is_there = text.array.is_valid(at) && counts.is_valid(count_at);
    let count = usize::try_from(counts.value(count_at)).ok().filter(|_| is_there)?;
    let bytes = (views(text)?[at] as u32 as usize).checked_mul(count)?;
    (bytes <= i32::MAX as usize).then_some(bytes)
}

/// `repeat` with a long result.
fn repeated(args: &[Argument]) -> Option<Result<ArrayRef>> {
    let bytes = repeated_bytes(args, 0).filter(|bytes| *bytes > PIECE_BYTES)?;
    let text = string(args.first()?)?;
    let piece = text.repeat((PIECE_BYTES / text.len()).max(1));
    let mut out = String::with_capacity(bytes);
    while out.len() < bytes {
        if let Err(error) = check_here() {
            return Some(Err(error));
        }
        out.push_str(&piece[..piece.len().min(bytes - out.len())]);
    }
    Some(Ok(one(out)))
}

/// `md5`, `sha256` and the like, and `digest` with these algorithms.
fn hashed(function: &str, bytes: &[u8], args: &[Argument]) -> Option<Result<ArrayRef>> {
    let algorithm = match (function, args) {
        ("digest", [_, algorithm]) => string(algorithm)?.to_ascii_lowercase(),
        (function, [_]) => function.to_string(),
        _ => return None,
    };
    Some(match algorithm.as_str() {
        "md5" => digest::<Md5>(bytes).map(|hash| match function {
            "md5" => one(hash.iter().map(|byte| format!("{byte:02x}")).collect()),
            _ => Arc::new(BinaryViewArray::from_iter_values([hash])),
        }),
        "sha224" => digest_array::<Sha224>(bytes),
        "sha256" => digest_array::<Sha256>(bytes),
        "sha384" => digest_array::<Sha384>(bytes),
        "sha512" => digest_array::<Sha512>(bytes),
        _ => return None,
    })
}

fn digest_array<D: Digest>(bytes: &[u8]) -> Result<ArrayRef> {
    Ok(Arc::new(BinaryViewArray::from_iter_values([digest::<D>(bytes)?])))
}

fn digest<D: Digest>(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut digest = D::new();
    for piece in bytes.chunks(PIECE_BYTES) {
        check_here()?;
        digest.update(piece);
    }
    Ok(digest.finalize().to_vec())
}

/// The only value of a string argument.
fn string(arg: &Argument) -> Option<&str> {
    let strings = arg.array.as_string_view_opt()?;
    strings.is_valid(0).then(|| strings.value(0))
}

/// `replace` in a long text, unless the search string is empty.
fn replaced(text: &str, args: &[Argument]) -> Option<Result<ArrayRef>> {
    let [_, from, to] = args else { return None };
    let (from, to) = (string(from)?, string(to)?);
    let finder = (!from.is_empty()).then(|| Finder::new(from))?;
    let (mut out, mut copied, mut looked) = (String::with_capacity(text.len()), 0, 0);
    while looked < text.len() {
        if let Err(error) = check_here() {
            return Some(Err(error));
        }
        // A match may begin in this piece and end in the next.
        let end = text.len().min(looked + PIECE_BYTES.max(from.len()));
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
    Some(Ok(one(out)))
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
        assert_eq!(runs("lower", &args, 7), [0..4, 4..5, 5..6, 6..7]);
        assert_eq!(runs("lower", &[], 7), [0..7]);
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![1 << 20, -1, 1, 1 << 20, i64::MAX]));
        let args = [
            Argument { constant: true, ..strings(&["ab"]) },
            Argument { array: counts, constant: false },
        ];
        assert_eq!(runs("repeat", &args, 5), [0..1, 1..3, 3..4, 4..5]);
        let lengths = |args: &[Argument], _: usize| -> Result<ArrayRef> {
            Ok(arrow::compute::kernels::length::length(&args[0].array)?)
        };
        let all = in_pieces("octet_length", &args, 7, &lengths).unwrap();
        let expected = lengths(&args, 7).unwrap();
        assert_eq!(&all, &expected);
    }

    #[test]
    fn letters_are_converted_word_by_word() {
        // A sigma has another lower case at the end of a word; the piece ends within a word.
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
    fn long_values_are_made_in_pieces() {
        let never = |_: &[Argument], _: usize| -> Result<ArrayRef> { panic!("not in one call") };
        let numbers = |count: i64| Argument {
            array: Arc::new(Int64Array::from(vec![count])),
            constant: false,
        };
        for unit in ["ab", "äöü", &"語".repeat(PIECE_BYTES / 2)] {
            let count = PIECE_BYTES / unit.len() * 2 + 1;
            let args = [strings(&[unit]), numbers(count as i64)];
            let text = unit.repeat(count);
            let found = in_pieces("repeat", &args, 1, &never).unwrap();
            assert!(value(&found) == text && found.as_string_view().data_buffers().len() == 1);
            let found = in_pieces("reverse", &[strings(&[&text])], 1, &never).unwrap();
            assert!(value(&found) == text.chars().rev().collect::<String>());
        }
    }

    #[test]
    fn long_values_are_hashed_in_pieces() {
        let never = |_: &[Argument], _: usize| -> Result<ArrayRef> { panic!("not in one call") };
        let long = "abc".repeat(1_000_000);
        let array: ArrayRef = Arc::new(BinaryViewArray::from_iter_values([&long]));
        let bytes = Argument { array, constant: false };
        let hexadecimal = |array: &ArrayRef| -> String {
            array.as_binary_view().value(0).iter().map(|byte| format!("{byte:02x}")).collect()
        };
        for (name, expected) in [
            ("md5", "4f31b51448012f3b28b9b6b496fa91c9"),
            ("sha224", "6dc42219dc02bc3d11dba7c5b0334791126083032adadd36bb4228d3"),
            ("sha256", "f4096a131e7e6ebfa7a512b5c299e13b065df34d15624ee1202ab394cc4d7e90"),
            (
                "sha384",
                "df1de2ca5cc8d6ad618ed1a088a9289239a5122a3cec10dfb5405716a3c75b1573b7ad64253daf28d57894db0e1d8b9a",
            ),
            (
                "sha512",
                "bc315a7dcefb9aac857c31c1747655b8da6a64938645cef75b17369399e19808987b031a98595fa63d58b116731aaf2a48cd8042a12a00ebcfebdb1f1715552b",
            ),
        ] {
            for value in [strings(&[&long]), bytes.clone()] {
                let found = in_pieces(name, std::slice::from_ref(&value), 1, &never).unwrap();
                match name {
                    "md5" => assert_eq!(found.as_string_view().value(0), expected),
                    _ => assert_eq!(hexadecimal(&found), expected),
                }
                let found = in_pieces("digest", &[value, strings(&[name])], 1, &never).unwrap();
                assert_eq!(hexadecimal(&found), expected);
            }
        }
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
        let text = "x".repeat(PIECE_BYTES + 1);
        let whole = |args: &[Argument], _: usize| -> Result<ArrayRef> { Ok(args[0].array.clone()) };
        let args = [strings(&[&text]), strings(&[""]), strings(&["y"])];
        assert_eq!(value(&in_pieces("replace", &args, 1, &whole).unwrap()), text);
    }
}
