#!/usr/bin/env python3
"""Compares Tessera's answers to the TPC-DS queries with DuckDB's, row for row.

    tests/tpcds.py --tessera target/release/tessera --sf 0.1

DuckDB's extension `tpcds` generates the tables and contains the queries. It is a wheel for one version
of DuckDB, which this script installs into its own virtual environment. Ends with `N passed, N failed`,
and exit code 1 if a query failed, or 77 if the wheel cannot be installed here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "target" / "tpcds-venv"
PACKAGES = ["duckdb==1.5.5", "duckdb-extension-tpcds==1.5.5"]
QUERIES = 99
NOT_HERE = 77
SECONDS_MAX = 600

sys.path.insert(0, str(ROOT / "bench"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", type=Path, default=ROOT / "target" / "release" / "tessera")
    parser.add_argument("--sf", type=float, default=0.1, help="scale factor")
    parser.add_argument("--data", type=Path, help="tables as Parquet; made where they are not there")
    parser.add_argument("--query", type=int, action="append", help="only this query")
    parser.add_argument("--install", action="store_true", help="only install what the script needs")
    parser.add_argument("--option", action="append", default=[], help="an option for tessera, such as --tier=compiled")
    args = parser.parse_args()
    if Path(sys.prefix) != ENVIRONMENT:
        return in_environment()
    return 0 if args.install else check(args)


def in_environment() -> int:
    """Restarts this script with the packages that it needs."""
    python = ENVIRONMENT / "bin" / "python"
    installed = ENVIRONMENT / "installed.txt"
    wanted = "\n".join(PACKAGES)
    if not installed.exists() or installed.read_text() != wanted:
        venv.create(ENVIRONMENT, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        if subprocess.run(pip, check=False).returncode != 0:
            print(f"{' and '.join(PACKAGES)} cannot be installed here", file=sys.stderr)
            return NOT_HERE
        installed.write_text(wanted)
    return subprocess.run([python, *sys.argv], check=False).returncode


def check(args: argparse.Namespace) -> int:
    import duckdb

    data = args.data or ROOT / "target" / f"tpcds-{args.sf:g}"
    extension = next(ENVIRONMENT.glob("lib/*/site-packages/**/tpcds.duckdb_extension"))
    maker = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    maker.execute(f"load '{extension}'")
    if not (data / "complete").exists():
        make(maker, args.sf, data)
    tables = sorted(path.stem for path in data.glob("*.parquet"))
    queries = dict(maker.execute("select query_nr, query from tpcds_queries()").fetchall())
    if len(queries) != QUERIES:
        print(f"{len(queries)} queries instead of {QUERIES}", file=sys.stderr)
        return 1
    numbers = args.query or sorted(queries)
    judge = duckdb.connect()
    for table in tables:
        judge.execute(f"create view {table} as select * from '{data / table}.parquet'")
    with ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 2) // 2)) as pool:
        outcomes = list(pool.map(lambda number: (number, one(args, data, judge.cursor(), queries[number])), numbers))
    failed = [(number, problem) for number, problem in outcomes if problem is not None]
    for number, problem in failed:
        print(f"FAILED: query {number}: {problem}")
    print(f"{len(outcomes) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def make(maker, scale: float, data: Path) -> None:
    """Creates the tables."""
    data.mkdir(parents=True, exist_ok=True)
    maker.execute(f"call dsdgen(sf={scale})")
    names = maker.execute("select table_name from information_schema.tables order by 1").fetchall()
    for (name,) in names:
        maker.execute(f"copy {name} to '{data / name}.parquet' (format parquet)")
    (data / "complete").touch()


def one(args: argparse.Namespace, data: Path, judge, sql: str) -> str | None:
    """Returns the problem with a query's answer, or None."""
    from harness.compare import difference, header_problem, order_columns, rows_from_csv

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
