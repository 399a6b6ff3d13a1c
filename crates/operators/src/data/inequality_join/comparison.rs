//! The comparisons of a join by inequalities.

use std::ops::Range;

use tessera_plan::{Node, Value};
use tessera_types::{Error, Result};

use super::order::KeyBytes;

/// The names of the comparisons in plans.
const NAMES: [(&str, Comparison); 4] = [
    ("lt", Comparison { is_below: true, or_equal: false }),
    ("lt_eq", Comparison { is_below: true, or_equal: true }),
    ("gt", Comparison { is_below: false, or_equal: false }),
    ("gt_eq", Comparison { is_below: false, or_equal: true }),
];

/// How a key of the stream compares with a key of the side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Whether the stream's key is the smaller one.
    pub(super) is_below: bool,
    or_equal: bool,
}

impl Comparison {
    /// Returns the parameter `comparisons`: one or two names.
    pub(super) fn all_of(node: &Node) -> Result<Vec<Comparison>> {
        let comparison = |value: &Value| match value {
            Value::Name(name) => {
                NAMES.iter().find(|(known, _)| *known == &**name).map(|(_, comparison)| *comparison)
            }
            _ => None,
        };
        let comparisons = match node.params.get("comparisons") {
            Some(Value::List(values)) => values.iter().map(comparison).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        comparisons.filter(|found| (1..=2).contains(&found.len())).ok_or_else(|| {
            Error::semantic(
                "parameter comparisons must be one or two of :lt, :lt_eq, :gt, :gt_eq in brackets",
            )
        })
    }

    /// Whether equal keys of the side are among those that are counted below a key of the stream.
    pub(super) fn counts_equal(self) -> bool {
        self.is_below != self.or_equal
    }

    /// The matches in an ascending order of `len` keys of the side, of which `below` are counted
    /// below the stream's key.
    pub(super) fn matches(self, below: u32, len: usize) -> Range<usize> {
        if self.is_below { below as usize..len } else { 0..below as usize }
    }

    /// Whether some keys between these bounds match.
    pub(super) fn may_hold(
        self,
        stream: &(KeyBytes, KeyBytes),
        side: &(KeyBytes, KeyBytes),
    ) -> bool {
        let (small, large) =
            if self.is_below { (&stream.0, &side.1) } else { (&side.0, &stream.1) };
        small < large || self.or_equal && small == large
    }
}
