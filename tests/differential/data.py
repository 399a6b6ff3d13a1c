"""Random tables: small domains, skew, NULLs, values at the edges of what queries do with them."""

from __future__ import annotations

import datetime
import math
import random
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

TYPES = {
    "small": "SMALLINT",
    "int": "INTEGER",
    "big": "BIGINT",
    "dec": "DECIMAL(12,2)",
    "flt": "REAL",
    "dbl": "DOUBLE PRECISION",
    "str": "VARCHAR",
    "date": "DATE",
    "ts": "TIMESTAMP",
    "bool": "BOOLEAN",
}

WORDS = ["", "a", "b", "ab", "abc", "A", "zebra", "Zürich", "a%b", "x_y", "a longer text than sixteen bytes", "日本"]

# Extreme values of the types. Large doubles are excluded, because their sum depends on the order.
ODD = {
    "small": [-(2**15), 2**15 - 1, 0],
    "int": [-(2**31), 2**31 - 1, 0],
    "big": [-(2**63), 2**63 - 1, 2**31, -(2**31) - 1, 2**53 + 1],
    "dec": [Decimal("9999999999.99"), Decimal("-9999999999.99"), Decimal("0.01"), Decimal("0.00")],
    "flt": [math.nan, math.inf, -math.inf, -0.0, 0.0],
    "dbl": [math.nan, math.inf, -math.inf, -0.0, 0.0],
    "str": ["", " ", "long " * 700, "e\u0301", "\U0001f600", "it's", 'a "quoted" word', "two\nlines", "a,b", "null", "NaN"],
    "date": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), datetime.date(1969, 12, 31), datetime.date(2000, 2, 29)],
    "ts": [
        datetime.datetime(1, 1, 1),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime.datetime(1900, 1, 1),
    ],
    "bool": [True, False],
}


@dataclass
class Table:
    """A table: its columns with their types, its rows, and the columns that are declared NOT NULL."""

    name: str
    columns: list[tuple[str, str]]
    rows: list[tuple]
    required: set[str] = field(default_factory=set)

    def values_sql(self) -> str:
        """Returns the table as a common table expression that all engines accept."""
        names = ", ".join(name for name, _ in self.columns)
        casts = ", ".join(f"cast({name} as {TYPES[kind]}) as {name}" for name, kind in self.columns)
        rows = self.rows or [tuple(None for _ in self.columns)]
        lines = ", ".join("(" + ", ".join(literal(value, bare=True) for value in row) + ")" for row in rows)
        where = "" if self.rows else " where false"
        return f"{self.name} as (select {casts} from (values {lines}) as v({names}){where})"

    def copy_sql(self) -> str:
        """Returns the table as a psql script that creates and fills it."""
        columns = ", ".join(
            f"{name} {TYPES[kind]}{' not null' if name in self.required else ''}" for name, kind in self.columns
        )
        lines = "".join("\t".join(copied(value) for value in row) + "\n" for row in self.rows)
        return f"create table {self.name} ({columns});\ncopy {self.name} from stdin;\n{lines}\\.\nanalyze {self.name};\n"


def number_text(value: float) -> str:
    """Returns a double in a form that all engines accept."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def copied(value: object) -> str:
    """Returns a value in the text format of COPY."""
    if value is None:
        return "\\N"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, str):
        return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")
    return str(value)


def literal(value: object, bare: bool = False) -> str:
    """Returns a value as SQL; `bare` leaves the type of dates to a surrounding cast."""
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
        return f"'{number_text(value)}'" if bare else f"cast('{number_text(value)}' as double precision)"
    if value == -(2**63):
        return f"'{value}'" if bare else f"({value + 1} - 1)"
    return f"'{value}'" if bare else str(value)


def random_value(rng: random.Random, kind: str, odd: float = 0) -> object:
    """Returns a value of a type, from a domain small enough for joins and groups to match;
    sometimes an extreme value."""
    if odd and rng.random() < odd:
        return rng.choice(ODD[kind])
    match kind:
        case "small":
            return rng.choice([0, 1, -1, 2, rng.randint(-9, 9), rng.randint(-300, 300)])
        case "int":
            return rng.choice([0, 1, -1, 2, 3, rng.randint(-20, 20), rng.randint(-1000, 1000)])
        case "big":
            return rng.choice([0, 1, rng.randint(-30, 30), rng.randint(-(10**9), 10**9)])
        case "dec":
            return Decimal(rng.randint(-5000, 5000)).scaleb(-2)
        case "flt" | "dbl":
            # Multiples of a quarter, whose sums are exact in any order.
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


# The most rows of the tables of a world: one of a few thousand rows, two small ones, one almost
# empty.
ROWS_MOST = (2500, 150, 40, 3)


def random_tables(rng: random.Random, rows_most: tuple[int, ...] = ROWS_MOST) -> list[Table]:
    """Returns four tables of at most these numbers of rows.

    All have the columns `k` and `n` for USING and NATURAL; a third of the worlds has extreme values
    in some columns.
    """
    tables = []
    world_is_odd = rng.random() < 0.34
    for number, most in enumerate(rows_most):
        kinds = ["int", "str", "int", "big"]
        kinds += rng.sample(["int", "big", "small", "dec", "dbl", "flt", "str", "date", "ts", "bool", "str", "dec"], 6)
        names = ["k", "n"] + [f"{'abcdefgh'[i]}{number}" for i in range(len(kinds) - 2)]
        nulls = [rng.choice([0, 0, 0.1, 0.5]) for _ in kinds]
        odds = [rng.choice([0, 0, 0.05, 0.4]) if world_is_odd else 0 for _ in kinds]
        rows = [
            tuple(
                None if rng.random() < null else random_value(rng, kind, odd)
                for kind, null, odd in zip(kinds, nulls, odds)
            )
            for _ in range(rng.randint(0, most))
        ]
        required = {name for name, null in zip(names, nulls) if null == 0 and rng.random() < 0.5}
        tables.append(Table(f"t{number}", list(zip(names, kinds)), rows, required))
    return tables


def write_parquet(table: Table, directory: Path, rng: random.Random) -> None:
    """Writes a table with a few row groups, with or without dictionaries."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow = {
        "small": pa.int16(),
        "int": pa.int32(),
        "big": pa.int64(),
        "dec": pa.decimal128(12, 2),
        "flt": pa.float32(),
        "dbl": pa.float64(),
        "str": pa.string(),
        "date": pa.date32(),
        "ts": pa.timestamp("us"),
        "bool": pa.bool_(),
    }
    arrays = [
        pa.array([row[i] for row in table.rows], arrow[kind]) for i, (_, kind) in enumerate(table.columns)
    ]
    fields = [pa.field(name, arrow[kind], nullable=name not in table.required) for name, kind in table.columns]
    pq.write_table(
        pa.table(arrays, schema=pa.schema(fields)),
        directory / f"{table.name}.parquet",
        row_group_size=rng.choice([100, 700, 100_000]),
        use_dictionary=rng.random() < 0.7,
        data_page_size=rng.choice([256, 1 << 20]),
        write_page_index=rng.random() < 0.7,
        store_decimal_as_integer=rng.random() < 0.5,
    )
