//! Thresholds of top-k sorts for the scans of their streams.

use std::sync::Arc;

use tessera_plan::edge::{SortKey, Traits};
use tessera_plan::graph::Plan;
use tessera_plan::operator_catalog::OperatorCatalog;
use tessera_plan::value::Value;
use tessera_plan::verify::{VerifiedPlan, verify_in};
use tessera_types::Result;

use super::provenance::{NodeFields, Provenance};

/// Connects each `top_k` by a threshold with the scans that take one and provide its first key
/// unchanged, if only nodes that work tuple by tuple are in between. The scans then skip tuples
/// that sort after the threshold. Nodes that can raise errors must see all tuples, so that every
/// run raises the same errors.
///
/// # Errors
/// The plan is invalid.
pub fn push_thresholds(plan: &Plan, catalog: &OperatorCatalog) -> Result<Plan> {
    let verified = verify_in(plan, catalog, Traits::DRIVER)?;
    Ok(pushed(plan, &verified, catalog))
}

pub(super) fn pushed(plan: &Plan, verified: &VerifiedPlan, catalog: &OperatorCatalog) -> Plan {
    let mut out = plan.clone();
    for (node, verified) in out.nodes.iter_mut().zip(&verified.nested) {
        for (inner, verified) in node.nested.iter_mut().zip(verified) {
            *inner = pushed(inner, verified, catalog);
        }
    }
    let provenance = Provenance::new(plan, &verified.edges, catalog.functions());
    for id in plan.ids().filter(|id| &*plan.node(*id).operator == "top_k") {
        let node = plan.node(id);
        let Some(key) = node.params.sort_keys("keys").ok().and_then(|keys| keys.into_iter().next())
        else {
            continue;
        };
        let scans = scans(
            (&provenance, catalog),
            NodeFields { node: node.inputs[0], fields: vec![key.field.clone()] },
        );
        if scans.is_empty() || node.param("threshold").is_some() {
            continue;
        }
        let name = Value::name(format!("first_{}", id.0));
        for scan in scans {
            let key = SortKey { field: scan.fields[0].clone(), ..key.clone() };
            let mut entries = vec![(Arc::from("of"), name.clone())];
            if let Value::Record(of_key) = key.to_value() {
                entries.extend(of_key);
            }
            out.nodes[scan.node.index()].params.set("threshold", Value::Record(entries));
        }
        out.nodes[id.index()].params.set("threshold", name);
    }
    out
}

/// Returns the scans that provide a field and take a threshold.
fn scans(
    (provenance, catalog): (&Provenance<'_>, &OperatorCatalog),
    from: NodeFields,
) -> Vec<NodeFields> {
    let mut scans = Vec::new();
    let mut pending = vec![from];
    while let Some(place) = pending.pop() {
        if !provenance.may_lose_tuples(place.node) {
            continue;
        }
        let node = provenance.plan.node(place.node);
        match &*node.operator {
            operator if catalog.pushes(operator).thresholds => {
                if node.param("threshold").is_none() {
                    scans.push(place);
                }
            }
            "union" => {
                let input = |id: &_| NodeFields { node: *id, fields: place.fields.clone() };
                pending.extend(node.inputs.iter().map(input));
            }
            // Builds of joins are complete before the sort starts, so they are skipped.
            _ => pending.extend(
                provenance
                    .source_of(&place)
                    .filter(|above| node.inputs.last() == Some(&above.node)),
            ),
        }
    }
    scans
}
