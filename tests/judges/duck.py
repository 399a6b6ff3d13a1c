"""DuckDB as a judge; its answers are formatted like PostgreSQL's."""

from __future__ import annotations

import re

import duckdb

from libpq import Outcome

# Settings for PostgreSQL's behavior.
SETTINGS = """
set timezone = 'UTC';
set threads = 1;
set integer_division = true;
set default_null_order = 'nulls_last_on_asc_first_on_desc';
"""
WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
# DuckDB's sums of integers have 128 bits where PostgreSQL's are `numeric`.
BROKEN = {"FLOAT", "DOUBLE", "HUGEINT", "UHUGEINT"}


class Connection:
    """An in-memory database."""

    def __init__(self) -> None:
        self.database = duckdb.connect(":memory:")
        self.database.execute(SETTINGS)

    def run(self, sql: str) -> Outcome:
        """Runs a statement. DuckDB has no SQLSTATEs: every error is 42000 here."""
        try:
            cursor = self.database.execute(sql)
            types = [str(column[1]) for column in cursor.description or []]
            rows = cursor.fetchall()
            if types and any(told_as_text(kind) for kind in types):
                rows = self.as_text(sql, types) or rows
        except duckdb.Error as error:
            return Outcome("42000", str(error).splitlines()[0])
        if re.match(r"\s*(create|drop|insert|set)\b", sql, re.IGNORECASE):
            return Outcome()
        return Outcome(types="".join(map(letter, types)), rows=[[value(v) for v in row] for row in rows])

    def as_text(self, sql: str, types: list[str]) -> list[tuple] | None:
        """Returns the rows again, with DuckDB's own text for values that Python cannot represent;
        None if it is not a query."""
        columns = [f"c{number}" for number in range(len(types))]
        selected = [
            f"{name}::varchar" if told_as_text(kind) else name for name, kind in zip(columns, types, strict=True)
        ]
        try:
            inner = sql.strip().rstrip(";")
            return self.database.execute(
                f"select {', '.join(selected)} from ({inner}\n) as t({', '.join(columns)})"
            ).fetchall()
        except duckdb.Error:
            return None


def told_as_text(kind: str) -> bool:
    """Returns whether values of a type are printed by DuckDB: Python's dates end at year 9999, its
    intervals have no months."""
    return kind.startswith(("DATE", "TIME", "INTERVAL")) and "[" not in kind


def letter(kind: str) -> str:
    if kind in WHOLE:
        return "I"
    return "R" if kind in BROKEN or (kind.startswith("DECIMAL") and not kind.endswith("]")) else "T"


def value(found: object) -> str | None:
    """Formats a value like PostgreSQL."""
    if found is None:
        return None
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, float):
        return number(found)
    if isinstance(found, (bytes, bytearray)):
        return "\\x" + found.hex()
    if isinstance(found, tuple):
        return "(" + ",".join(map(member, found)) + ")"
    if isinstance(found, list):
        return "{" + ",".join(map(element, found)) + "}"
    if isinstance(found, dict):
        return "(" + ",".join(map(member, found.values())) + ")"
    text = str(found)
    if re.match(r"-?\d+ (year|month|day)", text):
        # Intervals: PostgreSQL's abbreviation of months.
        return re.sub(r"\bmonth(s?)\b", r"mon\1", text)
    return text


def number(found: float) -> str:
    if found != found:
        return "NaN"
    if found in (float("inf"), float("-inf")):
        return "Infinity" if found > 0 else "-Infinity"
    text = repr(found)
    return text.removesuffix(".0")


def element(found: object) -> str:
    """Formats an array element like PostgreSQL."""
    if isinstance(found, bool):
        return "t" if found else "f"
    text = value(found)
    if text is None:
        return "NULL"
    plain = isinstance(found, list) or (text and text.upper() != "NULL" and not re.search(r'[{}",\\\s]', text))
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def member(found: object) -> str:
    """Formats a field of a row like PostgreSQL."""
    if isinstance(found, bool):
        return "t" if found else "f"
    text = value(found)
    if text is None:
        return ""
    plain = text and not re.search(r'[(),"\\\s]', text)
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'
