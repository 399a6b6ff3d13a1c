//! GROUP BY: keys, grouping sets, and calls of aggregate functions.
//!
//! Keys, and the arguments of aggregate functions, are expressions over the columns of FROM. So are
//! all other expressions at first; `grouped` makes them ones over the groups' fields.

use std::cell::RefCell;
use std::collections::HashSet;

use sqlparser::ast::{
    Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select,
    Spanned,
};
use tessera_optimizer::logical::relation::{Call, Name};
use tessera_plan::Expr;
use tessera_types::{Code, Error, Result};

use super::list::{Item, is_called};
use super::order::position;
use super::scope::{Scope, matches};
use super::steps::Step;
use super::typed::Typed;
use super::{Binder, Place, placed, without_parentheses};

/// How many grouping sets one GROUP BY may have.
const GROUPING_SETS_MAX: usize = 4096;

/// What is grouped by, and what is computed for each group.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(super) keys: Vec<GroupKey>,
    /// Positions of the keys of each grouping, where there are several.
    pub(super) sets: Option<Vec<Vec<usize>>>,
    pub(super) calls: Vec<(Name, Call)>,
    /// Calls of `grouping` and their arguments.
    pub(super) groupings: Vec<(Name, Vec<Expr>)>,
    /// What comes before the grouping.
    pub(super) steps: Vec<Step>,
}

#[derive(Debug)]
pub(super) struct GroupKey {
    /// The field of the group.
    pub(super) name: Name,
    pub(super) value: Typed,
    pub(super) stands_for: StandsFor,
}

/// Which expressions over groups are a key.
#[derive(Debug)]
pub(super) enum StandsFor {
    /// Those of its value.
    Value,
    /// Those that are written like it: its value is volatile, a subquery's, or a constant once it
    /// is computed.
    Written(Box<Ast>),
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
    pub(super) fn call(
        &mut self,
        call: Call,
        volatile: bool,
        fresh: impl FnOnce() -> Name,
    ) -> Name {
        if let Some((name, _)) = self.calls.iter().find(|(_, known)| !volatile && *known == call) {
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
        matches!(&self.stands_for, StandsFor::Written(written) if **written == *expr)
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

/// What GROUP BY is read against.
#[derive(Clone, Copy)]
struct By<'b> {
    items: &'b [Item<'b>],
    scope: &'b Scope<'b>,
    groups: &'b RefCell<Groups>,
    /// Whether there are several groupings.
    several: bool,
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
            GroupByExpr::All(_) => {
                return self.group_by_all(By { items, scope, groups, several: false });
            }
        };
        let is_set =
            |expr: &Ast| matches!(expr, Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_));
        let several = exprs.iter().any(is_set);
        let by = By { items, scope, groups, several };
        let mut sets: Element = vec![Vec::new()];
        for expr in exprs {
            let element = match expr {
                Ast::Tuple(list) if list.is_empty() => continue,
                _ => self.element(expr, by)?,
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

    fn element(&mut self, expr: &Ast, by: By<'_>) -> Result<Element> {
        let lists = match expr {
            Ast::Rollup(lists) | Ast::Cube(lists) => {
                lists.iter().map(|list| self.keys(list, by)).collect::<Result<Vec<_>>>()?
            }
            Ast::GroupingSets(lists) => {
                let mut sets = Vec::new();
                for list in lists {
                    if let [Ast::Function(function)] = list.as_slice()
                        && let Some(inner) = within_sets(function)
                    {
                        sets.extend(self.element(&inner, by)?);
                        continue;
                    }
                    match list.as_slice() {
                        [inner @ (Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_))] => {
                            sets.extend(self.element(inner, by)?);
                        }
                        [Ast::Tuple(list)] => sets.push(self.keys(list, by)?),
                        list => sets.push(self.keys(list, by)?),
                    }
                }
                return Ok(sets);
            }
            Ast::Tuple(list) => return Ok(vec![self.keys(list, by)?]),
            single => return Ok(vec![vec![self.group_key(single, by)?]]),
        };
        let chosen =
            |lists: Vec<&Vec<usize>>| lists.into_iter().flatten().copied().collect::<Vec<_>>();
        Ok(match expr {
            Ast::Rollup(_) => (0..=lists.len())
                .rev()
                .map(|count| chosen(lists[..count].iter().collect()))
                .collect(),
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

    fn keys(&mut self, exprs: &[Ast], by: By<'_>) -> Result<Vec<usize>> {
        exprs.iter().map(|expr| self.group_key(expr, by)).collect()
    }

    /// The position of a key among all keys; a new one where there is none that is equal.
    fn group_key(&mut self, expr: &Ast, by: By<'_>) -> Result<usize> {
        let inner = without_parentheses(expr);
        let written = match position(inner, by.items.len(), "GROUP BY")? {
            Some(at) => by.items.get(at),
            None => match inner {
                // A column is meant before the result of that name.
                Ast::Identifier(name) if !by.scope.has(name) => {
                    let called = |exact| {
                        by.items
                            .iter()
                            .find(move |item| item.has_alias && matches(name, &item.name, exact))
                    };
                    called(true).or_else(|| called(false))
                }
                _ => None,
            },
        };
        let value = match written {
            Some(item) if item.expr.is_none() => self.item_value(item, by.scope)?,
            _ => None,
        };
        let expr = written.and_then(|item| item.expr).unwrap_or(inner);
        self.add_key(expr, value, by)
    }

    fn add_key(&mut self, expr: &Ast, value: Option<Typed>, by: By<'_>) -> Result<usize> {
        let mut steps = Vec::new();
        let value = match value {
            Some(value) => value,
            None => {
                if let Some(at) =
                    by.groups.borrow().keys.iter().position(|key| key.is_written(expr))
                {
                    return Ok(at);
                }
                let place = &mut Place {
                    scope: by.scope,
                    steps: &mut steps,
                    clause: "GROUP BY",
                    unnests: None,
                };
                self.expr(expr, place)?
            }
        };
        let value = value.known();
        let volatile = self.is_volatile(&value.expr);
        let constant = matches!(value.expr, Expr::Constant(..));
        let stands_for = match () {
            () if is_literal(expr) => StandsFor::Nothing,
            () if !steps.is_empty() || volatile || constant => {
                StandsFor::Written(Box::new(expr.clone()))
            }
            () => StandsFor::Value,
        };
        let mut groups = by.groups.borrow_mut();
        if !matches!(stands_for, StandsFor::Written(_))
            && let Some(at) = groups.keys.iter().position(|key| key.value.expr == value.expr)
        {
            return Ok(at);
        }
        groups.steps.append(&mut steps);
        let name = match &value.expr {
            // Sets leave keys out, whose fields are then NULL.
            Expr::Field(name) if !by.several => name.clone(),
            _ => self.fields.fresh(&expr.to_string(), value.atom.clone()),
        };
        groups.keys.push(GroupKey { name, value, stands_for });
        Ok(groups.keys.len() - 1)
    }

    /// The value of an item that is no expression as written: a column that * stands for.
    fn item_value(&mut self, item: &Item<'_>, scope: &Scope<'_>) -> Result<Option<Typed>> {
        let list =
            self.list(std::slice::from_ref(item), scope, &mut Vec::new(), &mut Vec::new())?;
        Ok(list.into_iter().next().map(|(_, value)| value))
    }

    /// All items without calls of aggregate functions are keys.
    fn group_by_all(&mut self, by: By<'_>) -> Result<()> {
        for item in by.items {
            let value = match item.expr {
                Some(expr) if self.holds_aggregate(expr) => continue,
                Some(_) => None,
                None => self.item_value(item, by.scope)?,
            };
            let nothing = Ast::value(sqlparser::ast::Value::Null);
            self.add_key(item.expr.unwrap_or(&nothing), value, by)?;
        }
        Ok(())
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
