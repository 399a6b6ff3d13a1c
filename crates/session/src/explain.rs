//! `EXPLAIN`: plans as text or JSON, with measurements for `ANALYZE`.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Map, Value as Json};
use tessera_engine::profile::Profile;
use tessera_objects::Totals;
use tessera_plan::{Node, NodeId, Plan, text};
use tessera_types::Tuple;

/// The measurements that `EXPLAIN ANALYZE` prints below the plan.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) planning: Duration,
    pub(crate) execution: Duration,
    pub(crate) rows: usize,
    pub(crate) threads: usize,
    pub(crate) pipelines: usize,
    pub(crate) memory_peak_bytes: usize,
    pub(crate) device_memory_peak_bytes: usize,
    pub(crate) stores: Totals,
    /// The number of compiled code fragments and the time of compilation.
    pub(crate) compiling: (usize, Duration),
}

impl Summary {
    pub(crate) fn text(&self, profile: &Profile) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "-- rows: {}", self.rows);
        let _ = writeln!(
            out,
            "-- time: {} planning, {} execution, {} threads, {} pipelines",
            duration(self.planning),
            duration(self.execution),
            self.threads,
            self.pipelines
        );
        let _ = write!(out, "-- memory: {} at most", bytes(self.memory_peak_bytes as u64));
        let _ = match self.device_memory_peak_bytes {
            0 => writeln!(out),
            peak => writeln!(out, ", {} on the device", bytes(peak as u64)),
        };
        if self.stores != Totals::default() {
            let Totals { requests, bytes: read, busy, scanned_bytes, selected_bytes, .. } =
                self.stores;
            let _ = writeln!(
                out,
                "-- object stores: {requests} requests, {} read, with planning; the I/O thread was busy for {}",
                bytes(read),
                duration(busy)
            );
            if scanned_bytes > 0 {
                let (scanned, selected) = (bytes(scanned_bytes), bytes(selected_bytes));
                let _ = writeln!(
                    out,
                    "-- smart storage: {selected} selected from {scanned} that stores have read"
                );
            }
        }
        if let (pieces @ 1.., took) = self.compiling {
            let _ = writeln!(out, "-- compiling: {pieces} pieces of code, {}", duration(took));
        }
        for name in profile.counters() {
            let (name, value) = counter_text(name, profile.total(name));
            let _ = writeln!(out, "-- {name}: {value}");
        }
        out
    }
}

/// Formats a counter. The suffix of its name gives the unit.
fn counter_text(name: &str, value: u64) -> (String, String) {
    let words = |name: &str| name.replace('_', " ");
    let unit = |unit: &str| name.strip_suffix(unit).map(words);
    if let Some(name) = unit("_nanodollars") {
        return (name, format!("${:.6}", value as f64 / 1e9));
    }
    if let Some(name) = unit("_mebibyte_milliseconds") {
        return (name, format!("{:.3} GB-seconds", value as f64 / 1024.0 / 1e3));
    }
    match name.strip_suffix("_nanoseconds") {
        Some(name) => (words(name), duration(Duration::from_nanos(value))),
        None if name.contains("bytes") => (words(name), bytes(value)),
        None => (words(name), value.to_string()),
    }
}

/// Formats a time in s, ms or us.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// Formats a number of bytes in GiB, MiB or KiB.
pub(crate) fn bytes(count: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, size)| count >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", count as f64 / *size as f64),
        None => format!("{count} bytes"),
    }
}

/// The text of a plan with a comment above each sub-operator (rows, estimate, bytes, time,
/// counters), and the summary below.
pub(crate) fn analyzed(plan: &Plan, profile: &Profile, summary: &Summary) -> String {
    let note = |path: &[usize]| {
        let (plan, profile, position) = locate(plan, profile, path)?;
        let node = profile.nodes.get(position)?;
        let mut note = format!(
            "{} rows{}, {}, {}",
            node.rows,
            estimate_note(plan, profile, position).unwrap_or_default(),
            bytes(node.bytes),
            duration(Duration::from_nanos(node.nanoseconds))
        );
        for (name, value) in &node.counters {
            let (name, value) = counter_text(name, *value);
            let _ = write!(note, ", {name} {value}");
        }
        Some(note)
    };
    let (wrong, all) = count_large_errors(plan, profile);
    let wrong = match wrong {
        0 => String::new(),
        wrong => format!("-- estimates: {wrong} of {all} are off by more than {LARGE_ERROR:.0}x\n"),
    };
    format!("{}\n{}{wrong}", text::annotate(plan, &note), summary.text(profile))
}

/// Estimates that are wrong by more than this factor are marked.
const LARGE_ERROR: f64 = 10.0;

/// Counters of rows that a scan dropped because of a runtime filter, which estimates do not
/// include.
const RUNTIME_FILTER_COUNTERS: [&str; 3] =
    ["rows_dropped_without_match", "rows_skipped_without_match", "rows_skipped_behind_threshold"];

/// The factor between the estimated and the actual rows of a node, at least 1. Zero rows count as
/// one.
fn error_factor(plan: &Plan, profile: &Profile, position: usize) -> Option<f64> {
    let estimate = plan.nodes.get(position)?.estimated_rows?.max(1) as f64;
    let rows = profile.nodes.get(position)?.rows.max(1) as f64;
    let overestimate =
        if is_runtime_filtered(plan, profile, position) { 1.0 } else { estimate / rows };
    Some(overestimate.max(rows / estimate))
}

/// Whether a runtime filter of a join build or a `top_k` has reduced the rows of a node.
fn is_runtime_filtered(plan: &Plan, profile: &Profile, position: usize) -> bool {
    let (Some(node), Some(measured)) = (plan.nodes.get(position), profile.nodes.get(position))
    else {
        return false;
    };
    &*node.operator == "semi_join_filter"
        || RUNTIME_FILTER_COUNTERS.iter().any(|counter| measured.counters.contains_key(counter))
        || matches!(node.inputs[..], [input] if is_runtime_filtered(plan, profile, input.index()))
}

/// The estimate of a node, to print after its actual rows.
fn estimate_note(plan: &Plan, profile: &Profile, position: usize) -> Option<String> {
    let estimate = plan.nodes.get(position)?.estimated_rows?;
    Some(match error_factor(plan, profile, position)? {
        factor if factor > LARGE_ERROR => {
            format!(" (!! {estimate} estimated, off by {factor:.0}x)")
        }
        _ => format!(" ({estimate} estimated)"),
    })
}

/// The number of estimates of a plan with a large error, and of all estimates.
fn count_large_errors(plan: &Plan, profile: &Profile) -> (usize, usize) {
    let mut counts = (0, 0);
    for (position, (node, measured)) in plan.nodes.iter().zip(&profile.nodes).enumerate() {
        if let Some(factor) = error_factor(plan, profile, position) {
            counts.0 += usize::from(factor > LARGE_ERROR);
            counts.1 += 1;
        }
        for (plan, profile) in node.nested.iter().zip(&measured.nested) {
            let (wrong, all) = count_large_errors(plan, profile);
            counts = (counts.0 + wrong, counts.1 + all);
        }
    }
    counts
}

/// The node at the path of a [`tessera_plan::text::Note`].
pub(crate) fn plan_node_at<'a>(plan: &'a Plan, path: &[usize]) -> Option<&'a Node> {
    let (node, below) = path.split_first()?;
    let node = plan.nodes.get(*node)?;
    match below.split_first() {
        None => Some(node),
        Some((nested, below)) => plan_node_at(node.nested.get(*nested)?, below),
    }
}

/// The (nested) plan that contains the node at a path, its profile, and the position of the node in
/// it. A path alternates between positions of nodes and of nested plans.
fn locate<'a>(
    plan: &'a Plan,
    profile: &'a Profile,
    path: &[usize],
) -> Option<(&'a Plan, &'a Profile, usize)> {
    let (position, below) = path.split_first()?;
    let Some((nested, below)) = below.split_first() else {
        return Some((plan, profile, *position));
    };
    let inner = plan.nodes.get(*position)?.nested.get(*nested)?;
    locate(inner, profile.nodes.get(*position)?.nested.get(*nested)?, below)
}

/// A plan as JSON: one object per sub-operator, with nested plans and measurements.
pub(crate) fn json(plan: &Plan, measured: Option<(&Profile, &Summary)>) -> String {
    let mut object = Map::new();
    object.insert("plan".to_string(), plan_json(plan, measured.map(|(profile, _)| profile)));
    if let Some((_, summary)) = measured {
        object.insert("rows".to_string(), summary.rows.into());
        object.insert("planning_ms".to_string(), milliseconds(summary.planning));
        object.insert("execution_ms".to_string(), milliseconds(summary.execution));
        object.insert("threads".to_string(), summary.threads.into());
        object.insert("memory_peak_bytes".to_string(), summary.memory_peak_bytes.into());
        object.insert(
            "device_memory_peak_bytes".to_string(),
            summary.device_memory_peak_bytes.into(),
        );
        object.insert("store_requests".to_string(), summary.stores.requests.into());
        object.insert("store_bytes".to_string(), summary.stores.bytes.into());
        object.insert("store_scanned_bytes".to_string(), summary.stores.scanned_bytes.into());
        object.insert("store_selected_bytes".to_string(), summary.stores.selected_bytes.into());
        object.insert("compiled_pieces".to_string(), summary.compiling.0.into());
        object.insert("compiling_ms".to_string(), milliseconds(summary.compiling.1));
        object.insert("store_busy_ms".to_string(), milliseconds(summary.stores.busy));
    }
    let text = serde_json::to_string_pretty(&Json::Object(object));
    text.unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
}

fn plan_json(plan: &Plan, profile: Option<&Profile>) -> Json {
    let nodes = plan.nodes.iter().enumerate().map(|(position, node)| {
        let mut object = Map::new();
        object.insert("id".to_string(), position.into());
        object.insert("operator".to_string(), Json::from(&*node.operator));
        object.insert("inputs".to_string(), node.inputs.iter().map(|input| input.0).collect());
        object.insert("text".to_string(), Json::from(node_text(node)));
        if let Some(estimate) = node.estimated_rows {
            object.insert("estimated_rows".to_string(), estimate.into());
        }
        let profile = profile.and_then(|profile| Some((profile, profile.nodes.get(position)?)));
        if let Some((profile, measured)) = profile {
            object.insert("rows".to_string(), measured.rows.into());
            if let Some(factor) = error_factor(plan, profile, position) {
                object
                    .insert("estimate_off".to_string(), ((factor * 100.0).round() / 100.0).into());
                object.insert("estimate_far_off".to_string(), (factor > LARGE_ERROR).into());
            }
            object.insert("bytes".to_string(), measured.bytes.into());
            object.insert(
                "time_ms".to_string(),
                milliseconds(Duration::from_nanos(measured.nanoseconds)),
            );
            let counters =
                measured.counters.iter().map(|(name, value)| (name.to_string(), (*value).into()));
            object.insert("counters".to_string(), Json::Object(counters.collect()));
        }
        let nested = node.nested.iter().enumerate().map(|(index, inner)| {
            plan_json(inner, profile.and_then(|(_, measured)| measured.nested.get(index)))
        });
        object.insert("nested".to_string(), nested.collect());
        Json::Object(object)
    });
    let mut object = Map::new();
    object.insert("nodes".to_string(), nodes.collect());
    object.insert("return".to_string(), plan.root.0.into());
    Json::Object(object)
}

/// A node without its nested plans, in the plan language.
fn node_text(node: &Node) -> String {
    let alone = Node { nested: Vec::new(), ..node.clone() };
    let plan = Plan { parameters: Tuple::empty(), nodes: vec![alone], root: NodeId(0) };
    let text = text::print(&plan);
    let body = text.split_once("%0").map_or("", |(_, rest)| rest);
    let body = body.rsplit_once("return").map_or(body, |(body, _)| body);
    body.trim().trim_start_matches("= ").to_string()
}

fn milliseconds(time: Duration) -> Json {
    Json::from((time.as_secs_f64() * 1e6).round() / 1e3)
}
