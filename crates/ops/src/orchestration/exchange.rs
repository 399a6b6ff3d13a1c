//! `exchange`, as every platform means it: tuples of equal keys come together on one worker, or all on every worker.

use tessera_plan::{Edge, Inputs, Locality, Node, Order, Traits};
use tessera_types::{Error, Result};

use crate::describe;

/// The parameters every platform's exchange takes.
pub const PARAMETERS: &[&str] = &["keys", "broadcast"];

/// The output: the input with locality `all`, in no order.
///
/// # Errors
/// Neither keys nor broadcast are asked for, or a key is not a field.
pub fn derive(node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
    let edge = describe::edge(inputs)?;
    let keys = node.params.names_opt("keys")?;
    if keys.is_empty() == !node.params.flag("broadcast")? {
        return Err(Error::semantic("takes either keys or broadcast = true"));
    }
    describe::keys(&edge.tuple, &keys, "key")?;
    let traits = Traits { locality: Locality::All, ..edge.traits };
    Ok(Edge { tuple: edge.tuple.clone(), traits, order: Order::None })
}
