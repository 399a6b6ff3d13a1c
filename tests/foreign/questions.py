"""Queries about a column whose answers follow from its values; statistics must not falsify them."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from foreign.values import same

EPOCH = datetime.datetime(1970, 1, 1)
# The years for which literals are written.
FIRST, LAST = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)


@dataclass
class Question:
    """The select list, the rest of the query, and the expected rows."""

    select: str
    rest: str
    rows: list[tuple]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def about(rng: random.Random, case, name: str) -> list[Question]:
    """Returns queries about a column whose values the judges agree on."""
    readings = [judge[name] for judge in case.judges.values() if name in judge]
    values = readings[0]
    if case.as_text or any(not same(tuple(values), tuple(other)) for other in readings[1:]):
        return []
    some = [value for value in values if value is not None]
    column = quoted(name)
    asked = [Question("count(*)", f"where {column} is null", [(len(values) - len(some),)])]
    if name in case.named:
        asked += parts(rng, column, values)
    skipped = rng.choice([0, 1, len(values) // 2])
    first = [(value,) for value in values[skipped : skipped + 3]]
    asked.append(Question(column, f"limit 3 offset {skipped}", first))
    if not some or not is_one_kind(some) or any(order(value) is None for value in some):
        return asked
    asked += groups(column, values, some)
    return asked + compared(rng, column, values, some) + sorted_ones(column, values, some)


def compared(rng: random.Random, column: str, values: list, some: list) -> list[Question]:
    """Returns comparisons with one of the values, and the rows that remain."""
    value = rng.choice(some)
    literal = literal_of(value)
    if literal is None:
        return []
    asked = []
    operators = {
        "=": lambda a, b: a == b,
        "<>": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    for sign in rng.sample(sorted(operators), 3):
        left = [other for other in some if operators[sign](order(other), order(value))]
        asked.append(Question("count(*)", f"where {column} {sign} {literal}", [(len(left),)]))
        if rng.random() < 0.5:
            first = [(other,) for other in left[:2]]
            asked.append(Question(column, f"where {column} {sign} {literal} limit 2", first))
    others = [literal_of(other) for other in rng.sample(some, min(3, len(some)))]
    keys = {order(other) for other in some if literal_of(other) in others}
    if None not in others:
        among = sum(order(other) in keys for other in some)
        asked.append(Question("count(*)", f"where {column} in ({', '.join(others)})", [(among,)]))
        outside = len(some) - among
        asked.append(Question("count(*)", f"where {column} not in ({', '.join(others)})", [(outside,)]))
    return asked


def groups(column: str, values: list, some: list) -> list[Question]:
    """Counts each value."""
    counts = Counter(order(value) for value in some)
    sizes = [*counts.values()] + [len(values) - len(some)] * (len(values) > len(some))
    return [
        Question(f"count(distinct {column}), count({column})", "", [(len(counts), len(some))]),
        Question("count(*) c", f"group by {column} order by c", [(size,) for size in sorted(sizes)]),
    ]


def sorted_ones(column: str, values: list, some: list) -> list[Question]:
    """Returns the minimum, maximum, first values and sum."""
    if not all(isinstance(value, (int, str, Decimal)) and not isinstance(value, bool) for value in some):
        return []
    ascending = sorted(some, key=order)
    nulls = [None] * (len(values) - len(some))
    extremes = (ascending[0], ascending[-1], len(some))
    asked = [
        Question(f"min({column}), max({column}), count({column})", "", [extremes]),
        Question(column, f"order by {column} limit 3", [(found,) for found in (ascending + nulls)[:3]]),
        Question(column, f"order by {column} desc limit 3", [(found,) for found in (nulls + ascending[::-1])[:3]]),
    ]
    if all(isinstance(value, int) and abs(value) < 1 << 64 for value in some):
        asked.append(Question(f"sum({column})", "", [(sum(some),)]))
    return asked


def parts(rng: random.Random, column: str, values: list) -> list[Question]:
    """Returns the values of one field of structs, or of one key of maps; None if the whole is
    NULL."""
    nested = [value for value in values if isinstance(value, tuple) and value]
    if not nested:
        return []
    key = rng.choice(rng.choice(nested))[0]
    if not isinstance(key, str) or "\0" in key:
        return []
    found = [None if value is None else dict(value).get(key) for value in values]
    part = f"{column}['{key.replace(chr(39), chr(39) * 2)}']"
    count = sum(value is not None for value in found)
    return [
        Question(f"count({part})", "", [(count,)]),
        Question(part, "limit 3", [(value,) for value in found[:3]]),
    ]


def is_one_kind(some: list) -> bool:
    kinds = {
        "number" if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else type(value) for value in some
    }
    return len(kinds) == 1


def order(value: object) -> object:
    """Returns the sort key of values of one kind; None if they are not compared here."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        # NaN is greater than all numbers, and equal to itself.
        return (1, 0.0) if value != value else (0, value + 0.0)
    if isinstance(value, tuple):
        return (
            value[1]
            if value
            and value[0] in ("date", "timestamp", "time")
            and len(value) in (2, 3)
            and isinstance(value[1], int)
            else None
        )
    return value


def literal_of(value: object) -> str | None:
    """Returns a value as an SQL literal, or None if it has none."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, Decimal)):
        return format(value, "f") if isinstance(value, Decimal) else str(value)
    if isinstance(value, float):
        return f"cast('{value!r}' as double precision)"
    if isinstance(value, str):
        return None if "\0" in value else "'" + value.replace("'", "''") + "'"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea"
    if not isinstance(value, tuple) or len(value) not in (2, 3) or not isinstance(value[1], int):
        return None
    if value[0] == "date":
        days = value[1]
        if not (FIRST - EPOCH).days <= days <= (LAST - EPOCH).days:
            return None
        return f"date '{(EPOCH + datetime.timedelta(days=days)).date()}'"
    if value[0] == "time" and value[1] % 1000 == 0:
        seconds, micros = divmod(value[1] // 1000, 10**6)
        return f"time '{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micros:06}'"
    if value[0] == "timestamp" and value[1] % 1000 == 0:
        micros = datetime.timedelta(microseconds=value[1] // 1000)
        if not FIRST - EPOCH <= micros <= LAST - EPOCH:
            return None
        moment = (EPOCH + micros).isoformat(sep=" ")
        return f"timestamptz '{moment}+00'" if value[2] else f"timestamp '{moment}'"
    return None
