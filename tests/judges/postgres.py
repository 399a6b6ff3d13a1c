"""A private PostgreSQL as a judge: a cluster in a temporary directory, reachable only through its
socket."""

from __future__ import annotations

import csv
import io
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

# The text of NULL in psql's output; no test writes it.
NULL = "\u2400NULL\u2400"
# Texts may be of any length.
csv.field_size_limit(1 << 30)
CONFIGURATION = """
listen_addresses = ''
max_connections = 20
shared_buffers = 64MB
fsync = off
autovacuum = off
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
datestyle = 'ISO, MDY'
intervalstyle = 'postgres'
logging_collector = off
log_min_messages = fatal
"""


@dataclass
class Answer:
    """The result of a statement: its columns and rows as text, or the SQLSTATE and message of an
    error."""

    state: str
    message: str
    columns: list[str]
    rows: list[list[str | None]]

    @property
    def failed(self) -> bool:
        return self.state != "00000"


def programs() -> Path | None:
    """Returns the directory with `initdb`: Debian's newest, else that of the path."""
    found = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    if found:
        return max(found, key=lambda path: float(path.parent.name))
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


class Cluster:
    """A running PostgreSQL, for a `with` statement. PostgreSQL refuses to run as root, so it runs
    as another user."""

    def __init__(self) -> None:
        found = programs()
        if found is None:
            raise FileNotFoundError("PostgreSQL is not installed (Debian's package postgresql)")
        self.programs = found
        self.user: dict[str, object] = {}

    def __enter__(self) -> "Cluster":
        # A short path: a socket's path has at most 107 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="tessera-pg-", dir="/tmp"))
        if os.geteuid() == 0:
            account = next(name for name in ("postgres", "nobody") if name in {user.pw_name for user in pwd.getpwall()})
            entry = pwd.getpwnam(account)
            os.chown(self.directory, entry.pw_uid, entry.pw_gid)
            self.user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        try:
            data = self.directory / "data"
            self.own("initdb", "-D", data, "-N", "--locale=C", "-E", "UTF8", "-U", "postgres", "-A", "trust")
            with (data / "postgresql.conf").open("a") as file:
                file.write(f"{CONFIGURATION}unix_socket_directories = '{self.directory}'\n")
            self.own("pg_ctl", "-D", data, "-w", "-l", self.directory / "log", "start")
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.own("pg_ctl", "-D", self.directory / "data", "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def own(self, program: str, *arguments: object) -> None:
        """Runs one of PostgreSQL's programs as the owner of the cluster."""
        command = [str(self.programs / program), *map(str, arguments)]
        # The server that pg_ctl starts keeps its output open, so the output must not be a pipe that
        # is waited for.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", timeout=120, **self.user
            )
            if done.returncode:
                output.seek(0)
                raise RuntimeError(f"{program} failed: {output.read().decode(errors='replace')[-2000:]}")

    def script(self, text: str, timeout_s: float = 600) -> subprocess.CompletedProcess:
        """Runs a psql script, which continues after errors."""
        command = [str(self.programs / "psql"), "-h", str(self.directory), "-U", "postgres", "-X", "-q", "-f", "-"]
        environment = {**os.environ, "PGCLIENTENCODING": "UTF8", "PGOPTIONS": "-c client_min_messages=error"}
        return subprocess.run(
            command, input=text, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=timeout_s
        )

    def answers(self, statements: list[str], before: str = "", timeout_s: float = 600) -> list[Answer]:
        """Runs statements in one session, after the script `before`; returns the result of each."""
        mark = f"@{uuid.uuid4().hex}@"
        lines = [before, f"\\pset format csv\n\\pset null '{NULL}'\n\\echo {mark}start"]
        for number, sql in enumerate(statements):
            lines.append(f"{sql.rstrip().rstrip(';')}\n;\n\\echo {mark}{number} :SQLSTATE :LAST_ERROR_MESSAGE")
        done = self.script("\n".join(lines) + "\n", timeout_s)
        pieces = re.split(rf"^{mark}(\w+) ?(\w*) ?(.*)$\n?", done.stdout, flags=re.MULTILINE)
        # Output before the first marker belongs to `before`; then number, state, message and output
        # alternate.
        found: list[Answer] = []
        for at in range(4, len(pieces) - 1, 4):
            output, state, message = pieces[at], pieces[at + 2], pieces[at + 3]
            rows = list(csv.reader(io.StringIO(output, newline=""))) if state == "00000" else []
            # An empty line is a row of one empty text.
            values = [[None if value == NULL else value for value in row or [""]] for row in rows[1:]]
            found.append(Answer(state, message if state != "00000" else "", rows[0] if rows else [], values))
        while len(found) < len(statements):
            found.append(Answer("XX000", f"psql ended early: {done.stderr[-500:]}", [], []))
        return found
