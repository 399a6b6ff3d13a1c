//! Orders, with or without an end.

use std::collections::HashSet;

use tessera_plan::{Expr, Params, SortKey, Value};
use tessera_types::{Error, Result};

use super::node::{add, with_fields};
use super::{Level, Lowering, Made};
use crate::logical::relation::{Key, Name, Relation};

/// More rows than these are sorted whole: what a sort holds can leave memory, what `top_k` holds
/// cannot.
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
    ) -> Result<Made> {
        let exprs: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
        let made = self.lower(input, &with_fields(needed, &exprs), level)?;
        let (made, names) = self.with_computed(level, made, &exprs, "order")?;
        let mut kept = needed.clone();
        kept.extend(names.iter().cloned());
        let made = self.prune(level, made, &kept)?;
        let mut sort_keys: Vec<SortKey> = Vec::new();
        for (key, name) in keys.iter().zip(names) {
            if !sort_keys.iter().any(|known| known.field == name) {
                sort_keys.push(SortKey {
                    field: name,
                    descending: key.descending,
                    nulls_first: key.nulls_first,
                });
            }
        }
        let values: Vec<Value> = sort_keys.iter().map(SortKey::to_value).collect();
        let params = Params::new().with("keys", values);
        let tuple = made.tuple.clone();
        let made = match limit {
            _ if sort_keys.is_empty() => {
                let params = counted(Params::new(), offset, limit)?;
                if params.is_empty() {
                    made
                } else {
                    add(level, "limit", &[made.id], params, tuple)
                }
            }
            Some(limit) if limit.saturating_add(offset) <= TOP_K_ROWS_MAX => {
                add(level, "top_k", &[made.id], counted(params, offset, Some(limit))?, tuple)
            }
            Some(limit) => {
                let sorted = add(level, "sort", &[made.id], params, tuple.clone());
                add(
                    level,
                    "limit",
                    &[sorted.id],
                    counted(Params::new(), offset, Some(limit))?,
                    tuple,
                )
            }
            None => add(level, "sort", &[made.id], params, tuple),
        };
        self.prune(level, made, needed)
    }
}

/// The parameters with a limit and an offset, where there are.
pub(super) fn counted(mut params: Params, offset: u64, limit: Option<u64>) -> Result<Params> {
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
