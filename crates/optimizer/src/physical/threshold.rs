//! What the first ones of a sort tell the scans of their stream.

use std::sync::Arc;

use tessera_plan::catalogue::{Catalogue, Functions};
use tessera_plan::edge::{SortKey, Traits};
use tessera_plan::graph::Plan;
use tessera_plan::value::Value;
use tessera_plan::verify::{Verified, verify_in};
use tessera_types::Result;

use super::way::{Place, Ways};

/// Gives a threshold to each `top_k` and to the Parquet scans its first key comes from unchanged,
/// where what lies between passes tuples on one by one: a tuple that sorts behind the threshold can
/// then be left out as soon as it is read. What can raise an error must see all tuples, so that the
/// same ones raise in every run.
///
/// # Errors
/// The plan does not verify.
pub fn push_thresholds(plan: &Plan, catalogue: &Catalogue) -> Result<Plan> {
    let verified = verify_in(plan, catalogue, Traits::DRIVER)?;
    Ok(pushed(plan, &verified, catalogue.functions()))
}

pub(super) fn pushed(plan: &Plan, verified: &Verified, functions: &dyn Functions) -> Plan {
    let mut out = plan.clone();
    for (node, verified) in out.nodes.iter_mut().zip(&verified.nested) {
        for (inner, verified) in node.nested.iter_mut().zip(verified) {
            *inner = pushed(inner, verified, functions);
        }
    }
    let ways = Ways::new(plan, &verified.edges, functions);
    for id in plan.ids().filter(|id| &*plan.node(*id).operator == "top_k") {
        let node = plan.node(id);
        let Some(key) = node.params.sort_keys("keys").ok().and_then(|keys| keys.into_iter().next())
        else {
            continue;
        };
        let scans = scans(&ways, Place { node: node.inputs[0], fields: vec![key.field.clone()] });
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

/// The Parquet scans that a field comes from.
fn scans(ways: &Ways<'_>, from: Place) -> Vec<Place> {
    let mut scans = Vec::new();
    let mut pending = vec![from];
    while let Some(place) = pending.pop() {
        if !ways.may_lose_tuples(place.node) {
            continue;
        }
        let node = ways.plan.node(place.node);
        match &*node.operator {
            "parquet_scan" if node.param("threshold").is_none() => scans.push(place),
            "union" => {
                let input = |id: &_| Place { node: *id, fields: place.fields.clone() };
                pending.extend(node.inputs.iter().map(input));
            }
            // Not into the builds of joins: they are complete before anything is sorted.
            _ => pending
                .extend(ways.above(&place).filter(|above| node.inputs.last() == Some(&above.node))),
        }
    }
    scans
}
