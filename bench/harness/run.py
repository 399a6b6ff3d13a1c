"""`bench/tpch`, `bench/ssb`, `bench/clickbench`, `bench/joinorder`, `bench/tpcds`: measures, checks, reports."""

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
from .compare import answer_difference, header_problem
from .compiled import decoding, rows_of_operators
from .engines import EngineProcess, PythonEngine, TesseraEngine
from .suites import COLUMNS, ROOT, TABLES, Query, check_binary, columns_in_words, columns_of, default_binary, ensure_data, queries

PEERS = ["duckdb", "datafusion", "polars"]
# The peers that load tables into their own format.
LOADED_PEERS = ["duckdb", "duckdb-compressed", "polars"]
# DuckDB with both kinds of tables: the faster one for each query is also a peer.
DUCKDB_FORMS, DUCKDB_BEST = ["duckdb", "duckdb-compressed"], "duckdb, the faster form"
# Peers that are measured only if named, and the package of each.
OPTIONAL_PEERS = {"hyper": "tableauhyperapi"}
# Tessera in a tier that it would not choose itself.
TIERS = {"tessera-vectorized": "vectorized", "tessera-compiled": "compiled"}


@dataclass
class Cell:
    """The runs of one query in one engine."""

    seconds: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    rows: int | None = None
    error: str | None = None
    wrong: str | None = None

    @property
    def right(self) -> bool:
        """Returns whether every run returned the right answer."""
        return not self.error and not self.wrong and bool(self.seconds)

    @property
    def median(self) -> float | None:
        """Returns the median time in seconds, including wrong answers but not errors."""
        return statistics.median(self.seconds) if self.seconds and not self.error else None

    def as_json(self) -> dict:
        """Returns the raw figures."""
        return {
            "median_seconds": self.median,
            "seconds": self.seconds,
            "peak_bytes": self.peak_bytes,
            "rows": self.rows,
            "error": self.error,
            "wrong": self.wrong,
        }


def arguments(suite: str) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog=f"bench/{suite}",
        description=f"Runs the {suite} queries in Tessera and its peers on the same Parquet files, alternating, "
        "checks every answer against DuckDB's, and writes figures, a table and a plot.",
    )
    parser.add_argument("--sf", type=float, default=1.0, help="scale factor (default 1)")
    parser.add_argument("--data", type=Path, help="directory of the tables; generated if empty")
    parser.add_argument("--repeat", type=int, default=5, help="timed runs of each query (default 5)")
    parser.add_argument("--threads", type=int, default=2, help="threads and cores of every engine (default 2)")
    parser.add_argument(
        "--engines",
        default="",
        help=f"engines, by commas (default tessera,{','.join(PEERS)}; with --loaded tessera,{','.join(LOADED_PEERS)}); "
        "also tessera-vectorized, tessera-compiled, hyper (with --loaded)",
    )
    parser.add_argument(
        "--columns",
        choices=[*COLUMNS, "both"],
        help="the columns of the files: nullable, not-null, or both in one run, in turns, with a page for each "
        "(default: as they are in --data, or as tessera generates them)",
    )
    parser.add_argument("--loaded", action="store_true", help="every engine loads the tables into its memory first")
    parser.add_argument(
        "--plan-cache", action="store_true", help="Tessera keeps plans between runs (default: it plans each run, as its peers do)"
    )
    parser.add_argument("--queries", default="", help="queries, by commas (default all)")
    parser.add_argument("--tessera", type=Path, default=default_binary(), help="the tessera binary")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds a query may take")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="folder of the results")
    parsed = parser.parse_args()
    usual = ["tessera", *(LOADED_PEERS if parsed.loaded else PEERS)]
    parsed.engines = [name for name in parsed.engines.split(",") if name] or usual
    unknown = set(parsed.engines) - {"tessera", *PEERS, *LOADED_PEERS, *OPTIONAL_PEERS, *TIERS}
    if "duckdb-compressed" in parsed.engines and not parsed.loaded:
        parser.error("duckdb-compressed has tables of its own; say --loaded")
    if "hyper" in parsed.engines:
        if not parsed.loaded:
            parser.error("hyper is compared with tables in its memory; say --loaded")
        if importlib.util.find_spec(OPTIONAL_PEERS["hyper"]) is None:
            parser.error("hyper needs its package: pip install tableauhyperapi")
    if parsed.loaded and "datafusion" in parsed.engines:
        parser.error("datafusion cannot load tables; select other --engines with --loaded")
    if unknown or parsed.repeat < 1 or parsed.threads < 1:
        parser.error(f"unknown engine {', '.join(unknown)}" if unknown else "give positive numbers")
    return parsed


def build_engine(name: str, options: argparse.Namespace, suite: str, data: Path) -> EngineProcess:
    """Creates an engine without starting it."""
    common = (data, options.threads, TABLES[suite], options.timeout)
    if name in PEERS or name in LOADED_PEERS or name in OPTIONAL_PEERS:
        return PythonEngine(name, *common, loaded=options.loaded)
    tier = TIERS.get(name, "auto")
    return TesseraEngine(options.tessera, *common, tier=tier, loaded=options.loaded, plans_again=not options.plan_cache)


def run_once(engine: EngineProcess, query: Query, cell: Cell, reference, timed: bool) -> None:
    """Runs a query and records the result."""
    if cell.error:
        return
    outcome = engine.run(query.sql)
    if outcome.error:
        cell.error = outcome.error
        return
    names, expected = reference
    rows = outcome.values(expected)
    cell.rows = len(rows)
    columns = header_problem(outcome.csv, names) if outcome.csv is not None else None
    cell.wrong = cell.wrong or columns or answer_difference(query.sql, names, expected, rows)
    if timed:
        cell.seconds.append(outcome.seconds)
        if outcome.peak_bytes is not None:
            cell.peak_bytes.append(outcome.peak_bytes)


@dataclass
class Measured:
    """The measurements of the engines over files of one kind."""

    data: Path
    engines: dict[str, EngineProcess]
    cells: dict[str, dict[str, Cell]] = field(default_factory=dict)
    # The memory of each engine before its first query.
    idle: dict[str, int | None] = field(default_factory=dict)
    compiling: dict[str, dict] = field(default_factory=dict)
    decoding: dict[str, float] = field(default_factory=dict)

    def start(self) -> None:
        """Starts all engines."""
        for name, engine in self.engines.items():
            engine.start()
            engine.await_ready()
            self.idle[name] = engine._peak()

    def explain_compiled(self, query: Query) -> None:
        """Records the compilation for a query, before its first run."""
        if "tessera-compiled" not in self.engines:
            return
        found = self.engines["tessera-compiled"].explained(query.sql)
        if found:
            self.compiling[query.name] = {key: found.get(key) for key in ("compiled_pieces", "compiling_ms")}
            self.compiling[query.name]["rows_of_operators"] = rows_of_operators(found["plan"])

    def explain_decoding(self, query: Query) -> None:
        """Records the share of Parquet decoding in a query."""
        found = self.engines["tessera"].explained(query.sql) if "tessera" in self.engines else {}
        took, of_decoding = decoding(found["plan"]) if found else (0.0, 0.0)
        if took:
            self.decoding[query.name] = of_decoding / took


def measure(options: argparse.Namespace, suite: str, kinds: list[Measured]) -> None:
    """Runs all queries in all engines, over all kinds of files, in turn."""
    judge = PythonEngine("duckdb", kinds[0].data, options.threads, TABLES[suite], options.timeout)
    try:
        for kind in kinds:
            kind.start()
        for query in queries(suite, [name for name in options.queries.split(",") if name], options.sf):
            answer = judge.run(query.sql)
            # The reference engine sleeps while others are timed.
            if answer.error:
                sys.exit(f"DuckDB, whose answers are the reference, failed at {query.name}: {answer.error}")
            reference = (answer.names, answer.rows)
            for kind in kinds:
                kind.cells[query.name] = {name: Cell() for name in kind.engines}
                kind.explain_compiled(query)
            order = [(kind, name) for name in options.engines for kind in kinds]
            # The first run is untimed, so that every engine finds the files in the page cache.
            for repetition in range(-1, options.repeat):
                turn = max(repetition, 0) % len(order)
                for kind, name in order[turn:] + order[:turn]:
                    run_once(kind.engines[name], query, kind.cells[query.name][name], reference, timed=repetition >= 0)
            for kind in kinds:
                if not options.loaded:
                    kind.explain_decoding(query)
                shown = "  ".join(describe(name, kind.cells[query.name][name]) for name in options.engines)
                print(f"{query.name:>5}  {shown}", flush=True)
    finally:
        for engine in [*(engine for kind in kinds for engine in kind.engines.values()), judge]:
            engine.stop()


def describe(name: str, cell: Cell) -> str:
    """Formats one cell for the terminal."""
    if cell.error:
        return f"{name} failed"
    return f"{name} {cell.median * 1000:.1f} ms{'' if cell.right else ' WRONG'}"


def ratios(cells: dict, peer: str) -> dict[str, float]:
    """Returns the ratio of the peer's time to Tessera's, for queries that both answered correctly."""
    return {
        query: row[peer].median / row["tessera"].median
        for query, row in cells.items()
        if "tessera" in row and row[peer].right and row["tessera"].right
    }


def best_ratios(cells: dict) -> dict[str, float]:
    """Returns the ratio of the time of DuckDB's faster kind to Tessera's, for queries that Tessera
    and at least one kind answered correctly."""
    found = [ratios(cells, form) for form in DUCKDB_FORMS]
    return {query: min(of[query] for of in found if query in of) for query in cells if any(query in of for of in found)}


def geometric_mean(values: list[float]) -> float | None:
    """Returns the geometric mean, or None without values."""
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else None


def result_of(options: argparse.Namespace, suite: str, kind: Measured, about: dict) -> dict:
    """Returns the figures over files of one kind."""
    by_peer = {peer: ratios(kind.cells, peer) for peer in options.engines if peer != "tessera"}
    if set(DUCKDB_FORMS) <= set(by_peer):
        by_peer[DUCKDB_BEST] = best_ratios(kind.cells)
    return {
        "suite": suite,
        "loaded": options.loaded,
        "columns": columns_of(kind.data, suite),
        "columns_in_words": columns_in_words(kind.data, suite),
        "scale": options.sf,
        "threads": options.threads,
        "repeat": options.repeat,
        "command": shlex.join([f"bench/{suite}", *sys.argv[1:]]),
        "machine": about,
        "dataset_bytes": {t: (kind.data / f"{t}.parquet").stat().st_size for t in TABLES[suite]},
        "idle_bytes": kind.idle,
        "compiling": kind.compiling,
        "decoding": kind.decoding,
        "engines": options.engines,
        "queries": {q: {e: cell.as_json() for e, cell in row.items()} for q, row in kind.cells.items()},
        "ratios": by_peer,
        "geometric_means": {peer: geometric_mean(list(of.values())) for peer, of in by_peer.items()},
    }


def compared_columns(first: dict, second: dict) -> list[str]:
    """Returns sentences on the ratio of each engine's times over the two kinds of files."""
    lines = []
    for name in first["engines"]:
        pairs = [(result["queries"][query][name] for result in (first, second)) for query in first["queries"]]
        factors = [b["median_seconds"] / a["median_seconds"] for a, b in pairs if a["median_seconds"] and b["median_seconds"]]
        mean = geometric_mean(factors)
        if mean:
            words = [COLUMNS.get(result["columns"], result["columns"]) for result in (second, first)]
            lines.append(f"- {name} takes {mean:.3f} times as long with {words[0]} as with {words[1]} (geometric mean over {len(factors)} queries)")
    return lines


def write(result: dict, out: Path) -> None:
    """Writes the raw figures, the plot and the page."""
    out.mkdir(parents=True, exist_ok=True)
    kind = "".join(
        [
            "-loaded" if result["loaded"] else "",
            "-not-null" if result["columns"] == "not-null" else "",
            "-tiers" if set(TIERS) & set(result["engines"]) else "",
        ]
    )
    stem = out / f"{result['suite']}-sf{result['scale']:g}{kind}"
    Path(f"{stem}.json").write_text(json.dumps(result, indent=1) + "\n")
    Path(f"{stem}.svg").write_text(report.plot(result))
    Path(f"{stem}.md").write_text(report.table(result, stem.name))
    print(f"\n{report.summary(result)}\nwritten to {stem}.{{json,md,svg}}")


def main(suite: str) -> int:
    """Runs the benchmark; returns 1 if Tessera failed or was wrong in any tier."""
    options = arguments(suite)
    if any(name.startswith("tessera") for name in options.engines):
        check_binary(options.tessera)
    wanted = list(COLUMNS) if options.columns == "both" else [options.columns]
    with tempfile.TemporaryDirectory(prefix=f"{suite}-") as scratch:
        kinds = []
        for columns in wanted:
            data = options.data or Path(scratch) / "data"
            data = ensure_data(options.tessera, suite, options.sf, data / columns if len(wanted) > 1 else data, columns)
            kinds.append(Measured(data, {name: build_engine(name, options, suite, data) for name in options.engines}))
        measure(options, suite, kinds)
        about = machine.describe(options.tessera)
        results = [result_of(options, suite, kind, about) for kind in kinds]
    if len(results) > 1:
        found = compared_columns(*results)
        for result in results:
            result["compared_columns"] = found
    for result in results:
        write(result, options.out)
    print("\n".join(results[0].get("compared_columns", [])))
    own = [cell for kind in kinds for row in kind.cells.values() for name, cell in row.items() if name.startswith("tessera")]
    return 0 if all(cell.right for cell in own) else 1
