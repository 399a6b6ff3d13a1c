"""Whether some value of a query raises over the rows of its tables: which of them an engine computes is its own business."""

from __future__ import annotations

import re
from typing import Iterator

from queries import Expr, Join, Query, Rows

ALIAS = re.compile(r"\b(s\d+)\.")
AGGREGATE = re.compile(r"\b(count|sum|avg|min|max|bool_and|bool_or|string_agg)\(")
# Tables that an expression may be over: more of them have too many rows together.
TABLES_MAX = 2
PROBES_MAX = 200


def queries_in(query: Query) -> Iterator[Query]:
    """The query and all in it."""
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
    """An expression and those in it, without those of subqueries."""
    yield expr
    for child in expr.children:
        if isinstance(child, Expr):
            yield from expressions(child)


def is_plain(expr: Expr) -> bool:
    """Whether it is computed for each row: it has no subquery and no aggregate."""
    return not AGGREGATE.search(expr.template) and all(isinstance(child, Expr) and is_plain(child) for child in expr.children)


def probes(query: Query) -> list[str]:
    """Queries that compute each expression of a query for all rows of the tables that it is over."""
    # DuckDB counts what cannot be NULL without computing it, so that each value is counted once.
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
    """Whether it names a table that it does not have."""
    own = {inner.alias for one in queries_in(query) for inner in one.sources}
    return not set(ALIAS.findall(query.sql())) <= own
