//! Merges the collective steps of exchanges that feed one join: one step sums all their histograms,
//! and one allocates all their windows.
//!
//! Each collective step waits for the slowest rank, so two steps cost more than one with twice the
//! numbers. Separate steps for the two sides are what a join of sub-operators loses to a monolithic
//! one (Modularis §2.5.2).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tessera_plan::{Builder, Node, NodeId, OperatorCatalog, Params, Plan, Role, Value};
use tessera_types::{Error, Result, Tuple};

/// An exchange with the window and histograms that only it uses.
#[derive(Debug, Clone)]
struct ExchangeChain {
    exchange: NodeId,
    window: NodeId,
    histogram: NodeId,
    counted: NodeId,
    columns: Tuple,
    heavy: Option<Value>,
}

/// Merges the histograms and windows of exchanges that feed one join, unless one of them depends on
/// another.
///
/// # Errors
/// A sub-operator is not in the catalog.
pub(crate) fn merge_collective_steps(plan: &Plan, catalog: &OperatorCatalog) -> Result<Plan> {
    let consumers = plan.consumers();
    let mut groups: Vec<Vec<ExchangeChain>> = Vec::new();
    let mut order = None;
    for node in plan.nodes.iter().filter(|node| &*node.operator == "probe") {
        let mut members = Vec::new();
        for input in &node.inputs {
            let exchange = exchange_before(plan, catalog, *input)?;
            members
                .extend(exchange.and_then(|exchange| exclusive_chain(plan, &consumers, exchange)));
        }
        let bits = |exchange: &ExchangeChain| plan.node(exchange.exchange).params.get("bits");
        if members.len() < 2 || members.iter().any(|exchange| bits(exchange) != bits(&members[0])) {
            continue;
        }
        let merged = merge_groups(&groups, members);
        // Without an order, one exchange depends on another: they stay separate.
        if let Some(found) = merged_order(plan, &merged) {
            (groups, order) = (merged, Some(found));
        }
    }
    match order {
        None => Ok(plan.clone()),
        Some(order) => rebuild(plan, &groups, &order),
    }
}

/// Adds `members` to the groups; groups that share one of its exchanges are merged with it.
fn merge_groups(
    groups: &[Vec<ExchangeChain>],
    members: Vec<ExchangeChain>,
) -> Vec<Vec<ExchangeChain>> {
    let overlaps = |group: &&Vec<ExchangeChain>| {
        group
            .iter()
            .any(|member| members.iter().any(|exchange| exchange.exchange == member.exchange))
    };
    let (overlapping, disjoint): (Vec<_>, Vec<_>) = groups.iter().partition(overlaps);
    let mut group: Vec<ExchangeChain> =
        overlapping.into_iter().flatten().cloned().chain(members.iter().cloned()).collect();
    group.sort_by_key(|member| member.exchange);
    group.dedup_by_key(|member| member.exchange);
    disjoint.into_iter().cloned().chain([group]).collect()
}

/// Returns the exchange that produces the tuples of a stream, through streams and builds.
fn exchange_before(
    plan: &Plan,
    catalog: &OperatorCatalog,
    mut id: NodeId,
) -> Result<Option<NodeId>> {
    loop {
        let node = plan.node(id);
        let role = catalog.descriptor(&node.operator)?.role(node);
        id = match (&*node.operator, role) {
            ("mpi_exchange", _) => return Ok(Some(id)),
            ("build", _) => node.inputs[0],
            (_, Role::Stream(input)) => node.inputs[input],
            _ => return Ok(None),
        };
    }
}

/// Returns an exchange with its window and histograms, if nothing else uses these.
fn exclusive_chain(
    plan: &Plan,
    consumers: &[Vec<NodeId>],
    exchange: NodeId,
) -> Option<ExchangeChain> {
    let input = |id: NodeId, at: usize, operator: &str| {
        let input = *plan.node(id).inputs.get(at)?;
        let is_own = &*plan.node(input).operator == operator && consumers[input.index()].len() == 1;
        is_own.then_some(input)
    };
    let window = input(exchange, 1, "mpi_window")?;
    let histogram = input(window, 0, "mpi_histogram")?;
    let counted = input(histogram, 0, "local_histogram")?;
    let params = &plan.node(window).params;
    let (columns, heavy) = (params.tuple("columns").ok()?.clone(), params.get("heavy").cloned());
    Some(ExchangeChain { exchange, window, histogram, counted, columns, heavy })
}

/// Returns an order of the nodes, close to the plan's, in which all histograms of a group come
/// before its windows; `None` if an exchange of a group depends on another.
fn merged_order(plan: &Plan, groups: &[Vec<ExchangeChain>]) -> Option<Vec<NodeId>> {
    let mut inputs: Vec<Vec<NodeId>> = plan.nodes.iter().map(|node| node.inputs.clone()).collect();
    for group in groups {
        for member in group {
            inputs[member.window.index()].extend(group.iter().map(|other| other.counted));
        }
    }
    let mut consumers = vec![Vec::new(); plan.nodes.len()];
    let mut missing = vec![0; plan.nodes.len()];
    for (id, inputs) in plan.ids().zip(inputs) {
        missing[id.index()] = inputs.len();
        inputs.iter().for_each(|input| consumers[input.index()].push(id));
    }
    let mut ready: BinaryHeap<_> =
        plan.ids().filter(|id| missing[id.index()] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(plan.nodes.len());
    while let Some(Reverse(id)) = ready.pop() {
        order.push(id);
        for consumer in &consumers[id.index()] {
            missing[consumer.index()] -= 1;
            if missing[consumer.index()] == 0 {
                ready.push(Reverse(*consumer));
            }
        }
    }
    (order.len() == plan.nodes.len()).then_some(order)
}

/// Copies the plan in this order, with the shared steps of each group in place of its own.
fn rebuild(plan: &Plan, groups: &[Vec<ExchangeChain>], order: &[NodeId]) -> Result<Plan> {
    let mut out = Builder::new(plan.parameters.clone());
    let mut new: Vec<Option<NodeId>> = vec![None; plan.nodes.len()];
    let mut windows: Vec<Option<NodeId>> = vec![None; groups.len()];
    let find = |is: &dyn Fn(&ExchangeChain) -> bool| {
        let of = |(number, group): (usize, &Vec<ExchangeChain>)| {
            Some((number, group.iter().position(is)?))
        };
        groups.iter().enumerate().find_map(of)
    };
    for &id in order {
        let mapped = |input: &NodeId| new[input.index()];
        let broken = || Error::internal("merged plan in the wrong order");
        let there = if find(&|member| member.histogram == id).is_some() {
            None
        } else if let Some((number, _)) = find(&|member| member.window == id) {
            if windows[number].is_none() {
                let counted: Option<Vec<NodeId>> =
                    groups[number].iter().map(|member| mapped(&member.counted)).collect();
                windows[number] =
                    Some(add_windows(&mut out, &groups[number], &counted.ok_or_else(broken)?));
            }
            windows[number]
        } else {
            let mut node: Node = plan.node(id).clone();
            node.inputs =
                node.inputs.iter().map(mapped).collect::<Option<_>>().ok_or_else(broken)?;
            if let Some((_, position)) = find(&|member| member.exchange == id) {
                node.params.set("window", Value::name(format!("window_{}", position + 1)));
            }
            Some(out.push(node))
        };
        new[id.index()] = there;
    }
    let root =
        new[plan.root.index()].ok_or_else(|| Error::internal("merged plan without its root"))?;
    Ok(out.finish(root))
}

/// Adds the shared histogram and windows of a group.
fn add_windows(out: &mut Builder, group: &[ExchangeChain], counted: &[NodeId]) -> NodeId {
    let all = out.add("union", counted, Params::new());
    let histogram = out.add("mpi_histogram", &[all], Params::new());
    let columns: Vec<Value> =
        group.iter().map(|member| Value::Tuple(member.columns.clone())).collect();
    let mut params = Params::new().with("columns", columns);
    if let [ExchangeChain { heavy: Some(one), .. }, ExchangeChain { heavy: Some(other), .. }] =
        group
    {
        params.set("heavy", vec![one.clone(), other.clone()]);
    }
    out.add("mpi_window", &[histogram], params)
}
