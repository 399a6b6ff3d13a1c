#!/usr/bin/env python3
"""Tests options of reading and writing sets of files: compares Tessera with DuckDB.

    tests/reading.py --tessera target/release/tessera [--only TEXT]

Columns of paths (`filename`, hive partitions), columns by name, functions that describe files, and
folders that COPY writes. Both engines run the same statement in folders of the same content; rows,
names of columns and written files must be equal. Where Tessera differs on purpose, its own answer
is in the case. A failing case prints its statement.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
from messy_cases import BOOKS, MESSY, make_messy_files
from reading_cases import DESCRIBING, READING, WRITING, Case, make_files

UNIQUE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Failure(Exception):
    """A statement that an engine refused."""


class Engines:
    """Both engines, each in a folder of its own."""

    def __init__(self, program: str, root: Path) -> None:
        self.program = str(Path(program).resolve())
        self.ours, self.theirs = root / "ours", root / "theirs"
        for folder in (self.ours, self.theirs):
            folder.mkdir()
            make_files(folder)
            make_messy_files(folder)
        self.duckdb = duckdb.connect()
        self.duckdb.execute("set threads = 1")

    def tessera(self, sql: str, options: tuple[str, ...] = ()) -> list[dict]:
        """The rows of a statement; those of a COPY are none."""
        command = [self.program, "--statistics-cache", "off", "--code-cache", "off", *options]
        ended = subprocess.run(
            [*command, "--format", "arrow", "-c", sql],
            cwd=self.ours,
            capture_output=True,
            timeout=120,
            check=False,
        )
        if ended.returncode != 0:
            raise Failure(ended.stderr.decode(errors="replace"))
        if not ended.stdout or sql.lower().startswith("copy"):
            return []
        return pa.ipc.open_stream(ended.stdout).read_all().to_pylist()

    def judge(self, sql: str) -> list[dict]:
        """The rows that DuckDB gives."""
        before = os.getcwd()
        os.chdir(self.theirs)
        try:
            if sql.lower().startswith("copy"):
                self.duckdb.execute(sql)
                return []
            return self.duckdb.sql(sql).to_arrow_table().to_pylist()
        except duckdb.Error as error:
            raise Failure(str(error)) from error
        finally:
            os.chdir(before)


def name_of(column: str) -> str:
    """A name of a column without what the engines call differently."""
    return column.lower().replace("count_star()", "count(*)").removeprefix("(").removesuffix(")")


def value_of(value: object) -> object:
    """A value without the type of sums, which is wider in DuckDB."""
    return int(value) if isinstance(value, Decimal) and value == int(value) else value


def ordered(rows: list[dict]) -> list[str]:
    """Rows in one order, with the columns in one order."""
    plain = ([(name_of(name), value_of(value)) for name, value in row.items()] for row in rows)
    return sorted(repr(sorted(row)) for row in plain)


def tree(folder: Path) -> list[str]:
    """The files below a folder; hidden ones, too."""
    if not folder.exists():
        return ["absent"]
    files = (path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())
    return sorted(UNIQUE.sub("UUID", str(path)) for path in files)


def check_rows(engines: Engines, case: Case) -> str | None:
    """Compares the rows of a query."""
    rows = engines.tessera(case.sql, case.options)
    expected = case.expected if case.expected is not None else engines.judge(case.judge or case.sql)
    if ordered(rows) != ordered(expected):
        return f"got      {ordered(rows)}\nexpected {ordered(expected)}"
    return None


def check_error(engines: Engines, case: Case) -> str | None:
    """Both engines must refuse a statement, unless the case says that the judge does not."""
    try:
        return f"expected an error with {case.error!r}, got {engines.tessera(case.sql, case.options)}"
    except Failure as failure:
        if case.error not in str(failure):
            return f"expected an error with {case.error!r}, got {failure}"
    if case.ours_only:
        return None
    try:
        return f"the judge answers {engines.judge(case.judge or case.sql)}"
    except Failure:
        return None


def check_written(engines: Engines, case: Case) -> str | None:
    """Compares what a COPY leaves in its folder: names of files, and their rows."""
    try:
        engines.tessera(case.sql, case.options)
        failed = None
    except Failure as failure:
        failed = str(failure)
    if (failed is None) != (case.error is None) or (case.error and case.error not in failed):
        return f"expected error {case.error!r}, got {failed!r}"
    if not case.ours_only:
        try:
            engines.judge(case.judge or case.sql)
            judged = None
        except Failure as failure:
            judged = str(failure)
        if (judged is None) != (failed is None):
            return f"the judge says {judged!r}"
    ours, theirs = tree(engines.ours / case.folder), tree(engines.theirs / case.folder)
    expected = theirs if case.files is None else case.files
    if ours != expected:
        return f"got files      {ours}\nexpected files {expected}"
    if not case.read or case.files is not None or (case.error and theirs == ["absent"]):
        return None
    rows, wanted = engines.tessera(case.read), engines.judge(case.read)
    if ordered(rows) != ordered(wanted):
        return f"read back {ordered(rows)}\nexpected  {ordered(wanted)}"
    # The judge reads what Tessera has written.
    theirs, engines.theirs = engines.theirs, engines.ours
    try:
        crossed = engines.judge(case.read)
    finally:
        engines.theirs = theirs
    return None if ordered(crossed) == ordered(wanted) else f"the judge reads {ordered(crossed)}"


def check(engines: Engines, case: Case) -> str | None:
    """Runs a case; returns what is wrong."""
    try:
        if case.folder:
            return check_written(engines, case)
        return check_error(engines, case) if case.error else check_rows(engines, case)
    except Failure as failure:
        return f"it fails: {failure}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", required=True)
    parser.add_argument("--only", help="only cases whose statement has this text")
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as root:
        engines = Engines(arguments.tessera, Path(root))
        groups = {"reading": READING, "messy": MESSY, "books": BOOKS, "describing": DESCRIBING, "writing": WRITING}
        for title, cases in groups.items():
            ran = 0
            for case in cases:
                if arguments.only and arguments.only not in case.sql:
                    continue
                ran += 1
                wrong = check(engines, case)
                if wrong:
                    failures += 1
                    print(f"FAILED {case.sql}\n{wrong}\n", flush=True)
            print(f"{title}: {ran} cases")
    print(f"{failures} failures" if failures else "all as expected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
