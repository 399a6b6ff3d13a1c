//! The pass of the platform: the shared distribution, with our own sub-operators in the place of its exchanges.

use tessera_ops::rows::packs;
use tessera_plan::{Builder, Catalogue, Node, NodeId, Params, Plan, Rules, Value, pass};
use tessera_types::{Result, Tuple};

use crate::{Way, together};

/// Partitions of each rank: enough for its threads to share out, and to make unequal partitions equal work.
const PARTITIONS_OF_RANK_BITS: u32 = 3;
/// Bits of the hash from here on name the partition: those above order the slots of hash tables.
const SHIFT: i64 = 40;

/// The plan as `ranks` ranks run it.
///
/// # Errors
/// The plan does not verify.
pub(crate) fn for_ranks(
    plan: &Plan,
    catalogue: &Catalogue,
    (ranks, way): (usize, Way),
    rules: Rules,
) -> Result<Plan> {
    let bits = i64::from(ranks.next_power_of_two().ilog2() + PARTITIONS_OF_RANK_BITS);
    let mut plan =
        pass::run_by_workers(plan, catalogue, (crate::NAME, ranks), rules, &mut |out, node, tuple| {
            swap(out, node, tuple, (bits, way))
        })?;
    for inner in plan.nodes.iter_mut().flat_map(|node| &mut node.nested) {
        *inner = together::step_together(inner, catalogue)?;
        // A window by itself has no other side.
        for node in inner.nodes.iter_mut().filter(|node| &*node.operator == "mpi_window") {
            if !matches!(node.param("columns"), Some(Value::List(_))) {
                node.params.remove("heavy");
            }
        }
    }
    Ok(plan)
}

fn swap(out: &mut Builder, mut node: Node, tuple: &Tuple, (bits, way): (i64, Way)) -> Result<NodeId> {
    let keys = node.params.names_opt("keys")?;
    let mut params = Params::new();
    if node.params.flag("first")? {
        node.inputs = vec![out.add("mpi_first", &node.inputs, Params::new())];
    }
    let there = if keys.is_empty() {
        if node.params.flag("gather")? {
            params.set("gather", true);
        }
        out.add("mpi_broadcast", &node.inputs, params)
    } else {
        let params = params.with("keys", Value::names(&keys)).with("bits", bits).with("shift", SHIFT);
        if matches!(way, Way::TwoSided | Way::Split | Way::Rounds) {
            let (mut sending, mut receiving) = (params, Params::new());
            match way {
                Way::Split => sending.set("split", true),
                Way::Rounds => {
                    sending.set("rounds", true);
                    receiving.set("rounds", true);
                }
                _ => {}
            }
            let sent = out.add("mpi_send", &node.inputs, sending);
            let there = out.add("mpi_receive", &[sent], receiving);
            return Ok(out.add("rows_scan", &[there], Params::new().with("field", Value::name("data"))));
        }
        let mut counting = params.clone().with("strings", true);
        if way == Way::Packed {
            let packed = tuple.fields().iter().filter(|field| packs(&field.item));
            let names: Vec<_> = packed.map(|field| field.name.clone()).collect();
            counting.set("ranges", Value::names(&names));
        }
        let counted = out.add("local_histogram", &node.inputs, counting);
        let histogram = out.add("mpi_histogram", &[counted], Params::new());
        let mut wanted = Params::new().with("columns", tuple.clone());
        if let Some(heavy) = node.params.get("heavy") {
            wanted.set("heavy", heavy.clone());
        }
        let window = out.add("mpi_window", &[histogram], wanted);
        out.add("mpi_exchange", &[node.inputs[0], window], params)
    };
    Ok(out.add("rows_scan", &[there], Params::new().with("field", Value::name("data"))))
}
