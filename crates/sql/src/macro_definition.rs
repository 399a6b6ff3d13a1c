//! Planning of macros and of functions in SQL: `CREATE MACRO`, `CREATE FUNCTION … LANGUAGE sql`,
//! and how they are dropped.

use sqlparser::ast::{
    CreateFunction as ParsedFunction, CreateFunctionBody, DataType, Expr as Ast,
    FunctionCalledOnNull, FunctionReturnType, LimitClause, Query, SelectItem, SetExpr,
    Statement as SqlStatement, Value,
};
use tessera_binder::PlanContext;
use tessera_parser::{
    CreateMacro, DropMacro, Macro, MacroBody, MacroParameter, StatementKind, normalized,
};
use tessera_types::{Error, Result, SqlState};

use crate::statement::Statement;

/// Plans `CREATE MACRO`.
pub(crate) fn create(create: &CreateMacro, context: &PlanContext<'_>) -> Result<Statement> {
    let name = &create.name;
    let refuse = |message: String, state: SqlState| {
        Err(Error::semantic(format!("cannot create {name}: {message}")).with_state(state))
    };
    for (at, one) in create.overloads.iter().enumerate() {
        let names: Vec<&String> =
            one.parameters.iter().filter_map(|parameter| parameter.name.as_ref()).collect();
        if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name))
        {
            return refuse(
                format!("two parameters have the name {}", twice.1),
                SqlState::INVALID_FUNCTION_DEFINITION,
            );
        }
        let is_default = |parameter: &MacroParameter| parameter.default.is_some();
        if let Some(first) = one.parameters.iter().position(is_default)
            && !one.parameters[first..].iter().all(is_default)
        {
            return refuse(
                "parameters behind one with a default need defaults, too".to_string(),
                SqlState::INVALID_FUNCTION_DEFINITION,
            );
        }
        let count = one.parameters.len();
        if create.overloads[..at].iter().any(|other| other.parameters.len() == count) {
            return refuse(
                format!("two definitions take {count} arguments"),
                SqlState::INVALID_FUNCTION_DEFINITION,
            );
        }
    }
    if context.has_function(name) {
        return refuse(
            "it is a function of Tessera; choose another name".to_string(),
            SqlState::DUPLICATE_FUNCTION,
        );
    }
    for one in &create.overloads {
        context.check_macro(name, one)?;
    }
    Ok(Statement::CreateMacro(Box::new(create.clone())))
}

/// Plans `DROP MACRO`.
pub(crate) fn drop(dropped: &DropMacro) -> Statement {
    let DropMacro { name, if_exists } = dropped;
    Statement::DropMacro { name: normalized(name), if_exists: *if_exists }
}

/// Makes a function in SQL of `CREATE FUNCTION`; the caller has checked the other clauses.
pub(crate) fn sql_function(
    name: &str,
    create: &ParsedFunction,
    context: &PlanContext<'_>,
) -> Result<Statement> {
    let wrong = |message: &str| {
        Error::semantic(format!("cannot create function {name}: {message}"))
            .with_state(SqlState::INVALID_FUNCTION_DEFINITION)
    };
    let mut parameters = Vec::new();
    for arg in create.args.iter().flatten() {
        if arg.mode.as_ref().is_some_and(|mode| *mode != sqlparser::ast::ArgMode::In) {
            return Err(wrong("parameters can be IN only; write RETURNS TABLE (…) for results"));
        }
        parameters.push(MacroParameter {
            name: arg.name.as_ref().map(normalized),
            default: arg.default_expr.clone(),
            data_type: Some(arg.data_type.clone()),
        });
    }
    let (mut result, mut columns, mut is_set) = (None, Vec::new(), false);
    match &create.return_type {
        Some(FunctionReturnType::DataType(DataType::Table(defined))) => {
            columns = defined.clone().unwrap_or_default();
            is_set = true;
        }
        Some(FunctionReturnType::DataType(data_type)) => result = Some(data_type.clone()),
        Some(FunctionReturnType::SetOf(data_type)) => {
            result = Some(data_type.clone());
            is_set = true;
        }
        None => return Err(wrong("the result type is missing; write RETURNS and a type")),
    }
    let body = match &create.function_body {
        Some(CreateFunctionBody::Return(value)) if !is_set => {
            MacroBody::Value(Box::new(value.clone()))
        }
        Some(CreateFunctionBody::AsBeforeOptions { body, link_symbol: None }) => {
            let query = query_of(body)
                .ok_or_else(|| wrong("the body must be a text; write AS 'SELECT …'"))??;
            match is_set {
                true => MacroBody::Table(query),
                false => MacroBody::Value(Box::new(first_value(query))),
            }
        }
        _ => return Err(wrong("the body is missing; write AS 'SELECT …' or RETURN expression")),
    };
    let is_strict = matches!(
        create.called_on_null,
        Some(FunctionCalledOnNull::Strict | FunctionCalledOnNull::ReturnsNullOnNullInput)
    );
    let made = Macro { parameters, body, result, columns, is_strict };
    self::create(
        &CreateMacro {
            name: name.to_string(),
            overloads: vec![made],
            or_replace: create.or_replace,
            if_not_exists: create.if_not_exists,
            is_function: true,
        },
        context,
    )
}

/// Parses the query in the text of a body.
fn query_of(body: &Ast) -> Option<Result<Box<Query>>> {
    let Ast::Value(value) = body else { return None };
    let text = match &value.value {
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text,
        Value::DollarQuotedString(text) => &text.value,
        _ => return None,
    };
    let parsed = tessera_parser::parse(text).and_then(|mut statements| {
        match (statements.pop(), statements.is_empty()) {
            (Some(statement), true) => match statement.kind {
                StatementKind::Sql(parsed) => match *parsed {
                    SqlStatement::Query(query) => Ok(query),
                    _ => Err(Error::unsupported("the body of a function must be a query")),
                },
                _ => Err(Error::unsupported("the body of a function must be a query")),
            },
            _ => Err(Error::unsupported("the body of a function must be one query")),
        }
    });
    Some(parsed.map_err(|error| error.without_span().context("in the body of the function")))
}

/// Returns the expression for the first row of a query: the value of `SELECT value`, or a subquery.
fn first_value(mut query: Box<Query>) -> Ast {
    if let SetExpr::Select(select) = &*query.body
        && let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] =
            &select.projection[..]
        && query.to_string() == format!("SELECT {}", select.projection[0])
        && !matches!(value, Ast::Wildcard(_))
    {
        return Ast::Nested(Box::new(value.clone()));
    }
    if query.limit_clause.is_none() && query.fetch.is_none() {
        let one = Ast::value(Value::Number("1".to_string(), false));
        query.limit_clause =
            Some(LimitClause::LimitOffset { limit: Some(one), offset: None, limit_by: Vec::new() });
    }
    Ast::Subquery(query)
}
