#!/usr/bin/env python3
"""Measures anonymous memory (RssAnon) at a small budget, above that of an idle session.

    tests/resident.py --tessera T --memory 64MB DIRECTORY QUERY.sql…   # statement files over a database
    tests/resident.py --tessera T --memory 64MB --slt tests/sql/*.slt  # each record of the scripts
    tests/resident.py --tessera T --memory 32MB --cases DIRECTORY      # resident_cases.py, over TPC-H
    tests/resident.py --tessera T --memory 64MB --wide                 # files of a thousand columns

The cases cover every sub-operator; their short results must equal those with much memory. The files
of --wide are generated. A statement that needs more than its budget may fail with an error that
says so. It may use its budget, 64 MiB outside of the budget (code, stacks, planning), and two
chunks for each worker and column. Ends with `N within, N above` and exit code 1 if any is above.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from resident_cases import ELSEWHERE, OF_PLATFORMS, PLAN_FILES, PLANS, STATEMENTS, TOO_LARGE, WIDE_COLUMNS, wide_statements, write_wide

ROOT = Path(__file__).resolve().parent.parent
UNCOUNTED_BYTES = 64 << 20
CHUNK_ROWS, VALUE_BYTES = 8192, 16
SAMPLE_S = 0.004
SHORT_BYTES = 64 << 10
MUCH_MEMORY = "4GB"
UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


@dataclass
class Peak:
    """The peak anonymous memory of a run, and how the run ended."""

    bytes: int
    seconds: float
    code: int
    error: str
    rows: list[str] | None
    """The lines of a short result, sorted."""


def size_of(text: str) -> int:
    return int(text[:-2]) * UNITS[text[-2:].upper()]


def anonymous(pid: int) -> int:
    try:
        found = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found.group(1)) << 10 if found else 0


def drain(stream: IO[bytes], kept: bytearray) -> None:
    """Reads a stream to its end; keeps it while it is short."""
    while part := stream.read1(1 << 20):
        if len(kept) <= SHORT_BYTES:
            kept += part


def peak_of(command: list[str], limit_s: float, directory: Path | None = None) -> Peak:
    """Runs a command and samples its memory."""
    started, peak = time.monotonic(), 0
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, cwd=directory) as process:
            result = bytearray()
            reader = threading.Thread(target=drain, args=(process.stdout, result))
            reader.start()
            while process.poll() is None:
                peak = max(peak, anonymous(process.pid))
                if time.monotonic() - started > limit_s:
                    process.kill()
                time.sleep(SAMPLE_S)
            reader.join()
        errors.seek(0)
        said = errors.read().decode(errors="replace")
        rows = sorted(result.decode().splitlines()) if len(result) <= SHORT_BYTES else None
    return Peak(peak, time.monotonic() - started, process.returncode, said.strip().splitlines()[0][:150] if said.strip() else "", rows)


def statements(script: Path) -> list[str]:
    """Returns the statements of a script, each after the preceding ones that set something up."""
    setup, found = [], []
    for block in re.split(r"\n\s*\n", script.read_text()):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if not lines or not lines[0].startswith(("query", "statement")):
            continue
        sql = "\n".join(lines[1:]).split("\n----")[0].rstrip(";")
        if lines[0].startswith("statement ok"):
            setup.append(sql)
        else:
            found.append(";\n".join([*setup, sql]))
    return found


def plan_file(name: str) -> Path:
    return ROOT / "plans" / f"{name}.plan"


def check_operators(tessera: str, database: Path) -> None:
    """Checks that each documented sub-operator is in the plan of a case or has a reason to be
    missing."""
    explained = "".join(f"explain {sql};\n" for sql in STATEMENTS.values())
    command = [tessera, str(database), "--format", "csv", "-f", "-"]
    plans = subprocess.run(command, input=explained, capture_output=True, text=True, check=True).stdout
    plans += "".join(PLANS.values()) + "".join(plan_file(name).read_text() for name in PLAN_FILES)
    used = set(re.findall(r"= (\w+)\(", plans))
    listed = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "reference" / "sub-operators.md").read_text(), re.MULTILINE))
    missing = {name for name in listed - used - set(ELSEWHERE) if not name.startswith(OF_PLATFORMS)}
    if missing:
        sys.exit(f"no case in resident_cases.py runs {', '.join(sorted(missing))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", required=True)
    parser.add_argument("--memory", default="64MB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit-s", type=float, default=120)
    parser.add_argument("--columns", type=int, default=20, help="columns of the widest chunk, for the bound")
    parser.add_argument("--slt", action="store_true", help="the files are scripts of records")
    parser.add_argument("--cases", action="store_true", help="the statements of resident_cases.py")
    parser.add_argument("--wide", action="store_true", help="the wide statements of resident_cases.py")
    parser.add_argument("paths", nargs="*", type=Path, help="a database and statements, or scripts of records")
    options = parser.parse_args()
    if options.wide:
        with tempfile.TemporaryDirectory() as directory:
            write_wide(Path(directory))
            options.paths, options.columns = [Path(directory)], WIDE_COLUMNS
            sys.exit(measured(options))
    sys.exit(measured(options))


def measured(options: argparse.Namespace) -> bool:
    """Runs the cases and prints their memory; returns whether one used too much."""
    base = [options.tessera, *([] if options.slt else [str(options.paths[0])])]
    rest = ["--memory", options.memory, "--threads", str(options.threads), "--format", "csv"]
    base += rest
    # Idle: the memory after a small statement.
    idle = max(peak_of([*base, "-c", "select 1"], 60).bytes for _ in range(3))
    bound = size_of(options.memory) + UNCOUNTED_BYTES + 2 * options.threads * options.columns * CHUNK_ROWS * VALUE_BYTES
    print(f"idle {idle >> 20} MiB, bound {bound >> 20} MiB above it")
    if options.wide:
        cases = [(name, ["-c", sql]) for name, sql in wide_statements().items()]
    elif options.slt:
        cases = [(f"{path.stem}:{i}", ["-c", sql]) for path in options.paths for i, sql in enumerate(statements(path))]
    elif options.cases:
        check_operators(options.tessera, options.paths[0])
        cases = [(name, ["-c", sql]) for name, sql in STATEMENTS.items()]
        plans = {name: plan_file(name).read_text() for name in PLAN_FILES} | PLANS
        cases += [(f"plan {name}", plan) for name, plan in plans.items()]
    else:
        cases = [(path.stem, ["-f", str(path)]) for path in options.paths[1:]]
    above = 0
    for name, arguments in cases:
        if isinstance(arguments, str):
            with tempfile.NamedTemporaryFile("w", suffix=".plan") as plan:
                plan.write(arguments)
                plan.flush()
                command = [str(Path(options.tessera).resolve()), "run", plan.name, *rest]
                peak = peak_of(command, options.limit_s, options.paths[0])
        else:
            peak = peak_of([*base, *arguments], options.limit_s)
        # A statement that ends early uses little memory: only statements that cannot fit may fail,
        # and only for lack of memory.
        ends = peak.code == 0 or "needs more memory than allowed" in peak.error and (not (options.cases or options.wide) or name in TOO_LARGE)
        over = peak.bytes - idle > bound or not (ends or options.slt)
        if (options.cases or options.wide) and peak.code == 0 and peak.rows is not None and not isinstance(arguments, str):
            much = [MUCH_MEMORY if part == options.memory else part for part in base]
            wanted = peak_of([*much, *arguments], options.limit_s)
            if wanted.rows != peak.rows:
                over = True
                print(f"{name}: {peak.rows[:5]} instead of {wanted.rows and wanted.rows[:5]}", flush=True)
        above += over
        if not options.slt or over:
            mark = "ABOVE" if over else ""
            print(f"{name}: {(peak.bytes - idle) >> 20} MiB, {peak.seconds:.2f} s, code {peak.code} {peak.error} {mark}", flush=True)
    print(f"{len(cases) - above} within, {above} above")
    return above > 0


if __name__ == "__main__":
    main()
