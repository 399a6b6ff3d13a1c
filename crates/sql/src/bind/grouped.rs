//! Relations of groups, and expressions over their fields in place of columns.
//!
//! [`Grouped::rewrite`] puts the groups' fields in place of what is equal to a key. A column that
//! is left is an error, as in PostgreSQL.

use std::collections::HashSet;

use sqlparser::ast::{OrderBy, Select};
use tessera_optimizer::logical::relation::{Aggregate, Name, Relation};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::Binder;
use super::cte::Env;
use super::group::{Groups, StandsFor};
use super::scope::Scope;
use super::steps::{Step, apply};
use super::typed::Typed;

/// A grouping that was bound before.
pub(crate) struct Known {
    select: Select,
    order_by: Option<OrderBy>,
    env: Env,
    relation: Relation,
    fields: Vec<Name>,
}

/// What stands over groups for the expressions of a query.
pub(crate) struct Grouped {
    /// Keys as they were bound, with their fields.
    keys: Vec<(Expr, Name)>,
    /// What stands for calls of `grouping`.
    groupings: Vec<(Name, Expr)>,
    /// The fields that cannot be read any more.
    below: HashSet<Name>,
}

impl Binder<'_> {
    /// The groups of a relation.
    pub(super) fn grouped(
        &mut self,
        relation: Relation,
        groups: Groups,
        scope: &Scope<'_>,
        (select, order_by, env): (&Select, Option<&OrderBy>, &Env),
    ) -> Result<(Relation, Grouped)> {
        let Groups { keys, sets, calls, groupings, steps } = groups;
        let relation = apply(relation, steps);
        let mut below: HashSet<Name> = relation.names().into_iter().collect();
        below.extend(scope.columns.iter().map(|column| column.field.clone()));
        let count = keys.len();
        let grouping = sets.as_ref().map(|_| {
            let atom = match count {
                0..=8 => Atom::UInt8,
                9..=16 => Atom::UInt16,
                17..=32 => Atom::UInt32,
                _ => Atom::UInt64,
            };
            (self.fields.fresh("grouping_id", atom.clone()), atom)
        });
        // The set's number is read as a signed one.
        if count > 63 && sets.is_some() {
            return Err(Error::new(
                Code::Limit,
                format!("GROUP BY of {count} keys in grouping sets; 63 at most are supported"),
            ));
        }
        let mut known = Vec::with_capacity(count);
        let mut computed = Vec::with_capacity(count);
        for key in keys {
            let value = self.finished(key.value.clone())?;
            match key.stands_for {
                StandsFor::Value => known.push((key.value.expr, key.name.clone())),
                // Its field stands in expressions already.
                StandsFor::Written(_) => {
                    below.remove(&key.name);
                }
                StandsFor::Nothing => {}
            }
            computed.push((key.name, value.expr));
        }
        let mut stands: Vec<(Name, Expr)> = Vec::new();
        for (name, args) in groupings {
            let id = grouping.as_ref().map(|(id, _)| id);
            stands.push((name, grouping_value(&args, &known, id, count)?));
        }
        let fields: Vec<Name> = computed
            .iter()
            .map(|(name, _)| name)
            .chain(calls.iter().map(|(name, _)| name))
            .chain(grouping.iter().map(|(name, _)| name))
            .cloned()
            .collect();
        let aggregate = Aggregate { input: relation, keys: computed, sets, grouping, calls };
        let relation = Relation::Aggregate(Box::new(aggregate));
        let relation = self.grouped_once(relation, fields, (select, order_by, env));
        Ok((relation, Grouped { keys: known, groupings: stands, below }))
    }

    /// The grouping; where the same was bound before (a common table expression that is read
    /// twice), that one under other names, so that `share_common` of the plan can see that it is
    /// one.
    fn grouped_once(
        &mut self,
        relation: Relation,
        fields: Vec<Name>,
        (select, order_by, env): (&Select, Option<&OrderBy>, &Env),
    ) -> Relation {
        // In the step of a recursion it may hang on the run.
        if self.open_recursions > 0 || !relation.parameters().is_empty() {
            return relation;
        }
        let is_same = |known: &&Known| {
            known.env.is_same(env) && known.select == *select && known.order_by.as_ref() == order_by
        };
        match self.groupings.iter().find(is_same) {
            Some(known) if known.fields.len() == fields.len() => {
                let exprs =
                    fields.into_iter().zip(known.fields.iter().cloned().map(Expr::Field)).collect();
                Relation::Map { input: Box::new(known.relation.clone()), exprs }
            }
            _ => {
                let (select, order_by, env) = (select.clone(), order_by.cloned(), env.clone());
                self.groupings.push(Known {
                    select,
                    order_by,
                    env,
                    relation: relation.clone(),
                    fields,
                });
                relation
            }
        }
    }
}

/// The number that `grouping(…)` gives: one bit for each argument, set where the grouping leaves it
/// out.
fn grouping_value(
    args: &[Expr],
    keys: &[(Expr, Name)],
    id: Option<&Name>,
    count: usize,
) -> Result<Expr> {
    let number = |number: usize| Expr::Constant(Scalar::Integer(number as i128), Atom::Int64);
    let mut bits = Vec::with_capacity(args.len());
    for (at, arg) in args.iter().enumerate() {
        let Some(position) = keys.iter().position(|(key, _)| key == arg) else {
            let message = "the arguments of grouping must be expressions of GROUP BY";
            return Err(Error::semantic(message).with_state(SqlState::GROUPING_ERROR));
        };
        if let Some(id) = id {
            let id = Expr::Field(id.clone()).cast(Atom::Int64);
            let shifted = Expr::call("shift_right", vec![id, number(count - 1 - position)]);
            let bit = Expr::call("bit_and", vec![shifted, number(1)]);
            bits.push(Expr::call("shift_left", vec![bit, number(args.len() - 1 - at)]));
        }
    }
    let all = bits.into_iter().reduce(|all, bit| Expr::call("bit_or", vec![all, bit]));
    Ok(match all {
        Some(all) => all.cast(Atom::Int32),
        None => Expr::Constant(Scalar::Integer(0), Atom::Int32),
    })
}

impl Grouped {
    /// An expression over the columns of FROM as one over the groups.
    ///
    /// # Errors
    /// It reads a column that is no key.
    pub(super) fn rewrite(&self, expr: &mut Expr) -> Result<()> {
        if let Some((_, name)) = self.keys.iter().find(|(key, _)| key == expr) {
            *expr = Expr::Field(name.clone());
            return Ok(());
        }
        if let Expr::Field(name) = expr {
            if let Some((_, value)) = self.groupings.iter().find(|(known, _)| known == name) {
                *expr = value.clone();
                return Ok(());
            }
            return match self.below.contains(name) {
                true => Err(ungrouped(name)),
                false => Ok(()),
            };
        }
        expr.children_mut().into_iter().try_for_each(|child| self.rewrite(child))
    }

    /// The same of a step; its subquery reads the groups' keys in place of columns.
    pub(super) fn rewrite_step(&self, step: &mut Step) -> Result<()> {
        let own: HashSet<Name> = match &*step {
            Step::Join { right, .. } => right.names().into_iter().collect(),
            _ => HashSet::new(),
        };
        for expr in step.exprs_mut() {
            self.rewrite_beside(expr, &own)?;
        }
        match step {
            Step::Join { right, .. } => self.rewrite_parameters(right),
            _ => Ok(()),
        }
    }

    fn rewrite_beside(&self, expr: &mut Expr, own: &HashSet<Name>) -> Result<()> {
        match expr {
            Expr::Field(name) if own.contains(name) => Ok(()),
            _ => {
                if let Some((_, name)) = self.keys.iter().find(|(key, _)| key == expr) {
                    *expr = Expr::Field(name.clone());
                    return Ok(());
                }
                match expr {
                    Expr::Field(_) => self.rewrite(expr),
                    _ => expr
                        .children_mut()
                        .into_iter()
                        .try_for_each(|child| self.rewrite_beside(child, own)),
                }
            }
        }
    }

    fn rewrite_parameters(&self, relation: &mut Relation) -> Result<()> {
        for expr in relation.exprs_mut() {
            self.rewrite_parameter(expr)?;
        }
        relation.inputs_mut().into_iter().try_for_each(|input| self.rewrite_parameters(input))
    }

    fn rewrite_parameter(&self, expr: &mut Expr) -> Result<()> {
        if let Expr::Parameter(name) = expr {
            let field = Expr::Field(name.clone());
            if let Some((_, key)) = self.keys.iter().find(|(key, _)| *key == field) {
                *name = key.clone();
            } else if let Some((_, value)) = self.groupings.iter().find(|(known, _)| known == name)
            {
                *expr = super::scope::as_parameter(Typed::new(value.clone(), Atom::Int32)).expr;
            } else if self.below.contains(name) {
                return Err(ungrouped(name));
            }
            return Ok(());
        }
        expr.children_mut().into_iter().try_for_each(|child| self.rewrite_parameter(child))
    }
}

fn ungrouped(name: &Name) -> Error {
    let message = format!("column {name} must be in GROUP BY or in an aggregate function");
    Error::semantic(message).with_state(SqlState::GROUPING_ERROR)
}
