//! Builds grouped relations and rewrites expressions over their fields.
//!
//! [`GroupRewriter::rewrite`] replaces each expression that equals a key by the key's field. A
//! remaining column is an error, as in PostgreSQL.

use std::collections::HashSet;
use std::sync::Arc;

use sqlparser::ast::{OrderBy, Select};
use tessera_optimizer::logical::relation::{Aggregate, Call, Name, Relation};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::Binder;
use super::cte::Env;
use super::group::{Groups, KeyMatch};
use super::projection::least;
use super::scope::Scope;
use super::steps::{Step, apply, with_fields};
use super::typed::TypedExpr;

/// A grouping that an equal grouping in the same statement can reuse.
pub(crate) struct CachedGrouping {
    select: Select,
    order_by: Option<OrderBy>,
    env: Env,
    /// What the syntax tree does not show: constants that it may read by name.
    constants: Vec<(Arc<str>, TypedExpr)>,
    relation: Relation,
    fields: Vec<Name>,
}

/// Rewrites a query's expressions over the fields of its groups.
pub(crate) struct GroupRewriter {
    /// The bound keys and their fields in the grouped relation.
    keys: Vec<(Expr, Name)>,
    /// The keys that are no fields, in the form in which a subquery reads them.
    outer_keys: Vec<(Expr, Name)>,
    /// The values of `grouping` calls by field.
    groupings: Vec<(Name, Expr)>,
    /// Fields below the grouping, which expressions above it cannot read.
    below: HashSet<Name>,
}

impl Binder<'_> {
    /// Groups a relation.
    pub(super) fn grouped(
        &mut self,
        relation: Relation,
        groups: Groups,
        scope: &Scope<'_>,
        (select, order_by, env): (&Select, Option<&OrderBy>, &Env),
    ) -> Result<(Relation, GroupRewriter)> {
        let Groups { keys, sets, mut calls, groupings, steps } = groups;
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
        // The grouping ID is read as a signed 64-bit integer.
        if count > 63 && sets.is_some() {
            return Err(Error::new(
                Code::Limit,
                format!("GROUP BY with grouping sets has {count} keys; at most 63 are supported"),
            ));
        }
        let mut known = Vec::with_capacity(count);
        let mut computed = Vec::with_capacity(count);
        let mut shown = Vec::new();
        // What stands for each key in the arguments of `grouping`, and the key's position.
        let mut positions: Vec<(Expr, usize)> = Vec::with_capacity(count);
        for (at, key) in keys.into_iter().enumerate() {
            let value = self.finished(key.value.clone())?;
            let (field, value) = match key.collated {
                Some((field, key_value)) => {
                    let (call, text) = self.text_of_group(&field, value)?;
                    calls.push(call);
                    shown.push((key.name.clone(), text));
                    (field, self.finished(key_value)?)
                }
                None => (key.name.clone(), value),
            };
            match key.matching {
                KeyMatch::Value => {
                    positions.push((key.value.expr.clone(), at));
                    known.push((key.value.expr, key.name.clone()));
                }
                // Expressions refer to its field already.
                KeyMatch::Syntax(_) => {
                    positions.push((Expr::Field(key.name.clone()), at));
                    below.remove(&key.name);
                }
                KeyMatch::Never => {}
            }
            computed.push((field, value.expr));
        }
        let mut stands: Vec<(Name, Expr)> = Vec::new();
        for (name, args) in groupings {
            let id = grouping.as_ref().map(|(id, _)| id);
            stands.push((name, grouping_value(&args, &positions, id, count)?));
        }
        let fields: Vec<Name> = computed
            .iter()
            .map(|(name, _)| name)
            .chain(calls.iter().map(|(name, _)| name))
            .chain(grouping.iter().map(|(name, _)| name))
            .chain(shown.iter().map(|(name, _)| name))
            .cloned()
            .collect();
        let aggregate = Aggregate { input: relation, keys: computed, sets, grouping, calls };
        let relation = with_fields(Relation::Aggregate(Box::new(aggregate)), shown);
        let relation = self.grouped_once(relation, fields, scope, (select, order_by, env));
        let computed = known.iter().filter(|(key, _)| !matches!(key, Expr::Field(_)));
        let outer_keys = computed.map(|(key, name)| {
            let key = TypedExpr::new(key.clone(), Atom::Null);
            (super::scope::as_parameter(key).expr, name.clone())
        });
        let outer_keys = outer_keys.collect();
        Ok((relation, GroupRewriter { keys: known, outer_keys, groupings: stands, below }))
    }

    /// Returns the call that finds the text of a group whose key stands for several texts, which is
    /// the first by its bytes, and the value of the text. A set without the key has no text.
    fn text_of_group(&mut self, key: &Name, text: TypedExpr) -> Result<((Name, Call), Expr)> {
        let first = self.fields.fresh("text", Atom::String);
        let is_missing = Expr::IsNull(Box::new(Expr::Field(key.clone())));
        let branches = vec![(is_missing, Expr::null(Atom::String))];
        let otherwise = Some(Box::new(Expr::Field(first.clone())));
        Ok(((first, least(text.expr)), Expr::Case { branches, otherwise }))
    }

    /// Returns the grouping, or an equal one bound before under new field names, so that the plan
    /// pass `share_common` can merge the two (a common table expression that is read twice).
    fn grouped_once(
        &mut self,
        relation: Relation,
        fields: Vec<Name>,
        scope: &Scope<'_>,
        (select, order_by, env): (&Select, Option<&OrderBy>, &Env),
    ) -> Relation {
        // In a recursive term the grouping may differ in each iteration.
        if self.open_recursions > 0 || !relation.parameters().is_empty() {
            return relation;
        }
        let constants = scope.outer_constants();
        let is_same = |known: &&CachedGrouping| {
            known.env.is_same(env)
                && known.select == *select
                && known.order_by.as_ref() == order_by
                && known.constants == constants
        };
        match self.groupings.iter().find(is_same) {
            Some(known) if known.fields.len() == fields.len() => {
                let exprs =
                    fields.into_iter().zip(known.fields.iter().cloned().map(Expr::Field)).collect();
                Relation::Map { input: Box::new(known.relation.clone()), exprs }
            }
            _ => {
                let (select, order_by, env) = (select.clone(), order_by.cloned(), env.clone());
                self.groupings.push(CachedGrouping {
                    select,
                    order_by,
                    env,
                    constants,
                    relation: relation.clone(),
                    fields,
                });
                relation
            }
        }
    }
}

/// Returns the value of `grouping(…)`: one bit per argument, set where the grouping set omits it.
fn grouping_value(
    args: &[Expr],
    keys: &[(Expr, usize)],
    id: Option<&Name>,
    count: usize,
) -> Result<Expr> {
    let number = |number: usize| Expr::Constant(Scalar::Integer(number as i128), Atom::Int64);
    let mut bits = Vec::with_capacity(args.len());
    for (at, arg) in args.iter().enumerate() {
        let Some((_, position)) = keys.iter().find(|(key, _)| key == arg) else {
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

impl GroupRewriter {
    /// Rewrites an expression over the columns of FROM into one over the groups.
    ///
    /// # Errors
    /// It reads a column that is not a key.
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

    /// Rewrites a step, including the parameters of its subquery.
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
        if let Some((_, name)) = self.outer_keys.iter().find(|(key, _)| key == expr) {
            *expr = Expr::Parameter(name.clone());
            return Ok(());
        }
        if let Expr::Parameter(name) = expr {
            let field = Expr::Field(name.clone());
            if let Some((_, key)) = self.keys.iter().find(|(key, _)| *key == field) {
                *name = key.clone();
            } else if let Some((_, value)) = self.groupings.iter().find(|(known, _)| known == name)
            {
                *expr = super::scope::as_parameter(TypedExpr::new(value.clone(), Atom::Int32)).expr;
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
