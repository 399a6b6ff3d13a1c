//! Selection of heavy partitions of joins, shared by all platforms that count tuples.
//!
//! If one key has most of the tuples, the worker of its partition would do most of the work. Such a
//! partition stays split among its senders, and the tuples of the other side, which must be fewer,
//! are copied to all workers.

use tessera_plan::{Node, Value};
use tessera_types::{Error, Result};

/// What an exchange may do with the heavy partitions of its side of a join (parameter `heavy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeavyMode {
    /// They may stay split.
    Split,
    /// They may be copied to all workers while those of the other side stay split.
    Copied,
    /// Both.
    Either,
}

impl HeavyMode {
    /// Reads the parameter `heavy` of a node, if present.
    ///
    /// # Errors
    /// The value is not one of the three.
    pub fn of(node: &Node) -> Result<Option<HeavyMode>> {
        let wrong = || Error::semantic("parameter heavy must be :split, :copied or :either");
        node.params.get("heavy").map(|value| HeavyMode::named(value).ok_or_else(wrong)).transpose()
    }

    /// Parses the value of the text form.
    pub fn named(value: &Value) -> Option<HeavyMode> {
        match value {
            Value::Name(name) => match &**name {
                "split" => Some(HeavyMode::Split),
                "copied" => Some(HeavyMode::Copied),
                "either" => Some(HeavyMode::Either),
                _ => None,
            },
            _ => None,
        }
    }

    /// Which of the two sides may be split while the other is copied.
    pub fn may_split(sides: [HeavyMode; 2]) -> [bool; 2] {
        let may = |split: HeavyMode, copied: HeavyMode| {
            split != HeavyMode::Copied && copied != HeavyMode::Split
        };
        [may(sides[0], sides[1]), may(sides[1], sides[0])]
    }
}

/// For each partition, the side of a join that stays split. A partition is heavy if it has more
/// than half of the tuples that a worker would have of its side, and copying the other side's
/// tuples to all workers sends fewer tuples than it has.
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
        // The join decides which side may be split.
        assert_eq!(heavy([&stream, &table], [false, true], 2), [None; 4]);
        // The other side has as many tuples, or there is only one worker.
        assert_eq!(heavy([&stream, &[0, 600, 0, 0]], [true, false], 3), [None; 4]);
        assert_eq!(heavy([&stream, &table], [true, true], 1), [None; 4]);
        // An empty join has no heavy partitions.
        assert_eq!(heavy([&[0; 4], &[0; 4]], [true, true], 2), [None; 4]);
    }

    #[test]
    fn a_side_is_split_where_the_other_may_be_copied() {
        use HeavyMode::{Copied, Either, Split};
        for (sides, may_split) in [
            ([Either, Either], [true, true]),
            ([Split, Copied], [true, false]),
            ([Copied, Either], [false, true]),
            ([Split, Split], [false, false]),
        ] {
            assert_eq!(HeavyMode::may_split(sides), may_split);
        }
        assert_eq!(HeavyMode::named(&Value::name("either")), Some(Either));
        assert_eq!(HeavyMode::named(&Value::name("neither")), None);
    }
}
