#!/usr/bin/env python3
"""Compares Tessera's answers to the queries of benchmarks with DuckDB's, row for row.

    bench/answers.py                      # TPC-H and SSB at scale factor 0.01, generated on demand
    bench/answers.py --suite clickbench,joinorder --tier vectorized,compiled
    bench/answers.py --suite tpch --sf 1 --data data/tpch-1

Every query runs with each given number of threads and each chunk size. Ends with `N passed, N failed`
and exit code 1 if a query failed.
"""

from __future__ import annotations

import argparse
import itertools
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.compare import answer_difference, header_problem, is_cut, rows_from_csv, without_limit
from harness.suites import COLUMNS, TABLES, Query, check_binary, columns_in_words, default_binary, ensure_data, numbers, queries
from harness.worker import duckdb_engine


@dataclass(frozen=True)
class Check:
    """One query in one configuration, and its expected answer."""

    suite: str
    query: Query
    data: Path
    threads: int
    chunk: int
    ranks: int
    workers: int
    exchange: str
    memory: str | None
    in_memory: bool
    tier: str
    device: str
    names: tuple[str, ...]
    expected: list[tuple]
    # The answer without the query's LIMIT, if it has one.
    every: list[tuple] | None

    def __str__(self) -> str:
        place = f" on {self.ranks} ranks, {self.exchange}" if self.ranks else ""
        place = f" on {self.workers} serverless workers" if self.workers else place
        place += f" in {self.memory}" if self.memory else ""
        place += ", tables in memory" if self.in_memory else ""
        place += f", tier {self.tier}" + (f" on {self.device}" if self.device != "cpu" else "")
        return f"{self.suite} {self.query.name} with {self.threads} threads and chunks of {self.chunk}{place}"

    def run(self, binary: Path, timeout: float) -> str | None:
        """Returns the problem, or None."""
        command = [str(binary), str(self.data), "--threads", str(self.threads), "--format", "csv"]
        load = [f"create temp table {name} as select * from {name};" for name in TABLES[self.suite]]
        command += ["--chunk-rows", str(self.chunk), "-c", "".join(load if self.in_memory else []) + self.query.sql]
        command += ["--tier", self.tier, "--device", self.device]
        if self.memory:
            command += ["--memory", self.memory]
        if self.ranks:
            command += ["--platform", "mpi", "--ranks", str(self.ranks), "--mpi-exchange", self.exchange]
        if self.workers:
            command += ["--platform", "serverless", "--workers", str(self.workers)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return f"no answer within {timeout:g} s"
        if done.returncode != 0:
            return f"exit code {done.returncode}: {done.stderr.strip()}"
        rows = rows_from_csv(done.stdout, self.expected)
        names = list(self.names)
        return header_problem(done.stdout, names) or answer_difference(self.query.sql, names, self.expected, rows, self.every)


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="tpch,ssb", help=f"suites, by commas: {', '.join(TABLES)} (default tpch,ssb)")
    parser.add_argument("--sf", type=float, default=0.01, help="scale factor (default 0.01)")
    parser.add_argument("--data", type=Path, help="directory of the tables, with one suite; generated if empty")
    parser.add_argument("--columns", choices=COLUMNS, help="required kind of columns of the files (default: as they are or are generated)")
    parser.add_argument("--threads", type=numbers, default=[1, 2], help="numbers of threads (default 1,2)")
    parser.add_argument("--chunk", type=numbers, default=[1, 7, 8192], help="chunk sizes (default 1,7,8192)")
    parser.add_argument("--ranks", type=numbers, default=[0], help="MPI ranks, by commas (default none: local)")
    parser.add_argument("--workers", type=numbers, default=[0], help="serverless workers, by commas (default none)")
    parser.add_argument("--memory", default=None, help="memory budget of a query, such as 4MB (default: that of the program)")
    parser.add_argument("--in-memory", action="store_true", help="tables are loaded with CREATE TEMP TABLE first")
    parser.add_argument("--device", default="cpu", help="device of compiled code: cpu (default), virtual-gpu or gpu")
    parser.add_argument("--tier", default="auto", help="vectorized, compiled or auto, by commas (default auto)")
    parser.add_argument("--mpi-exchange", default="auto", help="exchange modes between ranks, separated by commas")
    parser.add_argument("--share", type=int, default=1, help="check every N-th setting only, chosen by --seed (default all)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the settings that --share selects")
    parser.add_argument("--queries", default="", help="queries, by commas (default all)")
    parser.add_argument("--tessera", type=Path, default=default_binary(), help="the tessera binary")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds a query may take")
    parser.add_argument("--jobs", type=int, default=2, help="queries to run at a time (default 2)")
    parsed = parser.parse_args()
    parsed.suite = parsed.suite.split(",")
    if set(parsed.suite) - set(TABLES):
        parser.error(f"there are the suites {', '.join(TABLES)}")
    if parsed.ranks != [0] and parsed.workers != [0]:
        parser.error("--ranks and --workers are two platforms; check one after the other")
    if parsed.data and len(parsed.suite) > 1:
        parser.error("--data holds the tables of one suite; name it with --suite")
    return parsed


def checks(options: argparse.Namespace, suite: str, data: Path) -> list[Check]:
    """Returns all configurations of all queries of a suite, with DuckDB's answers."""
    reference = duckdb_engine(data, 2, TABLES[suite])
    rows_of = lambda answer: list(zip(*(column.to_pylist() for column in answer.columns)))  # noqa: E731
    found = []
    for query in queries(suite, [name for name in options.queries.split(",") if name], options.sf):
        answer = reference(query.sql)
        rows = rows_of(answer)
        every = rows_of(reference(without_limit(query.sql))) if is_cut(query.sql) else None
        exchanges = options.mpi_exchange.split(",")
        tiers = options.tier.split(",")
        settings = itertools.product(options.ranks, options.workers, exchanges, tiers, options.threads, options.chunk)
        for ranks, workers, exchange, tier, threads, chunk in settings:
            names = tuple(answer.column_names)
            place = (ranks, workers, exchange, options.memory, options.in_memory, tier, options.device)
            found.append(Check(suite, query, data, threads, chunk, *place, names, rows, every))
    return found


def main() -> int:
    """Runs all checks."""
    options = arguments()
    check_binary(options.tessera)
    failures = 0
    total = empty = 0
    with tempfile.TemporaryDirectory(prefix="answers-") as scratch, ThreadPoolExecutor(options.jobs) as pool:
        for suite in options.suite:
            data = ensure_data(options.tessera, suite, options.sf, options.data or Path(scratch) / suite, options.columns)
            print(f"{suite}: {columns_in_words(data, suite)}", flush=True)
            todo = checks(options, suite, data)
            if options.share > 1:
                todo = random.Random(options.seed).sample(todo, -(-len(todo) // options.share))
            total += len(todo)
            empty += sum(not check.expected for check in todo)
            results = pool.map(lambda check: check.run(options.tessera, options.timeout), todo)
            for check, wrong in zip(todo, results):
                if wrong:
                    failures += 1
                    print(f"FAILED {check}: {wrong}", flush=True)
    if empty:
        print(f"{empty} of {total} answers have no rows, so that only their columns are compared")
    # An answer without rows may be right for wrong reasons.
    if not total or empty * 2 > total:
        print(f"FAILED: {total} answers, {empty} of them without rows, check too little")
        failures += 1
    print(f"{max(total - failures, 0)} passed, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
