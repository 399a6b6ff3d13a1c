#!/usr/bin/env python3
"""Tests the interactive shell at a terminal: keys, the history file, the size of the window.

    tests/shell.py --tessera PROGRAM
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from checks import Checks

# The time limit for output to appear.
AWAITED_S = 60
# More rows than the joins of any test have.
ENDLESS = "select count(*) from range(1000000) a(n), range(1000000) b(m) where n + m = -1;"
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
PROMPT = "tessera> "
# Escape sequences that move the cursor, set colors or switch terminal modes.
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Shell:
    """A shell in a pseudo-terminal."""

    def __init__(self, program: str, home: Path, columns: int = 120) -> None:
        self.master, slave = pty.openpty()
        self.resize(columns)
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm"}

        def own() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            # As after a login, independent of the process that started the tests.
            signal.signal(signal.SIGHUP, signal.SIG_DFL)

        self.process = subprocess.Popen(
            [program], stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=home, start_new_session=True, preexec_fn=own
        )
        os.close(slave)
        self.text = ""
        self.seen = 0
        self.until(PROMPT)

    def resize(self, columns: int) -> None:
        """Changes the size of the window, and signals the shell."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def send(self, keys: str) -> None:
        """Sends keys."""
        os.write(self.master, keys.encode())

    def read(self, seconds: float) -> bool:
        """Reads the shell's output; returns whether there was any."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            printed = os.read(self.master, 1 << 16)
        except OSError:
            # The shell has ended.
            return False
        # A long line is wrapped at the window's width.
        self.text += CONTROL.sub("", printed.decode(errors="replace")).replace("\r", "").replace("\n", "")
        return bool(printed)

    def until(self, expected: str) -> str:
        """Returns the output up to and including this text."""
        begun = time.monotonic()
        while expected not in self.text[self.seen :]:
            if time.monotonic() - begun > AWAITED_S or (self.process.poll() is not None and not self.read(0.2)):
                raise AssertionError(f"{expected!r} did not come, but {self.text[self.seen :][-500:]!r}")
            self.read(0.05)
        end = self.text.index(expected, self.seen) + len(expected)
        printed, self.seen = self.text[self.seen : end], end
        return printed

    def run(self, line: str, expected: str) -> None:
        """Enters a line; waits for the expected output and the next prompt."""
        self.send(line + "\r")
        self.until(expected)
        self.until(PROMPT)

    def code(self) -> int:
        """Returns the exit code of the shell."""
        begun = time.monotonic()
        while self.process.poll() is None:
            self.read(0.05)
            if time.monotonic() - begun > AWAITED_S:
                raise AssertionError(f"it does not end: {self.text[self.seen :][-500:]!r}")
        return self.process.returncode

    def end(self) -> None:
        """Ends the shell if it is running."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


def interrupts(shell: Shell) -> None:
    """Ctrl-C never ends the shell: its temporary tables remain."""
    shell.run("create temp table t as select 42 as x;", "SELECT 1")
    for _ in range(3):
        shell.send("select 'half a line")
        shell.until("half a line")
        shell.send(CTRL_C)
        shell.until(PROMPT)
    for _ in range(3):
        shell.send(CTRL_C)
        shell.until("Ctrl-D, or quit, leaves")
        shell.until(PROMPT)
    shell.send("select x\r")
    shell.until("...> ")
    shell.send("from t where" + CTRL_C)
    shell.until(PROMPT)
    shell.send(UP)
    shell.until("from t where")
    shell.send(CTRL_C)
    shell.until(PROMPT)
    shell.send(ENDLESS + "\r")
    time.sleep(0.5)
    shell.send(CTRL_C * 3)
    shell.until("cancelled")
    shell.until(PROMPT)
    shell.run("select x from t;", "42")


def words(shell: Shell) -> None:
    """`help`, `exit` and `quit`, with or without semicolons, are commands when no statement is
    being entered."""
    shell.run("HELP", ".tables")
    shell.run("help;", ".tables")
    shell.send("select 1 as\rquit\r")
    shell.until("Ctrl-D leaves")
    shell.send(";\r")
    shell.until("quit")
    shell.until("(1 row)")
    shell.until(PROMPT)


def leaves(program: str, home: Path, keys: str) -> None:
    """These keys end the shell."""
    shell = Shell(program, home)
    try:
        shell.send(keys)
        if (code := shell.code()) != 0:
            raise AssertionError(f"exit code {code}")
    finally:
        shell.end()


def history(program: str, home: Path) -> None:
    """The history survives kills and is shared by shells."""
    one, other = Shell(program, home), Shell(program, home)
    try:
        one.run("select 'one' as a;", "one")
        other.run("select 'other'\r as a;", "other")
        one.run("select 'again' as a;", "again")
        one.send(ENDLESS + "\r")
        time.sleep(0.3)
        one.process.kill()
        one.process.wait()
        other.process.send_signal(signal.SIGHUP)
        other.code()
    finally:
        one.end()
        other.end()
    shell = Shell(program, home)
    try:
        # The first of two lines is skipped on the way.
        for expected, keys in [(ENDLESS, UP), ("select 'again' as a;", UP), (" as a;", UP), ("select 'one' as a;", UP * 2)]:
            shell.send(keys)
            shell.until(expected)
    finally:
        shell.end()
    file = home / ".tessera_history"
    entries = file.read_text().splitlines()
    if entries[0] != "#V2" or not {"select 'one' as a;", "select 'other'\\n as a;", ENDLESS} <= set(entries):
        raise AssertionError(f"the file holds {entries}")
    if (mode := stat.S_IMODE(file.stat().st_mode)) != 0o600:
        raise AssertionError(f"its mode is {mode:o}")


def resizing(program: str, home: Path) -> None:
    """Typed text stays, and is shown in the new width."""
    shell = Shell(program, home, columns=80)
    try:
        typed = "select " + " + ".join(f"{n}" for n in range(100, 150)) + " as total"
        shell.send(typed)
        shell.until("149 as total")
        for columns in [40, 200, 60]:
            shell.seen = len(shell.text)
            shell.resize(columns)
            shell.until("total")
        shell.run(";", str(sum(range(100, 150))))
    finally:
        shell.end()


def terminated(program: str, home: Path) -> None:
    """SIGTERM ends the shell, even while a statement runs."""
    for keys in ["", ENDLESS + "\r"]:
        shell = Shell(program, home)
        try:
            shell.send(keys)
            time.sleep(0.5)
            shell.process.send_signal(signal.SIGTERM)
            shell.code()
        finally:
            shell.end()


def main() -> int:
    """Runs all checks; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tessera", required=True)
    program = str(Path(parser.parse_args().tessera).resolve())
    checks = Checks()

    def check(what: str, act) -> None:
        with tempfile.TemporaryDirectory() as folder:
            try:
                act(Path(folder))
                checks.note(None, what)
            except (AssertionError, OSError) as problem:
                checks.note(str(problem), what)

    def with_shell(act):
        def run(home: Path) -> None:
            shell = Shell(program, home)
            try:
                act(shell)
            finally:
                shell.end()

        return run

    check("Ctrl-C", with_shell(interrupts))
    check("words", with_shell(words))
    for keys in ["exit\r", "QUIT;\r", ".quit\r", CTRL_D, "select 1\r" + CTRL_D]:
        check(f"leaving with {keys!r}", lambda home, keys=keys: leaves(program, home, keys))
    check("the history", lambda home: history(program, home))
    check("resizing", lambda home: resizing(program, home))
    check("SIGTERM", lambda home: terminated(program, home))
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
