//! Functions with results far longer than their arguments, and bounds on the result size before the
//! call.
//!
//! The binder does not fold a call with a long result, and the evaluator reserves memory for it
//! first. If the results of a whole chunk would be too long together, the chunk is evaluated in
//! pieces; a few sample tuples determine their size.

use std::cell::Cell;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use tessera_context::{Reservation, Run, interrupt};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Result};
use tessera_vector::{Chunk, Column};

use super::strings::pad::CHARACTERS_MAX;
use tessera_values::bits::BITS_MAX;
use tessera_values::kernel::Argument;
use tessera_values::scalar::array_value;

/// Results up to this size need no reservation.
const SMALL_BYTES: u128 = 1 << 20;
/// The number of sample tuples.
const SAMPLE_ROWS: usize = 16;
/// The approximate result size of a piece: this fraction of the budget, within these bounds.
const PIECE_SHARE: usize = 32;
const PIECE_BYTES_MIN: usize = 256 << 10;
const PIECE_BYTES_MAX: usize = 8 << 20;
const DAY_NANOSECONDS: i128 = 86_400_000_000_000;

/// Whether the result of a function may be far longer than its arguments.
pub fn grows(function: &str) -> bool {
    is_sized_by_argument(function)
        || matches!(
            function,
            "bar"
                | "replace"
                | "regexp_replace"
                | "array_to_string"
                | "list_to_string"
                | "array_join"
                | "list_join"
                | "string_to_array"
                | "string_to_list"
                | "regexp_split_to_array"
                | "regexp_matches"
                | "format"
                | "printf"
        )
}

/// Whether an expression calls such a function.
pub fn grows_in(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |expr| {
        found |= match expr {
            Expr::Call { function, .. } => grows(function),
            Expr::Lambda(lambda) => grows_in(&lambda.body),
            _ => false,
        }
    });
    found
}

thread_local! {
    /// While a sample is evaluated: the bytes that calls have returned.
    static SAMPLED_BYTES: Cell<Option<usize>> = const { Cell::new(None) };
    /// Whether the thread is evaluating a piece of a chunk.
    static IN_PIECE: Cell<bool> = const { Cell::new(false) };
}

/// Calls `work` for a piece, which is not split again.
pub fn in_piece<T>(work: impl FnOnce() -> T) -> T {
    let before = IN_PIECE.replace(true);
    let done = work();
    IN_PIECE.set(before);
    done
}

/// Records the size of a call's result while a sample is evaluated.
pub fn record_size(column: &Column) {
    if let Some(bytes) = SAMPLED_BYTES.get() {
        SAMPLED_BYTES.set(Some(bytes.saturating_add(column.value_bytes())));
    }
}

/// Calls `work` for a chunk, at once or piece by piece, so that results of growing expressions fit
/// the budget. `evaluate` evaluates the expressions on a sample; `work` gets the index of the
/// piece's first tuple, and the piece.
///
/// # Errors
/// The errors of `work`.
pub fn each_piece<T>(
    chunk: &Chunk,
    run: &Run,
    evaluate: impl Fn(&Chunk) -> Result<()>,
    mut work: impl FnMut(usize, &Chunk) -> Result<T>,
) -> Result<Vec<T>> {
    let Some(piece) = piece_rows(chunk, run, evaluate) else { return Ok(vec![work(0, chunk)?]) };
    let mut of_piece = |start: usize| {
        let rows = piece.min(chunk.rows() - start);
        in_piece(|| work(start, &chunk.slice(start, rows)))
    };
    (0..chunk.rows()).step_by(piece).map(&mut of_piece).collect()
}

/// The number of tuples to evaluate at once; all tuples count as one piece, too. `None` if the
/// thread is evaluating a piece already, or if a value raises an error, which the whole chunk
/// should report.
pub fn piece_rows(
    chunk: &Chunk,
    run: &Run,
    evaluate: impl Fn(&Chunk) -> Result<()>,
) -> Option<usize> {
    let rows = chunk.rows();
    if rows < 2 || IN_PIECE.get() {
        return None;
    }
    let piece_bytes =
        (run.context.memory_bytes() / PIECE_SHARE).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
    // Start with one tuple: a few may already be too long.
    for sample_rows in [1, SAMPLE_ROWS.min(rows)] {
        let sample = sample(chunk, sample_rows);
        let before = SAMPLED_BYTES.replace(Some(0));
        let evaluated = in_piece(|| evaluate(&sample));
        let bytes = SAMPLED_BYTES.replace(before).unwrap_or(0) / sample_rows;
        match evaluated {
            Err(error) if error.code() == Code::Limit => return Some(1),
            // The evaluation of the whole chunk will raise the error again.
            Err(_) => return None,
            Ok(()) if bytes > piece_bytes / SAMPLE_ROWS => {
                return Some((piece_bytes / bytes).max(1));
            }
            Ok(()) if sample_rows > 1 && bytes * rows > piece_bytes => {
                return Some((piece_bytes / bytes.max(1)).max(1));
            }
            Ok(()) => {}
        }
    }
    Some(rows)
}

/// A sample of tuples, evenly spread over a chunk.
fn sample(chunk: &Chunk, count: usize) -> Chunk {
    let (rows, stored) = (chunk.rows(), chunk.selection());
    let position = |i: usize| {
        let row = i * rows / count + rows / count / 2;
        stored.map_or(row as u32, |selection| selection.values()[row])
    };
    chunk.clone().select(Arc::new(UInt32Array::from_iter_values((0..count).map(position))))
}

/// Whether a numeric argument determines the length of the result.
fn is_sized_by_argument(function: &str) -> bool {
    matches!(
        function,
        "repeat"
            | "bits_of"
            | "bitstring"
            | "fit_bits"
            | "lpad"
            | "rpad"
            | "array_repeat"
            | "list_repeat"
            | "array_resize"
            | "list_resize"
            | "range"
            | "generate_series"
    )
}

/// An upper bound on the result size of a call in bytes; arguments may be NULL.
pub fn bytes_of(function: &str, args: &[(Scalar, &Atom)]) -> u128 {
    if matches!(function, "range" | "generate_series") {
        return elements(args).saturating_mul(size_of::<i64>() as u128);
    }
    let count = match args.get(1) {
        Some((Scalar::Integer(count), _)) => u128::try_from(*count).ok(),
        _ => None,
    };
    let sizes = args.iter().map(|(value, _)| size(value).max(1));
    match function {
        "repeat" | "array_repeat" | "list_repeat" => args
            .first()
            .map_or(1, |(value, _)| size(value).max(1))
            .saturating_mul(count.unwrap_or(0)),
        // A character has up to four bytes. The function rejects longer strings for any budget.
        "lpad" | "rpad" => {
            count.filter(|count| *count <= CHARACTERS_MAX as u128).unwrap_or(0).saturating_mul(4)
        }
        "bits_of" | "bitstring" | "fit_bits" => {
            count.filter(|count| *count <= BITS_MAX as u128).unwrap_or(0)
        }
        "array_resize" | "list_resize" => count
            .unwrap_or(0)
            .saturating_mul(args.get(2).map_or(16, |(value, _)| size(value).max(16))),
        _ => sizes.fold(1, u128::saturating_mul),
    }
}

/// The number of elements of a range.
fn elements(args: &[(Scalar, &Atom)]) -> u128 {
    let per_unit = |atom: &Atom| match atom {
        Atom::Date => DAY_NANOSECONDS,
        Atom::Timestamp(unit, _) => {
            1_000_000_000 / i128::from(tessera_values::scalar::per_second(*unit))
        }
        _ => 1,
    };
    let mut numbers = Vec::with_capacity(args.len());
    for (value, atom) in args {
        numbers.push(match value {
            Scalar::Integer(number) => number.saturating_mul(per_unit(atom)),
            Scalar::Interval { months, days, nanoseconds } => {
                let days = i128::from(*months) * 28 + i128::from(*days);
                days * DAY_NANOSECONDS + i128::from(*nanoseconds)
            }
            _ => return 0,
        });
    }
    let (start, stop, step) = match numbers[..] {
        [stop] => (0, stop, 1),
        [start, stop] => (start, stop, 1),
        [start, stop, step] => (start, stop, step),
        _ => return 0,
    };
    let ahead = if step < 0 { start.saturating_sub(stop) } else { stop.saturating_sub(start) };
    // The function rejects a step of zero.
    if step == 0 || ahead < 0 { 0 } else { ahead.unsigned_abs() / step.unsigned_abs() + 1 }
}

/// The approximate size of a value in bytes.
pub fn size(value: &Scalar) -> u128 {
    match value {
        Scalar::String(text) => text.len() as u128,
        Scalar::Bytes(bytes) => bytes.len() as u128,
        Scalar::Nested(items) => {
            items.iter().map(|item| size(item).max(size_of::<i64>() as u128)).sum()
        }
        Scalar::Null => 0,
        _ => size_of::<i64>() as u128,
    }
}

/// Reserves memory for the results of a call from the current query's budget.
///
/// # Errors
/// The budget is exhausted.
pub fn reserve_for_result(
    function: &str,
    args: &[Argument],
    rows: usize,
) -> Result<Option<Reservation>> {
    let Some(context) = interrupt::work().filter(|_| is_sized_by_argument(function)) else {
        return Ok(None);
    };
    let atoms = args
        .iter()
        .map(|arg| Atom::from_arrow(arg.array.data_type()))
        .collect::<Result<Vec<_>>>()?;
    let mut bytes: u128 = 0;
    for row in 0..rows {
        let value = |(arg, atom)| -> Result<(Scalar, &Atom)> { Ok((row_value(arg, row)?, atom)) };
        let values = args.iter().zip(&atoms).map(value).collect::<Result<Vec<_>>>()?;
        bytes = bytes.saturating_add(bytes_of(function, &values));
    }
    if bytes <= SMALL_BYTES {
        return Ok(None);
    }
    let mut reservation = Reservation::new(context);
    reservation.grow(usize::try_from(bytes).unwrap_or(usize::MAX))?;
    Ok(Some(reservation))
}

fn row_value(arg: &Argument, row: usize) -> Result<Scalar> {
    let array: &ArrayRef = &arg.array;
    array_value(array, arg.at(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_known_before() {
        let number = |value: i128| (Scalar::Integer(value), &Atom::Int64);
        let text = |value: &str| (Scalar::String(value.into()), &Atom::String);
        assert_eq!(bytes_of("repeat", &[text("abc"), number(1 << 40)]), 3 << 40);
        assert_eq!(bytes_of("array_repeat", &[number(5), number(1 << 40)]), 8 << 40);
        assert_eq!(bytes_of("repeat", &[text("abc"), number(-7)]), 0);
        assert_eq!(bytes_of("lpad", &[text("abc"), number(10), text("x")]), 40);
        assert_eq!(bytes_of("range", &[number(0), number(9)]), 80);
        assert_eq!(bytes_of("range", &[number(9), number(0), number(-3)]), 32);
        assert_eq!(bytes_of("range", &[number(9), number(0)]), 0);
        assert_eq!(bytes_of("replace", &[text("aaaa"), text("a"), text("bbb")]), 12);
        let day = |day: i128| (Scalar::Integer(day), &Atom::Date);
        let hour = Scalar::Interval { months: 0, days: 0, nanoseconds: 3_600_000_000_000 };
        assert_eq!(bytes_of("generate_series", &[day(0), day(1), (hour, &Atom::Interval)]), 25 * 8);
        assert!(grows("repeat") && !grows("lower"));
    }
}
