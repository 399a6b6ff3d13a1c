//! Exchanges whose results meet in joins take their collective steps together: one adds up the
//! histograms of all, one makes all windows.
//!
//! Each collective step waits for the slowest rank, so that two of them cost more than one with
//! twice the numbers; taken one after the other for each side, they are what a join of
//! sub-operators loses to one in one piece (Modularis §2.5.2).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tessera_plan::{Builder, Catalogue, Node, NodeId, Params, Plan, Role, Value};
use tessera_types::{Error, Result, Tuple};

/// An exchange with what was made for it alone.
#[derive(Debug, Clone)]
struct Exchange {
    exchange: NodeId,
    window: NodeId,
    histogram: NodeId,
    counted: NodeId,
    columns: Tuple,
    heavy: Option<Value>,
}

/// Puts the histograms and the windows of exchanges that meet in joins together, where none of them
/// waits for another.
///
/// # Errors
/// A sub-operator that is not in the catalogue.
pub(crate) fn step_together(plan: &Plan, catalogue: &Catalogue) -> Result<Plan> {
    let consumers = plan.consumers();
    let mut groups: Vec<Vec<Exchange>> = Vec::new();
    let mut order = None;
    for node in plan.nodes.iter().filter(|node| &*node.operator == "probe") {
        let mut meeting = Vec::new();
        for input in &node.inputs {
            let exchange = exchange_before(plan, catalogue, *input)?;
            meeting.extend(exchange.and_then(|exchange| alone(plan, &consumers, exchange)));
        }
        let bits = |exchange: &Exchange| plan.node(exchange.exchange).params.get("bits");
        if meeting.len() < 2 || meeting.iter().any(|exchange| bits(exchange) != bits(&meeting[0])) {
            continue;
        }
        let with = joined(&groups, meeting);
        // None: one of them waits for another.
        if let Some(found) = ordered(plan, &with) {
            (groups, order) = (with, Some(found));
        }
    }
    match order {
        None => Ok(plan.clone()),
        Some(order) => rebuilt(plan, &groups, &order),
    }
}

/// The groups, of which those that have one of these exchanges, and these, become one.
fn joined(groups: &[Vec<Exchange>], meeting: Vec<Exchange>) -> Vec<Vec<Exchange>> {
    let is_met = |group: &&Vec<Exchange>| {
        group
            .iter()
            .any(|member| meeting.iter().any(|exchange| exchange.exchange == member.exchange))
    };
    let (met, apart): (Vec<_>, Vec<_>) = groups.iter().partition(is_met);
    let mut group: Vec<Exchange> =
        met.into_iter().flatten().cloned().chain(meeting.iter().cloned()).collect();
    group.sort_by_key(|member| member.exchange);
    group.dedup_by_key(|member| member.exchange);
    apart.into_iter().cloned().chain([group]).collect()
}

/// The exchange whose tuples a stream brings, through whatever passes them on and into a table.
fn exchange_before(plan: &Plan, catalogue: &Catalogue, mut id: NodeId) -> Result<Option<NodeId>> {
    loop {
        let node = plan.node(id);
        let role = catalogue.descriptor(&node.operator)?.role(node);
        id = match (&*node.operator, role) {
            ("mpi_exchange", _) => return Ok(Some(id)),
            ("build", _) => node.inputs[0],
            (_, Role::Stream(input)) => node.inputs[input],
            _ => return Ok(None),
        };
    }
}

/// An exchange with its window and histograms, if nothing else uses these.
fn alone(plan: &Plan, consumers: &[Vec<NodeId>], exchange: NodeId) -> Option<Exchange> {
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
    Some(Exchange { exchange, window, histogram, counted, columns, heavy })
}

/// The nodes in an order in which all histograms of a group come before each of its windows, near
/// the plan's; none if one of the group waits for another.
fn ordered(plan: &Plan, groups: &[Vec<Exchange>]) -> Option<Vec<NodeId>> {
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

fn rebuilt(plan: &Plan, groups: &[Vec<Exchange>], order: &[NodeId]) -> Result<Plan> {
    let mut out = Builder::new(plan.parameters.clone());
    let mut new: Vec<Option<NodeId>> = vec![None; plan.nodes.len()];
    let mut windows: Vec<Option<NodeId>> = vec![None; groups.len()];
    let find = |is: &dyn Fn(&Exchange) -> bool| {
        let of =
            |(number, group): (usize, &Vec<Exchange>)| Some((number, group.iter().position(is)?));
        groups.iter().enumerate().find_map(of)
    };
    for &id in order {
        let mapped = |input: &NodeId| new[input.index()];
        let broken = || Error::internal("a plan was put together in the wrong order");
        let there = if find(&|member| member.histogram == id).is_some() {
            None
        } else if let Some((number, _)) = find(&|member| member.window == id) {
            if windows[number].is_none() {
                let counted: Option<Vec<NodeId>> =
                    groups[number].iter().map(|member| mapped(&member.counted)).collect();
                windows[number] =
                    Some(windows_of(&mut out, &groups[number], &counted.ok_or_else(broken)?));
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
        new[plan.root.index()].ok_or_else(|| Error::internal("a plan without its result"))?;
    Ok(out.finish(root))
}

/// The windows of a group, from the histograms of each rank.
fn windows_of(out: &mut Builder, group: &[Exchange], counted: &[NodeId]) -> NodeId {
    let all = out.add("union", counted, Params::new());
    let histogram = out.add("mpi_histogram", &[all], Params::new());
    let columns: Vec<Value> =
        group.iter().map(|member| Value::Tuple(member.columns.clone())).collect();
    let mut params = Params::new().with("columns", columns);
    if let [Exchange { heavy: Some(one), .. }, Exchange { heavy: Some(other), .. }] = group {
        params.set("heavy", vec![one.clone(), other.clone()]);
    }
    out.add("mpi_window", &[histogram], params)
}
