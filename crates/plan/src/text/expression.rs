//! The parser of expressions: precedence climbing, without recursion along chains.

use std::sync::Arc;

use tessera_types::{Code, Error, Result};

use super::TEXT_DEPTH_MAX;
use super::lexer::{Lexer, Token};
use super::literal::{Literal, is_whole};
use crate::expr::Expr;
use crate::lambda::Lambda;
use crate::typing::EXPR_DEPTH_MAX;

/// The precedence of operators; higher binds more tightly.
pub(super) mod precedence {
    pub(in crate::text) const OR: u8 = 1;
    pub(in crate::text) const AND: u8 = 2;
    pub(in crate::text) const NOT: u8 = 3;
    pub(in crate::text) const COMPARISON: u8 = 4;
    pub(in crate::text) const SUM: u8 = 5;
    pub(in crate::text) const PRODUCT: u8 = 6;
    pub(in crate::text) const NEGATION: u8 = 7;
    pub(in crate::text) const PRIMARY: u8 = 8;
}

/// Binary functions in infix notation: name, symbol, precedence.
pub(super) const INFIX: &[(&str, &str, u8)] = &[
    ("eq", "=", precedence::COMPARISON),
    ("not_eq", "<>", precedence::COMPARISON),
    ("lt", "<", precedence::COMPARISON),
    ("lt_eq", "<=", precedence::COMPARISON),
    ("gt", ">", precedence::COMPARISON),
    ("gt_eq", ">=", precedence::COMPARISON),
    ("like", "LIKE", precedence::COMPARISON),
    ("ilike", "ILIKE", precedence::COMPARISON),
    ("regex", "~", precedence::COMPARISON),
    ("iregex", "~*", precedence::COMPARISON),
    ("is_distinct", "IS DISTINCT FROM", precedence::COMPARISON),
    ("is_not_distinct", "IS NOT DISTINCT FROM", precedence::COMPARISON),
    ("add", "+", precedence::SUM),
    ("sub", "-", precedence::SUM),
    ("mul", "*", precedence::PRODUCT),
    ("div", "/", precedence::PRODUCT),
    ("mod", "%", precedence::PRODUCT),
];

/// An expression and its depth.
type ExprWithDepth = (Expr, usize);

/// Returns the error for nesting beyond [`TEXT_DEPTH_MAX`].
pub(super) fn too_deep(lexer: &Lexer<'_>) -> Error {
    let message =
        format!("the text is nested deeper than {TEXT_DEPTH_MAX} levels (TEXT_DEPTH_MAX)");
    Error::new(Code::Limit, message).at(lexer.here())
}

/// Parses an expression; `nesting` is the number of enclosing parentheses, brackets and braces.
pub(super) fn expr(lexer: &mut Lexer<'_>, nesting: usize) -> Result<Expr> {
    climb(lexer, 0, nesting).map(|(expr, _)| expr)
}

/// Parses a literal without its type; `None` if the next token does not start one.
pub(super) fn literal(lexer: &mut Lexer<'_>, nesting: usize) -> Result<Option<Literal>> {
    if nesting > TEXT_DEPTH_MAX {
        return Err(too_deep(lexer));
    }
    let start = lexer.clone();
    let negative = lexer.accept("-")?;
    Ok(Some(match lexer.next()? {
        Token::Number(number) if negative => Literal::Number(format!("-{number}")),
        Token::Keyword("INF") if negative => Literal::Float(f64::NEG_INFINITY),
        _ if negative => {
            *lexer = start;
            return Ok(None);
        }
        Token::Number(number) => Literal::Number(number),
        Token::Text(text) => Literal::Text(text),
        Token::Bytes(bytes) => Literal::Bytes(bytes),
        Token::Keyword("NULL") => Literal::Null,
        Token::Keyword("true") => Literal::Boolean(true),
        Token::Keyword("false") => Literal::Boolean(false),
        Token::Keyword("INF") => Literal::Float(f64::INFINITY),
        Token::Keyword("NAN") => Literal::Float(nan(lexer)?),
        Token::Keyword("INTERVAL") => {
            lexer.expect("(")?;
            let months = integer(lexer)?;
            lexer.expect(",")?;
            let days = integer(lexer)?;
            lexer.expect(",")?;
            let nanoseconds = integer(lexer)?;
            lexer.expect(")")?;
            Literal::Interval(months, days, nanoseconds)
        }
        Token::Keyword("ITEMS") => {
            lexer.expect("[")?;
            let mut items = Vec::new();
            while !lexer.accept("]")? {
                if !items.is_empty() {
                    lexer.expect(",")?;
                }
                let item = literal(lexer, nesting + 1)?;
                items.push(item.ok_or_else(|| lexer.unexpected("a literal"))?);
            }
            Literal::Items(items)
        }
        _ => {
            *lexer = start;
            return Ok(None);
        }
    }))
}

fn nan(lexer: &mut Lexer<'_>) -> Result<f64> {
    if !lexer.accept("(")? {
        return Ok(f64::NAN);
    }
    let bits = match lexer.next()? {
        Token::Bytes(bytes) => <[u8; 8]>::try_from(bytes).ok().map(u64::from_be_bytes),
        _ => None,
    };
    let value = bits.map(f64::from_bits).filter(|value| value.is_nan());
    let value = value.ok_or_else(|| {
        lexer.error("expected the 8 bytes of a NaN, such as NAN(x'7ff8000000000001')")
    })?;
    lexer.expect(")")?;
    Ok(value)
}

fn integer<T: std::str::FromStr>(lexer: &mut Lexer<'_>) -> Result<T> {
    let sign = if lexer.accept("-")? { "-" } else { "" };
    let number = match lexer.next()? {
        Token::Number(number) => format!("{sign}{number}"),
        other => return Err(lexer.error(format!("expected an integer, found {other}"))),
    };
    number.parse().map_err(|_| lexer.error(format!("integer {number} is out of range")))
}

/// Parses a constant: a literal, with or without its type; `None` if there is no literal.
fn constant(lexer: &mut Lexer<'_>, nesting: usize) -> Result<Option<Expr>> {
    let start = lexer.start();
    let raw = lexer.accept_keyword("RAW")?;
    let Some(literal) = literal(lexer, nesting)? else {
        return if raw { Err(lexer.unexpected("a literal after RAW")) } else { Ok(None) };
    };
    let atom = if lexer.accept("::")? { Some(lexer.atom()?) } else { literal.default_atom() };
    let atom = atom.ok_or_else(|| lexer.unexpected("`::` and the type of the nested constant"))?;
    let value = literal.scalar((!raw).then_some(&atom));
    let value = value.map_err(|message| Error::new(Code::Syntax, message).at(lexer.span(start)))?;
    Ok(Some(Expr::Constant(value, atom)))
}

fn check(lexer: &Lexer<'_>, depth: usize) -> Result<usize> {
    if depth > EXPR_DEPTH_MAX {
        let message = format!(
            "the expression is nested deeper than {EXPR_DEPTH_MAX} levels (EXPR_DEPTH_MAX)"
        );
        return Err(Error::new(Code::Limit, message).at(lexer.here()));
    }
    Ok(depth)
}

/// Parses operands and operators that bind at least as tightly as `least`.
fn climb(lexer: &mut Lexer<'_>, least: u8, nesting: usize) -> Result<ExprWithDepth> {
    if nesting > TEXT_DEPTH_MAX {
        return Err(too_deep(lexer));
    }
    let (mut left, mut depth) = prefix(lexer, nesting)?;
    loop {
        let Some(operator) = operator(lexer)? else { return Ok((left, depth)) };
        let binds = operator.precedence();
        if binds < least {
            return Ok((left, depth));
        }
        operator.take(lexer)?;
        match operator {
            Operator::IsNull { negated } => {
                left = Expr::IsNull(Box::new(left));
                if negated {
                    left = Expr::Not(Box::new(left));
                }
                depth = check(lexer, depth + 1 + usize::from(negated))?;
            }
            Operator::Infix(function, _) => {
                let (right, right_depth) = climb(lexer, binds + 1, nesting + 1)?;
                left = Expr::call(function, vec![left, right]);
                depth = check(lexer, depth.max(right_depth) + 1)?;
            }
            Operator::Connective(word) => {
                let mut list = vec![left];
                loop {
                    let (item, item_depth) = climb(lexer, binds + 1, nesting + 1)?;
                    list.push(item);
                    depth = depth.max(item_depth);
                    if !lexer.accept_keyword(word)? {
                        break;
                    }
                }
                left = if word == "AND" { Expr::And(list) } else { Expr::Or(list) };
                depth = check(lexer, depth + 1)?;
            }
        }
    }
}

/// An operator after an operand.
#[derive(Clone, Copy)]
enum Operator {
    IsNull { negated: bool },
    Infix(&'static str, u8),
    Connective(&'static str),
}

impl Operator {
    fn precedence(self) -> u8 {
        match self {
            Operator::IsNull { .. } => precedence::COMPARISON,
            Operator::Infix(_, binds) => binds,
            Operator::Connective("AND") => precedence::AND,
            Operator::Connective(_) => precedence::OR,
        }
    }

    /// Consumes the operator's tokens.
    fn take(self, lexer: &mut Lexer<'_>) -> Result<()> {
        let words = match self {
            Operator::IsNull { negated } => 2 + usize::from(negated),
            Operator::Infix("is_distinct", _) => 3,
            Operator::Infix("is_not_distinct", _) => 4,
            Operator::Infix(..) | Operator::Connective(_) => 1,
        };
        for _ in 0..words {
            lexer.next()?;
        }
        Ok(())
    }
}

/// Returns the next operator without consuming it.
fn operator(lexer: &mut Lexer<'_>) -> Result<Option<Operator>> {
    let sign = match lexer.peek()? {
        Token::Symbol(symbol) => *symbol,
        Token::Keyword(word @ ("AND" | "OR")) => return Ok(Some(Operator::Connective(word))),
        Token::Keyword("IS") => return is_operator(lexer.clone()).map(Some),
        Token::Keyword(word @ ("LIKE" | "ILIKE")) => *word,
        _ => return Ok(None),
    };
    let infix = INFIX.iter().find(|(_, found, _)| *found == sign);
    Ok(infix.map(|(function, _, binds)| Operator::Infix(function, *binds)))
}

/// Returns the operator that starts with IS, read from a copy of the lexer.
fn is_operator(mut ahead: Lexer<'_>) -> Result<Operator> {
    ahead.next()?;
    let negated = ahead.accept_keyword("NOT")?;
    if ahead.accept_keyword("NULL")? {
        return Ok(Operator::IsNull { negated });
    }
    if !ahead.accept_keyword("DISTINCT")? {
        return Err(ahead.unexpected("NULL or DISTINCT FROM after IS"));
    }
    ahead.expect_keyword("FROM")?;
    let function = if negated { "is_not_distinct" } else { "is_distinct" };
    Ok(Operator::Infix(function, precedence::COMPARISON))
}

fn prefix(lexer: &mut Lexer<'_>, nesting: usize) -> Result<ExprWithDepth> {
    if let Some(constant) = constant(lexer, nesting)? {
        return Ok((constant, 1));
    }
    match lexer.next()? {
        Token::Name(name) => {
            if !lexer.accept("(")? {
                return Ok((Expr::Field(name.into()), 1));
            }
            let (args, depth) = list(lexer, nesting)?;
            Ok((Expr::Call { function: name.into(), args }, check(lexer, depth)?))
        }
        Token::Parameter(name) => Ok((Expr::Parameter(name.into()), 1)),
        Token::Symbol("(") => {
            let inner = climb(lexer, 0, nesting + 1)?;
            lexer.expect(")")?;
            Ok(inner)
        }
        Token::Symbol("-") => {
            let (operand, depth) = climb(lexer, precedence::NEGATION, nesting + 1)?;
            Ok((Expr::call("neg", vec![operand]), check(lexer, depth + 1)?))
        }
        Token::Keyword(word) => keyword(lexer, word, nesting),
        other => Err(lexer.error(format!("expected an expression, found {other}"))),
    }
}

/// Parses the rest of an expression that starts with a keyword.
#[inline(never)]
fn keyword(lexer: &mut Lexer<'_>, word: &'static str, nesting: usize) -> Result<ExprWithDepth> {
    let (expr, depth) = match word {
        "NOT" => {
            let (operand, depth) = climb(lexer, precedence::NOT, nesting + 1)?;
            (Expr::Not(Box::new(operand)), depth + 1)
        }
        "CASE" => case(lexer, nesting + 1)?,
        "CAST" | "TRY_CAST" => {
            lexer.expect("(")?;
            let (input, depth) = climb(lexer, 0, nesting + 1)?;
            lexer.expect_keyword("AS")?;
            let to = lexer.atom()?;
            lexer.expect(")")?;
            (Expr::Cast { input: Box::new(input), to, safe: word == "TRY_CAST" }, depth + 1)
        }
        "TRY" => {
            lexer.expect("(")?;
            let (input, depth) = climb(lexer, 0, nesting + 1)?;
            lexer.expect(")")?;
            (Expr::Try(Box::new(input)), depth + 1)
        }
        "LAMBDA" => {
            lexer.expect("(")?;
            let parameters = lexer.tuple()?;
            lexer.expect(",")?;
            let (body, depth) = climb(lexer, 0, nesting + 1)?;
            lexer.expect(")")?;
            (Expr::Lambda(Arc::new(Lambda { parameters, body })), depth + 1)
        }
        "COALESCE" | "AND" | "OR" => {
            lexer.expect("(")?;
            let (items, depth) = list(lexer, nesting)?;
            let expr = match word {
                "COALESCE" => Expr::Coalesce(items),
                "AND" => Expr::And(items),
                _ => Expr::Or(items),
            };
            (expr, depth)
        }
        other => {
            let message = format!(
                "expected an expression, found `{other}`; quote it if it is the name of a field"
            );
            return Err(lexer.error(message));
        }
    };
    Ok((expr, check(lexer, depth)?))
}

/// Parses expressions up to `)`; returns them and the depth of the expression around them.
fn list(lexer: &mut Lexer<'_>, nesting: usize) -> Result<(Vec<Expr>, usize)> {
    let mut items = Vec::new();
    let mut deepest = 0;
    while !lexer.accept(")")? {
        if !items.is_empty() {
            lexer.expect(",")?;
        }
        let (item, depth) = climb(lexer, 0, nesting + 1)?;
        items.push(item);
        deepest = deepest.max(depth);
    }
    Ok((items, deepest + 1))
}

fn case(lexer: &mut Lexer<'_>, nesting: usize) -> Result<ExprWithDepth> {
    let mut branches = Vec::new();
    let mut otherwise = None;
    let mut deepest = 0;
    while lexer.accept_keyword("WHEN")? {
        let (condition, of_condition) = climb(lexer, 0, nesting)?;
        lexer.expect_keyword("THEN")?;
        let (value, of_value) = climb(lexer, 0, nesting)?;
        deepest = deepest.max(of_condition).max(of_value);
        branches.push((condition, value));
    }
    if lexer.accept_keyword("ELSE")? {
        let (value, depth) = climb(lexer, 0, nesting)?;
        deepest = deepest.max(depth);
        otherwise = Some(Box::new(value));
    }
    lexer.expect_keyword("END")?;
    Ok((Expr::Case { branches, otherwise }, deepest + 1))
}

/// Parses a literal that is a complete parameter value: a number, a string or a boolean, not an
/// expression.
pub(super) fn plain(lexer: &mut Lexer<'_>) -> Result<Option<Literal>> {
    let start = lexer.clone();
    let found = literal(lexer, 0)?;
    let found = found.filter(|literal| match literal {
        Literal::Boolean(_) | Literal::Text(_) => true,
        Literal::Number(number) => is_whole(number),
        _ => false,
    });
    if found.is_some() && matches!(lexer.peek()?, Token::Symbol("," | "]" | "}")) {
        return Ok(found);
    }
    *lexer = start;
    Ok(None)
}

/// Returns the printed form of a name in an expression.
pub(super) fn name(name: &str) -> String {
    if super::lexer::KEYWORDS.contains(&name) {
        format!("\"{name}\"")
    } else {
        tessera_types::quote_name(name)
    }
}

/// Returns the symbol and precedence of a call in infix notation.
pub(super) fn infix(function: &Arc<str>, args: &[Expr]) -> Option<(&'static str, u8)> {
    if args.len() != 2 {
        return None;
    }
    INFIX.iter().find(|(name, ..)| **name == **function).map(|(_, sign, binds)| (*sign, *binds))
}
