//! `exchange`, as every platform means it: tuples of equal keys come together on one worker, or all
//! on every worker, or all on the first.

use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_types::{Error, Result};

use super::Heavy;
use crate::describe;
use crate::{Lowering, Operator, SubOperator};

/// Brings tuples of equal `keys` together on one worker, or with `broadcast` all on every worker,
/// or with `gather` all on the first: the input with locality `all`. Only `gather` keeps the
/// source's order. With `first`, only what the first worker has is sent: every other has the same,
/// or nothing that counts.
///
/// With `heavy`, what meets in a join need not be where its keys say, if it does meet: where one
/// side has most of its tuples in few partitions, `split` lets these stay where they are while
/// those of the other side, `copied`, go to every worker; `either` lets both. The two exchanges of
/// one join have the same name in `meets`. A platform may leave it.
///
/// By itself, in a build without the platform of its plan, it can be verified and explained, not
/// run.
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
            return Err(Error::semantic("takes one of keys, broadcast = true and gather = true"));
        }
        describe::keys(&edge.tuple, &keys, "key")?;
        node.params.flag("first")?;
        if Heavy::of(node)?.is_some() {
            node.params.name("meets")?;
        }
        let traits = Traits { locality: Locality::All, ..edge.traits };
        let order = if gather && edge.order == Order::Source { Order::Source } else { Order::None };
        Ok(Edge { tuple: edge.tuple.clone(), traits, order })
    }

    fn role(&self, _node: &Node) -> Role {
        Role::Stream(0)
    }

    fn of_platform(&self) -> bool {
        true
    }
}

impl SubOperator for Exchange {
    fn lower(&self, _node: &Node, _lowering: &Lowering<'_>) -> Result<Operator> {
        Err(Error::unsupported(
            "the platform is not in this build: its plans can be explained, not run",
        ))
    }
}
