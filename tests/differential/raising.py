"""Determines whether any value of a query raises an error over its tables' rows; an engine may
choose which of them it computes."""

from __future__ import annotations

import re
from typing import Iterator

from queries import Expr, Join, Query, Rows

ALIAS = re.compile(r"\b(s\d+)\.")
AGGREGATE = re.compile(r"\b(count|sum|avg|min|max|bool_and|bool_or|string_agg)\(")
# The most tables of an expression: the product of more has too many rows.
TABLES_MAX = 2
PROBES_MAX = 200


def queries_in(query: Query) -> Iterator[Query]:
    """Returns the query and all nested queries."""
    yield query
    parts: list[Query | Expr] = [part for own in query.withs for part in (own.base, own.step) if part]
    parts += [source.table for source in query.sources if isinstance(source.table, Query)]
    parts += [source.on for source in query.sources if source.on]
    parts += query.select + query.where + query.having + query.first + ([query.combine[1]] if query.combine else [])
    for part in parts:
        yield from queries_in(part) if isinstance(part, Query) else queries_of(part)


def queries_of(expr: Expr) -> Iterator[Query]:
    for child in expr.children:
        yield from queries_in(child) if isinstance(child, Query) else queries_of(child)


def expressions(expr: Expr) -> Iterator[Expr]:
    """Returns an expression and its operands, without those of subqueries."""
    yield expr
    for child in expr.children:
        if isinstance(child, Expr):
            yield from expressions(child)


def is_plain(expr: Expr) -> bool:
    """Returns whether it is computed for each row: without subqueries and aggregates."""
    return not AGGREGATE.search(expr.template) and all(isinstance(child, Expr) and is_plain(child) for child in expr.children)


def probes(query: Query) -> list[str]:
    """Returns queries that compute each expression of a query for all rows of its tables."""
    # DuckDB counts values that cannot be NULL without computing them, so each value is counted
    # explicitly.
    all_queries = list(queries_in(query))
    places = {source.alias: source for one in all_queries for source in one.sources}
    found: dict[str, None] = {}
    for one in all_queries:
        roots = one.select + one.where + one.having + one.first + [source.on for source in one.sources if source.on]
        for expr in (expr for root in roots for expr in expressions(root) if expr.children and is_plain(expr)):
            aliases = sorted(set(ALIAS.findall(expr.sql())))
            over = [places[alias] for alias in aliases if alias in places]
            if 0 < len(over) == len(aliases) <= TABLES_MAX and not any(is_correlated(source) for source in over):
                tables = " cross join ".join(Join("", source.table, source.alias, None).sql() for source in over)
                found[f"{query.with_sql()}select count(distinct x) from (select {expr.sql()} as x from {tables}) as probe"] = None
    return list(found)[:PROBES_MAX]


def is_correlated(source: Join) -> bool:
    return isinstance(source.table, Query) and reads_outside(source.table)


def has_correlated_subquery(query: Query) -> bool:
    return any(reads_outside(one) for one in queries_in(query) if one is not query)


def reads_outside(query: Query) -> bool:
    """Returns whether it refers to a table of an outer query."""
    own = {inner.alias for one in queries_in(query) for inner in one.sources}
    return not set(ALIAS.findall(query.sql())) <= own
