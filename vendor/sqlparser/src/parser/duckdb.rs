// Licensed to the Apache Software Foundation (ASF) under one
// or more contributor license agreements.  See the NOTICE file
// distributed with this work for additional information
// regarding copyright ownership.  The ASF licenses this file
// to you under the Apache License, Version 2.0 (the
// "License"); you may not use this file except in compliance
// with the License.  You may obtain a copy of the License at
//
//   http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing,
// software distributed under the License is distributed on an
// "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY
// KIND, either express or implied.  See the License for the
// specific language governing permissions and limitations
// under the License.

//! DuckDB's additions to queries.

use super::*;

/// A word that begins a query.
#[derive(Clone, Copy, PartialEq)]
enum QueryWord {
    Pivot,
    Unpivot,
    Describe(DescribeKind),
}

/// Returns whether a token is this word without quotes.
fn is_word(token: &Token, expected: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

fn query_word(word: &Word) -> Option<QueryWord> {
    if word.quote_style.is_some() {
        return None;
    }
    match word.keyword {
        Keyword::PIVOT => Some(QueryWord::Pivot),
        Keyword::UNPIVOT => Some(QueryWord::Unpivot),
        Keyword::DESCRIBE | Keyword::DESC => Some(QueryWord::Describe(DescribeKind::Describe)),
        Keyword::SHOW => Some(QueryWord::Describe(DescribeKind::Show)),
        _ if word.value.eq_ignore_ascii_case("pivot_wider") => Some(QueryWord::Pivot),
        _ if word.value.eq_ignore_ascii_case("pivot_longer") => Some(QueryWord::Unpivot),
        _ if word.value.eq_ignore_ascii_case("summarize") => {
            Some(QueryWord::Describe(DescribeKind::Summarize))
        }
        _ => None,
    }
}

impl Parser<'_> {
    /// Consumes the next token if it is this word without quotes.
    fn parse_word(&mut self, expected: &str) -> bool {
        let follows = is_word(&self.peek_token_ref().token, expected);
        if follows {
            self.advance_token();
        }
        follows
    }

    /// Returns whether a word, the first of a statement, begins a query of DuckDB.
    pub(super) fn is_duckdb_query(&self, word: &Word) -> bool {
        self.dialect.supports_duckdb_queries()
            && (word.keyword == Keyword::TABLE || query_word(word).is_some())
    }

    /// Returns whether the next tokens begin a query of DuckDB where an expression may stand, too.
    pub(super) fn peek_duckdb_sub_query(&self) -> bool {
        if !self.dialect.supports_duckdb_queries() {
            return false;
        }
        if self.peek_keyword(Keyword::FROM) {
            return true;
        }
        let [first, second] = self.peek_tokens_ref();
        if let (Token::Word(first), Token::LParen) = (&first.token, &second.token) {
            return first.keyword == Keyword::VALUES;
        }
        let (Token::Word(first), Token::Word(second)) = (&first.token, &second.token) else {
            return false;
        };
        // Words that continue an expression whose first word is a column.
        let continues = [
            Keyword::AND,
            Keyword::OR,
            Keyword::IS,
            Keyword::NOTNULL,
            Keyword::NOT,
            Keyword::IN,
            Keyword::LIKE,
            Keyword::ILIKE,
            Keyword::SIMILAR,
            Keyword::BETWEEN,
            Keyword::COLLATE,
            Keyword::AT,
            Keyword::OPERATOR,
            Keyword::OVERLAPS,
            Keyword::XOR,
        ];
        let is_table = first.keyword == Keyword::TABLE && first.quote_style.is_none();
        (is_table || query_word(first).is_some())
            && !second.value.eq_ignore_ascii_case("isnull")
            && (second.quote_style.is_some() || !continues.contains(&second.keyword))
    }

    /// Parses `TABLE name`, or a query that begins with a word of DuckDB.
    pub(super) fn maybe_parse_duckdb_query(&mut self) -> Result<Option<SetExpr>, ParserError> {
        if !self.dialect.supports_duckdb_queries() {
            return Ok(None);
        }
        if self.peek_keyword(Keyword::TABLE) {
            return Ok(Some(SetExpr::Select(self.parse_table_command()?.into())));
        }
        let word = match &self.peek_token_ref().token {
            Token::Word(word) => query_word(word),
            _ => None,
        };
        let Some(word) = word else { return Ok(None) };
        let token = AttachedToken(self.next_token());
        Ok(Some(match word {
            QueryWord::Pivot => SetExpr::Pivot(self.parse_pivot_query(token)?.into()),
            QueryWord::Unpivot => SetExpr::Unpivot(self.parse_unpivot_query(token)?.into()),
            QueryWord::Describe(kind) => {
                SetExpr::Describe(self.parse_describe_query(token, kind)?.into())
            }
        }))
    }

    /// Parses `table ON columns USING aggregates GROUP BY names`, after PIVOT.
    fn parse_pivot_query(&mut self, token: AttachedToken) -> Result<PivotQuery, ParserError> {
        let table = self.parse_table_and_joins()?;
        let mut query = PivotQuery {
            token,
            table,
            on: vec![],
            using: vec![],
            group_by: vec![],
        };
        if self.parse_keyword(Keyword::ON) {
            query.on = self.parse_comma_separated(Parser::parse_pivot_column)?;
        }
        if self.parse_keyword(Keyword::USING) {
            query.using = self.parse_comma_separated(|parser| {
                let expr = parser.parse_expr()?;
                let alias = parser.maybe_parse_select_item_alias()?;
                Ok(ExprWithAlias { expr, alias })
            })?;
        }
        if self.parse_keywords(&[Keyword::GROUP, Keyword::BY]) {
            let in_parentheses = self.consume_token(&Token::LParen);
            query.group_by = self.parse_comma_separated(Parser::parse_identifier)?;
            if in_parentheses {
                self.expect_token(&Token::RParen)?;
            }
        }
        if query.on.is_empty() && query.using.is_empty() && query.group_by.is_empty() {
            return self.expected_ref("ON, USING or GROUP BY in PIVOT", self.peek_token_ref());
        }
        Ok(query)
    }

    /// Parses `expression [IN (values)]`.
    fn parse_pivot_column(&mut self) -> Result<PivotColumn, ParserError> {
        let expr = self.parse_subexpr(self.dialect.prec_value(Precedence::Between))?;
        let values = if self.parse_keyword(Keyword::IN) {
            self.expect_token(&Token::LParen)?;
            let values = if self.peek_sub_query() {
                PivotValueSource::Subquery(self.parse_query()?)
            } else {
                let values = |parser: &mut Self| {
                    let expr = parser.parse_expr()?;
                    let alias = parser.maybe_parse_select_item_alias()?;
                    Ok(ExprWithAlias { expr, alias })
                };
                PivotValueSource::List(self.parse_comma_separated(values)?)
            };
            self.expect_token(&Token::RParen)?;
            Some(values)
        } else {
            None
        };
        Ok(PivotColumn { expr, values })
    }

    /// Parses `[INCLUDE NULLS] table ON columns INTO NAME name VALUE values`, after UNPIVOT.
    fn parse_unpivot_query(&mut self, token: AttachedToken) -> Result<UnpivotQuery, ParserError> {
        let mut include_nulls = self.parse_keywords(&[Keyword::INCLUDE, Keyword::NULLS]);
        if !include_nulls {
            let _ = self.parse_keywords(&[Keyword::EXCLUDE, Keyword::NULLS]);
        }
        let table = self.parse_table_and_joins()?;
        if self.parse_keywords(&[Keyword::INCLUDE, Keyword::NULLS]) {
            include_nulls = true;
        }
        self.expect_keyword_is(Keyword::ON)?;
        let on = self.parse_projection()?;
        let (mut name, mut values) = (None, vec![]);
        if self.parse_keyword(Keyword::INTO) {
            self.expect_keyword_is(Keyword::NAME)?;
            name = Some(self.parse_identifier()?);
            self.expect_one_of_keywords(&[Keyword::VALUE, Keyword::VALUES])?;
            let in_parentheses = self.consume_token(&Token::LParen);
            values = self.parse_comma_separated(Parser::parse_identifier)?;
            if in_parentheses {
                self.expect_token(&Token::RParen)?;
            }
        }
        Ok(UnpivotQuery {
            token,
            include_nulls,
            table,
            on,
            name,
            values,
        })
    }

    /// Parses the subject of DESCRIBE, SHOW and SUMMARIZE.
    fn parse_describe_query(
        &mut self,
        token: AttachedToken,
        kind: DescribeKind,
    ) -> Result<DescribeQuery, ParserError> {
        let begins_query = [
            Keyword::SELECT,
            Keyword::WITH,
            Keyword::FROM,
            Keyword::VALUES,
            Keyword::TABLE,
            Keyword::PIVOT,
            Keyword::UNPIVOT,
        ];
        let ends = matches!(
            self.peek_token_ref().token,
            Token::RParen | Token::SemiColon | Token::EOF
        );
        let subject = if kind != DescribeKind::Summarize
            && (self.parse_keyword(Keyword::TABLES) || (ends && kind == DescribeKind::Describe))
        {
            DescribeSubject::Tables
        } else if self.peek_token_ref().token == Token::LParen
            || (kind != DescribeKind::Show
                && (self.peek_one_of_keywords(&begins_query).is_some()
                    || self.peek_duckdb_sub_query()))
        {
            DescribeSubject::Query(self.parse_query()?)
        } else {
            DescribeSubject::Name(self.parse_object_name(false)?)
        };
        Ok(DescribeQuery {
            token,
            kind,
            subject,
        })
    }

    /// Parses `TABLE name` as `SELECT * FROM name`.
    fn parse_table_command(&mut self) -> Result<Select, ParserError> {
        let token = self.expect_keyword(Keyword::TABLE)?;
        let name = self.parse_object_name(false)?;
        let relation = TableFactor::Table {
            name,
            alias: None,
            args: None,
            with_hints: vec![],
            version: None,
            partitions: vec![],
            with_ordinality: false,
            json_path: None,
            sample: None,
            index_hints: vec![],
        };
        let from = TableWithJoins {
            relation,
            joins: vec![],
        };
        Ok(all_columns(token, vec![from]))
    }

    /// Parses the clauses after FROM of a query that begins with FROM and has no SELECT.
    pub(super) fn parse_select_clauses(
        &mut self,
        mut select: Select,
    ) -> Result<Select, ParserError> {
        if self.parse_keyword(Keyword::WHERE) {
            select.selection = Some(self.parse_expr()?);
        }
        if let Some(group_by) = self.parse_optional_group_by()? {
            select.group_by = group_by;
        }
        if self.parse_keyword(Keyword::HAVING) {
            select.having = Some(self.parse_expr()?);
        }
        if self.parse_keyword(Keyword::WINDOW) {
            select.named_window = self.parse_comma_separated(Parser::parse_named_window)?;
            select.window_before_qualify = true;
        }
        if self.parse_keyword(Keyword::QUALIFY) {
            select.qualify = Some(self.parse_expr()?);
        }
        select.sample = self.maybe_parse_using_sample()?;
        Ok(select)
    }

    /// Parses the further columns of `table PIVOT (aggregates FOR a IN (...) b IN (...) GROUP BY c)`,
    /// after the first one.
    pub(super) fn parse_pivot_of_duckdb(
        &mut self,
        table: TableFactor,
        using: Vec<ExprWithAlias>,
        first: Option<PivotColumn>,
    ) -> Result<TableFactor, ParserError> {
        let mut on = Vec::from_iter(first);
        let mut group_by = vec![];
        loop {
            if self.parse_keywords(&[Keyword::GROUP, Keyword::BY]) {
                group_by = self.parse_comma_separated(Parser::parse_identifier)?;
                self.expect_token(&Token::RParen)?;
                break;
            }
            if self.consume_token(&Token::RParen) {
                break;
            }
            let column = self.parse_pivot_column()?;
            if column.values.is_none() {
                return self.expected_ref("IN and values in PIVOT", self.peek_token_ref());
            }
            on.push(column);
        }
        let table = TableWithJoins {
            relation: table,
            joins: vec![],
        };
        let pivot = PivotQuery {
            token: AttachedToken::empty(),
            table,
            on,
            using,
            group_by,
        };
        let body = Box::new(SetExpr::Pivot(Box::new(pivot)));
        Ok(TableFactor::Derived {
            lateral: false,
            subquery: Box::new(query_of(body)),
            alias: self.maybe_parse_table_alias()?,
            sample: None,
        })
    }

    /// Parses `EXCLUDE ...` at the end of a frame.
    pub(super) fn maybe_parse_frame_exclude(
        &mut self,
    ) -> Result<Option<WindowFrameExclude>, ParserError> {
        if !self.dialect.supports_frame_exclude() || !self.parse_keyword(Keyword::EXCLUDE) {
            return Ok(None);
        }
        if self.parse_keywords(&[Keyword::CURRENT, Keyword::ROW]) {
            Ok(Some(WindowFrameExclude::CurrentRow))
        } else if self.parse_keyword(Keyword::GROUP) {
            Ok(Some(WindowFrameExclude::Group))
        } else if self.parse_keyword(Keyword::TIES) {
            Ok(Some(WindowFrameExclude::Ties))
        } else if self.parse_keyword(Keyword::NO) {
            if !self.parse_word("others") {
                return self.expected_ref("OTHERS after EXCLUDE NO", self.peek_token_ref());
            }
            Ok(Some(WindowFrameExclude::NoOthers))
        } else {
            self.expected_ref(
                "CURRENT ROW, GROUP, TIES or NO OTHERS after EXCLUDE",
                self.peek_token_ref(),
            )
        }
    }

    /// Returns whether `USING SAMPLE` follows, rather than `USING (columns)`.
    pub(super) fn peek_using_sample(&self) -> bool {
        self.dialect.supports_using_sample()
            && self.peek_keyword(Keyword::USING)
            && matches!(&self.peek_nth_token_ref(1).token, Token::Word(word) if word.keyword == Keyword::SAMPLE)
    }

    /// Parses `USING SAMPLE ...`.
    pub(super) fn maybe_parse_using_sample(
        &mut self,
    ) -> Result<Option<Box<TableSample>>, ParserError> {
        if !self.peek_using_sample() {
            return Ok(None);
        }
        self.advance_token();
        self.advance_token();
        self.parse_sample_of_duckdb(TableSampleModifier::UsingSample)
            .map(Some)
    }

    /// Parses `method (size) REPEATABLE (seed)`, or `size [unit] [(method [, seed])]`.
    pub(super) fn parse_sample_of_duckdb(
        &mut self,
        modifier: TableSampleModifier,
    ) -> Result<Box<TableSample>, ParserError> {
        let (mut name, mut seed) = (None, None);
        let quantity = match &self.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => {
                name = Some(TableSampleMethod::Named(self.parse_identifier()?));
                if !self.consume_token(&Token::LParen) {
                    return self.expected_ref(
                        "( after the method of the sample",
                        self.peek_token_ref(),
                    );
                }
                let (value, is_percent) = self.parse_amount()?;
                let unit = self.parse_sample_unit(is_percent);
                self.expect_token(&Token::RParen)?;
                TableSampleQuantity {
                    parenthesized: true,
                    value,
                    unit,
                }
            }
            Token::Number(..) => {
                let value = Expr::Value(self.parse_value()?);
                let unit = self.parse_sample_unit(false);
                if self.consume_token(&Token::LParen) {
                    if !matches!(self.peek_token_ref().token, Token::Word(_)) {
                        return self
                            .expected_ref("the method of the sample", self.peek_token_ref());
                    }
                    name = Some(TableSampleMethod::Named(self.parse_identifier()?));
                    if self.consume_token(&Token::Comma) {
                        seed = Some(self.parse_expr()?);
                    }
                    self.expect_token(&Token::RParen)?;
                }
                TableSampleQuantity {
                    parenthesized: name.is_some(),
                    value,
                    unit,
                }
            }
            _ => {
                return self.expected_ref(
                    "a method (bernoulli, system, reservoir) or the size of the sample",
                    self.peek_token_ref(),
                )
            }
        };
        if self.parse_keyword(Keyword::REPEATABLE) {
            if !self.consume_token(&Token::LParen) {
                return self.expected_ref("( after REPEATABLE", self.peek_token_ref());
            }
            seed = Some(self.parse_expr()?);
            self.expect_token(&Token::RParen)?;
        }
        let seed = seed.map(|value| TableSampleSeed {
            modifier: TableSampleSeedModifier::Repeatable,
            value,
        });
        Ok(Box::new(TableSample {
            modifier,
            name,
            quantity: Some(quantity),
            seed,
            bucket: None,
            offset: None,
        }))
    }

    /// Parses `%`, PERCENT or ROWS.
    fn parse_sample_unit(&mut self, is_percent: bool) -> Option<TableSampleUnit> {
        if is_percent || self.consume_token(&Token::Mod) || self.parse_keyword(Keyword::PERCENT) {
            Some(TableSampleUnit::Percent)
        } else if self.parse_keyword(Keyword::ROWS) {
            Some(TableSampleUnit::Rows)
        } else {
            None
        }
    }

    /// Parses a number with `%` or PERCENT after it, or any expression; returns whether it is a
    /// percentage.
    pub(super) fn parse_amount(&mut self) -> Result<(Expr, bool), ParserError> {
        let precedence = self.dialect.prec_value(Precedence::MulDivModOp);
        let mut expr = self.parse_subexpr(precedence)?;
        if self.peek_token_ref().token == Token::Mod {
            let ends = match &self.peek_nth_token_ref(1).token {
                Token::EOF | Token::SemiColon | Token::RParen => true,
                Token::Word(word) => [
                    Keyword::OFFSET,
                    Keyword::UNION,
                    Keyword::EXCEPT,
                    Keyword::INTERSECT,
                    Keyword::FETCH,
                    Keyword::FOR,
                ]
                .contains(&word.keyword),
                _ => false,
            };
            if ends {
                self.advance_token();
                return Ok((expr, true));
            }
        }
        // What parse_subexpr does, after the operators that bind tighter.
        loop {
            let next = self.get_next_precedence()?;
            if next <= self.dialect.prec_unknown() {
                break;
            }
            expr = self.parse_infix(expr, next)?;
        }
        let is_percent = self.parse_keyword(Keyword::PERCENT);
        Ok((expr, is_percent))
    }

    /// Parses `name :` before an expression or a table.
    pub(super) fn maybe_parse_prefix_alias(&mut self) -> Option<Ident> {
        let [first, second] = self.peek_tokens_ref();
        if second.token != Token::Colon {
            return None;
        }
        let Token::Word(word) = &first.token else {
            return None;
        };
        let alias = word.to_ident(first.span);
        self.advance_token();
        self.advance_token();
        Some(alias)
    }

    /// Parses a table that gets this alias.
    pub(super) fn parse_table_factor_with_prefix_alias(
        &mut self,
        name: Ident,
    ) -> Result<TableFactor, ParserError> {
        let place = self.peek_token_ref().span.start;
        let mut factor = self.parse_table_factor()?;
        match &mut factor {
            TableFactor::Derived { alias, .. }
            | TableFactor::Table { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::JsonTable { alias, .. }
            | TableFactor::XmlTable { alias, .. }
            | TableFactor::OpenJsonTable { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Pivot { alias, .. }
            | TableFactor::Unpivot { alias, .. }
            | TableFactor::MatchRecognize { alias, .. }
            | TableFactor::SemanticView { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => {
                if alias.is_some() {
                    return parser_err!(
                        "Expected: one alias of a table, found: one before and one after it",
                        place
                    );
                }
                *alias = Some(TableAlias {
                    explicit: true,
                    name,
                    columns: vec![],
                    at: None,
                });
            }
        }
        Ok(factor)
    }

    /// Parses `(name).*` and returns the name.
    pub(super) fn maybe_parse_name_before_star(&mut self) -> Option<ObjectName> {
        let [open, name, close, period, star] = self.peek_tokens_ref();
        if open.token != Token::LParen
            || close.token != Token::RParen
            || period.token != Token::Period
            || star.token != Token::Mul
        {
            return None;
        }
        let Token::Word(word) = &name.token else {
            return None;
        };
        let name = ObjectName::from(vec![word.to_ident(name.span)]);
        for _ in 0..5 {
            self.advance_token();
        }
        Some(name)
    }

    /// Returns whether `ASOF [INNER | LEFT [OUTER] | …] JOIN` follows.
    pub(super) fn peek_asof_join(&self) -> bool {
        let [first, second, third, fourth] = self.peek_tokens_ref();
        let is = |token: &TokenWithSpan, keyword| {
            matches!(&token.token, Token::Word(word) if word.keyword == keyword)
        };
        is(first, Keyword::ASOF)
            && (is(second, Keyword::JOIN)
                || [
                    Keyword::INNER,
                    Keyword::LEFT,
                    Keyword::RIGHT,
                    Keyword::FULL,
                    Keyword::SEMI,
                    Keyword::ANTI,
                ]
                .into_iter()
                .any(|keyword| is(second, keyword))
                    && (is(third, Keyword::JOIN)
                        || (is(third, Keyword::OUTER) && is(fourth, Keyword::JOIN))))
    }

    /// Returns whether `POSITIONAL JOIN` follows.
    pub(super) fn peek_positional_join(&self) -> bool {
        let [first, second] = self.peek_tokens_ref();
        is_word(&first.token, "positional")
            && matches!(&second.token, Token::Word(word) if word.keyword == Keyword::JOIN)
    }

    /// Returns whether the next word looks like an alias of a table, and begins something else.
    pub(super) fn peek_word_after_table(&self) -> bool {
        self.dialect.supports_asof_join_on() && self.peek_asof_join()
            || self.dialect.supports_positional_join() && self.peek_positional_join()
    }

    /// Parses `ASOF [LEFT | …] JOIN table ON conditions`, or one with MATCH_CONDITION.
    pub(super) fn parse_asof_join_on(&mut self) -> Result<Join, ParserError> {
        self.expect_keyword_is(Keyword::ASOF)?;
        let kind = match self.parse_one_of_keywords(&[
            Keyword::INNER,
            Keyword::LEFT,
            Keyword::RIGHT,
            Keyword::FULL,
            Keyword::SEMI,
            Keyword::ANTI,
        ]) {
            Some(Keyword::LEFT) => AsOfKind::Left,
            Some(Keyword::RIGHT) => AsOfKind::Right,
            Some(Keyword::FULL) => AsOfKind::Full,
            Some(Keyword::SEMI) => AsOfKind::Semi,
            Some(Keyword::ANTI) => AsOfKind::Anti,
            _ => AsOfKind::Inner,
        };
        if matches!(kind, AsOfKind::Left | AsOfKind::Right | AsOfKind::Full) {
            let _ = self.parse_keyword(Keyword::OUTER);
        }
        self.expect_keyword_is(Keyword::JOIN)?;
        let relation = self.parse_table_factor()?;
        let join_operator = if kind == AsOfKind::Inner && self.parse_keyword(Keyword::MATCH_CONDITION) {
            JoinOperator::AsOf {
                match_condition: self.parse_parenthesized(Self::parse_expr)?,
                constraint: self.parse_join_constraint(false)?,
            }
        } else {
            JoinOperator::AsOfOn {
                constraint: self.parse_join_constraint(false)?,
                kind,
            }
        };
        Ok(Join {
            relation,
            global: false,
            join_operator,
        })
    }

    /// Parses `params IN list [IF condition] ]`, after the element and FOR.
    pub(super) fn parse_list_comprehension(
        &mut self,
        body: Vec<Expr>,
    ) -> Result<Expr, ParserError> {
        let params = self.parse_comma_separated(Parser::parse_identifier)?;
        self.expect_keyword_is(Keyword::IN)?;
        let list = Box::new(self.parse_expr()?);
        let condition = if self.parse_keyword(Keyword::IF) {
            Some(Box::new(self.parse_expr()?))
        } else {
            None
        };
        self.expect_token(&Token::RBracket)?;
        let Some(body) = body.into_iter().next().map(Box::new) else {
            return self.expected_ref("an element", self.peek_token_ref());
        };
        Ok(Expr::ListComprehension(ListComprehension {
            body,
            params,
            list,
            condition,
        }))
    }

    /// Returns whether `COLUMNS (` follows.
    pub(super) fn peek_columns_call(&self) -> bool {
        let [first, second] = self.peek_tokens_ref();
        is_word(&first.token, "columns") && second.token == Token::LParen
    }

    /// Returns whether EXCEPT is an operator of queries rather than an option of a star.
    pub(super) fn peek_except_query(&self) -> bool {
        let [_, second, third] = self.peek_tokens_ref();
        let begins_query = [
            Keyword::SELECT,
            Keyword::WITH,
            Keyword::FROM,
            Keyword::VALUES,
            Keyword::TABLE,
        ];
        second.token != Token::LParen
            || match &third.token {
                Token::Word(word) => begins_query.contains(&word.keyword),
                token => *token == Token::LParen,
            }
    }

    /// Parses `[NOT] LIKE 'pattern'` after a star.
    pub(super) fn parse_optional_select_item_like(
        &mut self,
    ) -> Result<Option<LikeSelectItem>, ParserError> {
        let start = self.index;
        let negated = self.parse_keyword(Keyword::NOT);
        let kind = if self.parse_keyword(Keyword::LIKE) {
            LikeSelectKind::Like
        } else if self.parse_keyword(Keyword::ILIKE) {
            LikeSelectKind::ILike
        } else if self.parse_keywords(&[Keyword::SIMILAR, Keyword::TO]) {
            LikeSelectKind::SimilarTo
        } else if self.parse_word("glob") {
            LikeSelectKind::Glob
        } else {
            self.index = start;
            return Ok(None);
        };
        let pattern = self.parse_literal_string()?;
        Ok(Some(LikeSelectItem {
            negated,
            kind,
            pattern,
        }))
    }
}

/// Returns a query without further clauses.
fn query_of(body: Box<SetExpr>) -> Query {
    Query {
        with: None,
        body,
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: vec![],
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: vec![],
    }
}

/// Returns the query `SELECT * FROM from`.
pub(super) fn all_columns(token: TokenWithSpan, from: Vec<TableWithJoins>) -> Select {
    let star = WildcardAdditionalOptions {
        wildcard_token: AttachedToken(TokenWithSpan::new(Token::Mul, token.span)),
        ..WildcardAdditionalOptions::default()
    };
    Select {
        select_token: AttachedToken(token),
        optimizer_hints: vec![],
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: vec![SelectItem::Wildcard(star)],
        exclude: None,
        into: None,
        from,
        lateral_views: vec![],
        prewhere: None,
        selection: None,
        group_by: GroupByExpr::Expressions(vec![], vec![]),
        cluster_by: vec![],
        distribute_by: vec![],
        sort_by: vec![],
        having: None,
        named_window: vec![],
        window_before_qualify: false,
        sample: None,
        qualify: None,
        value_table_mode: None,
        connect_by: vec![],
        flavor: SelectFlavor::Standard,
    }
}
