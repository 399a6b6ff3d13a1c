"""Random tables: small domains, skew, NULLs, values at the edges of what queries do with them."""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

TYPES = {
    "int": "INTEGER",
    "big": "BIGINT",
    "dec": "DECIMAL(12,2)",
    "dbl": "DOUBLE",
    "str": "VARCHAR",
    "date": "DATE",
    "ts": "TIMESTAMP",
    "bool": "BOOLEAN",
}

WORDS = ["", "a", "b", "ab", "abc", "A", "zebra", "Zürich", "a%b", "x_y", "a longer text than sixteen bytes", "日本"]


@dataclass
class Table:
    """A table: its columns with their types, and its rows."""

    name: str
    columns: list[tuple[str, str]]
    rows: list[tuple]

    def values_sql(self) -> str:
        """The table as a common table expression that both engines read."""
        names = ", ".join(name for name, _ in self.columns)
        casts = ", ".join(f"cast({name} as {TYPES[kind]}) as {name}" for name, kind in self.columns)
        rows = self.rows or [tuple(None for _ in self.columns)]
        lines = ", ".join("(" + ", ".join(literal(value, bare=True) for value in row) + ")" for row in rows)
        where = "" if self.rows else " where false"
        return f"{self.name} as (select {casts} from (values {lines}) as v({names}){where})"


def literal(value: object, bare: bool = False) -> str:
    """A value as SQL; `bare` leaves the typing of dates to a cast around it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        return f"'{value}'" if bare else f"timestamp '{value}'"
    if isinstance(value, datetime.date):
        return f"'{value}'" if bare else f"date '{value}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return f"'{value!r}'" if bare else f"cast({value!r} as double)"
    return f"'{value}'" if bare else str(value)


def random_value(rng: random.Random, kind: str) -> object:
    """A value of a type, from a domain small enough that joins and groups meet."""
    match kind:
        case "int":
            return rng.choice([0, 1, -1, 2, 3, rng.randint(-20, 20), rng.randint(-1000, 1000)])
        case "big":
            return rng.choice([0, 1, rng.randint(-30, 30), rng.randint(-(10**9), 10**9)])
        case "dec":
            return Decimal(rng.randint(-5000, 5000)).scaleb(-2)
        case "dbl":
            # Multiples of a quarter: their sums are exact in any order.
            return rng.randint(-400, 400) / 4
        case "str":
            return rng.choice(WORDS)
        case "date":
            return datetime.date(1995, 1, 1) + datetime.timedelta(days=rng.choice([0, 1, 31, rng.randint(-900, 900)]))
        case "ts":
            return datetime.datetime(1999, 12, 31, 23, 59, 58) + datetime.timedelta(seconds=rng.randint(-(10**6), 10**6))
        case "bool":
            return rng.random() < 0.5
    raise AssertionError(kind)


def random_tables(rng: random.Random) -> list[Table]:
    """Four tables: one of a few thousand rows, two small ones, one that is empty or nearly so."""
    tables = []
    for number, most in enumerate([2500, 150, 40, 3]):
        kinds = ["int", "big"] + rng.sample(["int", "big", "dec", "dbl", "str", "date", "ts", "bool", "str", "dec"], 6)
        columns = [(f"{'abcdefgh'[i]}{number}", kind) for i, kind in enumerate(kinds)]
        nulls = [rng.choice([0, 0, 0.1, 0.5]) for _ in kinds]
        rows = [
            tuple(None if rng.random() < null else random_value(rng, kind) for kind, null in zip(kinds, nulls))
            for _ in range(rng.randint(0, most))
        ]
        tables.append(Table(f"t{number}", columns, rows))
    return tables


def write_parquet(table: Table, directory: Path, rng: random.Random) -> None:
    """Writes a table with a few row groups, dictionaries on or off."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow = {
        "int": pa.int32(),
        "big": pa.int64(),
        "dec": pa.decimal128(12, 2),
        "dbl": pa.float64(),
        "str": pa.string(),
        "date": pa.date32(),
        "ts": pa.timestamp("us"),
        "bool": pa.bool_(),
    }
    arrays = [
        pa.array([row[i] for row in table.rows], arrow[kind]) for i, (_, kind) in enumerate(table.columns)
    ]
    pq.write_table(
        pa.table(arrays, names=[name for name, _ in table.columns]),
        directory / f"{table.name}.parquet",
        row_group_size=rng.choice([100, 700, 100_000]),
        use_dictionary=rng.random() < 0.7,
        data_page_size=rng.choice([256, 1 << 20]),
        write_page_index=rng.random() < 0.7,
        store_decimal_as_integer=rng.random() < 0.5,
    )
