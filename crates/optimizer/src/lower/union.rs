//! Several inputs, one after the other.

use std::collections::HashSet;

use tessera_plan::{Expr, Params};
use tessera_types::{Field, Result, Tuple};

use super::node::add;
use super::{Level, Lowering, Made};
use crate::logical::relation::{Name, Relation};

impl Lowering<'_> {
    pub(super) fn union(
        &mut self,
        inputs: &[(Relation, Vec<Name>)],
        names: &[Name],
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<Made> {
        let mut ids = Vec::with_capacity(inputs.len());
        let mut fields: Option<Vec<Field>> = None;
        for (input, given) in inputs {
            let pairs: Vec<(&Name, &Name)> =
                names.iter().zip(given).filter(|(name, _)| needed.contains(*name)).collect();
            let below = pairs.iter().map(|(_, from)| (*from).clone()).collect();
            let made = self.lower(input, &below, level)?;
            let exprs = pairs
                .into_iter()
                .map(|(name, from)| (name.clone(), Expr::Field(from.clone())))
                .collect();
            let made = self.map(level, made, exprs)?;
            fields = Some(merge_nullable(fields, made.tuple.fields()));
            ids.push(made.id);
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
