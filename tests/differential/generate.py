"""Generates random queries over tables."""

from __future__ import annotations

import copy
import random

import scalars
import windows
from data import Table, random_value
from queries import Expr, Join, Query, Rows, With, constant

NUMBERS = ["int", "big", "dec", "dbl", "small"]
COMPARABLE = ["int", "big", "dec", "dbl", "str", "date", "ts", "small", "flt", "int", "str"]
SET_OPERATIONS = ["union", "union all", "intersect", "intersect all", "except", "except all"]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
JOINS = ["join", "join", "left join", "right join", "full join"]


class Generator:
    """Generates queries over tables for a judge with PostgreSQL's semantics; `mergeable` restricts
    aggregates to mergeable ones."""

    def __init__(self, rng: random.Random, tables: list[Table], judge: str = "duckdb"):
        self.rng = rng
        self.tables = tables
        self.judge = judge
        self.aliases = 0

    def alias(self) -> str:
        self.aliases += 1
        return f"s{self.aliases}"

    def query(self) -> Query:
        """Generates a whole query."""
        tables = self.tables
        withs = []
        if self.rng.random() < 0.2:
            withs = [self.recursive() if self.rng.random() < 0.4 else self.common()]
            own = Table(withs[0].name, [(f"c{i}", expr.kind) for i, expr in enumerate(withs[0].base.select)], [])
            # Two entries, so that it is often read twice.
            self.tables = tables + [own, own]
        query = self.body()
        query.withs = withs
        self.tables = tables
        return query

    def common(self) -> With:
        self.aliases += 1
        return With(f"w{self.aliases}", self.select_query(depth=1))

    def recursive(self) -> With:
        """A walk along an equality, at most three steps deep; the second column counts the steps."""
        rng = self.rng
        self.aliases += 1
        name, depth = f"w{self.aliases}", rng.randint(1, 3)
        whole = lambda columns: Expr("int", "cast({} as integer)", [self.value("int", columns, 1)])
        sources, columns = self.sources(depth=1)
        base = Query([whole(columns), Expr("int", "0")], sources, [self.predicate(columns, 1)])
        own, table = [Expr("int", f"{name}.c0"), Expr("int", f"{name}.c1")], rng.choice(self.tables[1:])
        alias = self.alias()
        others = [Expr(kind, f"{alias}.{column}") for column, kind in table.columns]
        on = self.join_condition(own[:1], others, 1) or Expr("bool", f"{name}.c0 = 1")
        kind = rng.choice(["join", "join", "left join"])
        step = Query(
            [whole(own[:1] + others), Expr("int", f"{name}.c1 + 1")],
            [Join("", name, name, None), Join(kind, table.name, alias, on)],
            [Expr("bool", f"{name}.c1 < {depth}")] + [self.predicate(own + others, 1) for _ in range(rng.choice([0, 1]))],
        )
        return With(name, base, rng.choice(["union", "union all"]), step)

    def body(self) -> Query:
        """Generates a query without its WITH clause."""
        rng = self.rng
        query = self.select_query(depth=0)
        if not query.distinct and rng.random() < 0.12:
            other = self.select_query(depth=1, like=[expr.kind for expr in query.select])
            query.combine = (rng.choice(SET_OPERATIONS), other)
        if query.distinct == "on" or rng.random() < 0.5:
            directions = ["", " desc", " nulls first", " desc nulls last"]
            query.order = [f"{i + 1}{rng.choice(directions)}" for i in range(len(query.select))]
            if rng.random() < 0.6:
                query.limit = f" limit {rng.choice([0, 1, 5, 50, 1000])}"
                if rng.random() < 0.3:
                    query.limit += f" offset {rng.choice([0, 3, 60])}"
        elif not query.combine and not query.group and not query.distinct and rng.random() < 0.1:
            columns = self.columns_of(query.sources)
            kind = rng.choice(COMPARABLE)
            query.first = [self.scalar_subquery(kind, columns) if rng.random() < 0.5 else self.value(kind, columns, 2)]
        return query

    def select_query(self, depth: int, like: list[str] | None = None, outer: list[Expr] | None = None) -> Query:
        """Generates a SELECT whose columns have the types `like`; it may also use columns `outer`
        of the enclosing query."""
        rng = self.rng
        sources, columns = self.sources(depth)
        scope = columns + (outer or [])
        where = [self.predicate(scope, depth) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        kinds = like or [rng.choice(COMPARABLE + ["bool"]) for _ in range(rng.randint(1, 4))]
        query = Query([], sources, where)
        if rng.random() < 0.4:
            query.group = True
            query.keys = rng.randint(0, len(kinds) - 1) if rng.random() < 0.8 else len(kinds)
            query.select = [
                self.value(kind, columns, 2) if i < query.keys else self.aggregate(kind, columns)
                for i, kind in enumerate(kinds)
            ]
            if query.keys and rng.random() < 0.2:
                query.sets = rng.choice(["rollup", "cube", "sets"])
            if rng.random() < 0.3:
                query.having = [self.having(columns, depth)]
        else:
            query.select = [self.value(kind, columns, 3, depth) for kind in kinds]
            self.add_windows(query, columns, depth)
            query.distinct = "distinct " if rng.random() < 0.15 else ""
            if depth == 0 and rng.random() < 0.06:
                query.distinct = "on"
        return query

    def add_windows(self, query: Query, columns: list[Expr], depth: int) -> None:
        """Makes some columns calls of window functions, and selects the first rows of those below."""
        rng = self.rng
        # The parts of a partitioned query have other windows than the whole.
        outermost = depth == 0 and len(query.sources) < 3 and self.judge not in ("tlp", "norec")
        if rng.random() < (0.6 if depth == 2 else 0.15) and (depth == 2 or outermost):
            condition = lambda: self.simple_predicate(columns)
            for i, expr in enumerate(query.select):
                if rng.random() < 0.6:
                    column = lambda kind: self.column(kind, columns)
                    query.select[i] = windows.call(rng, self.judge, expr.kind, columns, column, condition)
            numbered = [expr for expr in query.select if windows.is_numbering(expr)]
            # PostgreSQL has no QUALIFY.
            if numbered and self.judge in ("duckdb", "rules") and rng.random() < 0.5:
                query.qualify = [Expr("bool", f"{{}} <= {rng.randint(1, 4)}", [rng.choice(numbered)])]
        for source in query.sources:
            if isinstance(source.table, Query) and rng.random() < 0.6:
                numbered = [i for i, expr in enumerate(source.table.select) if windows.is_numbering(expr)]
                test = rng.choice(["<= 3", "< 3", "= 1", "<= 1", "= 2"])
                query.where += [Expr("bool", f"{source.alias}.c{i} {test}") for i in numbered[:1]]

    def having(self, columns: list[Expr], depth: int) -> Expr:
        """Generates a condition on groups."""
        rng = self.rng
        kind = rng.choice(NUMBERS)
        found = self.aggregate(kind, columns)
        if depth == 0 and rng.random() < 0.25:
            return self.compare(found, self.scalar_subquery(kind, []))
        return self.compare(found, constant(rng, kind))

    def columns_of(self, sources: list[Join]) -> list[Expr]:
        """Returns the columns of a query's sources."""
        found = []
        for source in sources:
            if isinstance(source.table, str):
                table = next(table for table in self.tables if table.name == source.table)
                found += [Expr(kind, f"{source.alias}.{name}") for name, kind in table.columns]
            else:
                held = source.table
                kinds = held.kinds if isinstance(held, Rows) else [expr.kind for expr in held.select]
                found += [Expr(kind, f"{source.alias}.c{i}") for i, kind in enumerate(kinds)]
        return found

    def sources(self, depth: int) -> tuple[list[Join], list[Expr]]:
        """Generates FROM: one to three tables, each later one joined to the earlier ones."""
        rng = self.rng
        sources: list[Join] = []
        columns: list[Expr] = []
        for number in range(rng.choice([1, 1, 2, 2, 3]) if depth == 0 else 1):
            alias = self.alias()
            table = self.source(number, depth, columns)
            lateral = isinstance(table, Query) and number > 0 and rng.random() < 0.35
            if lateral:
                self.correlate(table, columns)
            source = Join("", table, alias, None)
            own = self.columns_of([source])
            if number and not self.join(source, sources, columns, own, lateral, depth):
                return sources, columns
            sources.append(source)
            columns = columns + own
            # A JOIN after a comma cannot refer to sources before the comma.
            if source.kind == ",":
                break
        return sources, columns

    def source(self, number: int, depth: int, columns: list[Expr]) -> str | Query | Rows:
        """Generates a source: a table, a query or VALUES."""
        rng = self.rng
        if depth == 0 and rng.random() < 0.14:
            return self.select_query(depth=2)
        if rng.random() < 0.04:
            kinds = [rng.choice(COMPARABLE + ["bool"]) for _ in range(rng.randint(1, 3))]
            value = lambda kind: None if rng.random() < 0.2 else random_value(rng, kind)
            return Rows(kinds, [tuple(value(kind) for kind in kinds) for _ in range(rng.randint(1, 5))])
        return rng.choice(self.tables if number == 0 else self.tables[1:]).name

    def join(
        self, source: Join, before: list[Join], columns: list[Expr], own: list[Expr], lateral: bool, depth: int
    ) -> bool:
        """Joins a source to those before it; returns whether a join condition was found."""
        rng = self.rng
        if lateral:
            source.kind, source.on = rng.choice(["join lateral", "left join lateral"]), Expr("bool", "true")
            return True
        if rng.random() < 0.04:
            source.kind = rng.choice(["cross join", ","])
            return True
        tables = {table.name: [name for name, _ in table.columns] for table in self.tables}
        both = [tables.get(part.table if isinstance(part.table, str) else "", []) for part in (source, before[-1])]
        if len(before) == 1 and all("k" in names for names in both) and rng.random() < 0.1:
            # Outer joins that merge columns are excluded; known.py lists their causes.
            source.kind = rng.choice(["join", "join", "left join", "right join", "full join"])
            if rng.random() < 0.2:
                source.kind = f"natural {source.kind}"
                return True
            source.using = rng.choice([" using (k)", " using (n)", " using (k, n)"])
            return True
        on = self.join_condition(columns, own, depth)
        if on is None:
            return False
        source.kind = rng.choice(JOINS)
        more = self.subquery_in_on(source.kind, columns, own)
        source.on = Expr("bool", "{} and {}", [on, more]) if more else on
        return True

    def join_condition(self, left: list[Expr], right: list[Expr], depth: int) -> Expr | None:
        """Generates an equality, sometimes with further conditions."""
        rng = self.rng
        whole = {"int", "big", "small"}
        pairs = [(a, b) for a in left for b in right if a.kind == b.kind or {a.kind, b.kind} <= whole]
        if not pairs:
            return None
        one, other = rng.choice(pairs)
        condition = Expr("bool", "{} = {}", [one, other])
        if rng.random() < 0.3:
            more = rng.choice(pairs)
            condition = Expr("bool", "{} and {}", [condition, Expr("bool", "{} " + rng.choice(COMPARISONS) + " {}", list(more))])
        if rng.random() < 0.15:
            condition = Expr("bool", "{} and {}", [condition, self.simple_predicate(left + right)])
        return condition

    def subquery_in_on(self, kind: str, left: list[Expr], right: list[Expr]) -> Expr | None:
        """Generates a subquery in `ON` where it is allowed: in outer joins only over the nullable
        side."""
        scopes = {"join": left + right, "left join": right, "right join": left}
        if kind not in scopes or self.rng.random() > 0.06:
            return None
        return self.subquery_predicate(scopes[kind])

    def column(self, kind: str, columns: list[Expr]) -> Expr:
        fitting = [column for column in columns if column.kind == kind]
        return copy.deepcopy(self.rng.choice(fitting)) if fitting else constant(self.rng, kind)

    def compare(self, left: Expr, right: Expr) -> Expr:
        return Expr("bool", "({} " + self.rng.choice(COMPARISONS) + " {})", [left, right])

    def simple_predicate(self, columns: list[Expr]) -> Expr:
        kind = self.rng.choice(COMPARABLE)
        return self.compare(self.column(kind, columns), constant(self.rng, kind, 0.05))

    def predicate(self, columns: list[Expr], depth: int) -> Expr:
        """Generates a boolean, with subqueries down to a depth."""
        rng = self.rng
        kind = rng.choice(COMPARABLE)
        value = lambda: self.value(kind, columns, 1)
        literal = lambda: constant(rng, kind, 0.03)
        choice = rng.random()
        if choice < 0.35:
            return self.compare(value(), self.value(kind, columns, 1))
        if choice < 0.43:
            negated = rng.choice(["", "", "not "])
            return Expr("bool", "({} " + negated + "between {} and {})", [value(), literal(), literal()])
        if choice < 0.50:
            items = [literal() for _ in range(rng.randint(1, 4))]
            if rng.random() < 0.1:
                items.append(Expr(kind, "null"))
            return Expr("bool", "({} " + rng.choice(["in", "not in"]) + " (" + ", ".join(["{}"] * len(items)) + "))", [value(), *items])
        if choice < 0.57:
            return Expr("bool", "({} is " + rng.choice(["null", "not null"]) + ")", [value()])
        if choice < 0.63:
            return self.pattern(columns)
        if choice < 0.72:
            joined = rng.choice(["({} or {})", "({} and {})"])
            return Expr("bool", joined, [self.predicate(columns, depth + 1), self.predicate(columns, depth + 1)])
        if choice < 0.77:
            return Expr("bool", "(not {})", [self.predicate(columns, depth + 1)])
        if choice < 0.81:
            return Expr("bool", "({} is " + rng.choice(["", "not "]) + "distinct from {})", [value(), value()])
        if choice < 0.82:
            return self.of_several(columns)
        if choice < 0.83:
            truth = rng.choice(["true", "not true", "false", "not false", "unknown", "not unknown"])
            return Expr("bool", "({} is " + truth + ")", [self.predicate(columns, depth + 1)])
        if choice < 0.95 and depth == 0:
            return self.subquery_predicate(columns)
        return self.simple_predicate(columns)

    def of_several(self, columns: list[Expr]) -> Expr:
        """Generates a predicate over a list, or over rows if the judge compares them like
        PostgreSQL."""
        rng = self.rng
        kind = rng.choice(["int", "big", "str", "date", "dec"])
        value = lambda: self.value(kind, columns, 1)
        if self.judge == "duckdb" or rng.random() < 0.5:
            items = [value() for _ in range(rng.randint(1, 3))]
            items += [constant(rng, kind) for _ in range(rng.randint(0, 2))]
            listed = "array[" + ", ".join(["{}"] * len(items)) + "]"
            if self.judge != "duckdb" and rng.random() < 0.3:
                return Expr("bool", "({} " + rng.choice(COMPARISONS) + f" all({listed}))", [value(), *items])
            if rng.random() < 0.3:
                return Expr("bool", f"(({listed})[{rng.randint(1, 3)}] " + rng.choice(COMPARISONS) + " {})", [*items, value()])
            return Expr("bool", "({} = any(" + listed + "))", [value(), *items])
        other = rng.choice(COMPARABLE)
        row = lambda: [self.value(kind, columns, 1), self.value(other, columns, 1)]
        if rng.random() < 0.5:
            return Expr("bool", "(({}, {}) " + rng.choice(["=", "<>", "=", "<", ">="]) + " ({}, {}))", row() + row())
        rows = [row() for _ in range(rng.randint(1, 3))]
        negated = rng.choice(["", "not "])
        listed = ", ".join(["({}, {})"] * len(rows))
        return Expr("bool", "(({}, {}) " + negated + f"in ({listed}))", row() + [value for one in rows for value in one])

    def pattern(self, columns: list[Expr]) -> Expr:
        """Generates LIKE, or a regular expression if the judge has PostgreSQL's syntax."""
        rng = self.rng
        text = self.value("str", columns, 1)
        if self.judge != "duckdb" and rng.random() < 0.3:
            pattern = rng.choice(["^a", "b$", "a.c", "[a-c]+", "(a|z)", "^$", "b*c", "longer", "^[^a]", "ü"])
            return Expr("bool", "({} " + rng.choice(["~", "!~", "~*", "!~*"]) + f" '{pattern}')", [text])
        pattern = rng.choice(["a%", "%b", "%a%", "_", "a_c", "", "%", "z%a", "%ü%", "_%", "%%b"])
        like = rng.choice(["like", "like", "not like", "ilike", "not ilike"])
        return Expr("bool", f"({{}} {like} '{pattern}')", [text])

    def subquery_predicate(self, columns: list[Expr]) -> Expr:
        rng = self.rng
        kind = rng.choice(["int", "big", "str", "date", "dec", "dbl"])
        outer = columns if rng.random() < 0.5 else None
        choice = rng.random()
        inner = self.select_query(depth=1, like=[kind if choice < 0.6 else "int"])
        self.correlate(inner, outer)
        if choice < 0.5:
            return Expr("bool", "({} " + rng.choice(["in", "not in"]) + " ({}))", [self.column(kind, columns), inner])
        if choice < 0.6:
            test = rng.choice(COMPARISONS) + rng.choice([" any", " all", " some"])
            return Expr("bool", "({} " + test + " ({}))", [self.column(kind, columns), inner])
        return Expr("bool", "(" + rng.choice(["exists", "not exists"]) + " ({}))", [inner])

    def scalar_subquery(self, kind: str, columns: list[Expr]) -> Expr:
        """Generates a subquery of one row and one column."""
        inner = self.select_query(depth=1, like=[kind])
        inner.group, inner.keys, inner.sets, inner.having, inner.distinct = True, 0, "", [], ""
        inner.select = [self.aggregate(kind, self.columns_of(inner.sources))]
        self.correlate(inner, columns if columns and self.rng.random() < 0.6 else None)
        return Expr(kind, "({})", [inner])

    def correlate(self, inner: Query, outer: list[Expr] | None) -> None:
        """Adds equalities with columns of the enclosing query."""
        if not outer or not isinstance(inner.sources[0].table, str):
            return
        own = self.columns_of(inner.sources[:1])
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            condition = self.join_condition(outer, own, 1)
            if condition:
                inner.where.append(condition)

    def value(self, kind: str, columns: list[Expr], size: int, depth: int = 1) -> Expr:
        """Generates a scalar of a type, of limited size."""
        rng = self.rng
        if size <= 0 or rng.random() < 0.35:
            return self.column(kind, columns) if rng.random() < 0.85 else constant(rng, kind, 0.01)
        below = lambda k=kind: self.value(k, columns, size - 1)
        choice = rng.random()
        if choice < 0.12:
            return Expr(kind, "coalesce({}, {})", [below(), below()])
        if choice < 0.22:
            test = self.predicate(columns, depth if size > 1 else 1)
            return Expr(kind, "(case when {} then {} else {} end)", [test, below(), below()])
        if choice < 0.26:
            items = [below(), constant(rng, kind), below(), below()]
            return Expr(kind, "(case {} when {} then {} when null then {} end)", items)
        if choice < 0.32:
            return Expr(kind, "nullif({}, {})", [below(), below()])
        if choice < 0.38 and kind not in ("bool", "ts"):
            return Expr(kind, rng.choice(["greatest", "least"]) + "({}, {})", [below(), below()])
        if choice < 0.42 and depth == 0:
            return self.scalar_subquery(kind, columns)
        if kind == "bool":
            return self.predicate(columns, 1)
        leaf = lambda k=kind: self.column(k, columns)
        return scalars.value(rng, self.judge, kind, below, leaf)

    def aggregate(self, kind: str, columns: list[Expr]) -> Expr:
        """Generates an aggregate of a type, or of one comparable with it."""
        argument = lambda k=kind: self.value(k, columns, 1)
        condition = self.predicate(columns, 1) if self.rng.random() < 0.15 else None
        return scalars.aggregate(self.rng, self.judge, kind, argument, condition)
