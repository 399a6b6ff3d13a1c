//! Relations: the logical plan of a query, between its text and its sub-operators.
//!
//! Field names are unique within a query, so that an expression can move wherever its fields exist,
//! and renaming is free. A correlated subquery is a join with a right side that reads fields of the
//! left side as parameters.

use std::collections::HashSet;
use std::sync::Arc;

use tessera_plan::Expr;
use tessera_types::{Atom, Tuple};

use crate::logical::as_of::AsOf;
use crate::logical::substitute::add_parameters;
pub use crate::logical::substitute::{
    covered, inline, parameters, parameters_to_fields, substitute, substitute_parameters,
};
use crate::logical::window::Window;
use crate::table::Table;

/// The name of a field, unique within the query.
pub type Name = Arc<str>;

/// A node of the logical plan.
#[derive(Debug, Clone)]
pub enum Relation {
    /// The tuples of a table that satisfy all predicates.
    Scan {
        /// The table.
        table: Arc<Table>,
        /// The fields, with the positions of their columns.
        columns: Vec<(Name, usize)>,
        /// The conjuncts of the predicate.
        predicates: Vec<Expr>,
    },
    /// Constant tuples.
    Values {
        /// The type of the tuples.
        tuple: Tuple,
        /// The values, row by row.
        rows: Vec<Vec<Expr>>,
    },
    /// The tuples that satisfy all predicates, tested in this order.
    Filter {
        /// The input.
        input: Box<Relation>,
        /// The conjuncts of the predicate.
        predicates: Vec<Expr>,
    },
    /// A projection: exactly these fields.
    Map {
        /// The input.
        input: Box<Relation>,
        /// The fields with their expressions.
        exprs: Vec<(Name, Expr)>,
    },
    /// A join of two relations.
    Join(Box<Join>),
    /// A join with the nearest tuple.
    AsOf(Box<AsOf>),
    /// A join by position: the first tuples of both sides, then the second ones. NULLs stand for
    /// those of the shorter side.
    Positional {
        /// The left relation.
        left: Box<Relation>,
        /// The right relation.
        right: Box<Relation>,
    },
    /// A grouping with aggregates.
    Aggregate(Box<Aggregate>),
    /// Window functions.
    Window(Box<Window>),
    /// A sort, optionally with a limit.
    Sort {
        /// The input.
        input: Box<Relation>,
        /// The sort keys.
        keys: Vec<Key>,
        /// The number of tuples to skip.
        offset: u64,
        /// The maximum number of tuples.
        limit: Option<u64>,
    },
    /// A limit without a sort.
    Limit {
        /// The input.
        input: Box<Relation>,
        /// The number of tuples to skip.
        offset: u64,
        /// The maximum number of tuples.
        limit: Option<u64>,
    },
    /// A random share of the tuples.
    Sample {
        /// The input.
        input: Box<Relation>,
        /// The probability of a tuple to be kept, in percent.
        percent: f64,
        /// The number of successive tuples that are kept or dropped together.
        block: u64,
        /// The seed of the random numbers; one that is volatile gives other tuples in each run.
        seed: Expr,
        /// The field for the random number of each tuple, if it is read.
        into: Option<Name>,
    },
    /// The concatenation of all inputs; the fields listed for each become the output fields by
    /// position.
    Union {
        /// The inputs with their fields.
        inputs: Vec<(Relation, Vec<Name>)>,
        /// The fields of the output.
        names: Vec<Name>,
    },
    /// A recursive query.
    Recursive(Box<Recursive>),
    /// In the step of a recursive query: the working table, that is the tuples of the previous
    /// iteration.
    WorkingTable {
        /// The `id` of the recursive query.
        recursion: Name,
        /// The fields, with their positions in the output of the recursive query.
        columns: Vec<(Name, usize)>,
    },
    /// A relation with several readers: relations with the same `id` are computed once. One that is
    /// volatile must be, so that all readers see the same tuples.
    Shared {
        /// The identity of the relation.
        id: Name,
        /// The input.
        input: Box<Relation>,
    },
    /// Replaces lists by their elements.
    Unnest {
        /// The input.
        input: Box<Relation>,
        /// The list fields with the fields of their elements.
        lists: Vec<(Name, Name)>,
        /// Whether a tuple without elements is kept once, with NULL.
        outer: bool,
    },
}

/// A recursive query.
#[derive(Debug, Clone)]
pub struct Recursive {
    /// The identity to which [`Relation::WorkingTable`] refers.
    pub id: Name,
    /// The non-recursive term and its fields that become the output.
    pub base: (Relation, Vec<Name>),
    /// The recursive term, likewise.
    pub step: (Relation, Vec<Name>),
    /// The output fields.
    pub names: Vec<Name>,
    /// Whether duplicates of earlier tuples are dropped (UNION instead of UNION ALL).
    pub distinct: bool,
}

/// The kind of a join, as seen from the left side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Matching pairs.
    Inner,
    /// Matching pairs, and left tuples without a match.
    Left,
    /// Matching pairs, and tuples of either side without a match.
    Full,
    /// Left tuples with a match.
    Semi,
    /// Left tuples without a match.
    Anti,
    /// Left tuples with a boolean field: whether there is a match.
    Mark,
    /// Like [`Kind::Left`], but a second match is an error.
    Single,
}

/// A join of two relations.
#[derive(Debug, Clone)]
pub struct Join {
    /// The kind of the join.
    pub kind: Kind,
    /// The left relation.
    pub left: Relation,
    /// The right relation.
    pub right: Relation,
    /// The join conditions, in the order they were written.
    pub conditions: Vec<Expr>,
    /// The field that [`Kind::Mark`] adds.
    pub mark: Option<Name>,
    /// Whether the only condition is an equality with the semantics of `IN`: unknown if either side
    /// is NULL.
    pub null_aware: bool,
    /// Whether the right side reads fields of the left side as parameters.
    pub correlated: bool,
}

/// A sort key.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The expression to compare.
    pub expr: Expr,
    /// Whether larger values come first.
    pub descending: bool,
    /// Whether NULLs come first.
    pub nulls_first: bool,
}

/// A call of an aggregate function.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The function.
    pub function: Name,
    /// The arguments.
    pub args: Vec<Expr>,
    /// Whether equal arguments are used once (DISTINCT).
    pub distinct: bool,
    /// The FILTER condition.
    pub filter: Option<Expr>,
    /// The order of the arguments (ORDER BY).
    pub order_by: Vec<Key>,
    /// For a list aggregate: the maximum number of values, of which the first ones are kept.
    pub limit: Option<u64>,
}

/// A grouping by keys, with aggregates.
#[derive(Debug, Clone)]
pub struct Aggregate {
    /// The input.
    pub input: Relation,
    /// The fields of the keys, with their expressions.
    pub keys: Vec<(Name, Expr)>,
    /// The grouping sets, as positions of keys; `None` for a single grouping by all keys.
    pub sets: Option<Vec<Vec<usize>>>,
    /// The field that identifies the grouping set: one bit per key, set if the key is not part of
    /// it.
    pub grouping: Option<(Name, Atom)>,
    /// The fields of the aggregates, with their calls.
    pub calls: Vec<(Name, Call)>,
}

impl Aggregate {
    /// Whether it only removes duplicates.
    pub fn is_distinct(&self) -> bool {
        self.calls.is_empty() && self.sets.is_none() && !self.keys.is_empty()
    }
}

impl Relation {
    /// Returns a placeholder for a relation that is taken out and rewritten.
    pub fn placeholder() -> Relation {
        Relation::Values { tuple: Tuple::empty(), rows: Vec::new() }
    }

    /// Whether it always has exactly one tuple.
    pub fn has_one_row(&self) -> bool {
        match self {
            Relation::Aggregate(aggregate) => aggregate.keys.is_empty() && aggregate.sets.is_none(),
            Relation::Map { input, .. } | Relation::Sort { input, limit: None, offset: 0, .. } => {
                input.has_one_row()
            }
            Relation::Values { rows, .. } => rows.len() == 1,
            _ => false,
        }
    }

    /// Returns the names of its fields, in no particular order.
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
            Relation::Sample { input, into, .. } => {
                input.names().into_iter().chain(into.clone()).collect()
            }
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
            Relation::AsOf(join) => [join.left.names(), join.right.names()].concat(),
            Relation::Positional { left, right } => [left.names(), right.names()].concat(),
            Relation::Aggregate(aggregate) => {
                let keys = aggregate.keys.iter().map(|(name, _)| name);
                let calls = aggregate.calls.iter().map(|(name, _)| name);
                let grouping = aggregate.grouping.iter().map(|(name, _)| name);
                keys.chain(calls).chain(grouping).cloned().collect()
            }
            Relation::Window(window) => {
                let calls = window.calls.iter().map(|(name, _)| name.clone());
                window.input.names().into_iter().chain(calls).collect()
            }
            Relation::Union { names, .. } => names.clone(),
            Relation::Recursive(recursive) => recursive.names.clone(),
            Relation::WorkingTable { columns, .. } => {
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

    /// Returns the inputs.
    pub fn inputs(&self) -> Vec<&Relation> {
        match self {
            Relation::Scan { .. } | Relation::Values { .. } | Relation::WorkingTable { .. } => {
                Vec::new()
            }
            Relation::Recursive(recursive) => vec![&recursive.base.0, &recursive.step.0],
            Relation::Filter { input, .. }
            | Relation::Map { input, .. }
            | Relation::Sort { input, .. }
            | Relation::Limit { input, .. }
            | Relation::Sample { input, .. }
            | Relation::Shared { input, .. }
            | Relation::Unnest { input, .. } => vec![input],
            Relation::Join(join) => vec![&join.left, &join.right],
            Relation::AsOf(join) => vec![&join.left, &join.right],
            Relation::Positional { left, right } => vec![left, right],
            Relation::Aggregate(aggregate) => vec![&aggregate.input],
            Relation::Window(window) => vec![&window.input],
            Relation::Union { inputs, .. } => inputs.iter().map(|(input, _)| input).collect(),
        }
    }

    /// Returns mutable references to the inputs.
    pub fn inputs_mut(&mut self) -> Vec<&mut Relation> {
        match self {
            Relation::Scan { .. } | Relation::Values { .. } | Relation::WorkingTable { .. } => {
                Vec::new()
            }
            Relation::Recursive(recursive) => {
                let Recursive { base, step, .. } = &mut **recursive;
                vec![&mut base.0, &mut step.0]
            }
            Relation::Filter { input, .. }
            | Relation::Map { input, .. }
            | Relation::Sort { input, .. }
            | Relation::Limit { input, .. }
            | Relation::Sample { input, .. }
            | Relation::Shared { input, .. }
            | Relation::Unnest { input, .. } => vec![input],
            Relation::Join(join) => {
                let Join { left, right, .. } = &mut **join;
                vec![left, right]
            }
            Relation::AsOf(join) => {
                let AsOf { left, right, .. } = &mut **join;
                vec![left, right]
            }
            Relation::Positional { left, right } => vec![left, right],
            Relation::Aggregate(aggregate) => vec![&mut aggregate.input],
            Relation::Window(window) => vec![&mut window.input],
            Relation::Union { inputs, .. } => inputs.iter_mut().map(|(input, _)| input).collect(),
        }
    }

    /// Returns the expressions of this node, without those of its inputs.
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Relation::Scan { predicates, .. } | Relation::Filter { predicates, .. } => {
                predicates.iter().collect()
            }
            Relation::Values { rows, .. } => rows.iter().flatten().collect(),
            Relation::Map { exprs, .. } => exprs.iter().map(|(_, expr)| expr).collect(),
            Relation::Join(join) => join.conditions.iter().collect(),
            Relation::AsOf(join) => join.exprs().collect(),
            Relation::Aggregate(aggregate) => {
                let keys = aggregate.keys.iter().map(|(_, expr)| expr);
                keys.chain(aggregate.calls.iter().flat_map(|(_, call)| call.exprs())).collect()
            }
            Relation::Window(window) => window.exprs().collect(),
            Relation::Sort { keys, .. } => keys.iter().map(|key| &key.expr).collect(),
            Relation::Sample { seed, .. } => vec![seed],
            Relation::Limit { .. }
            | Relation::Positional { .. }
            | Relation::Union { .. }
            | Relation::Recursive(_)
            | Relation::WorkingTable { .. }
            | Relation::Shared { .. }
            | Relation::Unnest { .. } => Vec::new(),
        }
    }

    /// Returns mutable references to the expressions of this node.
    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Relation::Scan { predicates, .. } | Relation::Filter { predicates, .. } => {
                predicates.iter_mut().collect()
            }
            Relation::Values { rows, .. } => rows.iter_mut().flatten().collect(),
            Relation::Map { exprs, .. } => exprs.iter_mut().map(|(_, expr)| expr).collect(),
            Relation::Join(join) => join.conditions.iter_mut().collect(),
            Relation::AsOf(join) => join.exprs_mut().collect(),
            Relation::Aggregate(aggregate) => {
                let Aggregate { keys, calls, .. } = &mut **aggregate;
                let keys = keys.iter_mut().map(|(_, expr)| expr);
                keys.chain(calls.iter_mut().flat_map(|(_, call)| call.exprs_mut())).collect()
            }
            Relation::Window(window) => window.exprs_mut().collect(),
            Relation::Sort { keys, .. } => keys.iter_mut().map(|key| &mut key.expr).collect(),
            Relation::Sample { seed, .. } => vec![seed],
            Relation::Limit { .. }
            | Relation::Positional { .. }
            | Relation::Union { .. }
            | Relation::Recursive(_)
            | Relation::WorkingTable { .. }
            | Relation::Shared { .. }
            | Relation::Unnest { .. } => Vec::new(),
        }
    }

    /// Returns the free parameters: those that no join within the relation binds.
    pub fn parameters(&self) -> HashSet<Name> {
        let mut names = HashSet::new();
        self.add_parameters(&mut names);
        names
    }

    fn add_parameters(&self, names: &mut HashSet<Name>) {
        for expr in self.exprs() {
            add_parameters(expr, names);
        }
        match self {
            Relation::Join(join) if join.correlated => {
                join.left.add_parameters(names);
                let mut right = join.right.parameters();
                for name in join.left.names() {
                    right.remove(&name);
                }
                names.extend(right);
            }
            other => other.inputs().into_iter().for_each(|input| input.add_parameters(names)),
        }
    }

    /// Returns the relation with a filter on top; unchanged if there are no predicates.
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
    /// Returns all expressions of the call.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.args.iter().chain(&self.filter).chain(self.order_by.iter().map(|key| &key.expr))
    }

    /// Returns mutable references to all expressions of the call.
    pub(crate) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let Call { args, filter, order_by, .. } = self;
        args.iter_mut().chain(filter).chain(order_by.iter_mut().map(|key| &mut key.expr))
    }
}
