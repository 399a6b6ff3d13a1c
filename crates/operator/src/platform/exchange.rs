//! The descriptor of `exchange` on every platform: partitions tuples by key, or broadcasts or
//! gathers them.

use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_types::{Error, Result};

use super::HeavyMode;
use crate::describe;
use crate::{Lowering, Operator, SubOperator};

/// Redistributes tuples between workers: by hash of `keys`, to every worker with `broadcast`, or to
/// the first with `gather`. The output has locality `all`. Only `gather` keeps the source's order.
/// With `first`, only the first worker's tuples are sent: the other workers have the same tuples,
/// or none that matter.
///
/// `heavy` lets the exchanges of a join move heavy partitions differently, as long as matching
/// tuples meet: with `split` their tuples stay where they are, with `copied` they go to every
/// worker while those of the other side stay; `either` permits both. The two exchanges of one join
/// have the same name in `meets`. A platform may ignore `heavy`.
///
/// Without the platform of its plan, a build can verify and explain an exchange, but not run it.
#[derive(Debug, Clone, Copy)]
pub struct Exchange;

impl Descriptor for Exchange {
    describe!(
        "exchange",
        "Sends tuples between workers so that what belongs together is in one place.",
        ["keys", "broadcast", "gather", "first", "heavy", "meets"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        let keys = node.params.names_opt("keys")?;
        let (broadcast, gather) = (node.params.flag("broadcast")?, node.params.flag("gather")?);
        if usize::from(!keys.is_empty()) + usize::from(broadcast) + usize::from(gather) != 1 {
            return Err(Error::semantic("expected one of keys, broadcast = true, gather = true"));
        }
        describe::keys(&edge.tuple, &keys, "key")?;
        node.params.flag("first")?;
        if HeavyMode::of(node)?.is_some() {
            node.params.name("meets")?;
        }
        let traits = Traits { locality: Locality::All, ..edge.traits };
        let order = if gather && edge.order == Order::Source { Order::Source } else { Order::None };
        Ok(Edge { tuple: edge.tuple.clone(), traits, order })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }

    fn is_platform_specific(&self) -> bool {
        true
    }
}

impl SubOperator for Exchange {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Err(Error::unsupported(
            "this build lacks the platform of this plan; it can explain the plan but not run it",
        ))
    }
}
