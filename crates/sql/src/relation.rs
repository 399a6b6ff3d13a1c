//! Relations: what a query means, between the logical plan and sub-operators.
//!
//! Names are unique within a whole query, so that an expression can move anywhere its fields exist, and a rename costs
//! nothing. A correlated subquery is a join whose right side reads fields of the left as parameters.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_plan::Expr;
use tessera_types::{Atom, Tuple};

use crate::catalog::Table;

/// The name of a field, unique within the query.
pub(crate) type Name = Arc<str>;

/// A relation.
#[derive(Debug, Clone)]
pub(crate) enum Relation {
    /// Tuples of a table that satisfy all predicates.
    Scan { table: Arc<Table>, columns: Vec<(Name, usize)>, predicates: Vec<Expr> },
    /// Constant tuples.
    Values { tuple: Tuple, rows: Vec<Vec<Expr>> },
    /// Tuples that satisfy all predicates, tested in this order.
    Filter { input: Box<Relation>, predicates: Vec<Expr> },
    /// Exactly these fields.
    Map { input: Box<Relation>, exprs: Vec<(Name, Expr)> },
    /// Two relations joined.
    Join(Box<Join>),
    /// Groups.
    Aggregate(Box<Aggregate>),
    /// Sorted, and perhaps only the first ones.
    Sort { input: Box<Relation>, keys: Vec<Key>, offset: u64, limit: Option<u64> },
    /// The first ones.
    Limit { input: Box<Relation>, offset: u64, limit: Option<u64> },
    /// Tuples of all inputs; each names the fields that become the output's, by position.
    Union { inputs: Vec<(Relation, Vec<Name>)>, names: Vec<Name> },
    /// Tuples of a base, then, again and again, of a step over those that the last time gave.
    Recursive(Box<Recursive>),
    /// In the step of a recursion: the tuples that the last time gave, with the fields at these positions.
    Work { recursion: Name, columns: Vec<(Name, usize)> },
    /// Tuples that several places read, and that are others each time they are computed: all places read the same. Relations
    /// with one `id` are one.
    Shared { id: Name, input: Box<Relation> },
    /// Elements in place of lists: (list, element).
    Unnest { input: Box<Relation>, lists: Vec<(Name, Name)>, outer: bool },
}

/// A recursive query.
#[derive(Debug, Clone)]
pub(crate) struct Recursive {
    /// What [`Relation::Work`] calls it.
    pub(crate) id: Name,
    /// The first tuples, and which fields of them become the output's.
    pub(crate) base: (Relation, Vec<Name>),
    /// What follows on the tuples before, likewise.
    pub(crate) step: (Relation, Vec<Name>),
    /// The output's fields.
    pub(crate) names: Vec<Name>,
    /// A tuple that was there before does not come again.
    pub(crate) distinct: bool,
}

/// How two relations are joined, seen from the left one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Inner,
    Left,
    Full,
    Semi,
    Anti,
    /// The left one with a boolean field: whether there is a match.
    Mark,
    /// As left; a second match is an error.
    Single,
}

/// Two relations joined.
#[derive(Debug, Clone)]
pub(crate) struct Join {
    pub(crate) kind: Kind,
    pub(crate) left: Relation,
    pub(crate) right: Relation,
    /// What a match satisfies, in the order of writing.
    pub(crate) conditions: Vec<Expr>,
    /// The field that [`Kind::Mark`] adds.
    pub(crate) mark: Option<Name>,
    /// The only condition is an equality in the sense of `IN`: unknown when either side is NULL.
    pub(crate) null_aware: bool,
    /// The right side reads fields of the left one as parameters.
    pub(crate) correlated: bool,
}

/// A key of an order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// A call of an aggregate function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) function: Name,
    pub(crate) args: Vec<Expr>,
    pub(crate) distinct: bool,
    pub(crate) filter: Option<Expr>,
    pub(crate) order_by: Vec<Key>,
    /// Of a list: how many values it has at most, the first ones.
    pub(crate) limit: Option<u64>,
}

/// Groups of tuples with equal keys.
#[derive(Debug, Clone)]
pub(crate) struct Aggregate {
    pub(crate) input: Relation,
    pub(crate) keys: Vec<(Name, Expr)>,
    /// Positions of the keys of each grouping, when there are several.
    pub(crate) sets: Option<Vec<Vec<usize>>>,
    /// The field that tells the groupings apart: one bit per key, set where the key is not part of the grouping.
    pub(crate) grouping: Option<(Name, Atom)>,
    pub(crate) calls: Vec<(Name, Call)>,
}

impl Relation {
    /// What stands in a place while its relation is taken out and rewritten.
    pub(crate) fn nothing() -> Relation {
        Relation::Values { tuple: Tuple::empty(), rows: Vec::new() }
    }

    /// The names of its fields, in no particular order.
    pub(crate) fn names(&self) -> Vec<Name> {
        match self {
            Relation::Scan { columns, .. } => columns.iter().map(|(name, _)| name.clone()).collect(),
            Relation::Values { tuple, .. } => tuple.fields().iter().map(|field| field.name.clone()).collect(),
            Relation::Filter { input, .. }
            | Relation::Sort { input, .. }
            | Relation::Limit { input, .. }
            | Relation::Shared { input, .. } => input.names(),
            Relation::Map { exprs, .. } => exprs.iter().map(|(name, _)| name.clone()).collect(),
            Relation::Join(join) => {
                let mut names = join.left.names();
                match join.kind {
                    Kind::Semi | Kind::Anti => {}
                    Kind::Mark => names.extend(join.mark.clone()),
                    Kind::Inner | Kind::Left | Kind::Full | Kind::Single => names.extend(join.right.names()),
                }
                names
            }
            Relation::Aggregate(aggregate) => {
                let keys = aggregate.keys.iter().map(|(name, _)| name);
                let calls = aggregate.calls.iter().map(|(name, _)| name);
                let grouping = aggregate.grouping.iter().map(|(name, _)| name);
                keys.chain(calls).chain(grouping).cloned().collect()
            }
            Relation::Union { names, .. } => names.clone(),
            Relation::Recursive(recursive) => recursive.names.clone(),
            Relation::Work { columns, .. } => columns.iter().map(|(name, _)| name.clone()).collect(),
            Relation::Unnest { input, lists, .. } => {
                let element = |name: Name| match lists.iter().find(|(list, _)| *list == name) {
                    Some((_, element)) => element.clone(),
                    None => name,
                };
                input.names().into_iter().map(element).collect()
            }
        }
    }

    /// The inputs.
    pub(crate) fn inputs(&self) -> Vec<&Relation> {
        match self {
            Relation::Scan { .. } | Relation::Values { .. } | Relation::Work { .. } => Vec::new(),
            Relation::Recursive(recursive) => vec![&recursive.base.0, &recursive.step.0],
            Relation::Filter { input, .. }
            | Relation::Map { input, .. }
            | Relation::Sort { input, .. }
            | Relation::Limit { input, .. }
            | Relation::Shared { input, .. }
            | Relation::Unnest { input, .. } => vec![input],
            Relation::Join(join) => vec![&join.left, &join.right],
            Relation::Aggregate(aggregate) => vec![&aggregate.input],
            Relation::Union { inputs, .. } => inputs.iter().map(|(input, _)| input).collect(),
        }
    }

    /// The inputs, for rewriting.
    pub(crate) fn inputs_mut(&mut self) -> Vec<&mut Relation> {
        match self {
            Relation::Scan { .. } | Relation::Values { .. } | Relation::Work { .. } => Vec::new(),
            Relation::Recursive(recursive) => {
                let Recursive { base, step, .. } = &mut **recursive;
                vec![&mut base.0, &mut step.0]
            }
            Relation::Filter { input, .. }
            | Relation::Map { input, .. }
            | Relation::Sort { input, .. }
            | Relation::Limit { input, .. }
            | Relation::Shared { input, .. }
            | Relation::Unnest { input, .. } => vec![input],
            Relation::Join(join) => {
                let Join { left, right, .. } = &mut **join;
                vec![left, right]
            }
            Relation::Aggregate(aggregate) => vec![&mut aggregate.input],
            Relation::Union { inputs, .. } => inputs.iter_mut().map(|(input, _)| input).collect(),
        }
    }

    /// The expressions of this relation itself.
    pub(crate) fn exprs(&self) -> Vec<&Expr> {
        match self {
            Relation::Scan { predicates, .. } | Relation::Filter { predicates, .. } => {
                predicates.iter().collect()
            }
            Relation::Values { rows, .. } => rows.iter().flatten().collect(),
            Relation::Map { exprs, .. } => exprs.iter().map(|(_, expr)| expr).collect(),
            Relation::Join(join) => join.conditions.iter().collect(),
            Relation::Aggregate(aggregate) => {
                let keys = aggregate.keys.iter().map(|(_, expr)| expr);
                keys.chain(aggregate.calls.iter().flat_map(|(_, call)| call.exprs())).collect()
            }
            Relation::Sort { keys, .. } => keys.iter().map(|key| &key.expr).collect(),
            Relation::Limit { .. }
            | Relation::Union { .. }
            | Relation::Recursive(_)
            | Relation::Work { .. }
            | Relation::Shared { .. }
            | Relation::Unnest { .. } => Vec::new(),
        }
    }

    /// The expressions of this relation itself, for rewriting.
    pub(crate) fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Relation::Scan { predicates, .. } | Relation::Filter { predicates, .. } => {
                predicates.iter_mut().collect()
            }
            Relation::Values { rows, .. } => rows.iter_mut().flatten().collect(),
            Relation::Map { exprs, .. } => exprs.iter_mut().map(|(_, expr)| expr).collect(),
            Relation::Join(join) => join.conditions.iter_mut().collect(),
            Relation::Aggregate(aggregate) => {
                let Aggregate { keys, calls, .. } = &mut **aggregate;
                let keys = keys.iter_mut().map(|(_, expr)| expr);
                keys.chain(calls.iter_mut().flat_map(|(_, call)| call.exprs_mut())).collect()
            }
            Relation::Sort { keys, .. } => keys.iter_mut().map(|key| &mut key.expr).collect(),
            Relation::Limit { .. }
            | Relation::Union { .. }
            | Relation::Recursive(_)
            | Relation::Work { .. }
            | Relation::Shared { .. }
            | Relation::Unnest { .. } => Vec::new(),
        }
    }

    /// The parameters it reads that nothing within it provides.
    pub(crate) fn parameters(&self) -> HashSet<Name> {
        let mut names = HashSet::new();
        for expr in self.exprs() {
            names.extend(parameters(expr));
        }
        match self {
            Relation::Join(join) => {
                names.extend(join.left.parameters());
                let mut right = join.right.parameters();
                if join.correlated {
                    for name in join.left.names() {
                        right.remove(&name);
                    }
                }
                names.extend(right);
            }
            other => {
                for input in other.inputs() {
                    names.extend(input.parameters());
                }
            }
        }
        names
    }

    /// This relation filtered; without predicates, as it is.
    pub(crate) fn filtered(self, mut predicates: Vec<Expr>) -> Relation {
        if predicates.is_empty() {
            return self;
        }
        match self {
            Relation::Filter { input, predicates: mut first } => {
                first.append(&mut predicates);
                Relation::Filter { input, predicates: first }
            }
            other => Relation::Filter { input: Box::new(other), predicates },
        }
    }
}

impl Call {
    pub(crate) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.args.iter().chain(&self.filter).chain(self.order_by.iter().map(|key| &key.expr))
    }

    fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let Call { args, filter, order_by, .. } = self;
        args.iter_mut().chain(filter).chain(order_by.iter_mut().map(|key| &mut key.expr))
    }
}

/// The parameters an expression reads.
pub(crate) fn parameters(expr: &Expr) -> HashSet<Name> {
    let mut names = HashSet::new();
    expr.walk(&mut |expr| {
        if let Expr::Parameter(name) = expr {
            names.insert(name.clone());
        }
    });
    names
}

/// Whether all fields the expression reads are among `names`.
pub(crate) fn covered(expr: &Expr, names: &HashSet<Name>) -> bool {
    expr.fields().iter().all(|name| names.contains(name))
}

/// Replaces fields by expressions.
pub(crate) fn substitute(expr: &mut Expr, replacement: &dyn Fn(&Name) -> Option<Expr>) {
    if let Expr::Field(name) = expr {
        if let Some(new) = replacement(name) {
            *expr = new;
        }
        return;
    }
    for child in expr.children_mut() {
        substitute(child, replacement);
    }
}

/// Replaces fields by what they are computed from, where `exprs` says.
pub(crate) fn inline(expr: &mut Expr, exprs: &[(Name, Expr)]) {
    substitute(expr, &|name| exprs.iter().find(|(known, _)| known == name).map(|(_, expr)| expr.clone()));
}

/// Reads parameters among `names` as fields.
pub(crate) fn parameters_to_fields(expr: &mut Expr, names: &HashSet<Name>) {
    if let Expr::Parameter(name) = expr
        && names.contains(name)
    {
        *expr = Expr::Field(name.clone());
        return;
    }
    for child in expr.children_mut() {
        parameters_to_fields(child, names);
    }
}

/// Reads parameters as the fields that stand in their place.
pub(crate) fn substitute_parameters(expr: &mut Expr, names: &HashMap<Name, Name>) {
    if let Expr::Parameter(name) = expr {
        if let Some(field) = names.get(name) {
            *expr = Expr::Field(field.clone());
        }
        return;
    }
    for child in expr.children_mut() {
        substitute_parameters(child, names);
    }
}
