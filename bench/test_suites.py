"""Queries and generated tables of the suites must be those that are meant."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness import films, hits, tpcds
from harness.suites import QUERY_COUNTS, TABLES, at_scale, columns_of, queries


class Suites(unittest.TestCase):
    def test_queries_are_complete_and_in_the_order_of_their_numbers(self):
        for suite, count in QUERY_COUNTS.items():
            if suite != "tpcds":
                self.assertEqual(len(queries(suite)), count)
        names = [query.name for query in queries("joinorder")]
        self.assertLess(names.index("2a"), names.index("10a"))
        self.assertEqual(len({name.rstrip("abcdef") for name in names}), 33)

    def test_queries_of_tpcds_come_from_its_extension(self):
        if not tpcds.install():
            self.skipTest("DuckDB's extension of that name cannot be installed here")
        found = queries("tpcds", ["q01", "q99"])
        self.assertEqual([query.name for query in found], ["q01", "q99"])
        self.assertIn("customer_total_return", found[0].sql)

    def test_small_tables_have_small_bounds(self):
        self.assertEqual(at_scale("clickbench", "having count(*) > 100000 offset\n 1000", 0.01), "having count(*) > 1000 offset\n 10")
        self.assertEqual(at_scale("clickbench", "offset 1000", 1.0), "offset 1000")
        self.assertEqual(at_scale("tpch", "offset 1000", 0.01), "offset 1000")

    def test_generated_tables_have_their_columns_and_repeat(self):
        import pyarrow.parquet as parquet

        with tempfile.TemporaryDirectory() as scratch:
            first, second = Path(scratch, "first"), Path(scratch, "second")
            for directory in (first, second):
                directory.mkdir()
                hits.make(0.0001, directory)
                films.make(0.002, directory)
            self.assertEqual(len(parquet.read_schema(first / "hits.parquet")), 105)
            for suite in ("clickbench", "joinorder"):
                self.assertEqual(columns_of(first, suite), "nullable")
                for table in TABLES[suite]:
                    one, other = (parquet.read_table(directory / f"{table}.parquet") for directory in (first, second))
                    self.assertTrue(one.equals(other), table)


if __name__ == "__main__":
    unittest.main()
