//! Lowering of grouping sets.
//!
//! The groups of a set are merged from those of a finer set where possible: ROLLUP reads its input
//! once and, for all but the finest set, groups instead of tuples (Gray et al., Data Cube, 1997).

use std::cmp::Reverse;

use tessera_plan::{Expr, Functions, Params, Rule, Scalar};
use tessera_types::{Atom, Field, Result, Tuple};

use super::node::add;
use super::union::merge_nullable;
use super::{Level, LoweredNode, Lowering};
use crate::logical::relation::{Aggregate, Call, Name};
use crate::merging::{Merging, merging_call};

/// A call that can be merged from the groups of a finer set.
struct MergedCall {
    name: Name,
    merging: Merging,
    result: Atom,
    /// The fields with the aggregates of the finer groups.
    parts: Vec<Name>,
}

impl MergedCall {
    /// Whether the aggregate itself is what coarser sets merge.
    fn is_own_part(&self) -> bool {
        self.parts == [self.name.clone()]
    }
}

impl Lowering<'_> {
    /// Lowers grouping sets as the union of one grouping per set; keys that are not part of a set
    /// are NULL.
    pub(super) fn grouping_sets(
        &mut self,
        aggregate: &Aggregate,
        sets: &[Vec<usize>],
        calls: &[(Name, Call)],
        input: LoweredNode,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let key_exprs: Vec<Expr> = aggregate.keys.iter().map(|(_, expr)| expr.clone()).collect();
        let (input, key_fields) = self.with_computed(level, input, &key_exprs, "key")?;
        let grouped = self.groups_of_sets(sets, &key_fields, calls, &input, level)?;
        let mut inputs = Vec::with_capacity(sets.len());
        let mut fields: Option<Vec<Field>> = None;
        for (set, grouped) in sets.iter().zip(grouped) {
            let mut exprs: Vec<(Name, Expr)> = Vec::new();
            let mut bits: i128 = 0;
            for (position, (name, _)) in aggregate.keys.iter().enumerate() {
                let part = set.contains(&position);
                bits = bits << 1 | i128::from(!part);
                let atom = self.types.atoms.get(name).cloned().unwrap_or(Atom::Null);
                let value =
                    if part { Expr::Field(key_fields[position].clone()) } else { Expr::null(atom) };
                exprs.push((name.clone(), value));
            }
            if let Some((name, atom)) = &aggregate.grouping {
                exprs.push((name.clone(), Expr::Constant(Scalar::Integer(bits), atom.clone())));
            }
            exprs.extend(calls.iter().map(|(name, _)| (name.clone(), Expr::Field(name.clone()))));
            let mapped = self.map(level, grouped, exprs)?;
            fields = Some(merge_nullable(fields, mapped.tuple.fields()));
            inputs.push(mapped.id);
        }
        let tuple = Tuple::new(fields.unwrap_or_default());
        Ok(add(level, "union", &inputs, Params::new(), tuple))
    }

    /// Groups the input by each set.
    fn groups_of_sets(
        &mut self,
        sets: &[Vec<usize>],
        key_fields: &[Name],
        calls: &[(Name, Call)],
        input: &LoweredNode,
        level: &mut Level,
    ) -> Result<Vec<LoweredNode>> {
        let keys: Vec<Vec<Name>> = sets.iter().map(|set| fields_of_set(set, key_fields)).collect();
        let merged = self.merged_calls(calls, &input.tuple, level)?;
        let finer = match &merged {
            Some(_) => finer_sets(&keys),
            None => vec![None; keys.len()],
        };
        // A set has fewer keys than the finer one that it reads.
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|set| Reverse(keys[*set].len()));
        let mut grouped: Vec<Option<LoweredNode>> = vec![None; keys.len()];
        for set in order {
            let merged = merged.as_deref().unwrap_or_default();
            let is_read = finer.contains(&Some(set));
            let read = finer[set].and_then(|finer| grouped[finer].clone());
            let calls = match &read {
                None => with_parts(calls, merged, is_read),
                Some(_) => merging_calls(merged, is_read),
            };
            grouped[set] =
                Some(self.group(level, read.as_ref().unwrap_or(input), &keys[set], &calls)?);
        }
        Ok(grouped.into_iter().flatten().collect())
    }

    /// Returns how to merge the calls, if all can be merged.
    fn merged_calls(
        &mut self,
        calls: &[(Name, Call)],
        input: &Tuple,
        level: &Level,
    ) -> Result<Option<Vec<MergedCall>>> {
        if !self.types.uses(Rule::CoarserSets) {
            return Ok(None);
        }
        let mut merged = Vec::with_capacity(calls.len());
        for (name, call) in calls {
            let args = call.args.iter().map(|arg| self.type_of(arg, input, level));
            let args = args.collect::<Result<Vec<_>>>()?;
            let (result, _) = self.types.library.aggregate(&call.function, &args, call.distinct)?;
            let atoms: Vec<Atom> = args.into_iter().map(|(atom, _)| atom).collect();
            let is_volatile = call.exprs().any(|expr| self.types.volatile(expr));
            let Some(merging) = Merging::exact(call, &atoms, &result).filter(|_| !is_volatile)
            else {
                return Ok(None);
            };
            let parts = match merging.parts {
                [part] if *part.function == *call.function => vec![name.clone()],
                parts => parts.iter().map(|_| self.name("part")).collect(),
            };
            merged.push(MergedCall { name: name.clone(), merging, result, parts });
        }
        Ok(Some(merged))
    }
}

/// Returns the fields of the keys of a set, each once.
fn fields_of_set(set: &[usize], key_fields: &[Name]) -> Vec<Name> {
    let mut keys: Vec<Name> = Vec::with_capacity(set.len());
    for position in set {
        if !keys.contains(&key_fields[*position]) {
            keys.push(key_fields[*position].clone());
        }
    }
    keys
}

/// For each set, the set with the fewest keys that has all its keys and more.
fn finer_sets(sets: &[Vec<Name>]) -> Vec<Option<usize>> {
    let is_finer = |finer: &[Name], set: &[Name]| {
        finer.len() > set.len() && set.iter().all(|key| finer.contains(key))
    };
    let finest_for = |set: &Vec<Name>| {
        let finer = (0..sets.len()).filter(|other| is_finer(&sets[*other], set));
        finer.min_by_key(|other| sets[*other].len())
    };
    sets.iter().map(finest_for).collect()
}

/// Returns the calls over tuples, with the parts for a coarser set if there is one.
fn with_parts(calls: &[(Name, Call)], merged: &[MergedCall], is_read: bool) -> Vec<(Name, Call)> {
    let mut all = calls.to_vec();
    let merged = merged.iter().filter(|merged| is_read && !merged.is_own_part());
    for merged in merged {
        let call = calls.iter().find(|(name, _)| *name == merged.name);
        let parts = call.into_iter().flat_map(|(_, call)| merged.merging.part_calls(call));
        all.extend(merged.parts.iter().cloned().zip(parts));
    }
    all
}

/// Returns the calls over the groups of a finer set, with the parts for a coarser set if there is
/// one.
fn merging_calls(merged: &[MergedCall], is_read: bool) -> Vec<(Name, Call)> {
    let mut all = Vec::with_capacity(merged.len());
    for call in merged {
        all.push((call.name.clone(), merging_call(call.merging.merge, &call.parts)));
        if !is_read || call.is_own_part() {
            continue;
        }
        for (part, name) in call.merging.parts.iter().zip(&call.parts) {
            if let Some(merging) = Merging::of(part.function, &call.result) {
                all.push((name.clone(), merging_call(merging.merge, std::slice::from_ref(name))));
            }
        }
    }
    all
}
