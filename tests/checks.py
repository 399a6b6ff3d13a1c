"""Shared by the tests of platforms: counts checks, and kills processes at random moments."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# A shell starts background processes with SIGINT ignored, and programs under test would inherit
# that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Attempts for each kill that must hit a running query, and for the few of a test together: of thirty, one hits even where
# the machine is busy with other programs.
TRIES = 10
TRIES_MIN = 30
# Interval and limit, in seconds, of polling for a condition.
LOOK_S = 0.002
AWAITED_S = 120


class Checks:
    """Counts passed checks and prints failed ones."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        self.missed = 0

    def note(self, problem: str | None, what: str) -> None:
        """Records one check. `None` means success; an empty text is a failure without a message."""
        if problem is not None:
            self.failed += 1
            print(f"FAILED: {what}: {problem or 'no message'}", flush=True)
        else:
            self.passed += 1

    def shots(self, what: str, wanted: int, shoot: Callable[[int], Shot], tries: int = TRIES) -> None:
        """Kills until `wanted` kills have hit a running query, with at most `tries` times as many
        attempts, or `TRIES_MIN`.

        Kills before or after the query are counted separately, not as passed. Too few hits are a
        failure.
        """
        hits = missed = 0
        while hits < wanted and hits + missed < max(wanted * tries, TRIES_MIN):
            shot = shoot(hits + missed)
            hits, missed = hits + shot.hit, missed + (not shot.hit)
            if shot.hit or shot.problem is not None:
                self.note(shot.problem, f"{what} {hits + missed}")
        self.missed += missed
        print(f"{what}: {hits} of {hits + missed} hit a running query", flush=True)
        if hits < wanted:
            self.note(f"only {hits} of {wanted} wanted ones hit a running query", what)

    def end(self) -> int:
        """Prints the counts; returns the exit code."""
        apart = f", {self.missed} kills hit no running query" if self.missed else ""
        print(f"{self.passed} passed, {self.failed} failed{apart}")
        return 1 if self.failed else 0


@dataclass(frozen=True)
class Shot:
    """A kill: whether it hit a running query, and the problem found afterwards."""

    hit: bool
    problem: str | None = None


class Moments:
    """Random moments within a run. The range adapts: it shrinks after a moment past the end of the
    run."""

    def __init__(self, rng: random.Random, length: float) -> None:
        self.rng = rng
        self.length = length

    def wait(self) -> float:
        """Sleeps until a random moment; returns the delay."""
        delay = self.rng.uniform(0, self.length)
        time.sleep(delay)
        return delay

    def late(self) -> None:
        """Records that the query had already ended."""
        self.length *= 0.8


def awaited(what: Callable[[], bool], ended: Callable[[], bool], longest_s: float = AWAITED_S) -> bool:
    """Waits until a condition holds; returns False if the program ends or the time is up before."""
    until = time.monotonic() + longest_s
    while not what():
        if ended() or time.monotonic() > until:
            return False
        time.sleep(LOOK_S)
    return True


def marked(mark: str) -> list[int]:
    """Returns the processes with `NAME=VALUE` in their environment."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found
