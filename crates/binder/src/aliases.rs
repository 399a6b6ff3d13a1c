//! Results of the SELECT list that other items and clauses read by alias, as in DuckDB.
//!
//! An alias is read only where no column, also of an enclosing query, has its name: that is what
//! PostgreSQL means. A value that differs each time it is computed is computed once.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use sqlparser::ast::{Expr as Ast, GroupByExpr, Ident};
use tessera_optimizer::logical::relation::Name;
use tessera_plan::Expr;
use tessera_types::Result;

use super::depth::each_expr;
use super::list::{Item, UnnestCall};
use super::scope::{Origin, Scope, matches};
use super::steps::Step;
use super::typed::TypedExpr;
use super::{Binder, Place};

/// The number of nodes up to which a value is repeated where its alias is read.
const REPEATED_NODES_MAX: usize = 256;

impl Binder<'_> {
    /// Adds a result to those that can be read by alias; returns its value.
    pub(super) fn readable_result(
        &mut self,
        name: &str,
        value: TypedExpr,
        scope: &mut Scope<'_>,
        steps: &mut Vec<Step>,
        unnests: &[UnnestCall],
    ) -> Result<TypedExpr> {
        let mut origin = origin_of(&value, scope, steps, unnests);
        let mut value = value;
        if self.is_volatile(&value.expr) || is_large(&value.expr) {
            if origin == Origin::Unnest {
                // A step would come before `unnest`, so this value cannot be shared.
                return Ok(value);
            }
            let TypedExpr { expr, atom, .. } = value;
            let field = self.fields.fresh(name, atom.clone());
            self.keep_collation(&field, [&expr])?;
            steps.push(Step::Value(field.clone(), expr));
            value = TypedExpr::new(Expr::Field(field), atom);
            origin = origin.max(Origin::Groups);
        }
        scope.add_result(name, value.clone(), origin);
        Ok(value)
    }

    /// Binds the items whose aliases WHERE reads. Adds them to the results of the scope, and what
    /// must precede them to `steps`.
    pub(super) fn results_in_where(
        &mut self,
        predicate: &Ast,
        items: &mut [Item<'_>],
        scope: &mut Scope<'_>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let aliases = aliases_of(items);
        let mut wanted = vec![None; items.len()];
        mark(predicate, &aliases, scope, &mut wanted);
        for at in (0..items.len()).rev() {
            if let (Some(_), Some(expr)) = (wanted[at], items[at].expr()) {
                mark(expr, &aliases, scope, &mut wanted[..at]);
            }
        }
        for (item, wanted) in items.iter_mut().zip(wanted) {
            let Some(reader) = wanted else { continue };
            let before = steps.len();
            let value = match (item.known(), item.expr()) {
                (Some(value), _) => Ok(value.clone()),
                (None, Some(expr)) => {
                    let place = &mut Place { scope, steps, clause: "WHERE", unnests: None };
                    self.expr(expr, place)
                }
                (None, None) => continue,
            };
            let mut value = match (value, reader) {
                (Ok(value), _) => value,
                (Err(error), Reader::Clause) => return Err(error),
                // A subquery may have a column of this name.
                (Err(_), Reader::Subquery) => {
                    steps.truncate(before);
                    continue;
                }
            };
            if self.is_volatile(&value.expr) {
                // The list has the values that WHERE has tested.
                let place = &mut Place { scope, steps, clause: "WHERE", unnests: None };
                value = self.once(value, place)?;
                item.set_known(value.clone());
            }
            scope.add_result(&item.name, value, Origin::Columns);
        }
        Ok(())
    }

    /// Adds the results that later items read to those of the scope, for keys of GROUP BY. Returns
    /// which items read a result that is computed later than the groups.
    pub(super) fn results_in_groups(
        &mut self,
        group_by: &GroupByExpr,
        items: &[Item<'_>],
        scope: &mut Scope<'_>,
    ) -> Vec<bool> {
        let mut reads_late = vec![false; items.len()];
        let aliases = match group_by {
            GroupByExpr::Expressions(exprs, _) if exprs.is_empty() => Aliases::new(),
            _ => aliases_of(items),
        };
        if aliases.is_empty() {
            return reads_late;
        }
        for (at, item) in items.iter().enumerate() {
            let Some(expr) = item.expr() else { continue };
            let mut read = vec![None; at];
            mark(expr, &aliases, scope, &mut read);
            for (result, _) in read.iter().enumerate().filter(|(_, read)| read.is_some()) {
                let result = &items[result];
                if scope.results.iter().any(|known| *known.name == *result.name) {
                    continue;
                }
                let mut steps = Vec::new();
                let place =
                    &mut Place { scope, steps: &mut steps, clause: "GROUP BY", unnests: None };
                let value = match (result.known(), result.expr()) {
                    (Some(value), _) => Some(value.clone()),
                    (None, Some(expr)) => self.expr(expr, place).ok(),
                    (None, None) => None,
                };
                match value {
                    Some(value) if steps.is_empty() && !self.is_volatile(&value.expr) => {
                        scope.add_result(&result.name, value, Origin::Columns);
                    }
                    _ => reads_late[at] = true,
                }
            }
        }
        reads_late
    }
}

/// Returns whether a value is too long to be repeated wherever its alias is read.
fn is_large(expr: &Expr) -> bool {
    let mut nodes = 0;
    expr.walk(&mut |_| nodes += 1);
    nodes > REPEATED_NODES_MAX
}

/// Where an alias is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Clause,
    Subquery,
}

/// The positions of the items with an alias, by the alias in lower case.
type Aliases = HashMap<String, Vec<(usize, Rc<str>)>>;

fn aliases_of(items: &[Item<'_>]) -> Aliases {
    let mut aliases = Aliases::new();
    for (at, item) in items.iter().enumerate().filter(|(_, item)| item.has_alias) {
        let places = aliases.entry(item.name.to_lowercase()).or_default();
        places.push((at, item.name.clone()));
    }
    aliases
}

/// Marks the items whose aliases an expression reads, among the first ones.
fn mark(expr: &Ast, aliases: &Aliases, scope: &Scope<'_>, wanted: &mut [Option<Reader>]) {
    if aliases.is_empty() {
        return;
    }
    for (name, reader) in names_in(expr) {
        for (at, alias) in aliases.get(&name.value.to_lowercase()).into_iter().flatten() {
            let is_called = matches(&name, alias, true) || matches(&name, alias, false);
            if is_called
                && wanted.get(*at).is_some_and(|wanted| *wanted != Some(Reader::Clause))
                && matches!(scope.column(std::slice::from_ref(&name)), Ok(None))
                && scope.whole_row(&name).is_none()
            {
                wanted[*at] = Some(reader);
            }
        }
    }
}

/// Collects names, and whether they stand in subqueries, which may have columns of these names.
fn names_in(expr: &Ast) -> Vec<(Ident, Reader)> {
    let mut found = Vec::new();
    each_expr(expr, |expr, queries| {
        let name = match expr {
            Ast::Identifier(name) => Some(name),
            Ast::CompoundIdentifier(parts) => parts.first(),
            _ => None,
        };
        let reader = if queries == 0 { Reader::Clause } else { Reader::Subquery };
        found.extend(name.map(|name| (name.clone(), reader)));
    });
    found
}

/// Returns what computes a value, directly or in the steps before it.
fn origin_of(
    value: &TypedExpr,
    scope: &Scope<'_>,
    steps: &[Step],
    unnests: &[UnnestCall],
) -> Origin {
    let mut names: HashSet<Name> = value.expr.fields().into_iter().collect();
    let mut origin = Origin::Columns;
    // A step reads what earlier ones add.
    for step in steps.iter().rev() {
        if step.adds().iter().any(|name| names.contains(name)) {
            origin = Origin::Groups;
            names.extend(step.reads());
        }
    }
    let is_any = |is: &dyn Fn(&Name) -> bool| names.iter().any(is);
    if let Some(groups) = scope.groups {
        let groups = groups.borrow();
        let called = |name: &Name| {
            groups.calls.iter().any(|(known, _)| known == name)
                || groups.groupings.iter().any(|(known, _)| known == name)
        };
        if is_any(&called) {
            origin = Origin::Groups;
        }
    }
    if let Some(windows) = scope.windows
        && is_any(&|name| windows.borrow().is_result(name))
    {
        origin = Origin::Windows;
    }
    match is_any(&|name| unnests.iter().any(|unnest| unnest.element == *name)) {
        true => Origin::Unnest,
        false => origin,
    }
}
