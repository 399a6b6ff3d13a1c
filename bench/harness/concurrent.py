"""Runs queries of TPC-H sequentially and concurrently in one process, and a short one beside long
ones."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from .machine import describe, sentence
from .suites import ROOT, columns_in_words, default_binary

# Eight different ones: scans, joins, large and small groups, a sort. The first one is the short
# one.
QUERIES = ["q06", "q01", "q03", "q05", "q09", "q13", "q18", "q21"]
# The goal: concurrent execution within this multiple of the sequential time.
FACTOR = 1.2


def factors(result: dict) -> list[float]:
    """Returns the ratios of concurrent to sequential time, round by round."""
    return [turn["at_once_ms"] / turn["one_after_another_ms"] for turn in result["rounds"]]


def page(result: dict) -> str:
    """Returns the page."""
    machine, rounds, short = result["machine"], result["rounds"], result["short"]
    ratios = factors(result)
    one, all_of_it = (statistics.median(turn[key] for turn in rounds) for key in ("one_after_another_ms", "at_once_ms"))
    lines = [
        "# Queries side by side",
        "",
        f"{sentence(machine)}; revision {machine['revision']}. TPC-H at scale factor {result['scale']:g}, Parquet with {result['columns']} in the page "
        f"cache, {result['threads']} workers. The machine's load meanwhile was {result['load']:.1f}.",
        "",
        f"Made by `{result['command']}`: eight queries ({', '.join(result['queries'])}) in one session one after another, then each in a "
        "session of its own at once, in turns; medians.",
        "",
        f"One after another {one:.0f} ms, at once {all_of_it:.0f} ms: **{statistics.median(ratios):.2f} times** "
        f"(each turn: {', '.join(f'{ratio:.2f}' for ratio in ratios)}); at most {FACTOR:g} is aimed at.",
        "",
        "| query | alone ms | beside seven others ms |",
        "|---|---:|---:|",
    ]
    for place, name in enumerate(result["queries"]):
        alone, together = (statistics.median(turn[key][place] for turn in rounds) for key in ("alone", "together"))
        lines.append(f"| {name} | {alone:.0f} | {together:.0f} |")
    lines += [
        "",
        f"{result['queries'][0]} beside hogs, joins of two tables of lines without a key, that keep all workers busy and do not end:",
        "",
        "| hogs | median ms | worst ms | × alone |",
        "|---:|---:|---:|---:|",
    ]
    alone = statistics.median(short["0"])
    for hogs, times in short.items():
        median = statistics.median(times)
        lines.append(f"| {hogs} | {median:.1f} | {max(times):.1f} | {median / alone:.1f} |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Runs the command; returns 1 if a query failed or returned another answer, or if the goal was
    missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sf", type=float, default=1, help="scale factor of the data")
    parser.add_argument("--data", type=Path, required=True, help="folder of the tables (tessera generate tpch)")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--binary", type=Path, default=default_binary("examples/concurrent"))
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    options = parser.parse_args()
    machine = describe(options.binary)
    files = [ROOT / f"queries/tpch/{name}.sql" for name in QUERIES]
    command = [options.binary, options.data, options.threads, options.repeat, *files]
    ran = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode != 0:
        print("a query failed, see above", file=sys.stderr)
        return 1
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    short: dict[str, list[float]] = {}
    for line in lines:
        if "hogs" in line:
            short.setdefault(str(line["hogs"]), []).extend(line["short_ms"])
    arguments = [f"--{name} {getattr(options, name):g}" for name in ("sf", "repeat", "threads")]
    result = {
        "machine": machine,
        "load": os.getloadavg()[1],
        "command": " ".join(["bench/concurrent", *arguments, "--data DIR"]),
        "scale": options.sf,
        "columns": columns_in_words(options.data, "tpch"),
        "threads": options.threads,
        "queries": QUERIES,
        "rounds": [line for line in lines if "alone" in line],
        "short": short,
    }
    stem = options.out / "concurrent"
    options.out.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    stem.with_suffix(".md").write_text(page(result))
    print(page(result))
    return int(statistics.median(factors(result)) > FACTOR)
