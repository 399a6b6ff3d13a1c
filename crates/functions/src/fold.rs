//! Constant folding, with the same code that computes columns.
//!
//! An expression that fails is not folded, because it must fail only when a tuple reaches it. A
//! call with a potentially long value is not folded either, so that no constant takes more than
//! [`FOLDED_BYTES_MAX`] during planning and binding.

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Tuple};
use tessera_vector::Chunk;

use super::bind::{Binder, FieldReads, Node, NodeKind};
use super::evaluate::{View, evaluate};
use super::growth::{bytes_of, grows, size};
use super::library::Library;
use tessera_values::scalar::array_value;

/// The maximum size of a folded value in bytes.
pub(crate) const FOLDED_BYTES_MAX: u128 = 64 << 10;

/// Replaces the node by a constant if its operands are constants and evaluation succeeds.
pub(crate) fn folded(node: Node) -> Node {
    if node.is_long
        || node.reads != FieldReads::Nothing
        || matches!(node.kind, NodeKind::Constant(_) | NodeKind::Parameter(_))
    {
        return node;
    }
    let mut constant = true;
    node.each_child(&mut |child| constant &= child.constant().is_some());
    if !constant {
        return node;
    }
    let unit = Chunk::unit();
    let value = evaluate(&node, &View::all(&[], 1, &unit)).and_then(|column| column.plain());
    match value {
        Ok(value) if array_value(&value, 0).is_ok_and(|value| size(&value) <= FOLDED_BYTES_MAX) => {
            let nullable = node.nullable;
            Node::new(NodeKind::Constant(value), node.atom, nullable)
        }
        _ => node,
    }
}

/// Folds an expression over constants; `None` if it reads a tuple, is volatile, fails or is long.
pub fn constant(expr: &Expr, library: &Library) -> Option<Expr> {
    let children = expr.children();
    let leaf = matches!(expr, Expr::Field(_) | Expr::Parameter(_) | Expr::Constant(..));
    if leaf || !children.iter().all(|child| matches!(child, Expr::Constant(..))) {
        return None;
    }
    let empty = Tuple::empty();
    let node = Binder { tuple: &empty, parameters: &empty, library }.bind(expr).ok()?;
    let value = array_value(node.constant()?, 0).ok()?;
    Some(Expr::Constant(value, node.atom))
}

/// Whether a call on constants may return a value longer than [`FOLDED_BYTES_MAX`].
pub(crate) fn may_be_long(function: &str, args: &[Node]) -> bool {
    if !grows(function) {
        return false;
    }
    let value = |arg: &Node| {
        let value = arg.constant().and_then(|value| array_value(value, 0).ok());
        value.unwrap_or(Scalar::Null)
    };
    let values: Vec<(Scalar, &Atom)> = args.iter().map(|arg| (value(arg), &arg.atom)).collect();
    bytes_of(function, &values) > FOLDED_BYTES_MAX
}
