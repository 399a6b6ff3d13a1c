//! Constant folding: the value of an expression over constants, computed by the code that computes
//! columns.
//!
//! An expression that fails stays as it is, because it must fail only when a tuple reaches it. A
//! call whose value may be long also stays, so that neither planning nor binding holds more than
//! [`FOLDED_BYTES_MAX`] for a constant.

use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Tuple};
use tessera_vector::Chunk;

use super::bind::{Binder, Kind, Node, Reads};
use super::evaluate::{View, evaluate};
use super::growth::{bytes_of, grows, size};
use super::library::Library;
use super::scalar::array_value;

/// A folded value has at most so many bytes.
pub(crate) const FOLDED_BYTES_MAX: u128 = 64 << 10;

/// The node as a constant, if all its operands are constants and it does not fail.
pub(crate) fn folded(node: Node) -> Node {
    if node.is_long
        || node.reads != Reads::Nothing
        || matches!(node.kind, Kind::Constant(_) | Kind::Parameter(_))
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
            Node::new(Kind::Constant(value), node.atom, nullable)
        }
        _ => node,
    }
}

/// The constant that an expression over constants is; none when it reads a tuple, is volatile,
/// fails or is long.
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

/// Whether the value of a call on constants may be longer than what is folded.
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
