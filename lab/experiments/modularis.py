"""Distributed grouping, sequences of joins, and TPC-H (Modularis, Figs 2.8, 2.10, 2.11)."""

from __future__ import annotations

import re
import statistics
import subprocess
import tempfile
import time
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

from harness.compare import difference, header_problem, order_columns, rows_from_csv
from harness.suites import COLUMNS, MIXED, TABLES, Query, columns_of, ensure_data, queries
from harness.worker import duckdb_engine

from . import plans, plot
from .programs import Contender, in_turns, ratio
from .report import Report, median_wall, of_ranks, seconds, times

# The thesis's selection of TPC-H.
QUERIES = ["q01", "q03", "q04", "q06", "q12", "q14", "q18", "q19"]
SHUFFLING = ["histogram", "window", "network", "wait"]


def bits(ranks: int) -> int:
    """Returns the bits of network partitions: eight partitions for each rank."""
    return max(ranks - 1, 0).bit_length() + 3


def rank_counts(options: Namespace) -> list[int]:
    """Returns the numbers of ranks of an experiment."""
    return [options.ranks] if options.ranks else [1, 2]


def group_contenders(options: Namespace, ranks: int, copies: int) -> list[Contender]:
    """Returns grouping as in the thesis, and with pre-aggregation at each rank, as the planner
    does it."""
    arguments = ["--tuples", str(1 << options.tuples), "--copies", str(copies), "--answer", "groups"]
    local = max(0, options.tuples - copies.bit_length() + 1 - bits(ranks) - options.cache_bits) or None

    def contender(name: str, plan: str) -> Contender:
        return Contender(name, options.programs / "join", ranks, arguments, plan)

    return [
        contender("all tuples exchanged", plans.grouping(bits(ranks), local, False)),
        contender("groups of each rank exchanged", plans.grouping(bits(ranks), None, True)),
    ]


def grouping(options: Namespace, report: Report) -> None:
    """Fig 2.10."""
    counts = rank_counts(options)
    cardinalities = [1 << n for n in range(max(4, options.tuples - 12), options.tuples + 1, 4)]
    by_ranks: dict[str, list[float]] = {}
    by_keys: dict[str, list[float]] = {}
    rows = []
    for ranks in counts:
        for keys in cardinalities:
            found = in_turns(group_contenders(options, ranks, (1 << options.tuples) // keys), options.repeat)
            report.keep(f"{of_ranks(ranks)}, {keys} keys", found)
            for name, runs in found.items():
                rows.append([f"{of_ranks(ranks)}, {keys} keys, {name}", seconds(median_wall(runs))])
                by_keys.setdefault(f"{of_ranks(ranks)}, {name}", []).append(median_wall(runs))
                if keys == cardinalities[-1]:
                    by_ranks.setdefault(name, []).append(median_wall(runs))
    report.text += ["", f"2^{options.tuples} tuples of 16 bytes, {options.repeat} rounds; medians of wall clock."]
    report.table(["", "seconds"], rows)
    report.plots["ranks"] = plot.bars(f"GROUP BY of 2^{options.tuples} keys", "seconds", [of_ranks(n) for n in counts], by_ranks)
    report.plots["keys"] = plot.lines("GROUP BY", "seconds", "keys", cardinalities, by_keys, logarithmic=True)


def sequence_contenders(options: Namespace, ranks: int, joins: int, copies: int) -> list[Contender]:
    """Returns a sequence of joins, naive and optimized; the first join yields `copies` tuples for
    each tuple."""
    each = [copies, copies, *([1] * (joins - 1))]
    arguments = ["--tuples", str(1 << options.tuples), "--copies", ",".join(map(str, each))]
    return [
        Contender(name, options.programs / "join", ranks, arguments, plans.sequence(bits(ranks), joins, optimized))
        for name, optimized in (("naive", False), ("optimized", True))
    ]


def sequences(options: Namespace, report: Report) -> None:
    """Fig 2.11."""
    report.text += ["", f"2^{options.tuples} tuples of 16 bytes in each relation, {options.repeat} rounds; medians. × is naive by optimized in the same round."]
    rows: list[list[str]] = []

    def measure(what: str, ranks: int, joins: int, copies: int) -> dict:
        found = in_turns(sequence_contenders(options, ranks, joins, copies), options.repeat)
        report.keep(f"{what}: {of_ranks(ranks)}, {joins} joins, {copies} copies", found)
        shuffling = {
            name: statistics.median(sum(run.mean(phase) for phase in SHUFFLING) for run in runs) for name, runs in found.items()
        }
        factor = ratio(found["naive"], found["optimized"], lambda run: run.wall)
        for name, runs in found.items():
            label = f"{what}: {of_ranks(ranks)}, {joins} joins, first yields {copies}x, {name}"
            rows.append([label, seconds(median_wall(runs)), seconds(shuffling[name]), times(factor) if name == "naive" else ""])
        return {"wall": {name: median_wall(runs) for name, runs in found.items()}, "shuffling": shuffling}

    def series(found: list[dict], what: str) -> dict[str, list[float]]:
        return {name: [one[what][name] for one in found] for name in ("naive", "optimized")}

    counts = rank_counts(options)
    found = [measure("a", ranks, 2, 1) for ranks in counts]
    report.plots["a-ranks"] = plot.bars("Two joins", "seconds", [of_ranks(n) for n in counts], series(found, "wall"))
    copies = [1, 2, 4, 8]
    found = [measure("b, c", counts[-1], 2, c) for c in copies]
    report.plots["b-output"] = plot.lines("Two joins: total", "seconds", "tuples of the first join for each", copies, series(found, "wall"))
    report.plots["c-network"] = plot.lines("Two joins: between ranks", "seconds", "tuples of the first join for each", copies, series(found, "shuffling"))
    joins = [1, 2, 3, 4]
    found = [measure("d", counts[-1], n, 1) for n in joins]
    report.plots["d-joins"] = plot.lines("Sequences of joins", "seconds", "joins", joins, series(found, "wall"))
    report.table(["", "wall clock, s", "between ranks, s", "×"], rows)


class Engine:
    """Runs SQL over the files with one process for each query; the process measures the time."""

    def __init__(self, name: str, command: list[str]):
        self.name, self.command = name, command

    def run(self, query: Query, expected: Answer) -> float:
        """Returns the seconds of the second of two runs of a query; its answer is compared."""
        again = [*self.command, "-c", query.sql]
        done = subprocess.run([*self.command, "-c", f"{query.sql};{query.sql}"], capture_output=True, text=True, timeout=1800)
        found = re.findall(r"^Time: ([0-9.]+) ms", done.stderr, re.MULTILINE)
        if done.returncode != 0 or len(found) != 2:
            raise SystemExit(f"{self.name}, {query.name}: {done.stderr[-2000:]}")
        lines = done.stdout.splitlines(keepends=True)
        second = "".join(lines[len(lines) // 2 :])
        rows = rows_from_csv(second, expected.rows)
        wrong = header_problem(second, expected.names) or difference(expected.rows, rows, order_columns(query.sql, expected.names))
        if wrong:
            raise SystemExit(f"{self.name}, {query.name}: {wrong}\n{again}")
        return float(found[1]) / 1e3


@dataclass
class Answer:
    """DuckDB's answer to a query."""

    names: list[str]
    rows: list[tuple]


class DuckDb:
    """DuckDB in this process."""

    name = "DuckDB"

    def __init__(self, data: Path, threads: int):
        self.query = duckdb_engine(data, threads, TABLES["tpch"])

    def answer(self, query: Query) -> Answer:
        """Returns names and rows."""
        answer = self.query(query.sql)
        return Answer(list(answer.column_names), list(zip(*(column.to_pylist() for column in answer.columns))))

    def run(self, query: Query, _expected: Answer) -> float:
        """Returns the seconds of the second of two runs of a query."""
        self.query(query.sql)
        started = time.perf_counter()
        self.query(query.sql)
        return time.perf_counter() - started


def tpch(options: Namespace, report: Report) -> None:
    """Fig 2.8: platforms of one engine, and another engine."""
    kinds = list(COLUMNS) if options.columns == "both" else [options.columns]
    with tempfile.TemporaryDirectory(prefix="lab-") as scratch:
        for columns in kinds:
            below = options.data or Path(scratch) / "tpch"
            data = ensure_data(options.tessera, "tpch", options.sf, below / columns if len(kinds) > 1 else below, columns)
            found = tpch_over(options, data)
            tpch_table(options, report, found, columns_of(data, "tpch"))


def tpch_over(options: Namespace, data: Path) -> dict[str, dict[str, list[float]]]:
    """Returns the seconds of each query, engine and round."""
    program = [str(options.tessera), str(data), "--format", "csv", "--timing"]
    duckdb = DuckDb(data, 2)
    engines = [
        duckdb,
        Engine("local, 2 threads", [*program, "--threads", "2"]),
        Engine("mpi, 2 ranks", [*program, "--platform", "mpi", "--ranks", str(options.ranks or 2), "--threads", "1"]),
        Engine("serverless, 2 workers", [*program, "--platform", "serverless", "--workers", "2"]),
    ]
    chosen = queries("tpch", QUERIES)
    expected = {query.name: duckdb.answer(query) for query in chosen}
    found: dict[str, dict[str, list[float]]] = {query.name: {engine.name: [] for engine in engines} for query in chosen}
    for turn in range(options.repeat):
        shift = turn % len(engines)
        for query in chosen:
            for engine in engines[shift:] + engines[:shift]:
                found[query.name][engine.name].append(engine.run(query, expected[query.name]))
        print(f"  {turn + 1}/{options.repeat}", flush=True)
    return found


def tpch_table(options: Namespace, report: Report, found: dict[str, dict[str, list[float]]], columns: str) -> None:
    """Returns the page about files of one kind."""
    suffix = "-not-null" if columns == "not-null" else ""
    report.raw[f"seconds{suffix}"] = found
    report.text += ["", f"TPC-H at scale factor {options.sf:g} from Parquet with {COLUMNS.get(columns, MIXED)} in the page cache, {options.repeat} rounds: the second run of a query in a process. Seconds; × is the median ratio to DuckDB's time. Serverless workers, their function service and their store are on loopback."]
    names = list(next(iter(found.values())))
    rows = []
    for query, by_engine in found.items():
        cells = [query]
        for name in names:
            factor = statistics.median(a / b for a, b in zip(by_engine[name], by_engine["DuckDB"]))
            cells.append(f"{statistics.median(by_engine[name]):.3f}" + ("" if name == "DuckDB" else f" ({factor:.2f}×)"))
        rows.append(cells)
    report.table(["query", *names], rows)
    series = {name: [statistics.median(by_engine[name]) for by_engine in found.values()] for name in names}
    report.plots[suffix.removeprefix("-")] = plot.bars(f"TPC-H at scale factor {options.sf:g}", "seconds", list(found), series)
