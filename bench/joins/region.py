"""Queries as seen by join ordering: units, conditions, and the number of rows of each set of
units."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Unit:
    """A relation of a query. A unit other than `inner` depends on the units that `on` reads, which
    must be joined before."""

    name: str
    relation: str
    filters: tuple[str, ...] = ()
    kind: str = "inner"
    on: str = ""
    leaves: frozenset[str] = frozenset()
    """The leaves of a plan that make it up."""


COLUMN = re.compile(r"\b([A-Za-z_]\w*)\.\w+")
EQUALITY = re.compile(r"^\s*([A-Za-z_]\w*\.\w+)\s*=\s*([A-Za-z_]\w*\.\w+)\s*$")


@dataclass
class Region:
    """A query's joins."""

    name: str
    sql: str
    units: list[Unit]
    predicates: list[str]
    masks: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self):
        self.index = {unit.name: position for position, unit in enumerate(self.units)}
        self.masks = [(text, self.mask(text)) for text in closed(self.predicates)]
        self.inner = sum(1 << i for i, unit in enumerate(self.units) if unit.kind == "inner")
        self.full = (1 << len(self.units)) - 1
        self.needs = [
            self.mask(unit.on) & ~(1 << i) if unit.kind != "inner" else 0 for i, unit in enumerate(self.units)
        ]

    def mask(self, text: str) -> int:
        """Returns the units that a condition reads."""
        names = {name for name in COLUMN.findall(text) if name in self.index}
        return sum(1 << self.index[name] for name in names)

    def hangs(self, units: int) -> bool:
        """Returns whether this is a single dependent unit."""
        return units & (units - 1) == 0 and not units & self.inner

    def joins(self, left: int, right: int) -> bool:
        """Returns whether an order may join these two sets next, in either direction."""
        for one, other in ((left, right), (right, left)):
            if self.hangs(other):
                needed = self.needs[other.bit_length() - 1]
                return needed & ~one == 0 and one & self.inner != 0
        both = left | right
        return any(mask & ~both == 0 and mask & left and mask & right for _, mask in self.masks)

    def sets(self) -> list[int]:
        """Returns every set of units that some order produces, smaller ones first."""
        found = {1 << i for i in range(len(self.units))}
        for units in sorted(range(1, self.full + 1), key=int.bit_count):
            if units.bit_count() > 1 and any(True for _ in self.splits(units, found)):
                found.add(units)
        return sorted(found, key=int.bit_count)

    def splits(self, units: int, known) -> list[tuple[int, int]]:
        """Returns the pairs of known sets that may be joined to this one."""
        left = (units - 1) & units
        while left:
            right = units & ~left
            if left > right and left in known and right in known and self.joins(left, right):
                yield left, right
            left = (left - 1) & units

    def count_sql(self, units: int) -> str:
        """Returns a query that counts the rows of a set."""
        chosen = [unit for i, unit in enumerate(self.units) if units >> i & 1]
        tables = " CROSS JOIN ".join(f"{unit.relation} {unit.name}" for unit in chosen if unit.kind == "inner")
        where = [text for unit in chosen if unit.kind == "inner" for text in unit.filters]
        where += [text for text, mask in self.masks if mask & ~units == 0]
        for unit in chosen:
            condition = " AND ".join([unit.on, *unit.filters])
            if unit.kind == "left":
                tables += f" LEFT JOIN {unit.relation} {unit.name} ON {condition}"
            elif unit.kind in ("semi", "anti"):
                no = "NOT " if unit.kind == "anti" else ""
                where.append(f"{no}EXISTS (SELECT 1 FROM {unit.relation} {unit.name} WHERE {condition})")
        return f"SELECT count(*) FROM {tables}" + (f" WHERE {' AND '.join(where)}" if where else "")

    def tree_sql(self, units: int) -> str | None:
        """Like `count_sql` for sets whose equalities form a tree: each relation is grouped by its
        join columns to the parent, so that no intermediate result is larger than a table.
        Returns None if they do not form a tree."""
        chosen = {unit.name: unit for i, unit in enumerate(self.units) if units >> i & 1}
        edges = [text for text, mask in self.masks if mask & ~units == 0]
        edges += [unit.on for unit in chosen.values() if unit.kind != "inner"]
        if len(edges) != len(chosen) - 1 or not all(EQUALITY.match(edge) for edge in edges):
            return None
        columns = [EQUALITY.match(edge).groups() for edge in edges]

        def below(name: str, above: str) -> tuple[str, str]:
            """Returns the tables and conditions of a unit with all units below it, and the weight
            of a row."""
            text, where, weight = f"{chosen[name].relation} {name}", list(chosen[name].filters), ["1"]
            for pair in columns:
                (own, other) = pair if pair[0].split(".")[0] == name else pair[::-1]
                child = other.split(".")[0]
                if own.split(".")[0] != name or child == above:
                    continue
                inner, total = below(child, name)
                grouped = f"(SELECT {other} AS k, {total} AS w FROM {inner} GROUP BY 1) {child}_"
                kind = chosen[child].kind
                if kind in ("inner", "left"):
                    text += f" {kind} JOIN {grouped} ON {own} = {child}_.k"
                    weight.append(f"coalesce({child}_.w, 1)")
                else:
                    text += f" {kind} JOIN {grouped} ON {own} = {child}_.k"
            where = f" WHERE {' AND '.join(where)}" if where else ""
            return text + where, f"coalesce(sum({' * '.join(weight)}), 0)::BIGINT"

        root = next(unit.name for unit in chosen.values() if unit.kind == "inner")
        text, total = below(root, "")
        return f"SELECT {total} FROM {text}"

    def query_sql(self) -> str:
        """Returns the query: as given, or an aggregate over all units that reads a column of each."""
        if self.sql:
            return self.sql
        read = [f"min({unit.name}.id)" for unit in self.units if unit.kind in ("inner", "left")]
        return self.count_sql(self.full).replace("count(*)", ", ".join(["count(*)", *read]), 1)


def closed(predicates: list[str]) -> list[str]:
    """Returns the predicates with the equalities implied by them."""
    classes: list[set[str]] = []
    others = []
    for predicate in predicates:
        match = EQUALITY.match(predicate)
        if not match:
            others.append(predicate)
            continue
        pair = set(match.groups())
        touched = [known for known in classes if known & pair]
        classes = [known for known in classes if not known & pair] + [pair.union(*touched)]
    equal = [f"{a} = {b}" for known in classes for a, b in itertools.combinations(sorted(known), 2)]
    return others + equal


class Sizes:
    """The true sizes of the sets of a region's units, which DuckDB counts on first use; `counted`
    caches them by query."""

    def __init__(self, region: Region, connection, counted: dict[str, int] | None = None):
        self.region, self.connection = region, connection
        self.counted = {} if counted is None else counted
        self.known: dict[int, int] = {}

    def __getitem__(self, units: int) -> int:
        if units not in self.known:
            sql = self.region.tree_sql(units) or self.region.count_sql(units)
            if sql not in self.counted:
                self.counted[sql] = self.connection.execute(sql).fetchone()[0]
            self.known[units] = self.counted[sql]
        return self.known[units]

    def cost(self, joins: list[int]) -> int:
        """Returns the rows of these joins, given by the sets that they produce."""
        return sum(self[units] for units in joins)


def best_of_all(region: Region, sizes: Sizes) -> int:
    """Returns the fewest rows of joins in any order, including bushy ones."""
    best = {1 << i: 0 for i in range(len(region.units))}
    for units in region.sets():
        if units.bit_count() > 1:
            best[units] = sizes[units] + min(best[a] + best[b] for a, b in region.splits(units, best))
    return best[region.full]


def random_order(region: Region, rng: random.Random) -> list[int]:
    """Returns a random order: joins random joinable sets until one is left."""
    forest = [1 << i for i in range(len(region.units))]
    joins = []
    while len(forest) > 1:
        left, right = rng.choice([p for p in itertools.combinations(forest, 2) if region.joins(*p)])
        forest = [units for units in forest if units not in (left, right)] + [left | right]
        joins.append(left | right)
    return joins


def best_of_random(region: Region, sizes: Sizes, orders: int, rng: random.Random) -> int:
    """Returns the fewest rows among this many random orders."""
    return min(sizes.cost(random_order(region, rng)) for _ in range(orders))
