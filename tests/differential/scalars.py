"""Scalar functions and aggregates of random queries, by result type."""

from __future__ import annotations

import random
from typing import Callable

from queries import Expr, constant

COMPARABLE = ["int", "big", "dec", "dbl", "str", "date", "ts", "small", "flt"]
NUMBERS = ["int", "big", "dec", "dbl"]
SQL_TYPES = {
    "small": "smallint",
    "int": "integer",
    "big": "bigint",
    "dec": "decimal(12,2)",
    "flt": "real",
    "dbl": "double precision",
    "str": "varchar",
}
# Date parts that all judges return as integers.
DATE_PARTS = ["year", "month", "day", "quarter", "dow", "doy", "week"]

Make = Callable[..., Expr]


def value(rng: random.Random, judge: str, kind: str, below: Make, leaf: Make) -> Expr:
    """Generates a function call; `below` generates smaller values of a type, `leaf` columns or
    constants."""
    choices = CHOICES[kind](rng, judge, kind, below, leaf)
    return rng.choice(choices)()


def whole(rng: random.Random, judge: str, kind: str, below: Make, leaf: Make) -> list[Make]:
    name = SQL_TYPES[kind]
    # Engines differ in the type in which they compute small integers.
    fit = (lambda text: f"cast({text} as {name})") if kind == "small" else (lambda text: f"({text})")
    other = rng.choice([k for k in ("small", "int", "big", "dec", "dbl", "flt") if k != kind])
    return [
        lambda: Expr(kind, fit("{} + {}"), [leaf(), constant(rng, "int")]),
        lambda: Expr(kind, fit("{} - {}"), [leaf(), leaf("int" if kind != "small" else "small")]),
        lambda: Expr(kind, fit("{} * " + str(rng.randint(-3, 3)).replace("-", "- ")), [leaf()]),
        lambda: Expr(kind, fit("{} / " + str(rng.randint(1, 7))), [leaf()]),
        lambda: Expr(kind, fit("{} % " + str(rng.randint(1, 7))), [leaf()]),
        lambda: Expr(kind, "abs({})", [leaf()]),
        lambda: Expr(kind, "(- {})", [leaf()]),
        lambda: Expr(kind, f"cast({rng.choice(['length', 'octet_length' if judge != 'duckdb' else 'length'])}({{}}) as {name})", [below("str")]),
        lambda: Expr(kind, f"cast(extract({rng.choice(DATE_PARTS)} from {{}}) as {name})", [below(rng.choice(["date", "ts"]))]),
        lambda: Expr(kind, f"cast({{}} as {name})", [leaf(other)]),
        lambda: Expr(kind, f"cast({{}} as {name})", [below("bool")]) if kind == "int" else leaf(),
        lambda: Expr(kind, f"cast(({{}} - {{}}) as {name})", [leaf("date"), leaf("date")]),
        lambda: Expr(kind, f"cast(strpos({{}}, {{}}) as {name})", [below("str"), constant(rng, "str")]),
        lambda: Expr(kind, f"cast(cast({{}} as varchar) as {name})", [leaf()]),
    ]


def decimal(rng: random.Random, judge: str, kind: str, below: Make, leaf: Make) -> list[Make]:
    return [
        lambda: Expr(kind, "cast({} + {} as decimal(12,2))", [leaf(), leaf()]),
        lambda: Expr(kind, "cast({} - {} as decimal(12,2))", [leaf(), below("int")]),
        lambda: Expr(kind, "cast({} * {} as decimal(20,2))", [leaf(), constant(rng, "dec")]),
        lambda: Expr(kind, "cast({} as decimal(12,2))", [below(rng.choice(["int", "small", "big", "dbl"]))]),
        lambda: Expr(kind, "cast({} as decimal(9,1))", [leaf()]),
        lambda: Expr(kind, "cast(cast({} as varchar) as decimal(12,2))", [leaf()]),
        lambda: Expr(kind, "abs({})", [leaf()]),
        lambda: Expr(kind, "(- {})", [leaf()]),
        lambda: Expr(kind, "({} % 7)", [leaf()]),
        lambda: Expr(kind, rng.choice(["floor", "ceil", "round"]) + "({})", [leaf()]),
        lambda: Expr(kind, "round({}, 1)", [leaf()]),
    ]


def double(rng: random.Random, judge: str, kind: str, below: Make, leaf: Make) -> list[Make]:
    name = SQL_TYPES[kind]
    return [
        lambda: Expr(kind, "({} + {})", [leaf(), leaf()]),
        lambda: Expr(kind, "({} - {})", [leaf(), leaf()]),
        lambda: Expr(kind, f"({{}} * cast(0.5 as {name}))", [leaf()]),
        lambda: Expr(kind, f"({{}} / cast(4 as {name}))", [leaf()]),
        lambda: Expr(kind, f"cast({{}} as {name})", [below("int")]),
        lambda: Expr(kind, f"cast({{}} as {name})", [leaf(rng.choice(["small", "dec" if kind == "dbl" else "small", "flt", "dbl"]))]),
        lambda: Expr(kind, f"cast(cast({{}} as varchar) as {name})", [leaf()]),
        lambda: Expr(kind, "abs({})", [leaf()]),
        lambda: Expr(kind, "(- {})", [leaf()]),
        lambda: Expr(kind, rng.choice(["floor", "ceil"]) + "({})", [leaf()]),
    ]


def text(rng: random.Random, judge: str, kind: str, below: Make, leaf: Make) -> list[Make]:
    shown = ["int", "big", "date", "dec", "bool", "small", "ts"] + (["dbl", "flt"] if judge != "duckdb" else [])
    return [
        lambda: Expr(kind, rng.choice(["upper", "lower"]) + "({})", [below()]),
        lambda: Expr(kind, "({} || {})", [leaf(), leaf()]),
        lambda: Expr(kind, "concat({}, {})", [leaf(), leaf()]),
        lambda: Expr(kind, f"substring({{}} from {rng.randint(1, 4)} for {rng.randint(0, 5)})", [below()]),
        lambda: Expr(kind, "cast({} as varchar)", [leaf(rng.choice(shown))]),
        lambda: Expr(kind, rng.choice(["trim", "ltrim", "rtrim"]) + "({})", [below()]),
        lambda: Expr(kind, "replace({}, 'a', 'xy')", [below()]),
        lambda: Expr(kind, rng.choice(["left", "right"]) + f"({{}}, {rng.randint(0, 4)})", [below()]),
        lambda: Expr(kind, rng.choice(["lpad", "rpad"]) + f"({{}}, {rng.randint(0, 8)}, 'xy')", [below()]),
        # DuckDB keeps an accent after its letter.
        lambda: Expr(kind, "reverse({})" if judge != "duckdb" else "upper({})", [leaf()]),
        lambda: Expr(kind, "split_part({}, 'b', 1)", [below()]),
        lambda: Expr(kind, f"repeat({{}}, {rng.randint(0, 3)})", [leaf()]),
        lambda: Expr(kind, "translate({}, 'ab', 'b')", [leaf()]),
    ]


def date(rng: random.Random, judge: str, kind: str, below: Make, leaf: Make) -> list[Make]:
    unit = rng.choice(["day", "month", "year"])
    return [
        lambda: Expr(kind, f"cast({{}} + interval '{rng.randint(-14, 14)}' {unit} as date)", [leaf()]),
        lambda: Expr(kind, "({} + " + str(rng.randint(0, 40)) + ")", [leaf()]),
        lambda: Expr(kind, "({} - " + str(rng.randint(0, 40)) + ")", [leaf()]),
        lambda: Expr(kind, "cast({} as date)", [leaf("ts")]),
        lambda: Expr(kind, "cast(date_trunc('month', {}) as date)", [leaf()]),
        lambda: Expr(kind, "cast(cast({} as varchar) as date)", [leaf()]),
    ]


def timestamp(rng: random.Random, judge: str, kind: str, below: Make, leaf: Make) -> list[Make]:
    unit = rng.choice(["second", "minute", "hour", "day", "month", "year"])
    truncated = rng.choice(["second", "minute", "hour", "day", "week", "month", "quarter", "year"])
    return [
        lambda: Expr(kind, f"({{}} + interval '{rng.randint(-60, 60)}' {unit})", [leaf()]),
        lambda: Expr(kind, f"({{}} - interval '{rng.randint(-60, 60)}' {unit})", [leaf()]),
        lambda: Expr(kind, f"date_trunc('{truncated}', {{}})", [leaf()]),
        lambda: Expr(kind, "cast({} as timestamp)", [leaf("date")]),
        lambda: Expr(kind, "cast(cast({} as varchar) as timestamp)", [leaf()]),
    ]


CHOICES = {
    "small": whole,
    "int": whole,
    "big": whole,
    "dec": decimal,
    "flt": double,
    "dbl": double,
    "str": text,
    "date": date,
    "ts": timestamp,
}

# How partial aggregates are merged.
MERGES = {"count(": "sum", "sum(": "sum", "min(": "min", "max(": "max", "bool_and(": "bool_and", "bool_or(": "bool_or"}


def merge_of(aggregate: Expr) -> str | None:
    """Returns the aggregate that merges this one's partial results; None if there is none."""
    if "(distinct" in aggregate.template:
        return None
    return next((merge for start, merge in MERGES.items() if aggregate.template.startswith(start)), None)


def aggregate(rng: random.Random, judge: str, kind: str, argument: Make, condition: Expr | None) -> Expr:
    """Generates an aggregate of a type, or of one comparable with it; with FILTER if a condition
    is given."""
    filtered = " filter (where {})" if condition else ""
    extra = [condition] if condition else []
    distinct = rng.choice(["", "", "distinct "])
    if kind in ("int", "big", "small"):
        return rng.choice([
            lambda: Expr(kind, f"count(*){filtered}", extra),
            lambda: Expr(kind, f"count({{}}){filtered}", [argument(rng.choice(COMPARABLE)), *extra]),
            lambda: Expr(kind, f"count(distinct {{}}){filtered}", [argument(rng.choice(COMPARABLE)), *extra]),
            lambda: Expr(kind, f"sum({distinct}{{}}){filtered}", [argument(), *extra]),
            lambda: Expr(kind, f"{rng.choice(['min', 'max'])}({{}}){filtered}", [argument(), *extra]),
        ])()
    if kind == "dbl" and rng.random() < 0.5:
        return Expr(kind, f"avg({distinct}{{}}){filtered}", [argument(rng.choice(NUMBERS)), *extra])
    if kind == "bool":
        return Expr(kind, rng.choice(["bool_and", "bool_or"]) + f"({{}}){filtered}", [argument(), *extra])
    if kind in ("dec", "dbl") and rng.random() < 0.4:
        return Expr(kind, f"sum({distinct}{{}}){filtered}", [argument(), *extra])
    if kind == "str" and rng.random() < 0.3:
        direction = rng.choice(["", " desc"])
        given = argument()
        return Expr(kind, f"string_agg({{}}, ',' order by {{}}{direction}){filtered}", [given, given, *extra])
    return Expr(kind, rng.choice(["min", "max"]) + f"({{}}){filtered}", [argument(), *extra])
