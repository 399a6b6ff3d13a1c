"""Cancels statements at random moments; measures the time until each has returned and freed its
memory."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from . import cancel_platform
from .machine import describe, sentence
from .report import quantile
from .suites import ROOT, check_binary, columns_in_words, default_binary, ensure_data, queries

# The required share of moments with something to cancel; with fewer the figures prove nothing.
CANCELLED_SHARE = 0.5
# The goal: this share of the moments below this time.
SHARE = 0.99
BOUND_MS = 100
ENDED = "The time is from Ctrl-C until every process has ended: the program, and the {} that it started."
WHAT = {
    "local": "The time is from the request to the return of the statement, when all bytes of its budget have been given back. "
    "The store answers 30 ms late.",
    "mpi": ENDED.format("ranks"),
    "serverless": ENDED.format("workers"),
}


def summary(moments: list[dict]) -> dict:
    """Returns figures over the moments with something to cancel."""
    took = [moment["took_ms"] for moment in moments if moment["took_ms"] is not None]
    if not took:
        raise SystemExit(f"none of {len(moments)} moments had anything to cancel")
    return {
        "moments": len(moments),
        "cancelled": len(took),
        "median_ms": quantile(took, 0.5),
        "p99_ms": quantile(took, 0.99),
        "worst_ms": max(took),
        "below_bound": sum(value < BOUND_MS for value in took) / len(took),
        # Known only for sessions: the memory of a process is freed with it.
        "held_bytes": sum(moment.get("held_bytes", 0) for moment in moments),
    }


def by_case(moments: list[dict]) -> list[tuple[str, dict, dict]]:
    """Returns each case with its figures and its slowest moment, the slowest first."""
    names = dict.fromkeys(moment["case"] for moment in moments)
    cases = []
    for name in names:
        own = [moment for moment in moments if moment["case"] == name]
        if any(moment["took_ms"] is not None for moment in own):
            worst = max(own, key=lambda moment: moment["took_ms"] or 0)
            cases.append((name, summary(own), worst))
    return sorted(cases, key=lambda case: -case[1]["worst_ms"])


def page(result: dict) -> str:
    """Returns the page."""
    machine, all_of_it = result["machine"], summary(result["moments"])
    lines = [
        "# Cancelling at random moments",
        "",
        f"{sentence(machine)}; revision {machine['revision']}. TPC-H at scale factor {result['scale']:g}, "
        f"{result['threads']} {'workers' if result['platform'] == 'local' else 'threads each'}, {result['columns']}. The machine's load meanwhile was {result['load']:.1f}.",
        "",
        f"Made by `{result['command']}`: the statements take turns; each is cancelled at a moment drawn evenly from its "
        f"running time (at most 3 s). {WHAT[result['platform']]}",
        "",
        f"Of {all_of_it['moments']} moments, at {all_of_it['cancelled']} there was something to cancel: median "
        f"**{all_of_it['median_ms']:.1f} ms**, 99th percentile **{all_of_it['p99_ms']:.1f} ms**, worst "
        f"{all_of_it['worst_ms']:.1f} ms; {all_of_it['below_bound']:.1%} below {BOUND_MS} ms."
        + (f" Bytes of budgets not given back: {all_of_it['held_bytes']}." if result["platform"] == "local" else ""),
        "",
        "| statement | moments | median ms | 99 % ms | worst ms | last before the end, at the worst |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for name, figures, worst in by_case(result["moments"]):
        numbers = " | ".join(f"{figures[key]:.1f}" for key in ("median_ms", "p99_ms", "worst_ms"))
        lines.append(f"| {name} | {figures['cancelled']} | {numbers} | {worst['last'].replace('|', '/')} |")
    return "\n".join([*lines, ""])


def in_session(options: argparse.Namespace, data: Path) -> list[dict]:
    """Measures within a session."""
    command = [options.binary, data, options.sf, options.moments, options.threads, options.seed, *options.cases]
    ran = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode != 0 or not ran.stdout:
        sys.exit("a statement failed, see above")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def on_platform(options: argparse.Namespace, data: Path) -> list[dict]:
    """Measures TPC-H queries on ranks or workers."""
    check_binary(options.tessera)
    return cancel_platform.moments(options, ensure_data(options.tessera, "tpch", options.sf, data), queries("tpch", options.cases))


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sf", type=float, default=1, help="scale factor")
    parser.add_argument("--data", type=Path, help="folder of the tables; generated if missing")
    parser.add_argument("--moments", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary", type=Path, default=default_binary("examples/cancel"))
    parser.add_argument("--platform", choices=WHAT, default="local", help="other than local: TPC-H by the program itself")
    parser.add_argument("--workers", type=int, default=4, help="ranks, or serverless workers")
    parser.add_argument("--tessera", type=Path, default=default_binary(), help="the program")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/results")
    parser.add_argument("cases", nargs="*", help="statements by name; all")
    options = parser.parse_args()
    is_local = options.platform == "local"
    machine = describe(options.binary if is_local else options.tessera)
    with tempfile.TemporaryDirectory() as temporary:
        data = options.data or Path(temporary)
        data.mkdir(parents=True, exist_ok=True)
        moments = in_session(options, data) if is_local else on_platform(options, data)
        columns = columns_in_words(data, "tpch")
    arguments = [] if is_local else [f"--platform {options.platform} --workers {options.workers}"]
    arguments += [f"--{name} {getattr(options, name):g}" for name in ("sf", "moments", "threads", "seed")]
    result = {
        "machine": machine,
        "load": os.getloadavg()[1],
        "command": " ".join(["bench/cancel", *arguments, *map(shlex.quote, options.cases)]),
        "scale": options.sf,
        "columns": columns,
        "threads": options.threads,
        "platform": options.platform,
        "moments": moments,
    }
    stem = options.out / f"cancel{'' if is_local else '-' + options.platform}"
    options.out.mkdir(parents=True, exist_ok=True)
    # One line for each moment.
    text = json.dumps(result).replace('{"case"', '\n{"case"')
    stem.with_suffix(".json").write_text(text + "\n")
    stem.with_suffix(".md").write_text(page(result))
    print(page(result))
    figures = summary(moments)
    few = figures["cancelled"] < CANCELLED_SHARE * figures["moments"]
    if few:
        print(f"FAILED: only {figures['cancelled']} of {figures['moments']} moments had anything to cancel")
    return int(few or figures["held_bytes"] > 0 or figures["below_bound"] < SHARE)
