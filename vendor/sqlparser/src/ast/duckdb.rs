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

//! Nodes of DuckDB's queries: PIVOT, UNPIVOT, DESCRIBE, SHOW, SUMMARIZE, list comprehensions.

#[cfg(not(feature = "std"))]
use alloc::{boxed::Box, string::String, vec::Vec};
use core::fmt;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
#[cfg(feature = "visitor")]
use sqlparser_derive::{Visit, VisitMut};

use super::helpers::attached_token::AttachedToken;
use super::{
    display_comma_separated, Expr, ExprWithAlias, Ident, ObjectName, PivotValueSource, Query,
    SelectItem, Spanned, TableWithJoins,
};
use crate::tokenizer::Span;

/// `PIVOT table ON columns [USING aggregates] [GROUP BY names]`
#[derive(Debug, Clone, PartialEq, PartialOrd, Eq, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "visitor", derive(Visit, VisitMut))]
pub struct PivotQuery {
    /// `PIVOT` or `PIVOT_WIDER`.
    pub token: AttachedToken,
    /// The table, maybe with joins.
    pub table: TableWithJoins,
    /// What follows `ON`; without it, the query only aggregates.
    pub on: Vec<PivotColumn>,
    /// What follows `USING`.
    pub using: Vec<ExprWithAlias>,
    /// What follows `GROUP BY`.
    pub group_by: Vec<Ident>,
}

/// An item of `ON` in [`PivotQuery`]: an expression, a tuple of them, and the values that get columns.
#[derive(Debug, Clone, PartialEq, PartialOrd, Eq, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "visitor", derive(Visit, VisitMut))]
pub struct PivotColumn {
    /// The expression; [`Expr::Tuple`] for several.
    pub expr: Expr,
    /// What follows `IN`.
    pub values: Option<PivotValueSource>,
}

impl fmt::Display for PivotQuery {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "PIVOT {}", self.table)?;
        if !self.on.is_empty() {
            write!(f, " ON {}", display_comma_separated(&self.on))?;
        }
        if !self.using.is_empty() {
            write!(f, " USING {}", display_comma_separated(&self.using))?;
        }
        if !self.group_by.is_empty() {
            write!(f, " GROUP BY {}", display_comma_separated(&self.group_by))?;
        }
        Ok(())
    }
}

impl fmt::Display for PivotColumn {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.expr)?;
        match &self.values {
            Some(values) => write!(f, " IN ({values})"),
            None => Ok(()),
        }
    }
}

impl Spanned for PivotQuery {
    fn span(&self) -> Span {
        self.token.0.span.union(&self.table.span())
    }
}

/// `UNPIVOT [INCLUDE NULLS] table ON columns [INTO NAME name VALUE values]`
#[derive(Debug, Clone, PartialEq, PartialOrd, Eq, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "visitor", derive(Visit, VisitMut))]
pub struct UnpivotQuery {
    /// `UNPIVOT` or `PIVOT_LONGER`.
    pub token: AttachedToken,
    /// Whether values that are NULL get a row.
    pub include_nulls: bool,
    /// The table, maybe with joins.
    pub table: TableWithJoins,
    /// What follows `ON`: columns, tuples of them, stars.
    pub on: Vec<SelectItem>,
    /// What follows `INTO NAME`.
    pub name: Option<Ident>,
    /// What follows `VALUE`.
    pub values: Vec<Ident>,
}

impl fmt::Display for UnpivotQuery {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let nulls = if self.include_nulls { " INCLUDE NULLS" } else { "" };
        let on = display_comma_separated(&self.on);
        write!(f, "UNPIVOT{nulls} {} ON {on}", self.table)?;
        if let Some(name) = &self.name {
            write!(f, " INTO NAME {name} VALUE {}", display_comma_separated(&self.values))?;
        }
        Ok(())
    }
}

impl Spanned for UnpivotQuery {
    fn span(&self) -> Span {
        self.token.0.span.union(&self.table.span())
    }
}

/// `DESCRIBE`, `SHOW` and `SUMMARIZE` as queries.
#[derive(Debug, Clone, PartialEq, PartialOrd, Eq, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "visitor", derive(Visit, VisitMut))]
pub struct DescribeQuery {
    /// The first word.
    pub token: AttachedToken,
    /// What the word asks for.
    pub kind: DescribeKind,
    /// What it is asked of.
    pub subject: DescribeSubject,
}

/// The word of a [`DescribeQuery`].
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Eq, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "visitor", derive(Visit, VisitMut))]
pub enum DescribeKind {
    /// `DESCRIBE` or `DESC`
    Describe,
    /// `SHOW`
    Show,
    /// `SUMMARIZE`
    Summarize,
}

/// The subject of a [`DescribeQuery`].
#[derive(Debug, Clone, PartialEq, PartialOrd, Eq, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "visitor", derive(Visit, VisitMut))]
pub enum DescribeSubject {
    /// A name.
    Name(ObjectName),
    /// A query.
    Query(Box<Query>),
    /// `SHOW TABLES` or `DESCRIBE` alone.
    Tables,
}

impl fmt::Display for DescribeQuery {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self.kind {
            DescribeKind::Describe => "DESCRIBE",
            DescribeKind::Show => "SHOW",
            DescribeKind::Summarize => "SUMMARIZE",
        })?;
        match &self.subject {
            DescribeSubject::Name(name) => write!(f, " {name}"),
            DescribeSubject::Query(query) => write!(f, " {query}"),
            DescribeSubject::Tables => write!(f, " TABLES"),
        }
    }
}

impl Spanned for DescribeQuery {
    fn span(&self) -> Span {
        let span = self.token.0.span;
        match &self.subject {
            DescribeSubject::Name(name) => span.union(&name.span()),
            DescribeSubject::Query(query) => span.union(&query.span()),
            DescribeSubject::Tables => span,
        }
    }
}

/// `[body FOR params IN list IF condition]`
#[derive(Debug, Clone, PartialEq, PartialOrd, Eq, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "visitor", derive(Visit, VisitMut))]
pub struct ListComprehension {
    /// The value of each element.
    pub body: Box<Expr>,
    /// The name of the element, and maybe one of its position.
    pub params: Vec<Ident>,
    /// The list whose elements are read.
    pub list: Box<Expr>,
    /// What follows `IF`.
    pub condition: Option<Box<Expr>>,
}

impl fmt::Display for ListComprehension {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let params = display_comma_separated(&self.params);
        write!(f, "[{} FOR {params} IN {}", self.body, self.list)?;
        if let Some(condition) = &self.condition {
            write!(f, " IF {condition}")?;
        }
        f.write_str("]")
    }
}

impl Spanned for ListComprehension {
    fn span(&self) -> Span {
        self.body.span().union(&self.list.span())
    }
}

/// `[NOT] LIKE`, `ILIKE`, `SIMILAR TO` or `GLOB` after a star: the columns whose names match.
#[derive(Debug, Clone, PartialEq, PartialOrd, Eq, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "visitor", derive(Visit, VisitMut))]
pub struct LikeSelectItem {
    /// Whether `NOT` stands before the operator.
    pub negated: bool,
    /// The operator.
    pub kind: LikeSelectKind,
    /// The pattern.
    pub pattern: String,
}

/// The operator of a [`LikeSelectItem`].
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Eq, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "visitor", derive(Visit, VisitMut))]
pub enum LikeSelectKind {
    /// `LIKE`
    Like,
    /// `ILIKE`
    ILike,
    /// `SIMILAR TO`
    SimilarTo,
    /// `GLOB`
    Glob,
}

impl fmt::Display for LikeSelectItem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let not = if self.negated { "NOT " } else { "" };
        let operator = match self.kind {
            LikeSelectKind::Like => "LIKE",
            LikeSelectKind::ILike => "ILIKE",
            LikeSelectKind::SimilarTo => "SIMILAR TO",
            LikeSelectKind::Glob => "GLOB",
        };
        let pattern = super::value::escape_single_quote_string(&self.pattern);
        write!(f, "{not}{operator} '{pattern}'")
    }
}
