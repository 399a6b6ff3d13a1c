"""Single sub-operators against plain loops (micro-operators, Figs 4.1 and 4.2, whose values are
only in the thesis's plots), and a long sum."""

from __future__ import annotations

import json
import statistics
import subprocess
from argparse import Namespace
from pathlib import Path

from . import plot
from .report import Report, times

# Most of the thesis's micro-operators cost 5 to 20 % more than a loop (micro-operators §4.2.2).
THESIS = 1.2
# Bytes of a tuple, and of a long number.
TUPLE_BYTES, NUMBER_BYTES = 8, 8
# The longest possible chunks, which hide the cost of each chunk.
LONG_CHUNK = 65536


def run(options: Namespace, tuples: int, *more: str) -> dict:
    """Runs each case; returns every single time in seconds."""
    command = [str(options.programs / "micro"), "--tuples", str(tuples), "--repeat", str(options.repeat), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout)
    check_loops(found["loops"])
    return found


def check_loops(loops: str) -> None:
    """Checks that the loops are compiled for this processor's vectors like compiled sub-operators;
    otherwise the comparison favors the latter."""
    wanted = next((name for name in ("avx512f", "avx2") if name in processor_flags()), "baseline")
    if loops != wanted:
        raise SystemExit(f"the loops are compiled for {loops}, and this processor has {wanted}; build them with lab/measure")


def processor_flags() -> set[str]:
    """Returns the processor's features; empty if the system does not report them."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return set(next((line.split(":", 1)[1] for line in lines if line.startswith("flags")), "").split())


def ratio(seconds: dict[str, list[float]], way: str) -> float:
    """Returns the ratio to the loop's time: the median over rounds."""
    if way not in seconds:
        return float("nan")
    return statistics.median(one / plain for one, plain in zip(seconds[way], seconds["plain"]))


def table(options: Namespace, report: Report) -> None:
    """Returns the cases over tables of three sizes, the largest also in long chunks, and the sum
    of 64 times as many numbers as its tuples."""
    sizes = [1 << max(1, options.tuples - less) for less in (4, 2, 0)]
    chunks = ["--chunk-rows", str(LONG_CHUNK)]
    runs = [run(options, size) for size in sizes]
    runs.append(run(options, sizes[-1], *chunks))
    sums = [run(options, 1 << (options.tuples + 6), "--wide", *more) for more in ([], chunks)]
    report.raw["runs"] = [*runs, *sums]
    report.text += [
        "",
        f"One thread; tuples of two 32-bit numbers, as in the thesis, in chunks of 8,192, as programs have them, and last of {LONG_CHUNK:,}. `[Scalar]` ends in a register, the rest in memory. {options.repeat} rounds, in which "
        "the ways take turns; × are medians of the ratio to a loop in Rust in the same round, which reads and writes as much, checks for overflow as SQL does, and "
        f"is compiled for the processor at hand ({runs[0]['loops']}), as code of sub-operators is.",
    ]
    rows = []
    for number, case in enumerate(runs[-1]["cases"]):
        of_size = [found["cases"][number]["seconds"] for found in runs]
        largest = of_size[len(sizes) - 1]
        plain = statistics.median(largest["plain"])
        rows.append(
            [
                case["case"],
                f"{plain * 1e3:.2f}",
                f"{sizes[-1] * TUPLE_BYTES / plain / 1e9:.1f}",
                *(times(ratio(seconds, "compiled")) for seconds in of_size),
                times(ratio(largest, "vectorized")),
            ]
        )
    names = [f"2^{size.bit_length() - 1}" for size in sizes]
    columns = [*(f"compiled, {name} tuples, ×" for name in names), f"compiled, {names[-1]}, long chunks, ×"]
    report.table(["sub-operator", "loop, ms", "loop, GB/s", *columns, f"vectorized, {names[-1]}, ×"], rows)
    seconds, in_long_chunks = (found["cases"][0]["seconds"] for found in sums)
    plain = statistics.median(seconds["plain"])
    report.text += [
        f"The sum of 2^{options.tuples + 6} numbers of 64 bits: a loop takes {plain:.3f} s ({sums[0]['tuples'] * NUMBER_BYTES / plain / 1e9:.1f} GB/s), compiled "
        f"{times(ratio(seconds, 'compiled'))} times as long, in long chunks {times(ratio(in_long_chunks, 'compiled'))} times, vectorized "
        f"{times(ratio(seconds, 'vectorized'))} times. Sums are exact, in 128 bits; the loop's are of 64.",
        "",
        f"The thesis (micro-operators, §4.2) finds {THESIS:.1f} at most for most of its micro-operators, which are templates compiled with their queries.",
    ]
    largest = runs[len(sizes) - 1]["cases"]
    cases = [case["case"] for case in largest]
    series = {
        way: [ratio(case["seconds"], name) for case in largest]
        for way, name in {"compiled": "compiled", "vectorized": "vectorized"}.items()
    }
    report.plots[""] = plot.bars(f"Sub-operators beside plain loops, {names[-1]} tuples", "times as long", cases, series)
