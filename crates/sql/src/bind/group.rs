//! GROUP BY: keys, grouping sets, and what expressions over groups are made of.
//!
//! Keys, and the arguments of aggregate functions, are expressions over the columns of FROM. So are all other expressions
//! at first; [`Grouped::rewrite`] puts the groups' fields in place of what is equal to a key. A column that is left is an
//! error, as in PostgreSQL.

use std::cell::RefCell;
use std::collections::HashSet;

use sqlparser::ast::{
    Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, OrderBy, Select,
    Spanned,
};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Atom, Code, Error, Result, SqlState};

use super::cte::Env;
use super::list::{Item, is_called};
use super::order::position;
use super::scope::{Scope, matches};
use super::steps::{Step, apply};
use super::typed::Typed;
use super::{Binder, Place, placed, refuse};
use crate::relation::{Aggregate, Call, Name, Relation};

/// How many grouping sets one GROUP BY may have.
const GROUPING_SETS_MAX: usize = 4096;

/// What is grouped by, and what is computed for each group.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    keys: Vec<GroupKey>,
    /// Positions of the keys of each grouping, where there are several.
    sets: Option<Vec<Vec<usize>>>,
    pub(super) calls: Vec<(Name, Call)>,
    /// Calls of `grouping` and their arguments.
    groupings: Vec<(Name, Vec<Expr>)>,
    /// What comes before the grouping.
    pub(super) steps: Vec<Step>,
}

#[derive(Debug)]
struct GroupKey {
    /// The field of the group.
    name: Name,
    value: Typed,
    stands_for: StandsFor,
}

/// Which expressions over groups are a key.
#[derive(Debug)]
enum StandsFor {
    /// Those of its value.
    Value,
    /// Those that are written like it: its value is volatile, a subquery's, or a constant once it is computed.
    Written(Ast),
    /// None: it is a literal, which is what it is in every group.
    Nothing,
}

impl Groups {
    /// Whether a SELECT has groups.
    pub(super) fn are_wanted(&self, select: &Select) -> bool {
        let group_by = match &select.group_by {
            GroupByExpr::All(_) => !self.keys.is_empty(),
            GroupByExpr::Expressions(exprs, _) => !exprs.is_empty(),
        };
        group_by || select.having.is_some() || !self.calls.is_empty() || !self.groupings.is_empty()
    }

    /// The key that is written like an expression.
    pub(super) fn written(&self, expr: &Ast) -> Option<Typed> {
        let key = self.keys.iter().find(|key| key.is_written(expr))?;
        Some(Typed::new(Expr::Field(key.name.clone()), key.value.atom.clone()))
    }

    /// The result of a call; one that is made already, where there is one.
    pub(super) fn call(&mut self, call: Call, volatile: bool, fresh: impl FnOnce() -> Name) -> Name {
        if let Some((name, _)) = self.calls.iter().find(|(_, known)| !volatile && is_same(known, &call)) {
            return name.clone();
        }
        let name = fresh();
        self.calls.push((name.clone(), call));
        name
    }

    /// The result of `grouping(…)`.
    pub(super) fn grouping(&mut self, args: Vec<Expr>, name: Name) {
        self.groupings.push((name, args));
    }
}

impl GroupKey {
    fn is_written(&self, expr: &Ast) -> bool {
        matches!(&self.stands_for, StandsFor::Written(written) if written == expr)
    }
}

/// Whether an expression is a literal, perhaps with a type or a sign.
fn is_literal(expr: &Ast) -> bool {
    match expr {
        Ast::Value(_) | Ast::TypedString(_) => true,
        Ast::Nested(inner) | Ast::UnaryOp { expr: inner, .. } | Ast::Cast { expr: inner, .. } => {
            is_literal(inner)
        }
        Ast::Interval(interval) => is_literal(&interval.value),
        _ => false,
    }
}

fn is_same(a: &Call, b: &Call) -> bool {
    let keys = a.order_by.len() == b.order_by.len()
        && a.order_by
            .iter()
            .zip(&b.order_by)
            .all(|(a, b)| (&a.expr, a.descending, a.nulls_first) == (&b.expr, b.descending, b.nulls_first));
    keys && (&a.function, &a.args, a.distinct, &a.filter) == (&b.function, &b.args, b.distinct, &b.filter)
}

/// A grouping that was bound before.
pub(crate) struct Known {
    select: Select,
    order_by: Option<OrderBy>,
    env: Env,
    relation: Relation,
    fields: Vec<Name>,
}

/// A relation of groups.
pub(crate) struct Grouped {
    pub(super) relation: Relation,
    /// Keys as they were bound, with their fields.
    keys: Vec<(Expr, Name)>,
    /// What stands for calls of `grouping`.
    groupings: Vec<(Name, Expr)>,
    /// The fields that cannot be read any more.
    below: HashSet<Name>,
}

/// An element of GROUP BY: the groupings that it stands for, each of positions of keys.
type Element = Vec<Vec<usize>>;

impl Binder<'_> {
    /// The keys of GROUP BY.
    pub(super) fn group_keys(
        &mut self,
        group_by: &GroupByExpr,
        items: &[Item<'_>],
        scope: &Scope<'_>,
        groups: &RefCell<Groups>,
    ) -> Result<()> {
        let exprs = match group_by {
            GroupByExpr::Expressions(exprs, _) => exprs,
            GroupByExpr::All(_) => return self.group_by_all(items, scope, groups),
        };
        let is_set = |expr: &Ast| matches!(expr, Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_));
        let several = exprs.iter().any(is_set);
        let mut sets: Element = vec![Vec::new()];
        for expr in exprs {
            let element = match expr {
                Ast::Tuple(list) if list.is_empty() => continue,
                _ => self.element(expr, items, scope, groups, several)?,
            };
            if sets.len() * element.len() > GROUPING_SETS_MAX {
                let message = format!("GROUP BY has more than {GROUPING_SETS_MAX} grouping sets");
                return Err(placed(Error::new(Code::Limit, message), expr.span()));
            }
            // Each grouping of one element with each of the next one.
            sets = sets
                .iter()
                .flat_map(|first| {
                    element.iter().map(move |second| first.iter().chain(second).copied().collect())
                })
                .collect();
        }
        if several {
            for set in &mut sets {
                let mut seen = HashSet::new();
                set.retain(|key| seen.insert(*key));
            }
            groups.borrow_mut().sets = Some(sets);
        }
        Ok(())
    }

    fn element(
        &mut self,
        expr: &Ast,
        items: &[Item<'_>],
        scope: &Scope<'_>,
        groups: &RefCell<Groups>,
        several: bool,
    ) -> Result<Element> {
        let mut keys = |exprs: &[Ast]| -> Result<Vec<usize>> {
            exprs.iter().map(|expr| self.group_key(expr, items, scope, groups, several)).collect()
        };
        let lists = match expr {
            Ast::Rollup(lists) | Ast::Cube(lists) => {
                lists.iter().map(|list| keys(list)).collect::<Result<Vec<_>>>()?
            }
            Ast::GroupingSets(lists) => {
                let mut sets = Vec::new();
                for list in lists {
                    if let [Ast::Function(function)] = list.as_slice()
                        && let Some(inner) = within_sets(function)
                    {
                        sets.extend(self.element(&inner, items, scope, groups, several)?);
                        continue;
                    }
                    match list.as_slice() {
                        [inner @ (Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_))] => {
                            sets.extend(self.element(inner, items, scope, groups, several)?);
                        }
                        [Ast::Tuple(list)] => sets.push(self.all_keys(list, items, scope, groups, several)?),
                        list => sets.push(self.all_keys(list, items, scope, groups, several)?),
                    }
                }
                return Ok(sets);
            }
            Ast::Tuple(list) => return Ok(vec![keys(list)?]),
            single => return Ok(vec![keys(std::slice::from_ref(single))?]),
        };
        let chosen = |lists: Vec<&Vec<usize>>| lists.into_iter().flatten().copied().collect::<Vec<_>>();
        Ok(match expr {
            Ast::Rollup(_) => {
                (0..=lists.len()).rev().map(|count| chosen(lists[..count].iter().collect())).collect()
            }
            _ => {
                if lists.len() > 12 {
                    let message = "CUBE of more than 12 elements";
                    return Err(placed(Error::new(Code::Limit, message), expr.span()));
                }
                let within = |bits: usize| {
                    let all = lists.iter().enumerate();
                    all.filter(|(at, _)| bits >> (lists.len() - 1 - at) & 1 == 1)
                        .map(|(_, list)| list)
                        .collect()
                };
                (0..1usize << lists.len()).rev().map(|bits| chosen(within(bits))).collect()
            }
        })
    }

    fn all_keys(
        &mut self,
        list: &[Ast],
        items: &[Item<'_>],
        scope: &Scope<'_>,
        groups: &RefCell<Groups>,
        several: bool,
    ) -> Result<Vec<usize>> {
        list.iter().map(|expr| self.group_key(expr, items, scope, groups, several)).collect()
    }

    /// The position of a key among all keys; a new one where there is none that is equal.
    fn group_key(
        &mut self,
        expr: &Ast,
        items: &[Item<'_>],
        scope: &Scope<'_>,
        groups: &RefCell<Groups>,
        several: bool,
    ) -> Result<usize> {
        let mut inner = expr;
        while let Ast::Nested(nested) = inner {
            inner = nested;
        }
        let written = match position(inner, items.len(), "GROUP BY")? {
            Some(at) => items.get(at),
            None => match inner {
                // A column is meant before the result of that name.
                Ast::Identifier(name) if !scope.has(name) => {
                    let called = |exact| {
                        items.iter().find(move |item| item.has_alias && matches(name, &item.name, exact))
                    };
                    called(true).or_else(|| called(false))
                }
                _ => None,
            },
        };
        let value = match written {
            Some(item) if item.expr.is_none() => {
                let list = self.list(std::slice::from_ref(item), scope, &mut Vec::new(), &mut Vec::new())?;
                list.into_iter().next().map(|(_, value)| value)
            }
            _ => None,
        };
        let expr = written.and_then(|item| item.expr).unwrap_or(inner);
        self.add_key(expr, value, scope, groups, several)
    }

    fn add_key(
        &mut self,
        expr: &Ast,
        value: Option<Typed>,
        scope: &Scope<'_>,
        groups: &RefCell<Groups>,
        several: bool,
    ) -> Result<usize> {
        let mut steps = Vec::new();
        let value = match value {
            Some(value) => value,
            None => {
                if let Some(at) = groups.borrow().keys.iter().position(|key| key.is_written(expr)) {
                    return Ok(at);
                }
                let place = &mut Place { scope, steps: &mut steps, clause: "GROUP BY", unnests: None };
                self.expr(expr, place)?
            }
        };
        let value = self.known(value)?;
        let volatile = self.is_volatile(&value.expr);
        let constant = matches!(value.expr, Expr::Constant(..));
        let stands_for = match () {
            () if is_literal(expr) => StandsFor::Nothing,
            () if !steps.is_empty() || volatile || constant => StandsFor::Written(expr.clone()),
            () => StandsFor::Value,
        };
        let mut groups = groups.borrow_mut();
        if !matches!(stands_for, StandsFor::Written(_))
            && let Some(at) = groups.keys.iter().position(|key| key.value.expr == value.expr)
        {
            return Ok(at);
        }
        groups.steps.append(&mut steps);
        let name = match &value.expr {
            // Sets leave keys out, whose fields are then NULL.
            Expr::Field(name) if !several => name.clone(),
            _ => self.fields.fresh(&expr.to_string(), value.atom.clone()),
        };
        groups.keys.push(GroupKey { name, value, stands_for });
        Ok(groups.keys.len() - 1)
    }

    /// All items without calls of aggregate functions are keys.
    fn group_by_all(
        &mut self,
        items: &[Item<'_>],
        scope: &Scope<'_>,
        groups: &RefCell<Groups>,
    ) -> Result<()> {
        for item in items {
            let value = match item.expr {
                Some(expr) if self.holds_aggregate(expr) => continue,
                Some(_) => None,
                None => {
                    let item = std::slice::from_ref(item);
                    let list = self.list(item, scope, &mut Vec::new(), &mut Vec::new())?;
                    list.into_iter().next().map(|(_, value)| value)
                }
            };
            let nothing = Ast::value(sqlparser::ast::Value::Null);
            self.add_key(item.expr.unwrap_or(&nothing), value, scope, groups, false)?;
        }
        Ok(())
    }

    /// The groups of a relation.
    pub(super) fn grouped(
        &mut self,
        relation: Relation,
        groups: Groups,
        scope: &Scope<'_>,
        (select, order_by, env): (&Select, Option<&OrderBy>, &Env),
    ) -> Result<Grouped> {
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
        if count > 64 {
            return Err(Error::new(Code::Limit, "GROUP BY of more than 64 keys in grouping sets"));
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
        Ok(Grouped { relation, keys: known, groupings: stands, below })
    }

    /// The grouping; where the same was bound before (a common table expression that is read twice), that one under other
    /// names, so that `share_common` of the plan can see that it is one.
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
                let exprs = fields.into_iter().zip(known.fields.iter().cloned().map(Expr::Field)).collect();
                Relation::Map { input: Box::new(known.relation.clone()), exprs }
            }
            _ => {
                let (select, order_by, env) = (select.clone(), order_by.cloned(), env.clone());
                self.groupings.push(Known { select, order_by, env, relation: relation.clone(), fields });
                relation
            }
        }
    }
}

/// ROLLUP or CUBE within GROUPING SETS, which the parser takes for a call.
fn within_sets(function: &Function) -> Option<Ast> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let element = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::Tuple(list))) => Some(list.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(vec![expr.clone()]),
        _ => None,
    };
    let lists = list.args.iter().map(element).collect::<Option<Vec<_>>>()?;
    match () {
        () if is_called(function, "rollup") => Some(Ast::Rollup(lists)),
        () if is_called(function, "cube") => Some(Ast::Cube(lists)),
        () => None,
    }
}

/// The number that `grouping(…)` gives: one bit for each argument, set where the grouping leaves it out.
fn grouping_value(args: &[Expr], keys: &[(Expr, Name)], id: Option<&Name>, count: usize) -> Result<Expr> {
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
                    _ => {
                        expr.children_mut().into_iter().try_for_each(|child| self.rewrite_beside(child, own))
                    }
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
            } else if let Some((_, value)) = self.groupings.iter().find(|(known, _)| known == name) {
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

/// Refuses GROUP BY in a place where there are no groups.
pub(super) fn refuse_set(expr: &Ast) -> Result<()> {
    let is_set = matches!(expr, Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_));
    refuse(is_set, "a grouping set outside of GROUP BY", expr.span())
}

impl Binder<'_> {
    /// Whether an expression calls an aggregate function itself, not in a subquery.
    fn holds_aggregate(&self, expr: &Ast) -> bool {
        use sqlparser::ast::{Query, Visit, Visitor};
        use std::ops::ControlFlow;
        struct Calls<'b, 'a> {
            binder: &'b Binder<'a>,
            depth: usize,
        }
        impl Visitor for Calls<'_, '_> {
            type Break = ();

            fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
                self.depth += 1;
                ControlFlow::Continue(())
            }

            fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
                self.depth -= 1;
                ControlFlow::Continue(())
            }

            fn pre_visit_expr(&mut self, expr: &Ast) -> ControlFlow<()> {
                match expr {
                    Ast::Function(function)
                        if self.depth == 0
                            && (self.binder.aggregate_of(function).is_some()
                                || is_called(function, "grouping")) =>
                    {
                        ControlFlow::Break(())
                    }
                    _ => ControlFlow::Continue(()),
                }
            }
        }
        let mut calls = Calls { binder: self, depth: 0 };
        expr.visit(&mut calls).is_break()
    }
}
