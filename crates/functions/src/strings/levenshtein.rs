//! `levenshtein`, in own code because a long text must not delay a cancellation.

use tessera_context::interrupt::Every;
use tessera_types::{Atom, Result};

use crate::rowwise::{OutputValue, signature, strict};
use crate::types::{Arg, ResolvedCall};

/// `levenshtein(a, b)`: the least number of characters to insert, delete or replace.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    let resolved = strict(Atom::Int32, args, casts, |arguments| {
        let distance = distance(arguments[0].text(), arguments[1].text());
        Ok(OutputValue::Whole(i64::try_from(distance).unwrap_or(i64::MAX)))
    });
    Ok(resolved.raising(false))
}

/// The distance of two texts, row by row of the usual table.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    // The distances of the start of `left` and each start of `right`.
    let mut row: Vec<usize> = (0..=right.len()).collect();
    let every = Every::default();
    for (number, a) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], number + 1);
        for (index, b) in right.iter().enumerate() {
            every.pass();
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[index + 1];
            row[index + 1] = replaced.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use tessera_context::Context;
    use tessera_context::interrupt::within;
    use tessera_context::testing::TestContext;
    use tessera_types::{Code, Error};

    use super::*;

    #[test]
    fn distances_count_characters() {
        for (left, right, expected) in [
            ("kitten", "sitting", 3),
            ("", "", 0),
            ("", "äb", 2),
            ("abc", "", 3),
            ("söhne", "sohn", 2),
            ("abc", "abc", 0),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(left, right), expected, "'{left}' and '{right}'");
        }
    }

    #[test]
    fn long_texts_can_be_cancelled() {
        let test = TestContext::new(1, 1);
        let context: Arc<dyn Context> = test.clone();
        test.cancelled.store(true, Ordering::SeqCst);
        let texts = ("ab".repeat(1_000), "ba".repeat(1_000));
        let call = || within(&context, || distance(&texts.0, &texts.1));
        let unwound = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
        assert_eq!(unwound.downcast_ref::<Error>().unwrap().code(), Code::Cancelled);
    }
}
