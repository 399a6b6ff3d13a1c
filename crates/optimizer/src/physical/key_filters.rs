//! Filters of the keys of builds, further up the streams that probe them.

use std::collections::HashMap;
use std::sync::Arc;

use tessera_plan::catalogue::Catalogue;
use tessera_plan::edge::{Edge, Traits};
use tessera_plan::graph::{Builder, Node, NodeId, Plan};
use tessera_plan::value::{Params, Value};
use tessera_plan::verify::verify_in;
use tessera_types::Result;

use super::stage::check_after;
use super::way::{Place, Ways};

/// Joins that tuples of the stream without a match do not come out of.
const DROPPING: [&str; 5] = ["inner", "semi", "right", "build_semi", "build_anti"];
/// Streams of fewer tuples are joined before a filter is made.
const STREAM_ROWS_MIN: f64 = 100_000.0;
/// More of the stream than this must have no match.
const MATCHED_MAX: f64 = 0.4;
/// How many tuples of the stream a row of the build is taken to meet where the join yields rows of
/// the build.
const MET_OF_ROW: f64 = 4.0;
/// The work of a test of a tuple, in units of what it costs to decode and carry one of its fields.
const TEST_COST: f64 = 1.5;
/// The work of a row of the build that becomes part of a filter.
const BUILD_COST: f64 = 3.0;
/// What a join costs a tuple.
const JOIN_COST: f64 = 4.0;
/// What it costs to look a tuple up that has no match.
const LOOKUP_COST: f64 = 2.0;
/// What an exchange costs a tuple.
const EXCHANGE_COST: f64 = 20.0;

/// A probe whose stream may want a filter.
struct Candidate {
    build: NodeId,
    build_keys: Vec<Arc<str>>,
    build_rows: f64,
    stream: NodeId,
    stream_rows: f64,
    keys: Vec<Arc<str>>,
    /// As of [`Placed`].
    matched: f64,
}

/// A filter that pays.
#[derive(Debug)]
struct Placed {
    /// The build, and its keys.
    build: NodeId,
    build_keys: Vec<Arc<str>>,
    /// What the part of the stream that has a match is believed to be.
    matched: f64,
    /// Behind which node the filter stands.
    place: Place,
    /// The exchanges between that and the join.
    exchanges: Vec<NodeId>,
}

/// What a tuple passes between the place of a filter and its join.
#[derive(Debug, Clone, Default)]
struct Between {
    joins: f64,
    exchanges: Vec<NodeId>,
}

/// Puts `semi_join_filter`s, each with a `key_filter` of the build's table on its side, behind the
/// scans that the keys of probes come from, where most tuples are believed to have no match and the
/// filter spares more work than it makes. The estimates are those of the planner
/// (`estimated_rows`); without them nothing is placed. A build is complete before what the filter
/// is a side of begins: the plan's edges say so, as of any side.
///
/// Where an exchange lies between, tuples of the stream meet the tables of all workers: all get the
/// filters of all.
///
/// `start` is what the leaves of the plan see.
///
/// # Errors
/// The plan does not verify.
pub fn place_key_filters(plan: &Plan, catalogue: &Catalogue, start: Traits) -> Result<Plan> {
    // Most plans have no join for it, and need no types to tell.
    let candidates = candidates(plan);
    if candidates.is_empty() {
        return Ok(plan.clone());
    }
    let edges = verify_in(plan, catalogue, start)?.edges;
    let filtered = place_filters(plan, &edges, candidates, catalogue);
    check_after("place_key_filters", &filtered, catalogue, start)?;
    Ok(filtered)
}

/// As [`place_key_filters`], for a plan whose edges are known.
pub(super) fn place_key_filters_in(plan: &Plan, edges: &[Edge], catalogue: &Catalogue) -> Plan {
    place_filters(plan, edges, candidates(plan), catalogue)
}

fn place_filters(
    plan: &Plan,
    edges: &[Edge],
    candidates: Vec<Candidate>,
    catalogue: &Catalogue,
) -> Plan {
    let ways = Ways::new(plan, edges, catalogue.functions());
    let filters = candidates.into_iter().filter_map(|candidate| filter_of(&ways, candidate));
    let mut placed: Vec<Placed> = filters.collect();
    if placed.is_empty() {
        return plan.clone();
    }
    // The filter that drops most stands first, that is, deepest.
    placed.sort_by(|a, b| a.matched.total_cmp(&b.matched));
    let mut wide = plan.clone();
    let mut made: HashMap<(NodeId, bool), NodeId> = HashMap::new();
    let mut last: HashMap<NodeId, NodeId> = HashMap::new();
    for (number, Placed { build, build_keys, place, exchanges, .. }) in
        placed.into_iter().enumerate()
    {
        let mut filter = *made.entry((build, false)).or_insert_with(|| {
            push(
                &mut wide,
                "key_filter",
                &[build],
                Params::new().with("keys", Value::names(&build_keys)),
            )
        });
        if !exchanges.is_empty() {
            filter = *made.entry((build, true)).or_insert_with(|| {
                push(&mut wide, "exchange", &[filter], Params::new().with("broadcast", true))
            });
            exchanges.iter().for_each(|exchange| part(&mut wide, *exchange));
        }
        let before = last.get(&place.node).copied().unwrap_or(place.node);
        let mut params = Params::new().with("keys", Value::names(&place.fields));
        if hears(wide.node(place.node)) {
            let name = Value::name(format!("keys_{}", number + 1));
            params.set("told", name.clone());
            hear(&mut wide, &place, name);
        }
        let dropping = push(&mut wide, "semi_join_filter", &[filter, before], params);
        wide.nodes[dropping.index()].estimated_rows = wide.node(before).estimated_rows;
        last.insert(place.node, dropping);
        for (position, node) in wide.nodes.iter_mut().enumerate() {
            if position != dropping.index() {
                node.inputs
                    .iter_mut()
                    .filter(|input| **input == before)
                    .for_each(|input| *input = dropping);
            }
        }
    }
    in_order(&wide).unwrap_or_else(|| plan.clone())
}

fn push(plan: &mut Plan, operator: &str, inputs: &[NodeId], params: Params) -> NodeId {
    let mut node = Builder::new(plan.parameters.clone());
    node.add(operator, inputs, params);
    plan.nodes.extend(node.nodes().iter().cloned());
    NodeId(plan.nodes.len() as u32 - 1)
}

/// One side of a join waits for the other now: neither exchange can look at what the other one
/// brings.
fn part(plan: &mut Plan, exchange: NodeId) {
    let Some(meets) = plan.node(exchange).param("meets").cloned() else { return };
    for node in plan.nodes.iter_mut().filter(|node| node.param("meets") == Some(&meets)) {
        node.params.remove("meets");
        node.params.remove("heavy");
    }
}

/// Whether a node is a scan that drops what filters do before it decodes the rest.
fn hears(node: &Node) -> bool {
    matches!(&*node.operator, "parquet_scan" | "block_scan")
}

fn hear(plan: &mut Plan, place: &Place, name: Value) {
    let scan = &mut plan.nodes[place.node.index()];
    let filter =
        Value::Record(vec![("of".into(), name), ("keys".into(), Value::names(&place.fields))]);
    let mut filters = match scan.params.get("filters") {
        Some(Value::List(filters)) => filters.clone(),
        _ => Vec::new(),
    };
    filters.push(filter);
    scan.params.set("filters", Value::List(filters));
}

/// The probes of which few tuples are believed to have a match.
fn candidates(plan: &Plan) -> Vec<Candidate> {
    plan.nodes.iter().filter_map(|node| candidate(plan, node)).collect()
}

fn candidate(plan: &Plan, node: &Node) -> Option<Candidate> {
    let [build, stream] = node.inputs[..] else { return None };
    let table = plan.nodes.get(build.index())?;
    let join = match node.param("join") {
        Some(Value::Name(join)) => join.clone(),
        _ => return None,
    };
    if &*node.operator != "probe" || &*table.operator != "build" || !DROPPING.contains(&&*join) {
        return None;
    }
    let expected = |params: &Params| Some(params.integer_opt("expected_rows").ok()?? as f64);
    let (stream_rows, build_rows) = (expected(&node.params)?, expected(&table.params)?);
    // What these joins yield says nothing of how much of the stream has a match.
    let met = match &*join {
        "build_semi" | "build_anti" => build_rows * MET_OF_ROW,
        _ => node.estimated_rows? as f64,
    };
    let matched = met / stream_rows.max(1.0);
    if matched > MATCHED_MAX || stream_rows < STREAM_ROWS_MIN {
        return None;
    }
    let (keys, build_keys) = (node.params.names("keys").ok()?, table.params.names("keys").ok()?);
    Some(Candidate { build, build_keys, build_rows, stream, stream_rows, keys, matched })
}

/// The filter of a probe, where there is one that pays.
fn filter_of(ways: &Ways<'_>, candidate: Candidate) -> Option<Placed> {
    let Candidate { build, build_keys, build_rows, stream, stream_rows, keys, matched } = candidate;
    let mut place = Place { node: stream, fields: keys };
    let mut between = Between::default();
    let mut best: Option<(f64, Place, Vec<NodeId>)> = None;
    while ways.may_lose_tuples(place.node) {
        let (gain, rows) = gain(ways, &place, &between, matched, stream_rows);
        let gain = gain - build_rows * BUILD_COST;
        if rows >= STREAM_ROWS_MIN
            && gain > 0.0
            && best.as_ref().is_none_or(|(most, ..)| gain > *most)
        {
            best = Some((gain, place.clone(), between.exchanges.clone()));
        }
        match &*ways.plan.node(place.node).operator {
            "exchange" => between.exchanges.push(place.node),
            "probe" | "nested_loop" => between.joins += 1.0,
            _ => {}
        }
        let Some(above) = ways.above(&place) else { break };
        place = above;
    }
    let (_, place, exchanges) = best?;
    Some(Placed { build, build_keys, matched, place, exchanges })
}

/// What a filter behind a node spares, less what testing costs; and of how many tuples.
fn gain(
    ways: &Ways<'_>,
    place: &Place,
    between: &Between,
    matched: f64,
    stream_rows: f64,
) -> (f64, f64) {
    let node = ways.plan.node(place.node);
    let rows = node.estimated_rows.map_or(stream_rows, |rows| rows as f64);
    let mut spared = between.joins * JOIN_COST + between.exchanges.len() as f64 * EXCHANGE_COST;
    if hears(node) {
        let tested = |name: &&Arc<str>| !place.fields.contains(name);
        let fields =
            node.params.names("fields").ok().map(|names| names.iter().filter(tested).count());
        let columns = node.params.tuple("columns").ok();
        let columns =
            columns.map(|tuple| tuple.fields().iter().filter(|f| tested(&&f.name)).count());
        spared += LOOKUP_COST + fields.or(columns).unwrap_or(0) as f64;
    }
    (rows * ((1.0 - matched) * spared - TEST_COST), rows)
}

/// The same plan with inputs before their consumers; nothing where there is a circle.
fn in_order(plan: &Plan) -> Option<Plan> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done(NodeId),
    }
    let mut states = vec![State::New; plan.nodes.len()];
    let mut out = Builder::new(plan.parameters.clone());
    let mut pending = vec![plan.root];
    while let Some(id) = pending.last().copied() {
        let inputs = &plan.node(id).inputs;
        match states[id.index()] {
            State::New => {
                states[id.index()] = State::Open;
                for input in inputs.iter().rev() {
                    match states[input.index()] {
                        State::New => pending.push(*input),
                        State::Open => return None,
                        State::Done(_) => {}
                    }
                }
            }
            State::Open => {
                pending.pop();
                let mut node = plan.node(id).clone();
                for input in &mut node.inputs {
                    let State::Done(new) = states[input.index()] else { return None };
                    *input = new;
                }
                states[id.index()] = State::Done(out.push(node));
            }
            State::Done(_) => {
                pending.pop();
            }
        }
    }
    match states[plan.root.index()] {
        State::Done(root) => Some(out.finish(root)),
        _ => None,
    }
}
