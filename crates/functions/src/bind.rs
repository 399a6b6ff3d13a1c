//! Binding: an expression with its names resolved, functions found, types known and constants
//! computed.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use parking_lot::Mutex;
use tessera_plan::{Expr, Scalar, Scope};
use tessera_types::{Atom, Error, Item, Result, Tuple};

use super::cast::{Cast, cast_raises, check_cast};
use super::fold::{folded, may_be_long};
use super::in_set::{InSet, SET_MIN, in_set};
use super::kernel::Kernel;
use super::library::Library;
use super::scalar::scalar_to_array;
use super::strict::is_strict;
use super::types::Arg;

/// Which fields a node reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// None: its value is the same for all tuples.
    Nothing,
    /// This one.
    One(usize),
    /// Several, or its value is not determined by its fields.
    Many,
}

impl Reads {
    fn and(self, other: Reads) -> Reads {
        match (self, other) {
            (Reads::Nothing, reads) | (reads, Reads::Nothing) => reads,
            (a, b) if a == b => a,
            _ => Reads::Many,
        }
    }
}

/// Results on the values of dictionaries seen lately: the values, and the result unless computing
/// it failed.
pub(crate) type DictionaryResults = Vec<(ArrayRef, Option<ArrayRef>)>;

/// A bound (sub-)expression.
#[derive(Debug)]
pub(crate) struct Node {
    pub kind: Kind,
    pub atom: Atom,
    pub nullable: bool,
    /// Whether a value can make it fail.
    pub raises: bool,
    /// Whether it is a call on constants whose value may be too long to be computed before it is
    /// wanted.
    pub is_long: bool,
    /// Rough cost of a value with everything below.
    pub cost: u32,
    pub reads: Reads,
    /// Whether it reads a parameter, which has another value in each run of a nested plan.
    pub reads_parameter: bool,
    pub dictionaries: Mutex<DictionaryResults>,
}

/// What a node does.
#[derive(Debug)]
pub(crate) enum Kind {
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
}

impl Node {
    pub(super) fn new(kind: Kind, atom: Atom, nullable: bool) -> Node {
        Node {
            kind,
            atom,
            nullable,
            raises: false,
            is_long: false,
            cost: 0,
            reads: Reads::Nothing,
            reads_parameter: false,
            dictionaries: Mutex::default(),
        }
    }

    /// The value, where it is a constant.
    pub(crate) fn constant(&self) -> Option<&ArrayRef> {
        match &self.kind {
            Kind::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// Takes cost, fields and failures over from the children.
    fn over(mut self, cost: u32) -> Node {
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
            Kind::Field(_) | Kind::Parameter(_) | Kind::Constant(_) => {}
            Kind::Call { args: list, .. }
            | Kind::And(list)
            | Kind::Or(list)
            | Kind::Coalesce(list) => {
                list.iter().for_each(visit);
            }
            Kind::Case { branches, otherwise } => {
                for (condition, value) in branches {
                    visit(condition);
                    visit(value);
                }
                if let Some(otherwise) = otherwise {
                    visit(otherwise);
                }
            }
            Kind::Not(input) | Kind::IsNull(input) | Kind::Try(input) => visit(input),
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
    /// Binds a whole expression.
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
        // What the verifier promised stands, even where the binder has found out more.
        node.nullable = nullable;
        Ok(node)
    }

    fn nodes(&self, list: &[Expr]) -> Result<Vec<Node>> {
        list.iter().map(|expr| self.node(expr)).collect()
    }

    fn node(&self, expr: &Expr) -> Result<Node> {
        let node = match expr {
            Expr::Field(name) => {
                let index = position(self.tuple, name)?;
                let (atom, nullable) = item(self.tuple, index)?;
                let mut node = Node::new(Kind::Field(index), atom, nullable);
                node.reads = Reads::One(index);
                node
            }
            Expr::Parameter(name) => {
                let index = position(self.parameters, name)?;
                let (atom, nullable) = item(self.parameters, index)?;
                let mut node = Node::new(Kind::Parameter(index), atom, nullable);
                node.reads_parameter = true;
                node
            }
            Expr::Constant(scalar, atom) => {
                let value = scalar_to_array(scalar, atom)?;
                Node::new(Kind::Constant(value), atom.clone(), scalar.is_null())
            }
            Expr::Call { function, args } => return self.call(function, args),
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
                Node::new(Kind::Case { branches, otherwise }, atom, nullable).over(5)
            }
            Expr::And(_) => {
                let list = operands(expr, &|expr| match expr {
                    Expr::And(list) => Some(list),
                    _ => None,
                });
                let list =
                    list.into_iter().map(|expr| self.node(expr)).collect::<Result<Vec<_>>>()?;
                let nullable = list.iter().any(|node| node.nullable);
                Node::new(Kind::And(list), Atom::Boolean, nullable).over(1)
            }
            Expr::Or(_) => {
                let list = operands(expr, &|expr| match expr {
                    Expr::Or(list) => Some(list),
                    _ => None,
                });
                let list = self.disjuncts(&list)?;
                let nullable = list.iter().any(|node| node.nullable);
                Node::new(Kind::Or(list), Atom::Boolean, nullable).over(1)
            }
            Expr::Not(input) => {
                let input = self.node(input)?;
                let nullable = input.nullable;
                Node::new(Kind::Not(Box::new(input)), Atom::Boolean, nullable).over(1)
            }
            Expr::IsNull(input) => {
                Node::new(Kind::IsNull(Box::new(self.node(input)?)), Atom::Boolean, false).over(1)
            }
            Expr::Coalesce(list) => {
                let list = self.nodes(list)?;
                let atom = list.first().map(|first| first.atom.clone());
                let atom = atom.ok_or_else(|| Error::semantic("coalesce without a value"))?;
                let nullable = list.iter().all(|node| node.nullable);
                Node::new(Kind::Coalesce(list), atom, nullable).over(3)
            }
            Expr::Try(input) => {
                let input = self.node(input)?;
                let nullable = input.nullable;
                let mut node =
                    Node::new(Kind::Try(Box::new(input)), Atom::Boolean, nullable).over(1);
                node.raises = false;
                node
            }
        };
        Ok(folded(node))
    }

    /// Binds disjuncts; equalities of one expression with constants, standing together, as
    /// membership in a set.
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
                        Kind::Call { args, .. } => args.into_iter().next(),
                        _ => None,
                    });
                    let value =
                        value.ok_or_else(|| Error::internal("an equality without operands"))?;
                    let kind = Kind::Call { kernel: Arc::new(kernel), args: vec![value] };
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
        // Beside a NULL that is written, nothing raises.
        let is_null =
            |arg: &Node| arg.constant().is_some_and(|value| value.logical_null_count() > 0);
        if is_strict(function) && args.iter().any(is_null) && args.iter().any(|arg| arg.raises) {
            let null = scalar_to_array(&Scalar::Null, &resolved.atom)?;
            return Ok(Node::new(Kind::Constant(null), resolved.atom, true));
        }
        let args = args
            .into_iter()
            .zip(&resolved.casts)
            .map(|(arg, to)| convert(arg, to, false).map(folded))
            .collect::<Result<Vec<_>>>()?;
        let mut node = Node::new(
            Kind::Call { kernel: resolved.kernel, args },
            resolved.atom,
            resolved.nullable,
        );
        node.raises = resolved.raises;
        if resolved.volatile {
            node.reads = Reads::Many;
        }
        node.is_long = match &node.kind {
            Kind::Call { args, .. } if args.iter().all(|arg| arg.constant().is_some()) => {
                may_be_long(function, args)
            }
            _ => false,
        };
        Ok(folded(node.over(resolved.cost)))
    }
}

/// The operands of nested connectives of one kind, in order; the nesting means nothing.
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

/// What is compared, if this is an equality with a constant.
fn constant_equality(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Call { function, args } if &**function == "eq" => match args.as_slice() {
            [value, Expr::Constant(..)] if !matches!(value, Expr::Constant(..)) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// The set that equalities of one value with constants ask for, when all compare in the same type.
fn membership(equalities: &[Node]) -> Option<(InSet, bool)> {
    let mut atom: Option<&Atom> = None;
    let mut constants = Vec::with_capacity(equalities.len());
    for node in equalities {
        let Kind::Call { args, .. } = &node.kind else { return None };
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

/// A cast, where one is needed.
fn convert(input: Node, to: &Atom, safe: bool) -> Result<Node> {
    if input.atom == *to {
        return Ok(input);
    }
    check_cast(&input.atom, to)?;
    let raises = !safe && cast_raises(&input.atom, to);
    let nullable = input.nullable || safe;
    let cost = if input.atom == Atom::String || *to == Atom::String { 30 } else { 1 };
    let kernel = Arc::new(Cast { from: input.atom.clone(), to: to.clone(), safe });
    let mut node = Node::new(Kind::Call { kernel, args: vec![input] }, to.clone(), nullable);
    node.raises = raises;
    Ok(node.over(cost))
}

fn position(tuple: &Tuple, name: &str) -> Result<usize> {
    tuple
        .index_of(name)
        .ok_or_else(|| Error::semantic(format!("there is no field {name} in {tuple}")))
}

fn item(tuple: &Tuple, index: usize) -> Result<(Atom, bool)> {
    match tuple.fields().get(index).map(|field| (&field.item, field.nullable)) {
        Some((Item::Atom(atom), nullable)) => Ok((atom.clone(), nullable)),
        _ => Err(Error::semantic(format!("field {index} of {tuple} is no value"))),
    }
}
