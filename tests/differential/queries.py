"""Random queries as trees, so that a failing query can be reduced."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from data import TYPES, literal, random_value

COLUMN = re.compile(r"\b[sw]\d+\.\w")


@dataclass
class Expr:
    """An expression: a type, a template with `{}` for each child, the children."""

    kind: str
    template: str
    children: list["Expr | Query"] = field(default_factory=list)

    def sql(self) -> str:
        return self.template.format(*[child.sql() for child in self.children])


@dataclass
class Rows:
    """VALUES as a source."""

    kinds: list[str]
    rows: list[tuple]

    def sql(self) -> str:
        # The first row defines the types: a NULL there needs a cast.
        first = [f"cast({literal(value, bare=True)} as {TYPES[kind]})" for value, kind in zip(self.rows[0], self.kinds)]
        lines = [", ".join(first)] + [", ".join(literal(value) for value in row) for row in self.rows[1:]]
        return "values " + ", ".join(f"({line})" for line in lines)


@dataclass
class Join:
    """A table or query joined to the sources before it; the first has no kind."""

    kind: str
    table: "str | Query | Rows"
    alias: str
    on: Expr | None
    using: str = ""

    def sql(self) -> str:
        table = self.table if isinstance(self.table, str) else f"({self.table.sql()})"
        on = f" on {self.on.sql()}" if self.on else ""
        names = f"({', '.join(f'c{i}' for i in range(len(self.table.kinds)))})" if isinstance(self.table, Rows) else ""
        return f"{self.kind} {table} as {self.alias}{names}{on}{self.using}".strip()


@dataclass
class With:
    """A common table expression; a recursive one has a step and a set operation."""

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
    """A SELECT, or two of them with a set operation."""

    select: list[Expr]
    sources: list[Join]
    where: list[Expr] = field(default_factory=list)
    withs: list[With] = field(default_factory=list)
    group: bool = False
    keys: int = 0
    sets: str = ""
    having: list[Expr] = field(default_factory=list)
    qualify: list[Expr] = field(default_factory=list)
    # "distinct ", or "distinct on (the first column) ", which needs an order by all columns.
    distinct: str = ""
    combine: tuple[str, "Query"] | None = None
    # An expression to order by before the columns; the order of rows is then not compared.
    first: list[Expr] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    limit: str = ""
    # For the judge `rules`: the disabled rules.
    without: str = ""

    def sql(self) -> str:
        names = ", ".join(f"{expr.sql()} as c{i}" for i, expr in enumerate(self.select))
        text = self.with_sql()
        # A number there is a position.
        key = "1" if self.select[0].sql().isdigit() else self.select[0].sql()
        distinct = f"distinct on ({key}) " if self.distinct == "on" else self.distinct
        text += f"select {distinct}{names} from " + " ".join(s.sql() for s in self.sources)
        if self.where:
            text += " where " + " and ".join(expr.sql() for expr in self.where)
        if self.group and self.keys:
            text += " group by " + self.group_sql()
        if self.having:
            text += " having " + " and ".join(expr.sql() for expr in self.having)
        if self.qualify:
            text += " qualify " + " and ".join(expr.sql() for expr in self.qualify)
        if self.combine:
            text += f" {self.combine[0]} {self.combine[1].sql()}"
        if self.order or self.first:
            text += " order by " + ", ".join([expr.sql() for expr in self.first] + self.order)
        return text + self.limit

    def with_sql(self) -> str:
        if not self.withs:
            return ""
        recursive = "recursive " if any(part.step for part in self.withs) else ""
        return f"with {recursive}" + ", ".join(part.sql() for part in self.withs) + " "

    def group_sql(self) -> str:
        """Returns the keys by position, or several grouping sets of them."""
        keys = [expr.sql() for expr in self.select[: self.keys]]
        # In a grouping set one engine reads a lone number as a position and the other as a value.
        # One of them rejects a repeated key, and PostgreSQL 15 does not sort by a constant that a
        # set omits.
        if not self.sets or len(set(keys)) < len(keys) or not all(COLUMN.search(key) for key in keys):
            return ", ".join(str(i + 1) for i in range(self.keys))
        if self.sets == "sets":
            halves = [keys, keys[: len(keys) // 2], []]
            return "grouping sets (" + ", ".join("(" + ", ".join(half) + ")" for half in halves) + ")"
        return f"{self.sets} (" + ", ".join(keys) + ")"

    def ordered(self) -> list[int]:
        """Returns the columns whose values must be in the requested order."""
        return list(range(len(self.select))) if self.order and not self.first else []


def constant(rng: random.Random, kind: str, odd: float = 0) -> Expr:
    """Returns a literal; `odd` is the probability of an extreme value."""
    text = literal(random_value(rng, kind, odd))
    return Expr(kind, text.replace("{", "{{").replace("}", "}}") if text[:1] != "-" else f"({text})")
