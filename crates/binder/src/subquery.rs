//! Filters, and subqueries in expressions, bound as joins.
//!
//! As conjuncts of a filter, `EXISTS` and `IN` become semi joins and anti joins. In other positions
//! they become mark joins, and the mark replaces the subquery; where false and unknown must differ,
//! the mark can be NULL. A scalar subquery becomes a single join, which rejects a second row.

use sqlparser::ast::{BinaryOperator, Expr as Ast, Query, UnaryOperator, Visit, Visitor};
use tessera_optimizer::logical::relation::{Aggregate, Call, Kind, Name, Relation};
use tessera_plan::{Expr, Functions};
use tessera_types::{Atom, Error, Result, SqlState};

use super::compare::Comparison;
use super::membership::symmetric;
use super::scope::Scope;
use super::steps::Step;
use super::typed::TypedExpr;
use super::{Binder, BoundQuery, Place, without_parentheses};

impl Binder<'_> {
    /// Binds a predicate to steps that keep the satisfying tuples.
    pub(super) fn filter(
        &mut self,
        predicate: &Ast,
        scope: &Scope<'_>,
        clause: &'static str,
    ) -> Result<Vec<Step>> {
        let (mut first, mut joins, mut late) = (Vec::new(), Vec::new(), Vec::new());
        for conjunct in conjuncts(predicate) {
            if let Some(test) = subquery_test(conjunct) {
                self.join_subquery_test(test, scope, clause, &mut joins)?;
                continue;
            }
            let before = joins.len();
            let place = &mut Place { scope, steps: &mut joins, clause, unnests: None };
            let value = self.predicate(conjunct, place)?;
            let predicates = match scope.groups {
                // It is simplified after columns became fields of the groups.
                Some(_) => vec![value.expr],
                None => self.finished(value)?.expr.conjuncts(),
            };
            // A predicate without a subquery runs before the joins of subqueries, unless it can
            // raise an error for rows that an earlier subquery rejects.
            let types = self.fields.types();
            let is_free = joins.len() == before;
            for predicate in predicates {
                let is_first = is_free && (before == 0 || !types.must_stay(&predicate));
                if is_first { first.push(predicate) } else { late.push(predicate) }
            }
        }
        let mut steps = Vec::with_capacity(joins.len() + 2);
        if !first.is_empty() {
            steps.push(Step::Filter(first));
        }
        steps.append(&mut joins);
        if !late.is_empty() {
            steps.push(Step::Filter(late));
        }
        Ok(steps)
    }

    /// Binds a condition in a position where unknown counts as false.
    fn predicate(&mut self, expr: &Ast, place: &mut Place<'_, '_>) -> Result<TypedExpr> {
        match expr {
            Ast::Nested(inner) => self.predicate(inner, place),
            Ast::BinaryOp { left, op: op @ (BinaryOperator::Or | BinaryOperator::And), right }
                if contains_in(expr) =>
            {
                let sides =
                    vec![self.predicate(left, place)?.expr, self.predicate(right, place)?.expr];
                Ok(TypedExpr::boolean(match op {
                    BinaryOperator::Or => Expr::Or(sides),
                    _ => Expr::And(sides),
                }))
            }
            _ => match subquery_test(expr) {
                Some(SubqueryTest::In { value, query, negated }) => {
                    self.mark_in(value, query, negated, place)
                }
                _ => self.condition(expr, place),
            },
        }
    }

    /// Binds a subquery test that is a conjunct as a semi join or anti join.
    fn join_subquery_test(
        &mut self,
        test: SubqueryTest<'_>,
        scope: &Scope<'_>,
        clause: &'static str,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        match test {
            SubqueryTest::Exists { query, negated } => {
                let right = self.query(query, Some(scope), &scope.env)?.relation;
                let kind = if negated { Kind::Anti } else { Kind::Semi };
                steps.push(Step::Join {
                    kind,
                    right,
                    conditions: Vec::new(),
                    mark: None,
                    null_aware: false,
                });
            }
            SubqueryTest::In { value, query, negated } => {
                let place = &mut Place { scope, steps, clause, unnests: None };
                let (right, conditions) = self.equalities(value, query, place)?;
                let (kind, (conditions, null_aware)) = match negated {
                    true => (Kind::Anti, anti(&right, conditions)),
                    false => (Kind::Semi, (conditions, false)),
                };
                steps.push(Step::Join { kind, right, conditions, mark: None, null_aware });
            }
        }
        Ok(())
    }

    /// Binds a subquery; returns its relation and the equality of each of its columns with a value.
    fn equalities(
        &mut self,
        value: &Ast,
        query: &Query,
        place: &mut Place<'_, '_>,
    ) -> Result<(Relation, Vec<Expr>)> {
        let values = match self.row(without_parentheses(value), place)? {
            Some(values) => values,
            None => vec![self.expr(value, place)?],
        };
        let BoundQuery { relation, columns } =
            self.query(query, Some(place.scope), &place.scope.env)?;
        if columns.len() != values.len() {
            let message = format!(
                "IN compares {} with a subquery of {}; both sides need the same number",
                counted(values.len()),
                counted(columns.len())
            );
            return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
        }
        let mut conditions = Vec::with_capacity(values.len());
        for (value, column) in values.into_iter().zip(columns) {
            let column = self.field(&column.field)?;
            let equal = self.compared("eq", value, column)?;
            conditions.push(match place.scope.groups {
                Some(_) => equal.expr,
                None => self.finished(equal)?.expr,
            });
        }
        Ok((relation, conditions))
    }

    /// Binds `IN` in a position where unknown counts as false.
    fn mark_in(
        &mut self,
        value: &Ast,
        query: &Query,
        negated: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let (right, conditions) = self.equalities(value, query, place)?;
        if !negated {
            return Ok(self.mark(right, conditions, false, place));
        }
        let (conditions, null_aware) = anti(&right, conditions);
        Ok(self.mark(right, conditions, null_aware, place).negated_if(true))
    }

    /// Binds `IN` with its three values: true, false and unknown.
    pub(super) fn in_subquery(
        &mut self,
        value: &Ast,
        query: &Query,
        negated: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let (right, conditions) = self.equalities(value, query, place)?;
        let found = match is_null_aware(&right, &conditions) {
            true => self.mark(right, conditions, true, place),
            false => {
                let known = self.mark(right, conditions, false, place);
                let (right, conditions) = self.equalities(value, query, place)?;
                let conditions = conditions.into_iter().map(not_false).collect();
                let possible = self.mark(right, conditions, false, place);
                three_valued(known, true, possible)
            }
        };
        Ok(found.negated_if(negated))
    }

    /// Binds `value < ANY (subquery)` and `ALL`.
    pub(super) fn quantified_subquery(
        &mut self,
        value: &Ast,
        comparison: Comparison,
        query: &Query,
        all: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        match (comparison, all) {
            (Comparison::Eq, false) => return self.in_subquery(value, query, false, place),
            (Comparison::NotEq, true) => return self.in_subquery(value, query, true, place),
            _ => {}
        }
        // ANY is true if one comparison is true, ALL is false if one is false.
        let value = self.expr(value, place)?;
        let value = self.once(value, place)?;
        let mark = |binder: &mut Self, place: &mut Place<'_, '_>, possible: bool| {
            let (right, column) = binder.single_column(query, place.scope)?;
            let column = binder.field(&column)?;
            let test = binder.compared(comparison.function(), value.clone(), column)?.expr;
            let test = if all { Expr::Not(Box::new(test)) } else { test };
            let test = if possible { not_false(test) } else { test };
            Ok::<TypedExpr, Error>(binder.mark(right, vec![test], false, place))
        };
        let known = mark(self, place, false)?;
        let possible = mark(self, place, true)?;
        Ok(three_valued(known, !all, possible))
    }

    /// Binds `EXISTS` in any position.
    pub(super) fn exists(
        &mut self,
        query: &Query,
        negated: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let right = self.query(query, Some(place.scope), &place.scope.env)?.relation;
        let mark = self.mark(right, Vec::new(), false, place);
        Ok(mark.negated_if(negated))
    }

    /// Binds a scalar subquery: the value of its only row, or NULL without a row.
    pub(super) fn scalar_subquery(
        &mut self,
        query: &Query,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let (right, column) = self.single_column(query, place.scope)?;
        let value = self.field(&column)?;
        place.steps.push(single(right));
        Ok(value)
    }

    /// Binds a subquery of one row and returns its values.
    pub(super) fn only_row(
        &mut self,
        query: &Query,
        place: &mut Place<'_, '_>,
    ) -> Result<Vec<TypedExpr>> {
        let BoundQuery { relation, columns } =
            self.query(query, Some(place.scope), &place.scope.env)?;
        place.steps.push(single(relation));
        columns.iter().map(|column| self.field(&column.field)).collect()
    }

    /// Binds `ARRAY(subquery)`: the list of its values in the order of the subquery.
    pub(super) fn array_of(
        &mut self,
        query: &Query,
        place: &mut Place<'_, '_>,
    ) -> Result<TypedExpr> {
        let (relation, column) = self.single_column(query, place.scope)?;
        let order_by = match &relation {
            Relation::Sort { keys, .. } => keys.clone(),
            _ => Vec::new(),
        };
        let input = match relation {
            Relation::Sort { input, offset: 0, limit: None, .. } => *input,
            other => other,
        };
        let element = self.field(&column)?;
        let function = "array_agg";
        let (atom, _) = self.library().aggregate(function, &[(element.atom, true)], false)?;
        let name = self.fields.fresh("array", atom.clone());
        let call = Call {
            function: function.into(),
            args: vec![element.expr],
            distinct: false,
            filter: None,
            order_by,
            limit: None,
        };
        let calls = vec![(name.clone(), call)];
        let groups = Aggregate { input, keys: Vec::new(), sets: None, grouping: None, calls };
        place.steps.push(single(Relation::Aggregate(Box::new(groups))));
        let empty = self.cast_to(TypedExpr::text("{}"), &atom, false)?;
        Ok(TypedExpr::new(Expr::Coalesce(vec![Expr::Field(name), empty.expr]), atom))
    }

    fn single_column(&mut self, query: &Query, scope: &Scope<'_>) -> Result<(Relation, Name)> {
        let BoundQuery { relation, columns } = self.query(query, Some(scope), &scope.env)?;
        match columns.as_slice() {
            [column] => Ok((relation, column.field.clone())),
            _ => {
                let message = format!(
                    "a subquery in an expression must return one column, not {}",
                    columns.len()
                );
                Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR))
            }
        }
    }

    /// Adds a mark join and returns its mark.
    fn mark(
        &mut self,
        right: Relation,
        conditions: Vec<Expr>,
        null_aware: bool,
        place: &mut Place<'_, '_>,
    ) -> TypedExpr {
        let mark = self.fields.fresh("mark", Atom::Boolean);
        let kind = Kind::Mark;
        place.steps.push(Step::Join {
            kind,
            right,
            conditions,
            mark: Some(mark.clone()),
            null_aware,
        });
        TypedExpr::boolean(Expr::Field(mark))
    }
}

fn single(right: Relation) -> Step {
    Step::Join { kind: Kind::Single, right, conditions: Vec::new(), mark: None, null_aware: false }
}

fn counted(values: usize) -> String {
    if values == 1 { "one value".to_string() } else { format!("{values} values") }
}

/// Returns `decides` if that is known, NULL if it is possible, else the other truth value.
fn three_valued(known: TypedExpr, decides: bool, possible: TypedExpr) -> TypedExpr {
    TypedExpr::boolean(Expr::Case {
        branches: vec![
            (known.expr, Expr::boolean(decides)),
            (possible.expr, Expr::null(Atom::Boolean)),
        ],
        otherwise: Some(Box::new(Expr::boolean(!decides))),
    })
}

/// Returns whether a null-aware join can distinguish unknown from false: it compares one value with
/// an uncorrelated relation.
fn is_null_aware(right: &Relation, conditions: &[Expr]) -> bool {
    conditions.len() == 1 && right.parameters().is_empty()
}

/// Returns the conditions of `NOT IN`, where unknown counts as true, and whether the join is
/// null-aware.
fn anti(right: &Relation, conditions: Vec<Expr>) -> (Vec<Expr>, bool) {
    match is_null_aware(right, &conditions) {
        true => (conditions, true),
        false => (conditions.into_iter().map(not_false).collect(), false),
    }
}

/// Tests whether a condition is true or unknown.
fn not_false(condition: Expr) -> Expr {
    Expr::Coalesce(vec![condition, Expr::boolean(true)])
}

/// Splits a predicate into its conjuncts.
pub(super) fn conjuncts(predicate: &Ast) -> Vec<&Ast> {
    let (mut pending, mut found) = (vec![predicate], Vec::new());
    while let Some(next) = pending.pop() {
        match next {
            Ast::BinaryOp { left, op: BinaryOperator::And, right } if symmetric(next).is_none() => {
                pending.push(right);
                pending.push(left);
            }
            Ast::Nested(inner) => pending.push(inner),
            other => found.push(other),
        }
    }
    found
}

/// A subquery test that can become a semi join or anti join.
enum SubqueryTest<'q> {
    Exists { query: &'q Query, negated: bool },
    In { value: &'q Ast, query: &'q Query, negated: bool },
}

fn subquery_test(conjunct: &Ast) -> Option<SubqueryTest<'_>> {
    match conjunct {
        Ast::Nested(inner) => subquery_test(inner),
        Ast::Exists { subquery, negated } => {
            Some(SubqueryTest::Exists { query: subquery, negated: *negated })
        }
        Ast::InSubquery { expr, subquery, negated } => {
            Some(SubqueryTest::In { value: expr, query: subquery, negated: *negated })
        }
        Ast::UnaryOp { op: UnaryOperator::Not, expr } => match subquery_test(expr)? {
            SubqueryTest::Exists { query, negated } => {
                Some(SubqueryTest::Exists { query, negated: !negated })
            }
            SubqueryTest::In { value, query, negated } => {
                Some(SubqueryTest::In { value, query, negated: !negated })
            }
        },
        _ => None,
    }
}

/// Returns whether an expression contains `IN` with a subquery.
fn contains_in(expr: &Ast) -> bool {
    use std::ops::ControlFlow;
    struct In;
    impl Visitor for In {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Ast) -> ControlFlow<()> {
            match expr {
                Ast::InSubquery { .. } => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expr.visit(&mut In).is_break()
}
