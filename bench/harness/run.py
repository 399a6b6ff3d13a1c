"""`bench/tpch` and `bench/ssb`: measure, check, report."""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import shlex
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from . import machine, report
from .compare import difference, order_columns
from .compiled import decoding, rows_of_scans
from .engines import EngineProcess, PythonEngine, TesseraEngine
from .suites import ROOT, TABLES, Query, check_binary, default_binary, ensure_data, queries

PEERS = ["duckdb", "datafusion", "polars"]
# Peers that are measured where they are named, and the package each needs.
OPTIONAL_PEERS = {"hyper": "tableauhyperapi"}
# Tessera in another tier than its own choice.
TIERS = {"tessera-vectorized": "vectorized", "tessera-compiled": "compiled"}


@dataclass
class Cell:
    """What one engine did with one query."""

    seconds: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    rows: int | None = None
    error: str | None = None
    wrong: str | None = None

    @property
    def right(self) -> bool:
        """Every run answered, and rightly."""
        return not self.error and not self.wrong and bool(self.seconds)

    @property
    def median(self) -> float | None:
        """The median time in seconds, wrong answers included, errors not."""
        return statistics.median(self.seconds) if self.seconds and not self.error else None

    def as_json(self) -> dict:
        """The raw figures."""
        return {
            "median_seconds": self.median,
            "seconds": self.seconds,
            "peak_bytes": self.peak_bytes,
            "rows": self.rows,
            "error": self.error,
            "wrong": self.wrong,
        }


def arguments(suite: str) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog=f"bench/{suite}",
        description=f"Runs the {suite} queries in Tessera and its peers on the same Parquet files, alternating, "
        "checks every answer against DuckDB's, and writes figures, a table and a plot.",
    )
    parser.add_argument("--sf", type=float, default=1.0, help="scale factor (default 1)")
    parser.add_argument("--data", type=Path, help="directory of the tables; generated if empty")
    parser.add_argument("--repeat", type=int, default=5, help="timed runs of each query (default 5)")
    parser.add_argument("--threads", type=int, default=2, help="threads and cores of every engine (default 2)")
    parser.add_argument("--engines", default=",".join(["tessera", *PEERS]), help="engines, by commas; also tessera-vectorized, tessera-compiled, hyper (with --loaded)")
    parser.add_argument("--loaded", action="store_true", help="every engine loads the tables into its memory first")
    parser.add_argument("--queries", default="", help="queries, by commas (default all)")
    parser.add_argument("--tessera", type=Path, default=default_binary(), help="the tessera binary")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds a query may take")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="where results go")
    parsed = parser.parse_args()
    parsed.engines = [name for name in parsed.engines.split(",") if name]
    unknown = set(parsed.engines) - {"tessera", *PEERS, *OPTIONAL_PEERS, *TIERS}
    if "hyper" in parsed.engines:
        if not parsed.loaded:
            parser.error("hyper is compared with tables in its memory; say --loaded")
        if importlib.util.find_spec(OPTIONAL_PEERS["hyper"]) is None:
            parser.error("hyper needs its package: pip install tableauhyperapi")
    if parsed.loaded and "datafusion" in parsed.engines:
        parser.error("datafusion has no tables of its own; name other --engines with --loaded")
    if unknown or parsed.repeat < 1 or parsed.threads < 1:
        parser.error(f"unknown engine {', '.join(unknown)}" if unknown else "give positive numbers")
    return parsed


def build_engine(name: str, options: argparse.Namespace, suite: str, data: Path) -> EngineProcess:
    """An engine that has not been started yet."""
    common = (data, options.threads, TABLES[suite], options.timeout)
    if name in PEERS or name in OPTIONAL_PEERS:
        return PythonEngine(name, *common, loaded=options.loaded)
    return TesseraEngine(options.tessera, *common, tier=TIERS.get(name, "auto"), loaded=options.loaded)


def run_once(engine: EngineProcess, query: Query, cell: Cell, reference, timed: bool) -> None:
    """Runs a query and files what came of it."""
    if cell.error:
        return
    outcome = engine.run(query.sql)
    if outcome.error:
        cell.error = outcome.error
        return
    names, expected = reference
    rows = outcome.values(expected)
    cell.rows = len(rows)
    cell.wrong = cell.wrong or difference(expected, rows, order_columns(query.sql, names))
    if timed:
        cell.seconds.append(outcome.seconds)
        if outcome.peak_bytes is not None:
            cell.peak_bytes.append(outcome.peak_bytes)


def measure(options: argparse.Namespace, suite: str, data: Path) -> tuple[dict, dict, dict, dict]:
    """All cells, by query and engine; the memory of each engine before its first query; what was compiled for each query, and which share of it was decoding."""
    engines = {name: build_engine(name, options, suite, data) for name in options.engines}
    judge = PythonEngine("duckdb", data, options.threads, TABLES[suite], options.timeout)
    cells: dict[str, dict[str, Cell]] = {}
    idle, compiling, shares = {}, {}, {}
    try:
        for name, engine in engines.items():
            engine.start()
            engine.await_ready()
            idle[name] = engine._peak()
        selected = queries(suite, [name for name in options.queries.split(",") if name])
        for query in selected:
            answer = judge.run(query.sql)
            # The judge sleeps while others are timed.
            if answer.error:
                sys.exit(f"DuckDB, whose answers are the reference, failed at {query.name}: {answer.error}")
            reference = (answer.names, answer.rows)
            row = cells[query.name] = {name: Cell() for name in engines}
            if "tessera-compiled" in engines:
                found = engines["tessera-compiled"].explained(query.sql)
                compiling[query.name] = {key: found.get(key) for key in ("compiled_pieces", "compiling_ms")}
                compiling[query.name]["rows_of_scans"] = rows_of_scans(found["plan"])
            # Once untimed, so that every engine finds the files in the page cache.
            for name, engine in engines.items():
                run_once(engine, query, row[name], reference, timed=False)
            order = list(engines)
            for repetition in range(options.repeat):
                turn = repetition % len(order)
                for name in order[turn:] + order[:turn]:
                    run_once(engines[name], query, row[name], reference, timed=True)
            if "tessera" in engines and not options.loaded:
                took, of_decoding = decoding(engines["tessera"].explained(query.sql)["plan"])
                shares[query.name] = of_decoding / took
            print(f"{query.name:>5}  " + "  ".join(describe(name, row[name]) for name in order), flush=True)
    finally:
        for engine in [*engines.values(), judge]:
            engine.stop()
    return cells, idle, compiling, shares


def describe(name: str, cell: Cell) -> str:
    """One cell for the terminal."""
    if cell.error:
        return f"{name} failed"
    return f"{name} {cell.median * 1000:.1f} ms{'' if cell.right else ' WRONG'}"


def ratios(cells: dict, peer: str) -> dict[str, float]:
    """Peer's time by Tessera's, for queries that both answered rightly."""
    return {
        query: row[peer].median / row["tessera"].median
        for query, row in cells.items()
        if "tessera" in row and row[peer].right and row["tessera"].right
    }


def geometric_mean(values: list[float]) -> float | None:
    """The geometric mean, of none none."""
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else None


def main(suite: str) -> int:
    """Runs the benchmark; 1 if Tessera failed or was wrong anywhere."""
    options = arguments(suite)
    if "tessera" in options.engines:
        check_binary(options.tessera)
    with tempfile.TemporaryDirectory(prefix=f"{suite}-") as scratch:
        data = ensure_data(options.tessera, suite, options.sf, options.data or Path(scratch) / "data")
        files = {t: (data / f"{t}.parquet").stat().st_size for t in TABLES[suite]}
        cells, idle, compiling, shares = measure(options, suite, data)
    peers = [name for name in options.engines if name != "tessera"]
    by_peer = {peer: ratios(cells, peer) for peer in peers}
    result = {
        "suite": suite,
        "loaded": options.loaded,
        "scale": options.sf,
        "threads": options.threads,
        "repeat": options.repeat,
        "command": shlex.join([f"bench/{suite}", *sys.argv[1:]]),
        "machine": machine.describe(options.tessera),
        "dataset_bytes": files,
        "idle_bytes": idle,
        "compiling": compiling,
        "decoding": shares,
        "engines": options.engines,
        "queries": {q: {e: cell.as_json() for e, cell in row.items()} for q, row in cells.items()},
        "ratios": by_peer,
        "geometric_means": {peer: geometric_mean(list(by_peer[peer].values())) for peer in peers},
    }
    options.out.mkdir(parents=True, exist_ok=True)
    kind = "-loaded" if options.loaded else ""
    stem = options.out / f"{result['machine']['date'][:10]}-{suite}-sf{options.sf:g}{kind}"
    Path(f"{stem}.json").write_text(json.dumps(result, indent=1) + "\n")
    Path(f"{stem}.svg").write_text(report.plot(result))
    Path(f"{stem}.md").write_text(report.table(result, stem.name))
    print(f"\n{report.summary(result)}\nwritten to {stem}.{{json,md,svg}}")
    own = [row["tessera"] for row in cells.values() if "tessera" in row]
    return 0 if all(cell.right for cell in own) else 1
