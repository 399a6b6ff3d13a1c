//! Lowering of groupings.

use std::collections::HashSet;

use tessera_plan::{Expr, Functions, Params, Value};
use tessera_types::{Field, Result, Tuple};

use super::node::{add, field, fields_of};
use super::sort::keys_value;
use super::{Level, LoweredNode, Lowering};
use crate::logical::relation::{Aggregate, Call, Name};

impl Lowering<'_> {
    pub(super) fn aggregate(
        &mut self,
        aggregate: &Aggregate,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let calls: Vec<&(Name, Call)> =
            aggregate.calls.iter().filter(|(name, _)| needed.contains(name)).collect();
        let mut read: Vec<&Expr> = aggregate.keys.iter().map(|(_, expr)| expr).collect();
        for (_, call) in &calls {
            read.extend(&call.args);
            read.extend(&call.filter);
            read.extend(call.order_by.iter().map(|key| &key.expr));
        }
        let lowered = self.lower(&aggregate.input, &fields_of(read.into_iter()), level)?;
        // The sort keys of ordered aggregates must be fields.
        let order: Vec<Expr> = calls
            .iter()
            .flat_map(|(_, call)| call.order_by.iter().map(|key| key.expr.clone()))
            .collect();
        let (lowered, order) = self.with_computed(level, lowered, &order, "order")?;
        let mut order = order.into_iter();
        let calls: Vec<(Name, Call)> = calls
            .into_iter()
            .map(|(name, call)| {
                let mut call = call.clone();
                for key in &mut call.order_by {
                    if let Some(field) = order.next() {
                        key.expr = Expr::Field(field);
                    }
                }
                (name.clone(), call)
            })
            .collect();
        match &aggregate.sets {
            None => {
                let plain = aggregate
                    .keys
                    .iter()
                    .all(|(name, expr)| matches!(expr, Expr::Field(field) if field == name));
                let lowered = if plain {
                    lowered
                } else {
                    let mut exprs: Vec<(Name, Expr)> = aggregate.keys.clone();
                    for (name, expr) in Expr::identity(&lowered.tuple) {
                        if !exprs.iter().any(|(known, _)| *known == name) {
                            exprs.push((name, expr));
                        }
                    }
                    self.map(level, lowered, exprs)?
                };
                let keys: Vec<Name> = aggregate.keys.iter().map(|(name, _)| name.clone()).collect();
                let lowered = self.group(level, &lowered, &keys, &calls)?;
                self.prune(level, lowered, needed)
            }
            Some(sets) => self.grouping_sets(aggregate, sets, &calls, lowered, level),
        }
    }

    pub(super) fn group(
        &mut self,
        level: &mut Level,
        input: &LoweredNode,
        keys: &[Name],
        calls: &[(Name, Call)],
    ) -> Result<LoweredNode> {
        let mut fields = keys
            .iter()
            .map(|name| field(&input.tuple, name).cloned())
            .collect::<Result<Vec<_>>>()?;
        let mut entries: Vec<(Name, Value)> = Vec::new();
        for (name, call) in calls {
            let args = call
                .args
                .iter()
                .map(|arg| self.type_of(arg, &input.tuple, level))
                .collect::<Result<Vec<_>>>()?;
            let (atom, nullable) =
                self.types.library.aggregate(&call.function, &args, call.distinct)?;
            fields.push(Field::new(name.clone(), atom).with_nullable(nullable));
            entries.push((name.clone(), call_value(call)?));
        }
        let tuple = Tuple::new(fields);
        if keys.is_empty() {
            let params = Params::new().with("aggregates", entries);
            return Ok(add(level, "reduce", &[input.id], params, tuple));
        }
        let mut params = Params::new().with("keys", Value::names(keys));
        if !entries.is_empty() {
            params.set("aggregates", entries);
        }
        Ok(add(level, "reduce_by_key", &[input.id], params, tuple))
    }
}

fn call_value(call: &Call) -> Result<Value> {
    let mut entries = call_entries(&call.function, &call.args, call.distinct, call.filter.as_ref());
    if !call.order_by.is_empty() {
        entries.push(("order_by".into(), keys_value(&call.order_by)?));
    }
    if let Some(limit) = call.limit {
        entries.push(("limit".into(), Value::from(limit as i64)));
    }
    Ok(Value::Record(entries))
}

/// Returns what calls of aggregates and of window functions have in common, as parameters.
pub(super) fn call_entries(
    function: &Name,
    args: &[Expr],
    distinct: bool,
    filter: Option<&Expr>,
) -> Vec<(Name, Value)> {
    let mut entries: Vec<(Name, Value)> = vec![
        ("function".into(), Value::name(function.clone())),
        ("args".into(), Value::List(args.iter().cloned().map(Value::Expr).collect())),
    ];
    if distinct {
        entries.push(("distinct".into(), Value::Boolean(true)));
    }
    entries.extend(filter.map(|filter| ("filter".into(), Value::Expr(filter.clone()))));
    entries
}
