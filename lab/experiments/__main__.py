"""The command line of the experiments; `lab/measure` builds the programs and calls it."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from harness.machine import describe
from harness.suites import COLUMNS

from . import micro, modularis, phases, waterfall
from .report import PLACE, Report

EXPERIMENTS = {
    "table-4.1": ("The join phase by phase: in one piece and of sub-operators", phases.table),
    "fig-2.8": ("TPC-H on platforms local, mpi and serverless", modularis.tpch),
    "fig-2.9": ("The join by number of ranks: in one piece and of sub-operators", phases.modularis),
    "fig-2.10": ("Distributed GROUP BY of sub-operators", modularis.grouping),
    "fig-2.11": ("Sequences of joins: naive and optimized", modularis.sequences),
    "fig-4.1": ("Sub-operators one at a time, and plain loops", micro.table),
    "waterfall": ("The join from two-sided messages to one piece", waterfall.waterfall),
}

# Experiments without MPI.
WITHOUT_RANKS = ["fig-4.1"]


def main() -> int:
    """Runs one experiment."""
    parser = argparse.ArgumentParser(prog="lab/measure", description=__doc__.splitlines()[0])
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--mpi", choices=["mpich", "openmpi"], default="mpich", help="MPI library (default mpich)")
    parser.add_argument("--ranks", type=int, help="number of ranks (default 2; 1 and 2 in experiments over ranks)")
    parser.add_argument("--tuples", type=int, default=24, help="tuples of a relation, as a power of two (default 24)")
    parser.add_argument("--cache-bits", type=int, default=12, help="tuples of a part that fits the cache, as a power of two (default 12)")
    parser.add_argument("--sf", type=float, default=1.0, help="scale factor of TPC-H (default 1)")
    parser.add_argument("--data", type=Path, help="directory of TPC-H's tables; generated if empty")
    parser.add_argument("--columns", choices=[*COLUMNS, "both"], help="the columns of TPC-H's tables (default: as they are or are generated)")
    parser.add_argument("--repeat", type=int, default=7, help="rounds (default 7)")
    parser.add_argument("--out", type=Path, help="directory for JSON, page and plots (default: print the page only)")
    parser.add_argument("--programs", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--tessera", type=Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    title, run = EXPERIMENTS[options.experiment]
    command = ["lab/measure", *without(sys.argv[1:], ["--programs", "--tessera"])]
    report = Report(options.experiment, title, command, describe(options.tessera))
    if options.experiment not in WITHOUT_RANKS:
        report.mpi = library(options.mpi)
        report.place = PLACE
    run(options, report)
    report.write(options.out)
    return 0


def library(name: str) -> str:
    """Returns the MPI launcher, and the version that it reports."""
    said = subprocess.run(["mpiexec", "--version"], capture_output=True, text=True, check=False).stdout
    lines = [" ".join(line.replace("Version:", "").split()) for line in said.splitlines() if "ersion" in line or "Open MPI" in line]
    return f"{name}, {lines[0]}" if lines else name


def without(arguments: list[str], names: list[str]) -> list[str]:
    """Returns the arguments without some options and their values."""
    return [
        argument
        for before, argument in zip([None, *arguments], arguments)
        if argument not in names and before not in names
    ]


if __name__ == "__main__":
    sys.exit(main())
