//! Lowering of joins whose conditions have inequalities between the sides, and no equality.

use std::collections::HashSet;

use tessera_plan::rewrite::mirrored;
use tessera_plan::{Expr, Params, Rule, Value};
use tessera_types::{Atom, Result};

use super::join::{JoinInputs, joined_tuple, kind_name, pair, set_mark};
use super::node::{add, fields_of, with_fields};
use super::sort::ascending;
use super::{Level, LoweredNode, Lowering};
use crate::expression::TypeContext;
use crate::logical::relation::{Join, Kind, Name};
use crate::logical::types::Types;

/// With a smaller side, trying every pair costs less than sorting both sides.
const SIDE_ROWS_MIN: f64 = 64.0;
/// A stream of more tuples is sorted, so that its chunks meet few of the side; one of less would
/// come in too few morsels for all workers.
const SORTED_ROWS_MIN: f64 = 262_144.0;

/// One or two inequalities between the sides of a join, and its other conditions.
#[derive(Debug, Default)]
pub(super) struct Inequalities {
    left: Vec<Expr>,
    /// How the left keys compare with the right ones, and the right ones with the left ones.
    comparisons: Vec<(&'static str, &'static str)>,
    right: Vec<Expr>,
    residual: Vec<Expr>,
}

impl Inequalities {
    /// Splits the conditions of a join; `None` if there is no inequality between its sides.
    fn new(
        join: &Join,
        left_names: &HashSet<Name>,
        right_names: &HashSet<Name>,
        types: Types<'_>,
    ) -> Option<Inequalities> {
        let mut found = Inequalities::default();
        for (position, condition) in join.conditions.iter().enumerate() {
            let inequality = inequality(condition, left_names, right_names);
            let inequality = inequality.filter(|(left, _, right)| {
                // Keys are computed for every tuple, so one that can raise an error must be the
                // first condition.
                let stays = types.must_stay(left) || types.must_stay(right);
                let atom = types.atom(left);
                (position == 0 || !stays)
                    && atom.as_ref().is_some_and(is_ordered)
                    && atom == types.atom(right)
            });
            match inequality {
                Some((left, comparison, right)) if found.left.len() < 2 => {
                    found.left.push(left);
                    found.comparisons.push(comparison);
                    found.right.push(right);
                }
                _ => found.residual.push(condition.clone()),
            }
        }
        Some(found).filter(|found| !found.left.is_empty())
    }
}

/// Returns the left and the right side of an inequality between both inputs, and the comparison.
fn inequality(
    condition: &Expr,
    left_names: &HashSet<Name>,
    right_names: &HashSet<Name>,
) -> Option<(Expr, (&'static str, &'static str), Expr)> {
    let Expr::Call { function, args } = condition else { return None };
    // An equality is its own mirror.
    let mirror = mirrored(function).filter(|mirror| *mirror != &**function)?;
    let name = mirrored(mirror)?;
    let (left, right) = pair(condition, left_names, right_names, name, false)?;
    let is_flipped = args.first() != Some(&left);
    Some((left, if is_flipped { (mirror, name) } else { (name, mirror) }, right))
}

/// Whether the operator compares values of a type as `<` does.
fn is_ordered(atom: &Atom) -> bool {
    !matches!(atom, Atom::Null | Atom::List(_) | Atom::Struct(_) | Atom::Map(..))
}

impl Lowering<'_> {
    /// Returns the inequalities of a join that is not worth a loop over all pairs.
    pub(super) fn inequalities(
        &self,
        join: &Join,
        left_names: &HashSet<Name>,
        right_names: &HashSet<Name>,
    ) -> Option<Inequalities> {
        let smaller = self.rows(&join.left).min(self.rows(&join.right));
        if !self.types.uses(Rule::InequalityJoins) || join.null_aware || smaller < SIDE_ROWS_MIN {
            return None;
        }
        Inequalities::new(join, left_names, right_names, self.types)
    }

    pub(super) fn inequality_join(
        &mut self,
        join: &Join,
        found: Inequalities,
        (left_needed, right_needed, needed): JoinInputs<'_>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let mut kept = with_fields(needed, &found.residual);
        kept.extend(fields_of(found.left.iter().chain(&found.right)));
        let left = self.lower(&join.left, left_needed, level)?;
        let left = self.prune(level, left, &kept)?;
        let right = self.lower(&join.right, right_needed, level)?;
        let right = self.prune(level, right, &kept)?;
        let (left, left_keys) = self.with_computed(level, left, &found.left, "key")?;
        let (right, right_keys) = self.with_computed(level, right, &found.right, "key")?;
        let (left_rows, right_rows) = (self.rows(&join.left), self.rows(&join.right));
        // The smaller input becomes the side.
        let flip = join.kind == Kind::Inner && self.may_flip() && left_rows < right_rows;
        let (side, side_keys, stream, stream_keys) = match flip {
            true => (left, left_keys, right, right_keys),
            false => (right, right_keys, left, left_keys),
        };
        let stream_rows = if flip { right_rows } else { left_rows };
        let comparisons = found
            .comparisons
            .iter()
            .map(|(of_left, of_right)| Value::name(if flip { *of_right } else { *of_left }));
        let name = kind_name(join.kind);
        let mut params = Params::new()
            .with("left_keys", Value::names(&stream_keys))
            .with("comparisons", Value::List(comparisons.collect()))
            .with("right_keys", Value::names(&side_keys))
            .with("join", Value::name(name));
        if !found.residual.is_empty() {
            params.set("residual", Expr::all(found.residual));
        }
        set_mark(&mut params, join);
        let sorts_stream = stream_keys.len() > 1 && stream_rows > SORTED_ROWS_MIN;
        let side = sorted(level, side, &side_keys[0]);
        let stream = if sorts_stream { sorted(level, stream, &stream_keys[0]) } else { stream };
        let tuple = joined_tuple(name, &stream.tuple, &side.tuple, join);
        let lowered = add(level, "inequality_join", &[side.id, stream.id], params, tuple);
        self.prune(level, lowered, needed)
    }
}

/// Sorts tuples where they are, so that a chunk has keys close to each other.
fn sorted(level: &mut Level, tuples: LoweredNode, key: &Name) -> LoweredNode {
    let keys = vec![ascending(key).to_value()];
    let params = Params::new().with("keys", keys).with("partial", true);
    add(level, "sort", &[tuples.id], params, tuples.tuple)
}
