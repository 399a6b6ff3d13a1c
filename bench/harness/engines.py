"""Engines as separate processes: started, timed, measured and stopped alike."""

from __future__ import annotations

import json
import os
import pickle
import re
import selectors
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from .compare import rows_from_csv


@dataclass
class Outcome:
    """One run of one query."""

    seconds: float | None = None
    names: list[str] | None = None
    rows: list[tuple] | None = None
    csv: str | None = None
    error: str | None = None
    peak_bytes: int | None = None

    def values(self, expected: list[tuple]) -> list[tuple]:
        """Returns the answer's rows."""
        return rows_from_csv(self.csv, expected) if self.csv is not None else self.rows or []


class EngineProcess:
    """A process that runs queries one at a time. It is restarted after a time-out or a crash."""

    name = ""

    def __init__(self, directory: Path, threads: int, tables: list[str], timeout: float):
        self.directory, self.threads, self.tables, self.timeout = directory, threads, tables, timeout
        self.process: subprocess.Popen | None = None
        # Additional environment variables of the process.
        self.environment: dict[str, str] = {}

    def command(self) -> list[str]:
        """Returns the command line that starts the process."""
        raise NotImplementedError

    def start(self) -> None:
        """Starts the process on the first `threads` cores that this program may use."""
        cores = sorted(os.sched_getaffinity(0))[: self.threads]
        environment = dict(
            os.environ,
            POLARS_MAX_THREADS=str(self.threads),
            TOKIO_WORKER_THREADS=str(self.threads),
            RAYON_NUM_THREADS=str(self.threads),
            **self.environment,
        )
        self.process = subprocess.Popen(
            self.command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).resolve().parents[1],
            env=environment,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        for pipe in (self.process.stdout, self.process.stderr):
            os.set_blocking(pipe.fileno(), False)

    def stop(self) -> None:
        """Stops the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def run(self, sql: str) -> Outcome:
        """Runs one query."""
        if self.process is None:
            self.start()
            self.await_ready()
        self._reset_peak()
        try:
            outcome = self.exchange(sql)
            outcome.peak_bytes = self._peak()
            return outcome
        except TimeoutError:
            self.stop()
            return Outcome(error=f"no answer within {self.timeout:g} s")
        except (BrokenPipeError, EOFError) as error:
            status = self.process.wait()
            self.stop()
            return Outcome(error=f"the process ended with status {status}. {error}".strip())

    def await_ready(self) -> None:
        """Waits until the process accepts queries."""

    def exchange(self, sql: str) -> Outcome:
        """Sends a query and receives its answer."""
        raise NotImplementedError

    def read(self, complete) -> tuple[bytes, bytes]:
        """Reads stdout and stderr until `complete(stdout, stderr)`."""
        out, err = bytearray(), bytearray()
        deadline = time.monotonic() + self.timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ, out)
            selector.register(self.process.stderr, selectors.EVENT_READ, err)
            while not complete(out, err):
                events = selector.select(max(0.0, deadline - time.monotonic()))
                if not events:
                    raise TimeoutError
                for key, _ in events:
                    piece = os.read(key.fd, 1 << 16)
                    if not piece:
                        raise EOFError(bytes(err).decode(errors="replace")[-2000:])
                    key.data.extend(piece)
        return bytes(out), bytes(err)

    def _reset_peak(self) -> None:
        """Resets the kernel's peak memory counter (Linux), so that it applies to one query."""
        try:
            Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        except OSError:
            pass

    def _peak(self) -> int | None:
        # Hyper runs in a child process of the known one.
        if self.name == "hyper":
            return None
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return None
        found = re.search(r"^VmHWM:\s+(\d+) kB", status, flags=re.MULTILINE)
        return int(found.group(1)) * 1024 if found else None


class PythonEngine(EngineProcess):
    """DuckDB, DataFusion or Polars in a Python process, or Hyper in a child of one."""

    def __init__(self, name: str, *arguments, loaded: bool = False):
        super().__init__(*arguments)
        self.name, self.loaded = name, loaded

    def command(self) -> list[str]:
        return [
            sys.executable,
            "-m",
            "harness.worker",
            self.name,
            str(self.directory.resolve()),
            str(self.threads),
            "loaded" if self.loaded else "files",
            *self.tables,
        ]

    def await_ready(self) -> None:
        self._reply()

    def _reply(self):
        def complete(out: bytearray, _err: bytearray) -> bool:
            # A pickle ends in a full stop, but only loading it shows whether this one is the last
            # byte.
            if not out.endswith(b"."):
                return False
            try:
                reply.append(pickle.loads(bytes(out)))
                return True
            except (EOFError, pickle.UnpicklingError):
                return False

        reply: list = []
        self.read(complete)
        return reply[0]

    def exchange(self, sql: str) -> Outcome:
        pickle.dump(sql, self.process.stdin)
        self.process.stdin.flush()
        return Outcome(**self._reply())


class TesseraEngine(EngineProcess):
    """The tessera program, which receives statements on its standard input.

    Its time is measured here, from writing the statement to its completion line, so it includes
    parsing, planning, execution, printing the rows as CSV and transfer through two pipes.
    """

    name = "tessera"
    DONE = re.compile(rb"^Time: [0-9.]+ ms\s*$", flags=re.MULTILINE)
    ERROR = re.compile(rb"^error", flags=re.MULTILINE | re.IGNORECASE)

    def __init__(self, binary: Path, *arguments, tier: str = "auto", loaded: bool = False, plans_again: bool = False):
        super().__init__(*arguments)
        self.binary, self.tier, self.loaded, self.plans_again = binary, tier, loaded, plans_again

    def command(self) -> list[str]:
        return [
            str(self.binary.resolve()),
            str(self.directory.resolve()),
            "--threads",
            str(self.threads),
            "--format",
            "csv",
            "--tier",
            self.tier,
            # Measures compilation before the first run of each query.
            *(["--code-cache", "off"] if self.tier == "compiled" else []),
            "--timing",
            "-f",
            "-",
        ]

    def await_ready(self) -> None:
        # The first statement waits until the directory has been opened.
        outcome = self.exchange("set plan_cache = off" if self.plans_again else "select 1 as ready")
        if outcome.error:
            raise SystemExit(f"{' '.join(self.command())} does not answer: {outcome.error}")
        for table in self.tables if self.loaded else []:
            outcome = self.exchange(f'create temp table "{table}" as select * from "{table}"')
            if outcome.error:
                raise SystemExit(f"{table} could not be loaded: {outcome.error}")

    def exchange(self, sql: str) -> Outcome:
        start = time.perf_counter()
        self.process.stdin.write(sql.encode() + b";\n")
        self.process.stdin.flush()
        done = lambda _out, err: self.DONE.search(err) or self.ERROR.search(err)
        out, err = self.read(done)
        seconds = time.perf_counter() - start
        out += self._drain()
        if self.ERROR.search(err):
            return Outcome(error=err.decode(errors="replace").strip())
        return Outcome(seconds=seconds, csv=out.decode())

    def explained(self, sql: str) -> dict:
        """Returns the output of EXPLAIN ANALYZE for a query."""
        outcome = self.run(f"explain (analyze, format json) {sql}")
        return {} if outcome.error else json.loads(outcome.csv)

    def _drain(self) -> bytes:
        """Reads the rest of the answer: it was flushed before the completion line, so it is in the
        pipe."""
        rest = bytearray()
        while True:
            try:
                piece = os.read(self.process.stdout.fileno(), 1 << 16)
            except BlockingIOError:
                return bytes(rest)
            if not piece:
                return bytes(rest)
            rest.extend(piece)
