//! Joins: ON, USING and NATURAL, and which side's columns can be read.

use std::rc::Rc;
use std::sync::Arc;

use sqlparser::ast::{Expr as Ast, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Spanned};
use tessera_optimizer::logical::relation::{Kind, Name, Relation};
use tessera_plan::Expr;
use tessera_types::{Code, Error, Result, SqlState};

use super::from::{Around, Tables};
use super::list::idents;
use super::scope::{Column, Scope, matches};
use super::steps::{Step, apply, joined, with_fields};
use super::subquery::conjuncts;
use super::{Binder, Place, placed, refuse, refuse_at};

/// A join as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
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
    /// The tables so far with one more.
    pub(super) fn join(
        &mut self,
        left: Tables,
        join: &Join,
        around: Around<'_, '_>,
    ) -> Result<Tables> {
        let Join { relation: factor, global, join_operator } = join;
        refuse(*global, "GLOBAL JOIN", factor)?;
        let (side, constraint) = side_of(join_operator, factor)?;
        let mut before = around.before.to_vec();
        before.extend(left.columns.iter().cloned());
        let right = self.factor(factor, Around { before: &before, ..around })?;
        let reads_left = {
            let parameters = right.relation.parameters();
            left.relation.names().iter().any(|name| parameters.contains(name))
        };
        if reads_left
            && matches!(side, Side::Right | Side::Full | Side::RightSemi | Side::RightAnti)
        {
            let message = "a RIGHT or FULL join has all tuples of its right side, which cannot read its left one";
            let error = Error::semantic(message).with_state(SqlState::INVALID_COLUMN_REFERENCE);
            return Err(placed(error, factor.span()));
        }
        match constraint {
            JoinConstraint::On(condition) => self.join_on(left, right, side, condition, around),
            JoinConstraint::Using(names) => {
                let names = names.iter().map(using_name).collect::<Result<Vec<_>>>()?;
                self.join_using(left, right, side, names)
            }
            JoinConstraint::Natural => {
                let names = shared(&left.columns, &right.columns);
                self.join_using(left, right, side, names)
            }
            JoinConstraint::None => Ok(assembled(left, right, side, Vec::new())),
        }
    }

    fn join_on(
        &mut self,
        mut left: Tables,
        mut right: Tables,
        side: Side,
        condition: &Ast,
        around: Around<'_, '_>,
    ) -> Result<Tables> {
        let columns: Vec<Column> = left.columns.iter().chain(&right.columns).cloned().collect();
        let mut scope = Scope::empty(around.outer, around.env.clone());
        scope.columns = Rc::new(columns);
        if side == Side::Inner {
            let (mut conditions, mut above) = (Vec::new(), Vec::new());
            for conjunct in conjuncts(condition) {
                let steps = self.filter(conjunct, &scope, "JOIN")?;
                match <[Step; 1]>::try_from(steps) {
                    Ok([Step::Filter(predicates)]) => conditions.extend(predicates),
                    Ok([other]) => above.push(other),
                    Err(steps) => above.extend(steps),
                }
            }
            let tables = assembled(left, right, side, conditions);
            return Ok(Tables { relation: apply(tables.relation, above), ..tables });
        }
        let mut conditions = Vec::new();
        for conjunct in conjuncts(condition) {
            let mut steps = Vec::new();
            let place =
                &mut Place { scope: &scope, steps: &mut steps, clause: "JOIN", unnests: None };
            let value = self.condition(conjunct, place)?;
            for step in steps {
                // What a subquery gives is computed on the side whose columns it reads, which keeps
                // that side's tuples.
                let reads = step.reads();
                let of = |tables: &Tables| {
                    let names = tables.relation.names();
                    reads.iter().any(|name| names.contains(name))
                };
                let side = match (of(&left), of(&right)) {
                    (true, true) => {
                        return Err(refuse_at(
                            "a subquery in ON of an outer join that reads columns of both sides",
                            conjunct,
                        ));
                    }
                    (true, false) => &mut left.relation,
                    (false, _) => &mut right.relation,
                };
                if matches!(&step, Step::Value(..)) {
                    return Err(refuse_at(
                        "a volatile value that ON reads more than once (compute it in a subquery)",
                        conjunct,
                    ));
                }
                let taken = std::mem::replace(side, Relation::nothing());
                *side = apply(taken, vec![step]);
            }
            conditions.extend(self.finished(value)?.expr.conjuncts());
        }
        Ok(assembled(left, right, side, conditions))
    }

    /// A join by columns of one name, each pair of which becomes one column.
    fn join_using(
        &mut self,
        left: Tables,
        right: Tables,
        side: Side,
        names: Vec<Ident>,
    ) -> Result<Tables> {
        let mut conditions = Vec::new();
        let mut merged: Vec<Column> = Vec::new();
        let mut computed: Vec<(Name, Expr)> = Vec::new();
        let mut hidden: Vec<Name> = Vec::new();
        for name in &names {
            let a = unique(&left.columns, name, "left")?;
            let b = unique(&right.columns, name, "right")?;
            let (x, y) = (self.field(&a.field)?, self.field(&b.field)?);
            let at = |error: Error| placed(error, name.span);
            let (left, right, atom) =
                self.unified_pair(x.clone(), y.clone(), "USING").map_err(at)?;
            let equal = self.compared("eq", x, y).map_err(at)?;
            conditions.push(self.finished(equal)?.expr);
            let value = match side {
                Side::Right | Side::RightSemi | Side::RightAnti => right.expr,
                Side::Full => Expr::Coalesce(vec![left.expr, right.expr]),
                _ => left.expr,
            };
            let field = match value {
                Expr::Field(field) => field,
                value => {
                    let field = self.fields.fresh(&a.name, atom.clone());
                    computed.push((field.clone(), value));
                    field
                }
            };
            merged.push(Column {
                table: Rc::new([]),
                name: a.name.clone(),
                field,
                atom,
                hidden: false,
                extended: false,
            });
            hidden.extend([a.field.clone(), b.field.clone()]);
        }
        let is_named = |column: &Column| {
            !column.hidden
                && merged.iter().any(|merged| merged.name == column.name)
                && hidden.contains(&column.field)
        };
        let mut tables = assembled(left, right, side, conditions);
        for column in &mut tables.columns {
            column.hidden |= is_named(column);
        }
        merged.append(&mut tables.columns);
        Ok(Tables { relation: with_fields(tables.relation, computed), columns: merged })
    }
}

fn using_name(name: &ObjectName) -> Result<Ident> {
    match &idents(name)?[..] {
        [only] => Ok(only.clone()),
        _ => Err(refuse_at("a name in parts in USING", name)),
    }
}

/// The only column of this name on a side.
fn unique<'t>(columns: &'t [Column], name: &Ident, side: &str) -> Result<&'t Column> {
    for exact in [true, false] {
        let called = |column: &&Column| !column.hidden && matches(name, &column.name, exact);
        let found: Vec<&Column> = columns.iter().filter(called).collect();
        match found[..] {
            [] => {}
            [only] => return Ok(only),
            [..] => {
                let message = format!(
                    "USING ({}): the {side} side has several columns of this name",
                    name.value
                );
                let error = Error::semantic(message).with_state(SqlState::AMBIGUOUS_COLUMN);
                return Err(placed(error, name.span));
            }
        }
    }
    let message = format!("USING ({}): the {side} side has no column of this name", name.value);
    Err(placed(Error::semantic(message).with_state(SqlState::UNDEFINED_COLUMN), name.span))
}

/// The names that both sides have, in the order of the left one.
fn shared(left: &[Column], right: &[Column]) -> Vec<Ident> {
    let mut names: Vec<&Arc<str>> = Vec::new();
    for column in left.iter().filter(|column| !column.hidden) {
        let both = right.iter().any(|other| !other.hidden && other.name == column.name);
        if both && !names.contains(&&column.name) {
            names.push(&column.name);
        }
    }
    names.into_iter().map(|name| Ident::with_quote('"', &**name)).collect()
}

/// The join of two sides by conditions.
fn assembled(left: Tables, right: Tables, side: Side, conditions: Vec<Expr>) -> Tables {
    let (kind, flip) = match side {
        Side::Inner => (Kind::Inner, false),
        Side::Left => (Kind::Left, false),
        Side::Right => (Kind::Left, true),
        Side::Full => (Kind::Full, false),
        Side::Semi => (Kind::Semi, false),
        Side::Anti => (Kind::Anti, false),
        Side::RightSemi => (Kind::Semi, true),
        Side::RightAnti => (Kind::Anti, true),
    };
    let (mut left, mut right) = (left, right);
    if matches!(side, Side::Left | Side::Full) {
        right.columns.iter_mut().for_each(|column| column.extended = true);
    }
    if matches!(side, Side::Right | Side::Full) {
        left.columns.iter_mut().for_each(|column| column.extended = true);
    }
    let columns = match side {
        Side::Semi | Side::Anti => left.columns,
        Side::RightSemi | Side::RightAnti => right.columns,
        _ => left.columns.into_iter().chain(right.columns).collect(),
    };
    let (first, second) =
        if flip { (right.relation, left.relation) } else { (left.relation, right.relation) };
    Tables { relation: joined(kind, first, second, conditions, None, false), columns }
}

/// What kind of join is written, and which tuples go together.
fn side_of<'q>(
    operator: &'q JoinOperator,
    factor: &impl Spanned,
) -> Result<(Side, &'q JoinConstraint)> {
    let (side, constraint) = match operator {
        JoinOperator::CrossJoin(JoinConstraint::None) => {
            return Ok((Side::Inner, &JoinConstraint::None));
        }
        JoinOperator::CrossJoin(_) => {
            let message = "CROSS JOIN takes neither ON nor USING; write JOIN";
            return Err(placed(Error::new(Code::Syntax, message), factor.span()));
        }
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            (Side::Inner, constraint)
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            (Side::Left, constraint)
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            (Side::Right, constraint)
        }
        JoinOperator::FullOuter(constraint) => (Side::Full, constraint),
        JoinOperator::Semi(constraint) | JoinOperator::LeftSemi(constraint) => {
            (Side::Semi, constraint)
        }
        JoinOperator::Anti(constraint) | JoinOperator::LeftAnti(constraint) => {
            (Side::Anti, constraint)
        }
        JoinOperator::RightSemi(constraint) => (Side::RightSemi, constraint),
        JoinOperator::RightAnti(constraint) => (Side::RightAnti, constraint),
        JoinOperator::CrossApply | JoinOperator::OuterApply => {
            return Err(refuse_at("APPLY (write JOIN LATERAL)", factor));
        }
        JoinOperator::AsOf { .. } => return Err(refuse_at("ASOF JOIN", factor)),
        JoinOperator::StraightJoin(_) => return Err(refuse_at("STRAIGHT_JOIN", factor)),
        JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin => {
            return Err(refuse_at("ARRAY JOIN", factor));
        }
    };
    if matches!(constraint, JoinConstraint::None) {
        let message = "a JOIN needs ON or USING; for all pairs write CROSS JOIN";
        return Err(placed(Error::new(Code::Syntax, message), factor.span()));
    }
    Ok((side, constraint))
}
