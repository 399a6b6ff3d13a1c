"""Compares two answers.

The reference is DuckDB's answer as Python values. Rows must agree as a multiset; the ORDER BY columns
must also agree position by position, so a total ORDER BY implies the same order of rows. Decimals and
integers must be equal, doubles within 1e-9 of each other. If an engine returns a decimal where DuckDB
returns a double (such as a rounded average), one unit of the last place is allowed. Where a LIMIT
cuts rows with the same ORDER BY columns, it may choose any of these.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

RELATIVE = 1e-9


def order_columns(sql: str, names: list[str]) -> list[int]:
    """Returns the positions of the outermost ORDER BY's columns in the result, up to the first
    that the result does not have."""
    clauses = outermost_clauses(sql)
    items = split_list(clauses.get("select", ""))
    expressions = [re.sub(r"\s+as\s+\S+$", "", item, flags=re.IGNORECASE) for item in items]
    positions = []
    for key in split_list(clauses.get("order by", "")):
        name = re.sub(r"\s+(asc|desc)$", "", key, flags=re.IGNORECASE)
        if name in names:
            positions.append(names.index(name))
        elif name in expressions and len(items) == len(names):
            positions.append(expressions.index(name))
        else:
            break
    return positions


CLAUSES = ["select", "from", "where", "group by", "having", "order by", "limit", "offset"]


def outermost_clauses(sql: str) -> dict[str, str]:
    """Returns the clauses of a statement's outermost SELECT, or of the last one of a UNION."""
    sql = re.sub(r"--[^\n]*|('(?:[^']|'')*')", lambda match: match.group(1) or "", sql)
    found = _beginnings(sql)
    ends = [match.start() for match in found[1:]] + [len(sql)]
    clauses: dict[str, str] = {}
    for match, end in zip(found, ends):
        name = re.sub(r"\s+", " ", match.group().lower())
        if name == "select":
            clauses = {}
        clauses[name] = sql[match.end() : end].strip().rstrip(";").strip()
    return clauses


def without_limit(sql: str) -> str:
    """Returns a statement without its outermost LIMIT and OFFSET."""
    ends = [match.start() for match in _beginnings(sql) if match.group().lower() in ("limit", "offset")]
    return sql[: min(ends)].strip() if ends else sql


def _beginnings(sql: str) -> list[re.Match]:
    """Returns the keywords that begin clauses outside of parentheses."""
    text = _masked(sql)
    keyword = rf"\b(?:{'|'.join(CLAUSES)})\b".replace(" ", r"\s+")
    return [match for match in re.finditer(keyword, text, flags=re.IGNORECASE) if _depth(text, match.start()) == 0]


def _masked(sql: str) -> str:
    """Returns the text with blanks for comments and strings, whose parentheses and words do not count."""
    return re.sub(r"--[^\n]*|'(?:[^']|'')*'", lambda match: " " * len(match.group()), sql)


def _depth(text: str, end: int) -> int:
    """Returns how many parentheses are open at a place."""
    return text.count("(", 0, end) - text.count(")", 0, end)


def split_list(text: str) -> list[str]:
    """Splits at the commas outside of parentheses."""
    masked = _masked(text)
    commas = [match.start() for match in re.finditer(",", masked) if _depth(masked, match.start()) == 0]
    bounds = zip([0, *(comma + 1 for comma in commas)], [*commas, len(text)])
    parts = (re.sub(r"\s+", " ", text[start:end]).strip() for start, end in bounds)
    return [part for part in parts if part]


def same_value(expected: object, given: object) -> bool:
    """Returns whether one value of an answer is right."""
    if expected is None or given is None:
        return expected is None and given is None
    if isinstance(expected, float) or isinstance(given, float):
        slack = 0.0
        if isinstance(given, Decimal):
            slack = float(Decimal(1).scaleb(given.as_tuple().exponent))
        try:
            if math.isnan(expected) or math.isnan(given):
                return math.isnan(expected) and math.isnan(given)
            return math.isclose(float(expected), float(given), rel_tol=RELATIVE, abs_tol=slack)
        except (TypeError, ValueError):
            return False
    if isinstance(expected, (int, Decimal)) and not isinstance(expected, bool):
        return isinstance(given, (int, Decimal)) and expected == given
    if isinstance(expected, datetime.datetime) and type(given) is datetime.date:
        return expected == datetime.datetime.combine(given, datetime.time())
    return type(expected) is type(given) and expected == given


def sort_key(row: tuple) -> tuple:
    """Returns a key that sorts equal rows of two engines alike: values that may be rounded come
    last."""
    rounded = [isinstance(value, (float, Decimal, int)) for value in row]
    exact = tuple((value is None, "" if number else str(value)) for value, number in zip(row, rounded))
    # NaN is greater than all numbers, as in PostgreSQL.
    numbers = tuple(
        (False, 0.0) if not number else (True, 0.0) if math.isnan(value) else (False, float(value))
        for value, number in zip(row, rounded)
    )
    return exact, numbers


def difference(expected: list[tuple], given: list[tuple], order: list[int]) -> str | None:
    """Returns a sentence about the error in `given`, or None."""
    return _shape(expected, given, order) or _rows(expected, given)


def answer_difference(
    sql: str, names: list[str], expected: list[tuple], given: list[tuple], every: list[tuple] | None = None
) -> str | None:
    """Like `difference`, for the answer to a statement whose LIMIT may choose among rows that its
    ORDER BY does not distinguish. `every` is the reference's answer without the LIMIT; where it is
    not known, such rows are compared only by the ORDER BY's columns."""
    order = order_columns(sql, names)
    if not is_cut(sql):
        return difference(expected, given, order)
    problem = _shape(expected, given, order)
    if problem:
        return problem
    key = lambda row: [row[column] for column in order]  # noqa: E731
    edges = [key(row) for row in expected[:1] + expected[-1:]]
    # Without an ORDER BY any rows are right; with one that the result lacks, those of the reference.
    open_order = order or "order by" not in outermost_clauses(sql)
    at_edge = lambda row: open_order and any(same_values(edge, key(row)) for edge in edges)  # noqa: E731
    inner = [[row for row in rows if not at_edge(row)] for rows in (expected, given)]
    outer = [row for row in given if at_edge(row)]
    return _rows(*inner) or (_contained(outer, every) if every is not None else None)


def is_cut(sql: str) -> bool:
    """Returns whether a statement has an outermost LIMIT."""
    return "limit" in outermost_clauses(sql)


def same_values(expected: Sequence, given: Sequence) -> bool:
    """Returns whether all values of a row are right."""
    return all(same_value(one, other) for one, other in zip(expected, given, strict=True))


def _contained(rows: list[tuple], every: list[tuple]) -> str | None:
    """Returns a sentence about a row that `every` does not have as often, or None."""
    left = list(every)
    for row in rows:
        found = next((at for at, other in enumerate(left) if same_values(other, row)), None)
        if found is None:
            return f"row {row!r} is not in the answer without LIMIT, or there more rarely"
        del left[found]
    return None


def _shape(expected: list[tuple], given: list[tuple], order: list[int]) -> str | None:
    """Returns a sentence about a wrong number of rows or columns or a wrong order, or None."""
    if len(expected) != len(given):
        return f"{len(given)} rows instead of {len(expected)}"
    for number, (left, right) in enumerate(zip(expected, given)):
        if len(left) != len(right):
            return f"{len(right)} columns instead of {len(left)}"
        for column in order:
            if not same_value(left[column], right[column]):
                return (
                    f"row {number + 1} is out of order: its column {column + 1} is "
                    f"{right[column]!r} instead of {left[column]!r}"
                )
    return None


def _rows(expected: list[tuple], given: list[tuple]) -> str | None:
    """Returns a sentence about rows that differ, in any order, or None."""
    if len(expected) != len(given):
        return f"{len(given)} rows whose place is certain instead of {len(expected)}"
    for left, right in zip(sorted(expected, key=sort_key), sorted(given, key=sort_key)):
        for column, (one, other) in enumerate(zip(left, right)):
            if not same_value(one, other):
                return f"column {column + 1} is {other!r} instead of {one!r} in row {left!r}"
    return None


def parse_csv(text: str) -> list[list[str | None]]:
    """Parses rows of CSV in which NULL is empty and the empty string is `""`, which Python's
    reader does not distinguish."""
    rows: list[list[str | None]] = []
    row: list[str | None] = []
    at = 0
    while at < len(text):
        if text[at] == '"':
            parts = []
            while True:
                end = text.index('"', at + 1)
                parts.append(text[at + 1 : end])
                at = end + 1
                if text[at : at + 1] != '"':
                    break
            field: str | None = '"'.join(parts)
        else:
            end = re.compile(r"[,\n]|\r\n|$").search(text, at).start()
            field = text[at:end] or None
            at = end
        row.append(field)
        if text[at : at + 1] == ",":
            at += 1
            if at == len(text):
                row.append(None)
            continue
        at += 2 if text[at : at + 2] == "\r\n" else 1
        rows.append(row)
        row = []
    if row:
        rows.append(row)
    return rows


def typed(field: str | None, like: type) -> object:
    """Converts a CSV field to the type of the reference's column; returns the text if it does not
    fit."""
    if field is None:
        return None
    try:
        if like is int:
            return Decimal(field)
        if like is Decimal:
            return Decimal(field)
        if like is float:
            return float(field)
        if like is bool:
            return {"true": True, "false": False}.get(field, field)
        if like is datetime.date:
            return datetime.date.fromisoformat(field)
        if like is datetime.datetime:
            return datetime.datetime.fromisoformat(field)
    except (InvalidOperation, ValueError):
        pass
    return field


def header_problem(text: str, names: list[str]) -> str | None:
    """Returns whether an answer in CSV has another number of columns than the reference, which is
    not visible without rows."""
    header = parse_csv(text[: _end_of_header(text)])
    found = len(header[0]) if header else 0
    return None if found == len(names) else f"{found} columns instead of {len(names)}"


def _end_of_header(text: str) -> int:
    """Returns the end of the first line; a line end in quotes does not count."""
    quoted = False
    for at, character in enumerate(text):
        quoted ^= character == '"'
        if character == "\n" and not quoted:
            return at
    return len(text)


def rows_from_csv(text: str, expected: list[tuple]) -> list[tuple]:
    """Returns an answer in CSV, without its header line, as values comparable with `expected`."""
    kinds: list[type] = []
    for column in zip(*expected):
        kinds.append(next((type(value) for value in column if value is not None), str))
    rows = parse_csv(text)[1:]
    if not kinds:
        return [tuple(row) for row in rows]
    return [
        tuple(typed(field, kind) for field, kind in zip(row, kinds)) if len(row) == len(kinds) else tuple(row)
        for row in rows
    ]
