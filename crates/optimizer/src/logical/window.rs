//! Window functions in the logical plan.

use tessera_plan::Expr;

use super::relation::{Key, Name, Relation};

/// Calls of window functions over one partitioning and order. The output has all fields of the
/// input and a field for each call.
#[derive(Debug, Clone)]
pub struct Window {
    /// The input.
    pub input: Relation,
    /// The expressions of PARTITION BY.
    pub partition: Vec<Expr>,
    /// The keys of ORDER BY.
    pub order: Vec<Key>,
    /// The fields of the calls, with their calls.
    pub calls: Vec<(Name, WindowCall)>,
    /// The number of tuples of each partition that a predicate above keeps at most: the first ones.
    pub limit: Option<u64>,
}

/// A call of a window function or of an aggregate over a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowCall {
    /// The function.
    pub function: Name,
    /// The arguments.
    pub args: Vec<Expr>,
    /// Whether equal arguments are used once (DISTINCT).
    pub distinct: bool,
    /// The FILTER condition.
    pub filter: Option<Expr>,
    /// The order of the arguments (ORDER BY inside the parentheses).
    pub order_by: Vec<Key>,
    /// Whether NULLs are skipped (IGNORE NULLS).
    pub ignore_nulls: bool,
    /// The tuples that the call sees.
    pub frame: Frame,
}

/// The tuples of a partition that a call sees for the current tuple.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// What the bounds count.
    pub unit: Unit,
    /// The first tuple.
    pub start: Bound,
    /// The last tuple.
    pub end: Bound,
    /// The tuples around the current one that are left out.
    pub exclude: Exclude,
    /// The order key in the type of the limits, for bounds with [`Bound::Limit`].
    pub key: Option<Expr>,
}

/// What the bounds of a frame count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Tuples.
    Rows,
    /// Values of the order key.
    Range,
    /// Groups of tuples with equal order keys.
    Groups,
}

/// A bound of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Bound {
    /// The first tuple of the partition.
    UnboundedPreceding,
    /// A number of tuples or groups before the current one.
    Preceding(Expr),
    /// The current tuple, or its group.
    CurrentRow,
    /// A number of tuples or groups after the current one.
    Following(Expr),
    /// The last tuple of the partition.
    UnboundedFollowing,
    /// The tuples whose key is not beyond this value.
    Limit(Expr),
}

/// The tuples around the current one that a frame leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclude {
    /// None.
    NoOthers,
    /// The current tuple.
    CurrentRow,
    /// The current tuple and those with equal order keys.
    Group,
    /// The tuples with equal order keys, but not the current one.
    Ties,
}

impl Frame {
    /// All tuples of the partition.
    pub fn whole() -> Frame {
        Frame {
            unit: Unit::Rows,
            start: Bound::UnboundedPreceding,
            end: Bound::UnboundedFollowing,
            exclude: Exclude::NoOthers,
            key: None,
        }
    }

    /// Returns the expressions of the bounds, and the key.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        [self.start.expr(), self.end.expr(), self.key.as_ref()].into_iter().flatten()
    }

    /// Returns mutable references to the expressions of the bounds and to the key.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let Frame { start, end, key, .. } = self;
        [start.expr_mut(), end.expr_mut(), key.as_mut()].into_iter().flatten()
    }
}

impl Bound {
    fn expr(&self) -> Option<&Expr> {
        match self {
            Bound::Preceding(expr) | Bound::Following(expr) | Bound::Limit(expr) => Some(expr),
            Bound::UnboundedPreceding | Bound::CurrentRow | Bound::UnboundedFollowing => None,
        }
    }

    fn expr_mut(&mut self) -> Option<&mut Expr> {
        match self {
            Bound::Preceding(expr) | Bound::Following(expr) | Bound::Limit(expr) => Some(expr),
            Bound::UnboundedPreceding | Bound::CurrentRow | Bound::UnboundedFollowing => None,
        }
    }
}

impl WindowCall {
    /// A call without clauses.
    pub fn plain(function: &str, args: Vec<Expr>) -> WindowCall {
        WindowCall {
            function: function.into(),
            args,
            distinct: false,
            filter: None,
            order_by: Vec::new(),
            ignore_nulls: false,
            frame: Frame::whole(),
        }
    }

    /// Returns all expressions of the call.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let order_by = self.order_by.iter().map(|key| &key.expr);
        self.args.iter().chain(&self.filter).chain(order_by).chain(self.frame.exprs())
    }

    /// Returns mutable references to all expressions of the call.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let WindowCall { args, filter, order_by, frame, .. } = self;
        let order_by = order_by.iter_mut().map(|key| &mut key.expr);
        args.iter_mut().chain(filter).chain(order_by).chain(frame.exprs_mut())
    }
}

impl Window {
    /// Returns the fields by which the input is partitioned. A predicate over them keeps or drops
    /// whole partitions.
    pub fn partition_fields(&self) -> impl Iterator<Item = &Name> {
        self.partition.iter().filter_map(|expr| match expr {
            Expr::Field(name) => Some(name),
            _ => None,
        })
    }

    /// Returns the expressions of the window and its calls.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let order = self.order.iter().map(|key| &key.expr);
        let calls = self.calls.iter().flat_map(|(_, call)| call.exprs());
        self.partition.iter().chain(order).chain(calls)
    }

    /// Returns mutable references to the expressions of the window and its calls.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let Window { partition, order, calls, .. } = self;
        let order = order.iter_mut().map(|key| &mut key.expr);
        let calls = calls.iter_mut().flat_map(|(_, call)| call.exprs_mut());
        partition.iter_mut().chain(order).chain(calls)
    }
}
