//! `COLUMNS(…)`: an expression for each of several columns, as in DuckDB.
//!
//! The argument is `*`, possibly with options, a regular expression, a list of names, or a lambda
//! over names. An item of the SELECT list or of ORDER BY stands for one item per column; a conjunct
//! of WHERE stands for the conjunction over all columns.

use std::ops::ControlFlow;
use std::rc::Rc;

use sqlparser::ast::{
    BinaryOperator, Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    LambdaFunction, LikeSelectItem, LikeSelectKind, OrderBy, OrderByExpr, OrderByKind, Query,
    UnaryOperator, Value, Visit, VisitMut, Visitor, VisitorMut,
};
use tessera_plan::{Expr, Scalar};
use tessera_types::{Error, Result, SqlState};

use super::cte::Env;
use super::list::{is_called, shown_name};
use super::scope::{Column, Scope, matches, of_one_table, unknown_column};
use super::subquery::conjuncts;
use super::typed::TypedExpr;
use super::{Binder, Place, normalized, unsupported_at, with_span};

/// A column that COLUMNS stands for.
struct Selected {
    name: Rc<str>,
    column: Ast,
}

/// What selects columns by their names.
enum Choice {
    Pattern(String),
    Names(Vec<String>),
}

impl Binder<'_> {
    /// Returns the expressions that one with COLUMNS stands for, with their names.
    pub(super) fn expanded_columns(
        &mut self,
        expr: &Ast,
        alias: Option<&Ident>,
        scope: &Scope<'_>,
    ) -> Result<Vec<(Rc<str>, Ast)>> {
        let Some(call) = columns_call(expr) else {
            return Ok(vec![(shown_name(expr).into(), expr.clone())]);
        };
        let (selected, pattern) =
            self.selected(&call, scope).map_err(|error| with_span(error, &call))?;
        let mut expressions = Vec::with_capacity(selected.len());
        for Selected { name, column } in selected {
            let mut expr = expr.clone();
            let mut filling = Filling { call: &call, column: &column, depth: 0 };
            if let ControlFlow::Break(error) = VisitMut::visit(&mut expr, &mut filling) {
                return Err(error);
            }
            let name = match alias {
                Some(alias) => self.filled_alias(&normalized(alias), &name, pattern.as_deref())?,
                None => name,
            };
            expressions.push((name, expr));
        }
        Ok(expressions)
    }

    /// Returns a predicate without COLUMNS; `None` if it has none.
    pub(super) fn without_columns(
        &mut self,
        predicate: &Ast,
        scope: &Scope<'_>,
    ) -> Result<Option<Ast>> {
        if columns_call(predicate).is_none() {
            return Ok(None);
        }
        let mut all: Vec<Ast> = Vec::new();
        for conjunct in conjuncts(predicate) {
            let each = self.expanded_columns(conjunct, None, scope)?;
            all.extend(each.into_iter().map(|(_, expr)| Ast::Nested(Box::new(expr))));
        }
        let and = |left, right| Ast::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(right),
        };
        Ok(all.into_iter().reduce(and))
    }

    /// Returns a list of values in which `*COLUMNS(…)` became one value per column; `None` if it
    /// has none.
    pub(super) fn unpacked_list(
        &mut self,
        list: &[Ast],
        scope: &Scope<'_>,
    ) -> Result<Option<Vec<Ast>>> {
        if !list.iter().any(|item| unpacked(item).is_some()) {
            return Ok(None);
        }
        let mut all = Vec::new();
        for item in list {
            match unpacked(item) {
                Some(inner) => {
                    let each = self.expanded_columns(inner, None, scope)?;
                    all.extend(each.into_iter().map(|(_, expr)| expr));
                }
                None => all.push(item.clone()),
            }
        }
        Ok(Some(all))
    }

    /// Returns a call in which `*COLUMNS(…)` became one argument per column; `None` if it has none.
    pub(super) fn unpacked_call(
        &mut self,
        function: &Function,
        scope: &Scope<'_>,
    ) -> Result<Option<Function>> {
        let FunctionArguments::List(list) = &function.args else { return Ok(None) };
        let plain = |arg: &FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        };
        let Some(args) = list.args.iter().map(plain).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let Some(args) = self.unpacked_list(&args, scope)? else { return Ok(None) };
        let mut call = function.clone();
        if let FunctionArguments::List(list) = &mut call.args {
            let arg = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
            list.args = args.into_iter().map(arg).collect();
        }
        Ok(Some(call))
    }

    /// Returns whether the name of a column matches a pattern after `*`.
    pub(super) fn is_like(&mut self, name: &str, like: &LikeSelectItem) -> Result<bool> {
        let text = |text: &str| {
            let value = Value::SingleQuotedString(text.to_string());
            Box::new(Ast::Value(value.with_empty_span()))
        };
        let (negated, expr, pattern) = (like.negated, text(name), text(&like.pattern));
        let (any, escape_char) = (false, None);
        let test = match like.kind {
            LikeSelectKind::Like => Ast::Like { negated, any, expr, pattern, escape_char },
            LikeSelectKind::ILike => Ast::ILike { negated, any, expr, pattern, escape_char },
            LikeSelectKind::SimilarTo => Ast::SimilarTo { negated, expr, pattern, escape_char },
            LikeSelectKind::Glob => {
                let right = text(&super::pattern::regex_of_glob(&like.pattern));
                let op = match negated {
                    true => BinaryOperator::PGRegexNotMatch,
                    false => BinaryOperator::PGRegexMatch,
                };
                Ast::BinaryOp { left: expr, op, right }
            }
        };
        Ok(matches!(self.constant_of(&test)?, Expr::Constant(Scalar::Boolean(true), _)))
    }

    /// Returns ORDER BY without COLUMNS; `None` if it has none.
    pub(super) fn order_without_columns(
        &mut self,
        order_by: &OrderBy,
        scope: &Scope<'_>,
    ) -> Result<Option<OrderBy>> {
        let OrderByKind::Expressions(keys) = &order_by.kind else { return Ok(None) };
        if !keys.iter().any(|key| columns_call(&key.expr).is_some()) {
            return Ok(None);
        }
        let mut all = Vec::new();
        for key in keys {
            if columns_call(&key.expr).is_none() {
                all.push(key.clone());
                continue;
            }
            let each = self.expanded_columns(&key.expr, None, scope)?;
            all.extend(each.into_iter().map(|(_, expr)| OrderByExpr { expr, ..key.clone() }));
        }
        let kind = OrderByKind::Expressions(all);
        Ok(Some(OrderBy { kind, interpolate: order_by.interpolate.clone() }))
    }

    /// Returns the columns of a call, and its regular expression if it has one.
    fn selected(
        &mut self,
        call: &Function,
        scope: &Scope<'_>,
    ) -> Result<(Vec<Selected>, Option<String>)> {
        let visible: Vec<Column> = scope.visible().cloned().collect();
        let plain = |columns: &[Column]| columns.iter().map(selected).collect::<Vec<_>>();
        let columns = match argument(call)? {
            FunctionArgExpr::Wildcard => plain(&visible),
            FunctionArgExpr::QualifiedWildcard(name) => {
                let columns = self.wildcard_columns(name, scope)?;
                plain(&columns)
            }
            FunctionArgExpr::WildcardWithOptions(options) => {
                let mut items = Vec::new();
                self.wildcard(visible.clone(), options, &mut items)?;
                let column = |value: Option<&TypedExpr>| {
                    let is = |column: &&Column| match value.map(|value| &value.expr) {
                        Some(Expr::Field(field)) => column.field == *field,
                        _ => false,
                    };
                    visible.iter().find(is).map(|column| selected(column).column)
                };
                let selected = items.iter().filter_map(|item| {
                    let column = item.expr().cloned().or_else(|| column(item.known()))?;
                    Some(Selected { name: item.name.clone(), column })
                });
                selected.collect()
            }
            FunctionArgExpr::Expr(Ast::Lambda(lambda)) => {
                let mut columns = Vec::new();
                for column in &visible {
                    if self.accepts_name(lambda, &column.name)? {
                        columns.push(selected(column));
                    }
                }
                columns
            }
            FunctionArgExpr::Expr(expr) => match self.choice_of_columns(expr)? {
                Choice::Names(names) => {
                    let names: Vec<Ident> = names.into_iter().map(Ident::new).collect();
                    let is = |name: &Ident, column: &Column| matches(name, &column.name, false);
                    for name in &names {
                        if !visible.iter().any(|column| is(name, column)) {
                            return Err(unknown_column(name, &of_one_table(&visible), &visible));
                        }
                    }
                    // As in DuckDB, the columns stand in the order of the table.
                    let named = |column: &&Column| names.iter().any(|name| is(name, column));
                    visible.iter().filter(named).map(selected).collect()
                }
                Choice::Pattern(pattern) => {
                    let mut columns = Vec::new();
                    for column in &visible {
                        let name = TypedExpr::text(&column.name);
                        let test = self.call("regex", vec![name, TypedExpr::text(&pattern)])?;
                        match self.evaluated(test)?.expr {
                            Expr::Constant(Scalar::Boolean(true), _) => {
                                columns.push(selected(column));
                            }
                            Expr::Constant(..) => {}
                            _ => {
                                let message =
                                    format!("'{pattern}' in COLUMNS is not a regular expression");
                                return Err(Error::semantic(message)
                                    .with_state(SqlState::INVALID_PARAMETER_VALUE));
                            }
                        }
                    }
                    return match columns.is_empty() {
                        true => Err(none_selected(&visible)),
                        false => Ok((columns, Some(pattern))),
                    };
                }
            },
        };
        match columns.is_empty() {
            true => Err(none_selected(&visible)),
            false => Ok((columns, None)),
        }
    }

    /// Evaluates an argument that is a regular expression or a list of names.
    fn choice_of_columns(&mut self, expr: &Ast) -> Result<Choice> {
        let value = match self.constant_of(expr)? {
            Expr::Constant(value, _) => value,
            _ => Scalar::Null,
        };
        match value {
            Scalar::String(pattern) => Ok(Choice::Pattern(pattern.to_string())),
            Scalar::Nested(items) => {
                let name = |item: &Scalar| match item {
                    Scalar::String(name) => Some(name.to_string()),
                    _ => None,
                };
                items.iter().map(name).collect::<Option<_>>().map(Choice::Names).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }

    fn constant_of(&mut self, expr: &Ast) -> Result<Expr> {
        let scope = Scope::empty(None, Env::default());
        let mut steps = Vec::new();
        let place =
            &mut Place { scope: &scope, steps: &mut steps, clause: "COLUMNS", unnests: None };
        let value = self.expr(expr, place)?;
        Ok(self.evaluated(value)?.expr)
    }

    /// Returns whether a lambda is true for the name of a column.
    fn accepts_name(&mut self, lambda: &LambdaFunction, name: &str) -> Result<bool> {
        let [parameter] = &super::lambda::parameters(lambda)[..] else {
            let message = "the lambda of COLUMNS takes one parameter, the name of a column";
            return Err(Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION));
        };
        let mut body = (*lambda.body).clone();
        let _ = VisitMut::visit(&mut body, &mut Naming { parameter, name });
        match self.constant_of(&body)? {
            Expr::Constant(Scalar::Boolean(accepts), _) => Ok(accepts),
            Expr::Constant(Scalar::Null, _) => Ok(false),
            _ => {
                let message = "the lambda of COLUMNS must return a boolean";
                Err(Error::semantic(message).with_state(SqlState::DATATYPE_MISMATCH))
            }
        }
    }

    /// Fills `\1`, `\2`, … in an alias with what the groups of the regular expression matched.
    fn filled_alias(&self, alias: &str, name: &str, pattern: Option<&str>) -> Result<Rc<str>> {
        let Some(pattern) = pattern.filter(|_| alias.contains('\\')) else {
            return Ok(alias.into());
        };
        let mut filled = alias.to_string();
        for group in 0..=9 {
            let written = format!("\\{group}");
            if !filled.contains(&written) {
                continue;
            }
            let args =
                vec![TypedExpr::text(name), TypedExpr::text(pattern), TypedExpr::int32(group)];
            let part = self.function_call("regexp_extract", args)?;
            let text = match self.evaluated(part)?.expr {
                Expr::Constant(Scalar::String(text), _) => text.to_string(),
                _ => String::new(),
            };
            filled = filled.replace(&written, &text);
        }
        Ok(filled.into())
    }
}

fn selected(column: &Column) -> Selected {
    let quoted = |name: &str| Ident::with_quote('"', name);
    let parts = column.table.iter().map(|part| quoted(part)).chain([quoted(&column.name)]);
    let parts: Vec<Ident> = parts.collect();
    let written = match parts.len() {
        1 => Ast::Identifier(quoted(&column.name)),
        _ => Ast::CompoundIdentifier(parts),
    };
    Selected { name: (*column.name).into(), column: written }
}

fn argument(call: &Function) -> Result<&FunctionArgExpr> {
    match &call.args {
        FunctionArguments::List(list) if list.clauses.is_empty() => match &list.args[..] {
            [FunctionArg::Unnamed(argument)] => Ok(argument),
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

fn wrong() -> Error {
    let message =
        "COLUMNS takes *, a regular expression as text, a list of names, or a lambda over names";
    Error::semantic(message).with_state(SqlState::UNDEFINED_FUNCTION)
}

pub(super) fn none_selected(columns: &[Column]) -> Error {
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    let known = match names.is_empty() {
        true => "no columns can be read here".to_string(),
        false => format!("columns are {}", names.join(", ")),
    };
    let message = format!("no column is selected; {known}");
    Error::semantic(message).with_state(SqlState::UNDEFINED_COLUMN)
}

/// Returns the first call of COLUMNS in an expression, outside of subqueries.
pub(super) fn columns_call(expr: &Ast) -> Option<Function> {
    match expr.visit(&mut Calls { depth: 0 }) {
        ControlFlow::Break(call) => Some(call),
        ControlFlow::Continue(()) => None,
    }
}

fn is_columns(expr: &Ast) -> Option<&Function> {
    match expr {
        Ast::Function(function) if is_called(function, "columns") && function.over.is_none() => {
            Some(function)
        }
        _ => None,
    }
}

/// Returns the operand of `*COLUMNS(…)`, which stands for several arguments of one call.
fn unpacked(expr: &Ast) -> Option<&Ast> {
    match expr {
        Ast::UnaryOp { op: UnaryOperator::Unpack, expr } => Some(expr),
        _ => None,
    }
}

struct Calls {
    depth: usize,
}

impl Visitor for Calls {
    type Break = Function;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Function> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Function> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Ast) -> ControlFlow<Function> {
        match is_columns(expr) {
            Some(call) if self.depth == 0 => ControlFlow::Break(call.clone()),
            _ => {
                self.depth += usize::from(unpacked(expr).is_some());
                ControlFlow::Continue(())
            }
        }
    }

    fn post_visit_expr(&mut self, expr: &Ast) -> ControlFlow<Function> {
        self.depth -= usize::from(unpacked(expr).is_some());
        ControlFlow::Continue(())
    }
}

/// Puts a column in the place of each call of COLUMNS.
struct Filling<'f> {
    call: &'f Function,
    column: &'f Ast,
    depth: usize,
}

impl VisitorMut for Filling<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<Error> {
        self.depth += usize::from(unpacked(expr).is_some());
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<Error> {
        self.depth -= usize::from(unpacked(expr).is_some());
        let Some(call) = is_columns(expr) else { return ControlFlow::Continue(()) };
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        if call != self.call {
            return ControlFlow::Break(unsupported_at(
                "a second COLUMNS with another argument in one expression",
                call,
            ));
        }
        *expr = self.column.clone();
        ControlFlow::Continue(())
    }
}

/// Puts the name of a column in the place of the parameter of a lambda.
struct Naming<'n> {
    parameter: &'n Ident,
    name: &'n str,
}

impl VisitorMut for Naming<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<()> {
        if let Ast::Identifier(name) = expr
            && normalized(name) == normalized(self.parameter)
        {
            let span = name.span;
            *expr = Ast::Value(Value::SingleQuotedString(self.name.to_string()).with_span(span));
        }
        ControlFlow::Continue(())
    }
}
