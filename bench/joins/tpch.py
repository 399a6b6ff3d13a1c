"""TPC-H's queries with a choice of join order, as regions. The others join two relations."""

from __future__ import annotations

from pathlib import Path

from .region import Region, Unit


def _units(names: str, **filters: str) -> list[Unit]:
    pairs = [name.split(":") for name in names.split()]
    made = [(pair[0], pair[-1]) for pair in pairs]
    return [Unit(name, table, (filters[name],) if name in filters else ()) for name, table in made]


def regions(folder: Path) -> list[Region]:
    """Returns the regions; a table that occurs twice in one is identified by its alias."""

    def sql(number: int, *renamed: tuple[str, str]) -> str:
        text = (folder / f"q{number:02}.sql").read_text().strip().rstrip(";")
        for old, new in renamed:
            if old not in text:
                raise ValueError(f"q{number:02} does not contain '{old}'")
            text = text.replace(old, new)
        return text

    nations = (("nation n1", "n1"), ("nation n2", "n2"))
    cheapest = (
        "(SELECT ps_partkey AS key, min(ps_supplycost) AS cost FROM partsupp, supplier, nation, region WHERE s_suppkey = ps_suppkey "
        "AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE' GROUP BY ps_partkey)"
    )
    large = "(SELECT l_orderkey AS key FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)"
    aggregated = frozenset(["#"])
    return [
        Region(
            "q02",
            sql(2),
            [
                *_units(
                    "part supplier partsupp nation region",
                    part="part.p_size = 15 AND part.p_type LIKE '%BRASS'",
                    region="region.r_name = 'EUROPE'",
                ),
                Unit("least", cheapest, leaves=aggregated),
            ],
            [
                "part.p_partkey = partsupp.ps_partkey",
                "supplier.s_suppkey = partsupp.ps_suppkey",
                "supplier.s_nationkey = nation.n_nationkey",
                "nation.n_regionkey = region.r_regionkey",
                "part.p_partkey = least.key",
                "partsupp.ps_supplycost = least.cost",
            ],
        ),
        Region(
            "q03",
            sql(3),
            _units(
                "customer orders lineitem",
                customer="customer.c_mktsegment = 'BUILDING'",
                orders="orders.o_orderdate < DATE '1995-03-15'",
                lineitem="lineitem.l_shipdate > DATE '1995-03-15'",
            ),
            ["customer.c_custkey = orders.o_custkey", "lineitem.l_orderkey = orders.o_orderkey"],
        ),
        Region(
            "q05",
            sql(5),
            _units(
                "customer orders lineitem supplier nation region",
                region="region.r_name = 'ASIA'",
                orders="orders.o_orderdate >= DATE '1994-01-01' AND orders.o_orderdate < DATE '1995-01-01'",
            ),
            [
                "customer.c_custkey = orders.o_custkey",
                "lineitem.l_orderkey = orders.o_orderkey",
                "lineitem.l_suppkey = supplier.s_suppkey",
                "customer.c_nationkey = supplier.s_nationkey",
                "supplier.s_nationkey = nation.n_nationkey",
                "nation.n_regionkey = region.r_regionkey",
            ],
        ),
        Region(
            "q07",
            sql(7, *nations),
            _units(
                "supplier lineitem orders customer n1 n2",
                lineitem="lineitem.l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'",
                n1="n1.n_name IN ('FRANCE', 'GERMANY')",
                n2="n2.n_name IN ('FRANCE', 'GERMANY')",
            ),
            [
                "supplier.s_suppkey = lineitem.l_suppkey",
                "orders.o_orderkey = lineitem.l_orderkey",
                "customer.c_custkey = orders.o_custkey",
                "supplier.s_nationkey = n1.n_nationkey",
                "customer.c_nationkey = n2.n_nationkey",
                "(n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY' OR n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE')",
            ],
        ),
        Region(
            "q08",
            sql(8, *nations),
            _units(
                "part supplier lineitem orders customer n1 n2 region",
                part="part.p_type = 'ECONOMY ANODIZED STEEL'",
                orders="orders.o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'",
                region="region.r_name = 'AMERICA'",
            ),
            [
                "part.p_partkey = lineitem.l_partkey",
                "supplier.s_suppkey = lineitem.l_suppkey",
                "lineitem.l_orderkey = orders.o_orderkey",
                "orders.o_custkey = customer.c_custkey",
                "customer.c_nationkey = n1.n_nationkey",
                "n1.n_regionkey = region.r_regionkey",
                "supplier.s_nationkey = n2.n_nationkey",
            ],
        ),
        Region(
            "q09",
            sql(9),
            _units("part supplier lineitem partsupp orders nation", part="part.p_name LIKE '%green%'"),
            [
                "supplier.s_suppkey = lineitem.l_suppkey",
                "partsupp.ps_suppkey = lineitem.l_suppkey",
                "partsupp.ps_partkey = lineitem.l_partkey",
                "part.p_partkey = lineitem.l_partkey",
                "orders.o_orderkey = lineitem.l_orderkey",
                "supplier.s_nationkey = nation.n_nationkey",
            ],
        ),
        Region(
            "q10",
            sql(10),
            _units(
                "customer orders lineitem nation",
                orders="orders.o_orderdate >= DATE '1993-10-01' AND orders.o_orderdate < DATE '1994-01-01'",
                lineitem="lineitem.l_returnflag = 'R'",
            ),
            [
                "customer.c_custkey = orders.o_custkey",
                "lineitem.l_orderkey = orders.o_orderkey",
                "customer.c_nationkey = nation.n_nationkey",
            ],
        ),
        Region(
            "q18",
            sql(18),
            [
                *_units("customer orders lineitem"),
                Unit("large", large, (), "semi", "orders.o_orderkey = large.key", aggregated),
            ],
            ["customer.c_custkey = orders.o_custkey", "orders.o_orderkey = lineitem.l_orderkey"],
        ),
        Region(
            "q21",
            sql(21, ("lineitem l1", "l1"), ("lineitem l2", "l2"), ("lineitem l3", "l3")),
            [
                *_units(
                    "supplier l1 orders nation",
                    l1="l1.l_receiptdate > l1.l_commitdate",
                    orders="orders.o_orderstatus = 'F'",
                    nation="nation.n_name = 'SAUDI ARABIA'",
                ),
                Unit("l2", "l2", (), "semi", "l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey"),
                Unit(
                    "l3",
                    "l3",
                    ("l3.l_receiptdate > l3.l_commitdate",),
                    "anti",
                    "l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey",
                ),
            ],
            [
                "supplier.s_suppkey = l1.l_suppkey",
                "orders.o_orderkey = l1.l_orderkey",
                "supplier.s_nationkey = nation.n_nationkey",
            ],
        ),
    ]
