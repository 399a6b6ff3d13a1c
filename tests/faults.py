#!/usr/bin/env python3
"""Tests faults in operation: full and read-only disks, changing files, misbehaving web servers.

    tests/faults.py --tessera target/release/tessera

Each fault affects one process, which receives statement after statement. The answer must be correct,
or one error that names the cause. Afterwards the next statement must be answered, and no open file,
other file or used disk space may remain. Tests of killed processes are in tests/spill.py, tests/mpi.py
and tests/serverless.py. Mounting needs root; skipped checks are printed. Ends with `N passed, N
failed` and exit code 1 if a check failed.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import Checks, Moments
from program import Program, judged
from stores import free_port, own_store, serving, web_server

ROWS = 400_000
TABLE = f"select n, n % 1000 as k, 'a text of number ' || n as t, cast(n / 8.0 as double) as x from range(1, {ROWS + 1}) r(n)"
TOTALS = "select count(*) as rows, sum(n) as total, max(t) as last, sum(k) as keys from"
FORMATS = ["csv", "csv.gz", "json", "parquet", "arrow"]
LITTLE = 16 << 20
# The size of a mounted disk: less than any file or state of the tests.
DISK = "1m"
FULL, READ_ONLY = re.compile("space|full"), re.compile("ead-only")
# The time limit of a statement on a busy machine.
SECONDS = 60

SPILLING = {
    "a sort": "select count(*), max(n) from (select n from '{file}' order by t desc, x limit 1000000) s",
    "groups": "select count(*), max(c) from (select t, count(*) as c from '{file}' group by t) s",
    "a join": "select count(*), max(a.n) from '{file}' a join '{file}' b on a.t = b.t",
    "distinct values": "select count(distinct t), max(n) from '{file}'",
}


@dataclass
class Bench:
    """Resources of all checks: the program, files of one table in every format, and a scratch
    directory."""

    binary: str
    checks: Checks
    home: Path
    # The result of TOTALS for the table.
    totals: str = ""

    def file(self, form: str) -> Path:
        """Returns the table's file in a format."""
        return self.home / f"table.{form}"

    def program(self, *options: str, budget: int = LITTLE, **environment: str) -> Program:
        """Starts a process of the program."""
        return Program(self.binary, *options, budget=budget, environment=environment)

    def judge(self, program: Program, answer: tuple[str, str], name: str, right: str | None = None) -> str | None:
        """Checks an answer: it must be `right`, or an error that contains `name`; without `right`
        only the error passes.

        Afterwards the process must answer another statement.
        """
        kind, said = answer
        kind = kind or judged(said, name)
        if kind == "rows" and (right is None or said != right):
            return f"a wrong answer: {said[-300:]}"
        if kind not in ("rows", "error"):
            return f"{kind}: {said[-600:]}"
        if kind == "error" and len(re.findall("^error: ", said, re.MULTILINE)) != 1:
            return f"not one error: {said[-600:]}"
        alive = program.ask("select 6 * 7 as answer", SECONDS)
        return None if alive == ("", "answer\n42\n") else f"the next statement: {alive}"

    def prepare(self) -> None:
        """Writes the table, and another one of the same length, in every format."""
        program = self.program(budget=1 << 30)
        for name, table in (("table", TABLE), ("second", TABLE.replace("select n, n %", "select n + 1000000 as n, n %"))):
            for form in ("csv", "json", "parquet", "arrow"):
                kind, said = program.ask(f"copy ({table}) to '{self.home / name}.{form}'", SECONDS)
                if kind or "error" in said:
                    raise RuntimeError(f"{kind} {said}")
            with open(f"{self.home / name}.csv", "rb") as plain, gzip.open(f"{self.home / name}.csv.gz", "wb", 1) as packed:
                shutil.copyfileobj(plain, packed)
        self.totals = program.ask(f"{TOTALS} '{self.file('parquet')}'", SECONDS)[1]
        program.end()


@contextlib.contextmanager
def disk(folder: Path, options: str) -> Iterator[bool]:
    """Mounts a file system at a folder; returns False if mounting is not permitted."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True)
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def left_on(folder: Path, program: Program | None, but: tuple[str, ...] = ()) -> str | None:
    """Returns what is left in a folder: names, open files, used space."""
    names = sorted(set(os.listdir(folder)) - set(but))
    open_files = program.open_files(folder) if program and program.child else []
    if names or open_files:
        return f"left behind: {names} {open_files}"
    state = os.statvfs(folder)
    return f"{state.f_blocks - state.f_bfree} blocks are taken" if not but and state.f_bfree != state.f_blocks else None


def disks(bench: Bench) -> None:
    """Checks full and read-only disks as scratch directory, and for COPY and caches."""
    for what, options, reason in (("full", f"size={DISK}", FULL), ("read-only", "ro", READ_ONLY)):
        folder = bench.home / f"disk-{what}"
        with disk(folder, options) as mounted:
            if not mounted:
                print(f"skipped: a disk that is {what} (this user may not mount one)")
                continue
            scratch(bench, folder, what, reason)
            targets(bench, folder, what, reason)
            caches(bench, folder, what)
            if what == "full":
                store_on_a_full_disk(bench, folder)
                workers_on_a_full_disk(bench, folder)


def scratch(bench: Bench, folder: Path, what: str, reason: re.Pattern[str]) -> None:
    """Checks statements that need a scratch directory on such a disk."""
    program = bench.program("--temp-directory", str(folder))
    statements = {name: sql.format(file=bench.file("parquet")) for name, sql in SPILLING.items()}
    statements["a compressed file"] = f"{TOTALS} '{bench.file('csv.gz')}'"
    for name, sql in statements.items():
        answer = program.ask(sql, SECONDS)
        problem = bench.judge(program, answer, str(folder))
        if problem is None and not reason.search(answer[1]):
            problem = answer[1]
        bench.checks.note(problem or left_on(folder, program), f"{name} with scratch files on a {what} disk")
    program.end()
    stream = f"cat '{bench.file('csv')}' | '{bench.binary}' --temp-directory '{folder}' -c \"{TOTALS} read_csv('/dev/stdin')\""
    ran = subprocess.run(["bash", "-c", stream], capture_output=True, text=True)
    right = ran.returncode == 1 and str(folder) in ran.stderr and reason.search(ran.stderr)
    bench.checks.note(None if right else ran.stderr, f"a stream with scratch files on a {what} disk")


def targets(bench: Bench, folder: Path, what: str, reason: re.Pattern[str]) -> None:
    """Checks COPY to such a disk: no partial file remains, and the previous file is kept."""
    program = bench.program()
    for form in ("csv", "json", "parquet", "arrow"):
        target = folder / f"x.{form}"
        before = what == "full" and form in ("csv", "parquet")
        if before:
            program.ask(f"copy (select 1 as a) to '{target}'")
        old = target.read_bytes() if before else b""
        answer = program.ask(f"copy (select * from '{bench.file('parquet')}') to '{target}'", SECONDS)
        problem = bench.judge(program, answer, str(target))
        if problem is None and not reason.search(answer[1]):
            problem = answer[1]
        if problem is None and before and target.read_bytes() != old:
            problem = "the file that was there is another one"
        target.unlink() if before else None
        bench.checks.note(problem or left_on(folder, program), f"COPY of {form} to a {what} disk")
    program.end()


def caches(bench: Bench, folder: Path, what: str) -> None:
    """Checks that a disk that cannot hold caches changes no answer."""
    with contextlib.suppress(OSError):
        (folder / "all").write_bytes(bytes(4 << 20))
    sql = f"{TOTALS} '{bench.file('parquet')}' where k < 1000"
    command = [bench.binary, "--format", "csv", "-c", sql]
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"XDG_CACHE_HOME": str(folder)})
    bench.checks.note(None if ran.stdout == bench.totals and not ran.stderr else f"{ran}", f"caches on a {what} disk")
    with contextlib.suppress(OSError):
        (folder / "all").unlink()
    shutil.rmtree(folder / "tessera", ignore_errors=True)


def store_on_a_full_disk(bench: Bench, folder: Path) -> None:
    """Checks that a store with a full disk rejects objects and keeps no partial object."""
    with own_store(Path(bench.binary), folder / "bucket") as variables:
        program = bench.program(**variables, TESSERA_STORE_RETRIES="1")
        for form in ("csv", "parquet"):
            target = f"s3://data/x.{form}"
            answer = program.ask(f"copy (select * from '{bench.file('parquet')}') to '{target}'", SECONDS)
            problem = bench.judge(program, answer, target)
            bench.checks.note(problem or left_on(folder / "bucket", program), f"COPY of {form} to a store on a full disk")
        program.end()
    (folder / "bucket").rmdir()


def workers_on_a_full_disk(bench: Bench, folder: Path) -> None:
    """Checks workers whose store has no space for exchanged data."""
    database = bench.home / "database"
    database.mkdir()
    (database / "t.parquet").hardlink_to(bench.file("parquet"))
    command = [bench.binary, str(database), "--platform", "serverless", "--workers", "2"]
    own = {"TMPDIR": str(folder), "XDG_CACHE_HOME": str(bench.home / "cache"), "TESSERA_STORE_RETRIES": "1"}
    script = ["-c", "select count(*), max(c) from (select t, count(*) as c from t group by t) s"]
    ran = subprocess.run([*command, *script], capture_output=True, text=True, env=os.environ | own, timeout=SECONDS)
    right = ran.returncode == 1 and len(ran.stderr.splitlines()) == 1 and FULL.search(ran.stderr)
    bench.checks.note((None if right else f"{ran}") or left_on(folder, None), "workers on a full disk")


# Changes of a file while a statement reads it; the second file is another version of about the same
# length.
CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "is replaced": lambda file, other: os.replace(other, file),
    "is removed": lambda file, _: file.unlink(),
    "is cut": lambda file, _: os.truncate(file, file.stat().st_size // 2),
    "is emptied": lambda file, _: os.truncate(file, 0),
    "grows": lambda file, other: append(file, other.read_bytes()[: 1 << 20]),
    "is overwritten": lambda file, other: overwrite(file, other.read_bytes()),
}


def append(file: Path, content: bytes) -> None:
    """Appends to a file."""
    with open(file, "ab") as out:
        out.write(content)


def overwrite(file: Path, content: bytes) -> None:
    """Overwrites a part of a file, keeping its length."""
    with open(file, "r+b") as out:
        out.write(content[: file.stat().st_size])


def versions(bench: Bench, form: str) -> tuple[Path, Path]:
    """Returns a file that a test may modify, with an old modification time, and a version of it
    with other values."""
    file, other = bench.home / f"changed.{form}", bench.home / f"other.{form}"
    shutil.copy(bench.file(form), file)
    shutil.copy(bench.home / f"second.{form}", other)
    # File timestamps are coarse.
    os.utime(file, (1, 1))
    return file, other


def changes(bench: Bench) -> None:
    """Checks files that change while their rows are read or aggregated."""
    for form in FORMATS:
        program = bench.program()
        whole = program.ask(f"select * from '{bench.file(form)}'", SECONDS, lambda: None)[1]
        began = time.monotonic()
        program.ask(f"{TOTALS} '{bench.file(form)}'", SECONDS)
        moments = Moments(random.Random(form), time.monotonic() - began)
        refused = 0
        for what, change in CHANGES.items():
            file, other = versions(bench, form)
            answer = program.ask(f"select * from '{file}'", SECONDS, lambda: change(file, other), 1 << 16)
            problem = bench.judge(program, answer, str(file), whole)
            refused += judged(answer[1], str(file)) == "error"
            bench.checks.note(problem, f"rows of {form}; the file {what}")
            file, other = versions(bench, form)
            answer = program.ask(f"{TOTALS} '{file}'", SECONDS, lambda: (moments.wait(), change(file, other)))
            bench.checks.note(bench.judge(program, answer, str(file), bench.totals), f"totals of {form}; the file {what}")
            refused += judged(answer[1], str(file)) == "error"
        program.end()
        print(f"{form}: {refused} of {2 * len(CHANGES)} statements noticed a change")
        # A compressed file is read completely before its first row is returned.
        if form != "csv.gz":
            bench.checks.note(None if refused >= len(CHANGES) - 1 else "they hit no statement that reads", f"changes of {form}")


@dataclass
class Fault:
    """A web server's behavior on a range request; `passes` if a client that retries succeeds."""

    name: str
    act: Callable[[BaseHTTPRequestHandler, bytes, int, int], object]
    passes: bool = True


def ranged(handler: BaseHTTPRequestHandler, content: bytes, start: int, end: int, said: str, sent: int | None = None) -> None:
    """Sends a response to a range request, optionally with other headers or only a part of its
    bytes."""
    handler.send_response(206)
    handler.send_header("Content-Length", str(end - start))
    handler.send_header("Content-Range", said)
    handler.send_header("ETag", '"one"')
    handler.end_headers()
    handler.wfile.write(content[start : start + sent if sent is not None else end])
    handler.close_connection = sent is not None


def stalled(handler: BaseHTTPRequestHandler, content: bytes, start: int, end: int) -> None:
    """Sends half of the response, then nothing until the client disconnects."""
    ranged(handler, content, start, end, f"bytes {start}-{end - 1}/{len(content)}", (end - start) // 2)
    handler.connection.settimeout(STALL_S)
    with contextlib.suppress(OSError):
        handler.connection.recv(1)


def raw(answer: bytes) -> Callable[[BaseHTTPRequestHandler, bytes, int, int], object]:
    """Returns a handler that sends these bytes and closes the connection."""

    def act(handler: BaseHTTPRequestHandler, _content: bytes, _start: int, _end: int) -> None:
        handler.wfile.write(answer)
        handler.close_connection = True

    return act


STALL_S = 20
FAULTS = [
    *(Fault(f"answers {code}", lambda handler, _c, _s, _e, code=code: handler.send_error(code)) for code in (500, 503, 429)),
    Fault("answers 403", lambda handler, *_: handler.send_error(403), passes=False),
    Fault("answers 404", lambda handler, *_: handler.send_error(404), passes=False),
    Fault("ends the connection", raw(b"")),
    Fault("answers no HTTP", raw(b"banana\r\n\r\n"), passes=False),
    Fault("sends half a body", lambda handler, c, s, e: ranged(handler, c, s, e, f"bytes {s}-{e - 1}/{len(c)}", (e - s) // 2)),
    Fault("sends another range", lambda handler, c, s, e: ranged(handler, c, 0, min(7, e), f"bytes 0-6/{len(c)}"), passes=False),
    Fault("sends no sane range", lambda handler, c, s, e: ranged(handler, c, s, e, "bytes 9-1/x"), passes=False),
    Fault("sends the whole file", raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole"), passes=False),
    Fault("sends in a circle", raw(b"HTTP/1.1 302 Found\r\nLocation: /table.csv\r\nContent-Length: 0\r\n\r\n"), passes=False),
    Fault("changes the file", lambda handler, *_: handler.send_error(412), passes=False),
    Fault("stalls", stalled, passes=False),
]


def faulty_server(folder: Path, fault: Fault, first: int, last: float) -> type[BaseHTTPRequestHandler]:
    """A web server with a fault in a range of its range requests."""
    numbers = itertools.count()

    class Files(web_server(folder, True)):  # type: ignore[misc]
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
            file = Path(self.translate_path(self.path))
            if not asked or not first <= next(numbers) < last:
                return super().do_GET()
            content = file.read_bytes()
            fault.act(self, content, int(asked[1]), min(int(asked[2]) + 1, len(content)))

        def end_headers(self) -> None:
            if self.command == "HEAD" or b"206" in self._headers_buffer[0]:
                self.send_header("ETag", '"one"')
            super().end_headers()

    return Files


def servers(bench: Bench) -> None:
    """Checks faulty web servers, with two faulty requests and with all faulty."""
    for fault, lasts in itertools.product(FAULTS, (False, True)):
        if not lasts and not fault.passes:
            continue
        program = bench.program("--deadline", "1.5" if fault.name == "stalls" else "60", TESSERA_STORE_RETRIES="3")
        address = f"127.0.0.1:{free_port()}"
        # Planning sends the first requests.
        handler = faulty_server(bench.home, fault, 3, float("inf") if lasts else 5)
        with serving(handler, address):
            for form in ("csv", "json", "parquet", "arrow"):
                url = f"http://{address}/table.{form}"
                answer = program.ask(f"{TOTALS} '{url}'", SECONDS)
                what = f"{form} of a server that {fault.name}{'' if lasts else ' at times'}"
                # A deadline applies to the statement, not to a file.
                name = "deadline" if fault.name == "stalls" else url
                bench.checks.note(bench.judge(program, answer, name, None if lasts else bench.totals), what)
        program.end()


def main() -> int:
    """Runs all checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", required=True, help="the program under test")
    options = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        bench = Bench(str(Path(options.tessera).resolve()), checks, Path(folder))
        bench.prepare()
        disks(bench)
        changes(bench)
        servers(bench)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
