//! The typed expression language.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tessera_types::{Atom, Tuple};

use crate::lambda::Lambda;
use crate::scalar::Scalar;

/// Up to this many names, a linear search is faster than a hash set.
const FEW_FIELDS: usize = 16;

/// The maximum number of nodes that a fingerprint covers.
const FINGERPRINT_PARTS: usize = 64;

/// An expression over the fields of one tuple.
///
/// Functions are names: comparisons (`eq`, `not_eq`, `lt`, `lt_eq`, `gt`, `gt_eq`, `is_distinct`,
/// `is_not_distinct`), checked arithmetic (`add`, `sub`, `mul`, `div`, `mod`, `neg`), pattern
/// matches (`like`, `ilike`, `regex`, `iregex`), and DataFusion's function library under its own
/// names. [`crate::Functions`] defines their types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// A field of the input tuple, by name.
    Field(Arc<str>),
    /// A field of the nested plan's parameter tuple, constant during a run.
    Parameter(Arc<str>),
    /// A constant with its type.
    Constant(Scalar, Atom),
    /// A function call; arguments are evaluated eagerly.
    Call {
        /// The function.
        function: Arc<str>,
        /// Its arguments.
        args: Vec<Expr>,
    },
    /// A cast. A value that cannot be converted gives NULL if `safe` is set, else an error.
    Cast {
        /// The expression to convert.
        input: Box<Expr>,
        /// The target type.
        to: Atom,
        /// Whether a failed conversion gives NULL instead of an error.
        safe: bool,
    },
    /// `CASE WHEN condition THEN value … ELSE otherwise END`; only the chosen branch can raise an
    /// error.
    Case {
        /// Conditions with their values, tried in order.
        branches: Vec<(Expr, Expr)>,
        /// The value if no condition is true; NULL if absent.
        otherwise: Option<Box<Expr>>,
    },
    /// Conjunction, left to right; later conjuncts are not evaluated for rows that an earlier one
    /// rejects.
    And(Vec<Expr>),
    /// Disjunction, left to right.
    Or(Vec<Expr>),
    /// Negation of a boolean.
    Not(Box<Expr>),
    /// Whether the value is NULL.
    IsNull(Box<Expr>),
    /// The first value that is not NULL; later arguments are evaluated only if needed.
    Coalesce(Vec<Expr>),
    /// The *try* form of a predicate: `true` for rows on which the input raises an error.
    Try(Box<Expr>),
    /// A lambda, as an argument of a function that calls it. It has no sub-expressions, because its
    /// body reads other fields than the expression around it.
    Lambda(Arc<Lambda>),
}

impl Expr {
    /// A reference to a field.
    pub fn field(name: impl Into<Arc<str>>) -> Expr {
        Expr::Field(name.into())
    }

    /// A function call.
    pub fn call(function: impl Into<Arc<str>>, args: Vec<Expr>) -> Expr {
        Expr::Call { function: function.into(), args }
    }

    /// A 64-bit integer constant.
    pub fn int64(value: i64) -> Expr {
        Expr::Constant(Scalar::Integer(value.into()), Atom::Int64)
    }

    /// A boolean constant.
    pub fn boolean(value: bool) -> Expr {
        Expr::Constant(Scalar::Boolean(value), Atom::Boolean)
    }

    /// A string constant.
    pub fn string(value: &str) -> Expr {
        Expr::Constant(Scalar::String(value.into()), Atom::String)
    }

    /// NULL of a type.
    pub fn null(atom: Atom) -> Expr {
        Expr::Constant(Scalar::Null, atom)
    }

    /// A cast that raises an error if it fails.
    pub fn cast(self, to: Atom) -> Expr {
        Expr::Cast { input: Box::new(self), to, safe: false }
    }

    /// The conjunction of `conjuncts`: `true` for none, the conjunct itself for one.
    pub fn all(mut conjuncts: Vec<Expr>) -> Expr {
        match conjuncts.len() {
            0 => Expr::boolean(true),
            1 => conjuncts.remove(0),
            _ => Expr::And(conjuncts),
        }
    }

    /// The conjuncts of a predicate, in order, with nested ANDs flattened.
    pub fn conjuncts(&self) -> Vec<Expr> {
        let (mut pending, mut found) = (vec![self], Vec::new());
        while let Some(expr) = pending.pop() {
            match expr {
                Expr::And(list) => pending.extend(list.iter().rev()),
                other => found.push(other.clone()),
            }
        }
        found
    }

    /// The direct sub-expressions, in the order of evaluation.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Expr::Field(_) | Expr::Parameter(_) | Expr::Constant(..) | Expr::Lambda(_) => {
                Vec::new()
            }
            Expr::Call { args, .. } => args.iter().collect(),
            Expr::Cast { input, .. }
            | Expr::Not(input)
            | Expr::IsNull(input)
            | Expr::Try(input) => {
                vec![input]
            }
            Expr::Case { branches, otherwise } => branches
                .iter()
                .flat_map(|(condition, value)| [condition, value])
                .chain(otherwise.iter().map(|e| &**e))
                .collect(),
            Expr::And(list) | Expr::Or(list) | Expr::Coalesce(list) => list.iter().collect(),
        }
    }

    /// The direct sub-expressions, for rewriting.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Expr::Field(_) | Expr::Parameter(_) | Expr::Constant(..) | Expr::Lambda(_) => {
                Vec::new()
            }
            Expr::Call { args, .. } => args.iter_mut().collect(),
            Expr::Cast { input, .. }
            | Expr::Not(input)
            | Expr::IsNull(input)
            | Expr::Try(input) => {
                vec![input]
            }
            Expr::Case { branches, otherwise } => branches
                .iter_mut()
                .flat_map(|(condition, value)| [condition, value])
                .chain(otherwise.iter_mut().map(|e| &mut **e))
                .collect(),
            Expr::And(list) | Expr::Or(list) | Expr::Coalesce(list) => list.iter_mut().collect(),
        }
    }

    /// Returns a hash: equal for equal expressions, different for most others.
    pub fn fingerprint(&self) -> u64 {
        let (mut hasher, mut pending) = (DefaultHasher::new(), vec![self]);
        for _ in 0..FINGERPRINT_PARTS {
            let Some(expr) = pending.pop() else { break };
            std::mem::discriminant(expr).hash(&mut hasher);
            match expr {
                Expr::Field(name) | Expr::Parameter(name) => name.hash(&mut hasher),
                Expr::Call { function, .. } => function.hash(&mut hasher),
                Expr::Constant(scalar, _) => scalar.fingerprint(&mut hasher),
                Expr::Lambda(lambda) => lambda.body.fingerprint().hash(&mut hasher),
                _ => {}
            }
            pending.extend(expr.children());
        }
        hasher.finish()
    }

    /// Calls `visit` on this expression and all its descendants, parents first.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        let mut pending = vec![self];
        while let Some(expr) = pending.pop() {
            visit(expr);
            pending.extend(expr.children().into_iter().rev());
        }
    }

    /// The names of the fields that the expression reads, in order of first appearance.
    pub fn fields(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut many: HashSet<Arc<str>> = HashSet::new();
        self.walk(&mut |expr| {
            let Expr::Field(name) = expr else { return };
            let is_known = match names.len() {
                // A set would cost more than it saves.
                0..=FEW_FIELDS => names.contains(name),
                _ => {
                    if many.is_empty() {
                        many.extend(names.iter().cloned());
                    }
                    !many.insert(name.clone())
                }
            };
            if !is_known {
                names.push(name.clone());
            }
        });
        names
    }

    /// One expression per field of `tuple`: the identity projection.
    pub fn identity(tuple: &Tuple) -> Vec<(Arc<str>, Expr)> {
        tuple
            .fields()
            .iter()
            .map(|field| (field.name.clone(), Expr::Field(field.name.clone())))
            .collect()
    }
}
