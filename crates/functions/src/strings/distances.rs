//! DuckDB's measures of how much two strings differ. They count characters, as `levenshtein` does.

use std::collections::{HashMap, HashSet};

use tessera_context::interrupt::Every;
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::levenshtein::collected;
use tessera_values::rowwise::{OutputValue, fault, signature, strict};
use tessera_values::types::{Arg, ResolvedCall};

/// The Jaro similarity above which a common prefix counts more.
const WINKLER_MIN: f64 = 0.7;
/// What a common character at the front adds, and how many of them count.
const PREFIX_WEIGHT: f64 = 0.1;
const PREFIX_MAX: usize = 4;

/// `hamming(a, b)` and `mismatches(a, b)`: at how many places two strings of one length differ.
pub(super) fn hamming(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    let name = name.to_string();
    Ok(strict(Atom::Int64, args, casts, move |arguments| {
        let (left, right) = (characters(arguments[0].text()), characters(arguments[1].text()));
        if left.is_empty() || left.len() != right.len() {
            let message = format!(
                "{name} takes two strings of one length, at least 1, not of {} and {} characters",
                left.len(),
                right.len()
            );
            return Err(fault(message, SqlState::INVALID_PARAMETER_VALUE));
        }
        let differ = left.iter().zip(&right).filter(|(a, b)| a != b).count();
        Ok(OutputValue::Whole(differ as i64))
    }))
}

/// `damerau_levenshtein(a, b)`: the least number of insertions, deletions, replacements and swaps
/// of neighbors that make one string of the other.
pub(super) fn damerau_levenshtein(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    Ok(strict(Atom::Int64, args, casts, |arguments| {
        let (left, right) = (characters(arguments[0].text()), characters(arguments[1].text()));
        Ok(OutputValue::Whole(edits(&left, &right)? as i64))
    }))
}

/// The most cells of the matrix of distances: 32 MiB.
const CELLS_MAX: usize = 1 << 22;

/// The distance of Damerau and Levenshtein, by the algorithm of Lowrance and Wagner.
fn edits(left: &[char], right: &[char]) -> Result<usize> {
    let cells = (left.len() + 2).saturating_mul(right.len() + 2);
    if cells > CELLS_MAX {
        let message = format!(
            "damerau_levenshtein of texts of {} and {} characters needs too much memory; \
             compare shorter texts, or use levenshtein",
            left.len(),
            right.len()
        );
        return Err(Error::new(Code::Limit, message));
    }
    let every = Every::default();
    let most = left.len() + right.len();
    // Row and column 0 hold `most`: no swap reaches before the start of a string.
    let width = right.len() + 2;
    let mut cost = vec![most; (left.len() + 2) * width];
    for i in 0..=left.len() {
        cost[(i + 1) * width + 1] = i;
    }
    for j in 0..=right.len() {
        cost[width + j + 1] = j;
    }
    // The last row in which each character of `left` was seen.
    let mut seen: HashMap<char, usize> = HashMap::new();
    for (i, a) in left.iter().enumerate().map(|(i, a)| (i + 1, a)) {
        let mut matched = 0;
        for (j, b) in right.iter().enumerate().map(|(j, b)| (j + 1, b)) {
            every.pass();
            let (row, column) = (seen.get(b).copied().unwrap_or(0), matched);
            let replaced = cost[i * width + j] + usize::from(a != b);
            let changed = cost[(i + 1) * width + j].min(cost[i * width + j + 1]) + 1;
            let swapped = cost[row * width + column] + (i - row - 1) + 1 + (j - column - 1);
            cost[(i + 1) * width + j + 1] = replaced.min(changed).min(swapped);
            if a == b {
                matched = j;
            }
        }
        seen.insert(*a, i);
    }
    Ok(cost[(left.len() + 1) * width + right.len() + 1])
}

/// `jaro_similarity(a, b [, least])` and `jaro_winkler_similarity`: from 0 to 1, and 0 below
/// `least`.
pub(super) fn jaro(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let wanted = [Atom::String, Atom::String, Atom::Float64];
    let casts = signature(name, args, &wanted[..args.len().clamp(2, 3)])?;
    let winkler = name == "jaro_winkler_similarity";
    Ok(strict(Atom::Float64, args, casts, move |arguments| {
        let (left, right) = (characters(arguments[0].text()), characters(arguments[1].text()));
        let mut found = jaro_of(&left, &right);
        if winkler && found > WINKLER_MIN {
            let pairs = left.iter().zip(&right).take(PREFIX_MAX);
            let prefix = pairs.take_while(|(a, b)| a == b).count();
            found += prefix as f64 * PREFIX_WEIGHT * (1.0 - found);
        }
        let least = arguments.get(2).map_or(0.0, |least| least.double());
        Ok(OutputValue::Double(if found < least { 0.0 } else { found }))
    }))
}

fn jaro_of(left: &[char], right: &[char]) -> f64 {
    let every = Every::default();
    // Equal characters match if they are at most this far apart.
    let reach = (left.len().max(right.len()) / 2).saturating_sub(1);
    let mut taken = vec![false; right.len()];
    let mut matched = Vec::new();
    for (place, character) in left.iter().enumerate() {
        every.pass();
        let first = place.saturating_sub(reach).min(right.len());
        let last = (place + reach + 1).min(right.len());
        let free = |at: &usize| !taken[*at] && right[*at] == *character;
        if let Some(at) = (first..last).find(free) {
            taken[at] = true;
            matched.push(character);
        }
    }
    if matched.is_empty() {
        return 0.0;
    }
    let others = right.iter().zip(&taken).filter(|(_, taken)| **taken);
    let moved = others.zip(&matched).filter(|((b, _), a)| b != *a).count();
    let count = matched.len() as f64;
    let in_order = count - (moved / 2) as f64;
    (count / left.len() as f64 + count / right.len() as f64 + in_order / count) / 3.0
}

/// `jaccard(a, b)`: the share of the characters of two strings that are in both.
pub(super) fn jaccard(name: &str, args: &[Arg<'_>]) -> Result<ResolvedCall> {
    let casts = signature(name, args, &[Atom::String, Atom::String])?;
    Ok(strict(Atom::Float64, args, casts, |arguments| {
        let sets = [0, 1].map(|at| arguments[at].text().chars().collect::<HashSet<char>>());
        if sets.iter().any(HashSet::is_empty) {
            let message = "jaccard takes strings of at least one character, not ''";
            return Err(fault(message, SqlState::INVALID_PARAMETER_VALUE));
        }
        let both = sets[0].intersection(&sets[1]).count();
        let any = sets[0].len() + sets[1].len() - both;
        Ok(OutputValue::Double(both as f64 / any as f64))
    }))
}

fn characters(text: &str) -> Vec<char> {
    collected(text.chars(), text.len())
}

#[cfg(test)]
mod tests {
    use tessera_plan::{Expr, Scalar};
    use tessera_types::Atom;

    use crate::testing::{call, constant};

    fn float(number: f64) -> Expr {
        Expr::Constant(Scalar::Float(number), Atom::Float64)
    }

    fn double(function: &str, args: &[Expr]) -> f64 {
        match constant(&call(function, args)).unwrap() {
            Scalar::Float(found) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn edits_are_counted() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "acb", 1),
            ("ca", "abc", 2),
            ("abcdef", "bacdfe", 2),
            ("kitten", "sitting", 3),
            ("日", "本", 1),
        ] {
            let args = [Expr::string(left), Expr::string(right)];
            let found = constant(&call("damerau_levenshtein", args)).unwrap();
            assert_eq!(found, Scalar::Integer(expected), "{left} {right}");
        }
    }

    #[test]
    fn similarities() {
        for (left, right, jaro, winkler) in [
            ("duck", "duckdb", 8.0 / 9.0, 14.0 / 15.0),
            ("MARTHA", "MARHTA", 17.0 / 18.0, 0.961_111_111_111_111_1),
            ("DIXON", "DICKSONX", 0.766_666_666_666_666_6, 0.813_333_333_333_333_2),
            ("CRATE", "TRACE", 0.733_333_333_333_333_4, 0.733_333_333_333_333_4),
            ("aaaaabbbb", "bbbbaaaaa", 2.0 / 3.0, 2.0 / 3.0),
            ("", "", 0.0, 0.0),
            ("é", "e", 0.0, 0.0),
        ] {
            let args = [Expr::string(left), Expr::string(right)];
            for (function, expected) in
                [("jaro_similarity", jaro), ("jaro_winkler_similarity", winkler)]
            {
                let found = double(function, &args);
                assert!((found - expected).abs() < 1e-12, "{function} {left} {right}: {found}");
            }
        }
        let far = [Expr::string("duck"), Expr::string("duckdb"), float(0.99)];
        assert_eq!(double("jaro_winkler_similarity", &far), 0.0);
        assert_eq!(double("jaccard", &[Expr::string("duck"), Expr::string("luck")]), 0.6);
    }

    #[test]
    fn long_texts_do_not_take_all_memory() {
        let long = "x".repeat(60_000);
        let args = [Expr::string(long.as_str()), Expr::string(long.as_str())];
        let message = constant(&call("damerau_levenshtein", args)).unwrap_err().to_string();
        assert!(message.contains("needs too much memory"), "{message}");
    }

    #[test]
    fn lengths_must_agree() {
        let hamming = |left: &str, right: &str| {
            constant(&call("hamming", [Expr::string(left), Expr::string(right)]))
        };
        assert_eq!(hamming("duck", "luck").unwrap(), Scalar::Integer(1));
        for (left, right) in [("a", "ab"), ("", "")] {
            let message = hamming(left, right).unwrap_err().to_string();
            assert!(message.contains("two strings of one length"), "{message}");
        }
    }
}
