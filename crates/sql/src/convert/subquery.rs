//! Filters, and subqueries in expressions as joins.
//!
//! `EXISTS` and `IN` among the conjuncts of a filter become semi and anti joins. Elsewhere they become mark joins, whose
//! mark is put in place of the subquery; three-valued where the difference of false and unknown can show. A scalar
//! subquery becomes a single join, which refuses a second row.

use datafusion_expr::Expr as Logical;
use datafusion_expr::expr::{Exists, InSubquery};
use datafusion_expr::logical_plan::Subquery;
use datafusion_expr::utils::split_conjunction;
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Error, Result};

use super::{Converted, Converter, Scope};
use crate::relation::{Join, Kind, Name, Relation};

impl Converter<'_> {
    /// The relation filtered by a predicate.
    pub(super) fn filter(
        &mut self,
        predicate: &Logical,
        scope: Scope<'_>,
        input: Relation,
    ) -> Result<Relation> {
        let (joins, plain): (Vec<&Logical>, Vec<&Logical>) =
            split_conjunction(predicate).into_iter().partition(|conjunct| top_subquery(conjunct).is_some());
        let mut relation = input;
        let outputs = relation.names();
        let mut predicates = Vec::new();
        let mut late = Vec::new();
        for conjunct in plain {
            let before = relation.names().len();
            let expr = self.predicate(conjunct, scope, &mut relation)?;
            let list = if relation.names().len() > before { &mut late } else { &mut predicates };
            list.extend(expr.conjuncts());
        }
        // What needs no subquery is tested before the joins that subqueries become.
        relation = with_first_filter(relation, &outputs, predicates);
        for conjunct in joins {
            relation = self.top_join(conjunct, scope, relation)?;
        }
        Ok(relation.filtered(late))
    }

    /// A conjunct of a filter: only whether it is true matters, so unknown may be taken as false.
    fn predicate(&mut self, expr: &Logical, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        match expr {
            Logical::BinaryExpr(binary) if binary.op == datafusion_expr::Operator::Or && holds_in(expr) => {
                let left = self.predicate(&binary.left, scope, input)?;
                let right = self.predicate(&binary.right, scope, input)?;
                Ok(Expr::Or(vec![left, right]))
            }
            Logical::BinaryExpr(binary) if binary.op == datafusion_expr::Operator::And && holds_in(expr) => {
                let left = self.predicate(&binary.left, scope, input)?;
                let right = self.predicate(&binary.right, scope, input)?;
                Ok(Expr::And(vec![left, right]))
            }
            Logical::Not(inner) => match &**inner {
                Logical::InSubquery(subquery) => {
                    let negated = InSubquery { negated: !subquery.negated, ..subquery.clone() };
                    self.mark_in(&negated, scope, input)
                }
                _ => self.expr(expr, scope, input),
            },
            Logical::InSubquery(subquery) => self.mark_in(subquery, scope, input),
            _ => self.expr(expr, scope, input),
        }
    }

    /// A conjunct that is itself a subquery predicate, as a semi or anti join.
    fn top_join(&mut self, conjunct: &Logical, scope: Scope<'_>, mut input: Relation) -> Result<Relation> {
        match top_subquery(conjunct) {
            Some(Top::Exists(subquery, negated)) => {
                let (relation, _) = self.subquery(subquery, scope)?;
                Ok(join(if negated { Kind::Anti } else { Kind::Semi }, input, relation, Vec::new(), None))
            }
            Some(Top::In(subquery, negated)) => {
                let value = self.expr(&subquery.expr, scope, &mut input)?;
                let (relation, column) = self.single_column(&subquery.subquery, scope)?;
                let equal = self.compare("eq", value, Expr::Field(column));
                if !negated {
                    return Ok(join(Kind::Semi, input, relation, vec![equal], None));
                }
                if relation.parameters().is_empty() {
                    let mut anti = join(Kind::Anti, input, relation, vec![equal], None);
                    if let Relation::Join(join) = &mut anti {
                        join.null_aware = true;
                    }
                    return Ok(anti);
                }
                Ok(join(Kind::Anti, input, relation, vec![not_false(equal)], None))
            }
            None => Err(Error::internal("a conjunct lost its subquery")),
        }
    }

    /// `IN` where unknown may be taken as false.
    fn mark_in(&mut self, subquery: &InSubquery, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        let value = self.expr(&subquery.expr, scope, input)?;
        let (relation, column) = self.single_column(&subquery.subquery, scope)?;
        let equal = self.compare("eq", value, Expr::Field(column));
        if !subquery.negated {
            return Ok(Expr::Field(self.mark(input, relation, vec![equal], false)));
        }
        let mark = if relation.parameters().is_empty() {
            self.mark(input, relation, vec![equal], true)
        } else {
            self.mark(input, relation, vec![not_false(equal)], false)
        };
        Ok(Expr::Not(Box::new(Expr::Field(mark))))
    }

    /// `IN` anywhere: true, false or unknown.
    pub(super) fn in_subquery(
        &mut self,
        subquery: &InSubquery,
        scope: Scope<'_>,
        input: &mut Relation,
    ) -> Result<Expr> {
        let value = self.expr(&subquery.expr, scope, input)?;
        let (relation, column) = self.single_column(&subquery.subquery, scope)?;
        let equal = self.compare("eq", value.clone(), Expr::Field(column));
        let found = if relation.parameters().is_empty() {
            Expr::Field(self.mark(input, relation, vec![equal], true))
        } else {
            let known = self.mark(input, relation, vec![equal], false);
            let (relation, column) = self.single_column(&subquery.subquery, scope)?;
            let equal = self.compare("eq", value, Expr::Field(column));
            let possible = self.mark(input, relation, vec![not_false(equal)], false);
            Expr::Case {
                branches: vec![
                    (Expr::Field(known), Expr::boolean(true)),
                    (Expr::Field(possible), Expr::null(Atom::Boolean)),
                ],
                otherwise: Some(Box::new(Expr::boolean(false))),
            }
        };
        Ok(if subquery.negated { Expr::Not(Box::new(found)) } else { found })
    }

    /// `EXISTS` anywhere.
    pub(super) fn exists(&mut self, exists: &Exists, scope: Scope<'_>, input: &mut Relation) -> Result<Expr> {
        let (relation, _) = self.subquery(&exists.subquery, scope)?;
        let mark = Expr::Field(self.mark(input, relation, Vec::new(), false));
        Ok(if exists.negated { Expr::Not(Box::new(mark)) } else { mark })
    }

    /// A subquery in place of a value: its only row, or NULL where there is none.
    pub(super) fn scalar_subquery(
        &mut self,
        subquery: &Subquery,
        scope: Scope<'_>,
        input: &mut Relation,
    ) -> Result<Expr> {
        let (relation, column) = self.single_column(subquery, scope)?;
        let left = std::mem::replace(input, placeholder());
        *input = join(Kind::Single, left, relation, Vec::new(), None);
        Ok(Expr::Field(column))
    }

    fn mark(
        &mut self,
        input: &mut Relation,
        right: Relation,
        conditions: Vec<Expr>,
        null_aware: bool,
    ) -> Name {
        let mark = self.fresh("mark", Atom::Boolean);
        let left = std::mem::replace(input, placeholder());
        let mut joined = join(Kind::Mark, left, right, conditions, Some(mark.clone()));
        if let Relation::Join(join) = &mut joined {
            join.null_aware = null_aware;
        }
        *input = joined;
        mark
    }

    fn subquery(&mut self, subquery: &Subquery, scope: Scope<'_>) -> Result<(Relation, Vec<Name>)> {
        let Converted { relation, names } = self.node(&subquery.subquery, Some(&scope))?;
        Ok((relation, names))
    }

    /// A subquery of one column, under a name of its own, so that it stays apart from the outer query's.
    fn single_column(&mut self, subquery: &Subquery, scope: Scope<'_>) -> Result<(Relation, Name)> {
        let (relation, names) = self.subquery(subquery, scope)?;
        match names.as_slice() {
            [name] => Ok((relation, name.clone())),
            _ => Err(Error::semantic(format!(
                "a subquery in an expression gives one column, not {}",
                names.len()
            ))),
        }
    }
}

enum Top<'a> {
    Exists(&'a Subquery, bool),
    In(&'a InSubquery, bool),
}

fn top_subquery(conjunct: &Logical) -> Option<Top<'_>> {
    match conjunct {
        Logical::Exists(exists) => Some(Top::Exists(&exists.subquery, exists.negated)),
        Logical::InSubquery(subquery) => Some(Top::In(subquery, subquery.negated)),
        Logical::Not(inner) => match &**inner {
            Logical::Exists(exists) => Some(Top::Exists(&exists.subquery, !exists.negated)),
            Logical::InSubquery(subquery) => Some(Top::In(subquery, !subquery.negated)),
            _ => None,
        },
        _ => None,
    }
}

fn holds_in(expr: &Logical) -> bool {
    use datafusion_common::tree_node::TreeNode;
    expr.exists(|expr| Ok(matches!(expr, Logical::InSubquery(_)))).unwrap_or(false)
}

/// Whether the equality is true or unknown.
fn not_false(equal: Expr) -> Expr {
    Expr::Coalesce(vec![equal, Expr::Constant(Scalar::Boolean(true), Atom::Boolean)])
}

fn placeholder() -> Relation {
    Relation::Values { tuple: tessera_types::Tuple::empty(), rows: Vec::new() }
}

/// A join; correlated when the right side reads fields of the left.
fn join(kind: Kind, left: Relation, right: Relation, conditions: Vec<Expr>, mark: Option<Name>) -> Relation {
    let names = left.names();
    let correlated = right.parameters().iter().any(|name| names.contains(name));
    Relation::Join(Box::new(Join { kind, left, right, conditions, mark, null_aware: false, correlated }))
}

/// Puts predicates over the fields that were there before any subquery was joined beneath those joins.
fn with_first_filter(relation: Relation, outputs: &[Name], predicates: Vec<Expr>) -> Relation {
    if predicates.is_empty() {
        return relation;
    }
    match relation {
        Relation::Join(mut join)
            if matches!(join.kind, Kind::Mark | Kind::Single) && join.left.names().len() >= outputs.len() =>
        {
            join.left = with_first_filter(join.left, outputs, predicates);
            Relation::Join(join)
        }
        other => other.filtered(predicates),
    }
}
