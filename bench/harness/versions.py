"""`bench/versions OLD NEW`: runs two programs on the same files in turn; fails if the new one is
slower than a bound."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .engines import PythonEngine, TesseraEngine
from .run import Cell, geometric_mean, run_once
from .suites import COLUMNS, TABLES, Query, check_binary, columns_in_words, ensure_data, queries


@dataclass
class Pair:
    """One query in both programs."""

    query: str
    old: Cell
    new: Cell

    @property
    def problem(self) -> str | None:
        """Returns why the query has no ratio, or None."""
        for name, cell in (("old", self.old), ("new", self.new)):
            if not cell.right:
                return f"{self.query}, {name}: {cell.error or cell.wrong or 'no answer'}"
        return None

    @property
    def ratio(self) -> float:
        """Returns the ratio of the new program's time to the old one's: the median over rounds."""
        return statistics.median(new / old for old, new in zip(self.old.seconds, self.new.seconds, strict=True))

    def line(self) -> str:
        """Returns the line for the terminal."""
        if self.problem:
            return f"{self.query:>5}  {self.problem.splitlines()[0][:200]}"
        return f"{self.query:>5}  {self.old.median * 1e3:9.1f} ms  {self.new.median * 1e3:9.1f} ms  {self.ratio:6.3f}"


@dataclass
class Group:
    """A suite over files of one kind."""

    name: str
    pairs: list[Pair]

    @property
    def mean(self) -> float | None:
        """Returns the geometric mean of the ratios."""
        return geometric_mean([pair.ratio for pair in self.pairs if not pair.problem])


def verdict(groups: list[Group], bound: float) -> list[str]:
    """Returns the failures of the new program: wrong answers, errors, a mean above the bound,
    nothing measured."""
    found = [] if groups else ["nothing was measured"]
    for group in groups:
        found += [f"{group.name}: {pair.problem}" for pair in group.pairs if pair.problem]
        if group.mean is None:
            found.append(f"{group.name}: no query that both answered rightly")
        elif group.mean > bound:
            found.append(f"{group.name}: the new program takes {group.mean:.3f} times as long; the bound is {bound:g}")
    return found


def measure(query: Query, engines: dict[str, TesseraEngine], reference: tuple, repeat: int) -> Pair:
    """Measures one query: an untimed run of both, then timed runs in turn; the order alternates."""
    cells = {name: Cell() for name in engines}
    for repetition in range(-1, repeat):
        for name in list(engines)[:: -1 if repetition % 2 else 1]:
            run_once(engines[name], query, cells[name], reference, timed=repetition >= 0)
    return Pair(query.name, cells["old"], cells["new"])


def run_group(options: argparse.Namespace, suite: str, data: Path, scratch: Path) -> Group:
    """Measures a suite over files of one kind."""
    common = (data, options.threads, TABLES[suite], options.timeout)
    engines = {}
    for name in ("old", "new"):
        engines[name] = TesseraEngine(getattr(options, name), *common, loaded=options.loaded)
        # The programs do not share caches.
        engines[name].environment = {"XDG_CACHE_HOME": str(scratch / f"cache-{name}")}
    judge = PythonEngine("duckdb", *common)
    group = Group(f"{suite}, {columns_in_words(data, suite)}{', loaded' if options.loaded else ''}", [])
    print(f"\n{group.name}\nquery     {'old':>9}     {'new':>9}     new / old", flush=True)
    try:
        for engine in engines.values():
            engine.start()
            engine.await_ready()
        for query in queries(suite, [name for name in options.queries.split(",") if name], options.sf):
            answer = judge.run(query.sql)
            if answer.error:
                sys.exit(f"DuckDB, whose answers are the reference, failed at {query.name}: {answer.error}")
            group.pairs.append(measure(query, engines, (answer.names, answer.rows), options.repeat))
            print(group.pairs[-1].line(), flush=True)
    finally:
        for engine in [*engines.values(), judge]:
            engine.stop()
    if group.mean is not None:
        print(f"geometric mean of {sum(not pair.problem for pair in group.pairs)} queries: {group.mean:.3f}", flush=True)
    return group


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="bench/versions", description=__doc__)
    parser.add_argument("old", type=Path, help="the program to compare with")
    parser.add_argument("new", type=Path, help="the program that must not be slower; it generates the files")
    parser.add_argument("--bound", type=float, default=1.03, help="fail where a geometric mean of new / old is above this (default 1.03)")
    parser.add_argument("--suite", default="tpch,ssb", help=f"suites, by commas: {', '.join(TABLES)} (default tpch,ssb)")
    parser.add_argument("--columns", choices=[*COLUMNS, "both"], default="both", help="columns of the files (default both kinds)")
    parser.add_argument("--loaded", action="store_true", help="both programs load the tables into their memory first")
    parser.add_argument("--sf", type=float, default=1.0, help="scale factor (default 1)")
    parser.add_argument("--data", type=Path, help="folder of the files, with a subfolder SUITE-COLUMNS; generated if not there")
    parser.add_argument("--repeat", type=int, default=5, help="timed runs of each query (default 5)")
    parser.add_argument("--threads", type=int, default=2, help="threads and cores (default 2)")
    parser.add_argument("--queries", default="", help="queries of one suite, by commas (default all)")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds a query may take")
    parser.add_argument("--out", type=Path, help="a file for the raw figures, as JSON")
    parsed = parser.parse_args()
    parsed.suite = parsed.suite.split(",")
    if set(parsed.suite) - set(TABLES) or parsed.repeat < 1 or parsed.threads < 1:
        parser.error(f"there are the suites {', '.join(TABLES)}; numbers are positive")
    if parsed.queries and len(parsed.suite) > 1:
        parser.error("--queries are those of one suite; name it with --suite")
    return parsed


def main() -> int:
    """Runs the command; returns 1 on a failure of the new program."""
    options = arguments()
    check_binary(options.old)
    check_binary(options.new)
    groups = []
    with tempfile.TemporaryDirectory(prefix="versions-") as folder:
        scratch = Path(folder)
        for suite in options.suite:
            for columns in COLUMNS if options.columns == "both" else [options.columns]:
                data = ensure_data(options.new, suite, options.sf, (options.data or scratch) / f"{suite}-{columns}", columns)
                groups.append(run_group(options, suite, data, scratch))
    against = verdict(groups, options.bound)
    print(f"\nload of the machine: {os.getloadavg()[1]:.1f}")
    for group in groups:
        print(f"{group.mean or float('nan'):6.3f}  {group.name}")
    print("\n".join(f"FAILED: {line}" for line in against) or f"within {options.bound:g}")
    if options.out:
        raw = {group.name: {pair.query: {"old": pair.old.as_json(), "new": pair.new.as_json()} for pair in group.pairs} for group in groups}
        options.out.write_text(json.dumps(raw, indent=1) + "\n")
    return 1 if against else 0
