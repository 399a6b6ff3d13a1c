//! Typing of expressions.

use tessera_types::{Atom, Error, Item, Result, Tuple, did_you_mean, quote_name};

use crate::expr::Expr;
use crate::operator_catalog::Functions;

/// The maximum depth of an expression; deeper ones are rejected before they overflow the stack.
pub const EXPR_DEPTH_MAX: usize = 12_000;

/// The scope in which names of an expression are resolved.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The input tuple.
    pub tuple: &'a Tuple,
    /// The parameter tuple of the plan.
    pub parameters: &'a Tuple,
    /// The types of functions.
    pub functions: &'a dyn Functions,
}

/// Returns the type of an expression, and whether its value may be NULL.
///
/// # Errors
/// A name is unknown, or types do not match; the message has the names and both types.
pub fn type_of(expr: &Expr, scope: Scope<'_>) -> Result<(Atom, bool)> {
    type_at(expr, scope, 0)
}

/// Checks that `expr` is a boolean: a predicate.
///
/// # Errors
/// See [`type_of`]; also, the type is not boolean.
pub fn check_predicate(expr: &Expr, scope: Scope<'_>) -> Result<()> {
    boolean(expr, scope, 0, "a predicate").map(|_| ())
}

fn type_at(expr: &Expr, scope: Scope<'_>, depth: usize) -> Result<(Atom, bool)> {
    if depth > EXPR_DEPTH_MAX {
        let message = format!(
            "the expression is nested deeper than {EXPR_DEPTH_MAX} levels (EXPR_DEPTH_MAX)"
        );
        return Err(Error::new(tessera_types::Code::Limit, message));
    }
    let below = |expr: &Expr| type_at(expr, scope, depth + 1);
    Ok(match expr {
        Expr::Field(name) => lookup(name, scope.tuple, "field")?,
        Expr::Parameter(name) => lookup(name, scope.parameters, "parameter")?,
        Expr::Constant(value, atom) if !value.fits(atom) => {
            let constant = crate::text::print_expr(expr);
            return Err(Error::semantic(format!(
                "constant {constant} is not a valid value of type {atom}"
            )));
        }
        Expr::Constant(value, atom) => (atom.clone(), value.is_null()),
        Expr::Call { function, args } => {
            let types = args.iter().map(below).collect::<Result<Vec<_>>>()?;
            let args: Vec<_> =
                types.into_iter().zip(args).map(|((atom, null), arg)| (atom, null, arg)).collect();
            scope.functions.scalar(function, &args)?
        }
        Expr::Cast { input, to, safe } => {
            let (_, nullable) = below(input)?;
            (to.clone(), nullable || *safe)
        }
        Expr::Case { branches, otherwise } => {
            let mut values = Vec::new();
            for (condition, value) in branches {
                boolean(condition, scope, depth + 1, "a CASE condition")?;
                values.push(below(value)?);
            }
            let otherwise = otherwise.as_ref().map(|e| below(e)).transpose()?;
            let nullable = otherwise.is_none();
            values.extend(otherwise);
            let (atom, any) = same_type(&values, "CASE")?;
            (atom, any || nullable)
        }
        Expr::And(list) | Expr::Or(list) => {
            let mut nullable = false;
            for item in list {
                nullable |= boolean(item, scope, depth + 1, "an operand of AND or OR")?;
            }
            (Atom::Boolean, nullable)
        }
        Expr::Not(input) => {
            (Atom::Boolean, boolean(input, scope, depth + 1, "the operand of NOT")?)
        }
        Expr::Lambda(lambda) => {
            let none = Tuple::empty();
            let functions = scope.functions;
            let scope = Scope { tuple: &lambda.parameters, parameters: &none, functions };
            type_at(&lambda.body, scope, depth + 1)?
        }
        Expr::IsNull(input) => below(input).map(|_| (Atom::Boolean, false))?,
        Expr::Try(input) => {
            (Atom::Boolean, boolean(input, scope, depth + 1, "the operand of try")?)
        }
        Expr::Coalesce(list) => {
            let values = list.iter().map(below).collect::<Result<Vec<_>>>()?;
            let (atom, _) = same_type(&values, "coalesce")?;
            (atom, values.iter().all(|(_, nullable)| *nullable))
        }
    })
}

fn lookup(name: &str, tuple: &Tuple, what: &str) -> Result<(Atom, bool)> {
    match tuple.field(name) {
        Some(field) => match &field.item {
            Item::Atom(atom) => Ok((atom.clone(), field.nullable)),
            Item::Collection(collection) => Err(Error::semantic(format!(
                "{what} {} holds a collection ({}) and cannot be used in an expression; scan it first",
                quote_name(name),
                collection.format
            ))),
        },
        None => {
            let hint = did_you_mean(name, tuple.fields().iter().map(|field| &*field.name));
            let name = quote_name(name);
            Err(Error::semantic(format!("unknown {what} {name} in {tuple}{hint}")))
        }
    }
}

fn boolean(expr: &Expr, scope: Scope<'_>, depth: usize, what: &str) -> Result<bool> {
    match type_at(expr, scope, depth)? {
        (Atom::Boolean, nullable) => Ok(nullable),
        (other, _) => Err(Error::semantic(format!("{what} must be boolean, not {other}"))),
    }
}

fn same_type(values: &[(Atom, bool)], what: &str) -> Result<(Atom, bool)> {
    let Some((first, _)) = values.first() else {
        return Err(Error::semantic(format!("{what} has no values; it needs at least one")));
    };
    match values.iter().find(|(atom, _)| atom != first) {
        Some((other, _)) => Err(Error::semantic(format!(
            "{what} has values of types {first} and {other}; cast one of them"
        ))),
        None => Ok((first.clone(), values.iter().any(|(_, nullable)| *nullable))),
    }
}
