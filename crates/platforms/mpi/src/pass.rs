//! The pass of the platform: distributes a plan over ranks and replaces the exchanges of the shared
//! distribution pass with MPI sub-operators.

use tessera_optimizer::physical;
use tessera_plan::{
    Builder, Edge, Node, NodeId, OperatorCatalog, Order, Params, Plan, Rules, Value,
};
use tessera_rows::packs;
use tessera_types::Result;

use crate::{ExchangeMode, merge_steps};

/// Bits for the partitions of each rank: enough for its threads to share them and to even out
/// unequal partitions.
const PARTITIONS_OF_RANK_BITS: u32 = 3;
/// The first bit of the hash that names the partition; the bits above order the slots of hash
/// tables.
const SHIFT: i64 = 40;

/// How the exchanges of a plan move tuples.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Crossing {
    /// Exchanges by keys use this mode; others take collective steps and hold all their tuples.
    Mode(ExchangeMode),
    /// All exchanges use rounds: the fallback plan after running out of memory.
    AllInRounds,
}

/// Returns the plan that `ranks` ranks run.
///
/// # Errors
/// The plan does not verify.
pub(crate) fn for_ranks(
    plan: &Plan,
    catalog: &OperatorCatalog,
    (ranks, crossing): (usize, Crossing),
    rules: Rules,
) -> Result<Plan> {
    let bits = i64::from(ranks.next_power_of_two().ilog2() + PARTITIONS_OF_RANK_BITS);
    let mut plan = physical::run_by_workers(
        plan,
        catalog,
        (crate::NAME, ranks),
        rules,
        &mut |out, node, edge| replace_exchange(out, node, edge, (bits, crossing)),
    )?;
    for inner in plan.nodes.iter_mut().flat_map(|node| &mut node.nested) {
        *inner = merge_steps::merge_collective_steps(inner, catalog)?;
        // A window that is not shared with the other side of a join cannot have `heavy`.
        for node in inner.nodes.iter_mut().filter(|node| &*node.operator == "mpi_window") {
            if !matches!(node.param("columns"), Some(Value::List(_))) {
                node.params.remove("heavy");
            }
        }
    }
    Ok(plan)
}

/// Adds an exchange of all tuples to the first rank or to every rank, in rounds. If the consumer
/// needs the order of the source, a sort that can spill restores it.
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
        Some(position) => physical::sort_by_position(out, all, &position, &edge.tuple),
    })
}

/// Replaces an exchange with the sub-operators of the mode.
fn replace_exchange(
    out: &mut Builder,
    mut node: Node,
    edge: &Edge,
    (bits, crossing): (i64, Crossing),
) -> Result<NodeId> {
    let mode = match crossing {
        Crossing::Mode(mode) => mode,
        Crossing::AllInRounds => ExchangeMode::Rounds,
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
        if matches!(mode, ExchangeMode::TwoSided | ExchangeMode::Split | ExchangeMode::Rounds) {
            let (mut sending, mut receiving) = (params, Params::new());
            match mode {
                ExchangeMode::Split => sending.set("split", true),
                ExchangeMode::Rounds => {
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
        if mode == ExchangeMode::Packed {
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
