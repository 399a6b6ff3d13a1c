#!/usr/bin/env python3
"""Compares Tessera's answers to random queries over random data with a judge's, row for row.

    tests/differential/run.py --queries 600                       # what scripts/test runs, against DuckDB
    tests/differential/run.py --judge postgresql --queries 50000  # also tlp, norec and rules (no other engine)
    tests/differential/run.py --seed 17 --queries 40              # one world again

A world has four random tables and forty queries. A query with a different answer is reduced and
printed as SQL for either engine. Differences with a known cause (known.py) are counted by cause. Ends
with `N passed, N failed` and exit code 1 if a query failed.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import random
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "bench"))

from data import Table, random_tables, write_parquet
from generate import Generator
from known import cause
from oracles import ORACLES, RAISED, Case, Refused, TooLong
from queries import Query
from raising import has_correlated_subquery, probes
from reduce import reduce

QUERIES_PER_WORLD = 40
ROWS_OF_SMALL_CHUNKS = 300
# Longer runs print their progress after each world.
PROGRESS_FROM = 2_000
# The largest shares of empty answers among passed ones, and of known differences among all.
EMPTY_MAX, KNOWN_MAX = 0.5, 0.15
# The share of queries without rows that is kept; they are more than half of the generated ones.
EMPTY_KEPT = 0.2


@dataclass
class Engine:
    """The program under test, with one configuration."""

    binary: Path
    directory: Path
    threads: int
    chunk: int
    # The time limit of an answer.
    limit_s: float
    place: tuple[str, ...] = ()

    def answers(self, queries: list[str]) -> list[str | Exception]:
        """Returns the output for each query (CSV), or its error."""
        # Markers on both outputs, because a query may fail after its first rows. On standard error
        # they are errors.
        script = "".join(f"{sql};\nselect '#{i}#' as marker;\nselect marker_{i}_;\n" for i, sql in enumerate(queries))
        command = [str(self.binary), str(self.directory), "--format", "csv", "--threads", str(self.threads)]
        command += ["--chunk-rows", str(self.chunk), *self.place, "-f", "-"]
        try:
            done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=self.limit_s)
        except subprocess.TimeoutExpired as slow:
            finished = (slow.stdout or b"").count(b"marker\n#")
            if finished == 0:
                return [TooLong(f"no answer within {self.limit_s} s"), *(self.answers(queries[1:]) if queries[1:] else [])]
            return self.answers(queries[:finished]) + self.answers(queries[finished:])
        answers: list[str | Exception] = []
        rest, said = done.stdout, done.stderr
        for i in range(len(queries)):
            marker = f"marker\n#{i}#\n"
            if marker not in rest:
                answers.append(RuntimeError(f"the program ended early (exit code {done.returncode}): {done.stderr[-2000:]}"))
                continue
            answer, rest = rest.split(marker, 1)
            own, said = re.split(rf"error: [^\n]*\bmarker_{i}_[^\n]*\n", said, maxsplit=1)
            errors = [line for line in own.splitlines() if line.startswith("error")]
            if errors or not answer:
                answers.append(RuntimeError(errors[0] if errors else "no answer, no error"))
            else:
                answers.append(answer)
        return answers

    def problem(self, oracle, case: Case) -> str | None:
        """Returns the problem with the answers to one case."""
        return oracle.problem(case, self.answers(case.statements))


@dataclass
class Score:
    """The numbers of queries that passed, failed, failed for a known cause, and had no verdict."""

    passed: int = 0
    failed: int = 0
    refused: int = 0
    # Passed answers without rows, which prove little.
    empty: int = 0


def cases_of(world, generator: Generator, count: int, score: Score) -> list[Case]:
    """Returns the requested number of cases, most of them with rows; queries that the judge
    rejects are skipped."""
    cases: list[Case] = []
    while len(cases) < count:
        found = world.cases([generator.query() for _ in range(count - len(cases) + 4)])
        score.refused += found.count(None)
        cases += [case for case in found if case is not None and (case.expected != [] or generator.rng.random() < EMPTY_KEPT)]
    return cases[:count]


def check_world(seed: int, count: int, oracle, options: argparse.Namespace, known: collections.Counter) -> Score:
    """Runs one world."""
    rng = random.Random(seed)
    score, show = Score(), options.reduce
    tables = random_tables(rng, oracle.rows_most)
    threads, chunk = rng.choice([(1, 8192), (2, 8192), (2, 7), (1, 1), (4, 100)])
    if chunk == 1:
        # One row in each chunk: with more rows, per-chunk work of joins would take minutes.
        for table in tables:
            del table.rows[ROWS_OF_SMALL_CHUNKS:]
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        for table in tables:
            write_parquet(table, directory, rng)
        engine = Engine(options.tessera, directory, threads, chunk, oracle.limit_s, options.place)
        with oracle.world(tables, directory) as world:
            cases = cases_of(world, Generator(rng, tables, oracle.name), count, score)
            answers = engine.answers([sql for case in cases for sql in case.statements])
            for case in cases:
                given, answers = answers[: len(case.statements)], answers[len(case.statements) :]
                try:
                    problem = oracle.problem(case, given)
                except Refused:
                    score.refused += 1
                    continue
                if problem is None:
                    score.passed += 1
                    score.empty += all(has_no_rows(answer) for answer in given)
                elif reason := explained(world, engine, case, problem):
                    known[reason] += 1
                else:
                    score.failed += 1
                    where = f"{threads} threads, chunks of {chunk}, {' '.join(options.place) or 'local'}"
                    print(f"\nFAILED: {oracle.name}, seed {seed}, {where}: {problem[:600]}")
                    print(";\n".join(case.statements)[:6000], flush=True)
                    if show > 0:
                        show -= 1
                        print_reduced(case.query, tables, engine, oracle, problem)
    return score


def has_no_rows(answer: str | Exception) -> bool:
    """Returns whether an answer has only its header, or the program has raised an expected error."""
    return isinstance(answer, Exception) or answer.count("\n") < 2


def explained(world, engine: Engine, case: Case, problem: str) -> str | None:
    """Returns the known cause of a problem, also if the program raised an error that the judge
    raises when it computes all values."""
    known = cause(world.name, "\n".join(case.statements), problem)
    if known or not problem.startswith("error") or not RAISED.search(problem):
        return known
    if world.name == "rules":
        # Rules on conditions decide which subqueries become joins.
        answers = engine.answers(probes(case.query)) if has_correlated_subquery(case.query) else []
        raises = any(isinstance(answer, Exception) and RAISED.search(str(answer)) for answer in answers)
    else:
        raises = world.raises(probes(case.query))
    return "a value raises, which the judge's plan did not compute" if raises else None


def print_reduced(query: Query, tables: list[Table], engine: Engine, oracle, problem: str) -> None:
    """Prints the reduced form of a failure as SQL for either engine."""
    kind = problem.split(":")[0][:40] if problem.startswith("error") else None

    def found(candidate: Query, fewer: list[Table]) -> tuple[Case | None, str | None]:
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder)
            for table in fewer:
                write_parquet(table, directory, random.Random(0))
            with oracle.world(fewer, directory) as world:
                case = world.cases([candidate])[0]
                if case is None:
                    return None, None
                other = replace(engine, directory=directory)
                try:
                    what = other.problem(oracle, case)
                except Refused:
                    return case, None
                return case, None if what is None or explained(world, other, case, what) else what

    def fails(candidate: Query, fewer: list[Table]) -> bool:
        case, what = found(candidate, fewer)
        if case is None or what is None:
            return False
        return what.startswith(kind) if kind else not what.startswith("error")

    small, fewer = reduce(query, tables, fails)
    case, what = found(small, fewer)
    print(f"  made smaller: {(what or problem)[:600]}")
    for sql in case.statements if case else [small.sql()]:
        used = [table for table in fewer if f" {table.name} " in sql]
        before = [table.values_sql() for table in used] + [part.sql() for part in small.withs]
        recursive = "recursive " if any(part.step for part in small.withs) else ""
        print(f"  with {recursive}" + ",\n  ".join(before))
        print("  " + sql.removeprefix(small.with_sql()) + ";", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", type=Path, required=True, help="the program under test")
    parser.add_argument("--judge", choices=list(ORACLES), default="duckdb", help="judge of the right answer (default duckdb)")
    parser.add_argument("--queries", type=int, default=600, help="number of queries")
    parser.add_argument("--seed", type=int, help="the first world's seed (default 1; 0 = from the clock)")
    parser.add_argument("--reduce", type=int, default=1, help="failures of each world that are reduced")
    parser.add_argument("--ranks", type=int, default=0, help="MPI ranks to run on (default none: local)")
    parser.add_argument("--mpi-exchange", default="auto", help="exchange mode between ranks")
    parser.add_argument("--workers", type=int, default=0, help="serverless workers to run on (default none)")
    parser.add_argument("--tier", default="auto", help="vectorized, compiled or auto (default)")
    parser.add_argument("--device", default="cpu", help="device of compiled code: cpu (default), virtual-gpu or gpu")
    options = parser.parse_args()
    options.place = ("--tier", options.tier, "--device", options.device)
    if options.ranks:
        options.place += ("--platform", "mpi", "--ranks", str(options.ranks), "--mpi-exchange", options.mpi_exchange)
    if options.workers:
        options.place += ("--platform", "serverless", "--workers", str(options.workers))
    seed = 1 if options.seed is None else options.seed
    if seed == 0:
        seed = int(datetime.datetime.now().timestamp())
    oracle = ORACLES[options.judge]()
    try:
        failed = run(seed, oracle, options)
    finally:
        if hasattr(oracle, "close"):
            oracle.close()
    sys.exit(1 if failed else 0)


def run(seed: int, oracle, options: argparse.Namespace) -> int:
    """Runs worlds until there are enough queries; returns how many failed."""
    total, known = Score(), collections.Counter()
    done = lambda: total.passed + total.failed + known.total()
    while done() < options.queries:
        score = check_world(seed, min(QUERIES_PER_WORLD, options.queries - done()), oracle, options, known)
        total = Score(*(getattr(total, name) + getattr(score, name) for name in ("passed", "failed", "refused", "empty")))
        seed += 1
        if options.queries > PROGRESS_FROM:
            print(f"{done()} of {options.queries} queries, {total.failed} failed", file=sys.stderr, flush=True)
    print(f"{total.refused} more queries were refused by the judge and not counted")
    for reason, count in known.most_common():
        print(f"{count} more differ for a known cause: {reason}")
    print(f"{total.empty} of those that passed gave no rows")
    print(f"{total.passed} passed, {total.failed} failed")
    # Most queries must compare rows, and known differences must be rare.
    if total.empty > EMPTY_MAX * total.passed:
        print("FAILED: too many answers have no rows")
        return total.failed + 1
    if known.total() > KNOWN_MAX * done():
        print("FAILED: too many differences count as known")
        return total.failed + 1
    return total.failed


if __name__ == "__main__":
    main()
