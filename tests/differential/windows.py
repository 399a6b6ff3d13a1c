"""Random calls of window functions. Ties change no answer: functions that tell peers apart are
ordered by all columns, so rows that still tie are the same rows."""

from __future__ import annotations

import random
from typing import Callable

from queries import Expr

# Makes an expression of a type.
Make = Callable[[str], Expr]

NUMBERS = ["int", "big", "dec", "small"]
VALUES = ["int", "big", "dec", "str", "date", "bool"]
DIRECTIONS = ["", " desc", " nulls first", " desc nulls last"]
EXCLUDES = ["", "", "", " exclude no others", " exclude current row", " exclude group", " exclude ties"]
# Functions that number rows: a predicate above often keeps the first ones.
NUMBERING = ("row_number()", "rank()", "dense_rank()")


def is_numbering(expr: Expr) -> bool:
    """Returns whether an expression numbers the rows of partitions."""
    return expr.template.startswith(NUMBERING)


def call(rng: random.Random, judge: str, kind: str, columns: list[Expr], column: Make, condition: Callable[[], Expr]) -> Expr:
    """Generates a call whose result has a type; `column` makes a column of a type, `condition` a
    predicate."""
    partition = [column(rng.choice(VALUES)) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    by = f"partition by {', '.join('{}' for _ in partition)} " if partition else ""
    every = [f"{{}}{rng.choice(DIRECTIONS)}" for _ in columns]
    total = (f"order by {', '.join(every)}", list(columns))
    some = [column(rng.choice(VALUES)) for _ in range(rng.choice([1, 1, 2]))]
    peers = (f"order by {', '.join('{}' + rng.choice(DIRECTIONS) for _ in some)}", some)

    def over(function: str, args: list[Expr], order: tuple[str, list[Expr]] | None, frame: str = "") -> Expr:
        keys, exprs = order or ("", [])
        return Expr(kind, f"{function} over ({by}{keys}{frame})", [*args, *partition, *exprs])

    def aggregate() -> Expr:
        """An aggregate over a frame."""
        distinct = "distinct " if judge not in ("postgresql", "tlp") and rng.random() < 0.15 else ""
        if kind in NUMBERS and rng.random() < 0.7:
            function, args = rng.choice([
                ("count(*)", []),
                (f"count({distinct}{{}})", [column(rng.choice(VALUES))]),
                (f"sum({distinct}{{}})", [column(kind)]),
            ])
        elif kind == "bool":
            function, args = rng.choice(["bool_and({})", "bool_or({})"]), [column(kind)]
        else:
            function, args = rng.choice(["min({})", "max({})"]), [column(kind)]
        if rng.random() < 0.2:
            function, args = function + " filter (where {})", [*args, condition()]
        # Engines that have DISTINCT here do not combine it with EXCLUDE alike.
        order, frame = ordered_frame(distinct != "")
        return over(function, args, order, frame)

    def ordered_frame(whole: bool) -> tuple[tuple[str, list[Expr]] | None, str]:
        """A frame with an order that makes it the same for all engines."""
        choice = rng.random()
        if whole or choice < 0.3:
            return None, ""
        if choice < 0.4:
            return peers, ""
        exclude = rng.choice(EXCLUDES)
        if choice < 0.65:
            # With EXCLUDE GROUP or TIES, peers must be the same rows.
            return total, f" rows {between(rng, lambda: str(rng.randint(0, 4)))}{exclude}"
        if choice < 0.8:
            return peers, f" groups {between(rng, lambda: str(rng.randint(0, 3)))}{exclude}"
        if choice < 0.9:
            return peers, f" range {between(rng, None)}{exclude}"
        key = rng.choice(NUMBERS + ["date"])
        distance = lambda: f"interval '{rng.randint(0, 40)} days'" if key == "date" else str(rng.randint(0, 5))
        order = (f"order by {{}}{rng.choice(DIRECTIONS)}", [column(key)])
        return order, f" range {between(rng, distance)}{exclude}"

    def value() -> Expr:
        """A value of another row."""
        function = rng.choice(["lag", "lead", "first_value", "last_value", "nth_value"])
        if function in ("lag", "lead"):
            offset = rng.choice(["", "", ", 2", ", 0", ", 3"])
            return over(f"{function}({{}}{offset})", [column(kind)], total)
        where = ", 2" if function == "nth_value" else ""
        frame = f" rows {between(rng, lambda: str(rng.randint(0, 3)))}" if rng.random() < 0.6 else ""
        return over(f"{function}({{}}{where})", [column(kind)], total, frame)

    if kind in ("int", "big", "small") and rng.random() < 0.5:
        return rng.choice([
            lambda: over("row_number()", [], total),
            lambda: over("row_number()", [], total),
            lambda: over("rank()", [], peers),
            lambda: over("dense_rank()", [], peers),
            lambda: over(f"ntile({rng.randint(1, 5)})", [], total),
        ])()
    if kind == "dbl":
        return over(rng.choice(["percent_rank()", "cume_dist()"]), [], peers)
    if kind in ("flt", "ts") or rng.random() < 0.35:
        return value()
    return aggregate()


def between(rng: random.Random, distance: Callable[[], str] | None) -> str:
    """Returns the bounds of a frame, the first one not after the last one."""
    bounds = ["unbounded preceding", "current row", "unbounded following"]
    if distance:
        bounds = [bounds[0], f"{distance()} preceding", bounds[1], f"{distance()} following", bounds[2]]
    first = rng.randrange(len(bounds) - 1)
    last = rng.randrange(max(first, 1), len(bounds))
    return f"between {bounds[first]} and {bounds[last]}"
