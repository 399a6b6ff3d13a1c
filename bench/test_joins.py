"""Tests how join orders are measured."""

import random
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import duckdb

from joins import shop
from joins.plans import Chosen, Join
from joins.region import Region, Sizes, Unit, best_of_all, best_of_random, closed, random_order


class Regions(unittest.TestCase):
    """Regions over the generated tables."""

    @classmethod
    def setUpClass(cls):
        cls.connection = duckdb.connect()
        with tempfile.TemporaryDirectory() as folder:
            shop.generate(cls.connection, Path(folder), 1)
        cls.queries = shop.queries(6, 1, cls.connection)

    def test_a_tree_is_counted_as_the_join_is(self):
        for region in self.queries[:3]:
            for units in random_order(region, random.Random(1)):
                counted = self.connection.execute(region.count_sql(units)).fetchone()[0]
                self.assertEqual(Sizes(region, self.connection)[units], counted, region.count_sql(units))

    def test_every_kind_of_join_is_counted(self):
        for kind in ("inner", "left", "semi", "anti"):
            on = "product.category_id = category.id"
            units = [
                Unit("product", "product", ("product.rank > 3",)),
                Unit("category", "category", ("category.department = 2",), kind, on if kind != "inner" else ""),
            ]
            region = Region("x", "", units, [on] if kind == "inner" else [])
            counted = self.connection.execute(region.count_sql(3)).fetchone()[0]
            self.assertGreater(counted, 0)
            self.assertEqual(Sizes(region, self.connection)[3], counted, kind)

    def test_no_random_order_beats_the_best(self):
        region = self.queries[0]
        sizes = Sizes(region, self.connection)
        self.assertLessEqual(best_of_all(region, sizes), best_of_random(region, sizes, 100, random.Random(2)))

    def test_a_plan_is_read_only_if_it_joins_these_units(self):
        region = self.queries[0]
        name = [unit.name for unit in region.units]
        joins = [Join(frozenset(name[:count]), 1, 1) for count in range(2, len(name) + 1)]
        self.assertEqual(Chosen(joins).sets(region)[-1], region.full)
        self.assertIsNone(Chosen(joins[1:]).sets(region))

    def test_equalities_that_follow_are_edges(self):
        self.assertEqual(closed(["a.x = b.x", "b.x = c.x"]), ["a.x = b.x", "a.x = c.x", "b.x = c.x"])


if __name__ == "__main__":
    unittest.main()
