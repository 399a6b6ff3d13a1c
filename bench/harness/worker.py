"""The process of one Python engine: answers pickled requests on stdin with pickled replies on stdout.

Started as `python -m harness.worker ENGINE DIRECTORY THREADS loaded|files TABLE...`. The time of a query
ends when the whole result is available as Arrow; the conversion to Python values is not counted.
"""

from __future__ import annotations

import functools
import os
import pickle
import sys
import time
from pathlib import Path
from typing import Callable


def duckdb_engine(directory: Path, threads: int, tables: list[str], loaded: bool = False, compressed: bool = False) -> Callable:
    """A connection with a view of each file, or a table that was loaded from it. DuckDB compresses
    tables in memory only on request, and only at a checkpoint."""
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    if compressed:
        assert loaded
        connection.execute("attach ':memory:' as compressed (compress)")
        connection.execute("use compressed")
    kind = "table" if loaded else "view"
    for table in tables:
        connection.execute(
            f"create {kind} \"{table}\" as select * from read_parquet('{directory}/{table}.parquet')"
        )
    if compressed:
        connection.execute("checkpoint")
        forms = connection.execute(f"select distinct compression from pragma_storage_info('{tables[0]}')").fetchall()
        assert set(forms) - {("Uncompressed",), ("Constant",)}, f"{tables[0]} is not compressed: {forms}"
    return lambda sql: connection.sql(sql).to_arrow_table()


def datafusion_engine(directory: Path, threads: int, tables: list[str], loaded: bool = False) -> Callable:
    """A session with each file registered and as many partitions as threads. Names keep their case,
    as the queries spell them like the columns."""
    from datafusion import SessionConfig, SessionContext

    assert not loaded

    config = SessionConfig().with_target_partitions(threads)
    context = SessionContext(config.set("datafusion.sql_parser.enable_ident_normalization", "false"))
    for table in tables:
        context.register_parquet(table, str(directory / f"{table}.parquet"))
    return lambda sql: context.sql(sql).to_arrow_table()


def polars_engine(directory: Path, threads: int, tables: list[str], loaded: bool = False) -> Callable:
    """An SQL context over lazy scans, or frames that were loaded; the parent process sets
    POLARS_MAX_THREADS."""
    import polars

    assert polars.thread_pool_size() == threads
    scan = polars.read_parquet if loaded else polars.scan_parquet
    context = polars.SQLContext({table: scan(directory / f"{table}.parquet") for table in tables})
    return lambda sql: context.execute(sql).collect().to_arrow()


class HyperTable:
    """Hyper's result in columns, like those of other engines."""

    class Column(list):
        """Python values."""

        def to_pylist(self) -> list:
            return self

    def __init__(self, names: list[str], rows: list[list]):
        self.column_names = names
        python = lambda value: value.to_date() if hasattr(value, "to_date") else value
        self.columns = [HyperTable.Column(map(python, column)) for column in zip(*rows)] or [HyperTable.Column() for _ in names]


def hyper_engine(directory: Path, threads: int, tables: list[str], loaded: bool = False) -> Callable:
    """A separate server, which ends with this process, with tables in memory. It returns rows only
    as Python values."""
    from tableauhyperapi import Connection, HyperProcess, Telemetry

    assert loaded
    server = HyperProcess(telemetry=Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters={"log_config": ""})
    connection = Connection(server.endpoint)
    for table in tables:
        connection.execute_command(f"create temp table \"{table}\" as select * from external('{directory}/{table}.parquet')")

    def run(sql: str) -> HyperTable:
        with connection.execute_query(sql) as result:
            names = [column.name.unescaped for column in result.schema.columns]
            return HyperTable(names, list(result))

    # Both live as long as this process.
    run.server, run.connection = server, connection
    return run


ENGINES = {
    "duckdb": duckdb_engine,
    "duckdb-compressed": functools.partial(duckdb_engine, compressed=True),
    "datafusion": datafusion_engine,
    "polars": polars_engine,
    "hyper": hyper_engine,
}


def main() -> None:
    """Serves requests until stdin ends."""
    engine, directory, threads, loaded, *tables = sys.argv[1:]
    replies = os.fdopen(os.dup(1), "wb")
    # Engine output must not get between the replies.
    os.dup2(2, 1)
    run = ENGINES[engine](Path(directory), int(threads), tables, loaded == "loaded")
    pickle.dump("ready", replies)
    replies.flush()
    while True:
        try:
            sql = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            start = time.perf_counter()
            table = run(sql)
            seconds = time.perf_counter() - start
            columns = [column.to_pylist() for column in table.columns]
            reply = {"seconds": seconds, "names": table.column_names, "rows": list(zip(*columns))}
        except BaseException as error:  # A panic of a Rust engine is not an Exception.
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            reply = {"error": f"{type(error).__name__}: {error}"}
        pickle.dump(reply, replies)
        replies.flush()


if __name__ == "__main__":
    main()
