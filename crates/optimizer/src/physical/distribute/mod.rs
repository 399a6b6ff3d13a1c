//! The plan of many workers that share no memory: where tuples have to cross between them.
//!
//! Every worker runs the whole plan on its own part of the leaves. A sub-operator that needs more
//! than its part gets an *exchange* in front of it: by keys (joins, grouping), to all (small build
//! sides, results of aggregates), or to the first worker (orders, limits, whatever is not known to
//! work on parts). Aggregates and limits are computed on the parts first. Platforms call
//! [`distribute`] and put their own exchange in the place of the abstract one (Modularis §2.3.1
//! step 5; the choice of join: §2.4.2, and Barthels et al. for the shuffle).

mod aggregate;
mod join;
mod place;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_plan::catalogue::{Catalogue, Role};
use tessera_plan::edge::{Edge, Locality, Order, Parallelism, Traits};
use tessera_plan::expr::Expr;
use tessera_plan::graph::{Builder, Node, NodeId, Plan};
use tessera_plan::rewrite::{expressions, is_volatile};
use tessera_plan::rule::{Rule, Rules};
use tessera_plan::value::{Params, Value};
use tessera_types::{Result, Tuple};

use super::key_filters::place_key_filters_in;
use super::merge::insert_merges_with_edges;

use self::join::Meeting;
use self::place::{Class, Place, contains};

/// A plan for many workers.
#[derive(Debug, Clone)]
pub struct Distributed {
    /// What every worker runs; the result is that of the first one.
    pub workers: Plan,
    /// What the driver does with the result: writes it to a file.
    pub driver: Option<Node>,
}

/// Inserts exchanges into a plan that `workers` workers will run together, each on its part of the
/// leaves.
///
/// # Errors
/// The plan does not verify.
pub fn distribute(
    plan: &Plan,
    catalogue: &Catalogue,
    workers: usize,
    rules: Rules,
) -> Result<Distributed> {
    let verified = tessera_plan::verify_in(plan, catalogue, tessera_plan::Traits::DRIVER)?;
    let mut distributing = Distributing {
        plan,
        catalogue,
        edges: &verified.edges,
        workers: workers.max(1) as f64,
        rules,
        out: Builder::new(plan.parameters.clone()),
        placed: Vec::with_capacity(plan.nodes.len()),
        exchanged: HashMap::new(),
        meetings: Vec::new(),
        relied_on: HashSet::new(),
    };
    // A file is written by the driver: the other workers would write it too.
    let root = plan.node(plan.root);
    let driver = (root.operator.ends_with("_materialize") && root.param("path").is_some())
        .then(|| root.clone());
    for id in plan.ids().filter(|id| driver.is_none() || *id != plan.root) {
        let placed = distributing.place(id)?;
        distributing.placed.push(placed);
    }
    let result = match &driver {
        Some(node) => node.inputs[0],
        None => plan.root,
    };
    let result = distributing.input(result)?;
    let root = distributing.gathered(result);
    let Distributing { out, meetings, relied_on, .. } = distributing;
    let mut workers = out.finish(root.id);
    join::allow_heavy(&mut workers, &meetings, &relied_on);
    Ok(Distributed { workers: tessera_plan::rewrite::remove_unreachable(&workers), driver })
}

/// The plan of a platform whose workers share no memory: [`distribute`]d, merges where many threads
/// of a worker meet one, what `swap` makes of each exchange with its output, and the executor
/// around it. The output's order is none where it does not matter.
///
/// # Errors
/// The plan does not verify.
pub fn run_by_workers(
    plan: &Plan,
    catalogue: &Catalogue,
    (platform, workers): (&str, usize),
    rules: Rules,
    swap: &mut dyn FnMut(&mut Builder, Node, &Edge) -> Result<NodeId>,
) -> Result<Plan> {
    let distributed = distribute(plan, catalogue, workers, rules)?;
    let start =
        Traits { parallelism: Parallelism::Many, locality: Locality::Worker, ..Traits::DRIVER };
    let (mut merged, mut edges) = insert_merges_with_edges(&distributed.workers, catalogue, start)?;
    if rules.has(Rule::KeyFilters) {
        let filtered = place_key_filters_in(&merged, &edges, catalogue);
        if filtered != merged {
            (merged, edges) = insert_merges_with_edges(&filtered, catalogue, start)?;
        }
    }
    let consumers = merged.consumers();
    // Whatever the order of its input, a sort's is its own.
    let is_sorted = |id: NodeId| {
        let readers = &consumers[id.index()];
        !readers.is_empty()
            && readers.iter().all(|reader| &*merged.node(*reader).operator == "sort")
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

/// A name like this one that no field of a tuple has.
pub fn unused_name(tuple: &Tuple, name: &str) -> Arc<str> {
    let numbered = (1..).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_string()).chain(numbered);
    let unused = names.find(|name| tuple.index_of(name).is_none());
    unused.unwrap_or_default().into()
}

/// Tuples that come with their positions in the order of their source, put in order, and without
/// these.
pub fn in_order_of(
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

/// A node of the new plan, and where its tuples are.
#[derive(Debug, Clone)]
struct Placed {
    id: NodeId,
    place: Place,
}

struct Distributing<'a> {
    plan: &'a Plan,
    catalogue: &'a Catalogue,
    edges: &'a [Edge],
    workers: f64,
    rules: Rules,
    out: Builder,
    /// By node of the old plan; a build waits for its probe to say how it is wanted.
    placed: Vec<Option<Placed>>,
    exchanged: HashMap<(NodeId, Vec<Arc<str>>, &'static str), NodeId>,
    /// The exchanges by keys of both sides of joins.
    meetings: Vec<Meeting>,
    /// Exchanges by keys that something beyond their join counts on.
    relied_on: HashSet<NodeId>,
}

impl Distributing<'_> {
    fn place(&mut self, id: NodeId) -> Result<Option<Placed>> {
        let node = self.plan.node(id).clone();
        let role = self.catalogue.descriptor(&node.operator)?.role(&node);
        Ok(Some(match &*node.operator {
            "build" => return Ok(None),
            "probe" => self.probe(node)?,
            "reduce" => self.reduce(id, node)?,
            "reduce_by_key" => self.reduce_by_key(id, node)?,
            "group_by" => self.group_by(node)?,
            "limit" | "top_k" => self.first_ones(node)?,
            "union" => self.union(node)?,
            _ if node.inputs.is_empty() => Placed { id: self.out.push(node), place: Place::Split },
            _ => match role {
                Role::Stream(stream) => self.stream(id, node, stream)?,
                _ => self.on_first(node)?,
            },
        }))
    }

    /// An input as it was placed; a build that no probe reads is made on the first worker.
    fn input(&mut self, old: NodeId) -> Result<Placed> {
        if let Some(placed) = &self.placed[old.index()] {
            return Ok(placed.clone());
        }
        let node = self.plan.node(old).clone();
        let placed = self.on_first(node)?;
        self.placed[old.index()] = Some(placed.clone());
        Ok(placed)
    }

    fn exchange(&mut self, from: &Placed, how: &'static str, keys: &[Arc<str>]) -> NodeId {
        let known = (from.id, keys.to_vec(), how);
        if let Some(id) = self.exchanged.get(&known) {
            return *id;
        }
        let mut params = match how {
            "keys" => Params::new().with("keys", Value::names(keys)),
            how => Params::new().with(how, true),
        };
        if matches!(from.place, Place::Copied | Place::First) {
            params.set("first", true);
        }
        let id = self.out.add("exchange", &[from.id], params);
        self.exchanged.insert(known, id);
        id
    }

    /// All of it where the first worker sees it.
    fn gathered(&mut self, from: Placed) -> Placed {
        match from.place {
            Place::First | Place::Copied => Placed { place: Place::First, ..from },
            Place::Split | Place::Keyed(_) => {
                Placed { id: self.exchange(&from, "gather", &[]), place: Place::First }
            }
        }
    }

    /// All of it at every worker.
    fn copied(&mut self, from: Placed) -> Placed {
        match from.place {
            Place::Copied => from,
            _ => Placed { id: self.exchange(&from, "broadcast", &[]), place: Place::Copied },
        }
    }

    /// Each tuple at one worker.
    fn split(&mut self, from: Placed) -> Placed {
        match from.place {
            Place::First | Place::Copied => {
                Placed { id: self.exchange(&from, "gather", &[]), place: Place::Split }
            }
            Place::Split | Place::Keyed(_) => from,
        }
    }

    /// Each tuple where its keys say.
    fn keyed(&mut self, from: Placed, keys: &[Arc<str>]) -> Placed {
        let id = self.exchange(&from, "keys", keys);
        Placed {
            id,
            place: Place::Keyed(keys.iter().map(|key| Class::from([key.clone()])).collect()),
        }
    }

    /// Somebody counts on tuples being where their keys say.
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

    /// A node that is not known to work on parts: the first worker does it all.
    fn on_first(&mut self, mut node: Node) -> Result<Placed> {
        for position in 0..node.inputs.len() {
            let input = self.input(node.inputs[position])?;
            node.inputs[position] = self.gathered(input).id;
        }
        Ok(Placed { id: self.out.push(node), place: Place::First })
    }

    /// A stream: its sides are wanted wherever it is.
    fn stream(&mut self, id: NodeId, mut node: Node, stream: usize) -> Result<Placed> {
        let join = node.params.get("join").and_then(join::name).unwrap_or("inner");
        if join::emits_build(join) {
            return self.on_first(node);
        }
        let input = self.input(node.inputs[stream])?;
        let mut place = input.place.clone();
        for position in (0..node.inputs.len()).filter(|position| *position != stream) {
            let side = self.input(node.inputs[position])?;
            let side = match (&place, &side.place) {
                (Place::Copied, Place::Copied) => side,
                (Place::First | Place::Copied, _) => {
                    place = Place::First;
                    self.gathered(side)
                }
                _ => self.copied(side),
            };
            node.inputs[position] = side.id;
        }
        node.inputs[stream] = input.id;
        if place == Place::Copied && (!node.nested.is_empty() || self.is_volatile(&node)) {
            place = Place::First;
        }
        let place = place.renamed(&renames(&node, &self.edges[id.index()]));
        Ok(Placed { id: self.out.push(node), place })
    }

    /// Copies of what gives another value each time differ.
    fn is_volatile(&self, node: &Node) -> bool {
        let mut found = false;
        for (_, value) in node.params.iter() {
            expressions(value, &mut |expr| found |= is_volatile(expr, self.catalogue.functions()));
        }
        found
    }

    fn union(&mut self, mut node: Node) -> Result<Placed> {
        let inputs =
            node.inputs.iter().map(|input| self.input(*input)).collect::<Result<Vec<_>>>()?;
        let once = inputs.iter().all(|input| matches!(input.place, Place::First | Place::Copied));
        node.inputs.clear();
        for input in inputs {
            let input = if once { input } else { self.split(input) };
            node.inputs.push(input.id);
        }
        let place = if once { Place::First } else { Place::Split };
        Ok(Placed { id: self.out.push(node), place })
    }

    fn group_by(&mut self, mut node: Node) -> Result<Placed> {
        let input = self.input(node.inputs[0])?;
        let keys = node.params.names("keys")?;
        let input = match &input.place {
            Place::First | Place::Copied => self.gathered(input),
            Place::Keyed(classes) if contains(classes, &keys) => {
                self.rely_on(input.id);
                input
            }
            _ => self.keyed(input, &keys),
        };
        node.inputs[0] = input.id;
        let place = input
            .place
            .renamed(&keys.into_iter().map(|key| (key.clone(), key)).collect::<Vec<_>>());
        Ok(Placed { id: self.out.push(node), place })
    }

    /// The first ones of all are among the first ones of each part.
    fn first_ones(&mut self, mut node: Node) -> Result<Placed> {
        let mut input = self.input(node.inputs[0])?;
        let limit = node.params.integer_opt("limit")?;
        if self.rules.has(Rule::PartialFirst)
            && let (Some(limit), Place::Split | Place::Keyed(_)) = (limit, &input.place)
        {
            let offset = node.params.integer_opt("offset")?.unwrap_or(0);
            let mut part = node.clone();
            part.inputs = vec![input.id];
            part.params.remove("offset");
            part.params.set("limit", limit.saturating_add(offset));
            part.params.set("partial", true);
            input.id = self.out.push(part);
            input.place = Place::Split;
        }
        node.inputs[0] = self.gathered(input).id;
        Ok(Placed { id: self.out.push(node), place: Place::First })
    }
}

/// Which fields a streaming node passes on unchanged: their names before and after.
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
        "filter" | "projection" | "series" | "cartesian_product" | "nested_loop" => all(),
        _ => Vec::new(),
    }
}
