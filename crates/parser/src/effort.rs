//! Bounds the work of the parser.
//!
//! Where `(` may begin a subquery or a joined table, and where a word such as `cast` may be a
//! function's name, the parser tries one reading and then the other. Around an error, each level of
//! nesting doubles the work.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use tessera_types::{Code, Error, Result, SqlState};

/// Steps that each text may take.
const STEPS_MIN: u64 = 100_000;
/// Further steps for each token. One step for each is usual.
const STEPS_PER_TOKEN: u64 = 20;

thread_local! {
    /// The steps that the parser on this thread has left.
    static STEPS_LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// Restores the steps of an outer parser.
struct Outer(u64);

impl Drop for Outer {
    fn drop(&mut self) {
        STEPS_LEFT.set(self.0);
    }
}

/// Runs a parser on a text of this many tokens.
///
/// # Errors
/// The error of the parser, or it tries too many readings.
pub(crate) fn bounded<T>(tokens: usize, parse: impl FnOnce() -> Result<T>) -> Result<T> {
    let steps = STEPS_MIN.saturating_add(STEPS_PER_TOKEN.saturating_mul(tokens as u64));
    let _outer = Outer(STEPS_LEFT.replace(steps));
    match catch_unwind(AssertUnwindSafe(parse)) {
        Ok(parsed) => parsed,
        Err(payload) => match payload.downcast::<TooManySteps>() {
            Ok(_) => Err(too_many_readings()),
            Err(other) => resume_unwind(other),
        },
    }
}

/// Ends the parser from within a callback that cannot return an error.
struct TooManySteps;

/// Counts a step of the parser: an expression or a SELECT that it begins to read.
pub(crate) fn step() {
    match STEPS_LEFT.get() {
        0 => resume_unwind(Box::new(TooManySteps)),
        left => STEPS_LEFT.set(left - 1),
    }
}

fn too_many_readings() -> Error {
    Error::new(
        Code::Limit,
        "the statement nests too many parentheses that can be read in two ways, or has an error \
         within them; check that each is closed, or name the inner subqueries with WITH",
    )
    .with_state(SqlState::STATEMENT_TOO_COMPLEX)
}

#[cfg(test)]
mod tests {
    use tessera_types::{Code, SqlState};

    use crate::statement::ParsedStatement;

    /// Parses on a stack that is large enough for unoptimized code.
    fn parse(sql: &str) -> tessera_types::Result<Vec<ParsedStatement>> {
        stacker::grow(32 << 20, || crate::parse::parse(sql))
    }

    #[test]
    fn errors_in_nested_parentheses_end_soon() {
        for (start, unit) in [
            ("", "from(("),
            ("select ", "cast("),
            ("select ", "substring("),
            ("", "select * from (select * from (("),
            ("", "from ((pivot ("),
            ("select ", "(x) -> f("),
        ] {
            let nested = |levels| format!("{start}{}a", unit.repeat(levels));
            let error = parse(&nested(20)).unwrap_err();
            assert_eq!(error.sql_state(), SqlState::STATEMENT_TOO_COMPLEX, "{unit}: {error}");
            let error = parse(&nested(2)).unwrap_err();
            assert_eq!(error.code(), Code::Syntax, "{unit}: {error}");
        }
    }

    #[test]
    fn nested_parentheses_are_read() {
        for (start, end) in [("cast(", " as int)"), ("(", ")"), ("coalesce(", ", 2)")] {
            let nested = format!("select {}1{}", start.repeat(30), end.repeat(30));
            parse(&nested).unwrap();
        }
        let (start, end) = ("((select * from ", ") a cross join b)");
        parse(&format!("select * from {}t{}", start.repeat(10), end.repeat(10))).unwrap();
        // Each text has all its steps, also one that is read after an error.
        parse("select cast(cast(1 as int) as text)").unwrap();
    }
}
