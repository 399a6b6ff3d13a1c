#!/usr/bin/env python3
"""Tests the serverless platform: uneven shares, errors, killed workers, failing services, leftovers.

    tests/serverless.py --tessera target/release/tessera --data data/tpch-0.01 --workers 1,4,16 --kills 20

Ends with `N passed, N failed` and exit code 1 if a check failed.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import http.server
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import conformance
from checks import Checks, Moments, Shot, awaited, marked
from mpi import BUDGET, HEAVY_COUNTED, HEAVY_KEY, LARGE, ODD_SHARES, write_tables
from resident import UNCOUNTED_BYTES, anonymous, size_of
from stores import own_store

QUERY = """select l_suppkey, count(*), sum(o_totalprice) from lineitem join orders on l_orderkey = o_orderkey
    group by 1 order by 2, 1"""

ERRORS = {
    "an error in one row of one worker": ("select sum(1 / (v - 4711)) from many", "division by zero"),
    "too little memory": ("set memory = '1MiB'; select count(*) from (select v, t, count(*) from many group by v, t) x", "--worker-memory"),
    "a local file": ("select count(*) from '{odd}/many.parquet'", "cannot read the local file"),
}

IN_PIECES = f"set memory = '{BUDGET}'; " + LARGE["an exchange"]

# In the first, the gathered data exceeds the budget as well; in the second, only the first worker's
# result does.
LARGE_RESULTS = {
    "a result larger than the budget": "select v, k, t from long where k % 5 < 2",
    "a result that grows on the first worker": "select v, g, t from (select v, t from many order by v limit 4000) x, generate_series(1, 200) as s(g)",
}
IN_PARTS = f"set memory = '{BUDGET}'; " + LARGE_RESULTS["a result that grows on the first worker"]


class Program:
    """The program under test, with its own caches and temporary files."""

    def __init__(self, binary: Path, scratch: Path):
        self.binary = binary
        self.temporary = scratch / "tmp"
        self.temporary.mkdir()
        self.environment = os.environ | {"XDG_CACHE_HOME": str(scratch / "cache"), "TMPDIR": str(self.temporary)}

    def start(self, data: Path | str, sql: str, workers: int = 0, *options: str, **environment: str) -> subprocess.Popen[str]:
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

    def run(self, data: Path | str, sql: str, workers: int = 0, *options: str, **environment: str) -> tuple[int, str, str]:
        """Runs statements; returns the exit code, rows and messages."""
        running = self.start(data, sql, workers, *options, **environment)
        rows, messages = running.communicate(timeout=180)
        return running.returncode, rows, messages

    def measured(self, data: Path | str, sql: str, workers: int, *options: str) -> tuple[int, str, str, int, int]:
        """Like `run`; also returns the peak anonymous memory of any worker and of the program."""
        running = self.start(data, sql, workers, *options)
        peaks = [0, 0]

        def look() -> None:
            while running.poll() is None:
                peaks[0] = max([peaks[0], *map(anonymous, self.workers())])
                peaks[1] = max(peaks[1], anonymous(running.pid))
                time.sleep(0.005)

        looking = threading.Thread(target=look)
        looking.start()
        rows, messages = running.communicate(timeout=180)
        looking.join()
        return running.returncode, rows, messages, *peaks

    def workers(self) -> list[int]:
        """Returns the worker processes of this program."""
        found = []
        for pid in marked(f"TMPDIR={self.temporary}"):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if line[:2] == [os.fsencode(self.binary.resolve()), b"worker"]:
                found.append(pid)
        return found

    def first_workers(self) -> list[int]:
        """Returns the first workers, which write results: the function service starts their
        processes first."""
        return [pid for pid in self.workers() if re.search(rb"AWS_LAMBDA_RUNTIME_API=[^\0]*/worker/1\0", environment_of(pid))]

    def leftovers(self, temporary: bool = True) -> list[str]:
        """Returns leftover processes and objects."""
        files = [str(path) for path in self.temporary.glob("tessera-serverless-*")] if temporary else []
        return [f"process {pid}" for pid in self.workers()] + files


def environment_of(pid: int) -> bytes:
    """Returns the environment that a process was started with."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


REPEATED = re.compile(r"^Workers: .*\((\d+) repeated\)", re.MULTILINE)


def kill_one(
    program: Program, data: Path, sql: str, expected: str, rng: random.Random, moments: Moments, of: Callable[[], list[int]]
) -> Shot:
    """Kills one of these workers at a random moment. A kill is a hit if the driver had to rerun a
    worker's share."""
    running = program.start(data, sql, 4, "--timing")
    awaited(program.workers, lambda: running.poll() is not None)
    delay = moments.wait()
    victims = of()
    if not kill_any(victims, rng):
        moments.late()
    try:
        rows, messages = running.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate()
        return Shot(bool(victims), f"after {delay:.2f} s: still running a minute after the kill")
    hit = REPEATED.search(messages) is not None
    if running.returncode != 0 or rows != expected:
        return Shot(hit, f"after {delay:.2f} s: exit code {running.returncode}, {len(rows)} bytes: {messages[-1000:]}")
    left = program.leftovers()
    return Shot(hit, f"after {delay:.2f} s: left behind {left}" if left else None)


def kill_any(victims: list[int], rng: random.Random) -> bool:
    """Kills one of these processes; returns whether it existed."""
    try:
        if victims:
            os.kill(rng.choice(victims), signal.SIGKILL)
        return bool(victims)
    except ProcessLookupError:
        return False


def end_driver(
    program: Program, data: Path | str, by: signal.Signals, moments: Moments, sql: str = QUERY, **environment: str
) -> Shot:
    """Kills the program while it has workers."""
    running = program.start(data, sql, 4, **environment)
    awaited(program.workers, lambda: running.poll() is not None)
    moments.wait()
    has_workers = bool(program.workers())
    running.send_signal(by)
    running.communicate(timeout=30)
    ended = (130, -signal.SIGINT) if by == signal.SIGINT else (-signal.SIGKILL,)
    hit = has_workers and running.returncode in ended
    if not hit:
        moments.late()
    time.sleep(0.5)
    left = program.leftovers(temporary=by == signal.SIGINT)
    if running.returncode not in (0, *ended):
        return Shot(hit, f"exit code {running.returncode}")
    return Shot(hit, f"left behind {left}" if left else None)


def lose_unrepeatable(program: Program, data: Path, rng: random.Random) -> Shot:
    """Kills a worker of a nondeterministic statement, which must not be rerun."""
    sql = "select count(*), sum(r) from (select random() as r, l_orderkey from lineitem) x group by l_orderkey % 7"
    late = {"TESSERA_LOCAL_COLD_START_MS": "1", "TESSERA_LOCAL_STORE_FAULTS": "late=1,late_ms=40"}
    running = program.start(data, sql, 4, "--timing", **late)
    awaited(lambda: len(program.workers()) == 4, lambda: running.poll() is not None)
    time.sleep(rng.uniform(0, 0.2))
    kill_any(program.workers(), rng)
    _, messages = running.communicate(timeout=60)
    if running.returncode == 0:
        return Shot(False, messages if REPEATED.search(messages) else None)
    return Shot(True, None if "random()" in messages else messages)


def main() -> int:
    """Runs all checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", type=Path, required=True, help="the program under test")
    parser.add_argument("--data", type=Path, help="TPC-H tables, for killing; none: no killing")
    parser.add_argument("--workers", default="1,4,16", help="numbers of workers")
    parser.add_argument("--kills", type=int, default=10, help="number of kills of a worker")
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
        places = {f"on {workers} workers": partial(program.run, workers=int(workers)) for workers in options.workers.split(",")}
        conformance.check(program.run, places, Path(scratch) / "suite", note)
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
        check_heavy(options, program, odd, checks)
        check_pieces(options, program, odd, checks)
        check_parts(options, program, odd, checks)
        if options.data:
            check_uploads(program, options.data, note)
            check_data(options, program, checks)
    return checks.end()


def kill_some(
    what: str, count: int, program: Program, data: Path, sql: str, rng: random.Random, checks: Checks, of: Callable[[], list[int]] | None = None
) -> None:
    """Kills workers at random moments of a statement until enough kills have hit."""
    _, expected, _ = program.run(data, sql)
    started = time.monotonic()
    program.run(data, sql, 4)
    moments = Moments(rng, time.monotonic() - started)
    checks.shots(f"a killed worker of {what}", count, lambda _: kill_one(program, data, sql, expected, rng, moments, of or program.workers))


def check_uploads(program: Program, data: Path, note) -> None:
    """Checks that a folder is uploaded once, also by concurrent programs, and again after it was
    changed or overwritten."""
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
    written = before.stat()
    code, rows, messages = program.run(data, sql, 2)
    note(None if (code, rows) == (0, expected) else f"exit code {code}: {messages[-800:]}", "a folder that is there already")
    again = (before.stat().st_ino, before.stat().st_mtime_ns) != (written.st_ino, written.st_mtime_ns)
    note("it was" if again else None, "what is there already is not uploaded again")
    before.write_bytes(bytes(before.stat().st_size))
    code, rows, messages = program.run(data, sql, 2)
    note(None if (code, rows) == (0, expected) else f"exit code {code}: {messages[-800:]}", "what others wrote there is replaced")


def check_heavy(options: argparse.Namespace, program: Program, odd: Path, checks: Checks) -> None:
    """Checks joins on a key that most tuples have."""
    note = checks.note
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
        # A single worker has all of both sides anyway.
        right = code == 0 and len(counts) == (2 if workers > 1 else 0) and sum(counts) == heavy
        note(None if right else f"{rows} {messages}", f"{heavy} heavy partitions on {workers} workers")
    if options.data:
        kill_some(HEAVY_KEY, -(-options.kills // 2), program, odd, sql, random.Random(options.seed), checks)


def check_pieces(options: argparse.Namespace, program: Program, odd: Path, checks: Checks) -> None:
    """Checks exchanges larger than the budget: on several numbers of workers, with failing stores,
    lost workers and early ends."""
    note = checks.note
    for number, (what, sql) in enumerate(LARGE.items()):
        workers = 2 + number % 3
        found, expected = program.run(odd, f"set memory = '{BUDGET}'; {sql}", workers), program.run(odd, sql)
        right = found[:2] == (0, expected[1]) and expected[0] == 0
        note(None if right else found[1][-600:] + found[2][-600:], f"{what} larger than {BUDGET} on {workers} workers")
    _, expected, _ = program.run(odd, IN_PIECES)
    late = {"TESSERA_LOCAL_STORE_FAULTS": "503=0.05,reset=0.02,cut=0.05,late=0.1,late_ms=20"}
    code, rows, messages = program.run(odd, IN_PIECES, 3, **late)
    note(None if (code, rows) == (0, expected) else f"{rows[-600:]} {messages[-600:]}", "pieces in a store that fails")
    code, rows, messages = program.run(odd, IN_PIECES.replace("select", "explain analyze select", 1), 3)
    pieces, exchanges = rows.count("pieces = true"), rows.count("object_exchange(")
    note(None if code == 0 and pieces == exchanges > 1 else f"{rows} {messages}", "a plan in pieces is shown")
    note(str(program.leftovers()) if program.leftovers() else None, "no piece is left behind")
    if options.data:
        rng = random.Random(options.seed)
        kill_some("a join in pieces", -(-options.kills // 4), program, odd, IN_PIECES, rng, checks)
        moments = Moments(rng, 3)
        checks.shots("Ctrl-C in pieces", 2, lambda _: end_driver(program, odd, signal.SIGINT, moments, IN_PIECES))


class Lossy(http.server.ThreadingHTTPServer):
    """A proxy for a function service. The first invocation of the first worker arrives, but if
    `lost` is set its caller loses the connection, and so starts a concurrent second attempt."""

    def __init__(self, address: str):
        self.behind = urllib.parse.urlsplit(address).netloc
        self.lost, self.late = threading.Event(), None
        super().__init__(("127.0.0.1", 0), Forwarding)

    def forward(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes, str | None]:
        connection = http.client.HTTPConnection(self.behind, timeout=170)
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.getheader("X-Amz-Function-Error")


class Forwarding(http.server.BaseHTTPRequestHandler):
    """Forwards invocations."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {"Authorization": self.headers["Authorization"]}
        if json.loads(body)["index"] == 0 and self.server.late is None:
            self.server.late = threading.Thread(target=self.server.forward, args=(self.path, body, headers))
            self.server.late.start()
            self.server.lost.wait(60)
            self.close_connection = True
            return
        status, body, error = self.server.forward(self.path, body, headers)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if error:
            self.send_header("X-Amz-Function-Error", error)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def lossy_service(program: Program, data: str, store: dict[str, str]) -> Iterator[tuple[Lossy, dict[str, str]]]:
    """Starts the service of a program with an unread result, behind `Lossy`; returns how to reach
    it."""
    host = program.start(data, IN_PARTS, 1, **store)
    try:
        host.stdout.readline()
        found = dict(entry.partition(b"=")[::2] for entry in environment_of(program.first_workers()[0]).split(b"\0"))
        lossy = Lossy(found[b"AWS_ENDPOINT_URL_LAMBDA"].decode())
        threading.Thread(target=lossy.serve_forever, daemon=True).start()
        at = f"http://127.0.0.1:{lossy.server_port}"
        yield lossy, {"AWS_ENDPOINT_URL_LAMBDA": at, "TESSERA_FUNCTIONS_TOKEN": found[b"TESSERA_FUNCTIONS_TOKEN"].decode(), "TESSERA_FUNCTION": "worker"}
        lossy.shutdown()
    finally:
        host.send_signal(signal.SIGINT)
        host.communicate(timeout=60)


def two_attempts(program: Program, data: str, store: dict[str, str], expected: str, delay_s: float) -> str | None:
    """Checks two concurrent attempts at the first worker. The first is paused until the second's
    result is being read."""
    with lossy_service(program, data, store) as (lossy, service):
        [first] = program.first_workers()
        running = program.start(data, IN_PARTS, 4, "--timing", **(store | service))
        awaited(lambda: lossy.late is not None, lambda: running.poll() is not None)
        time.sleep(delay_s)
        # A worker that has answered would get the second attempt.
        if lossy.late.is_alive():
            os.kill(first, signal.SIGSTOP)
        lossy.lost.set()
        begun = running.stdout.readline()
        os.kill(first, signal.SIGCONT)
        lossy.late.join()
        # Bytes that readline has buffered are kept.
        rows = begun + running.stdout.read()
        _, messages = running.communicate(timeout=60)
    if (running.returncode, rows) == (0, expected):
        return None
    return f"exit code {running.returncode}, {len(rows)} bytes: {messages[-800:]}"


def check_parts(options: argparse.Namespace, program: Program, odd: Path, checks: Checks) -> None:
    """Checks results larger than the budget: rows, memory, lost workers and responses, early ends,
    leftovers in the bucket."""
    note, small = checks.note, "select k, v from one"
    budget = ("--memory", BUDGET)
    idle = [min(peaks) for peaks in zip(*(program.measured(odd, small, 2, *budget)[3:] for _ in range(3)))]
    for what, sql in LARGE_RESULTS.items():
        _, expected, _ = program.run(odd, sql)
        for workers in (2, 4):
            code, rows, messages, *peaks = program.measured(odd, sql, workers, *budget)
            note(None if (code, rows) == (0, expected) else f"exit code {code}, {len(rows)} bytes: {messages[-600:]}", f"{what} on {workers} workers")
            above = [peak - before for peak, before in zip(peaks, idle)]
            shown = " and ".join(f"{bytes >> 20} MiB" for bytes in above)
            print(f"{what} of {len(expected) >> 20} MiB on {workers} workers: {shown} above idle (workers, program)", flush=True)
            right = max(above) <= size_of(BUDGET) + UNCOUNTED_BYTES
            note(None if right else shown, f"memory of {what} on {workers} workers")
    _, expected, _ = program.run(odd, IN_PARTS)
    faults = {
        "parts in a store that fails": {"TESSERA_LOCAL_STORE_FAULTS": "503=0.05,reset=0.02,cut=0.05,late=0.1,late_ms=20"},
        "answers that are lost": {"TESSERA_LOCAL_INVOKE_FAULTS": "cut=0.5"},
    }
    for what, environment in faults.items():
        code, rows, messages = program.run(odd, IN_PARTS, 4, **environment)
        note(None if (code, rows) == (0, expected) else f"exit code {code}, {len(rows)} bytes: {messages[-800:]}", what)
    bucket = program.temporary.parent / "bucket"
    (bucket / "odd").mkdir(parents=True)
    for table in odd.iterdir():
        (bucket / "odd" / table.name).hardlink_to(table)
    with own_store(program.binary, bucket, TMPDIR=str(bucket.parent)) as store:
        store |= {"TESSERA_SCRATCH": "s3://data/scratch"}
        data = "s3://data/odd"

        def left() -> str | None:
            found = [str(path) for path in (bucket / "scratch").rglob("*") if path.is_file()]
            return f"left behind {found[:5]}" if found else None

        code, rows, messages = program.run(data, IN_PARTS, 4, **store)
        note(None if (code, rows) == (0, expected) else f"exit code {code}, {len(rows)} bytes: {messages[-800:]}", "parts in a bucket")
        note(left(), "nothing is left of a result that was read")
        for number in range(2):
            running = program.start(data, IN_PARTS, 4, **store)
            begun = [running.stdout.readline() for _ in range(3)]
            running.stdout.close()
            code, messages = running.wait(timeout=60), running.stderr.read()
            running.stderr.close()
            right = code == 0 and begun == expected.splitlines(keepends=True)[:3]
            note(None if right else f"exit code {code}, {begun}: {messages[-800:]}", f"a result that is not read to its end {number}")
            note(left(), f"nothing is left of a result that is not read to its end {number}")
        rng = random.Random(options.seed)
        for delay_s in (0.1, 0.5, 1):
            note(two_attempts(program, data, store, expected, delay_s), f"two attempts at the first worker after {delay_s} s")
            note(left(), f"nothing is left of two attempts at the first worker after {delay_s} s")
        started = time.monotonic()
        program.run(data, IN_PARTS, 4, **store)
        moments = Moments(rng, time.monotonic() - started)

        def interrupt(_: int) -> Shot:
            shot = end_driver(program, data, signal.SIGINT, moments, IN_PARTS, **store)
            return Shot(shot.hit, shot.problem or left())

        checks.shots("Ctrl-C in parts", 3, interrupt)
    note(str(program.leftovers()) if program.leftovers() else None, "no part is left behind")
    if options.data:
        kill_some("a result in parts", options.kills, program, odd, IN_PARTS, rng, checks, program.first_workers)
        gathered = f"set memory = '{BUDGET}'; " + LARGE_RESULTS["a result larger than the budget"]
        kill_some("a result in pieces and parts", 1, program, odd, gathered, rng, checks, program.first_workers)


def check_data(options: argparse.Namespace, program: Program, checks: Checks) -> None:
    """Checks that need more data: kills, memory, all kinds of ends, requests."""
    data, note = options.data, checks.note
    started = time.monotonic()
    program.run(data, QUERY, 4)
    longest = time.monotonic() - started
    # A worker that exceeds its memory.
    big = "select count(*) from (select l_orderkey, l_partkey, l_comment, count(*) from lineitem group by 1, 2, 3) x"
    code, _, messages = program.run(data, big, 1, "--worker-memory", "128MiB")
    right = code == 1 and len(messages.splitlines()) == 1 and "worker 0 of 1" in messages and "--worker-memory" in messages
    note(None if right else f"exit code {code}: {messages[-800:]}", "a worker over its memory")
    # Requests: one object per sender and exchange, and no repeated uploads.
    code, _, messages = program.run(data, "select l_returnflag, count(*) from lineitem group by 1 order by 1", 4, "--timing")
    found = re.search(r"Requests: (\d+) PUT, (\d+) GET", messages)
    right = code == 0 and found and int(found[1]) <= 2 * 4 + 2
    note(None if right else f"exit code {code}: {messages[-800:]}", "requests are few")
    rng = random.Random(options.seed)
    kill_some("a join and groups", options.kills, program, data, QUERY, rng, checks)
    checks.shots("a lost worker of a statement that differs each time", 1, lambda _: lose_unrepeatable(program, data, rng))
    for what, by in (("Ctrl-C", signal.SIGINT), ("kill -9 of the driver", signal.SIGKILL)):
        moments = Moments(rng, longest / 2)
        checks.shots(what, 2, lambda _, by=by, moments=moments: end_driver(program, data, by, moments))
    program.run(data, "select count(*) from nation", 1)
    note(str(program.leftovers()) if program.leftovers() else None, "the next start clears up after a kill")


if __name__ == "__main__":
    sys.exit(main())
