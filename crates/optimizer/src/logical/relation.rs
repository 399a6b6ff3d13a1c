//! Relations: what a query means, between its text and sub-operators.
//!
//! Names are unique within a whole query, so that an expression can move anywhere its fields exist,
//! and a rename costs nothing. A correlated subquery is a join whose right side reads fields of the
//! left as parameters.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_plan::Expr;
use tessera_types::{Atom, Tuple};

use crate::table::Table;

/// The name of a field, unique within the query.
pub type Name = Arc<str>;

/// A relation.
#[derive(Debug, Clone)]
pub enum Relation {
    /// Tuples of a table that satisfy all predicates.
    Scan {
        /// The table.
        table: Arc<Table>,
        /// The fields, with the positions of their columns.
        columns: Vec<(Name, usize)>,
        /// All of them hold.
        predicates: Vec<Expr>,
    },
    /// Constant tuples.
    Values {
        /// Their fields.
        tuple: Tuple,
        /// Their values.
        rows: Vec<Vec<Expr>>,
    },
    /// Tuples that satisfy all predicates, tested in this order.
    Filter {
        /// Where they come from.
        input: Box<Relation>,
        /// All of them hold.
        predicates: Vec<Expr>,
    },
    /// Exactly these fields.
    Map {
        /// What they are computed from.
        input: Box<Relation>,
        /// Each field with its expression.
        exprs: Vec<(Name, Expr)>,
    },
    /// Two relations joined.
    Join(Box<Join>),
    /// Groups.
    Aggregate(Box<Aggregate>),
    /// Sorted, and perhaps only the first ones.
    Sort {
        /// What is sorted.
        input: Box<Relation>,
        /// By these.
        keys: Vec<Key>,
        /// How many are skipped.
        offset: u64,
        /// How many there are at most.
        limit: Option<u64>,
    },
    /// The first ones.
    Limit {
        /// Whose.
        input: Box<Relation>,
        /// How many are skipped.
        offset: u64,
        /// How many there are at most.
        limit: Option<u64>,
    },
    /// Tuples of all inputs; each names the fields that become the output's, by position.
    Union {
        /// The inputs with their fields.
        inputs: Vec<(Relation, Vec<Name>)>,
        /// The fields of the output.
        names: Vec<Name>,
    },
    /// Tuples of a base, then, again and again, of a step over those that the last time gave.
    Recursive(Box<Recursive>),
    /// In the step of a recursion: the tuples that the last time gave, with the fields at these
    /// positions.
    Work {
        /// The `id` of the recursion.
        recursion: Name,
        /// The fields, with their positions in its output.
        columns: Vec<(Name, usize)>,
    },
    /// Tuples that several places read, and that are others each time they are computed: all places
    /// read the same. Relations with one `id` are one.
    Shared {
        /// Tells it apart from others.
        id: Name,
        /// The tuples.
        input: Box<Relation>,
    },
    /// Elements in place of lists: (list, element).
    Unnest {
        /// The tuples with the lists.
        input: Box<Relation>,
        /// Each list, and the field of its elements.
        lists: Vec<(Name, Name)>,
        /// Whether a tuple without elements stays, once, with NULL.
        outer: bool,
    },
}

/// A recursive query.
#[derive(Debug, Clone)]
pub struct Recursive {
    /// What [`Relation::Work`] calls it.
    pub id: Name,
    /// The first tuples, and which fields of them become the output's.
    pub base: (Relation, Vec<Name>),
    /// What follows on the tuples before, likewise.
    pub step: (Relation, Vec<Name>),
    /// The output's fields.
    pub names: Vec<Name>,
    /// A tuple that was there before does not come again.
    pub distinct: bool,
}

/// How two relations are joined, seen from the left one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Pairs that match.
    Inner,
    /// The same, and what the left one has without a match.
    Left,
    /// The same, and what either has without a match.
    Full,
    /// What the left one has with a match.
    Semi,
    /// What the left one has without a match.
    Anti,
    /// The left one with a boolean field: whether there is a match.
    Mark,
    /// As left; a second match is an error.
    Single,
}

/// Two relations joined.
#[derive(Debug, Clone)]
pub struct Join {
    /// Which pairs and tuples come out.
    pub kind: Kind,
    /// The left relation.
    pub left: Relation,
    /// The right relation.
    pub right: Relation,
    /// What a match satisfies, in the order of writing.
    pub conditions: Vec<Expr>,
    /// The field that [`Kind::Mark`] adds.
    pub mark: Option<Name>,
    /// The only condition is an equality in the sense of `IN`: unknown when either side is NULL.
    pub null_aware: bool,
    /// The right side reads fields of the left one as parameters.
    pub correlated: bool,
}

/// A key of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// What is compared.
    pub expr: Expr,
    /// Greater values come first.
    pub descending: bool,
    /// NULLs come before all values.
    pub nulls_first: bool,
}

/// A call of an aggregate function.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The function.
    pub function: Name,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// Equal arguments count once.
    pub distinct: bool,
    /// Only tuples for which it holds count.
    pub filter: Option<Expr>,
    /// The order in which it sees its arguments.
    pub order_by: Vec<Key>,
    /// Of a list: how many values it has at most, the first ones.
    pub limit: Option<u64>,
}

/// Groups of tuples with equal keys.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// What is grouped.
    pub input: Relation,
    /// The fields of the keys, with their expressions.
    pub keys: Vec<(Name, Expr)>,
    /// Positions of the keys of each grouping, when there are several.
    pub sets: Option<Vec<Vec<usize>>>,
    /// The field that tells the groupings apart: one bit per key, set where the key is not part of
    /// the grouping.
    pub grouping: Option<(Name, Atom)>,
    /// The fields of the aggregates.
    pub calls: Vec<(Name, Call)>,
}

impl Relation {
    /// What stands in a place while its relation is taken out and rewritten.
    pub fn nothing() -> Relation {
        Relation::Values { tuple: Tuple::empty(), rows: Vec::new() }
    }

    /// The names of its fields, in no particular order.
    pub fn names(&self) -> Vec<Name> {
        match self {
            Relation::Scan { columns, .. } => {
                columns.iter().map(|(name, _)| name.clone()).collect()
            }
            Relation::Values { tuple, .. } => {
                tuple.fields().iter().map(|field| field.name.clone()).collect()
            }
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
                    Kind::Inner | Kind::Left | Kind::Full | Kind::Single => {
                        names.extend(join.right.names())
                    }
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
            Relation::Work { columns, .. } => {
                columns.iter().map(|(name, _)| name.clone()).collect()
            }
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
    pub fn inputs(&self) -> Vec<&Relation> {
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
    pub fn inputs_mut(&mut self) -> Vec<&mut Relation> {
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
    pub fn exprs(&self) -> Vec<&Expr> {
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
    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
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
    pub fn parameters(&self) -> HashSet<Name> {
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
    pub fn filtered(self, mut predicates: Vec<Expr>) -> Relation {
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
    /// All expressions in it.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.args.iter().chain(&self.filter).chain(self.order_by.iter().map(|key| &key.expr))
    }

    fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let Call { args, filter, order_by, .. } = self;
        args.iter_mut().chain(filter).chain(order_by.iter_mut().map(|key| &mut key.expr))
    }
}

/// The parameters an expression reads.
pub fn parameters(expr: &Expr) -> HashSet<Name> {
    let mut names = HashSet::new();
    expr.walk(&mut |expr| {
        if let Expr::Parameter(name) = expr {
            names.insert(name.clone());
        }
    });
    names
}

/// Whether all fields the expression reads are among `names`.
pub fn covered(expr: &Expr, names: &HashSet<Name>) -> bool {
    expr.fields().iter().all(|name| names.contains(name))
}

/// Replaces fields by expressions.
pub fn substitute(expr: &mut Expr, replacement: &dyn Fn(&Name) -> Option<Expr>) {
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
pub fn inline(expr: &mut Expr, exprs: &[(Name, Expr)]) {
    substitute(expr, &|name| {
        exprs.iter().find(|(known, _)| known == name).map(|(_, expr)| expr.clone())
    });
}

/// Reads parameters among `names` as fields.
pub fn parameters_to_fields(expr: &mut Expr, names: &HashSet<Name>) {
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
pub fn substitute_parameters(expr: &mut Expr, names: &HashMap<Name, Name>) {
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
