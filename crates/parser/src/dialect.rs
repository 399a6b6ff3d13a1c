//! The SQL dialect: PostgreSQL's with additions of DuckDB.

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, DateTimeField, Expr, Interval, UnaryOperator, Value};
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

/// Words that end a list after a comma that nothing follows. All are reserved.
const ENDS_LIST: [Keyword; 18] = [
    Keyword::AS,
    Keyword::EXCEPT,
    Keyword::FETCH,
    Keyword::FOR,
    Keyword::FROM,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::INTERSECT,
    Keyword::INTO,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::ORDER,
    Keyword::QUALIFY,
    Keyword::SELECT,
    Keyword::UNION,
    Keyword::USING,
    Keyword::WHERE,
    Keyword::WINDOW,
];

/// Words that are names in PostgreSQL and not in the parser.
const NAMES: [Keyword; 6] = [
    Keyword::CLUSTER,
    Keyword::DISTRIBUTE,
    Keyword::EXPLAIN,
    Keyword::SORT,
    Keyword::TOP,
    Keyword::VIEW,
];

/// Plural units that are no keywords.
const UNITS: [&str; 4] = ["quarters", "decades", "centuries", "millennia"];

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
        if let Some(interval) = interval(parser).transpose() {
            return Some(interval);
        }
        let other = self.prec_value(Precedence::PgOther);
        if parser.peek_token_ref().token == Token::Question {
            // The statement's parameters are numbered when all of them are known.
            let span = parser.next_token().span;
            return Some(Ok(Expr::Value(Value::Placeholder("?".to_string()).with_span(span))));
        }
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
        // After a cast, or after another COLLATE.
        if parser.parse_keyword(Keyword::COLLATE) {
            let collation = parser.parse_object_name(false);
            let expr = Box::new(expr.clone());
            return Some(collation.map(|collation| Expr::Collate { expr, collation }));
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

    fn supports_trailing_commas(&self) -> bool {
        true
    }

    fn supports_from_trailing_commas(&self) -> bool {
        true
    }

    fn supports_lambda_functions(&self) -> bool {
        true
    }

    fn supports_select_wildcard_rename(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_values_as_table_factor(&self) -> bool {
        true
    }

    fn supports_string_literal_concatenation_with_newline(&self) -> bool {
        true
    }

    /// The parser asks this where a query may begin with another word than SELECT.
    fn supports_duckdb_queries(&self) -> bool {
        step();
        true
    }

    fn supports_asof_join_on(&self) -> bool {
        true
    }

    fn supports_positional_join(&self) -> bool {
        true
    }

    fn supports_list_comprehensions(&self) -> bool {
        true
    }

    fn supports_select_wildcard_like(&self) -> bool {
        true
    }

    fn supports_unpacked_columns(&self) -> bool {
        true
    }

    fn supports_from_first_clauses(&self) -> bool {
        true
    }

    fn supports_using_sample(&self) -> bool {
        true
    }

    fn supports_frame_exclude(&self) -> bool {
        true
    }

    fn supports_limit_percent(&self) -> bool {
        true
    }

    fn supports_fetch_expressions(&self) -> bool {
        true
    }

    fn supports_grouping_set_expressions(&self) -> bool {
        true
    }

    fn supports_prefix_aliases(&self) -> bool {
        true
    }

    fn supports_integer_division_operator(&self) -> bool {
        true
    }

    fn supports_power_operator(&self) -> bool {
        true
    }

    /// TOP is a name.
    fn supports_top(&self) -> bool {
        false
    }

    fn ends_list_after_comma(&self, word: &Keyword) -> Option<bool> {
        Some(ENDS_LIST.contains(word))
    }

    fn is_column_alias(&self, word: &Keyword, parser: &mut Parser<'_>) -> bool {
        match word {
            Keyword::USING => !parser.peek_keyword(Keyword::SAMPLE),
            word if NAMES.contains(word) => true,
            word => POSTGRES.is_column_alias(word, parser),
        }
    }

    fn is_table_alias(&self, word: &Keyword, parser: &mut Parser<'_>) -> bool {
        match word {
            // The parser looks ahead for ASOF JOIN.
            Keyword::ASOF | Keyword::SAMPLE => true,
            Keyword::PIVOT | Keyword::UNPIVOT => {
                let next = parser.peek_token_ref();
                let nulls = [Keyword::INCLUDE, Keyword::EXCLUDE];
                next.token != Token::LParen && parser.peek_one_of_keywords(&nulls).is_none()
            }
            word if NAMES.contains(word) => true,
            word => POSTGRES.is_table_alias(word, parser),
        }
    }
}

/// Parses DuckDB's intervals of a number in parentheses, `interval (a + 1) day`, and of units that
/// are no keywords, `interval 3 decades`; `None` for other expressions.
fn interval(parser: &mut Parser<'_>) -> Result<Option<Expr>, ParserError> {
    let begins = |at: usize, wanted: Keyword| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if word.keyword == wanted);
    let of_number = matches!(parser.peek_nth_token_ref(1).token, Token::LParen | Token::Number(..));
    if !begins(0, Keyword::INTERVAL) || !of_number {
        return Ok(None);
    }
    parser.maybe_parse(|parser| {
        parser.next_token();
        let value = Box::new(parser.parse_prefix()?);
        let leading_field = match parser.next_token_is_temporal_unit() {
            true => parser.parse_date_time_field()?,
            false => DateTimeField::Custom(parser.parse_identifier()?),
        };
        if let DateTimeField::Custom(unit) = &leading_field
            && !UNITS.iter().any(|known| unit.value.eq_ignore_ascii_case(known))
        {
            return parser.expected("a unit", parser.peek_token());
        }
        Ok(Expr::Interval(Interval {
            value,
            leading_field: Some(leading_field),
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        }))
    })
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
