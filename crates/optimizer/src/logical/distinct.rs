//! Aggregates of distinct values as two groupings: first by the keys and the value, which leaves
//! each value once, then by the keys. Counts, sums and extremes of other values are computed for
//! the parts and merged.
//!
//! Group tables are partitioned and typed; the sets of values that a function with DISTINCT keeps
//! for each group are neither.

use std::collections::{HashMap, HashSet};

use tessera_plan::{Expr, Functions, Rule, Scalar};
use tessera_types::Atom;

use crate::logical::fields::Fields;
use crate::logical::relation::{Aggregate, Call, Name, Relation, parameters};

impl Fields<'_> {
    /// The relation, of which these fields are read, with its groupings in two steps where their
    /// distinct values are all the same.
    pub fn group_distinct(&mut self, relation: Relation, output: &[Name]) -> Relation {
        if !self.types().uses(Rule::DistinctAggregates) {
            return relation;
        }
        let read = read_names(&relation, output);
        self.group_distinct_read(relation, &read)
    }

    fn group_distinct_read(&mut self, mut relation: Relation, read: &HashSet<Name>) -> Relation {
        for input in relation.inputs_mut() {
            let taken = std::mem::replace(input, Relation::nothing());
            *input = self.group_distinct_read(taken, read);
        }
        match relation {
            Relation::Aggregate(mut aggregate) => {
                // A value that nothing reads must not become a key, which is computed in any case
                // and may raise an error.
                aggregate.calls.retain(|(name, call)| !call.distinct || read.contains(name));
                self.in_two_steps(*aggregate)
            }
            other => other,
        }
    }

    fn in_two_steps(&mut self, aggregate: Aggregate) -> Relation {
        let typed = |value: Expr| self.atom_of(&value).ok().map(|atom| (value, atom));
        let Some((value, atom)) = distinct_value(&aggregate)
            .filter(|value| !self.types().volatile(value) && self.parts_are_small(&aggregate))
            .and_then(typed)
        else {
            return Relation::Aggregate(Box::new(aggregate));
        };
        let Aggregate { input, keys, calls, .. } = aggregate;
        let name = self.fresh("distinct value", atom);
        let names: Vec<(Name, Expr)> =
            keys.iter().map(|(name, _)| (name.clone(), Expr::Field(name.clone()))).collect();
        let mut output = names.clone();
        let mut first = keys;
        first.push((name.clone(), value));
        let (mut partial, mut whole) = (Vec::new(), Vec::new());
        for (called, call) in calls {
            if call.distinct {
                output.push((called.clone(), Expr::Field(called.clone())));
                whole.push((
                    called,
                    Call { args: vec![Expr::Field(name.clone())], distinct: false, ..call },
                ));
                continue;
            }
            let atom = self.atoms().get(&called).cloned().unwrap_or(Atom::Int64);
            let part = self.fresh("part", atom.clone());
            let function: Name =
                if &*call.function == "count" { "sum".into() } else { call.function.clone() };
            // A sum of sums may be wider than what it sums.
            let wide = self.library.aggregate(&function, &[(atom.clone(), true)], false);
            let merged = self.fresh("merged", wide.map_or_else(|_| atom.clone(), |(wide, _)| wide));
            let mut value = Expr::Field(merged.clone()).cast(atom.clone());
            if &*call.function == "count" {
                // Of no tuples there are none, not NULL.
                value = Expr::Coalesce(vec![value, Expr::Constant(Scalar::Integer(0), atom)]);
            }
            output.push((called, value));
            partial.push((part.clone(), call));
            let args = vec![Expr::Field(part)];
            whole.push((
                merged,
                Call {
                    function,
                    args,
                    distinct: false,
                    filter: None,
                    order_by: Vec::new(),
                    limit: None,
                },
            ));
        }
        let once = Aggregate { input, keys: first, sets: None, grouping: None, calls: partial };
        let twice = Aggregate {
            input: Relation::Aggregate(Box::new(once)),
            keys: names,
            sets: None,
            grouping: None,
            calls: whole,
        };
        Relation::Map { input: Box::new(Relation::Aggregate(Box::new(twice))), exprs: output }
    }

    /// Whether what is not distinct has states of a fixed width: a string for each distinct value
    /// costs more than the sets.
    fn parts_are_small(&self, aggregate: &Aggregate) -> bool {
        let fixed = |expr: &Expr| self.atom_of(expr).is_ok_and(|atom| atom.width_bytes().is_some());
        let small = |call: &Call| {
            call.distinct || &*call.function == "count" || call.args.iter().all(fixed)
        };
        aggregate.calls.iter().all(|(_, call)| small(call))
    }
}

/// The fields of all relations within this one that something reads, where these of its own are.
fn read_names(relation: &Relation, output: &[Name]) -> HashSet<Name> {
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

/// Adds what each field is computed from, and the fields that are read whatever becomes of the
/// others.
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
        Relation::Union { .. } | Relation::Recursive(_) | Relation::Unnest { .. } => {
            read.extend(relation.inputs().into_iter().flat_map(Relation::names));
        }
        other => read.extend(other.exprs().into_iter().flat_map(names)),
    }
    relation.inputs().into_iter().for_each(|input| collect_reads(input, computed, read));
}

/// The expression whose distinct values all calls with DISTINCT are of, where the others can be
/// merged from parts. Functions for which the order of the values counts are left as they are.
fn distinct_value(aggregate: &Aggregate) -> Option<Expr> {
    let value = match &aggregate.calls.iter().find(|(_, call)| call.distinct)?.1.args[..] {
        [value] => value,
        _ => return None,
    };
    let fits = |call: &Call| match &*call.function {
        _ if !call.order_by.is_empty() => false,
        "count" | "sum" | "min" | "max" if !call.distinct => true,
        // An average is none of its parts' averages.
        "count" | "sum" | "avg" | "min" | "max" if call.distinct => {
            call.filter.is_none() && call.args == [value.clone()]
        }
        _ => false,
    };
    let all = aggregate.sets.is_none() && aggregate.calls.iter().all(|(_, call)| fits(call));
    all.then(|| value.clone())
}
