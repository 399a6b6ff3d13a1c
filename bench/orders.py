#!/usr/bin/env python3
"""Measures the quality of join orders and estimates by the actual rows of the joins.

    bench/orders.py                              # TPC-H at scale factor 0.1 and 40 generated queries
    bench/orders.py --suites generated --queries 8 --no-write

The cost of a join order is the number of rows of all its joins, including the last. DuckDB counts the
rows of each set of tables. The chosen order is read from EXPLAIN ANALYZE and compared with the best of
all orders for up to seven units, or of 200 random orders. Also reports the q-errors of the estimates
for each join of the chosen plan, next to DuckDB's for its own plan.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import machine
from harness.report import quantile
from harness.suites import ROOT, TABLES, check_binary, columns_in_words, default_binary, ensure_data
from joins import plans, plot, shop, tpch
from joins.region import Region, Sizes, best_of_all, best_of_random

ALL_ORDERS_MAX = 7
GOAL = 1.5


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="bench/orders.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--suites", default="tpch,generated", help="tpch, generated or both, by commas")
    parser.add_argument("--sf", type=float, default=0.1, help="scale factor of TPC-H (default 0.1)")
    parser.add_argument("--queries", type=int, default=40, help="generated queries (default 40)")
    parser.add_argument("--scale", type=int, default=1, help="scale of the large generated tables (default 1)")
    parser.add_argument("--seed", type=int, default=1, help="seed of data, queries and random orders (default 1)")
    parser.add_argument("--orders", type=int, default=200, help="random orders beyond seven units (default 200)")
    parser.add_argument("--analyze", action="store_true", help="let Tessera ANALYZE the tables first")
    parser.add_argument("--only", default="", help="names of queries, by commas")
    parser.add_argument("--tessera", type=Path, default=default_binary(), help="the tessera binary")
    parser.add_argument("--data", type=Path, help="directory for the tables; a temporary one if not given")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="folder of the results")
    parser.add_argument("--no-write", action="store_true", help="print only")
    return parser.parse_args()


def duckdb_tables(connection, suite: str, options: argparse.Namespace, data: Path) -> list[Region]:
    """Creates the tables of a suite in DuckDB and as files; returns its queries."""
    if suite == "generated":
        shop.generate(connection, data, options.seed, options.scale)
        return shop.queries(options.queries, options.seed, connection)
    ensure_data(options.tessera, "tpch", options.sf, data)
    copies = {"n1": "nation", "n2": "nation", "l1": "lineitem", "l2": "lineitem", "l3": "lineitem"}
    for name, table in {**{table: table for table in TABLES["tpch"]}, **copies}.items():
        file = data / f"{name}.parquet"
        if not file.exists():
            os.link(data / f"{table}.parquet", file)
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM '{file}'")
    return tpch.regions(ROOT / "queries" / "tpch")


def ratio(region: Region, sizes: Sizes, chosen: plans.Chosen, best: int) -> tuple[int | None, float | None]:
    """Returns the cost of the chosen order, and its ratio to the best."""
    joins = chosen.sets(region)
    if joins is None:
        return None, None
    cost = sizes.cost(joins)
    return cost, max(cost, 1) / max(best, 1)


def counted_before(file: Path) -> dict[str, int]:
    """Returns the counts of an earlier run over the same data."""
    return json.loads(file.read_text()) if file.exists() else {}


def measure(region: Region, connection, counted: dict, data: Path, cache: Path, options: argparse.Namespace) -> dict:
    """Measures one query."""
    sizes = Sizes(region, connection, counted)
    rng = random.Random(f"{region.name}/{options.seed}")
    if len(region.units) <= ALL_ORDERS_MAX:
        best = best_of_all(region, sizes)
    else:
        best = best_of_random(region, sizes, options.orders, rng)
    row = {"query": region.name, "units": len(region.units), "best_rows": best}
    engines = {
        "tessera": lambda: plans.of_tessera(options.tessera, data, cache, region),
        "duckdb": lambda: plans.of_duckdb(connection, region),
    }
    for name, explain in engines.items():
        chosen = explain()
        cost, factor = ratio(region, sizes, chosen, best)
        row[name] = {"rows": cost, "ratio": factor, "errors": chosen.errors()}
        if name == "tessera" and factor is None:
            print(f"{region.name}: cannot read the plan: {chosen.joins}", file=sys.stderr)
    return row


def summary(rows: list[dict]) -> dict:
    """Summarizes all queries."""
    found = {}
    for name in ("tessera", "duckdb"):
        ratios = [row[name]["ratio"] for row in rows if row[name]["ratio"] is not None]
        errors = [error for row in rows for error in row[name]["errors"]]
        found[name] = {
            "orders": len(ratios),
            "within_goal": sum(ratio <= GOAL for ratio in ratios),
            "median_ratio": statistics.median(ratios) if ratios else None,
            "worst_ratio": max(ratios, default=None),
            "estimates": len(errors),
            "median_q_error": quantile(errors, 0.5) if errors else None,
            "q_error_95": quantile(errors, 0.95) if errors else None,
        }
    return found


def number(value: float | None) -> str:
    """Formats a ratio for readers."""
    return "" if value is None else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def page(result: dict, stem: str) -> str:
    """Returns the results as Markdown."""
    about = result["machine"]
    analyzed = ["", "Tables were read whole by `ANALYZE` before."] if result["analyze"] else []
    lines = [
        "# Join orders and estimates",
        "",
        f"{about['date']}. tessera {about['versions']['tessera']}, duckdb {about['versions']['duckdb']}; revision "
        f"{about['revision']}. Made by `{result['command']}`.",
        "",
        "A join order costs the rows that its joins yield, the last one's included, counted by DuckDB. `ratio` is the cost of the "
        f"chosen order by that of the best: of all orders up to {ALL_ORDERS_MAX} units, of {result['orders']} random ones beyond (where "
        "the chosen one may be better than the best of these). q-errors are of the estimated rows of each join in an engine's own plan. "
        "DuckDB reads tables of its own, with the statistics it keeps of these; Tessera reads Parquet files"
        + (f" (TPC-H's have {result['columns']})." if result["columns"] else "."),
        *analyzed,
        "",
        f"![join orders, each query]({stem}.svg)",
        "",
        "| queries | engine | orders | within 1.5x | median ratio | worst ratio | median q-error | 95th percentile |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for suite, part in result["suites"].items():
        for name, figures in part["summary"].items():
            cells = [figures[key] for key in ("median_ratio", "worst_ratio", "median_q_error", "q_error_95")]
            lines.append(
                f"| {suite} | {name} | {figures['orders']} | {figures['within_goal']} | {' | '.join(map(number, cells))} |"
            )
    for suite, part in result["suites"].items():
        lines += ["", f"## {suite}", ""]
        lines.append("| query | units | rows, best order | tessera's | ratio | worst q-error | duckdb's | ratio | worst q-error |")
        lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for row in part["queries"]:
            cells = [row["query"], str(row["units"]), f"{row['best_rows']:,}"]
            for name in ("tessera", "duckdb"):
                of = row[name]
                cells += [f"{of['rows']:,}" if of["rows"] is not None else "not read", number(of["ratio"])]
                cells.append(number(max(of["errors"], default=None)))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Measures and reports; returns 1 if one of Tessera's plans could not be read."""
    import duckdb

    options = arguments()
    check_binary(options.tessera)
    only = {name for name in options.only.split(",") if name}
    suites, columns = {}, None
    with tempfile.TemporaryDirectory(prefix="orders-") as scratch:
        for suite in options.suites.split(","):
            data = (options.data or Path(scratch)) / (f"tpch-{options.sf:g}" if suite == "tpch" else f"generated-{options.scale}")
            connection = duckdb.connect()
            # Otherwise DuckDB 2.0.0 fails an assertion ("dict-surviving cache") in TPC-H's q07.
            connection.execute("SET enable_caching_operators = false")
            connection.execute("SET threads = 2; SET memory_limit = '6GB'; SET temp_directory = ''")
            rows = []
            of = options.sf if suite == "tpch" else f"{options.seed}x{options.scale}"
            kept = data.parent / f"{suite}-{of}-sizes.json"
            counted = counted_before(kept)
            regions = duckdb_tables(connection, suite, options, data)
            if suite == "tpch":
                columns = columns_in_words(data, "tpch")
            cache = Path(scratch) / "cache"
            if options.analyze:
                plans.analyze(options.tessera, data, cache)
            for region in regions:
                if only and region.name not in only:
                    continue
                row = measure(region, connection, counted, data, cache, options)
                kept.write_text(json.dumps(counted))
                rows.append(row)
                told = [
                    f"{name} {number(row[name]['ratio']) or 'not read'} (worst q-error {number(max(row[name]['errors'], default=None))})"
                    for name in ("tessera", "duckdb")
                ]
                print(f"{row['query']:>4} {row['units']:>2} units  best {row['best_rows']:>12,}  {'  '.join(told)}", flush=True)
            suites[suite] = {"summary": summary(rows), "queries": rows}
            for name, figures in suites[suite]["summary"].items():
                print(suite, name, ", ".join(f"{key} {value}" for key, value in figures.items()))
    result = {
        "command": shlex.join(["bench/orders.py", *sys.argv[1:]]),
        "machine": machine.describe(options.tessera),
        "seed": options.seed,
        "scale": options.scale,
        "columns": columns,
        "analyze": options.analyze,
        "orders": options.orders,
        "suites": suites,
    }
    if not options.no_write:
        options.out.mkdir(parents=True, exist_ok=True)
        kind = "orders" + (f"-x{options.scale}" if options.scale != 1 else "") + ("-analyzed" if options.analyze else "")
        stem = options.out / kind
        Path(f"{stem}.json").write_text(json.dumps(result, indent=1) + "\n")
        Path(f"{stem}.svg").write_text(plot.of_orders(result["suites"], GOAL))
        Path(f"{stem}.md").write_text(page(result, stem.name))
        print(f"written to {stem}.{{json,svg,md}}")
    if only - {row["query"] for part in suites.values() for row in part["queries"]}:
        sys.exit(f"not all of these are queries: {', '.join(sorted(only))}")
    unread = [row["query"] for part in suites.values() for row in part["queries"] if row["tessera"]["ratio"] is None]
    return 1 if unread else 0


if __name__ == "__main__":
    sys.exit(main())
