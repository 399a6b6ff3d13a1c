//! Refusing what the planner would ignore.
//!
//! DataFusion's planner skips some fields of the syntax tree without a word. Every field of a query, a SELECT and a table
//! factor is looked at here: it is planned, or it is an error that names the construct and its place.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{
    CastKind, Cte, Distinct, DuplicateTreatment, ExcludeSelectItem, Expr, Fetch, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, GroupByExpr, GroupByWithModifier, Ident, JoinConstraint,
    JoinOperator, LimitClause, ObjectName, ObjectNamePart, OrderBy, OrderByKind, Query, Select, SelectFlavor,
    SelectItem, SetExpr, SetOperator, SetQuantifier, Spanned, TableAlias, TableFactor, TableWithJoins, Value,
    VisitMut, VisitorMut, WildcardAdditionalOptions, visit_relations,
};
use sqlparser::tokenizer::Span as Tokens;
use tessera_types::{Code, Error, Result, Span};

use crate::file_functions;
use crate::own_functions::OWN;
use crate::standard::STANDARD;
use crate::table_functions;

/// Between a column's name and the number that keeps a second column of that name apart.
const REPEATED: char = '\u{1}';

/// The query with what the planner can take as it is.
///
/// # Errors
/// A construct that is not offered, with its place.
pub(crate) fn query(query: Box<Query>, names: Names) -> Result<Box<Query>> {
    visited(query, &mut Check { names })
}

/// The query as a visitor has left it.
///
/// # Errors
/// The visitor's.
pub(crate) fn visited(
    mut query: Box<Query>,
    visitor: &mut impl VisitorMut<Break = Error>,
) -> Result<Box<Query>> {
    match VisitMut::visit(&mut query, visitor) {
        ControlFlow::Continue(()) => Ok(query),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Which columns of a SELECT get a name that no other has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// Those that are written like one before them.
    Repeated,
    /// All that have none of their own: the planner names some expressions alike though they are written differently.
    All,
}

/// A column's name as people should see it.
pub(crate) fn shown_name(name: &str) -> &str {
    name.split(REPEATED).next().unwrap_or(name)
}

/// The names a query's columns are shown under, as far as the text tells: `None` for a wildcard.
pub(crate) fn headers(query: &Query) -> Vec<Option<String>> {
    let mut body = &*query.body;
    loop {
        match body {
            SetExpr::Query(inner) => body = &inner.body,
            SetExpr::SetOperation { left, .. } => body = left,
            SetExpr::Select(select) => return select.projection.iter().map(header).collect(),
            _ => return vec![None],
        }
    }
}

fn header(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(normalised(alias)),
        SelectItem::UnnamedExpr(expr) => Some(match expr {
            Expr::Identifier(name) => normalised(name),
            Expr::CompoundIdentifier(parts) => parts.last().map_or_else(|| expr.to_string(), normalised),
            // An unnested struct gives several columns; the planner names them.
            Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("unnest") => {
                return None;
            }
            other => other.to_string(),
        }),
        _ => None,
    }
}

/// A name as it is looked up.
pub(crate) fn normalised(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

pub(crate) type Flow = ControlFlow<Error>;

struct Check {
    names: Names,
}

pub(crate) fn refuse(condition: bool, construct: &str, place: Tokens) -> Flow {
    if !condition {
        return ControlFlow::Continue(());
    }
    let error = Error::unsupported(format!("{construct} is not supported"));
    ControlFlow::Break(placed(error, place))
}

fn placed(error: Error, place: Tokens) -> Error {
    let start = place.start;
    match start.line {
        0 => error,
        line => error.at(Span { line: line as u32, column: start.column as u32 }),
    }
}

impl VisitorMut for Check {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        let place = query.span();
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        refuse(!locks.is_empty(), "FOR UPDATE or FOR SHARE", place)?;
        refuse(for_clause.is_some(), "FOR XML, FOR JSON or FOR BROWSE", place)?;
        refuse(settings.is_some(), "SETTINGS", place)?;
        refuse(format_clause.is_some(), "FORMAT", place)?;
        refuse(!pipe_operators.is_empty(), "the pipe operator |>", place)?;
        for cte in with.iter().flat_map(|with| &with.cte_tables) {
            refuse(cte.from.is_some(), "FROM after a common table expression", cte.alias.name.span)?;
        }
        if let Some(with) = with.as_mut().filter(|with| with.recursive) {
            with.cte_tables.iter_mut().try_for_each(check_recursive)?;
        }
        if let Some(order_by) = order_by {
            check_order(order_by, place)?;
            order_distinct_on(order_by, body);
        }
        if let Some(LimitClause::LimitOffset { limit_by, .. }) = limit_clause {
            refuse(!limit_by.is_empty(), "LIMIT BY", place)?;
        }
        if let Some(Fetch { with_ties, percent, quantity }) = fetch.take() {
            refuse(with_ties, "FETCH … WITH TIES", place)?;
            refuse(percent, "FETCH … PERCENT", place)?;
            let one = || Expr::value(Value::Number("1".to_string(), false));
            let wanted = Some(quantity.unwrap_or_else(one));
            match limit_clause {
                None => {
                    *limit_clause =
                        Some(LimitClause::LimitOffset { limit: wanted, offset: None, limit_by: Vec::new() });
                }
                Some(LimitClause::LimitOffset { limit, .. }) if limit.is_none() => *limit = wanted,
                Some(_) => refuse(true, "FETCH beside LIMIT", place)?,
            }
        }
        check_body(body)
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        let place = select.select_token.0.span;
        let Select {
            select_token: _,
            optimizer_hints: _,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection: _,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having: _,
            named_window: _,
            qualify: _,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        refuse(matches!(flavor, SelectFlavor::FromFirstNoSelect), "FROM without SELECT here", place)?;
        refuse(select_modifiers.is_some(), "a SELECT modifier of MySQL", place)?;
        refuse(top.is_some(), "TOP", place)?;
        refuse(exclude.is_some(), "EXCLUDE after the select list", place)?;
        refuse(into.is_some(), "SELECT INTO", place)?;
        refuse(!lateral_views.is_empty(), "LATERAL VIEW", place)?;
        refuse(prewhere.is_some(), "PREWHERE", place)?;
        refuse(!connect_by.is_empty(), "CONNECT BY", place)?;
        refuse(!cluster_by.is_empty(), "CLUSTER BY", place)?;
        refuse(!distribute_by.is_empty(), "DISTRIBUTE BY", place)?;
        refuse(!sort_by.is_empty(), "SORT BY", place)?;
        refuse(value_table_mode.is_some(), "SELECT AS STRUCT or AS VALUE", place)?;
        check_group_by(group_by, place)?;
        for item in projection.iter_mut() {
            match item {
                SelectItem::ExprWithAliases { .. } => refuse(true, "several aliases for one column", place)?,
                SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
                    check_wildcard(options, place)?;
                }
                SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. } => {}
            }
        }
        from.iter().try_for_each(check_joins)?;
        if let Some(Distinct::On(keys)) = distinct {
            keys.iter_mut().try_for_each(|key| by_position(key, projection))?;
        }
        name_repeated(projection, self.names);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> Flow {
        check_factor(factor)?;
        file_functions::pair_options(factor)?;
        table_functions::unnest(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        let place = expr.span();
        if let Some(planned) = crate::precision::planned(expr).or_else(|| crate::like_lists::planned(expr)) {
            *expr = planned;
        }
        match expr {
            Expr::Function(function) => {
                let parameters = !matches!(function.parameters, FunctionArguments::None);
                refuse(parameters, "a second list of arguments", place)?;
                let of_rows =
                    matches!(&function.args, FunctionArguments::List(list) if list.args.iter().any(is_row));
                refuse(of_rows, "table.* as an argument (name a column)", place)?;
                check_scalar(function, place)?;
                refuse(function.over.is_some(), &format!("the window function {}", function.name), place)
            }
            Expr::Collate { expr: inner, collation } => {
                let name = collation.0.last().and_then(|part| part.as_ident()).map(|name| &*name.value);
                let bytes = matches!(name, Some("C" | "POSIX" | "ucs_basic"));
                refuse(
                    !bytes,
                    &format!("COLLATE {collation} (text compares by its bytes, as in \"C\")"),
                    place,
                )?;
                // By its bytes is how text compares.
                let inner = std::mem::replace(&mut **inner, Expr::value(Value::Null));
                *expr = Expr::Nested(Box::new(inner));
                ControlFlow::Continue(())
            }
            Expr::AtTimeZone { .. } => refuse(true, "AT TIME ZONE", place),
            Expr::Value(value) => {
                if let Value::UnicodeStringLiteral(text) = &mut value.value {
                    value.value = Value::SingleQuotedString(std::mem::take(text));
                }
                ControlFlow::Continue(())
            }
            Expr::Cast { format, array, .. } => {
                refuse(format.is_some(), "CAST … FORMAT", place)?;
                refuse(*array, "CAST … ARRAY", place)
            }
            Expr::Interval(interval) => {
                if let Some(planned) = crate::precision::interval(interval) {
                    *expr = planned;
                    return ControlFlow::Continue(());
                }
                let precise =
                    interval.leading_precision.is_some() || interval.fractional_seconds_precision.is_some();
                refuse(precise, "an interval's precision", place)?;
                refuse(interval.last_field.is_some(), "an interval from one field TO another", place)?;
                *expr = match crate::literals::interval(interval) {
                    Ok(expr) => expr,
                    Err(error) => return ControlFlow::Break(error),
                };
                ControlFlow::Continue(())
            }
            Expr::BinaryOp { left, op, right } => {
                if let Some(compared) = crate::literals::compared_rows(left, op, right) {
                    *expr = compared;
                }
                ControlFlow::Continue(())
            }
            Expr::InList { expr: value, list, negated } => {
                if let Some(found) = crate::literals::row_in_list(value, list, *negated) {
                    *expr = found;
                }
                ControlFlow::Continue(())
            }
            Expr::IsNull(value) => {
                if let Some(found) = crate::literals::null_row(value, true) {
                    *expr = found;
                }
                ControlFlow::Continue(())
            }
            Expr::IsNotNull(value) => {
                if let Some(found) = crate::literals::null_row(value, false) {
                    *expr = found;
                }
                ControlFlow::Continue(())
            }
            Expr::AnyOp { left, compare_op, right, .. } => {
                if let Some(call) = crate::operators::quantified(left, compare_op, right, false) {
                    *expr = call;
                }
                ControlFlow::Continue(())
            }
            Expr::AllOp { left, compare_op, right } => {
                if let Some(call) = crate::operators::quantified(left, compare_op, right, true) {
                    *expr = call;
                }
                ControlFlow::Continue(())
            }
            Expr::UnaryOp { op, expr: operand } => {
                if let Some(call) = crate::operators::call(*op, operand) {
                    *expr = call;
                }
                ControlFlow::Continue(())
            }
            Expr::MatchAgainst { .. } => refuse(true, "MATCH … AGAINST", place),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// What only aggregates take, the planner drops where a scalar function has it.
fn check_scalar(function: &Function, place: Tokens) -> Flow {
    let [part] = function.name.0.as_slice() else { return ControlFlow::Continue(()) };
    let Some(name) = part.as_ident().map(normalised) else { return ControlFlow::Continue(()) };
    let is_scalar = STANDARD.scalars.contains_key(&name) || OWN.contains_key(name.as_str());
    if !is_scalar || STANDARD.aggregates.contains_key(&name) {
        return ControlFlow::Continue(());
    }
    let of = |construct: &str| format!("{construct} of {name}, which is no aggregate,");
    refuse(function.filter.is_some(), &of("FILTER"), place)?;
    refuse(function.null_treatment.is_some(), &of("IGNORE or RESPECT NULLS"), place)?;
    refuse(!function.within_group.is_empty(), &of("WITHIN GROUP"), place)?;
    if let FunctionArguments::List(list) = &function.args {
        let distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
        refuse(distinct, &of("DISTINCT"), place)?;
        refuse(!list.clauses.is_empty(), &of("ORDER BY or the like"), place)?;
    }
    ControlFlow::Continue(())
}

/// Whether an argument is `table.*`, a whole row: `count(t.*)` would count the rows that a join has
/// filled with NULLs.
fn is_row(arg: &FunctionArg) -> bool {
    matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)))
}

/// An alias that gives columns types.
fn check_alias(alias: Option<&TableAlias>, place: Tokens) -> Flow {
    let typed = alias.is_some_and(|alias| alias.columns.iter().any(|column| column.data_type.is_some()));
    if !typed {
        return ControlFlow::Continue(());
    }
    let message = "an alias names columns and does not type them; write CAST in the query";
    ControlFlow::Break(placed(Error::new(Code::Syntax, message), place))
}

fn check_factor(factor: &TableFactor) -> Flow {
    let place = factor.span();
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::UNNEST { alias, .. } => check_alias(alias.as_ref(), place)?,
        _ => {}
    }
    match factor {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            refuse(!with_hints.is_empty(), "WITH after a table", place)?;
            refuse(version.is_some(), "a table version (FOR SYSTEM_TIME)", place)?;
            refuse(*with_ordinality, "WITH ORDINALITY", place)?;
            refuse(!partitions.is_empty(), "PARTITION after a table", place)?;
            refuse(json_path.is_some(), "a JSON path after a table", place)?;
            refuse(sample.is_some(), "TABLESAMPLE", place)?;
            refuse(!index_hints.is_empty(), "an index hint", place)?;
            let settings = args.as_ref().is_some_and(|args| args.settings.is_some());
            refuse(settings, "SETTINGS of a table function", place)?;
            refuse(alias.as_ref().is_some_and(|alias| alias.at.is_some()), "AT after an alias", place)
        }
        TableFactor::Derived { lateral: _, subquery: _, alias: _, sample } => {
            refuse(sample.is_some(), "TABLESAMPLE", place)
        }
        TableFactor::Function { with_ordinality, .. } => refuse(*with_ordinality, "WITH ORDINALITY", place),
        TableFactor::NestedJoin { table_with_joins, alias: _ } => check_joins(table_with_joins),
        TableFactor::UNNEST { with_offset, with_ordinality, .. } => {
            refuse(*with_offset, "WITH OFFSET", place)?;
            refuse(*with_ordinality, "WITH ORDINALITY", place)
        }
        TableFactor::TableFunction { .. } => refuse(true, "TABLE(…) in FROM", place),
        TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => {
            refuse(true, "JSON_TABLE", place)
        }
        TableFactor::Pivot { .. } => refuse(true, "PIVOT", place),
        TableFactor::Unpivot { .. } => refuse(true, "UNPIVOT", place),
        TableFactor::MatchRecognize { .. } => refuse(true, "MATCH_RECOGNIZE", place),
        _ => refuse(true, "this kind of table in FROM", place),
    }
}

fn check_body(body: &SetExpr) -> Flow {
    match body {
        SetExpr::SetOperation { left, right, op: _, set_quantifier } => {
            let named = matches!(
                set_quantifier,
                SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName
            );
            refuse(named, "BY NAME", body.span())?;
            check_body(left)?;
            check_body(right)
        }
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => ControlFlow::Continue(()),
        SetExpr::Insert(_) => refuse(true, "INSERT", body.span()),
        SetExpr::Update(_) => refuse(true, "UPDATE", body.span()),
        SetExpr::Delete(_) => refuse(true, "DELETE", body.span()),
        SetExpr::Merge(_) => refuse(true, "MERGE", body.span()),
        SetExpr::Table(_) => refuse(true, "TABLE name as a query", body.span()),
    }
}

/// A common table expression after WITH RECURSIVE. The planner looks at nothing but its UNION when there is one.
fn check_recursive(cte: &mut Cte) -> Flow {
    if !matches!(&*cte.query.body, SetExpr::SetOperation { op: SetOperator::Union, .. }) {
        return ControlFlow::Continue(());
    }
    let (name, place) = (normalised(&cte.alias.name), cte.alias.name.span);
    let is_own = |reference: &ObjectName| {
        let last = reference.0.last().and_then(|part| part.as_ident());
        reference.0.len() == 1 && last.is_some_and(|part| normalised(part) == name)
    };
    let reads_itself = visit_relations(&*cte.query, |reference| match is_own(reference) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    if reads_itself.is_continue() {
        // As a query in parentheses it is planned whole.
        let body = Box::new(SetExpr::Query(cte.query.clone()));
        *cte.query = bare_query(body);
        return ControlFlow::Continue(());
    }
    let query = &mut *cte.query;
    refuse(query.order_by.is_some(), "ORDER BY in a recursive query", place)?;
    refuse(query.limit_clause.is_some() || query.fetch.is_some(), "LIMIT in a recursive query", place)?;
    refuse(query.with.is_some(), "WITH inside a recursive query (put it before)", place)?;
    if let SetExpr::SetOperation { right, .. } = &mut *query.body {
        write_casts_twice(right);
    }
    ControlFlow::Continue(())
}

/// Casts of columns twice, so that `recursion` can tell them from the planner's own.
fn write_casts_twice(body: &mut SetExpr) {
    let select = match body {
        SetExpr::Query(query) => return write_casts_twice(&mut query.body),
        SetExpr::Select(select) => select,
        _ => return,
    };
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        let mut inner = &mut *expr;
        while let Expr::Nested(nested) = inner {
            inner = nested;
        }
        let data_type = match inner {
            Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, data_type, .. } => data_type.clone(),
            Expr::TypedString(typed) => typed.data_type.clone(),
            _ => continue,
        };
        let once = Box::new(std::mem::replace(inner, Expr::value(Value::Null)));
        *inner = Expr::Cast { kind: CastKind::Cast, expr: once, data_type, array: false, format: None };
    }
}

/// A number among the keys of DISTINCT ON is the position of a column.
fn by_position(key: &mut Expr, projection: &[SelectItem]) -> Flow {
    let Expr::Value(value) = &*key else { return ControlFlow::Continue(()) };
    let Value::Number(number, _) = &value.value else { return ControlFlow::Continue(()) };
    let position = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    match position.and_then(|position| projection.get(position)) {
        Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
            *key = expr.clone();
            ControlFlow::Continue(())
        }
        Some(_) => refuse(true, "a position in DISTINCT ON beside *", value.span()),
        None => {
            let error = Error::semantic(format!("DISTINCT ON {number}: there is no such column in SELECT"));
            ControlFlow::Break(error)
        }
    }
}

/// Positions in the ORDER BY of a DISTINCT ON as the columns' own text: the planner knows no name
/// of a constant's column.
fn order_distinct_on(order_by: &mut OrderBy, body: &SetExpr) {
    let SetExpr::Select(select) = body else { return };
    let OrderByKind::Expressions(keys) = &mut order_by.kind else { return };
    if !matches!(select.distinct, Some(Distinct::On(_))) {
        return;
    }
    for key in keys {
        // What is no position of a column is left to the planner.
        let mut expr = key.expr.clone();
        if by_position(&mut expr, &select.projection).is_continue() {
            let is_number = matches!(&expr, Expr::Value(value) if matches!(value.value, Value::Number(..)));
            key.expr = if is_number { Expr::Nested(Box::new(expr)) } else { expr };
        }
    }
}

fn bare_query(body: Box<SetExpr>) -> Query {
    Query {
        with: None,
        body,
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

fn check_order(order_by: &OrderBy, place: Tokens) -> Flow {
    refuse(order_by.interpolate.is_some(), "INTERPOLATE", place)?;
    if let OrderByKind::Expressions(exprs) = &order_by.kind {
        for expr in exprs {
            refuse(expr.with_fill.is_some(), "WITH FILL", expr.expr.span())?;
        }
    }
    ControlFlow::Continue(())
}

fn check_group_by(group_by: &GroupByExpr, place: Tokens) -> Flow {
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
    for modifier in modifiers {
        let construct = match modifier {
            GroupByWithModifier::Rollup => "WITH ROLLUP (write GROUP BY ROLLUP (…))",
            GroupByWithModifier::Cube => "WITH CUBE (write GROUP BY CUBE (…))",
            GroupByWithModifier::Totals => "WITH TOTALS",
            GroupByWithModifier::GroupingSets(_) => "GROUPING SETS after the list of GROUP BY",
        };
        refuse(true, construct, place)?;
    }
    ControlFlow::Continue(())
}

fn check_wildcard(options: &mut WildcardAdditionalOptions, place: Tokens) -> Flow {
    // The planner compares these names with columns' as they stand.
    let excluded = match &mut options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_mut(name),
        Some(ExcludeSelectItem::Multiple(names)) => &mut names[..],
        None => &mut [],
    };
    for part in excluded.iter_mut().flat_map(|name| &mut name.0) {
        if let ObjectNamePart::Identifier(name) = part {
            name.value = normalised(name);
        }
    }
    if let Some(except) = &mut options.opt_except {
        let names = std::iter::once(&mut except.first_element).chain(&mut except.additional_elements);
        names.for_each(|name| name.value = normalised(name));
    }
    refuse(options.opt_ilike.is_some(), "* ILIKE", place)?;
    refuse(options.opt_rename.is_some(), "* RENAME", place)?;
    refuse(options.opt_alias.is_some(), "an alias for *", place)
}

fn check_joins(tables: &TableWithJoins) -> Flow {
    for join in &tables.joins {
        let place = join.relation.span();
        refuse(join.global, "GLOBAL JOIN", place)?;
        check_constraint(&join.join_operator, place)?;
        let construct = match &join.join_operator {
            JoinOperator::CrossApply | JoinOperator::OuterApply => "APPLY (write JOIN LATERAL)",
            JoinOperator::AsOf { .. } => "ASOF JOIN",
            JoinOperator::StraightJoin(_) => "STRAIGHT_JOIN",
            JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin => {
                "ARRAY JOIN"
            }
            _ => continue,
        };
        refuse(true, construct, place)?;
    }
    ControlFlow::Continue(())
}

/// Every join but a CROSS JOIN says which rows go together, and a CROSS JOIN does not.
fn check_constraint(operator: &JoinOperator, place: Tokens) -> Flow {
    use JoinOperator::{
        Anti, CrossJoin, FullOuter, Inner, Join, Left, LeftAnti, LeftOuter, LeftSemi, Right, RightAnti,
        RightOuter, RightSemi, Semi,
    };
    let message = match operator {
        CrossJoin(JoinConstraint::None) => return ControlFlow::Continue(()),
        CrossJoin(_) => "CROSS JOIN takes neither ON nor USING; write JOIN",
        Join(JoinConstraint::None)
        | Inner(JoinConstraint::None)
        | Left(JoinConstraint::None)
        | LeftOuter(JoinConstraint::None)
        | Right(JoinConstraint::None)
        | RightOuter(JoinConstraint::None)
        | FullOuter(JoinConstraint::None)
        | Semi(JoinConstraint::None)
        | LeftSemi(JoinConstraint::None)
        | RightSemi(JoinConstraint::None)
        | Anti(JoinConstraint::None)
        | LeftAnti(JoinConstraint::None)
        | RightAnti(JoinConstraint::None) => "a JOIN needs ON or USING; for all pairs write CROSS JOIN",
        _ => return ControlFlow::Continue(()),
    };
    ControlFlow::Break(placed(Error::new(Code::Syntax, message), place))
}

/// Names the second and later of several columns with one name apart; the planner wants names unique, SQL does not.
fn name_repeated(projection: &mut [SelectItem], names: Names) {
    let wildcard = projection
        .iter()
        .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)));
    let mut seen = HashSet::new();
    for (position, item) in projection.iter_mut().enumerate() {
        let (text, own) = match item {
            SelectItem::UnnamedExpr(expr) => match expr {
                Expr::Identifier(name) => (normalised(name), true),
                Expr::CompoundIdentifier(parts) if names == Names::All => match parts.last() {
                    Some(name) => (normalised(name), true),
                    None => continue,
                },
                Expr::CompoundIdentifier(_) => (expr.to_string(), true),
                other => (other.to_string(), false),
            },
            SelectItem::ExprWithAlias { alias, .. } => (normalised(alias), true),
            _ => continue,
        };
        let plain =
            matches!(item, SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)));
        let fresh = seen.insert(text.clone());
        let unnamed = names == Names::All && !own && !is_unnest(item);
        if fresh && !(wildcard && plain) && !unnamed {
            continue;
        }
        let last = text.rsplit('.').next().unwrap_or(&text).to_string();
        let alias = Ident::with_quote('"', format!("{last}{REPEATED}{position}"));
        let placeholder = SelectItem::UnnamedExpr(Expr::value(Value::Null));
        *item = match std::mem::replace(item, placeholder) {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                SelectItem::ExprWithAlias { expr, alias }
            }
            other => other,
        };
    }
}

/// Whether an item is `unnest(…)`, which may give several columns: the planner names them.
fn is_unnest(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(Expr::Function(function))
        if function.name.to_string().eq_ignore_ascii_case("unnest"))
}
