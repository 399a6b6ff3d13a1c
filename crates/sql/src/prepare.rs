//! PREPARE, EXECUTE and DEALLOCATE; SET VARIABLE and RESET VARIABLE.

use std::collections::BTreeMap;

use sqlparser::ast::{
    DataType, Expr as Ast, FunctionArg, FunctionArgExpr, Ident, Query, SelectItem, SetExpr,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use tessera_types::{Atom, Error, Result, SqlState};

use crate::bind::{atom_of_type, normalized};
use crate::error::from_parser;
use crate::parameters::{self, Inference, Parameters};
use crate::parse::StatementKind;
use crate::statement::{Mode, PlanContext, Statement, plan_kind};

/// `PREPARE name [(types)] AS statement`.
#[derive(Debug, Clone)]
pub(crate) struct Prepare {
    name: Ident,
    types: Vec<DataType>,
    pub(crate) statement: Box<StatementKind>,
}

/// `EXECUTE name [(values)]`.
#[derive(Debug, Clone)]
pub(crate) struct Execute {
    name: Ident,
    pub(crate) args: Vec<FunctionArg>,
}

/// A prepared statement. It is bound anew each time that it is executed, so that it sees the tables
/// and settings of that time.
#[derive(Debug, Clone)]
pub struct Prepared {
    statement: StatementKind,
    /// The names of the parameters, and their types; `None` where a type depends on the value.
    pub(crate) parameters: Vec<(String, Option<Atom>)>,
}

/// The states of unknown names, which no value of a parameter makes known.
const UNKNOWN: [SqlState; 2] = [SqlState::UNDEFINED_COLUMN, SqlState::UNDEFINED_TABLE];

type Statements = fn(&mut Parser<'_>) -> Result<StatementKind>;

/// Parses one of these statements if it starts at the parser's position; `statement` parses the
/// statement to prepare.
pub(crate) fn parse(
    parser: &mut Parser<'_>,
    statement: Statements,
) -> Result<Option<StatementKind>> {
    let word_at = |parser: &Parser<'_>, at: usize| match parser.peek_nth_token(at).token {
        Token::Word(word) => Some(word.value.to_ascii_lowercase()),
        _ => None,
    };
    let is_variable = word_at(parser, 1).as_deref() == Some("variable");
    if parser.parse_keyword(Keyword::PREPARE) {
        return prepare(parser, statement).map(Some);
    }
    if parser.parse_keyword(Keyword::EXECUTE) {
        return execute(parser).map(Some);
    }
    if parser.parse_keyword(Keyword::DEALLOCATE) {
        let _ = parser.parse_keyword(Keyword::PREPARE);
        let name = match parser.parse_keyword(Keyword::ALL) {
            true => None,
            false => Some(parser.parse_identifier().map_err(|e| from_parser(&e))?),
        };
        return Ok(Some(StatementKind::Deallocate(name)));
    }
    if is_variable && parser.peek_keyword(Keyword::RESET) && word_at(parser, 2).is_some() {
        parser.next_token();
        parser.next_token();
        let name = parser.parse_identifier().map_err(|e| from_parser(&e))?;
        return Ok(Some(StatementKind::ResetVariable(name.value.to_lowercase())));
    }
    let assigns = || match parser.peek_nth_token(3).token {
        Token::Eq => true,
        Token::Word(word) => word.keyword == Keyword::TO,
        _ => false,
    };
    if is_variable && parser.peek_keyword(Keyword::SET) && word_at(parser, 2).is_some() && assigns()
    {
        parser.next_token();
        parser.next_token();
        let name = parser.parse_identifier().map_err(|e| from_parser(&e))?;
        parser.next_token();
        let value = Box::new(parser.parse_expr().map_err(|e| from_parser(&e))?);
        return Ok(Some(StatementKind::SetVariable { name: name.value.to_lowercase(), value }));
    }
    Ok(None)
}

fn prepare(parser: &mut Parser<'_>, statement: Statements) -> Result<StatementKind> {
    let name = parser.parse_identifier().map_err(|e| from_parser(&e))?;
    let mut types = Vec::new();
    if parser.consume_token(&Token::LParen) {
        types =
            parser.parse_comma_separated(Parser::parse_data_type).map_err(|e| from_parser(&e))?;
        parser.expect_token(&Token::RParen).map_err(|e| from_parser(&e))?;
    }
    parser.expect_keyword(Keyword::AS).map_err(|e| from_parser(&e))?;
    let inner = match parser.peek_keyword(Keyword::PREPARE) {
        true => Err(Error::unsupported("PREPARE of PREPARE is not supported")),
        false => statement(parser),
    };
    Ok(StatementKind::Prepare(Prepare { name, types, statement: Box::new(inner?) }))
}

fn execute(parser: &mut Parser<'_>) -> Result<StatementKind> {
    let name = parser.parse_identifier().map_err(|e| from_parser(&e))?;
    let mut args = Vec::new();
    if parser.consume_token(&Token::LParen) && !parser.consume_token(&Token::RParen) {
        args = parser
            .parse_comma_separated(Parser::parse_function_args)
            .map_err(|e| from_parser(&e))?;
        parser.expect_token(&Token::RParen).map_err(|e| from_parser(&e))?;
    }
    Ok(StatementKind::Execute(Execute { name, args }))
}

/// Plans `PREPARE`: binds the statement to find the types of its parameters.
pub(crate) fn plan_prepare(prepare: &Prepare, context: &PlanContext<'_>) -> Result<Statement> {
    let Prepare { name, types, statement } = prepare;
    let types = types.iter().map(atom_of_type).collect::<Result<Vec<_>>>()?;
    let mut names = parameters::names(statement);
    // A declared parameter counts, also where the statement does not read it.
    for position in (1..=types.len()).map(|at| at.to_string()) {
        if !names.contains(&position) {
            names.push(position);
        }
    }
    let inference = Inference::declared(types);
    // As in DuckDB, named parameters have the types of their values.
    let has_names = names.iter().any(|name| name.parse::<u64>().is_err());
    inference.needs_values.set(has_names);
    let planned = plan_kind(statement, &context.in_mode(Mode::Inferred(&inference)));
    if let Err(error) = planned
        && (!inference.needs_values.get() || UNKNOWN.contains(&error.sql_state()))
    {
        return Err(error);
    }
    let mut types = inference.into_types(&names)?;
    let parameters = names.into_iter().map(|name| {
        let atom = types.remove(&name).flatten().filter(|_| !has_names);
        (name, atom)
    });
    let prepared = Prepared { statement: (**statement).clone(), parameters: parameters.collect() };
    Ok(Statement::Prepare { name: normalized(name), prepared: Box::new(prepared) })
}

/// Plans `EXECUTE` as the statement that it runs.
pub(crate) fn plan_execute(execute: &Execute, context: &PlanContext<'_>) -> Result<Statement> {
    let Execute { name, args } = execute;
    let prepared = context.environment.definitions.prepared(&normalized(name))?;
    let types: BTreeMap<&str, Option<&Atom>> =
        prepared.parameters.iter().map(|(name, atom)| (name.as_str(), atom.as_ref())).collect();
    let mut values = Vec::with_capacity(args.len());
    for (at, arg) in args.iter().enumerate() {
        let (name, value) = match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => ((at + 1).to_string(), value),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                (name.value.to_lowercase(), value)
            }
            other => {
                let message = format!("EXECUTE takes values, not {other}");
                return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
            }
        };
        if values.iter().any(|(known, _)| *known == name) {
            let message = format!("parameter ${name} gets two values");
            return Err(Error::semantic(message).with_state(SqlState::SYNTAX_ERROR));
        }
        values.push((name, value));
    }
    let of = format!("prepared statement {}", name.value);
    let names: Vec<String> = prepared.parameters.iter().map(|(name, _)| name.clone()).collect();
    let given = |name: &String| (name.clone(), crate::parameters::Constant::null());
    Parameters::named(values.iter().map(|(name, _)| given(name))).check(&names, &of)?;
    let mut bound = Vec::with_capacity(values.len());
    for (name, value) in values {
        let atom = types.get(name.as_str()).copied().flatten();
        bound.push((name.clone(), context.parameter_value(&name, value, atom)?));
    }
    let parameters = Parameters::named(bound);
    // Positions in the prepared text mean nothing in this one.
    plan_kind(&prepared.statement, &context.in_mode(Mode::Given(&parameters)))
        .map_err(Error::without_span)
}

/// Plans `SET VARIABLE`: a query gives the value.
pub(crate) fn plan_set_variable(
    name: &str,
    value: &Ast,
    context: &PlanContext<'_>,
) -> Result<Statement> {
    let query = context.query(&*select(value.clone())?)?;
    Ok(Statement::SetVariable { name: name.to_string(), query: Box::new(query) })
}

/// Builds the query `SELECT value`.
pub(crate) fn select(value: Ast) -> Result<Box<Query>> {
    let mut query = crate::parse::query("SELECT 1")?;
    match &mut *query.body {
        SetExpr::Select(select) => select.projection = vec![SelectItem::UnnamedExpr(value)],
        _ => return Err(Error::internal("SELECT 1 is no SELECT")),
    }
    Ok(query)
}
