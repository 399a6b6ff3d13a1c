#!/usr/bin/env python3
"""Tests queries that exceed their memory budget: answers, spill files, and failing directories.

    tests/spill.py --tessera target/release/tessera --data data/tpch-0.1

Ends with `N passed, N failed` and exit code 1 if a check failed.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import Checks, Moments, Shot, awaited

MEMORY = "32MB"
# Less than a quarter of the smallest file.
FILE_MEMORY = "16MB"
MANY = "(select l_orderkey * 8 + l_linenumber as k, l_partkey as p, l_shipdate as d, l_extendedprice as x, l_comment as c from lineitem) a"
OTHER = MANY.replace(") a", ") b")

# Each must return the same in little memory as in much, and must spill. Results are small because
# they count too.
PAIRS = "select count(*), count(a.k), count(b.k), sum(a.k % 1000 * (b.k % 7 + 1)), sum(b.x), min(a.c), max(b.c)"
GROUPS = "select count(*), sum(k % 1000 * n), min(s), max(s) from"
QUERIES = {
    "groups": f"{GROUPS} (select k, count(*) as n, sum(x) as s, avg(x), min(d) from {MANY} group by k) g",
    "groups of strings": f"{GROUPS} (select c, k, count(x) as n, max(d) as s from {MANY} group by c, k) g",
    "distinct tuples": f"{GROUPS} (select distinct k, c as s, p as n from {MANY}) g",
    "strings of groups": f"{GROUPS} (select k % 50000 as k, min(c) as s, count(*) as n, string_agg(c, ',' order by k) as t from {MANY} group by 1) g "
    "where length(t) > 5",
    "distinct values of groups": f"{GROUPS} (select p as k, count(distinct c) as n, sum(distinct x) as s from {MANY} group by p) g",
    "an inner join": f"{PAIRS} from {MANY} join {OTHER} on a.k = b.k",
    "a left join": f"{PAIRS} from {MANY} left join {OTHER} on a.k = b.k + 8 and b.x > 1000",
    "a right join": f"{PAIRS} from {MANY} right join {OTHER} on a.k = b.k + 8",
    "a full join": f"{PAIRS} from {MANY} full join {OTHER} on a.k = b.k + 16",
    "a semi-join": f"select count(*), sum(k) from {MANY} where exists (select 1 from {OTHER} where a.k = b.k + 8 and a.c <> b.c)",
    "an anti-join": f"select count(*), sum(k) from {MANY} where not exists (select 1 from {OTHER} where a.k = b.k + 8 and a.c <> b.c)",
    "NOT IN": f"select count(*), sum(k) from {MANY} where c not in (select c || 'x' from {OTHER} where c is not null)",
    "NOT IN with NULLs": f"select count(*) from {MANY} where c not in (select nullif(c || 'x', 'x') from {OTHER})",
    "a sort": f"select k from {MANY} order by x desc, k",
    "a sort by strings": f"select k from {MANY} order by c, d desc, k",
    "a join, groups and a sort": f"select k from (select a.k, sum(b.x) as s, max(b.d) as d from {MANY} join {OTHER} on a.k = b.k group by a.k) g order by s, d, k",
    "ranks of partitions": f"select k, rank() over (partition by p order by c), lag(c) over (partition by p order by c, k) from {MANY}",
    "frames of partitions": f"select k, sum(x) over w, max(c) over w from {MANY} window w as (partition by p order by k rows between 3 preceding and 1 following)",
    "a running sum": f"select k, sum(x) over (order by c, k), first_value(c) over (order by c, k) from {MANY}",
    "aggregates of partitions": f"select k, c, count(distinct c) over (partition by p), sum(x) over (partition by p) from {MANY}",
    "the first tuples of partitions": f"select k, c from (select *, row_number() over (partition by k % 100000 order by x, k) as n from {MANY}) a where n <= 2",
    "a pivot": f"select * from (pivot (select k % 200000 as g, p % 4 as q, c from {MANY}) on q in (0, 1, 2, 3) using min(c), max(c) group by g)",
}
ORDERED = {"a sort", "a sort by strings", "a join, groups and a sort"}


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", type=Path, required=True, help="the program")
    parser.add_argument("--data", type=Path, required=True, help="tables of TPC-H at scale factor 0.1")
    parser.add_argument("--kills", type=int, default=10, help="kills of a query, and removals of its directory (default 10)")
    return parser.parse_args()


class Runs:
    """Runs of the program over one database."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.command = [str(options.tessera), str(options.data), "--format", "csv", "--threads", "2"]

    def start(self, sql: str, *more: str, limit_file: int | None = None) -> subprocess.Popen:
        """Starts a statement; `limit_file` is the maximum size of a file in bytes."""

        def limit() -> None:
            if limit_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit_file, limit_file))

        command = [*self.command, *more, "-c", sql]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit, restore_signals=False
        )

    def run(self, sql: str, *more: str, limit_file: int | None = None) -> tuple[int, str, str]:
        """Runs a statement; returns the exit code, output and errors."""
        started = self.start(sql, *more, limit_file=limit_file)
        out, err = started.communicate(timeout=300)
        return started.returncode, out, err


def answers(runs: Runs, checks: Checks) -> None:
    """Checks that answers in little memory are the same as in much."""
    with tempfile.TemporaryDirectory(prefix="spill-") as folder:
        for what, sql in QUERIES.items():
            much, little = f"{folder}/much.csv", f"{folder}/little.csv"
            code, _, err = runs.run(f"copy ({sql}) to '{much}'")
            checks.note(err if code else None, f"{what} in much memory")
            code, _, err = runs.run(f"copy ({sql}) to '{little}'", "--memory", MEMORY)
            checks.note(err if code else difference(much, little, what in ORDERED), f"{what} in {MEMORY}")
            code, plan, err = runs.run(f"explain analyze {sql}", "--memory", MEMORY)
            checks.note(None if "spilled bytes" in plan else f"nothing was spilled {err}", what)


def files(runs: Runs, checks: Checks) -> None:
    """Checks files that are larger than memory, in the order of their tuples."""
    with tempfile.TemporaryDirectory(prefix="spill-") as folder:
        copies = {"csv": "csv", "jsonl": "jsonl", "parquet": "csv", "arrow": "csv"}
        for text in ("csv", "jsonl"):
            code, _, err = runs.run(f"copy lineitem to '{folder}/much.{text}'")
            checks.note(err if code else None, f"a {text} file in much memory")
        for form, text in copies.items():
            little, again = f"{folder}/little.{form}", f"{folder}/again.{text}"
            code, _, err = runs.run(f"copy lineitem to '{little}'", "--memory", FILE_MEMORY)
            if code == 0 and form != text:
                code, _, err = runs.run(f"copy (select * from '{little}') to '{again}'")
            same = code == 0 and filecmp.cmp(f"{folder}/much.{text}", again if form != text else little, shallow=False)
            checks.note(None if same else f"other tuples than in much memory {err}", f"a {form} file in {FILE_MEMORY}")
            Path(little).unlink(missing_ok=True)


def difference(expected: str, found: str, ordered: bool) -> str | None:
    """Returns whether two files have different lines."""
    first, second = (Path(path).read_text().splitlines() for path in (expected, found))
    if not ordered:
        first.sort()
        second.sort()
    if len(first) < 2:
        return "the result in much memory has no rows"
    return None if first == second else f"{len(second)} lines, other than the {len(first)}"


def failing_directories(runs: Runs, checks: Checks) -> None:
    """Checks queries with an unusable scratch directory."""
    sql = QUERIES["an inner join"]
    with tempfile.TemporaryDirectory(prefix="spill-") as folder:
        cases = {
            "a directory that is not there": (f"{folder}/none", None, "no such file"),
            "a file in the place of the directory": (str(runs.command[0]), None, "directory"),
            "a file system that takes no files": ("/proc", None, "/proc"),
            "a limit of files": (folder, 200_000, "the size limit of the process"),
        }
        for what, (directory, limit, expected) in cases.items():
            code, out, err = runs.run(sql, "--memory", MEMORY, "--temp-directory", directory, limit_file=limit)
            ok = code == 1 and not out and expected in err and "--temp-directory" in err and directory in err
            checks.note(None if ok else f"exit code {code}, {len(out)} bytes, {err}", what)
        # The program continues, and its next statement can use the whole directory.
        script = f"set memory = '{MEMORY}'; set temp_directory = '{folder}/none'; {sql};"
        code, _, err = runs.run(script)
        checks.note(None if code == 1 and "temp_directory" in err else err, "SET temp_directory")
        checks.note(str(os.listdir(folder)) if os.listdir(folder) else None, "files after errors")


def has_scratch(process: int, folder: str) -> bool:
    """Returns whether a process has an open unnamed file in a folder, that is, whether it spills."""
    try:
        open_files = list(Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return False
    for file in open_files:
        try:
            target = os.readlink(file)
        except OSError:
            continue
        if target.startswith(f"{folder}/") and target.endswith("(deleted)"):
            return True
    return False


def spilling_time(runs: Runs, sql: str, folder: str) -> tuple[float, str]:
    """Returns the seconds from the first spill file of a query to its end, and its answer."""
    started = runs.start(sql, "--memory", MEMORY, "--temp-directory", folder)
    awaited(lambda: has_scratch(started.pid, folder), lambda: started.poll() is not None)
    began = time.monotonic()
    out, err = started.communicate(timeout=300)
    if started.returncode:
        raise RuntimeError(f"exit code {started.returncode}: {err}")
    return time.monotonic() - began, out


def vanishing(runs: Runs, checks: Checks, count: int) -> None:
    """Removes the directory during a query: open files remain, but no new ones can be created."""
    sql = QUERIES["a join, groups and a sort"]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="spill-") as folder:
        length, expected = spilling_time(runs, sql, folder)
        moments = Moments(random.Random(11), length)

        def vanish(number: int) -> Shot:
            nonlocal failed
            directory = f"{folder}/{number}"
            os.mkdir(directory)
            started = runs.start(sql, "--memory", MEMORY, "--temp-directory", directory)
            has_ended = lambda: started.poll() is not None
            # Every other directory is removed after its first file; no more can be created then.
            if awaited(lambda: has_scratch(started.pid, directory), has_ended) and number % 2:
                moments.wait()
            os.rmdir(directory)
            hit = not has_ended()
            out, err = started.communicate(timeout=300)
            answered = started.returncode == 0 and out == expected
            refused = started.returncode == 1 and not out and directory in err and "--temp-directory" in err
            failed += refused
            if not hit:
                moments.late()
            return Shot(hit, None if answered or refused else f"exit code {started.returncode}, {err}")

        checks.shots("a directory that goes", count, vanish)
    checks.note(None if failed else "no query has missed its directory", "vanished directories")


def kills(runs: Runs, checks: Checks, count: int) -> None:
    """Checks that a killed query leaves no files, and that none are visible while it runs."""
    sql = QUERIES["a join, groups and a sort"]
    with tempfile.TemporaryDirectory(prefix="spill-") as folder:
        moments = Moments(random.Random(7), spilling_time(runs, sql, folder)[0])

        def kill(_: int) -> Shot:
            started = runs.start(sql, "--memory", MEMORY, "--temp-directory", folder)
            awaited(lambda: has_scratch(started.pid, folder), lambda: started.poll() is not None)
            moments.wait()
            seen, spills = os.listdir(folder), has_scratch(started.pid, folder)
            started.kill()
            started.communicate()
            hit = spills and started.returncode == -signal.SIGKILL
            if not hit:
                moments.late()
            left = os.listdir(folder)
            return Shot(hit, f"{seen} while it ran, {left} after it" if seen or left else None)

        checks.shots("a kill while files are open", count, kill)


def main() -> int:
    """Runs all checks."""
    options = arguments()
    checks = Checks()
    runs = Runs(options)
    answers(runs, checks)
    files(runs, checks)
    failing_directories(runs, checks)
    vanishing(runs, checks, options.kills)
    kills(runs, checks, options.kills)
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
