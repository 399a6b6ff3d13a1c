"""Sends Ctrl-C at random moments while TPC-H runs on ranks or serverless workers; measures the
time until every process has ended."""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import time
import uuid
from pathlib import Path

from .suites import Query

# Longer statements are interrupted before this.
LONGEST_S = 3.0
# A process that has not ended by then counts as hanging.
GONE_S = 30.0
MARK = "TESSERA_BENCH_RUN"
EXIT_INTERRUPTED = 130


def take_interrupts() -> None:
    """Restores SIGINT, which a shell disables for background processes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Runs:
    """Runs of the program on a platform; a mark in the environment identifies their processes."""

    def __init__(self, options: argparse.Namespace, data: Path) -> None:
        place = {"mpi": "--ranks", "serverless": "--workers"}[options.platform]
        self.command = [str(options.tessera), str(data), "--threads", str(options.threads), "--format", "csv"]
        self.command += ["--platform", options.platform, place, str(options.workers)]

    def start(self, sql: str) -> tuple[subprocess.Popen, bytes]:
        """Starts the program; all processes that it starts inherit the environment."""
        number, quiet = uuid.uuid4().hex, subprocess.DEVNULL
        command, environment = [*self.command, "-c", sql], {**os.environ, MARK: number}
        started = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment, preexec_fn=take_interrupts)
        return started, f"{MARK}={number}".encode()

    def length(self, sql: str) -> float:
        """Returns the seconds of an uninterrupted run, up to the limit."""
        began = time.monotonic()
        started, mark = self.start(sql)
        try:
            if started.wait(LONGEST_S):
                raise RuntimeError(f"exit code {started.returncode}: {sql}")
        except subprocess.TimeoutExpired:
            self.interrupt(started, mark)
        return min(time.monotonic() - began, LONGEST_S)

    def interrupt(self, started: subprocess.Popen, mark: bytes) -> float:
        """Returns the seconds from Ctrl-C to the end of the last process."""
        began = time.monotonic()
        started.send_signal(signal.SIGINT)
        while started.poll() is None or alive(mark):
            if time.monotonic() - began > GONE_S:
                raise RuntimeError(f"{alive(mark)} have not ended {GONE_S:.0f} s after Ctrl-C")
            time.sleep(0.002)
        return time.monotonic() - began


def alive(mark: bytes) -> list[int]:
    """Returns the processes with the mark that have not ended."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def moments(options: argparse.Namespace, data: Path, cases: list[Query]) -> list[dict]:
    """Returns the result of each moment, in the format of the session's program."""
    runs, choose, found = Runs(options, data), random.Random(options.seed), []
    lengths = {case.name: runs.length(case.sql) for case in cases}
    for turn in range(options.moments):
        case = cases[turn % len(cases)]
        at = lengths[case.name] * choose.random()
        started, mark = runs.start(case.sql)
        time.sleep(at)
        took = None if started.poll() is not None else runs.interrupt(started, mark) * 1e3
        # A program that does not handle the signal yet is ended by it.
        if started.wait() not in (0, EXIT_INTERRUPTED, -signal.SIGINT):
            raise RuntimeError(f"{case.name}: exit code {started.returncode}")
        found.append(
            {
                "case": case.name,
                "length_ms": lengths[case.name] * 1e3,
                "at_ms": at * 1e3,
                # The signal itself ended the process: there was nothing to cancel yet.
                "took_ms": took if started.returncode == EXIT_INTERRUPTED else None,
                "last": f"exit code {started.returncode}",
            }
        )
    return found
