//! Lowering of UNION ALL.

use std::collections::HashSet;

use tessera_plan::{Expr, Params};
use tessera_types::{Field, Result, Tuple};

use super::node::add;
use super::{Level, LoweredNode, Lowering};
use crate::logical::relation::{Name, Relation};

impl Lowering<'_> {
    pub(super) fn union(
        &mut self,
        inputs: &[(Relation, Vec<Name>)],
        names: &[Name],
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let mut ids = Vec::with_capacity(inputs.len());
        let mut fields: Option<Vec<Field>> = None;
        for (input, given) in inputs {
            let pairs: Vec<(&Name, &Name)> =
                names.iter().zip(given).filter(|(name, _)| needed.contains(*name)).collect();
            let below = pairs.iter().map(|(_, from)| (*from).clone()).collect();
            let lowered = self.lower(input, &below, level)?;
            let exprs = pairs
                .into_iter()
                .map(|(name, from)| (name.clone(), Expr::Field(from.clone())))
                .collect();
            let lowered = self.map(level, lowered, exprs)?;
            fields = Some(merge_nullable(fields, lowered.tuple.fields()));
            ids.push(lowered.id);
        }
        Ok(add(level, "union", &ids, Params::new(), Tuple::new(fields.unwrap_or_default())))
    }
}

pub(super) fn merge_nullable(known: Option<Vec<Field>>, fields: &[Field]) -> Vec<Field> {
    match known {
        None => fields.to_vec(),
        Some(known) => known
            .iter()
            .zip(fields)
            .map(|(known, field)| known.with_nullable(known.nullable || field.nullable))
            .collect(),
    }
}
