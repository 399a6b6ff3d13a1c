//! Filters, and subqueries in expressions as joins.
//!
//! `EXISTS` and `IN` among the conjuncts of a filter become semi and anti joins. Elsewhere they
//! become mark joins, whose mark stands in place of the subquery; with a NULL where the difference
//! of false and unknown can show. A scalar subquery becomes a single join, which refuses a second
//! row.

use sqlparser::ast::{BinaryOperator, Expr as Ast, Query, UnaryOperator, Visit, Visitor};
use tessera_optimizer::logical::relation::{Aggregate, Call, Kind, Name, Relation};
use tessera_plan::{Expr, Functions};
use tessera_types::{Atom, Error, Result, SqlState};

use super::compare::Comparison;
use super::expr::symmetric;
use super::scope::Scope;
use super::steps::Step;
use super::typed::Typed;
use super::{Binder, Bound, Place, without_parentheses};

impl Binder<'_> {
    /// What keeps the tuples that satisfy a predicate.
    pub(super) fn filter(
        &mut self,
        predicate: &Ast,
        scope: &Scope<'_>,
        clause: &'static str,
    ) -> Result<Vec<Step>> {
        let (mut first, mut joins, mut late) = (Vec::new(), Vec::new(), Vec::new());
        for conjunct in conjuncts(predicate) {
            if let Some(top) = top_subquery(conjunct) {
                self.top_join(top, scope, clause, &mut joins)?;
                continue;
            }
            let before = joins.len();
            let place = &mut Place { scope, steps: &mut joins, clause, unnests: None };
            let value = self.predicate(conjunct, place)?;
            let predicates = match scope.groups {
                // It is simplified when columns have become the groups' fields.
                Some(_) => vec![value.expr],
                None => self.finished(value)?.expr.conjuncts(),
            };
            // What needs no subquery is tested before the joins that subqueries become, unless it
            // can raise for rows that a subquery written before it rejects.
            let types = self.fields.types();
            let is_free = joins.len() == before;
            for predicate in predicates {
                let is_first = is_free && (before == 0 || !types.stays(&predicate));
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

    /// A condition of which only matters whether it is true, so that unknown may be taken as false.
    fn predicate(&mut self, expr: &Ast, place: &mut Place<'_, '_>) -> Result<Typed> {
        match expr {
            Ast::Nested(inner) => self.predicate(inner, place),
            Ast::BinaryOp { left, op: op @ (BinaryOperator::Or | BinaryOperator::And), right }
                if holds_in(expr) =>
            {
                let sides =
                    vec![self.predicate(left, place)?.expr, self.predicate(right, place)?.expr];
                Ok(Typed::boolean(match op {
                    BinaryOperator::Or => Expr::Or(sides),
                    _ => Expr::And(sides),
                }))
            }
            _ => match top_subquery(expr) {
                Some(Top::In { value, query, negated }) => {
                    self.mark_in(value, query, negated, place)
                }
                _ => self.condition(expr, place),
            },
        }
    }

    /// A conjunct that is a subquery's test, as a semi or anti join.
    fn top_join(
        &mut self,
        top: Top<'_>,
        scope: &Scope<'_>,
        clause: &'static str,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        match top {
            Top::Exists { query, negated } => {
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
            Top::In { value, query, negated } => {
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

    /// A subquery's relation, and the equality of each of its columns with a value.
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
        let Bound { relation, columns } = self.query(query, Some(place.scope), &place.scope.env)?;
        if columns.len() != values.len() {
            let message = format!(
                "IN compares {} with a subquery of {}; both need as many columns",
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

    /// `IN` where unknown may be taken as false.
    fn mark_in(
        &mut self,
        value: &Ast,
        query: &Query,
        negated: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let (right, conditions) = self.equalities(value, query, place)?;
        if !negated {
            return Ok(self.mark(right, conditions, false, place));
        }
        let (conditions, null_aware) = anti(&right, conditions);
        Ok(self.mark(right, conditions, null_aware, place).negated_if(true))
    }

    /// `IN` anywhere: true, false or unknown.
    pub(super) fn in_subquery(
        &mut self,
        value: &Ast,
        query: &Query,
        negated: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
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

    /// `value < ANY (subquery)` and `ALL`.
    pub(super) fn quantified_subquery(
        &mut self,
        value: &Ast,
        comparison: Comparison,
        query: &Query,
        all: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        match (comparison, all) {
            (Comparison::Eq, false) => return self.in_subquery(value, query, false, place),
            (Comparison::NotEq, true) => return self.in_subquery(value, query, true, place),
            _ => {}
        }
        // ANY is true where a comparison is, ALL is false where one is.
        let value = self.expr(value, place)?;
        let value = self.once(value, place)?;
        let mark = |binder: &mut Self, place: &mut Place<'_, '_>, possible: bool| {
            let (right, column) = binder.single_column(query, place.scope)?;
            let column = binder.field(&column)?;
            let test = binder.compared(comparison.function(), value.clone(), column)?.expr;
            let test = if all { Expr::Not(Box::new(test)) } else { test };
            let test = if possible { not_false(test) } else { test };
            Ok::<Typed, Error>(binder.mark(right, vec![test], false, place))
        };
        let known = mark(self, place, false)?;
        let possible = mark(self, place, true)?;
        Ok(three_valued(known, !all, possible))
    }

    /// `EXISTS` anywhere.
    pub(super) fn exists(
        &mut self,
        query: &Query,
        negated: bool,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let right = self.query(query, Some(place.scope), &place.scope.env)?.relation;
        let mark = self.mark(right, Vec::new(), false, place);
        Ok(mark.negated_if(negated))
    }

    /// A subquery in place of a value: its only row, or NULL where there is none.
    pub(super) fn scalar_subquery(
        &mut self,
        query: &Query,
        place: &mut Place<'_, '_>,
    ) -> Result<Typed> {
        let (right, column) = self.single_column(query, place.scope)?;
        let value = self.field(&column)?;
        place.steps.push(single(right));
        Ok(value)
    }

    /// The values of a subquery's only row.
    pub(super) fn only_row(
        &mut self,
        query: &Query,
        place: &mut Place<'_, '_>,
    ) -> Result<Vec<Typed>> {
        let Bound { relation, columns } = self.query(query, Some(place.scope), &place.scope.env)?;
        place.steps.push(single(relation));
        columns.iter().map(|column| self.field(&column.field)).collect()
    }

    /// `ARRAY(subquery)`: the list of its values, in its order.
    pub(super) fn array_of(&mut self, query: &Query, place: &mut Place<'_, '_>) -> Result<Typed> {
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
        let empty = self.cast_to(Typed::text("{}"), &atom, false)?;
        Ok(Typed::new(Expr::Coalesce(vec![Expr::Field(name), empty.expr]), atom))
    }

    fn single_column(&mut self, query: &Query, scope: &Scope<'_>) -> Result<(Relation, Name)> {
        let Bound { relation, columns } = self.query(query, Some(scope), &scope.env)?;
        match columns.as_slice() {
            [column] => Ok((relation, column.field.clone())),
            _ => {
                let message =
                    format!("a subquery in an expression gives one column, not {}", columns.len());
                Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR))
            }
        }
    }

    fn mark(
        &mut self,
        right: Relation,
        conditions: Vec<Expr>,
        null_aware: bool,
        place: &mut Place<'_, '_>,
    ) -> Typed {
        let mark = self.fields.fresh("mark", Atom::Boolean);
        let kind = Kind::Mark;
        place.steps.push(Step::Join {
            kind,
            right,
            conditions,
            mark: Some(mark.clone()),
            null_aware,
        });
        Typed::boolean(Expr::Field(mark))
    }
}

fn single(right: Relation) -> Step {
    Step::Join { kind: Kind::Single, right, conditions: Vec::new(), mark: None, null_aware: false }
}

fn counted(values: usize) -> String {
    if values == 1 { "one value".to_string() } else { format!("{values} values") }
}

/// `decides` where that is known, NULL where it is possible, else the other truth value.
fn three_valued(known: Typed, decides: bool, possible: Typed) -> Typed {
    Typed::boolean(Expr::Case {
        branches: vec![
            (known.expr, Expr::boolean(decides)),
            (possible.expr, Expr::null(Atom::Boolean)),
        ],
        otherwise: Some(Box::new(Expr::boolean(!decides))),
    })
}

/// Whether a join can tell unknown from false itself: it compares one value with a relation that is
/// the same for all.
fn is_null_aware(right: &Relation, conditions: &[Expr]) -> bool {
    conditions.len() == 1 && right.parameters().is_empty()
}

/// The conditions of `NOT IN`, for which unknown counts as true, and whether the join sees to that.
fn anti(right: &Relation, conditions: Vec<Expr>) -> (Vec<Expr>, bool) {
    match is_null_aware(right, &conditions) {
        true => (conditions, true),
        false => (conditions.into_iter().map(not_false).collect(), false),
    }
}

/// Whether a condition is true or unknown.
fn not_false(condition: Expr) -> Expr {
    Expr::Coalesce(vec![condition, Expr::boolean(true)])
}

/// What a predicate is the conjunction of.
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

enum Top<'q> {
    Exists { query: &'q Query, negated: bool },
    In { value: &'q Ast, query: &'q Query, negated: bool },
}

fn top_subquery(conjunct: &Ast) -> Option<Top<'_>> {
    match conjunct {
        Ast::Nested(inner) => top_subquery(inner),
        Ast::Exists { subquery, negated } => {
            Some(Top::Exists { query: subquery, negated: *negated })
        }
        Ast::InSubquery { expr, subquery, negated } => {
            Some(Top::In { value: expr, query: subquery, negated: *negated })
        }
        Ast::UnaryOp { op: UnaryOperator::Not, expr } => match top_subquery(expr)? {
            Top::Exists { query, negated } => Some(Top::Exists { query, negated: !negated }),
            Top::In { value, query, negated } => Some(Top::In { value, query, negated: !negated }),
        },
        _ => None,
    }
}

/// Whether an expression holds `IN` of a subquery.
fn holds_in(expr: &Ast) -> bool {
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
