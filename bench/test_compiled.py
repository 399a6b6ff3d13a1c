"""Tests of what counts as compiled."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.compiled import decoding, rows_of_scans


def node(number: int, operator: str, inputs: list[int], rows: int, compiled: int = 0, nested: tuple = ()) -> dict:
    """A node as EXPLAIN gives it."""
    counters = {"compiled_rows": compiled} if compiled else {}
    return {"id": number, "operator": operator, "inputs": inputs, "rows": rows, "counters": counters, "nested": list(nested)}


class RowsOfScans(unittest.TestCase):
    """Rows that leave scans, and those of compiled pipelines."""

    def test_code_anywhere_in_the_pipeline_counts_and_no_other(self):
        plan = {
            "nodes": [
                node(0, "block_scan", [], 10),
                node(1, "build", [0], 1),
                node(2, "block_scan", [], 1000),
                node(3, "probe", [1, 2], 500, compiled=1000),
                node(4, "reduce", [3], 1, compiled=500),
            ]
        }
        self.assertEqual(rows_of_scans(plan), (1010, 1000))
        nested = {"nodes": [node(0, "executor", [], 1, nested=(plan,))]}
        self.assertEqual(rows_of_scans(nested), (1010, 1000))

    def test_a_scan_that_filters_in_code_is_compiled(self):
        plan = {"nodes": [node(0, "block_scan", [], 7, compiled=90), node(1, "build", [0], 1)]}
        self.assertEqual(rows_of_scans(plan), (7, 7))

    def test_rows_of_collections_are_not_those_of_scans(self):
        plan = {"nodes": [node(0, "values", [], 3), node(1, "rows_scan", [0], 9)]}
        self.assertEqual(rows_of_scans(plan), (0, 0))


class Decoding(unittest.TestCase):
    """Which share of a query's time is decoding."""

    def test_nested_plans_count_once(self):
        scan = {"operator": "parquet_scan", "time_ms": 30.0, "counters": {"decoding_nanoseconds": 20_000_000}, "nested": []}
        reduce = {"operator": "reduce", "time_ms": 10.0, "counters": {}, "nested": []}
        executor = {"operator": "executor", "time_ms": 0.5, "counters": {}, "nested": [{"nodes": [scan, reduce]}]}
        self.assertEqual(decoding({"nodes": [executor]}), (40.0, 20.0))


if __name__ == "__main__":
    unittest.main()
