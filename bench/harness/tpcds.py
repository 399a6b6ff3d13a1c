"""TPC-DS: tables and queries, both from DuckDB's extension of that name.

The extension is a wheel for one version of DuckDB, so it lives in a virtual environment of its own, where this
module also runs as a program:

    python -m harness.tpcds make SCALE DIRECTORY
    python -m harness.tpcds queries
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "target" / "tpcds-venv"
PACKAGES = ["duckdb==1.5.5", "duckdb-extension-tpcds==1.5.5"]
QUERIES = 99
TABLES = [
    "call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer", "customer_address",
    "customer_demographics", "date_dim", "household_demographics", "income_band", "inventory", "item", "promotion",
    "reason", "ship_mode", "store", "store_returns", "store_sales", "time_dim", "warehouse", "web_page", "web_returns",
    "web_sales", "web_site",
]  # fmt: skip


def install() -> bool:
    """Makes the virtual environment; returns whether the packages could be installed."""
    installed = ENVIRONMENT / "installed.txt"
    wanted = "\n".join(PACKAGES)
    if installed.exists() and installed.read_text() == wanted:
        return True
    venv.create(ENVIRONMENT, with_pip=True)
    pip = [_python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    if subprocess.run(pip, check=False).returncode != 0:
        print(f"{' and '.join(PACKAGES)} cannot be installed here", file=sys.stderr)
        return False
    installed.write_text(wanted)
    return True


def make(scale: float, directory: Path) -> None:
    """Writes the tables as Parquet, by DuckDB's defaults."""
    _run("make", str(scale), str(directory.resolve()))


@functools.cache
def queries() -> list[str]:
    """Returns the queries in the order of their numbers."""
    return json.loads(_run("queries"))


def _python() -> Path:
    return ENVIRONMENT / "bin" / "python"


def _run(*arguments: str) -> str:
    if not install():
        sys.exit("TPC-DS needs DuckDB's extension")
    command = [_python(), "-m", "harness.tpcds", *arguments]
    return subprocess.run(command, cwd=ROOT / "bench", check=True, stdout=subprocess.PIPE, text=True).stdout


def _open(database: Path | None = None):
    import duckdb

    extension = next(ENVIRONMENT.glob("lib/*/site-packages/**/tpcds.duckdb_extension"))
    connection = duckdb.connect(str(database or ":memory:"), config={"allow_unsigned_extensions": "true"})
    connection.execute(f"load '{extension}'")
    return connection


def _make(scale: float, directory: Path) -> None:
    # A database on disk: the tables of a large scale do not fit in memory.
    database = directory / "making.duckdb"
    try:
        with _open(database) as connection:
            connection.execute(f"call dsdgen(sf={scale})")
            for name in TABLES:
                connection.execute(f"copy {name} to '{directory / name}.parquet' (format parquet)")
    finally:
        database.unlink(missing_ok=True)


def _print_queries() -> None:
    with _open() as connection:
        rows = connection.execute("select query from tpcds_queries() order by query_nr").fetchall()
    print(json.dumps([sql for (sql,) in rows]))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        _make(float(sys.argv[2]), Path(sys.argv[3]))
    else:
        _print_queries()
