//! Lowering of joins with the nearest tuple and of joins by position.
//!
//! A join with the nearest tuple is arranged like a window function: the tuples of both sides, in
//! one stream, are sorted by the keys and the compared value. `asof_scan` then gives each left
//! tuple the right tuple that it has seen last.

use std::collections::HashSet;

use tessera_plan::{Expr, Params, Scalar, SortKey, Value};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use super::node::{add, with_fields};
use super::sort::ascending;
use super::union::merge_nullable;
use super::{Level, LoweredNode, Lowering};
use crate::logical::as_of::AsOf;
use crate::logical::relation::{Name, Relation};

/// The fields of the stream that has the tuples of both sides.
struct BothSides {
    keys: Vec<Name>,
    value: Name,
    /// Whether a tuple is of the right side.
    is_right: Name,
    right: Vec<Field>,
}

impl Lowering<'_> {
    pub(super) fn as_of(
        &mut self,
        join: &AsOf,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let names = |relation: &Relation| relation.names().into_iter().collect::<HashSet<Name>>();
        let read = with_fields(needed, &join.exprs().cloned().collect::<Vec<_>>());
        let below =
            |side: &Relation| read.intersection(&names(side)).cloned().collect::<HashSet<Name>>();
        let left = self.lower(&join.left, &below(&join.left), level)?;
        let right = self.lower(&join.right, &below(&join.right), level)?;
        let (left_tuple, right_tuple) = (left.tuple.clone(), right.tuple.clone());
        let kept = |tuple: &Tuple| -> Vec<Field> {
            let fields = tuple.fields().iter();
            fields.filter(|field| needed.contains(&field.name)).cloned().collect()
        };
        let both = BothSides {
            keys: join.keys.iter().map(|_| self.name("key")).collect(),
            value: self.name("value"),
            is_right: self.name("right"),
            right: kept(&right_tuple),
        };
        // A left field that is a key is read from there.
        let in_key = |name: &Name| {
            let is_same = |expr: &Expr| *expr == Expr::Field(name.clone());
            match join.keys.iter().position(|(left, _)| is_same(left)) {
                Some(position) => Some(both.keys[position].clone()),
                None => is_same(&join.values.0).then(|| both.value.clone()),
            }
        };
        let fields = kept(&left_tuple).into_iter();
        let (keyed, plain): (Vec<Field>, Vec<Field>) =
            fields.partition(|field| in_key(&field.name).is_some());
        let left = self.side_of_both(join, &both, &plain, left, (false, level))?;
        let right = self.side_of_both(join, &both, &plain, right, (true, level))?;
        let fields = merge_nullable(Some(left.tuple.fields().to_vec()), right.tuple.fields());
        let union = add(level, "union", &[left.id, right.id], Params::new(), Tuple::new(fields));
        let scanned = self.scanned_as_of(join, &both, union, level);
        let same = |field: &Field| (field.name.clone(), Expr::Field(field.name.clone()));
        let mut exprs: Vec<(Name, Expr)> = Vec::with_capacity(needed.len());
        for Field { name, .. } in &keyed {
            let key = in_key(name).ok_or_else(|| Error::internal("a key without a field"))?;
            exprs.push((name.clone(), Expr::Field(key)));
        }
        exprs.extend(plain.iter().chain(&both.right).map(same));
        match exprs.is_empty() {
            true => Ok(scanned),
            false => self.map(level, scanned, exprs),
        }
    }

    /// Gives the tuples of one side the fields of both; those of the other side are NULL.
    fn side_of_both(
        &mut self,
        join: &AsOf,
        both: &BothSides,
        left: &[Field],
        side: LoweredNode,
        (is_right, level): (bool, &mut Level),
    ) -> Result<LoweredNode> {
        let of_side = |(left, right): &(Expr, Expr)| if is_right { right } else { left }.clone();
        let keys = join.keys.iter().map(of_side);
        let mut exprs: Vec<(Name, Expr)> = both.keys.iter().cloned().zip(keys).collect();
        exprs.push((both.value.clone(), of_side(&join.values)));
        exprs.push((both.is_right.clone(), Expr::boolean(is_right)));
        for (fields, is_own) in [(left, !is_right), (&both.right, is_right)] {
            for field in fields {
                let atom = || field.atom().cloned().unwrap_or(Atom::Null);
                let value = match is_own {
                    true => Expr::Field(field.name.clone()),
                    false => Expr::Constant(Scalar::Null, atom()),
                };
                exprs.push((field.name.clone(), value));
            }
        }
        self.map(level, side, exprs)
    }

    /// Sorts the tuples of both sides, and joins them in this order.
    fn scanned_as_of(
        &mut self,
        join: &AsOf,
        both: &BothSides,
        union: LoweredNode,
        level: &mut Level,
    ) -> LoweredNode {
        let mut keys: Vec<SortKey> = both.keys.iter().map(ascending).collect();
        // A left tuple whose value is NULL comes before all right tuples.
        keys.push(SortKey {
            field: both.value.clone(),
            descending: join.nearest.is_above(),
            nulls_first: true,
        });
        // Among equal values, a right tuple comes first where an equal value matches.
        keys.push(SortKey {
            field: both.is_right.clone(),
            descending: join.nearest.includes_equal(),
            nulls_first: false,
        });
        let keys: Vec<Value> = keys.iter().map(SortKey::to_value).collect();
        let params = Params::new().with("keys", keys).with("partition", both.keys.len() as i64);
        let sorted = add(level, "sort", &[union.id], params, union.tuple);
        let (bounds, starts) = self.window_bounds(sorted, &both.keys, [&both.value], level);
        let tuple = bounds.tuple.clone();
        let right = both.right.iter().map(|field| &field.name);
        let mut params = starts
            .with("is_right", Expr::Field(both.is_right.clone()))
            .with("fields", Value::names(right));
        if join.outer {
            params.set("outer", true);
        }
        add(level, "asof_scan", &[bounds.id], params, tuple)
    }

    pub(super) fn positional(
        &mut self,
        left: &Relation,
        right: &Relation,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let mut ids = Vec::with_capacity(2);
        let mut fields = Vec::new();
        for side in [left, right] {
            let names: HashSet<Name> = side.names().into_iter().collect();
            let below = needed.intersection(&names).cloned().collect();
            let lowered = self.lower(side, &below, level)?;
            ids.push(lowered.id);
            fields.extend(lowered.tuple.fields().iter().map(|field| field.with_nullable(true)));
        }
        let params = Params::new().with("pad", true);
        Ok(add(level, "zip", &ids, params, Tuple::new(fields)))
    }
}
