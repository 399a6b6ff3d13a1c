//! The binder: resolves names, functions and types of an expression, and computes constants.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use parking_lot::Mutex;
use tessera_plan::{Expr, Scalar, Scope};
use tessera_types::{Atom, Error, Item, Result, Tuple, did_you_mean};

use super::fold::{folded, may_be_long};
use super::in_set::{InSet, SET_MIN, in_set};
use super::lambdas::{LambdaCall, takes_lambda};
use super::library::Library;
use super::strict::is_strict;
use tessera_values::cast::{Cast, cast_raises, check_cast};
use tessera_values::kernel::Kernel;
use tessera_values::scalar::scalar_to_array;
use tessera_values::types::Arg;

/// The fields that a node reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldReads {
    /// No field: the value is the same for all tuples.
    Nothing,
    /// A single field.
    One(usize),
    /// Several fields, or the value does not depend on fields alone.
    Many,
}

impl FieldReads {
    fn and(self, other: FieldReads) -> FieldReads {
        match (self, other) {
            (FieldReads::Nothing, reads) | (reads, FieldReads::Nothing) => reads,
            (a, b) if a == b => a,
            _ => FieldReads::Many,
        }
    }
}

/// Cached results for recently seen dictionaries: the dictionary values, and the result unless its
/// computation failed.
pub(crate) type DictionaryResults = Vec<(ArrayRef, Option<ArrayRef>)>;

/// A bound expression or subexpression.
#[derive(Debug)]
pub(crate) struct Node {
    pub kind: NodeKind,
    pub atom: Atom,
    pub nullable: bool,
    /// Whether some input makes it fail.
    pub raises: bool,
    /// Whether this is a call on constants with a value that may be too long to precompute.
    pub is_long: bool,
    /// The rough cost per value, including all children.
    pub cost: u32,
    pub reads: FieldReads,
    /// Whether it reads a parameter; its value differs between the runs of a nested plan.
    pub reads_parameter: bool,
    pub dictionaries: Mutex<DictionaryResults>,
}

/// The operation of a node.
#[derive(Debug)]
pub(crate) enum NodeKind {
    Field(usize),
    Parameter(usize),
    Constant(ArrayRef),
    Call { kernel: Arc<dyn Kernel>, args: Vec<Node> },
    Case { branches: Vec<(Node, Node)>, otherwise: Option<Box<Node>> },
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    IsNull(Box<Node>),
    Coalesce(Vec<Node>),
    Try(Box<Node>),
    Lambda(LambdaCall),
}

impl Node {
    pub(super) fn new(kind: NodeKind, atom: Atom, nullable: bool) -> Node {
        Node {
            kind,
            atom,
            nullable,
            raises: false,
            is_long: false,
            cost: 0,
            reads: FieldReads::Nothing,
            reads_parameter: false,
            dictionaries: Mutex::default(),
        }
    }

    /// The value of a constant node.
    pub(crate) fn constant(&self) -> Option<&ArrayRef> {
        match &self.kind {
            NodeKind::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Adds the costs, fields and failures of the children.
    pub(crate) fn over(mut self, cost: u32) -> Node {
        let (mut total, mut raises, mut reads) = (cost, self.raises, self.reads);
        let mut reads_parameter = self.reads_parameter;
        self.each_child(&mut |child| {
            total = total.saturating_add(child.cost);
            raises |= child.raises;
            reads = reads.and(child.reads);
            reads_parameter |= child.reads_parameter;
        });
        (self.cost, self.raises, self.reads, self.reads_parameter) =
            (total, raises, reads, reads_parameter);
        self
    }

    /// Visits the operands.
    pub(crate) fn each_child<'a>(&'a self, visit: &mut dyn FnMut(&'a Node)) {
        match &self.kind {
            NodeKind::Field(_) | NodeKind::Parameter(_) | NodeKind::Constant(_) => {}
            NodeKind::Lambda(LambdaCall { args: list, .. })
            | NodeKind::Call { args: list, .. }
            | NodeKind::And(list)
            | NodeKind::Or(list)
            | NodeKind::Coalesce(list) => {
                list.iter().for_each(visit);
            }
            NodeKind::Case { branches, otherwise } => {
                for (condition, value) in branches {
                    visit(condition);
                    visit(value);
                }
                if let Some(otherwise) = otherwise {
                    visit(otherwise);
                }
            }
            NodeKind::Not(input) | NodeKind::IsNull(input) | NodeKind::Try(input) => visit(input),
        }
    }
}

/// Binds expressions over one tuple.
#[derive(Debug)]
pub(crate) struct Binder<'a> {
    pub tuple: &'a Tuple,
    pub parameters: &'a Tuple,
    pub library: &'a Library,
}

impl Binder<'_> {
    pub(crate) fn bind(&self, expr: &Expr) -> Result<Node> {
        let scope =
            Scope { tuple: self.tuple, parameters: self.parameters, functions: self.library };
        let (atom, nullable) = tessera_plan::type_of(expr, scope)?;
        let mut node = self.node(expr)?;
        if node.atom != atom {
            return Err(Error::internal(format!(
                "an expression of type {atom} was bound as {}",
                node.atom
            )));
        }
        // The verifier derived the nullability; keep it, even if the binder derived a stricter one.
        node.nullable = nullable;
        Ok(node)
    }

    fn nodes(&self, list: &[Expr]) -> Result<Vec<Node>> {
        list.iter().map(|expr| self.node(expr)).collect()
    }

    pub(crate) fn node(&self, expr: &Expr) -> Result<Node> {
        let node = match expr {
            Expr::Field(name) => {
                let index = position(self.tuple, name)?;
                let (atom, nullable) = item(self.tuple, index)?;
                let mut node = Node::new(NodeKind::Field(index), atom, nullable);
                node.reads = FieldReads::One(index);
                node
            }
            Expr::Parameter(name) => {
                let index = position(self.parameters, name)?;
                let (atom, nullable) = item(self.parameters, index)?;
                let mut node = Node::new(NodeKind::Parameter(index), atom, nullable);
                node.reads_parameter = true;
                node
            }
            Expr::Constant(scalar, atom) => {
                let value = scalar_to_array(scalar, atom)?;
                Node::new(NodeKind::Constant(value), atom.clone(), scalar.is_null())
            }
            Expr::Call { function, args } if takes_lambda(function) => {
                self.lambda_call(function, args)?
            }
            Expr::Call { function, args } => return self.call(function, args),
            Expr::Lambda(_) => {
                let message =
                    "a lambda is not a value; only functions such as list_transform take one";
                return Err(Error::semantic(message));
            }
            Expr::Cast { input, to, safe } => convert(self.node(input)?, to, *safe)?,
            Expr::Case { branches, otherwise } => {
                let branches = branches
                    .iter()
                    .map(|(condition, value)| Ok((self.node(condition)?, self.node(value)?)))
                    .collect::<Result<Vec<_>>>()?;
                let otherwise =
                    otherwise.as_ref().map(|expr| self.node(expr)).transpose()?.map(Box::new);
                let atom = branches
                    .first()
                    .map(|(_, value)| value.atom.clone())
                    .or_else(|| otherwise.as_ref().map(|otherwise| otherwise.atom.clone()))
                    .ok_or_else(|| Error::semantic("CASE without a value"))?;
                let nullable = otherwise.as_ref().is_none_or(|otherwise| otherwise.nullable)
                    || branches.iter().any(|(_, value)| value.nullable);
                Node::new(NodeKind::Case { branches, otherwise }, atom, nullable).over(5)
            }
            Expr::And(_) => {
                let list = operands(expr, &|expr| match expr {
                    Expr::And(list) => Some(list),
                    _ => None,
                });
                let list =
                    list.into_iter().map(|expr| self.node(expr)).collect::<Result<Vec<_>>>()?;
                let nullable = list.iter().any(|node| node.nullable);
                Node::new(NodeKind::And(list), Atom::Boolean, nullable).over(1)
            }
            Expr::Or(_) => {
                let list = operands(expr, &|expr| match expr {
                    Expr::Or(list) => Some(list),
                    _ => None,
                });
                let list = self.disjuncts(&list)?;
                let nullable = list.iter().any(|node| node.nullable);
                Node::new(NodeKind::Or(list), Atom::Boolean, nullable).over(1)
            }
            Expr::Not(input) => {
                let input = self.node(input)?;
                let nullable = input.nullable;
                Node::new(NodeKind::Not(Box::new(input)), Atom::Boolean, nullable).over(1)
            }
            Expr::IsNull(input) => {
                Node::new(NodeKind::IsNull(Box::new(self.node(input)?)), Atom::Boolean, false)
                    .over(1)
            }
            Expr::Coalesce(list) => {
                let list = self.nodes(list)?;
                let atom = list.first().map(|first| first.atom.clone());
                let atom = atom.ok_or_else(|| Error::semantic("coalesce without a value"))?;
                let nullable = list.iter().all(|node| node.nullable);
                Node::new(NodeKind::Coalesce(list), atom, nullable).over(3)
            }
            Expr::Try(input) => {
                let input = self.node(input)?;
                let nullable = input.nullable;
                let mut node =
                    Node::new(NodeKind::Try(Box::new(input)), Atom::Boolean, nullable).over(1);
                node.raises = false;
                node
            }
        };
        Ok(folded(node))
    }

    /// Binds disjuncts. Adjacent equalities of one expression with constants become a set
    /// membership test.
    fn disjuncts(&self, list: &[&Expr]) -> Result<Vec<Node>> {
        let same_value = |a: &&Expr, b: &&Expr| match (constant_equality(a), constant_equality(b)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        };
        let mut nodes = Vec::with_capacity(list.len());
        for run in list.chunk_by(same_value) {
            let bound = run.iter().map(|expr| self.node(expr)).collect::<Result<Vec<_>>>()?;
            match if run.len() >= SET_MIN { membership(&bound) } else { None } {
                Some((kernel, nullable)) => {
                    let value = bound.into_iter().next().and_then(|node| match node.kind {
                        NodeKind::Call { args, .. } => args.into_iter().next(),
                        _ => None,
                    });
                    let value =
                        value.ok_or_else(|| Error::internal("an equality without operands"))?;
                    let kind = NodeKind::Call { kernel: Arc::new(kernel), args: vec![value] };
                    nodes.push(folded(Node::new(kind, Atom::Boolean, nullable).over(2)));
                }
                None => nodes.extend(bound),
            }
        }
        Ok(nodes)
    }

    fn call(&self, function: &str, exprs: &[Expr]) -> Result<Node> {
        let args = self.nodes(exprs)?;
        let seen: Vec<Arg<'_>> = args
            .iter()
            .zip(exprs)
            .map(|(node, expr)| Arg {
                atom: &node.atom,
                nullable: node.nullable,
                expr,
                value: node.constant().cloned(),
            })
            .collect();
        let resolved = self.library.resolve(function, &seen)?;
        drop(seen);
        // A literal NULL operand makes a strict call NULL without evaluating the others.
        let is_null =
            |arg: &Node| arg.constant().is_some_and(|value| value.logical_null_count() > 0);
        if is_strict(function) && args.iter().any(is_null) && args.iter().any(|arg| arg.raises) {
            let null = scalar_to_array(&Scalar::Null, &resolved.atom)?;
            return Ok(Node::new(NodeKind::Constant(null), resolved.atom, true));
        }
        let args = args
            .into_iter()
            .zip(&resolved.casts)
            .map(|(arg, to)| convert(arg, to, false).map(folded))
            .collect::<Result<Vec<_>>>()?;
        let mut node = Node::new(
            NodeKind::Call { kernel: resolved.kernel, args },
            resolved.atom,
            resolved.nullable,
        );
        node.raises = resolved.raises;
        if resolved.volatile {
            node.reads = FieldReads::Many;
        }
        node.is_long = match &node.kind {
            NodeKind::Call { args, .. } if args.iter().all(|arg| arg.constant().is_some()) => {
                may_be_long(function, args)
            }
            _ => false,
        };
        Ok(folded(node.over(resolved.cost)))
    }
}

/// Flattens nested connectives of one kind to their operands, in order.
fn operands<'a>(
    expr: &'a Expr,
    below: &dyn Fn(&'a Expr) -> Option<&'a Vec<Expr>>,
) -> Vec<&'a Expr> {
    let (mut pending, mut found) = (vec![expr], Vec::new());
    while let Some(expr) = pending.pop() {
        match below(expr) {
            Some(list) => pending.extend(list.iter().rev()),
            None => found.push(expr),
        }
    }
    found
}

/// The expression that is compared with a constant, if `expr` is such an equality.
fn constant_equality(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Call { function, args } if &**function == "eq" => match args.as_slice() {
            [value, Expr::Constant(..)] if !matches!(value, Expr::Constant(..)) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// The set for equalities of one value with constants, if all compare in the same type.
fn membership(equalities: &[Node]) -> Option<(InSet, bool)> {
    let mut atom: Option<&Atom> = None;
    let mut constants = Vec::with_capacity(equalities.len());
    for node in equalities {
        let NodeKind::Call { args, .. } = &node.kind else { return None };
        let [value, constant] = args.as_slice() else { return None };
        if atom.is_some_and(|atom| *atom != value.atom) || value.raises {
            return None;
        }
        atom = Some(&value.atom);
        constants.push(constant.constant()?);
    }
    let nullable = equalities.iter().any(|node| node.nullable);
    Some((in_set(atom?, &constants)?, nullable))
}

/// Adds a cast if the types differ.
fn convert(input: Node, to: &Atom, safe: bool) -> Result<Node> {
    if input.atom == *to {
        return Ok(input);
    }
    check_cast(&input.atom, to)?;
    let raises = !safe && cast_raises(&input.atom, to);
    let nullable = input.nullable || safe;
    let cost = if input.atom == Atom::String || *to == Atom::String { 30 } else { 1 };
    let kernel = Arc::new(Cast { from: input.atom.clone(), to: to.clone(), safe });
    let mut node = Node::new(NodeKind::Call { kernel, args: vec![input] }, to.clone(), nullable);
    node.raises = raises;
    Ok(node.over(cost))
}

fn position(tuple: &Tuple, name: &str) -> Result<usize> {
    tuple.index_of(name).ok_or_else(|| {
        let hint = did_you_mean(name, tuple.fields().iter().map(|field| &*field.name));
        Error::semantic(format!("unknown field '{name}' in {tuple}{hint}"))
    })
}

fn item(tuple: &Tuple, index: usize) -> Result<(Atom, bool)> {
    match tuple.fields().get(index).map(|field| (&field.item, field.nullable)) {
        Some((Item::Atom(atom), nullable)) => Ok((atom.clone(), nullable)),
        _ => Err(Error::semantic(format!("field {index} of {tuple} is not a value"))),
    }
}
