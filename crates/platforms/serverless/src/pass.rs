//! The pass of the platform: the shared distribution, with our own exchange in the place of the
//! abstract one.

use tessera_optimizer::physical;
use tessera_plan::{Builder, Catalogue, Edge, Node, NodeId, Order, Params, Plan, Rules, Value};
use tessera_types::Result;

/// Partitions of each worker, so that no worker has twice the partitions of another; they lie in
/// one row group.
const PARTITIONS_OF_WORKER_BITS: u32 = 3;
/// Bits of the hash from here on name the partition: those above order the slots of hash tables.
const SHIFT: i64 = 40;

/// The plan as `workers` workers run it; `in_pieces` where it has run out of memory otherwise.
///
/// # Errors
/// The plan does not verify.
pub(crate) fn for_workers(
    plan: &Plan,
    catalogue: &Catalogue,
    (workers, in_pieces): (usize, bool),
    rules: Rules,
) -> Result<Plan> {
    let bits = i64::from(workers.next_power_of_two().ilog2() + PARTITIONS_OF_WORKER_BITS);
    let workers = (crate::NAME, workers);
    physical::run_by_workers(plan, catalogue, workers, rules, &mut |out, node, edge| {
        swap(out, node, edge, (bits, in_pieces))
    })
}

fn swap(
    out: &mut Builder,
    node: Node,
    edge: &Edge,
    (bits, in_pieces): (i64, bool),
) -> Result<NodeId> {
    let keys = node.params.names_opt("keys")?;
    let mut params = Params::new();
    if !keys.is_empty() {
        params = params.with("keys", Value::names(&keys)).with("bits", bits).with("shift", SHIFT);
    }
    // Neither of the two feeds the other: what each brings is read by their join alone.
    for name in ["heavy", "meets"] {
        if let Some(value) = node.params.get(name).filter(|_| !in_pieces) {
            params.set(name, value.clone());
        }
    }
    for flag in ["gather", "first"] {
        if node.params.flag(flag)? {
            params.set(flag, true);
        }
    }
    let is_ordered = in_pieces && keys.is_empty() && edge.order == Order::Source;
    let position = is_ordered.then(|| physical::unused_name(&edge.tuple, "position"));
    if in_pieces {
        params.set("pieces", true);
    }
    if let Some(position) = &position {
        params.set("position", Value::name(position.clone()));
    }
    let there = out.add("object_exchange", &node.inputs, params);
    let all = out.add("rows_scan", &[there], Params::new().with("field", Value::name("data")));
    Ok(match position {
        None => all,
        Some(position) => physical::in_order_of(out, all, &position, &edge.tuple),
    })
}
