"""Tests what counts as compiled."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.compiled import decoding, rows_of_operators


def node(number: int, operator: str, inputs: list[int], rows: int, compiled: int = 0, vectorized: int = 0, text: str = "", nested: tuple = ()) -> dict:
    """Returns a node as EXPLAIN prints it."""
    counters = {name: rows for name, rows in (("compiled_rows", compiled), ("vectorized_rows", vectorized)) if rows}
    return {"id": number, "operator": operator, "inputs": inputs, "rows": rows, "counters": counters, "text": text, "nested": list(nested)}


class RowsOfOperators(unittest.TestCase):
    """Tuples that sub-operators process, and those processed by compiled code."""

    def test_a_compiled_neighbor_makes_no_other_sub_operator_compiled(self):
        plan = {
            "nodes": [
                node(0, "block_scan", [], 10),
                node(1, "build", [0], 1),
                node(2, "block_scan", [], 1000),
                node(3, "probe", [1, 2], 500, compiled=1000),
                node(4, "map", [3], 500),
                node(5, "reduce", [4], 1, compiled=500),
            ]
        }
        # Without code: the build processes 10 and the map 500; with code: the probe 1000 and the
        # reduce 500.
        self.assertEqual(rows_of_operators(plan), (2010, 1500))
        nested = {"nodes": [node(0, "executor", [], 1, nested=(plan,))]}
        self.assertEqual(rows_of_operators(nested), (2010, 1500))

    def test_a_sub_operator_that_began_vectorized_counts_in_part(self):
        plan = {"nodes": [node(0, "block_scan", [], 100), node(1, "reduce", [0], 1, compiled=75, vectorized=25)]}
        self.assertEqual(rows_of_operators(plan), (100, 75))

    def test_a_scan_counts_where_it_tests_conditions(self):
        build = node(1, "build", [0], 1)
        self.assertEqual(rows_of_operators({"nodes": [node(0, "block_scan", [], 7, compiled=90), build]}), (97, 90))
        text = "block_scan() {predicate = a LIKE 'x%'}"
        self.assertEqual(rows_of_operators({"nodes": [node(0, "block_scan", [], 7, text=text), build]}), (14, 0))
        self.assertEqual(rows_of_operators({"nodes": [node(0, "block_scan", [], 7), build]}), (7, 0))

    def test_handing_on_is_no_work(self):
        plan = {"nodes": [node(0, "values", [], 3), node(1, "rows_scan", [0], 9), node(2, "limit", [1], 2)]}
        self.assertEqual(rows_of_operators(plan), (0, 0))


class Decoding(unittest.TestCase):
    """The share of decoding in a query's time."""

    def test_nested_plans_count_once(self):
        scan = {"operator": "parquet_scan", "time_ms": 30.0, "counters": {"decoding_nanoseconds": 20_000_000}, "nested": []}
        reduce = {"operator": "reduce", "time_ms": 10.0, "counters": {}, "nested": []}
        executor = {"operator": "executor", "time_ms": 0.5, "counters": {}, "nested": [{"nodes": [scan, reduce]}]}
        self.assertEqual(decoding({"nodes": [executor]}), (40.0, 20.0))


if __name__ == "__main__":
    unittest.main()
