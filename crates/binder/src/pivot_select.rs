//! The syntax of the SELECT that PIVOT stands for.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast::{
    BinaryOperator, Expr as Ast, ExprWithAlias, Function, Ident, ObjectNamePart, Select,
    SelectItem, SetExpr, Value, ValueWithSpan, VisitMut, VisitorMut,
};
use sqlparser::tokenizer::Span as TokenSpan;
use tessera_types::{Error, Result};

use super::pivot::{Pivot, PivotValue, check_count};
use super::scope::Column;
use super::{BoundQuery, normalized, with_span};

/// The name of the input.
pub(super) const INPUT: &str = "pivot input";

pub(super) fn add_filter(function: &mut Function, condition: Option<&Ast>) {
    let Some(condition) = condition else { return };
    function.filter = Some(Box::new(match function.filter.take() {
        None => condition.clone(),
        Some(own) => binary(Ast::Nested(own), BinaryOperator::And, condition.clone()),
    }));
}

/// Returns the SELECT without its list and keys.
pub(super) fn template() -> Result<Select> {
    let query = tessera_parser::query(&format!("SELECT count(*) FROM \"{INPUT}\""))?;
    match *query.body {
        SetExpr::Select(select) => Ok(*select),
        _ => Err(Error::internal("a SELECT that is parsed as something else")),
    }
}

/// Returns the aggregates of PIVOT; without USING, it counts rows.
pub(super) fn aggregates(pivot: &Pivot<'_>) -> Result<Vec<Ast>> {
    match pivot.aggregates {
        [] if !pivot.on.is_empty() => Ok(count_rows()?.map(|count| count.expr).to_vec()),
        aggregates => Ok(aggregates.iter().map(|aggregate| aggregate.expr.clone()).collect()),
    }
}

/// Returns the aggregates for each value, with the names of their columns. `computed` are the
/// expressions that compute them.
pub(super) fn aggregate_items(
    pivot: &Pivot<'_>,
    values: Option<&[PivotValue]>,
    computed: &[Ast],
    filtered: &mut dyn FnMut(&Ast, Option<&Ast>) -> Result<Ast>,
) -> Result<Vec<SelectItem>> {
    let count;
    let aggregates = match pivot.aggregates {
        [] => {
            count = count_rows()?;
            &count[..]
        }
        aggregates => aggregates,
    };
    let Some(values) = values else {
        let item = |(ExprWithAlias { expr, alias }, computed): (&ExprWithAlias, &Ast)| {
            let name = alias.as_ref().map_or_else(|| aggregate_name(expr), normalized);
            Ok(item(filtered(computed, None)?, &name))
        };
        return pivot.aggregates.iter().zip(computed).map(item).collect();
    };
    check_count(values.len().saturating_mul(aggregates.len()))
        .map_err(|error| with_span(error, pivot.place))?;
    let mut items = Vec::with_capacity(values.len() * aggregates.len());
    let mut seen: HashSet<&str> = HashSet::with_capacity(values.len());
    for PivotValue { name, condition } in values {
        if !seen.insert(name) {
            let message = format!("the value '{name}' is twice in IN of PIVOT");
            return Err(with_span(Error::semantic(message), pivot.place));
        }
        for (ExprWithAlias { expr, alias }, computed) in aggregates.iter().zip(computed) {
            let name = match (alias, aggregates) {
                (Some(alias), _) => format!("{name}_{}", normalized(alias)),
                (None, [_]) => name.clone(),
                (None, _) => format!("{name}_{}", aggregate_name(expr)),
            };
            items.push(item(filtered(computed, Some(condition))?, &name));
        }
    }
    Ok(items)
}

/// Returns `count(*)`, the aggregate of PIVOT without USING.
fn count_rows() -> Result<[ExprWithAlias; 1]> {
    match template()?.projection.pop() {
        Some(SelectItem::UnnamedExpr(expr)) => Ok([ExprWithAlias { expr, alias: None }]),
        _ => Err(Error::internal("count(*) that is parsed as something else")),
    }
}

/// Returns the name of an aggregate's column: its text, with the names of functions in lower case.
fn aggregate_name(expr: &Ast) -> String {
    struct LowerCase;
    impl VisitorMut for LowerCase {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<()> {
            if let Ast::Function(function) = expr {
                for part in &mut function.name.0 {
                    if let ObjectNamePart::Identifier(name) = part {
                        name.value = normalized(name);
                    }
                }
            }
            ControlFlow::Continue(())
        }
    }
    let mut lower = expr.clone();
    let _ = VisitMut::visit(&mut lower, &mut LowerCase);
    lower.to_string().replace("count(*)", "count_star()")
}

pub(super) fn item(expr: Ast, name: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) }
}

/// Returns the qualified name of a column.
pub(super) fn column_name(column: &Column) -> Ast {
    let quoted = |part: &Arc<str>| Ident::with_quote('"', &**part);
    let name = quoted(&column.name);
    match column.table.is_empty() {
        true => Ast::Identifier(name),
        false => Ast::CompoundIdentifier(column.table.iter().map(quoted).chain([name]).collect()),
    }
}

pub(super) fn input_column(name: &str) -> Ast {
    let parts = [INPUT, name].map(|part| Ident::with_quote('"', part));
    Ast::CompoundIdentifier(parts.to_vec())
}

pub(super) fn equal(column: &str, value: Ast) -> Ast {
    binary(input_column(column), BinaryOperator::Eq, value)
}

pub(super) fn binary(left: Ast, op: BinaryOperator, right: Ast) -> Ast {
    Ast::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

pub(super) fn string(text: &str) -> Ast {
    let value = Value::SingleQuotedString(text.to_string());
    Ast::Value(ValueWithSpan { value, span: TokenSpan::empty() })
}

/// Appends numbers to the names of columns that another column has, too.
pub(super) fn number_repeated(bound: &mut BoundQuery) {
    let mut used: HashSet<Arc<str>> = HashSet::new();
    for column in &mut bound.columns {
        let base = column.name.clone();
        let mut number = 0;
        while !used.insert(column.name.clone()) {
            number += 1;
            column.name = format!("{base}_{number}").into();
        }
    }
}
