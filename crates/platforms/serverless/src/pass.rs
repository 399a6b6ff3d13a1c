//! The pass of the platform: the shared distribution, with our own exchange in the place of the abstract one.

use tessera_plan::{Builder, Catalogue, Node, NodeId, Params, Plan, Rules, Value, pass};
use tessera_types::Result;

/// Partitions of each worker, so that no worker has twice the partitions of another; they lie in one row group.
const PARTITIONS_OF_WORKER_BITS: u32 = 3;
/// Bits of the hash from here on name the partition: those above order the slots of hash tables.
const SHIFT: i64 = 40;

/// The plan as `workers` workers run it.
///
/// # Errors
/// The plan does not verify.
pub(crate) fn for_workers(plan: &Plan, catalogue: &Catalogue, workers: usize, rules: Rules) -> Result<Plan> {
    let bits = i64::from(workers.next_power_of_two().ilog2() + PARTITIONS_OF_WORKER_BITS);
    let workers = (crate::NAME, workers);
    pass::run_by_workers(plan, catalogue, workers, rules, &mut |out, node, _| swap(out, node, bits))
}

fn swap(out: &mut Builder, node: Node, bits: i64) -> Result<NodeId> {
    let keys = node.params.names_opt("keys")?;
    let mut params = Params::new();
    if !keys.is_empty() {
        params = params.with("keys", Value::names(&keys)).with("bits", bits).with("shift", SHIFT);
    }
    // Neither of the two feeds the other: what each brings is read by their join alone.
    for name in ["heavy", "meets"] {
        if let Some(value) = node.params.get(name) {
            params.set(name, value.clone());
        }
    }
    for flag in ["gather", "first"] {
        if node.params.flag(flag)? {
            params.set(flag, true);
        }
    }
    let there = out.add("object_exchange", &node.inputs, params);
    Ok(out.add("rows_scan", &[there], Params::new().with("field", Value::name("data"))))
}
