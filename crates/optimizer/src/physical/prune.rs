//! Removal of unused columns.

use std::collections::BTreeSet;
use std::sync::Arc;

use tessera_plan::edge::Traits;
use tessera_plan::graph::{Node, NodeId, Plan};
use tessera_plan::operator_catalog::{ColumnPush, OperatorCatalog};
use tessera_plan::rewrite::{expressions, map_nodes, reachable};
use tessera_plan::value::{Params, Value};
use tessera_plan::verify::{VerifiedPlan, verify_in};
use tessera_types::{Field, Item, Result, Tuple};

type Names = BTreeSet<Arc<str>>;

/// Removes unused fields: from the columns of scans, from maps, projections and aggregates, and, by
/// an added projection, before state is built (joins, sorts) or tuples are copied (unions,
/// exchanges).
///
/// # Errors
/// The plan is invalid.
pub fn prune_columns(plan: &Plan, catalog: &OperatorCatalog) -> Result<Plan> {
    prune(plan, &verify_in(plan, catalog, Traits::DRIVER)?, catalog)
}

/// The fields that are required of each node, and those that each node requires of its inputs
/// (`None`: all fields).
struct RequiredFields<'a> {
    plan: &'a Plan,
    catalog: &'a OperatorCatalog,
    edges: Vec<&'a Tuple>,
    output: Vec<Names>,
    /// For a node that builds a hash table: the fields that its probes require.
    table: Vec<Names>,
    inputs: Vec<Vec<Option<Names>>>,
}

pub(super) fn prune(
    plan: &Plan,
    verified: &VerifiedPlan,
    catalog: &OperatorCatalog,
) -> Result<Plan> {
    let edges: Vec<&Tuple> = verified.edges.iter().map(|edge| &edge.tuple).collect();
    let count = plan.nodes.len();
    let mut needs = RequiredFields {
        plan,
        catalog,
        edges,
        output: vec![Names::new(); count],
        table: vec![Names::new(); count],
        inputs: vec![Vec::new(); count],
    };
    needs.all(plan.root);
    let reachable = reachable(plan);
    for id in plan.ids().collect::<Vec<_>>().into_iter().rev() {
        if reachable[id.index()] {
            needs.node(id)?;
        }
    }
    map_nodes(plan, &mut |out, id, mut node| {
        for (inner, verified) in node.nested.iter_mut().zip(&verified.nested[id.index()]) {
            *inner = prune(inner, verified, catalog)?;
        }
        if is_idle_window(&node, &needs.output[id.index()])?
            && let Some(input) = node.inputs.first()
        {
            return Ok(*input);
        }
        narrow(&mut node, &needs.output[id.index()], catalog)?;
        let old = &plan.nodes[id.index()];
        for (position, input) in node.inputs.iter_mut().enumerate() {
            let wanted = needs.inputs[id.index()].get(position).and_then(Option::as_ref);
            let tuple = needs.edges[old.inputs[position].index()];
            let Some(wanted) = wanted.filter(|wanted| wanted.len() < tuple.len()) else { continue };
            if projects_input(&node.operator) {
                let fields = tuple.fields().iter().filter(|field| wanted.contains(&field.name));
                let params =
                    Params::new().with("fields", Value::names(fields.map(|field| &field.name)));
                *input = out.add("projection", &[*input], params);
            }
        }
        Ok(out.push(node))
    })
}

/// Whether fewer input columns make the node cheaper.
fn projects_input(operator: &str) -> bool {
    matches!(
        operator,
        "build"
            | "probe"
            | "sort"
            | "top_k"
            | "limit"
            | "union"
            | "exchange"
            | "merge"
            | "merge_join"
            | "nested_loop"
            | "inequality_join"
            | "cartesian_product"
            | "zip"
            | "unnest"
            | "series"
    )
}

impl RequiredFields<'_> {
    fn tuple(&self, id: NodeId) -> &Tuple {
        self.edges[id.index()]
    }

    /// Requires all fields of a node, including hash tables.
    fn all(&mut self, id: NodeId) {
        let tuple = self.edges[id.index()];
        for field in tuple.fields() {
            self.output[id.index()].insert(field.name.clone());
            if let Item::Collection(collection) = &field.item {
                self.table[id.index()]
                    .extend(collection.tuple.fields().iter().map(|field| field.name.clone()));
            }
        }
    }

    /// Requires the fields of `id` in `names`, at least one.
    fn some(&mut self, id: NodeId, names: &Names) -> Names {
        let tuple = self.edges[id.index()];
        let mut names: Names = tuple
            .fields()
            .iter()
            .map(|f| &f.name)
            .filter(|n| names.contains(*n))
            .cloned()
            .collect();
        if names.is_empty() {
            names.extend(narrowest(tuple.fields().iter()).map(|field| field.name.clone()));
        }
        self.output[id.index()].extend(names.iter().cloned());
        names
    }

    fn node(&mut self, id: NodeId) -> Result<()> {
        let plan = self.plan;
        let node = plan.node(id);
        let output = self.output[id.index()].clone();
        // All fields that the node's expressions read.
        let mut read = output.clone();
        for (_, value) in node.params.iter() {
            fields_of(value, &mut read);
        }
        let mut wants: Vec<Option<Names>> = vec![None; node.inputs.len()];
        match (&*node.operator, node.inputs.as_slice()) {
            (
                "filter" | "limit" | "sort" | "top_k" | "exchange" | "merge" | "unnest" | "series"
                | "sample",
                [input],
            ) => {
                wants[0] = Some(self.some(*input, &read));
            }
            ("union", inputs) => {
                for (position, input) in inputs.iter().enumerate() {
                    wants[position] = Some(self.some(*input, &output));
                }
            }
            (
                "cartesian_product" | "nested_loop" | "inequality_join" | "merge_join" | "zip",
                inputs,
            ) => {
                for (position, input) in inputs.iter().enumerate() {
                    wants[position] = Some(self.some(*input, &read));
                }
            }
            ("map" | "parametrized_map" | "projection" | "reduce" | "reduce_by_key", inputs) => {
                let mut kept = node.clone();
                narrow(&mut kept, &output, self.catalog)?;
                let mut read = Names::new();
                kept.params.iter().for_each(|(_, value)| fields_of(value, &mut read));
                for (position, input) in inputs.iter().enumerate() {
                    wants[position] = Some(self.some(*input, &read));
                }
            }
            ("window_bounds" | "window_scan" | "window_frame" | "asof_scan", [input]) => {
                let mut kept = node.clone();
                narrow(&mut kept, &output, self.catalog)?;
                let added = added_by_window(node)?;
                let mut read: Names = output.difference(&added).cloned().collect();
                kept.params.iter().for_each(|(_, value)| fields_of(value, &mut read));
                wants[0] = Some(self.some(*input, &read));
            }
            ("build", [input]) => {
                let mut inside = self.table[id.index()].clone();
                node.params.iter().for_each(|(_, value)| fields_of(value, &mut inside));
                wants[0] = Some(self.some(*input, &inside));
            }
            ("probe", [table, input]) if &*plan.node(*table).operator == "build" => {
                wants[1] = Some(self.some(*input, &read));
                let Some(Item::Collection(inside)) =
                    self.tuple(*table).fields().first().map(|f| f.item.clone())
                else {
                    self.all(*table);
                    return Ok(());
                };
                let inside = inside.tuple.fields().iter().map(|field| &field.name);
                self.table[table.index()]
                    .extend(inside.filter(|name| read.contains(*name)).cloned());
                self.output[table.index()]
                    .insert(self.edges[table.index()].fields()[0].name.clone());
            }
            (_, inputs) => inputs.iter().for_each(|input| self.all(*input)),
        }
        self.inputs[id.index()] = wants;
        Ok(())
    }
}

/// Returns the fields that a node for window functions adds to its input.
fn added_by_window(node: &Node) -> Result<Names> {
    let mut names = Names::new();
    match (&*node.operator, node.params.get("calls")) {
        ("window_bounds", _) => {
            for start in ["partition_start", "peer_start"] {
                names.extend(node.params.expr(start)?.fields());
            }
        }
        (_, Some(Value::Record(calls))) => names.extend(calls.iter().map(|(name, _)| name.clone())),
        _ => {}
    }
    Ok(names)
}

/// Whether nothing reads the calls of a node for window functions.
fn is_idle_window(node: &Node, output: &Names) -> Result<bool> {
    let is_window = matches!(&*node.operator, "window_bounds" | "window_scan" | "window_frame");
    Ok(is_window && added_by_window(node)?.is_disjoint(output))
}

/// Returns the narrowest field, for nodes of which only the number of tuples matters.
fn narrowest<'a>(fields: impl Iterator<Item = &'a Field>) -> Option<&'a Field> {
    fields
        .min_by_key(|field| field.atom().and_then(|atom| atom.width_bytes()).unwrap_or(usize::MAX))
}

fn fields_of(value: &Value, into: &mut Names) {
    expressions(value, &mut |expr| into.extend(expr.fields()));
}

/// Removes the unused output fields of a node.
fn narrow(node: &mut Node, needed: &Names, catalog: &OperatorCatalog) -> Result<()> {
    let parameter = match &*node.operator {
        "map" | "parametrized_map" => "exprs",
        "reduce" | "reduce_by_key" => "aggregates",
        "window_scan" | "window_frame" => "calls",
        "asof_scan" => {
            let mut names = node.params.names("fields")?;
            names.retain(|name| needed.contains(name));
            node.params.set("fields", Value::names(names));
            return Ok(());
        }
        "projection" => {
            let mut names = node.params.names("fields")?;
            let first = names.first().cloned();
            names.retain(|name| needed.contains(name));
            names.extend(if names.is_empty() { first } else { None });
            node.params.set("fields", Value::names(names));
            return Ok(());
        }
        operator => match catalog.pushes(operator).columns {
            ColumnPush::None => return Ok(()),
            push => return narrow_scan(node, needed, push),
        },
    };
    if let Some(Value::Record(entries)) = node.params.get(parameter) {
        let mut kept = entries.clone();
        kept.retain(|(name, _)| needed.contains(name));
        // Keep one field if only the number of tuples matters; besides keys, no aggregate is
        // required.
        if kept.is_empty() && &*node.operator != "reduce_by_key" {
            kept.extend(entries.first().cloned());
        }
        node.params.set(parameter, Value::Record(kept));
    }
    Ok(())
}

/// Restricts a scan to the columns that are yielded or tested, and its output to the required ones.
fn narrow_scan(node: &mut Node, needed: &Names, push: ColumnPush) -> Result<()> {
    let columns = node.params.tuple("columns")?.clone();
    let yielded = match node.params.get("fields") {
        Some(_) => node.params.names("fields")?,
        None => columns.fields().iter().map(|field| field.name.clone()).collect(),
    };
    let mut tested = Names::new();
    if let Some(filter) = node.params.get("filter") {
        fields_of(filter, &mut tested);
    }
    let mut fields: Vec<Arc<str>> =
        yielded.iter().filter(|name| needed.contains(*name)).cloned().collect();
    if fields.is_empty() {
        let candidates = columns.fields().iter().filter(|field| yielded.contains(&field.name));
        // A column that is read anyway costs least.
        let candidates: Vec<&Field> = candidates.collect();
        let read = candidates.iter().copied().filter(|field| tested.contains(&field.name));
        let cheapest = narrowest(read).or_else(|| narrowest(candidates.iter().copied()));
        fields.extend(cheapest.map(|field| field.name.clone()));
    }
    let kept: Vec<Field> = match push {
        ColumnPush::Output => columns.fields().to_vec(),
        _ => {
            let read =
                |field: &&Field| fields.contains(&field.name) || tested.contains(&field.name);
            columns.fields().iter().filter(read).cloned().collect()
        }
    };
    if kept.iter().map(|field| &field.name).eq(&fields) {
        node.params.remove("fields");
    } else {
        node.params.set("fields", Value::names(fields));
    }
    node.params.set("columns", Tuple::new(kept));
    Ok(())
}
