//! The pass of the platform: the shared distribution, with our own sub-operators in the place of
//! its exchanges.

use tessera_optimizer::physical;
use tessera_plan::{Builder, Catalogue, Edge, Node, NodeId, Order, Params, Plan, Rules, Value};
use tessera_rows::packs;
use tessera_types::Result;

use crate::{Way, together};

/// Partitions of each rank: enough for its threads to share out, and to make unequal partitions
/// equal work.
const PARTITIONS_OF_RANK_BITS: u32 = 3;
/// Bits of the hash from here on name the partition: those above order the slots of hash tables.
const SHIFT: i64 = 40;

/// How tuples cross in a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Crossing {
    /// By keys this way, and else in collective steps, which hold all of it.
    By(Way),
    /// In rounds, whatever crosses: of a plan that has run out of memory otherwise.
    AllInRounds,
}

/// The plan as `ranks` ranks run it.
///
/// # Errors
/// The plan does not verify.
pub(crate) fn for_ranks(
    plan: &Plan,
    catalogue: &Catalogue,
    (ranks, crossing): (usize, Crossing),
    rules: Rules,
) -> Result<Plan> {
    let bits = i64::from(ranks.next_power_of_two().ilog2() + PARTITIONS_OF_RANK_BITS);
    let mut plan = physical::run_by_workers(
        plan,
        catalogue,
        (crate::NAME, ranks),
        rules,
        &mut |out, node, edge| swap(out, node, edge, (bits, crossing)),
    )?;
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

/// All tuples to the first rank or to every one, in rounds. What is wanted in the order of the
/// source is put in order there, by a sort that leaves memory where it must.
fn all_in_rounds(out: &mut Builder, node: &Node, edge: &Edge) -> Result<NodeId> {
    let gather = node.params.flag("gather")?;
    let mut params =
        Params::new().with(if gather { "gather" } else { "broadcast" }, true).with("rounds", true);
    let position =
        (edge.order == Order::Source).then(|| physical::unused_name(&edge.tuple, "position"));
    if let Some(position) = &position {
        params.set("position", Value::name(position.clone()));
    }
    let sent = out.add("mpi_send", &node.inputs, params);
    let there = out.add("mpi_receive", &[sent], Params::new().with("rounds", true));
    let all = out.add("rows_scan", &[there], Params::new().with("field", Value::name("data")));
    Ok(match position {
        None => all,
        Some(position) => physical::in_order_of(out, all, &position, &edge.tuple),
    })
}

fn swap(
    out: &mut Builder,
    mut node: Node,
    edge: &Edge,
    (bits, crossing): (i64, Crossing),
) -> Result<NodeId> {
    let way = match crossing {
        Crossing::By(way) => way,
        Crossing::AllInRounds => Way::Rounds,
    };
    let keys = node.params.names_opt("keys")?;
    let mut params = Params::new();
    if node.params.flag("first")? {
        node.inputs = vec![out.add("mpi_first", &node.inputs, Params::new())];
    }
    let there = if keys.is_empty() && matches!(crossing, Crossing::AllInRounds) {
        return all_in_rounds(out, &node, edge);
    } else if keys.is_empty() {
        if node.params.flag("gather")? {
            params.set("gather", true);
        }
        out.add("mpi_broadcast", &node.inputs, params)
    } else {
        let params =
            params.with("keys", Value::names(&keys)).with("bits", bits).with("shift", SHIFT);
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
            return Ok(out.add(
                "rows_scan",
                &[there],
                Params::new().with("field", Value::name("data")),
            ));
        }
        let mut counting = params.clone().with("strings", true);
        if way == Way::Packed {
            let packed = edge.tuple.fields().iter().filter(|field| packs(&field.item));
            let names: Vec<_> = packed.map(|field| field.name.clone()).collect();
            counting.set("ranges", Value::names(&names));
        }
        let counted = out.add("local_histogram", &node.inputs, counting);
        let histogram = out.add("mpi_histogram", &[counted], Params::new());
        let mut wanted = Params::new().with("columns", edge.tuple.clone());
        if let Some(heavy) = node.params.get("heavy") {
            wanted.set("heavy", heavy.clone());
        }
        let window = out.add("mpi_window", &[histogram], wanted);
        out.add("mpi_exchange", &[node.inputs[0], window], params)
    };
    Ok(out.add("rows_scan", &[there], Params::new().with("field", Value::name("data"))))
}
