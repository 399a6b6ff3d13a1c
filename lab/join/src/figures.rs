//! The measurements of a rank, as JSON.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tessera_engine::profile::Profile;
use tessera_plan::Plan;
use tessera_types::{Error, Result};

/// The measurements of a sub-operator.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) sub_operator: String,
    /// The nesting depth of its plan.
    pub(crate) depth: usize,
    /// Worker time in milliseconds, without concurrent work of the communication worker.
    pub(crate) ms: f64,
    pub(crate) rows: u64,
    counters: BTreeMap<&'static str, u64>,
}

/// Returns the measurements of a run.
pub(crate) fn run(plan: &Plan, wall: Duration, profile: &Profile) -> Value {
    let mut all = Vec::new();
    nodes(plan, profile, 0, &mut all);
    let nodes: Vec<Value> = all.iter().map(Node::json).collect();
    json!({"wall_s": wall.as_secs_f64(), "nodes": nodes})
}

impl Node {
    pub(crate) fn json(&self) -> Value {
        let Node { sub_operator, depth, ms, rows, counters } = self;
        json!({"sub_operator": sub_operator, "depth": depth, "ms": ms, "rows": rows, "counters": counters})
    }
}

/// Appends each sub-operator; those of a nested plan come before the sub-operator that runs it.
pub(crate) fn nodes(plan: &Plan, profile: &Profile, depth: usize, out: &mut Vec<Node>) {
    for (node, figures) in plan.nodes.iter().zip(&profile.nodes) {
        for (inner, inner_profile) in node.nested.iter().zip(&figures.nested) {
            nodes(inner, inner_profile, depth + 1, out);
        }
        out.push(Node {
            sub_operator: node.operator.to_string(),
            depth,
            ms: figures.nanoseconds as f64 / 1e6,
            rows: figures.rows,
            counters: figures.counters.clone(),
        });
    }
}

/// Writes the runs of a rank if a directory is given.
pub(crate) fn write(directory: Option<&Path>, rank: usize, runs: Vec<Value>) -> Result<()> {
    let Some(directory) = directory else { return Ok(()) };
    let path = directory.join(format!("rank-{rank}.json"));
    std::fs::write(&path, Value::from(runs).to_string())
        .map_err(|error| Error::io(format!("cannot write '{}': {error}", path.display())))
}
