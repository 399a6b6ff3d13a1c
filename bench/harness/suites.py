"""The benchmarks: their tables, their queries, and data for them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

TABLES = {
    "tpch": ["lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"],
    "ssb": ["lineorder", "customer", "supplier", "part", "date"],
}


# How many queries a suite has: a list that has shrunk is an error, not a shorter benchmark.
QUERY_COUNTS = {"tpch": 22, "ssb": 13}
# Whether columns of the files may hold NULL, by the word of `--columns`, in words for a page.
COLUMNS = {"nullable": "nullable columns without NULLs", "not-null": "NOT NULL columns"}
MIXED = "some columns nullable, some NOT NULL"


@dataclass(frozen=True)
class Query:
    """One query: its name, such as q03, and its text."""

    name: str
    sql: str


def queries(suite: str, only: list[str] | None = None) -> list[Query]:
    """The suite's queries in order, or those named in `only`."""
    files = sorted((ROOT / "queries" / suite).glob("*.sql"))
    found = [Query(file.stem, file.read_text().strip().rstrip(";")) for file in files]
    if len(found) != QUERY_COUNTS[suite]:
        sys.exit(f"{suite} has {QUERY_COUNTS[suite]} queries, but queries/{suite} holds {len(found)}")
    if not only:
        return found
    unknown = set(only) - {query.name for query in found}
    if unknown:
        known = ", ".join(query.name for query in found)
        sys.exit(f"{suite} has no query {', '.join(sorted(unknown))}; it has {known}")
    return [query for query in found if query.name in only]


def ensure_data(binary: Path, suite: str, scale: float, directory: Path, columns: str | None = None) -> Path:
    """The directory, with the suite's tables in it; generates them if none is there. `columns` is what they must be (COLUMNS)."""
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
    """Makes a suite's tables with the program."""
    command = [str(binary), "generate", suite, "--sf", f"{scale:g}", "--out", str(directory)]
    if columns == "not-null" and "--not-null" in output_of([str(binary), "generate", "--help"]):
        command.append("--not-null")
    print(f"generating {suite} at scale factor {scale:g} in {directory}", flush=True)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.strip()}")


def output_of(command: list[str]) -> str:
    """What a program prints."""
    return subprocess.run(command, capture_output=True, text=True).stdout


def columns_of(directory: Path, suite: str) -> str:
    """Which of COLUMNS the files have, by their schemas; `mixed` where they differ."""
    import pyarrow.parquet as parquet

    found = {
        "nullable" if field.nullable else "not-null"
        for table in TABLES[suite]
        for field in parquet.read_schema(directory / f"{table}.parquet")
    }
    return found.pop() if len(found) == 1 else "mixed"


def columns_in_words(directory: Path, suite: str) -> str:
    """The same for a page."""
    return COLUMNS.get(columns_of(directory, suite), MIXED)


def default_binary(name: str = "tessera") -> Path:
    """A program of this checkout's release build."""
    import os

    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / name


def check_binary(binary: Path) -> None:
    """Ends the program with what to do if the binary is not there."""
    if not binary.is_file():
        sys.exit(
            f"there is no tessera binary at {binary}; build it with 'cargo build --release -p tessera' "
            "or name one with --tessera"
        )


def numbers(text: str) -> list[int]:
    """Positive numbers separated by commas, for `argparse`."""
    values = [int(part) for part in text.split(",")]
    if min(values) < 1:
        raise ValueError
    return values
