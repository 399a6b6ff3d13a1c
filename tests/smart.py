#!/usr/bin/env python3
"""Tests smart storage: TPC-H queries over objects that the store filters, compared with DuckDB.

    tests/smart.py --tessera target/release/tessera --data data/tpch-0.01
    tests/smart.py --tessera target/release/tessera --data data/tpch-0.01 --minio target/go/bin/minio

Without --minio, the store is the program's own on loopback. It contains the tables as Parquet, CSV
and JSON lines, the large ones in four objects. Ends with `N passed, N failed` and exit code 1 if a
check failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import Checks
from harness.compare import difference, header_problem, order_columns, rows_from_csv
from harness.suites import TABLES, queries
from harness.worker import duckdb_engine
from stores import minio_store, own_store, put_s3

QUERIES = ["q01", "q03", "q04", "q06", "q12", "q14", "q18", "q19"]
FORMATS = ["parquet", "csv", "json"]
PARTS = {"lineitem": "l_orderkey", "orders": "o_orderkey"}
TYPES = {"BIGINT": "bigint", "INTEGER": "integer", "DATE": "date", "VARCHAR": "varchar"}

# The possible aggregates of one scan.
AGGREGATES = [
    "select count(*), min(l_orderkey), max(l_orderkey) from lineitem where l_linenumber < 3",
    "select count(*), count(l_comment), sum(l_linenumber), max(l_partkey) from lineitem where l_shipdate >= date '1995-01-01'",
    "select min(o_custkey), max(o_shippriority) from orders where o_orderkey < 0",
    "select count(*) from orders where o_orderpriority in ('1-URGENT', '2-HIGH') and o_comment not like '%special%requests%'",
]


# Values that are error-prone in text and in other engines; each statement must return the same with
# and without selection in the store.
ODD = """select n, case when n % 7 <> 0 then n - 500 end as i, case when n % 5 <> 0 then n * 1.5e0 when n % 2 = 0 then cast('NaN' as double) end as f,
    case when n % 3 <> 0 then cast(n as decimal(12, 3)) / 8 end as q, cast(n as decimal(30, 2)) as w, n % 2 = 0 as b,
    case n % 6 when 0 then '' when 1 then null when 2 then 'a,"b"' when 3 then 'l' || chr(10) || 'm' when 4 then 'ü€' || n else ' x ' end as t,
    't' || n as u, case when n % 11 <> 0 then date '1969-12-25' + cast(n % 400 as integer) end as d,
    timestamp '2001-02-03 04:05:06' + n * interval '1 second' as s
    from (select unnest(range(1, 2001)) as n) x"""
ODD_COLUMNS = "n bigint, i bigint, f double, q decimal(15, 3), w decimal(30, 2), b boolean, t varchar, u varchar, d date, s timestamp"
ODD_QUERIES = [
    "select {all} from odd where n < 50",
    "select n, t from odd where t = '' or t is null order by n",
    "select n, t from odd where t = 'a,\"b\"' order by n limit 5",
    "select n, u from odd where u like 't19%' order by n",
    "select count(*) from odd where not u like 't1%'",
    "select n, f from odd where f > 2900 order by n",
    "select count(*), count(f) from odd where f <= 10 or f is null",
    "select n, i from odd where i >= -3 and i <= 3 order by n",
    "select count(*), min(i), max(i), count(i) from odd where i < 0",
    "select n from odd where q = 1.125 or q > 249.8 order by n",
    "select n, w from odd where w between 10 and 12 order by n",
    "select n, d from odd where d < date '1970-01-01' order by n limit 20",
    "select count(*) from odd where d = date '1970-01-01' or d >= date '1970-12-01'",
    "select n from odd where not (i < 1490 or d is null) order by n",
    "select count(*) from odd where n in (1, 2, 3, 5000) or u = 't1999'",
    "select count(*) from odd where i <> 5 and u <> 't7'",
    "select n, s from odd where n < 4 order by n",
    "select count(*), sum(n) from odd where b and n > 1990",
]


class Tables:
    """The tables in all formats, as files below a directory that serves as a bucket."""

    def __init__(self, tessera: Path, source: Path, bucket: Path, quoted: bool):
        self.types: dict[str, str] = {}
        self.options = "" if quoted else " options ('delimiter' '|', 'quote' '')"
        import duckdb

        connection = duckdb.connect()
        for table in TABLES["tpch"]:
            file = source / f"{table}.parquet"
            columns = connection.execute(f"describe select * from '{file}'").fetchall()
            self.types[table] = ", ".join(f"{name} {TYPES.get(kind, kind.lower())}" for name, kind, *_ in columns)
            for form in FORMATS:
                folder = bucket / form / table
                folder.mkdir(parents=True)
                for part in range(4 if table in PARTS else 1):
                    where = f" where {PARTS[table]} % 4 = {part}" if table in PARTS else ""
                    options = "" if quoted or form != "csv" else " (delimiter '|', quote '')"
                    copy = f"copy (select * from '{file}'{where}) to '{folder}/{part}.{form}'{options}"
                    subprocess.run([str(tessera), "-c", copy], check=True, capture_output=True)
        for form in FORMATS:
            folder = bucket / form / "odd"
            folder.mkdir(parents=True)
            # Some texts cannot be written without quotes.
            odd = ODD.replace("chr(10)", "'-'") if form == "csv" and not quoted else ODD
            copy = f"copy ({odd}) to '{folder}/0.{form}'{'' if quoted or form != 'csv' else chr(32) + '(delimiter ' + repr('|') + ', quote ' + repr('') + ')'}"
            subprocess.run([str(tessera), "-c", copy], check=True, capture_output=True)
        self.types["odd"] = ODD_COLUMNS

    def sql(self, form: str, prefix: str) -> str:
        """Returns statements that define the tables, for formats whose types cannot be derived
        from the objects."""
        if form == "parquet":
            return ""
        tables = self.types.items()
        options = self.options if form == "csv" else ""
        return " ".join(
            f"create external table {table} ({types}) stored as {form}{options} location '{prefix}/{table}/';"
            for table, types in tables
        )


class Answers(Checks):
    """Runs statements and counts correct answers."""

    def __init__(self, tessera: Path, data: Path, own: bool):
        super().__init__()
        self.tessera = tessera
        self.own = own
        self.reference = duckdb_engine(data, 2, TABLES["tpch"])

    def run(self, sql: str, before: str, variables: dict[str, str], *options: str, database: str = "") -> subprocess.CompletedProcess:
        """Runs a statement after others."""
        command = [str(self.tessera), *([database] if database else []), "--format", "csv", *options]
        command += [part for text in (before, sql) if text for part in ("-c", text)]
        return subprocess.run(command, capture_output=True, text=True, timeout=600, env=os.environ | variables)

    def check(self, what: str, sql: str, before: str, variables: dict[str, str], *options: str, database: str = "") -> None:
        """Compares one answer with DuckDB's."""
        answer = self.reference(sql)
        expected = list(zip(*(column.to_pylist() for column in answer.columns)))
        done = self.run(sql, before, variables, *options, database=database)
        if done.returncode:
            return self.note(f"exit code {done.returncode}: {done.stderr.strip()[-800:]}", what)
        rows, names = rows_from_csv(done.stdout, expected), list(answer.column_names)
        self.note(header_problem(done.stdout, names) or difference(expected, rows, order_columns(sql, names)), what)

    def asks(self, sql: str, before: str, variables: dict[str, str], *options: str, database: str = "") -> int:
        """Returns how many scans of a statement use selection in the store."""
        done = self.run(f"explain {sql}", before, variables, *options, database=database)
        if done.returncode:
            self.note(f"exit code {done.returncode}: {done.stderr.strip()[-800:]}", f"explain {sql[:60]}")
        return done.stdout.count("select_request(")


def main() -> int:
    """Runs all checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", type=Path, required=True, help="the program under test")
    parser.add_argument("--data", type=Path, required=True, help="TPC-H tables as Parquet")
    parser.add_argument("--minio", type=Path, help="the program minio; none: the store on loopback")
    parser.add_argument("--workers", default="4", help="serverless workers, by commas; nothing: none")
    parser.add_argument("--formats", default=",".join(FORMATS), help="formats of the objects, by commas")
    options = parser.parse_args()
    options.tessera = options.tessera.resolve()
    checks = Answers(options.tessera, options.data.resolve(), own=not options.minio)
    with tempfile.TemporaryDirectory(prefix="smart-") as scratch:
        bucket = Path(scratch) / "data"
        tables = Tables(options.tessera, options.data.resolve(), bucket, quoted=not options.minio)
        store = minio_store(options.minio, Path(scratch) / "minio") if options.minio else own_store(options.tessera, bucket)
        if options.minio:
            for name in ("data", "scratch"):
                (Path(scratch) / "minio" / name).mkdir(parents=True)
        with store as variables:
            if options.minio:
                upload(bucket, variables)
            for form in options.formats.split(","):
                workers = [part for part in options.workers.split(",") if part]
                check_format(checks, tables, form, variables, workers)
        if not options.minio:
            faults = "503=0.1,reset=0.05,cut=0.1,late=0.1,late_ms=20"
            with own_store(options.tessera, bucket, TESSERA_LOCAL_STORE_FAULTS=faults) as variables:
                for name in QUERIES:
                    sql = queries("tpch", [name])[0].sql
                    on = ["--smart-storage", "on"]
                    checks.check(f"{name} with a store that fails", sql, "", variables, *on, database="s3://data/parquet")
    return checks.end()


def upload(bucket: Path, variables: dict[str, str]) -> None:
    """Uploads files into a store unchanged."""
    for file in sorted(bucket.rglob("*.*")):
        put_s3(f"/data/{file.relative_to(bucket)}", file.read_bytes(), variables)


def check_format(checks: Answers, tables: Tables, form: str, variables: dict[str, str], workers: list[str]) -> None:
    """Checks the queries over objects of one format, on this machine and on workers."""
    here = (tables.sql(form, f"s3://data/{form}"), variables, "--smart-storage", "on")
    place = {"database": f"s3://data/{form}"} if form == "parquet" else {}
    asked = {}
    for name in QUERIES:
        sql = queries("tpch", [name])[0].sql
        asked[name] = checks.asks(sql, *here, **place)
        checks.check(f"{name} over {form}", sql, *here, **place)
        for count in workers:
            there = (*here, "--platform", "serverless", "--workers", count, "--scratch", "s3://scratch/queries")
            checks.check(f"{name} over {form} on {count} workers", sql, *there, database=f"s3://data/{form}")
    for number, sql in enumerate(AGGREGATES):
        asked[f"aggregates {number}"] = checks.asks(sql, *here, **place)
        checks.check(f"aggregates {number} over {form}", sql, *here, **place)
    for sql in ODD_QUERIES:
        sql = sql.replace("{all}", ", ".join(part.split()[0] for part in ODD_COLUMNS.replace("(15, 3)", "").replace("(30, 2)", "").split(", ")))
        off = checks.run(sql, here[0], variables, **place)
        on = checks.run(sql, *here, **place)
        # Every query selects something.
        same = off.returncode == on.returncode == 0 and off.stdout == on.stdout and off.stdout.count("\n") > 1
        checks.note(None if same else f"{on.stdout[-600:]} {on.stderr[-600:]} instead of {off.stdout[-600:]} {off.stderr[-300:]}", f"{sql} over {form}")
        asked[sql] = checks.asks(sql, *here, **place)
    odd = sum(asked.pop(sql) for sql in list(asked) if sql.startswith("select"))
    asked[f"of {len(ODD_QUERIES)} over odd values"] = odd
    print(f"{form}: scans that the store is asked for: " + ", ".join(f"{name} {count}" for name, count in asked.items()), flush=True)
    # The loopback store supports every type of these tables; MinIO does not support decimals in
    # Parquet.
    missing = [name for name, count in asked.items() if not count and (checks.own or name in QUERIES)]
    if checks.own or form != "parquet":
        checks.note(f"not for {missing}" if missing else None, f"the store is asked for all queries over {form}")


if __name__ == "__main__":
    sys.exit(main())
