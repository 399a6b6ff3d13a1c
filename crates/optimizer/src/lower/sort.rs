//! Lowering of sorts, with and without a limit.

use std::collections::HashSet;

use tessera_plan::{Expr, Params, SortKey, Value};
use tessera_types::{Error, Result};

use super::node::{add, with_fields};
use super::{Level, LoweredNode, Lowering};
use crate::logical::relation::{Key, Name, Relation};

/// The maximum limit for `top_k`; a larger one uses a sort, which can spill to disk.
const TOP_K_ROWS_MAX: u64 = 20_000;

impl Lowering<'_> {
    pub(super) fn sort(
        &mut self,
        input: &Relation,
        keys: &[Key],
        offset: u64,
        limit: Option<u64>,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let exprs: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
        let lowered = self.lower(input, &with_fields(needed, &exprs), level)?;
        let (lowered, names) = self.with_computed(level, lowered, &exprs, "order")?;
        let mut kept = needed.clone();
        kept.extend(names.iter().cloned());
        let lowered = self.prune(level, lowered, &kept)?;
        let mut sort_keys: Vec<SortKey> = Vec::new();
        for (key, name) in keys.iter().zip(names) {
            if !sort_keys.iter().any(|known| known.field == name) {
                sort_keys.push(sort_key(key, name));
            }
        }
        let values: Vec<Value> = sort_keys.iter().map(SortKey::to_value).collect();
        let params = Params::new().with("keys", values);
        let tuple = lowered.tuple.clone();
        let lowered = match limit {
            _ if sort_keys.is_empty() => {
                let params = with_limit(Params::new(), offset, limit)?;
                if params.is_empty() {
                    lowered
                } else {
                    add(level, "limit", &[lowered.id], params, tuple)
                }
            }
            Some(limit) if limit.saturating_add(offset) <= TOP_K_ROWS_MAX => {
                add(level, "top_k", &[lowered.id], with_limit(params, offset, Some(limit))?, tuple)
            }
            Some(limit) => {
                let sorted = add(level, "sort", &[lowered.id], params, tuple.clone());
                add(
                    level,
                    "limit",
                    &[sorted.id],
                    with_limit(Params::new(), offset, Some(limit))?,
                    tuple,
                )
            }
            None => add(level, "sort", &[lowered.id], params, tuple),
        };
        self.prune(level, lowered, needed)
    }
}

/// Returns a sort key in ascending order, with NULLs last.
pub(super) fn ascending(field: &Name) -> SortKey {
    SortKey { field: field.clone(), descending: false, nulls_first: false }
}

/// Returns the parameter of a sort key whose value is this field.
pub(super) fn sort_key(key: &Key, field: Name) -> SortKey {
    SortKey { field, descending: key.descending, nulls_first: key.nulls_first }
}

/// Returns the parameter of sort keys, whose expressions are fields.
pub(super) fn keys_value(keys: &[Key]) -> Result<Value> {
    let value = |key: &Key| match &key.expr {
        Expr::Field(field) => Ok(sort_key(key, field.clone()).to_value()),
        _ => Err(Error::internal("the sort key of an aggregate is not a field")),
    };
    Ok(Value::List(keys.iter().map(value).collect::<Result<_>>()?))
}

/// Adds the limit and the offset to the parameters.
pub(super) fn with_limit(mut params: Params, offset: u64, limit: Option<u64>) -> Result<Params> {
    let count = |count: u64| {
        i64::try_from(count)
            .map_err(|_| Error::semantic(format!("{count} is too large for LIMIT or OFFSET")))
    };
    if let Some(limit) = limit {
        params.set("limit", count(limit)?);
    }
    if offset > 0 {
        params.set("offset", count(offset)?);
    }
    Ok(params)
}
