//! Lowering of window functions.
//!
//! A sort by the keys of PARTITION BY and ORDER BY gives each partition as a run of tuples;
//! `window_bounds` marks where partitions and peers begin. `window_scan` computes what depends on
//! earlier tuples only, `window_frame` all else. Windows with the same partitions and orders of
//! which one begins with the other share a sort.

use std::collections::{BTreeSet, HashSet};

use tessera_functions::window_type;
use tessera_plan::{Expr, Params, Scalar, SortKey, Value};
use tessera_types::{Atom, Error, Field, Result, Tuple};

use super::aggregate::call_entries;
use super::node::{add, fields_of};
use super::sort::{ascending, keys_value, sort_key, with_limit};
use super::{Level, LoweredNode, Lowering};
use crate::logical::relation::{Key, Name, Relation};
use crate::logical::window::{Bound, Exclude, Frame, Unit, Window, WindowCall};

/// A window whose keys are fields.
struct WindowFields {
    partition: Vec<Name>,
    order: Vec<SortKey>,
    /// The first key as written: `order` has no keys that are constant within a partition.
    first: Option<Key>,
    calls: Vec<(Name, WindowCall)>,
}

impl Lowering<'_> {
    pub(super) fn window(
        &mut self,
        window: &Window,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let windows = over_one_sort(window);
        let input = windows.last().map_or(&window.input, |last| &last.input);
        let names: HashSet<Name> = input.names().into_iter().collect();
        let mut below: HashSet<Name> = needed.intersection(&names).cloned().collect();
        let mut used: Vec<(&Window, Vec<(Name, WindowCall)>)> = Vec::new();
        for window in windows {
            let calls: Vec<(Name, WindowCall)> =
                window.calls.iter().filter(|(name, _)| needed.contains(name)).cloned().collect();
            if calls.is_empty() {
                continue;
            }
            let order = window.order.iter().map(|key| &key.expr);
            below.extend(fields_of(window.partition.iter().chain(order)));
            below.extend(fields_of(calls.iter().flat_map(|(_, call)| call.exprs())));
            used.push((window, calls));
        }
        let mut lowered = self.lower(input, &below, level)?;
        let mut windows: Vec<WindowFields> = Vec::with_capacity(used.len());
        for (window, calls) in used {
            let fields;
            (lowered, fields) = self.window_fields(window, calls, lowered, level)?;
            below.extend(fields.names());
            windows.push(fields);
        }
        // The longest order is that of the sort.
        let Some(first) = windows.iter().max_by_key(|window| window.order.len()) else {
            return Ok(lowered);
        };
        let limit = window.limit.filter(|_| windows.len() == 1);
        let sorted = self.sorted_by_window((first, limit), &below, lowered, level)?;
        self.window_calls(windows, sorted, level)
    }

    /// Computes the keys that must be fields.
    fn window_fields(
        &mut self,
        window: &Window,
        mut calls: Vec<(Name, WindowCall)>,
        lowered: LoweredNode,
        level: &mut Level,
    ) -> Result<(LoweredNode, WindowFields)> {
        let mut exprs: Vec<Expr> = window.partition.clone();
        exprs.extend(window.order.iter().map(|key| key.expr.clone()));
        for (_, call) in &calls {
            exprs.extend(call.order_by.iter().map(|key| key.expr.clone()));
            exprs.extend(call.frame.key.clone());
        }
        let (lowered, names) = self.with_computed(level, lowered, &exprs, "order")?;
        let mut names = names.into_iter();
        let mut partition: Vec<Name> = Vec::with_capacity(window.partition.len());
        for name in names.by_ref().take(window.partition.len()) {
            if !partition.contains(&name) {
                partition.push(name);
            }
        }
        // Windows with the same keys in another order share a sort.
        partition.sort();
        let mut order: Vec<SortKey> = Vec::with_capacity(window.order.len());
        for (key, field) in window.order.iter().zip(names.by_ref()) {
            if !partition.contains(&field) && !order.iter().any(|known| known.field == field) {
                order.push(sort_key(key, field));
            }
        }
        for (_, call) in &mut calls {
            let keys = call.order_by.iter_mut().map(|key| &mut key.expr);
            for (expr, name) in keys.chain(&mut call.frame.key).zip(names.by_ref()) {
                *expr = Expr::Field(name);
            }
        }
        let first = window.order.first().cloned();
        Ok((lowered, WindowFields { partition, order, first, calls }))
    }

    /// Sorts the input of a window; with a limit, keeps the first tuples of each partition.
    fn sorted_by_window(
        &mut self,
        (window, limit): (&WindowFields, Option<u64>),
        kept: &HashSet<Name>,
        mut lowered: LoweredNode,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let mut keys: Vec<SortKey> = window.partition.iter().map(ascending).collect();
        keys.extend(window.order.iter().cloned());
        lowered = self.prune(level, lowered, kept)?;
        if keys.is_empty() {
            // All tuples are peers; a stable sort by a constant keeps the order of the source.
            let name = self.name("order");
            let mut exprs = Expr::identity(&lowered.tuple);
            exprs.push((name.clone(), Expr::Constant(Scalar::Integer(0), Atom::Int32)));
            lowered = self.map(level, lowered, exprs)?;
            keys.push(ascending(&name));
        }
        let keys: Vec<Value> = keys.iter().map(SortKey::to_value).collect();
        let params =
            Params::new().with("keys", keys).with("partition", window.partition.len() as i64);
        let params = with_limit(params, 0, limit)?;
        let tuple = lowered.tuple.clone();
        Ok(add(level, "sort", &[lowered.id], params, tuple))
    }

    /// Adds the calls of windows over a sorted input.
    fn window_calls(
        &mut self,
        windows: Vec<WindowFields>,
        sorted: LoweredNode,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let tuple = sorted.tuple.clone();
        let mut lowered = sorted;
        let mut marked = Vec::with_capacity(windows.len());
        for window in windows {
            let order = window.order.iter().map(|key| &key.field);
            let starts;
            (lowered, starts) = self.window_bounds(lowered, &window.partition, order, level);
            marked.push((window, starts));
        }
        for (window, starts) in marked {
            let WindowFields { first, calls, .. } = window;
            let has_order = first.is_some();
            let (scanned, framed): (Vec<_>, Vec<_>) =
                calls.into_iter().partition(|(_, call)| is_scanned(call, has_order));
            for (operator, calls) in [("window_scan", scanned), ("window_frame", framed)] {
                if calls.is_empty() {
                    continue;
                }
                let mut fields = lowered.tuple.fields().to_vec();
                let mut entries: Vec<(Name, Value)> = Vec::with_capacity(calls.len());
                for (name, call) in &calls {
                    fields.push(self.window_field(name, call, &tuple, level)?);
                    // The frames of `window_scan` start and end as the default one does.
                    let is_default = operator == "window_scan" && call.frame.unit != Unit::Rows;
                    let frame = !is_default && has_frame(&call.function);
                    let frame = frame.then(|| frame_value(&call.frame, first.as_ref()));
                    entries.push((name.clone(), call_value(call, frame.transpose()?)?));
                }
                let params = starts.clone().with("calls", entries);
                lowered = add(level, operator, &[lowered.id], params, Tuple::new(fields));
            }
        }
        Ok(lowered)
    }

    /// Marks where partitions and groups of peers begin in a sorted input. Returns also the
    /// parameters that name the marks.
    pub(super) fn window_bounds<'n>(
        &mut self,
        sorted: LoweredNode,
        partition: &[Name],
        order: impl IntoIterator<Item = &'n Name>,
        level: &mut Level,
    ) -> (LoweredNode, Params) {
        let starts = [self.name("partition"), self.name("peer")];
        let mut fields = sorted.tuple.fields().to_vec();
        fields.extend(starts.clone().map(|name| Field::new(name, Atom::Boolean)));
        let [partition_start, peer_start] = starts.map(Expr::Field);
        let starts =
            Params::new().with("partition_start", partition_start).with("peer_start", peer_start);
        let params = starts
            .clone()
            .with("partition", Value::names(partition))
            .with("order", Value::names(order));
        let bounds = add(level, "window_bounds", &[sorted.id], params, Tuple::new(fields));
        (bounds, starts)
    }

    /// Returns the field of a call over a tuple.
    fn window_field(
        &self,
        name: &Name,
        call: &WindowCall,
        tuple: &Tuple,
        level: &Level,
    ) -> Result<Field> {
        let args = call.args.iter().map(|arg| self.type_of(arg, tuple, level));
        let args = args.collect::<Result<Vec<_>>>()?;
        let library = &**self.types.library;
        let (atom, nullable) = window_type(library, &call.function, &args, call.distinct)?;
        Ok(Field::new(name.clone(), atom).with_nullable(nullable))
    }
}

impl WindowFields {
    /// Returns the fields that the calls read.
    fn names(&self) -> impl Iterator<Item = Name> {
        let calls = self.calls.iter().flat_map(|(_, call)| call.exprs()).flat_map(Expr::fields);
        let order = self.order.iter().map(|key| key.field.clone());
        self.partition.iter().cloned().chain(order).chain(calls)
    }
}

/// Returns a window and the windows directly below it that one sort can serve: they have the same
/// partitions, and each order begins with the one above it.
fn over_one_sort(window: &Window) -> Vec<&Window> {
    let mut windows = vec![window];
    let mut last = window;
    while let Relation::Window(below) = &last.input {
        let (Some((same, first)), Some((partition, order))) = (plain_keys(last), plain_keys(below))
        else {
            break;
        };
        let is_independent = !windows.iter().any(|window| reads_calls(window, below));
        if partition != same || !order.starts_with(first) || !is_independent {
            break;
        }
        windows.push(below);
        last = below;
    }
    windows
}

/// Returns the keys of a window if all are fields.
fn plain_keys(window: &Window) -> Option<(BTreeSet<&Name>, &[Key])> {
    let partition: BTreeSet<&Name> = window.partition_fields().collect();
    let is_plain = window.partition.iter().all(|expr| matches!(expr, Expr::Field(_)))
        && window.order.iter().all(|key| matches!(key.expr, Expr::Field(_)));
    is_plain.then_some((partition, &window.order))
}

/// Whether a window reads results of the window below it.
fn reads_calls(window: &Window, below: &Window) -> bool {
    window
        .exprs()
        .flat_map(Expr::fields)
        .any(|field| below.calls.iter().any(|(name, _)| *name == field))
}

/// The largest offset of `lag` in `window_scan`, which holds so many values.
const SCANNED_OFFSET_MAX: i128 = 65_536;

/// Whether the call needs no later tuples but peers, so that `window_scan` can compute it. Without
/// an order all tuples are peers: `window_frame` computes one value for each partition.
fn is_scanned(call: &WindowCall, has_order: bool) -> bool {
    let grows = matches!(call.frame.start, Bound::UnboundedPreceding)
        && matches!(call.frame.end, Bound::CurrentRow)
        && call.frame.exclude == Exclude::NoOthers;
    match &*call.function {
        "row_number" | "rank" | "dense_rank" => true,
        "lag" => {
            let is_back = match call.args.get(1) {
                None => true,
                Some(Expr::Constant(Scalar::Integer(offset), _)) => {
                    (0..=SCANNED_OFFSET_MAX).contains(offset)
                }
                Some(_) => false,
            };
            is_back && !call.ignore_nulls
        }
        "first_value" => grows && !call.ignore_nulls && is_plain(call),
        "lead" | "nth_value" | "ntile" | "percent_rank" | "cume_dist" => false,
        _ => {
            let ends = has_order || call.frame.unit == Unit::Rows;
            grows && ends && !call.ignore_nulls && is_plain(call)
        }
    }
}

fn is_plain(call: &WindowCall) -> bool {
    !call.distinct && call.order_by.is_empty()
}

/// Whether the function depends on the frame.
fn has_frame(function: &str) -> bool {
    !matches!(
        function,
        "row_number"
            | "rank"
            | "dense_rank"
            | "percent_rank"
            | "cume_dist"
            | "ntile"
            | "lag"
            | "lead"
    )
}

fn call_value(call: &WindowCall, frame: Option<Value>) -> Result<Value> {
    let mut entries = call_entries(&call.function, &call.args, call.distinct, call.filter.as_ref());
    if call.ignore_nulls {
        entries.push(("ignore_nulls".into(), Value::Boolean(true)));
    }
    if !call.order_by.is_empty() {
        entries.push(("order_by".into(), keys_value(&call.order_by)?));
    }
    entries.extend(frame.map(|frame| ("frame".into(), frame)));
    Ok(Value::Record(entries))
}

/// Returns the frame as a parameter; `order` is the first key of ORDER BY.
fn frame_value(frame: &Frame, order: Option<&Key>) -> Result<Value> {
    let unit = match frame.unit {
        Unit::Rows => "rows",
        Unit::Range => "range",
        Unit::Groups => "groups",
    };
    let mut entries: Vec<(Name, Value)> = vec![
        ("unit".into(), Value::name(unit)),
        ("start".into(), bound_value(&frame.start)),
        ("end".into(), bound_value(&frame.end)),
    ];
    let exclude = match frame.exclude {
        Exclude::NoOthers => None,
        Exclude::CurrentRow => Some("current_row"),
        Exclude::Group => Some("group"),
        Exclude::Ties => Some("ties"),
    };
    entries.extend(exclude.map(|exclude| ("exclude".into(), Value::name(exclude))));
    if let Some(key) = &frame.key {
        entries.push(("key".into(), Value::Expr(Expr::Field(field_of(key)?))));
        if order.is_some_and(|order| order.descending) {
            entries.push(("descending".into(), Value::Boolean(true)));
        }
        if order.is_some_and(|order| order.nulls_first) {
            entries.push(("nulls_first".into(), Value::Boolean(true)));
        }
    }
    Ok(Value::Record(entries))
}

fn bound_value(bound: &Bound) -> Value {
    let with =
        |name: &str, expr: &Expr| Value::Record(vec![(name.into(), Value::Expr(expr.clone()))]);
    match bound {
        Bound::UnboundedPreceding | Bound::UnboundedFollowing => Value::name("unbounded"),
        Bound::CurrentRow => Value::name("current"),
        Bound::Preceding(count) => with("preceding", count),
        Bound::Following(count) => with("following", count),
        Bound::Limit(limit) => with("limit", limit),
    }
}

fn field_of(expr: &Expr) -> Result<Name> {
    match expr {
        Expr::Field(name) => Ok(name.clone()),
        _ => Err(Error::internal("a key of a window function is not a field")),
    }
}
