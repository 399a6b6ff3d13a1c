"""Reads the join orders that engines chose from their reports on executed queries."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .region import Region


@dataclass
class Join:
    """A join of a plan: the leaves below it, its rows, and the estimated rows."""

    leaves: frozenset[str]
    rows: int
    estimated: int | None


@dataclass
class Chosen:
    """The plan that an engine chose."""

    joins: list[Join]

    def sets(self, region: Region) -> list[int] | None:
        """Returns the sets of units that the joins produce, or None if the plan is not over these
        units."""
        units = [unit.leaves or frozenset([unit.name]) for unit in region.units]
        made = set()
        for join in self.joins:
            mask = sum(1 << i for i, leaves in enumerate(units) if leaves <= join.leaves)
            whole = frozenset().union(*(units[i] for i in range(len(units)) if mask >> i & 1))
            if mask & (mask - 1) and whole == join.leaves:
                made.add(mask)
        return sorted(made, key=int.bit_count) if len(made) == len(units) - 1 else None

    def errors(self) -> list[float]:
        """Returns the q-error of each join with an estimate."""
        known = [(max(join.estimated, 1), max(join.rows, 1)) for join in self.joins if join.estimated is not None]
        return [max(estimated / rows, rows / estimated) for estimated, rows in known]


def of_tessera(binary: Path, data: Path, cache: Path, region: Region) -> Chosen:
    """Returns the plan of the largest join region in Tessera's plan."""
    command = [str(binary), str(data), "-c", f"EXPLAIN (ANALYZE, FORMAT JSON) {region.query_sql()}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(cache))
    if done.returncode != 0:
        raise RuntimeError(f"{region.name}: {done.stderr.strip()}")
    nodes = json.loads(done.stdout)["plan"]["nodes"]
    while len(nodes) < 3 and any(node["nested"] for node in nodes):
        nodes = next(node["nested"][0]["nodes"] for node in nodes if node["nested"])
    below: list[frozenset[str]] = []
    regions: list[list[Join]] = []
    for node in nodes:
        inputs = [(below[i], regions[i]) for i in node["inputs"]]
        leaves = frozenset().union(*(leaves for leaves, _ in inputs))
        joins = [join for _, joins in inputs for join in joins]
        if node["operator"].endswith("_scan") and not inputs:
            leaves = frozenset([re.search(r"/([^/']+)\.parquet'", node["text"]).group(1)])
        elif node["operator"] in ("reduce_by_key", "reduce"):
            leaves, joins = frozenset(["#"]), []
        elif node["operator"] in ("probe", "nested_loop", "cartesian_product"):
            joins = [*joins, Join(leaves, node["rows"], node.get("estimated_rows"))]
        below.append(leaves)
        regions.append(joins)
    return Chosen(max(regions, key=len, default=[]))


def analyze(binary: Path, data: Path, cache: Path) -> None:
    """Analyzes all tables completely."""
    done = subprocess.run([str(binary), str(data), "-c", "ANALYZE"], capture_output=True, text=True, env=environment(cache))
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())


def environment(cache: Path) -> dict:
    """Returns an environment in which statistics of tables are cached in `cache`."""
    import os

    return dict(os.environ, XDG_CACHE_HOME=str(cache))


def of_duckdb(connection, region: Region) -> Chosen:
    """Returns the plan of the largest join region in DuckDB's plan."""
    text = connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {region.query_sql()}").fetchone()[1]
    regions: list[list[Join]] = []

    def walk(node: dict) -> tuple[frozenset[str], list[Join]]:
        inputs = [walk(child) for child in node.get("children", [])]
        leaves = frozenset().union(*(leaves for leaves, _ in inputs))
        joins = [join for _, joins in inputs for join in joins]
        kind = node["type"]
        info = node.get("extra_info") or {}
        if not inputs and "Table" in info:
            leaves = frozenset([info["Table"].split(".")[-1].strip('"')])
        elif "AGGREGATE" in kind or "GROUP_BY" in kind:
            leaves, joins = frozenset(["#"]), []
        elif "JOIN" in kind or kind == "CROSS_PRODUCT":
            estimated = info.get("Estimated Cardinality")
            estimated = int(re.sub(r"\D", "", str(estimated))) if estimated is not None else None
            joins = [*joins, Join(leaves, node["intermediate_rows"], estimated)]
        regions.append(joins)
        return leaves, joins

    walk(json.loads(text)["operator"][0])
    return Chosen(max(regions, key=len, default=[]))
