#!/usr/bin/env python3
"""Tests the stores of Azure and Google (emulators) and web servers: reads, writes, workers, errors.

    tests/clouds.py --tessera target/release/tessera --data data/tpch-0.01 --azurite node_modules/.bin/azurite-blob
    tests/clouds.py --tessera target/release/tessera --data data/tpch-0.01 --fake-gcs target/go/bin/fake-gcs-server --web

The program writes the tables there as Parquet and CSV; answers are compared with DuckDB's over the
local files. Ends with `N passed, N failed` and exit code 1 if a check failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import Checks
from harness.compare import difference, header_problem, order_columns, rows_from_csv
from harness.suites import TABLES, queries
from harness.worker import duckdb_engine
from stores import Azurite, FakeGoogle, free_port, serving, web_server

QUERIES = ["q01", "q03", "q05", "q06", "q12", "q14", "q18"]
# The content of a 44 MiB object, which is written in parts and read in blocks. Quoted fields
# contain line ends.
LONG = "select n, 'line' || chr(10) || repeat('x', 30 + cast(n % 10 as integer)) as t from (select unnest(range(1, 1000001)) as n) x"
LONG_CHECK = "select count(*), sum(n), sum(length(t)) from {source}"
# Azure returns pages of 5,000 entries.
MANY = 5_100


class Program:
    """The program under test, with the environment of a store."""

    def __init__(self, binary: Path, checks: Checks, data: Path, scratch: Path):
        self.binary = binary
        self.checks = checks
        self.data = data
        self.reference = duckdb_engine(data, 2, TABLES["tpch"])
        self.environment = {"XDG_CACHE_HOME": str(scratch / "cache"), "TESSERA_STORE_RETRIES": "2"}

    def run(self, sql: str, *options: str, **variables: str) -> tuple[int, str, str]:
        """Runs a statement; returns the exit code, rows and messages."""
        command = [str(self.binary), *options, "--format", "csv", "-c", sql]
        environment = os.environ | self.environment | variables
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        return done.returncode, done.stdout, done.stderr

    def do(self, sql: str, *options: str) -> None:
        """Runs a statement that must succeed."""
        code, _, messages = self.run(sql, *options)
        self.checks.note(messages if code else None, sql)

    def same(self, what: str, sql: str, expected_sql: str, *options: str) -> None:
        """Compares one answer with DuckDB's."""
        answer = self.reference(expected_sql)
        expected = list(zip(*(column.to_pylist() for column in answer.columns)))
        code, rows, messages = self.run(sql, *options)
        if code:
            return self.checks.note(f"exit code {code}: {messages[-800:]}", what)
        names = list(answer.column_names)
        wrong = header_problem(rows, names)
        self.checks.note(wrong or difference(expected, rows_from_csv(rows, expected), order_columns(expected_sql, names)), what)

    def fails(self, what: str, words: list[str], sql: str, *options: str, **variables: str) -> None:
        """Checks that a statement fails with a single line that contains these words."""
        code, _, messages = self.run(sql, *options, **variables)
        right = code == 1 and len(messages.splitlines()) == 1 and all(word in messages for word in words)
        self.checks.note(None if right else f"exit code {code}: {messages[-800:]}", what)


def check_store(program: Program, prefix: str, requests: Callable[[], int]) -> None:
    """Checks for every store. `prefix` is the address of an empty bucket; `requests` returns the
    number of requests the store has answered."""
    data = program.data
    for table in TABLES["tpch"]:
        program.do(f"copy (select * from '{data}/{table}.parquet') to '{prefix}/tpch/{table}.parquet'")
    for part in range(3):
        rows = f"select * from '{data}/orders.parquet' where o_orderkey % 3 = {part}"
        program.do(f"copy ({rows}) to '{prefix}/hive/part={part}/orders.csv'")
    for name in QUERIES:
        sql = queries("tpch", [name])[0].sql
        program.same(f"{name} over {prefix}", sql, sql, f"{prefix}/tpch")
        workers = ["--platform", "serverless", "--workers", "2", "--scratch", f"{prefix}/scratch"]
        program.same(f"{name} over {prefix} on 2 workers", sql, sql, f"{prefix}/tpch", *workers)
    left = program.run("show tables", f"{prefix}/scratch")
    program.checks.note(None if left[0] == 1 and "nothing below" in left[2] else f"{left}", f"workers leave nothing in {prefix}")
    count = "select count(*), sum(o_custkey) from {source}"
    program.same("a pattern", count.format(source=f"'{prefix}/tpch/ord*.parquet'"), count.format(source="orders"))
    program.same("a pattern of folders", count.format(source=f"'{prefix}/hive/*/*.csv'"), count.format(source="orders"))
    by_part = "select {part} as part, count(*), min(o_orderdate) from {source} group by 1 order by 1"
    expected = by_part.format(part="o_orderkey % 3", source="orders")
    program.same("partitions", by_part.format(part="part", source=f"'{prefix}/hive'"), expected)
    # The prefix is the DATABASE; its folder of partitions is a table.
    program.same("partitions as a table", by_part.format(part="part", source="hive"), expected, prefix)

    written = f"copy (select *, o_orderkey % 3 as part from '{data}/orders.parquet') to '{prefix}/parts'"
    program.do(f"{written} (format parquet, partition_by (part))")
    program.fails("a prefix with objects", [f"'{prefix}/parts'", "not empty"], f"{written} (format csv, partition_by (part))")
    program.do(f"{written} (format csv, partition_by (part), overwrite, compression gzip)")
    program.same("partitions that COPY wrote", by_part.format(part="part", source=f"'{prefix}/parts/**'"), expected)

    program.do(f"copy ({LONG}) to '{prefix}/long/long.csv'")
    # The same program writes and reads local files and objects; DuckDB provides the reference.
    program.same("an object in parts", LONG_CHECK.format(source=f"'{prefix}/long/long.csv'"), LONG_CHECK.format(source=f"({LONG}) y"))

    # The statement's counters must match the requests that the store has answered.
    before = requests()
    code, plan, messages = program.run(f"explain analyze select sum(l_tax) from '{prefix}/tpch/lineitem.parquet'")
    asked = re.search(r"object stores: (\d+) requests, ([\d.]+) (KiB|MiB) read", plan)
    answered = requests() - before
    right = code == 0 and asked and int(asked[1]) == answered and 0 < float(asked[2])
    program.checks.note(None if right else f"{answered} requests, and: {plan[-600:]} {messages}", f"requests of {prefix} are counted")

    program.fails("no such object", [f"'{prefix}/none.parquet'", "does not exist"], f"select * from '{prefix}/none.parquet'")
    program.fails("no match", [f"'{prefix}/none*.parquet'", "no object matches"], f"select * from '{prefix}/none*.parquet'")
    program.fails("no such prefix", [f"'{prefix}/none'", "nothing below"], "select * from lineitem", f"{prefix}/none")
    missing = f"{prefix}-none"
    program.fails("no bucket to write to", [f"'{missing}/x.csv'", "bucket"], f"copy (select 1 as a) to '{missing}/x.csv'")
    words = ["cannot list", missing, "bucket"]
    program.fails("no bucket of a database", words, "show tables", missing)
    program.fails("no bucket of a pattern", words, f"select * from '{missing}/*.csv'")


def check_azure(program: Program, azurite: Azurite, pages: bool) -> None:
    """Checks Azure Blob Storage."""
    azurite.make("box")
    check_store(program, "az://box", azurite.requests)
    if pages:
        azurite.fill("box", [f"many/{number:05}.csv" for number in range(MANY)], b"a\n1\n")
        some = f"select {MANY // 100}, {MANY // 100}"
        program.same("a listing of two pages", "select count(*), sum(a) from 'az://box/many/*99.csv'", some)
    select = "select count(*) from 'az://box/tpch/nation.parquet'"
    emulator = {"AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": f"http://{azurite.host}"}
    code, rows, messages = program.run(select, **emulator)
    program.checks.note(None if (code, rows.split()[-1:]) == (0, ["25"]) else messages, "the emulator's own variables")
    program.fails("a wrong key", ["403", "AZURE_STORAGE_ACCOUNT_KEY"], "show tables", "az://box/tpch", AZURE_STORAGE_ACCOUNT_KEY="bm8=")
    program.fails("a key that is none", ["Invalid Access Key", "AZURE_STORAGE_ACCOUNT_KEY"], select, AZURE_STORAGE_ACCOUNT_KEY="no")
    program.fails("no key", ["AZURE_STORAGE_ACCOUNT_KEY"], select, AZURE_SKIP_SIGNATURE="true")
    program.fails("no account", ["AZURE_STORAGE_ACCOUNT_NAME"], select, AZURE_STORAGE_ACCOUNT_NAME="")
    program.fails("http that is not allowed", ["AZURE_ALLOW_HTTP"], select, AZURE_ALLOW_HTTP="false")
    nowhere = f"http://127.0.0.1:{free_port()}/{azurite.account}"
    program.fails("endpoint without a server", ["refused", "AZURE_STORAGE_ENDPOINT"], select, AZURE_STORAGE_ENDPOINT=nowhere)
    program.fails("workers without a place to meet", ["--scratch"], "show tables", "az://box/tpch", "--platform", "serverless")


def check_google(program: Program, google: FakeGoogle, variables: dict[str, str]) -> None:
    """Checks Google Cloud Storage."""
    google.make("bucket")
    check_store(program, "gs://bucket", google.requests)
    select = "select count(*) from 'gs://bucket/tpch/nation.parquet'"
    with tempfile.TemporaryDirectory(prefix="clouds-") as scratch:
        account = Path(scratch) / "account.json"
        base = variables["GOOGLE_BASE_URL"]
        empty = '"client_email": "", "private_key": "", "private_key_id": ""'
        account.write_text(f'{{"gcs_base_url": "{base}", "disable_oauth": true, {empty}}}')
        unset = {"GOOGLE_SKIP_SIGNATURE": "false"}
        named = {"GOOGLE_SERVICE_ACCOUNT": str(account)} | unset
        code, rows, messages = program.run(select, **named)
        program.checks.note(None if (code, rows.split()[-1:]) == (0, ["25"]) else messages, "a service account that names the store")
        account.write_text("no account")
        program.fails("a service account that is none", ["service account", "GOOGLE_SERVICE_ACCOUNT"], select, **named)
        account.unlink()
        program.fails("no such service account", [str(account), "GOOGLE_SERVICE_ACCOUNT"], select, **named)
    nowhere = f"http://127.0.0.1:{free_port()}"
    program.fails("endpoint without a server", ["refused", "GOOGLE_BASE_URL"], select, GOOGLE_BASE_URL=nowhere)


def check_web(program: Program, scratch: Path) -> None:
    """Checks web servers."""
    folder = scratch / "web"
    folder.mkdir()
    for table in ("lineitem", "nation"):
        shutil.copy(program.data / f"{table}.parquet", folder / f"{table}.parquet")
    program.do(f"copy (select * from '{program.data}/orders.parquet') to '{folder}/a b.csv'")
    for ranges in (True, False):
        address = f"127.0.0.1:{free_port()}"
        with serving(web_server(folder, ranges), address):
            web = f"http://{address}"
            if ranges:
                sql = "select l_returnflag, sum(l_tax), max(l_comment) from {source} group by 1 order by 1"
                program.same("Parquet of a web server", sql.format(source=f"'{web}/lineitem.parquet'"), sql.format(source="lineitem"))
                sql = "select count(*), sum(o_custkey), max(o_comment) from {source}"
                program.same("CSV of a web server", sql.format(source=f"'{web}/a%20b.csv'"), sql.format(source="orders"))
                program.fails("no such page", [f"'{web}/none.csv'", "file does not exist"], f"select * from '{web}/none.csv'")
                program.fails("a web server as a database", ["no listing"], "show tables", web)
                program.fails("writing to a web server", ["read-only"], f"copy (select 1 as a) to '{web}/x.csv'")
                folders = f"copy (select 1 as a, 2 as b) to '{web}/x' (format csv, partition_by (a))"
                program.fails("writing folders to a web server", ["read-only"], folders)
            else:
                for name in ("nation.parquet", "a%20b.csv"):
                    words = [f"'{web}/{name}'", "Range request", "copy it to a file"]
                    program.fails(f"{name} of a web server without ranges", words, f"select count(*) from '{web}/{name}'")


def main() -> int:
    """Runs all checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", type=Path, required=True, help="the program under test")
    parser.add_argument("--data", type=Path, required=True, help="TPC-H tables as Parquet")
    parser.add_argument("--azurite", type=Path, help="the program azurite-blob; none: Azure is not checked")
    parser.add_argument("--pages", action="store_true", help="list more objects than one answer of Azure holds; a minute")
    parser.add_argument("--fake-gcs", type=Path, help="the program fake-gcs-server; none: Google is not checked")
    parser.add_argument("--web", action="store_true", help="check web servers")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="clouds-") as folder:
        scratch = Path(folder)
        program = Program(options.tessera.resolve(), checks, options.data.resolve(), scratch)
        plain = program.environment
        if options.web:
            check_web(program, scratch)
        if options.azurite:
            azurite = Azurite(options.azurite.resolve(), scratch / "azurite")
            with azurite.start() as variables:
                program.environment = plain | variables
                check_azure(program, azurite, options.pages)
        if options.fake_gcs:
            google = FakeGoogle(options.fake_gcs.resolve())
            with google.start() as variables:
                program.environment = plain | variables
                check_google(program, google, variables)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
