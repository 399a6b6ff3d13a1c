"""Reduces a failing query and its tables while they still fail."""

from __future__ import annotations

import copy
from typing import Callable, Iterator

from data import Table
from queries import Expr, Query

# The most candidates that are tried.
TRIES_MAX = 400


def beside(query: Query) -> list[Query]:
    """Returns the queries combined with a query."""
    found = [part for given in query.withs for part in (given.base, given.step) if part]
    return found + ([query.combine[1]] if query.combine else [])


def expressions(query: Query) -> Iterator[tuple[list, int]]:
    """Returns every list and position of an expression or a query, outer ones first."""
    places: list[tuple[list, int]] = []
    for holder in (query.select, query.where, query.having, query.qualify, query.first):
        places += [(holder, i) for i in range(len(holder))]
    for source in query.sources:
        if source.on:
            places += [(source.on.children, i) for i in range(len(source.on.children))]
        if isinstance(source.table, Query):
            yield from expressions(source.table)
    for inner in beside(query):
        yield from expressions(inner)
    while places:
        holder, i = places.pop(0)
        yield holder, i
        held = holder[i]
        if isinstance(held, Query):
            yield from expressions(held)
        else:
            places += [(held.children, j) for j in range(len(held.children))]


def subqueries(query: Query) -> list[Query]:
    """Returns the query and all nested queries."""
    found = [query]
    found += [holder[i] for holder, i in expressions(query) if isinstance(holder[i], Query)]
    found += [source.table for source in query.sources if isinstance(source.table, Query)]
    return found + beside(query)


def smaller(query: Query) -> Iterator[Query]:
    """Returns queries that are one step smaller."""
    for number, part in enumerate(subqueries(query)):
        for attribute in ("where", "having", "qualify", "select", "sources", "first"):
            for i in range(len(getattr(part, attribute))):
                if attribute in ("select", "sources") and len(getattr(part, attribute)) == 1:
                    continue
                candidate = copy.deepcopy(query)
                target = subqueries(candidate)[number]
                del getattr(target, attribute)[i]
                if attribute == "select":
                    target.order, target.limit = [], ""
                    target.keys = min(target.keys, len(target.select))
                if attribute == "sources" and i == 0:
                    target.sources[0].kind, target.sources[0].on, target.sources[0].using = "", None, ""
                yield candidate
        for attribute, empty in (("order", []), ("limit", ""), ("combine", None), ("distinct", ""), ("group", False), ("sets", ""), ("withs", [])):
            if getattr(part, attribute):
                candidate = copy.deepcopy(query)
                setattr(subqueries(candidate)[number], attribute, empty)
                yield candidate
    for number, (holder, i) in enumerate(list(expressions(query))):
        if isinstance(holder[i], Query):
            continue
        for child in range(len(holder[i].children)):
            if isinstance(holder[i].children[child], Expr) and holder[i].children[child].kind == holder[i].kind:
                candidate = copy.deepcopy(query)
                held, j = list(expressions(candidate))[number]
                held[j] = held[j].children[child]
                yield candidate
        if holder[i].children and holder[i].kind == "bool":
            candidate = copy.deepcopy(query)
            held, j = list(expressions(candidate))[number]
            held[j] = Expr("bool", "true")
            yield candidate


def fewer_rows(tables: list[Table]) -> Iterator[list[Table]]:
    """Returns tables without some rows: halves, quarters, single ones."""
    for number, table in enumerate(tables):
        size = len(table.rows) // 2
        while size:
            for start in range(0, len(table.rows), size):
                fewer = copy.copy(table)
                fewer.rows = table.rows[:start] + table.rows[start + size :]
                yield tables[:number] + [fewer] + tables[number + 1 :]
            size //= 2 if len(table.rows) > 8 else 1
            if len(table.rows) <= 8 and size == len(table.rows) // 2:
                size = 1 if size > 1 else 0


def reduce(query: Query, tables: list[Table], fails: Callable[[Query, list[Table]], bool]) -> tuple[Query, list[Table]]:
    """Returns the smallest failing query and tables found within `TRIES_MAX` tries."""
    tries = 0
    progress = True
    while progress and tries < TRIES_MAX:
        progress = False
        for candidate in smaller(query):
            tries += 1
            if tries > TRIES_MAX:
                break
            if fails(candidate, tables):
                query, progress = candidate, True
                break
        if progress:
            continue
        for fewer in fewer_rows(tables):
            tries += 1
            if tries > TRIES_MAX:
                break
            if fails(query, fewer):
                tables, progress = fewer, True
                break
    return query, tables
