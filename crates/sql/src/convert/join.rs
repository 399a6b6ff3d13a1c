//! Joins, and what comes as one: INTERSECT and EXCEPT.

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, JoinType, NullEquality};
use datafusion_expr::utils::{conjunction, split_conjunction};
use datafusion_expr::{Expr as Logical, LogicalPlan};
use tessera_plan::Expr;
use tessera_types::{Error, Result, Tuple};

use super::{Converted, Converter, Scope};
use crate::error::from_datafusion;
use crate::relation::{Join, Kind, Name, Relation};

impl Converter<'_> {
    pub(super) fn join(
        &mut self,
        node: &datafusion_expr::Join,
        outer: Option<&Scope<'_>>,
    ) -> Result<Converted> {
        let left = self.node(&node.left, outer)?;
        let left_names = left.names.clone();
        let left_scope = Scope { schema: node.left.schema(), names: &left_names, outer };
        // A lateral right side sees the left one as an outer query.
        let right = self.node(&node.right, Some(&left_scope))?;
        let right_names = right.names.clone();
        let right_scope = Scope { schema: node.right.schema(), names: &right_names, outer };
        let null_equal = node.null_equality == NullEquality::NullEqualsNull;
        let mut nothing = Relation::Values { tuple: Tuple::empty(), rows: Vec::new() };
        let mut pairs = Vec::new();
        let mut with_subqueries: Vec<&Logical> = Vec::new();
        let mut written = Vec::new();
        for (a, b) in &node.on {
            if holds_subquery(a) || holds_subquery(b) {
                written.push(a.clone().eq(b.clone()));
                continue;
            }
            pairs.push((self.expr(a, left_scope, &mut nothing)?, self.expr(b, right_scope, &mut nothing)?));
        }
        with_subqueries.extend(&written);
        // INTERSECT and EXCEPT come as joins; of those with ALL the left side has not been made distinct.
        if null_equal && !matches!(&*node.left, LogicalPlan::Distinct(_)) {
            let except = match node.join_type {
                JoinType::LeftSemi => Some(false),
                JoinType::LeftAnti => Some(true),
                _ => None,
            };
            if let Some(except) = except {
                return self.bag(left, right, pairs, except);
            }
        }
        let function = if null_equal { "is_not_distinct" } else { "eq" };
        let mut conditions: Vec<Expr> =
            pairs.into_iter().map(|(a, b)| self.compare(function, a, b)).collect();
        let both = node.left.schema().join(node.right.schema()).map_err(from_datafusion)?;
        let both_names: Vec<Name> = left.names.iter().chain(&right.names).cloned().collect();
        let both_scope = Scope { schema: &both, names: &both_names, outer };
        for conjunct in node.filter.iter().flat_map(split_conjunction) {
            if holds_subquery(conjunct) {
                with_subqueries.push(conjunct);
            } else {
                conditions.extend(self.expr(conjunct, both_scope, &mut nothing)?.conjuncts());
            }
        }
        if !nothing.names().is_empty() {
            return Err(Error::unsupported(
                "a volatile value that ON reads more than once; compute it in a subquery",
            ));
        }
        let (mut left, mut right) = (left, right);
        let mut above = Vec::new();
        for conjunct in with_subqueries {
            let (kept, other) = (node.left.schema(), node.right.schema());
            match node.join_type {
                JoinType::Inner => above.push(conjunct.clone()),
                // What only looks at the side that may be missing decides which of its tuples there are.
                JoinType::Left if reads_only(conjunct, other, kept) => {
                    right.relation = self.filter(conjunct, right_scope, right.relation)?;
                }
                JoinType::Right if reads_only(conjunct, kept, other) => {
                    left.relation = self.filter(conjunct, left_scope, left.relation)?;
                }
                _ => {
                    return Err(Error::unsupported(
                        "a subquery in ON of an outer join, unless it only looks at the side that may be missing, is \
                         not supported; join with the subquery first",
                    ));
                }
            }
        }
        let correlated = right.relation.parameters().iter().any(|name| left.names.contains(name));
        let (kind, flip) = match node.join_type {
            JoinType::Inner => (Kind::Inner, false),
            JoinType::Left => (Kind::Left, false),
            JoinType::Right => (Kind::Left, true),
            JoinType::Full => (Kind::Full, false),
            JoinType::LeftSemi => (Kind::Semi, false),
            JoinType::RightSemi => (Kind::Semi, true),
            JoinType::LeftAnti => (Kind::Anti, false),
            JoinType::RightAnti => (Kind::Anti, true),
            JoinType::LeftMark | JoinType::RightMark => {
                return Err(Error::internal("a mark join in a logical plan"));
            }
        };
        let names = match node.join_type {
            JoinType::LeftSemi | JoinType::LeftAnti => left.names,
            JoinType::RightSemi | JoinType::RightAnti => right.names,
            _ => both_names.clone(),
        };
        if correlated && (flip || kind == Kind::Full) {
            return Err(Error::unsupported("LATERAL on the right of a RIGHT or FULL join is not supported"));
        }
        let (left, right) =
            if flip { (right.relation, left.relation) } else { (left.relation, right.relation) };
        let join = Join { kind, left, right, conditions, mark: None, null_aware: false, correlated };
        let mut relation = Relation::Join(Box::new(join));
        if let Some(predicate) = conjunction(above) {
            relation = self.filter(&predicate, both_scope, relation)?;
        }
        Ok(Converted { relation, names })
    }
}

pub(super) fn holds_subquery(expr: &Logical) -> bool {
    let is_subquery = |expr: &Logical| {
        matches!(expr, Logical::ScalarSubquery(_) | Logical::Exists(_) | Logical::InSubquery(_))
    };
    expr.exists(|expr| Ok(is_subquery(expr))).unwrap_or(false)
}

/// Whether a predicate with subqueries reads columns of the one schema, and none of the other.
fn reads_only(predicate: &Logical, schema: &DFSchema, other: &DFSchema) -> bool {
    let mut fits = true;
    let has = |schema: &DFSchema, column: &Column| schema.maybe_index_of_column(column).is_some();
    let walked = predicate.apply(|expr| {
        match expr {
            Logical::Column(column) => fits &= has(schema, column),
            Logical::ScalarSubquery(subquery) => fits &= !reads_outer(&subquery.subquery, other),
            Logical::Exists(exists) => fits &= !reads_outer(&exists.subquery.subquery, other),
            Logical::InSubquery(inner) => fits &= !reads_outer(&inner.subquery.subquery, other),
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    });
    fits && walked.is_ok()
}

/// Whether a subquery reads a column of this schema as one of an outer query.
fn reads_outer(plan: &LogicalPlan, schema: &DFSchema) -> bool {
    let mut found = false;
    let walked = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Logical::OuterReferenceColumn(_, column) = expr {
                    found |= schema.maybe_index_of_column(column).is_some();
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    found || walked.is_err()
}
