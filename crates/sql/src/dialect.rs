//! The SQL dialect: PostgreSQL's with additions of DuckDB.

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::effort::step;

/// PostgreSQL's dialect with DuckDB's `[1, 2]`, `{'a': 1}`, `EXCLUDE`, `REPLACE` and `FROM`-first
/// queries.
#[derive(Debug)]
pub(crate) struct Tessera;

/// The precedence of a sign: above `^`, below `::` and `[…]`.
const SIGN_PRECEDENCE: u8 = 125;

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

impl Dialect for Tessera {
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        POSTGRES.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        POSTGRES.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        POSTGRES.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        POSTGRES.is_identifier_part(ch)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        POSTGRES.is_reserved_for_identifier(keyword)
    }

    /// DuckDB's `struct_pack(a := 1)`.
    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    /// Parses prefix operators. A sign binds tighter than `^`: `-2^2` is 4. Other prefix operators
    /// bind like binary ones: `~5 + 1` is `~6`.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        step();
        if parser.peek_token_ref().token == Token::LParen
            && matches!(&parser.peek_nth_token_ref(1).token, Token::Word(word) if word.keyword == Keyword::VALUES)
        {
            return Some(values(parser));
        }
        let other = self.prec_value(Precedence::PgOther);
        let (op, precedence) = match parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, SIGN_PRECEDENCE),
            Token::Plus => (UnaryOperator::Plus, SIGN_PRECEDENCE),
            Token::Tilde => (UnaryOperator::BitwiseNot, other),
            Token::AtSign => (UnaryOperator::PGAbs, other),
            Token::PGSquareRoot => (UnaryOperator::PGSquareRoot, other),
            Token::PGCubeRoot => (UnaryOperator::PGCubeRoot, other),
            _ => return None,
        };
        parser.next_token();
        let operand = parser.parse_subexpr(precedence);
        Some(operand.map(|operand| Expr::UnaryOp { op, expr: Box::new(operand) }))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        _: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if word_follows(parser, "isnull") {
            parser.next_token();
            return Some(Ok(Expr::IsNull(Box::new(expr.clone()))));
        }
        self.distinct_from(parser, expr).or_else(|| self.between(parser, expr))
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        if word_follows(parser, "isnull") {
            return Some(Ok(self.prec_value(Precedence::Is)));
        }
        POSTGRES.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        POSTGRES.prec_value(precedence)
    }

    fn supports_empty_projections(&self) -> bool {
        true
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_within_after_array_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn supports_notnull_operator(&self) -> bool {
        true
    }

    fn supports_interval_options(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    fn supports_dictionary_syntax(&self) -> bool {
        true
    }

    fn support_map_literal_syntax(&self) -> bool {
        true
    }

    /// The parser asks this at the start of each SELECT.
    fn supports_from_first_select(&self) -> bool {
        step();
        true
    }

    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }

    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }

    fn supports_select_expr_star(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn supports_order_by_all(&self) -> bool {
        true
    }
}

/// Parses `(VALUES (1))` as a subquery.
fn values(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Subquery(query))
}

/// Returns whether the next token is this word without quotes.
fn word_follows(parser: &Parser<'_>, word: &str) -> bool {
    match &parser.peek_token_ref().token {
        Token::Word(found) => found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word),
        _ => false,
    }
}

impl Tessera {
    /// Parses `IS [NOT] DISTINCT FROM`; its right side ends before AND and OR.
    fn distinct_from(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
    ) -> Option<Result<Expr, ParserError>> {
        use Keyword::{DISTINCT, FROM, IS, NOT};
        let negated = if parser.parse_keywords(&[IS, DISTINCT, FROM]) {
            false
        } else if parser.parse_keywords(&[IS, NOT, DISTINCT, FROM]) {
            true
        } else {
            return None;
        };
        let right = parser.parse_subexpr(self.prec_value(Precedence::Is));
        let left = Box::new(left.clone());
        Some(right.map(|right| match negated {
            false => Expr::IsDistinctFrom(left, Box::new(right)),
            true => Expr::IsNotDistinctFrom(left, Box::new(right)),
        }))
    }

    /// Parses `[NOT] BETWEEN SYMMETRIC` into two BETWEEN tests with the bounds in either order.
    /// ASYMMETRIC is the default.
    fn between(&self, parser: &mut Parser<'_>, value: &Expr) -> Option<Result<Expr, ParserError>> {
        use Keyword::{ASYMMETRIC, BETWEEN, NOT, SYMMETRIC};
        let mut follow = |keywords: &[Keyword]| parser.parse_keywords(keywords);
        let (negated, symmetric) = if follow(&[BETWEEN, SYMMETRIC]) {
            (false, true)
        } else if follow(&[NOT, BETWEEN, SYMMETRIC]) {
            (true, true)
        } else if follow(&[BETWEEN, ASYMMETRIC]) {
            (false, false)
        } else if follow(&[NOT, BETWEEN, ASYMMETRIC]) {
            (true, false)
        } else {
            return None;
        };
        let precedence = self.prec_value(Precedence::Between);
        let mut bounds = || {
            let low = parser.parse_subexpr(precedence)?;
            parser.expect_keyword(Keyword::AND)?;
            Ok((low, parser.parse_subexpr(precedence)?))
        };
        Some(bounds().map(|(low, high)| {
            let between = |low: &Expr, high: &Expr| Expr::Between {
                expr: Box::new(value.clone()),
                negated,
                low: Box::new(low.clone()),
                high: Box::new(high.clone()),
            };
            if !symmetric {
                return between(&low, &high);
            }
            let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
            let (left, right) = (Box::new(between(&low, &high)), Box::new(between(&high, &low)));
            Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }))
        }))
    }
}
