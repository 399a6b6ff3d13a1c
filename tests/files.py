#!/usr/bin/env python3
"""Tests files of other writers: compares Tessera's rows with those of other readers.

    tests/files.py --tessera target/release/tessera [--files N] [--seed S] [--format F] [--only CASE]
                   [--damage N]

Each file is generated from a seed: Parquet and Arrow by pyarrow, polars and DuckDB with random types
and options, handmade Parquet, and CSV and JSON lines in many dialects. DuckDB and pyarrow provide the
expected contents; for text with types that DuckDB infers differently, the generator does. A file is
read whole, in small chunks by several workers, column by column if one has an unsupported type,
counted, and filtered. Then copies with cut ends and flipped bytes are read in little memory: the
result must be an error or rows, never a panic. A failing case prints a command that repeats it.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pyarrow as pa
from foreign import damage, handmade, questions, text, typed
from foreign.questions import quoted
from foreign.values import same

MAKERS = {
    "parquet": typed.parquet,
    "arrow": typed.arrow,
    "handmade": handmade.parquet,
    "csv": text.csv,
    "json": text.json_lines,
    "sets": typed.sets,
}
ADDRESS_SPACE = 4 << 30
TRIES = 50


class Tessera:
    """The program under test."""

    def __init__(self, program: str) -> None:
        self.program = program

    def run(
        self, statements: list[str], *options: str, limit: int | None = None, seconds: int = 120
    ) -> tuple[int, str]:
        """Runs statements; returns the exit code and output. A failed statement does not end the
        others."""
        bound = (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) if limit else None
        command = [self.program, "--statistics-cache", "off", "--code-cache", "off", *options]
        try:
            ended = subprocess.run(
                command,
                input="".join(f"{sql};\n" for sql in statements),
                capture_output=True,
                text=True,
                errors="replace",
                preexec_fn=bound,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -1, f"no end within {seconds} s"
        return ended.returncode, ended.stdout + ended.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", required=True)
    parser.add_argument("--files", type=int, default=60, help="number of files of each format")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=sorted(MAKERS), action="append")
    parser.add_argument("--only", type=int, help="one case of each format")
    parser.add_argument("--damage", type=int, default=6, help="of every so many files, one is damaged; 0: none")
    parser.add_argument(
        "--large", action="store_true", help="also a row group of more than 2 GB of strings, in a small file"
    )
    parser.add_argument("--keep", type=Path, help="a folder in which failing files stay")
    options = parser.parse_args()
    tessera = Tessera(options.tessera)
    cases = [
        (form, number)
        for form in options.format or sorted(MAKERS)
        for number in ([options.only] if options.only is not None else range(options.files))
    ]
    failed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        run = lambda case: check(tessera, Path(folder), options, *case)
        for (form, number), problems in zip(cases, pool.map(run, cases), strict=True):
            for problem in problems:
                failed += 1
                print(
                    f"FAILED: {problem}\n  again: tests/files.py --tessera {options.tessera} --seed {options.seed} --format {form} --only {number}",
                    flush=True,
                )
        if options.large:
            for problem in typed.large(tessera, Path(folder)):
                failed += 1
                print(f"FAILED: {problem}", flush=True)
    print(f"{len(cases)} files, {failed} problems")
    return 1 if failed else 0


def made(form: str, seed: int, number: int, folder: Path) -> typed.Case:
    """Generates the file of a case; draws again if a writer rejects it."""
    for attempt in range(TRIES):
        rng = random.Random(f"{seed}:{form}:{number}:{attempt}")
        try:
            return MAKERS[form](rng, folder, number)
        except (pa.ArrowException, duckdb.Error, NotImplementedError, OSError, ValueError):
            if attempt == TRIES - 1:
                raise
    raise AssertionError("unreachable")


def check(tessera: Tessera, outer: Path, options: argparse.Namespace, form: str, number: int) -> list[str]:
    """Returns the problem with reading one case's file."""
    folder = outer / f"{form}{number}"
    folder.mkdir()
    case = made(form, options.seed, number, folder)
    rng = random.Random(f"{options.seed}:{form}:{number}:check")
    try:
        problems = compared(tessera, case, folder, rng)
        if options.damage and number % options.damage == 0 and case.path.is_file():
            problems += damage.check(tessera, case, folder, rng, ADDRESS_SPACE)
    except Exception as error:  # A fault of the check, or an answer that cannot be parsed.
        problems = [f"{type(error).__name__}: {error}"]
    shown = [f"{problem}\n  made: {case.made}" for problem in problems]
    if shown and options.keep:
        kept = options.keep / f"{form}{number}"
        subprocess.run(["cp", "-r", str(folder), str(kept)], check=False)
    else:
        subprocess.run(["rm", "-rf", str(folder)], check=False)
    return shown


def source(case: typed.Case) -> str:
    path = str(case.path).replace("'", "''")
    return f"{case.reader}('{path}'{case.options})" if case.reader else f"'{path}'"


def compared(tessera: Tessera, case: typed.Case, folder: Path, rng: random.Random) -> list[str]:
    """Reads a file in several ways; returns the difference from its judges."""
    judge = next(iter(case.judges.values()))
    rows = len(next(iter(judge.values()))) if judge else 0
    out = folder / "out"
    out.mkdir(exist_ok=True)
    chunk, threads = rng.choice([1, 7, 8192, 8192]), rng.choice([1, 3])
    settings = ["--chunk-rows", str(chunk), "--threads", str(threads)]
    readable = [name for name in judge if name not in case.lacking]
    names = [*judge] if not case.lacking else readable
    what = "*" if not case.lacking else ", ".join(map(quoted, readable))
    statements = [f"copy (select count(*) c from {source(case)}) to '{out}/count.arrow'"]
    if names:
        statements.append(f"copy (select {what} from {source(case)}) to '{out}/all.arrow'")
    asked = [question for name in readable for question in questions.about(rng, case, name)]
    for position, question in enumerate(asked):
        sql = f"select {question.select} from {source(case)} {question.rest}"
        statements.append(f"copy ({sql}) to '{out}/q{position}.arrow'")
    for name in case.lacking:
        statements.append(f"select {quoted(name)} from {source(case)}")
    code, said = tessera.run(statements, *settings)
    problems = []
    if code < 0 or "panicked" in said or "internal" in said:
        problems.append(f"it ended with {code}: {said[:600]}")
    counted = answer(out / "count.arrow")
    if case.refused:
        return problems + refused(case, said, out)
    if counted is None or counted["c"] != [rows]:
        problems.append(f"count(*) is {counted and counted['c']}, expected {rows}: {said[:600]}")
    found = answer(out / "all.arrow") if names else {}
    if found is None:
        return problems + [f"refused: {said[:900]}"]
    if [*found] != names:
        problems.append(f"columns are {[*found]}, expected {names}")
    for name in names:
        problems += differing(case, name, found.get(name, []))
    for position, question in enumerate(asked):
        got = answer(out / f"q{position}.arrow")
        rows_got = None if got is None else [*zip(*got.values(), strict=True)]
        alike = text.alike if case.loose else same
        if rows_got is None or not alike(tuple(rows_got), tuple(question.rows)):
            problems.append(
                f"{rows_got} instead of {question.rows}: select {question.select} … {question.rest}: {said[:300]}"[:900]
            )
    for name in case.lacking:
        if not re.search(r"cannot be read|not supported|unsupported", said):
            problems.append(f"column {name!r} is of a type that is not offered, and no error says so: {said[:300]}")
    return problems


def refused(case: typed.Case, said: str, out: Path) -> list[str]:
    """Checks that reading a file fails with this message."""
    if (out / "all.arrow").exists():
        return [f"it was read; an error was expected that says {case.refused!r}"]
    return [] if re.search(case.refused, said) else [f"the error does not say {case.refused!r}: {said[:600]}"]


def answer(path: Path) -> dict[str, list] | None:
    return typed.columns_of(typed.read_ipc(path)) if path.exists() else None


def differing(case: typed.Case, name: str, found: list) -> list[str]:
    """Returns how a column differs from all judges."""
    problems = []
    for judge, columns in case.judges.items():
        expected = columns.get(name)
        if expected is None:
            continue
        if len(found) != len(expected):
            problems.append(f"column {name!r} has {len(found)} rows, {judge} reads {len(expected)}")
            continue
        alike = text.alike if case.loose else same
        wrong = [row for row, pair in enumerate(zip(found, expected, strict=True)) if not alike(*pair)]
        if not wrong:
            return []
        row = wrong[0]
        problems.append(
            f"column {name!r} differs from {judge}'s in {len(wrong)} rows, first in row {row}: {found[row]!r} instead of {expected[row]!r}"[
                :700
            ]
        )
    return problems[:1]


if __name__ == "__main__":
    sys.exit(main())
