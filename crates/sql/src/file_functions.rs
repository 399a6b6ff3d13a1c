//! Functions in FROM that read files: `read_csv('path', delim = ';')`. The planner knows no names of
//! arguments; options become literals, three each: a name, what kind of value it has, and the
//! value, whose parts stand between separators.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, DictionaryField, Expr, FunctionArg, FunctionArgExpr, Spanned, TableFactor, Value,
};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use tessera_types::{Atom, Error, Result, Span};

use crate::catalog::{FileOption, OptionValue};
use crate::check::{Flow, normalised};
use crate::context::reads_files;
use crate::dialect::Tessera;
use crate::error::from_parser;

/// Kinds of values.
const ONE: &str = "one";
const LIST: &str = "list";
const NAMED: &str = "named";
/// Stands between the parts of a value; no text of SQL has it.
const SEPARATOR: &str = "\0";

/// Rewrites the options of such a function.
pub(crate) fn pair_options(factor: &mut TableFactor) -> Flow {
    let (name, args) = match factor {
        TableFactor::Table { name, args: Some(args), .. } => (&*name, &mut args.args),
        TableFactor::Function { name, args, .. } => (&*name, args),
        _ => return ControlFlow::Continue(()),
    };
    let [part] = name.0.as_slice() else { return ControlFlow::Continue(()) };
    let Some(function) = part.as_ident().map(normalised).filter(|name| reads_files(name)) else {
        return ControlFlow::Continue(());
    };
    let mut literals = Vec::with_capacity(args.len() * 3);
    for (position, arg) in args.drain(..).enumerate() {
        if position == 0 {
            literals.push(arg);
            continue;
        }
        let place = arg.span().start;
        let Some((name, value)) = option(arg) else {
            let error = Error::unsupported(format!(
                "{function} takes one path or pattern in quotes, and options that are a name and a literal, such as header = true or types = {{'a': 'int'}}"
            ));
            let span = Span { line: place.line as u32, column: place.column as u32 };
            return ControlFlow::Break(if place.line == 0 { error } else { error.at(span) });
        };
        let literal = |text: String| {
            let value = Expr::value(Value::SingleQuotedString(text));
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
        };
        let (kind, parts) = match value {
            OptionValue::One(text) => (ONE, vec![text]),
            OptionValue::List(texts) => (LIST, texts),
            OptionValue::Named(pairs) => {
                (NAMED, pairs.into_iter().flat_map(|(name, text)| [name, text]).collect())
            }
        };
        literals.extend([literal(name), literal(kind.to_string()), literal(parts.join(SEPARATOR))]);
    }
    *args = literals;
    ControlFlow::Continue(())
}

/// The options that such literals stand for.
///
/// # Errors
/// They do not come from here.
pub(crate) fn options(literals: &[&String]) -> Result<Vec<FileOption>> {
    let option = |literals: &[&String]| {
        let [name, kind, value] = literals else { return None };
        let parts = || value.split(SEPARATOR).map(str::to_string).collect::<Vec<_>>();
        let value = match kind.as_str() {
            ONE => OptionValue::One(value.to_string()),
            LIST => OptionValue::List(parts()),
            NAMED => {
                let pair = |pair: &[String]| Some((pair.first()?.clone(), pair.get(1)?.clone()));
                OptionValue::Named(parts().chunks(2).map(pair).collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some(FileOption { name: name.to_string(), value })
    };
    literals
        .chunks(3)
        .map(|literals| option(literals).ok_or_else(|| Error::internal("options that are no triples")))
        .collect()
}

/// The type that SQL calls so.
///
/// # Errors
/// There is none.
pub fn type_called(text: &str) -> Result<Atom> {
    let unknown = || Error::semantic(format!("there is no type '{text}'"));
    let mut parser = Parser::new(&Tessera).try_with_sql(text).map_err(|error| from_parser(&error))?;
    let data_type = parser.parse_data_type().map_err(|_| unknown())?;
    if parser.peek_token().token != Token::EOF {
        return Err(unknown());
    }
    crate::logical::column_type(&data_type)
}

/// Name and value of `name = value`, `name := value` or `name => value`.
fn option(arg: FunctionArg) -> Option<(String, OptionValue)> {
    let (name, value) = match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => (normalised(&name), value),
        FunctionArg::ExprNamed { name, arg: FunctionArgExpr::Expr(value), .. } => {
            (option_name(&name)?, value)
        }
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq | BinaryOperator::Assignment,
            right,
        })) => (option_name(&left)?, *right),
        _ => return None,
    };
    let value = match value {
        Expr::Array(list) if !list.elem.is_empty() => {
            OptionValue::List(list.elem.into_iter().map(text).collect::<Option<_>>()?)
        }
        Expr::Dictionary(fields) if !fields.is_empty() => {
            let pair = |field: DictionaryField| Some((field.key.value, text(*field.value)?));
            OptionValue::Named(fields.into_iter().map(pair).collect::<Option<_>>()?)
        }
        value => OptionValue::One(text(value)?),
    };
    Some((name, value))
}

/// A literal as text.
fn text(value: Expr) -> Option<String> {
    Some(match value {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text,
            Value::Boolean(flag) => flag.to_string(),
            Value::Number(number, _) => number.to_string(),
            _ => return None,
        },
        // A minus before a number, and words such as `auto`.
        Expr::UnaryOp { .. } | Expr::Identifier(_) => value.to_string(),
        _ => return None,
    })
}

/// The name of an option, of which one is a word that stands for a value elsewhere: `null`.
fn option_name(name: &Expr) -> Option<String> {
    match name {
        Expr::Identifier(name) => Some(normalised(name)),
        Expr::Value(value) if value.value == Value::Null => Some("null".to_string()),
        _ => None,
    }
}
