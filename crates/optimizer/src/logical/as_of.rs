//! Joins with the nearest tuple in the logical plan.

use tessera_plan::Expr;

use super::relation::Relation;

/// A join of each left tuple with one right tuple: among those with equal keys, the one whose value
/// is nearest in a direction. NULL values match nothing; of several equally near right tuples, the
/// first matches.
#[derive(Debug, Clone)]
pub struct AsOf {
    /// The left relation.
    pub left: Relation,
    /// The right relation, without the tuples whose NULLs match nothing.
    pub right: Relation,
    /// The keys of both sides, where NULL equals NULL.
    pub keys: Vec<(Expr, Expr)>,
    /// The compared values of both sides.
    pub values: (Expr, Expr),
    /// Where the match is.
    pub nearest: Nearest,
    /// Whether left tuples without a match are kept.
    pub outer: bool,
}

/// Where the match of a left tuple is, seen from its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nearest {
    /// At or below (`left >= right`).
    AtOrBelow,
    /// Below (`left > right`).
    Below,
    /// At or above (`left <= right`).
    AtOrAbove,
    /// Above (`left < right`).
    Above,
}

impl Nearest {
    /// Returns the meaning of a comparison of the left with the right side, or `None` if it is none
    /// of the four.
    pub fn of_comparison(function: &str) -> Option<Nearest> {
        Some(match function {
            "gt_eq" => Nearest::AtOrBelow,
            "gt" => Nearest::Below,
            "lt_eq" => Nearest::AtOrAbove,
            "lt" => Nearest::Above,
            _ => return None,
        })
    }

    /// Returns the same comparison with its sides exchanged.
    pub fn flipped(self) -> Nearest {
        match self {
            Nearest::AtOrBelow => Nearest::AtOrAbove,
            Nearest::Below => Nearest::Above,
            Nearest::AtOrAbove => Nearest::AtOrBelow,
            Nearest::Above => Nearest::Below,
        }
    }

    /// Whether the match is at or above the left value.
    pub fn is_above(self) -> bool {
        matches!(self, Nearest::AtOrAbove | Nearest::Above)
    }

    /// Whether an equal value matches.
    pub fn includes_equal(self) -> bool {
        matches!(self, Nearest::AtOrBelow | Nearest::AtOrAbove)
    }
}

impl AsOf {
    /// Returns the expressions of the join.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let keys = self.keys.iter().flat_map(|(left, right)| [left, right]);
        keys.chain([&self.values.0, &self.values.1])
    }

    /// Returns mutable references to the expressions of the join.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let AsOf { keys, values, .. } = self;
        let keys = keys.iter_mut().flat_map(|(left, right)| [left, right]);
        keys.chain([&mut values.0, &mut values.1])
    }
}
