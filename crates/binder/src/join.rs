//! Joins: ON, USING and NATURAL, and the columns that each join type exposes.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{
    Expr as Ast, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Spanned, TableFactor,
};
use tessera_optimizer::logical::relation::{Kind, Name, Relation};
use tessera_plan::Expr;
use tessera_types::{Code, Error, Result, SqlState};

use super::as_of::OrderedJoin;
use super::from::{FromContext, Tables};
use super::list::idents;
use super::projection::rename;
use super::scope::{Column, Scope, matches, of_one_table, unknown_column};
use super::steps::{Step, apply, joined, with_fields};
use super::subquery::conjuncts;
use super::{Binder, Place, refuse, unsupported_at, with_span};

/// A join type as written in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JoinType {
    Inner,
    Left,
    Right,
    Full,
    Semi,
    Anti,
    RightSemi,
    RightAnti,
}

impl Binder<'_> {
    /// Joins the tables on the left with one more table.
    pub(super) fn join(
        &mut self,
        left: Tables,
        join: &Join,
        context: FromContext<'_, '_>,
    ) -> Result<Tables> {
        let Join { relation: factor, global, join_operator } = join;
        refuse(*global, "GLOBAL JOIN", factor)?;
        let (side, constraint) = match OrderedJoin::of(join_operator) {
            Some(ordered) => {
                let (right, reads_left) = self.right_side(&left, factor, context)?;
                refuse(reads_left, ordered.lateral(), factor)?;
                return self.ordered_join(left, right, ordered, (factor.span(), context));
            }
            None => join_type(join_operator, factor)?,
        };
        let (right, reads_left) = self.right_side(&left, factor, context)?;
        if reads_left
            && matches!(
                side,
                JoinType::Right | JoinType::Full | JoinType::RightSemi | JoinType::RightAnti
            )
        {
            let message =
                "the right side of a RIGHT or FULL join cannot read columns of the left side";
            let error = Error::semantic(message).with_state(SqlState::INVALID_COLUMN_REFERENCE);
            return Err(with_span(error, factor.span()));
        }
        match constraint {
            JoinConstraint::On(condition) => self.join_on(left, right, side, condition, context),
            JoinConstraint::Using(names) => {
                let names = using_names(names)?;
                self.join_using(left, right, side, names)
            }
            JoinConstraint::Natural => {
                let names = shared_names(&left.columns, &right.columns);
                self.join_using(left, right, side, names)
            }
            JoinConstraint::None => Ok(build_join(left, right, side, Vec::new())),
        }
    }

    /// Binds the right side of a join, and returns whether it reads columns of the left side.
    fn right_side(
        &mut self,
        left: &Tables,
        factor: &TableFactor,
        context: FromContext<'_, '_>,
    ) -> Result<(Tables, bool)> {
        let mut before = context.before.to_vec();
        before.extend(left.columns.iter().cloned());
        let right = self.factor(factor, FromContext { before: &before, ..context })?;
        let parameters = right.relation.parameters();
        let reads_left = left.relation.names().iter().any(|name| parameters.contains(name));
        Ok((right, reads_left))
    }

    fn join_on(
        &mut self,
        mut left: Tables,
        mut right: Tables,
        side: JoinType,
        condition: &Ast,
        context: FromContext<'_, '_>,
    ) -> Result<Tables> {
        let columns: Vec<Column> = left.columns.iter().chain(&right.columns).cloned().collect();
        let mut scope = Scope::empty(context.outer, context.env.clone());
        scope.columns = Rc::new(columns);
        if side == JoinType::Inner {
            let (mut conditions, mut above) = (Vec::new(), Vec::new());
            for conjunct in conjuncts(condition) {
                let steps = self.filter(conjunct, &scope, "JOIN")?;
                match <[Step; 1]>::try_from(steps) {
                    Ok([Step::Filter(predicates)]) => conditions.extend(predicates),
                    Ok([other]) => above.push(other),
                    Err(steps) => above.extend(steps),
                }
            }
            let tables = build_join(left, right, side, conditions);
            return Ok(Tables { relation: apply(tables.relation, above), ..tables });
        }
        let mut conditions = Vec::new();
        for conjunct in conjuncts(condition) {
            let mut steps = Vec::new();
            let place =
                &mut Place { scope: &scope, steps: &mut steps, clause: "JOIN", unnests: None };
            let value = self.condition(conjunct, place)?;
            for step in steps {
                // Compute the subquery on the side that it reads columns of; it keeps that side's
                // tuples.
                let reads = step.reads();
                let of = |tables: &Tables| {
                    let names = tables.relation.names();
                    reads.iter().any(|name| names.contains(name))
                };
                let side = match (of(&left), of(&right)) {
                    (true, true) => {
                        return Err(unsupported_at(
                            "a subquery in ON of an outer join that reads columns of both sides",
                            conjunct,
                        ));
                    }
                    (true, false) => &mut left.relation,
                    (false, _) => &mut right.relation,
                };
                if matches!(&step, Step::Value(..)) {
                    return Err(unsupported_at(
                        "a volatile value that ON reads more than once (compute it in a subquery)",
                        conjunct,
                    ));
                }
                let taken = std::mem::replace(side, Relation::placeholder());
                *side = apply(taken, vec![step]);
            }
            conditions.extend(self.finished(value)?.expr.conjuncts());
        }
        Ok(build_join(left, right, side, conditions))
    }

    /// Joins by equal column names; each pair of columns becomes one column.
    fn join_using(
        &mut self,
        left: Tables,
        right: Tables,
        side: JoinType,
        names: Vec<Ident>,
    ) -> Result<Tables> {
        let mut used = self.using(&left, &right, side, &names, "eq")?;
        let conditions = std::mem::take(&mut used.conditions);
        Ok(used.merge(build_join(left, right, side, conditions)))
    }

    /// Compares columns of equal names; the last pair is compared with the function `last`.
    pub(super) fn using(
        &mut self,
        left: &Tables,
        right: &Tables,
        side: JoinType,
        names: &[Ident],
        last: &str,
    ) -> Result<UsingColumns> {
        let mut used = UsingColumns::default();
        for (position, name) in names.iter().enumerate() {
            let a = unique(&left.columns, name, "left")?;
            let b = unique(&right.columns, name, "right")?;
            let (x, y) = (self.field(&a.field)?, self.field(&b.field)?);
            let at = |error: Error| with_span(error, name.span);
            let (left, right, atom) =
                self.unified_pair(x.clone(), y.clone(), "USING").map_err(at)?;
            let function = if position + 1 == names.len() { last } else { "eq" };
            let compared = self.compared(function, x, y).map_err(at)?;
            used.conditions.push(self.finished(compared)?.expr);
            let value = match side {
                JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => right.expr,
                JoinType::Full => Expr::Coalesce(vec![left.expr, right.expr]),
                _ => left.expr,
            };
            let field = match value {
                Expr::Field(field) => field,
                value => {
                    let field = self.fields.fresh(&a.name, atom.clone());
                    self.keep_collation(&field, [&value])?;
                    used.computed.push((field.clone(), value));
                    field
                }
            };
            used.merged.push(Column {
                table: Rc::new([]),
                name: a.name.clone(),
                field,
                atom,
                hidden: false,
                pseudo: false,
                extended: false,
            });
            used.hidden.extend([a.field.clone(), b.field.clone()]);
        }
        Ok(used)
    }
}

/// The pairs of columns of USING.
#[derive(Debug, Default)]
pub(super) struct UsingColumns {
    pub(super) conditions: Vec<Expr>,
    /// The columns that stand for both of a pair.
    merged: Vec<Column>,
    computed: Vec<(Name, Expr)>,
    /// The fields of the pairs.
    hidden: Vec<Name>,
}

impl UsingColumns {
    /// Gives the fields of a join their new names.
    pub(super) fn rename(&mut self, renamed: &HashMap<Name, Name>) {
        let merged = self.merged.iter_mut().map(|column| &mut column.field);
        for name in self.hidden.iter_mut().chain(merged) {
            if let Some(new) = renamed.get(name) {
                *name = new.clone();
            }
        }
        self.computed.iter_mut().for_each(|(_, expr)| rename(expr, renamed));
    }

    /// Merges the pairs of columns of a join.
    pub(super) fn merge(mut self, mut tables: Tables) -> Tables {
        for column in &mut tables.columns {
            column.hidden |= !column.hidden
                && self.merged.iter().any(|merged| merged.name == column.name)
                && self.hidden.contains(&column.field);
        }
        self.merged.append(&mut tables.columns);
        Tables { relation: with_fields(tables.relation, self.computed), columns: self.merged }
    }
}

pub(super) fn using_names(names: &[ObjectName]) -> Result<Vec<Ident>> {
    names.iter().map(using_name).collect()
}

fn using_name(name: &ObjectName) -> Result<Ident> {
    match &idents(name)?[..] {
        [only] => Ok(only.clone()),
        _ => Err(unsupported_at("a qualified name in USING", name)),
    }
}

/// Finds the column with this name on one side of a join.
fn unique<'t>(columns: &'t [Column], name: &Ident, side: &str) -> Result<&'t Column> {
    for exact in [true, false] {
        let called = |column: &&Column| !column.hidden && matches(name, &column.name, exact);
        let found: Vec<&Column> = columns.iter().filter(called).collect();
        match found[..] {
            [] => {}
            [only] => return Ok(only),
            [..] => {
                let message = format!(
                    "column {} of USING is ambiguous on the {side} side of the join",
                    name.value
                );
                let error = Error::semantic(message).with_state(SqlState::AMBIGUOUS_COLUMN);
                return Err(with_span(error, name.span));
            }
        }
    }
    let of = format!("{} in USING, on the {side} side of the join", of_one_table(columns));
    Err(unknown_column(name, &of, columns.iter().filter(|column| !column.hidden)))
}

/// Returns the column names that both sides have, in the order of the left side.
pub(super) fn shared_names(left: &[Column], right: &[Column]) -> Vec<Ident> {
    let mut names: Vec<&Arc<str>> = Vec::new();
    for column in left.iter().filter(|column| !column.hidden) {
        let both = right.iter().any(|other| !other.hidden && other.name == column.name);
        if both && !names.contains(&&column.name) {
            names.push(&column.name);
        }
    }
    names.into_iter().map(|name| Ident::with_quote('"', &**name)).collect()
}

/// Builds the join of two sides.
pub(super) fn build_join(
    left: Tables,
    right: Tables,
    side: JoinType,
    conditions: Vec<Expr>,
) -> Tables {
    let (kind, flip) = match side {
        JoinType::Inner => (Kind::Inner, false),
        JoinType::Left => (Kind::Left, false),
        JoinType::Right => (Kind::Left, true),
        JoinType::Full => (Kind::Full, false),
        JoinType::Semi => (Kind::Semi, false),
        JoinType::Anti => (Kind::Anti, false),
        JoinType::RightSemi => (Kind::Semi, true),
        JoinType::RightAnti => (Kind::Anti, true),
    };
    let (mut left, mut right) = (left, right);
    if matches!(side, JoinType::Left | JoinType::Full) {
        right.columns.iter_mut().for_each(|column| column.extended = true);
    }
    if matches!(side, JoinType::Right | JoinType::Full) {
        left.columns.iter_mut().for_each(|column| column.extended = true);
    }
    let columns = match side {
        JoinType::Semi | JoinType::Anti => left.columns,
        JoinType::RightSemi | JoinType::RightAnti => right.columns,
        _ => left.columns.into_iter().chain(right.columns).collect(),
    };
    let (first, second) =
        if flip { (right.relation, left.relation) } else { (left.relation, right.relation) };
    Tables { relation: joined(kind, first, second, conditions, None, false), columns }
}

/// Returns the type and the constraint of a join.
fn join_type<'q>(
    operator: &'q JoinOperator,
    factor: &impl Spanned,
) -> Result<(JoinType, &'q JoinConstraint)> {
    let (side, constraint) = match operator {
        JoinOperator::CrossJoin(JoinConstraint::None) => {
            return Ok((JoinType::Inner, &JoinConstraint::None));
        }
        JoinOperator::CrossJoin(_) => {
            let message = "CROSS JOIN takes neither ON nor USING; write JOIN";
            return Err(with_span(Error::new(Code::Syntax, message), factor.span()));
        }
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            (JoinType::Inner, constraint)
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            (JoinType::Left, constraint)
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (JoinType::Right, constraint)
        }
        JoinOperator::FullOuter(constraint) => (JoinType::Full, constraint),
        JoinOperator::Semi(constraint) | JoinOperator::LeftSemi(constraint) => {
            (JoinType::Semi, constraint)
        }
        JoinOperator::Anti(constraint) | JoinOperator::LeftAnti(constraint) => {
            (JoinType::Anti, constraint)
        }
        JoinOperator::RightSemi(constraint) => (JoinType::RightSemi, constraint),
        JoinOperator::RightAnti(constraint) => (JoinType::RightAnti, constraint),
        JoinOperator::CrossApply | JoinOperator::OuterApply => {
            return Err(unsupported_at("APPLY (write JOIN LATERAL)", factor));
        }
        JoinOperator::AsOf { .. } | JoinOperator::AsOfOn { .. } | JoinOperator::Positional => {
            return Err(Error::internal("a join by order is bound elsewhere"));
        }
        JoinOperator::StraightJoin(_) => return Err(unsupported_at("STRAIGHT_JOIN", factor)),
        JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin => {
            return Err(unsupported_at("ARRAY JOIN", factor));
        }
    };
    if matches!(constraint, JoinConstraint::None) {
        let message = "a JOIN needs ON or USING; for all pairs write CROSS JOIN";
        return Err(with_span(Error::new(Code::Syntax, message), factor.span()));
    }
    Ok((side, constraint))
}
