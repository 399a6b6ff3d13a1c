#!/usr/bin/env python3
"""Checks what is particular to serverless workers: odd shares of data, errors, killed workers, failing services, leftovers.

    tests/serverless.py --tessera target/release/tessera --data data/tpch-0.01 --workers 1,4,16 --kills 20

Ends with `N passed, N failed` and exit code 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import Checks
from mpi import HEAVY_COUNTED, HEAVY_KEY, ODD_SHARES, write_tables

QUERY = """select l_suppkey, count(*), sum(o_totalprice) from lineitem join orders on l_orderkey = o_orderkey
    group by 1 order by 2, 1"""

ERRORS = {
    "an error in one row of one worker": ("select sum(1 / (v - 4711)) from many", "division by zero"),
    "too little memory": ("set memory = '1MiB'; select count(*) from (select v, t, count(*) from many group by v, t) x", "--worker-memory"),
    "a local file": ("select count(*) from '{odd}/many.parquet'", "read only from an object store"),
}


class Program:
    """The program under test, with caches and temporary files of its own."""

    def __init__(self, binary: Path, scratch: Path):
        self.binary = binary
        self.temporary = scratch / "tmp"
        self.temporary.mkdir()
        self.environment = os.environ | {"XDG_CACHE_HOME": str(scratch / "cache"), "TMPDIR": str(self.temporary)}

    def start(self, data: Path, sql: str, workers: int = 0, *options: str, **environment: str) -> subprocess.Popen[str]:
        """Starts statements."""
        place = ["--platform", "serverless", "--workers", str(workers)] if workers else []
        command = [str(self.binary), str(data), "--format", "csv", "--threads", "1", *place, *options, "-c", sql]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment | environment,
        )

    def run(self, data: Path, sql: str, workers: int = 0, *options: str, **environment: str) -> tuple[int, str, str]:
        """Exit code, rows, messages."""
        running = self.start(data, sql, workers, *options, **environment)
        rows, messages = running.communicate(timeout=180)
        return running.returncode, rows, messages

    def workers(self) -> list[int]:
        """Processes that run as workers of this program."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue
            if line[:2] == [os.fsencode(self.binary.resolve()), b"worker"]:
                found.append(int(entry.name))
        return found

    def leftovers(self, temporary: bool = True) -> list[str]:
        """Processes and objects that are still there."""
        files = [str(path) for path in self.temporary.glob("tessera-serverless-*")] if temporary else []
        return [f"process {pid}" for pid in self.workers()] + files


def kill_one(
    program: Program, data: Path, sql: str, expected: str, rng: random.Random, longest_s: float
) -> str | None:
    """Kills a worker at some moment; what is wrong afterwards, or None."""
    running = program.start(data, sql, 4)
    delay = rng.uniform(0.15, longest_s)
    time.sleep(delay)
    victims = program.workers()
    if not victims or running.poll() is not None:
        running.communicate(timeout=60)
        return "missed"
    try:
        os.kill(rng.choice(victims), signal.SIGKILL)
    except ProcessLookupError:
        running.communicate(timeout=60)
        return "missed"
    try:
        rows, messages = running.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        running.kill()
        return f"after {delay:.2f} s: still running a minute after the kill"
    if running.returncode != 0 or rows != expected:
        return f"after {delay:.2f} s: exit code {running.returncode}, {len(rows)} bytes: {messages[-1000:]}"
    left = program.leftovers()
    return f"after {delay:.2f} s: left behind {left}" if left else None


def main() -> int:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", type=Path, required=True, help="the program under test")
    parser.add_argument("--data", type=Path, help="TPC-H tables, for killing; none: no killing")
    parser.add_argument("--workers", default="1,4,16", help="numbers of workers")
    parser.add_argument("--kills", type=int, default=10, help="how often a worker is killed")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of killing")
    options = parser.parse_args()
    checks = Checks()
    note = checks.note

    with tempfile.TemporaryDirectory(prefix="workers-") as scratch:
        program = Program(options.tessera.resolve(), Path(scratch))
        odd = Path(scratch) / "odd"
        odd.mkdir()
        write_tables(odd)
        for what, sql in ODD_SHARES.items():
            _, expected, _ = program.run(odd, sql)
            for workers in (int(part) for part in options.workers.split(",")):
                code, rows, messages = program.run(odd, sql, workers)
                wrong = None if code == 0 and rows == expected else f"{rows[-600:]} {messages[-600:]} instead of {expected[-600:]}"
                note(wrong, f"{what} on {workers} workers")
        for what, (sql, message) in ERRORS.items():
            code, _, messages = program.run(odd, sql.format(odd=odd), 3)
            right = code == 1 and len(messages.splitlines()) == 1 and message in messages and "worker" in messages
            note(None if right else f"exit code {code}: {messages[-600:]}", what)
        note(str(program.leftovers()) if program.leftovers() else None, "nothing is left behind")

        many = "select count(*), sum(length(t)) from (select distinct v, t from many) x"
        _, expected, _ = program.run(odd, many)
        faults = {
            "a store that fails": {"TESSERA_LOCAL_STORE_FAULTS": "503=0.1,reset=0.05,cut=0.05,late=0.2,late_ms=20"},
            "a function service that fails": {"TESSERA_LOCAL_INVOKE_FAULTS": "503=0.2,reset=0.2,429=0.1"},
            "cold starts": {"TESSERA_LOCAL_COLD_START_MS": "700"},
        }
        for what, environment in faults.items():
            code, rows, messages = program.run(odd, many, 4, **environment)
            note(None if (code, rows) == (0, expected) else f"exit code {code}: {messages[-800:]}", what)
        code, rows, messages = program.run(odd, "explain analyze select t, sum(v) from wide group by t", 4)
        note(None if code == 0 and "-- 100000 rows" in rows else f"{rows} {messages}", "figures of all workers together")
        code, _, messages = program.run(odd, many, 4, TESSERA_LOCAL_CONCURRENCY="2")
        right = code == 1 and "could not be started" in messages and "--workers" in messages
        note(None if right else f"exit code {code}: {messages[-800:]}", "more workers than may run")
        check_heavy(options, program, odd, note)
        if options.data:
            check_uploads(program, options.data, note)
            check_data(options, program, note)
    return checks.end()


def kill_some(count: int, program: Program, data: Path, sql: str, rng: random.Random, note) -> None:
    """Kills workers at any moment of a statement, so many of them."""
    _, expected, _ = program.run(data, sql)
    started = time.monotonic()
    program.run(data, sql, 4)
    longest = time.monotonic() - started
    kills = 0
    for _ in range(count * 5):
        if kills == count:
            break
        problem = kill_one(program, data, sql, expected, rng, longest)
        if problem != "missed":
            kills += 1
            note(problem, f"kill {kills} of {sql[:60]}")


def check_uploads(program: Program, data: Path, note) -> None:
    """A folder is uploaded once, also when several programs begin at once, and again when it was changed or overwritten."""
    sql = "select count(*), sum(l_quantity), min(l_comment) from lineitem"
    _, expected, _ = program.run(data, sql)
    uploaded = program.temporary.parent / "cache" / "tessera"
    shutil.rmtree(uploaded, ignore_errors=True)
    late = {"TESSERA_LOCAL_STORE_FAULTS": "late=1,late_ms=100"}
    running = []
    for _ in range(6):
        running.append(program.start(data, sql, 2, **late))
        time.sleep(0.1)
    for number, one in enumerate(running):
        rows, messages = one.communicate(timeout=180)
        wrong = None if (one.returncode, rows) == (0, expected) else f"exit code {one.returncode}: {messages[-800:]}"
        note(wrong, f"program {number} of six that upload one folder")
    before = next(uploaded.rglob("lineitem.parquet"))
    before.write_bytes(bytes(before.stat().st_size))
    code, rows, messages = program.run(data, sql, 2)
    note(None if (code, rows) == (0, expected) else f"exit code {code}: {messages[-800:]}", "what others wrote there is replaced")


def check_heavy(options: argparse.Namespace, program: Program, odd: Path, note) -> None:
    """Joins on a key that most tuples have."""
    sql = ODD_SHARES[HEAVY_KEY]
    _, expected, _ = program.run(odd, sql)
    late = {"TESSERA_LOCAL_STORE_FAULTS": "503=0.1,cut=0.05,late=0.2,late_ms=20"}
    for workers, environment in ((3, {}), (4, late)):
        code, rows, messages = program.run(odd, sql, workers, **environment)
        note(None if (code, rows) == (0, expected) else f"{rows[-600:]} {messages[-600:]}", f"{HEAVY_KEY} on {workers} workers")
    even = HEAVY_COUNTED.replace("skewed", "wide").replace("many", "wide")
    for statement, workers, heavy in ((HEAVY_COUNTED, 4, 1), (HEAVY_COUNTED, 3, 1), (HEAVY_COUNTED, 1, 0), (even, 4, 0)):
        code, rows, messages = program.run(odd, statement, workers)
        counts = [int(count) for count in re.findall(r"heavy partitions (\d+)", rows)]
        # One worker has all of both sides anyway.
        right = code == 0 and len(counts) == (2 if workers > 1 else 0) and sum(counts) == heavy
        note(None if right else f"{rows} {messages}", f"{heavy} heavy partitions on {workers} workers")
    if options.data:
        kill_some(options.kills // 2, program, odd, sql, random.Random(options.seed), note)


def check_data(options: argparse.Namespace, program: Program, note) -> None:
    """What needs more data: killing, memory, ends of all kinds, requests."""
    data = options.data
    started = time.monotonic()
    program.run(data, QUERY, 4)
    longest = time.monotonic() - started
    # A worker that takes more than it may.
    big = "select count(*) from (select l_orderkey, l_partkey, l_comment, count(*) from lineitem group by 1, 2, 3) x"
    code, _, messages = program.run(data, big, 1, "--worker-memory", "128MiB")
    right = code == 1 and len(messages.splitlines()) == 1 and "worker 0 of 1" in messages and "--worker-memory" in messages
    note(None if right else f"exit code {code}: {messages[-800:]}", "a worker over its memory")
    # Requests: one object per sender and exchange; nothing is uploaded twice.
    code, _, messages = program.run(data, "select l_returnflag, count(*) from lineitem group by 1 order by 1", 4, "--timing")
    found = re.search(r"Requests: (\d+) PUT, (\d+) GET", messages)
    right = code == 0 and found and int(found[1]) <= 2 * 4 + 2
    note(None if right else f"exit code {code}: {messages[-800:]}", "requests are few")
    rng = random.Random(options.seed)
    kill_some(options.kills, program, data, QUERY, rng, note)
    # What would differ is not done again.
    random_rows = "select count(*), sum(r) from (select random() as r, l_orderkey from lineitem) x group by l_orderkey % 7"
    for _ in range(10):
        running = program.start(data, random_rows, 4, TESSERA_LOCAL_COLD_START_MS="1", TESSERA_LOCAL_STORE_FAULTS="late=1,late_ms=40")
        time.sleep(0.5)
        victims = program.workers()
        if victims:
            os.kill(rng.choice(victims), signal.SIGKILL)
        _, messages = running.communicate(timeout=60)
        if running.returncode:
            break
    note(None if "random()" in messages else messages, "a lost worker of a statement that differs each time")
    for name, signal_number in (("Ctrl-C", signal.SIGINT), ("kill -9 of the driver", signal.SIGKILL)):
        running = program.start(data, QUERY, 4)
        time.sleep(longest / 2)
        running.send_signal(signal_number)
        running.communicate(timeout=30)
        time.sleep(0.5)
        left = program.leftovers(temporary=signal_number == signal.SIGINT)
        note(f"left behind {left}" if left else None, name)
    program.run(data, "select count(*) from nation", 1)
    note(str(program.leftovers()) if program.leftovers() else None, "the next start clears up after a kill")


if __name__ == "__main__":
    sys.exit(main())
