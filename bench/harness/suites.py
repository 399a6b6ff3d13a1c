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


@dataclass(frozen=True)
class Query:
    """One query: its name, such as q03, and its text."""

    name: str
    sql: str


def queries(suite: str, only: list[str] | None = None) -> list[Query]:
    """The suite's queries in order, or those named in `only`."""
    files = sorted((ROOT / "queries" / suite).glob("*.sql"))
    found = [Query(file.stem, file.read_text().strip().rstrip(";")) for file in files]
    if not only:
        return found
    unknown = set(only) - {query.name for query in found}
    if unknown:
        known = ", ".join(query.name for query in found)
        sys.exit(f"{suite} has no query {', '.join(sorted(unknown))}; it has {known}")
    return [query for query in found if query.name in only]


def ensure_data(binary: Path, suite: str, scale: float, directory: Path) -> Path:
    """The directory, with the suite's tables in it; generates them if none is there."""
    missing = [t for t in TABLES[suite] if not (directory / f"{t}.parquet").exists()]
    if not missing:
        return directory
    if len(missing) < len(TABLES[suite]):
        sys.exit(f"{directory} lacks {', '.join(missing)}; remove it or name a complete directory")
    command = [str(binary), "generate", suite, "--sf", f"{scale:g}", "--out", str(directory)]
    print(f"generating {suite} at scale factor {scale:g} in {directory}", flush=True)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return directory


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
