//! Functions whose value may be far longer than their arguments: how long, before they are called.
//!
//! The binder does not fold a call whose value would be long, and the evaluator asks the query's
//! budget for it first. Where the values of a whole chunk would be too long together, its tuples
//! are taken in pieces: a few of them are tried first.

use std::cell::Cell;
use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use tessera_context::{Reservation, Run, interrupt};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Result};
use tessera_vector::{Chunk, Column};

use super::kernel::Argument;
use super::scalar::array_value;
use super::texts::pad::CHARACTERS_MAX;

/// Values up to this size are not asked for.
const SMALL_BYTES: u128 = 1 << 20;
/// Tuples that are tried.
const SAMPLE_ROWS: usize = 16;
/// What the functions of a piece give, about: this part of the budget, between these bounds.
const PIECE_SHARE: usize = 32;
const PIECE_BYTES_MIN: usize = 256 << 10;
const PIECE_BYTES_MAX: usize = 8 << 20;
const DAY_NANOSECONDS: i128 = 86_400_000_000_000;

/// Whether a function is one of those.
pub fn grows(function: &str) -> bool {
    multiplies(function)
        || matches!(
            function,
            "replace"
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
        )
}

/// Whether an expression calls one of those.
pub fn grows_in(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |expr| found |= matches!(expr, Expr::Call { function, .. } if grows(function)));
    found
}

thread_local! {
    /// While tuples are tried: the bytes that calls have given.
    static TRIED: Cell<Option<usize>> = const { Cell::new(None) };
    /// Whether the thread is at a piece of a chunk.
    static IN_PIECE: Cell<bool> = const { Cell::new(false) };
}

/// Does something for a piece, which is not cut again.
pub fn in_piece<T>(work: impl FnOnce() -> T) -> T {
    let before = IN_PIECE.replace(true);
    let done = work();
    IN_PIECE.set(before);
    done
}

/// A call has given a column.
pub fn note(column: &Column) {
    if let Some(bytes) = TRIED.get() {
        TRIED.set(Some(bytes.saturating_add(column.value_bytes())));
    }
}

/// Does something for the tuples of a chunk whose expressions grow: for all at once, or for one
/// piece after the other. `evaluate` evaluates the expressions; `work` gets the number of the
/// piece's first tuple, and the piece.
///
/// # Errors
/// Those of `work`.
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

/// Of how many tuples at once expressions that grow are to be evaluated; all of the chunk are a
/// piece, too. Nothing where the thread is at a piece already, and where an error is to come from
/// the chunk as a whole.
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
    // One first: a few may be too long already.
    for sample_rows in [1, SAMPLE_ROWS.min(rows)] {
        let sample = sample(chunk, sample_rows);
        let before = TRIED.replace(Some(0));
        let evaluated = in_piece(|| evaluate(&sample));
        let bytes = TRIED.replace(before).unwrap_or(0) / sample_rows;
        match evaluated {
            Err(error) if error.code() == Code::Limit => return Some(1),
            // What raises an error raises it again.
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

/// So many tuples from all over a chunk.
fn sample(chunk: &Chunk, count: usize) -> Chunk {
    let (rows, stored) = (chunk.rows(), chunk.selection());
    let position = |i: usize| {
        let row = i * rows / count + rows / count / 2;
        stored.map_or(row as u32, |selection| selection.values()[row])
    };
    chunk.clone().select(Arc::new(UInt32Array::from_iter_values((0..count).map(position))))
}

/// Whether a number among the arguments says how long the value is.
fn multiplies(function: &str) -> bool {
    matches!(
        function,
        "repeat"
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

/// The most bytes that the value of such a call may have, for arguments of which some are NULL.
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
        // A character has up to four bytes. A longer text than that is an error of the function,
        // whatever the budget.
        "lpad" | "rpad" => {
            count.filter(|count| *count <= CHARACTERS_MAX as u128).unwrap_or(0).saturating_mul(4)
        }
        "array_resize" | "list_resize" => count
            .unwrap_or(0)
            .saturating_mul(args.get(2).map_or(16, |(value, _)| size(value).max(16))),
        _ => sizes.fold(1, u128::saturating_mul),
    }
}

/// How many elements a range has.
fn elements(args: &[(Scalar, &Atom)]) -> u128 {
    let per_unit = |atom: &Atom| match atom {
        Atom::Date => DAY_NANOSECONDS,
        Atom::Timestamp(unit, _) => 1_000_000_000 / i128::from(super::scalar::per_second(*unit)),
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
    // A step of nothing is an error of the function.
    if step == 0 || ahead < 0 { 0 } else { ahead.unsigned_abs() / step.unsigned_abs() + 1 }
}

/// The bytes of a value, about.
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

/// Room in the budget of the query that the thread works for, for the values of a call.
///
/// # Errors
/// The budget does not have it.
pub fn room(function: &str, args: &[Argument], rows: usize) -> Result<Option<Reservation>> {
    let Some(context) = interrupt::work().filter(|_| multiplies(function)) else { return Ok(None) };
    let atoms = args
        .iter()
        .map(|arg| Atom::from_arrow(arg.array.data_type()))
        .collect::<Result<Vec<_>>>()?;
    let mut bytes: u128 = 0;
    for row in 0..rows {
        let value = |(arg, atom)| -> Result<(Scalar, &Atom)> { Ok((of_row(arg, row)?, atom)) };
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

fn of_row(arg: &Argument, row: usize) -> Result<Scalar> {
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
