//! Lowering of scans, with the predicates that a scan can evaluate.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tessera_plan::Expr;
use tessera_types::{Result, Tuple};

use super::node::{add, filter, with_fields};
use super::{Level, LoweredNode, Lowering};
use crate::logical::relation::Name;
use crate::table::Table;

impl Lowering<'_> {
    pub(super) fn scan(
        &mut self,
        table: &Arc<Table>,
        columns: &[(Name, usize)],
        predicates: &[Expr],
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let read = with_fields(needed, predicates);
        let mut fields = Vec::new();
        let mut renames: Vec<(Name, Expr)> = Vec::new();
        let mut stored: HashMap<Name, Name> = HashMap::new();
        for (name, index) in columns {
            let Some(field) = table.tuple.fields().get(*index).filter(|_| read.contains(name))
            else {
                continue;
            };
            stored.insert(name.clone(), field.name.clone());
            renames.push((name.clone(), Expr::Field(field.name.clone())));
            fields.push(field.clone());
        }
        let tuple = Tuple::new(fields);
        let mut params = table.params.clone();
        params.set("columns", tuple.clone());
        // The scan evaluates the predicates that it can; those that can raise errors stay behind
        // the predicates before them.
        let (inside, outside): (Vec<Expr>, Vec<Expr>) =
            predicates.iter().cloned().partition(|predicate| {
                table.filters && crate::logical::relation::parameters(predicate).is_empty()
            });
        if !inside.is_empty() {
            let mut predicate = Expr::all(inside);
            crate::logical::relation::substitute(&mut predicate, &|name| {
                stored.get(name).map(|stored| Expr::Field(stored.clone()))
            });
            params.set("filter", predicate);
        }
        let mut lowered = add(level, &table.operator, &[], params, tuple);
        if renames.iter().any(|(name, expr)| !matches!(expr, Expr::Field(field) if field == name)) {
            let kept = outside.is_empty();
            renames.retain(|(name, _)| !kept || needed.contains(name));
            lowered = self.map(level, lowered, renames)?;
        }
        if !outside.is_empty() {
            lowered = filter(level, lowered, &outside);
        }
        self.prune(level, lowered, needed)
    }
}
