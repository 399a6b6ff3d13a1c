"""Statements over TPC-H that need, or would need, far more than a small budget: one for each
sub-operator, and one for each function whose result may be far longer than its arguments."""

from __future__ import annotations

import random
from pathlib import Path

LONG = "repeat(l_comment, 40)"

STATEMENTS = {
    # Sub-operators.
    "values": "select count(*) from (values (1), (2)) as v(x), lineitem",
    "series": "select count(*) from generate_series(1, 30000000) as g(x) where x % 7 = 3",
    "sort": f"select max(length(t)) from (select {LONG} as t, l_comment from lineitem order by l_comment, l_orderkey offset 1) as s",
    "sorted result": "select * from lineitem order by l_comment, l_orderkey",
    "result": "select a.*, b.o_comment from lineitem a, orders b where b.o_orderkey < 10",
    "long rows": f"select {LONG} as t, {LONG} || 'x' as u from lineitem",
    "top_k": f"select {LONG} as t from lineitem order by l_comment desc limit 5",
    "large limit": "select * from lineitem order by l_comment, l_orderkey limit 500000",
    "window_bounds": "select count(*), max(r), max(c) from (select rank() over (partition by l_partkey order by l_shipdate) as r, l_comment as c from lineitem) as s",
    "window_scan": "select count(*), max(n), max(c) from (select row_number() over (order by l_comment, l_orderkey) as n, l_comment as c from lineitem) as s",
    "window_frame": "select count(*), max(m), max(c) from (select max(l_comment) over (partition by l_suppkey order by l_shipdate rows between 9 preceding and 9 following) as m, "
    "l_comment as c from lineitem) as s",
    "limit": "select * from lineitem limit 400000 offset 100000",
    "build": "select count(*) from lineitem a join lineitem b on a.l_orderkey = b.l_orderkey and a.l_comment <> b.l_comment",
    "build_semi": "select count(*) from lineitem a where l_comment in (select o_comment from orders union all select l_comment from lineitem)",
    "left": "select count(o_comment) from lineitem left join orders on l_comment = o_comment",
    "full": "select count(*) from lineitem full join orders on l_comment = o_comment",
    "nested_loop": "select count(*) from supplier a join customer b on a.s_name || '0' <> b.c_name",
    "inequality_join": "select count(*), max(l_comment), max(o_comment) from lineitem join orders on l_orderkey >= o_orderkey and l_orderkey <= o_orderkey",
    "inequality_join of one": "select count(*) from supplier a join customer b on a.s_name < b.c_name",
    "inequality_join that keeps both": "select count(*), max(c_comment), max(o_comment) from customer full join orders on c_comment > o_comment and c_comment < o_comment || 'a'",
    "cartesian_product": "select count(a.l_comment), count(b.s_name) from lineitem a, supplier b where b.s_suppkey < 20",
    "semi_join_filter": "select sum(l_quantity) from lineitem, part where p_partkey = l_partkey and p_size = 3",
    "reduce_by_key": "select count(*), max(n) from (select l_comment, l_orderkey, count(*) as n from lineitem group by 1, 2) as s",
    "group_by": "select count(*) from (select l_comment, count(distinct l_suppkey) as n, max(l_shipmode) as m from lineitem group by 1) as s",
    "reduce": "select count(distinct l_comment), count(*) from lineitem",
    "union": "select count(*) from (select l_comment from lineitem union select o_comment from orders) as s",
    "intersect": "select count(*) from (select l_orderkey, l_comment from lineitem intersect select l_orderkey, l_comment from lineitem) as s",
    "asof_scan": "select count(*), max(l_comment), max(i) from (select l_suppkey as k, l_shipdate as d, l_comment from lineitem) as l "
    "asof left join (select l_suppkey as k, l_commitdate as d, l_shipinstruct as i from lineitem) as r on l.k = r.k and l.d >= r.d",
    "unnest": "select count(*) from (select unnest(string_to_array(l_comment, ' ')) as w from lineitem) as s",
    "unnest long lists": "select count(x) from (select unnest(range(l_orderkey % 5000)) as x from lineitem where l_orderkey < 20000) as s",
    "nested_map": "select sum((select count(*) from supplier where s_suppkey < l_linenumber and s_name > l_comment limit 1)) from lineitem where l_orderkey < 300",
    "loop": "with recursive r(n, t) as (select 1, 'x' union all select n + 1, t || t from r where n < 22) select max(length(t)) from r",
    "read twice": "with t as materialized (select l_orderkey, l_comment, l_partkey, random() as r from lineitem) select (select count(*) from t where r < 2) "
    "+ (select count(*) from t where r >= 0), (select max(l_comment) from t)",
    "nested_loop of much": "select count(*), max(l_comment) from nation left join lineitem on l_orderkey * 3 < n_nationkey",
    "nested_loop that keeps its side": "select count(*), max(l_comment) from lineitem left join nation on l_orderkey * 3 < n_nationkey",
    "grouping sets": "select count(*) from (select l_comment, l_orderkey, count(*) from lineitem group by rollup (l_comment, l_orderkey)) as s",
    "recursion": "with recursive r as (select l_orderkey as k, l_comment as c, 0 as n from lineitem union all select k, c, n + 1 from r where n < 2) select count(*), max(c) from r",
    "recursion that remembers": "with recursive r as (select l_orderkey as k, l_comment as c, 0 as n from lineitem union select k, c, n + 1 from r where n < 2) "
    "select count(*), max(c) from r",
    "lateral": "select count(*), max(c) from nation, lateral (select l_comment || repeat('x', n_nationkey) as c from lineitem where l_suppkey * 2 > n_nationkey + l_linenumber offset 1) as s",
    "sort by long texts": "select max(length(t)) from (select repeat(l_comment, 75) as t from lineitem where l_orderkey < 200000 order by t offset 1) as s",
    "random": "select count(*) from (select random() as x, l_comment from lineitem order by 1) as s",
    "sample": "select count(*), max(l_comment) from lineitem tablesample bernoulli (90) repeatable (7)",
    "sample of many rows": "select max(length(l_comment)) from (select l_comment from lineitem using sample 500000 rows) as s",
    # Functions.
    "bar": "select sum(length(bar(l_quantity, 0, 50, 1000))) from lineitem where l_orderkey < 300000",
    "repeat": "select sum(length(repeat(l_comment, 2000))) from lineitem where l_orderkey < 60000",
    "repeat a constant": "select length(repeat('x', 500000000))",
    "lpad": "select sum(length(lpad(l_comment, 50000, 'ab'))) from lineitem where l_orderkey < 60000",
    "printf": "select sum(length(printf('%50000d', l_orderkey))) from lineitem where l_orderkey < 60000",
    "rpad": "select sum(length(rpad(l_comment, 50000, 'ab'))) from lineitem where l_orderkey < 60000",
    "replace": "select sum(length(replace(l_comment, 'e', repeat('x', 10000)))) from lineitem where l_orderkey < 60000",
    "regexp_replace": "select sum(length(regexp_replace(l_comment, 'e', repeat('abc', 3000), 'g'))) from lineitem where l_orderkey < 60000",
    "string_to_array": f"select sum(cardinality(string_to_array({LONG}, ' '))) from lineitem where l_orderkey < 300000",
    "array_to_string": "select sum(length(array_to_string(string_to_array(l_comment, ' '), repeat('-', 5000)))) from lineitem where l_orderkey < 60000",
    "array_fill": "select sum(cardinality(list_repeat(l_comment, 5000))) from lineitem where l_orderkey < 60000",
    "range": "select sum(cardinality(range(l_orderkey % 50000))) from lineitem where l_orderkey < 100000",
    "concat_ws": "select max(length(concat_ws(',', l_comment, repeat(l_comment, 500), repeat(l_comment, 500)))) from lineitem where l_orderkey < 200000",
    "filter": "select count(*) from lineitem where length(repeat(l_comment, 2000)) > 10 and l_orderkey < 60000",
    "case": "select max(case when length(repeat(l_comment, 500)) > 3 then repeat(l_comment, 600) end) from lineitem where l_orderkey < 60000",
    "string_agg": "select length(string_agg(l_comment, ',')) from lineitem where l_orderkey < 100000",
    "array_agg": "select count(*) from (select l_suppkey, array_agg(l_comment) as a from lineitem group by 1) as s where cardinality(a) > 3",
    "arg_max": "select count(*) from (select l_orderkey, arg_max(l_comment, l_extendedprice) as c from lineitem group by 1) as s where c > 'a'",
    "percentile_cont": "select percentile_cont(0.5) within group (order by l_extendedprice) from lineitem",
    "mode": "select mode() within group (order by l_comment), mode() within group (order by l_partkey) from lineitem",
    "mode of few groups": "select l_returnflag, mode() within group (order by l_comment desc) from lineitem group by 1",
    "percentile_disc": "select percentile_disc(0.5) within group (order by l_comment), percentile_disc(array[0.1, 0.9]) within group (order by l_comment desc) from lineitem",
    "median": "select l_returnflag, median(l_extendedprice), percentile_cont(0.1) within group (order by l_orderkey) from lineitem group by 1",
    "count distinct": "select count(distinct l_comment), count(distinct l_orderkey), sum(distinct l_extendedprice) from lineitem",
    "count distinct of few groups": "select l_returnflag, count(distinct l_comment), sum(distinct l_orderkey) from lineitem group by 1",
    "first in order": "select first_value(l_comment order by l_extendedprice, l_orderkey), last_value(l_comment order by l_comment) from lineitem",
    # A result with all values must fit.
    "array_agg of all": "select cardinality(array_agg(l_comment)) from lineitem",
}

LINEITEM = "%l = parquet_scan() {paths = ['lineitem.parquet'], columns = <l_orderkey: int64, l_comment: string>}"
COUNT = "{aggregates = {n = {function = :count, args = []}}}"

# Handwritten plans for sub-operators that SQL does not use, run in the database.
PLANS = {
    "group_by": f"plan {{{LINEITEM} %g = group_by(%l) {{keys = [l_orderkey], into = tuples}} %c = reduce(%g) {COUNT} return %c}}",
    "partition": f"plan {{{LINEITEM} %p = partition(%l) {{keys = [l_orderkey], bits = 4, shift = 0}} %c = reduce(%p) {COUNT} return %c}}",
    "round_robin": f"plan {{{LINEITEM} %p = round_robin(%l) {{fan_out = 4}} %c = reduce(%p) {COUNT} return %c}}",
    "remember": f"plan {{{LINEITEM} %r = remember(%l) %c = reduce(%r) {COUNT} return %c}}",
    "parametrized_map": f"plan {{{LINEITEM} %o = values() {{columns = <x: int64>, rows = [[1]]}} "
    f"%m = parametrized_map(%o, %l) {{exprs = {{t = l_orderkey + x, c = l_comment}}}} %c = reduce(%m) {COUNT} return %c}}",
    "content_scan": f"plan {{%t = content_scan() {{paths = ['supplier.parquet', 'part.parquet'], columns = <content: bytes>}} %c = reduce(%t) {COUNT} return %c}}",
    "merge_join": f"plan {{{LINEITEM} %s = sort(%l) {{keys = [{{field = l_orderkey}}]}} "
    f"%j = merge_join(%s, %s) {{left_keys = [l_orderkey], right_keys = [l_orderkey], join = :semi}} %c = reduce(%j) {COUNT} return %c}}",
}
# Files of plans/.
PLAN_FILES = ["join-radix", "group-by-radix", "join-filtered"]

# Results of a nested plan (`lateral`) must fit in memory. Those that do not fit fail with the error
# that says so; the others return their rows.
TOO_LARGE = {
    "repeat a constant", "array_agg of all", "lateral", "plan group_by", "plan partition", "plan round_robin", "plan merge_join",
}

# Sub-operators without a case, with the reason.
ELSEWHERE = {
    "xlsx_scan": "a workbook is held whole: crates/xlsx/src/tests.rs, damaged.py",
    "parameter_lookup": "one tuple",
    "projection": "passes columns on",
    "executor": "holds what its plan gives: every statement",
    "left": "a kind of join",
    "full": "a kind of join",
    "inner": "a kind of join",
    "right": "a kind of join",
    "semi": "a kind of join",
    "mark": "a kind of join",
    "single": "a kind of join",
    "block_scan": "tables in memory are counted for the process: session's tests",
}
# tests/mpi.py and tests/serverless.py run those of platforms.
OF_PLATFORMS = ("mpi_", "object_", "select_", "arrow_", "exchange", "pack", "unpack", "router", "mem_move", "device_cross", "merge")

WIDE_COLUMNS, WIDE_ROWS = 1000, 12_000


def write_wide(directory: Path) -> None:
    """Writes Parquet files of a thousand columns of several types: with one row group, with
    several, and with a page index."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    draw = random.Random(5)
    numbers = pa.array([draw.getrandbits(60) for _ in range(WIDE_ROWS)])
    texts = pa.array([None if draw.random() < 0.1 else "%032x" % draw.getrandbits(128) for _ in range(WIDE_ROWS)])
    words = pa.array([f"word number {draw.randrange(5000)}" for _ in range(WIDE_ROWS)])
    doubles = pa.array([draw.random() for _ in range(WIDE_ROWS)])

    def column(i: int) -> pa.Array:
        if i % 4 == 0:
            return pc.add(numbers, i)
        if i % 4 == 1:
            return pc.binary_join_element_wise(texts, str(i), "")
        if i % 4 == 2:
            return pc.binary_join_element_wise(words, str(i), "")
        return pc.add(doubles, float(i))

    table = pa.table({f"c{i}": column(i) for i in range(WIDE_COLUMNS)})
    pq.write_table(table, directory / "one.parquet")
    pq.write_table(table, directory / "several.parquet", row_group_size=3_000)
    pq.write_table(table, directory / "indexed.parquet", write_page_index=True, data_page_size=32 << 10)


def wide_statements() -> dict[str, str]:
    """Returns statements that read every column of the wide files."""
    largest = ", ".join(f"max(c{i})" for i in range(WIDE_COLUMNS))
    found = {}
    for table in ["one", "several", "indexed"]:
        found[f"{table}, all"] = f"select * from {table}"
        found[f"{table}, filtered"] = f"select {largest} from {table} where c0 % 3 = 1 and c2 > 'word number 3'"
    return found
