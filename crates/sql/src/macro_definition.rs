//! Macros and functions in SQL: `CREATE MACRO`, `CREATE FUNCTION … LANGUAGE sql`, and how they are
//! dropped.

use sqlparser::ast::{
    ColumnDef, CreateFunction as ParsedFunction, CreateFunctionBody, DataType, Expr as Ast,
    FunctionCalledOnNull, FunctionReturnType, Ident, LimitClause, Query, SelectItem, SetExpr,
    Statement as SqlStatement, Value,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;
use tessera_types::{Error, Result, SqlState};

use crate::bind::normalized;
use crate::parse::StatementKind;
use crate::statement::{PlanContext, Statement};

/// `CREATE MACRO`, or `CREATE FUNCTION … LANGUAGE sql`.
#[derive(Debug, Clone)]
pub struct CreateMacro {
    /// The name.
    pub name: String,
    pub(crate) overloads: Vec<Macro>,
    /// Whether to replace an existing one.
    pub or_replace: bool,
    pub(crate) if_not_exists: bool,
    /// Whether it is a function of SQL, whose arguments and result have types.
    pub is_function: bool,
}

/// A macro, or a function in SQL.
#[derive(Debug, Clone)]
pub struct Macro {
    pub(crate) parameters: Vec<MacroParameter>,
    pub(crate) body: MacroBody,
    /// The type of the value.
    pub(crate) result: Option<DataType>,
    /// The columns of `RETURNS TABLE`.
    pub(crate) columns: Vec<ColumnDef>,
    /// Whether the value is NULL where an argument is.
    pub(crate) is_strict: bool,
}

/// A parameter of a macro.
#[derive(Debug, Clone)]
pub(crate) struct MacroParameter {
    /// The name; `None` if it can be read as `$1` only.
    pub(crate) name: Option<String>,
    pub(crate) default: Option<Ast>,
    pub(crate) data_type: Option<DataType>,
}

/// What a macro stands for.
#[derive(Debug, Clone)]
pub(crate) enum MacroBody {
    Value(Box<Ast>),
    Table(Box<Query>),
}

/// `DROP MACRO [TABLE] [IF EXISTS] name`.
#[derive(Debug, Clone)]
pub(crate) struct DropMacro {
    name: Ident,
    if_exists: bool,
}

/// The first words of `CREATE MACRO`.
struct Head {
    name: Ident,
    parameters: Vec<MacroParameter>,
    or_replace: bool,
    if_not_exists: bool,
}

type ParseResult<T> = std::result::Result<T, ParserError>;

/// Parses `CREATE [OR REPLACE] [TEMP] MACRO` (or DuckDB's `FUNCTION`) or `DROP MACRO` if one starts
/// at the parser's position.
pub(crate) fn parse(parser: &mut Parser<'_>) -> ParseResult<Option<StatementKind>> {
    use Keyword::{CREATE, DROP, EXISTS, FUNCTION, IF, MACRO, OR, REPLACE, TABLE, TEMP, TEMPORARY};
    if parser.parse_keywords(&[DROP, MACRO]) {
        let _ = parser.parse_keyword(TABLE);
        let if_exists = parser.parse_keywords(&[IF, EXISTS]);
        let name = parser.parse_identifier()?;
        return Ok(Some(StatementKind::DropMacro(DropMacro { name, if_exists })));
    }
    if parser.parse_keywords(&[DROP, FUNCTION, TABLE]) {
        let if_exists = parser.parse_keywords(&[IF, EXISTS]);
        let name = parser.parse_identifier()?;
        return Ok(Some(StatementKind::DropMacro(DropMacro { name, if_exists })));
    }
    if !parser.peek_keyword(CREATE) {
        return Ok(None);
    }
    // The words between CREATE and the kind of the object.
    const BETWEEN: [Keyword; 4] = [OR, REPLACE, TEMP, TEMPORARY];
    let mut words = (1..).map(|at| match parser.peek_nth_token(at).token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    });
    let kind = words.find(|word| !BETWEEN.contains(word));
    let created = match kind {
        Some(MACRO) => head(parser, MACRO)?,
        // The forms of PostgreSQL have types, or a text as body.
        Some(FUNCTION) => match parser.maybe_parse(|parser| head(parser, FUNCTION))? {
            Some(head) => head,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Head { name, parameters, or_replace, if_not_exists } = created;
    let mut overloads = vec![overload(parser, parameters)?];
    while parser.consume_token(&Token::Comma) {
        let parameters = parameter_list(parser)?;
        parser.expect_keyword(Keyword::AS)?;
        overloads.push(overload(parser, parameters)?);
    }
    Ok(Some(StatementKind::CreateMacro(Box::new(CreateMacro {
        name: normalized(&name),
        overloads,
        or_replace,
        if_not_exists,
        is_function: false,
    }))))
}

/// Parses everything before the body of the first overload.
fn head(parser: &mut Parser<'_>, kind: Keyword) -> ParseResult<Head> {
    use Keyword::{AS, CREATE, EXISTS, IF, NOT, OR, REPLACE, TEMP, TEMPORARY};
    parser.expect_keyword(CREATE)?;
    let or_replace = parser.parse_keywords(&[OR, REPLACE]);
    let _ = parser.parse_one_of_keywords(&[TEMP, TEMPORARY]);
    parser.expect_keyword(kind)?;
    let if_not_exists = parser.parse_keywords(&[IF, NOT, EXISTS]);
    let name = parser.parse_identifier()?;
    let parameters = parameter_list(parser)?;
    parser.expect_keyword(AS)?;
    let token = parser.peek_token();
    let is_text = matches!(
        token.token,
        Token::SingleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::EscapedStringLiteral(_)
    );
    if kind == Keyword::FUNCTION && is_text {
        return parser.expected("an expression", token);
    }
    Ok(Head { name, parameters, or_replace, if_not_exists })
}

/// Parses `(name [type] [:= default], …)`.
fn parameter_list(parser: &mut Parser<'_>) -> ParseResult<Vec<MacroParameter>> {
    parser.expect_token(&Token::LParen)?;
    if parser.consume_token(&Token::RParen) {
        return Ok(Vec::new());
    }
    let parameters = parser.parse_comma_separated(|parser| {
        let name = parser.parse_identifier()?;
        let ends = matches!(
            parser.peek_token_ref().token,
            Token::Comma | Token::RParen | Token::Assignment | Token::Eq
        ) || parser.peek_keyword(Keyword::DEFAULT);
        let data_type = (!ends).then(|| parser.parse_data_type()).transpose()?;
        let has_default = parser.consume_token(&Token::Assignment)
            || parser.consume_token(&Token::Eq)
            || parser.parse_keyword(Keyword::DEFAULT);
        let default = has_default.then(|| parser.parse_expr()).transpose()?;
        Ok(MacroParameter { name: Some(normalized(&name)), default, data_type })
    })?;
    parser.expect_token(&Token::RParen)?;
    Ok(parameters)
}

fn overload(parser: &mut Parser<'_>, parameters: Vec<MacroParameter>) -> ParseResult<Macro> {
    let body = match parser.parse_keyword(Keyword::TABLE) {
        true => MacroBody::Table(parser.parse_query()?),
        false => MacroBody::Value(Box::new(parser.parse_expr()?)),
    };
    Ok(Macro { parameters, body, result: None, columns: Vec::new(), is_strict: false })
}

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
    let parsed = crate::parse::parse(text).and_then(|mut statements| {
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
