#!/usr/bin/env python3
"""Random queries over random data: Tessera's answers against DuckDB's, row for row.

    tests/differential/run.py --queries 600            # what scripts/test runs
    tests/differential/run.py --seed 17 --queries 40   # one world again

A world is four random tables and forty queries. A query that differs is made smaller and printed as SQL that can be
pasted into either engine. Ends with `N passed, N failed` and exit code 1 if anything failed.
"""

from __future__ import annotations

import argparse
import datetime
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "bench"))

from data import Table, random_tables, write_parquet
from harness.compare import difference, rows_from_csv
from queries import Generator, Query
from reduce import reduce

QUERIES_PER_WORLD = 40
TIMEOUT_S = 120


@dataclass
class Engine:
    """The program under test, in one setting."""

    binary: Path
    directory: Path
    threads: int
    chunk: int
    place: tuple[str, ...] = ()

    def answers(self, queries: list[str]) -> list[str | Exception]:
        """What it prints for each query (CSV), or how it failed."""
        script = "".join(f"{sql};\nselect '#{i}#' as marker;\n" for i, sql in enumerate(queries))
        command = [str(self.binary), str(self.directory), "--format", "csv", "--threads", str(self.threads)]
        command += ["--chunk-rows", str(self.chunk), *self.place, "-f", "-"]
        done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=TIMEOUT_S)
        answers: list[str | Exception] = []
        rest = done.stdout
        errors = [line for line in done.stderr.splitlines() if line.startswith("error")]
        for i in range(len(queries)):
            marker = f"marker\n#{i}#\n"
            if marker not in rest:
                answers.append(RuntimeError(f"the program ended early (exit code {done.returncode}): {done.stderr[-2000:]}"))
                continue
            answer, rest = rest.split(marker, 1)
            answers.append(answer if answer else RuntimeError(errors.pop(0) if errors else "no answer, no error"))
        return answers


def reference(directory: Path, tables: list[Table]):
    """DuckDB over the same files, set to PostgreSQL's meaning."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute("set integer_division = true")
    connection.execute("set default_null_order = 'nulls_last_on_asc_first_on_desc'")
    for table in tables:
        connection.execute(f"create view {table.name} as from read_parquet('{directory}/{table.name}.parquet')")
    return connection


def wrong(expected: list[tuple], answer: str | Exception, query: Query) -> str | None:
    """What is wrong with an answer, or None."""
    if isinstance(answer, Exception):
        return str(answer)
    order = list(range(len(query.select))) if query.order else []
    return difference(expected, rows_from_csv(answer, expected), order)


def check_world(seed: int, count: int, binary: Path, show: int, place: tuple[str, ...]) -> tuple[int, int, int]:
    """Runs one world; how many queries passed, failed, and were refused by the reference."""
    rng = random.Random(seed)
    tables = random_tables(rng)
    threads, chunk = rng.choice([(1, 8192), (2, 8192), (2, 7), (1, 1), (4, 100)])
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        for table in tables:
            write_parquet(table, directory, rng)
        connection = reference(directory, tables)
        generator = Generator(rng, tables)
        queries, expected, refused = [], [], 0
        while len(queries) < count:
            query = generator.query()
            try:
                expected.append(connection.execute(query.sql()).fetchall())
                queries.append(query)
            except Exception:  # An overflow, or a construct only one engine has: not this test's business.
                refused += 1
        engine = Engine(binary, directory, threads, chunk, place)
        answers = engine.answers([query.sql() for query in queries])
        failed = 0
        for query, rows, answer in zip(queries, expected, answers):
            problem = wrong(rows, answer, query)
            if problem is None:
                continue
            failed += 1
            print(f"\nFAILED: seed {seed}, {threads} threads, chunks of {chunk}, {' '.join(place) or 'local'}: {problem}", flush=True)
            print(query.sql(), flush=True)
            if show > 0:
                show -= 1
                print_reduced(query, tables, engine, problem)
    return len(queries) - failed, failed, refused


def print_reduced(query: Query, tables: list[Table], engine: Engine, problem: str) -> None:
    """Prints the smallest form of a failure that can be pasted into either engine."""
    kind = problem.split(":")[0][:40] if problem.startswith("error") else None

    def fails(candidate: Query, fewer: list[Table]) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder)
            for table in fewer:
                write_parquet(table, directory, random.Random(0))
            try:
                expected = reference(directory, fewer).execute(candidate.sql()).fetchall()
            except Exception:
                return False
            other = Engine(engine.binary, directory, engine.threads, engine.chunk, engine.place)
            found = wrong(expected, other.answers([candidate.sql()])[0], candidate)
            return found is not None and (found.startswith(kind) if kind else not found.startswith("error"))

    small, fewer = reduce(query, tables, fails)
    sql = small.sql()
    used = [table for table in fewer if f" {table.name} " in sql]
    print("  made smaller:")
    before = [table.values_sql() for table in used] + [part.sql() for part in small.withs]
    recursive = "recursive " if any(part.step for part in small.withs) else ""
    print(f"  with {recursive}" + ",\n  ".join(before))
    print("  " + sql.removeprefix(small.with_sql()) + ";", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", type=Path, required=True, help="the program under test")
    parser.add_argument("--queries", type=int, default=600, help="how many queries")
    parser.add_argument("--seed", type=int, help="the first world's seed (default 1; 0 = from the clock)")
    parser.add_argument("--reduce", type=int, default=1, help="how many failures of a world are made smaller")
    parser.add_argument("--ranks", type=int, default=0, help="MPI ranks to run on (default none: local)")
    parser.add_argument("--mpi-exchange", default="auto", help="how tuples cross between ranks")
    parser.add_argument("--workers", type=int, default=0, help="serverless workers to run on (default none)")
    parser.add_argument("--tier", default="auto", help="vectorized, compiled or auto (default)")
    parser.add_argument("--device", default="cpu", help="where compiled code runs: cpu (default), virtual-gpu, or gpu")
    arguments = parser.parse_args()
    place: tuple[str, ...] = ("--tier", arguments.tier, "--device", arguments.device)
    if arguments.ranks:
        place += ("--platform", "mpi", "--ranks", str(arguments.ranks), "--mpi-exchange", arguments.mpi_exchange)
    if arguments.workers:
        place += ("--platform", "serverless", "--workers", str(arguments.workers))
    seed = 1 if arguments.seed is None else arguments.seed
    if seed == 0:
        seed = int(datetime.datetime.now().timestamp())
    passed = failed = refused = 0
    while passed + failed < arguments.queries:
        count = min(QUERIES_PER_WORLD, arguments.queries - passed - failed)
        world = check_world(seed, count, arguments.tessera, arguments.reduce, place)
        passed, failed, refused = passed + world[0], failed + world[1], refused + world[2]
        seed += 1
    print(f"{refused} more queries were refused by the reference and not counted")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
