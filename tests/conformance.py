"""The conformance suite of platforms: statements of `tests/platforms`, whose rows and errors must be those of platform `local`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

SUITE = Path(__file__).resolve().parent / "platforms"
TABLES = ("many", "skewed", "gaps", "one", "empty", "nested")

# Runs statements over a database; returns the exit code, the rows as CSV, and the messages.
Run = Callable[[Path, str], tuple[int, str, str]]


def statements(name: str) -> list[str]:
    """The statements of a file, without its comments."""
    lines = (line for line in (SUITE / f"{name}.sql").read_text().splitlines() if not line.startswith("--"))
    return [sql.strip() for sql in "\n".join(lines).split(";") if sql.strip()]


def answers(run: Run, database: Path) -> list[list[str]] | str:
    """The rows of each statement, sorted where it has no order; or what is wrong."""
    every = statements("statements")
    script = "".join(f"{sql};\nselect '#{number}#' as marker;\n" for number, sql in enumerate(every))
    code, rest, messages = run(database, script)
    if code != 0:
        return f"exit code {code}: {messages[-600:]}"
    found = []
    for number, sql in enumerate(every):
        rows, rest = rest.split(f"marker\n#{number}#\n", 1)
        names, *lines = rows.splitlines()
        found.append([names, *(lines if "ORDER BY" in sql[sql.rfind(")") :] else sorted(lines))])
    return found


def check(local: Run, places: dict[str, Run], database: Path, note: Callable[[str | None, str], None]) -> None:
    """Writes the tables, and compares rows and errors of platforms with those of platform `local`."""
    for name in TABLES:
        (database / name).mkdir(parents=True)
    for sql in statements("tables"):
        code, _, messages = local(database, sql.replace("FOLDER", str(database)))
        if code != 0:
            note(messages, sql)
            return
    expected = answers(local, database)
    if isinstance(expected, str):
        note(expected, "conformance on platform local")
        return
    failures = {sql: local(database, sql) for sql in statements("errors")}
    for where, run in places.items():
        found = answers(run, database)
        if isinstance(found, str):
            note(found, f"conformance {where}")
            continue
        for sql, ours, theirs in zip(statements("statements"), found, expected):
            note(None if ours == theirs else f"{ours[:9]} instead of {theirs[:9]}", f"{sql} {where}")
        for sql, (_, _, wanted) in failures.items():
            code, _, messages = run(database, sql)
            # A platform may say which worker has raised it.
            right = code == 1 and messages.strip().endswith(wanted.strip().removeprefix("error: "))
            note(None if right else f"exit code {code}: {messages[-600:]} instead of {wanted}", f"{sql} {where}")
