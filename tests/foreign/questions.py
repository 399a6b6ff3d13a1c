"""Questions about a column whose answers its values tell, and which statistics must not get wrong."""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass
from decimal import Decimal

from foreign.values import same

EPOCH = datetime.datetime(1970, 1, 1)
# The years that literals are written for.
FIRST, LAST = datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)


@dataclass
class Question:
    """What is selected, what follows FROM, and the rows of the answer."""

    select: str
    rest: str
    rows: list[tuple]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def about(rng: random.Random, case, name: str) -> list[Question]:
    """Questions about a column: NULLs, comparisons with one of its values, the smallest and the largest, the first ones."""
    readings = [judge[name] for judge in case.judges.values() if name in judge]
    values = readings[0]
    if any(not same(tuple(values), tuple(other)) for other in readings[1:]):
        return []
    some = [value for value in values if value is not None]
    column = quoted(name)
    asked = [Question("count(*)", f"where {column} is null", [(len(values) - len(some),)])]
    if not some or case.loose or not is_one_kind(some):
        return [] if case.loose else asked
    value = rng.choice(some)
    literal = literal_of(value)
    if literal is None or any(order(other) is None for other in some):
        return asked
    operators = {
        "=": lambda a, b: a == b,
        "<>": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    for sign in rng.sample(sorted(operators), 3):
        holds = operators[sign]
        count = sum(holds(order(other), order(value)) for other in some)
        asked.append(Question("count(*)", f"where {column} {sign} {literal}", [(count,)]))
    others = [literal_of(other) for other in rng.sample(some, min(3, len(some)))]
    keys = {order(other) for other in some if literal_of(other) in others}
    if None not in others:
        among = sum(order(other) in keys for other in some)
        asked.append(Question("count(*)", f"where {column} in ({', '.join(others)})", [(among,)]))
    if isinstance(value, (int, str, Decimal)) and not isinstance(value, bool):
        ascending = sorted(some, key=order)
        first = ascending + [None] * (len(values) - len(some))
        asked.append(
            Question(f"min({column}), max({column}), count({column})", "", [(ascending[0], ascending[-1], len(some))])
        )
        asked.append(Question(column, f"order by {column} limit 3", [(found,) for found in first[:3]]))
        last = [None] * (len(values) - len(some)) + ascending[::-1]
        asked.append(Question(column, f"order by {column} desc limit 3", [(found,) for found in last[:3]]))
    return asked


def is_one_kind(some: list) -> bool:
    kinds = {
        "number" if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else type(value) for value in some
    }
    return len(kinds) == 1


def order(value: object) -> object:
    """What values of one kind are compared by; nothing where they are not compared here."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        # NaN is above all numbers, and equal to itself.
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
    """A value as an SQL literal, or None where it cannot be written as one."""
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
    if value[0] == "timestamp" and value[1] % 1000 == 0:
        micros = datetime.timedelta(microseconds=value[1] // 1000)
        if not FIRST - EPOCH <= micros <= LAST - EPOCH:
            return None
        moment = (EPOCH + micros).isoformat(sep=" ")
        return f"timestamptz '{moment}+00'" if value[2] else f"timestamp '{moment}'"
    return None
