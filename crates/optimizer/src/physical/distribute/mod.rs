//! Distribution of a plan over workers that share no memory: inserts exchanges.
//!
//! Every worker runs the whole plan on its own part of the leaves. Before a sub-operator that needs
//! more than its part, there is an *exchange*: by keys (joins, grouping), to all workers (small
//! build sides, results of aggregates), or to the first worker (sorts, limits, and all
//! sub-operators not known to work on parts). Aggregates and limits are first computed on the
//! parts. Platforms call [`distribute`] and replace the abstract exchange by their own (Modularis
//! §2.3.1 step 5; the choice of join: §2.4.2, and Barthels et al. for the shuffle).

mod aggregate;
mod join;
mod place;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_plan::edge::{Edge, Locality, Order, Parallelism, Traits};
use tessera_plan::expr::Expr;
use tessera_plan::graph::{Builder, Node, NodeId, Plan};
use tessera_plan::operator_catalog::{OperatorCatalog, Role};
use tessera_plan::rewrite::{expressions, is_volatile};
use tessera_plan::rule::{Rule, Rules};
use tessera_plan::value::{Params, Value};
use tessera_types::{Result, Tuple};

use super::key_filters::place_key_filters_in;
use super::merge::insert_merges_with_edges;

use self::join::JoinExchanges;
use self::place::{Class, Placement, contains};

/// A plan for several workers.
#[derive(Debug, Clone)]
pub struct DistributedPlan {
    /// The plan that every worker runs; its result is that of the first worker.
    pub workers: Plan,
    /// The node that the driver runs on the result: writing a file.
    pub driver: Option<Node>,
}

/// Inserts exchanges into a plan that `workers` workers run together, each on its part of the
/// leaves.
///
/// # Errors
/// The plan is invalid.
pub fn distribute(
    plan: &Plan,
    catalog: &OperatorCatalog,
    workers: usize,
    rules: Rules,
) -> Result<DistributedPlan> {
    let verified = tessera_plan::verify_in(plan, catalog, tessera_plan::Traits::DRIVER)?;
    let mut distributor = Distributor {
        plan,
        catalog,
        edges: &verified.edges,
        workers: workers.max(1) as f64,
        rules,
        out: Builder::new(plan.parameters.clone()),
        placed: Vec::with_capacity(plan.nodes.len()),
        exchanged: HashMap::new(),
        join_exchanges: Vec::new(),
        relied_on: HashSet::new(),
    };
    // Only the driver writes a file; otherwise each worker would write it.
    let root = plan.node(plan.root);
    let driver = (root.operator.ends_with("_materialize") && root.param("path").is_some())
        .then(|| root.clone());
    for id in plan.ids().filter(|id| driver.is_none() || *id != plan.root) {
        let placed = distributor.place(id)?;
        distributor.placed.push(placed);
    }
    let result = match &driver {
        Some(node) => node.inputs[0],
        None => plan.root,
    };
    let result = distributor.input(result)?;
    let root = distributor.gather(result);
    let Distributor { out, join_exchanges, relied_on, .. } = distributor;
    let mut workers = out.finish(root.id);
    join::allow_heavy(&mut workers, &join_exchanges, &relied_on);
    Ok(DistributedPlan { workers: tessera_plan::rewrite::remove_unreachable(&workers), driver })
}

/// Returns the plan of a platform with workers that share no memory: [`distribute`] inserts
/// exchanges, merges combine the threads of a worker, `swap` replaces each exchange given its
/// output edge, and an executor encloses the plan. The edge has no order if order does not matter.
///
/// # Errors
/// The plan is invalid.
pub fn run_by_workers(
    plan: &Plan,
    catalog: &OperatorCatalog,
    (platform, workers): (&str, usize),
    rules: Rules,
    swap: &mut dyn FnMut(&mut Builder, Node, &Edge) -> Result<NodeId>,
) -> Result<Plan> {
    let distributed = distribute(plan, catalog, workers, rules)?;
    let start =
        Traits { parallelism: Parallelism::Many, locality: Locality::Worker, ..Traits::DRIVER };
    let (mut merged, mut edges) = insert_merges_with_edges(&distributed.workers, catalog, start)?;
    if rules.has(Rule::KeyFilters) {
        let filtered = place_key_filters_in(&merged, &edges, catalog);
        if filtered != merged {
            (merged, edges) = insert_merges_with_edges(&filtered, catalog, start)?;
        }
    }
    let consumers = merged.consumers();
    // A sort does not depend on the order of its input, but window functions do among peers.
    let is_sorted = |id: NodeId| {
        let readers = &consumers[id.index()];
        let sorts = |id: &NodeId| {
            let node = merged.node(*id);
            &*node.operator == "sort" && node.param("partition").is_none()
        };
        !readers.is_empty() && readers.iter().all(sorts)
    };
    let inner =
        tessera_plan::rewrite::map_nodes(&merged, &mut |out, id, node| match &*node.operator {
            "exchange" => {
                let mut edge = edges[id.index()].clone();
                if is_sorted(id) {
                    edge.order = Order::None;
                }
                swap(out, node, &edge)
            }
            _ => Ok(out.push(node)),
        })?;
    let mut outer = Builder::new(Tuple::empty());
    let params = Params::new().with("platform", Value::name(platform));
    let mut root = outer.add_nested("executor", &[], params, vec![inner]);
    if let Some(mut node) = distributed.driver {
        node.inputs = vec![root];
        root = outer.push(node);
    }
    Ok(outer.finish(root))
}

/// Returns a name based on `name` that no field of the tuple has.
pub fn unused_name(tuple: &Tuple, name: &str) -> Arc<str> {
    let numbered = (1..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_string()).chain(numbered);
    let unused = names.find(|name| tuple.index_of(name).is_none());
    unused.unwrap_or_default().into()
}

/// Sorts tuples by a field with their positions in the source, and removes this field.
pub fn sort_by_position(
    out: &mut Builder,
    positioned: NodeId,
    position: &Arc<str>,
    tuple: &Tuple,
) -> NodeId {
    let key = Value::Record(vec![("field".into(), Value::Expr(Expr::field(position.clone())))]);
    let sorted = out.add("sort", &[positioned], Params::new().with("keys", vec![key]));
    let names: Vec<_> = tuple.fields().iter().map(|field| field.name.clone()).collect();
    out.add("projection", &[sorted], Params::new().with("fields", Value::names(&names)))
}

/// A node of the new plan, and the placement of its tuples.
#[derive(Debug, Clone)]
struct PlacedNode {
    id: NodeId,
    place: Placement,
}

struct Distributor<'a> {
    plan: &'a Plan,
    catalog: &'a OperatorCatalog,
    edges: &'a [Edge],
    workers: f64,
    rules: Rules,
    out: Builder,
    /// The new nodes by old node; a build is placed when its probe is.
    placed: Vec<Option<PlacedNode>>,
    exchanged: HashMap<(NodeId, Vec<Arc<str>>, &'static str), NodeId>,
    /// The partitioning exchanges of both sides of joins.
    join_exchanges: Vec<JoinExchanges>,
    /// The partitioning exchanges on which other nodes than their join depend.
    relied_on: HashSet<NodeId>,
}

impl Distributor<'_> {
    fn place(&mut self, id: NodeId) -> Result<Option<PlacedNode>> {
        let node = self.plan.node(id).clone();
        let role = self.catalog.descriptor(&node.operator)?.role(&node);
        Ok(Some(match &*node.operator {
            "build" => return Ok(None),
            "probe" => self.probe(node)?,
            "reduce" => self.reduce(id, node)?,
            "reduce_by_key" => self.reduce_by_key(id, node)?,
            "group_by" => self.group_by(node)?,
            "sort" if node.params.integer_opt("partition")?.is_some_and(|count| count > 0) => {
                self.sort_partitions(node)?
            }
            "sort" if node.params.flag("partial")? => self.stream(id, node, 0)?,
            "limit" | "top_k" => self.top_k(node)?,
            "union" => self.union(node)?,
            _ if node.inputs.is_empty() => {
                PlacedNode { id: self.out.push(node), place: Placement::Split }
            }
            _ => match role {
                Role::Stream(stream) => self.stream(id, node, stream)?,
                _ => self.on_first(node)?,
            },
        }))
    }

    /// Returns the placed input; a build without a probe runs on the first worker.
    fn input(&mut self, old: NodeId) -> Result<PlacedNode> {
        if let Some(placed) = &self.placed[old.index()] {
            return Ok(placed.clone());
        }
        let node = self.plan.node(old).clone();
        let placed = self.on_first(node)?;
        self.placed[old.index()] = Some(placed.clone());
        Ok(placed)
    }

    fn exchange(&mut self, from: &PlacedNode, how: &'static str, keys: &[Arc<str>]) -> NodeId {
        let known = (from.id, keys.to_vec(), how);
        if let Some(id) = self.exchanged.get(&known) {
            return *id;
        }
        let mut params = match how {
            "keys" => Params::new().with("keys", Value::names(keys)),
            how => Params::new().with(how, true),
        };
        if matches!(from.place, Placement::Replicated | Placement::First) {
            params.set("first", true);
        }
        let id = self.out.add("exchange", &[from.id], params);
        self.exchanged.insert(known, id);
        id
    }

    /// Gathers all tuples at the first worker.
    fn gather(&mut self, from: PlacedNode) -> PlacedNode {
        match from.place {
            Placement::First | Placement::Replicated => {
                PlacedNode { place: Placement::First, ..from }
            }
            Placement::Split | Placement::Partitioned(_) => {
                PlacedNode { id: self.exchange(&from, "gather", &[]), place: Placement::First }
            }
        }
    }

    /// Replicates all tuples to every worker.
    fn broadcast(&mut self, from: PlacedNode) -> PlacedNode {
        match from.place {
            Placement::Replicated => from,
            _ => PlacedNode {
                id: self.exchange(&from, "broadcast", &[]),
                place: Placement::Replicated,
            },
        }
    }

    /// Makes each tuple available at exactly one worker.
    fn scatter(&mut self, from: PlacedNode) -> PlacedNode {
        match from.place {
            Placement::First | Placement::Replicated => {
                PlacedNode { id: self.exchange(&from, "gather", &[]), place: Placement::Split }
            }
            Placement::Split | Placement::Partitioned(_) => from,
        }
    }

    /// Partitions tuples by the hash of keys.
    fn partition(&mut self, from: PlacedNode, keys: &[Arc<str>]) -> PlacedNode {
        let id = self.exchange(&from, "keys", keys);
        PlacedNode {
            id,
            place: Placement::Partitioned(
                keys.iter().map(|key| Class::from([key.clone()])).collect(),
            ),
        }
    }

    /// Records that the partitioning of a node's input must be exact.
    fn rely_on(&mut self, id: NodeId) {
        let mut reached = vec![id];
        while let Some(id) = reached.pop() {
            let node = &self.out.nodes()[id.index()];
            if &*node.operator != "exchange" {
                reached.extend(&node.inputs);
            } else {
                self.relied_on.insert(id);
            }
        }
    }

    /// Runs a node on the first worker, because it is not known to work on parts.
    fn on_first(&mut self, mut node: Node) -> Result<PlacedNode> {
        for position in 0..node.inputs.len() {
            let input = self.input(node.inputs[position])?;
            node.inputs[position] = self.gather(input).id;
        }
        Ok(PlacedNode { id: self.out.push(node), place: Placement::First })
    }

    /// Places a streaming node; its sides must be available where the stream is.
    fn stream(&mut self, id: NodeId, mut node: Node, stream: usize) -> Result<PlacedNode> {
        let join = node.params.get("join").and_then(join::name).unwrap_or("inner");
        if join::emits_build(join) {
            return self.on_first(node);
        }
        let input = self.input(node.inputs[stream])?;
        let mut place = input.place.clone();
        for position in (0..node.inputs.len()).filter(|position| *position != stream) {
            let side = self.input(node.inputs[position])?;
            let side = match (&place, &side.place) {
                (Placement::Replicated, Placement::Replicated) => side,
                (Placement::First | Placement::Replicated, _) => {
                    place = Placement::First;
                    self.gather(side)
                }
                _ => self.broadcast(side),
            };
            node.inputs[position] = side.id;
        }
        node.inputs[stream] = input.id;
        // Replicas have no common order, so a sample of each would have other tuples.
        let differs = !node.nested.is_empty()
            || self.is_volatile(&node)
            || matches!(&*node.operator, "sample");
        if place == Placement::Replicated && differs {
            place = Placement::First;
        }
        let place = place.renamed(&renames(&node, &self.edges[id.index()]));
        Ok(PlacedNode { id: self.out.push(node), place })
    }

    /// Whether the node is volatile, so that its replicas would differ.
    fn is_volatile(&self, node: &Node) -> bool {
        let mut found = false;
        for (_, value) in node.params.iter() {
            expressions(value, &mut |expr| found |= is_volatile(expr, self.catalog.functions()));
        }
        found
    }

    fn union(&mut self, mut node: Node) -> Result<PlacedNode> {
        let inputs =
            node.inputs.iter().map(|input| self.input(*input)).collect::<Result<Vec<_>>>()?;
        let once = inputs
            .iter()
            .all(|input| matches!(input.place, Placement::First | Placement::Replicated));
        node.inputs.clear();
        for input in inputs {
            let input = if once { input } else { self.scatter(input) };
            node.inputs.push(input.id);
        }
        let place = if once { Placement::First } else { Placement::Split };
        Ok(PlacedNode { id: self.out.push(node), place })
    }

    fn group_by(&mut self, mut node: Node) -> Result<PlacedNode> {
        let input = self.input(node.inputs[0])?;
        let keys = node.params.names("keys")?;
        let input = self.together(input, &keys);
        node.inputs[0] = input.id;
        let place = input
            .place
            .renamed(&keys.into_iter().map(|key| (key.clone(), key)).collect::<Vec<_>>());
        Ok(PlacedNode { id: self.out.push(node), place })
    }

    /// Sorts for window functions, whose partitions are computed apart.
    fn sort_partitions(&mut self, mut node: Node) -> Result<PlacedNode> {
        let count = node.params.integer_opt("partition")?.unwrap_or_default() as usize;
        let keys = node.params.sort_keys("keys")?;
        let keys: Vec<Arc<str>> = keys.into_iter().take(count).map(|key| key.field).collect();
        let input = self.input(node.inputs[0])?;
        let input = self.together(input, &keys);
        node.inputs[0] = input.id;
        Ok(PlacedNode { id: self.out.push(node), place: input.place })
    }

    /// Moves tuples with equal keys to the same worker.
    fn together(&mut self, input: PlacedNode, keys: &[Arc<str>]) -> PlacedNode {
        match &input.place {
            Placement::First | Placement::Replicated => self.gather(input),
            Placement::Partitioned(classes) if contains(classes, keys) => {
                self.rely_on(input.id);
                input
            }
            _ => self.partition(input, keys),
        }
    }

    /// The top k of all tuples are among the top k of each part.
    fn top_k(&mut self, mut node: Node) -> Result<PlacedNode> {
        let mut input = self.input(node.inputs[0])?;
        let limit = node.params.integer_opt("limit")?;
        if self.rules.has(Rule::PartialFirst)
            && let (Some(limit), Placement::Split | Placement::Partitioned(_)) =
                (limit, &input.place)
        {
            let offset = node.params.integer_opt("offset")?.unwrap_or(0);
            let mut part = node.clone();
            part.inputs = vec![input.id];
            part.params.remove("offset");
            part.params.set("limit", limit.saturating_add(offset));
            part.params.set("partial", true);
            input.id = self.out.push(part);
            input.place = Placement::Split;
        }
        node.inputs[0] = self.gather(input).id;
        Ok(PlacedNode { id: self.out.push(node), place: Placement::First })
    }
}

/// Returns the fields that a streaming node passes on unchanged, as (old name, new name).
fn renames(node: &Node, output: &Edge) -> Vec<(Arc<str>, Arc<str>)> {
    let same = |name: &Arc<str>| (name.clone(), name.clone());
    let all = || output.tuple.fields().iter().map(|field| same(&field.name)).collect();
    match &*node.operator {
        "map" | "parametrized_map" => {
            let exprs = node.params.exprs("exprs").unwrap_or_default();
            let passed = |(name, expr): &(Arc<str>, &Expr)| match expr {
                Expr::Field(field) => Some((field.clone(), name.clone())),
                _ => None,
            };
            exprs.iter().filter_map(passed).collect()
        }
        "unnest" => {
            let changed = node.params.names("fields").unwrap_or_default();
            let fields = output.tuple.fields().iter().map(|field| &field.name);
            fields.filter(|name| !changed.contains(name)).map(same).collect()
        }
        "filter" | "projection" | "sample" | "series" | "cartesian_product" | "nested_loop"
        | "inequality_join" | "sort" | "window_bounds" | "window_scan" | "window_frame"
        | "asof_scan" => all(),
        _ => Vec::new(),
    }
}
