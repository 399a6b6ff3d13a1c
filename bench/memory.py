#!/usr/bin/env python3
"""Runs the queries of a suite in little memory: checks answers, and measures memory, spilling and time.

    bench/memory.py --suite tpch --sf 10 --share 0.5 --least 16000000    writes docs/results/memory.md and .json

The budget of a query is a share (`--share`, a quarter by default) of its memory use without a budget,
but at least 64 MB (`--least`). Runs with much and with little memory alternate; times are medians.
Writes OUT.json and OUT.md; exit code 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.suites import COLUMNS, TABLES, check_binary, columns_in_words, default_binary, ensure_data, queries

UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", choices=sorted(TABLES), default="tpch", help="queries (default tpch)")
    parser.add_argument("--sf", type=float, default=1, help="scale factor (default 1)")
    parser.add_argument("--data", type=Path, help="folder of the tables; generated if missing (default: temporary)")
    parser.add_argument("--columns", choices=COLUMNS, help="required kind of columns of the files (default: as they are or are generated)")
    parser.add_argument("--tessera", type=Path, default=default_binary(), help="the program")
    parser.add_argument("--memory", type=int, help="one budget for all queries, in bytes")
    parser.add_argument("--share", type=float, default=0.25, help="budget as a share of the memory of a query (default 0.25)")
    parser.add_argument("--least", type=int, default=64_000_000, help="the smallest budget, in bytes (default 64 MB)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each kind (default 3)")
    parser.add_argument("--threads", type=int, default=2, help="worker threads (default 2)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "memory", help="path of the results, without extension")
    return parser.parse_args()


class Runs:
    """Runs of the program over one database."""

    def __init__(self, options: argparse.Namespace, data: Path) -> None:
        self.command = [str(options.tessera), str(data), "--threads", str(options.threads), "--format", "csv"]

    def run(self, sql: str, budget: int | None = None) -> tuple[list[str], float, int]:
        """Returns the lines of the output, the seconds, and the peak resident bytes."""
        command = [*self.command, *(["--memory", str(budget)] if budget else []), "-c", sql]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            began = time.monotonic()
            started = subprocess.Popen(command, stdout=out, stderr=err)
            _, status, usage = os.wait4(started.pid, 0)
            seconds = time.monotonic() - began
            started.returncode = os.waitstatus_to_exitcode(status)
            for file in (out, err):
                file.seek(0)
            if started.returncode:
                raise RuntimeError(f"{sql}: {err.read().decode()}")
            return out.read().decode().splitlines(), seconds, usage.ru_maxrss * 1024

    def figure(self, sql: str, name: str, budget: int | None = None, missing: int | None = None) -> int:
        """Returns a figure of EXPLAIN ANALYZE in bytes; `missing` if it is absent, or an error if
        that is not given."""
        lines, _, _ = self.run(f"explain analyze {sql}", budget)
        found = re.search(rf"-- {name}: ([0-9.]+) (\w+)", "\n".join(lines))
        if not found and missing is None:
            raise RuntimeError(f"EXPLAIN ANALYZE does not say '{name}': {sql}")
        return int(float(found[1]) * UNITS[found[2]]) if found else missing


def measure(runs: Runs, sql: str, options: argparse.Namespace, base: int) -> dict:
    """Measures one query with much and with little memory."""
    peak = runs.figure(sql, "memory")
    budget = options.memory or max(options.least, int(peak * options.share))
    much, little, resident, same = [], [], 0, True
    for _ in range(options.repeat):
        expected, seconds, _ = runs.run(sql)
        much.append(seconds)
        found, seconds, bytes_resident = runs.run(sql, budget)
        little.append(seconds)
        resident = max(resident, bytes_resident - base)
        # Ties may be in any order.
        same = same and sorted(found) == sorted(expected)
    return {
        "peak_bytes": peak,
        "budget_bytes": budget,
        "spilled_bytes": runs.figure(sql, "spilled bytes", budget, missing=0),
        "resident_bytes": resident,
        "seconds": much,
        "seconds_in_budget": little,
        "ratio": statistics.median(b / a for a, b in zip(much, little)),
        "same": same,
    }


def page(results: dict[str, dict], options: argparse.Namespace, columns: str) -> str:
    """Returns the page."""
    mib = 1 << 20
    budget = f"--memory {options.memory}" if options.memory else f"--share {options.share:g} --least {options.least}"
    lines = [
        f"# {options.suite} at scale factor {options.sf:g} in little memory",
        "",
        f"`bench/memory.py --suite {options.suite} --sf {options.sf:g} {budget} --repeat {options.repeat}`, {options.threads} threads, {columns}, "
        f"{platform.machine()}, {os.cpu_count()} cores. Sizes in MiB; resident memory beyond that of `SELECT 1`; time: median of the ratios "
        "to the run without a budget beside it.",
        "",
        "| query | holds | budget | spilled | resident | seconds | in the budget | ratio | answer |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for name, one in results.items():
        sizes = (one[key] / mib for key in ("peak_bytes", "budget_bytes", "spilled_bytes", "resident_bytes"))
        times = (statistics.median(one[key]) for key in ("seconds", "seconds_in_budget"))
        lines.append(
            f"| {name} | " + " | ".join(f"{size:.0f}" for size in sizes) + " | " + " | ".join(f"{time:.2f}" for time in times)
            + f" | {one['ratio']:.2f} | {'same' if one['same'] else 'DIFFERS'} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Runs all measurements."""
    options = arguments()
    check_binary(options.tessera)
    with tempfile.TemporaryDirectory(prefix="memory-") as scratch:
        data = ensure_data(options.tessera, options.suite, options.sf, options.data or Path(scratch) / options.suite, options.columns)
        columns = columns_in_words(data, options.suite)
        runs = Runs(options, data)
        base = runs.run("select 1")[2]
        results = {}
        for query in queries(options.suite, [], options.sf):
            results[query.name] = measure(runs, query.sql, options, base)
            print(query.name, results[query.name], flush=True)
    text = page(results, options, columns)
    options.out.with_suffix(".md").write_text(text)
    options.out.with_suffix(".json").write_text(json.dumps({"options": {k: str(v) for k, v in vars(options).items() if k not in ("tessera", "data", "out")}, "columns": columns, "base_bytes": base, "queries": results}, indent=1) + "\n")
    print(text)
    return 0 if all(one["same"] for one in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
