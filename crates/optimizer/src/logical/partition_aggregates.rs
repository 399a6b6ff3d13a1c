//! Aggregates over whole partitions without a sort: a grouping by the keys of PARTITION BY is
//! joined with the tuples. Both read one input; the join takes NULL keys as equal, as partitions
//! do.

use std::collections::{BTreeSet, HashSet};

use tessera_plan::{Expr, Rule};
use tessera_types::Atom;

use crate::logical::distinct::read_names;
use crate::logical::estimate::Estimates;
use crate::logical::fields::Fields;
use crate::logical::lateral_limit::cheap;
use crate::logical::relation::{Aggregate, Call, Join, Kind, Name, Relation};
use crate::logical::window::{Bound, Exclude, Unit, Window, WindowCall};

/// The fewest tuples for each group. With fewer, the groups and the hash table of the join cost as
/// much as a sort.
const TUPLES_PER_GROUP: f64 = 4.0;
/// The fewest tuples for which an input that is not cheap to compute twice is stored.
const STORED_ROWS_MIN: f64 = 100_000.0;

impl Fields<'_> {
    /// Replaces windows whose calls all are aggregates over whole partitions. `output` lists the
    /// fields that are read.
    pub(crate) fn join_partition_aggregates(
        &mut self,
        relation: Relation,
        output: &[Name],
        estimates: &Estimates,
    ) -> Relation {
        if !self.types().uses(Rule::PartitionAggregates) {
            return relation;
        }
        let read = read_names(&relation, output);
        self.join_partitions(relation, &read, estimates, false)
    }

    /// `nested`: the relation may be a plan that runs many times, and cannot be stored.
    fn join_partitions(
        &mut self,
        mut relation: Relation,
        read: &HashSet<Name>,
        estimates: &Estimates,
        nested: bool,
    ) -> Relation {
        if let Relation::Window(_) = relation {
            return self.join_windows(relation, read, estimates, nested);
        }
        let (first, second) = match &relation {
            Relation::Join(join) => (nested, nested || join.correlated),
            Relation::Recursive(_) => (nested, true),
            _ => (nested, nested),
        };
        for (number, input) in relation.inputs_mut().into_iter().enumerate() {
            let taken = std::mem::replace(input, Relation::placeholder());
            let nested = if number == 0 { first } else { second };
            *input = self.join_partitions(taken, read, estimates, nested);
        }
        relation
    }

    /// Rewrites windows that stand directly above one another.
    fn join_windows(
        &mut self,
        mut relation: Relation,
        read: &HashSet<Name>,
        estimates: &Estimates,
        nested: bool,
    ) -> Relation {
        let mut windows = Vec::new();
        while let Relation::Window(mut window) = relation {
            relation = std::mem::replace(&mut window.input, Relation::placeholder());
            windows.push(window);
        }
        let input = self.join_partitions(relation, read, estimates, nested);
        let names: HashSet<Name> = input.names().into_iter().collect();
        let fits: Vec<bool> =
            windows.iter().map(|window| self.is_of_whole_partitions(window, &names)).collect();
        // A sort that another window needs serves these aggregates, too.
        let sorted: Vec<BTreeSet<Name>> = (windows.iter().zip(&fits))
            .filter(|(_, fits)| !**fits)
            .map(|(window, _)| window.partition_fields().cloned().collect())
            .collect();
        let pays = |window: &Window| {
            let partition: BTreeSet<Name> = window.partition_fields().cloned().collect();
            !sorted.contains(&partition)
                && (window.partition.is_empty() || has_few_groups(window, &input, estimates))
        };
        let joined: Vec<bool> =
            windows.iter().zip(&fits).map(|(window, fits)| *fits && pays(window)).collect();
        let is_cheap = cheap(&input);
        let is_worth = is_cheap || !nested && estimates.profile(&input).rows >= STORED_ROWS_MIN;
        let twice = (joined.contains(&true) && is_worth).then(|| self.twice(&input, nested));
        let shared = twice.flatten();
        let mut relation = shared.clone().unwrap_or(input);
        for (mut window, joined) in windows.into_iter().zip(joined).rev() {
            relation = match &shared {
                Some(shared) if joined => {
                    self.joined_with_groups(relation, *window, shared.clone(), read)
                }
                _ => {
                    window.input = relation;
                    Relation::Window(window)
                }
            };
        }
        relation
    }

    /// Whether all calls are aggregates over whole partitions of these fields, which no order of
    /// the tuples changes.
    fn is_of_whole_partitions(&self, window: &Window, names: &HashSet<Name>) -> bool {
        let is_known = |expr: &Expr| expr.fields().iter().all(|name| names.contains(name));
        let is_key = |expr: &Expr| {
            let atom = self.atom_of(expr);
            atom.is_ok_and(|atom| !atom.is_nested() && atom != Atom::Null)
        };
        window
            .partition
            .iter()
            .all(|expr| matches!(expr, Expr::Field(_)) && is_known(expr) && is_key(expr))
            && window.calls.iter().all(|(_, call)| {
                is_whole(call, !window.order.is_empty())
                    && is_unordered(call)
                    && call.exprs().all(|expr| is_known(expr) && !self.types().volatile(expr))
            })
    }

    /// Joins the tuples with the groups of `input`.
    fn joined_with_groups(
        &mut self,
        relation: Relation,
        window: Window,
        input: Relation,
        read: &HashSet<Name>,
    ) -> Relation {
        let mut keys: Vec<(Name, Expr)> = Vec::with_capacity(window.partition.len());
        let mut conditions = Vec::with_capacity(window.partition.len());
        for expr in window.partition {
            let Ok(atom) = self.atom_of(&expr) else { continue };
            let name = self.fresh("partition key", atom);
            let same = vec![expr.clone(), Expr::Field(name.clone())];
            conditions.push(Expr::call("is_not_distinct", same));
            keys.push((name, expr));
        }
        // An unused value of a DISTINCT aggregate would be computed as a key.
        let calls = window.calls.into_iter().filter(|(name, _)| read.contains(name));
        let calls: Vec<(Name, Call)> = calls.map(|(name, call)| (name, aggregate(call))).collect();
        if calls.is_empty() {
            return relation;
        }
        let groups = Aggregate { input, keys, sets: None, grouping: None, calls };
        let groups = match self.types().uses(Rule::DistinctAggregates) {
            true => self.split_grouping(groups),
            false => Relation::Aggregate(Box::new(groups)),
        };
        Relation::Join(Box::new(Join {
            kind: Kind::Inner,
            left: relation,
            right: groups,
            conditions,
            mark: None,
            null_aware: false,
            correlated: false,
        }))
    }
}

/// Whether the frame is the whole partition.
fn is_whole(call: &WindowCall, has_order: bool) -> bool {
    let frame = &call.frame;
    // Without an order, all tuples are peers.
    let are_peers = !has_order && frame.unit != Unit::Rows;
    let from_first = match frame.start {
        Bound::UnboundedPreceding => true,
        Bound::CurrentRow => are_peers,
        _ => false,
    };
    let to_last = match frame.end {
        Bound::UnboundedFollowing => true,
        Bound::CurrentRow => are_peers,
        _ => false,
    };
    from_first && to_last && frame.exclude == Exclude::NoOthers
}

/// Whether the call is an aggregate that does not depend on the order of the tuples.
fn is_unordered(call: &WindowCall) -> bool {
    let function =
        matches!(&*call.function, "count" | "sum" | "avg" | "min" | "max" | "bool_and" | "bool_or");
    function && call.order_by.is_empty() && !call.ignore_nulls
}

fn aggregate(call: WindowCall) -> Call {
    let WindowCall { function, args, distinct, filter, order_by, .. } = call;
    Call { function, args, distinct, filter, order_by, limit: None }
}

/// Whether the groups are few enough.
fn has_few_groups(window: &Window, input: &Relation, estimates: &Estimates) -> bool {
    let groups = Aggregate {
        input: input.clone(),
        keys: window
            .partition_fields()
            .map(|name| (name.clone(), Expr::Field(name.clone())))
            .collect(),
        sets: None,
        grouping: None,
        calls: Vec::new(),
    };
    let groups = estimates.profile(&Relation::Aggregate(Box::new(groups))).rows;
    groups * TUPLES_PER_GROUP <= estimates.profile(input).rows
}
