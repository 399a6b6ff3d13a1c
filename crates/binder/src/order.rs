//! ORDER BY: result names, positions and expressions.

use std::rc::Rc;

use sqlparser::ast::{
    Expr as Ast, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Spanned, Value,
};
use sqlparser::tokenizer::Span as TokenSpan;
use tessera_optimizer::logical::relation::{Key, Relation};
use tessera_plan::Expr;
use tessera_types::{Code, Error, Result, SqlState};

use super::cte::Env;
use super::scope::{Column, OutputColumn, Scope, matches};
use super::steps::apply;
use super::typed::TypedExpr;
use super::{Binder, BoundQuery, Place, refuse, unsupported_at, with_span, without_parentheses};

/// A sort key.
#[derive(Debug, Clone)]
pub(crate) struct SortKey {
    pub(crate) value: TypedExpr,
    /// The position of the list item that the key refers to.
    pub(crate) item: Option<usize>,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
    pub(crate) place: TokenSpan,
}

/// Returns whether a key sorts in descending order, and whether NULLs come first.
pub(super) fn direction(options: &OrderByOptions) -> (bool, bool) {
    let descending = options.asc == Some(false);
    // NULL sorts as larger than all values.
    (descending, options.nulls_first.unwrap_or(descending))
}

impl Binder<'_> {
    /// Binds the sort keys of a SELECT. `written` holds the expressions of the list items, `known`
    /// the expressions that are bound already.
    pub(super) fn sort_keys(
        &mut self,
        order_by: &OrderBy,
        list: &[(Rc<str>, TypedExpr)],
        written: &[Option<&Ast>],
        known: &[(&Ast, &TypedExpr)],
        place: &mut Place<'_, '_>,
    ) -> Result<Vec<SortKey>> {
        let exprs = match keys_of(order_by)? {
            Keys::All(options) => return self.all_keys(list, options),
            Keys::Exprs(exprs) => exprs,
        };
        let mut keys = Vec::with_capacity(exprs.len());
        for OrderByExpr { expr, options, with_fill } in exprs {
            refuse(with_fill.is_some(), "WITH FILL", expr)?;
            let named = match position(expr, list.len(), "ORDER BY")? {
                Some(at) => Some(at),
                None => by_name(expr, list)?,
            };
            // A key with the syntax tree of an item is that item, even if the item is volatile.
            let item = named.or_else(|| written.iter().position(|item| *item == Some(expr)));
            let known =
                known.iter().find(|(known, _)| *known == expr).map(|(_, value)| (*value).clone());
            let value = match item.and_then(|at| list.get(at)) {
                Some((_, value)) => value.clone(),
                None => match known {
                    Some(value) => value,
                    None => self.expr(expr, place)?,
                },
            };
            let (descending, nulls_first) = direction(options);
            let (value, is_collated) = self.sort_key(value.known())?;
            keys.push(SortKey {
                value,
                item: item.filter(|_| !is_collated),
                descending,
                nulls_first,
                place: expr.span(),
            });
        }
        Ok(keys)
    }

    /// Returns the sort keys of ORDER BY ALL.
    fn all_keys(
        &self,
        list: &[(Rc<str>, TypedExpr)],
        options: &OrderByOptions,
    ) -> Result<Vec<SortKey>> {
        let (descending, nulls_first) = direction(options);
        let mut keys = Vec::with_capacity(list.len());
        for (at, (_, value)) in list.iter().enumerate() {
            let (value, is_collated) = self.sort_key(value.clone())?;
            let item = (!is_collated).then_some(at);
            let place = TokenSpan::empty();
            keys.push(SortKey { value, item, descending, nulls_first, place });
        }
        Ok(keys)
    }

    /// Sorts a query other than a SELECT by the names of its columns.
    pub(super) fn sorted_by_name(
        &mut self,
        bound: BoundQuery,
        order_by: &OrderBy,
        outer: Option<&Scope<'_>>,
        env: &Env,
    ) -> Result<BoundQuery> {
        let BoundQuery { mut relation, columns } = bound;
        let list: Vec<(Rc<str>, TypedExpr)> = columns
            .iter()
            .map(|column| {
                let value = TypedExpr::new(Expr::Field(column.field.clone()), column.atom.clone());
                ((*column.name).into(), value)
            })
            .collect();
        let mut scope = Scope::empty(outer, env.clone());
        scope.columns = Rc::new(columns.iter().map(as_column).collect());
        let mut steps = Vec::new();
        let place =
            &mut Place { scope: &scope, steps: &mut steps, clause: "ORDER BY", unnests: None };
        let keys = self.sort_keys(order_by, &list, &[], &[], place)?;
        relation = apply(relation, steps);
        let mut sorted = Vec::with_capacity(keys.len());
        for key in keys {
            let expr = self.finished(key.value)?.expr;
            if !matches!(expr, Expr::Constant(..)) {
                sorted.push(Key { expr, descending: key.descending, nulls_first: key.nulls_first });
            }
        }
        if !sorted.is_empty() {
            relation =
                Relation::Sort { input: Box::new(relation), keys: sorted, offset: 0, limit: None };
        }
        Ok(BoundQuery { relation, columns })
    }
}

/// Converts a result column to a readable column.
fn as_column(output: &OutputColumn) -> Column {
    Column {
        table: Rc::new([]),
        name: output.name.clone(),
        field: output.field.clone(),
        atom: output.atom.clone(),
        hidden: false,
        pseudo: false,
        extended: false,
    }
}

enum Keys<'q> {
    All(&'q OrderByOptions),
    Exprs(&'q [OrderByExpr]),
}

fn keys_of(order_by: &OrderBy) -> Result<Keys<'_>> {
    let OrderBy { kind, interpolate } = order_by;
    match (interpolate, kind) {
        (Some(_), _) => Err(unsupported_at("INTERPOLATE", order_by)),
        (None, OrderByKind::All(options)) => Ok(Keys::All(options)),
        (None, OrderByKind::Expressions(exprs)) => Ok(Keys::Exprs(exprs)),
    }
}

/// Returns the position of the result that a plain name refers to; `None` for other expressions.
fn by_name(expr: &Ast, list: &[(Rc<str>, TypedExpr)]) -> Result<Option<usize>> {
    let Ast::Identifier(name) = expr else { return Ok(None) };
    for exact in [true, false] {
        let found = list.iter().enumerate().filter(|(_, (known, _))| matches(name, known, exact));
        let found: Vec<(usize, &TypedExpr)> = found.map(|(at, (_, value))| (at, value)).collect();
        match found[..] {
            [] => {}
            [(at, first), ref rest @ ..]
                if rest.iter().all(|(_, other)| other.expr == first.expr) =>
            {
                return Ok(Some(at));
            }
            [..] => {
                let message =
                    format!("ORDER BY {} is ambiguous: several results have this name", name.value);
                let error = Error::semantic(message).with_state(SqlState::AMBIGUOUS_COLUMN);
                return Err(with_span(error, name.span));
            }
        }
    }
    Ok(None)
}

/// Returns the zero-based position that an integer literal refers to; `None` for expressions that
/// are not literals.
pub(super) fn position(expr: &Ast, count: usize, clause: &str) -> Result<Option<usize>> {
    let expr = without_parentheses(expr);
    let (number, negative, place) = match expr {
        Ast::Value(value) => match &value.value {
            Value::Number(number, _) => (number, false, value.span),
            Value::SingleQuotedString(_) | Value::Boolean(_) | Value::Null => {
                let error = Error::new(
                    Code::Syntax,
                    format!("a constant in {clause} must be a column position"),
                );
                return Err(with_span(error, value.span));
            }
            _ => return Ok(None),
        },
        Ast::UnaryOp { op: sqlparser::ast::UnaryOperator::Minus, expr: inner } => match &**inner {
            Ast::Value(value) => match &value.value {
                Value::Number(number, _) => (number, true, expr.span()),
                _ => return Ok(None),
            },
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Ok(number) = number.parse::<usize>() else {
        let error =
            Error::new(Code::Syntax, format!("a constant in {clause} must be a column position"));
        return Err(with_span(error, place));
    };
    match number.checked_sub(1).filter(|at| *at < count && !negative) {
        Some(at) => Ok(Some(at)),
        None => {
            let sign = if negative { "-" } else { "" };
            let message = format!(
                "position {sign}{number} in {clause} is out of range; the SELECT list has {count} columns"
            );
            let error = Error::semantic(message).with_state(SqlState::INVALID_COLUMN_REFERENCE);
            Err(with_span(error, place))
        }
    }
}
