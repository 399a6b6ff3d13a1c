"""The comparison must accept every correct answer and reject every wrong one."""

import datetime
import sys
import unittest
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.compare import difference, header_problem, order_columns, parse_csv, rows_from_csv


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


if __name__ == "__main__":
    unittest.main()
