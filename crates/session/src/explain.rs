//! `EXPLAIN`: plans as text, with what was measured.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Map, Value as Json};
use tessera_engine::profile::Profile;
use tessera_objects::Totals;
use tessera_plan::{Node, NodeId, Plan, text};
use tessera_types::Tuple;

/// What `EXPLAIN ANALYZE` says beneath the plan.
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
    /// Pieces of code that were compiled, and how long that took.
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
            let (name, value) = counter(name, profile.total(name));
            let _ = writeln!(out, "-- {name}: {value}");
        }
        out
    }
}

/// A counter as people read it: its name tells the unit.
fn counter(name: &str, value: u64) -> (String, String) {
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

/// A time as people read it.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.1} us", s * 1e6),
    }
}

/// A number of bytes as people read it.
pub(crate) fn bytes(count: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, size)| count >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", count as f64 / *size as f64),
        None => format!("{count} bytes"),
    }
}

/// The plan, with what each sub-operator yielded and took as a comment above it, and the summary
/// beneath.
pub(crate) fn analyzed(plan: &Plan, profile: &Profile, summary: &Summary) -> String {
    let note = |path: &[usize]| {
        let (plan, profile, position) = within(plan, profile, path)?;
        let node = profile.nodes.get(position)?;
        let mut note = format!(
            "{} rows{}, {}, {}",
            node.rows,
            beside(plan, profile, position).unwrap_or_default(),
            bytes(node.bytes),
            duration(Duration::from_nanos(node.nanoseconds))
        );
        for (name, value) in &node.counters {
            let (name, value) = counter(name, *value);
            let _ = write!(note, ", {name} {value}");
        }
        Some(note)
    };
    let (wrong, all) = far_off(plan, profile);
    let wrong = match wrong {
        0 => String::new(),
        wrong => format!("-- estimates: {wrong} of {all} are off by more than {FAR_OFF:.0}x\n"),
    };
    format!("{}\n{}{wrong}", text::annotate(plan, &note), summary.text(profile))
}

/// Estimates that are off by more than this factor are marked.
const FAR_OFF: f64 = 10.0;

/// What a scan counts as left out because of what it was told while it ran: estimates do not know
/// of these.
const LEFT_OUT: [&str; 3] =
    ["rows_dropped_without_match", "rows_skipped_without_match", "rows_skipped_behind_threshold"];

/// By which factor a node's estimate is off, in either direction; a row more or less counts for
/// nothing.
fn off(plan: &Plan, profile: &Profile, position: usize) -> Option<f64> {
    let estimate = plan.nodes.get(position)?.estimated_rows?.max(1) as f64;
    let rows = profile.nodes.get(position)?.rows.max(1) as f64;
    let too_many = if is_narrowed(plan, profile, position) { 1.0 } else { estimate / rows };
    Some(too_many.max(rows / estimate))
}

/// Whether a node yields less than the plan alone would have it yield, because of what a build or a
/// `top_k` has told.
fn is_narrowed(plan: &Plan, profile: &Profile, position: usize) -> bool {
    let (Some(node), Some(measured)) = (plan.nodes.get(position), profile.nodes.get(position))
    else {
        return false;
    };
    &*node.operator == "semi_join_filter"
        || LEFT_OUT.iter().any(|counter| measured.counters.contains_key(counter))
        || matches!(node.inputs[..], [input] if is_narrowed(plan, profile, input.index()))
}

/// What was estimated, to stand behind the rows that there were.
fn beside(plan: &Plan, profile: &Profile, position: usize) -> Option<String> {
    let estimate = plan.nodes.get(position)?.estimated_rows?;
    Some(match off(plan, profile, position)? {
        off if off > FAR_OFF => format!(" (!! {estimate} estimated, off by {off:.0}x)"),
        _ => format!(" ({estimate} estimated)"),
    })
}

/// How many of the plan's estimates are far off, and how many there are.
fn far_off(plan: &Plan, profile: &Profile) -> (usize, usize) {
    let mut counts = (0, 0);
    for (position, (node, measured)) in plan.nodes.iter().zip(&profile.nodes).enumerate() {
        if let Some(off) = off(plan, profile, position) {
            counts.0 += usize::from(off > FAR_OFF);
            counts.1 += 1;
        }
        for (plan, profile) in node.nested.iter().zip(&measured.nested) {
            let (wrong, all) = far_off(plan, profile);
            counts = (counts.0 + wrong, counts.1 + all);
        }
    }
    counts
}

/// The node at a [`tessera_plan::text::Note`]'s path.
pub(crate) fn plan_node_at<'a>(plan: &'a Plan, path: &[usize]) -> Option<&'a Node> {
    let (node, below) = path.split_first()?;
    let node = plan.nodes.get(*node)?;
    match below.split_first() {
        None => Some(node),
        Some((nested, below)) => plan_node_at(node.nested.get(*nested)?, below),
    }
}

/// The plan, its profile and the position in it that positions of nodes and nested plans, in turn,
/// lead to.
fn within<'a>(
    plan: &'a Plan,
    profile: &'a Profile,
    path: &[usize],
) -> Option<(&'a Plan, &'a Profile, usize)> {
    let (position, below) = path.split_first()?;
    let Some((nested, below)) = below.split_first() else {
        return Some((plan, profile, *position));
    };
    let inner = plan.nodes.get(*position)?.nested.get(*nested)?;
    within(inner, profile.nodes.get(*position)?.nested.get(*nested)?, below)
}

/// The plan as JSON: one object per sub-operator, nested plans inside; with what was measured.
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
            if let Some(off) = off(plan, profile, position) {
                object.insert("estimate_off".to_string(), ((off * 100.0).round() / 100.0).into());
                object.insert("estimate_far_off".to_string(), (off > FAR_OFF).into());
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

/// The node alone, in the plan language.
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
