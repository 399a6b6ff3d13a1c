//! GROUP BY: keys, grouping sets, and calls of aggregate functions.
//!
//! All expressions are bound over the columns of FROM first: keys, aggregate arguments and the
//! rest. `grouped` rewrites the rest over the fields of the groups.

use std::cell::RefCell;
use std::collections::HashSet;

use sqlparser::ast::{
    Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select,
    Spanned,
};
use tessera_optimizer::logical::relation::{Call, Name};
use tessera_plan::Expr;
use tessera_types::{Atom, Code, Error, Result};

use super::collation::Collation;
use super::list::{Item, is_called};
use super::order::position;
use super::scope::{Scope, matches};
use super::steps::Step;
use super::typed::TypedExpr;
use super::{Binder, Place, with_span, without_parentheses};

/// The maximum number of grouping sets of one GROUP BY.
const GROUPING_SETS_MAX: usize = 4096;

/// The grouping keys of a query, and the aggregates computed for each group.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(super) keys: Vec<GroupKey>,
    /// The key positions of each grouping set; `None` for a plain GROUP BY.
    pub(super) sets: Option<Vec<Vec<usize>>>,
    pub(super) calls: Vec<(Name, Call)>,
    /// Calls of `grouping` and their arguments.
    pub(super) groupings: Vec<(Name, Vec<Expr>)>,
    /// Steps that precede the grouping.
    pub(super) steps: Vec<Step>,
}

/// A key of GROUP BY.
#[derive(Debug)]
pub(super) struct GroupKey {
    /// The key's field in the grouped relation.
    pub(super) name: Name,
    pub(super) value: TypedExpr,
    pub(super) matching: KeyMatch,
    /// The item of the SELECT list that a key of grouping sets stands for.
    pub(super) item: Option<usize>,
    /// For a text whose collation joins several texts: what is grouped instead, in its own field.
    pub(super) collated: Option<(Name, TypedExpr)>,
}

/// The expressions over groups that a key replaces.
#[derive(Debug)]
pub(super) enum KeyMatch {
    /// Expressions with the key's value.
    Value,
    /// Expressions with the same syntax tree: the value is volatile, a subquery or a computed
    /// constant.
    Syntax(Box<Ast>),
    /// No expressions: a literal has the same value in every group.
    Never,
}

impl Groups {
    /// Returns whether a SELECT needs grouping.
    pub(super) fn are_wanted(&self, select: &Select) -> bool {
        let group_by = match &select.group_by {
            GroupByExpr::All(_) => !self.keys.is_empty(),
            GroupByExpr::Expressions(exprs, _) => !exprs.is_empty(),
        };
        group_by || select.having.is_some() || !self.calls.is_empty() || !self.groupings.is_empty()
    }

    /// Returns the items of the SELECT list that keys stand for, and the fields of those keys.
    pub(super) fn item_keys(&self) -> Vec<(usize, Name)> {
        self.keys.iter().filter_map(|key| Some((key.item?, key.name.clone()))).collect()
    }

    /// Returns the key with the same syntax tree as an expression.
    pub(super) fn syntactic_key(&self, expr: &Ast) -> Option<TypedExpr> {
        let key = self.keys.iter().find(|key| key.matches_syntax(expr))?;
        Some(TypedExpr::new(Expr::Field(key.name.clone()), key.value.atom.clone()))
    }

    /// Returns the field of an aggregate call, reusing the field of an equal call.
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

    /// Adds a call of `grouping`.
    pub(super) fn grouping(&mut self, args: Vec<Expr>, name: Name) {
        self.groupings.push((name, args));
    }
}

impl GroupKey {
    fn matches_syntax(&self, expr: &Ast) -> bool {
        matches!(&self.matching, KeyMatch::Syntax(written) if **written == *expr)
    }
}

/// Returns whether an expression is a literal, possibly with a type or a sign.
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

/// The context in which GROUP BY is bound.
#[derive(Clone, Copy)]
struct GroupByContext<'b> {
    items: &'b [Item<'b>],
    scope: &'b Scope<'b>,
    groups: &'b RefCell<Groups>,
    /// Whether GROUP BY has grouping sets.
    several: bool,
}

/// The grouping sets of one GROUP BY element, as positions of keys.
type GroupingSets = Vec<Vec<usize>>;

impl Binder<'_> {
    /// Binds GROUP BY and adds its keys to `groups`. `late` says which items read results that are
    /// computed after the groups.
    pub(super) fn group_keys(
        &mut self,
        group_by: &GroupByExpr,
        (items, late): (&[Item<'_>], &[bool]),
        scope: &Scope<'_>,
        groups: &RefCell<Groups>,
    ) -> Result<()> {
        let exprs = match group_by {
            GroupByExpr::Expressions(exprs, _) => exprs,
            GroupByExpr::All(_) => {
                let context = GroupByContext { items, scope, groups, several: false };
                return self.group_by_all(context, late);
            }
        };
        let is_set =
            |expr: &Ast| matches!(expr, Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_));
        let several = exprs.iter().any(is_set);
        let context = GroupByContext { items, scope, groups, several };
        let mut sets: GroupingSets = vec![Vec::new()];
        for expr in exprs {
            let element = match expr {
                Ast::Tuple(list) if list.is_empty() => continue,
                _ => self.element(expr, context)?,
            };
            if sets.len() * element.len() > GROUPING_SETS_MAX {
                let message = format!("GROUP BY has more than {GROUPING_SETS_MAX} grouping sets");
                return Err(with_span(Error::new(Code::Limit, message), expr.span()));
            }
            // The cross product of the elements' grouping sets.
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

    fn element(&mut self, expr: &Ast, context: GroupByContext<'_>) -> Result<GroupingSets> {
        let lists = match expr {
            Ast::Rollup(lists) | Ast::Cube(lists) => {
                lists.iter().map(|list| self.keys(list, context)).collect::<Result<Vec<_>>>()?
            }
            Ast::GroupingSets(lists) => {
                let mut sets = Vec::new();
                for list in lists {
                    if let [Ast::Function(function)] = list.as_slice()
                        && let Some(inner) = nested_sets(function)
                    {
                        sets.extend(self.element(&inner, context)?);
                        continue;
                    }
                    match list.as_slice() {
                        [inner @ (Ast::GroupingSets(_) | Ast::Cube(_) | Ast::Rollup(_))] => {
                            sets.extend(self.element(inner, context)?);
                        }
                        [Ast::Tuple(list)] => sets.push(self.keys(list, context)?),
                        list => sets.push(self.keys(list, context)?),
                    }
                }
                return Ok(sets);
            }
            Ast::Tuple(list) => return Ok(vec![self.keys(list, context)?]),
            single => return Ok(vec![vec![self.group_key(single, context)?]]),
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
                    let message = "CUBE has more than 12 elements";
                    return Err(with_span(Error::new(Code::Limit, message), expr.span()));
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

    fn keys(&mut self, exprs: &[Ast], context: GroupByContext<'_>) -> Result<Vec<usize>> {
        exprs.iter().map(|expr| self.group_key(expr, context)).collect()
    }

    /// Returns the position of a key, adding it unless an equal key exists.
    fn group_key(&mut self, expr: &Ast, context: GroupByContext<'_>) -> Result<usize> {
        let inner = without_parentheses(expr);
        let written = match position(inner, context.items.len(), "GROUP BY")? {
            Some(at) => Some(at),
            None => match inner {
                // A column takes precedence over a result alias.
                Ast::Identifier(name) if !context.scope.has(name) => {
                    let called = |exact| {
                        context.items.iter().position(move |item| {
                            item.has_alias && matches(name, &item.name, exact)
                        })
                    };
                    called(true).or_else(|| called(false))
                }
                _ => None,
            },
        };
        // With grouping sets, an item is NULL where its own key is left out: each item has a key of
        // its own, whatever its value.
        let item = written.filter(|_| context.several).or_else(|| {
            let is_same = |item: &Item<'_>| item.expr() == Some(inner);
            context.several.then(|| context.items.iter().position(is_same)).flatten()
        });
        let written = written.and_then(|at| context.items.get(at));
        let value = match written {
            Some(item) => item.known().cloned(),
            None => None,
        };
        let expr = written.and_then(|item| item.expr()).unwrap_or(inner);
        self.add_key(expr, value, item, context)
    }

    fn add_key(
        &mut self,
        expr: &Ast,
        value: Option<TypedExpr>,
        item: Option<usize>,
        context: GroupByContext<'_>,
    ) -> Result<usize> {
        if item.is_some()
            && let Some(at) = context.groups.borrow().keys.iter().position(|key| key.item == item)
        {
            return Ok(at);
        }
        let mut steps = Vec::new();
        let is_literal = value.is_none() && is_literal(expr);
        let value = match value {
            Some(value) => value,
            None => {
                if item.is_none()
                    && let Some(at) =
                        context.groups.borrow().keys.iter().position(|key| key.matches_syntax(expr))
                {
                    return Ok(at);
                }
                let place = &mut Place {
                    scope: context.scope,
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
        let matching = match () {
            () if is_literal => KeyMatch::Never,
            () if !steps.is_empty() || volatile || constant => {
                KeyMatch::Syntax(Box::new(expr.clone()))
            }
            () => KeyMatch::Value,
        };
        let mut groups = context.groups.borrow_mut();
        if item.is_none()
            && !matches!(matching, KeyMatch::Syntax(_))
            && let Some(at) = groups.keys.iter().position(|key| key.value.expr == value.expr)
        {
            return Ok(at);
        }
        groups.steps.append(&mut steps);
        let collation = self.text_collation(&value)?;
        let collated = match collation.filter(Collation::joins_texts) {
            Some(collation) => {
                let key = self.equal_key(value.clone(), &collation)?;
                Some((self.fields.fresh("key", Atom::String), key))
            }
            None => None,
        };
        let name = match &value.expr {
            // With grouping sets, a key needs a field of its own, which is NULL where a set omits
            // it.
            Expr::Field(name) if !context.several && collated.is_none() => name.clone(),
            _ => self.fields.fresh(&expr.to_string(), value.atom.clone()),
        };
        self.keep_collation(&name, [&value.expr])?;
        groups.keys.push(GroupKey { name, value, matching, item, collated });
        Ok(groups.keys.len() - 1)
    }

    /// Binds GROUP BY ALL: items become keys that neither call aggregate and window functions nor
    /// read their results (`late`).
    fn group_by_all(&mut self, context: GroupByContext<'_>, late: &[bool]) -> Result<()> {
        for (item, late) in context.items.iter().zip(late) {
            if *late || item.expr().is_some_and(|expr| self.aggregates_in(expr, 0) > 0) {
                continue;
            }
            let nothing = Ast::value(sqlparser::ast::Value::Null);
            let value = item.known().cloned();
            self.add_key(item.expr().unwrap_or(&nothing), value, None, context)?;
        }
        Ok(())
    }
}

/// Recognizes ROLLUP or CUBE inside GROUPING SETS, which the parser returns as a function call.
fn nested_sets(function: &Function) -> Option<Ast> {
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
