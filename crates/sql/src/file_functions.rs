//! Functions in FROM that read files: `read_csv('path', delim = ';')`. The planner knows no names of
//! arguments; options become pairs of literals, a name and a value.

use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Spanned, TableFactor, Value};
use tessera_types::{Error, Span};

use crate::check::{Flow, normalised};
use crate::context::reads_files;

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
    let mut pairs = Vec::with_capacity(args.len() * 2);
    for (position, arg) in args.drain(..).enumerate() {
        if position == 0 {
            pairs.push(arg);
            continue;
        }
        let place = arg.span().start;
        let Some((name, value)) = option(arg) else {
            let error = Error::unsupported(format!(
                "{function} takes one path or pattern in quotes, and options that are a name and a literal, such as header = true"
            ));
            let span = Span { line: place.line as u32, column: place.column as u32 };
            return ControlFlow::Break(if place.line == 0 { error } else { error.at(span) });
        };
        let literal = |text: String| {
            let value = Expr::value(Value::SingleQuotedString(text));
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
        };
        pairs.extend([literal(name), literal(value)]);
    }
    *args = pairs;
    ControlFlow::Continue(())
}

/// Name and value of `name = value`, `name := value` or `name => value`.
fn option(arg: FunctionArg) -> Option<(String, String)> {
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
    let text = match value {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text,
            Value::Boolean(flag) => flag.to_string(),
            Value::Number(number, _) => number.to_string(),
            _ => return None,
        },
        // A minus before a number, and words such as `auto`.
        Expr::UnaryOp { .. } | Expr::Identifier(_) => value.to_string(),
        _ => return None,
    };
    Some((name, text))
}

/// The name of an option, of which one is a word that stands for a value elsewhere: `null`.
fn option_name(name: &Expr) -> Option<String> {
    match name {
        Expr::Identifier(name) => Some(normalised(name)),
        Expr::Value(value) if value.value == Value::Null => Some("null".to_string()),
        _ => None,
    }
}
