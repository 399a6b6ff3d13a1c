//! The parser of plans and parameters.

use std::collections::HashMap;
use std::sync::Arc;

use tessera_types::{Code, Error, Result, Tuple};

use super::TEXT_DEPTH_MAX;
use super::expression::{self, too_deep};
use super::lexer::{Lexer, Token};
use super::literal::Literal;
use crate::PLAN_DEPTH_MAX;
use crate::graph::{Node, NodeId, Plan};
use crate::value::{Params, Value};

pub(super) fn parse(text: &str) -> Result<Plan> {
    let mut lexer = Lexer::new(text);
    if !lexer.accept_word("plan")? {
        return Err(lexer.unexpected("`plan`"));
    }
    let plan = plan(&mut lexer, 0)?;
    match lexer.peek()? {
        Token::End => Ok(plan),
        _ => Err(lexer.unexpected("the end of the text")),
    }
}

/// Parses a plan after the word `plan`.
fn plan(lexer: &mut Lexer<'_>, depth: usize) -> Result<Plan> {
    if depth > PLAN_DEPTH_MAX {
        let message =
            format!("plans are nested deeper than {PLAN_DEPTH_MAX} levels (PLAN_DEPTH_MAX)");
        return Err(Error::new(Code::Limit, message).at(lexer.here()));
    }
    let parameters = match lexer.peek()? {
        Token::Symbol("<" | "<>") => lexer.tuple()?,
        _ => Tuple::empty(),
    };
    lexer.expect("{")?;
    let mut ids: HashMap<String, NodeId> = HashMap::new();
    let mut nodes = Vec::new();
    while matches!(lexer.peek()?, Token::Symbol("%")) {
        let start = lexer.start();
        let id = lexer.id()?;
        let expected = if lexer.accept(":")? { Some(lexer.tuple()?) } else { None };
        lexer.expect("=")?;
        nodes.push(node(lexer, &ids, expected, depth)?);
        let position = u32::try_from(nodes.len() - 1);
        let position =
            position.map_err(|_| lexer.error("the plan has too many nodes; the limit is 2^32"))?;
        if ids.contains_key(&id) {
            return Err(Error::new(
                Code::Syntax,
                format!("duplicate node %{id}; rename one of them"),
            )
            .at(lexer.span(start)));
        }
        ids.insert(id, NodeId(position));
    }
    if !lexer.accept_word("return")? {
        return Err(lexer.unexpected("a node (`%0 = …`) or `return`"));
    }
    let root = reference(lexer, &ids)?;
    lexer.expect("}")?;
    Ok(Plan { parameters, nodes, root })
}

fn reference(lexer: &mut Lexer<'_>, ids: &HashMap<String, NodeId>) -> Result<NodeId> {
    lexer.peek()?;
    let start = lexer.start();
    let id = lexer.id()?;
    ids.get(&id).copied().ok_or_else(|| {
        Error::new(Code::Syntax, format!("unknown node %{id}; define it before its first use"))
            .at(lexer.span(start))
    })
}

fn node(
    lexer: &mut Lexer<'_>,
    ids: &HashMap<String, NodeId>,
    expected: Option<Tuple>,
    depth: usize,
) -> Result<Node> {
    let operator: Arc<str> = lexer.name()?.into();
    lexer.expect("(")?;
    let mut inputs = Vec::new();
    while !lexer.accept(")")? {
        if !inputs.is_empty() {
            lexer.expect(",")?;
        }
        inputs.push(reference(lexer, ids)?);
    }
    let mut params = Params::new();
    if lexer.accept("{")? {
        for (name, value) in record(lexer, 1)? {
            if params.get(&name).is_some() {
                return Err(lexer.error(format!(
                    "duplicate parameter {name} of {operator}; remove one of them"
                )));
            }
            params.set(name, value);
        }
    }
    let mut nested = Vec::new();
    while lexer.accept_word("plan")? {
        nested.push(plan(lexer, depth + 1)?);
    }
    Ok(Node { expected, ..Node::new(operator, inputs, params, nested) })
}

/// Parses named values up to `}`.
fn record(lexer: &mut Lexer<'_>, nesting: usize) -> Result<Vec<(Arc<str>, Value)>> {
    let mut entries = Vec::new();
    while !lexer.accept("}")? {
        if !entries.is_empty() {
            lexer.expect(",")?;
        }
        let name: Arc<str> = lexer.name()?.into();
        lexer.expect("=")?;
        entries.push((name, value(lexer, nesting)?));
    }
    Ok(entries)
}

fn value(lexer: &mut Lexer<'_>, nesting: usize) -> Result<Value> {
    if nesting > TEXT_DEPTH_MAX {
        return Err(too_deep(lexer));
    }
    if matches!(lexer.peek()?, Token::Symbol("<" | "<>")) {
        return lexer.tuple().map(Value::Tuple);
    }
    if lexer.accept(":")? {
        return lexer.name().map(|name| Value::Name(name.into()));
    }
    if lexer.accept("{")? {
        return record(lexer, nesting + 1).map(Value::Record);
    }
    if lexer.accept("[")? {
        let mut values = Vec::new();
        while !lexer.accept("]")? {
            if !values.is_empty() {
                lexer.expect(",")?;
            }
            values.push(value(lexer, nesting + 1)?);
        }
        return Ok(Value::List(values));
    }
    Ok(match expression::plain(lexer)? {
        Some(Literal::Boolean(flag)) => Value::Boolean(flag),
        Some(Literal::Text(text)) => Value::String(text.into()),
        Some(Literal::Number(number)) => Value::Integer(number.parse().map_err(|_| {
            lexer.error(format!("integer {number} is too large; for a constant, write its type: {number}::decimal(38,0)"))
        })?),
        _ => Value::Expr(expression::expr(lexer, nesting)?),
    })
}
