#!/usr/bin/env python3
"""Measures how fast Ctrl-C ends a statement during planning, reading, computing and writing.

    tests/interrupts.py --tessera target/release/tessera [--tries N] [--seed S] [--only NAME] [--threads N]

Each try starts the program with one long statement, sends SIGINT at a random moment, and measures the
time until the program has reported the cancellation, and until it has ended. Prints the median and
the maximum for each statement, and the distribution of all tries. Because a busy machine delays
threads, the median of a statement must be within --median seconds (0.1), and the maximum within
--worst (2). A try after the end of its statement does not count; a statement without counted tries is
a failure. Ends with `N passed, N failed` and exit code 1 if a check failed.
"""

from __future__ import annotations

import argparse
import random
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from checks import Checks

# A program that has not ended this long after the signal is killed.
PATIENCE_S = 20
# The latest moment of a signal after the start of the program; shorter statements override it.
LATEST_S = 1.5
# Before this moment the program is starting and no statement runs.
EARLIEST_S = 0.02
CANCELLED = "the query was cancelled"
INTERRUPTED = 130


@dataclass(frozen=True)
class Statement:
    """A long-running statement, and the statements that prepare it."""

    name: str
    sql: str
    before: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Try:
    """Seconds from the signal to the program's message, and to its end."""

    said: float
    ended: float


def terms(count: int, between: str, term: Callable[[int], str]) -> str:
    return between.join(map(term, range(count)))


def planned() -> list[Statement]:
    """Statements with long planning."""
    values = "(values (1), (2))"
    chain = terms(20_000, "", lambda n: f", a{n + 1} as (select x + 1 as x from a{n})")
    wide = terms(1_000, ", ", lambda n: f"a + {n} as c{n}")
    nested = f"{'(select * from ' * 200}(select {wide} from (values (1)) t(a)) q{terms(200, '', lambda n: f') q{n}')}"
    tables = terms(64, ", ", lambda n: f"{values} t{n}(a)")
    equal = terms(63, " and ", lambda n: f"t{n + 1}.a = t{n // 2}.a")
    ands = terms(20_000, " and ", lambda n: f"(a = {n} or b = {n + 1})")
    ors = terms(20_000, " or ", lambda n: f"(a = {n} and b = {n + 1})")
    branches = terms(20_000, " ", lambda n: f"when a = {n} then a + {n}")
    return [
        Statement("plan: a sum of 10,000 terms", f"select {terms(10_000, ' + ', lambda n: f'a * {n}')} from {values} t(a)"),
        Statement("plan: 20,000 ANDs of ORs", f"select count(*) from (values (1, 2)) t(a, b) where {ands}"),
        Statement("plan: 20,000 ORs of ANDs", f"select count(*) from (values (1, 2)) t(a, b) where {ors}"),
        Statement("plan: 1,000 columns through 200 levels", f"select * from {nested}"),
        Statement("plan: 64 joined tables", f"select count(*) from {tables} where {equal}"),
        Statement("plan: a chain of 10,000 WITH", f"with a0 as (select 1 as x){chain} select x from a10000"),
        Statement("plan: 4,000 terms of UNION ALL", terms(4_000, " union all ", lambda n: f"select a + {n} from {values} t(a)")),
        Statement("plan: CASE of 20,000 branches", f"select case {branches} end from {values} t(a)"),
        Statement("plan: a list of 2,000,000", f"select count(*) from {values} t(a) where a in ({terms(2_000_000, ', ', str)})"),
        Statement("plan: 400,000 rows of VALUES", f"select count(*) from (values {terms(400_000, ', ', lambda n: f'({n}, {n} + 1)')}) t"),
    ]


def computed() -> list[Statement]:
    """Statements with long computations."""
    many = "generate_series(1, 100000000000) g(x)"
    some = "generate_series(1, 300000000) g(x)"
    long = "(select repeat('abcdefghij', 20000000) || 'x' as t) u"
    return [
        Statement("a series that is counted", f"select count(*) from {many} where x % 3 = 0"),
        Statement("LIMIT 0 behind a filter", f"select * from (select x from {many} where x < 0) s limit 1"),
        Statement("a hash join with a large build side", f"select count(*) from {some} join generate_series(1, 300000000) h(y) on x = y"),
        Statement("a cross join", "select count(*) from generate_series(1, 3000000) g(x), generate_series(1, 3000000) h(y) where x + y = 7"),
        Statement("a join on an inequality", "select count(*) from generate_series(1, 300000) g(x), generate_series(1, 300000) h(y) where x < y"),
        Statement(
            "a join on two inequalities",
            "select count(*) from generate_series(1, 300000) g(x), generate_series(1, 300000) h(y) where x < y and x * 7919 % 1000003 > y * 7919 % 1000033",
        ),
        Statement("a sort", f"select x from {some} order by x % 1000, x desc"),
        Statement("a sort of texts", f"select t from (select (x * 7919 % 1000003)::text || 'abc' as t from {some}) s order by t"),
        Statement("many groups", f"select count(*) from (select x, count(*) from {some} group by x) s"),
        Statement("distinct values", f"select count(distinct x) from {some}"),
        Statement("percentile", f"select percentile_cont(0.5) within group (order by x * 7919 % 1000003) from {some}"),
        Statement("string_agg", f"select length(string_agg(x::text, ',')) from {some}"),
        Statement("array_agg in order", f"select cardinality(array_agg(x order by x * 7919 % 1000003)) from {some}"),
        Statement("a regular expression over a long text", f"select length(regexp_replace(t, '(a|b|c)+d', 'y', 'g')) from {long}"),
        Statement("a regular expression that a long text does not have", f"select t ~ '(a|b|c)+e.*(x|y)z' from {long}"),
        Statement("a regular expression whose group is a long text", f"select length(substring(t from '(a.*)x')) from {long}"),
        Statement("a regular expression with words beyond ASCII", f"select 'ä' || t ~ 'x\\y.*z' from {long}"),
        Statement("a regular expression over many texts", f"select count(*) from {some} where x::text ~ '(1|2)+3.*4|5[67]+8'"),
        Statement("LIKE with many %", "select count(*) from generate_series(1, 1000000) g(x) where repeat('ab', 1000000 + x::int % 7) like '%' || repeat('a%b%', 200) || 'z'"),
        Statement("LIKE over long texts", f"select count(*) from {long}, generate_series(1, 100000) g(x) where t like '%ax%'"),
        Statement("LIKE over many texts", f"select count(*) from {some} where x::text like '%1%2%3%zz%'"),
        Statement("a recursive query", "with recursive r(x) as (select 1 union all select x + 1 from r where x < 100000000) select count(*) from r"),
        Statement("repeat", f"select sum(length(repeat('abc', 1000000 + x::int % 7))) from {some}"),
        Statement("lpad", f"select sum(length(lpad(x::text, 1000000, 'xyz'))) from {some}"),
        Statement("levenshtein of long texts", f"select levenshtein(t, reverse(t)) from {long}"),
        Statement("replace in a long text", f"select length(replace(t, 'cd', 'dcba')) from {long}"),
        Statement("reverse and upper of long texts", f"select length(reverse(upper(repeat('äbc', 1000000 + x::int % 7)))) from {some}"),
        Statement("string_to_array of a long text", f"select cardinality(string_to_array(t, 'c')) from {long}"),
        Statement("md5 of a long text", f"select md5(t || x::text) from {long}, generate_series(1, 1000) g(x)"),
        Statement("sha256 and encode of long bytes", f"select sha256(t::bytea), length(encode(t::bytea, 'hex')) from {long}"),
        Statement("unnest of large arrays", "select count(*) from (select unnest(generate_series(1, 3000000)) from generate_series(1, 1000)) s"),
        Statement("an array that is sorted", "select cardinality(array_sort(array_agg(x * 7919 % 1000003))) from generate_series(1, 20000000) g(x)"),
        Statement(
            "LATERAL",
            "select sum(b) from generate_series(1, 3000) o(k), lateral (select b from generate_series(1, 3000000) u(b) where u.b % 3000 = o.k order by b desc limit 3) x",
        ),
        Statement("a correlated subquery", "select sum((select count(*) from generate_series(1, 100000) u(b) where u.b > t.x)) from generate_series(1, 100000) t(x)"),
        Statement("GROUPING SETS", f"select count(*) from (select a, b, count(*) from (select x % 1000 as a, x % 777 as b from {some}) s group by cube (a, b)) s"),
        Statement("numbers of many digits", f"select sum(x::decimal(38, 0) * x * x % 97) from {some}"),
        Statement("dates", "select count(*) from generate_series(timestamp '0001-01-01', timestamp '9999-01-01', interval '1 second')"),
        Statement("to_char", f"select count(*) from {some} where to_char(timestamp '2000-01-01' + x * interval '1 second', 'YYYY-MM-DD HH24:MI') = 'x'"),
        Statement("rows that are printed", f"select x, x * 2, 'a text' from {some}"),
    ]


def stored(home: Path, binary: str) -> list[Statement]:
    """Statements that read and write files, which are generated here."""
    found = []
    table = "select x, x * 7919 % 1000003 as k, 'a text of number ' || x as t, x / 8.0::float8 as f from generate_series(1, {}) g(x)"
    for suffix in ["csv", "json", "parquet", "arrow"]:
        path, out = home / f"t.{suffix}", home / f"out.{suffix}"
        subprocess.run([binary, "-c", f"copy ({table.format(3_000_000)}) to '{path}'"], check=True, stdout=subprocess.DEVNULL)
        eight = " union all ".join([f"select * from '{path}'"] * 8)
        found.append(Statement(f"a file: {suffix}", f"select count(*), max(t), sum(k), sum(f) from ({eight}) s"))
        found.append(Statement(f"a file that is written: {suffix}", f"copy ({table.format(300_000_000)}) to '{out}'"))
    line = home / "line.json"
    with line.open("w") as file:
        file.write('{"a": [')
        for start in range(0, 20_000_000, 100_000):
            file.write(",".join(map(str, range(start, start + 100_000))) + ",")
        file.write("1]}\n")
    found.append(Statement("a file: a line of JSON of 170 MB", f"select cardinality(a) from '{line}'"))
    quoted = home / "quoted.csv"
    with quoted.open("w") as file:
        file.write('a,b\n1,"')
        for _ in range(200):
            file.write("a text, with\nlines and ''quotes''\n" * 30_000)
        file.write('"\n')
    found.append(Statement("a file: a field of CSV of 200 MB", f"select length(b) from '{quoted}'"))
    return found


LOOP = """create function spin(x bigint) returns bigint language llvm as $$
define i32 @spin(ptr %value, i64 %x) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %h = phi i64 [ %x, %entry ], [ %mixed, %loop ]
  %m = mul i64 %h, 6364136223846793005
  %s = lshr i64 %m, 29
  %mixed = xor i64 %m, %s
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, 1000000000000
  br i1 %done, label %out, label %loop
out:
  store i64 %mixed, ptr %value
  ret i32 0
}
$$"""


CALLS = """create function fib(n bigint) returns bigint language llvm as $$
define i32 @fib(ptr %value, i64 %n) {
  %f = call i64 @of(i64 %n)
  store i64 %f, ptr %value
  ret i32 0
}
define i64 @of(i64 %n) {
  %small = icmp ult i64 %n, 2
  br i1 %small, label %end, label %more
more:
  %n1 = sub i64 %n, 1
  %n2 = sub i64 %n, 2
  %a = call i64 @of(i64 %n1)
  %b = call i64 @of(i64 %n2)
  %c = add i64 %a, %b
  ret i64 %c
end:
  ret i64 %n
}
$$"""


def native(binary: str) -> list[Statement]:
    """Long-running user-defined functions, if the program has LLVM."""
    options = ("--native-functions",)
    compiled = (*options, "--tier", "compiled")
    made = subprocess.run([binary, *options, "-c", LOOP], capture_output=True, text=True, check=False)
    if made.returncode:
        print(f"left out: functions of the user's: {made.stderr.strip()}")
        return []
    return [
        Statement("a loop in a function of the user's", "select spin(x) from generate_series(1, 9) g(x)", LOOP, options),
        Statement("such a loop in a predicate", "select count(*) from generate_series(1, 99999) g(x) where spin(x) = 7", LOOP, compiled),
        Statement("such a loop in a sum", "select sum(spin(x)) from generate_series(1, 99999) g(x)", LOOP, compiled),
        Statement("such a loop in a constant", "select spin(7) + 1", LOOP, options),
        Statement("a function of the user's that calls itself", "select fib(90 + x) from generate_series(1, 99999) g(x)", CALLS, options),
    ]


def attempt(options: argparse.Namespace, statement: Statement, script: Path, moment: float, home: Path) -> Try | str | None:
    """Sends one signal; returns the try, None if the statement had ended, or a problem."""
    own = ["--statistics-cache", "off", "--code-cache", "off", "--format", "csv", "--threads", str(options.threads)]
    memory = ["--memory", "3GB", "--temp-directory", str(home)]
    child = subprocess.Popen(
        [options.tessera, *own, *memory, *statement.options, "-f", str(script)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        time.sleep(moment)
        if child.poll() is not None:
            said = child.stderr.read().decode(errors="replace")
            return None if child.returncode == 0 else f"failed before the signal: {said[:300]}"
        child.send_signal(signal.SIGINT)
        told = time.monotonic()
        said, at = b"", None
        while select.select([child.stderr], [], [], max(0, told + PATIENCE_S - time.monotonic()))[0]:
            piece = child.stderr.read1(1 << 16)
            if at is None:
                at = time.monotonic()
            if not piece:
                break
            said += piece
        else:
            return f"did not end within {PATIENCE_S} s (signal after {moment:.2f} s)"
        child.wait(PATIENCE_S)
        ended = time.monotonic()
    finally:
        child.kill()
        child.wait()
        child.stderr.close()
    # The statement was still being read, so there is no message.
    if CANCELLED in said.decode(errors="replace") or child.returncode == INTERRUPTED:
        return Try(at - told, ended - told)
    # The statement had just ended, or the program had not started it.
    if child.returncode in (0, -signal.SIGINT):
        return None
    return f"ended with {child.returncode}: {said[:300]!r}"


def measure(options: argparse.Namespace, checks: Checks, statement: Statement, home: Path, rng: random.Random) -> list[Try]:
    """Runs all tries of a statement."""
    script = home / "statement.sql"
    script.write_text(f"{statement.before};\n{statement.sql};\n" if statement.before else f"{statement.sql};\n")
    latest, hits = LATEST_S, []
    for _ in range(options.tries * 4):
        if len(hits) == options.tries:
            break
        moment = rng.uniform(EARLIEST_S, latest)
        outcome = attempt(options, statement, script, moment, home)
        if outcome is None:
            # After its end, or before its start.
            latest = max(latest * 0.85, EARLIEST_S * 5)
        elif isinstance(outcome, str):
            checks.note(outcome, statement.name)
            return hits
        else:
            hits.append(outcome)
    if not hits:
        checks.note("no signal hit it", statement.name)
        return hits
    said, ended = [one.said for one in hits], [one.ended for one in hits]
    figures = f"median {statistics.median(said):.3f} s, worst {max(said):.3f} s; program ended: worst {max(ended):.3f} s"
    print(f"{statement.name}: {figures} ({len(hits)} tries)", flush=True)
    problem = None
    if statistics.median(said) > options.median or max(said) > options.worst:
        problem = figures
    checks.note(problem, statement.name)
    return hits


def main() -> int:
    """Runs all measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", required=True, help="the program under test")
    parser.add_argument("--tries", type=int, default=5, help="signals that hit each statement")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="statements whose name holds this")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--median", type=float, default=0.1, help="seconds that half of a statement's tries may take")
    parser.add_argument("--worst", type=float, default=2.0, help="seconds that each may take")
    options = parser.parse_args()
    options.tessera = shutil.which(options.tessera) or options.tessera
    checks, rng, all_tries = Checks(), random.Random(options.seed), []
    with tempfile.TemporaryDirectory(prefix="interrupts-") as folder:
        home = Path(folder)
        # Only the files of the selected statements are generated.
        sources = [planned, computed, lambda: native(options.tessera), lambda: stored(home, options.tessera)]
        for statements in sources[: 3 if options.only and "file" not in options.only else 4]:
            for statement in statements():
                if options.only not in statement.name:
                    continue
                all_tries += measure(options, checks, statement, home, rng)
    said = sorted(one.said for one in all_tries)
    if said:
        at = lambda share: said[min(len(said) - 1, int(share * len(said)))]  # noqa: E731
        print(f"all {len(said)} tries: half within {at(0.5):.3f} s, 90 % {at(0.9):.3f} s, 99 % {at(0.99):.3f} s, worst {said[-1]:.3f} s")
    return checks.end()


if __name__ == "__main__":
    sys.exit(main())
