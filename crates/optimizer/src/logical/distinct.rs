//! Rewrites DISTINCT aggregates as two groupings: the first by the keys and the value, which keeps
//! each value once, the second by the keys. Counts, sums, averages, minima and maxima of other
//! values are computed in parts in the first and merged in the second.
//!
//! This pays because group tables are partitioned and typed; the per-group sets of a DISTINCT
//! function are neither.

use std::collections::{HashMap, HashSet};

use tessera_plan::{Expr, Rule};

use crate::logical::fields::Fields;
use crate::logical::parts::Parts;
use crate::logical::relation::{Aggregate, Call, Name, Relation, parameters};
use crate::merging::Merging;

impl Fields<'_> {
    /// Splits the groupings of a relation in two where their DISTINCT aggregates share one value.
    /// `output` lists the fields that are read.
    pub fn group_distinct(&mut self, relation: Relation, output: &[Name]) -> Relation {
        if !self.types().uses(Rule::DistinctAggregates) {
            return relation;
        }
        let read = read_names(&relation, output);
        self.group_distinct_read(relation, &read)
    }

    fn group_distinct_read(&mut self, mut relation: Relation, read: &HashSet<Name>) -> Relation {
        for input in relation.inputs_mut() {
            let taken = std::mem::replace(input, Relation::placeholder());
            *input = self.group_distinct_read(taken, read);
        }
        match relation {
            Relation::Aggregate(mut aggregate) => {
                // Drop unused DISTINCT aggregates: as a key the value would always be computed and
                // might raise an error.
                aggregate.calls.retain(|(name, call)| !call.distinct || read.contains(name));
                self.split_grouping(*aggregate)
            }
            other => other,
        }
    }

    /// Splits a grouping in two if its DISTINCT aggregates share one value.
    pub(super) fn split_grouping(&mut self, aggregate: Aggregate) -> Relation {
        let typed = |value: Expr| self.atom_of(&value).ok().map(|atom| (value, atom));
        let Some((value, atom)) = distinct_value(&aggregate)
            .filter(|value| !self.types().volatile(value) && self.parts_are_small(&aggregate))
            .and_then(typed)
        else {
            return Relation::Aggregate(Box::new(aggregate));
        };
        let merging = |(name, call): &(Name, Call)| {
            let merging = Merging::of(&call.function, &self.call_atom(call)?)?;
            Some((name.clone(), merging, call.clone()))
        };
        let others = aggregate.calls.iter().filter(|(_, call)| !call.distinct).map(merging);
        let Some(others) = others.collect::<Option<Vec<_>>>() else {
            return Relation::Aggregate(Box::new(aggregate));
        };
        let Parts { parts, merging } = self.split_calls(others);
        let mut merging: HashMap<Name, Call> =
            merging.into_iter().map(|(name, call, _)| (name, call)).collect();
        let Aggregate { input, keys, mut calls, .. } = aggregate;
        let name = self.fresh("distinct value", atom);
        let names: Vec<(Name, Expr)> =
            keys.iter().map(|(name, _)| (name.clone(), Expr::Field(name.clone()))).collect();
        let mut first = keys;
        first.push((name.clone(), value));
        for (called, call) in &mut calls {
            match merging.remove(called) {
                Some(merge) => *call = merge,
                None => (call.args, call.distinct) = (vec![Expr::Field(name.clone())], false),
            }
        }
        let once = Aggregate { input, keys: first, sets: None, grouping: None, calls: parts };
        let input = Relation::Aggregate(Box::new(once));
        let twice = Aggregate { input, keys: names, sets: None, grouping: None, calls };
        Relation::Aggregate(Box::new(twice))
    }

    /// Whether all other aggregates have fixed-width partial states; a string for each distinct
    /// value would cost more than the sets.
    fn parts_are_small(&self, aggregate: &Aggregate) -> bool {
        let fixed = |expr: &Expr| self.atom_of(expr).is_ok_and(|atom| atom.width_bytes().is_some());
        let small = |call: &Call| {
            call.distinct || &*call.function == "count" || call.args.iter().all(fixed)
        };
        aggregate.calls.iter().all(|(_, call)| small(call))
    }
}

/// Returns the fields within the relation that are read if the fields in `output` are.
pub(super) fn read_names(relation: &Relation, output: &[Name]) -> HashSet<Name> {
    let mut computed: HashMap<Name, Vec<Name>> = HashMap::new();
    let mut open = output.to_vec();
    collect_reads(relation, &mut computed, &mut open);
    let mut read = HashSet::new();
    while let Some(name) = open.pop() {
        if read.insert(name.clone()) {
            open.extend(computed.get(&name).into_iter().flatten().cloned());
        }
    }
    read
}

/// Collects the inputs of each computed field, and the fields that are read unconditionally.
fn collect_reads(
    relation: &Relation,
    computed: &mut HashMap<Name, Vec<Name>>,
    read: &mut Vec<Name>,
) {
    let names = |expr: &Expr| expr.fields().into_iter().chain(parameters(expr)).collect::<Vec<_>>();
    match relation {
        Relation::Map { exprs, .. } => {
            for (name, expr) in
                exprs.iter().filter(|(name, expr)| *expr != Expr::Field(name.clone()))
            {
                computed.entry(name.clone()).or_default().extend(names(expr));
            }
        }
        Relation::Aggregate(aggregate) => {
            for (name, call) in &aggregate.calls {
                computed.entry(name.clone()).or_default().extend(call.exprs().flat_map(names));
            }
            read.extend(aggregate.keys.iter().flat_map(|(_, key)| names(key)));
        }
        Relation::Window(window) => {
            for (name, call) in &window.calls {
                computed.entry(name.clone()).or_default().extend(call.exprs().flat_map(names));
            }
            let order = window.order.iter().map(|key| &key.expr);
            read.extend(window.partition.iter().chain(order).flat_map(names));
        }
        Relation::Union { .. } | Relation::Recursive(_) | Relation::Unnest { .. } => {
            read.extend(relation.inputs().into_iter().flat_map(Relation::names));
        }
        other => read.extend(other.exprs().into_iter().flat_map(names)),
    }
    relation.inputs().into_iter().for_each(|input| collect_reads(input, computed, read));
}

/// Returns the argument that all DISTINCT calls share, if the other calls can be merged from
/// partial states. Functions that depend on the order of their input are not split.
fn distinct_value(aggregate: &Aggregate) -> Option<Expr> {
    let value = match &aggregate.calls.iter().find(|(_, call)| call.distinct)?.1.args[..] {
        [value] => value,
        _ => return None,
    };
    let fits = |call: &Call| match &*call.function {
        _ if !call.order_by.is_empty() => false,
        "count" | "sum" | "avg" | "min" | "max" if !call.distinct => true,
        "count" | "sum" | "avg" | "min" | "max" => {
            call.filter.is_none() && call.args == [value.clone()]
        }
        _ => false,
    };
    let all = aggregate.sets.is_none() && aggregate.calls.iter().all(|(_, call)| fits(call));
    all.then(|| value.clone())
}
