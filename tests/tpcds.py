#!/usr/bin/env python3
"""Compares Tessera's answers to the TPC-DS queries with DuckDB's, row for row.

    tests/tpcds.py --tessera target/release/tessera --sf 0.1

DuckDB's extension `tpcds` generates the tables and contains the queries (bench/harness/tpcds.py). Ends with `N passed, N failed`,
and exit code 1 if a query failed, or 77 if the wheel cannot be installed here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_HERE = 77
SECONDS_MAX = 600

sys.path.insert(0, str(ROOT / "bench"))

from harness import tpcds  # noqa: E402
from harness.compare import difference, header_problem, order_columns, rows_from_csv  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", type=Path, default=ROOT / "target" / "release" / "tessera")
    parser.add_argument("--sf", type=float, default=0.1, help="scale factor")
    parser.add_argument("--data", type=Path, help="tables as Parquet; made where they are not there")
    parser.add_argument("--query", type=int, action="append", help="only this query")
    parser.add_argument("--install", action="store_true", help="only install what the script needs")
    parser.add_argument("--option", action="append", default=[], help="an option for tessera, such as --tier=compiled")
    args = parser.parse_args()
    if not tpcds.install():
        return NOT_HERE
    return 0 if args.install else check(args)


def check(args: argparse.Namespace) -> int:
    import duckdb

    data = args.data or ROOT / "target" / f"tpcds-{args.sf:g}"
    if not (data / "complete").exists():
        data.mkdir(parents=True, exist_ok=True)
        tpcds.make(args.sf, data)
        (data / "complete").touch()
    queries = tpcds.queries()
    if len(queries) != tpcds.QUERIES:
        print(f"{len(queries)} queries instead of {tpcds.QUERIES}", file=sys.stderr)
        return 1
    numbers = args.query or range(1, tpcds.QUERIES + 1)
    judge = duckdb.connect()
    for table in tpcds.TABLES:
        judge.execute(f"create view {table} as select * from '{data / table}.parquet'")
    with ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 2) // 2)) as pool:
        outcomes = list(pool.map(lambda number: (number, one(args, data, judge.cursor(), queries[number - 1])), numbers))
    failed = [(number, problem) for number, problem in outcomes if problem is not None]
    for number, problem in failed:
        print(f"FAILED: query {number}: {problem}")
    print(f"{len(outcomes) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def one(args: argparse.Namespace, data: Path, judge, sql: str) -> str | None:
    """Returns the problem with a query's answer, or None."""
    command = [args.tessera, data, "--format", "csv", *args.option, "-c", sql]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer within {SECONDS_MAX} s"
    if ran.returncode != 0:
        return ran.stderr.strip()
    asked = judge.execute(sql)
    names = [column[0] for column in asked.description]
    expected = asked.fetchall()
    problem = header_problem(ran.stdout, names)
    if problem:
        return problem
    order = order_columns(sql, [name.lower() for name in names])
    return difference(expected, rows_from_csv(ran.stdout, expected), order)


if __name__ == "__main__":
    sys.exit(main())
