//! Parses the `aggregates` parameter and derives the types of its results.

use std::sync::Arc;

use tessera_operator::describe;
use tessera_plan::{Expr, Inputs, Node, Scope, SortKey, Value, type_of};
use tessera_types::{Error, Field, Item, Result, Tuple, quote_name};

/// One aggregate of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The output field of its result.
    pub name: Arc<str>,
    /// The function.
    pub function: Arc<str>,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// Whether equal arguments are aggregated once.
    pub distinct: bool,
    /// Selects the tuples to aggregate.
    pub filter: Option<Expr>,
    /// The order in which tuples are aggregated.
    pub order_by: Vec<SortKey>,
    /// The most values of a list: the first ones are kept.
    pub limit: Option<u64>,
}

/// Returns the aggregates of a node; empty if the parameter is absent.
///
/// # Errors
/// The parameter does not have the form that the catalog documents.
pub fn calls(node: &Node) -> Result<Vec<Call>> {
    match node.param("aggregates") {
        None => Ok(Vec::new()),
        Some(Value::Record(entries)) => {
            entries.iter().map(|(name, value)| call(name, value)).collect()
        }
        Some(_) => Err(Error::semantic("parameter aggregates must be named aggregates in braces")),
    }
}

fn call(name: &Arc<str>, value: &Value) -> Result<Call> {
    let wrong = |what: &str| {
        Error::semantic(format!(
            "aggregate {}: {what}; the form is {{function = sum, args = [x], distinct = true, filter = x > 0, \
             order_by = [{{field = x}}], limit = 3}}, all but function and args optional",
            quote_name(name)
        ))
    };
    let Value::Record(entries) = value else { return Err(wrong("it must be a record")) };
    let mut call = Call {
        name: name.clone(),
        function: "".into(),
        args: Vec::new(),
        distinct: false,
        filter: None,
        order_by: Vec::new(),
        limit: None,
    };
    for (key, value) in entries {
        match (&**key, value) {
            ("function", Value::Name(f) | Value::String(f) | Value::Expr(Expr::Field(f))) => {
                call.function = f.clone();
            }
            ("args", Value::List(args)) => {
                for arg in args {
                    let Value::Expr(expr) = arg else {
                        return Err(wrong("args must be expressions"));
                    };
                    call.args.push(expr.clone());
                }
            }
            ("distinct", Value::Boolean(flag)) => call.distinct = *flag,
            ("filter", Value::Expr(expr)) => call.filter = Some(expr.clone()),
            ("order_by", order @ Value::List(_)) => {
                let params = tessera_plan::Params::new().with("order_by", order.clone());
                call.order_by = params.sort_keys("order_by")?;
            }
            ("limit", Value::Integer(limit @ 1..)) => call.limit = Some(*limit as u64),
            (other, _) => {
                return Err(wrong(&format!("{other} is unknown or has the wrong kind of value")));
            }
        }
    }
    if call.limit.is_some() && (&*call.function != "array_agg" || call.distinct) {
        return Err(wrong("limit goes with array_agg without distinct"));
    }
    if call.function.is_empty() { Err(wrong("function is missing")) } else { Ok(call) }
}

/// Returns the result field of each aggregate, after checking all its parts.
///
/// # Errors
/// An argument, filter or order does not type-check over `tuple`, or the function does not take the
/// arguments.
pub fn output_fields(calls: &[Call], tuple: &Tuple, inputs: &Inputs<'_>) -> Result<Vec<Field>> {
    calls
        .iter()
        .map(|call| {
            output_field(call, tuple, inputs)
                .map_err(|error| error.context(format!("aggregate {}", quote_name(&call.name))))
        })
        .collect()
}

fn output_field(call: &Call, tuple: &Tuple, inputs: &Inputs<'_>) -> Result<Field> {
    let scope = Scope { tuple, parameters: inputs.parameters, functions: inputs.functions };
    let args = call.args.iter().map(|arg| type_of(arg, scope)).collect::<Result<Vec<_>>>()?;
    if let Some(filter) = &call.filter {
        describe::predicate(filter, tuple, inputs)?;
    }
    for key in &call.order_by {
        describe::key(tuple, &key.field, "sort key")?;
    }
    let (atom, nullable) = inputs.functions.aggregate(&call.function, &args, call.distinct)?;
    // A filter can leave a group without tuples, for which only counts are not NULL.
    let nullable = nullable || (call.filter.is_some() && &*call.function != "count");
    Ok(Field { name: call.name.clone(), item: Item::Atom(atom), nullable })
}
