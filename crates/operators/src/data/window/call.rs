//! Parses the `calls` parameter of `window_scan` and `window_frame`.

use std::sync::Arc;

use tessera_functions::{WINDOW_FUNCTIONS, window_type};
use tessera_operator::describe;
use tessera_plan::{Expr, Inputs, Node, Scalar, Scope, SortKey, Value, type_of};
use tessera_types::{Atom, Error, Field, Item, Result, Tuple, quote_name};

/// A call of a window function.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WindowCall {
    /// The output field.
    pub(super) name: Arc<str>,
    pub(super) function: Arc<str>,
    pub(super) args: Vec<Expr>,
    pub(super) distinct: bool,
    pub(super) filter: Option<Expr>,
    pub(super) order_by: Vec<SortKey>,
    /// Whether values that are NULL do not count as values.
    pub(super) ignore_nulls: bool,
    /// The frame; `None` is the default of the sub-operator.
    pub(super) written_frame: Option<FrameSpec>,
}

/// A frame: which tuples of the partition belong to the result of a tuple.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FrameSpec {
    pub(super) unit: Unit,
    pub(super) start: Bound,
    pub(super) end: Bound,
    pub(super) exclude: Exclude,
    /// For limits: the order key in their type, and its order.
    pub(super) key: Option<SortKey>,
}

/// What the offsets of a frame count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Rows,
    /// Groups of peers.
    Groups,
    /// Distances of the order key.
    Range,
}

/// The start or the end of a frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bound {
    /// The start or the end of the partition.
    Unbounded,
    /// The current tuple, or its peers.
    Current,
    /// So many tuples or groups before.
    Preceding(Expr),
    /// So many tuples or groups after.
    Following(Expr),
    /// The value of the order key up to which tuples belong to the frame.
    Limit(Expr),
}

/// Tuples that a frame leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exclude {
    Nothing,
    CurrentRow,
    /// The current tuple and its peers.
    Group,
    /// The peers of the current tuple.
    Ties,
}

impl Default for FrameSpec {
    fn default() -> Self {
        FrameSpec {
            unit: Unit::Range,
            start: Bound::Unbounded,
            end: Bound::Current,
            exclude: Exclude::Nothing,
            key: None,
        }
    }
}

impl WindowCall {
    /// The frame: by default from the start of the partition to the peers of the current tuple.
    pub(super) fn frame(&self) -> FrameSpec {
        self.written_frame.clone().unwrap_or_default()
    }

    /// Whether the function is an aggregate.
    pub(super) fn is_aggregate(&self) -> bool {
        !WINDOW_FUNCTIONS.contains(&&*self.function)
    }

    /// Checks the call and returns its result field.
    pub(super) fn output(&self, tuple: &Tuple, inputs: &Inputs<'_>) -> Result<Field> {
        let scope = Scope { tuple, parameters: inputs.parameters, functions: inputs.functions };
        let args = self.args.iter().map(|arg| type_of(arg, scope)).collect::<Result<Vec<_>>>()?;
        if let Some(filter) = &self.filter {
            describe::predicate(filter, tuple, inputs)?;
        }
        for key in &self.order_by {
            describe::key(tuple, &key.field, "sort key")?;
        }
        let frame = self.frame();
        for bound in [&frame.start, &frame.end] {
            check_bound(&frame, bound, tuple, scope)?;
        }
        let (atom, nullable) = window_type(inputs.functions, &self.function, &args, self.distinct)?;
        Ok(Field { name: self.name.clone(), item: Item::Atom(atom), nullable })
    }

    /// Returns all expressions that the call evaluates.
    pub(super) fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let bounds = self.written_frame.iter().flat_map(|frame| [&frame.start, &frame.end]);
        let bounds = bounds.filter_map(|bound| match bound {
            Bound::Preceding(expr) | Bound::Following(expr) | Bound::Limit(expr) => Some(expr),
            Bound::Unbounded | Bound::Current => None,
        });
        self.args.iter().chain(&self.filter).chain(bounds)
    }

    /// Returns the names of the fields that the call reads.
    pub(super) fn fields(&self) -> Vec<Arc<str>> {
        let of_frame = self.written_frame.iter().flat_map(|frame| &frame.key);
        let keys = self.order_by.iter().chain(of_frame).map(|key| key.field.clone());
        self.exprs().flat_map(Expr::fields).chain(keys).collect()
    }
}

fn check_bound(frame: &FrameSpec, bound: &Bound, tuple: &Tuple, scope: Scope<'_>) -> Result<()> {
    match (bound, frame.unit) {
        (Bound::Unbounded | Bound::Current, _) => Ok(()),
        (Bound::Preceding(offset) | Bound::Following(offset), Unit::Rows | Unit::Groups) => {
            match type_of(offset, scope)?.0 {
                Atom::Int64 => Ok(()),
                other => Err(Error::semantic(format!(
                    "the offset of a frame is {other}; cast it to int64"
                ))),
            }
        }
        (Bound::Limit(limit), Unit::Range) => {
            let Some(key) = &frame.key else {
                return Err(Error::semantic("a frame with a limit needs its key"));
            };
            let (_, field) = describe::field(tuple, &key.field, "the key of a frame")?;
            let (limit, _) = type_of(limit, scope)?;
            match &field.item {
                Item::Atom(atom) if *atom == limit => Ok(()),
                other => Err(Error::semantic(format!(
                    "the key of a frame is {other} and its limit {limit}; cast one of them"
                ))),
            }
        }
        _ => Err(Error::semantic(
            "frames of rows and groups have offsets (preceding, following), those of range limits",
        )),
    }
}

/// Returns the calls of a node.
///
/// # Errors
/// The parameter does not have the form that the reference documents.
pub(super) fn calls(node: &Node) -> Result<Vec<WindowCall>> {
    match node.param("calls") {
        Some(Value::Record(entries)) => {
            entries.iter().map(|(name, value)| call(name, value)).collect()
        }
        _ => Err(Error::semantic("parameter calls must be named window functions in braces")),
    }
}

fn call(name: &Arc<str>, value: &Value) -> Result<WindowCall> {
    let wrong = |what: &str| {
        Error::semantic(format!(
            "window function {}: {what}; the form is {{function = sum, args = [x], distinct = true, \
             filter = x > 0, order_by = [{{field = x}}], ignore_nulls = true, frame = {{unit = :rows, \
             start = :unbounded, end = :current, exclude = :ties}}}}, all but function and args optional",
            quote_name(name)
        ))
    };
    let Value::Record(entries) = value else { return Err(wrong("it must be a record")) };
    let mut call = WindowCall {
        name: name.clone(),
        function: "".into(),
        args: Vec::new(),
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        ignore_nulls: false,
        written_frame: None,
    };
    for (key, value) in entries {
        match (&**key, value) {
            ("function", value) if word(value).is_some() => {
                call.function = word(value).unwrap_or_default();
            }
            ("args", Value::List(args)) => {
                for arg in args {
                    let arg = expression(arg);
                    call.args.push(arg.ok_or_else(|| wrong("args must be expressions"))?);
                }
            }
            ("distinct", Value::Boolean(flag)) => call.distinct = *flag,
            ("ignore_nulls", Value::Boolean(flag)) => call.ignore_nulls = *flag,
            ("filter", Value::Expr(expr)) => call.filter = Some(expr.clone()),
            ("order_by", order @ Value::List(_)) => {
                let params = tessera_plan::Params::new().with("order_by", order.clone());
                call.order_by = params.sort_keys("order_by")?;
            }
            ("frame", Value::Record(entries)) => {
                let frame = frame(entries).ok_or_else(|| wrong("the frame is malformed"))?;
                call.written_frame = Some(frame);
            }
            (other, _) => {
                return Err(wrong(&format!("{other} is unknown or has the wrong kind of value")));
            }
        }
    }
    if call.function.is_empty() { Err(wrong("function is missing")) } else { Ok(call) }
}

fn word(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::Name(name) | Value::String(name) | Value::Expr(Expr::Field(name)) => {
            Some(name.clone())
        }
        _ => None,
    }
}

fn expression(value: &Value) -> Option<Expr> {
    match value {
        Value::Expr(expr) => Some(expr.clone()),
        Value::Integer(number) => {
            Some(Expr::Constant(Scalar::Integer(i128::from(*number)), Atom::Int64))
        }
        _ => None,
    }
}

/// Parses a frame; `None` if it is malformed.
fn frame(entries: &[(Arc<str>, Value)]) -> Option<FrameSpec> {
    let mut frame = FrameSpec::default();
    let (mut descending, mut nulls_first) = (false, false);
    let mut key = None;
    for (name, value) in entries {
        match (&**name, value) {
            ("unit", value) => {
                frame.unit = match &*word(value)? {
                    "rows" => Unit::Rows,
                    "groups" => Unit::Groups,
                    "range" => Unit::Range,
                    _ => return None,
                }
            }
            ("start", value) => frame.start = bound(value)?,
            ("end", value) => frame.end = bound(value)?,
            ("exclude", value) => {
                frame.exclude = match &*word(value)? {
                    "current_row" => Exclude::CurrentRow,
                    "group" => Exclude::Group,
                    "ties" => Exclude::Ties,
                    _ => return None,
                }
            }
            ("key", value) => key = Some(word(value)?),
            ("descending", Value::Boolean(flag)) => descending = *flag,
            ("nulls_first", Value::Boolean(flag)) => nulls_first = *flag,
            _ => return None,
        }
    }
    frame.key = key.map(|field| SortKey { field, descending, nulls_first });
    Some(frame)
}

fn bound(value: &Value) -> Option<Bound> {
    if let Value::Record(entries) = value {
        let [(name, value)] = entries.as_slice() else { return None };
        let expr = expression(value)?;
        return match &**name {
            "preceding" => Some(Bound::Preceding(expr)),
            "following" => Some(Bound::Following(expr)),
            "limit" => Some(Bound::Limit(expr)),
            _ => None,
        };
    }
    match &*word(value)? {
        "unbounded" => Some(Bound::Unbounded),
        "current" => Some(Bound::Current),
        _ => None,
    }
}
