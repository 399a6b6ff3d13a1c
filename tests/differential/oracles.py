"""Oracles for the correct answer: DuckDB, PostgreSQL, or related queries whose answers must agree.

An oracle opens a world (tables, and their Parquet files in a directory) and creates cases from
queries. A case has statements for the program under test, and a check of its answers.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import random
import re
import struct
import sys
import threading
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "judges"))

import postgres
from data import ROWS_MOST, Table
from harness.compare import difference, parse_csv, rows_from_csv
from queries import Expr, Query
from scalars import merge_of

Answer = str | Exception

# Errors that depend on a value or a row. An engine may choose which rows it computes, so two
# equivalent
# queries may differ in these errors.
RAISED = re.compile(r"SQLSTATE 2[12]|overflow|out of range|division by zero|does not fit|more than one row|too (large|long)")
JUDGE_TIMEOUT_S = 30
# The program's time limit for queries that a judge answers in time.
PROGRAM_TIMEOUT_S = 300.0
# Longer answers are not compared: cross joins return millions of rows, which Python
# takes minutes to read.
ROWS_MAX = 20_000
# Years outside of 1 to 9999 have no common text form.
AGES = re.compile(r"\d \(?BC\b|\d{5}-\d\d-\d\d")


@dataclass
class Case:
    """Statements for the program under test; `expected` is set if another engine has answered the
    query."""

    query: Query
    statements: list[str]
    expected: list[tuple] | None = None


class Refused(Exception):
    """A query without a verdict: the judge does not answer it."""


class TooLong(Exception):
    """A query that the program did not answer in time."""


def strange(rows: list) -> bool:
    """Returns whether rows contain a date outside of the years 1 to 9999."""
    return any(isinstance(value, str) and AGES.search(value) for row in rows for value in row)


def float32(value: object) -> object:
    """Returns the nearest single-precision number: engines differ in the number of digits that
    they print."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0] if isinstance(value, float) else value
    except OverflowError:
        return value


def singles(rows: list[tuple], query: Query) -> list[tuple]:
    """Rounds the single-precision columns of rows."""
    places = {i for i, expr in enumerate(query.select) if expr.kind == "flt"}
    if not places:
        return rows
    return [tuple(float32(value) if i in places else value for i, value in enumerate(row)) for row in rows]


def typed(text: str | None, kind: str) -> object:
    """Converts a value printed by psql or the program for comparison; returns the text if it does
    not fit its type."""
    if text is None:
        return None
    try:
        match kind:
            case "int" | "big" | "small" | "dec":
                return Decimal(text)
            case "dbl" | "flt":
                return float(text)
            case "bool":
                return {"t": True, "true": True, "f": False, "false": False}.get(text, text)
            case "date":
                return datetime.date.fromisoformat(text)
            case "ts":
                return datetime.datetime.fromisoformat(text)
    except (InvalidOperation, ValueError):
        pass
    return text


class DuckDb:
    """DuckDB over the same files, configured for PostgreSQL's semantics."""

    name = "duckdb"
    limit_s = PROGRAM_TIMEOUT_S
    rows_most = ROWS_MOST

    @contextlib.contextmanager
    def world(self, tables: list[Table], directory: Path) -> Iterator["DuckDb"]:
        import duckdb

        connection = duckdb.connect(config={"threads": 1})
        connection.execute("set integer_division = true")
        connection.execute("set default_null_order = 'nulls_last_on_asc_first_on_desc'")
        for table in tables:
            connection.execute(f"create view {table.name} as from read_parquet('{directory}/{table.name}.parquet')")
        self.connection = connection
        yield self
        connection.close()

    @contextlib.contextmanager
    def limited(self) -> Iterator[None]:
        """Interrupts a query at the time limit."""
        timer = threading.Timer(JUDGE_TIMEOUT_S, self.connection.interrupt)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def cases(self, queries: list[Query]) -> list[Case | None]:
        """Returns a case for each query; none if DuckDB rejects it (an overflow, or an unsupported
        construct), exceeds the time limit, or returns too many rows."""
        import duckdb

        found: list[Case | None] = []
        for query in queries:
            try:
                with self.limited():
                    rows = self.connection.execute(query.sql()).fetchmany(ROWS_MAX + 1)
                found.append(None if len(rows) > ROWS_MAX or strange(rows) else Case(query, [query.sql()], singles(rows, query)))
            except (duckdb.Error, ValueError, OverflowError):
                found.append(None)
        return found

    def raises(self, queries: list[str]) -> bool:
        """Returns whether one of the queries fails because of a value."""
        import duckdb

        for sql in queries:
            try:
                with self.limited():
                    self.connection.execute(sql).fetchall()
            except (duckdb.ConversionException, duckdb.OutOfRangeException):
                return True
            except Exception:
                continue
        return False

    def problem(self, case: Case, answers: list[Answer]) -> str | None:
        """Returns the problem with the answers of a case, or None."""
        if isinstance(answers[0], Exception):
            return str(answers[0])
        given = singles(rows_from_csv(answers[0], case.expected), case.query)
        return difference(case.expected, given, case.query.ordered())


class PostgreSql:
    """PostgreSQL with the same rows."""

    name = "postgresql"
    limit_s = PROGRAM_TIMEOUT_S
    rows_most = ROWS_MOST
    # In locale C only ASCII letters have upper and lower case.
    BEFORE = """
        create function public.upper(text) returns text language sql immutable strict
            return pg_catalog.upper($1 collate "und-x-icu");
        create function public.lower(text) returns text language sql immutable strict
            return pg_catalog.lower($1 collate "und-x-icu");
    """

    def __init__(self) -> None:
        self.cluster = contextlib.ExitStack()
        self.postgres = self.cluster.enter_context(postgres.Cluster())
        self.postgres.script(self.BEFORE)
        self.worlds = 0

    def close(self) -> None:
        self.cluster.close()

    @contextlib.contextmanager
    def world(self, tables: list[Table], directory: Path) -> Iterator["PostgreSql"]:
        self.worlds += 1
        schema = f"w{self.worlds}"
        path = f"set search_path = {schema}, public, pg_catalog;\nset statement_timeout = '{JUDGE_TIMEOUT_S}s';\n"
        before, self.before = getattr(self, "before", None), path
        self.postgres.script(f"create schema {schema};\n{path}" + "".join(table.copy_sql() for table in tables))
        yield self
        self.postgres.script(f"drop schema {schema} cascade;")
        self.before = before

    def cases(self, queries: list[Query]) -> list[Case | None]:
        """Returns a case for each query; none if PostgreSQL rejects it or returns too many rows."""
        # With a limit PostgreSQL keeps the order.
        limited = [f"select * from ({query.sql()}) as answer limit {ROWS_MAX + 1}" for query in queries]
        answers = self.postgres.answers(limited, self.before, JUDGE_TIMEOUT_S * len(queries) + 60)
        found: list[Case | None] = []
        for query, answer in zip(queries, answers):
            kinds = [expr.kind for expr in query.select]
            rows = [tuple(typed(value, kind) for value, kind in zip(row, kinds)) for row in answer.rows]
            bad = answer.failed or len(answer.rows) > ROWS_MAX or strange(answer.rows)
            found.append(None if bad else Case(query, [query.sql()], singles(rows, query)))
        return found

    def raises(self, queries: list[str]) -> bool:
        """Returns whether one of the queries fails because of a value."""
        answers = self.postgres.answers(queries, self.before, JUDGE_TIMEOUT_S * len(queries) + 60)
        return any(answer.failed and answer.state.startswith("22") for answer in answers)

    def problem(self, case: Case, answers: list[Answer]) -> str | None:
        """Returns the problem with the answers of a case, or None."""
        if isinstance(answers[0], Exception):
            return str(answers[0])
        return difference(case.expected, values(answers[0], case.query), case.query.ordered())


def values(answer: str, query: Query) -> list[tuple]:
    """Converts the program's rows to the types of the query's columns."""
    kinds = [expr.kind for expr in query.select]
    rows = parse_csv(answer)[1:]
    return singles([tuple(typed(value, kind) for value, kind in zip(row, kinds)) for row in rows], query)


class Own:
    """An oracle without another engine: the answers to several queries must agree. Without a
    judge, slow queries (cross joins) cannot be excluded in advance; they have no verdict, and
    the tables are small."""

    limit_s = 10.0
    rows_most = (150, 60, 40, 3)

    @contextlib.contextmanager
    def world(self, tables: list[Table], directory: Path) -> Iterator["Own"]:
        yield self

    def cases(self, queries: list[Query]) -> list[Case | None]:
        return [self.case(query) for query in queries]

    def raises(self, _queries: list[str]) -> bool:
        """Unknown without another engine."""
        return False

    def problem(self, case: Case, answers: list[Answer]) -> str | None:
        """Returns the problem with the answers of a case, or None."""
        for answer in answers:
            if isinstance(answer, Exception):
                if isinstance(answer, TooLong) or RAISED.search(str(answer)):
                    raise Refused(str(answer))
                return str(answer)
        whole, *parts = [values(answer, case.query) for answer in answers]
        found = difference(whole, [row for part in parts for row in part], [])
        return found and f"{self.name}: the parts: {found}"


class Partitioning(Own):
    """Ternary logic partitioning: a query's rows are those where its last condition is true,
    false, and NULL."""

    name = "tlp"

    def case(self, query: Query) -> Case | None:
        query = copy.deepcopy(query)
        query.combine, query.first, query.order, query.limit = None, [], [], ""
        query.distinct = "distinct " if query.distinct == "distinct " else ""
        holder = "having" if query.group and query.having else "where"
        if not getattr(query, holder):
            return None
        merged = query.group and holder == "where"
        if merged:
            if query.sets:
                query.sets = ""
            for i in range(query.keys, len(query.select)):
                if merge_of(query.select[i]) is None:
                    query.select[i] = Expr("big", "count(*)")
        condition = getattr(query, holder)[-1]
        whole = copy.deepcopy(query)
        getattr(whole, holder).pop()
        parts = []
        for template in ("({})", "(not ({}))", "(({}) is null)"):
            part = copy.deepcopy(query)
            getattr(part, holder)[-1] = Expr("bool", template, [condition])
            parts.append(part)
        if merged:
            return Case(query, [whole.sql(), merge(query, parts)])
        if query.distinct:
            return Case(query, [whole.sql(), union("union", parts)])
        return Case(query, [whole.sql(), *[part.sql() for part in parts]])


def union(operation: str, parts: list[Query]) -> str:
    """Returns the union of the parts, with their common table expressions once."""
    before = parts[0].with_sql()
    return before + f" {operation} ".join("(" + part.sql().removeprefix(before) + ")" for part in parts)


def merge(query: Query, parts: list[Query]) -> str:
    """Returns the merged groups of the parts."""
    before = parts[0].with_sql()
    keys = [f"c{i}" for i in range(query.keys)]
    merged = [f"{merge_of(query.select[i])}(c{i}) as c{i}" for i in range(query.keys, len(query.select))]
    grouped = f" group by {', '.join(keys)}" if keys else ""
    inner = union("union all", parts).removeprefix(before)
    return f"{before}select {', '.join(keys + merged)} from ({inner}) as parts{grouped}"


class NoRec(Own):
    """Non-optimizing reference: the number of rows selected by a condition equals the number of
    rows for which it is true."""

    name = "norec"

    def case(self, query: Query) -> Case | None:
        if not query.where:
            return None
        query = copy.deepcopy(query)
        query.select, query.group, query.keys, query.sets, query.having = [Expr("big", "count(*)")], False, 0, "", []
        query.combine, query.first, query.order, query.limit, query.distinct = None, [], [], "", ""
        counted = copy.deepcopy(query)
        condition = " and ".join(["({})"] * len(query.where))
        counted.where = []
        counted.select = [Expr("big", f"coalesce(sum(case when {condition} then 1 else 0 end), 0)", query.where)]
        return Case(query, [query.sql(), counted.sql()])


class Rules(Own):
    """The program without rewrites: a query returns the same rows with no rules and with some of
    them."""

    name = "rules"
    # Disables none, all and some of the rules.
    ALL, RESET = "set disabled_rules = 'all'", "reset disabled_rules"
    EMPTY_KEPT = 0.2

    def __init__(self) -> None:
        page = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "rules.md"
        self.rules = re.findall(r"^\| `(\w+)` \|", page.read_text(), re.MULTILINE)

    def case(self, query: Query) -> Case:
        # A reduced query keeps its rules.
        if not query.without:
            rng = random.Random(query.sql())
            query.without = ",".join(rng.sample(self.rules, rng.randint(1, len(self.rules) - 1)))
        some = f"set disabled_rules = '{query.without}'"
        sql = query.sql()
        return Case(query, [sql, f"{self.ALL};\n{sql};\n{self.RESET}", f"{some};\n{sql};\n{self.RESET}"])

    def problem(self, case: Case, answers: list[Answer]) -> str | None:
        """Returns the problem with the answers of a case, or None. A rule may remove an error, but
        never add one."""
        if any(isinstance(answer, TooLong) for answer in answers):
            raise Refused("too long")
        rewritten, written, some = answers
        if isinstance(written, Exception):
            if all(isinstance(answer, Exception) for answer in answers) or RAISED.search(str(written)):
                raise Refused(str(written))
            return f"error without rules: {written}"
        expected = values(written, case.query)
        for answer, which in [(rewritten, "with all rules"), (some, f"without {case.query.without}")]:
            if isinstance(answer, Exception):
                # A scalar subquery may be computed although another table has no rows.
                if "more than one row" in str(answer):
                    raise Refused(str(answer))
                return f"error {which}: {answer}"
            found = difference(expected, values(answer, case.query), case.query.ordered())
            if found:
                return f"{which}: {found}"
        # Answers without rows prove little, and are more than half of all answers.
        if not expected and random.Random(case.statements[0]).random() > self.EMPTY_KEPT:
            raise Refused("no rows")
        return None


ORACLES = {"duckdb": DuckDb, "postgresql": PostgreSql, "tlp": Partitioning, "norec": NoRec, "rules": Rules}
