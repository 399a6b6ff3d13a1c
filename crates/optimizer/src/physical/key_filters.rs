//! Filters built from the keys of hash tables, applied early in probe streams.

use std::collections::HashMap;
use std::sync::Arc;

use tessera_plan::edge::{Edge, Traits};
use tessera_plan::graph::{Builder, Node, NodeId, Plan};
use tessera_plan::operator_catalog::OperatorCatalog;
use tessera_plan::value::{Params, Value};
use tessera_plan::verify::verify_in;
use tessera_types::Result;

use super::provenance::{NodeFields, Provenance};
use super::stage::check_after;

/// The joins that drop stream tuples without a match.
const DROPPING: [&str; 5] = ["inner", "semi", "right", "build_semi", "build_anti"];
/// The minimum number of tuples that a filter tests. Where earlier filters leave fewer, it still
/// lets a scan skip row groups.
const STREAM_ROWS_MIN: f64 = 100_000.0;
/// The maximum fraction of stream tuples with a match for which a filter is placed.
const MATCHED_MAX: f64 = 0.4;
/// The assumed matches per build row for joins that yield build rows.
const MET_OF_ROW: f64 = 4.0;
/// The cost of testing a tuple by one key, relative to decoding and passing on one field of it.
const TEST_COST: f64 = 1.5;
/// The cost of inserting a build row into a filter.
const BUILD_COST: f64 = 3.0;
/// The cost of a join per tuple.
const JOIN_COST: f64 = 4.0;
/// The cost of looking up a tuple without a match.
const LOOKUP_COST: f64 = 2.0;
/// The cost of an exchange per tuple.
const EXCHANGE_COST: f64 = 20.0;

/// A probe that may benefit from a filter of its stream.
struct Candidate {
    build: NodeId,
    build_keys: Vec<Arc<str>>,
    build_rows: f64,
    stream: NodeId,
    stream_rows: f64,
    keys: Vec<Arc<str>>,
    /// See [`PlacedFilter::matched`].
    matched: f64,
}

/// A filter that reduces the estimated cost.
#[derive(Debug)]
struct PlacedFilter {
    /// The build that provides the filter, and its keys.
    build: NodeId,
    build_keys: Vec<Arc<str>>,
    /// The estimated fraction of stream tuples with a match.
    matched: f64,
    /// The node after which the filter is inserted.
    place: NodeFields,
    /// The exchanges between the filter and the join.
    exchanges: Vec<NodeId>,
}

impl PlacedFilter {
    /// The estimated cost of the tests for each tuple that is dropped.
    fn cost_per_dropped(&self) -> f64 {
        self.place.fields.len() as f64 * TEST_COST / (1.0 - self.matched)
    }
}

/// The joins and exchanges between a filter and its join.
#[derive(Debug, Clone, Default)]
struct PathCost {
    joins: f64,
    exchanges: Vec<NodeId>,
}

/// Inserts `semi_join_filter`s, each with a `key_filter` of the build on its side, after the scans
/// that provide the keys of probes, where few tuples are expected to match and the filter saves
/// more work than it costs. Uses the planner's estimates (`estimated_rows`); without them, no
/// filter is inserted. The new side makes the filtered stream start after its build is complete.
///
/// If there is an exchange in between, stream tuples meet the tables of all workers, so each worker
/// gets the filters of all.
///
/// `start` are the traits of the plan's leaves.
///
/// # Errors
/// The plan is invalid.
pub fn place_key_filters(plan: &Plan, catalog: &OperatorCatalog, start: Traits) -> Result<Plan> {
    // Check for candidates before the more expensive verification; most plans have none.
    let candidates = candidates(plan);
    if candidates.is_empty() {
        return Ok(plan.clone());
    }
    let edges = verify_in(plan, catalog, start)?.edges;
    let filtered = place_filters(plan, &edges, candidates, catalog);
    check_after("place_key_filters", &filtered, catalog, start)?;
    Ok(filtered)
}

/// Like [`place_key_filters`], for a plan with known edges.
pub(super) fn place_key_filters_in(plan: &Plan, edges: &[Edge], catalog: &OperatorCatalog) -> Plan {
    place_filters(plan, edges, candidates(plan), catalog)
}

fn place_filters(
    plan: &Plan,
    edges: &[Edge],
    candidates: Vec<Candidate>,
    catalog: &OperatorCatalog,
) -> Plan {
    let provenance = Provenance::new(plan, edges, catalog.functions());
    let filters =
        candidates.into_iter().flat_map(|candidate| filters_of((&provenance, catalog), candidate));
    let mut placed: Vec<PlacedFilter> = filters.collect();
    if placed.is_empty() {
        return plan.clone();
    }
    // The filter that drops the most for its cost comes first, that is, deepest in the plan: the
    // others only test what it leaves.
    placed.sort_by(|a, b| a.cost_per_dropped().total_cmp(&b.cost_per_dropped()));
    let mut wide = plan.clone();
    let mut made: HashMap<(NodeId, bool), NodeId> = HashMap::new();
    let mut last: HashMap<NodeId, NodeId> = HashMap::new();
    for (number, PlacedFilter { build, build_keys, place, exchanges, .. }) in
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
            exchanges.iter().for_each(|exchange| make_independent(&mut wide, *exchange));
        }
        let before = last.get(&place.node).copied().unwrap_or(place.node);
        let mut params = Params::new().with("keys", Value::names(&place.fields));
        if catalog.pushes(&wide.node(place.node).operator).key_filters {
            let name = Value::name(format!("keys_{}", number + 1));
            params.set("told", name.clone());
            subscribe(&mut wide, &place, name);
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
    topological_order(&wide).unwrap_or_else(|| plan.clone())
}

fn push(plan: &mut Plan, operator: &str, inputs: &[NodeId], params: Params) -> NodeId {
    let mut node = Builder::new(plan.parameters.clone());
    node.add(operator, inputs, params);
    plan.nodes.extend(node.nodes().iter().cloned());
    NodeId(plan.nodes.len() as u32 - 1)
}

/// Removes the coordination of heavy partitions between the exchanges of a join: one side now waits
/// for the other, so neither exchange can inspect the other's tuples.
fn make_independent(plan: &mut Plan, exchange: NodeId) {
    let Some(meets) = plan.node(exchange).param("meets").cloned() else { return };
    for node in plan.nodes.iter_mut().filter(|node| node.param("meets") == Some(&meets)) {
        node.params.remove("meets");
        node.params.remove("heavy");
    }
}

fn subscribe(plan: &mut Plan, place: &NodeFields, name: Value) {
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

/// Returns the probes with few expected matches.
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
    // The output size of these joins does not tell how many stream tuples match.
    let met = match &*join {
        "build_semi" | "build_anti" => build_rows * MET_OF_ROW,
        _ => node.estimated_rows? as f64,
    };
    let matched = met / stream_rows.max(1.0);
    if matched > MATCHED_MAX {
        return None;
    }
    let (keys, build_keys) = (node.params.names("keys").ok()?, table.params.names("keys").ok()?);
    Some(Candidate { build, build_keys, build_rows, stream, stream_rows, keys, matched })
}

/// Returns the best positions for a probe's filter, if any reduce the cost. There are several where
/// the stream is a union.
fn filters_of(
    context: (&Provenance<'_>, &OperatorCatalog),
    candidate: Candidate,
) -> Vec<PlacedFilter> {
    let start = NodeFields { node: candidate.stream, fields: candidate.keys.clone() };
    let best = best_places(context, &candidate, start, PathCost::default());
    if best.gain <= candidate.build_rows * BUILD_COST {
        return Vec::new();
    }
    let placed = best.places.into_iter().map(|(place, exchanges)| PlacedFilter {
        build: candidate.build,
        build_keys: candidate.build_keys.clone(),
        matched: candidate.matched,
        place,
        exchanges,
    });
    placed.collect()
}

/// Places of filters, each with the exchanges between it and the join.
#[derive(Default)]
struct Places {
    gain: f64,
    places: Vec<(NodeFields, Vec<NodeId>)>,
}

/// Returns the places that gain most, at or above a node.
fn best_places(
    context: (&Provenance<'_>, &OperatorCatalog),
    candidate: &Candidate,
    mut place: NodeFields,
    mut path: PathCost,
) -> Places {
    let provenance = context.0;
    let mut best = Places::default();
    while provenance.may_lose_tuples(place.node) {
        let (gain, rows) = gain(context, &place, &path, candidate.matched, candidate.stream_rows);
        if rows >= STREAM_ROWS_MIN && gain > best.gain {
            best = Places { gain, places: vec![(place.clone(), path.exchanges.clone())] };
        }
        match &*provenance.plan.node(place.node).operator {
            "exchange" => path.exchanges.push(place.node),
            "probe" | "nested_loop" | "inequality_join" => path.joins += 1.0,
            "union" => {
                let mut all = Places::default();
                for branch in provenance.branches_of(&place) {
                    let found = best_places(context, candidate, branch, path.clone());
                    all.gain += found.gain;
                    all.places.extend(found.places);
                }
                return if all.gain > best.gain { all } else { best };
            }
            _ => {}
        }
        let Some(above) = provenance.source_of(&place) else { break };
        place = above;
    }
    best
}

/// Returns the cost that a filter after a node saves, minus the cost of its tests, and the number
/// of tuples it tests.
fn gain(
    (provenance, catalog): (&Provenance<'_>, &OperatorCatalog),
    place: &NodeFields,
    path: &PathCost,
    matched: f64,
    stream_rows: f64,
) -> (f64, f64) {
    let node = provenance.plan.node(place.node);
    let rows = node.estimated_rows.map_or(stream_rows, |rows| rows as f64);
    let mut spared = path.joins * JOIN_COST + path.exchanges.len() as f64 * EXCHANGE_COST;
    if catalog.pushes(&node.operator).key_filters {
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

/// Sorts a plan topologically; `None` if it has a cycle.
fn topological_order(plan: &Plan) -> Option<Plan> {
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
