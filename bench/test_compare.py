"""The comparison must accept every correct answer and reject every wrong one."""

import datetime
import sys
import unittest
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.compare import answer_difference, difference, header_problem, order_columns, parse_csv, rows_from_csv, without_limit


class Compare(unittest.TestCase):
    def test_csv_tells_null_from_empty(self):
        text = 'a,b\n,""\n"x,""y""\nz",1\r\n2,\n'
        self.assertEqual(parse_csv(text), [["a", "b"], [None, ""], ['x,"y"\nz', "1"], ["2", None]])

    def test_csv_of_one_null_column_keeps_its_row(self):
        self.assertEqual(rows_from_csv("a\n\n", [(None,)]), [(None,)])

    def test_values_take_the_types_of_the_reference(self):
        expected = [(1, Decimal("2.50"), 0.5, datetime.date(1995, 1, 2), "x", True)]
        rows = rows_from_csv("a,b,c,d,e,f\n1,2.50,0.5,1995-01-02,x,true\n", expected)
        self.assertIsNone(difference(expected, rows, []))

    def test_decimals_are_exact_and_doubles_nearly(self):
        self.assertIsNotNone(difference([(Decimal("1.00"),)], [(Decimal("1.01"),)], []))
        self.assertIsNone(difference([(1.0,)], [(1.0 + 1e-12,)], []))
        self.assertIsNotNone(difference([(1.0,)], [(1.0 + 1e-6,)], []))
        self.assertIsNone(difference([(0.3333333333,)], [(Decimal("0.333333"),)], []))
        self.assertIsNotNone(difference([(0.3333333333,)], [(Decimal("0.333331"),)], []))

    def test_null_is_neither_zero_nor_empty(self):
        self.assertIsNotNone(difference([(None,)], [(0,)], []))
        self.assertIsNotNone(difference([(None,)], [("",)], []))

    def test_order_counts_only_where_it_is_asked_for(self):
        expected, given = [(1, "a"), (1, "b"), (2, "c")], [(1, "b"), (1, "a"), (2, "c")]
        self.assertIsNone(difference(expected, given, [0]))
        self.assertIn("out of order", difference(expected, given, [1]))
        self.assertIsNone(difference(expected, given[::-1], []))

    def test_missing_rows_and_repeated_ones_are_found(self):
        self.assertIsNotNone(difference([(1,), (2,)], [(1,)], []))
        self.assertIsNotNone(difference([(1,), (2,)], [(1,), (1,)], []))

    def test_an_answer_without_rows_has_the_right_columns(self):
        self.assertIsNone(header_problem('a,"b,\n""c"\n', ["a", "x"]))
        self.assertIsNotNone(header_problem("a\n", ["a", "b"]))
        self.assertIsNotNone(header_problem("", ["a"]))

    def test_the_order_by_of_the_query_is_found(self):
        sql = "select a, b from (select 1 order by c) order by\n b desc,\n a\nlimit 3"
        self.assertEqual(order_columns(sql, ["a", "b"]), [1, 0])
        self.assertEqual(order_columns("select a from t", ["a"]), [])
        self.assertEqual(order_columns("select a from (select b from t order by b)", ["a"]), [])
        # By expressions of the select list, whatever the engine calls them.
        sql = "select a, count(*), f(a, b) as c -- what's (first?\nfrom t group by a, f(a, b) order by count(*) desc, f(a, b)"
        self.assertEqual(order_columns(sql, ["a", "count_star()", "c"]), [1, 2])
        self.assertEqual(order_columns("select a from t order by hidden, a", ["a"]), [])

    def test_a_limit_is_cut_off_only_where_it_is_outermost(self):
        self.assertEqual(without_limit("select a from t order by a\nlimit\n    3\noffset 2"), "select a from t order by a")
        inner = "select a from (select a from t limit 3) where a <> ' limit 3'"
        self.assertEqual(without_limit(inner), inner)

    def test_a_limit_may_choose_among_rows_of_one_place(self):
        sql = "select a, b from t order by a limit 4"
        every = [(0, "w"), (1, "x"), (2, "p"), (2, "q"), (2, "r"), (3, "z")]
        expected = [(0, "w"), (1, "x"), (2, "p"), (2, "q")]
        wrong = lambda *given: answer_difference(sql, ["a", "b"], expected, [(0, "w"), *given], every)  # noqa: E731
        self.assertIsNone(wrong((1, "x"), (2, "r"), (2, "p")))
        self.assertIn("not in the answer", wrong((1, "x"), (2, "r"), (2, "r")))
        self.assertIn("not in the answer", wrong((1, "x"), (2, "p"), (2, "s")))
        self.assertIn("out of order", wrong((1, "x"), (2, "p"), (3, "z")))
        self.assertIn("column 2", wrong((1, "y"), (2, "p"), (2, "q")))
        # A place between the first and the last is certain, and so is one that the result does not show.
        hidden = "select b from t order by a limit 2"
        self.assertIsNotNone(answer_difference(hidden, ["b"], [("w",), ("x",)], [("w",), ("p",)]))

    def test_a_limit_without_an_order_may_choose_any_rows(self):
        wrong = lambda given: answer_difference("select a from t limit 2", ["a"], [(1,), (2,)], given, [(1,), (2,), (3,)])  # noqa: E731
        self.assertIsNone(wrong([(3,), (1,)]))
        self.assertIn("not in the answer", wrong([(3,), (4,)]))
        self.assertIn("1 rows", wrong([(3,)]))


if __name__ == "__main__":
    unittest.main()
