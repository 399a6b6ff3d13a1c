//! `levenshtein`, in own code because a long text must not delay a cancellation.

use tessera_context::Reservation;
use tessera_context::interrupt::{self, Every};
use tessera_types::{Atom, Result};

use tessera_values::rowwise::{OutputValue, signature, strict};
use tessera_values::types::{Arg, ResolvedCall};

/// Characters that are copied between two checks for a cancellation.
const SPAN: usize = 1 << 18;

/// `levenshtein(a, b)`: the least number of characters to insert, delete or replace.
pub(super) fn resolve(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    let resolved = strict(Atom::Int32, args, casts, |arguments| {
        let distance = distance(arguments[0].text(), arguments[1].text())?;
        Ok(OutputValue::Whole(i64::from(distance)))
    });
    Ok(resolved.raising(false))
}

/// The distance of two texts.
fn distance(left: &str, right: &str) -> Result<u32> {
    // The row of the table is as long as the second one.
    let (left, right) = if left.len() < right.len() { (right, left) } else { (left, right) };
    let is_ascii = left.is_ascii() && right.is_ascii();
    let character_bytes = size_of::<u32>() + if is_ascii { 0 } else { size_of::<char>() };
    let mut memory = interrupt::work().map(Reservation::new);
    if let Some(memory) = &mut memory {
        memory.grow(character_bytes * right.len())?;
    }
    Ok(match is_ascii {
        true => edits(left.bytes(), right.as_bytes()),
        false => edits(left.chars(), &collected(right.chars(), right.len())),
    })
}

/// Collects values with checks for a cancellation.
pub(super) fn collected<T>(mut values: impl Iterator<Item = T>, count_max: usize) -> Vec<T> {
    let mut all = Vec::with_capacity(count_max);
    loop {
        interrupt::point();
        let before = all.len();
        all.extend(values.by_ref().take(SPAN));
        if all.len() == before {
            return all;
        }
    }
}

/// The distance, row by row of the usual table.
fn edits<T: PartialEq>(left: impl Iterator<Item = T>, right: &[T]) -> u32 {
    // The distances of the start of `left` and each start of `right`.
    let mut row: Vec<u32> = collected(0..=right.len() as u32, right.len() + 1);
    let every = Every::default();
    for (number, a) in (1..).zip(left) {
        let mut diagonal = std::mem::replace(&mut row[0], number);
        for (index, b) in right.iter().enumerate() {
            every.pass();
            let replaced = diagonal + u32::from(a != *b);
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
            ("a", "äöüß", 4),
        ] {
            assert_eq!(distance(left, right).unwrap(), expected, "'{left}' and '{right}'");
        }
    }

    #[test]
    fn the_row_counts_for_the_budget() {
        let context: Arc<dyn Context> = TestContext::with_budget(1, 1, 10_000);
        let found = within(&context, || distance(&"a".repeat(9_000), &"b".repeat(3_000)));
        assert_eq!(found.unwrap_err().code(), Code::Limit);
        let found = within(&context, || distance(&"a".repeat(9_000), &"b".repeat(2_000)));
        assert_eq!(found.unwrap(), 9_000);
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
