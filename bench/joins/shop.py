"""Skewed, correlated data from a seed, and random queries over it: stars, snowflakes and chains of
five to twelve tables."""

from __future__ import annotations

import random
from pathlib import Path

from .region import Region, Sizes, Unit

# Rows of each table, multiplied by the scale for larger ones; `zipf` draws skewed keys, `pick`
# uniform ones.
TABLES = {
    "continent": (6, ""),
    "climate": (5, ""),
    "country": (60, "continent_id := pick(6), climate_id := continent_id % 5, wealth := (60 - id) / 6"),
    "city": (1200, "country_id := zipf(60), size := least(9, 1200 / (id + 20)), zone := (country_id + size) % 8"),
    "customer": (
        20000,
        "city_id := zipf(1200), tier := least(4, ({customer} / (id + {customer} / 50))), spend := tier * 250 + pick(300), "
        "age := 18 + pick(60), segment := (tier * 3 + city_id % 3) % 9",
    ),
    "maker": (70, "country_id := zipf(60), grade := id % 7"),
    "brand": (400, "maker_id := zipf(70), prestige := (maker_id % 10) + pick(3)"),
    "category": (45, "department := id / 9"),
    "product": (
        6000,
        "brand_id := zipf(400), category_id := (brand_id * 7 + pick(5)) % 45, class := category_id / 5, "
        "price := class * 100 + pick(90), rank := least(9, {product} / (id + {product} / 100))",
    ),
    "store": (300, "city_id := zipf(1200), format := id % 4, area := format * 500 + pick(400)"),
    "day": (1100, "year := id / 365, month := (id % 365) / 31, weekday := id % 7, season := month / 3"),
    "promo": (60, "kind := id % 6, discount := kind * 5 + pick(4)"),
    "warehouse": (80, "city_id := zipf(1200), capacity := 1 + pick(9)"),
    "carrier": (15, "country_id := zipf(60), speed := id % 3"),
    "reason": (20, "fault := id % 4"),
    "device": (25, "system := id % 3, mobile := least(1, id % 4)"),
    "page": (2500, "device_id := zipf(25), depth := pick(6), kind := (device_id + depth) % 5"),
    "sales": (
        30000,
        "customer_id := zipf({customer}), product_id := (zipf({product}) + customer_id / 40) % {product}, store_id := zipf(300), "
        "day_id := greatest(0, 1099 - zipf(1100)), promo_id := (product_id + pick(4)) % 60, quantity := 1 + pick(9)",
    ),
    "visit": (
        20000,
        "customer_id := zipf({customer}), page_id := zipf(2500), day_id := greatest(0, 1099 - zipf(1100)), seconds := pick(600)",
    ),
    "review": (10000, "customer_id := zipf({customer}), product_id := pick({product}), stars := least(5, 1 + customer_id % 4 + pick(2))"),
    "stock": (12000, "product_id := pick({product}), warehouse_id := zipf(80), amount := pick(100)"),
    "shipment": (24000, "sales_id := pick({sales}), carrier_id := zipf(15), warehouse_id := zipf(80), days := carrier_id % 5 + pick(3)"),
    "refund": (5000, "sales_id := zipf({sales}), reason_id := zipf(20), amount := reason_id * 10 + pick(50)"),
}

ROWS_MIN, ROWS_MAX = 20, 3_000_000

FACTS = {"sales", "visit", "review", "stock", "shipment", "refund"}
SCALED = FACTS | {"customer", "product"}

# Conditions that are nearly redundant, or that frequent keys satisfy more often than rare ones.
FILTERS = {
    "continent": ["{t}.id = {a}"],
    "climate": ["{t}.id < 3"],
    "country": ["{t}.wealth > 6", "{t}.continent_id = {a} AND {t}.climate_id = {a} % 5"],
    "city": ["{t}.size >= 5", "{t}.zone = {a} AND {t}.country_id < 12"],
    "customer": ["{t}.tier = 4", "{t}.tier = 0 AND {t}.spend < 200", "{t}.tier >= 2 AND {t}.spend > 600", "{t}.segment = {a}"],
    "maker": ["{t}.grade = {a}", "{t}.country_id < 4"],
    "brand": ["{t}.prestige > 8", "{t}.maker_id < 5"],
    "category": ["{t}.department = {a} % 5", "{t}.id IN (3, 10, 17, 24)"],
    "product": ["{t}.class = {a} AND {t}.price BETWEEN {a} * 100 AND {a} * 100 + 60", "{t}.rank >= 5", "{t}.rank = 1 AND {t}.price > 500"],
    "store": ["{t}.format = 2 AND {t}.area > 1000", "{t}.format <> 1"],
    "day": ["{t}.year = 2 AND {t}.month >= 6", "{t}.season = {a} % 4", "{t}.weekday IN (0, 6)"],
    "promo": ["{t}.kind = {a} AND {t}.discount >= {a} * 5", "{t}.kind > 2"],
    "warehouse": ["{t}.capacity > 7"],
    "carrier": ["{t}.speed = 1"],
    "reason": ["{t}.fault = 2"],
    "device": ["{t}.system = 1 AND {t}.mobile = 1"],
    "page": ["{t}.kind = {a} % 5 AND {t}.depth < 3", "{t}.depth = {a}"],
    "sales": ["{t}.quantity > 7", "{t}.promo_id < 20 AND {t}.product_id < 300"],
    "visit": ["{t}.seconds < 60"],
    "review": ["{t}.stars = 5", "{t}.stars <= 2"],
    "stock": ["{t}.amount > 80"],
    "shipment": ["{t}.days > 4", "{t}.carrier_id = 1 AND {t}.days < 2"],
    "refund": ["{t}.amount > 60 AND {t}.reason_id > 2"],
}


def keys() -> list[tuple[str, str]]:
    """Returns every foreign key as tables (from, to)."""
    found = []
    for table, (_, columns) in TABLES.items():
        for other in TABLES:
            if f"{other}_id :=" in columns:
                found.append((table, other))
    return found


def generate(connection, directory: Path, seed: int, scale: int = 1) -> None:
    """Creates the tables in DuckDB and as Parquet files."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = {table: count * (scale if table in SCALED else 1) for table, (count, _) in TABLES.items()}
    for table, (_, columns) in TABLES.items():
        inner = f"SELECT range AS id FROM range({rows[table]})"
        for number, column in enumerate(part.strip() for part in split(columns.format(**rows))):
            name, _, expression = column.partition(" := ")
            salt = f"'{table}{number}/{seed}'"
            uniform = f"(hash(id, {salt}) % 1000003 / 1000003.0)"
            expression = replace(expression, "zipf", lambda n: f"(floor(power({n} + 1.0, {uniform})) - 1)::BIGINT")
            expression = replace(expression, "pick", lambda n: f"floor({uniform} * {n})::BIGINT")
            expression = expression.replace(" / ", " // ")
            inner = f"SELECT *, ({uniformly(expression)})::BIGINT AS {name} FROM ({inner})"
        connection.execute(f"CREATE OR REPLACE TABLE {table} AS {inner}")
        connection.execute(f"COPY {table} TO '{directory}/{table}.parquet' (FORMAT parquet, ROW_GROUP_SIZE 20000)")


def uniformly(expression: str) -> str:
    """Uses integer division except where uniform numbers are drawn."""
    return expression.replace("% 1000003 // 1000003.0", "% 1000003 / 1000003.0")


def split(columns: str) -> list[str]:
    """Splits the columns of a table at commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(columns):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(columns[start:at])
            start = at + 1
    return [part for part in [*parts, columns[start:]] if part.strip()]


def replace(expression: str, function: str, made) -> str:
    """Replaces each `function(n)` in the expression."""
    while f"{function}(" in expression:
        before, _, rest = expression.partition(f"{function}(")
        number, _, after = rest.partition(")")
        expression = before + made(number) + after
    return expression


def queries(count: int, seed: int, connection) -> list[Region]:
    """Returns queries of five to twelve distinct tables with some rows but not millions."""
    rng = random.Random(seed)
    found: list[Region] = []
    while len(found) < count:
        region = query(f"g{len(found) + 1:02}", 5 + len(found) % 8, rng)
        if ROWS_MIN <= Sizes(region, connection)[region.full] <= ROWS_MAX:
            found.append(region)
    return found


def query(name: str, size: int, rng: random.Random) -> Region:
    """Returns a query of `size` tables, grown from one along foreign keys, with at most two fact
    tables that share a dimension."""
    edges = keys()
    while True:
        shape = rng.choice(["star", "chain", "snowflake"])
        tables = [rng.choice(sorted(FACTS if shape != "chain" else TABLES))]
        chosen: list[tuple[str, str]] = []
        while len(tables) < size:
            grown = [
                (a, b)
                for a, b in edges
                if (a in tables) != (b in tables)
                and (b if a in tables else a) not in tables
                and (shape != "star" or tables[0] in (a, b) or rng.random() < 0.2)
                and (shape != "chain" or tables[-1] in (a, b) or rng.random() < 0.15)
                and (a in tables or many(tables) < (2 if a in FACTS else 9))
            ]
            if not grown:
                break
            edge = rng.choice(grown)
            chosen.append(edge)
            tables.append(edge[1] if edge[0] in tables else edge[0])
        if len(tables) == size and FACTS & set(tables):
            break
    degree = {table: sum(table in edge for edge in chosen) for table in tables}
    units, predicates = [], []
    for table in rng.sample(tables, len(tables)):
        [*edge] = [(a, b) for a, b in chosen if table in (a, b)]
        filters = ()
        if rng.random() < 0.55:
            filters = (rng.choice(FILTERS[table]).format(t=table, a=rng.randrange(6)),)
        kind = rng.choice(["left", "semi", "anti"]) if degree[table] == 1 and rng.random() < 0.25 else "inner"
        on = condition(*edge[0]) if kind != "inner" else ""
        units.append(Unit(table, table, filters, kind, on))
    hanging = {unit.name for unit in units if unit.kind != "inner"}
    predicates = [condition(a, b) for a, b in chosen if a not in hanging and b not in hanging]
    if len(units) - len(hanging) < 3:
        return query(name, size, rng)
    return Region(name, "", units, predicates)


def many(tables: list[str]) -> int:
    """Returns the fact tables among the tables."""
    return sum(table in FACTS for table in tables)


def condition(table: str, other: str) -> str:
    """Returns the join condition of a table with one that it references."""
    return f"{table}.{other}_id = {other}.id"
