"""The comparison of two programs must fail for a slower and for an incorrect one."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.run import DUCKDB_FORMS, Cell, best_ratios
from harness.versions import Group, Pair, verdict


def pair(*factors: float, query: str = "q01", **new: str) -> Pair:
    """Returns a query that takes the old program a second, and the new one this many."""
    return Pair(query, Cell(seconds=[1.0] * len(factors)), Cell(seconds=list(factors), **new))


class Verdict(unittest.TestCase):
    def test_the_mean_decides_and_not_one_query(self):
        self.assertEqual(verdict([Group("a", [pair(1.2), pair(0.85)])], 1.03), [])
        self.assertIn("1.040 times", verdict([Group("a", [pair(1.04), pair(1.04)])], 1.03)[0])

    def test_one_slow_group_is_not_hidden_by_another(self):
        slow, fast = Group("nullable", [pair(1.1)]), Group("not-null", [pair(0.5)])
        self.assertEqual(len(verdict([slow, fast], 1.03)), 1)

    def test_wrong_answers_and_errors_fail_however_fast(self):
        self.assertIn("3 rows", verdict([Group("a", [pair(0.1, wrong="3 rows"), pair(0.9)])], 1.03)[0])
        self.assertIn("crash", verdict([Group("a", [pair(0.1, error="crash"), pair(0.9)])], 1.03)[0])

    def test_nothing_measured_is_no_success(self):
        self.assertTrue(verdict([], 1.03))
        self.assertTrue(verdict([Group("a", [])], 1.03))

    def test_a_ratio_is_that_of_the_same_round(self):
        busy = Pair("q01", Cell(seconds=[1.0, 5.0, 1.0]), Cell(seconds=[1.0, 5.0, 1.0]))
        self.assertEqual(busy.ratio, 1.0)


class Best(unittest.TestCase):
    def test_the_faster_form_of_duckdb_counts_for_each_query(self):
        first, second = DUCKDB_FORMS
        cells = {
            "q01": {"tessera": Cell(seconds=[1.0]), first: Cell(seconds=[3.0]), second: Cell(seconds=[2.0])},
            "q02": {"tessera": Cell(seconds=[1.0]), first: Cell(seconds=[4.0]), second: Cell(error="crash")},
        }
        self.assertEqual(best_ratios(cells), {"q01": 2.0, "q02": 4.0})


if __name__ == "__main__":
    unittest.main()
