//! Lowering of correlated joins to nested plans.

use std::collections::HashSet;

use tessera_plan::{Expr, Params, Plan};
use tessera_types::{Error, Field, Result, Tuple};

use super::join::nested_loop;
use super::node::{add, add_nested, with_fields};
use super::{Level, LoweredNode, Lowering};
use crate::logical::relation::{Join, Kind, Name};

impl Lowering<'_> {
    /// Lowers a right side that reads fields of the left as a nested plan, run for every left
    /// tuple.
    pub(super) fn correlated(
        &mut self,
        join: &Join,
        needed: &HashSet<Name>,
        level: &mut Level,
    ) -> Result<LoweredNode> {
        let left_names: HashSet<Name> = join.left.names().into_iter().collect();
        let right_names: HashSet<Name> = join.right.names().into_iter().collect();
        let read = with_fields(needed, &join.conditions);
        let wanted = join.right.parameters();
        let mut left_needed: HashSet<Name> = read.intersection(&left_names).cloned().collect();
        left_needed.extend(wanted.intersection(&left_names).cloned());
        let mut left = self.lower(&join.left, &left_needed, level)?;
        left = self.prune(level, left, &left_needed)?;
        // Parameters of this plan that the nested plan reads are passed on as fields.
        let mut passed: Vec<Name> =
            wanted.into_iter().filter(|name| !left_names.contains(name)).collect();
        passed.sort();
        if !passed.is_empty() {
            let mut exprs = Expr::identity(&left.tuple);
            exprs.extend(passed.into_iter().map(|name| (name.clone(), Expr::Parameter(name))));
            left = self.map(level, left, exprs)?;
        }
        let mut inner = Level::new(left.tuple.clone());
        let outer = add(&mut inner, "parameter_lookup", &[], Params::new(), left.tuple.clone());
        let right_needed: HashSet<Name> = read.intersection(&right_names).cloned().collect();
        let right = self.lower(&join.right, &right_needed, &mut inner)?;
        let right = self.prune(&mut inner, right, &right_needed)?;
        let name = match join.kind {
            Kind::Inner => "inner",
            Kind::Left => "left",
            Kind::Semi => "semi",
            Kind::Anti => "anti",
            Kind::Mark => "mark",
            Kind::Single => "single",
            Kind::Full => {
                return Err(Error::unsupported(
                    "LATERAL on the right of a FULL join is not supported",
                ));
            }
        };
        let joined = nested_loop(&mut inner, &right, &outer, name, join);
        if matches!(join.kind, Kind::Mark | Kind::Single) {
            let tuple = joined.tuple.clone();
            let nested = Plan { parameters: inner.parameters, nodes: inner.nodes, root: joined.id };
            let lowered =
                add_nested(level, "nested_map", &[left.id], Params::new(), vec![nested], tuple);
            return self.prune(level, lowered, needed);
        }
        let rows = Tuple::new(vec![Field::collection("data", "rows", joined.tuple.clone())]);
        let kept = add(&mut inner, "rows_materialize", &[joined.id], Params::new(), rows.clone());
        let nested = Plan { parameters: inner.parameters, nodes: inner.nodes, root: kept.id };
        let lowered =
            add_nested(level, "nested_map", &[left.id], Params::new(), vec![nested], rows);
        let params = Params::new().with("field", Expr::field("data"));
        let lowered = add(level, "rows_scan", &[lowered.id], params, joined.tuple);
        self.prune(level, lowered, needed)
    }
}
