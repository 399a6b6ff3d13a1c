"""Random queries as trees, so that a failing one can be made smaller."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field

from data import Table, literal, random_value

NUMBERS = ["int", "big", "dec", "dbl"]
COMPARABLE = NUMBERS + ["str", "date", "ts"]
SET_OPERATIONS = ["union", "union all", "intersect", "intersect all", "except", "except all"]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]


@dataclass
class Expr:
    """An expression: a type, a template with `{}` for each child, the children."""

    kind: str
    template: str
    children: list["Expr | Query"] = field(default_factory=list)

    def sql(self) -> str:
        return self.template.format(*[child.sql() for child in self.children])


@dataclass
class Join:
    """A table (or a query in its place) joined to what stands before it; no kind for the first."""

    kind: str
    table: "str | Query"
    alias: str
    on: Expr | None

    def sql(self) -> str:
        table = self.table if isinstance(self.table, str) else f"({self.table.sql()})"
        on = f" on {self.on.sql()}" if self.on else ""
        return f"{self.kind} {table} as {self.alias}{on}".strip()


@dataclass
class With:
    """A common table expression; a recursive one has a step, and what joins the two."""

    name: str
    base: "Query"
    union: str = ""
    step: "Query | None" = None

    def sql(self) -> str:
        columns = ", ".join(f"c{i}" for i in range(len(self.base.select)))
        step = f" {self.union} {self.step.sql()}" if self.step else ""
        return f"{self.name}({columns}) as ({self.base.sql()}{step})"


@dataclass
class Query:
    """A SELECT, or two of them combined."""

    select: list[Expr]
    sources: list[Join]
    where: list[Expr] = field(default_factory=list)
    withs: list[With] = field(default_factory=list)
    group: bool = False
    keys: int = 0
    sets: str = ""
    having: list[Expr] = field(default_factory=list)
    distinct: bool = False
    combine: tuple[str, "Query"] | None = None
    order: list[str] = field(default_factory=list)
    limit: str = ""

    def sql(self) -> str:
        names = ", ".join(f"{expr.sql()} as c{i}" for i, expr in enumerate(self.select))
        text = self.with_sql()
        text += f"select {'distinct ' if self.distinct else ''}{names} from " + " ".join(s.sql() for s in self.sources)
        if self.where:
            text += " where " + " and ".join(expr.sql() for expr in self.where)
        if self.group and self.keys:
            text += " group by " + self.group_sql()
        if self.having:
            text += " having " + " and ".join(expr.sql() for expr in self.having)
        if self.combine:
            text += f" {self.combine[0]} {self.combine[1].sql()}"
        if self.order:
            text += " order by " + ", ".join(self.order)
        return text + self.limit

    def with_sql(self) -> str:
        if not self.withs:
            return ""
        recursive = "recursive " if any(part.step for part in self.withs) else ""
        return f"with {recursive}" + ", ".join(part.sql() for part in self.withs) + " "

    def group_sql(self) -> str:
        """The keys by position, or several groupings of them."""
        keys = [expr.sql() for expr in self.select[: self.keys]]
        # In a grouping a lone number is a position for one engine and a value for the other.
        # The same key twice is refused by one of them.
        if not self.sets or len(set(keys)) < len(keys) or any(key.strip("(-) ").isdigit() for key in keys):
            return ", ".join(str(i + 1) for i in range(self.keys))
        if self.sets == "sets":
            halves = [keys, keys[: len(keys) // 2], []]
            return "grouping sets (" + ", ".join("(" + ", ".join(half) + ")" for half in halves) + ")"
        return f"{self.sets} (" + ", ".join(keys) + ")"


class Generator:
    """Makes queries over tables."""

    def __init__(self, rng: random.Random, tables: list[Table]):
        self.rng = rng
        self.tables = tables
        self.aliases = 0

    def query(self) -> Query:
        """A whole query."""
        tables = self.tables
        withs = []
        if self.rng.random() < 0.2:
            withs = [self.recursive() if self.rng.random() < 0.4 else self.common()]
            own = Table(withs[0].name, [(f"c{i}", expr.kind) for i, expr in enumerate(withs[0].base.select)], [])
            # Twice, so that it is often read twice.
            self.tables = tables + [own, own]
        query = self.body()
        query.withs = withs
        self.tables = tables
        return query

    def common(self) -> With:
        self.aliases += 1
        return With(f"w{self.aliases}", self.select_query(depth=1))

    def recursive(self) -> With:
        """A walk along an equality, at most three steps deep; the second column counts them."""
        rng = self.rng
        self.aliases += 1
        name, depth = f"w{self.aliases}", rng.randint(1, 3)
        whole = lambda columns: Expr("int", "cast({} as integer)", [self.value("int", columns, 1)])
        sources, columns = self.sources(depth=1)
        base = Query([whole(columns), Expr("int", "0")], sources, [self.predicate(columns, 1)])
        self.aliases += 1
        own, table = [Expr("int", f"{name}.c0"), Expr("int", f"{name}.c1")], rng.choice(self.tables[1:])
        alias = f"s{self.aliases}"
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
        """A query without what stands before it."""
        query = self.select_query(depth=0)
        if self.rng.random() < 0.12:
            other = self.select_query(depth=1, like=[expr.kind for expr in query.select])
            query.combine = (self.rng.choice(SET_OPERATIONS), other)
        if self.rng.random() < 0.5:
            directions = ["", " desc", " nulls first", " desc nulls last"]
            query.order = [f"{i + 1}{self.rng.choice(directions)}" for i in range(len(query.select))]
            if self.rng.random() < 0.6:
                query.limit = f" limit {self.rng.choice([0, 1, 5, 50, 1000])}"
                if self.rng.random() < 0.3:
                    query.limit += f" offset {self.rng.choice([0, 3, 60])}"
        return query

    def select_query(self, depth: int, like: list[str] | None = None, outer: list[Expr] | None = None) -> Query:
        """One SELECT whose columns have the types `like`, over columns `outer` of the query around it too."""
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
            if query.keys and rng.random() < 0.3:
                query.having = [self.compare(self.aggregate(kind := rng.choice(NUMBERS), columns), self.constant(kind))]
        else:
            query.select = [self.value(kind, columns, 3, depth) for kind in kinds]
            query.distinct = rng.random() < 0.15
        return query

    def sources(self, depth: int) -> tuple[list[Join], list[Expr]]:
        """FROM: one to three tables, the later ones joined on something."""
        rng = self.rng
        sources: list[Join] = []
        columns: list[Expr] = []
        for number in range(rng.choice([1, 1, 2, 2, 3]) if depth == 0 else 1):
            self.aliases += 1
            alias = f"s{self.aliases}"
            if depth == 0 and rng.random() < 0.1:
                table: str | Query = self.select_query(depth=2)
                own = [Expr(expr.kind, f"{alias}.c{i}") for i, expr in enumerate(table.select)]
            else:
                chosen = rng.choice(self.tables if number == 0 else self.tables[1:])
                table = chosen.name
                own = [Expr(kind, f"{alias}.{name}") for name, kind in chosen.columns]
            if number == 0:
                sources.append(Join("", table, alias, None))
            else:
                on = self.join_condition(columns, own, depth)
                if on is None:
                    return sources, columns
                kind = rng.choice(["join", "join", "left join", "right join", "full join"])
                more = self.subquery_in_on(kind, columns, own)
                if more:
                    on = Expr("bool", "{} and {}", [on, more])
                sources.append(Join(kind, table, alias, on))
            columns = columns + own
        return sources, columns

    def join_condition(self, left: list[Expr], right: list[Expr], depth: int) -> Expr | None:
        """An equality, with more beside it at times."""
        rng = self.rng
        pairs = [(a, b) for a in left for b in right if a.kind == b.kind or {a.kind, b.kind} <= {"int", "big"}]
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
        """A subquery where `ON` may have one: for outer joins only about the side that may be missing."""
        scopes = {"join": left + right, "left join": right, "right join": left}
        if kind not in scopes or self.rng.random() > 0.06:
            return None
        return self.subquery_predicate(scopes[kind])

    def constant(self, kind: str) -> Expr:
        value = random_value(self.rng, kind)
        text = literal(value)
        return Expr(kind, text.replace("{", "{{").replace("}", "}}") if text[:1] != "-" else f"({text})")

    def column(self, kind: str, columns: list[Expr]) -> Expr:
        fitting = [column for column in columns if column.kind == kind]
        return copy.deepcopy(self.rng.choice(fitting)) if fitting else self.constant(kind)

    def compare(self, left: Expr, right: Expr) -> Expr:
        return Expr("bool", "({} " + self.rng.choice(COMPARISONS) + " {})", [left, right])

    def simple_predicate(self, columns: list[Expr]) -> Expr:
        kind = self.rng.choice(COMPARABLE)
        return self.compare(self.column(kind, columns), self.constant(kind))

    def predicate(self, columns: list[Expr], depth: int) -> Expr:
        """A boolean, subqueries included while not too deep."""
        rng = self.rng
        kind = rng.choice(COMPARABLE)
        value = lambda: self.value(kind, columns, 1)
        choice = rng.random()
        if choice < 0.35:
            return self.compare(value(), self.value(kind, columns, 1))
        if choice < 0.43:
            return Expr("bool", "({} between {} and {})", [value(), self.constant(kind), self.constant(kind)])
        if choice < 0.50:
            items = [self.constant(kind) for _ in range(rng.randint(1, 4))]
            return Expr("bool", "({} " + rng.choice(["in", "not in"]) + " (" + ", ".join(["{}"] * len(items)) + "))", [value(), *items])
        if choice < 0.57:
            return Expr("bool", "({} is " + rng.choice(["null", "not null"]) + ")", [value()])
        if choice < 0.63:
            pattern = rng.choice(["a%", "%b", "%a%", "_", "a_c", "", "%", "z%a"])
            return Expr("bool", "({} " + rng.choice(["like", "not like"]) + f" '{pattern}')", [self.value("str", columns, 1)])
        if choice < 0.72:
            joined = rng.choice(["({} or {})", "({} and {})"])
            return Expr("bool", joined, [self.predicate(columns, depth + 1), self.predicate(columns, depth + 1)])
        if choice < 0.77:
            return Expr("bool", "(not {})", [self.predicate(columns, depth + 1)])
        if choice < 0.81:
            return Expr("bool", "({} is " + rng.choice(["", "not "]) + "distinct from {})", [value(), value()])
        if choice < 0.95 and depth == 0:
            return self.subquery_predicate(columns)
        return self.simple_predicate(columns)

    def subquery_predicate(self, columns: list[Expr]) -> Expr:
        rng = self.rng
        kind = rng.choice(["int", "big", "str"])
        outer = columns if rng.random() < 0.5 else None
        if rng.random() < 0.5:
            inner = self.select_query(depth=1, like=[kind])
            self.correlate(inner, outer)
            return Expr("bool", "({} " + rng.choice(["in", "not in"]) + " ({}))", [self.column(kind, columns), inner])
        inner = self.select_query(depth=1, like=["int"])
        self.correlate(inner, outer)
        return Expr("bool", "(" + rng.choice(["exists", "not exists"]) + " ({}))", [inner])

    def correlate(self, inner: Query, outer: list[Expr] | None) -> None:
        """Adds equalities with the query around it."""
        if not outer or not isinstance(inner.sources[0].table, str):
            return
        alias = inner.sources[0].alias
        table = next(table for table in self.tables if table.name == inner.sources[0].table)
        own = [Expr(kind, f"{alias}.{name}") for name, kind in table.columns]
        for _ in range(self.rng.choice([1, 1, 2, 3])):
            condition = self.join_condition(outer, own, 1)
            if condition:
                inner.where.append(condition)

    def value(self, kind: str, columns: list[Expr], size: int, depth: int = 1) -> Expr:
        """A scalar of a type, built up to a size."""
        rng = self.rng
        if size <= 0 or rng.random() < 0.35:
            return self.column(kind, columns) if rng.random() < 0.85 else self.constant(kind)
        below = lambda k=kind: self.value(k, columns, size - 1)
        choice = rng.random()
        if choice < 0.12:
            return Expr(kind, "coalesce({}, {})", [below(), below()])
        if choice < 0.26:
            return Expr(kind, "(case when {} then {} else {} end)", [self.predicate(columns, 1), below(), below()])
        if choice < 0.32:
            return Expr(kind, "nullif({}, {})", [below(), below()])
        if choice < 0.38 and kind not in ("bool", "ts"):
            return Expr(kind, rng.choice(["greatest", "least"]) + "({}, {})", [below(), below()])
        if choice < 0.42 and depth == 0:
            inner = self.select_query(depth=1, like=[kind])
            inner.group, inner.keys, inner.having, inner.distinct = True, 0, [], False
            alias = inner.sources[0].alias
            own = [Expr(k, f"{alias}.{n}") for t in self.tables if t.name == inner.sources[0].table for n, k in t.columns]
            inner.select = [self.aggregate(kind, own)]
            self.correlate(inner, columns if rng.random() < 0.6 else None)
            return Expr(kind, "({})", [inner])
        leaf = lambda k=kind: self.column(k, columns)
        match kind:
            case "int" | "big":
                return rng.choice([
                    lambda: Expr(kind, "({} + {})", [leaf(), self.constant("int")]),
                    lambda: Expr(kind, "({} - {})", [leaf(), leaf("int")]),
                    lambda: Expr(kind, "({} * " + str(rng.randint(-3, 3)).replace("-", "- ") + ")", [leaf()]),
                    lambda: Expr(kind, "({} / " + str(rng.randint(1, 7)) + ")", [leaf()]),
                    lambda: Expr(kind, "({} % " + str(rng.randint(1, 7)) + ")", [leaf()]),
                    lambda: Expr(kind, "abs({})", [leaf()]),
                    lambda: Expr(kind, "(- {})", [leaf()]),
                    lambda: Expr(kind, f"cast(length({{}}) as {'integer' if kind == 'int' else 'bigint'})", [below("str")]),
                    lambda: Expr(kind, f"cast(extract(" + rng.choice(["year", "month", "day"]) + f" from {{}}) as {'integer' if kind == 'int' else 'bigint'})", [below("date")]),
                ])()
            case "dec":
                return rng.choice([
                    lambda: Expr(kind, "cast({} + {} as decimal(12,2))", [leaf(), leaf()]),
                    lambda: Expr(kind, "cast({} * {} as decimal(20,2))", [leaf(), self.constant("dec")]),
                    lambda: Expr(kind, "cast({} as decimal(12,2))", [below("int")]),
                    lambda: Expr(kind, "abs({})", [leaf()]),
                ])()
            case "dbl":
                return rng.choice([
                    lambda: Expr(kind, "({} + {})", [leaf(), leaf()]),
                    lambda: Expr(kind, "({} * 0.5e0)", [leaf()]),
                    lambda: Expr(kind, "({} / 4e0)", [leaf()]),
                    lambda: Expr(kind, "cast({} as double)", [below("int")]),
                ])()
            case "str":
                return rng.choice([
                    lambda: Expr(kind, "upper({})", [below()]),
                    lambda: Expr(kind, "lower({})", [below()]),
                    lambda: Expr(kind, "({} || {})", [leaf(), leaf()]),
                    lambda: Expr(kind, "substring({} from 2 for 3)", [below()]),
                    lambda: Expr(kind, "cast({} as varchar)", [below(rng.choice(["int", "big", "date", "dec", "bool"]))]),
                    lambda: Expr(kind, "trim({})", [below()]),
                    lambda: Expr(kind, "replace({}, 'a', 'xy')", [below()]),
                ])()
            case "date":
                return rng.choice([
                    lambda: Expr(kind, "cast({} + interval '1' month as date)", [leaf()]),
                    lambda: Expr(kind, "({} + 3)", [leaf()]),
                    lambda: Expr(kind, "cast({} as date)", [leaf("ts")]),
                ])()
            case "ts":
                return rng.choice([
                    lambda: Expr(kind, "({} + interval '36' hour)", [leaf()]),
                    lambda: Expr(kind, "date_trunc('" + rng.choice(["hour", "day", "month"]) + "', {})", [leaf()]),
                    lambda: Expr(kind, "cast({} as timestamp)", [leaf("date")]),
                ])()
        return self.predicate(columns, 1) if kind == "bool" else leaf()

    def aggregate(self, kind: str, columns: list[Expr]) -> Expr:
        """An aggregate that yields a type (or one that compares with it)."""
        rng = self.rng
        argument = lambda k=kind: self.value(k, columns, 1)
        filtered = " filter (where {})" if rng.random() < 0.15 else ""
        extra = [self.predicate(columns, 1)] if filtered else []
        if kind in ("int", "big"):
            return rng.choice([
                lambda: Expr(kind, f"count(*){filtered}", extra),
                lambda: Expr(kind, f"count({{}}){filtered}", [argument(rng.choice(COMPARABLE)), *extra]),
                lambda: Expr(kind, f"count(distinct {{}}){filtered}", [argument(rng.choice(COMPARABLE)), *extra]),
                lambda: Expr(kind, f"sum({rng.choice(['', 'distinct '])}{{}}){filtered}", [argument(), *extra]),
                lambda: Expr(kind, f"max({{}}){filtered}", [argument(), *extra]),
            ])()
        if kind == "dbl" and rng.random() < 0.6:
            return Expr(kind, f"avg({rng.choice(['', '', 'distinct '])}{{}}){filtered}", [argument(rng.choice(NUMBERS)), *extra])
        if kind == "bool":
            return Expr(kind, rng.choice(["bool_and", "bool_or"]) + f"({{}}){filtered}", [argument(), *extra])
        if kind == "dec" and rng.random() < 0.5:
            return Expr(kind, f"sum({rng.choice(['', 'distinct '])}{{}}){filtered}", [argument(), *extra])
        return Expr(kind, rng.choice(["min", "max"]) + f"({{}}){filtered}", [argument(), *extra])
