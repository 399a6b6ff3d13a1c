//! Table functions that read files, with named options: `read_csv('path', delim = ';')`.

use sqlparser::ast::{
    BinaryOperator, DictionaryField, Expr, FunctionArg, FunctionArgExpr, Spanned, Value,
};
use tessera_optimizer::table::{FileOption, OptionValue};
use tessera_types::{Error, Result};

use super::{normalized, with_span};

/// Returns the paths and patterns and the options of a call.
///
/// # Errors
/// An argument is not supported.
pub(crate) fn arguments(
    function: &str,
    args: &[FunctionArg],
) -> Result<(Vec<String>, Vec<FileOption>)> {
    let paths = match args.first() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Array(list)))) => {
            list.elem.iter().map(path).collect::<Option<Vec<_>>>().filter(|paths| !paths.is_empty())
        }
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))) => {
            path(expr).map(|path| vec![path])
        }
        _ => None,
    };
    let Some(paths) = paths else {
        return Err(Error::unsupported(format!(
            "{function} takes a path or pattern in quotes, or a list of them, and named options, as in \
             {function}('path', header = true)"
        )));
    };
    let mut options = Vec::with_capacity(args.len() - 1);
    for arg in &args[1..] {
        let Some((name, value)) = option(arg.clone()) else {
            let error = Error::unsupported(format!(
                "{function} takes a path or pattern in quotes and options with a name and a literal, such as \
                 header = true or types = {{'a': 'int'}}"
            ));
            return Err(with_span(error, arg.span()));
        };
        options.push(FileOption { name, value });
    }
    Ok((paths, options))
}

/// Returns a path or pattern in quotes.
fn path(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(path) | Value::EscapedStringLiteral(path) => {
                Some(path.clone())
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the name and value of `name = value`, `name := value` or `name => value`.
fn option(arg: FunctionArg) -> Option<(String, OptionValue)> {
    let (name, value) = match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
            (normalized(&name), value)
        }
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

/// Returns a literal as text.
fn text(value: Expr) -> Option<String> {
    Some(match value {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text,
            Value::Boolean(flag) => flag.to_string(),
            Value::Number(number, _) => number.to_string(),
            _ => return None,
        },
        // A signed number, or a word such as `auto`.
        Expr::UnaryOp { .. } | Expr::Identifier(_) => value.to_string(),
        _ => return None,
    })
}

/// Returns the name of an option; the option `null` is a keyword in other positions.
fn option_name(name: &Expr) -> Option<String> {
    match name {
        Expr::Identifier(name) => Some(normalized(name)),
        Expr::Value(value) if value.value == Value::Null => Some("null".to_string()),
        _ => None,
    }
}
