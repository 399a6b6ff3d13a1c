//! Heavy partitions of joins: which they are, so that all platforms that have counted tuples decide
//! alike.
//!
//! The worker that a partition's hash names would do most of the work where one key has most of the
//! tuples. Such a partition stays split among those who send it, and the other side's tuples of it,
//! which must be fewer, go to all.

use tessera_plan::{Node, Value};
use tessera_types::{Error, Result};

/// What may become of the heavy partitions of a side of a join: parameter `heavy` of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heavy {
    /// They may stay split.
    Split,
    /// They may be copied to all, where those of the other side stay split.
    Copied,
    /// Both.
    Either,
}

impl Heavy {
    /// The parameter of a node, where given.
    ///
    /// # Errors
    /// It is none of the three.
    pub fn of(node: &Node) -> Result<Option<Heavy>> {
        let wrong = || Error::semantic("parameter heavy must be :split, :copied or :either");
        node.params.get("heavy").map(|value| Heavy::named(value).ok_or_else(wrong)).transpose()
    }

    /// As the text form writes it.
    pub fn named(value: &Value) -> Option<Heavy> {
        match value {
            Value::Name(name) => match &**name {
                "split" => Some(Heavy::Split),
                "copied" => Some(Heavy::Copied),
                "either" => Some(Heavy::Either),
                _ => None,
            },
            _ => None,
        }
    }

    /// Which of two sides may be split, the other being copied.
    pub fn may_split(sides: [Heavy; 2]) -> [bool; 2] {
        let may = |split: Heavy, copied: Heavy| split != Heavy::Copied && copied != Heavy::Split;
        [may(sides[0], sides[1]), may(sides[1], sides[0])]
    }
}

/// Of each partition, which of the two sides of a join stays split where it is heavy: where it has
/// more than half of the tuples that a worker would hold of its side, and copying the other side's
/// tuples to all sends fewer than it has.
pub fn heavy_partitions(
    sides: [&[i64]; 2],
    may_split: [bool; 2],
    workers: usize,
) -> Vec<Option<usize>> {
    let workers = workers as i64;
    let all = sides.map(|side| side.iter().fold(0i64, |sum, count| sum.saturating_add(*count)));
    let is_split = |partition: usize, side: usize| {
        let (split, copied) = (sides[side][partition], sides[1 - side][partition]);
        may_split[side]
            && split.saturating_mul(2 * workers) > all[side]
            && copied.saturating_mul(workers - 1) <= split
    };
    let which = |partition| (0..2).find(|side| is_split(partition, *side));
    let partitions = sides[0].len().min(sides[1].len());
    (0..partitions).map(|partition| which(partition).filter(|_| workers > 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_partitions_are_split_where_the_other_side_is_small() {
        let (stream, table) = ([10, 900, 10, 80], [25, 25, 25, 25]);
        let heavy = heavy_partitions;
        assert_eq!(heavy([&stream, &table], [true, true], 2), [None, Some(0), None, None]);
        assert_eq!(heavy([&table, &stream], [true, true], 2), [None, Some(1), None, None]);
        // Of which side the join lets it be split.
        assert_eq!(heavy([&stream, &table], [false, true], 2), [None; 4]);
        // The other side has as many, or there is nobody to share with.
        assert_eq!(heavy([&stream, &[0, 600, 0, 0]], [true, false], 3), [None; 4]);
        assert_eq!(heavy([&stream, &table], [true, true], 1), [None; 4]);
        // Nothing at all is not much.
        assert_eq!(heavy([&[0; 4], &[0; 4]], [true, true], 2), [None; 4]);
    }

    #[test]
    fn a_side_is_split_where_the_other_may_be_copied() {
        use Heavy::{Copied, Either, Split};
        for (sides, may_split) in [
            ([Either, Either], [true, true]),
            ([Split, Copied], [true, false]),
            ([Copied, Either], [false, true]),
            ([Split, Split], [false, false]),
        ] {
            assert_eq!(Heavy::may_split(sides), may_split);
        }
        assert_eq!(Heavy::named(&Value::name("either")), Some(Either));
        assert_eq!(Heavy::named(&Value::name("neither")), None);
    }
}
