"""The benchmarks: their tables, queries and data."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import films, hits, tpcds

ROOT = Path(__file__).resolve().parents[2]

TABLES = {
    "tpch": ["lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"],
    "ssb": ["lineorder", "customer", "supplier", "part", "date"],
    "clickbench": ["hits"],
    "joinorder": list(films.TABLES),
    "tpcds": tpcds.TABLES,
}
# The suites whose tables this harness writes; the program generates those of the others.
MAKERS = {"clickbench": hits.make, "joinorder": films.make, "tpcds": tpcds.make}

# The number of queries of a suite: a shorter list is an error.
QUERY_COUNTS = {"tpch": 22, "ssb": 13, "clickbench": 43, "joinorder": 113, "tpcds": tpcds.QUERIES}
# Descriptions for pages of whether columns may hold NULL, by the value of `--columns`.
COLUMNS = {"nullable": "nullable columns without NULLs", "not-null": "NOT NULL columns"}
MIXED = "some columns nullable, some NOT NULL"


@dataclass(frozen=True)
class Query:
    """One query: its name, such as q03, and its text."""

    name: str
    sql: str


def queries(suite: str, only: list[str] | None = None, scale: float = 1.0) -> list[Query]:
    """Returns the suite's queries for tables of this scale in order, or those named in `only`."""
    found = [Query(name, at_scale(suite, sql.strip().rstrip(";"), scale)) for name, sql in texts(suite)]
    if len(found) != QUERY_COUNTS[suite]:
        sys.exit(f"{suite} has {QUERY_COUNTS[suite]} queries, but {len(found)} were found")
    if not only:
        return found
    unknown = set(only) - {query.name for query in found}
    if unknown:
        known = ", ".join(query.name for query in found)
        sys.exit(f"unknown query {', '.join(sorted(unknown))} of {suite}; expected {known}")
    return [query for query in found if query.name in only]


def texts(suite: str) -> list[tuple[str, str]]:
    """Returns the names and texts of a suite's queries in order."""
    if suite == "tpcds":
        return [(f"q{number:02}", sql) for number, sql in enumerate(tpcds.queries(), start=1)]
    number = lambda file: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", file.stem)]  # noqa: E731
    files = sorted((ROOT / "queries" / suite).glob("*.sql"), key=number)
    return [(file.stem, file.read_text()) for file in files]


def at_scale(suite: str, sql: str, scale: float) -> str:
    """Returns a query of ClickBench with its numbers of rows reduced like its table, so that small
    tables have an answer too; other queries as they are."""
    if suite != "clickbench" or scale >= 1:
        return sql
    reduced = lambda match: match.group(1) + str(round(int(match.group(2)) * scale))  # noqa: E731
    return re.sub(r"(count\(\*\) > |offset\s+)(\d+)", reduced, sql)


def ensure_data(binary: Path, suite: str, scale: float, directory: Path, columns: str | None = None) -> Path:
    """Returns the directory with the suite's tables; generates them if there are none. `columns`
    is the required kind (COLUMNS)."""
    missing = [t for t in TABLES[suite] if not (directory / f"{t}.parquet").exists()]
    if missing and len(missing) < len(TABLES[suite]):
        sys.exit(f"{directory} lacks {', '.join(missing)}; remove it or name a complete directory")
    if missing:
        generate(binary, suite, scale, directory, columns)
    found = columns_of(directory, suite)
    if columns and found != columns:
        sys.exit(f"{directory} has {COLUMNS.get(found, MIXED)}, but --columns {columns} wants {COLUMNS[columns]}")
    return directory


def generate(binary: Path, suite: str, scale: float, directory: Path, columns: str | None) -> None:
    """Generates a suite's tables."""
    if suite in MAKERS:
        print(f"generating {suite} at scale factor {scale:g} in {directory}", flush=True)
        directory.mkdir(parents=True, exist_ok=True)
        MAKERS[suite](scale, directory)
        return
    command = [str(binary), "generate", suite, "--sf", f"{scale:g}", "--out", str(directory)]
    if columns == "not-null" and "--not-null" in output_of([str(binary), "generate", "--help"]):
        command.append("--not-null")
    print(f"generating {suite} at scale factor {scale:g} in {directory}", flush=True)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.strip()}")


def output_of(command: list[str]) -> str:
    """Returns the output of a program."""
    return subprocess.run(command, capture_output=True, text=True).stdout


def columns_of(directory: Path, suite: str) -> str:
    """Returns the kind of the files' columns (COLUMNS) from their schemas; `mixed` if they differ."""
    import pyarrow.parquet as parquet

    found = {
        "nullable" if field.nullable else "not-null"
        for table in TABLES[suite]
        for field in parquet.read_schema(directory / f"{table}.parquet")
    }
    return found.pop() if len(found) == 1 else "mixed"


def columns_in_words(directory: Path, suite: str) -> str:
    """Returns the same as text for a page."""
    found = columns_of(directory, suite)
    # These tables hold NULLs.
    if suite in ("joinorder", "tpcds") and found == "nullable":
        return "nullable columns"
    return COLUMNS.get(found, MIXED)


def default_binary(name: str = "tessera") -> Path:
    """Returns the path of a program of this checkout's release build."""
    import os

    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / name


def check_binary(binary: Path) -> None:
    """Exits with instructions if the binary is missing."""
    if not binary.is_file():
        sys.exit(
            f"missing tessera binary {binary}; build it with 'cargo build --release -p tessera' "
            "or name one with --tessera"
        )


def numbers(text: str) -> list[int]:
    """Parses positive numbers separated by commas, for `argparse`."""
    values = [int(part) for part in text.split(",")]
    if min(values) < 1:
        raise ValueError
    return values
