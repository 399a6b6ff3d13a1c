//! The pass of the platform: distributes a plan over workers and replaces the exchanges of the
//! shared distribution pass with `object_exchange`.

use tessera_optimizer::physical;
use tessera_plan::{
    Builder, Edge, Node, NodeId, OperatorCatalog, Order, Params, Plan, Rules, Value,
};
use tessera_types::Result;

/// Bits for the partitions of each worker, so that no worker has twice the partitions of another;
/// they share one row group.
const PARTITIONS_OF_WORKER_BITS: u32 = 3;
/// The first bit of the hash that names the partition; the bits above order the slots of hash
/// tables.
const SHIFT: i64 = 40;

/// Returns the plan that `workers` workers run; `in_pieces` is for the fallback plan after running
/// out of memory.
///
/// # Errors
/// The plan does not verify.
pub(crate) fn for_workers(
    plan: &Plan,
    catalog: &OperatorCatalog,
    (workers, in_pieces): (usize, bool),
    rules: Rules,
) -> Result<Plan> {
    let bits = i64::from(workers.next_power_of_two().ilog2() + PARTITIONS_OF_WORKER_BITS);
    let workers = (crate::NAME, workers);
    physical::run_by_workers(plan, catalog, workers, rules, &mut |out, node, edge| {
        replace_exchange(out, node, edge, (bits, in_pieces))
    })
}

/// Replaces an exchange with an `object_exchange`.
fn replace_exchange(
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
    // Neither side of the join is an input of the other, so `meets` is safe here.
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
        Some(position) => physical::sort_by_position(out, all, &position, &edge.tuple),
    })
}
