"""Differences with a known cause: planned work, or a difference that docs/dialect.md documents.
They are counted by cause, not passed.

Each entry: the cause, the oracles that are affected (none: all), a pattern of the query's text, a
pattern of the problem.
"""

from __future__ import annotations

import re

KNOWN: list[tuple[str, tuple[str, ...], str, str]] = [
    (
        "PostgreSQL 15 keeps a key that folds to a constant in the grouping sets that leave it out (mended in 18)",
        ("postgresql",),
        r"group by (cube|rollup|grouping sets) .*(case when|coalesce\()",
        r"column \d+ is|is out of order|rows instead of",
    ),
    (
        "DuckDB rounds what meets a sum of decimals in a set operation or IN to the digits of the sum, decimal(38, s)",
        ("duckdb",),
        r"\bsum\(.* (union|intersect|except) | (union|intersect|except) .*\bsum\(|\bin \(select (distinct )?sum\(",
        r"Decimal\('[^']*'\) instead of Decimal\(|rows instead of",
    ),
    (
        "DuckDB gives the empty grouping sets of a correlated subquery without rows one row together, PostgreSQL one each",
        ("duckdb",),
        r"lateral \(.*grouping sets \(.*\(\).*\(\)",
        r"rows instead of",
    ),
    (
        "DuckDB drops rows where NULLIF of a constant and a NULL is compared by LIKE",
        ("duckdb",),
        r"nullif\('[^']*', \w+\.\w+\)+ (not )?i?like",
        r"rows instead of|is out of order|^column",
    ),
    (
        "DuckDB takes a decimal of a Parquet file, cast to double, for larger than NaN",
        ("duckdb",),
        r"cast\(\w+\.\w+ as double precision\) [<>]",
        r"^\d+ rows instead of \d+$",
    ),
    (
        "letters beyond ASCII have cases here, and none in PostgreSQL's locale C (docs/dialect.md)",
        ("postgresql",),
        r"(~\*|\bilike) '[^']*[^\x00-\x7f]",
        r"rows instead of|is out of order|^column",
    ),
    (
        "NaN and infinity are no decimals here (docs/dialect.md)",
        ("postgresql",),
        r"as decimal\(",
        r"(NaN|[Ii]nfinity) is out of range for type decimal",
    ),
]


def cause(oracle: str, sql: str, problem: str) -> str | None:
    """Returns the known cause of a difference, or None. The oracle `rules` compares the
    program with itself, so it has none."""
    if oracle == "rules":
        return None
    for name, oracles, query, said in KNOWN:
        if (not oracles or oracle in oracles) and re.search(query, sql, re.DOTALL) and re.search(said, problem):
            return name
    return None
