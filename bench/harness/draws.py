"""Random values in DuckDB's SQL that depend only on a row's number and on a salt for each column."""

from __future__ import annotations

# `pick` draws evenly from 0..count; `zipf` and, less so, `skewed` draw small numbers more often.
MACROS = [
    "uniform(n, salt) as (hash(n * 1024 + salt) >> 11) / 9007199254740992.0",
    "pick(n, salt, count) as floor(uniform(n, salt) * count)::bigint",
    "zipf(n, salt, count) as floor(power(count + 1.0, uniform(n, salt)))::bigint - 1",
    "skewed(n, salt, count) as floor(power(uniform(n, salt), 1.5) * count)::bigint",
    "flag(n, salt, share) as (uniform(n, salt) < share)::smallint",
    "signed(h) as (h >> 1)::bigint",
    "word(words, nth) as words[1 + nth::bigint % len(words)]",
]


def connect(macros: list[str] = []):  # noqa: B006
    """Returns a connection with these macros."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false")
    for macro in [*MACROS, *macros]:
        connection.execute(f"create macro {macro}")
    return connection
