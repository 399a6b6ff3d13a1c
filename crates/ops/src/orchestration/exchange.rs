//! `exchange`, as every platform means it: tuples of equal keys come together on one worker, or all on every worker.

use tessera_plan::{Descriptor, Edge, Inputs, Locality, Node, Order, Role, Traits};
use tessera_types::{Error, Result};

use crate::describe;
use crate::operator::{Lowering, Operator, SubOperator};

/// Brings tuples of equal `keys` together on one worker, or with `broadcast` all on every worker: the input with
/// locality `all`, in no order.
///
/// By itself, in a build without the platform of its plan, it can be verified and explained, not run.
#[derive(Debug, Clone, Copy)]
pub struct Exchange;

impl Descriptor for Exchange {
    describe!(
        "exchange",
        "Sends tuples between workers so that what belongs together is in one place.",
        ["keys", "broadcast"],
        1,
        1
    );

    fn derive(&self, node: &Node, inputs: &Inputs<'_>) -> Result<Edge> {
        let edge = describe::edge(inputs)?;
        let keys = node.params.names_opt("keys")?;
        if keys.is_empty() != node.params.flag("broadcast")? {
            return Err(Error::semantic("takes either keys or broadcast = true"));
        }
        describe::keys(&edge.tuple, &keys, "key")?;
        let traits = Traits { locality: Locality::All, ..edge.traits };
        Ok(Edge { tuple: edge.tuple.clone(), traits, order: Order::None })
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
        Err(Error::unsupported("the platform is not in this build: its plans can be explained, not run"))
    }
}
